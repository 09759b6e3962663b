"""Parameters for a cluster on a sphere proposed from its members, as in ``circle.proposal``.

With S the length of the sum of n members' places and the mean integrated out,

    p(places | a) = (2πa)^−n exp(−(nR² − RS) / a) · a / (2RS),

so log a has the density there, with spread 2R(nR − S) = 2R n Q / (nR + S), where Q = Σ |y − ȳ|².
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import NOWHERE, log_noise_of
from dfcrp.likelihoods.circle.kernel import (
    LAMBDA,
    LOG_2PI,
    MU_L,
    UNSIZED,
    VAR_POSITION,
    VAR_SIZE,
    complete_row,
    position_law,
    size_law,
)
from dfcrp.likelihoods.circle.proposal import peaks, propose_variances, weight_of_variances
from dfcrp.likelihoods.circle.sphere import (
    SIZE,
    SphereHyper,
    X,
    Y,
    Z,
    corrected,
    draw_place,
    draw_size,
)


class SphereMoments(NamedTuple):
    """Members' sums, the length of that of places, and the spread of places and sizes.

    But for the first they are weighted with the members' precisions.
    """

    members: float
    weight: float
    log_noise: float  # of all members
    sum_x: float
    sum_y: float
    sum_z: float
    sum_l: float
    length: float
    position: float
    size: float


@implements(likelihood.put_on_side, SphereHyper)
@inline_kernel
def put_on_side(hyper, data, deal, side, m):
    """Count m in the side's running mean."""
    c1, c2, c3, size, _ = corrected(hyper, data.features, m)
    deal.dealt[side] += 1.0
    deal.sums[side, X] += c1
    deal.sums[side, Y] += c2
    deal.sums[side, Z] += c3
    deal.sums[side, SIZE] += size


@implements(likelihood.start_deal, SphereHyper)
@lean_kernel
def start_deal(hyper, data, deal, i, j):
    """Begin with i on one side and j on the other; variances are the prior's means."""
    _, _, _, first, _ = corrected(hyper, data.features, i)
    _, _, _, second, _ = corrected(hyper, data.features, j)
    level = 0.5 * (first + second)
    shape_a, rate_a = position_law(hyper, level)
    shape_d, rate_d = size_law(hyper, level)
    deal.variance[0], deal.variance[1] = shape_a / rate_a, shape_d / rate_d
    for side in range(2):
        deal.dealt[side] = 0.0
        for column in range(4):
            deal.sums[side, column] = 0.0
    put_on_side(hyper, data, deal, 0, i)
    put_on_side(hyper, data, deal, 1, j)


@implements(likelihood.log_attraction, SphereHyper)
@inline_kernel
def log_attraction(hyper, data, deal, side, m):
    """Log weight of dealing m to a side: its size times a density around its running mean."""
    count = deal.dealt[side]
    wider = 1.0 + 1.0 / count
    c1, c2, c3, size, _ = corrected(hyper, data.features, m)
    v1 = c1 - deal.sums[side, X] / count
    v2 = c2 - deal.sums[side, Y] / count
    v3 = c3 - deal.sums[side, Z] / count
    vl = size - deal.sums[side, SIZE] / count
    a, d = deal.variance[0] * wider, deal.variance[1] * wider
    chord = v1 * v1 + v2 * v2 + v3 * v3
    return math.log(count) - 1.5 * math.log(wider) - 0.5 * (chord / a + vl * vl / d)


@lean_kernel
def moments_of(hyper, y, state, k):
    """Moments of cluster k's members."""
    count, weight, log_noise = 0.0, 0.0, 0.0
    sum_x, sum_y, sum_z, sum_l = 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        c1, c2, c3, c4, precision = corrected(hyper, y, i)
        count += 1.0
        weight += precision
        log_noise += log_noise_of(hyper, i)
        sum_x += precision * c1
        sum_y += precision * c2
        sum_z += precision * c3
        sum_l += precision * c4
        i = state.after[i]
    around, size = 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        c1, c2, c3, c4, precision = corrected(hyper, y, i)
        around += precision * (c1 - sum_x / weight) ** 2
        around += precision * ((c2 - sum_y / weight) ** 2 + (c3 - sum_z / weight) ** 2)
        size += precision * (c4 - sum_l / weight) ** 2
        i = state.after[i]
    length = math.sqrt(sum_x * sum_x + sum_y * sum_y + sum_z * sum_z)
    position = 2.0 * hyper.radius * weight * around / (weight * hyper.radius + length)
    if hyper.bias.offsets != NOWHERE:
        # Places are not on the ground, but a little above it.
        position = around + (length - weight * hyper.radius) ** 2 / weight
    return SphereMoments(
        count, weight, log_noise, sum_x, sum_y, sum_z, sum_l, length, position, size
    )


@implements(likelihood.propose_row, SphereHyper)
@lean_kernel
def propose_row(hyper, rng, y, state, k, theta, row):
    """Draw parameters for cluster k into ``theta[row]``."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    propose_variances(rng, hyper, around, theta, row)
    theta[row, LAMBDA] = 0.0 if hyper.sized else UNSIZED
    complete_row(theta, row)
    draw_place(rng, hyper, theta, row, moments.sum_x, moments.sum_y, moments.sum_z)
    theta[row, MU_L] = draw_size(rng, hyper, theta, row, moments.weight, moments.sum_l)


@lean_kernel
def log_marginal(hyper, moments, a, d):
    """log p(members | a, d) with the mean integrated out."""
    n, weight = moments.members, moments.weight
    places = (
        (1.0 - n) * math.log(a)
        - n * LOG_2PI
        - 0.5 * moments.position / a
        - math.log(2.0 * hyper.radius * moments.length)
    )
    if not hyper.sized:
        return places - 2.0 * moments.log_noise
    wide = d + weight * hyper.var0_l
    v = moments.sum_l / weight - hyper.mu0_l
    sizes = -0.5 * (
        n * LOG_2PI
        + (n - 1.0) * math.log(d)
        + math.log(wide)
        + moments.size / d
        + weight * v * v / wide
    )
    return places + sizes - 3.0 * moments.log_noise


@implements(likelihood.row_weight, SphereHyper)
@lean_kernel
def row_weight(hyper, y, state, k, theta, row):
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ)."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    value = log_marginal(hyper, moments, theta[row, VAR_POSITION], theta[row, VAR_SIZE])
    return value + weight_of_variances(hyper, around, theta, row)
