"""The DFCRP whose customers are drawn to those of their own person: lists that attract each other.

Customer i sits down at a table k without its family with weight Σ_{j at k} w_ij and at a new one
with α, where w_ij = e^τ if the lists of i and j are one person's, and 1 if not. Every step is
divided by its own sum, so that nothing is left to be normalised: given the order of arrival

    p(c | α, τ, order) = α^K Π_{i not first at its table} A_i / Π_i (D_i + α),

    A_i = Σ w_ij over those who sat at i's table when i came,
    D_i = Σ w_ij over those who sat at any table that i could join.

τ = 0 is the DFCRP. As there, 1 / (D_i + α) = ∫ exp(−u_i (D_i + α)) du_i makes a product over
clusters of it; persons are known by their families, so that only a factor is new in the exponent:

    α Π_{i not first} A_i · exp( Σ_{i<j ∈ k} w_ij [U_{x_i}(m_ij) + U_{x_j}(m_ij)] ),

m_ij the later rank of the two.

D_i depends only on who came before i. So customers of a stretch of slots may be shuffled among
these, and nobody else notices: ``rearrange`` does it with the whole order, stretch by stretch.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, I8, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import (
    EXCHANGE_ACCEPTED,
    EXCHANGE_PROPOSED,
    NONE,
    ORDER_ACCEPTED,
    ORDER_PROPOSED,
    State,
    count_clusters,
)
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.arrivals.exchange import random_relative
from dfcrp.priors.arrivals.order import clear_tables, step_width, update_alpha
from dfcrp.priors.tail import rebuild_tail, tail_sum

#: Extra exchanges proposed in every scan for a marking in doubt.
EXCHANGE_VISITS = 3
#: Width of the first bracket of the slice update of τ.
WIDTH = 0.5


@frame
class Arrived(NamedTuple):
    """What a walk over the arrivals finds, and what it counts on the way; scratch."""

    open: F8  # (n,) by slot: customers at tables that the arrival could join
    kin: F8  # (n,) by slot: those of them who are of its person
    mates: F8  # (n,) by slot: customers at its own table
    mate_kin: F8  # (n,) by slot: those of them who are of its person
    seated: F8  # (n,) by slot: D
    of_family: I8  # (F,): seated so far
    of_person: I8  # (P,)
    barred_kin: I8  # (F,): of the family's person, at tables that hold the family


@frame
class Attraction(NamedTuple):
    """Settings of the prior; the order, u and α are in the state, τ is ``own[0]``."""

    person: I4  # (F,) int32
    learned: bool  # whether τ is updated; then τ ~ N(0, strength_sd²)
    strength_sd: float
    alpha_shape: float
    alpha_rate: float
    own: F8  # (1,)
    strong: F8  # (1,): e^τ
    arrived: Arrived


def room_for_walks(n: int, persons: NDArray[np.integer]) -> Arrived:
    """Room for walks over so many arrivals; ``persons`` says whose list each family is."""
    return Arrived(
        open=np.zeros(n),
        kin=np.zeros(n),
        mates=np.zeros(n),
        mate_kin=np.zeros(n),
        seated=np.zeros(n),
        of_family=np.zeros(len(persons), np.int64),
        of_person=np.zeros(int(persons.max()) + 1, np.int64),
        barred_kin=np.zeros(len(persons), np.int64),
    )


@partition_prior.of_chain.register
def of_chain(prior: Attraction, own: NDArray[np.float64]) -> Attraction:
    """The prior of one chain, which counts for itself."""
    mine = prior._replace(
        own=own,
        strong=prior.strong.copy(),
        arrived=room_for_walks(len(prior.arrived.open), prior.person),
    )
    refresh(mine)
    return mine


@partition_prior.refresh.register
def refresh(prior: Attraction) -> None:
    """e^τ."""
    if prior.learned:
        prior.strong[0] = math.exp(prior.own[0])


@partition_prior.has_order.register
def has_order(prior: Attraction) -> bool:
    """Always."""
    return True


@inline_kernel
def pull(prior, one, other):
    """w of two families."""
    return prior.strong[0] if prior.person[one] == prior.person[other] else 1.0


@inline_kernel
def following(state, k, extra, a):
    """Who comes after a in the list of k's members that ``extra``, if not NONE, is put before."""
    return state.head[k] if a == extra else state.after[a]


@lean_kernel
def log_seats(prior, data, state, k, extra):
    """log Π A_i over cluster k, and ``extra`` if it is not NONE, without the first to arrive."""
    total = 0.0
    a = extra if extra != NONE else state.head[k]
    while a != NONE:
        before = 0.0
        b = extra if extra != NONE else state.head[k]
        while b != NONE:
            if state.rank[b] < state.rank[a]:
                before += pull(prior, data.family[a], data.family[b])
            b = following(state, k, extra, b)
        if before > 0.0:
            total += math.log(before)
        a = following(state, k, extra, a)
    return total


