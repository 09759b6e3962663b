"""Checks that the settings share; what is wrong is said with its name, value and rule."""

from __future__ import annotations

import difflib
from typing import Any

from dfcrp.errors import SettingsError


def check(holds: bool, name: str, value: Any, rule: str) -> None:
    """Refuse a setting for which the rule does not hold."""
    if not holds:
        raise SettingsError(f"{name} is {shown(value)}; it must be {rule}")


def check_choice(name: str, value: Any, choices: tuple[str, ...]) -> None:
    """Refuse what is none of the choices, and name the nearest."""
    if value not in choices:
        hint = difflib.get_close_matches(str(value), choices, n=1)
        nearest = f' Did you mean "{hint[0]}"?' if hint else ""
        raise SettingsError(
            f"{name} is {shown(value)}; it must be one of {', '.join(choices)}.{nearest}"
        )


def shown(value: Any) -> str:
    """A value in a message, shortened where it is long."""
    try:
        text = repr(value)
    except (ValueError, RecursionError):
        return "beyond reason"
    return text if len(text) <= 80 else text[:77] + "..."
