"""Exchange of arrival slots within a family, given u: exact, local and cheap.

Let u belong to the slots. Exchanging the slots p and q of two members a, b of one family leaves
every family's set of slots, and so every U_f(r), as it is. Of

    log p(c, order | u) = Σ_k Σ_{i≠j ∈ k} U_{x_i}(max(r_i, r_j)) + const

only the terms of a with its table mates and of b with its own change.
"""

from __future__ import annotations

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import EXCHANGE_ACCEPTED, EXCHANGE_PROPOSED, NONE
from dfcrp.priors.tail import tail_sum


@lean_kernel
def lay_out_tables(data, state, scratch, block):
    """List each table's ranks and families side by side, in order of arrival."""
    start = block.first
    for k in range(block.first, block.last):
        scratch.table_start[k] = start
        stop = start
        i = state.head[k] if state.size[k] > 0 else NONE
        while i != NONE:
            place, rank = stop, state.rank[i]
            while place > start and scratch.seat_rank[place - 1] > rank:
                scratch.seat_rank[place] = scratch.seat_rank[place - 1]
                scratch.seat_family[place] = scratch.seat_family[place - 1]
                place -= 1
            scratch.seat_rank[place] = rank
            scratch.seat_family[place] = data.family[i]
            stop += 1
            i = state.after[i]
        start = stop


@inline_kernel
def first_from(values, low, high, bound):
    """The first place in low..high-1, of increasing values, whose value is at least ``bound``."""
    while low < high:
        middle = (low + high) >> 1
        if values[middle] < bound:
            low = middle + 1
        else:
            high = middle
    return low


@inline_kernel
def random_relative(rng, data, a, block):
    """A member of a's family inside the block, perhaps a itself."""
    family = data.family[a]
    low, high = data.family_start[family], data.family_start[family + 1]
    if block.last - block.first < data.family.shape[0]:
        low = first_from(data.family_member, low, high, block.first)
        high = first_from(data.family_member, low, high, block.last)
    return data.family_member[low + int(rng.random() * (high - low))]


@inline_kernel
def gain_of_move(data, state, scratch, i, old, new):
    """Change of Σ_j U_{x_i}(m) + U_{x_j}(m), m = max(slot, r_j), over i's table mates j.

    Mates come in order of arrival; those after both slots do not notice.
    """
    tail, family = state.tail, data.family[i]
    sooner, later = min(old, new), max(old, new)
    gap = tail_sum(tail, family, new) - tail_sum(tail, family, old)
    total = 0.0
    k = state.label[i]
    start = scratch.table_start[k]
    for place in range(start, start + state.size[k]):
        rank = scratch.seat_rank[place]
        if rank >= later:
            break
        if rank == old:
            continue
        mate = scratch.seat_family[place]
        if rank < sooner:
            total += gap + tail_sum(tail, mate, new) - tail_sum(tail, mate, old)
        else:
            here, there = max(new, rank), max(old, rank)
            total += tail_sum(tail, family, here) - tail_sum(tail, family, there)
            total += tail_sum(tail, mate, here) - tail_sum(tail, mate, there)
    return total


@inline_kernel
def move_seat(data, state, scratch, i, old, new):
    """Bring i's entry in its table's list from rank ``old`` to its place at rank ``new``."""
    k = state.label[i]
    first = scratch.table_start[k]
    last = first + state.size[k] - 1
    place = first
    while place < last and scratch.seat_rank[place] != old:
        place += 1
    while place < last and scratch.seat_rank[place + 1] < new:
        scratch.seat_rank[place] = scratch.seat_rank[place + 1]
        scratch.seat_family[place] = scratch.seat_family[place + 1]
        place += 1
    while place > first and scratch.seat_rank[place - 1] > new:
        scratch.seat_rank[place] = scratch.seat_rank[place - 1]
        scratch.seat_family[place] = scratch.seat_family[place - 1]
        place -= 1
    scratch.seat_rank[place] = new
    scratch.seat_family[place] = data.family[i]


@lean_kernel
def list_visited(state, out, block):
    """Write the markings that are marked for extra visits; returns their number."""
    count = 0
    for i in range(block.first, block.last):
        if state.visit[i] > 0:
            out[count] = i
            count += 1
    return count


@lean_kernel
def exchange_slots(rng, data, state, scratch, block, tries, visits):
    """Propose exchanges between members of one family; leaves p(order | c, u) unchanged.

    One member is random, the other one each marking in turn for ``tries`` proposals, which
    keeps its table at hand in memory; then each of those marked for extra visits ``visits``
    times, as whether two clusters can become one hangs on when their members arrive. As u
    stays with the slots it changes hands between the markings.
    """
    lay_out_tables(data, state, scratch, block)
    n = block.last - block.first
    visited = list_visited(state, scratch.slots, block)
    for proposal in range(tries + visits * visited):
        if proposal < tries:
            a = block.first + proposal % n
        else:
            a = scratch.slots[(proposal - tries) % visited]
        b = random_relative(rng, data, a, block)
        if a == b:
            continue
        p, q = state.rank[a], state.rank[b]
        state.tally[EXCHANGE_PROPOSED] += 1
        gain = gain_of_move(data, state, scratch, a, p, q)
        gain += gain_of_move(data, state, scratch, b, q, p)
        if gain >= 0.0 or -rng.standard_exponential() < gain:
            state.rank[a], state.rank[b] = q, p
            state.order[p], state.order[q] = b, a
            state.u[a], state.u[b] = state.u[b], state.u[a]
            move_seat(data, state, scratch, a, p, q)
            move_seat(data, state, scratch, b, q, p)
            state.tally[EXCHANGE_ACCEPTED] += 1
