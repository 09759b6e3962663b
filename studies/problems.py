"""Circles as a problem for the kernels, by their features alone: no items, no files."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.circle.likelihood import lay_out_circles
from dfcrp.persons import persons_of
from dfcrp.priors.base import Facts
from dfcrp.priors.registry import prior_named
from dfcrp.sampling.problem import Problem, assemble
from dfcrp.settings.config import Config


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
    persons = persons_of(names, config.run.persons)
    facts = Facts(codes=families, experts=names, persons=persons, log_sizes=layout.log_sizes)
    return assemble(layout, one, facts, config)
