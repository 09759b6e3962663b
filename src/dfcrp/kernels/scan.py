"""One scan of the exact sampler as a list of updates, and blocks of scans with their draws."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from dfcrp.kernels import circle as likelihood
from dfcrp.kernels.assignment import canonical_labels, refresh_spares, sweep_markings
from dfcrp.kernels.concentration import update_alpha
from dfcrp.kernels.exchange import exchange_slots
from dfcrp.kernels.jit import entry_kernel, lean_kernel
from dfcrp.kernels.order import update_order, walk_arrivals
from dfcrp.kernels.pair import sweep_pairs
from dfcrp.kernels.regroup import sweep_contacts
from dfcrp.kernels.state import MEAN_ACCEPTED, MEAN_PROPOSED, NONE, count_clusters
from dfcrp.kernels.tail import draw_auxiliary, rebuild_tail
from dfcrp.kernels.tolerance import SMALL, update_law
from dfcrp.kernels.unsettled import contact_share, settle

#: Every spare is renewed once in so many scans.
SPARE_PERIOD = 32
#: The law of the variances is updated in each of the first scans, then every so often; in every
#: scan if there are few markings.
LAW_EVERY_SCAN, LAW_PERIOD = 40, 8
#: In every such scan a share of the customers is rearranged; the others exchange slots.
ORDER_PERIOD = 4
#: Extra exchanges proposed in every scan for a marking in doubt.
EXCHANGE_VISITS = 3


class Settings(NamedTuple):
    """Switches of a scan."""

    use_order: bool  # the DFCRP's order correction; off for the CRP and the constrained CRP
    update_alpha: bool
    alpha_shape: float
    alpha_rate: float


class Record(NamedTuple):
    """Where a block of draws is written; rows of ``parameters`` are ragged by ``offsets``."""

    labels: np.ndarray  # (draws, n) int32
    alpha: np.ndarray  # (draws,)
    law: np.ndarray  # (draws, 4)
    offsets: np.ndarray  # (draws + 1,) int64
    cluster_labels: np.ndarray  # (draws * n,) int32
    parameters: np.ndarray  # (draws * n, 6) float32


@lean_kernel
def update_arrivals(rng, data, settings, state, scratch):
    """Order, α (u integrated out), then u and its sums.

    Without the order correction every D_i is the number of earlier arrivals, once and for all.
    """
    rearrange = state.scans[0] % ORDER_PERIOD == 0
    if settings.use_order:
        walk_arrivals(data, state, scratch, state.order, state.seated)
        if rearrange:
            update_order(rng, data, state, scratch)
    if settings.update_alpha:
        state.alpha[0] = update_alpha(
            rng,
            state.seated,
            count_clusters(state),
            settings.alpha_shape,
            settings.alpha_rate,
            state.alpha[0],
        )
    if settings.use_order:
        draw_auxiliary(rng, state)
        rebuild_tail(data, state)
        tries = 0 if rearrange else state.rank.shape[0]
        exchange_slots(rng, data, state, scratch, tries, EXCHANGE_VISITS)


@lean_kernel
def update_parameters(rng, data, hyper, state, scratch):
    """Every cluster's parameters given its members, the law they follow, and spares.

    All spares are drawn anew with a new law, else a share of them. That is most of the law's
    cost, and once it has settled it hardly moves: then it is updated less often.
    """
    if not data.weigh_features:
        return
    for k in range(state.size.shape[0]):
        if state.size[k] > 0:
            state.tally[MEAN_PROPOSED] += 1
            state.tally[MEAN_ACCEPTED] += likelihood.update_cluster(
                rng, hyper, state.theta, k, data.features, state, scratch.deal.theta
            )
    age = state.scans[0]
    period = LAW_PERIOD if state.label.shape[0] > SMALL else 1
    if hyper.learned and (age < LAW_EVERY_SCAN or age % period == 0):
        update_law(rng, hyper, data, state)
        refresh_spares(rng, data, hyper, state, 0, 1)
    else:
        refresh_spares(rng, data, hyper, state, age % SPARE_PERIOD, SPARE_PERIOD)


@lean_kernel
def record_draw(data, state, scratch, record, draw):
    """Write the current state as draw number ``draw`` of the block."""
    n = state.label.shape[0]
    canonical_labels(data, state, scratch.candidate2, record.labels[draw])
    record.alpha[draw] = state.alpha[0]
    for column in range(4):
        record.law[draw, column] = state.law[column]
    row = record.offsets[draw]
    for position in range(n):
        if record.labels[draw, position] == position:
            k = state.label[data.internal[position]]
            record.cluster_labels[row] = position
            likelihood.record_row(state.theta, k, record.parameters, row)
            row += 1
    record.offsets[draw + 1] = row


@entry_kernel
def run_exact(rng, data, hyper, settings, state, scratch, thin, record):
    """Run thin scans for each draw of the block; each leaves the joint posterior unchanged.

    A scan is written out here because a function of its own, with everything it calls, would
    be compiled once more.
    """
    n = state.label.shape[0]
    use_order = settings.use_order
    for draw in range(record.alpha.shape[0]):
        for _ in range(thin):
            sweep_markings(rng, data, hyper, state, scratch, use_order, 0, n)
            # Few pairs ever change, and those are visited again below: half of them will do.
            half = state.scans[0] % 2
            sweep_pairs(
                rng, data, hyper, state, scratch, use_order, half * n // 2, (half + 1) * n // 2
            )
            sweep_contacts(rng, data, hyper, state, scratch, use_order, contact_share(state))
            update_parameters(rng, data, hyper, state, scratch)
            if data.weigh_features:
                settle(rng, data, hyper, state, scratch, use_order)
            update_arrivals(rng, data, settings, state, scratch)
            state.scans[0] += 1
        record_draw(data, state, scratch, record, draw)


@entry_kernel
def start_alone(rng, data, hyper, state):
    """Every marking alone, at its own position, as the paper's algorithm starts."""
    n = state.label.shape[0]
    for i in range(n):
        state.label[i] = i
        state.size[i] = 1
        state.head[i] = i
        state.after[i] = NONE
        state.before[i] = NONE
        if data.weigh_features:
            likelihood.open_cluster(rng, hyper, data.features, i, state.theta, i)
    state.size[n] = -1
    state.free_head[:] = NONE
    refresh_spares(rng, data, hyper, state, 0, 1)
    for slot in range(n):
        state.order[slot] = slot
    for slot in range(n - 1, 0, -1):
        other = int(rng.random() * (slot + 1))
        state.order[slot], state.order[other] = state.order[other], state.order[slot]
    for slot in range(n):
        state.rank[state.order[slot]] = slot
        state.seated[slot] = slot
