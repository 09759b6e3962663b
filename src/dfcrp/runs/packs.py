"""Draws of many small images: whole images together in packs that are written once.

A folder of its own for each of ten thousand images would be a million files. So images that are
done wait in memory until there are enough of them for a *pack*, ``draws.zarr/pack-K``: a zarr
group with the same seven kinds of numbers as a chain of a single image, those of all chains of
all its images one after the other, and the state of each chain after its last draw. The group's
attributes say where each image begins. A pack is written beside its place and renamed into it,
so it is there as a whole or not at all. An image that is gone on with later has a second part in
a later pack.
"""

from __future__ import annotations

import errno
import itertools
import json
import os
import shutil
import threading
import time
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, DrawBlock, join_blocks
from dfcrp.errors import DfcrpError, RunFolderError
from dfcrp.runs.draw_files import (
    META_NAME,
    STORE_NAME,
    ArraySpec,
    replace_file,
    sync_folder,
    write_format,
)
from dfcrp.runs.image_draws import ChainState, ImageDraws

PREFIX = "pack-"
#: Unfinished packs are called so; what a killed process left of one is removed.
_PART = ".part"
#: To be raised when older code could not read what newer code writes.
_FORMAT = 1
#: A pack is written when it is this large, before compression.
PACK_BYTES = 64 << 20
#: Items that are compressed together.
_CHUNK = 1 << 16
_KINDS = {
    "labels": "int32",
    "alpha": "float64",
    "shared": "float64",
    "n_clusters": "int32",
    "cluster_labels": "int32",
    "cluster_parameters": "float32",
    "state": "int32",
}


@dataclass(frozen=True)
class _Entry:
    """One image in a pack; lists have an item per chain."""

    image: int
    #: Names of the clusters' parameters and of what they share.
    columns: list[list[str]]
    n_markings: int
    #: Draws in earlier packs, and in this one.
    before: list[int]
    draws: list[int]
    rows: list[int]
    state: list[int]
    generators: list[list[dict[str, Any]]]
    scans: list[int]
    seconds: float

    def lengths(self) -> dict[str, list[int]]:
        """Items of each array, by chain."""
        own = {"labels": [self.n_markings * draws for draws in self.draws], "state": self.state}
        for name in ("alpha", "shared", "n_clusters"):
            own[name] = self.draws
        for name in ("cluster_labels", "cluster_parameters"):
            own[name] = self.rows
        return own


class PackWriter:
    """Gathers images and writes them in packs; used from many threads."""

    def __init__(self, run_folder: Path, seconds_per_pack: float) -> None:
        self._store = run_folder / STORE_NAME
        self._seconds = seconds_per_pack
        self._lock, self._writing = threading.Lock(), threading.Lock()
        self._waiting: list[ImageDraws] = []
        self._last = time.monotonic()
        with _write_errors(self._store):
            self._store.mkdir(exist_ok=True)
            write_format(self._store)
            for path in self._store.glob(f"{PREFIX}*{_PART}"):
                shutil.rmtree(path)
        self._numbers = itertools.count(max(_numbers(self._store), default=-1) + 1)

    def add(self, image: ImageDraws) -> None:
        """Take an image; writes a pack if there is enough for one or it is time."""
        with self._lock:
            self._waiting.append(image)
            waited = time.monotonic() - self._last > self._seconds
            if not waited and sum(found.nbytes for found in self._waiting) < PACK_BYTES:
                return
        self.flush()

    def flush(self) -> None:
        """Write all that waits."""
        with self._writing:
            with self._lock:
                images, self._waiting = self._waiting, []
                self._last = time.monotonic()
            if images:
                with _write_errors(self._store):
                    _write(self._store / _name(next(self._numbers)), images)


