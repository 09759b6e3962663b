"""What the compiled updates read and write: fixed data, the chain's state, scratch buffers.

Clusters live in slots. A spatial component with m markings owns the m slots whose numbers are
its markings' own, so components never compete for a slot and may be swept independently.
Members of a cluster form a doubly linked list: memory stays O(n) however large a cluster grows.
"""

from __future__ import annotations

from typing import NamedTuple

from dfcrp.compiled.abi import F8, I1, I4, I8, F8x2, I4x2, frame
from dfcrp.compiled.jit import inline_kernel, lean_kernel

NONE = -1


@frame
class Data(NamedTuple):
    """What does not change during a run. Items are renumbered so that neighbours are close."""

    features: F8x2  # (n, p) float64
    weigh_features: bool  # False: sample from the partition prior alone
    family: I4  # (n,) int32
    n_families: int
    family_start: I8  # (F + 1,) int64 into family_member
    family_member: I4  # (n,) int32: markings by family
    component: I4  # (n,) int32: markings of a component are contiguous
    has_radius: bool
    neighbour_start: I8  # (n + 1,) int64
    neighbours: I4  # int32: neighbour j, or ~j (negative) if of the same family
    pair_start: I8  # (n + 1,) int64: close markings of the same family, listed once
    pair_other: I4  # int32
    contact: I4x2  # (contacts, 2) int32: markings of two families at middling distance
    block_start: I8  # (blocks + 1,) int64: markings of whole components, and their slots
    block_contact: I8  # (blocks + 1,) int64: their contacts
    has_groups: bool  # whether some items were decided to be one object
    mate: I4  # (n,) int32, or (0,) without groups: the next of the item's group, in a circle
    lead: I4  # (n,) int32, or (0,): the first of the item's group; both are itself if it has none
    original: I4  # (n,) int32: internal index -> input index
    internal: I4  # (n,) int32: input index -> internal index


@frame
class Tail(NamedTuple):
    """U_f(r) = sum of u over members of family f that arrive after slot r.

    ``dense[r, f]`` when families are few, else per family its ranks in increasing order with
    the sums from there on: memory O(n).
    """

    dense: F8x2  # (n, F) or (0, 0)
    start: I8  # (F + 1,) int64 into rank and suffix
    rank: I4  # (n,) int32 or (0,)
    suffix: F8  # (n,) or (0,)
    total: F8  # (n,): over all families; bounds the prior's share of a weight


@frame
class State(NamedTuple):
    """Everything the next scan needs besides the random generator."""

    label: I4  # (n,) int32: slot of the marking's cluster
    size: I4  # (n + 1,) int32 by slot; the last slot is nowhere and has size -1
    head: I4  # (n,) int32 by slot: first member
    after: I4  # (n,) int32: next member of the same cluster
    before: I4  # (n,) int32
    free_head: I4  # (components,) int32: first unused slot
    free_after: I4  # (n,) int32
    theta: F8x2  # (n, q) by slot: cluster parameters
    spare: F8x2  # (n, q): each marking's parameters for a cluster it might open
    spare_weight: F8  # (n,): log p(y|spare) p(spare) / q(spare|y)
    order: I4  # (n,) int32: marking in each arrival slot
    rank: I4  # (n,) int32: arrival slot of each marking
    seated: I8  # (n,) int64 by arrival slot: D, as of the last update of the order
    u: F8  # (n,)
    tail: Tail
    alpha: F8  # (1,)
    law: F8  # what the likelihood's clusters share; the chain's hyper.law is this array
    own: F8  # the prior's own parameters; the chain's prior.own is this array
    doubt: F8  # (n,): summed probability of other places, while it is noted
    visit: I1  # (n,) int8: 2 in doubt, 1 companion of one, 0 neither
    contact_doubt: F8  # (contacts,): summed acceptance probability, while it is noted
    contact_visit: I1  # (contacts,) int8: 1 visited in every scan
    stale: I1  # (1,) int8: whether every spare has to be drawn again
    scans: I8  # (1,) int64
    tally: I8  # (len(TALLY),) int64: proposals and acceptances since the start


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


@frame
class Block(NamedTuple):
    """A block of the data: all that its updates touch is its own.

    Its clusters live in the slots first..last-1, and exchanges of arrival slots stay inside, so
    that blocks may be updated at the same time.
    """

    first: int
    last: int
    first_contact: int
    last_contact: int


@frame
class Deal(NamedTuple):
    """Buffers for dealing the members of two clusters out again."""

    member: I4  # (n,) int32
    side: I4  # (n,) int32: 0 or 1
    old_side: I4  # (n,) int32
    partner: I4  # (n,) int32: position of the relative on the other side, or NONE
    dealt: F8  # (2,): members dealt to each side
    sums: F8x2  # (2, width of a row): sums over them
    variance: F8  # (width of a row,)
    theta: F8x2  # (2, q): proposed parameters


@frame
class Scratch(NamedTuple):
    """Buffers whose content means nothing between calls."""

    seen: I8  # (n + 1,) int64 by slot: neighbours found, above the clock's reading
    clock: I8  # (1,) int64
    log_size: F8  # (F + 2,): logarithms of cluster sizes
    candidate: I4  # (n + 1,) int32
    weight: F8  # (n + 1,)
    candidate2: I4  # (n + 1,) int32
    weight2: F8  # (n + 1,)
    log_object: F8  # (n + 1,): log sizes of the candidates' objects
    excluded: I8  # (F,) int64: seated customers at tables that hold the family
    table_start: I8  # (n + 1,) int64 by slot: where the table's seats begin
    at_table: I4  # (n + 1,) int32 by slot: seated members
    to_open: I8  # (F,) int64: customers to come whose table is not open yet
    to_join: I8  # (F,) int64: customers to come whose table is open
    seat_family: I4  # (n,) int32: families at the tables, in order of arrival
    seat_rank: I4  # (n,) int32: ranks at the tables, in order of arrival
    proposal: I4  # (n,) int32: a proposed order
    proposed: I8  # (n,) int64 by arrival slot: D under the proposed order
    chosen: I4  # (n,) int32 by arrival slot: position among the chosen, or NONE
    slots: I4  # (n,) int32: the chosen arrival slots
    value: F8  # (n,): surrogate of the chosen
    free_seats: F8  # (n,): customers before a chosen slot
    barred: F8x2  # (n, F) or (0, 0): of those, at tables that hold the family
    waiting: F8x2  # (n + 1, most) or (0, 0): of two families, P(tables that wait) by arrival
    deal: Deal


@inline_kernel
def is_grouped(data, i):
    """Whether item i moves with others, with which it was decided to be one object."""
    return data.has_groups and data.mate[i] != i


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
