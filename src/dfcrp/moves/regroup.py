"""Split, merge or re-divide the clusters of two markings that lie near each other.

Updates of single markings and pairs cannot take a cluster apart whose members hold each other
in place, nor exchange several families at once between two neighbouring clusters. For two
markings i, j of different families (a *contact*, chosen from a list that depends on the data
alone) the members of their clusters are dealt out again between a side of i and a side of j:

* same cluster: split it;
* two clusters that could be one: merge them;
* two clusters that cannot: re-divide them, a family that both hold being dealt as a block.

Members are dealt in random order with probability proportional to the side's size times a
normal density around its running mean; the same rule, in the same order, gives the probability
of the way back. Parameters of the new clusters are proposed from ``likelihood.propose_row``.
The Metropolis–Hastings ratio makes the whole exact. What would tear a group of markings apart that
were decided to be one object is refused.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import (
    DIVIDE_PROPOSED,
    MERGE_PROPOSED,
    NONE,
    SPLIT_PROPOSED,
    is_grouped,
    link,
    release_slot,
    take_slot,
    unlink,
)
from dfcrp.likelihoods import contract as likelihood
from dfcrp.priors.contract import log_cluster

SPLIT, MERGE, DIVIDE = 0, 1, 2
#: Log odds beyond which nothing is left to chance.
CERTAIN = 700.0


@inline_kernel
def add_members(state, scratch, k, side, count, i, j):
    """Append cluster k's members but i and j to the deal; returns how many there are then."""
    deal = scratch.deal
    member = state.head[k]
    while member != NONE:
        if member != i and member != j:
            deal.member[count] = member
            deal.side[count] = side
            deal.partner[count] = NONE
            count += 1
        member = state.after[member]
    return count


@lean_kernel
def shuffle_deal(rng, scratch, count):
    """Put the members into random order."""
    deal = scratch.deal
    for position in range(count - 1, 0, -1):
        other = int(rng.random() * (position + 1))
        deal.member[position], deal.member[other] = deal.member[other], deal.member[position]
        deal.side[position], deal.side[other] = deal.side[other], deal.side[position]


@lean_kernel
def find_partners(data, scratch, count, i, j):
    """Mark what the family rule ties together; returns whether two clusters could be one.

    Relatives on both sides are each other's partner. A relative of an anchor is its own partner:
    it must stay opposite.
    """
    deal = scratch.deal
    disjoint = True
    for position in range(count):
        family = data.family[deal.member[position]]
        if data.family_start[family + 1] - data.family_start[family] == 1:
            continue  # no relatives to look for: without families all are like this
        if family == data.family[i] or family == data.family[j]:
            deal.partner[position] = position
            disjoint = False
        for other in range(position):
            if data.family[deal.member[other]] == family:
                deal.partner[position] = other
                deal.partner[other] = position
                disjoint = False
    return disjoint


@inline_kernel
def pull(hyper, data, deal, m):
    """Log odds of the first side over the second for marking m."""
    return likelihood.log_attraction(hyper, data, deal, 0, m) - likelihood.log_attraction(
        hyper, data, deal, 1, m
    )


@lean_kernel
def deal_members(rng, data, hyper, scratch, count, i, j, replay):
    """Deal the members to the sides of i (0) and j (1); returns the log probability.

    ``replay``: take the sides as they are and only compute the probability.
    """
    deal = scratch.deal
    likelihood.start_deal(hyper, data, deal, i, j)
    log_probability = 0.0
    for position in range(count):
        m, other = deal.member[position], deal.partner[position]
        if other == position:
            # A relative of an anchor sits opposite it whatever happens.
            likelihood.put_on_side(hyper, data, deal, deal.side[position], m)
            continue
        if other != NONE and other < position:
            continue
        log_odds = pull(hyper, data, deal, m)
        if other != NONE:
            log_odds -= pull(hyper, data, deal, deal.member[other])
        # Held where it is certain anyway: a plain Python float would overflow.
        first = 1.0 / (1.0 + math.exp(min(-log_odds, CERTAIN)))
        if not replay:
            deal.side[position] = 0 if rng.random() < first else 1
        side = deal.side[position]
        # log of the logistic function, without overflow on either end.
        x = -log_odds if side == 0 else log_odds
        log_probability -= max(x, 0.0) + math.log1p(math.exp(-abs(x)))
        likelihood.put_on_side(hyper, data, deal, side, m)
        if other != NONE:
            deal.side[other] = 1 - side
            likelihood.put_on_side(hyper, data, deal, 1 - side, deal.member[other])
    return log_probability


@inline_kernel
def move(state, m, k):
    """Take m out of its cluster and put it into k."""
    if state.label[m] != k:
        unlink(state, m)
        link(state, m, k)


@lean_kernel
def all_neighbours(data, state, k):
    """Whether every two members of cluster k may share a cluster."""
    if not data.has_radius:
        return True
    m = state.head[k]
    while m != NONE:
        found = 0
        for edge in range(data.neighbour_start[m], data.neighbour_start[m + 1]):
            j = data.neighbours[edge]
            if j >= 0 and state.label[j] == k:
                found += 1
        if found != state.size[k] - 1:
            return False
        m = state.after[m]
    return True


@lean_kernel
def holds_whole_groups(data, state, k):
    """Whether every group with a member in cluster k is there as a whole."""
    if not data.has_groups:
        return True
    m = state.head[k]
    while m != NONE:
        if is_grouped(data, m) and state.label[data.mate[m]] != k:
            return False
        m = state.after[m]
    return True


@lean_kernel
def value_of(data, hyper, prior, state, k, theta, row):
    """log of prior times likelihood times parameter prior over parameter proposal."""
    value = log_cluster(prior, data, state, k, likelihood.size_of(hyper, theta, row))
    if data.weigh_features:
        value += likelihood.row_weight(hyper, data.features, state, k, theta, row)
    return value


