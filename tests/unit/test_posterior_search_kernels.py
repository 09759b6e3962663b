"""Costs and moves of the point-partition search against their slow twins.

The search repairs most mistakes of a single move, so each is checked by itself.
"""

import numpy as np
import pytest

from dfcrp.summaries.kernels.division import (
    best_division,
    cluster_cost,
    coarsen,
    divide_exactly,
    divide_small,
    restrict,
    subset_costs,
    unit_conflicts,
    units_by_size,
)
from dfcrp.summaries.kernels.partitions import component_roots, distinct_patterns
from dfcrp.summaries.kernels.point_search import (
    join_cost,
    merge_linked,
    new_marks,
    new_scratch,
    polish,
    recombine,
    redivide,
    state_from_labels,
)
from dfcrp.summaries.point_partition import _problem, loss_table, members_by_cluster
from dfcrp.summaries.streaming import canonical
from reference import summary_reference as twin

LOSSES = ("vi", "binder")


def a_problem(seed, loss, n=10):
    """A search problem in which every marking is a block, and its draws."""
    _, labels, families, _ = twin.random_draws(seed, n=n)
    draws = labels.reshape(-1, n)
    by_item = np.ascontiguousarray(draws.T, np.int32)
    first, counts = distinct_patterns(by_item, np.arange(n))
    assert counts.sum() == len(draws)
    problem = _problem(
        by_item[:, first],
        counts,
        families,
        np.arange(n),
        table=loss_table(loss, n),
        neighbours=True,
    )
    return problem, draws, families


def total_cost(cluster, draws, loss):
    return sum(twin.cluster_cost(m, draws, loss) for m in twin.clusters_of(cluster).values())


@pytest.mark.parametrize("loss", LOSSES)
def test_cluster_and_join_cost(loss):
    problem, draws, _ = a_problem(0, loss)
    scratch = new_scratch(problem)
    state = state_from_labels(problem, draws[0].astype(np.int64))
    for members in twin.clusters_of(draws[0]).values():
        expected = twin.cluster_cost(members, draws, loss)
        assert cluster_cost(problem, np.array(members), scratch.counts) == pytest.approx(expected)
        assert not scratch.counts.any()
        for b in set(range(10)) - set(members):
            joined = twin.cluster_cost([*members, b], draws, loss)
            k = state.cluster[members[0]]
            assert join_cost(problem, state, b, k, scratch.overlap) == pytest.approx(
                joined - expected
            )


@pytest.mark.parametrize("loss", LOSSES)
def test_costs_of_all_sets_of_units(loss):
    problem, draws, families = a_problem(1, loss)
    blocks = np.array([7, 2, 3, 9, 0, 5])
    patterns, shares = restrict(problem, blocks)
    assert shares.sum() == pytest.approx(1.0)
    unit = np.array([0, 1, 1, 2, 3, 0])
    offsets, members = units_by_size(unit, 4)
    assert np.diff(offsets).tolist() == sorted(np.bincount(unit).tolist())
    conflicts = unit_conflicts(problem, blocks, offsets, members)
    counts = np.zeros(10, np.int64)
    cost = subset_costs(problem, blocks, patterns, shares, offsets, members, conflicts, counts)
    inside = [blocks[members[offsets[r] : offsets[r + 1]]] for r in range(4)]
    for subset in range(1, 16):
        chosen = [inside[r] for r in range(4) if subset >> r & 1]
        held = [set(families[c].tolist()) for c in chosen]
        if len(set().union(*held)) < sum(len(h) for h in held):
            assert cost[subset] == np.inf
        else:
            expected = twin.cluster_cost(np.concatenate(chosen), draws, loss)
            assert cost[subset] == pytest.approx(expected)


def test_best_division_tries_all():
    rng = np.random.default_rng(2)
    cost = np.concatenate(([0.0], rng.normal(size=31)))
    lowest, parts = best_division(cost)
    masks = []
    for partition in twin.all_partitions(5):
        masks.append([sum(1 << i for i in m) for m in twin.clusters_of(partition).values()])
    assert lowest == pytest.approx(min(cost[m].sum() for m in masks))
    assert cost[parts].sum() == pytest.approx(lowest)
    assert parts.sum() == 31


