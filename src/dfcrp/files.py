"""Files that are there as a whole or not at all.

A file is written beside its place, put on the disk and renamed into its place. So whoever looks,
at whatever moment and after whatever kill, finds all of the old content or all of the new.
"""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from dfcrp.errors import DfcrpError

#: What a file or folder is called until it is whole.
PART = ".part"


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Open a file for writing that takes the place of ``path`` when the block ends.

    ``durable``: it is on the disk, not just in the system's memory, before it is given its name.
    One process at a time may do this for a path.
    """
    part = part_of(path)
    try:
        with part.open("wb") as file:
            yield file
            if durable:
                put_on_disk(file)
        os.replace(part, path)
    except OSError:
        with contextlib.suppress(OSError):
            part.unlink()
        raise


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Give a file this content, as ``replacing`` does."""
    with replacing(path, durable=durable) as file:
        file.write(content)


def write_text(path: Path, text: str) -> None:
    """Give a file this text, as ``replacing`` does; DfcrpError says why it cannot be done."""
    with write_errors(path):
        replace_file(path, text.encode())


def part_of(path: Path) -> Path:
    """What a file or folder is called until it is whole."""
    return path.with_name(path.name + PART)


def put_on_disk(file: BinaryIO) -> None:
    """Bring what was written to an open file to the disk."""
    file.flush()
    os.fsync(file.fileno())


def sync_folder(path: Path) -> None:
    """Put the names in a folder on the disk.

    File systems with a journal keep the order of renames: those made earlier, in whatever
    folder, are on the disk then too.
    """
    if os.name == "nt":  # Windows cannot open a folder
        return
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


@contextmanager
def write_errors(path: Path, safe: str = "") -> Iterator[None]:
    """Say in words why ``path`` cannot be written, and with ``safe`` what is not lost."""
    try:
        yield
    except OSError as error:
        message = f"{path}: cannot be written: {why(error)}"
        raise DfcrpError(f"{message}. {safe}" if safe else message) from error


def why(error: OSError) -> str:
    """The reason in plain words."""
    full = error.errno in (errno.ENOSPC, errno.EDQUOT)
    return "the disk is full" if full else error.strerror or str(error)
