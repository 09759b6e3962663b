"""How likely an expert is to find an object of a given diameter, under the detection prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.answers import parameters_of
from dfcrp.priors.detection.kernel import Detection, with_own
from dfcrp.priors.detection.skills import shares_on_images
from dfcrp.summaries.streaming import Interval, summarise

#: Evenly spaced draws that the curves are made of.
MAX_DRAWS = 400

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SensitivityCurves:
    """Posterior mean and 95 % interval by expert and diameter: (experts, levels)."""

    diameter: Floats
    sensitivity: Interval


def sensitivity_curves(posterior: Any) -> SensitivityCurves:
    """The curve of each expert at the middle of every level of size.

    An object is of class g with a probability ∝ Σ_v Λ_v π_vg, whatever its size.
    """
    prior, rows = parameters_of(posterior, MAX_DRAWS)
    curves = np.array([_curves(with_own(prior, row.copy())) for row in rows])
    middle = prior.low + prior.step * (np.arange(len(prior.away)) + 0.5)
    return SensitivityCurves(np.exp(middle), summarise(curves))


def _curves(prior: Detection) -> Floats:
    """(experts, levels) at one draw's parameters."""
    parameters, person = prior.parameters, prior.person
    share = shares_on_images(prior, parameters.class_weight, parameters.image_ease)
    weight = (parameters.expected_objects @ share)[: prior.real]
    logit = parameters.notice[: prior.real, :, None] + parameters.slope[:, None] * prior.away
    noticed = 1.0 / (1.0 + np.exp(-logit))  # (classes, persons, levels)
    listing = np.where(prior.lists[person] > 1, parameters.listing[: prior.real], 1.0)
    found = noticed[:, person] * listing[:, :, None]  # (classes, experts, levels)
    return np.asarray(np.einsum("g,gfl->fl", weight / weight.sum(), found))
