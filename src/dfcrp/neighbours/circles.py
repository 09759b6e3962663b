"""How far apart circles of one object may lie, by their own sizes.

Boxes and ellipses are taken for the circles around them.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.neighbours.neighbourhood import CHUNK, pairs_within, refuse_crowds

Floats = NDArray[np.float64]
Pairs = NDArray[np.int64]

#: Circles that do not overlap, or differ in diameter by more than this factor, are two objects ...
LEARNED_RATIO = 3.0
#: ... unless the closest items of different experts lie this much closer together.
PILOT_FACTOR, PILOT_SHARE = 12.0, 0.2


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
