"""Moves of the search for the best partition: sweeps, re-division of clusters, recombination.

Every move keeps the partition valid under the family rule and never raises the expected loss.
"""

from __future__ import annotations

import numpy as np

from dfcrp.kernels.division import (
    best_division,
    cluster_cost,
    subset_costs,
    unit_conflicts,
)
from dfcrp.kernels.jit import kernel
from dfcrp.kernels.partitions import find_root, group_equal, hash_columns, join_roots
from dfcrp.kernels.search_state import allowed, attach, detach, empty_state, list_members

#: A gain below this is rounding: accepting it could go round in circles.
TOLERANCE = 1e-10
#: Sets times patterns that one re-division may cost; beyond it, it works with fewer units.
WORK = 1 << 18
#: Clusters are re-divided together only if a pair across them shares this many draws.
LINK = 0.05


@kernel
def join_cost(problem, state, b, k, overlap):
    """g(S with b) - g(S): what it costs to put block b into cluster k, S.

    The loop over members is innermost over patterns, contiguous, so that it vectorises.
    """
    overlap[:] = 0
    own = problem.labels[b]
    j = state.head[k]
    while j >= 0:
        other = problem.labels[j]
        weight = problem.weights[j]
        for u in range(overlap.size):
            overlap[u] += weight if other[u] == own[u] else np.int32(0)
        j = state.following[j]
    weight = problem.weights[b]
    agreement = 0.0
    for u in range(overlap.size):
        together = problem.table[overlap[u] + weight] - problem.table[overlap[u]]
        agreement += problem.shares[u] * together
    size = state.size[k]
    return problem.table[size + weight] - problem.table[size] - 2.0 * agreement


@kernel
def best_cluster(problem, state, b, home, scratch):
    """Cheapest cluster for a block that is outside; -1 for one of its own.

    Only clusters of blocks that b ever meets can be cheaper than being alone. ``home`` is
    where it came from and wins ties.
    """
    scratch.stamp[0] += 1
    stamp = scratch.stamp[0]
    best = home
    alone = -problem.table[problem.weights[b]]
    lowest = alone
    if home >= 0:
        lowest = join_cost(problem, state, b, home, scratch.overlap)
        scratch.seen[home] = stamp
        if alone < lowest - TOLERANCE:
            best, lowest = -1, alone
    for p in range(problem.near_offsets[b], problem.near_offsets[b + 1]):
        k = state.cluster[problem.near[p]]
        if k < 0 or scratch.seen[k] == stamp:
            continue
        scratch.seen[k] = stamp
        if not allowed(problem, state, b, k):
            continue
        cost = join_cost(problem, state, b, k, scratch.overlap)
        if cost < lowest - TOLERANCE:
            best, lowest = k, cost
    return best


@kernel
def sweep(problem, state, order, dirty, stale, scratch):
    """Move each dirty block to its cheapest cluster; return how many moved.

    Blocks not placed yet are placed, so a sweep over the empty state is a sequential allocation.
    A move makes the blocks that meet the moved one dirty, and their clusters stale.
    """
    moved = 0
    for b in order:
        if not dirty[b]:
            continue
        dirty[b] = False
        before = state.cluster[b]
        home = detach(problem, state, b) if before >= 0 else -1
        target = best_cluster(problem, state, b, home, scratch)
        attach(problem, state, b, target)
        if before < 0 or target != home:
            moved += 1
            stale[b] = True
            for p in range(problem.near_offsets[b], problem.near_offsets[b + 1]):
                dirty[problem.near[p]] = True
                stale[problem.near[p]] = True
    return moved


@kernel
def sweep_until_still(problem, state, order, dirty, stale, scratch):
    """Sweep until no block moves; return the number of sweeps."""
    sweeps = 0
    moved = 1
    while moved > 0:
        moved = sweep(problem, state, order, dirty, stale, scratch)
        sweeps += 1
    return sweeps


@kernel
def settle(problem, state, order, scratch):
    """Sweep over all blocks, and on until no block moves; return the number of sweeps."""
    dirty = np.ones(order.size, np.bool_)
    stale = np.ones(order.size, np.bool_)
    return sweep_until_still(problem, state, order, dirty, stale, scratch)


@kernel
def _restrict(problem, blocks):
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
def _coarsen(patterns, shares, n_first, limit):
    """Tie blocks of one cluster together until at most ``limit`` units remain.

    Columns before ``n_first`` are one cluster, the rest another. Seeds are added farthest
    first, so the doubtful blocks become units of their own and the sure ones stay together.
    """
    n = patterns.shape[1]
    unit = np.zeros(n, np.int64)
    similarity = np.full(n, -1.0)
    n_units = 0
    seed = 0
    while n_units < limit and similarity[seed] < 1.0 - 1e-12:
        start, stop = (0, n_first) if seed < n_first else (n_first, n)
        for x in range(start, stop):
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
def _units_by_size(unit, n_units):
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
def redivide(problem, state, a, b, limit, scratch):
    """Divide the blocks of clusters a and b (which may be the same) anew, the best way there is.

    With at most ``limit`` units (fewer when there are many patterns) the optimum over every
    division of them is taken: merging, splitting, exchanging members, all at once. The present
    division is one of those, so the expected loss cannot rise. Returns whether it fell.
    """
    listed = np.empty(state.cluster.size, np.int64)
    n_first = list_members(state, a, listed, 0)
    n = n_first if a == b else list_members(state, b, listed, n_first)
    if n == 1:
        return False
    blocks = listed[:n].copy()
    patterns, shares = _restrict(problem, blocks)
    while limit > 4 and (shares.size << limit) > WORK:
        limit -= 1
    unit, n_units = _coarsen(patterns, shares, n_first, limit)
    if n_units == 1:
        return False
    offsets, members = _units_by_size(unit, n_units)
    conflicts = unit_conflicts(
        problem.family_offsets, problem.families, problem.n_families, blocks, offsets, members
    )
    weights = problem.weights[blocks]
    cost = subset_costs(
        patterns, weights, shares, problem.table, offsets, members, conflicts, scratch.counts
    )
    in_first = 0
    for r in range(n_units):
        if members[offsets[r]] < n_first:
            in_first |= 1 << r
    everything = cost.size - 1
    lowest, parts = best_division(cost)
    if lowest > cost[in_first] + cost[everything ^ in_first] - TOLERANCE:
        return False
    _apply_division(problem, state, blocks, offsets, members, parts)
    return True


