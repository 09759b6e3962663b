"""From items and settings to a problem: the one place where likelihood and prior meet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Layout
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.persons import persons_of
from dfcrp.priors.base import Facts, PriorLayout
from dfcrp.priors.registry import prior_named
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.settings.config import Config


def problem_of(items: Items, config: Config) -> Problem:
    """Whatever is to be clustered; items of different images never share a cluster."""
    likelihood = likelihood_named(config.run.likelihood)
    experts = prior_named(config.run.prior).experts(items.families)
    layout = likelihood.lay_out(items, experts, config)
    rate = likelihood.usual_alpha_rate(len(items))
    facts = Facts(
        codes=items.families,
        experts=items.experts,
        persons=persons_of(items.experts, config.run.persons),
        log_sizes=layout.log_sizes,
        sizes_drawn=likelihood.size_parameter() is not None,
        usual_alpha_rate=rate,
        **items.look_facts(),
    )
    return assemble(layout, experts, facts, config)


def assemble(layout: Layout, experts: NDArray[np.int64], facts: Facts, config: Config) -> Problem:
    """A likelihood laid out, together with the prior that the settings name."""
    named = prior_named(config.run.prior)
    data = build_data(layout.features, experts, layout.neighbourhood)

    def under(prior: PriorLayout, start: Problem | None = None) -> Problem:
        return Problem(
            data=data,
            hyper=layout.hyper,
            prior=prior.prior,
            alpha_start=prior.alpha_start,
            row_width=layout.row_width,
            columns=layout.columns.joined(prior.columns),
            possible=layout.possible,
            start=start,
        )

    start = None
    if named.start is not None:
        first = prior_named(named.start)
        start = under(first.lay_out(facts, first.Settings()))
    return under(named.lay_out(facts, config.prior), start)
