"""Which items may share a cluster, which compete for one, and how they fall into components.

Neighbours truncate the prior: a cluster is allowed if every two of its members are neighbours.
Subsets of allowed clusters are allowed, so the samplers are exact for the truncated model.
How far apart items of one object may lie goes by their own sizes, where they have any: boxes and
ellipses are taken for the circles around them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.memory import refuse_more_than_memory

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

#: More pairs of neighbours than this take several GB.
MOST_PAIRS = 50_000_000
#: Bytes that a pair takes while neighbours are laid out, at least.
BYTES_PER_PAIR = 48
#: Pairs that are weighed together.
CHUNK = 1 << 18
#: Two items of one expert compete when they lie within so many prior standard deviations.
RIVAL_DEVIATIONS = 6.0
#: Two items of different experts are in contact between these: neither surely of one
#: object nor surely of two.
CONTACT_DEVIATIONS = (2.0, 7.0)
#: Other lists among which the item nearest to one is looked for.
OTHER_LISTS = 3
#: Circles that do not overlap, or differ in diameter by more than this factor, are two objects ...
LEARNED_RATIO = 3.0
#: ... unless the closest items of different experts lie this much closer together.
PILOT_FACTOR, PILOT_SHARE = 12.0, 0.2


@dataclass(frozen=True)
class Neighbourhood:
    """Neighbours, rivals (same expert), contacts (different), components, numbering by place."""

    bounded: bool
    pairs: Pairs
    rivals: Pairs
    contacts: Pairs
    component: NDArray[np.int64]
    numbering: NDArray[np.int64]
    #: Of each item the group that is one object, −1 if it is in none; None: there are no groups.
    groups: NDArray[np.int64] | None = None

    @property
    def original(self) -> NDArray[np.int32]:
        """The input row of each internal number."""
        found = np.empty(len(self.numbering), dtype=np.int32)
        found[self.numbering] = np.arange(len(self.numbering), dtype=np.int32)
        return found


def within_images(pairs: Pairs, images: NDArray[np.int64] | None) -> Pairs:
    """The pairs of which both items are on one image."""
    return pairs if images is None else pairs[images[pairs[:, 0]] == images[pairs[:, 1]]]


def all_pairs(images: NDArray[np.int64]) -> Pairs:
    """Every two items of one image, where nothing but the image keeps items apart."""
    counts = np.bincount(images).astype(float)
    total = float((counts * (counts - 1.0)).sum()) / 2.0
    if total > MOST_PAIRS:
        raise InputError(
            f"without a radius {total:.2g} pairs of items on one image may share an object: more "
            'than fit into memory; give radius="auto" (--radius auto) or a number'
        )
    order = np.argsort(images, kind="stable")
    found = [np.empty((0, 2), np.int64)]
    for rows in np.split(order, np.cumsum(counts.astype(np.int64))[:-1]):
        first, second = np.triu_indices(len(rows), 1)
        found.append(np.column_stack([rows[first], rows[second]]))
    return np.concatenate(found)


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
        refuse_crowds(position[here], widest)
        tree = cKDTree(position[here])
        found += _within(position, reach, tree.query_pairs(widest, output_type="ndarray"), here)
        if len(below):
            near = tree.sparse_distance_matrix(
                cKDTree(position[below]), widest, output_type="ndarray"
            )
            both = np.column_stack([near["i"], len(here) + near["j"]])
            found += _within(position, reach, both, np.concatenate([here, below]))
    return np.concatenate(found)


def in_chunks(pairs: Pairs) -> Iterator[Pairs]:
    """Some pairs at a time: what is worked out for all at once would take several GB."""
    for start in range(0, len(pairs), CHUNK):
        yield pairs[start : start + CHUNK]


def _within(
    position: Floats, reach: Floats, pairs: Pairs, names: NDArray[np.int64]
) -> Iterator[Pairs]:
    """The pairs of ``names`` that are within reach of each other, the smaller index first."""
    for chunk in in_chunks(pairs):
        named = np.sort(names[chunk], axis=1)
        first, second = named[:, 0], named[:, 1]
        distance = np.linalg.norm(position[first] - position[second], axis=1)
        yield named[distance <= np.maximum(reach[first], reach[second])]


def refuse_crowds(position: Floats, reach: float) -> None:
    """Refuse what has surely too many pairs, before memory runs out.

    Points in one square, or cube, with this diagonal are neighbours of each other.
    """
    square = np.floor(position * (math.sqrt(position.shape[1]) / reach))
    ordered = square[np.lexsort(square.T)]
    begins = np.flatnonzero((ordered[1:] != ordered[:-1]).any(axis=1)) + 1
    together = np.diff(begins, prepend=0, append=len(square)).astype(float)
    if (pairs := pairs_among(together)) > MOST_PAIRS:
        raise InputError(
            f"at least {pairs:,.0f} pairs of markings lie within {reach:g} of each other, up to "
            f"{int(together.max()):,} at one place: more than fit into memory; give a smaller "
            "radius= (--radius), or remove copies of the same markings"
        )
    refuse_more_than_memory(
        BYTES_PER_PAIR * pairs,
        f"{pairs:,.0f} pairs of markings or more lie within {reach:g} of each other; the layout",
        "give a smaller radius= (--radius), or remove copies of the same markings",
    )


def refuse_copies(features: Floats, images: NDArray[np.int64] | None, noun: str) -> None:
    """Refuse items of which so many are the same that their pairs are too many.

    The search for the nearest, which comes before that for pairs, would take minutes.
    """
    columns = [*features.T] if images is None else [*features.T, images]
    for some in ([columns[0]], columns):  # one column is quickly counted, and is mostly enough
        together = np.unique(np.column_stack(some), axis=0, return_counts=True)[1].astype(float)
        if (pairs := pairs_among(together)) <= MOST_PAIRS:
            refuse_more_than_memory(
                BYTES_PER_PAIR * pairs if some is columns else 0.0,
                f"{pairs:,.0f} pairs of {noun} are exactly the same; the layout",
                "remove the copies",
            )
            return
    raise InputError(
        f"up to {int(together.max()):,} {noun} are exactly the same: their {pairs:,.0f} pairs are "
        "more than fit into memory; remove the copies"
    )


def pairs_among(together: Floats) -> float:
    """How many pairs there are within groups of these sizes."""
    return float((together * (together - 1.0)).sum()) / 2.0


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


def nearest_pairs(scaled: Floats, most: int | NDArray[np.int64], reach: float = math.inf) -> Pairs:
    """Index pairs (i < j) of which one is among the other's nearest, within reach.

    ``most`` may differ between items. Memory goes with the pairs that are found, not with ``most``.
    """
    from scipy.spatial import cKDTree

    n = len(scaled)
    wanted = np.minimum(np.broadcast_to(most, n) + 1, n)  # an item is nearest to itself
    by_wanted = np.argsort(-wanted, kind="stable")
    tree = cKDTree(scaled)
    found, total, start = [np.empty(0, np.int64)], 0, 0
    while start < n:
        widest = int(wanted[by_wanted[start]])
        rows = by_wanted[start : start + max(CHUNK // widest, 1)]
        start += len(rows)
        near = tree.query(scaled[rows], k=widest, distance_upper_bound=reach)[1]
        near = near.reshape(len(rows), widest)
        first, place = np.nonzero((near < n) & (np.arange(widest) < wanted[rows, np.newaxis]))
        second, first = near[first, place], rows[first]
        low, high = np.minimum(first, second), np.maximum(first, second)
        found.append((low * n + high)[low < high])
        total += len(found[-1])
        if total > 2 * MOST_PAIRS:
            raise InputError(
                f"more than {MOST_PAIRS:,} pairs of items lie close enough to be of one object: "
                "more than fit into memory; give a smaller radius= (--radius) or fewer nearest= "
                "(--nearest), or remove copies of the same items"
            )
    return np.column_stack(np.divmod(np.unique(np.concatenate(found)), n))


def per_image(experts: NDArray[np.int64], images: NDArray[np.int64] | None) -> NDArray[np.int64]:
    """How many experts have items on each item's image."""
    if images is None:
        return np.full(len(experts), len(np.unique(experts)))
    both = np.unique(np.column_stack([images, experts]), axis=0)
    return np.bincount(both[:, 0])[images]


