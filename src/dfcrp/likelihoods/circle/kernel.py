"""Circles in a plane and on a sphere: rows of parameters, laws of variances, updates of a cluster.

``circle.plane`` and ``circle.sphere`` say how a marking's place scatters about a cluster's mean and
how that mean is drawn; all else is the same, and is here once. Given the cluster mean's log
diameter l the variances, a of position and d of log diameter, have one of two laws. The paper's,
with l held at ``floor`` below it:

    a ~ Gamma(τx κx l^ηx, rate τx),  d ~ Gamma(τd κd l^ηd, rate τd).

The one whose parameters are learned, free of units, with l₀ the median log diameter:

    a ~ Gamma(νx, mean exp(sx + gx (l − l₀))),  d ~ Gamma(νd, mean exp(sd + gd (l − l₀))).

Where experts differ, y stands for a marking without its expert's offsets, and its covariance is
divided by the expert's precision (``likelihoods.bias``); where they do not, nothing is taken off
and the precision is 1. A careless member has its own scale in its precision; a marking that may
join has the mixture over its levels (``likelihoods.tails``), and q is the exact conditional of the
mean under this mixture.

Where all diameters are the same they say nothing, and the model does without them: a row then is
that of its place alone, with λ = UNSIZED as a sign of it and d = 1, and μl stays at that diameter.

A spare is drawn from the law at ``reference``, another value of ``law``. Where it is learned, each
Gamma is divided by a Gamma(t) of mean one, t = TAIL: with x = v ν / (t m) the log variance has the
density

    x^ν (1 + x)^−(ν + t) / B(ν, t),

which fall more slowly than any Gamma's, so that opening weights are bounded wherever the law goes.

When two clusters are dealt out again, parameters are proposed from the members. With the mean
integrated out and λ ignored, log a has the log density

    k t − τ e^t − (S / 2) e^−t,   k = shape − (n − 1),   S = Σ |position − mean|²,

whose mode and curvature are closed forms; log d likewise with (n − 1)/2. A normal at the mode,
a little wider, proposes each; λ comes from its prior and the mean from its conditional.

``covariance`` has the conditionals of the variances and of λ, ``tolerance`` the law's updates.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import kept_by_chain as bias_kept
from dfcrp.likelihoods.bias import log_noise_by, offset_by, precision_by
from dfcrp.likelihoods.bias import of_chain as bias_of_chain
from dfcrp.likelihoods.circle.covariance import Conditional, CorrelationLaw, slice_coordinate
from dfcrp.likelihoods.contract import log_tilt
from dfcrp.likelihoods.law import SMALL
from dfcrp.likelihoods.tails import (
    LOG_WIDE,
    LOG_WIDEST,
    draw_level,
    log_normal_tail,
    log_sum,
    settle_normal,
    shares_by,
)
from dfcrp.values import Json

#: Columns of a parameter row: the parameters, then what the density needs of them.
MU_X, MU_Y, MU_L, VAR_POSITION, VAR_SIZE, LAMBDA, INV_A, BETA, INV_S, LOG_NORM, LOG_A, LOG_D = (
    range(12)
)
WIDTH = 12
#: The column of log diameters in the features.
SIZE = 2
#: Columns of ``CircleHyper.room``.
ROOM = 4
LOG_2PI = math.log(2.0 * math.pi)
#: Shape of the Gamma that makes the tails of a spare's variances heavier than the law's.
TAIL = 8.0
#: In place of λ where diameters are all the same.
UNSIZED = 2.0
#: How often a singleton's parameters are renewed together.
RENEWAL = 0.8
#: Standard deviations of the proposal relative to the curvature at the mode.
WIDER = 1.2


@by_type
def squares_by(hyper, law, theta, k, y, i):
    """vᵀ Σ_k⁻¹ v / r², with experts who differ by a law, of the first level; v = y_i − μ_k."""


@by_type
def log_marginal_at(hyper, law, theta, k, y, i, log_scale):
    """log p(y_i | Σ_k) at the level log s, the mean integrated out."""


@by_type
def draw_lambda(hyper, rng):
    """Draw λ of a row from its prior; it is fixed where place and size are independent."""


@by_type
def draw_mean_of_one(hyper, law, rng, y, i, precision, theta, k):
    """Draw the mean of row k given its variances and marking i alone, of a precision."""


@by_type
def draw_mean_of_members(hyper, rng, moments, theta, row):
    """Draw the mean of a row given its variances and the members' moments."""


