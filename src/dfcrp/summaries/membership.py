"""Where each item sits, draw by draw, among the clusters of the point partition; and doubles.

In each draw an item has one *place*. Take the item away, from the point partition and from the
draw. Its companions, the rest of its cluster in the draw, *stand for* a cluster S of the point
partition if they hold at least half of S, and more of it than of any other such cluster (among
equals the item's own, then the smallest name). The item's place is

- alone, if it has no companions;
- S, if its companions stand for S;
- elsewhere, if they stand for no cluster: a part that split off, or bits of several clusters.

So the probabilities of an item's places sum to one. Items that share a cluster both in the draw and
in the point partition have the same place.

Possible duplicates are two items of one expert that are both closest to one object. The rule that
nobody marks an object twice sends the second item into a cluster of its own. If it lies as close
to the object as items of that object do, it may be a mistake of the expert.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.summaries.streaming import label_blocks
from dfcrp.values import Array

#: The place of an item that is a cluster of its own.
ALONE = -1
#: ``second`` of an item that was in no other cluster in any draw, and never alone.
NOWHERE = -2
#: The place of an item whose companions stand for no cluster of the point partition.
ELSEWHERE = -3
#: An item is called undecided if it belongs where it is listed with less than this probability.
UNDECIDED = 0.9
#: Label of an item that a partial partition leaves out.
LEFT_OUT = -1

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True)
class MemberPlaces:
    """Where every item sat, and in how many draws: one row for each item and place, sorted."""

    item: Ints
    #: Name of a cluster of the point partition, ``ALONE`` or ``ELSEWHERE``.
    place: Ints
    #: Draws of each chain; (chains, rows).
    counts: Ints
    #: Draws of one chain.
    n_draws: int

    @property
    def probability(self) -> Floats:
        """Share of all draws, row by row."""
        return np.asarray(self.counts.sum(axis=0) / (len(self.counts) * self.n_draws))

    def of(self, item: int) -> slice:
        """The rows of one item."""
        return slice(*np.searchsorted(self.item, [item, item + 1]).tolist())


@dataclass(frozen=True)
class Membership:
    """Probabilities of the point partition's clusters, item by item."""

    #: Probability of the item's own cluster; in a cluster of one, of being alone.
    p_member: Floats
    #: The most probable other place (a cluster, ``ALONE`` or ``NOWHERE``), and its probability.
    second: Ints
    p_second: Floats
    #: Probability of all other places together, so that the three sum to one.
    p_elsewhere: Floats
    #: Names of the clusters, ascending, and the mean of ``p_member`` over their members.
    clusters: Ints
    stability: Floats
    #: Every place of every item; None for several images together.
    places: MemberPlaces | None = None


def membership(labels: NDArray[np.int32], draws: Draws) -> Membership:
    """How often each item sat in its cluster of ``labels``, and where else.

    Clusters are named after their smallest member. A cluster's stability is the mean of its
    members' probabilities. Among equally probable second places a cluster comes before being
    alone, and the smaller name before the larger.
    """
    clusters, code, size = np.unique(labels, return_inverse=True, return_counts=True)
    found = find_places(labels, draws)
    times = found.counts.sum(axis=0)
    n_draws = draws.n_chains * draws.n_draws
    home = np.where(size[code] == 1, ALONE, labels)
    own = found.place == home[found.item]
    at_home = np.zeros(len(labels), np.int64)
    at_home[found.item[own]] = times[own]
    other = np.flatnonzero(~own & (found.place != ELSEWHERE))
    name = np.where(found.place == ALONE, len(labels), found.place)
    # ascending, so that the best is written last and stays
    other = other[np.lexsort((-name[other], times[other]))]
    second = np.full(len(labels), NOWHERE, np.int64)
    at_second = np.zeros(len(labels), np.int64)
    second[found.item[other]] = found.place[other]
    at_second[found.item[other]] = times[other]
    return Membership(
        p_member=at_home / n_draws,
        second=second,
        p_second=at_second / n_draws,
        p_elsewhere=(n_draws - at_home - at_second) / n_draws,
        clusters=clusters.astype(np.int64),
        stability=np.bincount(code, weights=at_home) / size / n_draws,
        places=found,
    )


