"""Compile the samplers ahead of use, so that processes started later find them in the cache."""

from __future__ import annotations

import numpy as np

from dfcrp.config import make_config
from dfcrp.kernels.arrivals import update_arrivals
from dfcrp.kernels.jit import compile_for
from dfcrp.sampling.chain import SAMPLERS, Chain
from dfcrp.sampling.problem import Problem, new_scratch, new_state
from dfcrp.sampling.setup import make_problem


def _problem() -> Problem:
    features = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 3.0], [90.0, 9.0, 3.5], [91.0, 8.0, 3.4]])
    return make_problem(features, np.array([0, 1, 0, 1]), make_config())


def warm_up() -> None:
    """Run every sampler for one scan on four markings."""
    for sampler in SAMPLERS:
        Chain(_problem(), np.random.SeedSequence(0), sampler).run(1, 1)


def warm_up_arrivals() -> None:
    """Compile the part of a scan that a sampler compiled at the same time comes to last."""
    problem = _problem()
    args = problem.prior, np.random.default_rng(0), problem.data, problem.hyper
    compile_for(update_arrivals, *args, new_state(problem), new_scratch(problem))


if __name__ == "__main__":
    warm_up()
