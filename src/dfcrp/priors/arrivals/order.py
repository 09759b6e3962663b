"""The arrival order: how many customers each arrival could have joined, its moves, and α given it.

D_i = (customers seated before i) − E, where E counts those at tables that already hold i's
family. Walking the arrivals, E_f is kept for every family: a newcomer of family f to a table
with s seated members adds one to E of each family there and s + 1 to E_f. One walk costs
O(Σ n_k²), not O(n F).

One move rearranges a random tenth (or less, or more) of the customers among their own slots.
With the others fixed, the effect of one customer i at slot s on log Π 1/(D_t + α) is, to first
order in the change of D,

    g_i(s) = − log(D_i(s) + α) − W(s) + W_f(s) + Σ_{j ∈ table of i} [W_{x_j}(m) + W_f(m)],

with f = x_i, m = max(s, rank of j), and W_f(s), W(s) the sums of 1/(D_t + α) over customers of
family f, or all, that arrive after s: all of it computed from the fixed customers alone. Swaps
among the chosen that leave Π exp g_i(s_i) invariant make the proposal; the true ratio over the
surrogate's ratio decides whether all of it is accepted. Only the interaction among the chosen
is left to that decision, and it is weak, so thousands of customers change places at the price
of three walks. Everything is linear in n.

Another moves whole lists, which arrive sooner or later. Exchanges of slots happen within a list,
and a rearrangement moves a few customers at a time. So how early the customers of one list come,
taken together, hardly ever changes by them; α and the number of free seats hang on it.

An order is that of times t_i, independent and uniform on (0, 1). Given the order they are uniform
order statistics, so they can be drawn whenever they are needed. The customers of one list, or of
a few neighbouring ones where there are many, then move to t^g or to 1 − (1 − t)^g with log g
normal. That is one number for the whole list, and its inverse is as likely; with the Jacobian, the
proposal is accepted with probability

    min(1, Π_i (D_i + α) / (D'_i + α) · Π_{moved} g t^(g − 1))

(1 − t in place of t for the second kind). Both those who move and those who stay keep their
sequence, so that the new order is a merge of the two, and a proposal costs about two walks over
the arrivals.

The concentration α is drawn given the number of clusters and every D_i, with u integrated out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import I8
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE, ORDER_ACCEPTED, ORDER_PROPOSED
from dfcrp.priors.tail import rebuild_tail, tail_sum

#: Share of tables of which a customer is chosen: drawn again each time, so that some share suits.
SHARES = (0.1, 0.3, 0.9)
#: Swaps tried per chosen customer.
SWAPS = 2
#: Factors multiplied before a logarithm is taken; (1e9 + 1e9)^16 is far from overflow.
PRODUCT = 16
#: At most so many groups of lists move one by one; with more lists, neighbours move together.
GROUPS = 16
#: Standard deviation of log g, times the root of the number of customers who move or stay.
STEP = 2.0


@lean_kernel
def clear_tables(state, scratch):
    """Empty the restaurant; lay the tables' seats out one after the other."""
    scratch.excluded[:] = 0
    place = 0
    for k in range(state.size.shape[0]):
        scratch.table_start[k] = place
        scratch.at_table[k] = 0
        place += state.size[k]


@inline_kernel
def seat(data, state, scratch, t):
    """Seat arrival t and keep the excluded counts."""
    k, family = state.label[t], data.family[t]
    start, seated = scratch.table_start[k], scratch.at_table[k]
    for place in range(start, start + seated):
        scratch.excluded[scratch.seat_family[place]] += 1
    scratch.seat_family[start + seated] = family
    scratch.at_table[k] = seated + 1
    scratch.excluded[family] += seated + 1


@lean_kernel
def walk_arrivals(data, state, scratch, order, seated):
    """D by arrival slot under ``order``, into ``seated``."""
    clear_tables(state, scratch)
    for slot in range(order.shape[0]):
        t = order[slot]
        seated[slot] = slot - scratch.excluded[data.family[t]]
        seat(data, state, scratch, t)


@lean_kernel
def log_product(seated, alpha):
    """Σ log(D + α), for an α of any size.

    Those with D = 0 are counted: where lists agree altogether they are nearly all who open a table,
    and a product of a few tiny α would be zero.
    """
    total, product, factors, zeros = 0.0, 1.0, 0, 0
    for position in range(seated.shape[0]):
        if seated[position] == 0:
            zeros += 1
            continue
        product *= seated[position] + alpha
        factors += 1
        if factors == PRODUCT:
            total += math.log(product)
            product, factors = 1.0, 0
    if zeros > 0:
        total += zeros * math.log(alpha)
    return total + math.log(product)


@lean_kernel
def choose_customers(rng, state, scratch, share):
    """Choose one random customer from each of a random share of the tables; returns how many.

    ``scratch.chosen[slot]`` is the slot's position in the list ``scratch.slots``, or NONE.
    """
    scratch.chosen[:] = NONE
    count = 0
    for k in range(state.size.shape[0]):
        if state.size[k] <= 0 or rng.random() >= share:
            continue
        i = state.head[k]
        for _ in range(int(rng.random() * state.size[k])):
            i = state.after[i]
        slot = state.rank[i]
        scratch.chosen[slot] = count
        scratch.slots[count] = slot
        count += 1
    return count


