"""Compiled Gibbs samplers with the cluster means integrated out: over links, and over blocks.

Marking i is taken to have a known covariance diag(a_i, a_i, d_i). With y measured from the prior
mean, w = 1 / variance, p = 1 / prior variance of the mean, and W = Σ w_i, M = Σ w_i y_i over a
set S of markings, the mean integrates out feature by feature:

    p(y_S) = Π_i N(y_i; 0, 1 / w_i) · exp g(S),    g(S) = Σ ½ [ log p / (p + W) + M² / (p + W) ]

The product does not depend on the partition, so a sampler needs g alone, and W and M add up.
Rows of ``sums`` hold the three W and then the three M. All zero, they leave the prior alone.
"""

# ruff: noqa: PLR0917 - compiled functions take what they work on as arguments
from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, I8, F8x2, I8x2, frame
from dfcrp.compiled.jit import entry_kernel, lean_kernel
from dfcrp.compiled.random import Stream

WIDTH = 6


@frame
class CollapsedProblem(NamedTuple):
    """What does not change: whom each item may be with, and what its features say."""

    start: I8  # (n + 1,) into other and log_weight
    other: I8
    log_weight: F8  # of following the other; unused by blocks
    own: F8x2  # (n, WIDTH): each item's sums
    prior: F8  # (3,): precision of the prior mean
    weight: I8  # (n,): markings in each item, more than one in a block


@frame
class CollapsedGroups(NamedTuple):
    """The partition: slots with their sums, and a stack of unused slots."""

    label: I8  # (n,): slot of each item
    sums: F8x2  # (n, WIDTH) by slot
    items: I8  # (n,) by slot
    weight: I8  # (n,) by slot: markings
    free: I8  # (n,)
    n_free: I8  # (1,)


@frame
class Links(NamedTuple):
    """Whom each item follows (itself: nobody), and its followers as a doubly linked list."""

    target: I8
    first: I8
    after: I8
    before: I8


@frame
class CollapsedScratch(NamedTuple):
    """Buffers whose content means nothing between calls, except that ``seen`` only grows."""

    queue: I8
    seen: I8
    clock: I8
    option: I8
    log_weight: F8


def new_scratch(n: int) -> CollapsedScratch:
    """Buffers for n items."""
    return CollapsedScratch(
        queue=np.zeros(n, np.int64),
        seen=np.zeros(n, np.int64),
        clock=np.zeros(1, np.int64),
        option=np.zeros(n + 1, np.int64),
        log_weight=np.zeros(n + 1),
    )


def new_groups(problem: CollapsedProblem) -> CollapsedGroups:
    """Every item alone, in the slot of its own number."""
    n = len(problem.weight)
    return CollapsedGroups(
        label=np.arange(n),
        sums=problem.own.copy(),
        items=np.ones(n, np.int64),
        weight=problem.weight.copy(),
        free=np.zeros(n, np.int64),
        n_free=np.zeros(1, np.int64),
    )


def new_links(n: int) -> Links:
    """Nobody follows anybody."""
    none = np.full(n, -1, np.int64)
    return Links(np.arange(n), none, none.copy(), none.copy())


@lean_kernel
def log_evidence(sums: F8x2, k: int, more: F8x2, i: int, prior: F8) -> float:
    """g of row k of ``sums`` together with row i of ``more`` (i < 0: of row k alone)."""
    total = 0.0
    for feature in range(3):
        w, m = sums[k, feature], sums[k, 3 + feature]
        if i >= 0:
            w += more[i, feature]
            m += more[i, 3 + feature]
        whole = prior[feature] + w
        total += 0.5 * (math.log(prior[feature] / whole) + m * m / whole)
    return total


@lean_kernel
def pick(rng: Stream, log_weight: F8, count: int) -> int:
    """Draw one of the first ``count`` options by their log weights."""
    highest = log_weight[0]
    for option in range(1, count):
        highest = max(highest, log_weight[option])
    total = 0.0
    for option in range(count):
        total += math.exp(log_weight[option] - highest)
    left = rng.random() * total
    for option in range(count):
        left -= math.exp(log_weight[option] - highest)
        if left < 0.0:
            return option
    return count - 1


@lean_kernel
def add_item(problem: CollapsedProblem, groups: CollapsedGroups, i: int, k: int) -> None:
    """Put item i into slot k."""
    groups.label[i] = k
    groups.items[k] += 1
    groups.weight[k] += problem.weight[i]
    for column in range(WIDTH):
        groups.sums[k, column] += problem.own[i, column]


