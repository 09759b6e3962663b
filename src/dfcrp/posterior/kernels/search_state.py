"""The partition that a search is changing: member lists, sizes, families, working memory."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import kernel


class SearchState(NamedTuple):
    """A partition of the blocks: member lists, sizes and families of each cluster."""

    #: Cluster of a block, -1 while it is outside.
    cluster: NDArray[np.int64]
    head: NDArray[np.int64]
    following: NDArray[np.int64]
    preceding: NDArray[np.int64]
    #: Items in a cluster.
    size: NDArray[np.int64]
    #: Whether a cluster holds a family; (clusters, families).
    present: NDArray[np.uint8]
    #: Stack of unused cluster numbers; ``n_free[0]`` of them.
    free: NDArray[np.int64]
    n_free: NDArray[np.int64]


class SearchScratch(NamedTuple):
    """Working memory, allocated once for a component."""

    overlap: NDArray[np.int32]
    counts: NDArray[np.int64]
    candidates: NDArray[np.int64]
    #: ``seen[k] == stamp[0]`` marks cluster k as listed already.
    seen: NDArray[np.int64]
    stamp: NDArray[np.int64]


class SearchMarks(NamedTuple):
    """Which blocks a sweep, and which blocks' clusters a re-division, should look at again."""

    dirty: NDArray[np.bool_]
    stale: NDArray[np.bool_]


@kernel
def new_marks(n):
    """Everything is to be looked at."""
    return SearchMarks(np.ones(n, np.bool_), np.ones(n, np.bool_))


@kernel
def new_scratch(problem):
    """Working memory for a problem."""
    n = problem.weights.size
    return SearchScratch(
        np.zeros(problem.shares.size, np.int32),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(n, np.int64),
        np.zeros(1, np.int64),
    )


@kernel
def empty_state(problem):
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


@kernel
def state_from_labels(problem, cluster):
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
