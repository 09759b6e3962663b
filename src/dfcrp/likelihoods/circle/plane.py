"""Circles in a plane: features (x, y, log diameter) and the structured normal of the paper.

    Σ = [[a, 0, b], [0, a, b], [b, b, d]],   b = λ sqrt(a d / 2)

so with v = y − μ, β = b / a = λ sqrt(d / 2a) and s = d (1 − λ²)

    vᵀ Σ⁻¹ v = (v1² + v2²) / a + (v3 − β (v1 + v2))² / s,     log |Σ| = 2 log a + log s.

Priors given the cluster mean's log diameter: (λ + 1)/2 ~ Beta(aλ, bλ), μ ~ N(μ0, diag(σ0²)), and
for the variances a and d one of the laws of ``circle.kernel``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8, F8x2, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    ALIKE,
    NOWHERE,
    Bias,
    add_gradient,
    add_precision,
    add_to_offsets,
    log_noise_by,
    offset_by,
    precision_by,
    squares_of,
)
from dfcrp.likelihoods.circle import tolerance
from dfcrp.likelihoods.circle.covariance import CorrelationLaw, Spread, slice_coordinate
from dfcrp.likelihoods.circle.kernel import (
    BETA,
    INV_A,
    INV_S,
    LOG_2PI,
    LOG_A,
    LOG_D,
    LOG_NORM,
    MU_L,
    MU_X,
    MU_Y,
    UNSIZED,
    VAR_POSITION,
    VAR_SIZE,
    draw_lambda,
    draw_mean_of_members,
    draw_mean_of_one,
    features_of,
    log_marginal_at,
    log_marginal_of_members,
    log_variance_prior,
    moments_of,
    of_circles,
    slice_lambda,
    spread_of,
    squares_by,
    update_mean,
)
from dfcrp.likelihoods.contract import log_tilt
from dfcrp.likelihoods.tails import NORMAL_TAILS, Tails, log_scale_of


@of_circles
@frame
class CircleHyper(NamedTuple):
    """Hyperparameters; names follow the paper."""

    kappa_x: float
    eta_x: float
    tau_x: float
    kappa_d: float
    eta_d: float
    tau_d: float
    lambda_a: float
    lambda_b: float
    mu0_x: float
    mu0_y: float
    mu0_l: float
    var0_x: float
    var0_y: float
    var0_l: float
    floor: float
    learned: bool  # the second law instead of the paper's
    nu_x: float
    nu_d: float
    log_gamma: float  # log Γ(νx) + log Γ(νd)
    level: float  # l₀
    law: F8  # sx, gx, sd, gd if learned, what experts differ in; updated as a chain runs
    law_mean: F8
    law_sd: F8
    reference: F8  # what spares are drawn from: another value of ``law``
    follow: bool  # it follows the law, and all spares are drawn again in every scan
    log_beta: float  # log B(νx, t) + log B(νd, t)
    room: F8x2  # (n, ROOM): sums by cluster, while the law is updated
    bias: Bias = ALIKE  # how experts differ
    tails: Tails = NORMAL_TAILS  # how careless markings are
    sized: bool = True  # whether diameters differ at all


implements(likelihood.update_shared, CircleHyper)(tolerance.update_shared)


@inline_kernel
def corrected_by(hyper, law, y, i):
    """Marking i without its expert's offsets (x, y, log diameter), and the expert's r⁻²."""
    if not hyper.bias.on:
        return y[i, 0], y[i, 1], y[i, 2], 1.0
    v1, v2, v3 = y[i, 0], y[i, 1], y[i, 2]
    if hyper.bias.offsets != NOWHERE:
        v1 -= offset_by(hyper, law, i, 0)
        v2 -= offset_by(hyper, law, i, 1)
        v3 -= offset_by(hyper, law, i, 2)
    return v1, v2, v3, precision_by(hyper, law, i)


@inline_kernel
def corrected(hyper, y, i):
    """The same of a member, by the law as it is: its precision is that of its level, too."""
    y1, y2, y3, precision = corrected_by(hyper, hyper.law, y, i)
    if hyper.tails.on:
        precision *= math.exp(-2.0 * log_scale_of(hyper, i))
    return y1, y2, y3, precision


@implements(squares_by, CircleHyper)
@inline_kernel
def squares_of_marking(hyper, law, theta, k, y, i):
    """vᵀ Σ_k⁻¹ v / r², with experts who differ by a law, of the first level."""
    y1, y2, y3, precision = corrected_by(hyper, law, y, i)
    v1 = y1 - theta[k, MU_X]
    v2 = y2 - theta[k, MU_Y]
    z = y3 - theta[k, MU_L] - theta[k, BETA] * (v1 + v2)
    return precision * ((v1 * v1 + v2 * v2) * theta[k, INV_A] + z * z * theta[k, INV_S])


@inline_kernel
def log_density_of_member(hyper, theta, k, y, i):
    """log N(y_i; μ_k, Σ_k), i of the level that it has."""
    squares = squares_of_marking(hyper, hyper.law, theta, k, y, i)
    own = log_scale_of(hyper, i)
    norm = theta[k, LOG_NORM]
    norm -= features_of(hyper) * (log_noise_by(hyper, hyper.law, i) + own)
    return norm - 0.5 * math.exp(-2.0 * own) * squares


@implements(log_marginal_at, CircleHyper)
@inline_kernel
def log_marginal_of_marking(hyper, law, theta, k, y, i, log_scale):
    """log N(y_i; μ0, Σ0 + s² Σ_k): the mean integrated out."""
    y1, y2, y3, precision = corrected_by(hyper, law, y, i)
    precision *= math.exp(-2.0 * log_scale)
    a, d = theta[k, VAR_POSITION] / precision, theta[k, VAR_SIZE] / precision
    b = theta[k, BETA] * a
    p1, p2 = hyper.var0_x + a, hyper.var0_y + a
    v1, v2 = y1 - hyper.mu0_x, y2 - hyper.mu0_y
    if not hyper.sized:
        return -0.5 * (math.log(p1 * p2) + v1 * v1 / p1 + v2 * v2 / p2) - LOG_2PI
    z = y3 - hyper.mu0_l - b * (v1 / p1 + v2 / p2)
    s = hyper.var0_l + d - b * b * (1.0 / p1 + 1.0 / p2)
    return (
        -0.5 * (math.log(p1 * p2) + math.log(s) + v1 * v1 / p1 + v2 * v2 / p2 + z * z / s)
        - 1.5 * LOG_2PI
    )


@implements(draw_lambda, CircleHyper)
@inline_kernel
def draw_correlation(hyper, rng):
    """By its Beta law."""
    if not hyper.sized:
        return UNSIZED
    return 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b) - 1.0


@inline_kernel
def draw_mean(rng, hyper, theta, k, count, sum_x, sum_y, sum_l):
    """Draw (μx, μy, μl) from the normal conditional given Σ_k and the members' sums.

    ``count`` and the sums are weighted with the members' precisions.

    The precision P = Σ0⁻¹ + n Σ⁻¹ is factored as L Lᵀ by hand; the draw is P⁻¹ r + L⁻ᵀ z.
    """
    inv_a, beta, inv_s = theta[k, INV_A], theta[k, BETA], theta[k, INV_S]
    cross, slope = beta * beta * inv_s, -beta * inv_s
    p11 = 1.0 / hyper.var0_x + count * (inv_a + cross)
    p22 = 1.0 / hyper.var0_y + count * (inv_a + cross)
    p33 = 1.0 / hyper.var0_l + count * inv_s
    p12, p13 = count * cross, count * slope
    r1 = hyper.mu0_x / hyper.var0_x + (inv_a + cross) * sum_x + cross * sum_y + slope * sum_l
    r2 = hyper.mu0_y / hyper.var0_y + cross * sum_x + (inv_a + cross) * sum_y + slope * sum_l
    r3 = hyper.mu0_l / hyper.var0_l + slope * (sum_x + sum_y) + inv_s * sum_l
    l11 = math.sqrt(p11)
    l21, l31 = p12 / l11, p13 / l11
    l22 = math.sqrt(p22 - l21 * l21)
    l32 = (p13 - l31 * l21) / l22
    l33 = math.sqrt(p33 - l31 * l31 - l32 * l32)
    w1 = r1 / l11
    w2 = (r2 - l21 * w1) / l22
    w3 = (r3 - l31 * w1 - l32 * w2) / l33
    m3 = (w3 + rng.standard_normal()) / l33
    m2 = (w2 + rng.standard_normal() - l32 * m3) / l22
    m1 = (w1 + rng.standard_normal() - l21 * m2 - l31 * m3) / l11
    return m1, m2, m3


@implements(draw_mean_of_one, CircleHyper)
@inline_kernel
def draw_mean_of_marking(hyper, law, rng, y, i, precision, theta, k):
    """From its normal conditional."""
    y1, y2, y3, _ = corrected_by(hyper, law, y, i)
    m1, m2, m3 = draw_mean(
        rng, hyper, theta, k, precision, precision * y1, precision * y2, precision * y3
    )
    theta[k, MU_X], theta[k, MU_Y], theta[k, MU_L] = m1, m2, m3


@implements(draw_mean_of_members, CircleHyper)
@inline_kernel
def draw_mean_by_moments(hyper, rng, moments, theta, row):
    """From its normal conditional."""
    m1, m2, m3 = draw_mean(
        rng, hyper, theta, row, moments.weight, moments.sum_x, moments.sum_y, moments.sum_l
    )
    theta[row, MU_X], theta[row, MU_Y], theta[row, MU_L] = m1, m2, m3


@implements(spread_of, CircleHyper)
@inline_kernel
def spread_of_cluster(hyper, theta, k, y, state):
    """Second moments of cluster k's members about its current mean."""
    count, position, ww, w3, v33 = 0.0, 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i >= 0:
        y1, y2, y3, precision = corrected(hyper, y, i)
        v1, v2, v3 = y1 - theta[k, MU_X], y2 - theta[k, MU_Y], y3 - theta[k, MU_L]
        w = v1 + v2
        count += 1.0
        position += precision * (v1 * v1 + v2 * v2)
        ww += precision * (w * w)
        w3 += precision * (w * v3)
        v33 += precision * (v3 * v3)
        i = state.after[i]
    return Spread(count, position, ww, w3, v33)