def find_places(labels: NDArray[np.int32], draws: Draws) -> MemberPlaces:
    """The places of all items among the clusters of ``labels``, over all draws."""
    seats = _Seats(labels)
    n, n_chains = len(labels), draws.n_chains
    width = n - ELSEWHERE
    usual = np.zeros((n_chains, n), np.int64)
    unusual: list[tuple[int, Ints, Ints]] = []
    for chain, _, _, block in label_blocks(draws):
        as_published, item, place = seats.of(block)
        usual[chain] += as_published
        key, times = np.unique(item * width + place - ELSEWHERE, return_counts=True)
        unusual.append((chain, key, times))
    home = np.arange(n) * width + seats.home - ELSEWHERE
    keys = np.unique(np.concatenate([home, *(key for _, key, _ in unusual)]))
    counts = np.zeros((n_chains, len(keys)), np.int64)
    counts[:, np.searchsorted(keys, home)] = usual
    for chain, key, times in unusual:
        counts[chain, np.searchsorted(keys, key)] += times
    seen = counts.any(axis=0)
    keys = keys[seen]
    return MemberPlaces(keys // width, keys % width + ELSEWHERE, counts[:, seen], draws.n_draws)


class _Seats:
    """The places of items in blocks of draws, for one point partition."""

    def __init__(self, labels: NDArray[np.int32]) -> None:
        self.labels = labels
        self.names, self.code, self.size = np.unique(
            labels, return_inverse=True, return_counts=True
        )
        #: The place of an item whose cluster in the draw is that of the point partition.
        self.home = np.where(self.size[self.code] == 1, ALONE, labels).astype(np.int64)

    def of(self, block: NDArray[np.int32]) -> tuple[Ints, Ints, Ints]:
        """In how many draws an item's cluster is as published; items and places otherwise.

        Most clusters of most draws are as published, which counting tells.
        """
        n_draws, n = block.shape
        cluster = (np.arange(n_draws, dtype=np.int64)[:, np.newaxis] * n + block).ravel()
        named = (block == self.labels).ravel()
        total = np.bincount(cluster, minlength=n_draws * n)
        held = np.bincount(cluster[named], minlength=n_draws * n)
        size = np.tile(self.size[self.code], n_draws)
        same = named & (held[cluster] == size) & (total[cluster] == size)
        rest = np.flatnonzero(~same)
        item = rest % n
        place = self._places(cluster[rest], self.code[item])
        return same.reshape(n_draws, n).sum(axis=0), item, place

    def _places(self, cluster: Ints, code: Ints) -> Ints:
        """Places of items, given their clusters in the draws and in the point partition.

        Items that agree in both have one row in a table, sorted by the draws' clusters: ``held``
        of them there are, and ``weight`` is what counts of them for items of other rows.
        """
        if not cluster.size:
            return cluster
        rows, of_item, held = np.unique(
            cluster * len(self.names) + code, return_inverse=True, return_counts=True
        )
        cluster, code = rows // len(self.names), rows % len(self.names)
        size = self.size[code]
        weight = np.where(2 * held >= size, held, 0)
        start = np.flatnonzero(np.diff(cluster, prepend=-1))
        group = np.repeat(np.arange(len(start)), np.diff(start, append=len(rows)))
        order = np.lexsort((code, -weight, group))
        best = order[start][group]
        follows = np.minimum(start + 1, len(rows) - 1)
        # of an item's own row the next best counts, unless it is the only one of its cluster
        best = np.where(best == np.arange(len(rows)), order[follows][group], best)
        rival = np.where(group[best] == group, weight[best], 0)
        rival[best == np.arange(len(rows))] = 0
        own = np.where(2 * (held - 1) >= size - 1, held - 1, 0)
        alone = np.add.reduceat(held, start)[group] == 1
        place = np.where(alone, ALONE, ELSEWHERE)
        place = np.where(rival > 0, self.names[code[best]], place)
        place = np.where((own > 0) & (own >= rival), self.names[code], place)
        return place[of_item].astype(np.int64)


@dataclass(frozen=True)
class PartialPartition:
    """A partition of the markings whose place is decided."""

    #: Cluster of each marking, ``LEFT_OUT`` (-1) for the undecided ones.
    labels: NDArray[np.int32]
    #: The markings that are left out, and the threshold below which they fell.
    undecided: NDArray[np.int64]
    threshold: float


def partial_partition(
    labels: NDArray[np.int32], p_member: NDArray[np.float64], threshold: float = 0.5
) -> PartialPartition:
    """Leave out the markings whose membership probability is below the threshold.

    Clusters are named after the smallest member that stays.
    """
    undecided = np.flatnonzero(p_member < threshold)
    kept = np.flatnonzero(p_member >= threshold)
    out = np.full(len(labels), LEFT_OUT, np.int32)
    _, first, code = np.unique(labels[kept], return_index=True, return_inverse=True)
    out[kept] = kept[first][code]
    return PartialPartition(out, undecided, threshold)


#: A double lies within so many standard deviations of the object, on average over the features.
CLOSE = 3.0
#: Objects nearby that are looked at.
NEAREST = 8
#: Members that make an object sure enough to have doubles, and to tell how far members scatter.
FEWEST = 3


def suspected_doubles(
    features: Floats,
    families: NDArray[np.int64],
    labels: NDArray[np.int32],
    size: int | None = None,
) -> dict[str, Array]:
    """Columns ``marking``, ``other`` (indices), ``cluster`` and ``distance``, closest first.

    ``size`` is the feature that holds a log size, if those before it are places whose errors go
    with it. A marking is suspected if it is alone, the nearest object (of FEWEST members or more)
    holds another marking of its expert, and it lies within CLOSE standard deviations of the
    objects' own members.
    """
    names, code, count = np.unique(labels, return_inverse=True, return_counts=True)
    centre = _means(features, code, len(names))
    scale = np.ones_like(centre)
    if size is not None:
        scale[:, :size] = np.exp(centre[:, size : size + 1])
    sure = np.flatnonzero(count >= FEWEST)
    alone = np.flatnonzero(count[code] == 1)
    empty = np.empty(0, np.int64)
    if not (sure.size and alone.size):
        return {"marking": empty, "other": empty, "cluster": empty, "distance": np.empty(0)}
    inside = np.isin(code, sure)
    residual = (features - centre[code])[inside] / scale[code[inside]]
    freedom = inside.sum() - sure.size
    spread = np.sqrt((residual**2).sum(axis=0) / max(freedom, 1))
    spread = np.where(spread > 0.0, spread, 1.0)
    cluster, distance = _nearest(features[alone], centre[sure], scale[sure] * spread)
    other = _of_family(code, families, sure[cluster], families[alone])
    found = np.flatnonzero((distance <= CLOSE) & (other >= 0))
    found = found[np.argsort(distance[found], kind="stable")]
    return {
        "marking": alone[found],
        "other": other[found],
        "cluster": names[sure[cluster[found]]].astype(np.int64),
        "distance": distance[found],
    }


def _of_family(
    code: NDArray[np.int64],
    families: NDArray[np.int64],
    clusters: NDArray[np.int64],
    wanted: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The member of each cluster that is of the wanted family, or -1."""
    span = int(families.max()) + 1
    keys = code * span + families
    order = np.argsort(keys, kind="stable")
    asked = clusters * span + wanted
    place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
    return np.where(keys[order][place] == asked, order[place], -1)


def _means(features: Floats, code: NDArray[np.int64], count: int) -> Floats:
    sums = np.zeros((count, features.shape[1]))
    np.add.at(sums, code, features)
    return sums / np.bincount(code)[:, np.newaxis]


def _nearest(points: Floats, centre: Floats, spread: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The nearest object of each point by its own spread, among the nearest few by a common one."""
    from scipy.spatial import cKDTree

    usual = np.median(spread, axis=0)
    around = min(NEAREST, len(centre))
    near = cKDTree(centre / usual).query(points / usual, k=around)[1].reshape(len(points), around)
    apart = (points[:, np.newaxis] - centre[near]) / spread[near]
    distance = np.sqrt((apart**2).mean(axis=2))
    best = distance.argmin(axis=1)
    rows = np.arange(len(points))
    return near[rows, best], distance[rows, best]