def test_coarsen_keeps_groups_apart_and_equal_blocks_together():
    problem, _, _ = a_problem(3, "vi")
    patterns, shares = restrict(problem, np.arange(10))
    group = np.array([0, 0, 0, 0, 1, 1, 1, 2, 2, 2])
    for limit in (3, 5, 10):
        unit, n_units = coarsen(patterns, shares, group, limit)
        assert 3 <= n_units <= limit
        assert set(unit.tolist()) == set(range(n_units))
        assert len(set(zip(unit.tolist(), group.tolist(), strict=True))) == n_units
    twice = np.array([4, 4, 4, 6])
    unit, n_units = coarsen(*restrict(problem, twice), np.zeros(4, np.int64), 4)
    assert len(set(unit[:3].tolist())) == 1
    assert n_units <= 2


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("seed", range(5))
def test_moves_never_raise_the_loss_or_break_the_rule(loss, seed):
    problem, draws, families = a_problem(seed, loss)
    scratch = new_scratch(problem)
    start = np.array(twin.random_valid_labels(np.random.default_rng(seed), families))
    state = state_from_labels(problem, start)
    before = total_cost(start, draws, loss)
    clusters = np.unique(state.cluster)[:3]
    changed = redivide(problem, state, clusters, 12, new_marks(10), scratch)
    after = total_cost(canonical(state.cluster), draws, loss)
    assert after < before - 1e-11 if changed else after == pytest.approx(before)
    polish(problem, state, np.arange(10), 4, scratch)
    assert total_cost(canonical(state.cluster), draws, loss) <= after + 1e-9
    assert twin.is_valid(state.cluster, families)


@pytest.mark.parametrize("loss", LOSSES)
def test_redivision_of_everything_is_the_optimum(loss):
    problem, draws, families = a_problem(4, loss, n=7)
    state = state_from_labels(problem, np.arange(7))
    redivide(problem, state, np.unique(state.cluster), 12, new_marks(7), new_scratch(problem))
    valid = [p for p in twin.all_partitions(7) if twin.is_valid(p, families)]
    lowest = min(total_cost(p, draws, loss) for p in valid)
    assert total_cost(canonical(state.cluster), draws, loss) == pytest.approx(lowest)


@pytest.mark.parametrize("loss", LOSSES)
def test_merging_stops_when_it_no_longer_pays(loss):
    problem, draws, families = a_problem(5, loss)
    state = state_from_labels(problem, np.arange(10))
    first, second = np.triu_indices(10, 1)
    merge_linked(problem, state, first, second, new_scratch(problem))
    clusters = list(twin.clusters_of(state.cluster).values())
    assert len(clusters) < 10
    assert twin.is_valid(state.cluster, families)
    assert total_cost(state.cluster, draws, loss) < total_cost(np.arange(10), draws, loss)
    # the first pair was looked at when both were alone
    pays = twin.cluster_cost([0, 1], draws, loss) < 2 * twin.cluster_cost([0], draws, loss)
    allowed = families[0] != families[1]
    assert (state.cluster[0] == state.cluster[1]) or not (pays and allowed)


@pytest.mark.parametrize("loss", LOSSES)
def test_recombination_takes_the_better_half_of_each(loss):
    # two far groups of markings: one partition is right about the left, the other about the right
    rng = np.random.default_rng(6)
    right = np.array([0, 0, 0, 3, 3, 5, 5, 5, 8, 8])
    strays = rng.random((60, 10)) < 0.1
    draws = canonical(np.where(strays, np.arange(10) + 20, right))
    by_item = np.ascontiguousarray(draws.T)
    first, counts = distinct_patterns(by_item, np.arange(10))
    table = loss_table(loss, 10)
    problem = _problem(by_item[:, first], counts, None, np.arange(10), table=table, neighbours=True)
    one = state_from_labels(problem, np.array([0, 0, 0, 3, 3, 5, 6, 7, 8, 8]))
    two = state_from_labels(problem, np.array([0, 1, 2, 3, 4, 5, 5, 5, 8, 8]))
    best = recombine(problem, one, two, new_scratch(problem))
    assert canonical(best.cluster).tolist() == right.tolist()


@pytest.mark.parametrize("ruled", [True, False])
@pytest.mark.parametrize("loss", LOSSES)
def test_small_components_together_are_divided_as_each_by_itself(loss, ruled):
    limit, seen = 6, set()
    for seed in range(40):
        rng = np.random.default_rng([3, seed])
        n = int(rng.integers(2, 30))
        # Items of a cluster are near in number; draws may break the rule of families.
        places = np.arange(n) // rng.integers(2, 5) + (rng.random((8, n)) < 0.1)
        by_item = np.ascontiguousarray(canonical(places).T)
        families = rng.integers(0, 5, n) if ruled else None
        _, order, offsets = members_by_cluster(component_roots(by_item))
        table = loss_table(loss, n)
        wanted, position = np.arange(n, dtype=np.int32), np.zeros(n, np.int32)
        for items in np.split(order, offsets[1:-1]):
            seen.add(min(items.size, limit + 1))
            if not 1 < items.size <= limit:
                continue
            position[items] = np.arange(items.size)
            first, counts = distinct_patterns(by_item, items)
            problem = _problem(
                position[by_item[np.ix_(items, first)]],
                counts,
                None if families is None else families[items],
                np.arange(items.size),
                table=table,
                neighbours=False,
            )
            wanted[items] = items[canonical(divide_exactly(problem))]
        best = np.arange(n, dtype=np.int32)
        codes = np.zeros(0, np.int64) if families is None else families
        divide_small(by_item, order, offsets, codes, limit, table, best)
        assert best.tolist() == wanted.tolist()
    assert seen >= {1, 2, 3, 4, limit + 1}