@lean_kernel
def empty_slot(groups: CollapsedGroups, k: int) -> None:
    """Forget what slot k held."""
    groups.items[k] = 0
    groups.weight[k] = 0
    groups.sums[k, :] = 0.0


@lean_kernel
def release(groups: CollapsedGroups, k: int) -> None:
    """Empty slot k and put it on the stack of unused ones."""
    empty_slot(groups, k)
    groups.free[groups.n_free[0]] = k
    groups.n_free[0] += 1


@lean_kernel
def take(groups: CollapsedGroups) -> int:
    """An unused slot."""
    groups.n_free[0] -= 1
    return groups.free[groups.n_free[0]]


@lean_kernel
def follow(links: Links, i: int, j: int) -> None:
    """Let i follow j; following oneself needs no entry in the list."""
    links.target[i] = j
    if i == j:
        return
    head = links.first[j]
    links.before[i] = -1
    links.after[i] = head
    if head >= 0:
        links.before[head] = i
    links.first[j] = i


@lean_kernel
def unfollow(links: Links, i: int) -> int:
    """Let i follow nobody; returns whom it followed."""
    j = links.target[i]
    if i != j:
        previous, following = links.before[i], links.after[i]
        if previous < 0:
            links.first[j] = following
        else:
            links.after[previous] = following
        if following >= 0:
            links.before[following] = previous
        links.target[i] = i
    return j


@lean_kernel
def visit(scratch: CollapsedScratch, i: int, count: int) -> int:
    """Queue item i unless it has been seen since the clock's last tick."""
    if scratch.seen[i] == scratch.clock[0]:
        return count
    scratch.seen[i] = scratch.clock[0]
    scratch.queue[count] = i
    return count + 1


@lean_kernel
def connected(links: Links, i: int, scratch: CollapsedScratch) -> int:
    """Queue all items that links connect with i, either way; returns how many."""
    scratch.clock[0] += 1
    count = visit(scratch, i, 0)
    done = 0
    while done < count:
        item = scratch.queue[done]
        done += 1
        count = visit(scratch, links.target[item], count)
        follower = links.first[item]
        while follower >= 0:
            count = visit(scratch, follower, count)
            follower = links.after[follower]
    return count


@lean_kernel
def gather(
    problem: CollapsedProblem,
    links: Links,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    i: int,
    k: int,
) -> int:
    """Make slot k the group of everything connected with i; returns its size."""
    count = connected(links, i, scratch)
    empty_slot(groups, k)
    for position in range(count):
        add_item(problem, groups, scratch.queue[position], k)
    return count


@lean_kernel
def weigh_links(
    problem: CollapsedProblem,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    i: int,
    log_alpha: float,
) -> int:
    """Log weights of whom i may follow, itself last; returns the number of options.

    Following a member of the own group changes no group; following another joins the two.
    """
    k = groups.label[i]
    apart = log_evidence(groups.sums, k, groups.sums, -1, problem.prior)
    count = 0
    for edge in range(problem.start[i], problem.start[i + 1]):
        j = problem.other[edge]
        scratch.option[count] = j
        scratch.log_weight[count] = problem.log_weight[edge]
        other = groups.label[j]
        if other != k:
            joined = log_evidence(groups.sums, k, groups.sums, other, problem.prior)
            alone = log_evidence(groups.sums, other, groups.sums, -1, problem.prior)
            scratch.log_weight[count] += joined - apart - alone
        count += 1
    scratch.option[count] = i
    scratch.log_weight[count] = log_alpha
    return count + 1


@lean_kernel
def update_link(
    rng: Stream,
    problem: CollapsedProblem,
    links: Links,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    i: int,
    log_alpha: float,
) -> None:
    """Gibbs update of whom i follows; leaves the posterior of the links unchanged."""
    followed = unfollow(links, i)
    k = groups.label[i]
    count = gather(problem, links, groups, scratch, i, k)
    if scratch.seen[followed] != scratch.clock[0]:
        # The cut parted the group: the other side gets a slot of its own.
        gather(problem, links, groups, scratch, followed, take(groups))
        count = connected(links, i, scratch)
    options = weigh_links(problem, groups, scratch, i, log_alpha)
    j = scratch.option[pick(rng, scratch.log_weight, options)]
    other = groups.label[j]
    if other != k:
        for position in range(count):
            add_item(problem, groups, scratch.queue[position], other)
        release(groups, k)
    follow(links, i, j)


