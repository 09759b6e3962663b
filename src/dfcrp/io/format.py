"""What a file format is to the rest: how a file is known, read into a table, and written."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfcrp.io.tables import DRAWN, RawTable, ReadOptions, ReadTable


@dataclass(frozen=True)
class GivenFile:
    """A file as it came."""

    name: str
    """What messages call it."""
    path: Path
    """Where it is, as other files may lie beside it."""
    data: bytes


Writer = Callable[[ReadTable, Path], dict[Path, bytes]]
"""Gives the contents of each file to be written, so that nothing is written by halves."""


@dataclass(frozen=True)
class Format:
    """A file format; each module of ``dfcrp.io.formats`` holds its own."""

    name: str
    recognises: Callable[[GivenFile], bool]
    read: Callable[[GivenFile, ReadOptions], RawTable]
    kinds: tuple[str, ...] | None = DRAWN
    """The kinds of items it can hold; None: all."""
    writers: tuple[tuple[str, Writer], ...] = ()
    """Endings of file names, and what writes such a file."""
    target: str | None = None
    """What ``--to`` calls it, if it is written for the tool that it comes from."""
    write: Writer | None = None
    """What writes it then."""
    ending: str = ""
    """How the name of such a file ends; nothing where it is a folder."""
