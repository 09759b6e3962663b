"""One file: its bytes, refused early if they cannot be read, and the table in it."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import BinaryIO

from dfcrp.errors import InputError
from dfcrp.io.formats.delimited import decode
from dfcrp.io.registry import read_raw
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.memory import in_words, refuse_more_than_memory

PathLike = str | os.PathLike[str]

#: Bytes of memory for each of a file: a short field is an object of Python.
MEMORY_PER_BYTE = 8
#: Of a file, to see whether it is text.
_LOOKED_AT = 1 << 16
#: Read at a time.
_PIECE = 64 << 20
BINARY_ENDINGS = (".parquet", ".shp", ".dbf", ".shx", ".prj")
BINARY_MARKS = (
    b"PAR1",
    b"SQLite format 3\x00",
    b"\x00\x00\x27\x0a",
    b"\xff\xfe",
    b"\xfe\xff",
    b"\x00\x00\xfe\xff",
)


def read_file(name: str, path: Path, options: ReadOptions) -> tuple[RawTable, str]:
    """The table in a file as it is, and the SHA-256 of the file."""
    data = bytes_of(name, path)
    return read_raw(name, path, data, options), hashlib.sha256(data).hexdigest()


def bytes_of(name: str, path: Path) -> bytes:
    """All of a file."""
    try:
        with path.open("rb") as file:
            pieces = [_first_bytes(name, path, file)]
            # A pipe does not say how much is to come, and /dev/zero has no end.
            while piece := file.read(_PIECE):
                pieces.append(piece)
                _refuse_size(name, sum(map(len, pieces)))
            return b"".join(pieces)
    except FileNotFoundError:
        raise InputError(f"{path}: there is no such file; check the path") from None
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise InputError(f"{path}: the file cannot be read: {error}") from None


def _first_bytes(name: str, path: Path, file: BinaryIO) -> bytes:
    """The beginning of a file; what cannot be read is refused here, before the rest is."""
    _refuse_size(name, os.fstat(file.fileno()).st_size)
    data = file.read(_LOOKED_AT)
    if path.suffix.lower() not in BINARY_ENDINGS and not data.startswith(BINARY_MARKS):
        # Says so if it is no text; a letter may be cut in two at the end.
        decode(name, data[: data.find(0) + 1])
    return data


def _refuse_size(name: str, size: int) -> None:
    refuse_more_than_memory(
        MEMORY_PER_BYTE * size,
        f"{name}: reading a file of {in_words(size)}",
        "split it by image, or leave columns out of it",
    )
