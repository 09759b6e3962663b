"""How far items lie from their objects, in standard deviations: one by one, and all of them.

A cluster's mean of feature j is M_j with the uncertainty e_j, and its members' variance is w_j v_g,
as in ``likelihoods.normal.kernel``; so another item is expected at M_j with the variance
w_j v_g + e_j², and the squared distance is the sum of (y_j − M_j)² / (w_j v_g + e_j²).

Where experts differ, y is what the mean expert would have given, and w_j has the square of the
noise factor. The scatter of all items is in units of what the model expects of them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.likelihoods.base import Offsets, Part
from dfcrp.likelihoods.differences import ExpertBias, corrected_all, new_levels
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.summaries.tails import Scatter
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

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
    slices: Json = columns.slices
    found = []
    for first, last in pairwise(np.cumsum([0, *shape.groups]).tolist()):
        name = "growth_" + "_".join(shape.features[first:last])
        found += [slices[name].start if name in slices else -1] * (last - first)
    return found


def normal_scatter(
    posterior: Posterior, shape: Shape, heard: NDArray[np.int64], *, power: float
) -> Callable[[NDArray[np.float64]], Scatter] | None:
    """From what the clusters of a draw share; scales are exp(power · stored).

    ``shape`` is that of the features ``heard``, which are not the same for all items.
    """
    items, columns = posterior.items, posterior.draws.columns
    features, noise = corrected_all(posterior.expert_bias, items.features, items.families)
    features, given = features[:, heard], items.features[:, heard]
    group_of = np.repeat(np.arange(len(shape.groups)), shape.groups)
    scales, growth = scales_at(columns), growths(shape, columns)
    if not scales:
        # Draws by another method.
        return None
    excess = np.zeros_like(features)
    for j, at in enumerate(shape.size):
        if at >= 0:
            excess[:, j] = given[:, at] - np.median(given[:, at])
    a = float(posterior.config.likelihood.variance_shape)
    parts = tuple((part.name, own, own.stop - own.start) for part, own in parts_of(shape))

    def of_draw(shared: NDArray[np.float64]) -> Scatter:
        def new(
            rng: np.random.Generator, code: NDArray[np.int64], rows: NDArray[np.int64]
        ) -> Floats:
            variance = a / rng.gamma(a, size=(int(code.max()) + 1, len(shape.groups)))
            deviations = rng.standard_normal((len(code), len(group_of)))
            deviations *= new_levels(columns, shared, len(code), rng)[:, np.newaxis]
            return np.asarray(deviations * np.sqrt(variance[code][:, group_of]))

        rates = np.array([shared[at] if at >= 0 else 0.0 for at in growth])
        spread = np.exp(power * shared[scales][group_of] + 0.5 * rates * excess)
        return Scatter(features, noise[:, np.newaxis] * spread, parts, new)

    return of_draw


def scales_at(columns: Columns) -> list[int]:
    """Where the scales are among what clusters share, group by group."""
    return list(columns.named("scale_"))
