"""Where markings lie in units of the scatter that the law of variances expects (``circle.kernel``).

On a sphere places are points in space, in km: near an object the sphere is flat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.geometry import unit_vectors
from dfcrp.likelihoods.bias_summary import corrected_all
from dfcrp.likelihoods.circle.columns import LAW
from dfcrp.likelihoods.tail_summary import new_levels
from dfcrp.summaries.tails import Scatter

Floats = NDArray[np.float64]


def circle_scatter(posterior: Any) -> Callable[[Floats], Scatter] | None:
    """From what the clusters of a draw share."""
    items, model = posterior.items, posterior.config.likelihood
    features, noise = corrected_all(posterior.expert_bias, items.features, items.families)
    log_sizes = features[:, 2]
    places = features[:, :2]
    if items.site.on_sphere:
        places = items.site.sphere_radius_km * unit_vectors(places[:, 0], places[:, 1])
    values = np.column_stack([places, log_sizes])
    wide = values.shape[1] - 1
    level = float(np.median(items.features[:, 2]))
    slices: dict[str, slice] = posterior.draws.columns.slices
    learned = LAW[0] in slices
    if model.tolerances == "learned" and not learned:
        # Draws by another method.
        return None
    unit = 1.0 if items.site.units != "deg" or learned else items.site.metres_per_pixel / 1000.0
    shapes = _shapes(model, log_sizes - np.log(unit), learned=learned)
    parts = (("position", slice(0, wide), 2), ("diameter", slice(wide, wide + 1), 1))

    def of_draw(shared: Floats) -> Scatter:
        def new(
            rng: np.random.Generator, code: NDArray[np.int64], rows: NDArray[np.int64]
        ) -> Floats:
            first = rows[np.unique(code, return_index=True)[1]]
            made = rng.standard_normal((len(code), wide + 1))
            made[:, 2:wide] = 0.0
            for part, shape in ((slice(0, wide), shapes[0]), (slice(wide, None), shapes[1])):
                ratio = rng.gamma(shape[first]) / shape[first]
                made[:, part] *= np.sqrt(ratio[code])[:, np.newaxis]
            made *= new_levels(posterior.draws.columns, shared, len(code), rng)[:, np.newaxis]
            return made

        if learned:
            scale_x, growth_x, scale_d, growth_d = (float(shared[slices[name]][0]) for name in LAW)
            above = log_sizes - level
            variance = np.exp(scale_x + growth_x * above), np.exp(scale_d + growth_d * above)
        else:
            at = np.maximum(log_sizes - np.log(unit), model.log_diameter_floor)
            variance = model.kappa_x * at**model.eta_x, model.kappa_d * at**model.eta_d
        place, size = (noise * np.sqrt(one) for one in variance)
        spread = np.column_stack([*[unit ** (not learned) * place] * wide, size])
        return Scatter(values, spread, parts, new)

    return of_draw


def _shapes(model: Any, log_sizes: Floats, *, learned: bool) -> tuple[Floats, Floats]:
    """Shapes of the Gamma laws of both variances, at each marking's size."""
    if learned:
        return np.full(len(log_sizes), model.nu_x), np.full(len(log_sizes), model.nu_d)
    at = np.maximum(log_sizes, model.log_diameter_floor)
    return (
        model.tau_x * model.kappa_x * at**model.eta_x,
        model.tau_d * model.kappa_d * at**model.eta_d,
    )
