"""Sweeps go everywhere once: exact tests of one update say nothing of which updates are made."""

from __future__ import annotations

from itertools import combinations
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.state import PAIR_MOVED, PAIR_PROPOSED
from dfcrp.moves import assignment, pair
from reference import small_problems as small

FAMILIES = [0, 1, 0, 2, 1, 0, 2, 3]


class Calls(list):
    """Notes what a kernel calls."""

    def __call__(self, *given):
        self.append(given)


@pytest.fixture(scope="module")
def problem():
    return small.make_problem(FAMILIES)


@pytest.mark.parametrize(("first", "last"), [(0, 8), (2, 6), (3, 3)])
def test_every_marking_is_visited_once(first, last):
    made = Calls()
    sweep = small.with_callees(
        assignment.sweep_markings,
        update_marking=made,
        log_open_all=lambda prior, state: 0.25,
        is_grouped=lambda data, i: i == 5,
    )
    sweep("rng", "data", "hyper", "prior", "state", "scratch", first, last)
    start = ("rng", "data", "hyper", "prior", "state", "scratch")
    assert made == [(*start, i, 0.25) for i in range(first, last) if i != 5]


@pytest.mark.parametrize(("first", "last"), [(0, 8), (2, 6), (1, 3), (3, 3)])
def test_every_pair_is_visited_once(problem, first, last):
    made = Calls()
    sweep = small.with_callees(pair.sweep_pairs, update_pair=made)
    sweep("rng", problem.data, "hyper", "prior", "state", "scratch", first, last)
    found = [tuple(sorted((i, int(j)))) for *_, i, j in made]
    relatives = [(i, j) for i, j in combinations(range(8), 2) if FAMILIES[i] == FAMILIES[j]]
    start, other = problem.data.pair_start, problem.data.pair_other
    listed = [(i, int(j)) for i in range(first, last) for j in other[start[i] : start[i + 1]]]
    assert found == [tuple(sorted(ends)) for ends in listed]
    if (first, last) == (0, 8):
        assert sorted(found) == relatives


@pytest.mark.parametrize(("first", "last", "period"), [(0, 8, 1), (1, 8, 3), (2, 2, 1)])
def test_spares_are_renewed_in_turns(first, last, period):
    made = Calls()
    renew = small.with_callees(assignment.refresh_spares, refresh_spare=made)
    renew("rng", "data", "hyper", "state", first, last, period)
    assert [i for *_, i in made] == list(range(first, last, period))


def test_clusters_are_named_after_their_smallest_member():
    rng = np.random.default_rng(103)
    problem = small.make_problem(FAMILIES)
    for _ in range(20):
        labels = list(range(8))
        for i in range(1, 8):
            free = [
                k for k in range(i)
                if labels[k] == k
                and FAMILIES[i] not in [FAMILIES[j] for j in range(i) if labels[j] == k]
            ]  # fmt: skip
            labels[i] = int(rng.choice([*free, i]))
        state = small.fill_state(problem, labels)
        internal = rng.permutation(8)
        data = problem.data._replace(internal=internal)
        out, name = np.empty(8, np.int32), np.empty(8, np.int64)
        assignment.canonical_labels.py_func(data, state, name, out)
        for position in range(8):
            same = [q for q in range(8) if labels[internal[q]] == labels[internal[position]]]
            assert out[position] == min(same)


@pytest.mark.parametrize(
    ("after", "moved"), [((0, 2), 0), ((4, 2), 1), ((0, 5), 1), ((2, 0), 1), ((4, 5), 1)]
)
def test_pairs_that_moved_are_counted(problem, after, moved):
    """And a marking that is taken out is nowhere while the other is weighed."""
    state = small.fill_state(problem, list(range(8)))
    weighed, nowhere = [], len(FAMILIES)

    def choose_slots(rng, data, hyper, prior, state, scratch, i, j, new_i, new_j):
        weighed.append((i, j, new_i, new_j, int(state.label[0]), int(state.label[2])))
        return 1, 1

    def attach(rng, data, hyper, state, i, k, log_opening):
        assert (state.label[0], state.label[2]) in [(0, 2), (after[0], 2)]
        assert log_opening == 10.0 + i
        state.label[i] = k

    update = small.with_callees(
        pair.update_pair,
        detach=lambda data, hyper, state, i: 10.0 + i,
        log_open_all=lambda prior, state: 0.5,
        log_open_detached=lambda data, hyper, prior, common, state, i: common + 100.0 * i,
        choose_slots=choose_slots,
        choose_pair=lambda rng, scratch, count_i, count_j: (0, 0),
        attach=attach,
    )
    scratch = SimpleNamespace(candidate=[after[0]], candidate2=[after[1]])
    before = state.tally.copy()
    update("rng", problem.data, "hyper", "prior", state, scratch, 0, 2)
    assert weighed == [(0, 2, 10.5, 212.5, nowhere, nowhere)]
    assert state.tally[PAIR_PROPOSED] - before[PAIR_PROPOSED] == 1
    assert state.tally[PAIR_MOVED] - before[PAIR_MOVED] == moved
    assert (state.label[0], state.label[2]) == after
