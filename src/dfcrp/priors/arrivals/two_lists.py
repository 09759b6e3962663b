"""Two lists: the order of arrival summed out of the prior, given only whose turn it was.

With two families every table has one or two seats, and how many tables wait for a member of either
family is all that the seating rule looks at. Let m be the smaller of these two numbers. Given the
sequence σ of the families that arrive, their difference is known at any time, and m is a Markov
chain: a customer who finds D tables waiting joins one with probability D / (D + α), else opens one.
So P(m | σ, α) after all arrivals follows in O(n) times the largest m (``walk_sequence``). The end
value of m says how many markings of the shorter list are alone, so that there are

    p(c | σ, α) = P(m | σ, α) / (C(a, M) C(b, M) M!),      M = min(a, b) - m,

for lists of a and b markings with M pairs: all partitions with as many pairs are equally likely.
Beside M pairs without it, a marking weighs its own new cluster by

    P(m) / P(m - 1) · (a - M) (b - M) / (M + 1)

times what it weighs joining one that is alone. That is done where lists agree nearly altogether
(``moves.unordered``): there α is small, few orders are possible, and given one of them hardly any
marking can move. Afterwards α, σ and the order are drawn given the partition. Given σ, first which
customers join, backwards along the chain; whom they join is any that waits, and who sits where is
any way to deal the pairs and those who are alone out to the seats.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import I4, F8x2
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE, Data, count_clusters
from dfcrp.priors.arrivals.order import FARTHEST

#: Values of m that there is room for, and the most entries of a table of all of them.
WIDTH, MOST_ENTRIES = 128, 8_000_000
#: Markings of the shorter list that are alone, at most, where the order is summed out.
MOST_ALONE = 40
#: Probabilities of m that are as good as zero.
LEAST = 1e-60
#: The log weight of a new cluster where one pair more is as good as impossible.
LARGEST = 500.0
#: New sequences of the families that are proposed each time; first width of a slice of log α.
SEQUENCES, ALPHA_WIDTH = 2, 1.0


def room_for(n: int, n_families: int) -> tuple[int, int]:
    """Shape of the table ``Scratch.waiting``; nothing where it is not used."""
    fits = n_families == 2 and n * WIDTH <= MOST_ENTRIES
    return (n + 1, WIDTH) if fits else (0, 0)


@inline_kernel
def waiting_for(family, m, lead):
    """Tables that wait for a member of the family; ``lead`` is by how many the first one leads."""
    return m + max(-lead if family == 0 else lead, 0)


@lean_kernel
def walk_sequence(data, order, alpha, waiting, keep):
    """P(m) after every arrival, row by row with ``keep``, else in two rows; returns the last row.

    Entries above the largest m that is possible are zero.
    """
    width = waiting.shape[1]
    waiting[0, :] = 0.0
    waiting[0, 0] = 1.0
    top, lead, row = 0, 0, 0
    for slot in range(order.shape[0]):
        family = data.family[order[slot]]
        before, row = row, slot + 1 if keep else 1 - row
        new_top = min(top + 1, width - 1)
        for m in range(min(new_top + 3, width)):
            waiting[row, m] = 0.0
        for m in range(top + 1):
            free = waiting_for(family, m, lead)
            other = waiting_for(1 - family, m, lead)
            joins = free / (free + alpha)
            if free > 0:
                waiting[row, min(free - 1, other)] += waiting[before, m] * joins
            opened = min(free, other + 1)
            if opened < width:
                waiting[row, opened] += waiting[before, m] * (1.0 - joins)
        lead += 1 - 2 * family
        top = new_top
        while top > 0 and waiting[row, top] < LEAST:
            waiting[row, top] = 0.0
            top -= 1
    # Rows in turn still hold what was there two arrivals ago.
    for m in range(top + 1, width):
        waiting[row, m] = 0.0
    return row


@inline_kernel
def log_ending(waiting, row, m):
    """log P(m), or -∞."""
    if m < 0 or m >= waiting.shape[1] or waiting[row, m] <= 0.0:
        return -math.inf
    return math.log(waiting[row, m])


@lean_kernel
def weigh_opening(data, state, scratch):
    """Whether the order can be summed out; if so ``scratch.value`` has log weights of opening.

    They are by the number of other clusters.
    """
    n = state.order.shape[0]
    if scratch.waiting.shape[0] == 0:
        return False
    first = data.family_start[1]
    shorter, pairs = min(first, n - first), n - count_clusters(state)
    if shorter - pairs > MOST_ALONE:
        return False
    row = walk_sequence(data, state.order, state.alpha[0], scratch.waiting, False)
    if log_ending(scratch.waiting, row, shorter - pairs) == -math.inf:
        return False
    for others in range(n):
        m = shorter - (n - 1 - others)
        scratch.value[others] = log_opening(scratch.waiting, row, m, shorter, n - shorter)
    return True


@inline_kernel
def log_opening(waiting, row, m, shorter, longer):
    """Log weight of a new cluster beside ``shorter - m`` pairs; that of joining is 0.

    None is opened from which the order could not be summed out.
    """
    if m > MOST_ALONE:
        return -math.inf
    if m < 1:
        return 0.0
    pairs = shorter - m
    opens, joins = log_ending(waiting, row, m), log_ending(waiting, row, m - 1)
    ways = math.log((shorter - pairs) * (longer - pairs) / (pairs + 1.0))
    return min(opens - joins, LARGEST) + ways if opens > -math.inf else opens


class AlphaOfSequence(NamedTuple):
    """log α given σ and the partition, with the order summed out, and the prior of α."""

    data: Data
    order: I4
    waiting: F8x2
    alone: int
    shape: float
    rate: float


@implements(log_target, AlphaOfSequence)
@lean_kernel
def log_of_alpha(target, value):
    """Its conditional."""
    if abs(value) > FARTHEST:
        return -math.inf
    alpha = math.exp(value)
    row = walk_sequence(target.data, target.order, alpha, target.waiting, False)
    ending = log_ending(target.waiting, row, target.alone)
    return ending + target.shape * value - target.rate * alpha


@lean_kernel
def redraw_alpha(rng, data, state, scratch, alone, shape, rate):
    """A slice update of log α; leaves p(α | c, σ) unchanged."""
    start = math.log(state.alpha[0])
    target = AlphaOfSequence(data, state.order, scratch.waiting, alone, shape, rate)
    value = slice_update(rng, target, start, ALPHA_WIDTH, 1e-14 * (1.0 + abs(start)))
    if value != start:
        state.alpha[0] = math.exp(value)


@lean_kernel
def propose_sequence(rng, data, state, scratch, alone):
    """A new sequence of the families, taken or not; leaves p(σ | c, α) unchanged.

    Who arrives when is settled afterwards, so that any order with the sequence will do.
    """
    n = state.order.shape[0]
    for slot in range(n):
        other = int(rng.random() * (slot + 1))
        scratch.proposal[slot] = scratch.proposal[other]
        scratch.proposal[other] = state.order[slot]
    waiting, alpha = scratch.waiting, state.alpha[0]
    row = walk_sequence(data, state.order, alpha, waiting, False)
    now = log_ending(waiting, row, alone)
    row = walk_sequence(data, scratch.proposal, alpha, waiting, False)
    if -rng.standard_exponential() < log_ending(waiting, row, alone) - now:
        for slot in range(n):
            state.order[slot] = scratch.proposal[slot]


@lean_kernel
def draw_joins(rng, data, state, scratch, alone):
    """Which arrivals join a table, given m after the last one; 1 or 0 in ``scratch.chosen``."""
    waiting, alpha, n = scratch.waiting, state.alpha[0], state.order.shape[0]
    walk_sequence(data, state.order, alpha, waiting, True)
    first = data.family_start[1]
    lead, m = 2 * first - n, alone
    for slot in range(n - 1, -1, -1):
        family = data.family[state.order[slot]]
        free, other = waiting_for(family, m, lead), waiting_for(1 - family, m, lead)
        lead -= 1 - 2 * family
        # Before: one table more that waits for the family, or one less that waits for the other.
        joined, opened = min(free + 1, other), min(free, other - 1)
        join, opening = 0.0, 0.0
        if joined < waiting.shape[1]:
            join = waiting[slot, joined] * (free + 1.0) / (free + 1.0 + alpha)
        if opened >= 0:
            opening = waiting[slot, opened] * alpha / (free + alpha)
        joins = rng.random() * (join + opening) < join
        scratch.chosen[slot] = 1 if joins else 0
        m = joined if joins else opened


@lean_kernel
def draw_mates(rng, data, state, scratch):
    """Whom those who join find: by slot the other slot of the table, or NONE, in ``slots``.

    Tables that wait are listed from the left if opened by the first family, else from the right.
    """
    n = state.order.shape[0]
    left, right = 0, n
    for slot in range(n):
        family = data.family[state.order[slot]]
        scratch.slots[slot] = NONE
        if scratch.chosen[slot] == 0:
            if family == 0:
                scratch.proposal[left] = slot
                left += 1
            else:
                right -= 1
                scratch.proposal[right] = slot
            continue
        if family == 0:
            place = right + int(rng.random() * (n - right))
            mate = scratch.proposal[place]
            scratch.proposal[place] = scratch.proposal[right]
            right += 1
        else:
            place = int(rng.random() * left)
            mate = scratch.proposal[place]
            left -= 1
            scratch.proposal[place] = scratch.proposal[left]
        scratch.slots[slot], scratch.slots[mate] = mate, slot


@lean_kernel
def deal_seats(rng, data, state, scratch):
    """Pairs and those who are alone are dealt out to the seats: a uniform draw of who sits where.

    ``scratch.proposal`` lists for each family who is alone, then who is in a pair, both shuffled.
    """
    for family in range(2):
        low, high = data.family_start[family], data.family_start[family + 1]
        for place in range(low, high):
            other = low + int(rng.random() * (place - low + 1))
            scratch.proposal[place] = scratch.proposal[other]
            scratch.proposal[other] = data.family_member[place]
        place = low
        for at in range(low, high):
            i = scratch.proposal[at]
            if state.size[state.label[i]] == 1:
                scratch.proposal[at], scratch.proposal[place] = scratch.proposal[place], i
                place += 1
        scratch.to_open[family], scratch.to_join[family] = low, place
    n = state.order.shape[0]
    for slot in range(n):
        scratch.chosen[slot] = data.family[state.order[slot]]
    for slot in range(n):
        family, mate = scratch.chosen[slot], scratch.slots[slot]
        if mate == NONE:
            i = scratch.proposal[scratch.to_open[family]]
            scratch.to_open[family] += 1
            seat_at(state, slot, i)
        elif family == 0:
            i = scratch.proposal[scratch.to_join[family]]
            scratch.to_join[family] += 1
            seat_at(state, slot, i)
            k = state.label[i]
            seat_at(state, mate, state.head[k] if state.head[k] != i else state.after[i])


@inline_kernel
def seat_at(state, slot, i):
    """Customer i arrives in this slot."""
    state.order[slot], state.rank[i] = i, slot


@lean_kernel
def draw_order(rng, data, state, scratch, shape, rate, learn):
    """α, σ and the order of arrival given the partition."""
    n = state.order.shape[0]
    first = data.family_start[1]
    alone = min(first, n - first) - (n - count_clusters(state))
    if learn:
        redraw_alpha(rng, data, state, scratch, alone, shape, rate)
    for _ in range(SEQUENCES):
        propose_sequence(rng, data, state, scratch, alone)
    draw_joins(rng, data, state, scratch, alone)
    draw_mates(rng, data, state, scratch)
    deal_seats(rng, data, state, scratch)
