"""Features that are the same for all items say nothing, and the model does without them.

Particle pickers place boxes of one fixed size: the scatter of sizes that such data suggest is zero,
and with it every density grows without bound. So the kernels get the other features alone. What is
stored with a cluster keeps a place for each feature: a silent one has its mean, no error and no
variance there.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.shapes import Shape

Floats = NDArray[np.float64]
Places = NDArray[np.int64]

#: Differences below this, relative to the numbers, are errors of floating-point numbers.
NO_DIFFERENCE = 1e-9


def heard_features(features: Floats, origin: Floats | float = 0.0) -> Places:
    """Which features differ between items, in order; all of them if none does.

    ``features`` are measured from ``origin``.
    """
    largest = np.abs(features + origin).max(axis=0)
    differ = np.flatnonzero(np.ptp(features, axis=0) > NO_DIFFERENCE * largest)
    return differ if len(differ) else np.arange(features.shape[1])


def without_silent(shape: Shape, heard: Places) -> Shape:
    """A shape of the features that are heard; it has no way back to columns."""
    if len(heard) == len(shape.features):
        return shape
    place = {int(old): new for new, old in enumerate(heard)}
    starts = np.cumsum([0, *shape.groups]).tolist()
    groups = [sum(j in place for j in range(a, b)) for a, b in pairwise(starts)]
    return replace(
        shape,
        features=tuple(shape.features[j] for j in heard),
        groups=tuple(count for count in groups if count),
        size=tuple(place.get(shape.size[j], -1) for j in heard),
    )


def stored_places(shape: Shape, heard: Places) -> dict[str, Any]:
    """Where kernels write what they know of a feature and of a group of features."""
    group_of = np.repeat(np.arange(len(shape.groups)), shape.groups)
    return {"feature_place": heard.astype(np.int64), "group_place": np.unique(group_of[heard])}
