"""How far a marking lies from a cluster, in units of the cluster's fitted spread.

With v = y − μ and Σ = [[a, 0, b], [0, a, b], [b, b, d]], as in ``likelihoods.circle.kernel``,

    vᵀ Σ⁻¹ v = (v1² + v2²) / a + (v3 − (b / a) (v1 + v2))² / (d − 2 b² / a).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.geometry import TangentPlanes
from dfcrp.likelihoods.base import Offsets, Part
from dfcrp.likelihoods.circle.columns import PARAMETERS, REST

Floats = NDArray[np.float64]

PARTS = (Part("position"), Part("diameter", "larger", "smaller"))


def circle_offsets(posterior: Any, row: int) -> Offsets:
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
            return spreads(feature, np.column_stack([places, others])) / noise
        ground = TangentPlanes(feature[:1], feature[1:2], items.site.sphere_radius_km)
        above = np.array([0.0, 0.0, feature[2]])
        flat = np.column_stack([*ground.offsets(places[:, 0], places[:, 1]), others])
        return spreads(above, flat) / noise

    return Offsets((*PARAMETERS, *rest), PARTS, 3, measure)


def spreads(feature: Floats, parameters: Floats) -> Floats:
    """Distance, position and signed log diameter in standard deviations; (3, draws)."""
    v = feature - parameters[:, :3]
    a, d, b = parameters[:, 3], parameters[:, 4], parameters[:, 5]
    along = v[:, 2] - b / a * (v[:, 0] + v[:, 1])
    squared = (v[:, 0] ** 2 + v[:, 1] ** 2) / a
    distance = np.sqrt(squared + along**2 / (d - 2.0 * b**2 / a))
    return np.stack((distance, np.sqrt(squared), v[:, 2] / np.sqrt(d)))
