"""Circles: features (x, y, log diameter) and the structured normal of the paper's section 5.

    Σ = [[a, 0, b], [0, a, b], [b, b, d]],   b = λ sqrt(a d / 2)

so with v = y − μ, β = b / a = λ sqrt(d / 2a) and s = d (1 − λ²)

    vᵀ Σ⁻¹ v = (v1² + v2²) / a + (v3 − β (v1 + v2))² / s,     log |Σ| = 2 log a + log s.

Priors given the cluster mean's log diameter l: (λ + 1)/2 ~ Beta(aλ, bλ), μ ~ N(μ0, diag(σ0²)), and
for the variances one of two laws. The paper's, with l held at ``floor`` below it:

    a ~ Gamma(τx κx l^ηx, rate τx),  d ~ Gamma(τd κd l^ηd, rate τd).

The one whose parameters are learned, free of units, with l₀ the median log diameter:

    a ~ Gamma(νx, mean exp(sx + gx (l − l₀))),  d ~ Gamma(νd, mean exp(sd + gd (l − l₀))).

Where experts differ, y stands for a marking without its expert's offsets, and Σ is Σ / precision
(``likelihoods.bias``); where they do not, nothing is taken off and the precision is 1. A careless
member has its own scale in its precision; a marking that may join has the mixture over its levels
(``likelihoods.tails``), and q is the exact conditional of μ under this mixture.

Where all diameters are the same they say nothing, and the model does without them: a row then is
that of its place alone, with λ = UNSIZED as a sign of it and d = 1, and μl stays at that diameter.

A spare is drawn from the law at ``reference``, another value of ``law``. Where it is learned, each
Gamma is divided by a Gamma(t) of mean one, t = TAIL: with x = v ν / (t m) the log variance has the
density

    x^ν (1 + x)^−(ν + t) / B(ν, t),

which fall more slowly than any Gamma's, so that opening weights are bounded wherever the law goes.

Of the contract in ``likelihoods.contract`` this module has what a scan needs of a cluster;
``covariance`` has the conditionals of Σ, ``proposal`` what dealing two clusters out again takes,
``tolerance`` the law's updates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, F8x2, frame
from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    ALIKE,
    NOWHERE,
    Bias,
    log_noise_by,
    offset_by,
    precision_by,
)
from dfcrp.likelihoods.bias import of_chain as bias_of_chain
from dfcrp.likelihoods.circle.covariance import (
    Conditional,
    CorrelationLaw,
    Spread,
    slice_coordinate,
)
from dfcrp.likelihoods.law import SMALL
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

#: Columns of a parameter row: the parameters, then what the density needs of them.
MU_X, MU_Y, MU_L, VAR_POSITION, VAR_SIZE, LAMBDA, INV_A, BETA, INV_S, LOG_NORM, LOG_A, LOG_D = (
    range(12)
)
WIDTH = 12
#: Columns of ``CircleHyper.room``.
ROOM = 4
LOG_2PI = math.log(2.0 * math.pi)
#: Shape of the Gamma that makes the tails of a spare's variances heavier than the law's.
TAIL = 8.0
#: In place of λ where diameters are all the same.
UNSIZED = 2.0
#: How often a singleton's parameters are renewed together.
RENEWAL = 0.8


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


@likelihood.of_chain.register(CircleHyper)
def of_chain(hyper: Any, law: NDArray[np.float64]) -> Any:
    """The hyperparameters of one chain: its own laws and sums."""
    mine = bias_of_chain(hyper, law)
    return mine._replace(reference=hyper.reference.copy(), room=hyper.room.copy())


def with_law(
    shapes: tuple[float, float],
    level: float,
    law_mean: NDArray[np.float64],
    law_sd: NDArray[np.float64],
    n: int,
) -> dict[str, Any]:
    """What ``CircleHyper`` holds of a law that is learned, with the Gammas' shapes (νx, νd).

    ``n`` is the number of markings: of few, spares follow the law.
    """
    log_beta = sum(math.lgamma(nu) + math.lgamma(TAIL) - math.lgamma(nu + TAIL) for nu in shapes)
    return {
        "learned": True,
        "nu_x": shapes[0],
        "nu_d": shapes[1],
        "log_gamma": sum(map(math.lgamma, shapes)),
        "level": level,
        "law": law_mean.copy(),
        "law_mean": law_mean,
        "law_sd": law_sd,
        "reference": law_mean.copy(),
        "follow": n <= SMALL,
        "log_beta": log_beta,
        "room": np.zeros((n, ROOM)),
    }


def without_law() -> dict[str, Any]:
    """What ``CircleHyper`` holds in place of a law that is learned, for the paper's."""
    nothing = np.zeros(4)
    return {
        **with_law((1.0, 1.0), 0.0, nothing, nothing, 0),
        "learned": False,
        "law": np.zeros(0),
        "reference": np.zeros(0),
    }


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


