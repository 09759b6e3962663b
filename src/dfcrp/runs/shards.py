"""Shards: folders of draws that are written once, as a whole, and never changed.

A *block* is a number of consecutive draws of one chain of one part of a run, and if the chain was
saved after the last of them, its state there. A *shard* is a zarr group, ``draws.zarr/shard-...``,
with one block or several, one after the other. Its arrays have one axis:

=================== ======= ===================================================================
array               dtype   a block has there
=================== ======= ===================================================================
labels              int32   n × draws, marking by marking: from draw to draw a marking's label
                            is mostly the same, so it packs well, and a marking's is one slice
alpha               float64 draws
n_clusters          int32   draws: rows that each draw has in the two arrays of clusters
shared              float64 ``columns.width`` × draws, one quantity after the other
cluster_labels      int32   rows, draw by draw, sorted by label
cluster_parameters  float32 parameters × rows, one parameter after the other
state               uint8   a checkpoint, see ``dfcrp.runs.chain_writer``; or nothing
=================== ======= ===================================================================

An array without items has no files. The attributes of the group hold the *index*: what each block
is, and size and checksum of every file of data; a copy lies in the attributes of the first array.
Arrays are cut into chunks of 2 MB that are compressed apart, with checksums.

Reading trusts the index after it was checked, and nothing else that the files say of themselves:
how arrays are unpacked is decided here.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import re
import threading
import uuid
import zlib
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.errors import RunFolderError
from dfcrp.files import Folder, LinkError, TooLargeError, opened, put_on_disk
from dfcrp.runs.blocks import ARRAYS, IndexEntry, KeptBlock, MemoryBlock
from dfcrp.runs.lock import Claim

#: To be raised when older code could not read what newer code writes.
FORMAT = 3
PREFIX = "shard-"
#: The file of every group and array that zarr looks for.
META = "zarr.json"
#: What is compressed together, before compression, and how many of these go to a file.
CHUNK_BYTES = 2 << 20
CHUNKS_PER_FILE = 32
#: More than that is not read, whatever a file says: it never was written, and is not to be.
_LARGEST_CHUNK, _MOST_CHUNKS = 4 << 20, 64
LARGEST_META = 64 << 20

_ORDER = tuple(ARRAYS)
#: A file of data in a shard.
_KEY = re.compile(rf"({'|'.join(ARRAYS)})/c\.\d{{1,9}}")


class ShardGone(Exception):
    """A shard was taken away: another has taken its place."""


class DamagedFile(Exception):
    """A file from which what the index names cannot be had."""

    def __init__(self, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")


class Unpacked:
    """The arrays that were unpacked last, up to a number of bytes; used from many threads.

    Summaries go through the draws in steps that are shorter than a block, and through images in
    about the order in which they lie in a shard.
    """

    def __init__(self, most_bytes: int) -> None:
        self.most_bytes = most_bytes
        self._lock = threading.Lock()
        self._arrays: OrderedDict[tuple[str, str], NDArray[Any]] = OrderedDict()

    def get(self, key: tuple[str, str]) -> NDArray[Any] | None:
        """An array, if it is still there."""
        with self._lock:
            if key in self._arrays:
                self._arrays.move_to_end(key)
            return self._arrays.get(key)

    def put(self, key: tuple[str, str], array: NDArray[Any]) -> None:
        """Keep an array instead of those that were used least lately."""
        with self._lock:
            self._arrays[key] = array
            while len(self._arrays) > 1 and self._bytes() > self.most_bytes:
                self._arrays.popitem(last=False)

    def _bytes(self) -> int:
        return sum(array.nbytes for array in self._arrays.values())


class Cut(NamedTuple):
    """How the arrays of a shard are cut: bytes to a chunk, chunks to a file."""

    chunk_bytes: int
    chunks_per_file: int

    def sensible(self) -> bool:
        """Whether it could be ours, whoever wrote it."""
        return (
            all(type(number) is int for number in self)
            and 8 <= self.chunk_bytes <= _LARGEST_CHUNK
            and 1 <= self.chunks_per_file <= _MOST_CHUNKS
        )

    @property
    def largest_file(self) -> int:
        """Bytes that a file may have: what cannot be compressed grows a little."""
        return self.chunks_per_file * (self.chunk_bytes + self.chunk_bytes // 8 + 4096)


class Index(NamedTuple):
    """What a shard says that it holds."""

    entries: tuple[IndexEntry, ...]
    cut: Cut
    #: Size and checksum of each file of data, by its path in the shard.
    files: dict[str, tuple[int, int]]


class Shard:
    """A shard, for reading; used from many threads."""

    def __init__(self, folder: Path, index: Index, unpacked: Unpacked) -> None:
        self.folder = folder
        self.entries = index.entries
        self._index = index
        self._unpacked = unpacked
        #: Arrays that cannot be unpacked as a whole.
        self._damaged: set[str] = set()

    @property
    def blocks(self) -> list[StoredBlock]:
        """The blocks, in order."""
        return [StoredBlock(entry, self, at) for at, entry in enumerate(self.entries)]

    @property
    def is_shared(self) -> bool:
        """Whether there are blocks of several chains."""
        return len(self.entries) > 1

    def remove(self, claim: Claim) -> None:
        """Take the shard away, at once for whoever reads the store."""
        name, store = self.folder.name, self.folder.parent
        with (
            contextlib.suppress(OSError),  # it only costs space
            claim.desk() as desk,
            opened(store.parent, store.name) as place,
        ):
            place.move(name, desk, name)
            desk.remove(name)

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Where each block begins in each array, and where the last one ends."""
        lengths = np.array([entry.lengths() for entry in self.entries], dtype=np.int64)
        return np.vstack([np.zeros((1, len(_ORDER)), np.int64), np.cumsum(lengths, axis=0)])

    def read(self, at: int, name: str) -> NDArray[Any]:
        """All that a block has in an array."""
        start, stop, length = self._range(at, name)
        key = (self.folder.name, name)
        array = self._unpacked.get(key)
        size = length * np.dtype(ARRAYS[name]).itemsize
        if array is None and (size > self._unpacked.most_bytes or name in self._damaged):
            return self._unpack(name, length, start, stop)
        if array is None:
            try:
                array = self._unpack(name, length, 0, length)
            except DamagedFile:
                if not self.is_shared:
                    raise
                # Other blocks may be sound.
                self._damaged.add(name)
                return self._unpack(name, length, start, stop)
            self._unpacked.put(key, array)
        return array[start:stop]

    def read_slice(self, at: int, name: str, first: int, last: int) -> NDArray[Any]:
        """Items ``first:last`` of what a block has in an array, without unpacking the others."""
        start, stop, length = self._range(at, name)
        array = self._unpacked.get((self.folder.name, name))
        if array is not None:
            return array[start + first : start + last]
        if length * np.dtype(ARRAYS[name]).itemsize <= self._index.cut.chunk_bytes:
            return self.read(at, name)[first:last]
        return self._unpack(name, length, start + first, min(start + last, stop))

    def _range(self, at: int, name: str) -> tuple[int, int, int]:
        """First and last item of a block in an array, and the array's length."""
        column = self._ends[:, _ORDER.index(name)]
        return int(column[at]), int(column[at + 1]), int(column[-1])

    def _unpack(self, name: str, length: int, start: int, stop: int) -> NDArray[Any]:
        if start == stop:
            return np.empty(0, ARRAYS[name])
        try:
            array = _array(_files_of(self), name, length, self._index.cut)
            found: NDArray[Any] = array[start:stop]
        except (MemoryError, ImportError, ShardGone, DamagedFile):
            raise
        except Exception as error:  # zarr and the codecs have many ways to say it
            path = self.folder / name
            files = [key for key in self._index.files if key.startswith(f"{name}/")]
            raise DamagedFile(self.folder / files[0] if files else path, "damaged") from error
        return found

    def fetch(self, key: str, span: Callable[[int], tuple[int, int]] | None) -> bytes:
        """Bytes of a file; ``span`` gives first and last from the file's size."""
        path = self.folder / key
        expected = self._index.files.get(key)
        store, (array, file_name) = self.folder.parent, key.split("/")
        try:
            with (
                opened(store.parent, store.name, self.folder.name, array) as place,
                place.reading(file_name) as file,
            ):
                size = os.fstat(file.fileno()).st_size
                if expected is None or size != expected[0]:
                    raise DamagedFile(path, "damaged")
                start, stop = (0, size) if span is None else span(size)
                file.seek(start)
                content = file.read(max(0, min(stop, size) - start))
        except FileNotFoundError:
            if not self.folder.exists():
                raise ShardGone(self.folder) from None
            raise DamagedFile(path, "missing") from None
        except LinkError as error:
            raise DamagedFile(Path(error.filename), str(error.strerror)) from None
        except OSError as error:
            raise DamagedFile(path, f"not readable ({error.strerror})") from error
        whole = span is None
        if whole and zlib.crc32(content) != expected[1]:
            raise DamagedFile(path, "damaged")
        return content


