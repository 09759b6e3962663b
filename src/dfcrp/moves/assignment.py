"""Where may a marking sit, with what weight; one marking's update and a sweep over all.

Given (order, u, α) the weight of putting marking i into cluster k is

    n_k · exp( Σ_{j ∈ k} [ U_{x_i}(m_ij) + U_{x_j}(m_ij) ] ) · p(y_i | θ_k),   m_ij = max rank,

if k holds no member of i's family and every member may be i's neighbour; in a new cluster it is
α · p(y_i | φ) p(φ) / q(φ | y_i) for the marking's spare parameters φ ~ q(· | y_i).

A spare is kept from scan to scan instead of being drawn again at each visit. The target is
extended by Π q(spare_i | y_i): opening a cluster uses the spare up and draws another; closing a
singleton turns its parameters into the spare. Both directions carry the same probability, so
detailed balance holds, at a fraction of the random numbers.
"""

from __future__ import annotations

import math

import numpy as np

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE, is_grouped, link, release_slot, take_slot, unlink
from dfcrp.likelihoods import contract as likelihood
from dfcrp.priors.contract import (
    NEGLIGIBLE,
    log_open,
    log_open_all,
    uses_order,
    weigh_joins,
)
from dfcrp.priors.tail import tail_sum

#: e to more than this overflows.
LARGEST_LOG = 700.0
#: A relative in a cluster counts as more members than any cluster has; a tick exceeds any count.
CLASH = 1 << 31
TICK = 1 << 40
#: The clock starts again before it could overflow, which takes a few million calls.
LAST_TICK = 1 << 62


@inline_kernel
def order_term(data, state, i, k):
    """Σ_{j ∈ k} U_{x_i}(m_ij) + U_{x_j}(m_ij): the order's share of the log weight."""
    total = 0.0
    rank_i, family_i = state.rank[i], data.family[i]
    j = state.head[k]
    while j != NONE:
        late = max(rank_i, state.rank[j])
        total += tail_sum(state.tail, family_i, late) + tail_sum(state.tail, data.family[j], late)
        j = state.after[j]
    return total


@inline_kernel
def holds_family(data, state, k, family):
    """Whether cluster k has a member of the family."""
    j = state.head[k]
    while j != NONE:
        if data.family[j] == family:
            return True
        j = state.after[j]
    return False


@inline_kernel
def find_candidates(data, state, scratch, i, candidate):
    """Fill ``candidate`` with the clusters that marking i (unlinked) may join; return how many.

    Under a radius a cluster is admissible if all its members are i's neighbours and none is of
    i's family: both are read off i's neighbour list without walking the clusters.
    """
    count = 0
    if not data.has_radius:
        family = data.family[i]
        # A family of one (under the CRP: every one) has no relatives to look for.
        alone = data.family_start[family + 1] - data.family_start[family] == 1
        for k in range(state.size.shape[0]):
            if state.size[k] > 0 and (alone or not holds_family(data, state, k, family)):
                candidate[count] = k
                count += 1
        return count
    seen, label, neighbours = scratch.seen, state.label, data.neighbours
    # Every call counts from a reading of its own, so nothing has to be cleared.
    zero = scratch.clock[0] + TICK
    if zero > LAST_TICK:
        seen[:] = 0
        zero = TICK
    scratch.clock[0] = zero
    for edge in range(data.neighbour_start[i], data.neighbour_start[i + 1]):
        # Without branches, as their outcomes are as good as random: ~j is a relative.
        j = np.int64(neighbours[edge])
        relative = j >> 31
        k = label[j ^ relative]
        before = seen[k]
        candidate[count] = k
        count += before < zero
        seen[k] = max(before, zero) + 1 - relative * CLASH
    admissible = 0
    for position in range(count):
        k = candidate[position]
        if seen[k] - zero == state.size[k]:
            candidate[admissible] = k
            admissible += 1
    return admissible


