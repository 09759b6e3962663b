"""Reading one chain's files: only what was committed, and what is left of it after damage."""

from __future__ import annotations

import contextlib
import re
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import RunFolderError
from dfcrp.runs.draw_files import (
    CHAIN_PREFIX,
    META_NAME,
    STORE_NAME,
    ArraySpec,
    Record,
    check_store,
    read_record,
)


class DamagedBlock(Exception):
    """A block file from which the committed items cannot be had."""

    def __init__(self, spec: ArraySpec, block: int, path: Path, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.spec = spec
        self.block = block


class ChainFiles:
    """The committed items of one chain, for reading.

    ``cache`` keeps the last block of each array, and may be shared by the chains of a run:
    summaries go through the draws in steps that are shorter than a block.
    """

    def __init__(
        self,
        folder: Path,
        record: Record,
        cache: dict[str, tuple[Path, NDArray[Any]]] | None = None,
    ) -> None:
        self.folder = folder
        self.record = record
        self.specs = record.specs()
        self.chain = int(folder.name.removeprefix(CHAIN_PREFIX))
        self._cache = {} if cache is None else cache

    def take(
        self, name: str, indices: NDArray[np.int64], column: int | None = None
    ) -> NDArray[Any]:
        """Items at ascending indices, or one column of them."""
        spec = self.specs[name]
        shape = spec.item_shape if column is None else ()
        items = np.empty((len(indices), *shape), dtype=spec.dtype)
        for block in np.unique(indices // spec.block).tolist():
            first = block * spec.block
            low, high = np.searchsorted(indices, [first, first + spec.block])
            try:
                items[low:high] = self._block(spec, block, column)[indices[low:high] - first]
            except DamagedBlock as found:
                left = _ranges(~self.lost_draws(self.damage()))
                raise RunFolderError(
                    f"{self.describe(found)}. Of this chain {left} can be read whole: use "
                    'salvage=True, or salvage="labels" to do without cluster parameters'
                ) from found
        return items

    def _block(self, spec: ArraySpec, block: int, column: int | None = None) -> NDArray[Any]:
        """A block, padded at the end of the array, or one column of it."""
        path = self.folder / spec.name / spec.file_name(block)
        cached_path, cached = self._cache.get(spec.name, (None, None))
        if cached is not None and cached_path == path:
            return cached if column is None else cached[:, column]
        try:
            items = spec.decode(path.read_bytes(), column)
        except FileNotFoundError:
            raise DamagedBlock(spec, block, path, "missing") from None
        except OSError as error:
            raise DamagedBlock(spec, block, path, f"not readable ({error.strerror})") from error
        except (MemoryError, ImportError):
            raise
        except Exception as error:  # zarr and the codecs have many ways to say it
            raise DamagedBlock(spec, block, path, "damaged") from error
        used = min(self.record.length(spec) - block * spec.block, spec.block)
        if spec.fill == -1 and np.any(items[used - 1] == -1):
            raise DamagedBlock(spec, block, path, "older than the commit record")
        if column is None:
            self._cache[spec.name] = (path, items)
        return items

    def damage(self) -> list[DamagedBlock]:
        """Try every block; those that fail."""
        damaged = []
        for spec in self.specs.values():
            for block in range(-(-self.record.length(spec) // spec.block)):
                try:
                    self._block(spec, block)
                except DamagedBlock as found:
                    damaged.append(found)
        return damaged

    def lost_draws(self, damaged: list[DamagedBlock]) -> NDArray[np.bool_]:
        """Which draws miss something when these blocks cannot be read."""
        lost = np.zeros(self.record.draws, dtype=bool)
        for found in damaged:
            first = found.block * found.spec.block
            last = first + found.spec.block
            if found.spec.per_draw:
                lost[first:last] = True
            else:
                start, stop = self._row_ranges()
                lost |= (start < last) & (stop > first)
            if found.spec.name == "cluster_stop":
                lost[last : last + 1] = True  # its rows begin where the last one's end
        return lost

    def describe(self, found: DamagedBlock) -> str:
        """In words, what a damaged block costs."""
        lost = _ranges(self.lost_draws([found]))
        return f"{found}; chain {self.chain} lacks {found.spec.name} of {lost}"

    def _row_ranges(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """First row and end of each draw's rows; -1 where that cannot be read."""
        spec = self.specs["cluster_stop"]
        stop = np.full(self.record.draws, -1, dtype=np.int64)
        for first in range(0, self.record.draws, spec.block):
            part = stop[first : first + spec.block]
            with contextlib.suppress(DamagedBlock):
                part[:] = self._block(spec, first // spec.block)[: len(part)]
        return np.concatenate([[0], stop[:-1]]), stop


def open_store(run_folder: Path | str, losses: list[str] | None) -> Path:
    """The folder ``draws.zarr``, of a format that can be read.

    Here and below, damage is added to ``losses`` if that is a list, and raised otherwise.
    """
    folder = Path(run_folder)
    if not folder.is_dir():
        raise RunFolderError(f"{folder}: there is no such run folder")
    store = folder / STORE_NAME
    if not store.is_dir():
        raise RunFolderError(
            f"{store}: missing; {folder.name} is no run folder, or its run stopped before it began"
        )
    try:
        check_store(store)
    except RunFolderError as error:
        if losses is None:
            raise
        losses.append(str(error))
    return store


def open_chains(run_folder: Path | str, losses: list[str] | None) -> list[ChainFiles]:
    """The chains that have begun, in order of their numbers."""
    store = open_store(run_folder, losses)
    cache: dict[str, tuple[Path, NDArray[Any]]] = {}
    found = [path for path in store.iterdir() if re.fullmatch(CHAIN_PREFIX + r"\d+", path.name)]
    chains = [
        ChainFiles(folder, record, cache)
        for folder in found
        if (record := _chain_record(folder, losses)) is not None
    ]
    if not chains:
        raise RunFolderError("\n".join([f"{store}: there are no draws to read", *(losses or [])]))
    records = [files.record for files in chains]
    kinds = {(one.n_markings, one.parameter_names, one.shared_names) for one in records}
    if len(kinds) > 1:
        raise RunFolderError(f"{store}: the chains are of different markings or parameters")
    return sorted(chains, key=lambda files: files.chain)


def _chain_record(folder: Path, losses: list[str] | None) -> Record | None:
    """A chain's commit record, if need be from a copy; None if the chain has not begun."""
    copies = [path for path in sorted(folder.glob(f"*/{META_NAME}")) if path.is_file()]
    if not (folder / META_NAME).exists() and not copies:
        return None
    try:
        return read_record(folder / META_NAME)
    except RunFolderError as error:
        if losses is None:
            raise
        losses.append(str(error))
    for path in copies:
        try:
            return read_record(path)
        except RunFolderError as error:
            losses.append(str(error))
    return None


def _ranges(mask: NDArray[np.bool_]) -> str:
    """In words, which draws a mask selects."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)
    parts = [f"{first} to {last - 1}" for first, last in edges.tolist()]
    return "draws " + ", ".join(parts) if parts else "no draws"
