"""What circles, in a plane and on a sphere, tell of experts who differ (``likelihoods.bias``).

In a plane Σ_k is that of ``circle.kernel``. On a sphere offsets are to the east, to the north, both
along the ground, and of the log diameter. A marking at y, with directions ê and n̂ there, is then
taken to be at c = y − e ê − n n̂, so that the chord |c − m| is quadratic in the offsets and these
are normal given the clusters. That c lies above the ground by (e² + n²) / 2R, and that areas
shrink or grow on the way,

    log(1 + n tan(latitude) / R) ≈ n tan / R − (n tan / R)² / 2,

matters where an offset is no longer small beside the way to the pole; the second is counted.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    add_gradient,
    add_precision,
    add_to_offsets,
    bias_is_due,
    offset_of,
    squares_of,
    update_bias,
)
from dfcrp.likelihoods.circle import sphere, tolerance
from dfcrp.likelihoods.circle.kernel import (
    BETA,
    INV_A,
    INV_S,
    MU_L,
    MU_X,
    MU_Y,
    CircleHyper,
    corrected,
)
from dfcrp.likelihoods.circle.sphere import MU_Z, SphereHyper, compass
from dfcrp.likelihoods.tails import log_scale_of, tails_are_due, update_tails

#: Near a pole, where east and north lose their meaning, the tangent of the latitude ends here.
STEEPEST = 20.0


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


@implements(add_to_offsets, SphereHyper)
@inline_kernel
def add_on_sphere(hyper, theta, k, y, i):
    """Offsets to the east, to the north, and of log diameter."""
    c1, c2, c3, size, precision = sphere.corrected(hyper, y, i)
    inv_a, inv_s = precision * theta[k, INV_A], precision * theta[k, INV_S]
    v1, v2, v3 = c1 - theta[k, MU_X], c2 - theta[k, MU_Y], c3 - theta[k, MU_Z]
    e, f, across, up = compass(hyper, y, i)
    add_gradient(hyper, i, 0, inv_a * (v1 * e + v2 * f))
    add_gradient(hyper, i, 1, inv_a * (v3 * across - up * (v1 * f - v2 * e)))
    add_gradient(hyper, i, 2, inv_s * (size - theta[k, MU_L]))
    add_precision(hyper, i, 0, 0, inv_a)
    add_precision(hyper, i, 1, 1, inv_a)
    add_precision(hyper, i, 2, 2, inv_s)
    steep = min(max(up / across, -STEEPEST), STEEPEST) / hyper.radius
    add_gradient(hyper, i, 1, steep - steep * steep * offset_of(hyper, i, 1))
    add_precision(hyper, i, 1, 1, steep * steep)


@implements(squares_of, SphereHyper)
@inline_kernel
def squares_on_sphere(hyper, theta, k, y, i):
    """(|c − m|² / a + (l − μ_l)² / d) / s²."""
    c1, c2, c3, size, _ = sphere.corrected(hyper, y, i)
    v1, v2, v3 = c1 - theta[k, MU_X], c2 - theta[k, MU_Y], c3 - theta[k, MU_Z]
    v = size - theta[k, MU_L]
    squares = (v1 * v1 + v2 * v2 + v3 * v3) * theta[k, INV_A] + v * v * theta[k, INV_S]
    return squares * math.exp(-2.0 * log_scale_of(hyper, i))


@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update the law, how experts differ and how careless markings are, if due; returns whether
    spares must be drawn."""
    compare, tails = bias_is_due(hyper, state), tails_are_due(hyper, state)
    if not (hyper.learned or compare or tails):
        return False
    if not (compare or tails):
        before = tolerance.tolerances_of(hyper)
        tolerance.update_law(rng, hyper, data, state)
        return tolerance.account_for_tolerances(hyper, data, state, before)
    if hyper.learned:
        tolerance.update_law(rng, hyper, data, state)
    if compare:
        update_bias(rng, hyper, data, state)
    if tails:
        update_tails(rng, hyper)
    return tolerance.account_for_law(hyper, data, state)


implements(likelihood.update_shared, CircleHyper)(update_shared)
implements(likelihood.update_shared, SphereHyper)(update_shared)
