"""How experts differ, learned from all clusters: updates of their offsets and noise factors.

Given the clusters, the likelihood of expert f's offsets b_f is normal, with the precision Σ w Σ_k⁻¹
over f's markings, w = r_f⁻², and the gradient Σ w Σ_k⁻¹ (y − b_f − μ_k). Shifting all experts alike
and all clusters against it would change nothing, so the offsets are held at Σ_f s_f b_f = 0, where
s_f is f's share of the markings: b_f is relative to the mean marking. The prior is a normal for
each expert, given that. One coordinate of all experts is drawn at once: independent normals with
precisions p_f, then conditioned on their sum,

    b_f − (s_f / p_f) (Σ_e s_e b_e) / (Σ_e s_e² / p_e).

The log noise factors t_f, held at Σ_f s_f t_f = 0 as all could grow while the clusters' variances
shrink, have with Q_f = Σ vᵀ Σ_k⁻¹ v over the n_f markings of f, v = y − b_f − μ_k, the log density

    −3 n_f t_f − exp(−2 t_f) Q_f / 2 − t_f² / 2σ²,

and are moved two at a time, against each other.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import tolerance
from dfcrp.likelihoods.circle.bias import (
    BEFORE,
    COUNT,
    GRADIENT_L,
    GRADIENT_X,
    GRADIENT_Y,
    LL,
    NOWHERE,
    SHARE,
    WORK_COLUMNS,
    XL,
    XX,
    XY,
    corrected,
)
from dfcrp.likelihoods.circle.kernel import BETA, INV_A, INV_S, MU_L, MU_X, MU_Y, CircleHyper
from dfcrp.likelihoods.law import law_is_due

#: On large data, law and bias are updated once in so many scans: more often than the law alone, as
#: they wait for each other.
PERIOD = 2
#: How often each noise factor is moved in an update: against few others each time, at little cost.
NOISE_ROUNDS = 4
#: Where ``gather_squares`` puts Q_f: in place of a sum that is no longer needed.
SQUARES = XX


@inline_kernel
def clear_sums(work):
    """Set the sums over markings to zero."""
    for f in range(work.shape[0]):
        for column in range(XX, WORK_COLUMNS):
            work[f, column] = 0.0


@lean_kernel
def gather_offsets(hyper, data, state):
    """For each expert: Σ w Σ_k⁻¹, and the gradient of the likelihood in the offsets."""
    theta, work = state.theta, hyper.bias.work
    clear_sums(work)
    for i in range(state.label.shape[0]):
        k, f = state.label[i], hyper.bias.expert[i]
        y1, y2, y3, precision = corrected(hyper, data.features, i)
        inv_a, inv_s = precision * theta[k, INV_A], precision * theta[k, INV_S]
        beta = theta[k, BETA]
        v1, v2 = y1 - theta[k, MU_X], y2 - theta[k, MU_Y]
        z = y3 - theta[k, MU_L] - beta * (v1 + v2)
        work[f, XX] += inv_a + beta * beta * inv_s
        work[f, XY] += beta * beta * inv_s
        work[f, XL] -= beta * inv_s
        work[f, LL] += inv_s
        work[f, GRADIENT_X] += inv_a * v1 - beta * inv_s * z
        work[f, GRADIENT_Y] += inv_a * v2 - beta * inv_s * z
        work[f, GRADIENT_L] += inv_s * z


@inline_kernel
def offset_precision(hyper, f, axis):
    """Precision of one offset of expert f, given the others."""
    sd = hyper.bias.offset_sd[axis]
    return hyper.bias.work[f, XX if axis < 2 else LL] + 1.0 / (sd * sd)


@lean_kernel
def draw_axis(rng, hyper, axis):
    """Draw one coordinate of all experts' offsets, given their gradients; these are kept."""
    law, work = hyper.law, hyper.bias.work
    sd = hyper.bias.offset_sd[axis]
    total, variance = 0.0, 0.0
    for f in range(work.shape[0]):
        at = hyper.bias.offsets + 3 * f + axis
        precision = offset_precision(hyper, f, axis)
        work[f, BEFORE] = law[at]
        law[at] += (work[f, GRADIENT_X + axis] - law[at] / (sd * sd)) / precision
        law[at] += rng.standard_normal() / math.sqrt(precision)
        total += work[f, SHARE] * law[at]
        variance += work[f, SHARE] * work[f, SHARE] / precision
    for f in range(work.shape[0]):
        at = hyper.bias.offsets + 3 * f + axis
        law[at] -= work[f, SHARE] / offset_precision(hyper, f, axis) * total / variance
        step = law[at] - work[f, BEFORE]
        # The gradients along the other axes, now that this offset has moved.
        if axis == 0:
            work[f, GRADIENT_Y] -= work[f, XY] * step
        else:
            work[f, GRADIENT_X] -= work[f, XY if axis == 1 else XL] * step
            if axis == 2:
                work[f, GRADIENT_Y] -= work[f, XL] * step
        if axis < 2:
            work[f, GRADIENT_L] -= work[f, XL] * step


