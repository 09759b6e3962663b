"""Circles on a sphere of radius R: features (X, Y, log diameter, Z), with (X, Y, Z) of length R.

Around its mean m, also of length R, a marking's place has the von Mises-Fisher law of
concentration R² / a,

    p(y | m, a) = exp(−|y − m|² / 2a) / (2π a (1 − e^(−2R²/a))),

a normal law in the chord |y − m|. The last factor differs from 1 by less than a double can tell as
long as sqrt(a) is below a fifth of R, and is left out. m is uniform on the sphere, so given the
members it has a von Mises-Fisher law again, around their sum. The log diameter is independent of
the place, N(μ_l, d); the laws of a and d are those of ``circle``, and so are the columns of a
parameter row, with λ = 0 and one more for the third coordinate of m.

Where experts differ, y stands for a marking without its expert's offsets (``circle.bias``), and a
and d are a / precision and d / precision. Careless markings are as in ``circle``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8, F8x2, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    ALIKE,
    NOWHERE,
    Bias,
    log_noise_by,
    offset_by,
    precision_by,
)
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle.covariance import (
    Conditional,
    CorrelationLaw,
    Spread,
    slice_coordinate,
)
from dfcrp.likelihoods.circle.kernel import (
    INV_A,
    INV_S,
    LAMBDA,
    LOG_2PI,
    LOG_A,
    LOG_D,
    LOG_NORM,
    MU_L,
    MU_X,
    MU_Y,
    RENEWAL,
    UNSIZED,
    VAR_POSITION,
    VAR_SIZE,
    complete_row,
    draw_variances,
    features_of,
    log_drawn_variances,
    log_variance_prior,
    position_law,
    size_law,
    spread_of,
)
from dfcrp.likelihoods.tails import (
    LOG_WIDE,
    LOG_WIDEST,
    NORMAL_TAILS,
    Tails,
    draw_level,
    log_normal_tail,
    log_scale_of,
    log_sum,
    settle_normal,
    shares_by,
)
from dfcrp.priors.contract import log_tilt

MU_Z = circle.WIDTH
WIDTH = circle.WIDTH + 1
#: Columns of the features.
X, Y, SIZE, Z = range(4)


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


likelihood.of_chain.register(SphereHyper, circle.of_chain)


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


@inline_kernel
def squares_by(hyper, law, theta, k, y, i):
    """(|c − m_k|² / a_k + (l − μ_l)² / d_k) / r², with experts who differ by a law."""
    c1, c2, c3, size, precision = corrected_by(hyper, law, y, i)
    v = size - theta[k, MU_L]
    quadratic = squared_chord(theta, k, c1, c2, c3) * theta[k, INV_A] + v * v * theta[k, INV_S]
    return precision * quadratic


@inline_kernel
def log_density_by(hyper, law, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i, with experts who differ by a law."""
    squares = squares_by(hyper, law, theta, k, y, i)
    norm = theta[k, LOG_NORM] - features_of(hyper) * log_noise_by(hyper, law, i)
    if hyper.tails.on:
        return norm + log_normal_tail(hyper, law, features_of(hyper), squares)
    return norm - 0.5 * squares


