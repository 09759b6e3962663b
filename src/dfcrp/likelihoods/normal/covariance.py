"""Any features, normal about their cluster's mean with a full covariance of the cluster's own.

    y_i ~ N(μ_k, Σ_k),    Σ_k ~ InverseWishart(ν, Ψ),    ν = 2 a + p - 1,    Ψ = 2 a L Lᵀ,

and μ_k uniform over a box of volume V that holds the data (edges are ignored). Each variance then
is InverseGamma(a, a s_j) as in ``normal.kernel``. L = D U with D = diag(e^h) and U unit lower
triangular; h and U are learned. With μ and Σ integrated out a cluster of n members with mean ȳ and
scatter S has

    p(y) = V⁻¹ n^(-p/2) π^(-(n - 1) p / 2) Γ_p((ν + n - 1) / 2) / Γ_p(ν / 2)
           |Ψ|^(ν / 2) / |Ψ + S|^((ν + n - 1) / 2),

and one more member the density of a Student t with f = ν + n - p degrees of freedom about ȳ and
the scale matrix (Ψ + S) (1 + 1/n) / f; the first member of a cluster has density 1 / V. A row holds
the Cholesky factor C of Ψ + S, which a member changes by a step of rank one.

Where experts differ (``likelihoods.bias``), y_i stands for the features without their expert's
offsets, and Σ is r² Σ: with w = r⁻² of each member and W their sum, ȳ and S are weighted, n^(-p/2)
becomes W^(-p/2) Π w^(p/2), and 1 + 1/n becomes 1/w + 1/W. Where items may be careless, so it is
with their levels, and one more member has the mixture of these densities (``likelihoods.tails``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8, I8, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    ALIKE,
    NOWHERE,
    Bias,
    kept_by_chain,
    log_noise_of,
    of_chain,
    precision_by,
    precision_of,
)
from dfcrp.likelihoods.integrated import empty_row, integrate_out, log_marginal
from dfcrp.likelihoods.law import fit_of_all, log_fit
from dfcrp.likelihoods.normal.kernel import NOWHERE_ELSE, feature_of, place_of
from dfcrp.likelihoods.tails import (
    NORMAL_TAILS,
    Tails,
    density_levels,
    log_of_mixture,
    may_be_careless,
)

LOG_PI = math.log(math.pi)
#: Columns of a row: members, log |C|, what of the density depends on the row alone, W and Σ log w;
#: then the mean, room to work in, and C row by row.
MEMBERS, LOG_ROOT, LOG_NORM, WEIGHT, LOG_WEIGHTS, FIRST = range(6)


@may_be_careless
@integrate_out
@frame
class CovarianceHyper(NamedTuple):
    """Hyperparameters."""

    features: int  # p
    shape: float  # a
    log_volume: float  # log V
    law: F8  # h, U below the diagonal, row by row, and what experts differ in
    law_mean: F8  # (p + p (p - 1) / 2,): of all but the last
    law_sd: F8
    bias: Bias = ALIKE  # how experts differ
    tails: Tails = NORMAL_TAILS  # how careless items are
    stored: int = 0  # features that are stored, if there are others (``normal.shapes``)
    feature_place: I8 = NOWHERE_ELSE  # (p,): which of them these are
    group_place: I8 = NOWHERE_ELSE  # the same


likelihood.of_chain.register(CovarianceHyper, of_chain)
likelihood.kept_by_chain.register(CovarianceHyper, kept_by_chain)


def row_width(features: int) -> int:
    """Numbers in a row."""
    return FIRST + 2 * features + features * features


def law_width(features: int) -> int:
    """Entries of the law."""
    return features + features * (features - 1) // 2


@inline_kernel
def complete_row(hyper, theta, k):
    """log |C|, and what of the density depends on the row alone."""
    p, n = hyper.features, theta[k, MEMBERS]
    total = 0.0
    for j in range(p):
        total += math.log(theta[k, FIRST + 2 * p + j * p + j])
    theta[k, LOG_ROOT] = total
    if n > 0.0:
        freedom = 2.0 * hyper.shape - 1.0 + n
        theta[k, LOG_NORM] = (
            math.lgamma(0.5 * (freedom + p))
            - math.lgamma(0.5 * freedom)
            - 0.5 * p * (LOG_PI + math.log1p(1.0 / theta[k, WEIGHT]))
            - total
        )


@implements(empty_row, CovarianceHyper)
@inline_kernel
def start_row(hyper, theta, k):
    """No member: C = sqrt(2 a) D U."""
    p = hyper.features
    theta[k, MEMBERS], theta[k, WEIGHT], theta[k, LOG_WEIGHTS] = 0.0, 0.0, 0.0
    root = math.sqrt(2.0 * hyper.shape)
    below = p
    for a in range(p):
        scale = root * math.exp(hyper.law[a])
        theta[k, FIRST + a] = 0.0
        at = FIRST + 2 * p + a * p
        for b in range(a):
            theta[k, at + b] = scale * hyper.law[below]
            below += 1
        theta[k, at + a] = scale
    complete_row(hyper, theta, k)


@inline_kernel
def squares_beside(hyper, theta, k, y, i):
    """|x|² with C x = y_i - ȳ."""
    p, squares, work = hyper.features, 0.0, FIRST + hyper.features
    for a in range(p):
        at = FIRST + 2 * p + a * p
        x = feature_of(hyper, y, i, a) - theta[k, FIRST + a]
        for b in range(a):
            x -= theta[k, at + b] * theta[k, work + b]
        x /= theta[k, at + a]
        theta[k, work + a] = x
        squares += x * x
    return squares


@implements(density_levels, CovarianceHyper)
@inline_kernel
def log_levels(hyper, theta, k, y, i):
    """log p(y_i | members of k) of the first level, and what it gains at the others."""
    p, n, weight = hyper.features, theta[k, MEMBERS], theta[k, WEIGHT]
    if n == 0.0:
        return -hyper.log_volume, 0.0, 0.0
    squares = squares_beside(hyper, theta, k, y, i)
    power = 0.5 * (2.0 * hyper.shape - 1.0 + n + p)
    noise, usual = 1.0 / precision_by(hyper, hyper.law, i), 1.0 + 1.0 / weight
    q, q3, q9 = noise + 1.0 / weight, 9.0 * noise + 1.0 / weight, 81.0 * noise + 1.0 / weight
    first = math.log1p(squares / q)
    value = theta[k, LOG_NORM] - 0.5 * p * math.log(q / usual) - power * first
    wide = power * (first - math.log1p(squares / q3)) - 0.5 * p * math.log(q3 / q)
    widest = power * (first - math.log1p(squares / q9)) - 0.5 * p * math.log(q9 / q)
    return value, wide, widest


@implements(likelihood.log_density, CovarianceHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | members of k), whatever the level of i."""
    if hyper.tails.on:
        first, wide, widest = log_levels(hyper, theta, k, y, i)
        return first + log_of_mixture(hyper, wide, widest)
    p, n, weight = hyper.features, theta[k, MEMBERS], theta[k, WEIGHT]
    if n == 0.0:
        return -hyper.log_volume
    squares = squares_beside(hyper, theta, k, y, i)
    power = 0.5 * (2.0 * hyper.shape - 1.0 + n + p)
    wide = 1.0 + 1.0 / weight
    if hyper.bias.noise == NOWHERE:
        return theta[k, LOG_NORM] - power * math.log1p(squares / wide)
    wider = 1.0 / precision_by(hyper, hyper.law, i) + 1.0 / weight
    value = theta[k, LOG_NORM] - 0.5 * p * math.log(wider / wide)
    return value - power * math.log1p(squares / wider)


