"""Circles: draws of parameters with known random numbers, against matrices and plain formulas."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.likelihoods.circle import covariance, kernel, plane
from exact import test_bias as of_experts
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.known_numbers import KnownNumbers
from reference.random_cases import Case


class Circles:
    """Markings in clusters, by the paper's law, by one that is learned, by experts who differ."""

    def __init__(self, which: int):
        if which < 2:
            made = Case(which + 6, None)
            self.labels, self.theta = made.labels, made.theta
        else:
            made = of_experts.Circles(3)
            self.labels, self.theta = of_experts.LABELS, made.theta
        self.hyper, self.data, self.state = made.hyper, made.data, made.state
        self.made, self.n = made, len(self.labels)

    def corrected(self, i: int) -> tuple[np.ndarray, float]:
        """Features without the expert's offset, and the precision."""
        if not self.hyper.bias.on:
            return self.data.features[i], 1.0
        offset, factor = self.made.offset_and_noise(i)
        return self.data.features[i] - offset, 1.0 / factor

    def moments(self, k):
        members = [i for i in range(self.n) if self.state.label[i] == k]
        parts = [self.corrected(i) for i in members]
        y, w = np.array([one[0] for one in parts]), np.array([one[1] for one in parts])
        return members, y, w

    def slots(self):
        return sorted({int(k) for k in self.state.label})


@pytest.fixture(params=range(3), ids=["paper", "learned", "experts"])
def circles(request) -> Circles:
    return Circles(request.param)


def laws_of(hyper, log_diameter):
    """Shape and rate of the Gammas of a and of d."""
    laws = reference.variance_laws(hyper, log_diameter, hyper.law)
    return [(shape, 1.0 / scale) for shape, scale in laws]


def conditional_of_mean(hyper, row, weight, sums) -> tuple[np.ndarray, np.ndarray]:
    """Mean and precision of a cluster's mean, given its covariance."""
    inverse = np.linalg.inv(reference.covariance(row[:6]))
    start = np.array([hyper.mu0_x, hyper.mu0_y, hyper.mu0_l])
    base = np.diag(1.0 / np.array([hyper.var0_x, hyper.var0_y, hyper.var0_l]))
    precision = base + weight * inverse
    return np.linalg.solve(precision, base @ start + inverse @ sums), precision


def test_means_are_drawn_from_their_conditional(circles):
    hyper, theta = circles.hyper, circles.state.theta
    for k in circles.slots():
        _, y, w = circles.moments(k)
        sums = (w[:, np.newaxis] * y).sum(axis=0)
        mean, precision = conditional_of_mean(hyper, theta[k], w.sum(), sums)

        def draw(normals, k=k, w=w, sums=sums):
            rng = KnownNumbers(normals=list(normals))
            return np.array(plane.draw_mean(rng, hyper, theta, k, w.sum(), *sums))

        middle = draw(np.zeros(3))
        np.testing.assert_allclose(middle, mean, rtol=1e-9)
        steps = np.array([draw(one) - middle for one in np.eye(3)]).T
        np.testing.assert_allclose(steps @ steps.T, np.linalg.inv(precision), rtol=1e-6)


def around(gain):
    if gain > -1e-8:
        return [(1e-7, True)]
    return [(-gain + 1e-9, True), (-gain - 1e-9, False)]


def tilted(monkeypatch):
    """A prior that cares for sizes."""
    for module in (kernel, plane):
        monkeypatch.setattr(
            module, "log_tilt", lambda prior, data, state, k, size: 0.7 * size + 0.1 * k
        )


