"""Which items described by numbers may share a cluster.

Memory stays linear in the number of items: each has a bounded number of nearest ones. As with a
radius, a cluster is allowed if every two of its members are candidates for each other, so the
sampler is exact for the prior truncated to such clusters.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.neighbourhood import (
    CONTACT_DEVIATIONS,
    RIVAL_DEVIATIONS,
    Neighbourhood,
    Pairs,
    all_pairs,
    auto_pairs,
    components_of,
    in_chunks,
    learned_reach,
    nearest_pairs,
    number_by_place,
    pairs_within,
    per_image,
    set_images_apart,
    side_by_side,
    unique_pairs,
    within_images,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: ``auto`` lets items share a cluster up to so many standard deviations (by the pilot) in each
#: feature, on average, ...
REACH = 20.0
#: ... and with at most so many nearest ones for each, plus a few for each expert of the image.
MOST_NEAREST, MOST_PER_EXPERT = 64, 8
#: Nearest items that are looked at for rivals and contacts where everything may share a cluster.
LOOKED_AT = 24
#: Contacts per item where every item is by an expert of its own, picked at random.
RANDOM_CONTACTS = 2
#: Standard deviations are counted as for three features, those of a circle.
USUAL_FEATURES = 3.0


def find_feature_neighbours(
    shape: Shape,
    features: Floats,
    experts: Codes,
    scales: Floats,
    *,
    radius: float | str | None,
    nearest: int | None,
    candidates: Pairs | None,
    images: Codes | None = None,
    origin: Floats | float = 0.0,
    heard: Codes | None = None,
) -> Neighbourhood:
    """Candidates as given; or the ``nearest``; or by the radius, a number, ``"auto"`` or None.

    Only the features that are ``heard`` count, if not all are (``normal.shapes``), but for those
    that say how far an item reaches.

    ``features`` are measured from ``origin``, and ``scales`` (n, p) are standard deviations within
    an object. A number is a distance of x and y for shapes in a plane, else of features divided by
    their standard deviations. Items of different ``images`` are no neighbours.
    """
    counted, scales = (
        (features, scales) if heard is None else (features[:, heard], scales[:, heard])
    )
    scaled = set_images_apart(counted / np.exp(np.log(scales).mean(axis=0)), images)
    mixture = len(np.unique(experts)) == len(experts)
    pairs: Pairs | None
    if candidates is not None:
        pairs = candidates
    elif nearest is not None:
        pairs = nearest_pairs(scaled, nearest)
    elif radius is None or (radius == "auto" and mixture):
        pairs = None if images is None else all_pairs(images)
    elif radius == "auto":
        pairs = _auto(shape, features + origin, experts, scaled, images)
    else:
        pairs = _within(shape, features, float(radius), images)
    bounded = pairs is not None
    looked_at = pairs if pairs is not None else nearest_pairs(scaled, LOOKED_AT)
    looked_at = within_images(looked_at, images)
    rivals, contacts = close_pairs(counted, experts, scales, looked_at)
    if mixture:
        contacts = _random_pairs(len(features)) if not bounded else looked_at
    component = components_of(looked_at, len(features), bounded)
    return Neighbourhood(
        bounded=bounded,
        pairs=looked_at if bounded else np.empty((0, 2), dtype=np.int64),
        rivals=rivals,
        contacts=contacts,
        component=component,
        numbering=number_by_place(_plane(scaled), component),
    )


def _auto(
    shape: Shape, features: Floats, experts: Codes, scaled: Floats, images: Codes | None
) -> Pairs:
    """Of shapes with a size: as for circles around them. Else by standard deviations."""
    if shape.has_size:
        columns = shape.to_columns(features)
        sizes = columns[:, [shape.columns.index(name) for name in shape.positive]]
        circles = np.column_stack([features[:, :2], np.log(sizes.max(axis=1))])
        if images is not None:
            circles = side_by_side(circles, images)
        return auto_pairs(circles, learned_reach(circles, experts, images))
    most = MOST_NEAREST + MOST_PER_EXPERT * per_image(experts, images)
    return nearest_pairs(scaled, most, REACH * math.sqrt(scaled.shape[1] - (images is not None)))


def _within(shape: Shape, features: Floats, radius: float, images: Codes | None) -> Pairs:
    from scipy.spatial import cKDTree

    if shape.columns[:2] == ("x", "y"):
        places = features[:, :2]
        if images is not None:
            unsized = np.column_stack([places, np.full(len(places), math.log(radius))])
            places = side_by_side(unsized, images)[:, :2]
        return pairs_within(places, np.full(len(features), radius))
    spread = features.std(axis=0)
    scaled = set_images_apart(features / np.where(spread > 0.0, spread, 1.0), images)
    found: Pairs = cKDTree(scaled).query_pairs(radius, output_type="ndarray").astype(np.int64)
    return found


def close_pairs(
    features: Floats, experts: Codes, scales: Floats, pairs: Pairs
) -> tuple[Pairs, Pairs]:
    """Rivals and contacts, by distance in standard deviations within an object."""
    low, high = CONTACT_DEVIATIONS
    rivals, contacts = [pairs[:0]], [pairs[:0]]
    for chunk in in_chunks(pairs):
        first, second = chunk[:, 0], chunk[:, 1]
        wide = np.maximum(scales[first], scales[second])
        apart = (((features[first] - features[second]) / wide) ** 2).sum(axis=1)
        scaled = np.sqrt(apart * USUAL_FEATURES / features.shape[1])
        relatives = experts[first] == experts[second]
        rivals.append(chunk[relatives & (scaled <= RIVAL_DEVIATIONS)])
        contacts.append(chunk[~relatives & (scaled >= low) & (scaled <= high)])
    return np.concatenate(rivals), np.concatenate(contacts)


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
