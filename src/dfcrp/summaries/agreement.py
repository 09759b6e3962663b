"""Do experts look independently of each other? Two checks of the fit, by what they have in common.

*Agreement.* Do two experts share objects more often than experts who look independently? If expert
f marks object k with odds a_k b_f, independently of the others, then given how many marked each
object, and how many each expert marked, who marked which is random (Rasch). Of the clusters with n
members among V experts who looked,

    π_f = λ_n b_f / (1 + λ_n b_f)  with  Σ_f π_f = n

have expert f, nearly, and π_fg = c_f c_g π_f π_g (1 − (1 − π_f)(1 − π_g) / Σ π(1 − π)) have both,
with c such that Σ_g π_fg = (n − 1) π_f (Hájek 1964). Odds are fitted to how often each expert is
there, by level of size where objects have one. Clusters of one item say nothing.

*Beside.* Do items that are alone lie beside objects that their experts seem to have missed? If the
clusters are right, an expert's single item may happen to lie near an object of others, but then it
does not matter whether the expert marked that object too. A careless item of an object, a part of
it, or a group that holds it, was cut off: it lies near the object, and the expert has no other item
there. So of the single items near an object, those whose expert lacks the object are compared with
as many as the share of objects that the expert lacks anyway.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree
from scipy.special import expit, ndtri

from dfcrp.summaries.looked import Coverage, who_looked
from dfcrp.summaries.tails import Scatter

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Groups of clusters by experts who looked, level and members; the group of each, and its members.
Groups = dict[tuple[tuple[int, ...], int, int], int]
There = list[tuple[int, NDArray[np.int32]]]
#: Experts of one place that are compared, those with most shared objects first.
MAX_EXPERTS = 40
#: Levels of size that experts may differ in, and objects that each level's odds are shrunk by.
LEVELS, SHRINK = 3, 10.0
ROUNDS = 40
#: Fewest experts at a place from which agreement says anything beyond the numbers.
LEAST_EXPERTS = 4
#: Clusters that are looked at, and numbers in memory for pairs in groups of them.
MAX_CLUSTERS, MAX_CELLS = 100_000, 4_000_000
#: Objects that two experts must share beyond what is expected.
FEWEST = 5.0
#: How improbable a pair must be, all pairs together.
FALSE_ALARM = 1e-3
#: Near is within so many standard deviations, on average over the features.
NEAR = 10.0
#: Objects nearby that are looked at, for each single item.
NEAREST = 6


@dataclass(frozen=True)
class Pairs:
    """Pairs of experts who looked at objects together."""

    first: Codes
    second: Codes
    #: Objects that both marked, how many are expected, and the standard deviation of that.
    shared: Floats
    expected: Floats
    sd: Floats
    #: Objects that the one of the two who marked fewer marked where both looked.
    fewer: Floats

    @property
    def excess(self) -> Floats:
        """How much more they share than expected, as a share of the shorter list."""
        return (self.shared - self.expected) / np.maximum(self.fewer, 1.0)

    @property
    def surprising(self) -> NDArray[np.bool_]:
        """Too often for what chance makes of so many pairs, and by a few objects at least."""
        limit = -float(ndtri(FALSE_ALARM / max(len(self.first), 1)))
        more = self.shared - self.expected
        # Few are Poisson rather than normal: the second term of Cornish and Fisher.
        return np.asarray(more > np.maximum(limit * self.sd + (limit**2 - 1.0) / 6.0, FEWEST))


@dataclass(frozen=True)
class _Table:
    """Clusters with the same experts who looked, the same level and the same number of members."""

    #: (groups, V): experts, -1 where there are fewer; and the level of each group.
    who: Codes
    level: Codes
    #: (groups,): members, and clusters.
    size: Codes
    count: Floats
    #: Experts in all.
    experts: int


def agreement(
    labels: NDArray[np.int32], families: Codes, coverage: Coverage, sizes: Floats | None
) -> Pairs | None:
    """Of one partition; None if too few experts looked at the same place."""
    found = who_looked(coverage, labels[np.newaxis], families)
    held, seen = found.held.tocsr(), found.seen.tocsr()
    level = _levels(labels, found.name, sizes)
    often = np.asarray(held[found.experts > 1].sum(axis=0)).ravel()
    chosen = _chosen(seen.indptr, seen.indices, often)
    groups: Groups = {}
    there: There = []
    for k in range(0, len(found.name), -(-len(found.name) // MAX_CLUSTERS)):
        viewers = chosen[k]
        members = np.intersect1d(held.indices[held.indptr[k] : held.indptr[k + 1]], viewers)
        if len(viewers) < LEAST_EXPERTS or not 1 < len(members) < len(viewers):
            continue
        key = (viewers, int(level[k]), len(members))
        there.append((groups.setdefault(key, len(groups)), members))
    if not groups:
        return None
    groups, there = _bounded(groups, there)
    table = _table(groups, there, coverage.n_experts)
    inside, shared = _observed(there, table)
    probability = _probabilities(table, inside)
    return _pairs(table, probability, shared, inside)


def _bounded(groups: Groups, there: There) -> tuple[Groups, There]:
    """Some of the places, evenly spaced, if pairs at all of them would not fit into memory."""
    places = list(dict.fromkeys(viewers for viewers, _, _ in groups))
    widest = max(len(viewers) for viewers in places)
    step = -(-len(groups) * widest**2 // MAX_CELLS)
    if step == 1:
        return groups, there
    kept = set(places[::step])
    fewer: Groups = {}
    number = {at: fewer.setdefault(key, len(fewer)) for key, at in groups.items() if key[0] in kept}
    return fewer, [(number[at], members) for at, members in there if at in number]


def _levels(labels: NDArray[np.int32], names: Codes, sizes: Floats | None) -> Codes:
    """The level of size of each cluster, by its members' mean."""
    if sizes is None or not np.ptp(sizes) > 0.0:
        return np.zeros(len(names), np.int64)
    count = np.bincount(labels, minlength=len(labels))
    mean = (np.bincount(labels, weights=sizes, minlength=len(labels)) / np.maximum(count, 1))[names]
    several = mean[count[names] > 1]
    if not several.size:
        return np.zeros(len(names), np.int64)
    cuts = np.quantile(several, np.arange(1, LEVELS) / LEVELS)
    return np.searchsorted(cuts, mean).astype(np.int64)


