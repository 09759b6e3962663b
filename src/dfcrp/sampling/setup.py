"""From items and settings to a problem: the one place where likelihood and prior meet."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.decisions import Decided
from dfcrp.items.items import Items
from dfcrp.likelihoods.base import Layout
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.neighbours.decided import with_groups, without_pairs
from dfcrp.neighbours.neighbourhood import Neighbourhood
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


def _decided(found: Neighbourhood, decided: Decided | None, alone: bool) -> Neighbourhood:
    """Who may share a cluster with whom, by what people decided.

    ``alone`` if what is not real shares none.
    """
    if decided is None:
        return found
    if alone:
        decided.refuse_groups_not_real()
    found = with_groups(found, decided.group)
    solitary = decided.solitary if alone else decided.solitary[:0]
    return without_pairs(found, decided.apart, solitary, decided.at_odds)


def assemble(layout: Layout, experts: NDArray[np.int64], facts: Facts, config: Config) -> Problem:
    """A likelihood laid out, together with the prior that the settings name."""
    named = prior_named(config.run.prior)
    of_named = named.lay_out(facts, config.prior)
    neighbourhood = _decided(layout.neighbourhood, facts.decided, of_named.unreal_alone)
    data = build_data(layout.features, experts, neighbourhood)

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
    return under(of_named, start)
