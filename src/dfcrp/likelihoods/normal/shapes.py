"""What may be marked: which numbers describe it, and how these become features of the model.

A shape says which columns its markings have, which features the model sees in their place (log
sizes instead of sizes; an ellipse's elongation and direction as one vector), which of them share a
variance, and which of them say how large the errors of others are. The way back turns the centre of
a cluster into an object again.

Features that are the same for all items say nothing, and the model does without them. Particle
pickers place boxes of one fixed size: the scatter of sizes that such data suggest is zero, and with
it every density grows without bound. So the kernels get the other features alone. What is stored
with a cluster keeps a place for each feature: a silent one has its mean, no error and no variance
there.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.values import Json

Floats = NDArray[np.float64]
#: Likelihoods for any features: a full covariance for each cluster, or variances only.
ANY_FEATURES = ("normal", "diagonal")
Places = NDArray[np.int64]
#: Differences below this, relative to the numbers, are errors of floating-point numbers.
NO_DIFFERENCE = 1e-9


@dataclass(frozen=True)
class Shape:
    """A kind of marking."""

    name: str
    #: What a marking is given as; those in ``positive`` must be above zero.
    columns: tuple[str, ...]
    positive: tuple[str, ...]
    #: What the model sees, and the number of features in each group that shares a variance.
    features: tuple[str, ...]
    groups: tuple[int, ...]
    #: For each feature the log size that its errors grow with, or -1.
    size: tuple[int, ...]
    to_features: Callable[[Floats], Floats]
    #: Columns (..., q) from features (..., p).
    to_columns: Callable[[Floats], Floats]

    @property
    def has_size(self) -> bool:
        """Whether errors grow with an object's size."""
        return max(self.size, default=-1) >= 0


def _as_it_is(values: Floats) -> Floats:
    return values


def _box_features(boxes: Floats) -> Floats:
    return np.concatenate([boxes[..., :2], np.log(boxes[..., 2:])], axis=-1)


def _box_columns(features: Floats) -> Floats:
    return np.concatenate([features[..., :2], np.exp(features[..., 2:])], axis=-1)


def _ellipse_features(ellipses: Floats) -> Floats:
    """x, y, log of the geometric mean diameter, and half the log ratio of the axes as a vector.

    Its direction is twice the angle: an ellipse turned by 180° is the same, one turned by 90° is
    opposite, and near a circle the angle, which then means nothing, hardly matters.
    """
    x, y, major, minor, angle = np.moveaxis(ellipses, -1, 0)
    size = 0.5 * np.log(major * minor)
    ratio, turn = 0.5 * np.log(major / minor), np.deg2rad(2.0 * angle)
    return np.stack([x, y, size, ratio * np.cos(turn), ratio * np.sin(turn)], axis=-1)


def _ellipse_columns(features: Floats) -> Floats:
    x, y, size, along, across = np.moveaxis(features, -1, 0)
    ratio = np.hypot(along, across)
    angle = np.rad2deg(0.5 * np.arctan2(across, along)) % 180.0
    return np.stack([x, y, np.exp(size + ratio), np.exp(size - ratio), angle], axis=-1)


POINTS = Shape(
    name="points",
    columns=("x", "y"),
    positive=(),
    features=("x", "y"),
    groups=(2,),
    size=(-1, -1),
    to_features=_as_it_is,
    to_columns=_as_it_is,
)


BOXES = Shape(
    name="boxes",
    columns=("x", "y", "width", "height"),
    positive=("width", "height"),
    features=("x", "y", "log_width", "log_height"),
    groups=(2, 2),
    size=(2, 3, -1, -1),
    to_features=_box_features,
    to_columns=_box_columns,
)


ELLIPSES = Shape(
    name="ellipses",
    columns=("x", "y", "major", "minor", "angle"),
    positive=("major", "minor"),
    features=("x", "y", "log_size", "elongation_0", "elongation_45"),
    groups=(2, 1, 2),
    size=(2, 2, -1, -1, -1),
    to_features=_ellipse_features,
    to_columns=_ellipse_columns,
)
SHAPES = {shape.name: shape for shape in (POINTS, BOXES, ELLIPSES)}


def shape_of(likelihood: str, columns: tuple[str, ...]) -> Shape:
    """The shape behind a likelihood's name; of any features, one that leaves them as they are."""
    if likelihood in SHAPES:
        return SHAPES[likelihood]
    return Shape(
        name=likelihood,
        columns=columns,
        positive=(),
        features=columns,
        groups=(1,) * len(columns),
        size=(-1,) * len(columns),
        to_features=_as_it_is,
        to_columns=_as_it_is,
    )


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


def stored_places(shape: Shape, heard: Places) -> Json:
    """Where kernels write what they know of a feature and of a group of features."""
    group_of = np.repeat(np.arange(len(shape.groups)), shape.groups)
    return {"feature_place": heard.astype(np.int64), "group_place": np.unique(group_of[heard])}