@lean_kernel
def arrange(state, scratch, count, i, j, first, second):
    """Seat i's side in cluster ``first`` and j's side in ``second``."""
    deal = scratch.deal
    move(state, i, first)
    move(state, j, second)
    for position in range(count):
        move(state, deal.member[position], first if deal.side[position] == 0 else second)


@lean_kernel
def propose_clusters(rng, data, hyper, prior, state, scratch, first, second):
    """Propose parameters for one or two clusters; returns their value."""
    total = 0.0
    theta = scratch.deal.theta
    if data.weigh_features:
        likelihood.propose_row(hyper, rng, data.features, state, first, theta, 0)
    total += value_of(data, hyper, prior, state, first, theta, 0)
    if second != first:
        if data.weigh_features:
            likelihood.propose_row(hyper, rng, data.features, state, second, theta, 1)
        total += value_of(data, hyper, prior, state, second, theta, 1)
    return total


@lean_kernel
def same_sides(scratch, count):
    """Whether the deal gave everyone the side they had."""
    deal = scratch.deal
    for position in range(count):
        if deal.side[position] != deal.old_side[position]:
            return False
    return True


@lean_kernel
def regroup(rng, data, hyper, prior, state, scratch, i, j):
    """One Metropolis–Hastings step on the clusters of i and j; leaves the posterior unchanged.

    Returns the probability with which a change was accepted.
    """
    first, second = state.label[i], state.label[j]
    count = add_members(state, scratch, first, 0, 0, i, j)
    if first != second:
        count = add_members(state, scratch, second, 1, count, i, j)
    shuffle_deal(rng, scratch, count)
    kind = DIVIDE
    if find_partners(data, scratch, count, i, j):
        kind = SPLIT if first == second else MERGE
    deal = scratch.deal
    log_back, log_forth = 0.0, 0.0
    if kind != SPLIT:
        log_back = deal_members(rng, data, hyper, scratch, count, i, j, True)
    for position in range(count):
        deal.old_side[position] = deal.side[position]
    if kind != MERGE:
        log_forth = deal_members(rng, data, hyper, scratch, count, i, j, False)
    state.tally[_proposed(kind)] += 1
    if kind == DIVIDE and same_sides(scratch, count):
        return 0.0
    old_value = value_of(data, hyper, prior, state, first, state.theta, first)
    if first != second:
        old_value += value_of(data, hyper, prior, state, second, state.theta, second)
    new_second = second
    if kind == SPLIT:
        new_second = take_slot(data, state, i)
    elif kind == MERGE:
        new_second = first
    arrange(state, scratch, count, i, j, first, new_second)
    allowed = all_neighbours(data, state, first) and holds_whole_groups(data, state, first)
    if kind == DIVIDE and allowed:
        allowed = all_neighbours(data, state, second)
    log_ratio = -math.inf
    if allowed:
        new_value = propose_clusters(rng, data, hyper, prior, state, scratch, first, new_second)
        log_ratio = new_value - old_value + log_back - log_forth
    accepted = -rng.standard_exponential() < log_ratio
    conclude_regroup(data, state, scratch, count, i, j, first, second, new_second, kind, accepted)
    return math.exp(min(log_ratio, 0.0))


@lean_kernel
def conclude_regroup(data, state, scratch, count, i, j, first, second, new_second, kind, accepted):
    """Keep the proposal or undo it, and tally."""
    deal = scratch.deal
    if accepted:
        state.tally[_proposed(kind) + 1] += 1
        for column in range(state.theta.shape[1]):
            state.theta[first, column] = deal.theta[0, column]
            if new_second != first:
                state.theta[new_second, column] = deal.theta[1, column]
        if kind == MERGE:
            release_slot(data, state, second)
        return
    if kind == SPLIT:
        for position in range(count):
            move(state, deal.member[position], first)
        move(state, i, first)
        move(state, j, first)
        release_slot(data, state, new_second)
        return
    for position in range(count):
        deal.side[position] = deal.old_side[position]
    arrange(state, scratch, count, i, j, first, second)


@inline_kernel
def _proposed(kind):
    """The tally's entry for proposals of this kind; acceptances come next."""
    if kind == SPLIT:
        return SPLIT_PROPOSED
    return MERGE_PROPOSED if kind == MERGE else DIVIDE_PROPOSED


@inline_kernel
def bounded_share(share, contacts, most):
    """The share of so many contacts, or less if that would be more than ``most`` tries."""
    return min(share, most / max(contacts, 1))


@lean_kernel
def sweep_contacts(rng, data, hyper, prior, state, scratch, block, share):
    """Try a random share of the contacts, adding up how likely each is to change something."""
    n_contacts = block.last_contact - block.first_contact
    tries = int(share * n_contacts + rng.random())
    for _ in range(tries):
        c = block.first_contact + int(rng.random() * n_contacts)
        state.contact_doubt[c] += regroup(
            rng, data, hyper, prior, state, scratch, data.contact[c, 0], data.contact[c, 1]
        )


@lean_kernel
def count_listed(state, block):
    """How many contacts of the block are marked for a visit."""
    listed = 0
    for c in range(block.first_contact, block.last_contact):
        listed += state.contact_visit[c]
    return listed


@lean_kernel
def visit_contacts(rng, data, hyper, prior, state, scratch, block, share):
    """Try a random share of the contacts that are marked for a visit."""
    for c in range(block.first_contact, block.last_contact):
        if state.contact_visit[c] == 1 and rng.random() < share:
            regroup(rng, data, hyper, prior, state, scratch, data.contact[c, 0], data.contact[c, 1])