@inline_kernel
def complete_row(theta, k):
    """Fill the derived columns of row k from its parameters."""
    a, d, lam = theta[k, VAR_POSITION], theta[k, VAR_SIZE], theta[k, LAMBDA]
    if lam == UNSIZED:
        theta[k, INV_A], theta[k, BETA], theta[k, INV_S] = 1.0 / a, 0.0, 0.0
        theta[k, LOG_A], theta[k, LOG_D] = math.log(a), 0.0
        theta[k, LOG_NORM] = -theta[k, LOG_A] - LOG_2PI
        return
    s = d * (1.0 - lam * lam)
    theta[k, INV_A] = 1.0 / a
    theta[k, BETA] = lam * math.sqrt(0.5 * d / a)
    theta[k, INV_S] = 1.0 / s
    theta[k, LOG_A], theta[k, LOG_D] = math.log(a), math.log(d)
    theta[k, LOG_NORM] = -theta[k, LOG_A] - 0.5 * math.log(s) - 1.5 * LOG_2PI


@inline_kernel
def features_of(hyper):
    """How many features scatter."""
    return 3.0 if hyper.sized else 2.0


@inline_kernel
def squares_by(hyper, law, theta, k, y, i):
    """vᵀ Σ_k⁻¹ v / r², with experts who differ by a law, of the first level."""
    y1, y2, y3, precision = corrected_by(hyper, law, y, i)
    v1 = y1 - theta[k, MU_X]
    v2 = y2 - theta[k, MU_Y]
    z = y3 - theta[k, MU_L] - theta[k, BETA] * (v1 + v2)
    return precision * ((v1 * v1 + v2 * v2) * theta[k, INV_A] + z * z * theta[k, INV_S])


