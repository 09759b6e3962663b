"""From markings and settings to a problem: the one place where the partition prior is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.config import Config
from dfcrp.kernels.arrivals import Arrivals
from dfcrp.model.defaults import circle_hyper
from dfcrp.model.ties import set_apart
from dfcrp.sampling.detection import lay_out, parameter_names
from dfcrp.sampling.neighbours import find_neighbours
from dfcrp.sampling.problem import Problem, build_data


def make_problem(
    features: NDArray[np.float64],
    families: NDArray[np.int64],
    config: Config,
    images: NDArray[np.int64] | None = None,
    *,
    experts: Sequence[str] | None = None,
) -> Problem:
    """Lay out the data for the kernels.

    ``dfcrp``: families, with the order of arrival averaged out. ``constrained``: families, but
    the CRP's weights; the joint prior of (c, α) is the CRP's, cut down to valid partitions.
    ``crp``: every marking is a family of its own, so nothing is excluded. ``detection``: families,
    and objects that their experts find or miss. ``experts`` are the families' names.
    Markings of different ``images`` (codes) are never neighbours.
    """
    hyper = circle_hyper(config.model, features)
    log_sizes = features[:, 2]
    features = set_apart(features, families)
    if config.run.prior == "crp":
        families = np.arange(len(families), dtype=np.int64)
    neighbourhood = find_neighbours(features, families, config.run.radius, hyper, images)
    data = build_data(features, families, neighbourhood)
    if config.run.prior == "detection":
        names = experts or [str(f) for f in range(data.n_families)]
        prior, persons = lay_out(config.detection, log_sizes, families, names)
        named = parameter_names(prior, names, persons.names)
        return Problem(data, hyper, prior, math.nan, prior_names=named)
    arrivals = Arrivals(
        use_order=config.run.prior == "dfcrp",
        update_alpha=True,
        alpha_shape=config.model.alpha_shape,
        alpha_rate=config.model.alpha_rate,
        own=np.empty(0),
    )
    return Problem(data, hyper, arrivals, config.model.alpha_shape / config.model.alpha_rate)
