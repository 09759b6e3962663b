"""How likely an expert is to find an object of a given diameter, under the detection prior."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.items.markings import Markings
from dfcrp.posterior.intervals import Interval, summarise
from dfcrp.priors.detection.kernel import Detection
from dfcrp.priors.detection.layout import for_chain, lay_out
from dfcrp.settings.config import Config

#: Evenly spaced draws that the curves are made of.
MAX_DRAWS = 400

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class SensitivityCurves:
    """Posterior mean and 95 % interval by expert and diameter: (experts, levels)."""

    diameter: Floats
    sensitivity: Interval


def sensitivity_curves(draws: Draws, markings: Markings, config: Config) -> SensitivityCurves:
    """The curve of each expert at the middle of every level of size.

    An object of a size is of class g with weight π_g / (1 − P_g(∅)) among all objects, seen or
    missed.
    """
    prior, persons = lay_out(
        config.detection, markings.features[:, 2], markings.families, markings.experts
    )
    width = len(prior.own)
    rows = draws.shared().reshape(-1, draws.shared().shape[2])[:, -width:]
    rows = rows[:: -(-len(rows) // MAX_DRAWS)]
    curves = np.array([_curves(for_chain(prior, row.copy()), persons.codes) for row in rows])
    middle = prior.away + float(np.median(markings.features[:, 2]))
    return SensitivityCurves(np.exp(middle), summarise(curves))


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
