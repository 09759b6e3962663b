"""How draws lie on disk: arrays of block files in zarr 3 form, and one commit record per chain.

``draws.zarr/chain-K`` holds up to seven arrays. Five have one item per draw (labels, alpha, shared,
n_clusters, cluster_stop), two have one row per cluster of every draw (cluster_labels,
cluster_parameters); the rows of draw ``d`` are ``cluster_stop[d - 1]:cluster_stop[d]``. Items are
grouped in blocks of fixed length, one file per block, with checksums.

A block file is only ever replaced as a whole, by rename, with one that begins with the same
items. So at any moment the files hold at least the items that the commit record counts. The
record is kept in the attributes of the chain's group; copies lie in those of the arrays.
"""

from __future__ import annotations

import contextlib
import json
import os
import uuid
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.errors import RunFolderError

#: To be raised when older code could not read what newer code writes.
FORMAT = 2
STORE_NAME = "draws.zarr"
CHAIN_PREFIX = "chain-"
#: Fields of the record that are tuples, which JSON does not know.
_NAMES = ("parameter_names", "shared_names")
#: The file of every group and array that zarr looks for.
META_NAME = "zarr.json"

_DRAW_BLOCK = 1000
_LABEL_BLOCK_BYTES = 64 << 20
_LABEL_CHUNK_BYTES = 2 << 20
_SCALAR_BLOCK = 4096
_ROW_BLOCK_BYTES = 16 << 20
_CHUNKS_PER_ROW_BLOCK = 8

_Codec = dict[str, Any]
_BYTES: _Codec = {"name": "bytes", "configuration": {"endian": "little"}}
_TRANSPOSE: _Codec = {"name": "transpose", "configuration": {"order": [1, 0]}}
_ZSTD: _Codec = {"name": "zstd", "configuration": {"level": 1, "checksum": False}}
# Byte by byte position: the exponents of random floats repeat, their last digits do not.
_SHUFFLED_ZSTD: _Codec = {
    "name": "blosc",
    "configuration": {
        "cname": "zstd",
        "clevel": 3,
        "shuffle": "shuffle",
        "typesize": 4,
        "blocksize": 0,
    },
}
#: Three times as fast, for files a few per cent larger.
_SHUFFLED_LZ4: _Codec = {
    "name": "blosc",
    "configuration": {**_SHUFFLED_ZSTD["configuration"], "cname": "lz4", "clevel": 1},
}
# The outermost codec, so that damaged bytes never reach a decompressor.
_CHECKSUM: _Codec = {"name": "crc32c"}