def test_means_are_taken_by_the_law_of_variances(circles, monkeypatch):
    tilted(monkeypatch)
    hyper, theta = circles.hyper, circles.state.theta
    for k in circles.slots():
        _, y, w = circles.moments(k)
        sums = (w[:, np.newaxis] * y).sum(axis=0)
        before = theta[k].copy()
        for normals in ([0.4, -1.0, 0.6], [-1.3, 0.2, 0.9], [2.0, 1.0, -0.5]):
            rng = KnownNumbers(normals=list(normals))
            new = plane.draw_mean(rng, hyper, theta, k, w.sum(), *sums)
            gain = log_variances(hyper, before, new[2]) - log_variances(hyper, before, before[2])
            gain += 0.7 * (new[2] - before[2])
            for exponential, taken in around(gain):
                theta[k] = before
                rng = KnownNumbers(exponentials=[exponential], normals=list(normals))
                found = plane.update_mean_of_cluster(
                    hyper, rng, None, circles.data, circles.state, k
                )
                assert found is taken
                np.testing.assert_allclose(theta[k, :3], new if taken else before[:3])
                np.testing.assert_array_equal(theta[k, 3:], before[3:])
        theta[k] = before


def log_variances(hyper, row, log_diameter) -> float:
    """log p(a, d | l), by the twin."""
    return reference.log_covariance_prior(hyper, row[:6], log_diameter)


def test_variances_are_drawn_by_their_laws(circles):
    hyper = circles.hyper
    law = hyper.law + 0.3 if hyper.learned else hyper.law
    theta = np.zeros((2, kernel.WIDTH))
    rng = KnownNumbers()
    kernel.draw_variances(hyper, law, rng, 2.3, theta, 1)
    if hyper.learned:
        assert rng.gammas == [hyper.nu_x, kernel.TAIL, hyper.nu_d, kernel.TAIL]
        away = 2.3 - hyper.level
        expected = [math.exp(law[0] + law[1] * away), math.exp(law[2] + law[3] * away)]
    else:
        (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, 2.3)
        assert rng.gammas == pytest.approx([shape_a, shape_d])
        expected = [shape_a / rate_a, shape_d / rate_d]
    np.testing.assert_allclose(theta[1, 3:5], expected)
    assert not theta[0].any()


def test_rows_are_drawn_given_one_marking(circles, monkeypatch):
    hyper = circles.hyper
    law = hyper.law + 0.1
    seen = []

    def draw(h, chosen, rng, log_diameter, theta, k):
        seen.append((chosen is law, log_diameter))
        theta[k, 3:5] = 0.5, 0.25

    monkeypatch.setattr(kernel, "draw_variances", draw)
    for i in range(circles.n):
        seen.clear()
        theta = np.full((2, kernel.WIDTH), 9.0)
        rng = KnownNumbers(normals=[0.0, 0.0, 0.0])
        kernel.draw_row_by(hyper, law, rng, circles.data.features, i, theta, 1)
        *y, precision = plane.corrected_by(hyper, law, circles.data.features, i)
        assert seen == [(True, y[2])]
        assert rng.betas == [(hyper.lambda_a, hyper.lambda_b)]
        lam = 2.0 * hyper.lambda_a / (hyper.lambda_a + hyper.lambda_b) - 1.0
        mean, _ = conditional_of_mean(
            hyper, [0.0, 0.0, 0.0, 0.5, 0.25, lam], precision, precision * np.array(y)
        )
        expected = small.complete(np.array([*mean, 0.5, 0.25, lam]))[: kernel.WIDTH]
        np.testing.assert_allclose(theta[1], expected, rtol=1e-9, atol=1e-12)
        assert (theta[0] == 9.0).all()


