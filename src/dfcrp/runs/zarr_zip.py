"""Arrays in one file: a Zarr group (version 3) in a zip file, which ``zarr.open_group`` opens too.

The format is written here, not by the library zarr: a group or an array is a short JSON text, and
an array besides that its chunks, each packed by itself. zarr takes ten times as long for an array,
and there are forty in a checkpoint. Arrays are cut along their first axis only.

A file may have been made by anybody. So whoever reads says which arrays there are, and of what
form; how they are unpacked is decided here. Nothing that a file says of itself is believed, but
where its members lie, and that is checked against its size.
"""

from __future__ import annotations

import json
import math
import os
import zipfile
import zlib
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, BinaryIO, NamedTuple

import numpy as np

from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from numcodecs import Blosc

#: What is packed together, before packing, if a row is not longer. Readers count on it.
CHUNK_BYTES = 2 << 20
#: The text of every group and array.
META = "zarr.json"
#: Larger ones, or a larger list of what is in a file, are not read: they never were written.
LARGEST_META, _LARGEST_LIST = 64 << 20, 16 << 20
#: A zip file ends with the length of its list of members, and a large one with another before.
_END, _LARGE_END = 22, 98
_LOCAL_HEADER = 30


class DamagedError(Exception):
    """Something cannot be had from a file."""


class Form(NamedTuple):
    """What an array is, but for its length along the first axis."""

    dtype: str
    #: Lengths along the other axes.
    row: tuple[int, ...]
    #: Names of all axes.
    dims: tuple[str, ...]

    @property
    def row_bytes(self) -> int:
        """Bytes of a row."""
        return int(np.dtype(self.dtype).itemsize * math.prod(self.row))

    def chunk_rows(self, rows: int) -> int:
        """Rows that are packed together, of so many; about as many in each chunk."""
        if not rows * self.row_bytes:
            return 1
        chunks = min(rows, -(-rows * self.row_bytes // CHUNK_BYTES))
        return -(-rows // chunks)

    def as_json(self, rows: int) -> Json:
        """The array as Zarr has it."""
        chunk = [self.chunk_rows(rows), *(max(1, length) for length in self.row)]
        kind = np.dtype(self.dtype)
        pack = _codec(self.dtype).get_config()
        name = pack.pop("id")
        if name == "blosc":
            pack |= {"typesize": kind.itemsize, "shuffle": "shuffle"}
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [rows, *self.row],
            "data_type": kind.name,
            "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": chunk}},
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "/"}},
            "fill_value": 0.0 if kind.kind == "f" else 0,
            "codecs": [
                {"name": "bytes", "configuration": {"endian": "little"}},
                {"name": name, "configuration": pack},
            ],
            "attributes": {},
            "dimension_names": list(self.dims),
        }


@cache
def _codec(dtype: str) -> Blosc:
    """How arrays are packed."""
    from numcodecs.blosc import SHUFFLE, Blosc
    from numcodecs.zstd import Zstd

    if np.dtype(dtype) == np.float32:
        # Byte by byte position: the exponents of random floats repeat, their last digits do not.
        return Blosc(cname="zstd", clevel=3, shuffle=SHUFFLE)
    return Zstd(level=1)


class ZarrWriter:
    """Writes a file from its beginning to its end; a context."""

    def __init__(self, file: BinaryIO) -> None:
        self._zip = zipfile.ZipFile(file, "w")

    def __enter__(self) -> ZarrWriter:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def group(self, path: str, attributes: Json) -> None:
        """Add a group; its path ends with a slash, or is empty."""
        self._put(path + META, group_text(attributes))

    def array(self, path: str, form: Form, rows: int, pieces: Iterable[Array]) -> None:
        """Add an array of so many rows, which are those of the pieces."""
        self._put(f"{path}/{META}", json.dumps(form.as_json(rows), allow_nan=False).encode())
        if not rows * form.row_bytes:
            return
        size = form.chunk_rows(rows)
        for number, chunk in enumerate(_regrouped(pieces, size)):
            whole = np.zeros((size, *form.row), form.dtype) if len(chunk) < size else chunk
            if whole is not chunk:
                whole[: len(chunk)] = chunk
            whole = np.ascontiguousarray(whole, np.dtype(form.dtype).newbyteorder("<"))
            self._put(_key(path, form, number), _codec(form.dtype).encode(whole))

    def _put(self, name: str, content: bytes) -> None:
        # Of no date, so that the same arrays make the same bytes.
        self._zip.writestr(zipfile.ZipInfo(name), content)


class Member(NamedTuple):
    """Where a member lies in a zip file: first its header, then as many bytes."""

    start: int
    size: int
    checksum: int


class Members(dict[str, Member]):
    """The members of a zip file."""

    @property
    def nbytes(self) -> int:
        """Bytes that these take in memory, about."""
        return 400 * len(self)