@dataclass(frozen=True, eq=False)
class StoredBlock:
    """A block of a shard; it stays on disk."""

    entry: IndexEntry
    shard: Shard
    at: int

    def read(self, name: str) -> NDArray[Any]:
        """An array; labels, shared and cluster_parameters as a matrix with draws or rows last."""
        entry, found = self.entry, self.shard.read(self.at, name)
        if name in {"labels", "shared"}:
            return found.reshape(-1, entry.draws) if found.size else _nothing(name, entry)
        if name == "cluster_parameters":
            return found.reshape(len(entry.columns.parameters), entry.rows)
        return found

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels."""
        draws = self.entry.draws
        return self.shard.read_slice(self.at, "labels", marking * draws, (marking + 1) * draws)


def place_of(block: KeptBlock, root: Path) -> Path:
    """The shard that a block is in, or ``root`` if it is in memory."""
    return block.shard.folder if isinstance(block, StoredBlock) else root


def drawn_again(folder: Path) -> str:
    """In words, what to do about a shard that is damaged."""
    return f"delete {folder} and `dfcrp resume` the run: what it held is drawn again"


def _nothing(name: str, entry: IndexEntry) -> NDArray[Any]:
    height = entry.n if name == "labels" else entry.columns.width
    return np.empty((height, entry.draws), ARRAYS[name])


def write_shard(
    store: Path, number: int, blocks: Sequence[MemoryBlock], unpacked: Unpacked, claim: Claim
) -> Shard:
    """Write blocks as a shard; when this returns they are on the disk.

    ``number`` is for the reader of file names; no two writers give a shard the same name. It is
    made in the folder of the claim: if another has taken over, it does not get into the store.
    """
    name = f"{PREFIX}{number:06d}-{uuid.uuid4().hex[:8]}"
    with claim.desk() as desk, opened(store.parent, store.name) as place:
        desk.make(name)
        try:
            with desk.below(name) as folder:
                index = _write_arrays(folder, blocks)
            desk.move(name, place, name)
        except BaseException:
            with contextlib.suppress(OSError):
                desk.remove(name)
            raise
        place.sync()
    return Shard(store / name, index, unpacked)


def _write_arrays(folder: Folder, blocks: Sequence[MemoryBlock]) -> Index:
    from zarr.storage import MemoryStore

    cut = Cut(CHUNK_BYTES, CHUNKS_PER_FILE)
    files: dict[str, tuple[int, int]] = {}
    arrays = {}
    for name in _ORDER:
        pieces = [piece for block in blocks for piece in block.pieces(name)]
        length = sum(len(piece) for piece in pieces)
        if not length:
            continue
        folder.make(name)
        packed: dict[str, Any] = {}
        array = _array(MemoryStore(packed), name, length, cut)
        per_file = (array.shards or array.chunks)[0]
        start = 0
        for items in _regrouped(pieces, per_file):
            array[start : start + len(items)] = items
            start += len(items)
            for key in [key for key in packed if not key.endswith(META)]:
                content = packed.pop(key).to_bytes()
                with folder.below(name) as place, place.writing(key.split("/")[1]) as file:
                    file.write(content)
                    put_on_disk(file)
                files[key] = len(content), zlib.crc32(content)
        arrays[name] = array, packed
    index = Index(tuple(block.entry for block in blocks), cut, files)
    attributes = _attributes(index)
    for at, (name, (array, packed)) in enumerate(arrays.items()):
        if at == 0:
            array.update_attributes(attributes)
        with folder.below(name) as place, place.writing(META) as file:
            file.write(packed[f"{name}/{META}"].to_bytes())
    write_group(folder, attributes)
    return index


def _regrouped(pieces: list[NDArray[Any]], size: int) -> Iterator[NDArray[Any]]:
    """The same items, ``size`` at a time; the last may be fewer."""
    waiting: list[NDArray[Any]] = []
    missing = size
    for whole in pieces:
        piece = whole
        while len(piece):
            waiting.append(piece[:missing])
            missing -= len(waiting[-1])
            piece = piece[len(waiting[-1]) :]
            if not missing:
                yield np.concatenate(waiting)
                waiting, missing = [], size
    if waiting:
        yield np.concatenate(waiting)


def _array(store: Any, name: str, length: int, cut: Cut) -> Any:
    """An array of a shard, empty in a store to be written, or with the files of a shard."""
    import zarr
    from zarr.codecs import BloscCodec, Crc32cCodec, ZstdCodec

    codec: Any = ZstdCodec(level=1)
    if name == "cluster_parameters":
        # Byte by byte position: the exponents of random floats repeat, their last digits do not.
        codec = BloscCodec(cname="zstd", clevel=3, shuffle="shuffle", typesize=4)
    elif name == "state":
        codec = BloscCodec(cname="lz4", clevel=1, shuffle="shuffle", typesize=4)
    dtype = np.dtype(ARRAYS[name])
    chunk = min(length, cut.chunk_bytes // dtype.itemsize)
    chunks_per_file = min(-(-length // chunk), cut.chunks_per_file)
    return zarr.create_array(
        store,
        name=name,
        shape=(length,),
        dtype=dtype,
        chunks=(chunk,),
        shards=(chunk * chunks_per_file,) if chunks_per_file > 1 else None,
        filters=None,
        # The checksum is outermost, so that damaged bytes never reach a decompressor.
        compressors=[codec, Crc32cCodec()],
        fill_value=0,
        # A flat folder: no directory to create for each file.
        chunk_key_encoding={"name": "default", "separator": "."},
        # A chunk of nothing but fill values is written too, so that a missing file is damage.
        config={"write_empty_chunks": True},
    )


def _files_of(shard: Shard) -> Any:
    """A store of zarr's with the data of a shard; what is said about arrays is not read."""
    store = _data_store()()
    store.shard = shard
    return store


