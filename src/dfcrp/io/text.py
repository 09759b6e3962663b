"""The text in a file, and JSON in it: what is no text and no JSON is refused in words."""

from __future__ import annotations

import codecs
import json
from typing import Any

from dfcrp.errors import InputError
from dfcrp.items.checks import quoted
from dfcrp.values import Json

_BYTE_ORDER_MARKS = (
    # The mark of little-endian UTF-16 begins that of UTF-32, so the longer ones come first.
    (codecs.BOM_UTF32_LE, "UTF-32-LE"),
    (codecs.BOM_UTF32_BE, "UTF-32-BE"),
    (codecs.BOM_UTF16_LE, "UTF-16-LE"),
    (codecs.BOM_UTF16_BE, "UTF-16-BE"),
    (codecs.BOM_UTF8, "UTF-8"),
    (b"", "UTF-8"),
)


def decode(name: str, data: bytes) -> str:
    """Turn bytes into text: UTF-8, or what a byte order mark announces."""
    mark, encoding = next(pair for pair in _BYTE_ORDER_MARKS if data.startswith(pair[0]))
    if encoding == "UTF-8" and b"\0" in data:
        raise InputError(
            f"{name}: not a text file, there is a NUL byte at offset {data.index(0)}; "
            "if this is a table, save it as CSV in UTF-8"
        )
    try:
        text = data[len(mark) :].decode(encoding)
    except UnicodeDecodeError as error:
        offset = len(mark) + error.start
        row = data.count(b"\n", 0, offset) + 1
        near = f" (row {row})" if encoding == "UTF-8" else ""
        raise InputError(
            f"{name}: the byte 0x{data[offset]:02X} at offset {offset}{near} is not {encoding}; "
            "if this is a table, save it as CSV in UTF-8"
        ) from None
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise InputError(f"{name}, row {row}: there is a NUL character; remove it")
    return text


def lines_of(name: str, data: bytes) -> list[str]:
    """The lines of a text, as an editor counts them: other separators are part of a line."""
    return decode(name, data).replace("\r\n", "\n").replace("\r", "\n").split("\n")


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
        raise InputError(f"{where}: the JSON is nested too deeply; export the file again") from None


def as_object(value: object, where: str) -> Json:
    """Insist on {...}."""
    if isinstance(value, dict):
        return value
    raise InputError(
        f"{where}: {quoted(str(value)[:100])} should be {{...}}; export the file again"
    )


def as_list(value: object, where: str) -> list[Any]:
    """Insist on [...]."""
    if isinstance(value, list):
        return value
    raise InputError(f"{where}: {quoted(str(value)[:100])} should be [...]; export the file again")


def text_or_none(value: object) -> str | None:
    """A name, whether it came as text or as a number; None if there is none."""
    if isinstance(value, bool) or not isinstance(value, (str, int, float)):
        return None
    if isinstance(value, float) and value.is_integer() and abs(value) < 2**53:
        value = int(value)  # 1.0 and 1 are one number
    try:
        return str(value).strip() or None
    except ValueError:  # a number of thousands of digits
        return None