@entry_kernel
def run_links(
    rng: Stream,
    problem: CollapsedProblem,
    links: Links,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    alpha: float,
    thin: int,
    out: I8x2,
):
    """Sweeps over all links, ``thin`` for each row of slots written to ``out``."""
    log_alpha = math.log(alpha)
    for draw in range(out.shape[0]):
        for _ in range(thin):
            for i in range(out.shape[1]):
                update_link(rng, problem, links, groups, scratch, i, log_alpha)
        for i in range(out.shape[1]):
            out[draw, i] = groups.label[i]


@lean_kernel
def weigh_groups(
    problem: CollapsedProblem,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    i: int,
    log_alpha: float,
) -> int:
    """Log weights of the groups that block i (taken out) may join, a new one (-1) last.

    A group is open to i if all its blocks are among i's problem. With b markings in the block, the
    CRP gives a group of n markings the weight Γ(n + b) / Γ(n) and a new one α Γ(b).
    """
    weight = problem.weight[i]
    scratch.clock[0] += 1
    found = 0
    for edge in range(problem.start[i], problem.start[i + 1]):
        k = groups.label[problem.other[edge]]
        if scratch.seen[k] != scratch.clock[0]:
            scratch.seen[k] = scratch.clock[0]
            scratch.queue[k] = 0
            scratch.option[found] = k
            found += 1
        scratch.queue[k] += 1
    count = 0
    for position in range(found):
        k = scratch.option[position]
        if scratch.queue[k] == groups.items[k]:
            scratch.option[count] = k
            scratch.log_weight[count] = (
                math.lgamma(groups.weight[k] + weight)
                - math.lgamma(groups.weight[k])
                + log_evidence(groups.sums, k, problem.own, i, problem.prior)
                - log_evidence(groups.sums, k, problem.own, -1, problem.prior)
            )
            count += 1
    scratch.option[count] = -1
    scratch.log_weight[count] = (
        log_alpha
        + math.lgamma(weight)
        + log_evidence(problem.own, i, problem.own, -1, problem.prior)
    )
    return count + 1


@lean_kernel
def update_block(
    rng: Stream,
    problem: CollapsedProblem,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    i: int,
    log_alpha: float,
) -> None:
    """Gibbs update of block i's group; leaves the posterior of the partition unchanged."""
    k = groups.label[i]
    groups.items[k] -= 1
    groups.weight[k] -= problem.weight[i]
    for column in range(WIDTH):
        groups.sums[k, column] -= problem.own[i, column]
    if groups.items[k] == 0:
        release(groups, k)
    options = weigh_groups(problem, groups, scratch, i, log_alpha)
    chosen = scratch.option[pick(rng, scratch.log_weight, options)]
    add_item(problem, groups, i, chosen if chosen >= 0 else take(groups))


@lean_kernel
def update_alpha(
    rng: Stream, alpha: float, n_groups: int, n: int, shape: float, rate: float
) -> float:
    """Escobar and West's draw of α given the number of groups, under a Gamma prior."""
    rate_now = rate - math.log(rng.beta(alpha + 1.0, n))
    odds = (shape + n_groups - 1.0) / (n * rate_now)
    shape_now = shape + n_groups
    if rng.random() * (1.0 + odds) >= odds:
        shape_now -= 1.0
    return rng.standard_gamma(shape_now) / rate_now


@entry_kernel
def run_blocks(
    rng: Stream,
    problem: CollapsedProblem,
    groups: CollapsedGroups,
    scratch: CollapsedScratch,
    alpha: F8,
    alpha_prior: F8,
    thin: int,
    out: I8x2,
):
    """Sweeps over all blocks, ``thin`` for each row of slots written to ``out``.

    ``alpha`` (one number, in place) is updated unless ``alpha_prior`` = (shape, rate) has a rate
    of zero.
    """
    n_markings = 0
    for i in range(problem.weight.shape[0]):
        n_markings += problem.weight[i]
    for draw in range(out.shape[0]):
        for _ in range(thin):
            # Sums that are added to and taken from for ever would drift.
            groups.sums[:] = 0.0
            for i in range(out.shape[1]):
                for column in range(WIDTH):
                    groups.sums[groups.label[i], column] += problem.own[i, column]
            for i in range(out.shape[1]):
                update_block(rng, problem, groups, scratch, i, math.log(alpha[0]))
            if alpha_prior[1] > 0.0:
                n_groups = out.shape[1] - groups.n_free[0]
                alpha[0] = update_alpha(
                    rng, alpha[0], n_groups, n_markings, alpha_prior[0], alpha_prior[1]
                )
        for i in range(out.shape[1]):
            out[draw, i] = groups.label[i]
