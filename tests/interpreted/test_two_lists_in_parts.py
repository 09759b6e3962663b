"""Two lists with the order of arrival summed out, part by part, beside the same in plain words."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled.state import count_clusters
from dfcrp.moves import unordered
from dfcrp.priors.arrivals import kernel, two_lists
from dfcrp.sampling.problem import new_scratch
from reference import small_problems as small
from reference.known_numbers import KnownNumbers

FAMILIES = [0, 1, 0, 0, 1, 1, 0]


def waiting_by_rule(families, alpha):
    """P of how many wait at last for the first family and for the second, by a walk over both."""
    now = {(0, 0): 1.0}
    for family in families:
        after: dict[tuple[int, int], float] = {}
        for waiting, p in now.items():
            free, other = waiting[family], waiting[1 - family]
            for joins, chance in ((1, free / (free + alpha)), (0, alpha / (free + alpha))):
                new = [0, 0]
                new[family], new[1 - family] = free - joins, other + 1 - joins
                if chance > 0.0:
                    key = (new[0], new[1])
                    after[key] = after.get(key, 0.0) + p * chance
        now = after
    return now


@pytest.mark.parametrize("alpha", [0.01, 1.3, 40.0])
@pytest.mark.parametrize("width", [128, 3])
def test_tables_that_wait(alpha, width):
    data = small.make_problem(FAMILIES).data
    rng, waiting = np.random.default_rng(1), np.full((8, width), 5.0)
    for _ in range(20):
        order = rng.permutation(7)
        expected = np.zeros(8)
        for both, p in waiting_by_rule([FAMILIES[i] for i in order], alpha).items():
            expected[min(both)] += p
        for keep in (True, False):
            row = two_lists.walk_sequence(data, order, alpha, waiting, keep)
            if width > 4:
                np.testing.assert_allclose(waiting[row, :8], expected, rtol=1e-12)
                assert (waiting[row, 8:] == 0.0).all()
            else:  # what there is no room for is lost
                assert (waiting[row] <= expected[:3] * (1.0 + 1e-12)).all()
    assert two_lists.log_ending(waiting, 0, -1) == -math.inf
    assert two_lists.log_ending(waiting, 0, width) == -math.inf


def test_whom_those_who_join_find():
    """Arrivals 0 to 5 of families 0, 1, 0, 1, 1, 0; the last three join."""
    data = small.make_problem([0, 1, 0, 1, 1, 0]).data
    for numbers, mates in (
        ([0.0, 0.0, 0.0], [3, 5, 4, 0, 2, 1]),
        ([0.9, 0.0, 0.0], [4, 5, 3, 2, 0, 1]),
    ):
        state = small.fill_state(small.make_problem([0, 1, 0, 1, 1, 0]), (0, 1, 2, 0, 2, 1))
        scratch = new_scratch(small.make_problem([0, 1, 0, 1, 1, 0]))
        scratch.chosen[:6] = [0, 0, 0, 1, 1, 1]
        rng = KnownNumbers(numbers)
        two_lists.draw_mates(rng, data, state, scratch)
        assert scratch.slots[:6].tolist() == mates
        assert rng.used_up()


def test_an_order_is_one_of_the_partition():
    """Everyone arrives once, and nobody changes places at the tables."""
    problem = small.make_problem(FAMILIES)
    for seed in range(30):
        rng = np.random.default_rng(seed)
        labels = ([0, 0, 1, 2, 1, 3, 4], [0, 1, 2, 3, 4, 5, 6], [0, 0, 1, 2, 1, 2, 3])[seed % 3]
        state, scratch = small.fill_state(problem, labels, alpha=0.7), new_scratch(problem)
        before = problem.data.family[state.order].copy()
        two_lists.draw_order(rng, problem.data, state, scratch, 2.0, 1.0, seed % 2 == 0)
        assert sorted(state.order.tolist()) == list(range(7))
        assert state.rank[state.order].tolist() == list(range(7))
        assert sorted(problem.data.family[state.order]) == sorted(before)
        assert (state.alpha[0] == 0.7) == (seed % 2 == 1)
        assert small.partition_of(state) == tuple(labels)


def test_sweeps_end_where_the_order_cannot_be_dropped(monkeypatch):
    problem = small.make_problem(FAMILIES)
    state, scratch = small.fill_state(problem, [0] * 2 + [1, 2, 1, 3, 4]), new_scratch(problem)
    given = None, problem.data, problem.hyper, problem.prior, state, scratch
    visited, taken, answers = [], [], [True, False]
    monkeypatch.setattr(unordered, "drop_order", lambda *_: answers.pop(0))
    monkeypatch.setattr(unordered, "take_order", lambda *_: taken.append(len(visited)))
    monkeypatch.setattr(
        unordered, "update_unordered", lambda *g: visited.append(g[-2:]) or g[-1] + 1
    )
    unordered.sweep_unordered(*given)
    first = count_clusters(state)
    assert visited == [(i, first + i) for i in range(7)]
    assert taken == [7]


@pytest.mark.parametrize("use_order", [True, False])
def test_the_prior_drops_an_order_that_it_has(use_order):
    problem = small.make_problem(FAMILIES)
    state, scratch = small.fill_state(problem, [0] * 2 + [1, 2, 1, 3, 4]), new_scratch(problem)
    prior = problem.prior._replace(use_order=use_order)
    assert bool(kernel.drop_order(prior, problem.data, state, scratch)) == use_order