@kernel
def _apply_division(problem, state, blocks, offsets, members, parts):
    for block in blocks:
        detach(problem, state, block)
    for part in parts:
        k = -1
        for r in range(offsets.size - 1):
            if (part >> r) & 1:
                for p in range(offsets[r], offsets[r + 1]):
                    k = attach(problem, state, blocks[members[p]], k)


@kernel
def _wake(problem, state, k, dirty, stale):
    """Ask for another look at the members of cluster k and at all that ever meet them."""
    b = state.head[k]
    while b >= 0:
        dirty[b] = True
        stale[b] = True
        for p in range(problem.near_offsets[b], problem.near_offsets[b + 1]):
            dirty[problem.near[p]] = True
            stale[problem.near[p]] = True
        b = state.following[b]


@kernel
def _redivide_around(problem, state, b, limit, dirty, stale, scratch):
    """Re-divide the cluster of block b alone and with each linked cluster, up to the first gain."""
    k = state.cluster[b]
    listed = np.empty(state.cluster.size, np.int64)
    n = list_members(state, k, listed, 0)
    stale[listed[:n]] = False
    gained = redivide(problem, state, k, k, limit, scratch)
    scratch.stamp[0] += 1
    stamp = scratch.stamp[0]
    scratch.seen[k] = stamp
    for x in range(n):
        block = listed[x]
        for p in range(problem.near_offsets[block], problem.near_offsets[block + 1]):
            other = state.cluster[problem.near[p]]
            if gained or problem.near_shares[p] < LINK or scratch.seen[other] == stamp:
                continue
            scratch.seen[other] = stamp
            if redivide(problem, state, k, other, limit, scratch):
                gained = True
                _wake(problem, state, state.cluster[problem.near[p]], dirty, stale)
    if gained:
        for x in range(n):
            _wake(problem, state, state.cluster[listed[x]], dirty, stale)
    return gained


@kernel
def polish(problem, state, order, limit, scratch):
    """Sweep and re-divide in turn until neither gains; return the number of sweeps."""
    n = state.cluster.size
    dirty = np.ones(n, np.bool_)
    stale = np.ones(n, np.bool_)
    sweeps = 0
    gains = 1
    while gains > 0:
        sweeps += sweep_until_still(problem, state, order, dirty, stale, scratch)
        gains = 0
        for b in order:
            if stale[b]:
                gains += _redivide_around(problem, state, b, limit, dirty, stale, scratch)
    return sweeps


@kernel
def merge_linked(problem, state, first, second, scratch):
    """Merge the clusters of each pair, in the order given, whenever that lowers the loss."""
    listed = np.empty(state.cluster.size, np.int64)
    for p in range(first.size):
        a, b = state.cluster[first[p]], state.cluster[second[p]]
        if a == b:
            continue
        n_first = list_members(state, a, listed, 0)
        n = list_members(state, b, listed, n_first)
        valid = True
        for x in range(n_first):
            valid = valid and allowed(problem, state, listed[x], b)
        if not valid:
            continue
        apart = cluster_cost(problem, listed[:n_first], scratch.counts)
        apart += cluster_cost(problem, listed[n_first:n], scratch.counts)
        if cluster_cost(problem, listed[:n], scratch.counts) < apart - TOLERANCE:
            for x in range(n_first):
                detach(problem, state, listed[x])
                attach(problem, state, listed[x], b)


@kernel
def _cluster_costs(problem, state, scratch):
    """g of the cluster of each block, booked on its first listed member, 0 elsewhere."""
    n = state.cluster.size
    listed = np.empty(n, np.int64)
    cost = np.zeros(n)
    for k in range(n):
        if state.head[k] >= 0:
            size = list_members(state, k, listed, 0)
            cost[listed[0]] = cluster_cost(problem, listed[:size], scratch.counts)
    return cost


@kernel
def recombine(problem, one, two, scratch):
    """The better of two partitions, chosen region by region.

    A region is a smallest set of blocks that both partitions cut cleanly; the loss is a sum
    over clusters, so each region can be judged by itself.
    """
    n = one.cluster.size
    parent = np.arange(n)
    for state in (one, two):
        for k in range(n):
            b = state.head[k]
            while b >= 0:
                join_roots(parent, b, state.head[k])
                b = state.following[b]
    gain = np.zeros(n)
    cost_one = _cluster_costs(problem, one, scratch)
    cost_two = _cluster_costs(problem, two, scratch)
    for b in range(n):
        gain[find_root(parent, b)] += cost_one[b] - cost_two[b]
    # cluster numbers of the two must not collide inside the result
    number = np.full(2 * n, -1, np.int64)
    result = empty_state(problem)
    for b in range(n):
        better = gain[find_root(parent, b)] > TOLERANCE
        key = n + two.cluster[b] if better else one.cluster[b]
        number[key] = attach(problem, result, b, number[key])
    return result
