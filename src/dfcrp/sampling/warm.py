"""Compile the samplers ahead of use, so that processes started later find them in the cache."""

from __future__ import annotations

import numpy as np

from dfcrp.config import make_config
from dfcrp.sampling.chain import SAMPLERS, Chain
from dfcrp.sampling.setup import make_problem


def warm_up() -> None:
    """Run every sampler for one scan on four markings."""
    features = np.array([[0.0, 0.0, 3.0], [1.0, 0.0, 3.0], [90.0, 9.0, 3.5], [91.0, 8.0, 3.4]])
    problem = make_problem(features, np.array([0, 1, 0, 1]), make_config())
    for sampler in SAMPLERS:
        Chain(problem, np.random.SeedSequence(0), sampler).run(1, 1)


if __name__ == "__main__":
    warm_up()
