"""Any features, normal about their cluster's mean, independent given the variances.

Features come in groups that share a variance: one each in general, x and y together for places.
Feature j of marking i in cluster k, of group g, has

    y_ij ~ N(μ_kj, w_ij v_kg),    μ_kj ~ N(m_j, v_kg / κ_j),    v_kg ~ InverseGamma(a, a s_g),

with s_g the typical variance, κ_j = s_g / t_j², so that means spread by t_j, and, where errors grow
with an object's size, log w_ij = r_g (l_ij - l̄_j) for the marking's own log size l_ij, which is
another of its features. μ and v are integrated out: given members with sums W_j = Σ 1 / w_ij,

    v_g ~ InverseGamma(a_n, b_g),   μ_j | v_g ~ N(M_j, v_g / P_j),
    a_n = a + n d_g / 2,            P_j = κ_j + W_j,

and one more member with z_j = y_j - M_j, q_j = w_j + 1 / P_j has the density of a Student t,

    Γ(a_n + d_g / 2) / Γ(a_n) Π_j (2π b_g q_j)^(-1/2) (1 + Σ_j z_j² / (2 b_g q_j))^-(a_n + d_g / 2),

after which P_j grows by 1 / w_j, M_j by z_j / (w_j P_j) and b_g by Σ_j z_j² / 2 q_j.

Where experts differ, y_ij stands for the feature without its expert's offset, and w_ij has the
square of the noise factor besides (``likelihoods.bias``); l_ij stays what the expert said. Where
items may be careless, w_ij of a member has the square of its own scale, and the density of one more
is the mixture over its levels (``likelihoods.tails``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.abi import F8, I8, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import (
    ALIKE,
    NOWHERE,
    Bias,
    kept_by_chain,
    log_noise_by,
    log_noise_of,
    of_chain,
    offset_of,
    precision_by,
)
from dfcrp.likelihoods.integrated import empty_row, integrate_out, log_marginal
from dfcrp.likelihoods.law import log_fit
from dfcrp.likelihoods.tails import (
    NORMAL_TAILS,
    Tails,
    density_levels,
    log_of_mixture,
    may_be_careless,
)

LOG_2PI = math.log(2.0 * math.pi)
#: Columns of a row: members, Σ log w, what of the density depends on the row alone; then b of each
#: group, M of each feature, P of each feature.
MEMBERS, LOG_SCALES, LOG_NORM, FIRST = 0, 1, 2, 3
#: Where all features are heard.
NOWHERE_ELSE = np.zeros(0, np.int64)
#: A product of so little, or so much, is turned into a logarithm before it vanishes or overflows.
SMALLEST, LARGEST = 1e-100, 1e100


@may_be_careless
@integrate_out
@frame
class NormalHyper(NamedTuple):
    """Hyperparameters."""

    centre: F8  # (p,): m
    spread: F8  # (p,): t
    start: I8  # (G + 1,) int64: the features of group g are start[g] .. start[g + 1] - 1
    size: I8  # (p,) int64: the feature that is the log size for this one's error, or -1
    level: F8  # (p,): l̄
    growth: I8  # (G,) int64: where a group's r is in the law, or -1 if it has none
    shape: float  # a
    law: F8  # log s of each group, r of some, what experts differ in; a chain's own
    law_mean: F8  # of all but the last
    law_sd: F8
    bias: Bias = ALIKE  # how experts differ
    tails: Tails = NORMAL_TAILS  # how careless items are
    stored: int = 0  # features that are stored, if there are others (``normal.shapes``)
    feature_place: I8 = NOWHERE_ELSE  # (p,): which of them these are
    group_place: I8 = NOWHERE_ELSE  # (G,): which of their groups


likelihood.of_chain.register(NormalHyper, of_chain)
likelihood.kept_by_chain.register(NormalHyper, kept_by_chain)


def row_width(features: int, groups: int) -> int:
    """Numbers in a row."""
    return FIRST + groups + 2 * features


@inline_kernel
def feature_of(hyper, y, i, j):
    """y_ij without its expert's offset."""
    if hyper.bias.offsets == NOWHERE:
        return y[i, j]
    return y[i, j] - offset_of(hyper, i, j)