@cache
def _data_store() -> Any:
    """The class of ``_files_of``; zarr takes a second to import, so it waits until it is used."""
    from zarr.abc.store import OffsetByteRequest, RangeByteRequest, SuffixByteRequest
    from zarr.core.buffer import default_buffer_prototype
    from zarr.storage import MemoryStore

    def span(asked: Any) -> Callable[[int], tuple[int, int]] | None:
        if isinstance(asked, RangeByteRequest):
            return lambda size: (asked.start, asked.end)
        if isinstance(asked, SuffixByteRequest):
            return lambda size: (max(0, size - asked.suffix), size)
        if isinstance(asked, OffsetByteRequest):
            return lambda size: (asked.offset, size)
        return None

    class DataStore(MemoryStore):
        """Metadata as this program makes it in memory, data from the files of a shard.

        All of zarr's ways to read lead to these two. What they do not give would be read as fill
        values, without an error.
        """

        shard: Shard

        async def get(self, key: str, prototype: Any = None, byte_range: Any = None) -> Any:
            """The content of a file, or the part that is asked for."""
            prototype = prototype or default_buffer_prototype()
            if "/c." not in key:
                return await super().get(key, prototype, byte_range)
            content = await asyncio.to_thread(self.shard.fetch, key, span(byte_range))
            return prototype.buffer.from_bytes(content)

        def get_sync(self, key: str, *, prototype: Any = None, byte_range: Any = None) -> Any:
            """The same for versions of zarr that read without an event loop."""
            if "/c." not in key:
                return super().get_sync(key, prototype=prototype, byte_range=byte_range)
            prototype = prototype or default_buffer_prototype()
            return prototype.buffer.from_bytes(self.shard.fetch(key, span(byte_range)))

    return DataStore


