"""How far apart markings of one object lie, learned from all clusters.

A variance v of a cluster at log diameter l has the law v ~ Gamma(ν, mean exp(s + g x)), x = l − l₀;
s and g have normal priors, and there are two such laws, of position and of log diameter. They are
updated twice in a scan:

* given the variances. With r_k = v_k / mean_k, a step that moves log mean_k by h_k has
  Σ_k (−ν h_k − ν r_k e^−h_k) as its log likelihood;
* with the variances moving along, v_k / mean_k held: the Gammas cancel with the Jacobian, and the
  markings decide. With Σ as in ``circle.plane``, a step h_k of log a or log d has

      Σ_k (−c_k h_k − A_k e^−h_k − B_k e^(−h_k/2)),   B_k = −λ Σ(v1 + v2) v3 / (sqrt(2ad) (1 − λ²)),

  for log a with c = n and A = (Σ(v1² + v2²) + λ² Σ(v1 + v2)² / 2(1 − λ²)) / 2a, for log d with
  c = n / 2 and A = Σ v3² / 2d(1 − λ²), sums over the n members.

Clusters of many markings do not care which; those of few follow the law they inform, and only the
second kind of step does not creep. Both are of one form, with c = ν, A = ν r, B = 0 in the first.
Its sums over members are taken once; a step of s then needs three numbers, and one of g a pass over
the clusters. g is moved around x̄ = Σ c_k x_k / Σ c_k, that is with s against it, h_k = t (x_k − x̄):
around l₀ the two would be tied to each other.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8x2
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import FARTHEST, log_target, slice_update
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.bias import bias_is_due, update_bias
from dfcrp.likelihoods.circle.kernel import (
    LAMBDA,
    LOG_A,
    LOG_D,
    MU_L,
    VAR_POSITION,
    VAR_SIZE,
    complete_row,
    spread_of,
)
from dfcrp.likelihoods.law import law_is_due
from dfcrp.likelihoods.tails import tails_are_due, update_tails

#: Columns of the room to work in, a row for each cluster: x_k − x̄, A_k of log a, A_k of log d, B_k.
AWAY, POSITION, SIZE, CROSS = range(4)
#: Scans after which spares are drawn from the same law for ever; they belong to the burn-in.
SETTLED = 100
#: First width of a slice, in standard deviations that the number of markings suggests; and at most
#: so many of the prior's.
WIDTH, WIDEST = 4.0, 2.0


class Sums(NamedTuple):
    """Of the clusters in the room: how many, Σ c_k of log a, x̄ and Σ c_k (x_k − x̄)²."""

    rows: int
    weight: float
    centre: float
    spread: float


@lean_kernel
def gather_variances(hyper, state):
    """Fill the room for steps given the variances; the sums are those with c = 1."""
    room, theta, rows, total = hyper.room, state.theta, 0, 0.0
    for k in range(theta.shape[0]):
        if state.size[k] > 0:
            away = theta[k, MU_L] - hyper.level
            room[rows, AWAY] = away
            mean_a = hyper.law[0] + hyper.law[1] * away
            mean_d = hyper.law[2] + hyper.law[3] * away
            room[rows, POSITION] = hyper.nu_x * math.exp(theta[k, LOG_A] - mean_a)
            room[rows, SIZE] = hyper.nu_d * math.exp(theta[k, LOG_D] - mean_d)
            room[rows, CROSS] = 0.0
            total += away
            rows += 1
    centre, spread = total / rows, 0.0
    for row in range(rows):
        room[row, AWAY] -= centre
        spread += room[row, AWAY] * room[row, AWAY]
    return Sums(rows, float(rows), centre, spread)


@lean_kernel
def gather_members(hyper, data, state):
    """Fill the room for steps that the variances move along with; the sums are those of log a."""
    room, theta, rows, weight, total = hyper.room, state.theta, 0, 0.0, 0.0
    for k in range(theta.shape[0]):
        if state.size[k] > 0:
            a, d, lam = theta[k, VAR_POSITION], theta[k, VAR_SIZE], theta[k, LAMBDA]
            lam = lam if hyper.sized else 0.0
            held, rest = spread_of(hyper, theta, k, data.features, state), 1.0 - lam * lam
            away = theta[k, MU_L] - hyper.level
            room[rows, AWAY] = away
            room[rows, POSITION] = 0.5 * (held.position + 0.5 * lam * lam * held.ww / rest) / a
            room[rows, SIZE] = 0.5 * held.v33 / (d * rest)
            room[rows, CROSS] = -lam * held.w3 / (math.sqrt(2.0 * a * d) * rest)
            weight += held.members
            total += held.members * away
            rows += 1
    centre, spread, rows = total / weight, 0.0, 0
    for k in range(theta.shape[0]):
        if state.size[k] > 0:
            room[rows, AWAY] -= centre
            spread += state.size[k] * room[rows, AWAY] * room[rows, AWAY]
            rows += 1
    return Sums(rows, weight, centre, spread)


class ScaleStep(NamedTuple):
    """A step of s: its prior, and Σ c, Σ A, Σ B."""

    start: float
    mean: float
    sd: float
    weight: float
    plain: float
    cross: float


@implements(log_target, ScaleStep)
@inline_kernel
def log_scale_step(target, step):
    """Its log posterior."""
    z = (target.start + step - target.mean) / target.sd
    if abs(z) > FARTHEST:
        return -math.inf
    half = math.exp(-0.5 * step)
    value = target.weight * step + target.plain * half * half + target.cross * half
    return -value - 0.5 * z * z


class GrowthStep(NamedTuple):
    """A step of g with s against it: where they are and their priors, and the room."""

    scale: float
    scale_mean: float
    scale_sd: float
    growth: float
    growth_mean: float
    growth_sd: float
    centre: float
    room: F8x2
    rows: int
    column: int


@implements(log_target, GrowthStep)
@inline_kernel
def log_growth_step(target, step):
    """Its log posterior; Σ c_k (x_k − x̄) is zero."""
    z = (target.scale - target.centre * step - target.scale_mean) / target.scale_sd
    w = (target.growth + step - target.growth_mean) / target.growth_sd
    if abs(z) > FARTHEST or abs(w) > FARTHEST:
        return -math.inf
    value = 0.0
    for row in range(target.rows):
        half = math.exp(-0.5 * step * target.room[row, AWAY])
        value += half * (target.room[row, target.column] * half + target.room[row, CROSS])
    return -value - 0.5 * (z * z + w * w)


@lean_kernel
def shift_room(room, rows, column, scale, growth):
    """Let the room know of a step: A_k and B_k after it."""
    for row in range(rows):
        half = math.exp(-0.5 * (scale + growth * room[row, AWAY]))
        room[row, column] *= half * half
        room[row, CROSS] *= half


@lean_kernel
def step_scale(rng, hyper, sums, which, share):
    """One slice update of s of a law (0: position, 1: log diameter), c being ``share`` of that
    in the sums; returns how far it went."""
    at, column, plain, cross = 2 * which, POSITION + which, 0.0, 0.0
    for row in range(sums.rows):
        plain += hyper.room[row, column]
        cross += hyper.room[row, CROSS]
    weight, sd = share * sums.weight, hyper.law_sd[at]
    target = ScaleStep(hyper.law[at], hyper.law_mean[at], sd, weight, plain, cross)
    step = slice_update(rng, target, 0.0, min(WIDEST * sd, WIDTH / math.sqrt(weight)), 1e-14)
    hyper.law[at] += step
    return step


@lean_kernel
def step_growth(rng, hyper, sums, which, share):
    """One slice update of g of a law, with s against it; returns how far g went."""
    s, g = 2 * which, 2 * which + 1
    target = GrowthStep(
        hyper.law[s],
        hyper.law_mean[s],
        hyper.law_sd[s],
        hyper.law[g],
        hyper.law_mean[g],
        hyper.law_sd[g],
        sums.centre,
        hyper.room,
        sums.rows,
        POSITION + which,
    )
    sd = hyper.law_sd[g]
    known = share * sums.spread
    width = min(WIDEST * sd, WIDTH / math.sqrt(known)) if known > 0.0 else WIDEST * sd
    step = slice_update(rng, target, 0.0, width, 1e-14 * sd)
    hyper.law[g] += step
    hyper.law[s] -= sums.centre * step
    return step


@lean_kernel
def step_law(rng, hyper, sums, which, share):
    """s, then g of a law; returns both steps, the second around x̄."""
    scale = step_scale(rng, hyper, sums, which, share)
    shift_room(hyper.room, sums.rows, POSITION + which, scale, 0.0)
    growth = step_growth(rng, hyper, sums, which, share)
    shift_room(hyper.room, sums.rows, POSITION + which, 0.0, growth)
    return scale, growth


@lean_kernel
def update_law_given_variances(rng, hyper, state):
    """Both laws; leaves p(law | clusters) unchanged."""
    sums = gather_variances(hyper, state)
    step_law(rng, hyper, sums, 0, hyper.nu_x)
    if hyper.sized:
        step_law(rng, hyper, sums, 1, hyper.nu_d)


@lean_kernel
def update_law_along(rng, hyper, data, state):
    """Both laws together with the variances; leaves the joint of these unchanged."""
    sums = gather_members(hyper, data, state)
    scale_x, growth_x = step_law(rng, hyper, sums, 0, 1.0)
    scale_d, growth_d = 0.0, 0.0
    if hyper.sized:
        scale_d, growth_d = step_law(rng, hyper, sums, 1, 0.5)
    theta, row = state.theta, 0
    for k in range(theta.shape[0]):
        if state.size[k] > 0:
            away = hyper.room[row, AWAY]
            theta[k, VAR_POSITION] *= math.exp(scale_x + growth_x * away)
            theta[k, VAR_SIZE] *= math.exp(scale_d + growth_d * away)
            complete_row(theta, k)
            row += 1


@lean_kernel
def update_law(rng, hyper, data, state):
    """All that is to be known of the law; leaves p(law, variances | the rest) unchanged."""
    update_law_given_variances(rng, hyper, state)
    update_law_along(rng, hyper, data, state)


@inline_kernel
def reference_settles(state):
    """Whether the law that spares of many markings are drawn from becomes what the law is now.

    Only in the burn-in, with all spares drawn again: that they persist while the law moves is
    exact only if what they are drawn from does not depend on anything that moves.
    """
    return state.scans[0] < SETTLED and law_is_due(state)


@lean_kernel
def account_for_law(hyper, data, state):
    """After an update: weigh the spares again, or let the caller draw them; returns whether."""
    if hyper.follow or reference_settles(state):
        for entry in range(hyper.law.shape[0]):
            hyper.reference[entry] = hyper.law[entry]
        return True
    for i in range(state.spare.shape[0]):
        state.spare_weight[i] = likelihood.opening_weight(hyper, state.spare, i, data.features, i)
    return False


class Tolerances(NamedTuple):
    """What the law was before an update: s and g of position, then of log diameter."""

    scale_x: float
    growth_x: float
    scale_d: float
    growth_d: float


@inline_kernel
def tolerances_of(hyper):
    """The law as it is."""
    return Tolerances(hyper.law[0], hyper.law[1], hyper.law[2], hyper.law[3])


@inline_kernel
def log_law_ratio(nu, variance, mean, old_mean):
    """log of Gamma(ν, mean e^mean) over Gamma(ν, mean e^old_mean) at a variance."""
    return nu * (old_mean - mean + variance * (math.exp(-old_mean) - math.exp(-mean)))


@lean_kernel
def account_for_tolerances(hyper, data, state, before):
    """``account_for_law`` where the tolerances alone have changed, at a third of its cost.

    The weights gain the ratio of the two laws. Every spare is renewed once in a few scans, so that
    roundings do not add up; a weight that is no number any more is found again.
    """
    if hyper.follow or reference_settles(state):
        return account_for_law(hyper, data, state)
    law, spare = hyper.law, state.spare
    for i in range(spare.shape[0]):
        x = spare[i, MU_L] - hyper.level
        old_a = before.scale_x + before.growth_x * x
        old_d = before.scale_d + before.growth_d * x
        weight = state.spare_weight[i]
        weight += log_law_ratio(hyper.nu_x, spare[i, VAR_POSITION], law[0] + law[1] * x, old_a)
        weight += log_law_ratio(hyper.nu_d, spare[i, VAR_SIZE], law[2] + law[3] * x, old_d)
        if not math.isfinite(weight):
            weight = likelihood.opening_weight(hyper, spare, i, data.features, i)
        state.spare_weight[i] = weight
    return False


@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update the law, how experts differ and how careless markings are, if due; returns whether
    spares must be drawn."""
    compare, tails = bias_is_due(hyper, state), tails_are_due(hyper, state)
    if not (hyper.learned or compare or tails):
        return False
    if not (compare or tails):
        before = tolerances_of(hyper)
        update_law(rng, hyper, data, state)
        return account_for_tolerances(hyper, data, state, before)
    if hyper.learned:
        update_law(rng, hyper, data, state)
    if compare:
        update_bias(rng, hyper, data, state)
    if tails:
        update_tails(rng, hyper)
    return account_for_law(hyper, data, state)
