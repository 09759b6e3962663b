"""Values of settings: from what a user wrote to what a field holds, and as TOML again."""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping
from typing import Any

from dfcrp.errors import SettingsError
from dfcrp.settings.checks import shown

#: Numbers beyond this are slips, and squares of them would overflow.
LARGEST = 1e100


def build(kind: type, section: str, values: Mapping[str, Any]) -> Any:
    """A section of the settings; an unknown name or a value of another kind is an error."""
    known = {item.name: item for item in dataclasses.fields(kind)}
    for name in values:
        if name not in known:
            raise SettingsError(unknown("setting", f"{section}.{name}", known, bare=name))
    return kind(
        **{
            name: _coerce(f"{section}.{name}", value, str(known[name].type))
            for name, value in values.items()
        }
    )


def _coerce(name: str, value: Any, annotation: str) -> Any:
    """Accept what the annotation says, an integer where a float is asked for, lists for tuples."""
    allowed = [part.strip() for part in annotation.split("|")]
    if value is None and "None" in allowed:
        return None
    if isinstance(value, str) and "str" in allowed:
        return value
    if isinstance(value, bool) and "bool" in allowed:
        return value
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if number and abs(value) <= LARGEST:
        if "int" in allowed and float(value).is_integer():
            return int(value)
        if "float" in allowed:
            return float(value)
    if isinstance(value, list | tuple):
        if "Groups" in allowed:
            return tuple(_coerce(name, item, "tuple[str, ...]") for item in value)
        if "Triple" in allowed and len(value) == 3:
            return tuple(_coerce(name, item, "float") for item in value)
        for part in allowed:
            if part.startswith("tuple["):
                inner = part[len("tuple[") :].split(",")[0]
                return tuple(_coerce(name, item, inner) for item in value)
    raise SettingsError(f"{name} is {shown(value)}; it must be {_describe(allowed)}")


def _describe(allowed: list[str]) -> str:
    words = {
        "int": "a whole number",
        "float": "a number",
        "str": "a text",
        "Triple": "three numbers [x, y, log diameter]",
        "Groups": 'lists of names, as in [["A", "B"], ["C", "D"]]',
        "bool": "true or false",
        "None": "left out",
    }
    return " or ".join(words.get(part, "a list") for part in allowed)


def unknown(what: str, name: str, known: Mapping[str, Any], bare: str | None = None) -> str:
    """Say that there is no such name, and which may have been meant."""
    hint = difflib.get_close_matches(bare or name, known, n=1, cutoff=0.5)
    nearest = f"; did you mean {hint[0]!r}?" if hint else "."
    return f"there is no {what} {name!r}{nearest} Known: {', '.join(known)}."


def toml_value(value: Any) -> str:
    """A value as TOML writes it."""
    if isinstance(value, tuple):
        return "[" + ", ".join(toml_value(item) for item in value) + "]"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return _toml_string(value)
    return repr(value)


def _toml_string(text: str) -> str:
    """A basic string of TOML, which has no control characters as they are."""
    plain = text.replace("\\", "\\\\").replace('"', '\\"')
    return '"' + re.sub(r"[\x00-\x1f\x7f]", lambda found: f"\\u{ord(found[0]):04x}", plain) + '"'