@inline_kernel
def weigh_features(data, hyper, prior, state, scratch, i, log_new, candidate, weight):
    """Log weights of marking i (unlinked) without the order's share; a new cluster last.

    Returns the number of options; ``candidate`` holds NONE for the new cluster, whose log
    weight is ``log_new``. What is negligible beside it whatever the prior says may be left out.
    """
    found = find_candidates(data, state, scratch, i, candidate)
    kept = 0
    if found > 0:
        size = scratch.log_object
        if data.weigh_features:
            likelihood.weigh_clusters(
                hyper, state.theta, data.features, i, candidate, found, weight, size
            )
        else:
            weight[:found] = 0.0
            for position in range(found):
                size[position] = likelihood.size_of(hyper, state.theta, candidate[position])
        yardstick = log_new if data.weigh_features else -math.inf
        kept = weigh_joins(
            prior, data, state, scratch, i, candidate, found, weight, size, yardstick
        )
    candidate[kept] = NONE
    weight[kept] = log_new
    return kept + 1


@inline_kernel
def order_bound(data, state, i, size):
    """An upper bound of ``order_term`` for clusters of this size; its lower bound is zero.

    U falls with rank, and a cluster holds a family at most once.
    """
    rank = state.rank[i]
    return state.tail.total[rank] + size * tail_sum(state.tail, data.family[i], rank)


@lean_kernel
def add_order(data, state, i, count, candidate, weight, yardstick):
    """Add the order's share to the log weights; returns the number of options left.

    Candidates that are negligible beside ``yardstick`` whatever the order says are left out.
    """
    kept = 0
    for position in range(count):
        k, value = candidate[position], weight[position]
        if k != NONE:
            if value + order_bound(data, state, i, state.size[k]) < yardstick - NEGLIGIBLE:
                continue
            value += order_term(data, state, i, k)
        candidate[kept] = k
        weight[kept] = value
        kept += 1
    return kept


@lean_kernel
def weigh(data, hyper, prior, state, scratch, i, log_new, candidate, weight):
    """Log weights of marking i (unlinked) over its candidates, a new cluster last.

    Only what is negligible beside a new cluster is left out: any other option may matter once
    the best ones are taken by a relative.
    """
    count = weigh_features(data, hyper, prior, state, scratch, i, log_new, candidate, weight)
    if uses_order(prior):
        count = add_order(data, state, i, count, candidate, weight, log_new)
    return count


@inline_kernel
def favourite(data, prior, state, i, count, candidate, weight, threshold):
    """Position of the best option if a uniform ``threshold`` surely picks it, else NONE.

    Let the best option (before the order's share) come first in the draw. It is picked if
    threshold < w / (w + rest), and bounds of the order's share bound that ratio from below.
    Most markings are not in doubt, and this spares them the exact sums.
    """
    best = 0
    for position in range(1, count):
        if weight[position] > weight[best]:
            best = position
    rest = 0.0
    for position in range(count):
        if position != best:
            share = weight[position] - weight[best]
            if uses_order(prior) and candidate[position] != NONE:
                share += order_bound(data, state, i, state.size[candidate[position]])
            rest += math.exp(min(share, LARGEST_LOG))
    return best if threshold * (1.0 + rest) < 1.0 else NONE


@inline_kernel
def choose(rng, data, prior, state, i, count, candidate, weight):
    """Draw an option with probability proportional to its full weight; returns its cluster."""
    if count == 1:
        return candidate[0]
    threshold = rng.random()
    best = favourite(data, prior, state, i, count, candidate, weight, threshold)
    if best != NONE:
        return candidate[best]
    # The same threshold decides among the exact weights, the same option coming first.
    best = 0
    for position in range(1, count):
        if weight[position] > weight[best]:
            best = position
    candidate[0], candidate[best] = candidate[best], candidate[0]
    weight[0], weight[best] = weight[best], weight[0]
    if uses_order(prior):
        # The best option now stands first.
        count = add_order(data, state, i, count, candidate, weight, weight[0])
    total = exponentiate(weight, count)
    return candidate[pick(threshold, weight, count, total)]


@inline_kernel
def exponentiate(weight, count):
    """Turn log weights into weights relative to the largest; return their sum."""
    largest = weight[0]
    for position in range(1, count):
        largest = max(largest, weight[position])
    total = 0.0
    for position in range(count):
        weight[position] = math.exp(weight[position] - largest)
        total += weight[position]
    return total


@inline_kernel
def pick(threshold, weight, count, total):
    """The position at which the cumulated weights pass the share ``threshold`` of the total."""
    running = 0.0
    for position in range(count - 1):
        running += weight[position]
        if threshold * total < running:
            return position
    return count - 1


