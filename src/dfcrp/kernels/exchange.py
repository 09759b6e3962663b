"""Exchange of arrival slots within a family, given u: exact, local and cheap.

Let u belong to the slots. Exchanging the slots p and q of two members a, b of one family leaves
every family's set of slots, and so every U_f(r), as it is. Of

    log p(c, order | u) = Σ_k Σ_{i≠j ∈ k} U_{x_i}(max(r_i, r_j)) + const

only the terms of a with its table mates and of b with its own change.
"""

from __future__ import annotations

from dfcrp.kernels.jit import inline_kernel, lean_kernel
from dfcrp.kernels.state import EXCHANGE_ACCEPTED, EXCHANGE_PROPOSED, NONE
from dfcrp.kernels.tail import tail_sum


@inline_kernel
def gain_of_move(data, state, i, old, new):
    """Change of Σ_j U_{x_i}(m) + U_{x_j}(m), m = max(slot, r_j), over i's table mates j.

    Mates who arrive after both slots do not notice.
    """
    total = 0.0
    family = data.family[i]
    later = max(old, new)
    j = state.head[state.label[i]]
    while j != NONE:
        rank = state.rank[j]
        if rank < later and j != i:
            here, there = max(new, rank), max(old, rank)
            total += (
                tail_sum(state.tail, family, here)
                - tail_sum(state.tail, family, there)
                + tail_sum(state.tail, data.family[j], here)
                - tail_sum(state.tail, data.family[j], there)
            )
        j = state.after[j]
    return total


@lean_kernel
def exchange_slots(rng, data, state, tries):
    """Propose exchanges between random members of one family; leaves p(order | c, u) unchanged.

    As u stays with the slots it changes hands between the markings.
    """
    n = state.rank.shape[0]
    for _ in range(tries):
        a = int(rng.random() * n)
        family = data.family[a]
        first = data.family_start[family]
        b = data.family_member[
            first + int(rng.random() * (data.family_start[family + 1] - first))
        ]
        if a == b:
            continue
        p, q = state.rank[a], state.rank[b]
        state.tally[EXCHANGE_PROPOSED] += 1
        gain = gain_of_move(data, state, a, p, q) + gain_of_move(data, state, b, q, p)
        if gain >= 0.0 or -rng.standard_exponential() < gain:
            state.rank[a], state.rank[b] = q, p
            state.order[p], state.order[q] = b, a
            state.u[a], state.u[b] = state.u[b], state.u[a]
            state.tally[EXCHANGE_ACCEPTED] += 1
