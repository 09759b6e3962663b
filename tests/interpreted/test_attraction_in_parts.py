"""The updates of the DFCRP with attraction with known random numbers, against its definition."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled.slice import log_target
from dfcrp.compiled.state import (
    EXCHANGE_ACCEPTED,
    EXCHANGE_PROPOSED,
    ORDER_ACCEPTED,
    ORDER_PROPOSED,
    Block,
)
from dfcrp.priors import contract
from dfcrp.priors.attraction import kernel
from exact import test_attraction as twin
from exact.test_attraction import problem  # noqa: F401
from reference.known_numbers import KnownNumbers

ALPHA = 0.8
PARTITIONS = [(0, 0, 0, 3, 3), (0, 1, 0, 1, 0), (0, 0, 2, 3, 4), (0, 1, 1, 3, 0)]


def around(gain):
    if gain > -1e-8:
        return [(1e-7, True)]
    return [(-gain + 1e-9, True), (-gain - 1e-9, False)]


class Setting(twin.Chamber):
    """A partition in a random order."""

    def __init__(self, problem, labels, seed, strength):  # noqa: F811
        super().__init__(problem)
        self.labels, self.strength = labels, strength
        rng = self.rng = np.random.default_rng(seed)
        self.order = rng.permutation(5)
        self.fill(labels, self.order, ALPHA, strength)
        self.refresh_auxiliary(rng, labels, strength)

    def log_given(self, order_) -> float:
        return twin.log_given_order(self.labels, ALPHA, self.strength, list(order_))

    def assert_order_is(self, order_) -> None:
        np.testing.assert_array_equal(self.state.order, order_)
        np.testing.assert_array_equal(self.state.rank[order_], np.arange(5))


@pytest.fixture(params=[(0, 1.3), (1, -0.7), (2, 0.4)])
def made(request, problem):  # noqa: F811
    seed, strength = request.param
    return lambda labels: Setting(problem, labels, seed, strength)


def log_joint(setting, order_, u) -> float:
    """log p(c, u | order), u by marking."""
    total = 0.0
    for i, own, whole in twin.arrive(list(order_), setting.labels, setting.strength):
        total += math.log(own or ALPHA) - u[i] * (whole + ALPHA)
    return total


def test_exchanges_are_taken_by_their_ratio(made):
    for labels in PARTITIONS:
        for a, b in ((0, 3), (1, 4), (4, 1)):
            setting = made(labels)
            before, by_slot = setting.order.copy(), setting.state.u[setting.order].copy()
            after = before.copy()
            p, q = setting.state.rank[a], setting.state.rank[b]
            after[[p, q]] = after[[q, p]]
            logs = []
            for order_ in (before, after):
                u = np.empty(5)
                u[order_] = by_slot
                logs.append(log_joint(setting, order_, u))
            for exponential, taken in around(logs[1] - logs[0]):
                fresh = made(labels)
                rng = KnownNumbers(exponentials=[exponential])
                kernel.exchange(fresh.prior, rng, fresh.data, fresh.state, a, b)
                now = after if taken else before
                fresh.assert_order_is(now)
                np.testing.assert_allclose(fresh.state.u[now], by_slot)
                assert fresh.state.tally[EXCHANGE_PROPOSED] == 1
                assert fresh.state.tally[EXCHANGE_ACCEPTED] == int(taken)


def test_who_exchanges_with_whom(made, monkeypatch):
    setting, done = made(PARTITIONS[0]), []
    monkeypatch.setattr(kernel, "random_relative", lambda rng, data, a, block: (a + a % 2) % 5)
    monkeypatch.setattr(kernel, "exchange", lambda *given: done.append(given[-2:]))
    setting.state.visit[:5] = [0, 2, 0, 0, 1]
    kernel.update_slots(
        setting.prior, None, setting.data, setting.state, setting.scratch, Block(1, 4, 0, 0)
    )
    assert done == [(1, 2)] * (1 + kernel.EXCHANGE_VISITS) + [(3, 4)]


@pytest.mark.parametrize("share", [0.0, 0.5, 0.999])
def test_the_order_is_rearranged(made, share):
    for labels in PARTITIONS:
        numbers = np.random.default_rng(8).random(30).tolist()
        first_numbers = [share, numbers[0]]
        length = 2.0 ** (1.0 + share * math.log2(2.5))
        ends = [0, min(1 + int(numbers[0] * length), 5)]
        while ends[-1] < 5:
            ends.append(min(ends[-1] + math.ceil(length), 5))
        for wanted in range(len(ends) - 1):
            setting = made(labels)
            before, used, exponentials = setting.order.copy(), iter(numbers[1:]), []
            # All proposals are refused but one; shuffles are read off the numbers.
            uniforms, after = list(first_numbers), before.copy()
            for stretch in range(len(ends) - 1):
                low, high = ends[stretch], ends[stretch + 1]
                proposal = before.copy()
                for slot in range(high - 1, low, -1):
                    u = next(used)
                    uniforms.append(u)
                    other = low + int(u * (slot - low + 1))
                    proposal[[slot, other]] = proposal[[other, slot]]
                gain = setting.log_given(proposal) - setting.log_given(before)
                if stretch == wanted:
                    exponentials.append(max(-gain, 0.0) + 1e-9)
                    after[low:high] = proposal[low:high]
                else:
                    exponentials.append(-gain - 1e-9)
            rng = KnownNumbers(uniforms, exponentials)
            given = setting.prior, rng, setting.data, setting.state, setting.scratch
            for values in setting.prior.arrived[5:]:
                values[:] = 3
            kernel.rearrange(*given)
            assert rng.used_up()
            setting.assert_order_is(after)
            assert setting.state.tally[ORDER_PROPOSED] == len(ends) - 1
            assert setting.state.tally[ORDER_ACCEPTED] == 1
            arrived, strong = setting.prior.arrived, math.exp(setting.strength)
            walk = twin.arrive(list(after), labels, setting.strength)
            for slot, (_, own, whole) in enumerate(walk):
                found = arrived.open[slot] + (strong - 1.0) * arrived.kin[slot]
                assert found == pytest.approx(whole)
                found = arrived.mates[slot] + (strong - 1.0) * arrived.mate_kin[slot]
                assert found == pytest.approx(own)


def test_conditional_of_the_strength(made):
    for labels in PARTITIONS:
        setting = made(labels)
        setting.prior.arrived.of_family[:] = 0
        refused = KnownNumbers([0.0, 0.0, *[0.9] * 20], [-99.0] * 9)
        kernel.rearrange(setting.prior, refused, setting.data, setting.state, setting.scratch)
        setting.assert_order_is(setting.order)
        for strength in (-0.5, 0.0, 0.9):
            expected = twin.log_given_order(labels, ALPHA, strength, setting.order.tolist())
            expected -= len(set(labels)) * math.log(ALPHA)
            expected -= 0.5 * (strength / twin.MODEL.strength_sd) ** 2
            prior = setting.prior
            assert kernel.log_strength(prior, setting.state, strength) == pytest.approx(expected)
            other = prior._replace(strength_sd=1.7)
            expected += 0.5 * strength**2 - 0.5 * (strength / 1.7) ** 2
            found = log_target(kernel.Strength(other, setting.state), strength)
            assert found == pytest.approx(expected)


def test_update_of_the_strength(made, monkeypatch):
    setting, asked = made(PARTITIONS[0]), []

    def known(rng, target, start, width, least):
        asked.append((target, start, width, least))
        return start + 0.25

    monkeypatch.setattr(kernel, "slice_update", known)
    kernel.update_strength(setting.prior, None, setting.state)
    [(target, start, width, least)] = asked
    assert isinstance(target, kernel.Strength)
    assert (start, width) == (setting.strength, kernel.WIDTH)
    assert least == pytest.approx(1e-13 * (1.0 + abs(start)))
    assert setting.prior.own[0] == setting.strength + 0.25
    assert setting.prior.strong[0] == pytest.approx(math.exp(setting.strength + 0.25))


@pytest.mark.parametrize("learned", [True, False])
def test_what_a_scan_updates(made, learned, monkeypatch):
    setting, done = made(PARTITIONS[1]), []
    for name, result in (
        ("rearrange", None), ("update_strength", None), ("update_alpha", 1.75),
        ("step_width", 0.6), ("rebuild_tail", None),
    ):  # fmt: skip
        monkeypatch.setattr(
            kernel, name, lambda *given, n=name, r=result: done.append((n, given)) or r
        )
    prior, state = setting.prior._replace(learned=learned), setting.state
    prior.arrived.open[:], prior.arrived.kin[:] = np.arange(5), [2, 0, 1, 0, 1]
    state.scans[0] = 7
    rng = KnownNumbers(exponentials=[0.5, 1.0, 1.5, 2.0, 2.5])
    kernel.update_attraction(prior, rng, setting.data, None, state, setting.scratch)
    expected = ["rearrange", "update_strength", "step_width", "update_alpha", "rebuild_tail"]
    assert [name for name, _ in done] == [n for n in expected if learned or n != expected[1]]
    given = dict(done)
    seated = np.arange(5) + (math.exp(setting.strength) - 1.0) * np.array([2, 0, 1, 0, 1])
    np.testing.assert_allclose(prior.arrived.seated, seated)
    clusters = len(set(PARTITIONS[1]))
    assert given["step_width"] == (7, 3, clusters, 3.0)
    np.testing.assert_allclose(given["update_alpha"][1], seated)
    assert given["update_alpha"][2:] == (clusters, 3.0, 2.0, ALPHA, 0.6)
    assert state.alpha[0] == 1.75
    np.testing.assert_allclose(
        state.u[state.order], [0.5 * (at + 1) / (seated[at] + 1.75) for at in range(5)]
    )


def test_answers_to_the_contract(made):
    setting = made(PARTITIONS[0])
    prior, data, state = setting.prior, setting.data, setting.state
    assert not contract.uses_order(prior)
    assert contract.log_open_all(prior, state) == pytest.approx(math.log(ALPHA))
    assert contract.log_open(prior, 0.3, data, state, 0, 1.0) == 0.3
    assert contract.log_tilt(prior, data, state, 0, 1.0) == 0.0
    assert contract.log_join_bound(prior, data, 0, 1.0) == math.inf