@inline_kernel
def change_root(theta, k, p, sign):
    """C of C Cᵀ + sign · x xᵀ, for the x in the row's room to work in, which is used up.

    Taking away can fail by rounding only: the prior's share of C Cᵀ stays.
    """
    work = FIRST + p
    for a in range(p):
        at = FIRST + 2 * p + a * p
        old, x = theta[k, at + a], theta[k, work + a]
        new = math.sqrt(max(old * old + sign * x * x, 1e-14 * old * old))
        cosine, sine = new / old, x / old
        theta[k, at + a] = new
        for b in range(a + 1, p):
            place = FIRST + 2 * p + b * p + a
            theta[k, place] = (theta[k, place] + sign * sine * theta[k, work + b]) / cosine
            theta[k, work + b] = cosine * theta[k, work + b] - sine * theta[k, place]


@implements(likelihood.add_member, CovarianceHyper)
@inline_kernel
def add_member(hyper, theta, k, y, i):
    """Marking i joins: the scatter grows by w W / (W + w) (y_i - ȳ)(y_i - ȳ)ᵀ."""
    p, n, before = hyper.features, theta[k, MEMBERS], theta[k, WEIGHT]
    w = precision_of(hyper, i)
    share = math.sqrt(w * before / (before + w))
    for j in range(p):
        z = feature_of(hyper, y, i, j) - theta[k, FIRST + j]
        theta[k, FIRST + p + j] = share * z
        theta[k, FIRST + j] += w * z / (before + w)
    theta[k, MEMBERS] = n + 1.0
    theta[k, WEIGHT] = before + w
    theta[k, LOG_WEIGHTS] -= 2.0 * log_noise_of(hyper, i)
    if n > 0.0:
        change_root(theta, k, p, 1.0)
    complete_row(hyper, theta, k)


