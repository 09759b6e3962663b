"""Steps of the tolerances' law: what is sliced is the joint density; what follows from a step."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.slice import FARTHEST, log_target
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel, tolerance
from interpreted.test_circles_in_parts import Circles
from reference import kernel_reference as reference
from reference import small_problems as small

STEPS = [0.3, -0.2, 0.15, 0.4]


@pytest.fixture(params=[1, 2], ids=["learned", "experts"])
def circles(request) -> Circles:
    return Circles(request.param)


def log_prior(hyper, law) -> float:
    z = (law[:4] - hyper.law_mean[:4]) / hyper.law_sd[:4]
    return -0.5 * float(z @ z)


def log_given_variances(circles, law, rows) -> float:
    """log p(law, variances), but for constants."""
    hyper = circles.hyper
    value = log_prior(hyper, law)
    for row in rows:
        for shape, scale, variance in zip(
            *zip(*reference.variance_laws(hyper, row[2], law), strict=True), row[3:5], strict=True
        ):
            value += reference.log_gamma(variance, shape, scale)
    return value


def log_along(circles, law, rows) -> float:
    """The same of members, where the variances keep their place in the law."""
    value = log_prior(circles.hyper, law)
    for k, row in zip(circles.slots(), rows, strict=True):
        _, y, w = circles.moments(k)
        for one, weight in zip(y, w, strict=True):
            matrix = reference.covariance(row[:6]) / weight
            value += reference.log_normal(one, row[:3], matrix)
    return value


class Slices:
    """In place of slices: compares the target with the joint, and goes a known way."""

    def __init__(self, circles, along):
        self.circles, self.along, self.calls = circles, along, []
        self.rows = [circles.state.theta[k].copy() for k in circles.slots()]
        sizes = [len(circles.moments(k)[0]) if along else 1 for k in circles.slots()]
        away = np.array([row[2] for row in self.rows]) - circles.hyper.level
        self.centre, self.sizes = float(np.dot(sizes, away) / sum(sizes)), sizes
        self.spread = float(np.dot(sizes, (away - self.centre) ** 2))
        self.away = away - self.centre

    def moved(self, which, step):
        """The law and rows after a step of entry ``which``."""
        law, rows = self.circles.hyper.law.copy(), [row.copy() for row in self.rows]
        law[which] += step
        if which % 2:
            law[which - 1] -= self.centre * step
        if self.along:
            for row, away in zip(rows, self.away, strict=True):
                row[3 + which // 2] *= math.exp(step * (away if which % 2 else 1.0))
        return law, rows

    def __call__(self, rng, target, start, width, least):
        assert start == 0.0
        which = len(self.calls)
        joint = log_along if self.along else log_given_variances
        found = [log_target(target, step) for step in (0.0, 0.2, -0.35)]
        expected = [joint(self.circles, *self.moved(which, s)) for s in (0.0, 0.2, -0.35)]
        np.testing.assert_allclose(np.diff(found), np.diff(expected), rtol=1e-7, atol=1e-9)
        self.calls.append((width, least, target))
        _, self.rows = self.moved(which, STEPS[which])
        return STEPS[which]


@pytest.mark.parametrize("along", [False, True])
def test_steps_follow_the_joint(circles, along, monkeypatch):
    hyper, state = circles.hyper, circles.state
    slices = Slices(circles, along)
    monkeypatch.setattr(tolerance, "slice_update", slices)
    law = hyper.law.copy()
    hyper.room[:] = 9.0
    if along:
        tolerance.update_law_along(None, hyper, circles.data, state)
    else:
        tolerance.update_law_given_variances(None, hyper, state)
    expected = law.copy()
    for which, step in enumerate(STEPS):
        expected[which] += step
        if which % 2:
            expected[which - 1] -= slices.centre * step
    np.testing.assert_allclose(hyper.law, expected)
    rows = small.complete(np.array(slices.rows)[:, :6])[:, : kernel.WIDTH]
    found = state.theta[circles.slots()]
    np.testing.assert_allclose(found, rows, rtol=1e-7, atol=1e-9)
    shares = (1.0, 0.5) if along else (hyper.nu_x, hyper.nu_d)
    for which, (width, least, _) in enumerate(slices.calls):
        known = slices.spread if which % 2 else sum(slices.sizes)
        known *= shares[which // 2]
        widest = tolerance.WIDEST * hyper.law_sd[which]
        assert width == pytest.approx(min(widest, tolerance.WIDTH / math.sqrt(known)))
        assert 0.0 < least < 1e-10
    hyper.law[:] = law


def test_ends_of_the_law(circles):
    """Nothing lies beyond so many standard deviations of s, nor of g with s against it."""
    scale = tolerance.ScaleStep(0.3, 0.1, 0.5, 2.0, 0.0, 0.0)
    far = FARTHEST * 0.5 - 0.2
    assert log_target(scale, -far - 0.4 + 1e-6) > -math.inf
    assert log_target(scale, -far - 0.4 - 1e-6) == -math.inf
    room = np.zeros((0, 4))
    growth = tolerance.GrowthStep(0.3, 0.1, 0.5, 0.2, -0.1, 0.7, 2.0, room, 0, 1)
    # s = 0.3 - 2 step, g = 0.2 + step.
    for end, open_ in ((0.249, True), (0.251, False), (-0.249, True), (-0.251, False)):
        step = end * FARTHEST + 0.1
        assert (log_target(growth, step) > -math.inf) == open_
    tight = growth._replace(scale_sd=1e9)
    for end, open_ in ((0.699, True), (0.701, False), (-0.699, True), (-0.701, False)):
        step = end * FARTHEST - 0.3
        assert (log_target(tight, step) > -math.inf) == open_


def test_a_cluster_alone_leaves_growth_its_prior(circles, monkeypatch):
    asked = []
    monkeypatch.setattr(
        tolerance, "slice_update", lambda rng, target, *given: asked.append(given) or 0.0
    )
    sums = tolerance.Sums(0, 1.0, 0.2, 0.0)
    tolerance.step_growth(None, circles.hyper, sums, 1, 0.5)
    assert asked[0][1] == tolerance.WIDEST * circles.hyper.law_sd[3]
    # Little is known, but more than nothing.
    vague = circles.hyper._replace(law_sd=np.full_like(circles.hyper.law_sd, 50.0))
    tolerance.step_growth(None, vague, sums._replace(spread=1.0), 1, 0.5)
    assert asked[1][1] == pytest.approx(tolerance.WIDTH / math.sqrt(0.5))


def test_spread_of_sizes(circles):
    hyper, state = circles.hyper, circles.state
    away = np.array([state.theta[k, 2] for k in circles.slots()]) - hyper.level
    sizes = np.array([len(circles.moments(k)[0]) for k in circles.slots()])
    found = tolerance.gather_variances(hyper, state)
    assert found[:3] == (len(away), len(away), pytest.approx(away.mean()))
    assert found.spread == pytest.approx(((away - away.mean()) ** 2).sum())
    found = tolerance.gather_members(hyper, circles.data, state)
    centre = (sizes @ away) / sizes.sum()
    assert found[:3] == (len(away), sizes.sum(), pytest.approx(centre))
    assert found.spread == pytest.approx(sizes @ (away - centre) ** 2)


def test_a_cluster_in_the_last_row_counts():
    """As many clusters as markings."""
    circles = Circles(1)
    n, state = circles.n, circles.state
    for i in range(n):
        state.label[i] = state.head[i] = i
        state.after[i], state.size[i] = -1, 1
    assert tolerance.gather_variances(circles.hyper, state).rows == n
    found = tolerance.gather_members(circles.hyper, circles.data, state)
    assert (found.rows, found.weight) == (n, n)


def test_the_law_is_updated_both_ways(monkeypatch):
    done = []
    for name in ("update_law_given_variances", "update_law_along"):
        monkeypatch.setattr(tolerance, name, lambda *_, name=name: done.append(name))
    tolerance.update_law(None, None, None, None)
    assert done == ["update_law_given_variances", "update_law_along"]


def test_when_the_reference_settles(monkeypatch):
    for due in (True, False):
        monkeypatch.setattr(tolerance, "law_is_due", lambda _, due=due: due)
        for scan in (0, tolerance.SETTLED - 1, tolerance.SETTLED):
            found = tolerance.reference_settles(SimpleNamespace(scans=[scan]))
            assert found == (due and scan < tolerance.SETTLED)


@pytest.mark.parametrize("follow", [True, False])
@pytest.mark.parametrize("settles", [True, False])
def test_spares_after_a_change_of_the_law(circles, follow, settles, monkeypatch):
    monkeypatch.setattr(tolerance, "reference_settles", lambda _: settles)
    hyper, state, data = circles.hyper._replace(follow=follow), circles.state, circles.data
    before = tolerance.tolerances_of(hyper)
    assert before == tuple(hyper.law[:4])
    reference_law = hyper.reference.copy()
    for i in range(circles.n):
        kernel.open_cluster(hyper, np.random.default_rng(i), data.features, i, state.spare, i)
        state.spare_weight[i] = likelihood.opening_weight(hyper, state.spare, i, data.features, i)
    law = hyper.law.copy()
    hyper.law[:4] += [0.2, -0.1, 0.3, 0.15]
    if not (follow or settles):
        state.spare_weight[1] = math.nan
        found = tolerance.account_for_tolerances(hyper, data, state, before)
    else:
        found = tolerance.account_for_tolerances(hyper, data, state, before)
        np.testing.assert_array_equal(hyper.reference, hyper.law)
        hyper.reference[:] = reference_law
    assert found is (follow or settles)
    if not found:
        np.testing.assert_array_equal(hyper.reference, reference_law)
        weights = [
            likelihood.opening_weight(hyper, state.spare, i, data.features, i)
            for i in range(circles.n)
        ]
        np.testing.assert_allclose(state.spare_weight[: circles.n], weights, rtol=1e-9)
    state.spare_weight[:] = 7.0
    assert tolerance.account_for_law(hyper, data, state) is (follow or settles)
    if not found:
        np.testing.assert_allclose(state.spare_weight[: circles.n], weights, rtol=1e-9)
    hyper.law[:], hyper.reference[:] = law, reference_law
