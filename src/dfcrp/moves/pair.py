"""Two close markings of one family, taken out together and seated together.

While one of them is inside a cluster the other cannot enter, so updates of single markings
never exchange them. Given the rest, the two choices are independent but for the rule that they
differ: p(k, l) ∝ w_i(k) w_j(l) [k ≠ l], where each may open a cluster of its own. So k is drawn
with weight w_i(k) Σ_{l≠k} w_j(l) and then l ≠ k with weight w_j(l). The sums are added up without
k, not by subtraction, and in logarithms: the cluster that both want may outweigh all else by more
than a number can hold, as the order's share of a weight may come to thousands.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import lean_kernel
from dfcrp.compiled.state import NONE, PAIR_MOVED, PAIR_PROPOSED
from dfcrp.moves.assignment import (
    attach,
    detach,
    exponentiate,
    log_open_detached,
    pick,
    weigh,
)
from dfcrp.priors.contract import NEGLIGIBLE, log_open_all


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
def update_pair(rng, data, hyper, prior, state, scratch, i, j):
    """Joint Gibbs update of the clusters of i and j, of one family."""
    old_i, old_j = state.label[i], state.label[j]
    opening_i = detach(data, hyper, state, i)
    opening_j = detach(data, hyper, state, j)
    common = log_open_all(prior, state)
    new_i = opening_i + log_open_detached(data, hyper, prior, common, state, i)
    new_j = opening_j + log_open_detached(data, hyper, prior, common, state, j)
    # Detached markings must not count as members of the clusters they came from.
    nowhere = state.label.shape[0]
    state.label[i], state.label[j] = nowhere, nowhere
    count_i = weigh(data, hyper, prior, state, scratch, i, new_i, scratch.candidate, scratch.weight)
    count_j = weigh(
        data, hyper, prior, state, scratch, j, new_j, scratch.candidate2, scratch.weight2
    )
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
