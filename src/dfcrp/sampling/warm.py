"""Compile the samplers ahead of use, so that processes started later find them in the cache."""

from __future__ import annotations

import numpy as np

from dfcrp.compiled.jit import compile_for
from dfcrp.moves.scan import record_draw, update_clusters, update_shared
from dfcrp.priors.arrivals.kernel import update_arrivals
from dfcrp.sampling.chain import SAMPLERS, Chain
from dfcrp.sampling.problem import Problem, new_record, new_scratch, new_state
from dfcrp.sampling.setup import make_problem
from dfcrp.settings.config import make_config


def _problem() -> Problem:
    features = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 3.0], [90.0, 9.0, 3.5], [91.0, 8.0, 3.4]])
    return make_problem(features, np.array([0, 1, 0, 1]), make_config())


def warm_up() -> None:
    """Run every sampler for one scan on four markings."""
    for sampler in SAMPLERS:
        Chain(_problem(), np.random.SeedSequence(0), sampler).run(1, 1)


def warm_up_from_the_end() -> None:
    """Compile what a scan compiled at the same time comes to last, the last first."""
    problem, rng = _problem(), np.random.default_rng(0)
    data, hyper, prior = problem.data, problem.hyper, problem.prior
    state, scratch = new_state(problem), new_scratch(problem)
    compile_for(update_arrivals, prior, rng, data, hyper, state, scratch)
    compile_for(record_draw, data, hyper, state, scratch, new_record(problem, 1), 0)
    compile_for(update_shared, rng, data, hyper, state)
    compile_for(update_clusters, rng, data, hyper, prior, state, scratch, 0, problem.n)


if __name__ == "__main__":
    warm_up()
