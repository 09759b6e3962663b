"""What the moves ask of the prior over partitions.

A prior is a named tuple with its settings, of which ``own`` holds the parameters it updates, and
a kernel for each function below. Its probability of a partition, given whatever
auxiliary variables it uses, must be a product over clusters; ``size`` is the log size of the
cluster's object (``likelihood.size_of``), for priors that depend on it. The part of
``log_cluster`` that depends on the size, ``log_tilt``, is asked for by likelihoods as well, and is
declared with their own contract.

``of_chain``, ``waiting_room``, ``refresh`` and ``has_order`` are for Python, which sets chains up;
a prior registers those in which it differs from what they say here.
"""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4
from dfcrp.compiled.jit import (
    ANYTHING,
    AnyLikelihood,
    implements,
    inline_kernel,
    lean_kernel,
)
from dfcrp.compiled.random import Stream
from dfcrp.compiled.state import Block, Data, Scratch, State
from dfcrp.likelihoods.contract import PRIOR, log_tilt  # noqa: F401 - a function of the contract

#: A candidate whose weight is below e^-45 of another's cannot change a sum in double precision.
NEGLIGIBLE = 45.0


@singledispatch
def of_chain(prior: Any, own: NDArray[np.float64]) -> Any:
    """The prior as one chain uses it: its parameters are in ``own``, room to work is its own."""
    return prior._replace(own=own)


@singledispatch
def waiting_room(prior: Any, n: int, n_families: int) -> tuple[int, int]:
    """Shape of the table ``Scratch.waiting``, which ``drop_order`` works with, for n markings."""
    return 0, 0


@singledispatch
def refresh(prior: Any) -> None:
    """Bring up to date what follows from parameters that were put in place from outside."""


@singledispatch
def has_order(prior: Any) -> bool:
    """Whether the prior is about the order of arrival, so that u and its sums are kept."""
    return False


@PRIOR.function
def uses_order(prior) -> bool:
    """Whether clusters also carry the order's share of the weight (``moves.assignment``)."""


@PRIOR.function
def counts_ranks(prior) -> bool:
    """Whether weights depend on arrival slots at all, here or in ``moves.assignment``."""


@PRIOR.function
def log_open_all(prior, state: State) -> float:
    """The part of ``log_open`` that is the same for every marking."""


@PRIOR.function
def log_open(prior, common: float, data: Data, state: State, i: int, size: float) -> float:
    """Log weight of marking i alone in a new cluster; ``common`` is ``log_open_all``'s value."""


@PRIOR.function
def log_join(
    prior, data: Data, state: State, scratch: Scratch, i: int, k: int, size: float
) -> float:
    """Log weight of marking i joining cluster k, without the order's share."""


@PRIOR.function
def log_join_bound(prior, data: Data, i: int, size: float) -> float:
    """An upper bound of ``log_join``, whatever the cluster; ∞ where none is cheaper than itself."""


@PRIOR.function
def log_cluster(prior, data: Data, state: State, k: int, size: float) -> float:
    """Log of cluster k's factor in the prior, the order's share included."""


@PRIOR.function
def update_block(
    prior, rng: Stream, data: Data, state: State, scratch: Scratch, block: Block
) -> None:
    """Update auxiliary variables that belong to a block of the data alone."""


@PRIOR.function
def update_prior(
    prior, rng: Stream, data: Data, hyper: AnyLikelihood, state: State, scratch: Scratch
) -> None:
    """Update the prior's own parameters and auxiliary variables given the partition."""


@PRIOR.function
def drop_order(prior, data: Data, state: State, scratch: Scratch) -> bool:
    """Sum the order of arrival out, if that can be done now, and return whether it was.

    If so, ``scratch.value`` has the log weight of a marking's new cluster beside k others, which
    is the same for every marking, relative to that of joining one.
    """


@PRIOR.function
def take_order(prior, rng: Stream, data: Data, state: State, scratch: Scratch) -> None:
    """Draw an order given the partition, after it was summed out, and the prior's parameters."""


@PRIOR.function
def weigh_joins(
    prior,
    data: Data,
    state: State,
    scratch: Scratch,
    i: int,
    cluster: I4,
    count: int,
    weight: F8,
    size: F8,
    log_new: float,
) -> int:
    """Add ``log_join`` to the weights of the first ``count`` clusters, in one call.

    Returns how many are left: those that are negligible beside ``log_new``, whatever the prior
    says, may be left out.
    """


@implements(weigh_joins, ANYTHING)
@lean_kernel
def weigh_each(prior, data, state, scratch, i, cluster, count, weight, size, log_new):
    """One after the other."""
    kept = 0
    for position in range(count):
        # A plain number: infinities of NumPy's warn where kernels are run as Python.
        k, value = cluster[position], float(weight[position])
        if value + log_join_bound(prior, data, i, size[position]) < log_new - NEGLIGIBLE:
            continue
        cluster[kept] = k
        weight[kept] = value + log_join(prior, data, state, scratch, i, k, size[position])
        kept += 1
    return kept


@implements(drop_order, ANYTHING)
@inline_kernel
def keeps_order(prior, data, state, scratch):
    """It cannot be done."""
    return False


@implements(take_order, ANYTHING)
@inline_kernel
def takes_none(prior, rng, data, state, scratch):
    """Nothing."""


@implements(counts_ranks, ANYTHING)
@inline_kernel
def counts_no_ranks(prior):
    """They do not."""
    return False