@inline_kernel
def detach(data, hyper, state, i):
    """Unlink i; return the log weight (without the prior) of the new cluster it could open.

    A marking that sat alone offers its own cluster's parameters, else its spare. ``label[i]``
    still names the slot; the caller must call ``attach`` next.
    """
    k = state.label[i]
    unlink(state, i)
    if not data.weigh_features:
        return state.spare_weight[i]
    if state.size[k] == 0:
        return likelihood.opening_weight(hyper, state.theta, k, data.features, i)
    likelihood.remove_member(hyper, state.theta, k, data.features, i)
    return state.spare_weight[i]


@inline_kernel
def log_open_detached(data, hyper, prior, common, state, i):
    """The prior's log weight of the new cluster that a detached marking could open."""
    k = state.label[i]
    if state.size[k] == 0:
        size = likelihood.size_of(hyper, state.theta, k)
    else:
        size = likelihood.size_of(hyper, state.spare, i)
    return log_open(prior, common, data, state, i, size)


@inline_kernel
def attach(rng, data, hyper, state, i, k, log_opening):
    """Seat i, detached just before, in cluster k or in a new one (k = NONE)."""
    old = state.label[i]
    was_alone = state.size[old] == 0
    if k == NONE:
        if was_alone:
            link(state, i, old)
            settle(rng, data, hyper, state, i, old, True)
            return
        slot = take_slot(data, state, i)
        for column in range(state.theta.shape[1]):
            state.theta[slot, column] = state.spare[i, column]
        link(state, i, slot)
        settle(rng, data, hyper, state, i, slot, True)
        refresh_spare(rng, data, hyper, state, i)
        return
    if was_alone:
        for column in range(state.theta.shape[1]):
            state.spare[i, column] = state.theta[old, column]
        state.spare_weight[i] = log_opening
        release_slot(data, state, old)
    link(state, i, k)
    settle(rng, data, hyper, state, i, k, False)
    if data.weigh_features:
        likelihood.add_member(hyper, state.theta, k, data.features, i)


@inline_kernel
def settle(rng, data, hyper, state, i, k, alone):
    """Draw what i has of its own, given its new cluster."""
    if data.weigh_features:
        likelihood.settle(hyper, rng, state.theta, k, data.features, i, alone)


@lean_kernel
def refresh_spare(rng, data, hyper, state, i):
    """Draw marking i's spare parameters again from q(· | y_i)."""
    if data.weigh_features:
        state.spare_weight[i] = likelihood.open_cluster(
            hyper, rng, data.features, i, state.spare, i
        )


@inline_kernel
def update_marking(rng, data, hyper, prior, state, scratch, i, common):
    """Gibbs update of marking i's cluster; ``common`` is the prior's ``log_open_all``."""
    log_opening = detach(data, hyper, state, i)
    log_new = log_opening + log_open_detached(data, hyper, prior, common, state, i)
    candidate, weight = scratch.candidate, scratch.weight
    count = weigh_features(data, hyper, prior, state, scratch, i, log_new, candidate, weight)
    k = choose(rng, data, prior, state, i, count, candidate, weight)
    attach(rng, data, hyper, state, i, k, log_opening)


@lean_kernel
def sweep_markings(rng, data, hyper, prior, state, scratch, first, last):
    """Update the cluster of every marking in first..last-1 once, but for those in groups."""
    common = log_open_all(prior, state)
    for i in range(first, last):
        if not is_grouped(data, i):
            update_marking(rng, data, hyper, prior, state, scratch, i, common)


@lean_kernel
def refresh_spares(rng, data, hyper, state, first, last, period):
    """Renew every period-th spare in first..last-1, so that none grows old."""
    for i in range(first, last, period):
        refresh_spare(rng, data, hyper, state, i)


@lean_kernel
def canonical_labels(data, state, name, out):
    """Name each cluster after its smallest member in input order; ``name`` is by slot."""
    n = state.label.shape[0]
    for k in range(n):
        name[k] = NONE
    for position in range(n):
        k = state.label[data.internal[position]]
        if name[k] == NONE:
            name[k] = position
        out[position] = np.int32(name[k])
