"""How far apart markings of one object lie, learned from all clusters.

Given the clusters' variances v_k and log diameters l_k, the law v ~ Gamma(ν, mean m(l)) with
log m(l) = s + g (l − l₀) has the log likelihood

    −ν Σ_k [ s + g (l_k − l₀) + v_k exp(−s − g (l_k − l₀)) ]

so s needs one sum, whatever its value, and g one per evaluation. Both have normal priors.
"""

from __future__ import annotations

import math

from dfcrp.kernels.circle import MU_L, VAR_POSITION, VAR_SIZE
from dfcrp.kernels.jit import inline_kernel, lean_kernel


@lean_kernel
def scaled_sum(state, column, level, growth):
    """Σ_k v_k exp(−g (l_k − l₀)) over the clusters."""
    total = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            away = state.theta[k, MU_L] - level
            total += state.theta[k, column] * math.exp(-growth * away)
    return total


@inline_kernel
def log_law(value, mean, sd, nu, clusters, away, scale, growth, total):
    """log posterior of the law at (s, g) but for the prior of the one not in ``value``.

    ``away`` is Σ_k (l_k − l₀) and ``total`` the scaled sum at g.
    """
    z = (value - mean) / sd
    return -0.5 * z * z - nu * (clusters * scale + growth * away + math.exp(-scale) * total)


@lean_kernel
def slice_scale(rng, start, mean, sd, nu, clusters, away, growth, total):
    """One slice update of s given g."""
    width = min(sd, 2.0 / math.sqrt(nu * clusters + 1.0))
    level = log_law(start, mean, sd, nu, clusters, away, start, growth, total)
    level -= rng.standard_exponential()
    low = start - width * rng.random()
    high = low + width
    while log_law(low, mean, sd, nu, clusters, away, low, growth, total) > level:
        low -= width
    while log_law(high, mean, sd, nu, clusters, away, high, growth, total) > level:
        high += width
    while True:
        value = low + (high - low) * rng.random()
        if log_law(value, mean, sd, nu, clusters, away, value, growth, total) > level:
            return value
        if value < start:
            low = value
        else:
            high = value
        if high - low < 1e-14 * (1.0 + abs(start)):
            return start


@lean_kernel
def slice_growth(rng, hyper, state, column, start, mean, sd, nu, clusters, away, scale):
    """One slice update of g given s."""
    width = 0.5 * sd
    total = scaled_sum(state, column, hyper.level, start)
    level = log_law(start, mean, sd, nu, clusters, away, scale, start, total)
    level -= rng.standard_exponential()
    low = start - width * rng.random()
    high = low + width
    # Shrinking alone, without stepping out, leaves the target unchanged as well, and each
    # evaluation walks over all clusters; the width exceeds the posterior's when there are many.
    while True:
        value = low + (high - low) * rng.random()
        total = scaled_sum(state, column, hyper.level, value)
        if log_law(value, mean, sd, nu, clusters, away, scale, value, total) > level:
            return value
        if value < start:
            low = value
        else:
            high = value
        if high - low < 1e-14 * (1.0 + abs(start)):
            return start


@lean_kernel
def update_law(rng, hyper, state):
    """Scale and growth of both laws, one after the other; leaves p(law | clusters) unchanged.

    The spare parameters of markings are drawn from the law; the caller must draw all anew.
    """
    clusters, away = 0.0, 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            clusters += 1.0
            away += state.theta[k, MU_L] - hyper.level
    for which in range(2):
        column = VAR_POSITION if which == 0 else VAR_SIZE
        nu = hyper.nu_x if which == 0 else hyper.nu_d
        s, g = 2 * which, 2 * which + 1
        hyper.law[g] = slice_growth(
            rng,
            hyper,
            state,
            column,
            hyper.law[g],
            hyper.law_mean[g],
            hyper.law_sd[g],
            nu,
            clusters,
            away,
            hyper.law[s],
        )
        total = scaled_sum(state, column, hyper.level, hyper.law[g])
        hyper.law[s] = slice_scale(
            rng,
            hyper.law[s],
            hyper.law_mean[s],
            hyper.law_sd[s],
            nu,
            clusters,
            away,
            hyper.law[g],
            total,
        )