@inline_kernel
def order_share(prior, data, state, i, j):
    """w_ij [U_{x_i}(m_ij) + U_{x_j}(m_ij)]."""
    one, other = data.family[i], data.family[j]
    late = max(state.rank[i], state.rank[j])
    both = tail_sum(state.tail, one, late) + tail_sum(state.tail, other, late)
    return pull(prior, one, other) * both


@implements(partition_prior.uses_order, Attraction)
@inline_kernel
def uses_order(prior):
    """The order's share is in the weights below."""
    return False


@implements(partition_prior.counts_ranks, Attraction)
@inline_kernel
def counts_ranks(prior):
    """Always."""
    return True


@implements(partition_prior.log_open_all, Attraction)
@inline_kernel
def log_open_all(prior, state):
    """log α."""
    return math.log(state.alpha[0])


@implements(partition_prior.log_open, Attraction)
@inline_kernel
def log_open(prior, common, data, state, i, size):
    """log α."""
    return common


@implements(partition_prior.log_join, Attraction)
@lean_kernel
def log_join(prior, data, state, scratch, i, k, size):
    """log of cluster k's factor with i over that without."""
    total = log_seats(prior, data, state, k, i) - log_seats(prior, data, state, k, NONE)
    j = state.head[k]
    while j != NONE:
        total += order_share(prior, data, state, i, j)
        j = state.after[j]
    return total


@implements(partition_prior.log_join_bound, Attraction)
@inline_kernel
def log_join_bound(prior, data, i, size):
    """None is known that is cheap."""
    return math.inf


@implements(partition_prior.log_cluster, Attraction)
@lean_kernel
def log_cluster(prior, data, state, k, size):
    """log of cluster k's factor."""
    total = math.log(state.alpha[0]) + log_seats(prior, data, state, k, NONE)
    i = state.head[k]
    while i != NONE:
        j = state.after[i]
        while j != NONE:
            total += order_share(prior, data, state, i, j)
            j = state.after[j]
        i = state.after[i]
    return total


@implements(partition_prior.log_tilt, Attraction)
@inline_kernel
def log_tilt(prior, data, state, k, size):
    """Nothing: objects of all sizes are alike."""
    return 0.0


@lean_kernel
def exchange(prior, rng, data, state, a, b):
    """Let a and b of one family exchange slots, u staying there, or not: given u.

    The slots of each family, and so U and all constants, stay as they are: only the factors of
    the two tables change.
    """
    state.tally[EXCHANGE_PROPOSED] += 1
    first, second = state.label[a], state.label[b]
    gain = -log_cluster(prior, data, state, first, 0.0)
    gain -= log_cluster(prior, data, state, second, 0.0)
    p, q = state.rank[a], state.rank[b]
    state.rank[a], state.rank[b] = q, p
    gain += log_cluster(prior, data, state, first, 0.0)
    gain += log_cluster(prior, data, state, second, 0.0)
    if -rng.standard_exponential() < gain:
        state.order[p], state.order[q] = b, a
        state.u[a], state.u[b] = state.u[b], state.u[a]
        state.tally[EXCHANGE_ACCEPTED] += 1
    else:
        state.rank[a], state.rank[b] = p, q


@implements(partition_prior.update_block, Attraction)
@lean_kernel
def update_slots(prior, rng, data, state, scratch, block):
    """Exchange arrival slots inside families and the block."""
    for a in range(block.first, block.last):
        for _ in range(1 + EXCHANGE_VISITS * (state.visit[a] > 0)):
            b = random_relative(rng, data, a, block)
            if a != b:
                exchange(prior, rng, data, state, a, b)


@inline_kernel
def seat(prior, data, state, scratch, slot, t):
    """Let t arrive at the slot: note whom it meets, and keep the counts."""
    arrived, k, family = prior.arrived, state.label[t], data.family[t]
    person = prior.person[family]
    arrived.open[slot] = slot - scratch.excluded[family]
    arrived.kin[slot] = (
        arrived.of_person[person] - arrived.of_family[family] - arrived.barred_kin[family]
    )
    start, mates, kin = scratch.table_start[k], scratch.at_table[k], 0
    for place in range(start, start + mates):
        mate = scratch.seat_family[place]
        scratch.excluded[mate] += 1
        if prior.person[mate] == person:
            kin += 1
            arrived.barred_kin[mate] += 1
    arrived.barred_kin[family] += kin
    arrived.mates[slot], arrived.mate_kin[slot] = mates, kin
    scratch.seat_family[start + mates] = family
    scratch.at_table[k] = mates + 1
    scratch.excluded[family] += mates + 1
    arrived.of_family[family] += 1
    arrived.of_person[person] += 1


@inline_kernel
def unseat(prior, data, state, scratch, t):
    """Undo ``seat`` for the latest arrival."""
    arrived, k, family = prior.arrived, state.label[t], data.family[t]
    person = prior.person[family]
    start, mates = scratch.table_start[k], scratch.at_table[k] - 1
    scratch.at_table[k] = mates
    for place in range(start, start + mates):
        mate = scratch.seat_family[place]
        scratch.excluded[mate] -= 1
        if prior.person[mate] == person:
            arrived.barred_kin[mate] -= 1
            arrived.barred_kin[family] -= 1
    scratch.excluded[family] -= mates + 1
    arrived.of_family[family] -= 1
    arrived.of_person[person] -= 1