def write_group(folder: Folder, attributes: dict[str, Any]) -> None:
    """Make a folder a zarr group with these attributes."""
    content = {"zarr_format": 3, "node_type": "group", "attributes": attributes}
    with folder.replacing(META) as file:
        file.write(json.dumps(content, allow_nan=False).encode())


def read_attributes(run_folder: Path, *below: str) -> dict[str, Any]:
    """The attributes in the ``zarr.json`` of a folder; RunFolderError if they cannot be had."""
    path = run_folder.joinpath(*below, META)
    try:
        with opened(run_folder, *below) as place:
            attributes = json.loads(place.read(META, LARGEST_META))["attributes"]
    except FileNotFoundError:
        raise RunFolderError(f"{path}: missing") from None
    except LinkError as error:
        raise RunFolderError(f"{error.filename}: {error.strerror}") from None
    except TooLargeError:
        raise RunFolderError(f"{path}: damaged, too large for what dfcrp writes") from None
    except OSError as error:
        raise RunFolderError(f"{path}: not readable ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        attributes = None
    if not isinstance(attributes, dict):
        raise RunFolderError(f"{path}: damaged, not the JSON that dfcrp wrote")
    return attributes


def check_format(path: Path, written: object) -> None:
    """RunFolderError if draws were written in a form that is not read here."""
    if written != FORMAT:
        raise RunFolderError(
            f"{path}: draws of format {written!r}, this version of dfcrp reads format {FORMAT}; "
            "use the version that wrote them (see provenance.json in the run folder)"
        )


def read_index(run_folder: Path, *below: str) -> Index:
    """The index in the ``zarr.json`` of a folder; RunFolderError if it is not whole."""
    path = run_folder.joinpath(*below, META)
    attributes = read_attributes(run_folder, *below)
    fields = attributes.get("dfcrp_shard")
    if not isinstance(fields, dict) or attributes.get("checksum") != _checksum(fields):
        raise RunFolderError(f"{path}: damaged, its index is not whole")
    check_format(path, fields.get("format"))
    try:
        index = _index_of(fields)
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError):
        raise RunFolderError(f"{path}: damaged, its index is not one that dfcrp writes") from None
    return index


