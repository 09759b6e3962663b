"""Intervals from starts and ends to partitions: what is drawn, and the enumerated posterior.

Five intervals of three experts. The enumeration begins with starts and ends, forms features by
the definition, integrates variances by the trapezoid rule, and sums the
law on a grid. False-alarm rate 1e-5 for each test; planted bugs must be caught.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import special

from dfcrp import prior
from dfcrp.items.items import Items
from dfcrp.likelihoods.interval import likelihood as intervals
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import resolve
from reference import feature_reference, posterior_reference
from reference.chi_square import p_value
from reference.prior_reference import canonical

FALSE_ALARM_RATE = 1e-5
EXPERTS = ["a", "a", "b", "b", "c"]
FAMILIES = [0, 0, 1, 1, 2]
STARTS = np.array([0.0, 2.9, 0.5, 3.3, 1.4])
ENDS = np.array([2.1, 4.2, 3.6, 3.9, 3.7])
FLOOR = 0.8
SHAPE, RATE = 2.0, 1.0
SETTINGS = {
    "run": {"likelihood": "intervals", "radius": "none"},
    "likelihood": {"scale_sd": 0.3, "growth_sd": 0.4},
    "prior": {"alpha_shape": SHAPE, "alpha_rate": RATE},
}


def problem(floor=FLOOR):
    """With a floor of which five intervals tell nothing."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(intervals, "find_floor", lambda *_: floor)
        items = Items.intervals(STARTS, ENDS, EXPERTS)
        return problem_of(items, resolve(SETTINGS, {}))


def definition(hyper):
    """Features, and hyperparameters of each as the documentation has them."""
    y = np.column_stack([(STARTS + ENDS) / 2.0, np.log(ENDS - STARTS + FLOOR)])
    both = {"centre": y.mean(axis=0), "spread": y.std(axis=0), "shape": 2.5, "size": [1, -1]}
    both |= {"level": [np.median(y[:, 1]), 0.0], "bias": hyper.bias, "tails": hyper.tails}
    position = SimpleNamespace(**both, start=[0, 1], growth=[1])
    return y, position, SimpleNamespace(**both, start=[1, 2], growth=[-1])


@pytest.fixture(scope="module")
def target() -> dict:
    """p(c | starts, ends), the law summed on a grid of 7 nodes a side; its guesses are given."""
    hyper = problem().hyper
    y, position, length = definition(hyper)
    sets = [m for size in range(1, 4) for m in combinations(range(5), size)]
    sets = [m for m in sets if len({FAMILIES[i] for i in m}) == len(m)]
    partitions = list(prior.partitions(FAMILIES))
    marginal, logs, nodes = feature_reference.log_marginal, [], np.linspace(-2.7, 2.7, 7)
    law = np.array(hyper.law_mean) + np.outer(nodes, hyper.law_sd)
    of_position = {
        (a, c, s): marginal(position, np.array([law[a, 0], law[c, 2]]), y[list(s)])
        for a, c, s in product(range(7), range(7), sets)
    }
    of_length = {(b, s): marginal(length, law[b, 1:2], y[list(s)]) for b in range(7) for s in sets}
    for a, b, c in product(range(7), repeat=3):
        weight = -0.5 * float(np.square(nodes[[a, b, c]]).sum())
        m = {s: of_position[a, c, s] + of_length[b, s] for s in sets}
        logs.append([weight + sum(m[s] for s in _clusters(p)) for p in partitions])
    total = special.logsumexp(np.array(logs), axis=0)
    total += posterior_reference.log_priors(partitions, FAMILIES, True, SHAPE, RATE)
    found = np.exp(total - special.logsumexp(total))
    return dict(zip(map(canonical, partitions), found.tolist(), strict=True))


def _clusters(labels) -> list[tuple[int, ...]]:
    return [tuple(i for i in range(5) if labels[i] == k) for k in sorted(set(labels))]


def test_sampler_reaches_the_posterior(target):
    assert max(target.values()) < 0.7
    assert p_value(problem(), target) > FALSE_ALARM_RATE


def test_another_floor_is_caught(target):
    assert p_value(problem(0.05 * FLOOR), target) < FALSE_ALARM_RATE


def test_positions_that_scatter_alike_are_caught(target):
    """As if the length did not count."""
    given = problem()
    hyper = given.hyper._replace(size=np.array([-1, -1]))
    assert p_value(replace(given, hyper=hyper), target) < FALSE_ALARM_RATE
