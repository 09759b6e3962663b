"""Markings one by one with the order of arrival summed out, and then a new order.

Where the prior is about an order, updates of the partition are given one. If few orders are
possible, nothing moves: as two lists agree nearly altogether, α is small, partners arrive next to
each other, whoever is alone arrives last, and to part two or to bring two together would take
another order first. The prior says whether it can do without one for a while
(``priors.arrivals.two_lists``). A marking joins a cluster then with the weight of its features
alone, and opens one with a weight that depends on the number of the others. Afterwards the prior
draws its parameters and an order given the partition, so that all of it is one update of their
joint distribution, with the auxiliary variables, which come next, integrated out.
"""

from __future__ import annotations

from dfcrp.compiled.jit import lean_kernel
from dfcrp.compiled.state import NONE, count_clusters, is_grouped
from dfcrp.moves.assignment import attach, detach, exponentiate, pick, weigh_features
from dfcrp.priors.contract import drop_order, take_order

#: Times that every marking is updated in one scan, each followed by a new order.
ROUNDS = 2


@lean_kernel
def update_unordered(rng, data, hyper, prior, state, scratch, i, clusters):
    """Gibbs update of marking i's cluster; returns how many clusters there are then."""
    others = clusters - 1 if state.size[state.label[i]] == 1 else clusters
    opening = detach(data, hyper, state, i)
    log_new = opening + scratch.value[others]
    candidate, weight = scratch.candidate, scratch.weight
    count = weigh_features(data, hyper, prior, state, scratch, i, log_new, candidate, weight)
    total = exponentiate(weight, count)
    k = candidate[pick(rng.random(), weight, count, total)]
    attach(rng, data, hyper, state, i, k, opening)
    return others + 1 if k == NONE else others


@lean_kernel
def sweep_unordered(rng, data, hyper, prior, state, scratch):
    """Update every marking's cluster, as long as the prior can do without an order."""
    for _ in range(ROUNDS):
        if not drop_order(prior, data, state, scratch):
            return
        clusters = count_clusters(state)
        for i in range(state.label.shape[0]):
            if not is_grouped(data, i):
                clusters = update_unordered(rng, data, hyper, prior, state, scratch, i, clusters)
        take_order(prior, rng, data, state, scratch)
