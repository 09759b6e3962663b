"""Which markings may share a cluster, which compete for one, and how they fall into components.

The radius truncates the prior: a cluster is allowed if every two of its members are neighbours.
Subsets of allowed clusters are allowed, so the samplers are exact for the truncated model.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere

Floats = NDArray[np.float64]
Hyper = circle.Hyper | sphere.Hyper
Pairs = NDArray[np.int64]

#: ``auto`` excludes two markings of one object with at most this prior probability.
AUTO_EXCLUSION = 1e-6
#: Where tolerances are learned ``auto`` takes circles that do not overlap, or differ in diameter
#: by more than this factor, for two objects ...
LEARNED_RATIO = 3.0
#: ... unless the closest markings of different experts lie this much closer together.
PILOT_FACTOR, PILOT_SHARE = 12.0, 0.2
#: More pairs of neighbours than this take several GB.
MOST_PAIRS = 50_000_000
#: Pairs that are weighed together.
CHUNK = 1 << 18
#: Two markings of one family compete when they lie within so many prior standard deviations.
RIVAL_DEVIATIONS = 6.0
#: Two markings of different families are in contact between these: neither surely of one
#: object nor surely of two.
CONTACT_DEVIATIONS = (2.0, 7.0)


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbours, rivals (same family), contacts (different), components, numbering by place."""

    bounded: bool
    pairs: Pairs
    rivals: Pairs
    contacts: Pairs
    component: NDArray[np.int64]
    numbering: NDArray[np.int64]


def find_neighbours(
    features: Floats,
    families: NDArray[np.int64],
    radius: float | str | None,
    hyper: Hyper,
    images: NDArray[np.int64] | None = None,
) -> Neighbourhood:
    """Build the neighbourhood for a radius in the units of x and y, ``"auto"`` or None.

    Markings of different ``images`` are no neighbours; with several a radius is needed.
    """
    if images is not None:
        features = _side_by_side(features, images)
    position = places(features)
    bounded = radius is not None
    if radius is None:
        pairs = np.empty((0, 2), dtype=np.int64)
    elif radius == "auto":
        reach = learned_reach(features, families) if hyper.learned else None
        pairs = auto_pairs(features, reach or auto_reach(features[:, 2], hyper))
    else:
        pairs = pairs_within(position, np.full(len(position), float(radius)))
    if images is not None:
        pairs = pairs[images[pairs[:, 0]] == images[pairs[:, 1]]]
    component = components_of(pairs, len(features), bounded)
    rivals, contacts = _close_pairs(features, families, pairs if bounded else None, hyper)
    return Neighbourhood(
        bounded=bounded,
        pairs=pairs,
        rivals=rivals,
        contacts=contacts,
        component=component,
        numbering=number_by_place(_flat(position), component),
    )