@inline_kernel
def log_arrival(arrived, slot, extra, alpha):
    """log of A / (D + α) of a slot without the first-comers' α; ``extra`` is e^τ − 1."""
    value = -math.log(arrived.open[slot] + extra * arrived.kin[slot] + alpha)
    if arrived.mates[slot] > 0:
        value += math.log(arrived.mates[slot] + extra * arrived.mate_kin[slot])
    return value


@lean_kernel
def walk(prior, data, state, scratch, order, first, last):
    """Seat the customers of the slots first..last-1 of ``order``; returns their log probability."""
    total, extra = 0.0, prior.strong[0] - 1.0
    for slot in range(first, last):
        seat(prior, data, state, scratch, slot, order[slot])
        total += log_arrival(prior.arrived, slot, extra, state.alpha[0])
    return total


@lean_kernel
def walk_back(prior, data, state, scratch, order, first, last):
    """Let them leave again."""
    for slot in range(last - 1, first - 1, -1):
        unseat(prior, data, state, scratch, order[slot])


@lean_kernel
def rearrange(prior, rng, data, state, scratch):
    """Shuffle stretches of the order, each accepted or not; leaves p(order | c, α, τ) unchanged.

    Stretches are of one length, drawn again each time between two and all customers: long ones
    bring customers far, short ones are accepted. Leaves ``prior.arrived`` up to date.
    """
    n, arrived, proposal = state.order.shape[0], prior.arrived, scratch.proposal
    clear_tables(state, scratch)
    arrived.of_family[:] = 0
    arrived.of_person[:] = 0
    arrived.barred_kin[:] = 0
    length = 2.0 ** (1.0 + rng.random() * math.log2(max(n / 2.0, 1.0)))
    first, last = 0, min(1 + int(rng.random() * length), n)
    while first < n:
        old = walk(prior, data, state, scratch, state.order, first, last)
        for slot in range(first, last):
            proposal[slot] = state.order[slot]
        for slot in range(last - 1, first, -1):
            other = first + int(rng.random() * (slot - first + 1))
            proposal[slot], proposal[other] = proposal[other], proposal[slot]
        walk_back(prior, data, state, scratch, state.order, first, last)
        new = walk(prior, data, state, scratch, proposal, first, last)
        state.tally[ORDER_PROPOSED] += 1
        if -rng.standard_exponential() < new - old:
            state.tally[ORDER_ACCEPTED] += 1
            for slot in range(first, last):
                state.order[slot] = proposal[slot]
                state.rank[proposal[slot]] = slot
        else:
            walk_back(prior, data, state, scratch, proposal, first, last)
            walk(prior, data, state, scratch, state.order, first, last)
        first, last = last, min(last + math.ceil(length), n)


@lean_kernel
def log_strength(prior, state, strength):
    """log p(τ | c, order, α), u integrated out, up to a constant."""
    arrived, extra = prior.arrived, math.expm1(strength)
    z = strength / prior.strength_sd
    value = -0.5 * z * z
    for slot in range(state.order.shape[0]):
        value += log_arrival(arrived, slot, extra, state.alpha[0])
    return value


class Strength(NamedTuple):
    """τ given the rest."""

    prior: Attraction
    state: State


@implements(log_target, Strength)
@inline_kernel
def log_strength_at(target, value):
    """Its conditional."""
    return log_strength(target.prior, target.state, value)


@lean_kernel
def update_strength(prior, rng, state):
    """One slice update of τ."""
    start = prior.own[0]
    target = Strength(prior, state)
    prior.own[0] = slice_update(rng, target, start, WIDTH, 1e-13 * (1.0 + abs(start)))
    prior.strong[0] = math.exp(prior.own[0])


@implements(partition_prior.update_prior, Attraction)
@lean_kernel
def update_attraction(prior, rng, data, hyper, state, scratch):
    """Order, τ, α (u integrated out), then u and its sums."""
    arrived = prior.arrived
    rearrange(prior, rng, data, state, scratch)
    if prior.learned:
        update_strength(prior, rng, state)
    extra = prior.strong[0] - 1.0
    for slot in range(state.order.shape[0]):
        arrived.seated[slot] = arrived.open[slot] + extra * arrived.kin[slot]
    clusters = count_clusters(state)
    width = step_width(state.scans[0], data.n_families, clusters, prior.alpha_shape)
    state.alpha[0] = update_alpha(
        rng,
        arrived.seated,
        clusters,
        prior.alpha_shape,
        prior.alpha_rate,
        state.alpha[0],
        width,
    )
    for slot in range(state.order.shape[0]):
        rate = arrived.seated[slot] + state.alpha[0]
        state.u[state.order[slot]] = rng.standard_exponential() / rate
    rebuild_tail(data, state)
