"""What the moves ask of the prior over partitions.

A prior is a named tuple with its settings, of which ``own`` holds the parameters it updates, and
a kernel for each function below. Its probability of a partition, given whatever
auxiliary variables it uses, must be a product over clusters; ``size`` is the log size of the
cluster's object (``likelihood.size_of``), for priors that depend on it.
"""

from __future__ import annotations

from dfcrp.compiled.jit import by_type


@by_type
def uses_order(prior):
    """Whether clusters also carry the order's share of the weight (``kernels.assignment``)."""


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
def update_block(prior, rng, data, state, scratch, part):
    """Update auxiliary variables that belong to a block of the data alone."""


@by_type
def update_prior(prior, rng, data, hyper, state, scratch):
    """Update the prior's own parameters and auxiliary variables given the partition."""
