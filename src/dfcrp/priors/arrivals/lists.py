"""Whole lists that arrive sooner or later, as a move of the arrival order.

Exchanges of slots happen within a list, and a rearrangement moves a few customers at a time. So
how early the customers of one list come, taken together, hardly ever changes by them; α and the
number of free seats hang on it.

An order is that of times t_i, independent and uniform on (0, 1). Given the order they are uniform
order statistics, so they can be drawn whenever they are needed. The customers of one list, or of
a few neighbouring ones where there are many, then move to t^g or to 1 − (1 − t)^g with log g
normal. That is one number for the whole list, and its inverse is as likely; with the Jacobian, the
proposal is accepted with probability

    min(1, Π_i (D_i + α) / (D'_i + α) · Π_{moved} g t^(g − 1))

(1 − t in place of t for the second kind). Both those who move and those who stay keep their
sequence, so that the new order is a merge of the two, and a proposal costs about two walks over
the arrivals.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import ORDER_ACCEPTED, ORDER_PROPOSED
from dfcrp.priors.arrivals.order import log_product, walk_arrivals

#: At most so many groups of lists move one by one; with more lists, neighbours move together.
GROUPS = 16
#: Standard deviation of log g, times the root of the number of customers who move or stay.
STEP = 2.0


@inline_kernel
def moves_along(data, i, first, lists):
    """Whether customer i is of one of ``lists`` lists, counted from ``first`` on and round."""
    return (data.family[i] - first + data.n_families) % data.n_families < lists


@lean_kernel
def count_moved(data, first, lists):
    """How many customers these lists have."""
    moved = 0
    for position in range(lists):
        family = (first + position) % data.n_families
        moved += data.family_start[family + 1] - data.family_start[family]
    return moved


@lean_kernel
def draw_times(rng, n, times):
    """Uniform order statistics, times the number returned, into ``times``."""
    total = 0.0
    for slot in range(n):
        total += rng.standard_exponential()
        times[slot] = total
    return total + rng.standard_exponential()


@lean_kernel
def move_times(data, state, scratch, first, lists, total, step, late):
    """New times of those who move, and their slots in ``scratch.slots``; returns the log Jacobian.

    ``late`` says which kind of move it is. NaN if a time is at an end of (0, 1).
    """
    power, jacobian, moved = math.exp(step), 0.0, 0
    for slot in range(state.order.shape[0]):
        if not moves_along(data, state.order[slot], first, lists):
            continue
        time = scratch.value[slot] / total
        if not 0.0 < time < 1.0:
            return math.nan
        log_time = math.log(1.0 - time if late else time)
        new = math.exp(power * log_time)
        scratch.free_seats[moved] = total * (1.0 - new if late else new)
        scratch.slots[moved] = slot
        jacobian += step + (power - 1.0) * log_time
        moved += 1
    return jacobian


@lean_kernel
def merge_arrivals(data, state, scratch, first, lists, moved):
    """Those who stay, at their old times, and those who move, at their new ones: one order."""
    place, position = 0, 0
    for slot in range(state.order.shape[0]):
        i = state.order[slot]
        if moves_along(data, i, first, lists):
            continue
        while position < moved and scratch.free_seats[position] < scratch.value[slot]:
            scratch.proposal[place] = state.order[scratch.slots[position]]
            place += 1
            position += 1
        scratch.proposal[place] = i
        place += 1
    while position < moved:
        scratch.proposal[place] = state.order[scratch.slots[position]]
        place += 1
        position += 1


@lean_kernel
def shift_lists(rng, data, state, scratch):
    """Propose that some lists arrive sooner or later; leaves p(order | c, α) unchanged.

    ``state.seated`` must hold D by slot for the current order on entry, and does on return.
    """
    n = state.order.shape[0]
    lists = (data.n_families + GROUPS - 1) // GROUPS
    first = int(rng.random() * data.n_families)
    moved = count_moved(data, first, lists)
    if moved == 0 or moved == n:
        return
    late = rng.random() < 0.5
    step = STEP * rng.standard_normal() / math.sqrt(min(moved, n - moved))
    total = draw_times(rng, n, scratch.value)
    gain = move_times(data, state, scratch, first, lists, total, step, late)
    if math.isnan(gain):
        return
    merge_arrivals(data, state, scratch, first, lists, moved)
    walk_arrivals(data, state, scratch, scratch.proposal, scratch.proposed)
    alpha = state.alpha[0]
    gain += log_product(state.seated, alpha) - log_product(scratch.proposed, alpha)
    state.tally[ORDER_PROPOSED] += 1
    if -rng.standard_exponential() < gain:
        state.tally[ORDER_ACCEPTED] += 1
        for slot in range(n):
            state.seated[slot] = scratch.proposed[slot]
            state.order[slot] = scratch.proposal[slot]
            state.rank[state.order[slot]] = slot
