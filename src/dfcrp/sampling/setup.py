"""From items and settings to a problem: the one place where likelihood and prior meet."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Layout
from dfcrp.likelihoods.circle.likelihood import lay_out_circles
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.persons import persons_of
from dfcrp.priors.base import Facts
from dfcrp.priors.registry import prior_named
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.settings.config import Config


def problem_of(items: Items, config: Config) -> Problem:
    """Whatever is to be clustered; items of different images never share a cluster."""
    likelihood = likelihood_named(config.run.likelihood)
    experts = prior_named(config.run.prior).experts(items.families)
    layout = likelihood.lay_out(items, experts, config)
    rate = likelihood.usual_alpha_rate(len(items))
    return _assemble(layout, experts, items.families, items.experts, config, rate)


def make_problem(
    features: NDArray[np.float64],
    families: NDArray[np.int64],
    config: Config,
    images: NDArray[np.int64] | None = None,
    *,
    experts: Sequence[str] | None = None,
) -> Problem:
    """Circles by their features; those of different ``images`` (codes) never meet.

    ``experts`` are the names of the families, by which settings know the lists of one person.
    """
    names = tuple(experts or [str(f) for f in range(int(families.max()) + 1)])
    one = prior_named(config.run.prior).experts(families)
    layout = lay_out_circles(features, families, names, config, experts=one, images=images)
    return _assemble(layout, one, families, names, config, 0.01)


def _assemble(  # noqa: PLR0917 - what one part knows and the other needs
    layout: Layout,
    experts: NDArray[np.int64],
    codes: NDArray[np.int64],
    names: tuple[str, ...],
    config: Config,
    usual_alpha_rate: float,
) -> Problem:
    """A likelihood laid out, together with the prior that the settings name."""
    facts = Facts(
        codes=codes,
        experts=names,
        persons=persons_of(names, config.run.persons),
        log_sizes=layout.log_sizes,
        usual_alpha_rate=usual_alpha_rate,
    )
    prior = prior_named(config.run.prior).lay_out(facts, config.prior)
    return Problem(
        data=build_data(layout.features, experts, layout.neighbourhood),
        hyper=layout.hyper,
        prior=prior.prior,
        alpha_start=prior.alpha_start,
        row_width=layout.row_width,
        columns=layout.columns.joined(prior.columns),
    )