def unique_pairs(pairs: NDArray[np.integer]) -> Pairs:
    """Each pair once, the smaller index first."""
    ordered = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    span = int(ordered.max(initial=0)) + 1
    return np.column_stack(np.divmod(np.unique(ordered[:, 0] * span + ordered[:, 1]), span))


def set_images_apart(scaled: Floats, images: NDArray[np.int64] | None) -> Floats:
    """With one more coordinate in which images lie far apart: searches then stay within each."""
    return scaled if images is None else np.column_stack([scaled, far_apart(scaled) * images])


def far_apart(scaled: Floats) -> float:
    """Farther than any two of these lie from each other."""
    return 16.0 * math.sqrt(scaled.shape[1]) * (float(np.ptp(scaled, axis=0).max()) + 1.0)


def nearest_on_others(
    position: Floats, experts: NDArray[np.int64], images: NDArray[np.int64] | None = None
) -> NDArray[np.int64]:
    """For each item the nearest one on a few other lists of its image; -1 if there is no other.

    Of many lists the nearest item of all would lie far closer than two items of one object usually
    do. Each list is compared with those of about as many items, which come next in that order.
    """
    from scipy.spatial import cKDTree

    n = len(position)
    best, closest = np.full(n, -1, np.int64), np.full(n, math.inf)
    if n == 0:
        return best
    where = np.zeros(n, np.int64) if images is None else images
    each, place, items = np.unique(
        np.column_stack([where, experts]), axis=0, return_inverse=True, return_counts=True
    )
    by_length = np.lexsort((each[:, 1], -items, each[:, 0]))
    turn = np.empty(len(each), np.int64)
    turn[by_length] = np.arange(len(each))
    turn = turn[place.reshape(-1)]  # the item's list, counted by image and then by length
    _, begins, lists = np.unique(each[by_length, 0], return_index=True, return_counts=True)
    image = np.repeat(np.arange(len(lists)), lists)[turn]
    first, lists = begins[image], lists[image]
    apart = far_apart(position)
    tree = cKDTree(np.column_stack([position, apart * turn]))
    for step in range(1, OTHER_LISTS + 1):
        some = np.flatnonzero(lists > step)
        if not len(some):
            break
        other = first[some] + (turn[some] - first[some] + step) % lists[some]
        distance, found = tree.query(np.column_stack([position[some], apart * other]))
        nearer = distance < closest[some]
        best[some[nearer]], closest[some[nearer]] = found[nearer], distance[nearer]
    return best


