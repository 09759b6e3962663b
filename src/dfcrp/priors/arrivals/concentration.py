"""The concentration α, given the number of clusters and every D_i (u integrated out)."""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import I8
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.priors.arrivals.order import log_product

#: Scans of a chain that may still be far from where it is going.
YOUNG = 40
#: With so few families, or fewer, α and the order of arrival hang together.
FEW = 3
#: Beyond e to this power, or below its inverse, no α is held by a double.
FARTHEST = 700.0


@lean_kernel
def log_alpha_target(seated, n_clusters, shape, rate, log_alpha):
    """log of α^K Π 1/(D_i + α) · Gamma(α; shape, rate) · α (the last for the log scale)."""
    if abs(log_alpha) > FARTHEST:
        return -math.inf
    alpha = math.exp(log_alpha)
    return (n_clusters + shape) * log_alpha - rate * alpha - log_product(seated, alpha)


class LogAlpha(NamedTuple):
    """log α given D by arrival, the number of clusters, and the prior of α."""

    seated: I8
    n_clusters: int
    shape: float
    rate: float


@implements(log_target, LogAlpha)
@inline_kernel
def log_of_alpha(target, value):
    """Its conditional."""
    return log_alpha_target(target.seated, target.n_clusters, target.shape, target.rate, value)


@inline_kernel
def step_width(scans, n_families, n_clusters, shape):
    """About one posterior standard deviation of log α; far more while it may have far to go.

    So it has in a young chain, and where there are few lists: if these agree, one cluster more or
    less changes how many seats are free by hundreds. Every step is a walk over all markings.
    """
    if scans < YOUNG or n_families <= FEW:
        return 1.0
    return 2.0 / math.sqrt(n_clusters + shape)


@lean_kernel
def update_alpha(rng, seated, n_clusters, shape, rate, alpha, width):
    """One slice update of log α; leaves p(α | c, order) unchanged. Returns the new α."""
    start = math.log(alpha)
    target = LogAlpha(seated, n_clusters, shape, rate)
    value = slice_update(rng, target, start, width, 1e-14 * (1.0 + abs(start)))
    return alpha if value == start else math.exp(value)