@implements(update_mean, CircleHyper)
@lean_kernel
def update_mean_of_cluster(hyper, rng, prior, data, state, k):
    """Independence proposal from μ's normal conditional, accepted with p(Σ|μ*)/p(Σ|μ).

    Leaves p(μ_k | members, Σ_k) unchanged; returns whether it was accepted.
    """
    theta, y = state.theta, data.features
    count, sum_x, sum_y, sum_l = 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i >= 0:
        y1, y2, y3, precision = corrected(hyper, y, i)
        count += precision
        sum_x += precision * y1
        sum_y += precision * y2
        sum_l += precision * y3
        i = state.after[i]
    m1, m2, m3 = draw_mean(rng, hyper, theta, k, count, sum_x, sum_y, sum_l)
    log_a, log_d = theta[k, LOG_A], theta[k, LOG_D]
    log_ratio = log_variance_prior(hyper, m3, log_a, log_d) - log_variance_prior(
        hyper, theta[k, MU_L], log_a, log_d
    )
    log_ratio += log_tilt(prior, data, state, k, m3)
    log_ratio -= log_tilt(prior, data, state, k, theta[k, MU_L])
    if -rng.standard_exponential() < log_ratio:
        theta[k, MU_X], theta[k, MU_Y], theta[k, MU_L] = m1, m2, m3
        return True
    return False


