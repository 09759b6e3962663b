"""Draws on disk: written as a chain runs, safe against a stop at any moment, read in parts.

Each chain has its own group in the run folder's ``draws.zarr`` and one process that writes
it. Draws count once they are flushed; ``draw_files`` says why they cannot be lost then.
"""

from __future__ import annotations

import errno
import re
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Columns, DrawBlock
from dfcrp.errors import DfcrpError, DfcrpWarning, RunFolderError
from dfcrp.runs.chain_files import ChainFiles, open_chains, open_store
from dfcrp.runs.draw_files import (
    CHAIN_PREFIX,
    META_NAME,
    STORE_NAME,
    ArraySpec,
    Record,
    read_record,
    replace_file,
    write_format,
    write_record,
)


class _Column:
    """The end of one array: items fill the last block, full blocks go to disk."""

    def __init__(
        self, folder: Path, spec: ArraySpec, length: int, unfinished: NDArray[Any]
    ) -> None:
        self.spec = spec
        self.length = length
        self._folder = folder
        self._block = np.full((spec.block, *spec.item_shape), spec.fill, dtype=spec.dtype)
        self._block[: len(unfinished)] = unfinished
        self._pending = False

    def append(self, items: NDArray[Any]) -> None:
        """Add items; only whole blocks are written."""
        while len(items):
            used = self.length % self.spec.block
            step = min(self.spec.block - used, len(items))
            self._block[used : used + step] = items[:step]
            self.length += step
            self._pending = True
            items = items[step:]
            if used + step == self.spec.block:
                self.write()
                self._block[:] = self.spec.fill

    def write(self) -> None:
        """Write the last block, over a file that begins with the same items if there is one."""
        if self._pending:
            block = (self.length - 1) // self.spec.block
            replace_file(self._folder / self.spec.file_name(block), self.spec.encode(self._block))
            self._pending = False

    def remove_leftovers(self) -> None:
        """Remove the files that no item is in."""
        n_blocks = -(-self.length // self.spec.block)
        for path in self._folder.iterdir():
            block = re.fullmatch(r"c\.(\d+)(\.0)?", path.name)
            if path.suffix == ".tmp" or (block and int(block[1]) >= n_blocks):
                path.unlink()


class DrawWriter:
    """Appends the draws of one chain; holds one block of each array in memory.

    An exception while it writes may leave its arrays at different lengths. It refuses further
    work then: ``DrawWriter.open`` continues after the last flush.
    """

    def __init__(self, folder: Path, record: Record) -> None:
        self._folder = folder
        self._record = record
        self._intact = True
        with self._writing():
            self._load()

    @classmethod
    def create(
        cls, run_folder: Path | str, chain: int, n_markings: int, columns: Columns
    ) -> DrawWriter:
        """Start an empty chain; a chain that is there already is an error."""
        folder = _chain_folder(run_folder, chain)
        if (folder / META_NAME).exists():
            raise RunFolderError(
                f"{folder}: there are draws already; resume that run or choose another folder"
            )
        record = Record.plan(n_markings, columns)
        with write_errors(folder, 0):
            for name in record.specs():
                (folder / name).mkdir(parents=True, exist_ok=True)
            write_format(folder.parent)
            write_record(folder, record)
        return cls(folder, record)

    @classmethod
    def exists(cls, run_folder: Path | str, chain: int) -> bool:
        """Whether a chain has begun."""
        return (_chain_folder(run_folder, chain) / META_NAME).exists()

    @classmethod
    def open(cls, run_folder: Path | str, chain: int) -> DrawWriter:
        """Continue after the committed draws; what was written later is dropped."""
        open_store(run_folder, None)
        folder = _chain_folder(run_folder, chain)
        writer = cls(folder, read_record(folder / META_NAME))
        with writer._writing():
            # The last commit may have been stopped before it had told all arrays.
            write_record(folder, writer._record)
        return writer

    @property
    def n_draws(self) -> int:
        """Draws appended so far, flushed or not."""
        return self._columns["labels"].length

    @property
    def n_committed(self) -> int:
        """Draws that readers see and that outlive this process."""
        return self._record.draws

    def append(self, block: DrawBlock) -> None:
        """Add draws."""
        labels, alpha, offsets, cluster_labels, parameters, shared = block
        record = self._record
        b, rows = len(alpha), len(cluster_labels)
        if (
            labels.shape != (b, record.n_markings)
            or parameters.shape != (rows, len(record.parameter_names))
            or offsets.shape != (b + 1,)
            or (offsets[0], offsets[-1]) != (0, rows)
            or np.any(np.diff(offsets) < 0)
            or shared.shape != (b, len(record.shared_names))
        ):
            raise ValueError("the arrays of this block do not fit together")
        own = np.arange(record.n_markings, dtype=np.int32)
        items = {
            "labels": labels,
            "alpha": alpha,
            "shared": shared,
            "n_clusters": np.count_nonzero(labels == own, axis=1),
            "cluster_stop": self._columns["cluster_labels"].length + offsets[1:],
            "cluster_labels": cluster_labels,
            "cluster_parameters": parameters,
        }
        with self._writing():
            for name, column in self._columns.items():
                column.append(items[name])

    def flush(self) -> None:
        """Commit everything appended so far.

        Rewrites the last block of each array, about 0.1 s for 10,000 markings: for every few
        seconds of sampling, not for every draw.
        """
        with self._writing():
            for column in self._columns.values():
                column.write()
            if self.n_draws > self.n_committed:
                self._commit(self.n_draws, self._columns["cluster_labels"].length)

    def truncate(self, n_draws: int) -> None:
        """Drop the draws from ``n_draws`` on, flushed or not."""
        if not 0 <= n_draws <= self.n_draws:
            raise RunFolderError(
                f"{self._folder}: {n_draws} draws were expected, there are {self.n_draws}"
            )
        self.flush()
        last = np.arange(n_draws)[-1:]
        rows = int(ChainFiles(self._folder, self._record).take("cluster_stop", last).sum())
        with self._writing():
            self._commit(n_draws, rows)
            self._load()

    def _commit(self, draws: int, rows: int) -> None:
        record = replace(self._record, draws=draws, rows=rows)
        write_record(self._folder, record)
        self._record = record

    def _load(self) -> None:
        """Make memory and files agree with the record."""
        for path in self._folder.glob("*.tmp"):
            path.unlink()
        files = ChainFiles(self._folder, self._record)
        self._columns: dict[str, _Column] = {}
        for name, spec in files.specs.items():
            length = self._record.length(spec)
            unfinished = np.arange(length - length % spec.block, length)
            items = files.take(name, unfinished)
            column = _Column(self._folder / name, spec, length, items)
            column.remove_leftovers()
            self._columns[name] = column

    @contextmanager
    def _writing(self) -> Iterator[None]:
        if not self._intact:
            raise DfcrpError(f"{self._folder}: writing failed before; open the draws again")
        self._intact = False
        with write_errors(self._folder, self.n_committed):
            yield
        self._intact = True


class StoredDraws:
    """Draws of a run folder, behind the ``Draws`` protocol; they stay on disk.

    The first ``burn_in`` stored draws of each chain are dropped and every ``thin``-th of the
    rest is kept, as many as the shortest chain has; with ``stop`` none from there on. Draws
    committed later are not seen.
    Damage that is met raises RunFolderError. With ``salvage`` every file is tried first, and
    the draws that miss something are left out, as are chains with none left, with a warning;
    with ``salvage="labels"`` a draw may miss its clusters' parameters.
    """

    def __init__(
        self,
        run_folder: Path | str,
        burn_in: int = 0,
        thin: int = 1,
        *,
        stop: int | None = None,
        salvage: bool | Literal["labels"] = False,
    ) -> None:
        if burn_in < 0 or thin < 1:
            raise ValueError("burn_in must be at least 0 and thin at least 1")
        losses: list[str] | None = [] if salvage else None
        chains = open_chains(run_folder, losses)
        kept = {files: np.arange(burn_in, files.record.draws, thin) for files in chains}
        if stop is not None:
            kept = {files: indices[indices < stop] for files, indices in kept.items()}
        if losses is not None:
            kept = _without_damage(kept, losses, whole=salvage != "labels")
        self.n_draws = min((len(indices) for indices in kept.values()), default=0)
        if not self.n_draws:
            stored = ", ".join(f"{files.record.draws} of chain {files.chain}" for files in chains)
            message = f"{run_folder}: after a burn-in of {burn_in} no draws are left (of {stored})"
            raise RunFolderError("\n".join([message, *(losses or [])]))
        if losses:
            warnings.warn("\n".join(losses), DfcrpWarning, stacklevel=2)
        self._chains = list(kept)
        self._kept = [indices[: self.n_draws] for indices in kept.values()]
        #: The numbers that the chains have in the run folder.
        self.chain_numbers = tuple(files.chain for files in kept)
        self.n_chains = len(kept)
        self.n_markings = self._chains[0].record.n_markings
        record = self._chains[0].record
        self.columns = Columns.plain(record.parameter_names, record.shared_names)

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain, shape (stop - start, n_markings)."""
        return self._chains[chain].take("labels", self._kept[chain][start:stop])

    def label_array(self) -> NDArray[np.int32]:
        """All labels in memory, shape (n_chains, n_draws, n_markings): for small runs."""
        return np.stack([self.labels(chain, 0, self.n_draws) for chain in range(self.n_chains)])

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        return self._of_all_chains("alpha")

    def shared(self) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, len(columns.shared))."""
        if not self.columns.shared:
            return np.empty((self.n_chains, self.n_draws, 0))
        return self._of_all_chains("shared")

    def n_clusters(self) -> NDArray[np.int32]:
        """Number of clusters, shape (n_chains, n_draws)."""
        return self._of_all_chains("n_clusters")

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        if not 0 <= marking < self.n_markings:
            raise IndexError(f"marking {marking} of {self.n_markings}")
        return self._of_all_chains("labels", marking)

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        files, draws = self._chains[chain], self._kept[chain][start:stop]
        last = files.take("cluster_stop", draws)
        first = np.where(draws > 0, files.take("cluster_stop", np.maximum(draws - 1, 0)), 0)
        offsets = np.concatenate([[0], np.cumsum(last - first)])
        rows = np.arange(offsets[-1]) + np.repeat(first - offsets[:-1], last - first)
        if self.columns.parameters:
            parameters = files.take("cluster_parameters", rows)
        else:
            parameters = np.empty((len(rows), 0), dtype=np.float32)
        return ClusterBlock(offsets, files.take("cluster_labels", rows), parameters)

    def _of_all_chains(self, name: str, column: int | None = None) -> NDArray[Any]:
        pairs = zip(self._chains, self._kept, strict=True)
        return np.stack([files.take(name, indices, column) for files, indices in pairs])


def committed_draws(run_folder: Path | str) -> dict[int, int]:
    """How many draws each chain of a run has committed."""
    return {files.chain: files.record.draws for files in open_chains(run_folder, None)}


@contextmanager
def write_errors(folder: Path, committed: int) -> Iterator[None]:
    """Say in words why a chain's files could not be written, and what is safe."""
    try:
        yield
    except OSError as error:
        full = error.errno in (errno.ENOSPC, errno.EDQUOT)
        reason = "the disk is full" if full else error.strerror or str(error)
        message = f"{folder}: cannot be written: {reason}."
        if committed:
            message += (
                f" Of this chain {committed:,} draws were saved before and are safe; once the "
                "cause is removed, `dfcrp resume` goes on."
            )
        raise DfcrpError(message) from error


def _chain_folder(run_folder: Path | str, chain: int) -> Path:
    return Path(run_folder) / STORE_NAME / f"{CHAIN_PREFIX}{chain}"


def _without_damage(
    kept: dict[ChainFiles, NDArray[np.int64]], losses: list[str], whole: bool
) -> dict[ChainFiles, NDArray[np.int64]]:
    """Keep the draws that can be read, ``whole`` or without clusters, of chains that have any."""
    readable = {}
    for files, indices in kept.items():
        damaged = files.damage()
        losses += [files.describe(found) for found in damaged]
        if not whole:
            damaged = [found for found in damaged if not found.spec.name.startswith("cluster_")]
        left = indices[~files.lost_draws(damaged)[indices]]
        if len(left):
            readable[files] = left
        else:
            losses.append(f"{files.folder}: left out, it has no draws left to use")
    return readable