@lean_kernel
def tabulate_surrogate(data, state, scratch, count):
    """From the customers not chosen: W into the tail, E_f at each chosen slot.

    With very many families E_f is small beside the customers seated, and left out. Counts are
    scaled up to all customers, as if the chosen were spread like the others.
    """
    n = state.order.shape[0]
    scale = n / max(n - count, 1.0)
    alpha = state.alpha[0]
    clear_tables(state, scratch)
    seated = 0
    for slot in range(n):
        t = state.order[slot]
        position = scratch.chosen[slot]
        if position == NONE:
            seats = seated - scratch.excluded[data.family[t]]
            state.u[t] = scale / (scale * seats + alpha)
            seat(data, state, scratch, t)
            seated += 1
        else:
            state.u[t] = 0.0
            scratch.free_seats[position] = scale * seated
            for f in range(scratch.barred.shape[1]):
                scratch.barred[position, f] = scale * scratch.excluded[f]
    rebuild_tail(data, state)


@inline_kernel
def surrogate(data, state, scratch, i, position):
    """g_i at the chosen slot with this position."""
    slot = scratch.slots[position]
    family = data.family[i]
    seats = scratch.free_seats[position]
    if scratch.barred.shape[0] > 0:
        seats -= scratch.barred[position, family]
    value = (
        -math.log(max(seats, 0.0) + state.alpha[0])
        - state.tail.total[slot]
        + tail_sum(state.tail, family, slot)
    )
    j = state.head[state.label[i]]
    while j != NONE:
        if j != i:
            late = max(slot, state.rank[j])
            value += tail_sum(state.tail, data.family[j], late) + tail_sum(state.tail, family, late)
        j = state.after[j]
    return value


@lean_kernel
def swap_chosen(rng, data, state, scratch, count):
    """Swaps among the chosen that leave the surrogate invariant; returns its log change.

    ``scratch.proposal[slot]`` starts as the current order and ends as the proposed one.
    ``state.rank`` stays that of the current order throughout, which the surrogate needs only for
    customers that are not chosen.
    """
    change = 0.0
    for position in range(count):
        scratch.value[position] = surrogate(
            data, state, scratch, scratch.proposal[scratch.slots[position]], position
        )
    for _ in range(SWAPS * count):
        p, q = int(rng.random() * count), int(rng.random() * count)
        if p == q:
            continue
        slot_p, slot_q = scratch.slots[p], scratch.slots[q]
        i, j = scratch.proposal[slot_p], scratch.proposal[slot_q]
        i_at_q = surrogate(data, state, scratch, i, q)
        j_at_p = surrogate(data, state, scratch, j, p)
        gain = i_at_q + j_at_p - scratch.value[p] - scratch.value[q]
        if -rng.standard_exponential() < gain:
            change += gain
            scratch.proposal[slot_p], scratch.proposal[slot_q] = j, i
            scratch.value[p], scratch.value[q] = j_at_p, i_at_q
    return change


@lean_kernel
def update_order(rng, data, state, scratch):
    """Rearrange a random share of the customers; leaves p(order | c, α) unchanged.

    ``state.seated`` must hold D by slot for the current order on entry, and does on return.
    The auxiliary u and its tail serve as workspace.
    """
    n = state.order.shape[0]
    share = SHARES[int(rng.random() * len(SHARES))]
    count = choose_customers(rng, state, scratch, share)
    if count < 2:
        return
    for slot in range(n):
        scratch.proposal[slot] = state.order[slot]
    tabulate_surrogate(data, state, scratch, count)
    change = swap_chosen(rng, data, state, scratch, count)
    walk_arrivals(data, state, scratch, scratch.proposal, scratch.proposed)
    alpha = state.alpha[0]
    log_ratio = log_product(state.seated, alpha) - log_product(scratch.proposed, alpha) - change
    state.tally[ORDER_PROPOSED] += 1
    if -rng.standard_exponential() < log_ratio:
        state.tally[ORDER_ACCEPTED] += 1
        for slot in range(n):
            state.seated[slot] = scratch.proposed[slot]
            state.order[slot] = scratch.proposal[slot]
            state.rank[state.order[slot]] = slot


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


#: Scans of a chain that may still be far from where it is going.
YOUNG = 40
#: With so few families, or fewer, α and the order of arrival hang together.
FEW = 3
#: Beyond e to this power, or below its inverse, no α is held by a double.
FARTHEST = 700.0


@lean_kernel
def log_alpha_target(seated, n_clusters, shape, rate, log_alpha):
    """log of α^K Π 1/(D_i + α) · Gamma(α; shape, rate) · α (the last for the log scale)."""
    if abs(log_alpha) > FARTHEST:
        return -math.inf
    alpha = math.exp(log_alpha)
    return (n_clusters + shape) * log_alpha - rate * alpha - log_product(seated, alpha)


class LogAlpha(NamedTuple):
    """log α given D by arrival, the number of clusters, and the prior of α."""

    seated: I8
    n_clusters: int
    shape: float
    rate: float


@implements(log_target, LogAlpha)
@inline_kernel
def log_of_alpha(target, value):
    """Its conditional."""
    return log_alpha_target(target.seated, target.n_clusters, target.shape, target.rate, value)


@inline_kernel
def step_width(scans, n_families, n_clusters, shape):
    """About one posterior standard deviation of log α; far more while it may have far to go.

    So it has in a young chain, and where there are few lists: if these agree, one cluster more or
    less changes how many seats are free by hundreds. Every step is a walk over all markings.
    """
    if scans < YOUNG or n_families <= FEW:
        return 1.0
    return 2.0 / math.sqrt(n_clusters + shape)


@lean_kernel
def update_alpha(rng, seated, n_clusters, shape, rate, alpha, width):
    """One slice update of log α; leaves p(α | c, order) unchanged. Returns the new α."""
    start = math.log(alpha)
    target = LogAlpha(seated, n_clusters, shape, rate)
    value = slice_update(rng, target, start, width, 1e-14 * (1.0 + abs(start)))
    return alpha if value == start else math.exp(value)
