"""The formats that markings are read from, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfcrp.io.delimited import read_delimited
from dfcrp.io.table import Table


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise it, and how to read it into a table."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    """Whether a file with this path and these contents has the format."""
    read: Callable[[str, Path, bytes], Table]
    """Given the file's name for messages, its path (for side files) and its contents."""


FORMATS: tuple[Format, ...] = (
    # The first format that recognises a file reads it. Delimited text has no mark of its own, so
    # it takes what no other format claims, says what is wrong with it, and stays last.
    Format(
        name="delimited text",
        recognises=lambda path, data: True,
        read=lambda name, path, data: read_delimited(name, data),
    ),
)


def read_table(name: str, path: Path, data: bytes) -> Table:
    """Read a file's contents with the reader of its format."""
    form = next(form for form in FORMATS if form.recognises(path, data))
    return form.read(name, path, data)
