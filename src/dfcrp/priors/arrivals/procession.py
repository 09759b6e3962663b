"""A new order of arrival for everyone, together with a new α.

Given the partition, α and the order hang together: the more seats are free while the customers
arrive, the larger the α they speak for. If nearly every object is on every list this is a long
narrow ridge, and updates of one given the other take thousands of scans to walk along it.

Here both are proposed afresh. The families arrive in a uniformly drawn sequence. A customer of
family f joins a table with probability D / (D + α), as the seating rule has it, else opens one;
who it is, is drawn uniformly from the J of the family whose table is open already, or from the O
whose table is not. If one of these is zero the other kind is certain. Of the prior's probability
over the proposal's there is left, but for a constant,

    W = Π J / D · Π O,   with D + α in place of D, and O α / (D + α), where the kind was certain,

the products running over those who join and those who open. The proposal is accepted with
probability min(1, W' p(α') / (W p(α))). With two lists that agree altogether W is nearly the same
for all orders; the more lists and the less they agree, the more it varies and the fewer proposals
are accepted, so the move is made with few families only, which is where it is needed.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import ALPHA_ACCEPTED, ALPHA_PROPOSED
from dfcrp.priors.arrivals.order import FEW, clear_tables, seat

#: Standard deviations of a step of log α, in turn: lists that agree altogether leave α a range of
#: several powers of ten, others a short one.
LEAPS = (3.0, 1.0)
#: One logarithm for many factors: a product is taken until it is this large, or this small.
LARGE = 1e100
#: Proposals in one scan: α is what such a run would wait for.
PROPOSALS = 4


@inline_kernel
def processions(n_families):
    """Proposals in one scan; with more families few of them would be accepted."""
    return PROPOSALS if n_families <= FEW else 0


@lean_kernel
def line_up(data, state, scratch):
    """Nobody has come, no table is open.

    In ``scratch.slots`` each family's members stand side by side: first those whose table is not
    open (``to_open`` of them), then those whose table is (``to_join``), then those who have come;
    ``scratch.chosen`` says where each one stands.
    """
    clear_tables(state, scratch)
    for family in range(data.n_families):
        scratch.to_open[family] = data.family_start[family + 1] - data.family_start[family]
        scratch.to_join[family] = 0
    for place in range(data.family_member.shape[0]):
        i = data.family_member[place]
        scratch.slots[place] = i
        scratch.chosen[i] = place


@inline_kernel
def change_places(scratch, i, place):
    """Let customer i stand at ``place``, and whoever stood there at i's."""
    old, other = scratch.chosen[i], scratch.slots[place]
    scratch.slots[old], scratch.chosen[other] = other, old
    scratch.slots[place], scratch.chosen[i] = i, place


@inline_kernel
def arrive(data, state, scratch, i):
    """Customer i comes in; if that opens a table, its other members may join from now on."""
    k = state.label[i]
    if scratch.at_table[k] == 0:
        mate = state.head[k]
        while mate >= 0:
            family = data.family[mate]
            scratch.to_open[family] -= 1
            change_places(scratch, mate, data.family_start[family] + scratch.to_open[family])
            scratch.to_join[family] += 1
            mate = state.after[mate]
    family = data.family[i]
    scratch.to_join[family] -= 1
    last = data.family_start[family] + scratch.to_open[family] + scratch.to_join[family]
    change_places(scratch, i, last)
    seat(data, state, scratch, i)


@inline_kernel
def odds(joins, openers, joiners, free, alpha):
    """One customer's factor of W."""
    certain = openers == 0 or joiners == 0
    if joins:
        return joiners / (free + alpha if certain else float(free))
    return openers * alpha / (free + alpha) if certain else float(openers)


@lean_kernel
def walk_line(rng, data, state, scratch, alpha, order, seated, follow):
    """Everyone comes in; returns log W, and D by arrival slot in ``seated``.

    With ``follow`` in the order given, else in one that is drawn and written to ``order``; what
    is kept of that is the sequence of its families.
    """
    line_up(data, state, scratch)
    total, product = 0.0, 1.0
    for slot in range(order.shape[0]):
        i = order[slot]
        family = data.family[i]
        free = slot - scratch.excluded[family]
        openers, joiners = scratch.to_open[family], scratch.to_join[family]
        if follow:
            joins = scratch.at_table[state.label[i]] > 0
        else:
            joins = openers == 0 or (joiners > 0 and rng.random() * (free + alpha) < free)
            first = data.family_start[family] + (openers if joins else 0)
            i = scratch.slots[first + int(rng.random() * (joiners if joins else openers))]
            order[slot] = i
        seated[slot] = free
        product *= odds(joins, openers, joiners, free, alpha)
        if not 1.0 / LARGE < product < LARGE:
            total += math.log(product)
            product = 1.0
        arrive(data, state, scratch, i)
    return total + math.log(product)


@lean_kernel
def shuffle_into(rng, order, out):
    """The same customers in a uniformly drawn order."""
    for slot in range(order.shape[0]):
        other = int(rng.random() * (slot + 1))
        out[slot] = out[other]
        out[other] = order[slot]


@lean_kernel
def update_alpha_and_order(rng, data, state, scratch, shape, rate, leap, weight):
    """One such proposal; leaves p(α, order | c) unchanged.

    ``weight`` is log W of the order as it stands; returns that of the order it leaves.
    ``state.seated`` must hold D by slot for the current order on entry, and does on return.
    """
    alpha = state.alpha[0]
    step = leap * rng.standard_normal()
    new_alpha = alpha * math.exp(step)
    shuffle_into(rng, state.order, scratch.proposal)
    proposed = walk_line(
        rng, data, state, scratch, new_alpha, scratch.proposal, scratch.proposed, False
    )
    gain = proposed - weight + shape * step - rate * (new_alpha - alpha)
    state.tally[ALPHA_PROPOSED] += 1
    if not -rng.standard_exponential() < gain:
        return weight
    state.tally[ALPHA_ACCEPTED] += 1
    state.alpha[0] = new_alpha
    for slot in range(state.order.shape[0]):
        state.seated[slot] = scratch.proposed[slot]
        state.order[slot] = scratch.proposal[slot]
        state.rank[state.order[slot]] = slot
    return proposed


@lean_kernel
def lead_processions(rng, data, state, scratch, shape, rate, learn, proposals):
    """So many proposals one after the other; without ``learn`` α stays as it is."""
    if proposals == 0:
        return
    alpha = state.alpha[0]
    weight = walk_line(rng, data, state, scratch, alpha, state.order, state.seated, True)
    for number in range(proposals):
        leap = LEAPS[number % len(LEAPS)] if learn else 0.0
        weight = update_alpha_and_order(rng, data, state, scratch, shape, rate, leap, weight)
