"""From markings and settings to a problem: the one place where the partition prior is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.config import Config
from dfcrp.kernels.arrivals import Arrivals
from dfcrp.markings import Items, encode
from dfcrp.measurements import Measurements
from dfcrp.model.defaults import circle_hyper
from dfcrp.model.ties import set_apart
from dfcrp.records import Records
from dfcrp.sampling.attraction import STRENGTH, make_attraction
from dfcrp.sampling.bias import bias_names, with_bias
from dfcrp.sampling.detection import lay_out, parameter_names
from dfcrp.sampling.feature_problem import make_feature_problem
from dfcrp.sampling.neighbours import find_neighbours
from dfcrp.sampling.persons import persons_of
from dfcrp.sampling.problem import Problem, build_data, circle_columns
from dfcrp.sampling.record_problem import make_record_problem


def problem_of(items: Items, config: Config) -> Problem:
    """Whatever is to be clustered; items of different images never share a cluster."""
    if isinstance(items, Measurements):
        families = _families(items.families, config)
        return make_feature_problem(items, families, config, _prior(config))
    if isinstance(items, Records):
        families = _families(items.families, config)
        return make_record_problem(items, families, config, _prior(config))
    images = encode(items.image.tolist())[1] if items.image is not None else None
    return make_problem(items.features, items.families, config, images, experts=items.experts)


def make_problem(
    features: NDArray[np.float64],
    families: NDArray[np.int64],
    config: Config,
    images: NDArray[np.int64] | None = None,
    *,
    experts: Sequence[str] | None = None,
) -> Problem:
    """Lay out circles for the kernels; those of different ``images`` (codes) never meet.

    ``experts`` are the families' names, by which settings know the lists of one person, and for the
    names of what is learned of each.
    """
    hyper = circle_hyper(config.model, features)
    log_sizes, lists = features[:, 2], families
    names = experts or [str(f) for f in range(int(lists.max()) + 1)]
    features = set_apart(features, families)
    families = _families(families, config)
    neighbourhood = find_neighbours(features, families, config.run.radius, hyper, images)
    data = build_data(features, families, neighbourhood)
    columns = circle_columns(hyper)
    if config.model.expert_bias != "none":
        hyper = with_bias(hyper, config.model, lists[data.original])
        columns = columns._replace(shared=(*columns.shared, *bias_names(hyper.bias, names)))
    if config.run.prior == "detection":
        prior, persons = lay_out(config.detection, log_sizes, families, names)
        named = parameter_names(prior, names, persons.names)
        return Problem(data, hyper, prior, math.nan, likelihood_columns=columns, prior_names=named)
    start = config.model.alpha_shape / config.model.alpha_rate
    if config.model.attraction != 0.0:
        persons = persons_of(names, config.detection.persons)
        drawn = make_attraction(config.model, persons, data.family.shape[0])
        named = (STRENGTH,) if drawn.learned else ()
        return Problem(data, hyper, drawn, start, likelihood_columns=columns, prior_names=named)
    return Problem(data, hyper, _prior(config), start, likelihood_columns=columns)


def _families(families: NDArray[np.int64], config: Config) -> NDArray[np.int64]:
    """``crp``: every marking is a family of its own, so nothing is excluded."""
    if config.run.prior == "crp":
        return np.arange(len(families), dtype=np.int64)
    return families


def _prior(config: Config) -> Arrivals:
    """The prior over partitions.

    ``dfcrp``: families, with the order of arrival averaged out. ``constrained``: families, but
    the CRP's weights; the joint prior of (c, α) is the CRP's, cut down to valid partitions.
    """
    return Arrivals(
        use_order=config.run.prior == "dfcrp",
        update_alpha=True,
        alpha_shape=config.model.alpha_shape,
        alpha_rate=config.model.alpha_rate,
        own=np.empty(0),
    )
