"""The draws of one part of a run, read lazily from its blocks, and what is left after damage."""

from __future__ import annotations

import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Chosen, ClusterBlock
from dfcrp.errors import DfcrpWarning, RunFolderError
from dfcrp.memory import refuse_more_than_memory
from dfcrp.runs.blocks import ARRAYS, IndexEntry, Span, offsets_of
from dfcrp.runs.shards import DamagedFile, ShardGone, drawn_again, place_of

#: What can be missing where only labels are wanted.
OF_CLUSTERS = ("n_clusters", "cluster_labels", "cluster_parameters")
#: How often a reader looks again for a shard that was replaced.
_ATTEMPTS = 20
_T = TypeVar("_T")


class StoredDraws:
    """Draws of one part of a run, behind the ``Draws`` protocol; those of a folder stay on disk.

    Made by ``DrawStore.draws`` and ``MemoryStore.draws``. Damage that is met raises
    RunFolderError. Where the store was opened to salvage, every file is tried first, and the draws
    that miss something are left out, as are chains with none left, with a warning.
    """

    def __init__(
        self,
        chains: dict[int, list[Span]],
        look_again: Callable[[], dict[int, list[Span]]],
        place: str,
        wanted: slice,
        *,
        losses: list[str] | None = None,
        whole: bool = True,
    ) -> None:
        """``losses``, if it is a list, says what is lost already, and asks for the rest."""
        if wanted.start < 0 or wanted.step < 1:
            raise ValueError("burn_in must be at least 0 and thin at least 1")
        if not chains:
            raise RunFolderError(
                "\n".join([f"{place}: there are no draws to read", *(losses or [])])
            )
        self._look_again = look_again
        #: All that clusters share, as long as somebody holds it.
        self._all_shared: weakref.ref[NDArray[np.float64]] | None = None
        self._place = place
        self._spans = chains
        first = _same_kind(place, chains)
        kept = {
            chain: np.arange(*wanted.indices(spans[-1].stop)) for chain, spans in chains.items()
        }
        if losses is not None:
            kept = self._without_damage(kept, losses, whole)
        self.n_draws = min((len(indices) for indices in kept.values()), default=0)
        if not self.n_draws:
            stored = ", ".join(f"{s[-1].stop} of chain {c}" for c, s in chains.items())
            message = f"{place}: after a burn-in of {wanted.start} no draws are left (of {stored})"
            raise RunFolderError("\n".join([message, *(losses or [])]))
        if losses:
            warnings.warn("\n".join(losses), DfcrpWarning, stacklevel=3)
        self._kept = [indices[: self.n_draws] for indices in kept.values()]
        #: The numbers that the chains have in the run.
        self.chain_numbers = tuple(kept)
        self.n_chains = len(kept)
        self.n_markings = first.n
        self.columns = first.columns

    def __getstate__(self) -> dict[str, Any]:
        gone = ("_spans", "_all_shared")
        return {name: value for name, value in vars(self).items() if name not in gone}

    def __setstate__(self, state: dict[str, Any]) -> None:
        # A pickle of draws on disk names their folder, and holds none of them.
        vars(self).update(state)
        self._all_shared = None
        self._spans = self._look_again()

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain, shape (stop - start, n_markings)."""
        return self._take(chain, "labels", self._kept[chain][start:stop])

    def label_array(self) -> NDArray[np.int32]:
        """All labels in memory, shape (n_chains, n_draws, n_markings): for small runs."""
        return np.stack([self.labels(chain, 0, self.n_draws) for chain in range(self.n_chains)])

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        return self._of_all_chains("alpha")

    def shared(self, chosen: Chosen = None) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, columns.width), or some of it.

        Whoever asks for all of it while another has it gets the same array.
        """
        if chosen is not None:
            return self._of_all_chains("shared", chosen=chosen)
        found = None if self._all_shared is None else self._all_shared()
        if found is None:
            found = self._of_all_chains("shared")
            self._all_shared = weakref.ref(found)
        return found

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
        return self._surely(lambda: self._clusters(chain, self._kept[chain][start:stop]))

    def _clusters(self, chain: int, draws: NDArray[np.int64]) -> ClusterBlock:
        counts = [np.zeros(0, np.int32)]
        labels = [np.zeros(0, np.int32)]
        parameters = [np.zeros((len(self.columns.parameters), 0), np.float32)]
        for span, _, at in self._overlaps(chain, draws):
            per_draw = self._read(chain, span, "n_clusters")
            rows = _rows(per_draw, at)
            counts.append(per_draw[at])
            labels.append(self._read(chain, span, "cluster_labels")[rows])
            parameters.append(self._read(chain, span, "cluster_parameters")[:, rows])
        offsets = offsets_of(np.concatenate(counts))
        found = np.ascontiguousarray(np.concatenate(parameters, axis=1).T)
        return ClusterBlock(offsets, np.concatenate(labels), found)

    def _of_all_chains(
        self, name: str, marking: int | None = None, chosen: Chosen = None
    ) -> NDArray[Any]:
        shape = (self.n_chains, self.n_draws)
        height = len(np.arange(self.columns.width)[_every(chosen)])
        if name == "shared":
            refuse_more_than_memory(
                8.0 * self.n_chains * self.n_draws * height,
                f"{self._place}: what the clusters of each draw share, {height:,} numbers of "
                f"{self.n_chains * self.n_draws:,} draws,",
                "make the tables of the run on a larger machine (its draws are safe), or fit with "
                "a larger --thin",
            )
        found = np.empty((*shape, height) if name == "shared" else shape, ARRAYS[name])
        for chain, kept in enumerate(self._kept):
            self._surely(
                lambda chain=chain, kept=kept: self._fill(  # type: ignore[misc]
                    found[chain], chain, name, kept, marking=marking, chosen=chosen
                )
            )
        return found

    def _take(self, chain: int, name: str, draws: NDArray[np.int64]) -> NDArray[Any]:
        """One array at ascending draws."""
        shape = (len(draws), self.n_markings) if name == "labels" else (len(draws),)
        found = np.empty(shape, ARRAYS[name])
        self._surely(lambda: self._fill(found, chain, name, draws))
        return found

    def _fill(
        self,
        found: NDArray[Any],
        chain: int,
        name: str,
        draws: NDArray[np.int64],
        *,
        marking: int | None = None,
        chosen: Chosen = None,
    ) -> None:
        """Give an array what a chain has at ascending draws; of labels perhaps one marking's."""
        for span, to, at in self._overlaps(chain, draws):
            values = self._read(chain, span, name, marking)
            if name == "shared":
                values = values[_every(chosen)]
            found[to] = values[..., at].T

    def _overlaps(
        self, chain: int, draws: NDArray[np.int64]
    ) -> Iterator[tuple[Span, slice, slice | NDArray[np.int64]]]:
        """The spans that draws lie in, where they go, and where they are in the span."""
        for span in self._spans[self.chain_numbers[chain]]:
            low, high = np.searchsorted(draws, [span.start, span.stop]).tolist()
            if low < high:
                local = draws[low:high] - span.start
                dense = local[-1] - local[0] == len(local) - 1
                at = slice(int(local[0]), int(local[-1]) + 1) if dense else local
                yield span, slice(low, high), at

    def _read(self, chain: int, span: Span, name: str, marking: int | None = None) -> NDArray[Any]:
        try:
            if marking is not None:
                return span.block.history(marking)
            return span.block.read(name)
        except DamagedFile as error:
            number = self.chain_numbers[chain]
            left = _ranges(~self._lost(number, self._damage(number)))
            folder = place_of(span.block, Path(self._place))
            raise RunFolderError(
                f"{_lacking(number, _Damage(span, name, error))}. Of this chain {left} can be "
                'read whole: use salvage=True, or salvage="labels" to do without cluster '
                f"parameters. Or {drawn_again(folder)}"
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

    # Damage

    def _damage(self, chain: int) -> list[_Damage]:
        """Try every array of every block of a chain; those that fail."""
        found = []
        for span in self._spans[chain]:
            for name in ARRAYS:
                try:
                    if name != "state":
                        span.block.read(name)
                except DamagedFile as error:
                    found.append(_Damage(span, name, error))
        return found

    def _lost(self, chain: int, damaged: list[_Damage]) -> NDArray[np.bool_]:
        """Which draws of a chain miss something."""
        lost = np.zeros(self._spans[chain][-1].stop, dtype=bool)
        for found in damaged:
            lost[found.span.start : found.span.stop] = True
        return lost

    def _without_damage(
        self, kept: dict[int, NDArray[np.int64]], losses: list[str], whole: bool
    ) -> dict[int, NDArray[np.int64]]:
        """Keep the draws that can be read, ``whole`` or without clusters, of chains with any."""
        readable = {}
        for chain, indices in kept.items():
            damaged = self._surely(lambda chain=chain: self._damage(chain))  # type: ignore[misc]
            losses += [_lacking(chain, found) for found in damaged]
            if not whole:
                damaged = [found for found in damaged if found.name not in OF_CLUSTERS]
            left = indices[~self._lost(chain, damaged)[indices]]
            if len(left):
                readable[chain] = left
            else:
                losses.append(f"{self._place}: chain {chain} left out, it has no draws left to use")
        return readable


class _Damage(NamedTuple):
    """An array of a block that cannot be read."""

    span: Span
    name: str
    error: DamagedFile


def _every(chosen: Chosen) -> slice | Sequence[int]:
    return slice(None) if chosen is None else chosen


def _lacking(chain: int, found: _Damage) -> str:
    """In words, what damage costs."""
    lost = f"draws {found.span.start} to {found.span.stop - 1}"
    return f"{found.error}; chain {chain} lacks {found.name} of {lost}"


def _same_kind(place: str, chains: dict[int, list[Span]]) -> IndexEntry:
    """An entry that speaks for all; RunFolderError if they are of different things."""
    entries = [span.block.entry for spans in chains.values() for span in spans]
    first = entries[0]
    if any((one.n, one.columns) != (first.n, first.columns) for one in entries):
        raise RunFolderError(f"{place}: the chains are of different markings or parameters")
    return first


def _rows(counts: NDArray[np.int32], at: slice | NDArray[np.int64]) -> slice | NDArray[np.int64]:
    """Where the clusters of draws lie among those of a block."""
    offsets = offsets_of(counts)
    if isinstance(at, slice):
        return slice(int(offsets[at.start]), int(offsets[at.stop]))
    return np.concatenate([np.arange(offsets[d], offsets[d + 1]) for d in at.tolist()])


def _ranges(mask: NDArray[np.bool_]) -> str:
    """In words, which draws a mask selects."""
    edges = np.flatnonzero(np.diff(mask, prepend=False, append=False)).reshape(-1, 2)
    parts = [f"{first} to {last - 1}" for first, last in edges.tolist()]
    return "draws " + ", ".join(parts) if parts else "no draws"
