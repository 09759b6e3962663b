"""Circles on a sphere of radius R: features (X, Y, log diameter, Z), with (X, Y, Z) of length R.

Around its mean m, also of length R, a marking's place has the von Mises-Fisher law of
concentration R² / a,

    p(y | m, a) = exp(−|y − m|² / 2a) / (2π a (1 − e^(−2R²/a))),

a normal law in the chord |y − m|. The last factor differs from 1 by less than a double can tell as
long as sqrt(a) is below a fifth of R, and is left out. m is uniform on the sphere, so given the
members it has a von Mises-Fisher law again, around their sum. The log diameter is independent of
the place, N(μ_l, d); the laws of a and d are those of ``circle.kernel``, and so are the columns of
a parameter row, with λ = 0 and one more for the third coordinate of m.

Where experts differ, offsets are to the east, to the north, both along the ground, and of the log
diameter. A marking at y, with directions ê and n̂ there, is then taken to be at c = y − e ê − n n̂,
so that the chord |c − m| is quadratic in the offsets and these are normal given the clusters. That
c lies above the ground by (e² + n²) / 2R, and that areas shrink or grow on the way,

    log(1 + n tan(latitude) / R) ≈ n tan / R − (n tan / R)² / 2,

matters where an offset is no longer small beside the way to the pole; the second is counted.

Parameters proposed from the members are as in ``circle.kernel``. With S the length of the sum of n
members' places and the mean integrated out,

    p(places | a) = (2πa)^−n exp(−(nR² − RS) / a) · a / (2RS),

so log a has the density there, with spread 2R(nR − S) = 2R n Q / (nR + S), where Q = Σ |y − ȳ|².
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
    log_noise_of,
    offset_by,
    offset_of,
    precision_by,
    squares_of,
)
from dfcrp.likelihoods.circle import kernel, tolerance
from dfcrp.likelihoods.circle.covariance import Spread
from dfcrp.likelihoods.circle.kernel import (
    INV_A,
    INV_S,
    LOG_2PI,
    LOG_A,
    LOG_D,
    MU_L,
    MU_X,
    MU_Y,
    SIZE,
    UNSIZED,
    VAR_POSITION,
    VAR_SIZE,
    draw_lambda,
    draw_mean_of_members,
    draw_mean_of_one,
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

#: A column more than in a plane.
MU_Z = kernel.WIDTH
WIDTH = kernel.WIDTH + 1
#: Columns of the features, besides ``SIZE``.
X, Y, Z = 0, 1, 3
#: Near a pole, where east and north lose their meaning, the tangent of the latitude ends here.
STEEPEST = 20.0


@of_circles
@frame
class SphereHyper(NamedTuple):
    """As for circles, but that there is no base measure of places: it is uniform."""

    kappa_x: float
    eta_x: float
    tau_x: float
    kappa_d: float
    eta_d: float
    tau_d: float
    lambda_a: float  # not used
    lambda_b: float  # not used
    mu0_l: float
    var0_l: float
    floor: float
    learned: bool
    nu_x: float
    nu_d: float
    log_gamma: float
    level: float
    law: F8
    law_mean: F8
    law_sd: F8
    reference: F8
    follow: bool
    log_beta: float
    room: F8x2
    radius: float  # R, in the unit of length that features have
    unit: float  # that unit, in km
    bias: Bias = ALIKE  # how experts differ: to the east, to the north, in log diameter
    tails: Tails = NORMAL_TAILS  # how careless markings are
    sized: bool = True  # whether diameters differ at all


implements(likelihood.update_shared, SphereHyper)(tolerance.update_shared)


@inline_kernel
def compass(hyper, y, i):
    """(e, f, across, up): east of marking i is (e, f, 0), north (−up f, up e, across)."""
    flat = math.sqrt(y[i, X] * y[i, X] + y[i, Y] * y[i, Y])
    flat = max(flat, 1e-9 * hyper.radius)  # at a pole there is no east
    return -y[i, Y] / flat, y[i, X] / flat, flat / hyper.radius, y[i, Z] / hyper.radius


@inline_kernel
def corrected_by(hyper, law, y, i):
    """Marking i's place and log diameter without its expert's offsets, and the expert's r⁻²."""
    c1, c2, c3, size = y[i, X], y[i, Y], y[i, Z], y[i, SIZE]
    if not hyper.bias.on:
        return c1, c2, c3, size, 1.0
    if hyper.bias.offsets != NOWHERE:
        east, north = offset_by(hyper, law, i, 0), offset_by(hyper, law, i, 1)
        e, f, across, up = compass(hyper, y, i)
        c1 -= east * e - north * up * f
        c2 -= east * f + north * up * e
        c3 -= north * across
        size -= offset_by(hyper, law, i, 2)
    return c1, c2, c3, size, precision_by(hyper, law, i)


@inline_kernel
def corrected(hyper, y, i):
    """The same of a member, by the law as it is: its precision is that of its level, too."""
    c1, c2, c3, size, precision = corrected_by(hyper, hyper.law, y, i)
    if hyper.tails.on:
        precision *= math.exp(-2.0 * log_scale_of(hyper, i))
    return c1, c2, c3, size, precision


