"""Experts who differ: what is updated when, what sums begin with, and slices with known numbers."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.slice import FARTHEST, log_target
from dfcrp.likelihoods import bias
from dfcrp.likelihoods.bias import BEFORE, COUNT, GRADIENT, NOWHERE, SHARE, SQUARES
from dfcrp.likelihoods.circle import tolerance
from dfcrp.likelihoods.normal import bias as normal_bias
from dfcrp.likelihoods.normal import covariance
from exact import test_bias as twin
from exact import test_feature_likelihoods as features
from reference.known_numbers import KnownNumbers


@pytest.fixture(params=range(2))
def setting(request):
    return twin.Circles(request.param)


def noting(monkeypatch, module, *names):
    done = []
    for name in names:
        monkeypatch.setattr(module, name, lambda *_, name=name: done.append(name))
    return done


def test_experts_who_are_alike(setting):
    hyper, law = setting.hyper, setting.hyper.law
    for i in range(twin.N):
        offset, factor = setting.offset_and_noise(i)
        for axis in range(3):
            assert bias.offset_by(hyper, law, i, axis) == pytest.approx(offset[axis])
            assert bias.offset_of(hyper, i, axis) == pytest.approx(offset[axis])
        assert bias.log_noise_by(hyper, law, i) == pytest.approx(0.5 * math.log(factor))
        assert bias.precision_by(hyper, law, i) == pytest.approx(1.0 / factor)
        assert bias.precision_of(hyper, i) == pytest.approx(1.0 / factor)
    alike = hyper._replace(bias=hyper.bias._replace(offsets=NOWHERE, noise=NOWHERE))
    assert bias.offset_by(alike, law, 3, 1) == 0.0
    assert bias.log_noise_by(alike, law, 3) == 0.0
    assert bias.precision_by(alike, law, 3) == 1.0
    # The first place in a law is a place.
    first = hyper._replace(bias=hyper.bias._replace(offsets=0, noise=0))
    assert bias.offset_by(first, law, 0, 1) == law[1]
    assert bias.log_noise_by(first, law, 0) == law[0]


def test_sums_over_items_begin_with_nothing(setting, monkeypatch):
    hyper, work = setting.hyper, setting.hyper.bias.work
    shares = work[:, : COUNT + 1].copy()
    seen = []

    def note(h, theta, k, y, i):
        seen.append((k, i))
        h.bias.work[h.bias.expert[i], GRADIENT] += 1.0
        return 0.5 + i

    monkeypatch.setattr(bias, "add_to_offsets", note)
    monkeypatch.setattr(bias, "squares_of", note)
    where = [(setting.state.label[i], i) for i in range(twin.N)]
    counts = np.bincount(twin.FAMILIES)
    for gather in (bias.gather_offsets, bias.gather_squares):
        work[:, SQUARES:] = 9.0
        seen.clear()
        gather(hyper, setting.data, setting.state)
        assert seen == where
        np.testing.assert_array_equal(work[:, GRADIENT], counts)
        np.testing.assert_array_equal(work[:, BEFORE], 0.0)
        assert not work[:, GRADIENT + 1 :].any()
        np.testing.assert_array_equal(work[:, : COUNT + 1], shares)
    squares = np.bincount(twin.FAMILIES, weights=0.5 + np.arange(twin.N))
    np.testing.assert_allclose(work[:, SQUARES], squares)


def test_what_vectors_tell_of_their_expert():
    """The sums of w Λ and of w Λ v, over two items of one expert."""
    made = features.HYPERS[3]
    hyper, p = bias.of_chain(made, made.law.copy()), 3
    theta = np.random.default_rng(8).normal(size=(2, covariance.row_width(p)))
    mean = theta[1, covariance.FIRST : covariance.FIRST + p]
    inverse = theta[1, covariance.FIRST + 2 * p :][: p * p].reshape(p, p)
    work, items, expert = hyper.bias.work, (2, 4), 1
    work[:] = 0.0
    at = hyper.bias.offsets + p * expert
    w = math.exp(-2.0 * hyper.law[hyper.bias.noise + expert])
    gradient = np.zeros(p)
    for i in items:
        assert features.EXPERTS[i] == expert
        bias.add_to_offsets(hyper, theta, 1, features.Y, i)
        gradient += w * inverse @ (features.Y[i] - hyper.law[at : at + p] - mean)
    np.testing.assert_allclose(work[expert, GRADIENT : GRADIENT + p], gradient)
    np.testing.assert_allclose(work[expert, GRADIENT + p :], 2.0 * w * inverse.ravel())
    assert not np.delete(work, expert, axis=0).any()


def test_offsets_are_drawn_axis_by_axis(setting):
    """With gradients and precisions as they are: the mean and spread of the conditional, cut down
    to a weighted sum of zero."""
    hyper, work = setting.hyper, setting.hyper.bias.work
    experts, p, rng = len(work), 3, np.random.default_rng(4)
    sd = hyper.bias.offset_sd
    for axis in range(p):
        matrices = rng.normal(size=(experts, p, p))
        matrices = matrices @ matrices.transpose(0, 2, 1) + np.eye(p)
        gradient, start = rng.normal(size=(experts, p)), hyper.law.copy()
        at = hyper.bias.offsets + p * np.arange(experts) + axis
        precision = matrices[:, axis, axis] + sd[axis] ** -2
        share = work[:, SHARE]

        def draw(normals, axis=axis, matrices=matrices, gradient=gradient, start=start, at=at):
            hyper.law[:] = start
            work[:, GRADIENT : GRADIENT + p] = gradient
            work[:, GRADIENT + p :] = matrices.reshape(experts, -1)
            bias.draw_axis(KnownNumbers(normals=list(normals)), hyper, axis)
            return hyper.law[at].copy()

        middle = start[at] + (gradient[:, axis] - start[at] / sd[axis] ** 2) / precision
        pull = share / precision
        expected = middle - pull * (share @ middle) / (share @ pull)
        found = draw(np.zeros(experts))
        np.testing.assert_allclose(found, expected)
        moved = gradient - matrices[:, axis] * (found - start[at])[:, np.newaxis]
        others = [other for other in range(p) if other != axis]
        columns = work[:, GRADIENT : GRADIENT + p]
        np.testing.assert_allclose(columns[:, others], moved[:, others])
        steps = np.array([draw(one) - found for one in np.eye(experts)]).T
        covariance = np.diag(1.0 / precision) - np.outer(pull, pull) / (share @ pull)
        np.testing.assert_allclose(steps @ steps.T, covariance, atol=1e-12)
        hyper.law[:] = start


def test_density_of_noise():
    value = bias.log_noise_density(0.4, 3.0, 5.0, 7.0, 0.3)
    expected = -15.0 * 0.3 - 0.5 * math.exp(-0.6) * 7.0 - 0.5 * (0.3 / 0.4) ** 2
    assert value == pytest.approx(expected)
    for end, open_ in ((1.0, True), (1.001, False), (-1.001, False)):
        found = bias.log_noise_density(0.4, 3.0, 5.0, 0.0, end * 0.4 * FARTHEST)
        assert (found > -math.inf) == open_


def test_slices_of_noise(setting, monkeypatch):
    hyper, work, asked = setting.hyper, setting.hyper.bias.work, []
    work[:, SQUARES] = [3.0, 5.0, 2.0]

    def known(rng, target, start, width, least):
        asked.append((target, start, width, least))
        return 0.25

    monkeypatch.setattr(bias, "slice_update", known)
    at = hyper.bias.noise
    for f, e in ((0, 1), (2, 0)):
        start, share, count = hyper.law.copy(), work[:, SHARE], work[:, COUNT]
        bias.slice_noise(None, hyper, f, e)
        target, begun, width, least = asked.pop()
        both = share[f] + share[e]
        along = share[e] / both, -share[f] / both
        assert begun == 0.0
        assert 0.0 < least < 1e-10
        known_ = 6.0 * (along[0] ** 2 * count[f] + along[1] ** 2 * count[e])
        assert width == pytest.approx(2.0 / math.sqrt(known_ + hyper.bias.noise_sd**-2))
        assert hyper.law[at + f] == pytest.approx(start[at + f] + along[0] * 0.25)
        assert hyper.law[at + e] == pytest.approx(start[at + e] + along[1] * 0.25)
        held = [share @ law[at : at + 3] for law in (start, hyper.law)]
        assert held[0] == pytest.approx(held[1])
        for step in (-0.3, 0.0, 0.7):
            expected = sum(
                bias.log_noise_density(
                    hyper.bias.noise_sd, 3.0, count[g], work[g, SQUARES], start[at + g] + a * step
                )
                for g, a in zip((f, e), along, strict=True)
            )
            assert log_target(target, step) == pytest.approx(expected)


def test_everyone_is_moved_against_others(setting, monkeypatch):
    done, gathered = [], noting(monkeypatch, bias, "gather_squares")
    monkeypatch.setattr(bias, "slice_noise", lambda rng, hyper, f, e: done.append((f, e)))
    numbers = [0.1, 0.9, 0.3] * bias.NOISE_ROUNDS
    bias.update_noise(KnownNumbers(numbers), setting.hyper, setting.data, setting.state)
    assert done == [(0, 1), (1, 2), (2, 0)] * bias.NOISE_ROUNDS
    assert gathered == ["gather_squares"]
    done.clear()
    for experts, expected in ((1, []), (2, [(0, 1), (1, 0)] * bias.NOISE_ROUNDS)):
        few = SimpleNamespace(bias=SimpleNamespace(work=np.zeros((experts, 9)), spread=NOWHERE))
        bias.update_noise(KnownNumbers([0.7] * 40), few, None, None)
        assert done == expected
    monkeypatch.setattr(bias, "update_spread", lambda rng, hyper: done.append("spread"))
    done.clear()
    learned = SimpleNamespace(bias=SimpleNamespace(work=np.zeros((2, 9)), spread=3))
    bias.update_noise(KnownNumbers([0.7] * 40), learned, None, None)
    assert done == [(0, 1), (1, 0), "spread"] * bias.NOISE_ROUNDS


def test_what_is_learned_of_experts(setting, monkeypatch):
    done = noting(monkeypatch, bias, "update_offsets", "update_noise")
    for offsets in (NOWHERE, 0, 4):
        for noise in (NOWHERE, 0, 4):
            done.clear()
            hyper = SimpleNamespace(bias=SimpleNamespace(offsets=offsets, noise=noise))
            bias.update_bias(None, hyper, None, None)
            expected = ["update_offsets"] * (offsets >= 0) + ["update_noise"] * (noise >= 0)
            assert done == expected
    monkeypatch.undo()
    done = noting(monkeypatch, bias, "gather_offsets")
    monkeypatch.setattr(bias, "draw_axis", lambda rng, hyper, axis: done.append(axis))
    bias.update_offsets(None, setting.hyper, setting.data, setting.state)
    assert done == ["gather_offsets", 0, 1, 2]


def test_when_experts_are_compared(monkeypatch):
    for on in (True, False):
        for due in (True, False):
            monkeypatch.setattr(bias, "law_is_due", lambda _, due=due: due)
            for scan in range(2 * bias.PERIOD):
                for offsets in (NOWHERE, 4):
                    hyper = SimpleNamespace(bias=SimpleNamespace(on=on, offsets=offsets))
                    found = bias.bias_is_due(hyper, SimpleNamespace(scans=[scan]))
                    often = offsets != NOWHERE and scan % bias.PERIOD == 0
                    assert found == (on and (due or often))


@pytest.mark.parametrize("learned", [True, False])
@pytest.mark.parametrize("compare", [True, False])
@pytest.mark.parametrize("tails", [True, False])
def test_what_circles_share_is_updated(learned, compare, tails, monkeypatch):
    done = []
    monkeypatch.setattr(tolerance, "tails_are_due", lambda *_: tails)
    monkeypatch.setattr(tolerance, "update_tails", lambda *_: done.append("tails"))
    monkeypatch.setattr(tolerance, "bias_is_due", lambda *_: compare)
    monkeypatch.setattr(tolerance, "update_bias", lambda *_: done.append("bias"))
    for name, result in (
        ("tolerances_of", "before"), ("update_law", None), ("account_for_tolerances", "few"),
        ("account_for_law", "all"),
    ):  # fmt: skip
        monkeypatch.setattr(
            tolerance, name, lambda *given, n=name, r=result: done.append((n, given)) or r
        )
    found = tolerance.update_shared(SimpleNamespace(learned=learned), None, None, None)
    names = [one if isinstance(one, str) else one[0] for one in done]
    if compare or tails:
        own = ["bias"] * compare + ["tails"] * tails
        assert names == ["update_law"] * learned + own + ["account_for_law"]
        assert found == "all"
    elif learned:
        assert names == ["tolerances_of", "update_law", "account_for_tolerances"]
        assert done[-1][1][-1] == "before"
        assert found == "few"
    else:
        assert names == []
        assert found is False


@pytest.mark.parametrize("short", [True, False])
@pytest.mark.parametrize("law", [True, False])
@pytest.mark.parametrize("compare", [True, False])
@pytest.mark.parametrize("tails", [True, False])
def test_what_normal_clusters_share_is_updated(short, law, compare, tails, monkeypatch):
    learn = short or law
    names = ("update_law", "compare_experts", "rebuild_rows", "update_tails")
    done = noting(monkeypatch, normal_bias, *names)
    monkeypatch.setattr(normal_bias, "tails_are_due", lambda *_: tails)
    monkeypatch.setattr(normal_bias, "law_is_due", lambda _: law)
    monkeypatch.setattr(normal_bias, "short_law_is_due", lambda *_: short)
    monkeypatch.setattr(normal_bias, "bias_is_due", lambda *_: compare)
    assert normal_bias.update_shared(None, None, None, None) == (learn or compare or tails)
    expected = ["update_law"] * learn + ["compare_experts"] * compare
    expected += ["rebuild_rows"] * (learn or compare)
    assert done == expected + ["update_tails"] * tails


def test_experts_are_compared_given_parameters(monkeypatch):
    done = noting(monkeypatch, normal_bias, "rebuild_rows", "update_bias")
    monkeypatch.setattr(normal_bias, "draw_parameters", lambda h, rng, theta, k: done.append(k))
    state = SimpleNamespace(theta=np.zeros((4, 2)), size=[1, 0, 3, 1])
    normal_bias.compare_experts(None, None, None, state)
    assert done == ["rebuild_rows", 0, 2, 3, "update_bias"]
