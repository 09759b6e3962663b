"""Circles on a sphere: the parts of the kernels against their laws, and the sampler against the
enumerated posterior of five markings around the pole and the meridian of 180°.

Distances of the markings are comparable to the spread, and the sphere is small (a radius of eight
standard deviations), so that its curvature matters. False-alarm rate of each test 1e-5.
"""

from __future__ import annotations

import math
from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest
from scipy import stats

from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import CIRCLE_COLUMNS_WITH_REST
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from reference import posterior_reference
from reference.prior_reference import canonical

FALSE_ALARM_RATE = 1e-5
RADIUS = 8.0
HYPER = sphere.SphereHyper(
    kappa_x=0.4, eta_x=1.0, tau_x=3.0, kappa_d=0.04, eta_d=1.0, tau_d=30.0, lambda_a=1.0,
    lambda_b=1.0, mu0_l=3.0, var0_l=0.25, floor=0.3, radius=RADIUS, unit=2.0,
    **circle.without_law(),
)  # fmt: skip
FAMILIES = np.array([0, 0, 1, 1, 2])
SHAPE, RATE = 2.0, 1.0
DRAWS, BURN_IN, THIN = 12_000, 200, 6


def on_sphere(places) -> np.ndarray:
    places = np.asarray(places, float)
    return RADIUS * places / np.linalg.norm(places, axis=1, keepdims=True)


def features_of(places, sizes) -> np.ndarray:
    places = on_sphere(places)
    return np.column_stack([places[:, :2], sizes, places[:, 2]])


FEATURES = features_of(
    [[0.5, 0.1, 8], [-0.9, 0.7, 8], [0.2, -0.6, 8], [-1.2, 1.0, 8], [0.1, 0.4, 8]],
    [3.0, 3.3, 2.8, 3.1, 3.2],
)


def a_row(a=1.3, d=0.1) -> np.ndarray:
    theta = np.zeros((1, sphere.WIDTH))
    theta[0, circle.VAR_POSITION], theta[0, circle.VAR_SIZE] = a, d
    circle.complete_row(theta, 0)
    return theta


def place_of(theta) -> np.ndarray:
    return theta[0, [circle.MU_X, circle.MU_Y, sphere.MU_Z]]


@pytest.mark.parametrize("towards", [(1.0, 0.0, 0.0), (-3.0, 0.01, 2.0), (0.0, 0.0, -9.0)])
@pytest.mark.parametrize("a", [1.3, 300.0])
def test_places_are_drawn_from_their_law(towards, a):
    """κ (1 − cos) is exponential, cut off at 2κ; the way around is uniform. With a = 300 the sphere
    is filled."""
    rng, theta = np.random.default_rng(3), a_row(a)
    total = np.array(towards)
    length = np.linalg.norm(total)
    kappa = RADIUS * length / a
    drawn = []
    for _ in range(3000):
        sphere.draw_place(rng, HYPER, theta, 0, *total)
        drawn.append(place_of(theta))
    drawn = np.array(drawn)
    assert np.linalg.norm(drawn, axis=1) == pytest.approx(np.full(len(drawn), RADIUS))
    way = total / length
    cosine = drawn @ way / RADIUS
    uniform = -np.expm1(-kappa * (1.0 - cosine)) / -np.expm1(-2.0 * kappa)
    assert stats.kstest(uniform, "uniform").pvalue > FALSE_ALARM_RATE
    first = np.cross(way, [0.3, -0.5, 0.7])
    first /= np.linalg.norm(first)
    angle = np.arctan2(drawn @ np.cross(way, first), drawn @ first)
    assert stats.kstest(angle / (2 * np.pi) + 0.5, "uniform").pvalue > FALSE_ALARM_RATE


def test_the_density_is_one_over_the_sphere():
    """By a fine net of places of equal area."""
    n = 200_000
    k = np.arange(n) + 0.5
    z, turn = 1.0 - 2.0 * k / n, np.pi * (1.0 + 5.0**0.5) * k
    flat = np.sqrt(1.0 - z * z)
    places = RADIUS * np.column_stack([flat * np.cos(turn), flat * np.sin(turn), z])
    theta = a_row()
    theta[0, [circle.MU_X, circle.MU_Y, sphere.MU_Z]] = on_sphere([[-1.0, 0.3, 0.5]])[0]
    squared = ((places - place_of(theta)) ** 2).sum(axis=1)
    log_place = theta[0, circle.LOG_NORM] + 0.5 * math.log(2.0 * math.pi * 0.1)
    density = np.exp(log_place - 0.5 * squared * theta[0, circle.INV_A])
    assert density.mean() * 4.0 * math.pi * RADIUS**2 == pytest.approx(1.0, rel=1e-6)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_marginals_are_likelihood_times_prior_over_conditional(n):
    """Whatever the mean that is drawn."""
    rng, theta, y = np.random.default_rng(n), a_row(), FEATURES[:n]
    state = SimpleNamespace(head=np.array([0]), after=np.array([*range(1, n), -1]))
    moments = sphere.moments_of_cluster(HYPER, y, _numba_state(state), 0)
    total = y[:, [0, 1, 3]].sum(axis=0)
    length = np.linalg.norm(total)
    assert moments.position == pytest.approx(2 * RADIUS * (n * RADIUS - length), abs=1e-9)
    kappa, precision = RADIUS * length / 1.3, 1.0 / HYPER.var0_l + n / 0.1
    mean = (HYPER.mu0_l / HYPER.var0_l + y[:, 2].sum() / 0.1) / precision
    for _ in range(3):
        sphere.draw_place(rng, HYPER, theta, 0, *total)
        size = theta[0, circle.MU_L] = sphere.draw_size(
            rng, HYPER, theta, 0, float(n), y[:, 2].sum()
        )
        value = sum(likelihood.log_density(HYPER, theta, 0, y, i) for i in range(n))
        value -= math.log(4 * math.pi * RADIUS**2)
        value += stats.norm.logpdf(size, HYPER.mu0_l, math.sqrt(HYPER.var0_l))
        value -= stats.norm.logpdf(size, mean, precision**-0.5)
        cosine = place_of(theta) @ total / (RADIUS * length)
        value -= math.log(kappa / (2 * math.pi * RADIUS**2)) + kappa * (cosine - 1.0)
        found = sphere.log_marginal_of_cluster(HYPER, y, _numba_state(state), 0, theta, 0, moments)
        assert found == pytest.approx(value)


