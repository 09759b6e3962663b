"""The search for the best partition: its state, sweeps, re-division of clusters, recombination.

Every move keeps the partition valid under the family rule and never raises the expected loss.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import B1, I4, I8, U1x2, frame
from dfcrp.compiled.jit import entry_kernel_with_arrays, kernel
from dfcrp.summaries.kernels.division import (
    SearchProblem,
    best_division,
    cluster_cost,
    coarsen,
    restrict,
    subset_costs,
    unit_conflicts,
    units_by_size,
)
from dfcrp.summaries.kernels.partitions import find_root, join_roots


@frame
class SearchState(NamedTuple):
    """A partition of the blocks: member lists, sizes and families of each cluster."""

    #: Cluster of a block, -1 while it is outside.
    cluster: I8
    head: I8
    following: I8
    preceding: I8
    #: Items in a cluster.
    size: I8
    #: Whether a cluster holds a family; (clusters, families).
    present: U1x2
    #: Stack of unused cluster numbers; ``n_free[0]`` of them.
    free: I8
    n_free: I8


@frame
class SearchScratch(NamedTuple):
    """Working memory, allocated once for a component."""

    overlap: I4
    counts: I8
    candidates: I8
    #: ``seen[k] == stamp[0]`` marks cluster k as listed already.
    seen: I8
    stamp: I8


@frame
class SearchMarks(NamedTuple):
    """Which blocks a sweep, and which blocks' clusters a re-division, should look at again."""

    dirty: B1
    stale: B1


@kernel
def new_marks(n):
    """Everything is to be looked at."""
    return SearchMarks(np.ones(n, np.bool_), np.ones(n, np.bool_))