@by_type
def spread_of(hyper, theta, k, y, state):
    """Second moments of cluster k's members about its current mean."""


@by_type
def update_mean(hyper, rng, prior, data, state, k):
    """Update μ_k; leaves p(μ_k | members, Σ_k) unchanged and returns whether the size moved."""


@by_type
def slice_lambda(hyper, rng, given, lam, a, d):
    """A slice update of λ given the rest; leaves its conditional unchanged."""


@by_type
def moments_of(hyper, y, state, k):
    """Moments of cluster k's members: their number, sums and spread."""


@by_type
def log_marginal_of_members(hyper, y, state, k, theta, row, moments):
    """log p(members | Σ) with the mean integrated out."""


def of_chain(hyper: Any, law: NDArray[np.float64]) -> Any:
    """The hyperparameters of one chain: its own laws and sums."""
    mine = bias_of_chain(hyper, law)
    return mine._replace(reference=hyper.reference.copy(), room=hyper.room.copy())


def kept_by_chain(hyper: Any) -> dict[str, NDArray[np.float64]]:
    """What spares are drawn from, and how careless each marking is."""
    return {"reference": hyper.reference, **bias_kept(hyper)}


def with_law(
    shapes: tuple[float, float],
    level: float,
    law_mean: NDArray[np.float64],
    law_sd: NDArray[np.float64],
    n: int,
) -> Json:
    """What the hyperparameters hold of a law that is learned, with the Gammas' shapes (νx, νd).

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


def without_law() -> Json:
    """What the hyperparameters hold in place of a law that is learned, for the paper's."""
    nothing = np.zeros(4)
    return {
        **with_law((1.0, 1.0), 0.0, nothing, nothing, 0),
        "learned": False,
        "law": np.zeros(0),
        "reference": np.zeros(0),
    }