@implements(likelihood.remove_member, CovarianceHyper)
@inline_kernel
def remove_member(hyper, theta, k, y, i):
    """Marking i leaves: the same backwards."""
    p, w = hyper.features, precision_of(hyper, i)
    before = theta[k, WEIGHT] - w
    share = math.sqrt(w * before / (before + w))
    for j in range(p):
        value = feature_of(hyper, y, i, j)
        mean = theta[k, FIRST + j] - w * (value - theta[k, FIRST + j]) / before
        theta[k, FIRST + p + j] = share * (value - mean)
        theta[k, FIRST + j] = mean
    theta[k, MEMBERS] -= 1.0
    theta[k, WEIGHT] = before
    theta[k, LOG_WEIGHTS] += 2.0 * log_noise_of(hyper, i)
    change_root(theta, k, p, -1.0)
    complete_row(hyper, theta, k)


@implements(log_marginal, CovarianceHyper)
@lean_kernel
def row_marginal(hyper, theta, k):
    """log p(members)."""
    p, n = hyper.features, theta[k, MEMBERS]
    before = 2.0 * hyper.shape + p - 1.0
    after = before + n - 1.0
    log_root = 0.5 * p * math.log(2.0 * hyper.shape)
    value = -hyper.log_volume - 0.5 * p * math.log(theta[k, WEIGHT])
    value -= 0.5 * (n - 1.0) * p * LOG_PI
    for j in range(p):
        log_root += hyper.law[j]
        value += math.lgamma(0.5 * (after - j)) - math.lgamma(0.5 * (before - j))
    value += 0.5 * p * theta[k, LOG_WEIGHTS]
    return value + before * log_root - after * theta[k, LOG_ROOT]


implements(log_fit, CovarianceHyper)(fit_of_all)


@implements(likelihood.record_row, CovarianceHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """Each feature's mean and how uncertain it is, then each feature's expected variance."""
    p, n = hyper.features, theta[k, MEMBERS]
    # E(Σ) = (Ψ + S) / (ν + n - 1 - p - 1)
    over = 2.0 * hyper.shape - 3.0 + n
    stored = p if hyper.stored == 0 else hyper.stored
    for a in range(p):
        at = FIRST + 2 * p + a * p
        variance = 0.0
        for b in range(a + 1):
            variance += theta[k, at + b] ** 2
        variance /= over
        place = place_of(hyper.feature_place, a)
        out[row, place] = theta[k, FIRST + a]
        out[row, stored + place] = math.sqrt(variance / theta[k, WEIGHT])
        out[row, 2 * stored + place] = variance
