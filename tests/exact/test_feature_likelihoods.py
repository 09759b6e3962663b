"""The likelihoods for any features, kernel by kernel, against integrals and Student t densities.

Slice updates of the law are compared with its posterior on a grid; false-alarm rate 1e-5 each.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import special, stats

from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import (
    integrated,
    law,
)
from dfcrp.likelihoods.bias import with_bias
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.sampling.problem import new_state
from reference import feature_reference as reference
from reference import small_problems as small

FALSE_ALARM_RATE = 1e-5
NORMAL = normal.NormalHyper(
    centre=np.array([0.3, -0.2, 0.1]),
    spread=np.array([2.0, 1.5, 0.8]),
    start=np.array([0, 2, 3]),
    size=np.array([2, 2, -1]),
    level=np.array([0.1, 0.1, 0.0]),
    growth=np.array([2, -1]),
    shape=2.2,
    law=np.array([-0.4, -1.2, 0.9]),
    law_mean=np.array([-0.5, -1.0, 1.0]),
    law_sd=np.array([0.8, 0.7, 0.5]),
)
FULL = covariance.CovarianceHyper(
    features=3,
    shape=2.2,
    log_volume=1.7,
    law=np.array([-0.2, 0.1, -0.4, 0.5, -0.3, 0.2]),
    law_mean=np.zeros(6),
    law_sd=np.array([0.8, 0.8, 0.8, 0.5, 0.5, 0.5]),
)
WIDTH = {
    normal.NormalHyper: normal.row_width(3, 2),
    covariance.CovarianceHyper: covariance.row_width(3),
}
TWIN = {
    normal.NormalHyper: reference.log_marginal,
    covariance.CovarianceHyper: reference.log_marginal_full,
}
Y = np.random.default_rng(81).normal(size=(9, 3)) * [1.2, 0.8, 0.5]
EXPERTS = np.array([0, 0, 1, 2, 1, 2, 0, 1, 2])


def with_experts(hyper):
    """The same of experts who differ."""
    found = with_bias(hyper, "both", EXPERTS, np.array([0.8, 0.6, 0.4]), 0.5)
    found.law[len(hyper.law) :] = np.random.default_rng(83).normal(0.0, 0.4, 12)
    return found


HYPERS = [NORMAL, FULL, with_experts(NORMAL), with_experts(FULL)]
both = pytest.mark.parametrize(
    "hyper", HYPERS, ids=["normal", "covariance", "normal, experts", "covariance, experts"]
)


def row_of(hyper, members) -> np.ndarray:
    theta = np.zeros((1, WIDTH[type(hyper)]))
    integrated.empty_row(hyper, theta, 0)
    for i in members:
        likelihood.add_member(hyper, theta, 0, Y, i)
    return theta


@both
def test_marginal_is_the_integral(hyper):
    for members in [(0,), (3,), (0, 2), (1, 3, 4), (0, 1, 2, 3, 4, 5, 6)]:
        rows = list(members)
        expected = TWIN[type(hyper)](hyper, hyper.law, Y[rows], EXPERTS[rows])
        found = integrated.log_marginal(hyper, row_of(hyper, members), 0)
        assert found == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("log_variance", [-60.0, 0.0, 60.0])
@pytest.mark.parametrize("together", [1, 2])
def test_many_features_neither_vanish_nor_overflow(log_variance, together):
    """Products over groups are cut: densities one after the other still make the marginal."""
    features, groups = 300, 300 // together
    hyper = NORMAL._replace(
        centre=np.zeros(features),
        spread=np.full(features, math.exp(log_variance / 2.0)),
        start=np.arange(0, features + 1, together),
        size=np.full(features, -1),
        level=np.zeros(features),
        growth=np.full(groups, -1),
        law=np.full(groups, log_variance),
        law_mean=np.zeros(groups),
        law_sd=np.ones(groups),
    )
    y = np.random.default_rng(82).normal(size=(3, features)) * math.exp(log_variance / 2.0) * 1e3
    theta, total = np.zeros((1, normal.row_width(features, groups))), 0.0
    integrated.empty_row(hyper, theta, 0)
    for i in range(3):
        total += likelihood.log_density(hyper, theta, 0, y, i)
        likelihood.add_member(hyper, theta, 0, y, i)
    assert total == pytest.approx(integrated.log_marginal(hyper, theta, 0), rel=1e-9)


def test_marginal_of_one_number_by_experts_who_differ():
    """Of a full covariance, by quadrature over mean and log variance: no formula in common."""
    hyper = with_bias(
        FULL._replace(features=1, law=np.array([-0.3]), law_mean=np.zeros(1), law_sd=np.ones(1)),
        "both",
        EXPERTS,
        np.ones(1),
        0.5,
    )
    hyper.law[1:] = [0.4, -0.3, 0.1, 0.3, -0.4, 0.2]
    rows = [0, 2, 3, 4]
    y, factor = reference.as_if_alike(hyper, hyper.law, Y[rows, :1], EXPERTS[rows])
    mean = np.linspace(-40.0, 40.0, 16001)
    logs = []
    for log_v in np.linspace(-8.0, 10.0, 361):
        scale = hyper.shape * math.exp(2.0 * hyper.law[0])
        value = stats.invgamma.logpdf(math.exp(log_v), hyper.shape, scale=scale) + log_v
        error = np.sqrt(factor * math.exp(log_v))[:, np.newaxis]
        density = stats.norm.logpdf(y, mean, error).sum(axis=0)
        logs.append(value + special.logsumexp(density) + math.log(mean[1] - mean[0]))
    expected = special.logsumexp(logs) + math.log(0.05) - hyper.log_volume
    theta = np.zeros((1, covariance.row_width(1)))
    integrated.empty_row(hyper, theta, 0)
    for i in rows:
        likelihood.add_member(hyper, theta, 0, Y[:, :1].copy(), i)
    assert integrated.log_marginal(hyper, theta, 0) == pytest.approx(expected, abs=1e-5)


@both
def test_density_is_the_ratio_of_marginals(hyper):
    for members in [(), (1,), (0, 1, 2, 3)]:
        theta = row_of(hyper, members)
        ratio = integrated.log_marginal(hyper, row_of(hyper, (*members, 8)), 0)
        ratio -= integrated.log_marginal(hyper, theta, 0) if members else 0.0
        assert likelihood.log_density(hyper, theta, 0, Y, 8) == pytest.approx(ratio, abs=1e-9)


@both
def test_leaving_undoes_joining(hyper):
    theta = row_of(hyper, (0, 1, 2, 3, 4))
    likelihood.remove_member(hyper, theta, 0, Y, 3)
    likelihood.remove_member(hyper, theta, 0, Y, 0)
    again = row_of(hyper, (1, 2, 4))
    full = isinstance(hyper, covariance.CovarianceHyper)
    first = covariance.FIRST + 3
    room = slice(first, first + 3) if full else slice(0, 0)  # of no meaning between calls
    theta[0, room] = again[0, room] = 0.0
    assert theta == pytest.approx(again, abs=1e-12)


@both
def test_an_outlier_comes_and_goes(hyper):
    far = Y.copy()
    far[8] = [1e6, -1e6, 30.0]
    theta = row_of(hyper, (0, 1))
    before = integrated.log_marginal(hyper, theta, 0)
    likelihood.add_member(hyper, theta, 0, far, 8)
    likelihood.remove_member(hyper, theta, 0, far, 8)
    assert np.isfinite(theta).all()
    assert integrated.log_marginal(hyper, theta, 0) == pytest.approx(before, abs=2.0)


class Shared:
    """Three clusters of nine items, and the law's posterior given them."""

    labels = (0, 0, 0, 0, 1, 1, 1, 2, 2)

    def __init__(self, hyper):
        problem = small.make_problem(list(range(9)), Y)
        problem = problem.__class__(
            problem.data, hyper, problem.prior, 1.0, WIDTH[type(hyper)], problem.columns
        )
        self.data = problem.data
        self.state = new_state(problem)
        for name, values in small.seat_partition(self.labels, problem.data.component).items():
            getattr(self.state, name)[...] = values
        self.hyper = hyper._replace(law=self.state.law)
        self.rng = np.random.default_rng(82)

    def grid(self, which) -> tuple[np.ndarray, np.ndarray]:
        """Values of an entry and their cumulated posterior probability."""
        hyper = self.hyper
        values = hyper.law_mean[which] + hyper.law_sd[which] * np.linspace(-5, 5, 161)
        logs = stats.norm.logpdf(values, hyper.law_mean[which], hyper.law_sd[which])
        twin = TWIN[type(hyper)]
        for at, value in enumerate(values):
            entries = self.state.law.copy()
            entries[which] = value
            for k in range(3):
                rows = np.array(self.labels) == k
                logs[at] += twin(hyper, entries, Y[rows], EXPERTS[rows])
        weight = np.exp(logs - special.logsumexp(logs))
        return values, np.cumsum(weight) - 0.5 * weight

    def draw(self, which, hyper, count=1500) -> np.ndarray:
        found = []
        for _ in range(count):
            for _ in range(2):
                law.slice_law(hyper, self.rng, self.data, self.state, which)
            found.append(self.state.law[which])
        return np.array(found)

    def p_value(self, which, hyper=None) -> float:
        start = self.state.law.copy()
        values, cumulated = self.grid(which)
        drawn = self.draw(which, self.hyper if hyper is None else hyper)
        self.state.law[:] = start
        return stats.kstest(np.interp(drawn, values, cumulated), "uniform").pvalue


