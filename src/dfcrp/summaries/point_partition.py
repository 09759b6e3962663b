"""The one partition to publish: the minimiser of the expected loss over the draws; its ball.

For partitions with cluster sizes n_k and m_l and overlaps n_kl, both losses are

    scale * [ sum_k f(n_k) + sum_l f(m_l) - 2 sum_kl f(n_kl) ]

Variation of information ("vi"): f(x) = x log2 x, scale 1 / n, in bits.
Binder ("binder"): f(x) = x (x - 1) / 2, scale 1: the number of pairs that are together in one
of the two partitions and apart in the other.

A cluster that joins markings which no draw ever joins only adds to the loss, so the markings
fall into components of the graph "together in some draw" that can be solved one by one. Small
components are solved exactly, by enumeration; large ones by a search from several starts.
The ball that holds most of the draws says how uncertain the partition is.

*Settled.* The partition of least expected loss leaves an item alone if it belongs to one of two
objects, each in half of the draws: wherever it were listed, the loss would be greater. But whoever
reads that the item is alone with a probability of 0.01 takes it for a mistake. So each item whose
most probable place (``summaries.membership``) is another than its own moves there, the clearest
first. If its expert has another item in that cluster, the one that is there more often stays.

A move changes what the cluster is, and so the places of other items; they are found again, round by
round. No item joins the same companions twice. Not all items can always have their way: one may be
with a second one in half of the draws and hardly ever alone, and the second alone in the other
half. Of all partitions on the way that one is kept in which the item that is worst off lacks least.
"""

from __future__ import annotations

import difflib
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray
from scipy import sparse

from dfcrp.draws import Draws
from dfcrp.errors import InputError, SettingsError
from dfcrp.summaries.kernels.division import SearchProblem, divide_exactly, divide_small
from dfcrp.summaries.kernels.partitions import (
    component_roots,
    count_pairs,
    distinct_patterns,
    group_equal,
    hash_columns,
    partition_losses,
)
from dfcrp.summaries.kernels.point_search import (
    empty_state,
    improve_all,
    merge_linked,
    new_scratch,
    polish,
    recombine,
    state_from_labels,
)
from dfcrp.summaries.membership import ALONE, NOWHERE, Membership, membership
from dfcrp.summaries.streaming import (
    as_draws,
    canonical,
    label_blocks,
    labels_by_item,
    n_clusters,
    stride_for,
)
from dfcrp.values import Array

LOSSES = ("vi", "binder")
#: Labels held in memory by the search: 4,000 draws of 10,000 markings, 160 MB.
MAX_LABELS = 40_000_000
#: Draws from which a start of the search is put together.
MOSAIC_DRAWS = 16
#: Blocks up to which a search also starts from all of them in one cluster.
TOGETHER_BLOCKS = 200
#: Distances closer than this are equal.
TOLERANCE = 1e-9
Labels = NDArray[np.int32]
Codes = NDArray[np.int64]
#: Rounds at most; most partitions take one or two.
ROUNDS = 12


def check_loss(loss: str) -> None:
    """Refuse an unknown loss, naming the nearest known one."""
    if loss not in LOSSES:
        near = difflib.get_close_matches(loss, LOSSES, n=1, cutoff=0.0)
        raise SettingsError(f'unknown loss "{loss}"; did you mean "{near[0]}"?')


def loss_table(loss: str, n: int) -> NDArray[np.float64]:
    """f at 0, 1, ..., n."""
    sizes = np.arange(n + 1, dtype=np.float64)
    if loss == "vi":
        return sizes * np.log2(np.maximum(sizes, 1.0))
    return sizes * (sizes - 1.0) / 2.0


def loss_scale(loss: str, n: int) -> float:
    """Factor in front of the bracket."""
    return 1.0 / n if loss == "vi" else 1.0


