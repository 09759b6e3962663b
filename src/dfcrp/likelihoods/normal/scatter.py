"""Where items lie in units of the scatter that the model expects of them (``normal.kernel``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.likelihoods.bias_summary import corrected_all
from dfcrp.likelihoods.normal.offsets import growths, parts_of
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.likelihoods.tail_summary import new_levels
from dfcrp.summaries.tails import Scatter

Floats = NDArray[np.float64]


def normal_scatter(
    posterior: Any, shape: Shape, heard: NDArray[np.int64], *, power: float
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
    return [at for at, name in enumerate(columns.names) if name.startswith("scale_")]
