"""Likelihoods whose cluster parameters are integrated out: what they have in common.

A row of ``theta`` then holds what is known of a cluster from its members, beginning with nothing
(``empty_row``). The predictive density of one more member (``log_density``), adding it and taking
it away are the likelihood's own; by the chain rule they give all the moves ask for:

    p(y_1, ..., y_n) = p(y_1) p(y_2 | y_1) ... p(y_n | y_1, ..., y_(n-1)).

A module with such a likelihood registers ``empty_row``, ``log_marginal`` and, of the contract in
``likelihoods.contract``, ``log_density``, ``add_member``, ``remove_member`` and ``record_row``;
``integrate_out`` does the rest, and ``likelihoods.law.learn_law`` the updates of what clusters
share.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import I8, F8x2
from dfcrp.compiled.jit import (
    AnyLikelihood,
    by_type,
    entry_kernel,
    implements,
    inline_kernel,
    lean_kernel,
)
from dfcrp.compiled.random import Stream, stream
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.contract import empty_row


class Newcomers(NamedTuple):
    """New items beside those of a run, as ``weigh_beside`` takes them."""

    #: With room for what is their own of known and new items, in this order.
    hyper: Any
    #: Features of the run's items, and of the new ones.
    known: NDArray[np.float64]
    new: NDArray[np.float64]
    #: Numbers that a cluster's row takes.
    width: int
    #: How often what is their own of known items is drawn.
    rounds: int = 0


@by_type
def log_marginal(hyper, theta, k):
    """log p(members), the parameters integrated out, from row k alone."""


@lean_kernel
def open_cluster(hyper, rng, y, i, theta, k):
    """A cluster of marking i alone, with log p(y_i) as its weight; nothing is drawn."""
    empty_row(hyper, theta, k)
    weight = likelihood.log_density(hyper, theta, k, y, i)
    likelihood.add_member(hyper, theta, k, y, i)
    return weight


@inline_kernel
def opening_weight(hyper, theta, k, y, i):
    """log p(y_i): i is the one member of row k."""
    return log_marginal(hyper, theta, k)


@lean_kernel
def gather(hyper, y, state, k, theta, row):
    """Build a row from cluster k's members."""
    empty_row(hyper, theta, row)
    i = state.head[k]
    while i != NONE:
        likelihood.add_member(hyper, theta, row, y, i)
        i = state.after[i]


@lean_kernel
def propose_row(hyper, rng, y, state, k, theta, row):
    """There is one row that fits the members."""
    gather(hyper, y, state, k, theta, row)


@lean_kernel
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Build the row again, so that rounding errors do not add up."""
    gather(hyper, data.features, state, k, state.theta, k)
    return True


@inline_kernel
def row_weight(hyper, y, state, k, theta, row):
    """log p(members)."""
    return log_marginal(hyper, theta, row)


@inline_kernel
def size_of(hyper, theta, k):
    """Objects have no size of their own here."""
    return 0.0


@lean_kernel
def start_deal(hyper, data, deal, i, j):
    """A row for either side, of i and of j alone."""
    for side in range(2):
        deal.dealt[side] = 0.0
        empty_row(hyper, deal.sums, side)
    put_on_side(hyper, data, deal, 0, i)
    put_on_side(hyper, data, deal, 1, j)


@inline_kernel
def log_attraction(hyper, data, deal, side, m):
    """Log of the side's size times the predictive density of m."""
    return math.log(deal.dealt[side]) + likelihood.log_density(
        hyper, deal.sums, side, data.features, m
    )


@inline_kernel
def put_on_side(hyper, data, deal, side, m):
    """Deal marking m to a side."""
    deal.dealt[side] += 1.0
    likelihood.add_member(hyper, deal.sums, side, data.features, m)


@entry_kernel
def weigh_new(
    hyper: AnyLikelihood,
    rng: Stream,
    y: F8x2,
    cluster: I8,
    size: I8,
    rounds: int,
    theta: F8x2,
    out: F8x2,
):
    """``out[m, k]``: log density of new item m given the members of cluster k; last, of none.

    y has the known items and then the new ones. ``cluster`` numbers the clusters of the known ones
    from 0, ``size`` are their sizes; ``theta`` has a row for each and one more to work in. What
    known items have of their own is drawn in so many ``rounds``, given their clusters.
    """
    count, known = theta.shape[0] - 1, cluster.shape[0]
    for k in range(count + 1):
        empty_row(hyper, theta, k)
    for i in range(known):
        likelihood.add_member(hyper, theta, cluster[i], y, i)
    for _ in range(rounds):
        for i in range(known):
            k = cluster[i]
            if size[k] > 1:
                likelihood.remove_member(hyper, theta, k, y, i)
                likelihood.settle(hyper, rng, theta, k, y, i, False)
                likelihood.add_member(hyper, theta, k, y, i)
    for m in range(y.shape[0] - known):
        for k in range(count + 1):
            out[m, k] = likelihood.log_density(hyper, theta, k, y, known + m)


def weigh_beside(beside: Newcomers, cluster: NDArray[np.int64]) -> NDArray[np.float64]:
    """(m, K + 1): log density of new items given the members of each cluster, and of none."""
    size = np.bincount(cluster)
    theta = np.zeros((len(size) + 1, beside.width))
    out = np.empty((len(beside.new), len(size) + 1))
    y = np.ascontiguousarray(np.concatenate([beside.known, beside.new]))
    rounds = beside.rounds
    weigh_new(beside.hyper, stream(0), y, cluster.astype(np.int64), size, rounds, theta, out)
    return out


#: What follows from the predictive density, by the contract's names.
_SHARED = (
    (likelihood.open_cluster, open_cluster),
    (likelihood.opening_weight, opening_weight),
    (likelihood.update_cluster, update_cluster),
    (likelihood.propose_row, propose_row),
    (likelihood.row_weight, row_weight),
    (likelihood.size_of, size_of),
    (likelihood.start_deal, start_deal),
    (likelihood.log_attraction, log_attraction),
    (likelihood.put_on_side, put_on_side),
)


def integrate_out(kind: Any) -> Any:
    """Class decorator: hyperparameters of a likelihood whose parameters are integrated out."""
    for stub, kernel in _SHARED:
        implements(stub, kind)(kernel)
    return kind
