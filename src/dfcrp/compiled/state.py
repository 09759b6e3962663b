"""What the compiled updates read and write: fixed data, the chain's state, scratch buffers.

Clusters live in slots. A spatial component with m markings owns the m slots whose numbers are
its markings' own, so components never compete for a slot and may be swept independently.
Members of a cluster form a doubly linked list: memory stays O(n) however large a cluster grows.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dfcrp.compiled.jit import inline_kernel, lean_kernel

NONE = -1


class Data(NamedTuple):
    """What does not change during a run. Items are renumbered so that neighbours are close."""

    features: np.ndarray  # (n, p) float64
    weigh_features: bool  # False: sample from the partition prior alone
    family: np.ndarray  # (n,) int32
    n_families: int
    family_start: np.ndarray  # (F + 1,) int64 into family_member
    family_member: np.ndarray  # (n,) int32: markings by family
    component: np.ndarray  # (n,) int32: markings of a component are contiguous
    has_radius: bool
    neighbour_start: np.ndarray  # (n + 1,) int64
    neighbours: np.ndarray  # int32: neighbour j, or ~j (negative) if of the same family
    pair_start: np.ndarray  # (n + 1,) int64: close markings of the same family, listed once
    pair_other: np.ndarray  # int32
    contact: np.ndarray  # (contacts, 2) int32: markings of two families at middling distance
    block_start: np.ndarray  # (blocks + 1,) int64: markings of whole components, and their slots
    block_contact: np.ndarray  # (blocks + 1,) int64: their contacts
    original: np.ndarray  # (n,) int32: internal index -> input index
    internal: np.ndarray  # (n,) int32: input index -> internal index


class Tail(NamedTuple):
    """U_f(r) = sum of u over members of family f that arrive after slot r.

    ``dense[r, f]`` when families are few, else per family its ranks in increasing order with
    the sums from there on: memory O(n).
    """

    dense: np.ndarray  # (n, F) or (0, 0)
    start: np.ndarray  # (F + 1,) int64 into rank and suffix
    rank: np.ndarray  # (n,) int32 or (0,)
    suffix: np.ndarray  # (n,) or (0,)
    total: np.ndarray  # (n,): over all families; bounds the prior's share of a weight


class State(NamedTuple):
    """Everything the next scan needs besides the random generator."""

    label: np.ndarray  # (n,) int32: slot of the marking's cluster
    size: np.ndarray  # (n + 1,) int32 by slot; the last slot is nowhere and has size -1
    head: np.ndarray  # (n,) int32 by slot: first member
    after: np.ndarray  # (n,) int32: next member of the same cluster
    before: np.ndarray  # (n,) int32
    free_head: np.ndarray  # (components,) int32: first unused slot
    free_after: np.ndarray  # (n,) int32
    theta: np.ndarray  # (n, q) by slot: cluster parameters
    spare: np.ndarray  # (n, q): each marking's parameters for a cluster it might open
    spare_weight: np.ndarray  # (n,): log p(y|spare) p(spare) / q(spare|y)
    order: np.ndarray  # (n,) int32: marking in each arrival slot
    rank: np.ndarray  # (n,) int32: arrival slot of each marking
    seated: np.ndarray  # (n,) int64 by arrival slot: D, as of the last update of the order
    u: np.ndarray  # (n,)
    tail: Tail
    alpha: np.ndarray  # (1,)
    law: np.ndarray  # what the likelihood's clusters share; the chain's hyper.law is this array
    own: np.ndarray  # the prior's own parameters; the chain's prior.own is this array
    doubt: np.ndarray  # (n,): summed probability of other places, while it is noted
    visit: np.ndarray  # (n,) int8: 2 in doubt, 1 companion of one, 0 neither
    contact_doubt: np.ndarray  # (contacts,): summed acceptance probability, while it is noted
    contact_visit: np.ndarray  # (contacts,) int8: 1 visited in every scan
    stale: np.ndarray  # (1,) int8: whether every spare has to be drawn again
    scans: np.ndarray  # (1,) int64
    tally: np.ndarray  # (len(TALLY),) int64: proposals and acceptances since the start


#: Entries of ``State.tally``.
TALLY = (
    "order_proposed",
    "order_accepted",
    "exchange_proposed",
    "exchange_accepted",
    "mean_proposed",
    "mean_accepted",
    "pair_proposed",
    "pair_moved",
    "split_proposed",
    "split_accepted",
    "merge_proposed",
    "merge_accepted",
    "divide_proposed",
    "divide_accepted",
    "swap_proposed",
    "swap_accepted",
    "alpha_proposed",
    "alpha_accepted",
)
(
    ORDER_PROPOSED,
    ORDER_ACCEPTED,
    EXCHANGE_PROPOSED,
    EXCHANGE_ACCEPTED,
    MEAN_PROPOSED,
    MEAN_ACCEPTED,
    PAIR_PROPOSED,
    PAIR_MOVED,
    SPLIT_PROPOSED,
    SPLIT_ACCEPTED,
    MERGE_PROPOSED,
    MERGE_ACCEPTED,
    DIVIDE_PROPOSED,
    DIVIDE_ACCEPTED,
    SWAP_PROPOSED,
    SWAP_ACCEPTED,
    ALPHA_PROPOSED,
    ALPHA_ACCEPTED,
) = range(len(TALLY))


class Block(NamedTuple):
    """A block of the data: all that its updates touch is its own.

    Its clusters live in the slots first..last-1, and exchanges of arrival slots stay inside, so
    that blocks may be updated at the same time.
    """

    first: int
    last: int
    first_contact: int
    last_contact: int


class Deal(NamedTuple):
    """Buffers for dealing the members of two clusters out again."""

    member: np.ndarray  # (n,) int32
    side: np.ndarray  # (n,) int32: 0 or 1
    old_side: np.ndarray  # (n,) int32
    partner: np.ndarray  # (n,) int32: position of the relative on the other side, or NONE
    dealt: np.ndarray  # (2,): members dealt to each side
    sums: np.ndarray  # (2, width of a row): sums over them
    variance: np.ndarray  # (width of a row,)
    theta: np.ndarray  # (2, q): proposed parameters


class Scratch(NamedTuple):
    """Buffers whose content means nothing between calls."""

    seen: np.ndarray  # (n + 1,) int64 by slot: neighbours found, above the clock's reading
    clock: np.ndarray  # (1,) int64
    log_size: np.ndarray  # (F + 2,): logarithms of cluster sizes
    candidate: np.ndarray  # (n + 1,) int32
    weight: np.ndarray  # (n + 1,)
    candidate2: np.ndarray  # (n + 1,) int32
    weight2: np.ndarray  # (n + 1,)
    excluded: np.ndarray  # (F,) int64: seated customers at tables that hold the family
    table_start: np.ndarray  # (n + 1,) int64 by slot: where the table's seats begin
    at_table: np.ndarray  # (n + 1,) int32 by slot: seated members
    to_open: np.ndarray  # (F,) int64: customers to come whose table is not open yet
    to_join: np.ndarray  # (F,) int64: customers to come whose table is open
    seat_family: np.ndarray  # (n,) int32: families at the tables, in order of arrival
    seat_rank: np.ndarray  # (n,) int32: ranks at the tables, in order of arrival
    proposal: np.ndarray  # (n,) int32: a proposed order
    proposed: np.ndarray  # (n,) int64 by arrival slot: D under the proposed order
    chosen: np.ndarray  # (n,) int32 by arrival slot: position among the chosen, or NONE
    slots: np.ndarray  # (n,) int32: the chosen arrival slots
    value: np.ndarray  # (n,): surrogate of the chosen
    free_seats: np.ndarray  # (n,): customers before a chosen slot
    barred: np.ndarray  # (n, F) or (0, 0): of those, at tables that hold the family
    deal: Deal


@inline_kernel
def unlink(state, i):
    """Take marking i out of its cluster's list; the slot is kept even when it becomes empty."""
    k = state.label[i]
    previous, following = state.before[i], state.after[i]
    if previous == NONE:
        state.head[k] = following
    else:
        state.after[previous] = following
    if following != NONE:
        state.before[following] = previous
    state.size[k] -= 1


@inline_kernel
def link(state, i, k):
    """Put marking i at the front of cluster k's list."""
    first = state.head[k]
    state.before[i] = NONE
    state.after[i] = first
    if first != NONE:
        state.before[first] = i
    state.head[k] = i
    state.label[i] = k
    state.size[k] += 1


@inline_kernel
def release_slot(data, state, k):
    """Give an empty slot back to its component."""
    component = data.component[k]
    state.free_after[k] = state.free_head[component]
    state.free_head[component] = k


@inline_kernel
def take_slot(data, state, i):
    """An unused slot of marking i's component; there is one, as i itself is in no cluster."""
    component = data.component[i]
    k = state.free_head[component]
    state.free_head[component] = state.free_after[k]
    return k


@lean_kernel
def count_clusters(state):
    """Number of clusters in use."""
    count = 0
    for k in range(state.size.shape[0]):
        if state.size[k] > 0:
            count += 1
    return count
