"""How near items lie to those of other experts, and how near they would lie by chance.

The measure has no unit: two items are *near* if they lie closer together than a quarter of what
separates most items of one list from the next of the same list. By chance about one item in ten
is near another list, and where two experts marked the same objects most are.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.base import Sight
from dfcrp.summaries.looked import Coverage

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Items that are looked up in a list, at most; of more a random sample.
MOST_LOOKED_UP = 100_000
#: With more experts than this each is compared with all others at once, not with every one.
MOST_COMPARED = 25
#: ``near``, as a share of the distance within which most items have one of their own list.
NEAR, MOST = 0.27, 0.75
#: An image with fewer distances within lists takes those of all images.
LEAST_DISTANCES = 10
#: Of two experts so many items tell whether their lists agree, and the smallest number of
#: standard deviations from chance.
LEAST_ITEMS, BEYOND_CHANCE = 8, 4.0
#: Copies of one place on one image: more are for other checks.
MOST_COPIES = 1_000
#: Neighbours among which one of another list is looked for, if there are many lists.
AROUND = 8


class Shares(NamedTuple):
    """Of items of one list that were looked up in another: how many, and how many were near."""

    looked_up: Ints
    near: Ints
    #: The same for places moved at random by a little more than ``near``: what is chance.
    by_chance: Floats

    @property
    def share(self) -> Floats:
        """NaN where nothing was looked up."""
        nothing = np.full(self.near.shape, np.nan)
        return np.divide(self.near, self.looked_up, out=nothing, where=self.looked_up > 0)

    @property
    def beyond_chance(self) -> NDArray[np.bool_]:
        """Where lists surely agree, more than by chance."""
        n, p = np.maximum(self.looked_up, 1), np.clip(self.by_chance, 0.02, 0.98)
        sd = np.sqrt(n * p * (1.0 - p))
        return (self.looked_up >= LEAST_ITEMS) & (self.near - n * p >= BEYOND_CHANCE * sd)

    def all_by_chance(self, *whose: int) -> bool:
        """Whether all that was looked up (of one list) was near as often as by chance."""
        n, near, p = (values[whose].sum() for values in (self.looked_up, self.near, self._expected))
        return bool(near - p <= BEYOND_CHANCE * np.sqrt(max(p * (1.0 - p / max(n, 1)), 1.0)))

    @property
    def _expected(self) -> Floats:
        return self.looked_up * self.by_chance


@dataclass(frozen=True, eq=False)
class Nearness:
    """Items of several lists on their images."""

    sight: Sight
    families: Ints
    #: Number of the image of each item; who saw what.
    image: Ints
    coverage: Coverage

    @cached_property
    def places(self) -> Floats:
        """Where items lie, scaled so that the longest side of all is one."""
        return self.placed(self.sight.coordinates)

    @cached_property
    def _frame(self) -> tuple[Floats, float]:
        places = self.sight.places(self.sight.coordinates)
        low = places.min(axis=0)
        return low, float(np.ptp(places, axis=0).max()) or 1.0

    def placed(self, coordinates: Floats) -> Floats:
        """Coordinates as places of the same scale."""
        low, extent = self._frame
        return (self.sight.places(coordinates) - low) / extent

    @property
    def unit(self) -> float:
        """What one is in the unit of places."""
        return self._frame[1]

    def together(self, places: Floats, group: Ints) -> Floats:
        """Places with one more coordinate, by which groups lie far apart."""
        return np.column_stack([places, 16.0 * group])

    @cached_property
    def sample(self) -> Ints:
        """Rows to be looked up, the same for the same data."""
        n = len(self.families)
        if n <= MOST_LOOKED_UP:
            return np.arange(n)
        return np.sort(np.random.default_rng(n).choice(n, MOST_LOOKED_UP, replace=False))

    @cached_property
    def crowded(self) -> bool:
        """Whether so many items are at one place that trees of them would be slow."""
        rows = self.together(self.places, self.image)
        at = np.unique(rows, axis=0, return_counts=True)[1]
        return int(at.max()) > MOST_COPIES

    @cached_property
    def within_list(self) -> Floats:
        """Of the sampled items the distance to the next on the same list and image, or ∞."""
        from scipy.spatial import cKDTree

        experts = int(self.families.max()) + 1
        group = np.unique(self.image * experts + self.families, return_inverse=True)[1]
        rows = self.together(self.places, group.reshape(-1))
        found = cKDTree(rows).query(rows[self.sample], k=2, distance_upper_bound=8.0)[0]
        return np.asarray(found[:, 1])

    @cached_property
    def near(self) -> Floats:
        """How close another item must be to be near, by image; 0: no telling."""
        known = np.isfinite(self.within_list)
        found = np.zeros(int(self.image.max()) + 1)
        if not known.any():
            return found
        found[:] = NEAR * np.quantile(self.within_list[known], MOST)
        image, apart = self.image[self.sample][known], self.within_list[known]
        order = np.argsort(image, kind="stable")
        numbers, begins = np.unique(image[order], return_index=True)
        for number, some in zip(numbers, np.split(apart[order], begins[1:]), strict=True):
            if len(some) >= LEAST_DISTANCES:
                found[number] = NEAR * np.quantile(some, MOST)
        return found

    @cached_property
    def seen(self) -> NDArray[np.bool_]:
        """(zones, experts): who saw which zone; of few experts."""
        found = np.zeros((self.coverage.n_zones, self.coverage.n_experts), bool)
        found[self.coverage.pairs[:, 0], self.coverage.pairs[:, 1]] = True
        return found

    def moved_a_little(self, places: Floats, image: Ints, seed: int) -> Floats:
        """Each place moved at random, by two to four times ``near``."""
        rng = np.random.default_rng(seed)
        way = rng.standard_normal(places.shape)
        way /= np.maximum(np.linalg.norm(way, axis=1, keepdims=True), 1e-300)
        far = rng.uniform(2.0, 4.0, len(places)) * self.near[image]
        return places + far[:, np.newaxis] * way

    # Every list with every other

    @cached_property
    def lists(self) -> list[Ints]:
        """The rows of each expert."""
        order = np.argsort(self.families, kind="stable")
        counts = np.bincount(self.families, minlength=self.coverage.n_experts)
        return np.split(order, np.cumsum(counts)[:-1])

    @cached_property
    def some_of_each(self) -> list[Ints]:
        """Rows of each expert to be looked up in all other lists."""
        experts = max(len(self.lists), 1)
        most = int(np.clip(2.0 * MOST_LOOKED_UP / experts**2, 200, 2_000))
        rng = np.random.default_rng(len(self.families))
        return [
            rows if len(rows) <= most else np.sort(rng.choice(rows, most, replace=False))
            for rows in self.lists
        ]

    @cached_property
    def pairs(self) -> NearPairs:
        """Every list looked up in every other."""
        return look_up_pairs(self)

    # Every list with all others

    @cached_property
    def others(self) -> Others:
        """The sampled items looked up among all lists but their own."""
        return look_up_others(self)


class NearPairs(NamedTuple):
    """(experts, experts): items of one looked up in the list of the other."""

    shares: Shares
    #: Of these all but in the same place, and as large.
    same: Ints
    #: Median of the log ratio of sizes where places are near; of distance by size.
    log_ratio: Floats
    #: (experts, experts, coordinates): the difference of near places, by size, where it is steady.
    offset: Floats
    #: Near pairs' distances, in the unit of places and in sizes, all of them.
    distances: Floats
    apart: Floats
    #: Of items that another expert's list was looked up for: whether any had one near.
    any_near: Floats


#: Differences, by size, that scatter less than this about their median are all alike.
STEADY = 0.18
#: Closer than this share of ``near``, and as large to this share: the same item.
SAME = 1e-3


def look_up_pairs(nearness: Nearness) -> NearPairs:
    """Every list looked up in every other, where both looked."""
    from scipy.spatial import cKDTree

    experts = len(nearness.lists)
    shape = (experts, experts)
    counts = {name: np.zeros(shape, np.int64) for name in ("looked_up", "near", "same", "chance")}
    ratio, apart, distances = np.full(shape, np.nan), [np.empty(0)], [np.empty(0)]
    offset = np.full((*shape, nearness.places.shape[1]), np.nan)
    trees = [
        cKDTree(nearness.together(nearness.places[rows], nearness.image[rows]))
        if len(rows)
        else None
        for rows in nearness.lists
    ]
    any_near = [np.empty(0, bool)]
    for one, rows in enumerate(nearness.some_of_each):
        image, here = nearness.image[rows], nearness.places[rows]
        near, moved = nearness.near[image], nearness.moved_a_little(here, image, one)
        best, asked = np.zeros(len(rows), bool), np.zeros(len(rows), bool)
        for other, tree in enumerate(trees):
            both = nearness.seen[nearness.coverage.zone[rows], other] & (near > 0.0)
            if tree is None or other == one or not both.any():
                continue
            distance, at = tree.query(nearness.together(here[both], image[both]))
            there = tree.query(nearness.together(moved[both], image[both]))[0]
            close = distance <= near[both]
            counts["looked_up"][one, other] = len(distance)
            counts["near"][one, other] = np.count_nonzero(close)
            counts["chance"][one, other] = np.count_nonzero(there <= near[both])
            distances.append(nearness.unit * distance[close])
            best[both] |= close
            asked |= both
            alike = distance <= SAME * near[both]
            if nearness.sight.sizes is not None:
                size = nearness.sight.sizes
                mine, theirs = size[rows[both]], size[nearness.lists[other][at]]
                logs = np.log(mine / theirs)
                alike &= np.abs(logs) <= SAME
                if np.count_nonzero(close) >= LEAST_ITEMS:
                    ratio[one, other] = np.median(logs[close])
                    away = here[both] - nearness.places[nearness.lists[other][at]]
                    away = nearness.unit * away[close] / mine[close, np.newaxis]
                    offset[one, other] = _steady(away)
                apart.append(nearness.unit * distance[close] / np.maximum(mine, theirs)[close])
            counts["same"][one, other] = np.count_nonzero(alike)
        any_near.append(best[asked])
    chance = _smoothed(counts["chance"], counts["looked_up"])
    shares = Shares(counts["looked_up"], counts["near"], chance)
    return NearPairs(
        shares,
        counts["same"],
        ratio,
        offset,
        np.concatenate(distances),
        np.concatenate(apart),
        np.concatenate(any_near).astype(float),
    )


def _steady(away: Floats) -> Floats:
    """The median of differences that are nearly all alike; NaN of others."""
    middle = np.median(away, axis=0)
    spread = np.median(np.abs(away - middle), axis=0)
    return np.where((spread <= STEADY).all(), middle, np.nan)


def _smoothed(chance: Ints, looked_up: Ints) -> Floats:
    """Shares by chance, of few items those of all."""
    overall = (chance.sum() + 1.0) / (looked_up.sum() + 10.0)
    return np.asarray((chance + 20.0 * overall) / (looked_up + 20.0))


class Others(NamedTuple):
    """Items looked up among all other lists: by expert, and over all."""

    shares: Shares
    #: By expert: items all but the same as one of another list, most of them of ``twin``.
    same: Ints
    twin: Ints
    log_ratio: Floats
    distances: Floats
    apart: Floats
    any_near: Floats


def look_up_others(nearness: Nearness) -> Others:
    """The sampled items, and the nearest of another list among the few nearest of all."""
    from scipy.spatial import cKDTree

    rows, n, experts = nearness.sample, len(nearness.families), len(nearness.lists)
    tree = cKDTree(nearness.together(nearness.places, nearness.image))
    image, mine = nearness.image[rows], nearness.families[rows]
    near = nearness.near[image]
    viewers = np.bincount(nearness.coverage.pairs[:, 0], minlength=nearness.coverage.n_zones)
    asked = (viewers[nearness.coverage.zone[rows]] > 1) & (near > 0.0)

    def nearest(places: Floats) -> tuple[Floats, Ints]:
        distance, at = tree.query(nearness.together(places, image), k=min(AROUND, n))
        other = nearness.families[at] != mine[:, np.newaxis]
        first = np.argmax(other, axis=1)
        own = np.arange(len(rows))
        return np.where(other[own, first], distance[own, first], math.inf), at[own, first]

    here = nearness.places[rows]
    distance, at = nearest(here)
    moved = nearest(nearness.moved_a_little(here, image, n))[0]
    close, chance = asked & (distance <= near), asked & (moved <= near)
    counts = [np.bincount(mine[some], minlength=experts) for some in (asked, close, chance)]
    shares = Shares(counts[0], counts[1], _smoothed(counts[2], counts[0]))
    alike, sizes = asked & (distance <= SAME * near), nearness.sight.sizes
    ratio, apart = np.full(experts, np.nan), np.empty(0)
    if sizes is not None:
        logs = np.log(sizes[rows] / sizes[at])
        alike &= np.abs(logs) <= SAME
        apart = nearness.unit * distance[close] / np.maximum(sizes[rows], sizes[at])[close]
        order = np.argsort(mine[close], kind="stable")
        numbers, begins = np.unique(mine[close][order], return_index=True)
        for f, some in zip(numbers, np.split(logs[close][order], begins[1:]), strict=True):
            ratio[f] = np.median(some) if len(some) >= LEAST_ITEMS else np.nan
    same, twin = _twins(mine[alike], nearness.families[at[alike]], experts)
    distances = nearness.unit * distance[close]
    return Others(shares, same, twin, ratio, distances, apart, close[asked].astype(float))


def _twins(mine: Ints, theirs: Ints, experts: int) -> tuple[Ints, Ints]:
    """Of each expert the list with most of the same items, and how many these are."""
    same, twin = np.zeros(experts, np.int64), np.full(experts, -1)
    pairs, count = np.unique(mine * experts + theirs, return_counts=True)
    for at in np.argsort(count, kind="stable"):  # the largest last
        one, other = divmod(int(pairs[at]), experts)
        same[one], twin[one] = count[at], other
    return same, twin
