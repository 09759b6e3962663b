"""What may be marked: which numbers describe it, and how these become features of the model.

A shape says which columns its markings have, which features the model sees in their place (log
sizes instead of sizes; an ellipse's elongation and direction as one vector), which of them share a
variance, and which of them say how large the errors of others are. The way back turns the centre of
a cluster into an object again.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


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
#: Likelihoods for any features: a full covariance for each cluster, or variances only.
ANY_FEATURES = ("normal", "diagonal")


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