def _chosen(
    start: NDArray[np.int32], who: NDArray[np.int32], often: Floats
) -> list[tuple[int, ...]]:
    """The experts who looked at each cluster, at most so many."""
    known: dict[bytes, tuple[int, ...]] = {}
    found = []
    for a, b in pairwise(start):
        key = who[a:b].tobytes()
        if key not in known:
            viewers = np.sort(who[a:b])
            viewers = viewers[often[viewers] > 0]
            best = viewers[np.argsort(-often[viewers], kind="stable")[:MAX_EXPERTS]]
            known[key] = tuple(np.sort(best).tolist())
        found.append(known[key])
    return found


def _table(
    groups: Groups,
    there: There,
    experts: int,
) -> _Table:
    widest = max(len(viewers) for viewers, _, _ in groups)
    who = np.full((len(groups), widest), -1, np.int64)
    for at, (viewers, _, _) in enumerate(groups):
        who[at, : len(viewers)] = viewers
    return _Table(
        who,
        np.array([level for _, level, _ in groups]),
        np.array([size for _, _, size in groups]),
        np.bincount([at for at, _ in there], minlength=len(groups)).astype(np.float64),
        experts,
    )


def _observed(there: There, table: _Table) -> tuple[Floats, Floats]:
    """How often each expert is in each group, (groups, V), and pairs of places, (groups, V, V)."""
    inside = np.zeros(table.who.shape)
    shared = np.zeros((*table.who.shape, table.who.shape[1]))
    for at, members in there:
        places = np.searchsorted(table.who[at][table.who[at] >= 0], members)
        inside[at, places] += 1.0
        shared[at][np.ix_(places, places)] += 1.0
    return inside, shared


