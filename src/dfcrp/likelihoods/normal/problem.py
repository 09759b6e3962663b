"""A problem of any features: points, boxes, ellipses, or whatever numbers describe an item."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.items.measurements import Measurements
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.likelihoods.normal.hyper import covariance_hyper, normal_hyper
from dfcrp.likelihoods.normal.pilot import find_pilot
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.features import find_feature_neighbours
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.settings.config import Config


def make_feature_problem(
    items: Measurements, families: NDArray[np.int64], config: Config, prior: Arrivals
) -> Problem:
    """Lay out features for the kernels; a pilot of the data gives scales, free of units."""
    model, shape, features = config.model, items.shape, items.features
    pilot = find_pilot(shape, features, families, model.growth_x)
    neighbourhood = find_feature_neighbours(
        shape,
        features,
        families,
        pilot.scales(shape, features, model.growth_x),
        radius=config.run.radius,
        nearest=config.run.nearest,
        candidates=items.candidates,
    )
    p, groups = len(shape.features), len(shape.groups)
    hyper: normal.Normal | covariance.Covariance
    if shape.name == "normal":
        hyper, width = covariance_hyper(model, features, pilot), covariance.row_width(p)
    else:
        hyper, width = normal_hyper(model, shape, features, pilot), normal.row_width(p, groups)
    return Problem(
        data=build_data(features, families, neighbourhood),
        hyper=hyper,
        prior=prior,
        alpha_start=model.alpha_shape / model.alpha_rate,
        row_width=width,
        likelihood_columns=columns_of(shape),
    )


def columns_of(shape: Shape) -> Columns:
    """Names of what is stored with every draw.

    A cluster has its mean of each feature, how uncertain that is (``_se``) and the variances of
    its members (``var_``, one for each group). Shared are the scales, as logarithms of variances
    (of standard deviations for full covariances), and what the likelihood learns besides.
    """
    starts = np.cumsum([0, *shape.groups])
    groups = ["_".join(shape.features[a:b]) for a, b in pairwise(starts)]
    parameters = (
        *shape.features,
        *(f"{name}_se" for name in shape.features),
        *(f"var_{name}" for name in groups),
    )
    shared = [f"scale_{name}" for name in groups]
    if shape.name == "normal":
        shared += [
            f"tie_{shape.features[a]}_{shape.features[b]}"
            for a in range(len(shape.features))
            for b in range(a)
        ]
    else:
        shared += [
            f"growth_{name}"
            for name, first in zip(groups, starts[:-1], strict=True)
            if shape.size[first] >= 0
        ]
    return Columns(parameters, tuple(shared))
