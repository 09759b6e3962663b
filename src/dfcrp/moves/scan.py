"""One scan of the exact sampler as a list of updates, and blocks of scans with their draws."""

from __future__ import annotations

from typing import NamedTuple

from dfcrp.compiled.abi import F8, I4, I8, F4x2, F8x2, I4x2, frame
from dfcrp.compiled.jit import AnyLikelihood, AnyPrior, entry_kernel, lean_kernel
from dfcrp.compiled.random import Stream
from dfcrp.compiled.state import MEAN_ACCEPTED, MEAN_PROPOSED, NONE, Block, Data, Scratch, State
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves.assignment import canonical_labels, refresh_spares, sweep_markings
from dfcrp.moves.group import seat_beside, seat_groups, sweep_groups
from dfcrp.moves.pair import sweep_pairs
from dfcrp.moves.regroup import sweep_contacts
from dfcrp.moves.revisit import contact_share, revisit
from dfcrp.moves.unordered import sweep_unordered
from dfcrp.priors.contract import update_block, update_prior

#: Every spare is renewed once in so many scans.
SPARE_PERIOD = 32


@frame
class DrawRecord(NamedTuple):
    """Where a block of draws is written; rows of ``parameters`` are ragged by ``offsets``."""

    labels: I4x2  # (draws, n) int32
    alpha: F8  # (draws,)
    shared: F8x2  # (draws, s): the likelihood's law, then the prior's own parameters
    offsets: I8  # (draws + 1,) int64
    cluster_labels: I4  # (draws * n,) int32
    parameters: F4x2  # (draws * n, q) float32


@frame
class Task(NamedTuple):
    """What a call of ``run_exact`` is to do: whole scans, or one half of one."""

    sweep: bool  # update the markings of the block and clusters
    finish: bool  # then what all blocks share
    keep: bool  # record a draw after every thin-th scan
    first_draw: int
    last_draw: int
    thin: int


@lean_kernel
def update_clusters(rng, data, hyper, prior, state, scratch, first, last):
    """The parameters of the clusters in slots first..last-1, given their members."""
    if not data.weigh_features:
        return
    for k in range(first, last):
        if state.size[k] > 0:
            state.tally[MEAN_PROPOSED] += 1
            state.tally[MEAN_ACCEPTED] += likelihood.update_cluster(
                hyper, rng, prior, data, state, k, scratch.deal.theta
            )


@lean_kernel
def update_shared(rng, data, hyper, state):
    """What the clusters share; notes whether the spares, drawn from it, are out of date."""
    if data.weigh_features:
        state.stale[0] = likelihood.update_shared(hyper, rng, data, state)


@lean_kernel
def renew_spares(rng, data, hyper, state, first, last):
    """All spares of first..last-1 when they are out of date, else a share of them."""
    if state.stale[0]:
        refresh_spares(rng, data, hyper, state, first, last, 1)
    else:
        phase = state.scans[0] % SPARE_PERIOD
        refresh_spares(rng, data, hyper, state, first + phase, last, SPARE_PERIOD)


@lean_kernel
def record_draw(data, hyper, state, scratch, record, draw):
    """Write the current state as draw number ``draw`` of the block."""
    n = state.label.shape[0]
    canonical_labels(data, state, scratch.candidate2, record.labels[draw])
    record.alpha[draw] = state.alpha[0]
    laws = state.law.shape[0]
    for column in range(laws):
        record.shared[draw, column] = state.law[column]
    for column in range(state.own.shape[0]):
        record.shared[draw, laws + column] = state.own[column]
    row = record.offsets[draw]
    for position in range(n):
        if record.labels[draw, position] == position:
            k = state.label[data.internal[position]]
            record.cluster_labels[row] = position
            likelihood.record_row(hyper, state.theta, k, record.parameters, row)
            row += 1
    record.offsets[draw + 1] = row


@entry_kernel
def run_exact(
    rng: Stream,
    data: Data,
    hyper: AnyLikelihood,
    prior: AnyPrior,
    state: State,
    scratch: Scratch,
    block: Block,
    task: Task,
    record: DrawRecord,
):
    """Scans as the task says, each of which leaves the joint posterior unchanged.

    A scan is written out here because a function of its own, with everything it calls, would
    be compiled once more. It sweeps every block of the data, at the same time if need be, and then
    finishes with what all blocks share.
    """
    first, last = block.first, block.last
    middle = (first + last) // 2
    for draw in range(task.first_draw, task.last_draw):
        for _ in range(task.thin):
            if task.sweep:
                renew_spares(rng, data, hyper, state, first, last)
                update_block(prior, rng, data, state, scratch, block)
                sweep_markings(rng, data, hyper, prior, state, scratch, first, last)
                sweep_groups(rng, data, hyper, prior, state, scratch, first, last)
                # Few pairs ever change, and those are visited again below: half of them will do.
                even = state.scans[0] % 2 == 0
                low, high = (first, middle) if even else (middle, last)
                sweep_pairs(rng, data, hyper, prior, state, scratch, low, high)
                share = contact_share(state.scans[0], block)
                sweep_contacts(rng, data, hyper, prior, state, scratch, block, share)
                update_clusters(rng, data, hyper, prior, state, scratch, first, last)
                # Last, so that what changes here meets a new u before it could be undone.
                if data.weigh_features:
                    revisit(rng, data, hyper, prior, state, scratch, block)
            if task.finish:
                sweep_unordered(rng, data, hyper, prior, state, scratch)
                update_shared(rng, data, hyper, state)
                update_prior(prior, rng, data, hyper, state, scratch)
                state.scans[0] += 1
        if task.keep:
            record_draw(data, hyper, state, scratch, record, draw)


@entry_kernel
def start_alone(rng: Stream, data: Data, hyper: AnyLikelihood, state: State):
    """Every marking alone, at its own position, as the paper's algorithm starts.

    Groups of markings that were decided to be one object are together.
    """
    n = state.label.shape[0]
    for i in range(n):
        state.label[i] = i
        state.size[i] = 1
        state.head[i] = i
        state.after[i] = NONE
        state.before[i] = NONE
        if data.weigh_features:
            likelihood.open_cluster(hyper, rng, data.features, i, state.theta, i)
    state.size[n] = -1
    state.free_head[:] = NONE
    seat_groups(data, hyper, state)
    refresh_spares(rng, data, hyper, state, 0, n, 1)
    for slot in range(n):
        state.order[slot] = slot
    for slot in range(n - 1, 0, -1):
        other = int(rng.random() * (slot + 1))
        state.order[slot], state.order[other] = state.order[other], state.order[slot]
    for slot in range(n):
        state.rank[state.order[slot]] = slot
        state.seated[slot] = slot


@entry_kernel
def start_together(data: Data, hyper: AnyLikelihood, state: State, lead: I4):
    """From where everybody is alone, bring each marking into the cluster of its ``lead``."""
    for i in range(state.label.shape[0]):
        seat_beside(data, hyper, state, i, lead[i])
