"""What the moves ask of a likelihood.

A likelihood is a module with a named tuple of hyperparameters, of which ``law`` holds what all
clusters share and what is updated, and a kernel for each function below, registered with
``implements``. The moves never look into a cluster's parameters: they hand
on rows of ``theta``, of the likelihood's own width, and rows of ``y``, a marking's features.

``of_chain`` and ``kept_by_chain`` are for Python: a chain has hyperparameters of its own.

A marking may have something of its own besides its features, such as how careless it is: it keeps
it while others move, and gets another whenever it is seated (``settle``).

``add_member`` and ``remove_member`` are for likelihoods whose parameters are integrated out and
whose rows hold sums over the members; one that draws its parameters does nothing there. It asks the
prior for ``log_tilt``, which is of the contract in ``priors.contract``: likelihoods know nothing
else of priors.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, F4x2, F8x2
from dfcrp.compiled.jit import ANYTHING, AnyPrior, Contract, implements, lean_kernel
from dfcrp.compiled.random import Stream
from dfcrp.compiled.state import Data, Deal, State

LIKELIHOOD = Contract("likelihood")
PRIOR = Contract("prior")


@PRIOR.function
def log_tilt(prior, data: Data, state: State, k: int, size: float) -> float:
    """The part of the prior's ``log_cluster`` that depends on the size."""


@singledispatch
def of_chain(hyper: Any, law: NDArray[np.float64]) -> Any:
    """The hyperparameters as one chain uses them: its law is ``law``.

    A likelihood whose hyperparameters have room to work in registers a function of its own, which
    gives every chain such room.
    """
    return hyper._replace(law=law)


@singledispatch
def kept_by_chain(hyper: Any) -> dict[str, NDArray[np.float64]]:
    """What a chain changes of its hyperparameters besides the law, by name."""
    return {}


@LIKELIHOOD.function
def log_density(hyper, theta: F8x2, k: int, y: F8x2, i: int) -> float:
    """log p(y_i | θ_k), or given the members of k where θ is integrated out."""


@LIKELIHOOD.function
def opening_weight(hyper, theta: F8x2, k: int, y: F8x2, i: int) -> float:
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k.

    q is what ``open_cluster`` draws from; log p(y_i) if that is the exact posterior.
    """


@LIKELIHOOD.function
def open_cluster(hyper, rng: Stream, y: F8x2, i: int, theta: F8x2, k: int) -> float:
    """Draw φ ~ q(· | y_i) into row k, as of a cluster of i alone; returns its opening weight."""


@LIKELIHOOD.function
def add_member(hyper, theta: F8x2, k: int, y: F8x2, i: int) -> None:
    """Marking i joins cluster k."""


@LIKELIHOOD.function
def remove_member(hyper, theta: F8x2, k: int, y: F8x2, i: int) -> None:
    """Marking i leaves cluster k, which does not become empty."""


@LIKELIHOOD.function
def settle(hyper, rng: Stream, theta: F8x2, k: int, y: F8x2, i: int, alone: bool) -> None:
    """Draw what marking i has of its own, given that it is about to join cluster k.

    ``log_density`` and ``opening_weight`` are summed over it. If i is ``alone`` row k is that of a
    cluster of i's own, which may know of it, and must know of it as it is then.
    """


@implements(settle, ANYTHING)
@lean_kernel
def settle_nothing(hyper, rng, theta, k, y, i, alone):
    """Most markings have nothing of their own."""


@LIKELIHOOD.function
def update_cluster(
    hyper, rng: Stream, prior: AnyPrior, data: Data, state: State, k: int, proposal: F8x2
) -> bool:
    """Update the parameters of cluster k given its members; returns whether it moved.

    Must leave unchanged p(θ_k | members) times the prior's ``log_tilt``. ``proposal`` has rows
    to work in. It may depend on θ_k, on the members and on nothing else of the state.
    """


@LIKELIHOOD.function
def update_shared(hyper, rng: Stream, data: Data, state: State) -> bool:
    """Update what all clusters share; returns whether every spare must be drawn again."""


@LIKELIHOOD.function
def size_of(hyper, theta: F8x2, k: int) -> float:
    """The log size of cluster k's object, for priors that depend on it; 0 where there is none."""


@LIKELIHOOD.function
def start_deal(hyper, data: Data, deal: Deal, i: int, j: int) -> None:
    """Begin to deal markings to the sides of i (0) and j (1)."""


@LIKELIHOOD.function
def log_attraction(hyper, data: Data, deal: Deal, side: int, m: int) -> float:
    """Log weight of dealing marking m to a side, given those dealt to it before."""


@LIKELIHOOD.function
def put_on_side(hyper, data: Data, deal: Deal, side: int, m: int) -> None:
    """Deal marking m to a side."""


@LIKELIHOOD.function
def propose_row(hyper, rng: Stream, y: F8x2, state: State, k: int, theta: F8x2, row: int) -> None:
    """Draw parameters for cluster k, given its members, into ``theta[row]``."""


@LIKELIHOOD.function
def row_weight(hyper, y: F8x2, state: State, k: int, theta: F8x2, row: int) -> float:
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ).

    Where θ is integrated out: log p(members).
    """


@LIKELIHOOD.function
def record_row(hyper, theta: F8x2, k: int, out: F4x2, row: int) -> None:
    """Write a cluster's parameters as stored with the draws."""


@LIKELIHOOD.function
def empty_row(hyper, theta: F8x2, k: int) -> None:
    """Let row k know of no member, where θ is integrated out."""


@LIKELIHOOD.function
def weigh_clusters(
    hyper, theta: F8x2, y: F8x2, i: int, cluster: I4, count: int, weight: F8, size: F8
) -> None:
    """``log_density`` and ``size_of`` for the first ``count`` of several clusters, in one call."""


@implements(weigh_clusters, ANYTHING)
@lean_kernel
def weigh_each(hyper, theta, y, i, cluster, count, weight, size):
    """One after the other."""
    for position in range(count):
        k = cluster[position]
        size[position] = size_of(hyper, theta, k)
        weight[position] = log_density(hyper, theta, k, y, i)
