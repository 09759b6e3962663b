"""The auxiliary variables u and their sums U_f(r) over late arrivals of a family."""

from __future__ import annotations

from dfcrp.compiled.jit import entry_kernel, inline_kernel, lean_kernel
from dfcrp.compiled.state import Data, State


@lean_kernel
def draw_auxiliary(rng, state):
    """u_i ~ Exponential(rate D_i + α): its exact conditional."""
    alpha = state.alpha[0]
    for slot in range(state.u.shape[0]):
        state.u[state.order[slot]] = rng.standard_exponential() / (state.seated[slot] + alpha)


@entry_kernel
def rebuild_tail(data: Data, state: State):
    """Recompute U from (order, u)."""
    tail, order, u = state.tail, state.order, state.u
    n = order.shape[0]
    tail.total[n - 1] = 0.0
    for r in range(n - 2, -1, -1):
        tail.total[r] = tail.total[r + 1] + u[order[r + 1]]
    if tail.dense.shape[0] > 0:
        n_families = tail.dense.shape[1]
        for f in range(n_families):
            tail.dense[n - 1, f] = 0.0
        for r in range(n - 2, -1, -1):
            for f in range(n_families):
                tail.dense[r, f] = tail.dense[r + 1, f]
            late = order[r + 1]
            tail.dense[r, data.family[late]] += u[late]
        return
    _rebuild_sparse(data, state)


@lean_kernel
def _rebuild_sparse(data, state):
    """Fill each family's ranks and sums from its last arrival to its first."""
    tail, order = state.tail, state.order
    n = order.shape[0]
    # start[f + 1] serves as the write cursor and is restored to family f's end afterwards.
    for r in range(n - 1, -1, -1):
        i = order[r]
        f = data.family[i]
        position = tail.start[f + 1] - 1
        tail.start[f + 1] = position
        tail.rank[position] = r
        tail.suffix[position] = state.u[i]
    for f in range(data.n_families - 1):
        tail.start[f + 1] = tail.start[f + 2]
    tail.start[data.n_families] = n
    for f in range(data.n_families):
        for position in range(tail.start[f + 1] - 2, tail.start[f] - 1, -1):
            tail.suffix[position] += tail.suffix[position + 1]


@inline_kernel
def tail_sum(tail, family, rank):
    """U_family(rank)."""
    if tail.dense.shape[0] > 0:
        return tail.dense[rank, family]
    low, high = tail.start[family], tail.start[family + 1]
    end = high
    while low < high:
        middle = (low + high) >> 1
        if tail.rank[middle] > rank:
            high = middle
        else:
            low = middle + 1
    return tail.suffix[low] if low < end else 0.0