def _attributes(index: Index) -> dict[str, Any]:
    """An index as zarr attributes, with a checksum."""
    kinds: dict[str, int] = {}
    columns = [
        kinds.setdefault(json.dumps(entry.columns.as_json()), len(kinds)) for entry in index.entries
    ]
    names = IndexEntry._fields[:-1]
    values = zip(*(entry[:-1] for entry in index.entries), strict=True)
    fields = {
        "format": FORMAT,
        "blocks": dict(zip(names, map(list, values), strict=True)),
        "columns": columns,
        "kinds_of_columns": [json.loads(text) for text in kinds],
        "cut": list(index.cut),
        "files": {key: list(sizes) for key, sizes in index.files.items()},
    }
    return {"dfcrp_shard": fields, "checksum": _checksum(fields)}


def _index_of(fields: dict[str, Any]) -> Index:
    kinds = [Columns.from_json(kind) for kind in fields["kinds_of_columns"]]
    blocks, cut = dict(fields["blocks"]), Cut(*fields["cut"])
    values = zip(*(blocks.pop(name) for name in IndexEntry._fields[:-1]), strict=True)
    entries = tuple(
        IndexEntry._make((*found, kinds[kind]))
        for found, kind in zip(values, fields["columns"], strict=True)
    )
    files = {key: (size, checksum) for key, (size, checksum) in fields["files"].items()}
    if (
        blocks
        or not entries
        or not cut.sensible()
        or not all(entry.sensible() for entry in entries)
        or not all(_KEY.fullmatch(key) for key in files)
        or not all(
            type(size) is int and 0 <= size <= cut.largest_file for size, _ in files.values()
        )
    ):
        raise ValueError("not what dfcrp writes")
    return Index(entries, cut, files)


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())
