"""The concentration α, given the number of clusters and every D_i (u integrated out)."""

from __future__ import annotations

import math

from dfcrp.kernels.jit import inline_kernel, lean_kernel
from dfcrp.kernels.order import log_product

#: Scans of a chain that may still be far from where it is going.
YOUNG = 40


@lean_kernel
def log_alpha_target(seated, n_clusters, shape, rate, log_alpha):
    """log of α^K Π 1/(D_i + α) · Gamma(α; shape, rate) · α (the last for the log scale)."""
    alpha = math.exp(log_alpha)
    return (n_clusters + shape) * log_alpha - rate * alpha - log_product(seated, alpha)


@inline_kernel
def step_width(scans, n_clusters, shape):
    """About one posterior standard deviation of log α; far more while a chain finds its place.

    A young chain has far to go, and every step is a walk over all markings.
    """
    return 1.0 if scans < YOUNG else 2.0 / math.sqrt(n_clusters + shape)


@lean_kernel
def update_alpha(rng, seated, n_clusters, shape, rate, alpha, width):
    """One slice update of log α; leaves p(α | c, order) unchanged. Returns the new α."""
    start = math.log(alpha)
    level = log_alpha_target(seated, n_clusters, shape, rate, start) - rng.standard_exponential()
    low = start - width * rng.random()
    high = low + width
    while log_alpha_target(seated, n_clusters, shape, rate, low) > level:
        low -= width
    while log_alpha_target(seated, n_clusters, shape, rate, high) > level:
        high += width
    while True:
        value = low + (high - low) * rng.random()
        if log_alpha_target(seated, n_clusters, shape, rate, value) > level:
            return math.exp(value)
        if value < start:
            low = value
        else:
            high = value
        if high - low < 1e-14 * (1.0 + abs(start)):
            return alpha
