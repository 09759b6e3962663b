"""Which items may share a cluster when they are not circles in a plane.

Memory stays linear in the number of items: each has a bounded number of nearest ones. As with a
radius, a cluster is allowed if every two of its members are candidates for each other, so the
sampler is exact for the prior truncated to such clusters.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.plane import (
    CONTACT_DEVIATIONS,
    RIVAL_DEVIATIONS,
    Neighbourhood,
    Pairs,
    auto_pairs,
    components_of,
    learned_reach,
    number_by_place,
    pairs_within,
)

Floats = NDArray[np.float64]

#: ``auto`` lets items share a cluster up to so many standard deviations (by the pilot) in each
#: feature, on average, ...
REACH = 20.0
#: ... and with at most so many nearest ones for each, plus a few for each family.
MOST_NEAREST, MOST_PER_FAMILY = 64, 8
#: Nearest items that are looked at for rivals and contacts where everything may share a cluster.
LOOKED_AT = 24
#: Contacts per item where there are no families, picked at random.
RANDOM_CONTACTS = 2
#: Standard deviations are counted as for three features, those of a circle.
USUAL_FEATURES = 3.0


def find_feature_neighbours(
    shape: Shape,
    features: Floats,
    families: NDArray[np.int64],
    scales: Floats,
    *,
    radius: float | str | None,
    nearest: int | None,
    candidates: Pairs | None,
) -> Neighbourhood:
    """Candidates as given; or the ``nearest``; or by the radius, a number, ``"auto"`` or None.

    ``scales`` (n, p) are standard deviations within an object. A number is a distance of x and y
    for shapes in a plane, else of features divided by their standard deviations.
    """
    scaled = features / np.exp(np.log(scales).mean(axis=0))
    mixture = len(np.unique(families)) == len(families)
    pairs: Pairs | None
    if candidates is not None:
        pairs = candidates
    elif nearest is not None:
        pairs = nearest_pairs(scaled, nearest)
    elif radius is None or (radius == "auto" and mixture):
        pairs = None
    elif radius == "auto":
        pairs = _auto(shape, features, families, scaled)
    else:
        pairs = _within(shape, features, float(radius))
    bounded = pairs is not None
    looked_at = pairs if pairs is not None else nearest_pairs(scaled, LOOKED_AT)
    rivals, contacts = close_pairs(features, families, scales, looked_at)
    if mixture:
        contacts = _random_pairs(len(features)) if not bounded else looked_at
    component = components_of(looked_at, len(features), bounded)
    return Neighbourhood(
        bounded=bounded,
        pairs=pairs if pairs is not None else np.empty((0, 2), dtype=np.int64),
        rivals=rivals,
        contacts=contacts,
        component=component,
        numbering=number_by_place(_plane(scaled), component),
    )


def _auto(shape: Shape, features: Floats, families: NDArray[np.int64], scaled: Floats) -> Pairs:
    """Of shapes with a size: as for circles around them. Else by standard deviations."""
    if shape.has_size:
        columns = shape.to_columns(features)
        sizes = columns[:, [shape.columns.index(name) for name in shape.positive]]
        circles = np.column_stack([features[:, :2], np.log(sizes.max(axis=1))])
        return auto_pairs(circles, learned_reach(circles, families))
    most = MOST_NEAREST + MOST_PER_FAMILY * len(np.unique(families))
    return nearest_pairs(scaled, most, REACH * math.sqrt(features.shape[1]))


def _within(shape: Shape, features: Floats, radius: float) -> Pairs:
    from scipy.spatial import cKDTree

    if shape.columns[:2] == ("x", "y"):
        return pairs_within(features[:, :2], np.full(len(features), radius))
    spread = features.std(axis=0)
    tree = cKDTree(features / np.where(spread > 0.0, spread, 1.0))
    found: Pairs = tree.query_pairs(radius, output_type="ndarray").astype(np.int64)
    return found


def nearest_pairs(scaled: Floats, most: int, reach: float = math.inf) -> Pairs:
    """Index pairs (i < j) of which one is among the other's nearest, within reach."""
    from scipy.spatial import cKDTree

    n = len(scaled)
    most = min(most + 1, n)
    near = cKDTree(scaled).query(scaled, k=most, distance_upper_bound=reach)[1]
    near = near.reshape(n, most)
    first = np.repeat(np.arange(n), most)
    second = near.ravel()
    other = (second < n) & (second != first)  # n stands for none
    return unique_pairs(np.column_stack([first[other], second[other]]))


def unique_pairs(pairs: NDArray[Any]) -> Pairs:
    """Each pair once, the smaller index first."""
    ordered = np.sort(np.asarray(pairs, dtype=np.int64).reshape(-1, 2), axis=1)
    span = int(ordered.max(initial=0)) + 1
    return np.column_stack(np.divmod(np.unique(ordered[:, 0] * span + ordered[:, 1]), span))


def close_pairs(
    features: Floats, families: NDArray[np.int64], scales: Floats, pairs: Pairs
) -> tuple[Pairs, Pairs]:
    """Rivals and contacts, by distance in standard deviations within an object."""
    first, second = pairs[:, 0], pairs[:, 1]
    wide = np.maximum(scales[first], scales[second])
    apart = (((features[first] - features[second]) / wide) ** 2).sum(axis=1)
    scaled = np.sqrt(apart * USUAL_FEATURES / features.shape[1])
    relatives = families[first] == families[second]
    low, high = CONTACT_DEVIATIONS
    middling = (scaled >= low) & (scaled <= high)
    return pairs[relatives & (scaled <= RIVAL_DEVIATIONS)], pairs[~relatives & middling]


def _random_pairs(n: int) -> Pairs:
    """Pairs of any two items, always the same ones."""
    rng = np.random.default_rng(n)
    first, second = rng.integers(n, size=(2, RANDOM_CONTACTS * n))
    other = first != second
    return unique_pairs(np.column_stack([first[other], second[other]]))


def _plane(scaled: Floats) -> Floats:
    """Two coordinates to number the items by."""
    if scaled.shape[1] == 1:
        return np.column_stack([scaled, np.zeros(len(scaled))])
    return scaled[:, :2]