@implements(likelihood.log_density, SphereHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i."""
    return log_density_by(hyper, hyper.law, theta, k, y, i)


@implements(likelihood.settle, SphereHyper)
@inline_kernel
def settle(hyper, rng, theta, k, y, i, alone):
    """Draw the level of marking i given θ_k."""
    if hyper.tails.on:
        squares = squares_by(hyper, hyper.law, theta, k, y, i)
        settle_normal(hyper, rng, i, features_of(hyper), squares)


@inline_kernel
def log_marginal_at(hyper, law, theta, k, y, i, log_scale):
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


@inline_kernel
def log_marginal_levels(hyper, law, theta, k, y, i):
    """log of a level's share times ``log_marginal_at`` it, of all three."""
    plain, wide, widest = shares_by(hyper, law)
    return (
        math.log(plain) + log_marginal_at(hyper, law, theta, k, y, i, 0.0),
        math.log(wide) + log_marginal_at(hyper, law, theta, k, y, i, LOG_WIDE),
        math.log(widest) + log_marginal_at(hyper, law, theta, k, y, i, LOG_WIDEST),
    )


@inline_kernel
def log_marginal_given_variances(hyper, law, theta, k, y, i):
    """log p(y_i | a, d), whatever the level of i."""
    if not hyper.tails.on:
        return log_marginal_at(hyper, law, theta, k, y, i, 0.0)
    first, wide, widest = log_marginal_levels(hyper, law, theta, k, y, i)
    return log_sum(first, wide, widest)


@inline_kernel
def weight_drawn_by(hyper, law, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i): as for circles."""
    _, _, _, size, _ = corrected_by(hyper, law, y, i)
    log_a, log_d = theta[k, LOG_A], theta[k, LOG_D]
    value = (
        log_marginal_given_variances(hyper, law, theta, k, y, i)
        + log_variance_prior(hyper, theta[k, MU_L], log_a, log_d)
        - log_drawn_variances(hyper, law, size, log_a, log_d)
    )
    if hyper.bias.on or hyper.tails.on:
        value += log_density(hyper, theta, k, y, i) - log_density_by(hyper, law, theta, k, y, i)
    return value


@implements(likelihood.opening_weight, SphereHyper)
@inline_kernel
def opening_weight(hyper, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k."""
    return weight_drawn_by(hyper, hyper.reference, theta, k, y, i)


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


@lean_kernel
def draw_row_by(hyper, law, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i), q by a law, into row k."""
    c1, c2, c3, size, precision = corrected_by(hyper, law, y, i)
    draw_variances(hyper, law, rng, size, theta, k)
    theta[k, LAMBDA] = 0.0 if hyper.sized else UNSIZED
    complete_row(theta, k)
    if hyper.tails.on:
        first, wide, widest = log_marginal_levels(hyper, law, theta, k, y, i)
        precision *= math.exp(-2.0 * draw_level(rng, first, wide, widest))
    draw_place(rng, hyper, theta, k, precision * c1, precision * c2, precision * c3)
    theta[k, MU_L] = draw_size(rng, hyper, theta, k, precision, precision * size)


@implements(likelihood.open_cluster, SphereHyper)
@lean_kernel
def open_cluster(hyper, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i) into row k and return its opening weight."""
    draw_row_by(hyper, hyper.reference, rng, y, i, theta, k)
    return opening_weight(hyper, theta, k, y, i)


@implements(spread_of, SphereHyper)
@inline_kernel
def spread_of_sphere(hyper, theta, k, y, state):
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


@lean_kernel
def update_mean(hyper, rng, prior, data, state, k):
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


@lean_kernel
def update_variances(hyper, rng, data, state, k):
    """Slice updates of log a and log d; leaves p(a, d | members, mean) unchanged."""
    theta = state.theta
    shape_a, rate_a = position_law(hyper, theta[k, MU_L])
    shape_d, rate_d = size_law(hyper, theta[k, MU_L])
    spread = spread_of_sphere(hyper, theta, k, data.features, state)
    given = Conditional(shape_a, rate_a, shape_d, rate_d, spread)
    law = CorrelationLaw(hyper.lambda_a, hyper.lambda_b)
    a, d = theta[k, VAR_POSITION], theta[k, VAR_SIZE]
    a = math.exp(slice_coordinate(rng, law, given, 0, theta[k, LOG_A], 1.0, d, 0.0))
    if hyper.sized:
        d = math.exp(slice_coordinate(rng, law, given, 1, theta[k, LOG_D], 1.0, a, 0.0))
    theta[k, VAR_POSITION], theta[k, VAR_SIZE] = a, d
    complete_row(theta, k)


@lean_kernel
def renew_single(hyper, rng, prior, data, state, k, proposal):
    """Propose all parameters of a cluster of one marking from q(· | y_i), as for circles."""
    theta, y, i = state.theta, data.features, state.head[k]
    draw_row_by(hyper, hyper.law, rng, y, i, proposal, 0)
    current = weight_drawn_by(hyper, hyper.law, theta, k, y, i)
    new = weight_drawn_by(hyper, hyper.law, proposal, 0, y, i)
    current += log_tilt(prior, data, state, k, theta[k, MU_L])
    new += log_tilt(prior, data, state, k, proposal[0, MU_L])
    accepted = False
    if -rng.standard_exponential() < new - current:
        accepted = True
        for column in range(WIDTH):
            theta[k, column] = proposal[0, column]
    settle(hyper, rng, theta, k, y, i, True)
    return accepted


@implements(likelihood.update_cluster, SphereHyper)
@lean_kernel
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Update the parameters of cluster k given its members; returns 1 if the mean moved."""
    if state.size[k] == 1 and rng.random() < RENEWAL:
        return renew_single(hyper, rng, prior, data, state, k, proposal)
    accepted = update_mean(hyper, rng, prior, data, state, k)
    update_variances(hyper, rng, data, state, k)
    return accepted


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


implements(likelihood.add_member, SphereHyper)(circle.add_member)
implements(likelihood.remove_member, SphereHyper)(circle.remove_member)
implements(likelihood.size_of, SphereHyper)(circle.size_of)