@entry_kernel_with_arrays
def new_scratch(problem: SearchProblem):
    """Working memory for a problem."""
    n = problem.weights.size
    return SearchScratch(
        np.zeros(problem.shares.size, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(1, np.int64),
    )


@entry_kernel_with_arrays
def empty_state(problem: SearchProblem):
    """No block placed yet."""
    n = problem.weights.size
    return SearchState(
        np.full(n, -1, np.int64),
        np.full(n, -1, np.int64),
        np.full(n, -1, np.int64),
        np.full(n, -1, np.int64),
        np.zeros(n, np.int64),
        np.zeros((n, problem.n_families), np.uint8),
        np.arange(n - 1, -1, -1),
        np.full(1, n, np.int64),
    )


@kernel
def attach(problem, state, b, k):
    """Put block b into cluster k, or into a new one if k is -1; return the cluster."""
    if k < 0:
        state.n_free[0] -= 1
        k = state.free[state.n_free[0]]
    old = state.head[k]
    state.following[b] = old
    state.preceding[b] = -1
    if old >= 0:
        state.preceding[old] = b
    state.head[k] = b
    state.cluster[b] = k
    state.size[k] += problem.weights[b]
    for q in range(problem.family_offsets[b], problem.family_offsets[b + 1]):
        state.present[k, problem.families[q]] = 1
    return k


@kernel
def detach(problem, state, b):
    """Take block b out; return the cluster it leaves, or -1 if that is empty now."""
    k = state.cluster[b]
    before, after = state.preceding[b], state.following[b]
    if before >= 0:
        state.following[before] = after
    else:
        state.head[k] = after
    if after >= 0:
        state.preceding[after] = before
    state.cluster[b] = -1
    state.size[k] -= problem.weights[b]
    for q in range(problem.family_offsets[b], problem.family_offsets[b + 1]):
        state.present[k, problem.families[q]] = 0
    if state.head[k] < 0:
        state.free[state.n_free[0]] = k
        state.n_free[0] += 1
        return -1
    return k


@kernel
def allowed(problem, state, b, k):
    """Whether the family rule lets block b into cluster k."""
    for q in range(problem.family_offsets[b], problem.family_offsets[b + 1]):
        if state.present[k, problem.families[q]]:
            return False
    return True


@entry_kernel_with_arrays
def state_from_labels(problem: SearchProblem, cluster: I8):
    """The partition given by cluster numbers; a block that breaks the family rule stays alone."""
    state = empty_state(problem)
    number = np.full(cluster.size, -1, np.int64)
    for b in range(cluster.size):
        k = number[cluster[b]]
        if k >= 0 and not allowed(problem, state, b, k):
            attach(problem, state, b, -1)
        else:
            number[cluster[b]] = attach(problem, state, b, k)
    return state


@kernel
def list_members(state, k, out, n):
    """Append the members of cluster k to ``out`` from position n on; return the new length."""
    b = state.head[k]
    while b >= 0:
        out[n] = b
        n += 1
        b = state.following[b]
    return n


#: A gain below this is rounding: accepting it could go round in circles.
TOLERANCE = 1e-10
#: Sets times patterns that one re-division may cost; beyond it, it works with fewer units.
WORK = 1 << 18
#: Clusters are re-divided together only if a pair across them shares this many draws.
LINK = 0.05
#: Clusters that are re-divided together, at most.
AT_ONCE = 6


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
def _wake(problem, b, marks):
    """Ask for another look at block b and at all that ever meet it."""
    marks.dirty[b] = True
    marks.stale[b] = True
    for p in range(problem.near_offsets[b], problem.near_offsets[b + 1]):
        marks.dirty[problem.near[p]] = True
        marks.stale[problem.near[p]] = True


@kernel
def sweep(problem, state, order, marks, scratch):
    """Move each dirty block to its cheapest cluster; return how many moved.

    Blocks not placed yet are placed, so a sweep over the empty state is a sequential allocation.
    A move makes the blocks that meet the moved one dirty, and their clusters stale.
    """
    moved = 0
    for b in order:
        if not marks.dirty[b]:
            continue
        marks.dirty[b] = False
        before = state.cluster[b]
        home = detach(problem, state, b) if before >= 0 else -1
        target = best_cluster(problem, state, b, home, scratch)
        attach(problem, state, b, target)
        if before < 0 or target != home:
            moved += 1
            _wake(problem, b, marks)
            # it has just been put where it is best off
            marks.dirty[b] = False
    return moved


@kernel
def sweep_until_still(problem, state, order, marks, scratch):
    """Sweep until no block moves; return the number of sweeps."""
    sweeps = 0
    moved = 1
    while moved > 0:
        moved = sweep(problem, state, order, marks, scratch)
        sweeps += 1
    return sweeps


@entry_kernel_with_arrays
def improve_all(problem: SearchProblem, state: SearchState, order: I8, scratch: SearchScratch):
    """Sweep over all blocks, and on until no block moves; return the number of sweeps."""
    return sweep_until_still(problem, state, order, new_marks(order.size), scratch)


@kernel
def redivide(problem, state, clusters, limit, marks, scratch):
    """Divide the blocks of some clusters again, the best way there is.

    With at most ``limit`` units (fewer when there are many patterns, but one for each cluster)
    the optimum over every division of them is taken: merging, splitting, exchanging members,
    all at once. The present division is one of those, so the expected loss cannot rise.
    Returns whether it fell.
    """
    listed = np.empty(state.cluster.size, np.int64)
    group = np.empty(state.cluster.size, np.int64)
    n = 0
    for g in range(clusters.size):
        start = n
        n = list_members(state, clusters[g], listed, start)
        group[start:n] = g
    if n == 1:
        return False
    blocks = listed[:n].copy()
    patterns, shares = restrict(problem, blocks)
    while limit > max(4, clusters.size) and (shares.size << limit) > WORK:
        limit -= 1
    unit, n_units = coarsen(patterns, shares, group, max(limit, clusters.size))
    offsets, members = units_by_size(unit, n_units)
    conflicts = unit_conflicts(problem, blocks, offsets, members)
    cost = subset_costs(
        problem, blocks, patterns, shares, offsets, members, conflicts, scratch.counts
    )
    current = np.zeros(clusters.size, np.int64)
    for r in range(n_units):
        current[group[members[offsets[r]]]] |= 1 << r
    lowest, parts = best_division(cost)
    if lowest > cost[current].sum() - TOLERANCE:
        return False
    _apply_division(problem, state, blocks, offsets, members, parts)
    for block in blocks:
        _wake(problem, block, marks)
    return True


@kernel
def _apply_division(problem, state, blocks, offsets, members, parts):
    """Put the units of each part into a cluster of their own."""
    for block in blocks:
        detach(problem, state, block)
    for part in parts:
        k = -1
        for r in range(offsets.size - 1):
            if (part >> r) & 1:
                for p in range(offsets[r], offsets[r + 1]):
                    k = attach(problem, state, blocks[members[p]], k)


@kernel
def _linked_clusters(problem, state, k, scratch):
    """Cluster k and those with a block that is together with one of k's often enough."""
    scratch.stamp[0] += 1
    scratch.seen[k] = scratch.stamp[0]
    scratch.candidates[0] = k
    found = 1
    b = state.head[k]
    while b >= 0:
        for p in range(problem.near_offsets[b], problem.near_offsets[b + 1]):
            other = state.cluster[problem.near[p]]
            if problem.near_shares[p] >= LINK and scratch.seen[other] != scratch.stamp[0]:
                scratch.seen[other] = scratch.stamp[0]
                scratch.candidates[found] = other
                found += 1
        b = state.following[b]
    return scratch.candidates[:found].copy()


@kernel
def _redivide_around(problem, state, k, limit, marks, scratch):
    """Re-divide cluster k: by itself, with each linked cluster, with several; to the first gain."""
    b = state.head[k]
    while b >= 0:
        marks.stale[b] = False
        b = state.following[b]
    linked = _linked_clusters(problem, state, k, scratch)
    if redivide(problem, state, linked[:1], limit, marks, scratch):
        return True
    for other in range(1, linked.size):
        linked[1], linked[other] = linked[other], linked[1]
        if redivide(problem, state, linked[:2], limit, marks, scratch):
            return True
    if linked.size < 3:
        return False
    return redivide(problem, state, linked[:AT_ONCE], limit, marks, scratch)


@entry_kernel_with_arrays
def polish(
    problem: SearchProblem, state: SearchState, order: I8, limit: int, scratch: SearchScratch
):
    """Sweep and re-divide in turn until neither gains; return the number of sweeps."""
    marks = new_marks(order.size)
    sweeps = 0
    gains = 1
    while gains > 0:
        sweeps += sweep_until_still(problem, state, order, marks, scratch)
        gains = 0
        for b in order:
            if marks.stale[b]:
                k = state.cluster[b]
                gains += _redivide_around(problem, state, k, limit, marks, scratch)
    return sweeps


@entry_kernel_with_arrays
def merge_linked(
    problem: SearchProblem, state: SearchState, first: I8, second: I8, scratch: SearchScratch
):
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


@entry_kernel_with_arrays
def recombine(problem: SearchProblem, one: SearchState, two: SearchState, scratch: SearchScratch):
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
