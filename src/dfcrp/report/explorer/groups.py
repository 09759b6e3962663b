"""Every distinct cluster of the draws, once: the draws in a form small enough for a page.

From draw to draw most clusters stay as they are. A *group* is a set of items that was a cluster
in some draw; it comes with the runs of consecutive draws in which it was one. Nothing about the
partitions is lost: counts, shares and Jaccard coefficients follow exactly, for any region.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import ClusterBlock, Draws
from dfcrp.summaries.centre import Centre
from dfcrp.summaries.consensus import parameter_columns
from dfcrp.summaries.streaming import kept, label_blocks, stride_for

#: Draws whose partitions are kept, and runs that they may take; beyond, draws are thinned evenly.
MAX_DRAWS = 4_000
MAX_RUNS = 600_000
#: Draws whose cluster parameters are kept, and how many clusters they may hold together.
MAX_SAMPLED = 400
MAX_VALUES = 3_000_000


@dataclass(frozen=True)
class Groups:
    """Distinct clusters of evenly spaced draws; draws are numbered through all chains."""

    n_draws: int
    #: Group g has the members ``members[offsets[g]:offsets[g + 1]]``, ascending.
    members: NDArray[np.int64]
    offsets: NDArray[np.int64]
    #: It was a cluster in draws ``start[r]:stop[r]`` for r in ``run_offsets[g]:run_offsets[g+1]``.
    run_offsets: NDArray[np.int64]
    start: NDArray[np.int64]
    stop: NDArray[np.int64]
    #: Draws whose clusters are described, ascending, and one row for each cluster in them.
    sampled: NDArray[np.int64]
    value_draw: NDArray[np.int64]
    value_group: NDArray[np.int64]
    #: The quantities that describe each, by name, ordered by group, then draw.
    values: dict[str, NDArray[np.float64]]


def distinct_clusters(
    draws: Draws, centre: Centre | None = None, max_runs: int = MAX_RUNS
) -> Groups:
    """Collect the groups of as many draws as ``max_runs`` allows.

    ``centre`` says how a cluster is described; without it none is.
    """
    step = stride_for(draws, MAX_DRAWS)
    while True:
        found = _Collector(draws, centre, step).collect(max_runs)
        if found is not None:
            return found
        step *= 2


#: The clusters of a draw: their names, and a row of parameters for each.
Described = tuple[NDArray[np.int32], NDArray[np.float64]]


@dataclass
class _Collector:
    """Follows the clusters from draw to draw and notes where one begins or ends."""

    draws: Draws
    centre: Centre | None
    step: int
    members: list[NDArray[np.int64]] = field(default_factory=list)
    #: Group, first draw and end of each run.
    runs: list[tuple[int, int, int]] = field(default_factory=list)

    def collect(self, max_runs: int) -> Groups | None:
        """All groups; None as soon as there are more than ``max_runs`` runs."""
        n = self.draws.n_markings
        # A cluster is told by its name and the sum of its members' random codes: whole numbers
        # of 40 bits, which doubles add up exactly for up to 8,192 members.
        codes = np.random.default_rng(0).integers(1, 2**40, n).astype(np.float64)
        known: dict[tuple[int, float], int] = {}
        before: NDArray[np.float64] = np.zeros(n)
        group = np.full(n, -1, np.int64)
        since = np.zeros(n, np.int64)
        sampled: list[int] = []
        rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]] = []
        draw, every = 0, 1
        for draw, (labels, block) in enumerate(self._partitions()):
            now: NDArray[np.float64] = np.bincount(labels, codes, minlength=n).astype(np.float64)
            changed = np.flatnonzero(now != before)
            if draw:
                self.runs += _ended(group, since, changed[before[changed] > 0], draw)
            else:
                every = self._sampled_every(int(np.count_nonzero(now)))
            if len(self.runs) > max_runs:
                return None
            self._begin(labels, changed[now[changed] > 0], now, known, group)
            group[changed[now[changed] == 0]] = -1
            since[changed] = draw
            before = now
            if block is not None and draw % every == 0:
                names, values = block
                sampled.append(draw)
                rows.append((draw, group[names], values))
        self.runs += _ended(group, since, np.flatnonzero(group >= 0), draw + 1)
        return self._groups(draw + 1, np.array(sampled, np.int64), rows)

    def _sampled_every(self, n_clusters: int) -> int:
        n_draws = self.draws.n_chains * -(-self.draws.n_draws // self.step)
        return max(-(-n_draws // max(min(MAX_SAMPLED, MAX_VALUES // n_clusters), 1)), 1)

    def _partitions(self) -> Iterator[tuple[NDArray[np.int32], Described | None]]:
        """Labels, and the clusters' names and parameters, of every ``step``-th draw."""
        if self.centre is None:
            for _, start, stop, labels in label_blocks(self.draws):
                yield from ((labels[d], None) for d in range(stop - start)[kept(start, self.step)])
            return
        rest = self.centre.rest
        columns = parameter_columns(self.draws, (*self.centre.parameters, *rest))
        for chain, start, stop, labels in label_blocks(self.draws):
            block: ClusterBlock = self.draws.clusters(chain, start, stop)
            for d in range(stop - start)[kept(start, self.step)]:
                rows = slice(block.offsets[d], block.offsets[d + 1])
                values = block.parameters[rows][:, columns].astype(np.float64)
                if rest:
                    values[:, : len(rest)] += values[:, -len(rest) :]
                    values = values[:, : -len(rest)]
                yield labels[d], (block.labels[rows], values)

    def _begin(
        self,
        labels: NDArray[np.int32],
        begun: NDArray[np.int64],
        now: NDArray[np.float64],
        known: dict[tuple[int, float], int],
        group: NDArray[np.int64],
    ) -> None:
        """Give every cluster that is new in this draw its group, and make those never seen."""
        fresh = []
        for name, code in zip(begun.tolist(), now[begun].tolist(), strict=True):
            key = (name, code)
            if key not in known:
                known[key] = len(known)
                fresh.append(name)
            group[name] = known[key]
        if fresh:
            is_fresh = np.zeros(len(labels), np.bool_)
            is_fresh[fresh] = True
            held = np.flatnonzero(is_fresh[labels])
            held = held[np.argsort(labels[held], kind="stable")]
            ends = np.searchsorted(labels[held], fresh, side="right")
            self.members += [held[a:b] for a, b in pairwise([0, *ends.tolist()])]

    def _groups(
        self,
        n_draws: int,
        sampled: NDArray[np.int64],
        rows: list[tuple[int, NDArray[np.int64], NDArray[np.float64]]],
    ) -> Groups:
        runs = np.array(sorted(self.runs), np.int64)
        counts = np.bincount(runs[:, 0], minlength=len(self.members))
        nothing = np.empty(0, np.int64)
        value_group = np.concatenate([nothing, *(names for _, names, _ in rows)])
        lengths = [np.full(len(names), draw) for draw, names, _ in rows]
        value_draw = np.concatenate([nothing, *lengths])
        order = np.argsort(value_group, kind="stable")
        return Groups(
            n_draws=n_draws,
            members=np.concatenate(self.members),
            offsets=_offsets(np.array([len(held) for held in self.members])),
            run_offsets=_offsets(counts),
            start=runs[:, 1],
            stop=runs[:, 2],
            sampled=sampled,
            value_draw=value_draw[order],
            value_group=value_group[order],
            values=self._described([values for _, _, values in rows], order),
        )

    def _described(
        self, rows: list[NDArray[np.float64]], order: NDArray[np.int64]
    ) -> dict[str, NDArray[np.float64]]:
        if self.centre is None:
            return {}
        found = self.centre.describe(np.concatenate(rows)[order].T)
        return dict(zip(self.centre.quantities, found, strict=True))


def _ended(
    group: NDArray[np.int64], since: NDArray[np.int64], names: NDArray[np.int64], draw: int
) -> list[tuple[int, int, int]]:
    stop = [draw] * len(names)
    return list(zip(group[names].tolist(), since[names].tolist(), stop, strict=True))


def _offsets(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.concatenate(([0], np.cumsum(counts)))
