"""A group of items that were decided to be one object moves from cluster to cluster as a whole.

Let a cluster hold the group G and perhaps others, and let C be the clusters that G's first member
could join if G were in none, and a new one besides. One of C without the present one is proposed,
each with the same probability; as C depends on the others alone, the way back is as probable. The
clusters that change get parameters from ``likelihood.propose_row``, and the Metropolis–Hastings
ratio is that of ``moves.regroup``. What an item of G has of its own, such as how careless it is,
stays as it is meanwhile, and is drawn given its cluster afterwards.
"""

from __future__ import annotations

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import (
    NONE,
    is_grouped,
    link,
    release_slot,
    take_slot,
    unlink,
)
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves.assignment import attach, detach, find_candidates, holds_family
from dfcrp.moves.regroup import all_neighbours, propose_clusters, value_of

#: Proposals for a group in one scan.
TRIES = 3


@inline_kernel
def move_group(data, state, lead, k):
    """Put the whole group into cluster k; returns how many it has."""
    count, m = 0, lead
    while True:
        if state.label[m] != k:
            unlink(state, m)
            link(state, m, k)
        count += 1
        m = data.mate[m]
        if m == lead:
            return count


@lean_kernel
def choose_target(rng, data, state, scratch, lead):
    """A cluster that the group might move to; NONE: a new one; its own if there is no other."""
    old, nowhere = state.label[lead], state.label.shape[0]
    m = lead
    while True:
        unlink(state, m)
        state.label[m] = nowhere
        m = data.mate[m]
        if m == lead:
            break
    count = find_candidates(data, state, scratch, lead, scratch.candidate)
    alone = state.size[old] == 0
    while True:
        link(state, m, old)
        m = data.mate[m]
        if m == lead:
            break
    scratch.candidate[count] = NONE
    present = NONE if alone else old
    if count == 0:
        return old
    chosen = scratch.candidate[int(rng.random() * count)]
    # The last stands in for the present one.
    return scratch.candidate[count] if chosen == present else chosen


@lean_kernel
def may_join(data, state, lead, k):
    """Whether cluster k holds no relative of any of the group."""
    m = lead
    while True:
        family = data.family[m]
        alone = data.family_start[family + 1] - data.family_start[family] == 1
        if not alone and holds_family(data, state, k, family):
            return False
        m = data.mate[m]
        if m == lead:
            return True


@lean_kernel
def propose_move(rng, data, hyper, prior, state, scratch, lead, old, target):
    """One Metropolis–Hastings step that takes the group from cluster ``old`` to ``target``."""
    if target != NONE and not may_join(data, state, lead, target):
        return
    theta = state.theta
    old_value = value_of(data, hyper, prior, state, old, theta, old)
    new = target
    if target == NONE:
        new = take_slot(data, state, lead)
    else:
        old_value += value_of(data, hyper, prior, state, target, theta, target)
    move_group(data, state, lead, new)
    left = state.size[old] > 0
    accepted = False
    if all_neighbours(data, state, new):
        rest = old if left else new
        value = propose_clusters(rng, data, hyper, prior, state, scratch, new, rest)
        accepted = -rng.standard_exponential() < value - old_value
    if accepted:
        for column in range(theta.shape[1]):
            theta[new, column] = scratch.deal.theta[0, column]
            if left:
                theta[old, column] = scratch.deal.theta[1, column]
        if not left:
            release_slot(data, state, old)
        return
    move_group(data, state, lead, old)
    if target == NONE:
        release_slot(data, state, new)


@lean_kernel
def settle_again(rng, data, hyper, state, lead):
    """Draw what every item of the group has of its own, given its cluster."""
    m = lead
    while True:
        k = state.label[m]
        opening = detach(data, hyper, state, m)
        attach(rng, data, hyper, state, m, k, opening)
        m = data.mate[m]
        if m == lead:
            return


@lean_kernel
def sweep_groups(rng, data, hyper, prior, state, scratch, first, last):
    """Update the cluster of every group in first..last-1, and what its items have of their own."""
    if not data.has_groups:
        return
    for lead in range(first, last):
        if not is_grouped(data, lead) or data.lead[lead] != lead:
            continue
        for _ in range(TRIES):
            old = state.label[lead]
            target = choose_target(rng, data, state, scratch, lead)
            if target != old:
                propose_move(rng, data, hyper, prior, state, scratch, lead, old, target)
        settle_again(rng, data, hyper, state, lead)


@lean_kernel
def seat_beside(data, hyper, state, m, other):
    """Bring item m into the cluster of another, from where it is."""
    old, new = state.label[m], state.label[other]
    if old == new:
        return
    unlink(state, m)
    if state.size[old] == 0:
        release_slot(data, state, old)
    elif data.weigh_features:
        likelihood.remove_member(hyper, state.theta, old, data.features, m)
    link(state, m, new)
    if data.weigh_features:
        likelihood.add_member(hyper, state.theta, new, data.features, m)


@lean_kernel
def seat_groups(data, hyper, state):
    """Bring the items of every group together, from where each of them is alone."""
    if not data.has_groups:
        return
    for m in range(state.label.shape[0]):
        seat_beside(data, hyper, state, m, data.lead[m])