def side_by_side(features: Floats, images: NDArray[np.int64]) -> Floats:
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


def learned_reach(
    features: Floats, families: NDArray[np.int64], images: NDArray[np.int64] | None = None
) -> tuple[Floats, Floats]:
    """The same where tolerances are learned, in proportion to the data's own lengths.

    Two markings are excluded if their centres lie farther apart than the larger diameter and
    farther than PILOT_FACTOR times a pilot distance, or if their diameters differ by more than
    LEARNED_RATIO and PILOT_FACTOR times a pilot difference. The pilots are low quantiles of the
    distance from a marking to the nearest one of another expert on the same image: about one
    standard deviation where experts agree at all, however small the objects.
    """
    distance, size = np.exp(features[:, 2]), np.full(len(features), math.log(LEARNED_RATIO))
    # Whoever lies within a diameter is a neighbour; searches among copies would take minutes.
    refuse_crowds(places(features), float(distance.min()))
    nearest = _nearest_of_others(places(features), families, images)
    some = nearest >= 0
    if some.any():
        apart = features[some] - features[nearest[some]]
        near = np.quantile(np.linalg.norm(places(apart), axis=1), PILOT_SHARE)
        alike = np.quantile(np.abs(apart[:, 2]), PILOT_SHARE)
        distance = np.maximum(distance, PILOT_FACTOR * near)
        size = np.maximum(size, PILOT_FACTOR * alike)
    return distance, size


def _nearest_of_others(
    position: Floats, families: NDArray[np.int64], images: NDArray[np.int64] | None
) -> NDArray[np.int64]:
    """For each marking the nearest of another family among its few nearest, or -1."""
    from scipy.spatial import cKDTree

    k = min(9, len(position))
    if k < 2:
        return np.full(len(position), -1)
    around = cKDTree(position).query(position, k=k)[1]
    other = families[around] != families[:, np.newaxis]
    if images is not None:
        other &= images[around] == images[:, np.newaxis]
    first = np.argmax(other, axis=1)
    rows = np.arange(len(position))
    return np.where(other[rows, first], around[rows, first], -1)


def auto_pairs(features: Floats, reach: tuple[Floats, Floats]) -> Pairs:
    """Pairs of (x, y, log diameter) within reach in distance and in log diameter."""
    distance, size = reach
    pairs = pairs_within(places(features), distance)
    near = np.empty(len(pairs), bool)
    for start in range(0, len(pairs), CHUNK):
        first, second = pairs[start : start + CHUNK].T
        apart = np.abs(features[first, 2] - features[second, 2])
        near[start : start + CHUNK] = apart <= np.maximum(size[first], size[second])
    return pairs if near.all() else pairs[near]
