"""What normal features tell of experts who differ (``likelihoods.bias``).

Means and variances of clusters are integrated out, so they are drawn for the occasion: (μ_k, v_k)
given the members, then the experts' offsets and noise given these, then they are forgotten and the
rows built again. Each draw is from a conditional of the joint, so the posterior is left unchanged.
For the moment a row holds the drawn mean in place of the mean, and in place of b or C

    variances only:     v_g ~ InverseGamma(a_n, b_g),  μ_j ~ N(M_j, v_g / P_j),
    a full covariance:  Λ = Σ⁻¹ ~ Wishart(ν + n - 1, (C Cᵀ)⁻¹),  μ ~ N(ȳ, Σ / W).

By Bartlett Λ = B Bᵀ with Cᵀ B = A, A lower triangular with A_jj² ~ χ²(ν + n - 1 - j), j from 0, and
normals below its diagonal. So Σ = (C A⁻ᵀ)(C A⁻ᵀ)ᵀ.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    add_gradient,
    add_precision,
    add_to_offsets,
    bias_is_due,
    precision_of,
    squares_of,
    update_bias,
)
from dfcrp.likelihoods.law import law_is_due, rebuild_rows, short_law_is_due, update_law
from dfcrp.likelihoods.normal import covariance, kernel
from dfcrp.likelihoods.normal.covariance import CovarianceHyper
from dfcrp.likelihoods.normal.kernel import NormalHyper, feature_of, log_growth, log_scale
from dfcrp.likelihoods.tails import log_scale_of, tails_are_due, update_tails


@by_type
def draw_parameters(hyper, rng, theta, k):
    """Put a draw of cluster k's mean and variances, given its members, into its row."""


@implements(draw_parameters, NormalHyper)
@lean_kernel
def draw_variances(hyper, rng, theta, k):
    """v by group, then the means of its features."""
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    first, means, precisions = kernel.FIRST, kernel.FIRST + groups, kernel.FIRST + groups + features
    for group in range(groups):
        half = 0.5 * (hyper.start[group + 1] - hyper.start[group])
        a = hyper.shape + theta[k, kernel.MEMBERS] * half
        variance = theta[k, first + group] / rng.standard_gamma(a)
        theta[k, first + group] = variance
        for j in range(hyper.start[group], hyper.start[group + 1]):
            error = math.sqrt(variance / theta[k, precisions + j])
            theta[k, means + j] += error * rng.standard_normal()


@implements(add_to_offsets, NormalHyper)
@inline_kernel
def add_features(hyper, theta, k, y, i):
    """Feature by feature: given the variances they are independent."""
    groups = hyper.growth.shape[0]
    for group in range(groups):
        for j in range(hyper.start[group], hyper.start[group + 1]):
            scale = math.exp(log_scale(hyper, y, i, j, group))
            precision = 1.0 / (scale * theta[k, kernel.FIRST + group])
            v = feature_of(hyper, y, i, j) - theta[k, kernel.FIRST + groups + j]
            add_precision(hyper, i, j, j, precision)
            add_gradient(hyper, i, j, precision * v)


@implements(squares_of, NormalHyper)
@inline_kernel
def squares_of_features(hyper, theta, k, y, i):
    """Σ_j v_j² / (w_ij v_g), without the noise of the expert in w."""
    groups, own = hyper.growth.shape[0], 2.0 * log_scale_of(hyper, i)
    total = 0.0
    for group in range(groups):
        for j in range(hyper.start[group], hyper.start[group + 1]):
            v = feature_of(hyper, y, i, j) - theta[k, kernel.FIRST + groups + j]
            scale = math.exp(log_growth(hyper, y, i, j, group) + own)
            total += v * v / (scale * theta[k, kernel.FIRST + group])
    return total