def members_of(file: BinaryIO) -> Members:
    """The members of a zip file; DamagedError if none of ours can have them.

    Ours are not compressed, so of others the checksums will not fit.
    """
    try:
        size = os.fstat(file.fileno()).st_size
        file.seek(max(0, size - _LARGE_END))
        end = file.read(_LARGE_END)
        listed = int.from_bytes(end[-10:-6], "little")
        if end[-42:-38] == b"PK\x06\x07":
            listed = int.from_bytes(end[40:48], "little")
        if end[-_END:-18] != b"PK\x05\x06" or listed > _LARGEST_LIST:
            raise zipfile.BadZipFile("it has no end, or too large a list")
        with zipfile.ZipFile(file) as found:
            infos = found.infolist()
        if any(one.header_offset < 0 for one in infos):
            raise zipfile.BadZipFile("a member before its beginning")
        return Members(
            {one.filename: Member(one.header_offset, one.file_size, one.CRC) for one in infos}
        )
    except (OSError, MemoryError):
        raise
    except Exception as error:  # zipfile has many ways to say it
        raise DamagedError(f"damaged, not the zip file that dfcrp wrote ({error})") from None


class ZarrReader:
    """Reads a file that is open; its members may be known from before."""

    def __init__(self, file: BinaryIO, members: Members | None = None) -> None:
        self._file = file
        self.members = members_of(file) if members is None else members

    def attributes(self, path: str = "") -> Json:
        """Those of a group."""
        name = path + META
        try:
            found = json.loads(self._content(name, LARGEST_META))["attributes"]
        except (ValueError, LookupError, TypeError, RecursionError):
            found = None
        if not isinstance(found, dict):
            raise DamagedError(f"{name}: damaged, not the JSON that dfcrp wrote")
        return found

    def array(self, path: str, form: Form, rows: int, start: int, stop: int) -> Array:
        """Rows ``start:stop`` of an array of so many."""
        if start >= stop or not form.row_bytes:
            return np.empty((max(0, stop - start), *form.row), form.dtype)
        size = form.chunk_rows(rows)
        numbers = range(start // size, -(-stop // size))
        for number in numbers:  # before memory is taken for all of them
            self._member(_key(path, form, number))
        found = np.empty((stop - start, *form.row), form.dtype)
        for number in numbers:
            first = number * size
            low, high = max(start, first), min(stop, first + size)
            chunk = self._chunk(_key(path, form, number), form, size)
            found[low - start : high - start] = chunk[low - first : high - first]
        return found

    def _chunk(self, name: str, form: Form, size: int) -> Array:
        content = self._content(name, size * form.row_bytes + size * form.row_bytes // 8 + 4096)
        # Of zeros: what says that it is shorter than it is leaves the rest as it was.
        chunk = np.zeros((size, *form.row), np.dtype(form.dtype).newbyteorder("<"))
        try:
            _codec(form.dtype).decode(content, out=chunk)
        except (ValueError, RuntimeError, TypeError, OverflowError):
            raise DamagedError(f"{name}: damaged") from None
        return chunk

    def _member(self, name: str) -> Member:
        found = self.members.get(name)
        if found is None:
            raise DamagedError(f"{name}: missing")
        return found

    def _content(self, name: str, most: int) -> bytes:
        """A member's bytes, of which there are not more."""
        member = self._member(name)
        if member.size > most:
            raise DamagedError(f"{name}: damaged, too large for what dfcrp writes")
        self._file.seek(member.start)
        header = self._file.read(_LOCAL_HEADER)
        names = int.from_bytes(header[26:28], "little") + int.from_bytes(header[28:30], "little")
        self._file.seek(names, os.SEEK_CUR)
        content = self._file.read(member.size)
        if len(content) != member.size or zlib.crc32(content) != member.checksum:
            raise DamagedError(f"{name}: damaged")
        return content


def group_text(attributes: Json) -> bytes:
    """The text that makes a folder a group with these attributes."""
    content = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    return json.dumps(content, allow_nan=False).encode()


def _key(path: str, form: Form, number: int) -> str:
    return f"{path}/c/{number}" + "/0" * len(form.row)


def _regrouped(pieces: Iterable[Array], size: int) -> Iterator[Array]:
    """The same rows, ``size`` at a time; the last may be fewer."""
    waiting: list[Array] = []
    missing = size
    for whole in pieces:
        piece = whole
        while len(piece):
            waiting.append(piece[:missing])
            missing -= len(waiting[-1])
            piece = piece[len(waiting[-1]) :]
            if not missing:
                yield np.concatenate(waiting) if len(waiting) > 1 else waiting[0]
                waiting, missing = [], size
    if waiting:
        yield np.concatenate(waiting)
