"""Hyperparameters of the normal likelihoods for any features, from settings and data."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.base import HELD, NARROW
from dfcrp.likelihoods.normal.covariance import CovarianceHyper, law_width
from dfcrp.likelihoods.normal.kernel import NormalHyper
from dfcrp.likelihoods.normal.pilot import Pilot
from dfcrp.likelihoods.normal.settings import NormalSettings
from dfcrp.likelihoods.normal.shapes import Shape

Floats = NDArray[np.float64]

#: How strongly features may go together within clusters, before the data speak (entries of U).
CORRELATION_SD = 0.5


def normal_hyper(
    model: NormalSettings, shape: Shape, features: Floats, pilot: Pilot
) -> NormalHyper:
    """Variances only, by groups of features."""
    groups = len(shape.groups)
    starts = np.cumsum([0, *shape.groups]).astype(np.int64)
    growing = [g for g in range(groups) if max(shape.size[starts[g] : starts[g + 1]]) >= 0]
    growth = np.full(groups, -1, dtype=np.int64)
    growth[growing] = groups + np.arange(len(growing))
    law = np.concatenate([2.0 * np.log(pilot.within), np.full(len(growing), model.growth)])
    ranges = [np.ptp(features[:, max(shape.size[starts[g] : starts[g + 1]])]) for g in growing]
    growth_sd = np.where(np.array(ranges) < NARROW, HELD, model.growth_sd)
    return NormalHyper(
        centre=features.mean(axis=0),
        spread=pilot.spread,
        start=starts,
        size=np.array(shape.size, dtype=np.int64),
        level=pilot.level,
        growth=growth,
        shape=model.variance_shape,
        law=law,
        law_mean=law.copy(),
        law_sd=np.concatenate([np.full(groups, 2.0 * model.scale_sd), growth_sd]),
    )


def covariance_hyper(model: NormalSettings, features: Floats, pilot: Pilot) -> CovarianceHyper:
    """A full covariance for each cluster; means uniform over a box of the data's spread.

    A box of width 2 √π t has the mean density of a normal of standard deviation t.
    """
    p = features.shape[1]
    law = np.zeros(law_width(p))
    law[:p] = np.log(pilot.within)
    return CovarianceHyper(
        features=p,
        shape=model.variance_shape,
        log_volume=float(np.log(2.0 * math.sqrt(math.pi) * pilot.spread).sum()),
        law=law,
        law_mean=law.copy(),
        law_sd=np.concatenate([np.full(p, model.scale_sd), np.full(len(law) - p, CORRELATION_SD)]),
    )