@lean_kernel
def gather_squares(hyper, data, state):
    """For each expert: Q_f, the sum of vᵀ Σ_k⁻¹ v over the markings."""
    theta, work = state.theta, hyper.bias.work
    clear_sums(work)
    for i in range(state.label.shape[0]):
        k = state.label[i]
        y1, y2, y3, _ = corrected(hyper, data.features, i)
        v1, v2 = y1 - theta[k, MU_X], y2 - theta[k, MU_Y]
        z = y3 - theta[k, MU_L] - theta[k, BETA] * (v1 + v2)
        squares = (v1 * v1 + v2 * v2) * theta[k, INV_A] + z * z * theta[k, INV_S]
        work[hyper.bias.expert[i], SQUARES] += squares


@inline_kernel
def log_noise_density(hyper, f, value):
    """log density of t_f, up to a constant."""
    z = value / hyper.bias.noise_sd
    count, squares = hyper.bias.work[f, COUNT], hyper.bias.work[f, SQUARES]
    return -3.0 * count * value - 0.5 * math.exp(-2.0 * value) * squares - 0.5 * z * z


@inline_kernel
def log_noise_moved(hyper, f, e, along_f, along_e, step):
    """The same of t_f and t_e, moved by ``step`` along a direction."""
    at = hyper.bias.noise
    return log_noise_density(hyper, f, hyper.law[at + f] + along_f * step) + log_noise_density(
        hyper, e, hyper.law[at + e] + along_e * step
    )


@lean_kernel
def slice_noise(rng, hyper, f, e):
    """One slice update of t_f against t_e, their weighted sum held."""
    law, work, at = hyper.law, hyper.bias.work, hyper.bias.noise
    both = work[f, SHARE] + work[e, SHARE]
    along_f, along_e = work[e, SHARE] / both, -work[f, SHARE] / both
    # About two standard deviations, if both had many markings and little else to go by.
    known = 6.0 * (along_f * along_f * work[f, COUNT] + along_e * along_e * work[e, COUNT])
    width = 2.0 / math.sqrt(known + 1.0 / (hyper.bias.noise_sd * hyper.bias.noise_sd))
    level = log_noise_moved(hyper, f, e, along_f, along_e, 0.0) - rng.standard_exponential()
    low = -width * rng.random()
    high = low + width
    while log_noise_moved(hyper, f, e, along_f, along_e, low) > level:
        low -= width
    while log_noise_moved(hyper, f, e, along_f, along_e, high) > level:
        high += width
    while high - low > 1e-14:
        step = low + (high - low) * rng.random()
        if log_noise_moved(hyper, f, e, along_f, along_e, step) > level:
            law[at + f] += along_f * step
            law[at + e] += along_e * step
            return
        if step < 0.0:
            low = step
        else:
            high = step


@lean_kernel
def update_offsets(rng, hyper, data, state):
    """Draw all offsets, axis by axis; leaves p(offsets | the rest) unchanged."""
    gather_offsets(hyper, data, state)
    for axis in range(3):
        draw_axis(rng, hyper, axis)


@lean_kernel
def update_noise(rng, hyper, data, state):
    """Move each noise factor against random others; leaves p(noise | the rest) unchanged."""
    gather_squares(hyper, data, state)
    experts = hyper.bias.work.shape[0]
    if experts == 1:
        return
    for _ in range(NOISE_ROUNDS):
        for f in range(experts):
            e = int(rng.random() * (experts - 1))
            slice_noise(rng, hyper, f, e if e < f else e + 1)


@lean_kernel
def update_bias(rng, hyper, data, state):
    """What is learned of how experts differ; the caller must draw all spares again."""
    if hyper.bias.offsets != NOWHERE:
        update_offsets(rng, hyper, data, state)
    if hyper.bias.noise != NOWHERE:
        update_noise(rng, hyper, data, state)


@implements(likelihood.update_shared, CircleHyper)
@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update the law, and how experts differ, if learned and due; returns whether anything was."""
    if not hyper.bias.on:
        return tolerance.update_shared(hyper, rng, data, state)
    if state.scans[0] % PERIOD != 0 and not law_is_due(state):
        return False
    if hyper.learned:
        tolerance.update_law(rng, hyper, data, state)
    update_bias(rng, hyper, data, state)
    return True
