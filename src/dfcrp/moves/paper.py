"""The paper's own samplers, compiled: the yardstick the exact sampler is measured against.

Permutation-modified (Algorithm 1): propose to exchange a random arrival with the last, accept by
the ratio of full priors, then give the last arrival a new cluster, for which the plain weights
n_k and α are exact. n such steps are a scan. The last arrival's choice changes no D, so one
prior evaluation per step is enough.

Unmodified: exchange any two arrivals, then update every marking where it is in the order, which
takes one full prior evaluation for each candidate cluster.

Cluster parameters and new clusters are treated as in the exact sampler (the paper's own proposal
hardly ever opens a cluster), so the comparison is of the partition updates alone. α has the
paper's lognormal proposal, with the shift that makes its mean the current value.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import AnyLikelihood, entry_kernel, lean_kernel
from dfcrp.compiled.random import Stream
from dfcrp.compiled.state import (
    ALPHA_ACCEPTED,
    ALPHA_PROPOSED,
    NONE,
    SWAP_ACCEPTED,
    SWAP_PROPOSED,
    Data,
    Scratch,
    State,
    count_clusters,
    link,
    unlink,
)
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves.assignment import (
    attach,
    detach,
    exponentiate,
    find_candidates,
    pick,
    update_marking,
)
from dfcrp.moves.scan import DrawRecord, record_draw, renew_spares, update_clusters, update_shared
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.priors.arrivals.order import log_product, walk_arrivals

#: Precision of the proposal for log α.
ALPHA_PRECISION = 100.0


@lean_kernel
def propose_alpha(rng, prior, state):
    """Metropolis–Hastings step for α with the lognormal proposal of mean α."""
    alpha = state.alpha[0]
    proposed = alpha * math.exp(
        rng.standard_normal() / math.sqrt(ALPHA_PRECISION) - 0.5 / ALPHA_PRECISION
    )
    log_step = math.log(proposed / alpha)
    power = count_clusters(state) + prior.alpha_shape - 1.0
    log_ratio = (
        power * log_step
        - prior.alpha_rate * (proposed - alpha)
        - log_product(state.seated, proposed)
        + log_product(state.seated, alpha)
    )
    # q(α | α*) / q(α* | α): the step's density has mean −1/2τ either way, and 1/α* against 1/α.
    half = 0.5 / ALPHA_PRECISION
    log_ratio += log_step - 0.5 * ALPHA_PRECISION * (
        (-log_step + half) ** 2 - (log_step + half) ** 2
    )
    state.tally[ALPHA_PROPOSED] += 1
    if -rng.standard_exponential() < log_ratio:
        state.alpha[0] = proposed
        state.tally[ALPHA_ACCEPTED] += 1


@lean_kernel
def swap_arrivals(rng, data, state, scratch, p, q, log_current):
    """Metropolis exchange of arrival slots p and q; returns Σ log(D + α) of the order kept."""
    order, rank = state.order, state.rank
    order[p], order[q] = order[q], order[p]
    walk_arrivals(data, state, scratch, order, scratch.proposed)
    log_proposed = log_product(scratch.proposed, state.alpha[0])
    state.tally[SWAP_PROPOSED] += 1
    if -rng.standard_exponential() < log_current - log_proposed:
        rank[order[p]], rank[order[q]] = p, q
        for slot in range(order.shape[0]):
            state.seated[slot] = scratch.proposed[slot]
        state.tally[SWAP_ACCEPTED] += 1
        return log_proposed
    order[p], order[q] = order[q], order[p]
    return log_current


@lean_kernel
def update_parameters(rng, data, hyper, prior, state, scratch):
    """Every cluster's parameters, what they share, and spares."""
    n = state.label.shape[0]
    update_clusters(rng, data, hyper, prior, state, scratch, 0, n)
    update_shared(rng, data, hyper, state)
    renew_spares(rng, data, hyper, state, 0, n)


@lean_kernel
def start_scan(rng, data, prior, state, scratch):
    """Refresh D, update α; returns Σ log(D + α)."""
    if prior.use_order:
        walk_arrivals(data, state, scratch, state.order, state.seated)
    if prior.update_alpha:
        propose_alpha(rng, prior, state)
    return log_product(state.seated, state.alpha[0])