@lean_kernel
def draw_root(hyper, rng, theta, k, room):
    """B into the first p rows of ``room``, A into the others."""
    p = hyper.features
    freedom = 2.0 * hyper.shape + p - 2.0 + theta[k, covariance.MEMBERS]
    root = covariance.FIRST + 2 * p
    for a in range(p):
        for b in range(p):
            room[p + a, b] = rng.standard_normal() if b < a else 0.0
        room[p + a, a] = math.sqrt(2.0 * rng.standard_gamma(0.5 * (freedom - a)))
    for a in range(p - 1, -1, -1):
        for b in range(p):
            value = room[p + a, b]
            for c in range(a + 1, p):
                value -= theta[k, root + c * p + a] * room[c, b]
            room[a, b] = value / theta[k, root + a * p + a]


@implements(draw_parameters, CovarianceHyper)
@lean_kernel
def draw_covariance(hyper, rng, theta, k):
    """The mean, by C A⁻ᵀ z / √W with z of normals; then Λ row by row in place of C."""
    p, room = hyper.features, hyper.bias.room
    mean, work, root = covariance.FIRST, covariance.FIRST + p, covariance.FIRST + 2 * p
    draw_root(hyper, rng, theta, k, room)
    for a in range(p - 1, -1, -1):
        x = rng.standard_normal()
        for c in range(a + 1, p):
            x -= room[p + c, a] * theta[k, work + c]
        theta[k, work + a] = x / room[p + a, a]
    for a in range(p):
        step = 0.0
        for b in range(a + 1):
            step += theta[k, root + a * p + b] * theta[k, work + b]
        theta[k, mean + a] += step / math.sqrt(theta[k, covariance.WEIGHT])
    for a in range(p):
        for b in range(p):
            total = 0.0
            for c in range(p):
                total += room[a, c] * room[b, c]
            theta[k, root + a * p + b] = total


@implements(add_to_offsets, CovarianceHyper)
@inline_kernel
def add_vector(hyper, theta, k, y, i):
    """w Λ, and w Λ v."""
    p, w = hyper.features, precision_of(hyper, i)
    root = covariance.FIRST + 2 * p
    for a in range(p):
        slope = 0.0
        for b in range(p):
            entry = w * theta[k, root + a * p + b]
            slope += entry * (feature_of(hyper, y, i, b) - theta[k, covariance.FIRST + b])
            add_precision(hyper, i, a, b, entry)
        add_gradient(hyper, i, a, slope)


@implements(squares_of, CovarianceHyper)
@inline_kernel
def squares_of_vector(hyper, theta, k, y, i):
    """vᵀ Λ v / s²."""
    p, root, total = hyper.features, covariance.FIRST + 2 * hyper.features, 0.0
    for a in range(p):
        v = feature_of(hyper, y, i, a) - theta[k, covariance.FIRST + a]
        for b in range(p):
            u = feature_of(hyper, y, i, b) - theta[k, covariance.FIRST + b]
            total += theta[k, root + a * p + b] * v * u
    return total * math.exp(-2.0 * log_scale_of(hyper, i))


@lean_kernel
def compare_experts(hyper, rng, data, state):
    """Draw all clusters' parameters, then what is learned of experts given these."""
    rebuild_rows(hyper, data, state)
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            draw_parameters(hyper, rng, state.theta, k)
    update_bias(rng, hyper, data, state)


@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update the law, how careless items are and how experts differ, each if due; returns whether
    any was."""
    learn = law_is_due(state) or short_law_is_due(hyper, state)
    compare, tails = bias_is_due(hyper, state), tails_are_due(hyper, state)
    if learn:
        update_law(hyper, rng, data, state)
    if compare:
        compare_experts(hyper, rng, data, state)
    if learn or compare:
        rebuild_rows(hyper, data, state)
    if tails:
        update_tails(rng, hyper)
    return learn or compare or tails


implements(likelihood.update_shared, NormalHyper)(update_shared)
implements(likelihood.update_shared, CovarianceHyper)(update_shared)
