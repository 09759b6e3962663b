"""How far an item lies from a cluster, in standard deviations of where another would be.

A cluster's mean of feature j is M_j with the uncertainty e_j, and its members' variance is w_j v_g,
as in ``likelihoods.normal.kernel``; so another item is expected at M_j with the variance
w_j v_g + e_j², and the squared distance is the sum of (y_j − M_j)² / (w_j v_g + e_j²).

Where experts differ, y is what the mean expert would have given, and w_j has the square of the
noise factor.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.likelihoods.base import Offsets, Part
from dfcrp.likelihoods.bias_summary import ExpertBias
from dfcrp.likelihoods.normal.shapes import Shape

Floats = NDArray[np.float64]

LOG = "log_"


def parts_of(shape: Shape) -> tuple[tuple[Part, slice], ...]:
    """Parts of a distance and their features: a place and a shape as one each, others singly."""
    found = []
    for first, last in pairwise(np.cumsum([0, *shape.groups]).tolist()):
        names = shape.features[first:last]
        if names == ("x", "y"):
            found.append((Part("position"), slice(first, last)))
        elif names[0].startswith("elongation"):
            found.append((Part("shape"), slice(first, last)))
        else:
            for j, name in enumerate(names, start=first):
                size = name.startswith(LOG)
                words = ("larger", "smaller") if size else ("higher", "lower")
                found.append((Part(name.removeprefix(LOG), *words), slice(j, j + 1)))
    return tuple(found)


def normal_offsets(
    shape: Shape,
    columns: Columns,
    features: Floats,
    row: int,
    bias: ExpertBias | None = None,
    expert: int = 0,
) -> Offsets:
    """Of one item, by its features among all; ``expert`` is the code of whose it is."""
    p, parts = len(shape.features), parts_of(shape)
    group_of = np.repeat(np.arange(len(shape.groups)), shape.groups)
    excess = _log_size_excess(shape, features, row)
    growth = growths(shape, columns)
    feature, noise = features[row], 1.0
    if bias is not None:
        feature, noise = bias.corrected(feature, expert), bias.noise(expert)

    def measure(found: Floats, shared: Floats) -> Floats:
        mean, error, variance = found[:, :p], found[:, p : 2 * p], found[:, 2 * p :][:, group_of]
        none = np.zeros(len(found))
        rates = np.stack([shared[:, at] if at >= 0 else none for at in growth], axis=1)
        spread = noise**2 * np.exp(rates * excess) * variance + error**2
        # Of features that are the same for all items no spread is known, and nothing is away.
        away = (feature - mean) / np.sqrt(np.where(spread > 0.0, spread, np.inf))
        whole = np.linalg.norm(away, axis=1)
        each = [
            away[:, own][:, 0] if part.more else np.linalg.norm(away[:, own], axis=1)
            for part, own in parts
        ]
        return np.stack([whole, *each])

    return Offsets(columns.parameters, tuple(part for part, _ in parts), p, measure)


def _log_size_excess(shape: Shape, features: Floats, row: int) -> Floats:
    """l_ij − l̄_j: the item's log size over the median one, for features whose errors grow."""
    return np.array(
        [features[row, at] - np.median(features[:, at]) if at >= 0 else 0.0 for at in shape.size]
    )


def growths(shape: Shape, columns: Columns) -> list[int]:
    """For each feature the place of its growth in what a draw's clusters share, or -1."""
    slices: dict[str, Any] = columns.slices
    found = []
    for first, last in pairwise(np.cumsum([0, *shape.groups]).tolist()):
        name = "growth_" + "_".join(shape.features[first:last])
        found += [slices[name].start if name in slices else -1] * (last - first)
    return found
