"""Two lists with the order of arrival summed out, against all orders of a handful of markings."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled.state import count_clusters
from dfcrp.moves import unordered
from dfcrp.priors.arrivals import two_lists
from dfcrp.sampling.problem import new_scratch
from reference import small_problems as small
from reference.prior_reference import partitions, prob_given_order

#: More of the first list, of the second, and as many; not in the order of the lists.
FAMILIES = ([0, 0, 1, 0, 1], [1, 0, 1, 1, 0], [0, 1, 1, 0, 0, 1])
ALPHAS = (0.02, 0.8, 7.0)
FALSE_ALARM_RATE = 1e-5


def sequences(families):
    """Every sequence of the families, and an order of arrival with it."""
    found = {}
    for order in permutations(range(len(families))):
        found.setdefault(tuple(families[i] for i in order), []).append(order)
    return found


def shares(families, alpha, orders):
    """p(c | σ, α) of every partition: the mean over the orders with the sequence."""
    return {
        c: math.fsum(prob_given_order(c, families, alpha, order) for order in orders) / len(orders)
        for c in partitions(families)
    }


def alone(families, labels):
    """Markings of the shorter list that are alone."""
    shorter = min(families.count(0), families.count(1))
    return shorter - (len(families) - len(set(labels)))


def sequence_of(data, state):
    return tuple(int(f) for f in data.family[state.order])


@pytest.mark.parametrize("families", FAMILIES)
@pytest.mark.parametrize("alpha", ALPHAS)
def test_partitions_given_the_sequence_of_the_lists(families, alpha):
    problem = small.make_problem(families)
    waiting = np.full((len(families) + 1, two_lists.WIDTH), 9.0)
    for orders in sequences(families).values():
        expected = np.zeros(two_lists.WIDTH)
        for c, share in shares(families, alpha, orders).items():
            expected[alone(families, c)] += share
        for keep in (True, False, True):
            order = np.array(orders[-1], np.int32)
            row = two_lists.walk_sequence(problem.data, order, alpha, waiting, keep)
            assert row == (len(families) if keep else len(families) % 2)
            np.testing.assert_allclose(waiting[row], expected, rtol=1e-12, atol=1e-300)


@pytest.mark.parametrize("families", FAMILIES)
def test_weights_of_a_new_cluster(families):
    """Of two partitions that differ in whether a marking is alone or with one that else is."""
    problem = small.make_problem(families)
    scratch, checked = new_scratch(problem), 0
    for orders in list(sequences(families).values())[::3]:
        for labels, share in (found := shares(families, 0.8, orders)).items():
            state = small.fill_state(problem, labels, order=orders[0], alpha=0.8)
            assert two_lists.weigh_opening(problem.data, state, scratch)
            for i, label in enumerate(labels):
                if labels.count(label) == 2:
                    apart = list(labels)
                    apart[i] = max(labels) + 1
                    names = {k: at for at, k in enumerate(dict.fromkeys(apart))}
                    apart = tuple(names[k] for k in apart)
                    others = len(set(labels))
                    expected = math.log(found[apart] / share)
                    assert scratch.value[others] == pytest.approx(expected, rel=1e-9)
                    checked += 1
    assert checked > 50


def test_where_the_order_stays():
    """With many alone, three lists, or more markings than there is room for."""
    problem = small.make_problem([0, 1, 0, 1])
    state, scratch = small.fill_state(problem, (0, 1, 2, 3)), new_scratch(problem)
    assert two_lists.weigh_opening(problem.data, state, scratch)
    few = small.with_callees(two_lists.weigh_opening)
    few.__globals__["MOST_ALONE"] = 1
    assert not few(problem.data, state, scratch)
    assert two_lists.room_for(1000, 3) == (0, 0)
    assert two_lists.room_for(1000, 2) == (1001, two_lists.WIDTH)
    assert two_lists.room_for(10**6, 2) == (0, 0)
    none = scratch._replace(waiting=np.zeros((0, 0)))
    assert not two_lists.weigh_opening(problem.data, state, none)
    # Nor is a cluster opened from where it could not come back.
    row = two_lists.walk_sequence(problem.data, state.order, 0.5, scratch.waiting, False)
    most = two_lists.MOST_ALONE
    assert two_lists.log_opening(scratch.waiting, row, most + 1, 99, 99) == -math.inf


def counts_of(update, families, labels, alpha, draws, seed, key):
    """How often each key of the state comes up after updates, one after the other."""
    problem = small.make_problem(families)
    state, scratch = small.fill_state(problem, labels, alpha=alpha), new_scratch(problem)
    rng, found = np.random.default_rng(seed), {}
    for _ in range(draws):
        update(rng, problem.data, state, scratch)
        seen = key(problem.data, state)
        found[seen] = found.get(seen, 0) + 1
    return found


def p_value(found, expected):
    """Chi-square; 0 where something comes up that cannot."""
    if not set(found) <= set(expected):
        return 0.0
    total, each = sum(found.values()), np.array(list(expected.values()))
    observed = [found.get(key, 0) for key in expected]
    return float(stats.chisquare(observed, total * each / each.sum()).pvalue)


@pytest.mark.parametrize("planted", [False, True])
def test_sequences_given_the_partition(planted):
    """Chi-square over the 20 sequences; the bug takes every proposal. False alarms: 1e-5."""
    families, labels, alpha = FAMILIES[2], (0, 1, 0, 3, 4, 5), 0.05
    propose = two_lists.propose_sequence
    if planted:
        propose = small.with_callees(propose, log_ending=lambda *_: 0.0)

    def update(rng, data, state, scratch):
        for _ in range(6):
            propose(rng, data, state, scratch, alone(families, labels))

    expected = {
        sequence: shares(families, alpha, orders)[(0, 1, 0, 2, 3, 4)]
        for sequence, orders in sequences(families).items()
    }
    draws = 1500 if planted else 6000
    found = counts_of(update, families, labels, alpha, draws, 1, sequence_of)
    assert (p_value(found, expected) < FALSE_ALARM_RATE) == planted


def test_orders_given_partition_and_sequence():
    """Chi-square over all orders with one sequence, from a draw that depends on nothing else."""
    families, labels, alpha = FAMILIES[2], (0, 0, 1, 2, 3, 2), 0.6
    sequence, orders = list(sequences(families).items())[7]
    expected = {order: prob_given_order(labels, families, alpha, order) for order in orders}

    def update(rng, data, state, scratch):
        state.order[:] = orders[0]
        two_lists.draw_joins(rng, data, state, scratch, alone(families, labels))
        two_lists.draw_mates(rng, data, state, scratch)
        two_lists.deal_seats(rng, data, state, scratch)
        assert (state.rank[state.order] == np.arange(len(families))).all()

    def key(data, state):
        assert sequence_of(data, state) == sequence
        return tuple(state.order.tolist())

    found = counts_of(update, families, labels, alpha, 20_000, 3, key)
    assert p_value(found, expected) > FALSE_ALARM_RATE


def test_a_sweep_keeps_count_of_the_clusters():
    problem = small.make_problem([0, 0, 0, 1, 1, 1])
    state, scratch = small.fill_state(problem, (0, 1, 2, 0, 1, 5)), new_scratch(problem)
    rng, seen = np.random.default_rng(4), set()
    for _ in range(200):
        clusters = count_clusters(state)
        two_lists.weigh_opening(problem.data, state, scratch)
        i = int(rng.integers(6))
        found = unordered.update_unordered(
            rng, problem.data, problem.hyper, problem.prior, state, scratch, i, clusters
        )
        assert found == count_clusters(state)
        seen.add(found)
    assert seen == {3, 4, 5, 6}
