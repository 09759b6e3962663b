"""Circles on a sphere: draws with known random numbers, against vectors and plain formulas."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.random import stream
from dfcrp.likelihoods.bias import ALIKE
from dfcrp.likelihoods.circle import kernel, sphere
from exact import test_bias as of_experts
from interpreted.test_circles_in_parts import around, laws_of, log_variances_only
from reference.known_numbers import KnownNumbers

PLACE = [kernel.MU_X, kernel.MU_Y, sphere.MU_Z]
XYZ = [sphere.X, sphere.Y, sphere.Z]


class Globe:
    """Markings of experts who are alike, or differ."""

    def __init__(self, differ: bool):
        made = of_experts.Globe(2)
        self.made, self.data, self.state = made, made.data, made.state
        hyper = made.hyper._replace(unit=2.5, lambda_a=1.4, mu0_l=1.3)
        self.hyper = hyper if differ else hyper._replace(bias=ALIKE)
        rng = np.random.default_rng(5)
        for k in range(of_experts.N):
            kernel.open_cluster(self.hyper, stream(k), self.data.features, k, self.state.theta, k)
        self.rng = rng

    def corrected(self, i):
        """Place, log diameter and precision."""
        y = self.data.features[i]
        if not self.hyper.bias.on:
            return y[XYZ], y[kernel.SIZE], 1.0
        offset, factor = self.made.offset_and_noise(i)
        turn, rise = self.made.degrees[i]
        east = np.array([-math.sin(turn), math.cos(turn), 0.0])
        north = np.array(
            [-math.sin(rise) * math.cos(turn), -math.sin(rise) * math.sin(turn), math.cos(rise)]
        )
        place = y[XYZ] - offset[0] * east - offset[1] * north
        return place, y[kernel.SIZE] - offset[2], 1.0 / factor

    def members(self, k):
        found = [i for i in range(of_experts.N) if self.state.label[i] == k]
        parts = [self.corrected(i) for i in found]
        places, sizes, w = (np.array(one) for one in zip(*parts, strict=True))
        return found, places, sizes, w

    def slots(self):
        return sorted({int(k) for k in self.state.label})


@pytest.fixture(params=[False, True], ids=["alike", "experts"])
def globe(request) -> Globe:
    return Globe(request.param)


def test_heights_above_the_ground(globe):
    for i in range(of_experts.N):
        place, size, precision = globe.corrected(i)
        found = sphere.corrected(globe.hyper, globe.data.features, i)
        np.testing.assert_allclose(found, [*place, size, precision], rtol=1e-9)
        height = sphere.height_by(globe.hyper, globe.hyper.law, i)
        radius = globe.hyper.radius
        assert height == pytest.approx(np.linalg.norm(place) - radius, abs=1e-9)


def test_places_are_drawn_around_the_sum(globe):
    """1 - cosine is an exponential of rate κ, cut off at 2; the direction around is uniform."""
    hyper, radius = globe.hyper, globe.hyper.radius
    theta = np.zeros((2, sphere.WIDTH))
    for sums in (
        [0.1, 2.0, 3.0],
        [2.0, 0.1, 3.0],
        [2.0, 3.0, -0.1],
        [1.0, 1.0, 1.0],
        [2.0, 0.5, 0.5],
    ):
        sums = np.array(sums)
        length = np.linalg.norm(sums)
        for inverse in (1e-4, 0.02, 5.0):
            theta[1, kernel.INV_A] = inverse
            kappa = radius * length * inverse
            seen = []
            for u, turn in ((0.3, 0.0), (0.3, 0.25), (0.3, 0.6), (0.9, 0.1), (0.0, 0.5)):
                rng = KnownNumbers([u, turn])
                sphere.draw_place(rng, hyper, theta, 1, *sums)
                place = theta[1, PLACE].copy()
                assert np.linalg.norm(place) == pytest.approx(radius)
                short = 1.0 - place @ sums / (radius * length)
                whole = -math.expm1(-2.0 * kappa)
                # The chance of less than this is u.
                assert -math.expm1(-kappa * short) / whole == pytest.approx(u, abs=1e-6)
                aside = place - (1.0 - short) * radius * sums / length
                seen.append(aside)
            # A quarter of a turn is a right angle, and all turn the same way.
            first, quarter, further = seen[:3]
            size = first @ first
            assert quarter @ first == pytest.approx(0.0, abs=1e-6 * size)
            angle = 2.0 * math.pi * 0.6
            expected = math.cos(angle) * first + math.sin(angle) * quarter
            np.testing.assert_allclose(further, expected, atol=1e-6 * math.sqrt(size))


def test_sizes_are_drawn_from_their_conditional(globe):
    hyper = globe.hyper
    theta = np.zeros((2, sphere.WIDTH))
    theta[1, kernel.INV_S] = 3.7
    precision = 1.0 / hyper.var0_l + 2.5 * 3.7
    mean = (hyper.mu0_l / hyper.var0_l + 3.1 * 3.7) / precision
    found = sphere.draw_size(KnownNumbers(normals=[0.8]), hyper, theta, 1, 2.5, 3.1)
    assert found == pytest.approx(mean + 0.8 / math.sqrt(precision))


def test_rows_are_drawn_in_turn(globe, monkeypatch):
    hyper = globe.hyper
    law = hyper.law + 0.1
    asked = []
    monkeypatch.setattr(
        sphere, "draw_place", lambda rng, h, theta, k, *sums: asked.append((k, *sums))
    )
    monkeypatch.setattr(
        sphere, "draw_size", lambda rng, h, theta, k, *given: asked.append((k, *given)) or 0.77
    )
    monkeypatch.setattr(
        kernel, "draw_variances",
        lambda h, chosen, rng, size, theta, k: asked.append((chosen is law, size))
        or theta[k].__setitem__(slice(3, 5), [0.5, 0.25]),
    )  # fmt: skip
    for i in range(of_experts.N):
        theta = np.full((2, sphere.WIDTH), 9.0)
        asked.clear()
        kernel.draw_row_by(hyper, law, None, globe.data.features, i, theta, 1)
        c1, c2, c3, size, precision = sphere.corrected_by(hyper, law, globe.data.features, i)
        assert asked[0] == (True, size)
        np.testing.assert_allclose(asked[1], [1, *(precision * np.array([c1, c2, c3]))])
        np.testing.assert_allclose(asked[2], [1, precision, precision * size])
        assert theta[1, kernel.MU_L] == 0.77
        assert theta[1, kernel.LAMBDA] == 0.0
        assert theta[1, kernel.INV_A] == pytest.approx(2.0)
        assert theta[1, kernel.INV_S] == pytest.approx(4.0)


def test_weights_of_drawn_rows(globe):
    """p(y | φ) p(φ) / q(φ | y), term by term: a uniform place, sizes, laws of a and d."""
    hyper, radius = globe.hyper, globe.hyper.radius
    law = hyper.law + 0.05 * np.arange(len(hyper.law))
    theta = globe.state.theta
    for i in range(of_experts.N):
        row = theta[i]
        a, d = row[kernel.VAR_POSITION], row[kernel.VAR_SIZE]
        value = log_place_and_size(globe, law, i, row)
        value += log_variances_only(hyper, row, row[kernel.MU_L])
        value -= log_drawn_ratio(
            hyper, law, sphere.corrected_by(hyper, law, globe.data.features, i)[3], a, d
        )
        if hyper.bias.on:
            value += kernel.log_density(hyper, theta, i, globe.data.features, i)
            value -= kernel.log_density_by(hyper, law, theta, i, globe.data.features, i)
        found = kernel.weight_drawn_by(hyper, law, theta, i, globe.data.features, i)
        assert found == pytest.approx(value, abs=1e-9)
        assert radius > 0.0


def log_place_and_size(globe, law, i, row) -> float:
    hyper, radius = globe.hyper, globe.hyper.radius
    c1, c2, c3, size, precision = sphere.corrected_by(hyper, law, globe.data.features, i)
    height = math.sqrt(c1 * c1 + c2 * c2 + c3 * c3) - radius
    value = -math.log(4.0 * math.pi * radius**2) - math.log1p(height / radius)
    value -= 0.5 * precision * height**2 / row[kernel.VAR_POSITION]
    spread = hyper.var0_l + row[kernel.VAR_SIZE] / precision
    value -= 0.5 * (math.log(2.0 * math.pi * spread) + (size - hyper.mu0_l) ** 2 / spread)
    return value


def log_drawn_ratio(hyper, law, size, a, d) -> float:
    """log density of log a and log d as spares have them: ratios of Gammas."""
    total, away, tail = 0.0, size - hyper.level, kernel.TAIL
    for value, nu, mean in (
        (a, hyper.nu_x, law[0] + law[1] * away),
        (d, hyper.nu_d, law[2] + law[3] * away),
    ):
        z = nu * value / (tail * math.exp(mean))
        total += nu * math.log(z) - (nu + tail) * math.log1p(z)
        total -= math.lgamma(nu) + math.lgamma(tail) - math.lgamma(nu + tail)
    return total


def test_spread_of_members(globe):
    theta = globe.state.theta
    for k in globe.slots():
        found, places, sizes, w = globe.members(k)
        chords = ((places - theta[k, PLACE]) ** 2).sum(axis=1)
        v = sizes - theta[k, kernel.MU_L]
        expected = [len(found), w @ chords, 0.0, 0.0, w @ v**2]
        spread = sphere.spread_of_cluster(globe.hyper, theta, k, globe.data.features, globe.state)
        np.testing.assert_allclose(spread, expected, rtol=1e-6, atol=1e-9)


def tilt(monkeypatch):
    for module in (kernel, sphere):
        monkeypatch.setattr(
            module, "log_tilt", lambda prior, data, state, k, size: 0.7 * size + 0.1 * k
        )


def test_means_are_updated(globe, monkeypatch):
    tilt(monkeypatch)
    hyper, state = globe.hyper, globe.state
    asked = []
    monkeypatch.setattr(
        sphere, "draw_place", lambda rng, h, theta, k, *sums: asked.append((k, *sums))
    )
    for k in globe.slots():
        _, places, sizes, w = globe.members(k)
        row, old = state.theta[k].copy(), state.theta[k, kernel.MU_L]
        for new in (old + 0.4, old - 0.5):
            gain = log_variances_only(hyper, row, new) - log_variances_only(hyper, row, old)
            gain += 0.7 * (new - old)
            monkeypatch.setattr(
                sphere, "draw_size",
                lambda rng, h, theta, k, *given, new=new: asked.append((k, *given)) or new,
            )  # fmt: skip
            for exponential, taken in around(gain):
                asked.clear()
                state.theta[k, kernel.MU_L] = old
                rng = KnownNumbers(exponentials=[exponential])
                found = sphere.update_mean_of_cluster(hyper, rng, None, globe.data, state, k)
                assert found is taken
                assert state.theta[k, kernel.MU_L] == (new if taken else old)
                np.testing.assert_allclose(asked[0], [k, *(w @ places)])
                np.testing.assert_allclose(asked[1], [k, w.sum(), w @ sizes])
        state.theta[k] = row


def test_singles_are_renewed(globe, monkeypatch):
    tilt(monkeypatch)
    hyper, state = globe.hyper, globe.state
    drawn = np.full(sphere.WIDTH, 0.5)
    drawn[kernel.MU_L] = 2.9

    def draw(h, law, rng, y, i, theta, k):
        assert law is hyper.law
        theta[k] = drawn + i

    monkeypatch.setattr(kernel, "draw_row_by", draw)
    for k in globe.slots():
        i, before = int(state.head[k]), state.theta[k].copy()
        for weights in ((0.3, -0.2), (2.7, 0.4)):

            def weight(h, law, theta, row, y, j, weights=weights, i=i):
                assert law is hyper.law
                assert j == i
                return weights[0] if theta is state.theta else weights[1]

            monkeypatch.setattr(kernel, "weight_drawn_by", weight)
            gain = weights[1] - weights[0] + 0.7 * (2.9 + i - before[kernel.MU_L])
            for exponential, taken in around(gain):
                state.theta[k] = before
                room = np.zeros((1, sphere.WIDTH))
                rng = KnownNumbers(exponentials=[exponential])
                found = kernel.renew_single(hyper, rng, None, globe.data, state, k, room)
                assert found is taken
                np.testing.assert_array_equal(state.theta[k], drawn + i if taken else before)
        # And one that is refused.
        monkeypatch.setattr(
            kernel, "weight_drawn_by",
            lambda h, law, theta, row, y, j: 50.0 if theta is state.theta else 0.0,
        )  # fmt: skip
        state.theta[k] = before
        rng = KnownNumbers(exponentials=[1.0])
        room = np.zeros((1, sphere.WIDTH))
        assert kernel.renew_single(hyper, rng, None, globe.data, state, k, room) is False
        np.testing.assert_array_equal(state.theta[k], before)


def test_variances_are_sliced(globe, monkeypatch):
    hyper, state, asked = globe.hyper, globe.state, []

    def slices(rng, law, given, which, start, width, *rest):
        asked.append((given, which, start, width, rest))
        return start + 0.1

    monkeypatch.setattr(kernel, "slice_coordinate", slices)
    for k in globe.slots():
        asked.clear()
        before = state.theta[k].copy()
        spread = sphere.spread_of_cluster(hyper, state.theta, k, globe.data.features, state)
        kernel.update_covariance(hyper, None, globe.data, state, k)
        a, d = before[3:5] * math.exp(0.1)
        np.testing.assert_allclose(state.theta[k, 3:5], [a, d])
        assert state.theta[k, kernel.INV_A] == pytest.approx(1.0 / a)
        (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, before[kernel.MU_L])
        for which, (given, number, start, width, rest) in enumerate(asked):
            np.testing.assert_allclose(given[:4], [shape_a, rate_a, shape_d, rate_d])
            np.testing.assert_allclose(given.spread, spread)
            assert (number, width) == (which, 1.0)
            assert start == pytest.approx(math.log(before[3 + which]))
            np.testing.assert_allclose(rest, [[before[4], 0.0], [a, 0.0]][which])
        state.theta[k] = before


def test_rows_are_recorded(globe):
    theta, out = globe.state.theta, np.full((2, 8), 9.0)
    sphere.record_row(globe.hyper, theta, 3, out, 1)
    x, y, z = theta[3, PLACE]
    place = [math.degrees(math.atan2(y, x)), math.degrees(math.asin(z / globe.hyper.radius))]
    # Nothing is lacking in double precision.
    np.testing.assert_allclose(out[1, :2], place, rtol=1e-10)
    assert out[1, 6:].tolist() == [0.0, 0.0]
    expected = [
        theta[3, kernel.MU_L] + math.log(2.5), theta[3, kernel.VAR_POSITION] * 6.25,
        theta[3, kernel.VAR_SIZE], 0.0,
    ]  # fmt: skip
    np.testing.assert_allclose(out[1, 2:6], expected, rtol=1e-6)
    assert (out[0] == 9.0).all()


# Proposals for split clusters ---------------------------------------------------------------------


def test_members_are_dealt_by_running_means(globe):
    hyper, data = globe.hyper, globe.data
    deal = SimpleNamespace(dealt=np.full(2, 9.0), sums=np.full((2, 4), 5.0), variance=np.zeros(2))
    kernel.start_deal(hyper, data, deal, 1, 0)
    sphere.put_on_side(hyper, data, deal, 1, 2)
    level = 0.5 * (globe.corrected(0)[1] + globe.corrected(1)[1])
    (shape_a, rate_a), (shape_d, rate_d) = laws_of(hyper, level)
    np.testing.assert_allclose(deal.variance, [shape_a / rate_a, shape_d / rate_d])
    assert deal.dealt.tolist() == [1.0, 2.0]
    for side, members in enumerate(([1], [0, 2])):
        parts = [globe.corrected(i) for i in members]
        places, sizes = np.array([one[0] for one in parts]), np.array([one[1] for one in parts])
        np.testing.assert_allclose(deal.sums[side][XYZ], places.sum(axis=0))
        assert deal.sums[side, kernel.SIZE] == pytest.approx(sizes.sum())
        for m in (3, 4):
            place, size, _ = globe.corrected(m)
            wider = 1.0 + 1.0 / len(members)
            a, d = deal.variance * wider
            chord = ((place - places.mean(axis=0)) ** 2).sum()
            expected = math.log(len(members)) - 1.5 * math.log(wider)
            expected -= 0.5 * (chord / a + (size - sizes.mean()) ** 2 / d)
            found = sphere.log_attraction(hyper, data, deal, side, m)
            assert found == pytest.approx(expected)


def test_moments_of_members(globe):
    """The spread of places is about the point of the ground nearest to their mean."""
    radius = globe.hyper.radius
    for k in globe.slots():
        found, places, sizes, w = globe.members(k)
        moments = sphere.moments_of_cluster(globe.hyper, globe.data.features, globe.state, k)
        sums = w @ places
        length = np.linalg.norm(sums)
        centre = radius * sums / length
        position = w @ ((places - centre) ** 2).sum(axis=1)
        size = w @ (sizes - w @ sizes / w.sum()) ** 2
        noise = -0.5 * np.log(w).sum()
        expected = [len(found), w.sum(), noise, *sums, w @ sizes, length, position, size]
        np.testing.assert_allclose(moments, expected, rtol=1e-6, atol=1e-9)


def test_rows_are_proposed_and_weighed(globe, monkeypatch):
    hyper, state, asked = globe.hyper, globe.state, []
    monkeypatch.setattr(
        sphere, "draw_place", lambda rng, h, theta, k, *sums: asked.append((k, *sums))
    )
    for k in globe.slots():
        n, places, sizes, w = globe.members(k)
        moments = sphere.moments_of_cluster(hyper, globe.data.features, state, k)
        theta = np.full((2, sphere.WIDTH), 9.0)
        asked.clear()
        rng = KnownNumbers(normals=[0.4, -0.7, 0.0])
        kernel.propose_row(hyper, rng, globe.data.features, state, k, theta, 1)
        peaks = kernel.peaks(hyper, moments, w @ sizes / w.sum())
        a = math.exp(peaks.mode_a + 0.4 * peaks.width_a)
        d = math.exp(peaks.mode_d - 0.7 * peaks.width_d)
        np.testing.assert_allclose(theta[1, 3:6], [a, d, 0.0])
        assert theta[1, kernel.INV_A] == pytest.approx(1.0 / a)
        np.testing.assert_allclose(asked[0], [1, *(w @ places)])
        precision = 1.0 / hyper.var0_l + w.sum() / d
        mean = (hyper.mu0_l / hyper.var0_l + w @ sizes / d) / precision
        assert theta[1, kernel.MU_L] == pytest.approx(mean)
        # p(members | a, d), the mean integrated out; sizes are jointly normal.
        radius, length = hyper.radius, np.linalg.norm(w @ places)
        count = len(n)
        value = -count * math.log(2.0 * math.pi * a) + np.log(w).sum()
        value += math.log(a) - 0.5 * moments.position / a - math.log(2.0 * radius * length)
        matrix = np.diag(d / w) + hyper.var0_l
        v = sizes - hyper.mu0_l
        value -= 0.5 * (v @ np.linalg.solve(matrix, v) + np.linalg.slogdet(2 * math.pi * matrix)[1])
        found = sphere.log_marginal_of_cluster(
            hyper, globe.data.features, state, k, theta, 1, moments
        )
        assert found == pytest.approx(value, abs=1e-8)
        value += log_variances_only(hyper, theta[1], mean)
        value += 0.5 * (0.4**2 + 0.7**2) + math.log(peaks.width_a * peaks.width_d)
        value += math.log(2.0 * math.pi)
        found = kernel.row_weight(hyper, globe.data.features, state, k, theta, 1)
        assert found == pytest.approx(value, abs=1e-8)