@inline_kernel
def log_growth(hyper, y, i, j, group):
    """log w_ij but for the noise of the expert and the item."""
    at = hyper.size[j]
    if at < 0:
        return 0.0
    return hyper.law[hyper.growth[group]] * (y[i, at] - hyper.level[j])


@inline_kernel
def log_scale(hyper, y, i, j, group):
    """log w_ij of a member."""
    if hyper.bias.noise == NOWHERE and not hyper.tails.on:
        return log_growth(hyper, y, i, j, group)
    return log_growth(hyper, y, i, j, group) + 2.0 * log_noise_of(hyper, i)


@inline_kernel
def log_scale_at_first(hyper, y, i, j, group):
    """log w_ij of an item of the first level."""
    return log_growth(hyper, y, i, j, group) + 2.0 * log_noise_by(hyper, hyper.law, i)


@inline_kernel
def complete_row(hyper, theta, k):
    """What of the density depends on the row alone.

    Groups of as many features have the same factors, and share a logarithm.
    """
    value, before, rise, product = 0.0, 0.0, 0.0, 1.0
    for group in range(hyper.growth.shape[0]):
        half = 0.5 * (hyper.start[group + 1] - hyper.start[group])
        if half != before or not SMALLEST < product < LARGEST:
            value -= before * math.log(product)
            product = 1.0
        if half != before:
            a, before = hyper.shape + theta[k, MEMBERS] * half, half
            # Γ(a + 1) / Γ(a) = a.
            rise = math.log(a) if half == 1.0 else math.lgamma(a + half) - math.lgamma(a)
        value += rise - half * LOG_2PI
        product *= theta[k, FIRST + group]
    theta[k, LOG_NORM] = value - before * math.log(product)


@implements(empty_row, NormalHyper)
@inline_kernel
def start_row(hyper, theta, k):
    """The prior: P = κ, M = m, b = a s."""
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    theta[k, MEMBERS], theta[k, LOG_SCALES] = 0.0, 0.0
    for group in range(groups):
        variance = math.exp(hyper.law[group])
        theta[k, FIRST + group] = hyper.shape * variance
        for j in range(hyper.start[group], hyper.start[group + 1]):
            theta[k, FIRST + groups + j] = hyper.centre[j]
            theta[k, FIRST + groups + features + j] = variance / hyper.spread[j] ** 2
    complete_row(hyper, theta, k)


@inline_kernel
def log_t_density(hyper, theta, k, y, i):
    """log p(y_i | members of k) of an item of the first level: a product of Student t densities.

    Groups of as many features have the same power, and share a logarithm.
    """
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    means, precisions = FIRST + groups, FIRST + groups + features
    value, volume, beyond, before = theta[k, LOG_NORM], 1.0, 1.0, 0.0
    for group in range(groups):
        squares = 0.0
        for j in range(hyper.start[group], hyper.start[group + 1]):
            q = 1.0 / theta[k, precisions + j]
            plain = hyper.size[j] < 0 and hyper.bias.noise == NOWHERE
            q += 1.0 if plain else math.exp(log_scale_at_first(hyper, y, i, j, group))
            z = feature_of(hyper, y, i, j) - theta[k, means + j]
            squares += z * z / q
            volume *= q
        half = 0.5 * (hyper.start[group + 1] - hyper.start[group])
        if half != before or beyond > LARGEST:
            value -= (hyper.shape + (theta[k, MEMBERS] + 1.0) * before) * math.log(beyond)
            beyond, before = 1.0, half
        beyond *= 1.0 + 0.5 * squares / theta[k, FIRST + group]
        if not SMALLEST < volume < LARGEST:
            value -= 0.5 * math.log(volume)
            volume = 1.0
    power = hyper.shape + (theta[k, MEMBERS] + 1.0) * before
    return value - 0.5 * math.log(volume) - power * math.log(beyond)


