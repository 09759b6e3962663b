"""More visits for the few markings whose place is in doubt.

On real images nearly every marking is decided, and the length of a run is set by a handful that
are not. During the first scans the odds of each marking's alternatives are noted. Then the
doubtful ones are listed, with a companion from each cluster they might join, and the list stays
as it is: from then on every scan visits them, and the parameters of their clusters, several
times more. Contacts whose clusters were likely to be split, merged or re-divided are listed and
visited in the same way. Which clusters are updated is read off the labels, never off the parameters
themselves, so each visit leaves the posterior unchanged.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE, is_grouped
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves.assignment import detach, log_open_detached, update_marking, weigh_features
from dfcrp.moves.pair import update_pair
from dfcrp.moves.regroup import bounded_share, count_listed, visit_contacts
from dfcrp.priors.contract import log_open_all

#: Doubt is noted in scans NOTE_FROM..NOTE_UNTIL-1; draws before NOTE_UNTIL belong to the burn-in.
NOTE_FROM, NOTE_UNTIL = 40, 100
#: A marking is in doubt if its alternatives had at least this probability on average.
DOUBT = 1e-3
#: A cluster is a marking's possible place if its weight is within this of the best (log scale).
POSSIBLE = 7.0
#: Extra visits per scan.
VISITS = 2
#: Share of the listed contacts tried in each scan: two clusters have many in common.
VISIT_SHARE = 0.35
#: Share of the contacts tried in each scan, and while doubt is noted.
CONTACT_SHARE, NOTE_SHARE = 0.005, 0.27
#: Tries per marking, at most, for each of these three: the contacts of two objects grow with the
#: square of the number of lists, and are many ways to try the same.
VISIT_MOST, CONTACT_MOST, NOTE_MOST = 0.125, 0.025, 0.25


@lean_kernel
def weigh_in_place(data, hyper, prior, state, scratch, i):
    """Log weights of marking i's options, leaving it where it is; returns their number."""
    k = state.label[i]
    alone = state.size[k] == 1
    log_new = detach(data, hyper, state, i)
    log_new += log_open_detached(data, hyper, prior, log_open_all(prior, state), state, i)
    count = weigh_features(
        data, hyper, prior, state, scratch, i, log_new, scratch.candidate, scratch.weight
    )
    _put_back(data, hyper, state, i, k, alone)
    return count


@lean_kernel
def _put_back(data, hyper, state, i, k, alone):
    """Undo ``detach``."""
    if not alone:
        likelihood.add_member(hyper, state.theta, k, data.features, i)
    first = NONE if alone else state.head[k]
    state.before[i], state.after[i] = NONE, first
    if first != NONE:
        state.before[first] = i
    state.head[k] = i
    state.size[k] += 1


@lean_kernel
def note_doubt(data, hyper, prior, state, scratch, block):
    """Add to each marking's doubt the probability of all its options but the best.

    Markings in groups have their own update, and are never in doubt.
    """
    for i in range(block.first, block.last):
        if is_grouped(data, i):
            continue
        count = weigh_in_place(data, hyper, prior, state, scratch, i)
        best = scratch.weight[0]
        for position in range(1, count):
            best = max(best, scratch.weight[position])
        total = 0.0
        for position in range(count):
            total += math.exp(scratch.weight[position] - best)
        state.doubt[i] += 1.0 - 1.0 / total


@lean_kernel
def list_doubtful(data, hyper, prior, state, scratch, block):
    """Fix the list of markings in doubt and of their companions.

    ``state.visit[i]`` becomes 2 for a marking in doubt and 1 for a companion.
    """
    limit = DOUBT * (NOTE_UNTIL - NOTE_FROM)
    for i in range(block.first, block.last):
        if state.doubt[i] < limit:
            continue
        state.visit[i] = 2
        count = weigh_in_place(data, hyper, prior, state, scratch, i)
        best = scratch.weight[0]
        for position in range(1, count):
            best = max(best, scratch.weight[position])
        for position in range(count - 1):
            if scratch.weight[position] > best - POSSIBLE:
                companion = state.head[scratch.candidate[position]]
                state.visit[companion] = max(state.visit[companion], 1)


@inline_kernel
def contact_share(age, block):
    """Share of the contacts to try in a scan of this age."""
    n, contacts = block.last - block.first, block.last_contact - block.first_contact
    if NOTE_FROM <= age < NOTE_UNTIL:
        return bounded_share(NOTE_SHARE, contacts, NOTE_MOST * n)
    return bounded_share(CONTACT_SHARE, contacts, CONTACT_MOST * n)


@lean_kernel
def list_contacts(data, state, block):
    """Mark the contacts that were likely to change something; their markings are companions."""
    limit = DOUBT * contact_share(NOTE_FROM, block) * (NOTE_UNTIL - NOTE_FROM)
    for c in range(block.first_contact, block.last_contact):
        state.contact_visit[c] = 1 if state.contact_doubt[c] > limit else 0
        if state.contact_visit[c] == 1:
            for i in data.contact[c]:
                state.visit[i] = max(state.visit[i], 1)


@lean_kernel
def revisit_once(rng, data, hyper, prior, state, scratch, block):
    """One extra visit: markings in doubt, pairs with one of them, and their clusters."""
    common = log_open_all(prior, state)
    for i in range(block.first, block.last):
        if state.visit[i] == 2:
            update_marking(rng, data, hyper, prior, state, scratch, i, common)
            for edge in range(data.pair_start[i], data.pair_start[i + 1]):
                update_pair(rng, data, hyper, prior, state, scratch, i, data.pair_other[edge])
    for k in range(block.first, block.last):
        scratch.slots[k] = 0
    for i in range(block.first, block.last):
        k = state.label[i]
        if state.visit[i] > 0 and scratch.slots[k] == 0:
            scratch.slots[k] = 1
            likelihood.update_cluster(hyper, rng, prior, data, state, k, scratch.deal.theta)


@lean_kernel
def revisit(rng, data, hyper, prior, state, scratch, block):
    """What a scan does about markings in doubt at its age."""
    age = state.scans[0]
    if age == NOTE_FROM - 1:
        for c in range(block.first_contact, block.last_contact):
            state.contact_doubt[c] = 0.0
    if NOTE_FROM <= age < NOTE_UNTIL:
        note_doubt(data, hyper, prior, state, scratch, block)
        if age == NOTE_UNTIL - 1:
            list_doubtful(data, hyper, prior, state, scratch, block)
            list_contacts(data, state, block)
    elif age >= NOTE_UNTIL:
        for _ in range(VISITS):
            revisit_once(rng, data, hyper, prior, state, scratch, block)
        most = VISIT_MOST * (block.last - block.first)
        share = bounded_share(VISIT_SHARE, count_listed(state, block), most)
        visit_contacts(rng, data, hyper, prior, state, scratch, block, share)