def members_by_cluster(
    labels: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cluster names in ascending order, and CSR (order, offsets) of their members."""
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return names.astype(np.int64), order, offsets


def distances(draws: Draws, labels: NDArray[np.int32], loss: str = "vi") -> NDArray[np.float64]:
    """Loss between one partition and every draw, shape (n_chains, n_draws)."""
    check_loss(loss)
    _, order, offsets = members_by_cluster(labels)
    table = loss_table(loss, draws.n_markings)
    out = np.empty((draws.n_chains, draws.n_draws))
    for chain, start, stop, block in label_blocks(draws):
        partition_losses(block, order, offsets, table, out[chain, start:stop])
    # the bracket of two equal partitions can come out as -1e-13
    return np.maximum(loss_scale(loss, draws.n_markings) * out, 0.0)


@dataclass(frozen=True)
class PointPartition:
    """A partition with its expected loss; it is indexed, and taken by NumPy, as its labels are."""

    #: Cluster of each marking, named after the cluster's smallest member.
    labels: NDArray[np.int32]
    loss: str
    #: Mean loss to all draws: bits ("vi") or pairs ("binder").
    expected_loss: float
    #: Draws that the expected loss is over, and draws that the search looked at.
    n_draws: int
    n_searched: int
    #: Sets of markings that never mix with each other, and markings in those solved exactly.
    n_components: int
    n_exact: int
    #: Sweeps over the larger sets, from all starts.
    n_sweeps: int
    #: Items that were moved afterwards to where they are most often; 0 for the minimiser itself.
    n_moved: int = 0

    @property
    def n_clusters(self) -> int:
        """The number of clusters of the partition."""
        return int(np.unique(self.labels).size)

    @property
    def exact(self) -> bool:
        """Whether this is the proven minimiser over the draws that were looked at."""
        return self.n_exact == self.labels.size and not self.n_moved

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> Array:
        return np.array(self.labels, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.labels.size

    def __getitem__(self, which: Any) -> Any:
        return self.labels[which]


def point_partition(
    labels: object,
    loss: str = "vi",
    families: object = None,
    *,
    runs: int = 4,
    seed: int = 0,
    exact_limit: int = 12,
    max_labels: int = MAX_LABELS,
) -> PointPartition:
    """Partition that minimises the expected loss over draws of a partition.

    ``labels`` is a (draws, n) or (chains, draws, n) array of any integer labels, or a Draws
    object. With ``families`` no two members of a cluster are of the same family. Components
    of up to ``exact_limit`` markings, or blocks of markings that are always together, are
    solved by enumeration; for larger ones ``runs`` random starts join the fixed ones. If
    there are more than ``max_labels`` labels the search looks at evenly spaced draws only;
    the expected loss is always over all of them.
    """
    check_loss(loss)
    if not 2 <= exact_limit <= 16:
        raise SettingsError(f"exact_limit is {exact_limit}; it must be from 2 to 16")
    draws = as_draws(labels)
    codes = _family_codes(families, draws.n_markings)
    step = stride_for(draws, max_labels // draws.n_markings)
    by_item = labels_by_item(draws, step)
    search = _PointSearch(
        by_item,
        codes,
        loss=loss,
        runs=runs,
        exact_limit=exact_limit,
        rng=np.random.default_rng(seed),
    )
    with np.errstate(over="ignore"):  # hashes do, and without a compiler numpy would tell
        best = search.run()
    return PointPartition(
        labels=best,
        loss=loss,
        expected_loss=float(distances(draws, best, loss).mean()),
        n_draws=draws.n_chains * draws.n_draws,
        n_searched=by_item.shape[1],
        n_components=search.n_components,
        n_exact=search.n_exact,
        n_sweeps=search.n_sweeps,
    )


def _family_codes(families: object, n: int) -> NDArray[np.int64] | None:
    """Families as codes 0, 1, ...; None when there is no rule."""
    if families is None:
        return None
    codes = np.unique(np.asarray(families), return_inverse=True)[1]
    if codes.shape != (n,):
        raise InputError(f"families have shape {codes.shape}; expected one for each of {n} items")
    return codes.astype(np.int64)


class _PointSearch:
    """One search, component by component."""

    def __init__(
        self,
        by_item: NDArray[np.int32],
        families: NDArray[np.int64] | None,
        *,
        loss: str,
        runs: int,
        exact_limit: int,
        rng: np.random.Generator,
    ) -> None:
        self.by_item = by_item
        self.families = families
        self.table = loss_table(loss, len(by_item))
        self.runs = runs
        self.exact_limit = exact_limit
        self.rng = rng
        self.n_components = 0
        self.n_exact = 0
        self.n_sweeps = 0

    def run(self) -> NDArray[np.int32]:
        """The best partition found of all markings."""
        names, order, offsets = members_by_cluster(component_roots(self.by_item))
        best = np.arange(len(self.by_item), dtype=np.int32)
        families = np.zeros(0, np.int64) if self.families is None else self.families
        limit = self.exact_limit
        divide_small(self.by_item, order, offsets, families, limit, self.table, best)
        sizes = np.diff(offsets)
        self.n_components = len(names)
        self.n_exact = int(sizes[sizes <= limit].sum())
        position = np.empty(len(self.by_item), np.int32)
        for k in np.flatnonzero(sizes > limit):
            items = order[offsets[k] : offsets[k + 1]]
            position[items] = np.arange(items.size, dtype=np.int32)
            best[items] = items[self._component(items, position)]
        return best

    def _component(
        self, items: NDArray[np.int64], position: NDArray[np.int32]
    ) -> NDArray[np.int32]:
        """Best partition of one component, as canonical labels within it."""
        first, counts = distinct_patterns(self.by_item, items)
        patterns = position[self.by_item[np.ix_(items, first)]]
        families = None if self.families is None else self.families[items]
        block_of = _blocks(patterns, families)
        n_blocks = int(block_of.max()) + 1
        exact = n_blocks <= self.exact_limit
        problem = _problem(
            patterns, counts, families, block_of, table=self.table, neighbours=not exact
        )
        if exact:
            self.n_exact += items.size
            cluster = divide_exactly(problem)
        else:
            cluster = self._search(problem)
        return canonical(cluster[block_of])

    def _search(self, problem: SearchProblem) -> NDArray[np.int64]:
        """Settle several starts, keep the best of each region, then polish."""
        n = problem.weights.size
        scratch = new_scratch(problem)
        natural = np.arange(n)
        best = _mosaic(problem, scratch)
        self.n_sweeps += improve_all(problem, best, natural, scratch)
        starts = [(state_from_labels(problem, natural), natural), (_linked(problem), natural)]
        if n <= TOGETHER_BLOCKS:
            starts.append((state_from_labels(problem, np.zeros(n, np.int64)), natural))
        orders = [self.rng.permutation(n) for _ in range(self.runs)]
        starts += [(empty_state(problem), order) for order in orders]
        for state, order in starts:
            self.n_sweeps += improve_all(problem, state, order, scratch)
            best = recombine(problem, best, state, scratch)
        self.n_sweeps += polish(problem, best, self.rng.permutation(n), self.exact_limit, scratch)
        return np.asarray(best.cluster)


def _blocks(patterns: NDArray[np.int32], families: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """Number the blocks of markings that share a cluster in every pattern.

    An optimal partition need not part such markings: with w copies of one marking in a cluster,
    the second difference of g in w is f''(size) - 2 E f''(overlap) < 0, because the overlap is
    at most the size and f'' does not grow. So g is concave in w, and of two clusters that
    share the copies one may have them all at no more cost. Should the draws put a family twice
    into a block, the block is cut.
    """
    hashes = np.empty(len(patterns), np.uint64)
    hash_columns(np.ascontiguousarray(patterns.T), np.arange(patterns.shape[1]), hashes)
    group: NDArray[np.int64] = group_equal(hashes)[1]
    if families is None:
        return group
    order = np.lexsort((families, group))
    again = np.zeros(len(group), np.int64)
    for before, item in pairwise(order):
        if group[before] == group[item] and families[before] == families[item]:
            again[item] = again[before] + 1
    return group_equal((group * len(group) + again).astype(np.uint64))[1]


def _problem(
    patterns: NDArray[np.int32],
    counts: NDArray[np.int64],
    families: NDArray[np.int64] | None,
    block_of: NDArray[np.int64],
    *,
    table: NDArray[np.float64],
    neighbours: bool,
) -> SearchProblem:
    """What the kernels need to know; ``neighbours`` are needed by the search only."""
    n_blocks = int(block_of.max()) + 1
    smallest = np.unique(block_of, return_index=True)[1]
    labels = block_of[patterns[smallest]].astype(np.int32)
    near = sparse.csr_array((n_blocks, n_blocks))
    if neighbours:
        offsets, columns, together = count_pairs(labels, counts)
        shares = together / counts.sum()
        upper = sparse.csr_array((shares, columns, offsets), shape=(n_blocks, n_blocks))
        near = sparse.csr_array(upper + upper.T)
    family_offsets = np.zeros(n_blocks + 1, np.int64)
    block_families = np.zeros(0, np.int64)
    n_families = 0
    if families is not None:
        local = np.unique(families, return_inverse=True)[1].astype(np.int64)
        n_families = int(local.max()) + 1
        block_families = local[np.argsort(block_of, kind="stable")]
        family_offsets[1:] = np.cumsum(np.bincount(block_of))
    return SearchProblem(
        labels=labels,
        weights=np.bincount(block_of).astype(np.int32),
        shares=counts / counts.sum(),
        table=table,
        near_offsets=near.indptr.astype(np.int64),
        near=near.indices.astype(np.int32),
        near_shares=near.data.astype(np.float64),
        family_offsets=family_offsets,
        families=block_families,
        n_families=n_families,
    )


def _mosaic(problem: SearchProblem, scratch: object) -> Any:
    """A start from the most frequent draws: the best of them, region by region."""
    frequent = np.argsort(-problem.shares, kind="stable")[:MOSAIC_DRAWS]
    best = None
    for u in frequent:
        state = state_from_labels(problem, problem.labels[:, u].astype(np.int64))
        best = state if best is None else recombine(problem, best, state, scratch)
    return best


def _linked(problem: SearchProblem) -> Any:
    """A start by linkage: the closest pairs first, merged as long as that pays."""
    n = problem.weights.size
    first = np.repeat(np.arange(n), np.diff(problem.near_offsets))
    pairs = np.flatnonzero((first < problem.near) & (problem.near_shares >= 0.5))
    pairs = pairs[np.argsort(-problem.near_shares[pairs], kind="stable")]
    state = state_from_labels(problem, np.arange(n))
    second = problem.near[pairs].astype(np.int64)
    merge_linked(problem, state, first[pairs], second, new_scratch(problem))
    return state


@dataclass(frozen=True)
class CredibleBall:
    """Wade and Ghahramani's credible ball; each bound is an array of labels, (partitions, n)."""

    level: float
    #: Smallest distance within which at least ``level`` of the draws lie.
    radius: float
    #: Draws of the ball that are farthest from the point partition.
    horizontal: NDArray[np.int32]
    #: Draws of the ball with the fewest clusters, of these the farthest.
    upper: NDArray[np.int32]
    #: Draws of the ball with the most clusters, of these the farthest.
    lower: NDArray[np.int32]


def credible_ball(draws: object, point: PointPartition, level: float = 0.95) -> CredibleBall:
    """The ball around the point partition, in its own loss, with the bounds drawn inside it.

    radius = min { r : share of draws c with loss(c, point) <= r is at least ``level`` }
    """
    source = as_draws(draws)
    distance = distances(source, point.labels, point.loss).ravel()
    clusters = n_clusters(source).ravel()
    rank = int(np.ceil(level * distance.size - TOLERANCE)) - 1
    radius = float(np.sort(distance)[max(rank, 0)])
    inside = np.flatnonzero(distance <= radius + TOLERANCE)
    fewest = inside[clusters[inside] == clusters[inside].min()]
    most = inside[clusters[inside] == clusters[inside].max()]
    return CredibleBall(
        level=level,
        radius=radius,
        horizontal=_farthest(source, distance, inside),
        upper=_farthest(source, distance, fewest),
        lower=_farthest(source, distance, most),
    )


def _farthest(
    draws: Draws, distance: NDArray[np.float64], among: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The different partitions among these draws that are farthest away."""
    far = among[distance[among] >= distance[among].max() - TOLERANCE]
    rows = [draws.labels(int(d) // draws.n_draws, *_one(int(d) % draws.n_draws))[0] for d in far]
    return np.unique(np.asarray(rows, np.int32), axis=0)


def _one(draw: int) -> tuple[int, int]:
    return draw, draw + 1


class _Settling:
    """One partition on its way."""

    def __init__(self, labels: Labels, draws: Draws, families: Codes | None) -> None:
        self.labels, self.draws, self.families = labels.copy(), draws, families
        self.moved: set[int] = set()
        self._tried: set[tuple[int, tuple[int, ...]]] = set()

    def run(self) -> Membership:
        """Move items as long as any wants to; where all of them are at the end."""
        places = membership(self.labels, self.draws)
        best = (self._lack(places), self.labels.copy(), places)
        for _ in range(ROUNDS):
            if not self._round(places):
                break
            places = membership(self.labels, self.draws)
            lack = self._lack(places)
            if lack < best[0]:
                best = (lack, self.labels.copy(), places)
        _, self.labels, places = best
        return places

    def _lack(self, places: Membership) -> tuple[float, float]:
        """By how much items are more often elsewhere than where they are: at most, and in all."""
        gap = np.where(places.second != NOWHERE, places.p_second - places.p_member, 0.0)
        gap = np.maximum(gap, 0.0)
        for i in np.flatnonzero(gap).tolist():
            rivals = self._rivals(i, np.flatnonzero(self.labels == places.second[i]))
            if rivals.size and places.p_member[rivals].max() >= places.p_second[i]:
                gap[i] = 0.0
        return float(gap.max(initial=0.0)), float(gap.sum())

    def _round(self, places: Membership) -> bool:
        """One move from and into each cluster at most; whether there was one."""
        before, touched = self.labels.copy(), {-1}
        gain = places.p_second - places.p_member
        wanted = np.flatnonzero((gain > 0.0) & (places.second != NOWHERE))
        for i in wanted[np.argsort(-gain[wanted], kind="stable")].tolist():
            own, other = int(before[i]), int(places.second[i])
            if own in touched or (other in touched and other != ALONE):
                continue
            members = np.flatnonzero(before == other)
            rivals = self._rivals(i, members)
            if rivals.size and places.p_member[rivals].max() >= places.p_second[i]:
                continue
            members = np.setdiff1d(members, rivals)
            move = (i, tuple(members.tolist()))
            if move not in self._tried:
                self._tried.add(move)
                self._move(i, members, rivals)
                touched |= {own, other}
        return bool((self.labels != before).any())

    def _rivals(self, item: int, members: Codes) -> Codes:
        """Those of the same family."""
        if self.families is None:
            return members[:0]
        return members[self.families[members] == self.families[item]]

    def _move(self, item: int, members: Codes, rivals: Codes) -> None:
        """Clusters stay named after their smallest members."""
        rest = np.flatnonzero(self.labels == self.labels[item])
        rest = rest[rest != item]
        if rest.size:
            self.labels[rest] = rest.min()
        self.labels[rivals] = rivals
        together = np.append(members, item)
        self.labels[together] = together.min()
        self.moved |= {item, *rivals.tolist()}


def settled(
    best: PointPartition, draws: Draws, families: Codes | None
) -> tuple[PointPartition, Membership]:
    """The partition with such items moved, and where all items are.

    With ``families`` no two members of a cluster are of the same family.
    """
    one = _Settling(best.labels, draws, families)
    places = one.run()
    if (one.labels == best.labels).all():
        return best, places
    loss = float(distances(draws, one.labels, best.loss).mean())
    moved = replace(best, labels=one.labels, expected_loss=loss, n_moved=len(one.moved))
    return moved, places