@inline_kernel
def size_by(hyper, law, y, i):
    """Marking i's log diameter without its expert's offset, by a law."""
    return y[i, SIZE] - offset_by(hyper, law, i, 2)


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
def log_density_by(hyper, law, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i, with experts who differ by a law."""
    squares = squares_by(hyper, law, theta, k, y, i)
    norm = theta[k, LOG_NORM] - features_of(hyper) * log_noise_by(hyper, law, i)
    if hyper.tails.on:
        return norm + log_normal_tail(hyper, law, features_of(hyper), squares)
    return norm - 0.5 * squares


@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | θ_k), whatever the level of i."""
    return log_density_by(hyper, hyper.law, theta, k, y, i)


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
    log_diameter = size_by(hyper, law, y, i)
    value = (
        log_marginal_given_covariance(hyper, law, theta, k, y, i)
        + log_variance_prior(hyper, theta[k, MU_L], log_a, log_d)
        - log_drawn_variances(hyper, law, log_diameter, log_a, log_d)
    )
    if hyper.bias.on or hyper.tails.on:
        value += log_density(hyper, theta, k, y, i) - log_density_by(hyper, law, theta, k, y, i)
    return value


@inline_kernel
def opening_weight(hyper, theta, k, y, i):
    """log of p(y_i | φ) p(φ) / q(φ | y_i) for the parameters φ in row k."""
    return weight_drawn_by(hyper, hyper.reference, theta, k, y, i)


@lean_kernel
def draw_row_by(hyper, law, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i), q by a law, into row k."""
    draw_variances(hyper, law, rng, size_by(hyper, law, y, i), theta, k)
    theta[k, LAMBDA] = draw_lambda(hyper, rng)
    complete_row(theta, k)
    precision = precision_by(hyper, law, i)
    if hyper.tails.on:
        first, wide, widest = log_marginal_levels(hyper, law, theta, k, y, i)
        precision *= math.exp(-2.0 * draw_level(rng, first, wide, widest))
    draw_mean_of_one(hyper, law, rng, y, i, precision, theta, k)


@lean_kernel
def open_cluster(hyper, rng, y, i, theta, k):
    """Draw φ ~ q(· | y_i) into row k and return its opening weight."""
    draw_row_by(hyper, hyper.reference, rng, y, i, theta, k)
    return opening_weight(hyper, theta, k, y, i)


@lean_kernel
def update_covariance(hyper, rng, data, state, k):
    """Slice updates of log a, log d and λ; leaves p(Σ_k | members, μ_k) unchanged."""
    theta, y = state.theta, data.features
    shape_a, rate_a = position_law(hyper, theta[k, MU_L])
    shape_d, rate_d = size_law(hyper, theta[k, MU_L])
    given = Conditional(shape_a, rate_a, shape_d, rate_d, spread_of(hyper, theta, k, y, state))
    law = CorrelationLaw(hyper.lambda_a, hyper.lambda_b)
    d, lam = theta[k, VAR_SIZE], theta[k, LAMBDA] if hyper.sized else 0.0
    a = math.exp(slice_coordinate(rng, law, given, 0, theta[k, LOG_A], 1.0, d, lam))
    theta[k, VAR_POSITION] = a
    if hyper.sized:
        d = math.exp(slice_coordinate(rng, law, given, 1, theta[k, LOG_D], 1.0, a, lam))
        theta[k, VAR_SIZE], theta[k, LAMBDA] = d, slice_lambda(hyper, rng, given, lam, a, d)
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
        for column in range(theta.shape[1]):
            theta[k, column] = proposal[0, column]
    settle(hyper, rng, theta, k, y, i, True)
    return accepted


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


@inline_kernel
def add_member(hyper, theta, k, y, i):
    """Nothing to keep: the parameters are drawn."""


@inline_kernel
def remove_member(hyper, theta, k, y, i):
    """Nothing to keep: the parameters are drawn."""


@inline_kernel
def size_of(hyper, theta, k):
    """The mean's log diameter."""
    return theta[k, MU_L]


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


@lean_kernel
def start_deal(hyper, data, deal, i, j):
    """Begin with i on one side and j on the other; variances are the prior's means."""
    y = data.features
    level = 0.5 * (size_by(hyper, hyper.law, y, i) + size_by(hyper, hyper.law, y, j))
    shape_a, rate_a = position_law(hyper, level)
    shape_d, rate_d = size_law(hyper, level)
    deal.variance[0], deal.variance[1] = shape_a / rate_a, shape_d / rate_d
    for side in range(2):
        deal.dealt[side] = 0.0
        for column in range(deal.sums.shape[1]):
            deal.sums[side, column] = 0.0
    likelihood.put_on_side(hyper, data, deal, 0, i)
    likelihood.put_on_side(hyper, data, deal, 1, j)


@lean_kernel
def propose_row(hyper, rng, y, state, k, theta, row):
    """Draw parameters for cluster k into ``theta[row]``."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    propose_variances(rng, hyper, around, theta, row)
    theta[row, LAMBDA] = draw_lambda(hyper, rng)
    complete_row(theta, row)
    draw_mean_of_members(hyper, rng, moments, theta, row)


@lean_kernel
def row_weight(hyper, y, state, k, theta, row):
    """log of p(members | θ) p(θ) / (density with which ``propose_row`` draws θ)."""
    moments = moments_of(hyper, y, state, k)
    around = peaks(hyper, moments, moments.sum_l / moments.weight)
    value = log_marginal_of_members(hyper, y, state, k, theta, row, moments)
    return value + weight_of_variances(hyper, around, theta, row)


#: What circles in a plane and on a sphere have in common, by the contract's names.
_SHARED = (
    (likelihood.log_density, log_density),
    (likelihood.settle, settle),
    (likelihood.opening_weight, opening_weight),
    (likelihood.open_cluster, open_cluster),
    (likelihood.update_cluster, update_cluster),
    (likelihood.add_member, add_member),
    (likelihood.remove_member, remove_member),
    (likelihood.size_of, size_of),
    (likelihood.start_deal, start_deal),
    (likelihood.propose_row, propose_row),
    (likelihood.row_weight, row_weight),
)


def of_circles(kind: Any) -> Any:
    """Class decorator: hyperparameters of circles, wherever these are."""
    likelihood.of_chain.register(kind, of_chain)
    likelihood.kept_by_chain.register(kind, kept_by_chain)
    for stub, kernel in _SHARED:
        implements(stub, kind)(kernel)
    return kind