@implements(density_levels, NormalHyper)
@inline_kernel
def log_levels(hyper, theta, k, y, i):
    """The same of the first level, and what log p gains at the second and at the third.

    With q = s² w + 1 / P, S = Σ_j z_j² / q_j and a prime for a wider level, what is gained is
    −Σ_j log(q'_j / q_j) / 2 − Σ_g (a_n + d_g / 2) log((1 + S' / 2b) / (1 + S / 2b)). Groups of as
    many features have the same power, and share a logarithm.
    """
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    means, precisions = FIRST + groups, FIRST + groups + features
    noise = 1.0 / precision_by(hyper, hyper.law, i)
    value, wide, widest = theta[k, LOG_NORM], 0.0, 0.0
    volume3, volume9 = 1.0, 1.0
    ratio3, ratio9, before = 1.0, 1.0, -1.0
    for group in range(groups):
        volume, squares, squares3, squares9 = 1.0, 0.0, 0.0, 0.0
        for j in range(hyper.start[group], hyper.start[group + 1]):
            w = noise
            if hyper.size[j] >= 0:
                w *= math.exp(log_growth(hyper, y, i, j, group))
            rest = 1.0 / theta[k, precisions + j]
            q, q3, q9 = w + rest, 9.0 * w + rest, 81.0 * w + rest
            z = feature_of(hyper, y, i, j) - theta[k, means + j]
            squares += z * z / q
            squares3 += z * z / q3
            squares9 += z * z / q9
            volume *= q
            volume3 *= q3 / q
            volume9 *= q9 / q
        half = 0.5 * (hyper.start[group + 1] - hyper.start[group])
        value -= 0.5 * math.log(volume)
        power = hyper.shape + (theta[k, MEMBERS] + 1.0) * half
        if (before != half and before > 0.0) or ratio9 < SMALLEST:
            old = hyper.shape + (theta[k, MEMBERS] + 1.0) * before
            wide -= old * math.log(ratio3)
            widest -= old * math.log(ratio9)
            ratio3, ratio9 = 1.0, 1.0
        over = 0.5 / theta[k, FIRST + group]
        first = 1.0 + over * squares
        value -= power * math.log(first)
        ratio3 *= (1.0 + over * squares3) / first
        ratio9 *= (1.0 + over * squares9) / first
        before = half
    power = hyper.shape + (theta[k, MEMBERS] + 1.0) * before
    wide -= 0.5 * math.log(volume3) + power * math.log(ratio3)
    widest -= 0.5 * math.log(volume9) + power * math.log(ratio9)
    return value, wide, widest


@implements(likelihood.log_density, NormalHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | members of k), whatever the level of i."""
    if not hyper.tails.on:
        return log_t_density(hyper, theta, k, y, i)
    first, wide, widest = log_levels(hyper, theta, k, y, i)
    return first + log_of_mixture(hyper, wide, widest)


@implements(likelihood.add_member, NormalHyper)
@inline_kernel
def add_member(hyper, theta, k, y, i):
    """Marking i joins: P, M and b grow as said above."""
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    means, precisions = FIRST + groups, FIRST + groups + features
    theta[k, MEMBERS] += 1.0
    own = 2.0 * log_noise_of(hyper, i)
    plain = math.exp(own)
    for group in range(groups):
        for j in range(hyper.start[group], hyper.start[group + 1]):
            log_w, w, before = own, plain, theta[k, precisions + j]
            if hyper.size[j] >= 0:
                log_w += log_growth(hyper, y, i, j, group)
                w = math.exp(log_w)
            after = before + 1.0 / w
            z = feature_of(hyper, y, i, j) - theta[k, means + j]
            theta[k, FIRST + group] += 0.5 * z * z / (w + 1.0 / before)
            theta[k, means + j] += z / (w * after)
            theta[k, precisions + j] = after
            theta[k, LOG_SCALES] += log_w
    complete_row(hyper, theta, k)


@implements(likelihood.remove_member, NormalHyper)
@inline_kernel
def remove_member(hyper, theta, k, y, i):
    """Marking i leaves: the same backwards. b never falls below the prior's."""
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    means, precisions = FIRST + groups, FIRST + groups + features
    theta[k, MEMBERS] -= 1.0
    own = 2.0 * log_noise_of(hyper, i)
    plain = math.exp(own)
    for group in range(groups):
        for j in range(hyper.start[group], hyper.start[group + 1]):
            log_w, w, after = own, plain, theta[k, precisions + j]
            if hyper.size[j] >= 0:
                log_w += log_growth(hyper, y, i, j, group)
                w = math.exp(log_w)
            before = after - 1.0 / w
            value = feature_of(hyper, y, i, j)
            theta[k, means + j] -= (value - theta[k, means + j]) / (w * before)
            z = value - theta[k, means + j]
            theta[k, FIRST + group] -= 0.5 * z * z / (w + 1.0 / before)
            theta[k, precisions + j] = before
            theta[k, LOG_SCALES] -= log_w
        least = hyper.shape * math.exp(hyper.law[group])
        theta[k, FIRST + group] = max(theta[k, FIRST + group], least)
    complete_row(hyper, theta, k)


