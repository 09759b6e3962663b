"""How far apart markings of one object lie, learned from all clusters.

Given the clusters' variances v_k and log diameters l_k, the law v ~ Gamma(ν, mean m(l)) with
log m(l) = s + g (l − l₀) has the log likelihood

    −ν Σ_k [ s + g (l_k − l₀) + v_k exp(−s − g (l_k − l₀)) ]

so s needs one sum, whatever its value, and g one per evaluation. Both have normal priors.

Clusters of few markings follow the law they inform, and with few clusters the two would creep along
together. So the four parameters (on large data one of them at a time) are also updated with every
v_k moving along in proportion (v_k / mean fixed): the Gamma terms then cancel with the Jacobian,
and the markings alone decide.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, shrinking_update, slice_update
from dfcrp.compiled.state import Data, State
from dfcrp.likelihoods.circle.covariance import Conditional, log_target_position, log_target_size
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
from dfcrp.likelihoods.law import SMALL, law_is_due


@lean_kernel
def scaled_sum(state, column, level, growth):
    """Σ_k v_k exp(−g (l_k − l₀)) over the clusters."""
    total = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            away = state.theta[k, MU_L] - level
            total += state.theta[k, column] * math.exp(-growth * away)
    return total


@inline_kernel
def log_law(value, mean, sd, nu, clusters, away, scale, growth, total):
    """log posterior of the law at (s, g) but for the prior of the one not in ``value``.

    ``away`` is Σ_k (l_k − l₀) and ``total`` the scaled sum at g.
    """
    z = (value - mean) / sd
    return -0.5 * z * z - nu * (clusters * scale + growth * away + math.exp(-scale) * total)


class Known(NamedTuple):
    """Of one of the two laws: the prior of s or g, ν, and sums over the clusters."""

    mean: float
    sd: float
    nu: float
    clusters: float
    away: float


class Scale(NamedTuple):
    """s given g and the scaled sum at g."""

    known: Known
    growth: float
    total: float


@implements(log_target, Scale)
@inline_kernel
def log_scale(target, value):
    """log p(s | g, clusters)."""
    mean, sd, nu, clusters, away = target.known
    return log_law(value, mean, sd, nu, clusters, away, value, target.growth, target.total)


class Growth(NamedTuple):
    """g given s; ``column`` of the clusters' rows holds the variances."""

    known: Known
    scale: float
    state: State
    column: int
    level: float


@implements(log_target, Growth)
@inline_kernel
def log_growth(target, value):
    """log p(g | s, clusters)."""
    mean, sd, nu, clusters, away = target.known
    total = scaled_sum(target.state, target.column, target.level, value)
    return log_law(value, mean, sd, nu, clusters, away, target.scale, value, total)


@inline_kernel
def slice_scale(rng, start, known, growth, total):
    """One slice update of s given g."""
    width = min(known.sd, 2.0 / math.sqrt(known.nu * known.clusters + 1.0))
    target = Scale(known, growth, total)
    return slice_update(rng, target, start, width, 1e-14 * (1.0 + abs(start)))


@inline_kernel
def slice_growth(rng, hyper, state, column, start, known, scale):
    """One slice update of g given s; its width exceeds the posterior's when clusters are many."""
    target = Growth(known, scale, state, column, hyper.level)
    return shrinking_update(rng, target, start, 0.5 * known.sd, 1e-14 * (1.0 + abs(start)))


@lean_kernel
def log_moved(hyper, data, state, which, step):
    """log p(y | θ) over all markings, one parameter of the law and the variances moved by ``step``.

    Only what depends on the variances that move: those of position (which < 2) or log diameter.
    """
    total = 0.0
    theta = state.theta
    for k in range(theta.shape[0]):
        if state.size[k] <= 0:
            continue
        shift = step if which % 2 == 0 else step * (theta[k, MU_L] - hyper.level)
        spread = spread_of(hyper, theta, k, data.features, state)
        given = Conditional(0.0, 0.0, 0.0, 0.0, spread)
        if which < 2:
            total += log_target_position(
                given, theta[k, LOG_A] + shift, theta[k, VAR_SIZE], theta[k, LAMBDA]
            )
        else:
            total += log_target_size(
                given, theta[k, LOG_D] + shift, theta[k, VAR_POSITION], theta[k, LAMBDA]
            )
    return total


@lean_kernel
def move_variances(hyper, state, which, step):
    """Move the clusters' variances along with the law."""
    theta = state.theta
    column = VAR_POSITION if which < 2 else VAR_SIZE
    for k in range(theta.shape[0]):
        if state.size[k] > 0:
            shift = step if which % 2 == 0 else step * (theta[k, MU_L] - hyper.level)
            theta[k, column] *= math.exp(shift)
            complete_row(theta, k)


class Along(NamedTuple):
    """A step of one parameter of the law together with the variances."""

    hyper: NamedTuple
    data: Data
    state: State
    which: int


@implements(log_target, Along)
@inline_kernel
def log_along(target, step):
    """log p(y | θ) p(law) after the step."""
    hyper, which = target.hyper, target.which
    z = (hyper.law[which] + step - hyper.law_mean[which]) / hyper.law_sd[which]
    return log_moved(hyper, target.data, target.state, which, step) - 0.5 * z * z


@lean_kernel
def update_law_along(rng, hyper, data, state, which):
    """One parameter of the law together with the variances; leaves the joint unchanged."""
    sd = hyper.law_sd[which]
    target = Along(hyper, data, state, which)
    step = shrinking_update(rng, target, 0.0, 2.0 * sd, 1e-12 * sd)
    if step != 0.0:
        hyper.law[which] += step
        move_variances(hyper, state, which, step)


@lean_kernel
def update_law(rng, hyper, data, state):
    """All that is to be known of the law; leaves p(law, variances | the rest) unchanged.

    The spare parameters of markings are drawn from the law; the caller must draw all again.
    """
    update_law_given_variances(rng, hyper, state)
    first, last = 0, 4
    if state.label.shape[0] > SMALL:
        first = int(4.0 * rng.random())
        last = first + 1
    for which in range(first, last):
        update_law_along(rng, hyper, data, state, which)


@lean_kernel
def update_law_given_variances(rng, hyper, state):
    """Scale and growth of both laws, one after the other; leaves p(law | clusters) unchanged."""
    clusters, away = 0.0, 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            clusters += 1.0
            away += state.theta[k, MU_L] - hyper.level
    for which in range(2):
        column = VAR_POSITION if which == 0 else VAR_SIZE
        nu = hyper.nu_x if which == 0 else hyper.nu_d
        s, g = 2 * which, 2 * which + 1
        known = Known(hyper.law_mean[g], hyper.law_sd[g], nu, clusters, away)
        hyper.law[g] = slice_growth(rng, hyper, state, column, hyper.law[g], known, hyper.law[s])
        total = scaled_sum(state, column, hyper.level, hyper.law[g])
        known = Known(hyper.law_mean[s], hyper.law_sd[s], nu, clusters, away)
        hyper.law[s] = slice_scale(rng, hyper.law[s], known, hyper.law[g], total)


@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update the law if it is learned and due; returns whether it was."""
    if not hyper.learned or not law_is_due(state):
        return False
    update_law(rng, hyper, data, state)
    return True