def _probabilities(table: _Table, inside: Floats) -> Floats:
    """π of every expert in every group, with odds fitted to the experts' totals."""
    known = table.who >= 0
    who = np.where(known, table.who, table.experts)
    code = table.level[:, np.newaxis] * (table.experts + 1) + who
    levels = int(table.level.max()) + 1
    odds = np.zeros(table.experts + 1)
    more = np.zeros(levels * (table.experts + 1))
    total = np.bincount(who.ravel(), weights=inside.ravel(), minlength=table.experts + 1)
    by_level = np.bincount(code.ravel(), weights=inside.ravel(), minlength=len(more))
    ease = np.log(table.size / (known.sum(axis=1) - table.size))
    probability = np.zeros(table.who.shape)
    for _ in range(ROUNDS):
        logit = odds[who] + more[code]
        ease = _eases(logit, known, table.size, ease)
        probability = np.where(known, expit(logit + ease[:, np.newaxis]), 0.0)
        mean = (table.count[:, np.newaxis] * probability).ravel()
        odds += np.log(
            (total + 0.5)
            / (np.bincount(who.ravel(), weights=mean, minlength=table.experts + 1) + 0.5)
        )
        if levels > 1:
            expected = np.bincount(code.ravel(), weights=mean, minlength=len(more))
            more = np.log((by_level + SHRINK) / (expected / np.exp(more) + SHRINK))
    return probability


def _eases(logit: Floats, known: NDArray[np.bool_], size: Codes, ease: Floats) -> Floats:
    """λ of every group, so that probabilities add up to its size; by Newton's method."""
    for _ in range(8):
        p = np.where(known, expit(logit + ease[:, np.newaxis]), 0.0)
        slope = np.maximum((p * (1.0 - p)).sum(axis=1), 1e-9)
        ease = ease + np.clip((size - p.sum(axis=1)) / slope, -2.0, 2.0)
    return ease


def _pairs(table: _Table, p: Floats, shared: Floats, inside: Floats) -> Pairs:
    """Add up the groups."""
    spread = np.maximum((p * (1.0 - p)).sum(axis=1), 1e-9)[:, np.newaxis, np.newaxis]
    miss = 1.0 - p
    both = (
        p[:, :, np.newaxis]
        * p[:, np.newaxis]
        * np.maximum(1.0 - miss[:, :, np.newaxis] * miss[:, np.newaxis] / spread, 1e-3)
    )
    diagonal = np.arange(p.shape[1])
    both[:, diagonal, diagonal] = 0.0
    wanted = (table.size - 1.0)[:, np.newaxis] * p
    for _ in range(20):
        ratio = np.sqrt(wanted / np.maximum(both.sum(axis=2), 1e-12))
        both *= ratio[:, :, np.newaxis] * ratio[:, np.newaxis]
    both = np.minimum(both, np.minimum(p[:, :, np.newaxis], p[:, np.newaxis]))
    known = table.who >= 0
    at, i, j = np.nonzero(
        known[:, :, np.newaxis] & known[:, np.newaxis] & np.triu(np.ones(both.shape[1:], bool), 1)
    )
    code = table.who[at, i] * table.experts + table.who[at, j]
    keys, where = np.unique(code, return_inverse=True)
    count = table.count[at]

    def total(values: Floats) -> Floats:
        return np.asarray(np.bincount(where, weights=values, minlength=len(keys)), np.float64)

    return Pairs(
        keys // table.experts,
        keys % table.experts,
        total(shared[at, i, j]),
        total(count * both[at, i, j]),
        np.sqrt(total(count * both[at, i, j] * (1.0 - both[at, i, j]))),
        np.minimum(total(inside[at, i]), total(inside[at, j])),
    )


