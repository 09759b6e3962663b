"""Two close markings of one family, taken out together and seated together.

While one of them is inside a cluster the other cannot enter, so updates of single markings
never exchange them. Given the rest, the two choices are independent but for the rule that they
differ: p(k, l) ∝ w_i(k) w_j(l) [k ≠ l], where each may open a cluster of its own. So k is drawn
with weight w_i(k) Σ_{l≠k} w_j(l) and then l ≠ k with weight w_j(l). The sums are added up without
k, not by subtraction, and in logarithms: the cluster that both want may outweigh all else by more
than a number can hold, as the order's share of a weight may come to thousands.

Where the order of arrival counts, whoever sits in a large cluster has arrived early, and the other
one late, which holds the two where they are. So who has which of their two slots is drawn first,
with k and l summed out. As in ``priors.arrivals.exchange`` u stays with the slots; no U changes.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE, PAIR_MOVED, PAIR_PROPOSED
from dfcrp.moves.assignment import (
    attach,
    detach,
    exponentiate,
    log_open_detached,
    pick,
    weigh,
)
from dfcrp.priors.contract import NEGLIGIBLE, counts_ranks, log_open_all


@lean_kernel
def log_others(candidate, weight, count, k):
    """log Σ of e^weight over the options other than cluster k; a new cluster is never shared."""
    largest = -math.inf
    for position in range(count):
        if k == NONE or candidate[position] != k:
            largest = max(largest, weight[position])
    total = 0.0
    for position in range(count):
        less = weight[position] - largest
        if less > -NEGLIGIBLE and (k == NONE or candidate[position] != k):
            total += math.exp(less)
    return largest + math.log(total)


@lean_kernel
def choose_pair(rng, scratch, count_i, count_j):
    """Draw the two options jointly from the log weights in scratch; returns their positions."""
    for position in range(count_i):
        scratch.weight[position] += log_others(
            scratch.candidate2, scratch.weight2, count_j, scratch.candidate[position]
        )
    total = exponentiate(scratch.weight, count_i)
    first = pick(rng.random(), scratch.weight, count_i, total)
    taken = scratch.candidate[first]
    for position in range(count_j):
        if taken != NONE and scratch.candidate2[position] == taken:
            scratch.weight2[position] = -math.inf
    rest = exponentiate(scratch.weight2, count_j)
    return first, pick(rng.random(), scratch.weight2, count_j, rest)


@lean_kernel
def log_pair_total(scratch, count_i, count_j):
    """log Σ_{k≠l} w_i(k) w_j(l) of the log weights in scratch."""
    largest, total = -math.inf, 0.0
    for position in range(count_i):
        value = scratch.weight[position] + log_others(
            scratch.candidate2, scratch.weight2, count_j, scratch.candidate[position]
        )
        if value > largest:
            total = total * math.exp(largest - value) + 1.0
            largest = value
        else:
            total += math.exp(value - largest)
    return largest + math.log(total)


@inline_kernel
def trade_slots(state, i, j):
    """Let i and j, of one family, exchange their arrival slots; u stays with the slots."""
    p, q = state.rank[i], state.rank[j]
    state.rank[i], state.rank[j] = q, p
    state.order[p], state.order[q] = j, i
    state.u[i], state.u[j] = state.u[j], state.u[i]


@lean_kernel
def weigh_both(data, hyper, prior, state, scratch, i, j, new_i, new_j):
    """Log weights of the options of i and of j, both unlinked; returns their numbers."""
    count_i = weigh(data, hyper, prior, state, scratch, i, new_i, scratch.candidate, scratch.weight)
    count_j = weigh(
        data, hyper, prior, state, scratch, j, new_j, scratch.candidate2, scratch.weight2
    )
    return count_i, count_j


@lean_kernel
def choose_slots(rng, data, hyper, prior, state, scratch, i, j, new_i, new_j):
    """Draw who of i and j has which arrival slot, whatever their clusters; then ``weigh_both``.

    Each way has the weight Σ_{k≠l} w_i(k) w_j(l) of all that the two may do then.
    """
    if counts_ranks(prior):
        odds = scratch.log_object
        trade_slots(state, i, j)
        count_i, count_j = weigh_both(data, hyper, prior, state, scratch, i, j, new_i, new_j)
        log_traded = log_pair_total(scratch, count_i, count_j)
        trade_slots(state, i, j)
        count_i, count_j = weigh_both(data, hyper, prior, state, scratch, i, j, new_i, new_j)
        odds[0], odds[1] = log_pair_total(scratch, count_i, count_j), log_traded
        total = exponentiate(odds, 2)
        if pick(rng.random(), odds, 2, total) == 0:
            return count_i, count_j
        trade_slots(state, i, j)
    return weigh_both(data, hyper, prior, state, scratch, i, j, new_i, new_j)


@lean_kernel
def update_pair(rng, data, hyper, prior, state, scratch, i, j):
    """Joint Gibbs update of the clusters of i and j, of one family, and of who has which slot."""
    old_i, old_j = state.label[i], state.label[j]
    opening_i = detach(data, hyper, state, i)
    opening_j = detach(data, hyper, state, j)
    common = log_open_all(prior, state)
    new_i = opening_i + log_open_detached(data, hyper, prior, common, state, i)
    new_j = opening_j + log_open_detached(data, hyper, prior, common, state, j)
    # Detached markings must not count as members of the clusters they came from.
    nowhere = state.label.shape[0]
    state.label[i], state.label[j] = nowhere, nowhere
    count_i, count_j = choose_slots(rng, data, hyper, prior, state, scratch, i, j, new_i, new_j)
    state.label[i], state.label[j] = old_i, old_j
    first, second = choose_pair(rng, scratch, count_i, count_j)
    attach(rng, data, hyper, state, i, scratch.candidate[first], opening_i)
    attach(rng, data, hyper, state, j, scratch.candidate2[second], opening_j)
    state.tally[PAIR_PROPOSED] += 1
    if state.label[i] != old_i or state.label[j] != old_j:
        state.tally[PAIR_MOVED] += 1


@lean_kernel
def sweep_pairs(rng, data, hyper, prior, state, scratch, first, last):
    """Update every listed pair whose first marking lies in first..last-1."""
    for i in range(first, last):
        for edge in range(data.pair_start[i], data.pair_start[i + 1]):
            update_pair(rng, data, hyper, prior, state, scratch, i, data.pair_other[edge])