@lean_kernel
def modified_scan(rng, data, hyper, prior, state, scratch):
    """n steps of Algorithm 1, then the parameters."""
    n = state.order.shape[0]
    log_current = start_scan(rng, data, prior, state, scratch)
    # For the last arrival the plain weights are exact.
    plain = Arrivals(False, prior.update_alpha, prior.alpha_shape, prior.alpha_rate, prior.own)
    for _ in range(n):
        if prior.use_order:
            slot = int(rng.random() * n)
            log_current = swap_arrivals(rng, data, state, scratch, slot, n - 1, log_current)
            last = state.order[n - 1]
        else:
            last = int(rng.random() * n)
        update_marking(rng, data, hyper, plain, state, scratch, last, math.log(state.alpha[0]))
    update_parameters(rng, data, hyper, prior, state, scratch)
    state.scans[0] += 1


@lean_kernel
def update_in_place(rng, data, hyper, state, scratch, i):
    """Gibbs update of marking i at its place in the order: a full prior for every candidate."""
    log_opening = detach(data, hyper, state, i)
    old = state.label[i]
    alpha = state.alpha[0]
    count = find_candidates(data, state, scratch, i, scratch.candidate)
    scratch.candidate[count] = NONE
    for position in range(count + 1):
        k = scratch.candidate[position]
        if k == NONE:
            value = log_opening + math.log(alpha)
        else:
            value = scratch.log_size[state.size[k]]
            if data.weigh_features:
                value += likelihood.log_density(hyper, state.theta, k, data.features, i)
        # Seat i for the evaluation; alone it may sit in any empty slot.
        slot = k if k != NONE else _empty_slot(data, state, i, old)
        link(state, i, slot)
        walk_arrivals(data, state, scratch, state.order, scratch.proposed)
        scratch.weight[position] = value - log_product(scratch.proposed, alpha)
        unlink(state, i)
    state.label[i] = old
    total = exponentiate(scratch.weight, count + 1)
    choice = pick(rng.random(), scratch.weight, count + 1, total)
    attach(rng, data, hyper, state, i, scratch.candidate[choice], log_opening)


@lean_kernel
def _empty_slot(data, state, i, old):
    """A slot without members: i's own if it sat alone, else the next free one."""
    if state.size[old] == 0:
        return old
    return state.free_head[data.component[i]]


@lean_kernel
def unmodified_scan(rng, data, hyper, prior, state, scratch):
    """For every marking an exchange of any two arrivals, then its update; then the parameters."""
    n = state.order.shape[0]
    log_current = start_scan(rng, data, prior, state, scratch)
    for i in range(n):
        p, q = int(rng.random() * n), int(rng.random() * n)
        log_current = swap_arrivals(rng, data, state, scratch, p, q, log_current)
        update_in_place(rng, data, hyper, state, scratch, i)
        walk_arrivals(data, state, scratch, state.order, state.seated)
        log_current = log_product(state.seated, state.alpha[0])
    update_parameters(rng, data, hyper, prior, state, scratch)
    state.scans[0] += 1


@entry_kernel
def run_modified(
    rng: Stream,
    data: Data,
    hyper: AnyLikelihood,
    prior: Arrivals,
    state: State,
    scratch: Scratch,
    thin: int,
    record: DrawRecord,
):
    """Run thin scans of the permutation-modified sampler for each draw of the block."""
    for draw in range(record.alpha.shape[0]):
        for _ in range(thin):
            modified_scan(rng, data, hyper, prior, state, scratch)
        record_draw(data, hyper, state, scratch, record, draw)


@entry_kernel
def run_unmodified(
    rng: Stream,
    data: Data,
    hyper: AnyLikelihood,
    prior: Arrivals,
    state: State,
    scratch: Scratch,
    thin: int,
    record: DrawRecord,
):
    """Run thin scans of the unmodified sampler for each draw of the block."""
    for draw in range(record.alpha.shape[0]):
        for _ in range(thin):
            unmodified_scan(rng, data, hyper, prior, state, scratch)
        record_draw(data, hyper, state, scratch, record, draw)