@inline_kernel
def height_by(hyper, law, i):
    """How far above the ground the corrected place of marking i is."""
    if hyper.bias.offsets == NOWHERE:
        return 0.0
    east, north = offset_by(hyper, law, i, 0), offset_by(hyper, law, i, 1)
    square = east * east + north * north
    return square / (math.sqrt(hyper.radius * hyper.radius + square) + hyper.radius)


@inline_kernel
def squared_chord(theta, k, c1, c2, c3):
    """|c − m_k|²."""
    v1, v2, v3 = c1 - theta[k, MU_X], c2 - theta[k, MU_Y], c3 - theta[k, MU_Z]
    return v1 * v1 + v2 * v2 + v3 * v3


@implements(squares_by, SphereHyper)
@inline_kernel
def squares_of_marking(hyper, law, theta, k, y, i):
    """(|c − m_k|² / a_k + (l − μ_l)² / d_k) / r², with experts who differ by a law."""
    c1, c2, c3, size, precision = corrected_by(hyper, law, y, i)
    v = size - theta[k, MU_L]
    quadratic = squared_chord(theta, k, c1, c2, c3) * theta[k, INV_A] + v * v * theta[k, INV_S]
    return precision * quadratic


@implements(log_marginal_at, SphereHyper)
@inline_kernel
def log_marginal_of_marking(hyper, law, theta, k, y, i, log_scale):
    """log p(y_i | a, d) at a level, the mean integrated out: a uniform one leaves 1 / 4πR².

    Of a place at a height h it leaves R / (R + h) exp(−h² / 2a) of that.
    """
    _, _, _, size, precision = corrected_by(hyper, law, y, i)
    precision *= math.exp(-2.0 * log_scale)
    s = hyper.var0_l + theta[k, VAR_SIZE] / precision
    v = size - hyper.mu0_l
    place = -math.log(4.0 * math.pi * hyper.radius * hyper.radius)
    if hyper.bias.offsets != NOWHERE:
        height = height_by(hyper, law, i)
        place -= math.log1p(height / hyper.radius)
        place -= 0.5 * precision * height * height * theta[k, INV_A]
    if not hyper.sized:
        return place
    return place - 0.5 * (LOG_2PI + math.log(s) + v * v / s)


@implements(draw_lambda, SphereHyper)
@inline_kernel
def no_correlation(hyper, rng):
    """Place and size are independent."""
    return 0.0 if hyper.sized else UNSIZED


@implements(slice_lambda, SphereHyper)
@inline_kernel
def keep_lambda(hyper, rng, given, lam, a, d):
    """It stays zero."""
    return lam


@lean_kernel
def draw_place(rng, hyper, theta, k, sum_x, sum_y, sum_z):
    """Draw m_k given a_k and the sum of the members' places, weighted with precisions, exactly.

    With w the cosine of the angle to the sum, κ(1 − w) has an exponential law cut off at 2κ, and
    the direction around the sum is uniform.
    """
    radius = hyper.radius
    length = math.sqrt(sum_x * sum_x + sum_y * sum_y + sum_z * sum_z)
    s1, s2, s3 = sum_x / length, sum_y / length, sum_z / length
    kappa = radius * length * theta[k, INV_A]
    u = 1.0 - rng.random()
    # 1 − w, which keeps its digits where w itself is 1 but for rounding.
    short = min(-math.log(u + (1.0 - u) * math.exp(-2.0 * kappa)) / kappa, 2.0)
    aside = math.sqrt(short * (2.0 - short))
    # The axis farthest from s makes a frame of directions at right angles to it.
    if abs(s1) <= abs(s2) and abs(s1) <= abs(s3):
        e1, e2, e3 = 0.0, s3, -s2
    elif abs(s2) <= abs(s3):
        e1, e2, e3 = -s3, 0.0, s1
    else:
        e1, e2, e3 = s2, -s1, 0.0
    norm = math.sqrt(e1 * e1 + e2 * e2 + e3 * e3)
    e1, e2, e3 = e1 / norm, e2 / norm, e3 / norm
    angle = 2.0 * math.pi * rng.random()
    along, across = aside * math.cos(angle), aside * math.sin(angle)
    theta[k, MU_X] = radius * ((1.0 - short) * s1 + along * e1 + across * (s2 * e3 - s3 * e2))
    theta[k, MU_Y] = radius * ((1.0 - short) * s2 + along * e2 + across * (s3 * e1 - s1 * e3))
    theta[k, MU_Z] = radius * ((1.0 - short) * s3 + along * e3 + across * (s1 * e2 - s2 * e1))


@inline_kernel
def draw_size(rng, hyper, theta, k, count, sum_l):
    """Draw μ_l from its normal conditional given d_k and the members' sum of log diameters.

    ``count`` and the sum are weighted with the members' precisions.
    """
    precision = 1.0 / hyper.var0_l + count * theta[k, INV_S]
    mean = (hyper.mu0_l / hyper.var0_l + sum_l * theta[k, INV_S]) / precision
    return mean + rng.standard_normal() / math.sqrt(precision)