def test_singles_are_renewed_by_their_weights(circles, monkeypatch):
    tilted(monkeypatch)
    hyper, state = circles.hyper, circles.state
    drawn = np.full((1, kernel.WIDTH), 0.5)
    drawn[0, kernel.MU_L] = 2.9
    asked = []

    def draw(h, law, rng, y, i, theta, k):
        asked.append((law is hyper.law, i))
        theta[k] = drawn[0]

    monkeypatch.setattr(kernel, "draw_row_by", draw)
    for k in circles.slots():
        i, before = int(state.head[k]), state.theta[k].copy()
        for weights in ((0.3, -0.2), (-1.7, 0.4)):

            def weight(h, law, theta, row, y, j, weights=weights, i=i):
                assert law is hyper.law
                assert j == i
                return weights[0] if theta is state.theta else weights[1]

            monkeypatch.setattr(kernel, "weight_drawn_by", weight)
            gain = weights[1] - weights[0] + 0.7 * (2.9 - before[kernel.MU_L])
            for exponential, taken in around(gain):
                state.theta[k] = before
                room = np.zeros((1, kernel.WIDTH))
                rng = KnownNumbers(exponentials=[exponential])
                found = kernel.renew_single(hyper, rng, None, circles.data, state, k, room)
                assert found is taken
                np.testing.assert_array_equal(state.theta[k], drawn[0] if taken else before)
                assert asked.pop() == (True, i)
        state.theta[k] = before


def test_how_clusters_are_updated(circles, monkeypatch):
    done = []
    for name, result in (("renew_single", "renewed"), ("update_mean", "moved"),
                         ("update_covariance", None)):  # fmt: skip
        monkeypatch.setattr(kernel, name, lambda *_, n=name, r=result: done.append(n) or r)
    for size, u, renewed in ((1, 0.79, True), (1, 0.81, False), (2, 0.1, False)):
        done.clear()
        state = SimpleNamespace(size=[size])
        found = kernel.update_cluster(None, KnownNumbers([u]), None, None, state, 0, None)
        assert found == ("renewed" if renewed else "moved")
        assert done == (["renew_single"] if renewed else ["update_mean", "update_covariance"])


def test_rows_are_recorded(circles):
    theta = circles.state.theta
    theta[1, 0] = 1.0 + 2.0**-30
    for width in (6, 8):
        out = np.zeros((2, width), np.float32)
        plane.record_row(circles.hyper, theta, 1, out, 1)
        row = theta[1]
        cross = row[kernel.BETA] * row[kernel.VAR_POSITION]
        np.testing.assert_allclose(out[1, :6], [*row[:5], cross], rtol=1e-6)
        assert not out[0].any()
        if width == 8:
            whole = out[1, :2].astype(float) + out[1, 6:].astype(float)
            np.testing.assert_allclose(whole, row[:2], rtol=1e-12)


def test_covariances_are_sliced(circles, monkeypatch):
    hyper, state = circles.hyper, circles.state
    asked = []

    def slices(rng, law, given, which, start, width, *rest):
        asked.append((law, given, which, start, width, rest))
        return start + 0.1

    for module in (kernel, plane):
        monkeypatch.setattr(module, "slice_coordinate", slices)
    for k in circles.slots():
        asked.clear()
        before = state.theta[k].copy()
        kernel.update_covariance(hyper, None, circles.data, state, k)
        a, d = before[3:5] * math.exp(0.1)
        np.testing.assert_allclose(state.theta[k, 3:6], [a, d, before[5] + 0.1])
        np.testing.assert_allclose(
            state.theta[k], small.complete(state.theta[k][:6])[: kernel.WIDTH]
        )
        assert [one[2] for one in asked] == [0, 1, 2]
        np.testing.assert_allclose([one[3] for one in asked], [*np.log(before[3:5]), before[5]])
        np.testing.assert_allclose(asked[0][5], [before[4], before[5]])
        np.testing.assert_allclose(asked[1][5], [a, before[5]])
        np.testing.assert_allclose(asked[2][5], [a, d])
        assert [one[4] for one in asked] == [1.0, 1.0, 0.25]
        given = asked[0][1]
        (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, before[2])
        np.testing.assert_allclose(given[:4], [shape_a, rate_a, shape_d, rate_d])
        members, y, w = circles.moments(k)
        v = y - before[:3]
        across = v[:, 0] + v[:, 1]
        expected = [
            len(members), (w * (v[:, 0] ** 2 + v[:, 1] ** 2)).sum(), (w * across**2).sum(),
            (w * across * v[:, 2]).sum(), (w * v[:, 2] ** 2).sum(),
        ]  # fmt: skip
        np.testing.assert_allclose(given.spread, expected, rtol=1e-9)
        state.theta[k] = before


