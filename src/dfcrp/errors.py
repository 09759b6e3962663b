"""The few kinds of trouble that dfcrp reports."""

from __future__ import annotations


class DfcrpError(Exception):
    """Base of every error that dfcrp raises on purpose; its text is meant for the user."""


class InputError(DfcrpError):
    """The user's data are wrong: the message names file, row and column and says how to fix it."""


class SettingsError(InputError):
    """A setting is unknown, of the wrong kind, or out of range."""


class RunFolderError(InputError):
    """A run folder is missing, damaged, or does not belong to what was asked of it."""


class DfcrpWarning(UserWarning):
    """Something the user should know, after which the work goes on."""
