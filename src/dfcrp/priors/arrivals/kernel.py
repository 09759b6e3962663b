"""The DFCRP as a prior over partitions: customers who arrive one by one, and the CRP's cousins.

Given the order of arrival and auxiliary variables u the DFCRP is a product over clusters of

    α (n_k − 1)! exp( Σ_{i<j ∈ k} U_{x_i}(m_ij) + U_{x_j}(m_ij) ),   m_ij = max rank,

with U_f(r) from ``priors.tail``. Without the order's share this is the CRP, or with families the
constrained CRP.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE, count_clusters
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.arrivals.exchange import exchange_slots
from dfcrp.priors.arrivals.order import (
    shift_lists,
    step_width,
    update_alpha,
    update_order,
    walk_arrivals,
)
from dfcrp.priors.arrivals.procession import lead_processions, processions
from dfcrp.priors.arrivals.two_lists import draw_order, room_for, weigh_opening
from dfcrp.priors.tail import draw_auxiliary, rebuild_tail, tail_sum

#: In every such scan a share of the customers is rearranged.
ORDER_PERIOD = 8
#: In every such scan a list arrives sooner or later.
LIST_PERIOD = 2
#: Extra exchanges proposed in every scan for a marking in doubt.
EXCHANGE_VISITS = 3


@frame
class Arrivals(NamedTuple):
    """Settings of the prior; its parameters are in the state: α, the order, u."""

    use_order: bool  # the DFCRP's order correction; off for the CRP and the constrained CRP
    update_alpha: bool
    alpha_shape: float
    alpha_rate: float
    own: F8  # (0,)


@partition_prior.has_order.register
def has_order(prior: Arrivals) -> bool:
    """Under the DFCRP."""
    return prior.use_order


@partition_prior.waiting_room.register
def waiting_room(prior: Arrivals, n: int, n_families: int) -> tuple[int, int]:
    """Where the order can be summed out."""
    return room_for(n, n_families) if prior.use_order else (0, 0)


@implements(partition_prior.uses_order, Arrivals)
@inline_kernel
def uses_order(prior):
    """Whether the order's share counts."""
    return prior.use_order


@implements(partition_prior.counts_ranks, Arrivals)
@inline_kernel
def counts_ranks(prior):
    """Where the order's share counts."""
    return prior.use_order


@implements(partition_prior.log_open_all, Arrivals)
@inline_kernel
def log_open_all(prior, state):
    """log α."""
    return math.log(state.alpha[0])


@implements(partition_prior.log_open, Arrivals)
@inline_kernel
def log_open(prior, common, data, state, i, size):
    """log α."""
    return common


@implements(partition_prior.log_join, Arrivals)
@inline_kernel
def log_join(prior, data, state, scratch, i, k, size):
    """log n_k."""
    return scratch.log_size[state.size[k]]


@implements(partition_prior.log_join_bound, Arrivals)
@inline_kernel
def log_join_bound(prior, data, i, size):
    """None: the weight itself costs as little."""
    return math.inf


@implements(partition_prior.log_cluster, Arrivals)
@lean_kernel
def log_cluster(prior, data, state, k, size):
    """log of α (n_k − 1)! exp(Σ_{i<j ∈ k} U_{x_i}(m_ij) + U_{x_j}(m_ij))."""
    total = math.log(state.alpha[0]) + math.lgamma(float(state.size[k]))
    if not prior.use_order:
        return total
    i = state.head[k]
    while i != NONE:
        j = state.after[i]
        while j != NONE:
            late = max(state.rank[i], state.rank[j])
            total += tail_sum(state.tail, data.family[i], late)
            total += tail_sum(state.tail, data.family[j], late)
            j = state.after[j]
        i = state.after[i]
    return total


@implements(partition_prior.log_tilt, Arrivals)
@inline_kernel
def log_tilt(prior, data, state, k, size):
    """Nothing: objects of all sizes are alike."""
    return 0.0


@implements(partition_prior.drop_order, Arrivals)
@lean_kernel
def drop_order(prior, data, state, scratch):
    """Of two lists that agree nearly altogether."""
    return prior.use_order and weigh_opening(data, state, scratch)


@implements(partition_prior.take_order, Arrivals)
@lean_kernel
def take_order(prior, rng, data, state, scratch):
    """With a new α and a new sequence of the lists."""
    shape, rate = prior.alpha_shape, prior.alpha_rate
    draw_order(rng, data, state, scratch, shape, rate, prior.update_alpha)


@implements(partition_prior.update_block, Arrivals)
@lean_kernel
def update_slots(prior, rng, data, state, scratch, block):
    """Exchange arrival slots inside the block: α waits for that more than for anything else."""
    if prior.use_order:
        tries = block.last - block.first
        exchange_slots(rng, data, state, scratch, block, tries, EXCHANGE_VISITS)


@implements(partition_prior.update_prior, Arrivals)
@lean_kernel
def update_arrivals(prior, rng, data, hyper, state, scratch):
    """Order, α (u integrated out), then u and its sums.

    Without the order correction every D_i is the number of earlier arrivals, once and for all.
    """
    if prior.use_order:
        walk_arrivals(data, state, scratch, state.order, state.seated)
        if state.scans[0] % ORDER_PERIOD == 0:
            update_order(rng, data, state, scratch)
        if state.scans[0] % LIST_PERIOD == 1:
            shift_lists(rng, data, state, scratch)
        lead_processions(
            rng,
            data,
            state,
            scratch,
            prior.alpha_shape,
            prior.alpha_rate,
            prior.update_alpha,
            processions(data.n_families),
        )
    if prior.update_alpha:
        clusters = count_clusters(state)
        width = step_width(state.scans[0], data.n_families, clusters, prior.alpha_shape)
        state.alpha[0] = update_alpha(
            rng,
            state.seated,
            clusters,
            prior.alpha_shape,
            prior.alpha_rate,
            state.alpha[0],
            width,
        )
    if prior.use_order:
        draw_auxiliary(rng, state)
        rebuild_tail(data, state)
