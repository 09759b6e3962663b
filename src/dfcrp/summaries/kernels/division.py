"""The expected loss of a cluster, and the best division of a few units by enumeration.

Both losses split over the clusters S of the partition that is sought. With f(x) = x log2 x
(variation of information) or f(x) = x (x - 1) / 2 (Binder) and draws c_d of weight w_d

    expected loss = sum_S g(S) + constant,  g(S) = f(|S|) - 2 sum_d w_d sum_l f(|S ∩ c_dl|)

Items that are together in every draw are one "block" with a weight; equal draws are one
"pattern" with a share.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, I4, I8, I4x2, frame
from dfcrp.compiled.jit import entry_kernel_with_arrays, kernel
from dfcrp.summaries.kernels.partitions import distinct_patterns, group_equal, hash_columns


@frame
class SearchProblem(NamedTuple):
    """What the search needs to know of the draws, for one component of the markings."""

    #: A block's cluster in each pattern, named after the smallest block; (blocks, patterns).
    labels: I4x2
    #: Items of a block.
    weights: I4
    #: Share of the draws that have this pattern; sums to one.
    shares: F8
    #: f at 0, 1, 2, ...
    table: F8
    #: CSR of the blocks that a block ever meets, and in what share of the draws.
    near_offsets: I8
    near: I4
    near_shares: F8
    #: CSR of the families of a block; empty when there is no family rule.
    family_offsets: I8
    families: I8
    n_families: int


@kernel
def cluster_cost(problem, members, counts):
    """g of the cluster with these blocks. ``counts`` is all zero before and after."""
    size = 0
    for b in members:
        size += problem.weights[b]
    agreement = 0.0
    for u in range(problem.shares.size):
        total = 0.0
        for b in members:
            counts[problem.labels[b, u]] += problem.weights[b]
        for b in members:
            label = problem.labels[b, u]
            total += problem.table[counts[label]]
            counts[label] = 0
        agreement += problem.shares[u] * total
    return problem.table[size] - 2.0 * agreement


@kernel
def restrict(problem, blocks):
    """The distinct patterns of these blocks alone, (patterns, blocks), and their shares."""
    hashes = np.empty(problem.shares.size, np.uint64)
    hash_columns(problem.labels, blocks, hashes)
    first, group = group_equal(hashes)
    shares = np.zeros(first.size)
    for u in range(group.size):
        shares[group[u]] += problem.shares[u]
    patterns = np.empty((first.size, blocks.size), np.int32)
    for v in range(first.size):
        for x in range(blocks.size):
            patterns[v, x] = problem.labels[blocks[x], first[v]]
    return patterns, shares


@kernel
def coarsen(patterns, shares, group, limit):
    """Tie blocks of one group together until at most ``limit`` units remain.

    Seeds are added farthest first, each group's first one to begin with, so the doubtful blocks
    become units of their own and the sure ones stay together. ``limit`` must allow one unit
    for each group.
    """
    n = patterns.shape[1]
    unit = np.zeros(n, np.int64)
    similarity = np.full(n, -1.0)
    n_units = 0
    seed = 0
    while n_units < limit and similarity[seed] < 1.0 - 1e-12:
        for x in range(n):
            if group[x] != group[seed]:
                continue
            same = 0.0
            for v in range(shares.size):
                if patterns[v, x] == patterns[v, seed]:
                    same += shares[v]
            if same > similarity[x]:
                similarity[x] = same
                unit[x] = n_units
        n_units += 1
        seed = np.argmin(similarity)
    return unit, n_units


@kernel
def units_by_size(unit, n_units):
    """CSR of the blocks of each unit, units with few blocks first."""
    blocks_in = np.zeros(n_units, np.int64)
    for x in range(unit.size):
        blocks_in[unit[x]] += 1
    offsets = np.zeros(n_units + 1, np.int64)
    members = np.empty(unit.size, np.int64)
    filled = 0
    for r in range(n_units):
        smallest = -1
        for k in range(n_units):
            if blocks_in[k] > 0 and (smallest < 0 or blocks_in[k] < blocks_in[smallest]):
                smallest = k
        blocks_in[smallest] = 0
        for x in range(unit.size):
            if unit[x] == smallest:
                members[filled] = x
                filled += 1
        offsets[r + 1] = filled
    return offsets, members


@kernel
def subset_costs(problem, blocks, patterns, shares, unit_offsets, unit_blocks, conflicts, counts):
    """g of every set of units (a bit mask each); infinite where the family rule forbids it.

    ``unit_blocks`` numbers the blocks as ``blocks`` lists them and ``patterns`` has them.

    The sets are walked in Gray code, one unit in or out at a time, so a set costs only the
    blocks of one unit. Early units change most often: they should be the small ones.
    """
    n_units = unit_offsets.size - 1
    table = problem.table
    weights = problem.weights[blocks]
    agreement = np.zeros(1 << n_units)
    for u in range(patterns.shape[0]):
        total = 0.0
        subset = 0
        for step in range(1, 1 << n_units):
            unit = 0
            while (step >> unit) & 1 == 0:
                unit += 1
            subset ^= 1 << unit
            sign = 1 if (subset >> unit) & 1 else -1
            for p in range(unit_offsets[unit], unit_offsets[unit + 1]):
                label = patterns[u, unit_blocks[p]]
                before = counts[label]
                counts[label] = before + sign * weights[unit_blocks[p]]
                total += table[counts[label]] - table[before]
            agreement[subset] += shares[u] * total
        # the walk ends with the last unit alone inside
        for p in range(unit_offsets[n_units - 1], unit_offsets[n_units]):
            counts[patterns[u, unit_blocks[p]]] = 0
    return _costs_from_agreement(agreement, weights, table, unit_offsets, unit_blocks, conflicts)


@kernel
def _costs_from_agreement(agreement, weights, table, unit_offsets, unit_blocks, conflicts):
    size = np.zeros(agreement.size, np.int64)
    cost = np.zeros(agreement.size)
    for subset in range(1, agreement.size):
        unit = 0
        while (subset >> unit) & 1 == 0:
            unit += 1
        rest = subset & (subset - 1)
        size[subset] = size[rest]
        for p in range(unit_offsets[unit], unit_offsets[unit + 1]):
            size[subset] += weights[unit_blocks[p]]
        if np.isinf(cost[rest]) or (conflicts[unit] & rest) != 0:
            cost[subset] = np.inf
        else:
            cost[subset] = table[size[subset]] - 2.0 * agreement[subset]
    return cost


@kernel
def best_division(cost):
    """Cheapest way to divide all units into sets, over every way there is.

        best(U) = min over sets S within U that hold its first unit of g(S) + best(U without S)

    Returns the cost and the sets as bit masks.
    """
    best = np.zeros(cost.size)
    chosen = np.zeros(cost.size, np.int64)
    for units in range(1, cost.size):
        rest = units & (units - 1)
        first = units ^ rest
        best[units] = np.inf
        others = rest
        while True:
            total = cost[first | others] + best[rest ^ others]
            if total < best[units]:
                best[units] = total
                chosen[units] = first | others
            if others == 0:
                break
            others = (others - 1) & rest
    parts = np.empty(64, np.int64)
    n_parts = 0
    units = cost.size - 1
    while units != 0:
        parts[n_parts] = chosen[units]
        n_parts += 1
        units ^= chosen[units]
    return best[cost.size - 1], parts[:n_parts].copy()


@kernel
def unit_conflicts(problem, blocks, unit_offsets, unit_blocks):
    """For each unit the bit mask of the other units that share a family with it."""
    n_units = unit_offsets.size - 1
    holders = np.zeros(problem.n_families, np.int64)
    conflicts = np.zeros(n_units, np.int64)
    for fill in (True, False):
        for unit in range(n_units):
            for p in range(unit_offsets[unit], unit_offsets[unit + 1]):
                block = blocks[unit_blocks[p]]
                for q in range(problem.family_offsets[block], problem.family_offsets[block + 1]):
                    if fill:
                        holders[problem.families[q]] |= 1 << unit
                    else:
                        conflicts[unit] |= holders[problem.families[q]] & ~(1 << unit)
    return conflicts


@entry_kernel_with_arrays
def divide_exactly(problem: SearchProblem):
    """Optimal partition of all blocks by enumeration: a cluster number for each block."""
    n = problem.weights.size
    blocks = np.arange(n)
    offsets = np.arange(n + 1)
    conflicts = unit_conflicts(problem, blocks, offsets, blocks)
    patterns = problem.labels.T.copy()
    counts = np.zeros(n, np.int64)
    cost = subset_costs(
        problem, blocks, patterns, problem.shares, offsets, blocks, conflicts, counts
    )
    _, parts = best_division(cost)
    cluster = np.empty(n, np.int64)
    for k in range(parts.size):
        for b in range(n):
            if (parts[k] >> b) & 1:
                cluster[b] = k
    return cluster


@kernel
def small_problem(by_item, items, position, families, table):
    """The problem of a few items, each a block of its own; without neighbours, which need a search.

    ``position`` is each item's place in ``items``; ``families`` is empty without a family rule.
    """
    n = items.size
    first, counts = distinct_patterns(by_item, items)
    labels = np.empty((n, first.size), np.int32)
    for x in range(n):
        for u in range(first.size):
            labels[x, u] = position[by_item[items[x], first[u]]]
    total = 0
    for u in range(counts.size):
        total += counts[u]
    shares = np.empty(counts.size)
    for u in range(counts.size):
        shares[u] = counts[u] / total
    ruled = families.size > 0
    family_offsets = np.zeros(n + 1, np.int64)
    local = np.zeros(n if ruled else 0, np.int64)
    for x in range(local.size):
        family_offsets[x + 1] = x + 1
        # Named after the first item that is of the family.
        while families[items[local[x]]] != families[items[x]]:
            local[x] += 1
    return SearchProblem(
        labels,
        np.ones(n, np.int32),
        shares,
        table,
        np.zeros(n + 1, np.int64),
        np.zeros(0, np.int32),
        np.zeros(0),
        family_offsets,
        local,
        local.size,
    )


@entry_kernel_with_arrays
def divide_small(
    by_item: I4x2, order: I8, offsets: I8, families: I8, limit: int, table: F8, best: I4
) -> None:
    """Optimal partitions of all components of two to ``limit`` items, written into ``best``.

    The components have the items ``order[offsets[k]:offsets[k + 1]]``, ascending; clusters are
    named after their smallest members.
    """
    position = np.zeros(order.size, np.int32)
    for k in range(offsets.size - 1):
        items = order[offsets[k] : offsets[k + 1]]
        if items.size < 2 or items.size > limit:
            continue
        for x in range(items.size):
            position[items[x]] = x
        cluster = divide_exactly(small_problem(by_item, items, position, families, table))
        for x in range(items.size):
            first = 0
            while cluster[first] != cluster[x]:
                first += 1
            best[items[x]] = items[first]
