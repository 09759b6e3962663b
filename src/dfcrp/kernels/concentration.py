"""The concentration α, given the number of clusters and every D_i (u integrated out)."""

from __future__ import annotations

import math

from dfcrp.kernels.jit import lean_kernel
from dfcrp.kernels.order import log_product


@lean_kernel
def log_alpha_target(seated, n_clusters, shape, rate, log_alpha):
    """log of α^K Π 1/(D_i + α) · Gamma(α; shape, rate) · α (the last for the log scale)."""
    alpha = math.exp(log_alpha)
    return (n_clusters + shape) * log_alpha - rate * alpha - log_product(seated, alpha)


@lean_kernel
def update_alpha(rng, seated, n_clusters, shape, rate, alpha):
    """One slice update of log α; leaves p(α | c, order) unchanged. Returns the new α."""
    start = math.log(alpha)
    # About one posterior standard deviation, known from the prior and the number of clusters.
    width = 2.0 / math.sqrt(n_clusters + shape)
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
