"""Lists that arrive sooner or later: the map of times, its Jacobian, and the order it leads to."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.priors.arrivals import order
from dfcrp.sampling.problem import new_scratch
from reference import small_problems as small

FAMILIES = [0, 1, 0, 2, 1, 2, 2]
LABELS = (0, 0, 1, 1, 1, 2, 3)


class Setting:
    """Customers with times, of which some lists move."""

    def __init__(self, first: int, count: int, seed: int):
        rng = np.random.default_rng([seed, 81])
        self.problem = small.make_problem(FAMILIES)
        self.scratch = new_scratch(self.problem)
        self.order = rng.permutation(len(FAMILIES))
        self.first, self.count, self.total = first, count, 7.5
        self.times = self.total * np.sort(rng.random(len(FAMILIES)))
        self.moved = np.array(
            [(FAMILIES[i] - first) % 3 < count for i in self.order.tolist()], dtype=bool
        )

    def move(self, step: float, late: bool) -> tuple[float, np.ndarray, np.ndarray]:
        """The log Jacobian, the order and the times after it, both by slot of the new order."""
        data = self.problem.data
        state = small.fill_state(
            self.problem, LABELS, order=self.order, u=np.ones(len(FAMILIES)), alpha=1.3
        )
        self.scratch.value[:] = self.times
        given = data, state, self.scratch, self.first, self.count
        jacobian = order.move_times(*given, self.total, step, late)
        moved = order.count_moved(data, self.first, self.count)
        assert moved == self.moved.sum()
        order.merge_arrivals(*given, moved)
        times = self.times.copy()
        times[self.moved] = self.scratch.free_seats[:moved]
        return float(jacobian), self.scratch.proposal.copy(), np.sort(times)


@pytest.mark.parametrize(("first", "count"), [(0, 1), (2, 1), (2, 2)])
@pytest.mark.parametrize("late", [False, True])
def test_a_move_is_undone_by_its_inverse(first, count, late):
    """That is all a deterministic proposal must be, besides its Jacobian."""
    for seed in range(20):
        setting = Setting(first, count, seed)
        step = float(np.random.default_rng(seed).normal())
        jacobian, order, times = setting.move(step, late)
        back = Setting(first, count, seed)
        back.order, back.times = order, times
        back.moved = np.array([(FAMILIES[i] - first) % 3 < count for i in order.tolist()])
        undone, was, before = back.move(-step, late)
        assert was.tolist() == setting.order.tolist()
        assert before == pytest.approx(setting.times, rel=1e-9)
        assert undone == pytest.approx(-jacobian, abs=1e-9)


@pytest.mark.parametrize("late", [False, True])
def test_order_and_jacobian_are_those_of_the_map(late):
    """t^g or 1 − (1 − t)^g for the moved, whose order is found by sorting; derivatives by
    differences."""

    def image(time, power):
        return 1.0 - (1.0 - time) ** power if late else time**power

    for seed in range(20):
        setting = Setting(1, 1, seed)
        step = 0.7 * float(np.random.default_rng(seed).normal())
        power, share = math.exp(step), setting.times / setting.total
        jacobian, order, _ = setting.move(step, late)
        new = np.where(setting.moved, image(share, power), share)
        assert order.tolist() == setting.order[np.argsort(new)].tolist()
        h = 1e-6
        slope = (image(share + h, power) - image(share - h, power)) / (2.0 * h)
        assert jacobian == pytest.approx(np.log(slope[setting.moved]).sum(), abs=1e-5)


def test_a_time_at_an_end_moves_nobody():
    setting = Setting(0, 1, 3)
    setting.times[np.flatnonzero(setting.moved)[0]] = 0.0
    assert math.isnan(setting.move(0.5, False)[0])


def test_nobody_moves_where_there_is_one_list():
    """Its customers' order is all there is."""
    problem = small.make_problem([0, 0, 0])
    state = small.fill_state(problem, (0, 1, 2), order=np.arange(3), u=np.ones(3), alpha=1.3)
    order.shift_lists(np.random.default_rng(1), problem.data, state, new_scratch(problem))
    assert state.order.tolist() == [0, 1, 2]
    assert state.tally.sum() == 0