@pytest.mark.parametrize(
    ("hyper", "which"),
    [(NORMAL, 0), (NORMAL, 2), (FULL, 1), (FULL, 4), (HYPERS[2], 0), (HYPERS[3], 1)],
    ids=[
        "normal scale",
        "normal growth",
        "covariance scale",
        "covariance tie",
        "normal scale, experts",
        "covariance scale, experts",
    ],
)
def test_law_is_drawn_from_its_posterior(hyper, which):
    assert Shared(hyper).p_value(which) > FALSE_ALARM_RATE


@pytest.mark.parametrize(("hyper", "which"), [(NORMAL, 2), (FULL, 1)], ids=["normal", "full"])
def test_a_wrong_prior_of_the_law_is_caught(hyper, which):
    shared = Shared(hyper)
    wrong = shared.hyper._replace(law_mean=hyper.law_mean + 0.6 * hyper.law_sd)
    assert shared.p_value(which, wrong) < FALSE_ALARM_RATE


@pytest.mark.parametrize(("entries", "due"), [(2, [True, False, True]), (3, [False] * 3)])
def test_a_short_law_is_updated_in_every_second_scan(entries, due):
    shared, found = Shared(FULL), []
    hyper = shared.hyper._replace(law_mean=np.zeros(entries))
    for scan in (1000, 1001, 1002):
        shared.state.scans[0] = scan
        found.append(bool(law.short_law_is_due(hyper, shared.state)))
    assert found == due