@dataclass(frozen=True)
class ArraySpec:
    """One array: items of shape ``item_shape``, ``block`` of them to a file.

    A file is cut into chunks of shape ``chunk`` that are compressed apart, so that one column
    can be had without unpacking the others.
    """

    name: str
    dtype: str
    item_shape: tuple[int, ...]
    block: int
    chunk: tuple[int, ...]
    per_draw: bool = True
    #: Saves time rather than space.
    quick: bool = False

    @property
    def fill(self) -> float:
        """What pads the last block."""
        return np.nan if self.dtype.startswith("float") else -1

    def metadata(self, length: int, attributes: dict[str, Any]) -> dict[str, Any]:
        """The array's ``zarr.json``."""
        wide = [-(-n // c) * c for n, c in zip(self.item_shape, self.chunk[1:], strict=True)]
        shuffled = _SHUFFLED_LZ4 if self.quick else _SHUFFLED_ZSTD
        compressor = shuffled if self.dtype == "float32" else _ZSTD
        codecs = [*[_TRANSPOSE] * len(wide), _BYTES, compressor, _CHECKSUM]
        if self.chunk != (self.block, *wide):
            sharding = {
                "chunk_shape": list(self.chunk),
                "codecs": codecs,
                "index_codecs": [_BYTES, _CHECKSUM],
                "index_location": "end",
            }
            codecs = [{"name": "sharding_indexed", "configuration": sharding}]
        grid = {"chunk_shape": [self.block, *wide]}
        return {
            "zarr_format": 3,
            "node_type": "array",
            "shape": [length, *self.item_shape],
            "data_type": self.dtype,
            "chunk_grid": {"name": "regular", "configuration": grid},
            # A flat folder: no directory to create for each file.
            "chunk_key_encoding": {"name": "default", "configuration": {"separator": "."}},
            "fill_value": -1 if self.fill == -1 else "NaN",
            "codecs": codecs,
            "attributes": attributes,
        }

    def file_name(self, block: int) -> str:
        """Name of a block's file, as zarr expects it."""
        return f"c.{block}" + ".0" * len(self.item_shape)

    def encode(self, items: NDArray[Any]) -> bytes:
        """The content of a block file; ``items`` is a whole block."""
        files: dict[str, Any] = {}
        self._array_of_one_block(files)[...] = items
        content: bytes = files[self.file_name(0)].to_bytes()
        return content

    def decode(self, content: bytes, column: int | None = None) -> NDArray[Any]:
        """The items of a block file, or one column of them; raises if they are damaged."""
        from zarr.core.buffer import default_buffer_prototype

        if not content:
            # zarr would take this for a block that was never written, and return fill values.
            raise ValueError("the file is empty")
        buffer = default_buffer_prototype().buffer.from_bytes(content)
        array = self._array_of_one_block({self.file_name(0): buffer})
        items: NDArray[Any] = array[...] if column is None else array[:, column]
        return items

    def _array_of_one_block(self, files: dict[str, Any]) -> Any:
        """A zarr array of a single block, with its file in a dictionary.

        zarr packs and unpacks; files are handled here, each in one piece, so that a block
        that its writer replaces while it is read is wholly the old or wholly the new one.
        """
        import zarr
        from zarr.storage import MemoryStore, StorePath

        store = StorePath(MemoryStore(files), "")
        # A block of nothing but fill values has to be written too.
        config = {"order": "C", "write_empty_chunks": True}
        return zarr.Array(zarr.AsyncArray(self.metadata(self.block, {}), store, config))


@dataclass(frozen=True)
class Record:
    """What a chain has committed (draws, and cluster rows), and the layout of its arrays."""

    n_markings: int
    parameter_names: tuple[str, ...]
    shared_names: tuple[str, ...]
    draw_block: int
    marking_chunk: int
    scalar_block: int
    row_block: int
    draws: int = 0
    rows: int = 0

    @classmethod
    def plan(cls, n_markings: int, columns: Columns) -> Record:
        """Choose block lengths for a new chain.

        One draw costs unpacking one block of labels, one marking's history one chunk of every
        block, a flush rewriting the last block of each array; a writer holds one block of each.
        """
        draw_block = int(np.clip(_LABEL_BLOCK_BYTES // (4 * n_markings), 1, _DRAW_BLOCK))
        n_chunks = -(-4 * n_markings * draw_block // _LABEL_CHUNK_BYTES)
        longest = _ROW_BLOCK_BYTES // (4 * max(1, len(columns.parameters)))
        row_chunk = max(1, min(max(4096, 32 * n_markings), longest) // _CHUNKS_PER_ROW_BLOCK)
        return cls(
            n_markings=n_markings,
            parameter_names=columns.parameters,
            shared_names=columns.names,
            draw_block=draw_block,
            marking_chunk=-(-n_markings // n_chunks),
            scalar_block=_SCALAR_BLOCK,
            row_block=row_chunk * _CHUNKS_PER_ROW_BLOCK,
        )

    def sensible(self) -> bool:
        """Whether the numbers and names could be of ``plan``, whoever wrote them."""
        lengths = (self.draw_block, self.marking_chunk, self.scalar_block, self.row_block)
        counts = (self.draws, self.rows)
        return (
            all(type(count) is int for count in (self.n_markings, *lengths, *counts))
            and 0 < self.n_markings < 2**31
            and all(0 < length < 2**31 for length in lengths)
            and self.row_block % _CHUNKS_PER_ROW_BLOCK == 0
            and self.draw_block * self.n_markings * 4
            <= max(_LABEL_BLOCK_BYTES, 4 * self.n_markings)
            and min(counts) >= 0
            and all(type(name) is str for name in (*self.parameter_names, *self.shared_names))
        )

    def specs(self) -> dict[str, ArraySpec]:
        """The chain's arrays by name; there is none for what has no columns."""
        label_chunk = (self.draw_block, self.marking_chunk)
        scalars, rows = self.scalar_block, self.row_block
        row_chunk = rows // _CHUNKS_PER_ROW_BLOCK
        specs = [
            ArraySpec("labels", "int32", (self.n_markings,), self.draw_block, label_chunk),
            ArraySpec("alpha", "float64", (), scalars, (scalars,)),
            ArraySpec("n_clusters", "int32", (), scalars, (scalars,)),
            ArraySpec("cluster_stop", "int64", (), scalars, (scalars,)),
            # A single chunk: many draws together, as they have nearly the same clusters.
            ArraySpec("cluster_labels", "int32", (), rows, (rows,), per_draw=False),
        ]
        if s := len(self.shared_names):
            specs.append(ArraySpec("shared", "float64", (s,), scalars, (scalars, s)))
        if q := len(self.parameter_names):
            chunk = (row_chunk, q)
            specs.append(
                ArraySpec("cluster_parameters", "float32", (q,), rows, chunk, per_draw=False)
            )
        return {spec.name: spec for spec in specs}

    def length(self, spec: ArraySpec) -> int:
        """Committed length of an array."""
        return self.draws if spec.per_draw else self.rows

    def attributes(self) -> dict[str, Any]:
        """The record as zarr attributes, with a checksum."""
        fields = {"format": FORMAT, **asdict(self)}
        for name in _NAMES:
            fields[name] = list(fields[name])
        return {"dfcrp_draws": fields, "checksum": _checksum(fields)}


def _checksum(fields: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(fields, sort_keys=True).encode())


def read_record(path: Path) -> Record:
    """The record in the attributes of a ``zarr.json``; RunFolderError if it is not whole."""
    attributes = _read_attributes(path)
    fields = attributes.get("dfcrp_draws")
    if not isinstance(fields, dict) or attributes.get("checksum") != _checksum(fields):
        raise RunFolderError(f"{path}: damaged, the record of what was committed is not whole")
    _check_format(path, fields.pop("format", None))
    try:
        record = Record(**{**fields, **{name: tuple(fields[name]) for name in _NAMES}})
        sensible = record.sensible()
    except (TypeError, KeyError):
        sensible = False
    if not sensible:
        raise RunFolderError(f"{path}: damaged, its record is not one that dfcrp writes")
    return record


def check_store(store: Path) -> None:
    """RunFolderError if a store is not marked as draws of the format that is read here."""
    path = store / META_NAME
    attributes = _read_attributes(path)
    if "dfcrp_draws_format" not in attributes:
        raise RunFolderError(f"{path}: damaged, or not written by dfcrp: it names no format")
    _check_format(path, attributes["dfcrp_draws_format"])


def _read_attributes(path: Path) -> dict[str, Any]:
    try:
        attributes = json.loads(path.read_bytes())["attributes"]
    except FileNotFoundError:
        raise RunFolderError(f"{path}: missing") from None
    except OSError as error:
        raise RunFolderError(f"{path}: not readable ({error.strerror})") from error
    except (ValueError, KeyError, TypeError, RecursionError):
        attributes = None
    if not isinstance(attributes, dict):
        raise RunFolderError(f"{path}: damaged, not the JSON that dfcrp wrote")
    return attributes


def _check_format(path: Path, written: object) -> None:
    if written != FORMAT:
        raise RunFolderError(
            f"{path}: draws of format {written!r}, this version of dfcrp reads format {FORMAT}; "
            "use the version that wrote them (see provenance.json in the run folder)"
        )


def write_format(store: Path) -> None:
    """Mark a store as draws; each chain does, in any order, with the same content."""
    _write_json(store / META_NAME, _group({"dfcrp_draws_format": FORMAT}))


def write_record(folder: Path, record: Record) -> None:
    """Commit: with the first rename the record's draws count."""
    attributes = record.attributes()
    _write_json(folder / META_NAME, _group(attributes))
    sync_folder(folder)
    for name, spec in record.specs().items():
        metadata = spec.metadata(record.length(spec), attributes)
        _write_json(folder / name / META_NAME, metadata, durable=False)


def _group(attributes: dict[str, Any]) -> dict[str, Any]:
    return {"zarr_format": 3, "node_type": "group", "attributes": attributes}


def _write_json(path: Path, value: dict[str, Any], *, durable: bool = True) -> None:
    replace_file(path, json.dumps(value, indent=2, allow_nan=False).encode(), durable=durable)


def replace_file(path: Path, content: bytes, *, durable: bool = True) -> None:
    """Give a file this content, as ``replacing`` does."""
    with replacing(path, durable=durable) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, durable: bool = True) -> Iterator[BinaryIO]:
    """Write a file so that under its name there is, at any moment, all of the old or the new.

    ``durable``: on the disk, not just in the system's memory, before the name is given.
    """
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with temporary.open("wb") as file:
            yield file
            if durable:
                file.flush()
                os.fsync(file.fileno())
        os.replace(temporary, path)
    except OSError:
        with contextlib.suppress(OSError):
            temporary.unlink()
        raise


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
