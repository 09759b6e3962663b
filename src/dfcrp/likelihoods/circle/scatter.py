"""What circles store with every draw, and how far markings lie from their objects by it.

Distances are in standard deviations, as fitted and as expected. The distance of a marking from a
cluster is in units of the cluster's fitted spread. With v = y − μ and Σ = [[a, 0, b], [0, a, b],
[b, b, d]], as in ``likelihoods.circle.plane``,

    vᵀ Σ⁻¹ v = (v1² + v2²) / a + (v3 − (b / a) (v1 + v2))² / (d − 2 b² / a).

The scatter of all markings is in units of what the law of variances expects (``circle.kernel``). On
a sphere places are points in space, in km: near an object the sphere is flat.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws, shared_variable
from dfcrp.geometry import TangentPlanes, unit_vectors
from dfcrp.likelihoods.base import Offsets, Part
from dfcrp.likelihoods.circle.hyper import CircleSettings, length_unit
from dfcrp.likelihoods.differences import corrected_all, new_levels
from dfcrp.summaries.tails import Scatter

if TYPE_CHECKING:
    from dfcrp.likelihoods.circle.plane import CircleHyper
    from dfcrp.likelihoods.circle.sphere import SphereHyper
    from dfcrp.posterior.posterior import Posterior

#: Where it is learned, the law of the variances: log variance of position at the median diameter
#: and its growth with log diameter, then the same of log diameter.
LAW = ("scale_x", "growth_x", "scale_d", "growth_d")
LAW_WORDS = {
    "scale_x": "scatter of positions",
    "growth_x": "how the scatter of positions grows with diameter",
    "scale_d": "scatter of diameters",
    "growth_d": "how the scatter of diameters grows with diameter",
}
#: What ``spreads`` gives, in the order of LAW.
SPREADS = ("position", "position_growth", "diameter_percent", "diameter_growth")
#: Of these, what is about diameters.
OF_DIAMETERS = frozenset(SPREADS[2:])
#: Parts of the law that only items of different sizes speak of.
GROWTHS = frozenset({"growth_x", "growth_d"})
#: The parameters of a cluster.
PARAMETERS = ("x", "y", "log_diameter", "var_position", "var_log_diameter", "covariance")
#: What single precision cuts off of x and y, where that matters: on a sphere, where they are
#: longitude and latitude in degrees and all else is in km, and in a plane far from its origin.
REST = ("x_rest", "y_rest")
#: Where experts differ: in the plane along x and y, on a sphere to the east and north.
AXES = ("x", "y", "log_diameter")
CIRCLE_COLUMNS = Columns.plain(PARAMETERS, LAW)
CIRCLE_COLUMNS_WITH_REST = Columns.plain((*PARAMETERS, *REST), LAW)


def circle_columns(hyper: CircleHyper | SphereHyper, *, with_rest: bool = False) -> Columns:
    """What circles store with every draw, but for how experts differ."""
    columns = CIRCLE_COLUMNS_WITH_REST if with_rest else CIRCLE_COLUMNS
    return columns if hyper.learned else columns._replace(shared=())


def spreads(draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Standard deviations at the median diameter and how variances grow with diameter.

    ``position`` is in the units of the data, ``diameter_percent`` relative to the diameter; a
    growth of g means that the variance is proportional to diameter^g. Nothing if fixed.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for name, stored in zip(SPREADS, LAW, strict=True):
        values = shared_variable(draws, stored)
        if values is not None:
            found[name] = values
    if found:
        found["position"] = np.exp(0.5 * found["position"])
        found["diameter_percent"] = 100.0 * np.exp(0.5 * found["diameter_percent"])
    return found


Floats = NDArray[np.float64]

PARTS = (Part("position"), Part("diameter", "larger", "smaller"))


def circle_offsets(posterior: Posterior, row: int) -> Offsets:
    """Of one marking; where experts differ, as the mean expert would have drawn it.

    On a sphere the clusters are seen from above the marking.
    """
    items, row = posterior.drawn_with(row)
    bias = posterior.expert_bias
    feature, noise = items.features[row], 1.0
    if bias is not None:
        expert = int(items.families[row])
        feature, noise = bias.corrected(feature, expert), bias.noise(expert)
    rest = REST if REST[0] in posterior.draws.columns.parameters else ()

    def measure(found: Floats, _: Floats) -> Floats:
        places, others = found[:, :2].astype(np.float64), found[:, 2 : len(PARAMETERS)]
        if rest:
            places += found[:, len(PARAMETERS) :]
        if not items.site.on_sphere:
            return deviations(feature, np.column_stack([places, others])) / noise
        ground = TangentPlanes(feature[:1], feature[1:2], items.site.sphere_radius_km)
        above = np.array([0.0, 0.0, feature[2]])
        flat = np.column_stack([*ground.offsets(places[:, 0], places[:, 1]), others])
        return deviations(above, flat) / noise

    return Offsets((*PARAMETERS, *rest), PARTS, 3, measure)


def deviations(feature: Floats, parameters: Floats) -> Floats:
    """Distance, position and signed log diameter in standard deviations; (3, draws)."""
    v = feature - parameters[:, :3]
    a, d, b = parameters[:, 3], parameters[:, 4], parameters[:, 5]
    along = v[:, 2] - b / a * (v[:, 0] + v[:, 1])
    squared = (v[:, 0] ** 2 + v[:, 1] ** 2) / a
    distance = np.sqrt(squared + along**2 / (d - 2.0 * b**2 / a))
    return np.stack((distance, np.sqrt(squared), v[:, 2] / np.sqrt(d)))


def circle_scatter(posterior: Posterior) -> Callable[[Floats], Scatter] | None:
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
    in_pixels = items.site.units == "deg" and not learned
    unit = length_unit(model, items.site) if in_pixels else 1.0
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


def _shapes(model: CircleSettings, log_sizes: Floats, *, learned: bool) -> tuple[Floats, Floats]:
    """Shapes of the Gamma laws of both variances, at each marking's size."""
    if learned:
        return np.full(len(log_sizes), model.nu_x), np.full(len(log_sizes), model.nu_d)
    at = np.maximum(log_sizes, model.log_diameter_floor)
    return (
        model.tau_x * model.kappa_x * at**model.eta_x,
        model.tau_d * model.kappa_d * at**model.eta_d,
    )