def _side_by_side(features: Floats, images: NDArray[np.int64]) -> Floats:
    """Coordinates as if the images lay in rows, well apart: searches then stay within each."""
    across = math.ceil(math.sqrt(float(images.max()) + 1.0))
    extent = np.ptp(features[:, :2], axis=0).max() + float(np.exp(features[:, 2].max()))
    moved = features.copy()
    moved[:, 0] += 16.0 * extent * (images % across)
    moved[:, 1] += 16.0 * extent * (images // across)
    return moved


def places(features: Floats) -> Floats:
    """Where markings lie: (x, y), or on a sphere, whose features have a fourth column, in space."""
    return features[:, :2] if features.shape[1] == 3 else features[:, [0, 1, 3]]


def _flat(position: Floats) -> Floats:
    """Places of a sphere on a map of equal areas; places in a plane as they are."""
    if position.shape[1] == 2:
        return position
    x, y, z = position.T
    return np.column_stack([np.arctan2(y, x) * np.linalg.norm(position, axis=1), z])


def mean_variances(log_diameter: Floats, hyper: Hyper) -> tuple[Floats, Floats]:
    """Prior means of the position and log diameter variances at each log diameter."""
    if hyper.learned:
        away = log_diameter - hyper.level
        scale_x, growth_x, scale_d, growth_d = hyper.law[:4]
        return np.exp(scale_x + growth_x * away), np.exp(scale_d + growth_d * away)
    held = np.maximum(log_diameter, hyper.floor)
    return hyper.kappa_x * held**hyper.eta_x, hyper.kappa_d * held**hyper.eta_d


def auto_reach(log_diameter: Floats, hyper: Hyper) -> tuple[Floats, Floats]:
    """Distance and difference of log diameter beyond which ``auto`` excludes a pair.

    Two markings of one object differ by N(0, 2a) in x and in y, so their distance exceeds ρ with
    probability at most P(a > A) + exp(−ρ² / 4A) for any A. Half of AUTO_EXCLUSION goes to each
    term: A is a's prior quantile and ρ = sqrt(4 A log(2/ε)). The size difference is treated
    alike with d and the normal tail.
    """
    from scipy.special import gammainccinv, ndtri

    half = AUTO_EXCLUSION / 2.0
    mean_a, mean_d = mean_variances(log_diameter, hyper)
    extreme_a = gammainccinv(hyper.tau_x * mean_a, half) / hyper.tau_x
    extreme_d = gammainccinv(hyper.tau_d * mean_d, half) / hyper.tau_d
    distance = np.sqrt(4.0 * extreme_a * math.log(1.0 / half))
    size = np.sqrt(2.0 * extreme_d) * -ndtri(half / 2.0)
    return distance, size


def learned_reach(features: Floats, families: NDArray[np.int64]) -> tuple[Floats, Floats]:
    """The same where tolerances are learned, in proportion to the data's own lengths.

    Two markings are excluded if their centres lie farther apart than the larger diameter and
    farther than PILOT_FACTOR times a pilot distance, or if their diameters differ by more than
    LEARNED_RATIO and PILOT_FACTOR times a pilot difference. The pilots are low quantiles of the
    distance from a marking to the nearest one of another expert: about one standard deviation
    where experts agree at all, however small the objects.
    """
    distance, size = np.exp(features[:, 2]), np.full(len(features), math.log(LEARNED_RATIO))
    nearest = _nearest_of_others(places(features), families)
    some = nearest >= 0
    if some.any():
        apart = features[some] - features[nearest[some]]
        near = np.quantile(np.linalg.norm(places(apart), axis=1), PILOT_SHARE)
        alike = np.quantile(np.abs(apart[:, 2]), PILOT_SHARE)
        distance = np.maximum(distance, PILOT_FACTOR * near)
        size = np.maximum(size, PILOT_FACTOR * alike)
    return distance, size


def _nearest_of_others(position: Floats, families: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each marking the nearest of another family among its few nearest, or -1."""
    from scipy.spatial import cKDTree

    k = min(9, len(position))
    if k < 2:
        return np.full(len(position), -1)
    around = cKDTree(position).query(position, k=k)[1]
    other = families[around] != families[:, np.newaxis]
    first = np.argmax(other, axis=1)
    rows = np.arange(len(position))
    return np.where(other[rows, first], around[rows, first], -1)


def auto_pairs(features: Floats, reach: tuple[Floats, Floats]) -> Pairs:
    """Pairs of (x, y, log diameter) within reach in distance and in log diameter."""
    distance, size = reach
    pairs = pairs_within(places(features), distance)
    first, second = pairs[:, 0], pairs[:, 1]
    apart = np.abs(features[first, 2] - features[second, 2])
    return pairs[apart <= np.maximum(size[first], size[second])]


def pairs_within(position: Floats, reach: Floats) -> Pairs:
    """Index pairs (i < j) whose distance is at most the larger of their reaches.

    Points are handled by octaves of reach, each searched among those of no larger reach, so a
    few far-reaching points do not widen the search of the many.
    """
    from scipy.spatial import cKDTree

    octave = np.floor(np.log2(reach / reach.min())).astype(int)
    found = [np.empty((0, 2), dtype=np.int64)]
    for level in np.unique(octave):
        here = np.flatnonzero(octave == level)
        below = np.flatnonzero(octave < level)
        widest = float(reach[here].max())
        _refuse_crowds(position[here], widest)
        tree = cKDTree(position[here])
        found += _within(position, reach, tree.query_pairs(widest, output_type="ndarray"), here)
        if len(below):
            near = tree.sparse_distance_matrix(
                cKDTree(position[below]), widest, output_type="ndarray"
            )
            both = np.column_stack([near["i"], len(here) + near["j"]])
            found += _within(position, reach, both, np.concatenate([here, below]))
    return np.concatenate(found)


def _in_chunks(pairs: Pairs) -> Iterator[Pairs]:
    """Some pairs at a time: what is worked out for all at once would take several GB."""
    for start in range(0, len(pairs), CHUNK):
        yield pairs[start : start + CHUNK]


def _within(
    position: Floats, reach: Floats, pairs: Pairs, names: NDArray[np.int64]
) -> Iterator[Pairs]:
    """The pairs of ``names`` that are within reach of each other, the smaller index first."""
    for chunk in _in_chunks(pairs):
        named = np.sort(names[chunk], axis=1)
        first, second = named[:, 0], named[:, 1]
        distance = np.linalg.norm(position[first] - position[second], axis=1)
        yield named[distance <= np.maximum(reach[first], reach[second])]


def _refuse_crowds(position: Floats, reach: float) -> None:
    """Refuse what has surely too many pairs, before memory runs out.

    Points in one square, or cube, with this diagonal are neighbours of each other.
    """
    square = np.floor(position * (math.sqrt(position.shape[1]) / reach))
    ordered = square[np.lexsort(square.T)]
    begins = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
    together = np.diff(begins, prepend=0, append=len(square)).astype(float)
    pairs = float((together * (together - 1.0)).sum()) / 2.0
    if pairs > MOST_PAIRS:
        raise InputError(
            f"at least {pairs:.2g} pairs of markings lie within {reach:g} of each other, up to "
            f"{int(together.max()):,} at one place: more than fit into memory; give a smaller "
            "radius= (--radius), or remove copies of the same markings"
        )


def _close_pairs(
    features: Floats, families: NDArray[np.int64], pairs: Pairs | None, hyper: Hyper
) -> tuple[Pairs, Pairs]:
    """Rivals and contacts, by distance in prior standard deviations of position and size."""
    mean_a, mean_d = mean_variances(features[:, 2], hyper)
    if pairs is None:
        pairs = pairs_within(places(features), max(CONTACT_DEVIATIONS) * np.sqrt(mean_a))
    low, high = CONTACT_DEVIATIONS
    rivals, contacts = [pairs[:0]], [pairs[:0]]
    for chunk in _in_chunks(pairs):
        first, second = chunk[:, 0], chunk[:, 1]
        apart = features[first] - features[second]
        wide_a = np.maximum(mean_a[first], mean_a[second])
        wide_d = np.maximum(mean_d[first], mean_d[second])
        squared = (places(apart) ** 2).sum(axis=1)
        scaled = np.sqrt(squared / wide_a + apart[:, 2] ** 2 / wide_d)
        relatives = families[first] == families[second]
        rivals.append(chunk[relatives & (scaled <= RIVAL_DEVIATIONS)])
        contacts.append(chunk[~relatives & (scaled >= low) & (scaled <= high)])
    return np.concatenate(rivals), np.concatenate(contacts)


def components_of(pairs: Pairs, n: int, bounded: bool) -> NDArray[np.int64]:
    """The connected component of each marking; without bounds there is one."""
    if not bounded:
        return np.zeros(n, dtype=np.int64)
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    graph = coo_array((np.ones(len(pairs), np.int8), (pairs[:, 0], pairs[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def number_by_place(position: Floats, component: NDArray[np.int64]) -> NDArray[np.int64]:
    """Internal numbers: components together, and near each other what is near in the image."""
    low, high = position.min(axis=0), position.max(axis=0)
    side = max(float((high - low).max()), 1e-300) / max(1.0, math.sqrt(len(position) / 8.0))
    cell = np.floor((position - low) / side).astype(np.int64)
    place = cell[:, 1] * (cell[:, 0].max() + 1) + cell[:, 0]
    first_place = np.full(component.max() + 1, np.iinfo(np.int64).max)
    np.minimum.at(first_place, component, place)
    by_place = np.lexsort((np.arange(len(place)), place, component, first_place[component]))
    numbering = np.empty(len(place), dtype=np.int64)
    numbering[by_place] = np.arange(len(place))
    return numbering