@inline_kernel
def log_density_by(hyper, law, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i, with experts who differ by a law."""
    squares = squares_by(hyper, law, theta, k, y, i)
    norm = theta[k, LOG_NORM] - features_of(hyper) * log_noise_by(hyper, law, i)
    if hyper.tails.on:
        return norm + log_normal_tail(hyper, law, features_of(hyper), squares)
    return norm - 0.5 * squares


@implements(likelihood.log_density, CircleHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i."""
    return log_density_by(hyper, hyper.law, theta, k, y, i)


@inline_kernel
def log_density_of_member(hyper, theta, k, y, i):
    """log N(y_i; μ_k, Σ_k), i of the level that it has."""
    squares = squares_by(hyper, hyper.law, theta, k, y, i)
    own = log_scale_of(hyper, i)
    norm = theta[k, LOG_NORM]
    norm -= features_of(hyper) * (log_noise_by(hyper, hyper.law, i) + own)
    return norm - 0.5 * math.exp(-2.0 * own) * squares


@implements(likelihood.settle, CircleHyper)
@inline_kernel
def settle(hyper, rng, theta, k, y, i, alone):
    """Draw the level of marking i given θ_k."""
    if hyper.tails.on:
        squares = squares_by(hyper, hyper.law, theta, k, y, i)
        settle_normal(hyper, rng, i, features_of(hyper), squares)


@inline_kernel
def position_law(hyper, log_diameter):
    """Shape and rate of a's Gamma prior."""
    if hyper.learned:
        away = log_diameter - hyper.level
        return hyper.nu_x, hyper.nu_x * math.exp(-hyper.law[0] - hyper.law[1] * away)
    held = max(log_diameter, hyper.floor)
    return hyper.tau_x * hyper.kappa_x * held**hyper.eta_x, hyper.tau_x


@inline_kernel
def size_law(hyper, log_diameter):
    """Shape and rate of d's Gamma prior."""
    if hyper.learned:
        away = log_diameter - hyper.level
        return hyper.nu_d, hyper.nu_d * math.exp(-hyper.law[2] - hyper.law[3] * away)
    held = max(log_diameter, hyper.floor)
    return hyper.tau_d * hyper.kappa_d * held**hyper.eta_d, hyper.tau_d


@inline_kernel
def log_variance_prior(hyper, log_diameter, log_a, log_d):
    """log p(a, d | l) up to terms free of l: for the paper's law those of the rates, too."""
    if hyper.learned:
        away = log_diameter - hyper.level
        over_a = math.log(hyper.nu_x) + log_a - hyper.law[0] - hyper.law[1] * away
        if not hyper.sized:
            return hyper.nu_x * over_a - math.exp(over_a) - hyper.log_gamma
        over_d = math.log(hyper.nu_d) + log_d - hyper.law[2] - hyper.law[3] * away
        return (
            hyper.nu_x * over_a
            - math.exp(over_a)
            + hyper.nu_d * over_d
            - math.exp(over_d)
            - hyper.log_gamma
        )
    shape_a, _ = position_law(hyper, log_diameter)
    shape_d, _ = size_law(hyper, log_diameter)
    return (
        shape_a * (math.log(hyper.tau_x) + log_a)
        - math.lgamma(shape_a)
        + shape_d * (math.log(hyper.tau_d) + log_d)
        - math.lgamma(shape_d)
    )


@inline_kernel
def draw_variances(hyper, law, rng, log_diameter, theta, k):
    """Draw a and d of a spare, by a law, at a log diameter."""
    if not hyper.learned:
        shape_a, rate_a = position_law(hyper, log_diameter)
        shape_d, rate_d = size_law(hyper, log_diameter)
        theta[k, VAR_POSITION] = rng.standard_gamma(shape_a) / rate_a
        theta[k, VAR_SIZE] = rng.standard_gamma(shape_d) / rate_d
        return
    away = log_diameter - hyper.level
    ratio_a = rng.standard_gamma(hyper.nu_x) / rng.standard_gamma(TAIL)
    if not hyper.sized:
        theta[k, VAR_POSITION] = ratio_a * (TAIL / hyper.nu_x) * math.exp(law[0] + law[1] * away)
        theta[k, VAR_SIZE] = 1.0
        return
    ratio_d = rng.standard_gamma(hyper.nu_d) / rng.standard_gamma(TAIL)
    theta[k, VAR_POSITION] = ratio_a * (TAIL / hyper.nu_x) * math.exp(law[0] + law[1] * away)
    theta[k, VAR_SIZE] = ratio_d * (TAIL / hyper.nu_d) * math.exp(law[2] + law[3] * away)


@inline_kernel
def log_drawn_variances(hyper, law, log_diameter, log_a, log_d):
    """The log density with which they are drawn, with the terms of ``log_variance_prior``."""
    if not hyper.learned:
        return log_variance_prior(hyper, log_diameter, log_a, log_d)
    away = log_diameter - hyper.level
    over_a = math.log(hyper.nu_x / TAIL) + log_a - law[0] - law[1] * away
    if not hyper.sized:
        place = hyper.nu_x * over_a - (hyper.nu_x + TAIL) * math.log1p(math.exp(over_a))
        return place - hyper.log_beta
    over_d = math.log(hyper.nu_d / TAIL) + log_d - law[2] - law[3] * away
    return (
        hyper.nu_x * over_a
        - (hyper.nu_x + TAIL) * math.log1p(math.exp(over_a))
        + hyper.nu_d * over_d
        - (hyper.nu_d + TAIL) * math.log1p(math.exp(over_d))
        - hyper.log_beta
    )


@inline_kernel
def log_marginal_at(hyper, law, theta, k, y, i, log_scale):
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
def log_marginal_given_covariance(hyper, law, theta, k, y, i):
    """log p(y_i | Σ_k), whatever the level of i: the mean integrated out."""
    if not hyper.tails.on:
        return log_marginal_at(hyper, law, theta, k, y, i, 0.0)
    first, wide, widest = log_marginal_levels(hyper, law, theta, k, y, i)
    return log_sum(first, wide, widest)


@inline_kernel
def weight_drawn_by(hyper, law, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k, q by a law.

    q draws Σ at y_i's own log diameter and μ from its normal conditional given (y_i, Σ); the
    conditional's density cancels and leaves p(y_i | Σ) p(Σ|μ_l)/q(Σ|y_l). Where experts differ, or
    markings may be careless, it does so by q's law, which is not what p(y_i | φ) is about.
    """
    log_a, log_d = theta[k, LOG_A], theta[k, LOG_D]
    _, _, log_diameter, _ = corrected_by(hyper, law, y, i)
    value = (
        log_marginal_given_covariance(hyper, law, theta, k, y, i)
        + log_variance_prior(hyper, theta[k, MU_L], log_a, log_d)
        - log_drawn_variances(hyper, law, log_diameter, log_a, log_d)
    )
    if hyper.bias.on or hyper.tails.on:
        value += log_density(hyper, theta, k, y, i) - log_density_by(hyper, law, theta, k, y, i)
    return value


@implements(likelihood.opening_weight, CircleHyper)
@inline_kernel
def opening_weight(hyper, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k."""
    return weight_drawn_by(hyper, hyper.reference, theta, k, y, i)


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


@lean_kernel
def draw_row_by(hyper, law, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i), q by a law, into row k."""
    y1, y2, y3, precision = corrected_by(hyper, law, y, i)
    draw_variances(hyper, law, rng, y3, theta, k)
    theta[k, LAMBDA] = UNSIZED
    if hyper.sized:
        theta[k, LAMBDA] = 2.0 * rng.beta(hyper.lambda_a, hyper.lambda_b) - 1.0
    complete_row(theta, k)
    if hyper.tails.on:
        first, wide, widest = log_marginal_levels(hyper, law, theta, k, y, i)
        precision *= math.exp(-2.0 * draw_level(rng, first, wide, widest))
    m1, m2, m3 = draw_mean(
        rng, hyper, theta, k, precision, precision * y1, precision * y2, precision * y3
    )
    theta[k, MU_X], theta[k, MU_Y], theta[k, MU_L] = m1, m2, m3


@implements(likelihood.open_cluster, CircleHyper)
@lean_kernel
def open_cluster(hyper, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i) into row k and return its opening weight."""
    draw_row_by(hyper, hyper.reference, rng, y, i, theta, k)
    return opening_weight(hyper, theta, k, y, i)


@by_type
def spread_of(hyper, theta, k, y, state):
    """Second moments of cluster k's members about its current mean, for the law's updates."""


@implements(spread_of, CircleHyper)
@inline_kernel
def members_spread(hyper, theta, k, y, state):
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


@lean_kernel
def update_mean(hyper, rng, prior, data, state, k):
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


@lean_kernel
def update_covariance(hyper, rng, data, state, k):
    """Slice updates of log a, log d and λ; leaves p(Σ_k | members, μ_k) unchanged."""
    theta, y = state.theta, data.features
    shape_a, rate_a = position_law(hyper, theta[k, MU_L])
    shape_d, rate_d = size_law(hyper, theta[k, MU_L])
    given = Conditional(shape_a, rate_a, shape_d, rate_d, members_spread(hyper, theta, k, y, state))
    law = CorrelationLaw(hyper.lambda_a, hyper.lambda_b)
    a, d, lam = theta[k, VAR_POSITION], theta[k, VAR_SIZE], theta[k, LAMBDA]
    if not hyper.sized:
        a = math.exp(slice_coordinate(rng, law, given, 0, theta[k, LOG_A], 1.0, 1.0, 0.0))
        theta[k, VAR_POSITION] = a
        complete_row(theta, k)
        return
    a = math.exp(slice_coordinate(rng, law, given, 0, theta[k, LOG_A], 1.0, d, lam))
    d = math.exp(slice_coordinate(rng, law, given, 1, theta[k, LOG_D], 1.0, a, lam))
    lam = slice_coordinate(rng, law, given, 2, lam, 0.25, a, d)
    theta[k, VAR_POSITION], theta[k, VAR_SIZE], theta[k, LAMBDA] = a, d, lam
    complete_row(theta, k)


@lean_kernel
def renew_single(hyper, rng, prior, data, state, k, proposal):
    """Propose all parameters of a cluster of one marking i from q(· | y_i) at once.

    An independence step, with q by the law as it is, whose acceptance is the ratio of the weights,
    near one: the parameters of a singleton do not linger, as they would if mean and variances
    took turns. The level of i is summed over, and drawn again in the end.
    """
    theta, y, i = state.theta, data.features, state.head[k]
    draw_row_by(hyper, hyper.law, rng, y, i, proposal, 0)
    current = weight_drawn_by(hyper, hyper.law, theta, k, y, i)
    new = weight_drawn_by(hyper, hyper.law, proposal, 0, y, i)
    new += log_tilt(prior, data, state, k, proposal[0, MU_L])
    current += log_tilt(prior, data, state, k, theta[k, MU_L])
    accepted = False
    if -rng.standard_exponential() < new - current:
        accepted = True
        for column in range(WIDTH):
            theta[k, column] = proposal[0, column]
    settle(hyper, rng, theta, k, y, i, True)
    return accepted


@implements(likelihood.update_cluster, CircleHyper)
@lean_kernel
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Update the parameters of cluster k given its members; returns 1 if the mean moved.

    ``proposal`` is a row to work in. A singleton is renewed as a whole most of the time; the
    other updates, too, as nothing bounds how long a renewal may be refused.
    """
    if state.size[k] == 1 and rng.random() < RENEWAL:
        return renew_single(hyper, rng, prior, data, state, k, proposal)
    accepted = update_mean(hyper, rng, prior, data, state, k)
    update_covariance(hyper, rng, data, state, k)
    return accepted


@implements(likelihood.add_member, CircleHyper)
@inline_kernel
def add_member(hyper, theta, k, y, i):
    """Nothing to keep: the parameters are drawn."""


@implements(likelihood.remove_member, CircleHyper)
@inline_kernel
def remove_member(hyper, theta, k, y, i):
    """Nothing to keep: the parameters are drawn."""


@implements(likelihood.size_of, CircleHyper)
@inline_kernel
def size_of(hyper, theta, k):
    """The mean's log diameter."""
    return theta[k, MU_L]


@implements(likelihood.record_row, CircleHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """Write a cluster's parameters as stored with the draws."""
    out[row, 0], out[row, 1], out[row, 2] = theta[k, MU_X], theta[k, MU_Y], theta[k, MU_L]
    out[row, 3], out[row, 4] = theta[k, VAR_POSITION], theta[k, VAR_SIZE]
    out[row, 5] = theta[k, BETA] * theta[k, VAR_POSITION]
    if out.shape[1] > 6:  # far from the origin: what single precision cuts off
        out[row, 6], out[row, 7] = theta[k, MU_X] - out[row, 0], theta[k, MU_Y] - out[row, 1]
