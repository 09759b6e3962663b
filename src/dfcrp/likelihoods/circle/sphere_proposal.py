"""Parameters for a cluster on a sphere proposed from its members, as in ``circle_proposal``.

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
from dfcrp.likelihoods.circle.kernel import (
    LAMBDA,
    LOG_2PI,
    MU_L,
    VAR_POSITION,
    VAR_SIZE,
    complete_row,
    position_law,
    size_law,
)
from dfcrp.likelihoods.circle.proposal import peaks, propose_variances, weight_of_variances
from dfcrp.likelihoods.circle.sphere import SIZE, SphereHyper, X, Y, Z, draw_place, draw_size


class SphereMoments(NamedTuple):
    """Members' sums, the length of the sum of places, and the spread of places and sizes."""

    members: float
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
    deal.dealt[side] += 1.0
    for column in range(4):
        deal.sums[side, column] += data.features[m, column]


@implements(likelihood.start_deal, SphereHyper)
@lean_kernel
def start_deal(hyper, data, deal, i, j):
    """Begin with i on one side and j on the other; variances are the prior's means."""
    level = 0.5 * (data.features[i, SIZE] + data.features[j, SIZE])
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
    v1 = data.features[m, X] - deal.sums[side, X] / count
    v2 = data.features[m, Y] - deal.sums[side, Y] / count
    v3 = data.features[m, Z] - deal.sums[side, Z] / count
    vl = data.features[m, SIZE] - deal.sums[side, SIZE] / count
    a, d = deal.variance[0] * wider, deal.variance[1] * wider
    chord = v1 * v1 + v2 * v2 + v3 * v3
    return math.log(count) - 1.5 * math.log(wider) - 0.5 * (chord / a + vl * vl / d)


@lean_kernel
def moments_of(hyper, y, state, k):
    """Moments of cluster k's members."""
    count, sum_x, sum_y, sum_z, sum_l = 0.0, 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        count += 1.0
        sum_x += y[i, X]
        sum_y += y[i, Y]
        sum_z += y[i, Z]
        sum_l += y[i, SIZE]
        i = state.after[i]
    around, size = 0.0, 0.0
    i = state.head[k]
    while i != NONE:
        around += (y[i, X] - sum_x / count) ** 2
        around += (y[i, Y] - sum_y / count) ** 2 + (y[i, Z] - sum_z / count) ** 2
        size += (y[i, SIZE] - sum_l / count) ** 2
        i = state.after[i]
    length = math.sqrt(sum_x * sum_x + sum_y * sum_y + sum_z * sum_z)
    position = 2.0 * hyper.radius * count * around / (count * hyper.radius + length)
    return SphereMoments(count, sum_x, sum_y, sum_z, sum_l, length, position, size)


@implements(likelihood.propose_row, SphereHyper)
@lean_kernel
def propose_row(hyper, rng, y, state, k, theta, row):
    """Draw parameters for cluster k into ``theta[row]``."""
    moments = moments_of(hyper, y, state, k)
    propose_variances(rng, peaks(hyper, moments, moments.sum_l / moments.members), theta, row)
    theta[row, LAMBDA] = 0.0
    complete_row(theta, row)
    draw_place(rng, hyper, theta, row, moments.sum_x, moments.sum_y, moments.sum_z)
    theta[row, MU_L] = draw_size(rng, hyper, theta, row, moments.members, moments.sum_l)


@lean_kernel
def log_marginal(hyper, moments, a, d):
    """log p(members | a, d) with the mean integrated out."""
    n = moments.members
    places = (
        (1.0 - n) * math.log(a)
        - n * LOG_2PI
        - 0.5 * moments.position / a
        - math.log(2.0 * hyper.radius * moments.length)
    )
    wide = d + n * hyper.var0_l
    v = moments.sum_l / n - hyper.mu0_l
    sizes = -0.5 * (
        n * LOG_2PI + (n - 1.0) * math.log(d) + math.log(wide) + moments.size / d + n * v * v / wide
    )
    return places + sizes


@implements(likelihood.row_weight, SphereHyper)
@lean_kernel
def row_weight(hyper, y, state, k, theta, row):
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ)."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.members)
    value = log_marginal(hyper, moments, theta[row, VAR_POSITION], theta[row, VAR_SIZE])
    return value + weight_of_variances(hyper, around, theta, row)
