"""From markings and settings to a problem: the one place where the partition prior is chosen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.items.markings import Items, Markings, Site, encode
from dfcrp.items.measurements import Measurements
from dfcrp.items.persons import persons_of
from dfcrp.items.records import Records
from dfcrp.likelihoods.circle import (
    sphere,
    sphere_proposal,  # noqa: F401 - registers what it has
)
from dfcrp.likelihoods.circle.bias_layout import bias_names, with_bias
from dfcrp.likelihoods.circle.hyper import circle_hyper
from dfcrp.likelihoods.circle.sphere_hyper import (
    length_unit,
    set_apart_on_sphere,
    sphere_features,
    sphere_hyper,
)
from dfcrp.likelihoods.circle.ties import set_apart
from dfcrp.likelihoods.normal.problem import make_feature_problem
from dfcrp.likelihoods.record.problem import make_record_problem
from dfcrp.neighbours.plane import find_neighbours
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.attraction.layout import STRENGTH, make_attraction
from dfcrp.priors.detection.layout import lay_out, parameter_names
from dfcrp.sampling.problem import SPHERE_COLUMNS, Problem, build_data, circle_columns
from dfcrp.settings.config import Config


def problem_of(items: Items, config: Config) -> Problem:
    """Whatever is to be clustered; items of different images never share a cluster."""
    if isinstance(items, Measurements):
        families = _families(items.families, config)
        return make_feature_problem(items, families, config, _prior(config))
    if isinstance(items, Records):
        families = _families(items.families, config)
        return make_record_problem(items, families, config, _prior(config))
    images = encode(items.image.tolist())[1] if items.image is not None else None
    if isinstance(items, Markings) and items.site.on_sphere:
        return _sphere_problem(items, config, images)
    if isinstance(items, Markings):
        _refuse_law_in_pixels(items.site, config)
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
    problem = Problem(data, hyper, _prior(config), 1.0, likelihood_columns=columns)
    return _with_prior(problem, config, log_sizes, names)


def _sphere_problem(
    markings: Markings, config: Config, images: NDArray[np.int64] | None
) -> Problem:
    """Lay out circles on a sphere, which come in degrees and km."""
    if images is not None and images.any():
        raise SettingsError(
            'several images in degrees are fitted each by itself: leave out --images "shared"'
        )
    if config.model.expert_bias != "none":
        raise SettingsError("experts are compared in a plane only: leave out --expert-bias")
    unit = length_unit(config.model, markings.site)
    features = sphere_features(markings, unit)
    radius = markings.site.sphere_radius_km / unit
    hyper = sphere_hyper(config.model, features, radius, unit)
    log_sizes = features[:, 2]
    features = set_apart_on_sphere(features, markings.families)
    families = _families(markings.families, config)
    reach = config.run.radius
    if isinstance(reach, float):
        # Along the ground in km; neighbours are found by straight lines.
        reach = 2.0 * radius * math.sin(min(0.5 * reach / (unit * radius), 0.5 * math.pi))
    neighbourhood = find_neighbours(features, families, reach, hyper)
    columns = SPHERE_COLUMNS if hyper.learned else SPHERE_COLUMNS._replace(shared=())
    problem = Problem(
        build_data(features, families, neighbourhood),
        hyper,
        _prior(config),
        1.0,
        row_width=sphere.WIDTH,
        likelihood_columns=columns,
    )
    return _with_prior(problem, config, log_sizes, markings.experts)


def _refuse_law_in_pixels(site: Site, config: Config) -> None:
    """The paper's tolerances mean nothing in m or km."""
    if site.units in ("m", "km") and config.model.tolerances == "fixed":
        raise SettingsError(
            f"the paper's law of tolerances is in pixels, the data are in {site.units}: leave the "
            "preset out, so that tolerances are learned, or give the data in pixels"
        )


def _with_prior(
    problem: Problem,
    config: Config,
    log_sizes: NDArray[np.float64],
    experts: Sequence[str],
) -> Problem:
    """The problem with the prior that the settings name, and where its parameters start."""
    if config.run.prior == "detection":
        data = problem.data
        families = np.empty(problem.n, np.int64)
        families[data.original] = data.family
        prior, persons = lay_out(config.detection, log_sizes, families, experts)
        named = parameter_names(prior, experts, persons.names)
        return replace(problem, prior=prior, alpha_start=math.nan, prior_names=named)
    start = config.model.alpha_shape / config.model.alpha_rate
    if config.model.attraction != 0.0:
        persons = persons_of(experts, config.detection.persons)
        drawn = make_attraction(config.model, persons, problem.n)
        named = (STRENGTH,) if drawn.learned else ()
        return replace(problem, prior=drawn, alpha_start=start, prior_names=named)
    return replace(problem, alpha_start=start)


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