class PackReader:
    """The images in the packs of a run; used from many threads.

    The arrays of the last packs stay in memory: images are asked for in about the order in which
    they lie there.
    """

    def __init__(self, run_folder: Path, keep: int = 2) -> None:
        self._store = run_folder / STORE_NAME
        self._keep = keep
        self._lock = threading.Lock()
        self._cache: dict[int, dict[str, NDArray[Any]]] = {}
        self._parts: dict[int, list[tuple[int, int]]] = {}
        self._entries: dict[int, list[_Entry]] = {}
        for number in sorted(_numbers(self._store)):
            self._entries[number] = _read_index(self._store / _name(number))
            for position, entry in enumerate(self._entries[number]):
                self._note(entry, number, position)

    def _note(self, entry: _Entry, number: int, position: int) -> None:
        """Remember where a part lies, if what comes before it is there: packs may be deleted."""
        parts = self._parts.get(entry.image, [])
        earlier = [self._entries[n][p].draws for n, p in parts] or [[0] * len(entry.draws)]
        if [sum(draws) for draws in zip(*earlier, strict=True)] == entry.before:
            self._parts[entry.image] = [*parts, (number, position)]

    def __contains__(self, image: int) -> bool:
        return image in self._parts

    def read(self, image: int) -> ImageDraws:
        """All draws of an image, and where its chains stand after the last."""
        parts = [self._read_part(number, position) for number, position in self._parts[image]]
        chains = [join_blocks(blocks) for blocks in zip(*(p.chains for p in parts), strict=True)]
        return parts[-1]._replace(chains=chains, before=[0] * len(chains))

    def scans(self, image: int) -> list[int]:
        """Scans behind each chain of an image."""
        number, position = self._parts[image][-1]
        return self._entries[number][position].scans

    def _read_part(self, number: int, position: int) -> ImageDraws:
        entries = self._entries[number]
        with self._lock:
            arrays = self._cache.pop(number, None) or self._decode(number)
            self._cache[number] = arrays  # now the last one used
            while len(self._cache) > self._keep:
                del self._cache[next(iter(self._cache))]
        begin = dict.fromkeys(_KINDS, 0)
        for entry in entries[:position]:
            for name, lengths in entry.lengths().items():
                begin[name] += sum(lengths)
        return _cut(entries[position], arrays, begin)

    def _decode(self, number: int) -> dict[str, NDArray[Any]]:
        folder, entries = self._store / _name(number), self._entries[number]
        arrays: dict[str, NDArray[Any]] = {}
        columns = _columns(entries[0])
        for name in _KINDS:
            length = sum(sum(entry.lengths()[name]) for entry in entries)
            spec = _spec(name, length, columns)
            if 0 in spec.item_shape:  # there is no file of nothing
                arrays[name] = np.empty((length, 0), spec.dtype)
                continue
            path = folder / name / spec.file_name(0)
            try:
                arrays[name] = spec.decode(path.read_bytes())[:length]
            except (MemoryError, ImportError):
                raise
            except Exception as error:  # zarr and the codecs have many ways to say it
                raise RunFolderError(
                    f"{path}: missing or damaged ({error}); delete {folder} and `dfcrp resume` "
                    "the run: its images will be drawn again"
                ) from error
        return arrays


def _write(folder: Path, images: list[ImageDraws]) -> None:
    part = folder.with_name(folder.name + _PART)
    try:
        part.mkdir()
        _write_arrays(part, images)
        os.replace(part, folder)
        sync_folder(folder.parent)
    except OSError:
        shutil.rmtree(part, ignore_errors=True)
        raise


def _write_arrays(part: Path, images: list[ImageDraws]) -> None:
    for name in _KINDS:
        items = np.concatenate([_items(name, image) for image in images])
        spec = _spec(name, len(items), images[0].columns)
        if 0 in spec.item_shape:
            continue
        (part / name).mkdir()
        block = np.full((spec.block, *spec.item_shape), spec.fill, spec.dtype)
        block[: len(items)] = items
        replace_file(part / name / spec.file_name(0), spec.encode(block))
        _write_json(part / name, spec.metadata(len(items), {}))
    index = {"format": _FORMAT, "images": [asdict(_entry(image)) for image in images]}
    attributes = {"dfcrp_pack": index, "checksum": _checksum(index)}
    _write_json(part, {"zarr_format": 3, "node_type": "group", "attributes": attributes})