def test_conditionals_of_covariances(circles):
    """Of log a, log d and λ: differences of the joint density."""
    hyper = circles.hyper
    law = covariance.CorrelationLaw(1.7, 2.6)
    for k in circles.slots():
        row = circles.state.theta[k].copy()
        (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, row[2])
        _, y, w = circles.moments(k)
        spread = plane.spread_of_cluster(
            hyper, circles.state.theta, k, circles.data.features, circles.state
        )
        given = covariance.Conditional(shape_a, rate_a, shape_d, rate_d, spread)

        def joint(a, d, lam, row=row, y=y, w=w, laws=(shape_a, rate_a, shape_d, rate_d)):
            changed = [*row[:3], a, d, lam]
            value = sum(
                reference.log_normal(one, row[:3], reference.covariance(changed) / weight)
                for one, weight in zip(y, w, strict=True)
            )
            value += laws[0] * math.log(a) - laws[1] * a + laws[2] * math.log(d) - laws[3] * d
            return value + 0.7 * math.log1p(lam) + 1.6 * math.log1p(-lam)

        a, d, lam = row[3:6]
        found = [covariance.log_target_position(given, math.log(one), d, lam) for one in (a, 2 * a)]
        assert found[1] - found[0] == pytest.approx(joint(2 * a, d, lam) - joint(a, d, lam))
        found = [covariance.log_target_size(given, math.log(one), a, lam) for one in (d, 2 * d)]
        assert found[1] - found[0] == pytest.approx(joint(a, 2 * d, lam) - joint(a, d, lam))
        lams = (lam, 0.5 * lam - 0.1)
        found = [covariance.log_target_lambda(law, given, one, a, d) for one in lams]
        expected = joint(a, d, lams[1]) - joint(a, d, lam)
        assert found[1] - found[0] == pytest.approx(expected)


# Proposals for split clusters ---------------------------------------------------------------------


def test_members_are_dealt_by_running_means(circles):
    hyper, data = circles.hyper, circles.data
    deal = SimpleNamespace(dealt=np.full(2, 9.0), sums=np.full((2, 3), 5.0), variance=np.zeros(2))
    kernel.start_deal(hyper, data, deal, 1, 0)
    plane.put_on_side(hyper, data, deal, 1, 2)
    level = 0.5 * (circles.corrected(0)[0][2] + circles.corrected(1)[0][2])
    (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, level)
    np.testing.assert_allclose(deal.variance, [shape_a / rate_a, shape_d / rate_d])
    assert deal.dealt.tolist() == [1.0, 2.0]
    sides = ([1], [0, 2])
    for side, members in enumerate(sides):
        y = np.array([circles.corrected(i)[0] for i in members])
        np.testing.assert_allclose(deal.sums[side], y.sum(axis=0))
        v = circles.corrected(2)[0] - y.mean(axis=0)
        wider = 1.0 + 1.0 / len(members)
        a, d = deal.variance * wider
        expected = math.log(len(members)) - 1.5 * math.log(wider)
        expected -= 0.5 * ((v[0] ** 2 + v[1] ** 2) / a + v[2] ** 2 / d)
        found = plane.log_attraction(hyper, data, deal, side, 2)
        assert found == pytest.approx(expected)


def test_moments_of_members(circles):
    for k in circles.slots():
        members, y, w = circles.moments(k)
        found = plane.moments_of_cluster(circles.hyper, circles.data.features, circles.state, k)
        sums = w @ y
        apart = y - sums / w.sum()
        expected = [
            len(members), w.sum(), *sums, (w * (apart[:, 0] ** 2 + apart[:, 1] ** 2)).sum(),
            (w * apart[:, 2] ** 2).sum(),
        ]  # fmt: skip
        np.testing.assert_allclose(found, expected, atol=1e-12)


