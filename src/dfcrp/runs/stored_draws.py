"""The draws of one part of a run, read lazily from its blocks."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterator
from operator import methodcaller
from pathlib import Path
from typing import TypeVar

import numpy as np
from numpy.typing import DTypeLike, NDArray

from dfcrp.draws import Chosen, ClusterBlock, every
from dfcrp.errors import RunFolderError
from dfcrp.memory import refuse_more_than_memory
from dfcrp.runs.blocks import IndexEntry, KeptBlock, Span, offsets_of
from dfcrp.runs.shards import DamagedFile, ShardGone, drawn_again, place_of
from dfcrp.values import Array, Json

#: How often a reader looks again for a shard that was replaced.
_ATTEMPTS = 20
_T = TypeVar("_T")
ReadBlock = Callable[[KeptBlock], Array]
_LABELS, _ALPHA = methodcaller("labels"), methodcaller("read", "alpha")
_N_CLUSTERS = methodcaller("read", "n_clusters")
_CLUSTER_LABELS = methodcaller("read", "cluster_labels")


class StoredDraws:
    """Draws of one part of a run, behind the ``Draws`` protocol; those of a folder stay on disk.

    Made by ``DrawStore.draws`` and ``MemoryStore.draws``. Damage that is met raises RunFolderError.
    """

    def __init__(
        self,
        chains: dict[int, list[Span]],
        look_again: Callable[[], dict[int, list[Span]]],
        place: str,
        burn_in: int,
        stop: int | None,
    ) -> None:
        if burn_in < 0:
            raise ValueError("burn_in must be at least 0")
        if not chains:
            raise RunFolderError(f"{place}: there are no draws to read")
        self._look_again = look_again
        #: All that clusters share, as long as somebody holds it.
        self._all_shared: weakref.ref[NDArray[np.float64]] | None = None
        self._place = place
        self._spans = chains
        first = _same_kind(place, chains)
        shortest = min(spans[-1].stop for spans in chains.values())
        self._first = burn_in
        self.n_draws = min(shortest, shortest if stop is None else stop) - burn_in
        if self.n_draws < 1:
            stored = ", ".join(f"{s[-1].stop} of chain {c}" for c, s in chains.items())
            raise RunFolderError(
                f"{place}: after a burn-in of {burn_in} no draws are left (of {stored})"
            )
        #: The numbers that the chains have in the run.
        self.chain_numbers = tuple(chains)
        self.n_chains = len(chains)
        self.n_markings = first.n
        self.columns = first.columns

    def __getstate__(self) -> Json:
        gone = ("_spans", "_all_shared")
        return {name: value for name, value in vars(self).items() if name not in gone}

    def __setstate__(self, state: Json) -> None:
        # A pickle of draws on disk names their folder, and holds none of them.
        vars(self).update(state)
        self._all_shared = None
        self._spans = self._look_again()

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain, shape (stop - start, n_markings)."""
        found = np.empty((min(stop, self.n_draws) - start, self.n_markings), np.int32)
        self._take(chain, _LABELS, start, found)
        return found

    def label_array(self) -> NDArray[np.int32]:
        """All labels in memory, shape (n_chains, n_draws, n_markings): for small runs."""
        return np.stack([self.labels(chain, 0, self.n_draws) for chain in range(self.n_chains)])

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        return self._of_all_chains(_ALPHA, np.float64)

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, columns.width), or some of it.

        Whoever asks for all of it while another has it gets the same array.
        """
        found = None if chosen is not None or self._all_shared is None else self._all_shared()
        if found is not None:
            return found
        height = len(np.arange(self.columns.width)[every(chosen)])
        refuse_more_than_memory(
            8.0 * self.n_chains * self.n_draws * height,
            f"{self._place}: what the clusters of each draw share, {height:,} numbers of "
            f"{self.n_chains * self.n_draws:,} draws,",
            "make the tables of the run on a larger machine (its draws are safe), or fit with "
            "a larger --thin",
        )
        read = methodcaller("shared", chosen)
        found = self._of_all_chains(read, np.float64, height)
        if chosen is None:
            self._all_shared = weakref.ref(found)
        return found

    def n_clusters(self) -> NDArray[np.int32]:
        """Number of clusters, shape (n_chains, n_draws)."""
        return self._of_all_chains(_N_CLUSTERS, np.int32)

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        if not 0 <= marking < self.n_markings:
            raise IndexError(f"marking {marking} of {self.n_markings}")
        return self._of_all_chains(methodcaller("history", marking), np.int32)

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        return self._surely(lambda: self._clusters(chain, start, min(stop, self.n_draws)))

    def _clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        counts = [np.zeros(0, np.int32)]
        labels = [np.zeros(0, np.int32)]
        parameters = [np.zeros((0, len(self.columns.parameters)), np.float32)]
        for block, _, at in self._overlaps(chain, start, stop):
            per_draw = self._read(block, _N_CLUSTERS)
            ends = offsets_of(per_draw)
            rows = slice(int(ends[at.start]), int(ends[at.stop]))
            counts.append(per_draw[at])
            labels.append(self._read(block, _CLUSTER_LABELS)[rows])
            parameters.append(self._read(block, methodcaller("parameters", rows)))
        offsets = offsets_of(np.concatenate(counts))
        return ClusterBlock(offsets, np.concatenate(labels), np.concatenate(parameters))

    def _of_all_chains(self, read: ReadBlock, dtype: DTypeLike, *more: int) -> Array:
        """What ``read`` gives of each draw of a block, for all draws of all chains."""
        found = np.empty((self.n_chains, self.n_draws, *more), dtype)
        for chain in range(self.n_chains):
            self._take(chain, read, 0, found[chain])
        return found

    def _take(self, chain: int, read: ReadBlock, start: int, found: Array) -> None:
        """Give ``found`` the same for draws of a chain from ``start`` on."""

        def fill() -> None:
            for block, to, at in self._overlaps(chain, start, start + len(found)):
                found[to] = self._read(block, read)[at]

        self._surely(fill)

    def _overlaps(
        self, chain: int, start: int, stop: int
    ) -> Iterator[tuple[KeptBlock, slice, slice]]:
        """The blocks that draws lie in, where they go, and where they are in the block."""
        start, stop = start + self._first, stop + self._first
        for block, first, last in self._spans[self.chain_numbers[chain]]:
            low, high = max(start, first), min(stop, last)
            if low < high:
                yield block, slice(low - start, high - start), slice(low - first, high - first)

    def _read(self, block: KeptBlock, read: ReadBlock) -> Array:
        try:
            return read(block)
        except DamagedFile as error:
            raise RunFolderError(
                f"{error}; {drawn_again(place_of(block, Path(self._place)))}"
            ) from error

    def _surely(self, read: Callable[[], _T]) -> _T:
        """Read, and look again if meanwhile a shard has taken the place of another."""
        for _ in range(_ATTEMPTS):
            try:
                return read()
            except ShardGone:
                found = self._look_again()
                for number, spans in self._spans.items():
                    if number not in found or found[number][-1].stop < spans[-1].stop:
                        raise RunFolderError(
                            f"{self._place}: draws of chain {number} were removed"
                        ) from None
                self._spans = found
        raise RunFolderError(f"{self._place}: is being changed; read it again later")


def _same_kind(place: str, chains: dict[int, list[Span]]) -> IndexEntry:
    """An entry that speaks for all; RunFolderError if they are of different things."""
    entries = [span.block.entry for spans in chains.values() for span in spans]
    first = entries[0]
    if any((one.n, one.columns) != (first.n, first.columns) for one in entries):
        raise RunFolderError(f"{place}: the chains are of different markings or parameters")
    return first
