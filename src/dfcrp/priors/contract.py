"""What the moves ask of the prior over partitions.

A prior is a named tuple with its settings, of which ``own`` holds the parameters it updates, and
a kernel for each function below. Its probability of a partition, given whatever
auxiliary variables it uses, must be a product over clusters; ``size`` is the log size of the
cluster's object (``likelihood.size_of``), for priors that depend on it.

``of_chain``, ``refresh`` and ``has_order`` are for Python, which sets chains up; a prior registers
those in which it differs from what they say here.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import by_type


@singledispatch
def of_chain(prior: Any, own: NDArray[np.float64]) -> Any:
    """The prior as one chain uses it: its parameters are in ``own``, room to work is its own."""
    return prior._replace(own=own)


@singledispatch
def refresh(prior: Any) -> None:
    """Bring up to date what follows from parameters that were put in place from outside."""


@singledispatch
def has_order(prior: Any) -> bool:
    """Whether the prior is about the order of arrival, so that u and its sums are kept."""
    return False


@by_type
def uses_order(prior):
    """Whether clusters also carry the order's share of the weight (``moves.assignment``)."""


@by_type
def log_open_all(prior, state):
    """The part of ``log_open`` that is the same for every marking."""


@by_type
def log_open(prior, common, data, state, i, size):
    """Log weight of marking i alone in a new cluster; ``common`` is ``log_open_all``'s value."""


@by_type
def log_join(prior, data, state, scratch, i, k, size):
    """Log weight of marking i joining cluster k, without the order's share."""


@by_type
def log_join_bound(prior, data, i, size):
    """An upper bound of ``log_join``, whatever the cluster; ∞ where none is cheaper than itself."""


@by_type
def log_cluster(prior, data, state, k, size):
    """Log of cluster k's factor in the prior, the order's share included."""


@by_type
def log_tilt(prior, data, state, k, size):
    """The part of ``log_cluster`` that depends on the size."""


@by_type
def update_block(prior, rng, data, state, scratch, block):
    """Update auxiliary variables that belong to a block of the data alone."""


@by_type
def update_prior(prior, rng, data, hyper, state, scratch):
    """Update the prior's own parameters and auxiliary variables given the partition."""
