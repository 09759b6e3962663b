"""JSON with complaints that name the file and the place."""

from __future__ import annotations

import json
from typing import Any, NoReturn

from dfcrp.errors import InputError
from dfcrp.io.formats.delimited import decode
from dfcrp.items.checks import shown


def load_json(name: str, data: bytes) -> Any:
    """Parse a whole file."""
    return parse_json(decode(name, data), name)


def parse_json(text: str, where: str) -> Any:
    """Parse a piece of text; ``where`` is what a message calls it."""
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        raise InputError(
            f"{where}: not JSON at line {error.lineno}, column {error.colno} ({error.msg}); "
            "is the file whole? Export it again"
        ) from None
    except (ValueError, RecursionError):  # numbers of thousands of digits, nests of brackets
        raise InputError(f"{where}: JSON beyond reason; export the file again") from None


def as_object(value: Any, where: str) -> dict[str, Any]:
    """Insist on {...}."""
    if isinstance(value, dict):
        return value
    raise InputError(f"{where}: {shown(str(value)[:100])} should be {{...}}; export the file again")


def as_list(value: Any, where: str) -> list[Any]:
    """Insist on [...]."""
    if isinstance(value, list):
        return value
    raise InputError(f"{where}: {shown(str(value)[:100])} should be [...]; export the file again")


def text_or_none(value: Any) -> str | None:
    """A name, whether it came as text or as a number; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    try:
        return str(value).strip() or None
    except ValueError:  # a number of thousands of digits
        return None


def refuse_unknown_json(name: str, data: bytes) -> NoReturn:
    """Say what is wrong with JSON that no reader knows."""
    load_json(name, data)
    raise InputError(
        f"{name}: JSON of an unknown kind; GeoJSON, COCO, LabelMe and Label Studio exports are read"
    )