def _entry(image: ImageDraws) -> _Entry:
    return _Entry(
        image=image.image,
        columns=[list(image.columns.parameters), list(image.columns.names)],
        n_markings=image.chains[0].labels.shape[1],
        before=image.before,
        draws=[len(chain.alpha) for chain in image.chains],
        rows=[len(chain.cluster_labels) for chain in image.chains],
        state=[len(state.content) for state in image.states],
        generators=[state.generators for state in image.states],
        scans=[state.scans for state in image.states],
        seconds=image.seconds,
    )


def _items(name: str, image: ImageDraws) -> NDArray[Any]:
    """One array's items of an image, chain by chain."""
    if name == "state":
        return np.concatenate([state.content for state in image.states])
    parts: list[NDArray[Any]] = []
    for chain in image.chains:
        if name == "labels":
            # One marking after the other: from draw to draw its label is mostly the same.
            parts.append(chain.labels.T.ravel())
        elif name == "n_clusters":
            parts.append(np.diff(chain.offsets))
        else:
            parts.append(getattr(chain, "parameters" if name == "cluster_parameters" else name))
    return np.concatenate(parts)


def _cut(entry: _Entry, arrays: dict[str, NDArray[Any]], begin: dict[str, int]) -> ImageDraws:
    """One image out of the arrays of a pack; ``begin`` says where it begins in each."""
    chains, states, columns = [], [], _columns(entry)
    for chain in range(len(entry.draws)):
        found = {}
        for name, lengths in entry.lengths().items():
            first = begin[name] + sum(lengths[:chain])
            found[name] = arrays[name][first : first + lengths[chain]]
        labels = found["labels"].reshape(entry.n_markings, entry.draws[chain])
        chains.append(
            DrawBlock(
                labels=np.ascontiguousarray(labels.T),
                alpha=found["alpha"],
                offsets=np.concatenate([[0], np.cumsum(found["n_clusters"], dtype=np.int64)]),
                cluster_labels=found["cluster_labels"],
                parameters=found["cluster_parameters"],
                shared=found["shared"],
            )
        )
        states.append(ChainState(found["state"], entry.generators[chain], entry.scans[chain]))
    return ImageDraws(entry.image, columns, chains, states, entry.seconds, entry.before)


def _columns(entry: _Entry) -> Columns:
    parameters, shared = map(tuple, entry.columns)
    return Columns.plain(parameters, shared)


def _spec(name: str, length: int, columns: Columns) -> ArraySpec:
    width = {"shared": columns.names, "cluster_parameters": columns.parameters}.get(name)
    item_shape = () if width is None else (len(width),)
    block = max(1, -(-length // _CHUNK)) * _CHUNK
    return ArraySpec(name, _KINDS[name], item_shape, block, (_CHUNK, *item_shape), quick=True)


def _read_index(folder: Path) -> list[_Entry]:
    path = folder / META_NAME
    try:
        attributes = json.loads(path.read_bytes())["attributes"]
        index = attributes["dfcrp_pack"]
        if attributes["checksum"] != _checksum(index) or index["format"] != _FORMAT:
            raise ValueError("not the index that dfcrp wrote, or of another version")
        return [_Entry(**entry) for entry in index["images"]]
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise RunFolderError(
            f"{path}: missing or damaged ({error}); delete {folder} and `dfcrp resume` the run: "
            "its images will be drawn again"
        ) from None


def _write_json(folder: Path, value: dict[str, Any]) -> None:
    replace_file(folder / META_NAME, json.dumps(value).encode())


def _checksum(value: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(value, sort_keys=True).encode())


def _name(number: int) -> str:
    return f"{PREFIX}{number:06d}"


def _numbers(store: Path) -> list[int]:
    """Numbers of the packs that are whole."""
    names = [path.name.removeprefix(PREFIX) for path in store.glob(f"{PREFIX}*")]
    return [int(name) for name in names if name.isdecimal()]


@contextmanager
def _write_errors(store: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        raise DfcrpError(
            f"{store}: cannot be written: {reason}. The packs of images written before are safe; "
            "once the cause is removed, `dfcrp resume` goes on."
        ) from error