@inline_kernel
def log_marginal_of_group(hyper, group, members, b, log_ratio):
    """One group's share of log p(members), but for Σ log w; log_ratio is Σ_j log(κ_j / P_j)."""
    half = 0.5 * (hyper.start[group + 1] - hyper.start[group]) * members
    first, last = hyper.shape, hyper.shape + half
    log_b = math.log(hyper.shape) + hyper.law[group]
    return (
        math.lgamma(last)
        - math.lgamma(first)
        + first * log_b
        - last * math.log(b)
        + 0.5 * log_ratio
        - half * LOG_2PI
    )


@implements(log_marginal, NormalHyper)
@lean_kernel
def row_marginal(hyper, theta, k):
    """log p(members)."""
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    value = -0.5 * theta[k, LOG_SCALES]
    for group in range(groups):
        variance = math.exp(hyper.law[group])
        ratio = 1.0
        for j in range(hyper.start[group], hyper.start[group + 1]):
            ratio *= variance / hyper.spread[j] ** 2 / theta[k, FIRST + groups + features + j]
        value += log_marginal_of_group(
            hyper, group, theta[k, MEMBERS], theta[k, FIRST + group], math.log(ratio)
        )
    return value


@inline_kernel
def place_of(places, j):
    """The place of a feature or group among those that are stored."""
    return places[j] if places.shape[0] > 0 else j


@implements(likelihood.record_row, NormalHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """Each feature's mean and how uncertain it is, then each group's typical variance.

    The mean is M, its uncertainty sqrt(E(v) / P), and E(v) = b / (a_n - 1).
    """
    groups, features = hyper.growth.shape[0], hyper.centre.shape[0]
    stored = features if hyper.stored == 0 else hyper.stored
    for group in range(groups):
        width = 0.5 * (hyper.start[group + 1] - hyper.start[group])
        a = hyper.shape + theta[k, MEMBERS] * width
        variance = theta[k, FIRST + group] / (a - 1.0)
        out[row, 2 * stored + place_of(hyper.group_place, group)] = variance
        for j in range(hyper.start[group], hyper.start[group + 1]):
            at = place_of(hyper.feature_place, j)
            out[row, at] = theta[k, FIRST + groups + j]
            precision = theta[k, FIRST + groups + features + j]
            out[row, stored + at] = math.sqrt(variance / precision)


@implements(log_fit, NormalHyper)
@lean_kernel
def log_fit_of_group(hyper, data, state, which):
    """log p(features of the group that entry ``which`` of the law is about)."""
    group = which
    for candidate in range(hyper.growth.shape[0]):
        if hyper.growth[candidate] == which:
            group = candidate
    total = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            total += log_group_of_cluster(hyper, data.features, state, k, group)
    return total


@lean_kernel
def log_group_of_cluster(hyper, y, state, k, group):
    """log p(features of one group in cluster k)."""
    variance = math.exp(hyper.law[group])
    b, log_ratio, log_scales = hyper.shape * variance, 0.0, 0.0
    for j in range(hyper.start[group], hyper.start[group + 1]):
        kappa = variance / hyper.spread[j] ** 2
        mean, precision = hyper.centre[j], kappa
        i = state.head[k]
        while i != NONE:
            log_w = log_scale(hyper, y, i, j, group)
            w, before = math.exp(log_w), precision
            z = feature_of(hyper, y, i, j) - mean
            precision += 1.0 / w
            mean += z / (w * precision)
            b += 0.5 * z * z / (w + 1.0 / before)
            log_scales += log_w
            i = state.after[i]
        log_ratio += math.log(kappa / precision)
    marginal = log_marginal_of_group(hyper, group, state.size[k], b, log_ratio)
    return marginal - 0.5 * log_scales