@implements(draw_mean_of_one, SphereHyper)
@inline_kernel
def draw_mean_of_marking(hyper, law, rng, y, i, precision, theta, k):
    """The place, then the size."""
    c1, c2, c3, size, _ = corrected_by(hyper, law, y, i)
    draw_place(rng, hyper, theta, k, precision * c1, precision * c2, precision * c3)
    theta[k, MU_L] = draw_size(rng, hyper, theta, k, precision, precision * size)


@implements(draw_mean_of_members, SphereHyper)
@inline_kernel
def draw_mean_by_moments(hyper, rng, moments, theta, row):
    """The place, then the size."""
    draw_place(rng, hyper, theta, row, moments.sum_x, moments.sum_y, moments.sum_z)
    theta[row, MU_L] = draw_size(rng, hyper, theta, row, moments.weight, moments.sum_l)


@implements(spread_of, SphereHyper)
@inline_kernel
def spread_of_cluster(hyper, theta, k, y, state):
    """Second moments of cluster k's members about its current mean, of places by chords."""
    count, position, v33 = 0.0, 0.0, 0.0
    i = state.head[k]
    while i >= 0:
        c1, c2, c3, size, precision = corrected(hyper, y, i)
        v = size - theta[k, MU_L]
        count += 1.0
        position += precision * squared_chord(theta, k, c1, c2, c3)
        v33 += precision * (v * v)
        i = state.after[i]
    return Spread(count, position, 0.0, 0.0, v33)


@implements(update_mean, SphereHyper)
@lean_kernel
def update_mean_of_cluster(hyper, rng, prior, data, state, k):
    """The place from its conditional; μ_l as for circles, accepted with p(a, d|μ*)/p(a, d|μ)."""
    theta, y = state.theta, data.features
    count, sum_x, sum_y, sum_z, sum_l = 0.0, 0.0, 0.0, 0.0, 0.0
    i = state.head[k]
    while i >= 0:
        c1, c2, c3, size, precision = corrected(hyper, y, i)
        count += precision
        sum_x += precision * c1
        sum_y += precision * c2
        sum_z += precision * c3
        sum_l += precision * size
        i = state.after[i]
    draw_place(rng, hyper, theta, k, sum_x, sum_y, sum_z)
    new, old = draw_size(rng, hyper, theta, k, count, sum_l), theta[k, MU_L]
    log_a, log_d = theta[k, LOG_A], theta[k, LOG_D]
    log_ratio = log_variance_prior(hyper, new, log_a, log_d)
    log_ratio -= log_variance_prior(hyper, old, log_a, log_d)
    log_ratio += log_tilt(prior, data, state, k, new) - log_tilt(prior, data, state, k, old)
    if -rng.standard_exponential() < log_ratio:
        theta[k, MU_L] = new
        return True
    return False


@implements(likelihood.record_row, SphereHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """Longitude and latitude in degrees, log diameter of km, variances in km² and log units.

    A single-precision longitude would be off by hundreds of metres on the Moon; what it lacks
    comes in columns of its own.
    """
    x, y, z = theta[k, MU_X], theta[k, MU_Y], theta[k, MU_Z]
    longitude = math.degrees(math.atan2(y, x))
    latitude = math.degrees(math.atan2(z, math.sqrt(x * x + y * y)))
    out[row, 0], out[row, 1] = longitude, latitude
    out[row, 2] = theta[k, MU_L] + math.log(hyper.unit)
    out[row, 3] = theta[k, VAR_POSITION] * hyper.unit * hyper.unit
    out[row, 4], out[row, 5] = theta[k, VAR_SIZE], 0.0
    out[row, 6], out[row, 7] = longitude - out[row, 0], latitude - out[row, 1]


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


@implements(moments_of, SphereHyper)
@lean_kernel
def moments_of_cluster(hyper, y, state, k):
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


@implements(log_marginal_of_members, SphereHyper)
@lean_kernel
def log_marginal_of_cluster(hyper, y, state, k, theta, row, moments):
    """log p(members | a, d) with the mean integrated out."""
    a, d = theta[row, VAR_POSITION], theta[row, VAR_SIZE]
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


@implements(add_to_offsets, SphereHyper)
@inline_kernel
def add_on_sphere(hyper, theta, k, y, i):
    """Offsets to the east, to the north, and of log diameter."""
    c1, c2, c3, size, precision = corrected(hyper, y, i)
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
    c1, c2, c3, size, _ = corrected(hyper, y, i)
    v1, v2, v3 = c1 - theta[k, MU_X], c2 - theta[k, MU_Y], c3 - theta[k, MU_Z]
    v = size - theta[k, MU_L]
    squares = (v1 * v1 + v2 * v2 + v3 * v3) * theta[k, INV_A] + v * v * theta[k, INV_S]
    return squares * math.exp(-2.0 * log_scale_of(hyper, i))