@implements(slice_lambda, CircleHyper)
@inline_kernel
def slice_correlation(hyper, rng, given, lam, a, d):
    """Given log a and log d."""
    law = CorrelationLaw(hyper.lambda_a, hyper.lambda_b)
    return slice_coordinate(rng, law, given, 2, lam, 0.25, a, d)


@implements(likelihood.record_row, CircleHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """Write a cluster's parameters as stored with the draws."""
    out[row, 0], out[row, 1], out[row, 2] = theta[k, MU_X], theta[k, MU_Y], theta[k, MU_L]
    out[row, 3], out[row, 4] = theta[k, VAR_POSITION], theta[k, VAR_SIZE]
    out[row, 5] = theta[k, BETA] * theta[k, VAR_POSITION]
    if out.shape[1] > 6:  # far from the origin: what single precision cuts off
        out[row, 6], out[row, 7] = theta[k, MU_X] - out[row, 0], theta[k, MU_Y] - out[row, 1]


class CircleMoments(NamedTuple):
    """Members' sums and their spread about the mean, weighted with their precisions."""

    members: float
    weight: float
    sum_x: float
    sum_y: float
    sum_l: float
    position: float
    size: float


@implements(likelihood.log_attraction, CircleHyper)
@inline_kernel
def log_attraction(hyper, data, deal, side, m):
    """Log weight of dealing m to a side: its size times a density around its running mean."""
    count = deal.dealt[side]
    wider = 1.0 + 1.0 / count
    y1, y2, y3, _ = corrected(hyper, data.features, m)
    v1 = y1 - deal.sums[side, 0] / count
    v2 = y2 - deal.sums[side, 1] / count
    v3 = y3 - deal.sums[side, 2] / count
    a, d = deal.variance[0] * wider, deal.variance[1] * wider
    return math.log(count) - 1.5 * math.log(wider) - 0.5 * ((v1 * v1 + v2 * v2) / a + v3 * v3 / d)


@implements(likelihood.put_on_side, CircleHyper)
@inline_kernel
def put_on_side(hyper, data, deal, side, m):
    """Count m in the side's running mean."""
    y1, y2, y3, _ = corrected(hyper, data.features, m)
    deal.dealt[side] += 1.0
    deal.sums[side, 0] += y1
    deal.sums[side, 1] += y2
    deal.sums[side, 2] += y3


@implements(moments_of, CircleHyper)
@lean_kernel
def moments_of_cluster(hyper, y, state, k):
    """Moments of cluster k's members."""
    count, weight, sum_x, sum_y, sum_l = 0.0, 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        y1, y2, y3, precision = corrected(hyper, y, i)
        count += 1.0
        weight += precision
        sum_x += precision * y1
        sum_y += precision * y2
        sum_l += precision * y3
        i = state.after[i]
    position, size = 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        y1, y2, y3, precision = corrected(hyper, y, i)
        position += precision * ((y1 - sum_x / weight) ** 2 + (y2 - sum_y / weight) ** 2)
        size += precision * (y3 - sum_l / weight) ** 2
        i = state.after[i]
    return CircleMoments(count, weight, sum_x, sum_y, sum_l, position, size)


@implements(log_marginal_of_members, CircleHyper)
@lean_kernel
def log_marginal_of_cluster(hyper, y, state, k, theta, row, moments):
    """log p(members | Σ) with the mean integrated out: likelihood × prior / conditional at μ.

    The conditional's precision is P = Σ0⁻¹ + w Σ⁻¹, w the members' weight; its mean is where the
    gradient vanishes, so the exponent needs P and the gradient g at μ only:
    (μ − m)ᵀ P (μ − m) = gᵀ P⁻¹ g.
    """
    weight = moments.weight
    inv_a, beta, inv_s = theta[row, INV_A], theta[row, BETA], theta[row, INV_S]
    cross, slope = beta * beta * inv_s, -beta * inv_s
    d1 = moments.sum_x - weight * theta[row, MU_X]
    d2 = moments.sum_y - weight * theta[row, MU_Y]
    d3 = moments.sum_l - weight * theta[row, MU_L]
    e1 = theta[row, MU_X] - hyper.mu0_x
    e2 = theta[row, MU_Y] - hyper.mu0_y
    e3 = theta[row, MU_L] - hyper.mu0_l
    g1 = (inv_a + cross) * d1 + cross * d2 + slope * d3 - e1 / hyper.var0_x
    g2 = cross * d1 + (inv_a + cross) * d2 + slope * d3 - e2 / hyper.var0_y
    g3 = slope * (d1 + d2) + inv_s * d3 - e3 / hyper.var0_l
    l11 = math.sqrt(1.0 / hyper.var0_x + weight * (inv_a + cross))
    l21, l31 = weight * cross / l11, weight * slope / l11
    l22 = math.sqrt(1.0 / hyper.var0_y + weight * (inv_a + cross) - l21 * l21)
    l32 = (weight * slope - l31 * l21) / l22
    l33 = math.sqrt(1.0 / hyper.var0_l + weight * inv_s - l31 * l31 - l32 * l32)
    w1 = g1 / l11
    w2 = (g2 - l21 * w1) / l22
    w3 = (g3 - l31 * w1 - l32 * w2) / l33
    log_likelihood = 0.0
    i = state.head[k]
    while i != NONE:
        log_likelihood += log_density_of_member(hyper, theta, row, y, i)
        i = state.after[i]
    log_prior = -0.5 * (
        e1 * e1 / hyper.var0_x
        + e2 * e2 / hyper.var0_y
        + e3 * e3 / hyper.var0_l
        + math.log(hyper.var0_x * hyper.var0_y * hyper.var0_l)
    )
    log_conditional = math.log(l11 * l22 * l33) - 0.5 * (w1 * w1 + w2 * w2 + w3 * w3)
    return log_likelihood + log_prior - log_conditional


@implements(add_to_offsets, CircleHyper)
@inline_kernel
def add_circle(hyper, theta, k, y, i):
    """Offsets of x, y and log diameter."""
    y1, y2, y3, precision = corrected(hyper, y, i)
    inv_a, inv_s = precision * theta[k, INV_A], precision * theta[k, INV_S]
    beta = theta[k, BETA]
    v1, v2 = y1 - theta[k, MU_X], y2 - theta[k, MU_Y]
    z = y3 - theta[k, MU_L] - beta * (v1 + v2)
    along, across, slope = inv_a + beta * beta * inv_s, beta * beta * inv_s, -(beta * inv_s)
    add_precision(hyper, i, 0, 0, along)
    add_precision(hyper, i, 1, 1, along)
    add_precision(hyper, i, 2, 2, inv_s)
    add_precision(hyper, i, 0, 1, across)
    add_precision(hyper, i, 1, 0, across)
    for axis in range(2):
        add_precision(hyper, i, axis, 2, slope)
        add_precision(hyper, i, 2, axis, slope)
    add_gradient(hyper, i, 0, inv_a * v1 - beta * inv_s * z)
    add_gradient(hyper, i, 1, inv_a * v2 - beta * inv_s * z)
    add_gradient(hyper, i, 2, inv_s * z)


@implements(squares_of, CircleHyper)
@inline_kernel
def squares_of_circle(hyper, theta, k, y, i):
    """vᵀ Σ_k⁻¹ v / s²."""
    y1, y2, y3, _ = corrected(hyper, y, i)
    v1, v2 = y1 - theta[k, MU_X], y2 - theta[k, MU_Y]
    z = y3 - theta[k, MU_L] - theta[k, BETA] * (v1 + v2)
    squares = (v1 * v1 + v2 * v2) * theta[k, INV_A] + z * z * theta[k, INV_S]
    return squares * math.exp(-2.0 * log_scale_of(hyper, i))
