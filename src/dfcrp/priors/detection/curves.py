"""How likely an expert is to find an object of a given diameter, under the detection prior."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.answers import prior_of
from dfcrp.priors.detection.kernel import Detection, with_own
from dfcrp.summaries.intervals import Interval, summarise

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

    An object of a size is of class g with weight π_g / (1 − P_g(∅)) among all objects, seen or
    missed.
    """
    prior, persons = prior_of(posterior)
    shared = posterior.draws.shared()
    rows = shared.reshape(-1, shared.shape[2])[:, -len(prior.own) :]
    rows = rows[:: -(-len(rows) // MAX_DRAWS)]
    curves = np.array([_curves(with_own(prior, row.copy()), persons.codes) for row in rows])
    sizes = posterior.diameters
    median = 0.0 if sizes is None else float(np.median(np.log(sizes)))
    return SensitivityCurves(np.exp(prior.away + median), summarise(curves))


def _curves(prior: Detection, persons: NDArray[np.int64]) -> Floats:
    """(experts, levels) at one draw's parameters."""
    parameters = prior.parameters
    logit = parameters.skill[:, :, None] + parameters.slope[:, None] * prior.away
    noticed = 1.0 / (1.0 + np.exp(-logit))  # (classes, persons, levels)
    listing = np.where(prior.lists[persons] > 1, parameters.listing, 1.0)
    unlisted = np.ones((len(listing), len(prior.lists)))
    np.multiply.at(unlisted.T, persons, 1.0 - listing.T)
    missed = np.prod(1.0 - noticed * (1.0 - unlisted)[:, :, None], axis=1)  # (classes, levels)
    weight = parameters.weight[:, None] / np.maximum(1.0 - missed, 1e-12)
    weight /= weight.sum(axis=0)
    found = noticed[:, persons] * listing[:, :, None]  # (classes, experts, levels)
    return np.asarray(np.einsum("gl,gfl->fl", weight, found))
