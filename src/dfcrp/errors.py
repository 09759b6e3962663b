"""The few kinds of trouble that dfcrp reports, and checks that the settings share."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


class DfcrpError(Exception):
    """Base of every error that dfcrp raises on purpose; its text is meant for the user."""


class InputError(DfcrpError):
    """The user's data are wrong: the message names file, row and column and says how to fix it."""


class SettingsError(InputError):
    """A setting is unknown, of the wrong kind, or out of range."""


class RunFolderError(InputError):
    """A run folder is missing, damaged, or does not belong to what was asked of it."""


class DfcrpWarning(UserWarning):
    """Something the user should know, after which the work continues."""


def did_you_mean(name: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """``; did you mean 'x'?`` with the nearest name, in large or small letters, or nothing."""
    folded = {str(one).casefold(): one for one in known}
    near = difflib.get_close_matches(str(name).casefold(), folded, n=1, cutoff=cutoff)
    return f"; did you mean {folded[near[0]]!r}?" if near else ""


def check(holds: bool, name: str, value: object, rule: str) -> None:
    """Refuse a setting for which the rule does not hold."""
    if not holds:
        raise SettingsError(f"{name} is {shown(value)}; it must be {rule}")


def check_choice(name: str, value: object, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices, and name the nearest."""
    if value not in choices:
        hint = difflib.get_close_matches(str(value), choices, n=1)
        nearest = f' Did you mean "{hint[0]}"?' if hint else ""
        raise SettingsError(
            f"{name} is {shown(value)}; it must be one of {', '.join(choices)}.{nearest}"
        )


def shown(value: object) -> str:
    """A value in a message, shortened where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "beyond reason"
    return text if len(text) <= 80 else text[:77] + "..."
