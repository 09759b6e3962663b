"""What the moves ask of a likelihood.

A likelihood is a module with a named tuple of hyperparameters, of which ``law`` holds what all
clusters share and what is updated, and a kernel for each function below, registered with
``implements``. The moves never look into a cluster's parameters: they hand
on rows of ``theta``, of the likelihood's own width, and rows of ``y``, a marking's features.

``of_chain`` is for Python: a chain asks for hyperparameters of its own.

``add_member`` and ``remove_member`` are for likelihoods whose parameters are integrated out and
whose rows hold sums over the members; one that draws its parameters does nothing there.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import by_type


@singledispatch
def of_chain(hyper: Any, law: NDArray[np.float64]) -> Any:
    """The hyperparameters as one chain uses them: its law is ``law``.

    A likelihood whose hyperparameters have room to work in registers a function of its own, which
    gives every chain such room.
    """
    return hyper._replace(law=law)


@by_type
def log_density(hyper, theta, k, y, i):
    """log p(y_i | θ_k), or given the members of k where θ is integrated out."""


@by_type
def opening_weight(hyper, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k.

    q is what ``open_cluster`` draws from; log p(y_i) if that is the exact posterior.
    """


@by_type
def open_cluster(hyper, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i) into row k, as of a cluster of i alone; returns its opening weight."""


@by_type
def add_member(hyper, theta, k, y, i):
    """Marking i joins cluster k."""


@by_type
def remove_member(hyper, theta, k, y, i):
    """Marking i leaves cluster k, which does not become empty."""


@by_type
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Update the parameters of cluster k given its members; returns 1 if a proposal was accepted.

    Must leave unchanged p(θ_k | members) times the prior's ``log_tilt``. ``proposal`` has rows
    to work in. It may depend on θ_k, on the members and on nothing else of the state.
    """


@by_type
def update_shared(hyper, rng, data, state):
    """Update what all clusters share; returns whether every spare must be drawn again."""


@by_type
def size_of(hyper, theta, k):
    """The log size of cluster k's object, for priors that depend on it; 0 where there is none."""


@by_type
def start_deal(hyper, data, deal, i, j):
    """Begin to deal markings to the sides of i (0) and j (1)."""


@by_type
def log_attraction(hyper, data, deal, side, m):
    """Log weight of dealing marking m to a side, given those dealt to it before."""


@by_type
def put_on_side(hyper, data, deal, side, m):
    """Deal marking m to a side."""


@by_type
def propose_row(hyper, rng, y, state, k, theta, row):
    """Draw parameters for cluster k, given its members, into ``theta[row]``."""


@by_type
def row_weight(hyper, y, state, k, theta, row):
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ).

    Where θ is integrated out: log p(members).
    """


@by_type
def record_row(hyper, theta, k, out, row):
    """Write a cluster's parameters as stored with the draws."""