class Beside(NamedTuple):
    """Single items near an object of two items or more."""

    near: int
    #: Of these, those whose expert has no item in the object, and how many are expected to.
    lacking: int
    expected: float
    sd: float
    #: Items that seem to have been cut off.
    cut_off: float


def beside(
    labels: NDArray[np.int32],
    families: Codes,
    coverage: Coverage,
    scatter: Scatter,
    images: Codes | None,
) -> Beside:
    """Of one partition and the scatter of a draw."""
    single, object_of, members = _nearest(labels, scatter, images)
    missing = _share_lacking(labels, families, coverage)
    kept = np.isfinite(missing[families[single]])
    single, object_of = single[kept], object_of[kept]
    held = {(int(labels[i]), int(families[i])) for i in members}
    pairs = zip(object_of.tolist(), families[single].tolist(), strict=True)
    lacks = np.array([pair not in held for pair in pairs], bool)
    p = missing[families[single]]
    expected, variance = float(p.sum()), float((p * (1.0 - p)).sum())
    lacking, mean = int(lacks.sum()), expected / max(len(single), 1)
    cut_off = (lacking - expected) / (1.0 - mean) if mean < 1.0 else 0.0
    return Beside(len(single), lacking, expected, np.sqrt(variance), max(cut_off, 0.0))


def _share_lacking(labels: NDArray[np.int32], families: Codes, coverage: Coverage) -> Floats:
    """Of the objects with two items or more where an expert looked, the share they are not in.

    Of objects that others have made two of: an expert's own item must not make it one.
    """
    found = who_looked(coverage, labels[np.newaxis], families)
    several = found.experts > 1
    held, seen = found.held.tocsr()[several], found.seen.tocsr()[several]
    others = found.experts[several]
    inside = np.asarray(held[others > 2].sum(axis=0)).ravel()
    looked = np.asarray(seen.sum(axis=0)).ravel()
    own_pairs = np.asarray(held[others == 2].sum(axis=0)).ravel()
    share = np.full(coverage.n_experts, np.nan)
    known = looked - own_pairs > 0
    share[known] = 1.0 - inside[known] / (looked - own_pairs)[known]
    return share


def _nearest(
    labels: NDArray[np.int32], scatter: Scatter, images: Codes | None
) -> tuple[Codes, Codes, Codes]:
    """Single items near an object, the object nearest to each, and all items of objects."""
    size = np.bincount(labels, minlength=len(labels))
    members, alone = np.flatnonzero(size[labels] > 1), np.flatnonzero(size[labels] == 1)
    nothing = np.zeros(0, np.int64)
    if not (members.size and alone.size):
        return nothing, nothing, members
    names, code = np.unique(labels[members], return_inverse=True)
    count = np.bincount(code)[:, np.newaxis]
    columns = scatter.values.shape[1]
    total = np.stack(
        [np.bincount(code, weights=scatter.values[members, j]) for j in range(columns)], axis=1
    )
    mean: Floats = total / count
    usual = np.median(scatter.spread, axis=0)
    here, there = scatter.values / usual, mean / usual
    if images is not None:
        # Far apart, so that items of different images are never near.
        step = 10.0 * (1.0 + float(np.ptp(here, axis=0).max()))
        here = np.column_stack([here, step * images])
        there = np.column_stack([there, step * images[names]])
    tree = cKDTree(there)
    nearest = min(NEAREST, len(names))
    _, found = tree.query(here[alone], k=nearest)
    found = found.reshape(len(alone), nearest)
    away = (scatter.values[alone][:, np.newaxis] - mean[found]) / scatter.spread[alone][
        :, np.newaxis
    ]
    distance = np.sqrt((away**2).mean(axis=2))
    if images is not None:
        distance[images[alone][:, np.newaxis] != images[names][found]] = np.inf
    best = distance.argmin(axis=1)
    row = np.arange(len(alone))
    near = distance[row, best] < NEAR
    return alone[near], names[found[row, best]][near].astype(np.int64), members
