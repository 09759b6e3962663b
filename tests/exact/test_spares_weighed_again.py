"""Spares that stay while the law of the tolerances moves: their weights follow it.

With many markings (here as if) a scan adds the ratio of the new law to the old one; after many
scans the weights must be what they would be if they were found again, and one that was lost is.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import gamma

from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere, tolerance
from dfcrp.likelihoods.circle.scatter import CIRCLE_COLUMNS_WITH_REST
from dfcrp.sampling.chain import Chain
from reference import small_problems as small

FAMILIES = [0, 0, 1, 1, 2]
PLACES = np.array([[0.5, 0.1, 3.0], [-0.9, 0.7, 3.3], [0.2, -0.6, 2.8], [-1.2, 1.0, 3.1]])
LAW = ((2.5, 4.0), 2.8, np.array((-0.2, 0.6, -2.3, -0.2)), np.array((0.6, 0.5, 0.4, 0.5)), 16)


def chain_of(kind: str) -> Chain:
    """A chain beyond the scans in which spares still follow the law."""
    features = np.vstack([PLACES, [[0.1, 0.4, 3.2]]])
    if kind == "sphere":
        hyper = sphere.SphereHyper(
            kappa_x=0.4, eta_x=1.0, tau_x=3.0, kappa_d=0.04, eta_d=1.0, tau_d=30.0, lambda_a=1.0,
            lambda_b=1.0, mu0_l=3.0, var0_l=0.25, floor=0.3, radius=8.0, unit=2.0,
            **circle.with_law(*LAW),
        )._replace(follow=False)  # fmt: skip
        height = np.sqrt(64.0 - features[:, 0] ** 2 - features[:, 1] ** 2)
        features = np.column_stack([features, height])
        problem = replace(
            small.make_problem(FAMILIES, features),
            hyper=hyper, row_width=sphere.WIDTH, columns=CIRCLE_COLUMNS_WITH_REST,
        )  # fmt: skip
    else:
        hyper = small.biased(FAMILIES, small.SETTLED) if kind == "biased" else small.SETTLED
        problem = small.make_problem(FAMILIES, features, hyper=hyper)
    chain = Chain(problem, np.random.SeedSequence(6), "exact")
    chain.run(1, tolerance.SETTLED + 1)
    return chain


def weighed_again(chain: Chain) -> np.ndarray:
    """The weights of all spares, one by one."""
    data, state = chain.problem.data, chain.state
    return np.array(
        [
            likelihood.opening_weight(chain.hyper, state.spare, i, data.features, i)
            for i in range(chain.problem.n)
        ]
    )


@pytest.mark.parametrize("kind", ["plane", "biased", "sphere"])
def test_weights_are_those_found_again(kind):
    chain = chain_of(kind)
    reference = chain.hyper.reference.copy()
    for _ in range(30):
        law = chain.state.law.copy()
        chain.run(1, 1)
        assert (chain.state.law != law).any()
        assert chain.state.spare_weight == pytest.approx(weighed_again(chain), rel=1e-11, abs=1e-11)
    assert (chain.hyper.reference == reference).all()


@pytest.mark.parametrize("lost", [math.nan, math.inf, -math.inf])
def test_a_lost_weight_is_found_again(lost):
    chain = chain_of("plane")
    before = tolerance.tolerances_of(chain.hyper)
    chain.state.spare_weight[2] = lost
    chain.hyper.law[:4] += (0.3, -0.1, -0.2, 0.2)
    data, state = chain.problem.data, chain.state
    assert not tolerance.account_for_tolerances(chain.hyper, data, state, before)
    assert state.spare_weight == pytest.approx(weighed_again(chain), rel=1e-11)


def test_the_ratio_is_that_of_the_densities():
    draws = np.random.default_rng(5).normal(size=(40, 3))
    for nu, (log_variance, mean, old) in zip((0.7, 5.0) * 20, draws, strict=True):
        variance = math.exp(log_variance)
        ratio = gamma.logpdf(variance, nu, scale=math.exp(mean) / nu)
        ratio -= gamma.logpdf(variance, nu, scale=math.exp(old) / nu)
        found = tolerance.log_law_ratio(nu, variance, mean, old)
        assert found == pytest.approx(ratio, rel=1e-10, abs=1e-12)