def test_peaks_are_modes():
    for k, rate, spread in ((1.5, 0.7, 2.0), (-0.8, 0.7, 2.0), (-3.0, 1.2, 1e-3), (0.0, 2.0, 3.0)):
        mode, width = kernel.peak(k, rate, spread)
        slope = k - rate * math.exp(mode) + 0.5 * spread * math.exp(-mode)
        assert slope == pytest.approx(0.0, abs=1e-9)
        curvature = rate * math.exp(mode) + 0.5 * spread * math.exp(-mode)
        assert width == pytest.approx(kernel.WIDER / math.sqrt(curvature))
    mode, _ = kernel.peak(-3.0, 1.2, 0.0)
    assert mode == pytest.approx(math.log(1e-9 / 1.2))
    moments = plane.CircleMoments(3.0, 2.0, 1.0, 1.0, 4.0, 1.7, 0.6)
    hyper = Circles(0).hyper
    (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, 2.0)
    expected = kernel.peak(shape_a - 2.0, rate_a, 1.7) + kernel.peak(shape_d - 1.0, rate_d, 0.6)
    assert kernel.peaks(hyper, moments, 2.0) == pytest.approx(expected)


def test_rows_are_proposed_around_their_peaks(circles):
    hyper, state = circles.hyper, circles.state
    for k in circles.slots():
        _, y, w = circles.moments(k)
        theta = np.zeros((2, kernel.WIDTH))
        rng = KnownNumbers(normals=[0.4, -0.7, 0.0, 0.0, 0.0])
        kernel.propose_row(hyper, rng, circles.data.features, state, k, theta, 1)
        moments = plane.moments_of_cluster(hyper, circles.data.features, state, k)
        level = (w @ y[:, 2]) / w.sum()
        peaks = kernel.peaks(hyper, moments, level)
        a = math.exp(peaks.mode_a + 0.4 * peaks.width_a)
        d = math.exp(peaks.mode_d - 0.7 * peaks.width_d)
        lam = 2.0 * hyper.lambda_a / (hyper.lambda_a + hyper.lambda_b) - 1.0
        np.testing.assert_allclose(theta[1, 3:6], [a, d, lam], atol=1e-12)
        assert rng.betas == [(hyper.lambda_a, hyper.lambda_b)]
        mean, _ = conditional_of_mean(hyper, theta[1], w.sum(), w @ y)
        np.testing.assert_allclose(theta[1, :3], mean, rtol=1e-9)
        # Its weight: p(members | Σ) with the mean integrated out, times p(a, d) over the proposal.
        inverse = np.linalg.inv(reference.covariance(theta[1, :6]))
        value = 0.0
        for one, weight in zip(y, w, strict=True):
            value += reference.log_normal(one, mean, np.linalg.inv(inverse) / weight)
        start, spread = reference.base_mean(hyper)
        value += reference.log_normal(mean, start, spread)
        precision = np.linalg.inv(spread) + w.sum() * inverse
        value -= reference.log_normal(mean, mean, np.linalg.inv(precision))
        value += log_variances_only(hyper, theta[1], mean[2])
        value += 0.5 * (0.4**2 + 0.7**2) + math.log(peaks.width_a * peaks.width_d)
        value += math.log(2.0 * math.pi)
        found = kernel.row_weight(hyper, circles.data.features, state, k, theta, 1)
        assert found == pytest.approx(value, abs=1e-6)


def log_variances_only(hyper, row, log_diameter) -> float:
    """log density of (log a, log d): a and d are Gammas."""
    total = 0.0
    laws = laws_of(hyper, log_diameter)
    for value, (shape, rate) in zip(row[3:5], laws, strict=True):
        total += shape * math.log(rate * value) - rate * value - math.lgamma(shape)
    return total