def _numba_state(fields):
    """As much of a state as the kernel reads, as a named tuple that Numba takes."""
    from collections import namedtuple

    return namedtuple("Fields", vars(fields))(**vars(fields))


def log_marginal(y) -> float:
    """log p(members): place in closed form, (log a, log d, μl) on a grid."""
    n = len(y)
    mu = HYPER.mu0_l + math.sqrt(HYPER.var0_l) * np.linspace(-6.0, 6.0, 161)
    log_a, log_d = np.linspace(-9.0, 4.0, 400), np.linspace(-9.0, 2.0, 400)
    a, d = np.exp(log_a), np.exp(log_d)
    length = np.linalg.norm(y[:, [0, 1, 3]].sum(axis=0))
    places = -n * np.log(2 * np.pi * a) - RADIUS * (n * RADIUS - length) / a
    places += np.log(a / (2 * RADIUS * length))
    held = np.maximum(mu, HYPER.floor)[:, np.newaxis]
    law_a = stats.gamma.pdf(a, HYPER.tau_x * HYPER.kappa_x * held, scale=1 / HYPER.tau_x) * a
    law_d = stats.gamma.pdf(d, HYPER.tau_d * HYPER.kappa_d * held, scale=1 / HYPER.tau_d) * d
    sizes = sum(stats.norm.logpdf(size, mu[:, np.newaxis], np.sqrt(d)) for size in y[:, 2])
    over_a = (law_a * np.exp(places)).sum(axis=1) * (log_a[1] - log_a[0])
    over_d = (law_d * np.exp(sizes)).sum(axis=1) * (log_d[1] - log_d[0])
    prior = stats.norm.pdf(mu, HYPER.mu0_l, math.sqrt(HYPER.var0_l)) * (mu[1] - mu[0])
    return math.log((prior * over_a * over_d).sum())


@pytest.mark.parametrize("reach", [None, 1.9])
def test_the_sampler_against_the_enumerated_posterior(reach):
    marginals = {
        members: log_marginal(FEATURES[list(members)])
        for size in range(1, 6)
        for members in combinations(range(5), size)
    }
    places = FEATURES[:, [0, 1, 3]]
    apart = np.linalg.norm(places[:, np.newaxis] - places, axis=-1)
    target = posterior_reference.posterior(
        marginals, FAMILIES.tolist(), use_order=True, shape=SHAPE, rate=RATE,
        allowed=None if reach is None else apart <= reach,
    )  # fmt: skip
    neighbourhood = find_neighbours(FEATURES, FAMILIES, reach, HYPER)
    problem = Problem(
        build_data(FEATURES, FAMILIES, neighbourhood),
        HYPER,
        Arrivals(True, True, SHAPE, RATE, np.empty(0)),
        2.0,
        row_width=sphere.WIDTH,
        columns=CIRCLE_COLUMNS_WITH_REST._replace(shared=()),
    )
    chain = Chain(problem, np.random.SeedSequence(5), "exact")
    chain.run(1, BURN_IN)
    labels = np.concatenate([chain.run(500, THIN).labels for _ in range(DRAWS // 500)])
    assert max(target.values()) < 0.6, "the case must leave the partition open"
    place = {c: k for k, c in enumerate(target)}
    observed = np.zeros(len(place))
    for row, times in zip(*np.unique(labels, axis=0, return_counts=True), strict=True):
        observed[place[canonical(row.tolist())]] += times
    expected = np.array(list(target.values())) * len(labels)
    # rare ones together; draws are thinned, and a factor of two allows for what is left
    rare = expected < 10
    observed, expected = (
        np.append(values[~rare], values[rare].sum()) for values in (observed, expected)
    )
    chi_square = ((observed - expected) ** 2 / expected).sum() / 2.0
    assert stats.chi2.sf(chi_square, len(expected) - 1) > FALSE_ALARM_RATE


def test_a_row_is_recorded_in_degrees_and_km():
    theta = a_row()
    theta[0, [circle.MU_X, circle.MU_Y, sphere.MU_Z]] = on_sphere([[-1.0, 1e-5, 0.7]])[0]
    theta[0, circle.MU_L] = 2.0
    out = np.zeros((1, 8), np.float32)
    sphere.record_row(HYPER, theta, 0, out, 0)
    x, y, z = place_of(theta)
    found = out[0].astype(float)
    assert found[0] + found[6] == pytest.approx(math.degrees(math.atan2(y, x)), abs=1e-11)
    assert found[1] + found[7] == pytest.approx(math.degrees(math.asin(z / RADIUS)), abs=1e-11)
    assert found[2] == pytest.approx(2.0 + math.log(2.0), rel=1e-6)
    assert found[3] == pytest.approx(1.3 * 4.0, rel=1e-6)
