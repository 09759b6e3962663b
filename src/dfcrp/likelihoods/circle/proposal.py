"""Parameters for a circle cluster proposed from its members, with the density to correct for it.

With the mean integrated out and λ ignored, log a has the log density

    k t − τ e^t − (S / 2) e^−t,   k = shape − (n − 1),   S = Σ |position − mean|²,

whose mode and curvature are closed forms; log d likewise with (n − 1)/2. A normal at the mode,
a little wider, proposes each; λ comes from its prior and μ from its normal conditional.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle.kernel import (
    BETA,
    INV_A,
    INV_S,
    LAMBDA,
    LOG_2PI,
    LOG_A,
    LOG_D,
    MU_L,
    MU_X,
    MU_Y,
    UNSIZED,
    VAR_POSITION,
    VAR_SIZE,
    CircleHyper,
    complete_row,
    corrected,
    draw_mean,
    log_density_of_member,
    log_variance_prior,
    position_law,
    size_law,
)

#: Standard deviations of the proposal relative to the curvature at the mode.
WIDER = 1.2


class CircleMoments(NamedTuple):
    """Members' sums and their spread about the mean, weighted with their precisions."""

    members: float
    weight: float
    sum_x: float
    sum_y: float
    sum_l: float
    position: float
    size: float


@implements(likelihood.start_deal, CircleHyper)
@lean_kernel
def start_deal(hyper, data, deal, i, j):
    """Begin with i on one side and j on the other; variances are the prior's means."""
    _, _, first, _ = corrected(hyper, data.features, i)
    _, _, second, _ = corrected(hyper, data.features, j)
    level = 0.5 * (first + second)
    shape_a, rate_a = position_law(hyper, level)
    shape_d, rate_d = size_law(hyper, level)
    deal.variance[0], deal.variance[1] = shape_a / rate_a, shape_d / rate_d
    for side in range(2):
        deal.dealt[side] = 0.0
        for column in range(3):
            deal.sums[side, column] = 0.0
    put_on_side(hyper, data, deal, 0, i)
    put_on_side(hyper, data, deal, 1, j)


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


@lean_kernel
def moments_of(hyper, y, state, k):
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


@inline_kernel
def peak(k, rate, spread):
    """Mode of k t − rate e^t − (spread / 2) e^−t and a standard deviation around it."""
    at = (k + math.sqrt(k * k + 2.0 * rate * spread)) / (2.0 * rate)
    # With k < 0 and hardly any spread the difference above cancels; the same root, rearranged.
    if k < 0.0:
        at = spread / (math.sqrt(k * k + 2.0 * rate * spread) - k)
    at = max(at, 1e-9 / rate)
    return math.log(at), WIDER / math.sqrt(rate * at + 0.5 * spread / at)


class Peaks(NamedTuple):
    """Where the variances are proposed: mode and width of log a and of log d."""

    mode_a: float
    width_a: float
    mode_d: float
    width_d: float


@lean_kernel
def peaks(hyper, moments, level):
    """Of members at this mean log diameter; of circles anywhere, which have such moments."""
    shape_a, rate_a = position_law(hyper, level)
    shape_d, rate_d = size_law(hyper, level)
    mode_a, width_a = peak(shape_a - (moments.members - 1.0), rate_a, moments.position)
    mode_d, width_d = peak(shape_d - 0.5 * (moments.members - 1.0), rate_d, moments.size)
    return Peaks(mode_a, width_a, mode_d, width_d)


@inline_kernel
def propose_variances(rng, hyper, around, theta, row):
    """Draw a and d around their peaks."""
    theta[row, VAR_POSITION] = math.exp(around.mode_a + around.width_a * rng.standard_normal())
    theta[row, VAR_SIZE] = 1.0
    if hyper.sized:
        theta[row, VAR_SIZE] = math.exp(around.mode_d + around.width_d * rng.standard_normal())


@lean_kernel
def weight_of_variances(hyper, around, theta, row):
    """log of p(a, d) / (density with which ``propose_variances`` draws them)."""
    log_a, log_d = theta[row, LOG_A], theta[row, LOG_D]
    z_a = (log_a - around.mode_a) / around.width_a
    if not hyper.sized:
        value = 0.5 * (z_a * z_a + LOG_2PI) + math.log(around.width_a)
        return value + log_variance_prior(hyper, theta[row, MU_L], log_a, log_d)
    z_d = (log_d - around.mode_d) / around.width_d
    value = 0.5 * (z_a * z_a + z_d * z_d) + math.log(around.width_a * around.width_d) + LOG_2PI
    value += log_variance_prior(hyper, theta[row, MU_L], log_a, log_d)
    if not hyper.learned:
        value -= hyper.tau_x * theta[row, VAR_POSITION] + hyper.tau_d * theta[row, VAR_SIZE]
    return value


@implements(likelihood.propose_row, CircleHyper)
@lean_kernel
def propose_row(hyper, rng, y, state, k, theta, row):
    """Draw parameters for cluster k into ``theta[row]``."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    propose_variances(rng, hyper, around, theta, row)
    theta[row, LAMBDA] = UNSIZED
    if hyper.sized:
        theta[row, LAMBDA] = 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b) - 1.0
    complete_row(theta, row)
    m1, m2, m3 = draw_mean(
        rng, hyper, theta, row, moments.weight, moments.sum_x, moments.sum_y, moments.sum_l
    )
    theta[row, MU_X], theta[row, MU_Y], theta[row, MU_L] = m1, m2, m3


@lean_kernel
def log_marginal(hyper, y, state, k, theta, row, moments):
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


@implements(likelihood.row_weight, CircleHyper)
@lean_kernel
def row_weight(hyper, y, state, k, theta, row):
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ)."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    value = log_marginal(hyper, y, state, k, theta, row, moments)
    return value + weight_of_variances(hyper, around, theta, row)
