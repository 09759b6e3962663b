"""Experts who differ: offsets and noise factors of their own, learned from all clusters.

Expert f describes an object with mean μ_k and covariance Σ_k as

    y ~ N(μ_k + b_f, r_f² Σ_k),   log r_f = t_f,

so y − b_f is what the mean expert would have said, with the precision w = r_f⁻² relative to it. The
b and t are at the end of a likelihood's law; the likelihood takes off the one and weighs with the
other wherever it looks at an item, and says here what an item tells of them.

Given the clusters, the likelihood of b_f is normal, with the precision Σ w Σ_k⁻¹ over f's items and
the gradient Σ w Σ_k⁻¹ (y − b_f − μ_k). Shifting all experts alike and all clusters against it would
change nothing, so the offsets are held at Σ_f s_f b_f = 0, where s_f is f's share of the items: b_f
is relative to the mean item. The prior is a normal for each expert, given that. One coordinate of
all experts is drawn at once: independent normals with precisions p_f, then conditioned on their
sum,

    b_f − (s_f / p_f) (Σ_e s_e b_e) / (Σ_e s_e² / p_e).

The log noise factors t_f, held at Σ_f s_f t_f = 0 as all could grow while the clusters' variances
shrink, have with Q_f = Σ vᵀ Σ_k⁻¹ v over the n_f items of f, v = y − b_f − μ_k, of p features, the
log density

    −p n_f t_f − exp(−2 t_f) Q_f / 2 − t_f² / 2σ²,

and are moved two at a time, against each other. σ itself is learned from those of all F experts:
log σ is normal about a guess, and given t, of which F − 1 are free, has the log density

    −(F − 1) log σ − Σ_f t_f² / 2σ²

besides. So where experts are alike all factors shrink to one.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, F8x2, frame
from dfcrp.compiled.jit import by_type, implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import FARTHEST, log_target, slice_update
from dfcrp.likelihoods.law import law_is_due
from dfcrp.likelihoods.tails import log_scale_of

#: For "not learned", in place of where a parameter begins in the law.
NOWHERE = -1
#: Columns of ``Bias.work``: an expert's share of the items and their number; Q_f, an offset before
#: its update; then the gradient in each offset, then their precision row by row.
SHARE, COUNT, SQUARES, BEFORE, GRADIENT = range(5)
#: On large data offsets are learned once in so many scans: more often than the law is otherwise, as
#: they and the clusters wait for each other.
PERIOD = 2
#: How often each noise factor is moved in an update: against few others each time, at little cost.
NOISE_ROUNDS = 4
#: How uncertain log σ is, where it is learned.
SPREAD_SD = 0.7
#: How often the levels of known items are drawn.
NEWCOMER_ROUNDS = 3


@frame
class Bias(NamedTuple):
    """Whose items are whose, and what is believed of how experts differ."""

    on: bool
    offsets: int  # where in the law they begin: p for each expert; or NOWHERE
    noise: int  # the same of the log noise factors, one for each
    spread: int  # where log σ is; NOWHERE: σ is ``noise_sd``
    offset_sd: F8  # (p,): prior standard deviations
    scattering: int  # how many of the features scatter, if not all do
    noise_sd: float
    expert: I4  # (n,) int32: the expert of each item
    work: F8x2  # (experts, GRADIENT + p + p²)
    room: F8x2  # (2 p, p): for whatever a likelihood has to work out


def work_columns(features: int) -> int:
    """Columns of ``Bias.work``."""
    return GRADIENT + features + features * features


ALIKE = Bias(
    on=False,
    offsets=NOWHERE,
    noise=NOWHERE,
    spread=NOWHERE,
    offset_sd=np.ones(0),
    scattering=0,
    noise_sd=1.0,
    expert=np.zeros(0, np.int32),
    work=np.zeros((0, work_columns(0))),
    room=np.zeros((0, 0)),
)


def with_bias(
    hyper: Any,
    learned: str,
    experts: NDArray[np.int64],
    offset_sd: NDArray[np.float64],
    noise_sd: float,
    *,
    learn_spread: bool = False,
    scattering: int | None = None,
    count: int = 0,
) -> Any:
    """The hyperparameters with a law that has the experts' offsets and noise factors as well.

    ``learned`` is "offset", "precision" or "both"; ``experts`` are codes from 0, in the numbering
    of the kernels, and ``count`` says how many there are, if some have no item. With
    ``learn_spread``, ``noise_sd`` is a guess.
    """
    counts, p = np.bincount(experts, minlength=count), len(offset_sd)
    work = np.zeros((len(counts), work_columns(p)))
    work[:, COUNT], work[:, SHARE] = counts, counts / len(experts)
    at, offsets, noise, spread = len(hyper.law), NOWHERE, NOWHERE, NOWHERE
    if learn_spread and learned in ("precision", "both"):
        spread, at = at, at + 1
    if learned in ("offset", "both"):
        offsets, at = at, at + p * len(counts)
    if learned in ("precision", "both"):
        noise, at = at, at + len(counts)
    bias = Bias(
        on=True,
        offsets=offsets,
        noise=noise,
        spread=spread,
        offset_sd=np.asarray(offset_sd, np.float64),
        scattering=p if scattering is None else scattering,
        noise_sd=noise_sd,
        expert=experts.astype(np.int32),
        work=work,
        room=np.zeros((2 * p, p)),
    )
    more = np.zeros(at - len(hyper.law))
    if spread != NOWHERE:
        more[0] = math.log(noise_sd)
    laws = [name for name in ("law", "reference") if name in hyper._fields]
    longer = {name: np.append(getattr(hyper, name), more) for name in laws}
    return hyper._replace(**longer, bias=bias)


def of_chain(hyper: Any, law: NDArray[np.float64]) -> Any:
    """The hyperparameters of one chain: its own law, sums over experts, and levels of items."""
    bias, tails = hyper.bias, hyper.tails
    return hyper._replace(
        law=law,
        bias=bias._replace(work=bias.work.copy(), room=bias.room.copy()),
        tails=tails._replace(log_scale=tails.log_scale.copy()),
    )


def kept_by_chain(hyper: Any) -> dict[str, NDArray[np.float64]]:
    """How careless each item is."""
    return {"log_scale": hyper.tails.log_scale}


@inline_kernel
def offset_by(hyper, law, i, axis):
    """How far item i's expert is off along an axis, by a law."""
    if hyper.bias.offsets == NOWHERE:
        return 0.0
    return law[hyper.bias.offsets + hyper.bias.offset_sd.shape[0] * hyper.bias.expert[i] + axis]


@inline_kernel
def log_noise_by(hyper, law, i):
    """The log noise factor of item i's expert alone, by a law."""
    if hyper.bias.noise == NOWHERE:
        return 0.0
    return law[hyper.bias.noise + hyper.bias.expert[i]]


@inline_kernel
def precision_by(hyper, law, i):
    """The precision r⁻² of item i's expert alone, by a law."""
    if hyper.bias.noise == NOWHERE:
        return 1.0
    return math.exp(-2.0 * log_noise_by(hyper, law, i))


@inline_kernel
def offset_of(hyper, i, axis):
    """How far item i's expert is off along an axis."""
    return offset_by(hyper, hyper.law, i, axis)


@inline_kernel
def log_noise_of(hyper, i):
    """log r of item i as a member of its cluster: its expert's, and its own level."""
    return log_noise_by(hyper, hyper.law, i) + log_scale_of(hyper, i)


@inline_kernel
def precision_of(hyper, i):
    """The precision r⁻² of item i as a member of its cluster."""
    if hyper.bias.noise == NOWHERE and not hyper.tails.on:
        return 1.0
    return math.exp(-2.0 * log_noise_of(hyper, i))


@by_type
def add_to_offsets(hyper, theta, k, y, i):
    """Add to the sums of item i's expert its w Σ_k⁻¹ and its gradient, by the two below."""


@by_type
def squares_of(hyper, theta, k, y, i):
    """vᵀ Σ_k⁻¹ v / s_i² of item i in cluster k, v = y − b_f − μ_k (``likelihoods.tails``)."""


@inline_kernel
def add_gradient(hyper, i, axis, value):
    """Add to the gradient in one offset of item i's expert."""
    hyper.bias.work[hyper.bias.expert[i], GRADIENT + axis] += value


@inline_kernel
def add_precision(hyper, i, axis, other, value):
    """Add to the precision of two offsets of item i's expert; both orders must be told."""
    p = hyper.bias.offset_sd.shape[0]
    hyper.bias.work[hyper.bias.expert[i], GRADIENT + p + axis * p + other] += value


@inline_kernel
def clear_sums(work):
    """Set the sums over items to zero."""
    for f in range(work.shape[0]):
        for column in range(SQUARES, work.shape[1]):
            work[f, column] = 0.0


@lean_kernel
def gather_offsets(hyper, data, state):
    """For each expert: Σ w Σ_k⁻¹, and the gradient of the likelihood in the offsets."""
    clear_sums(hyper.bias.work)
    for i in range(state.label.shape[0]):
        add_to_offsets(hyper, state.theta, state.label[i], data.features, i)


@inline_kernel
def offset_precision(hyper, f, axis):
    """Precision of one offset of expert f, given the others."""
    sd, p = hyper.bias.offset_sd[axis], hyper.bias.offset_sd.shape[0]
    return hyper.bias.work[f, GRADIENT + p + axis * p + axis] + 1.0 / (sd * sd)


@lean_kernel
def draw_axis(rng, hyper, axis):
    """Draw one coordinate of all experts' offsets, given their gradients; these are kept."""
    law, work = hyper.law, hyper.bias.work
    sd, p = hyper.bias.offset_sd[axis], hyper.bias.offset_sd.shape[0]
    total, variance = 0.0, 0.0
    for f in range(work.shape[0]):
        at = hyper.bias.offsets + p * f + axis
        precision = offset_precision(hyper, f, axis)
        work[f, BEFORE] = law[at]
        law[at] += (work[f, GRADIENT + axis] - law[at] / (sd * sd)) / precision
        law[at] += rng.standard_normal() / math.sqrt(precision)
        total += work[f, SHARE] * law[at]
        variance += work[f, SHARE] * work[f, SHARE] / precision
    for f in range(work.shape[0]):
        at = hyper.bias.offsets + p * f + axis
        law[at] -= work[f, SHARE] / offset_precision(hyper, f, axis) * total / variance
        step = law[at] - work[f, BEFORE]
        # The gradients along the other axes, now that this offset has moved.
        for other in range(p):
            if other != axis:
                work[f, GRADIENT + other] -= work[f, GRADIENT + p + axis * p + other] * step


@lean_kernel
def gather_squares(hyper, data, state):
    """For each expert: Q_f, the sum of vᵀ Σ_k⁻¹ v over the items."""
    work = hyper.bias.work
    clear_sums(work)
    for i in range(state.label.shape[0]):
        squares = squares_of(hyper, state.theta, state.label[i], data.features, i)
        work[hyper.bias.expert[i], SQUARES] += squares


class NoiseTarget(NamedTuple):
    """Two noise factors t that move against each other, and what is known of them."""

    noise_sd: float
    features: float  # p
    first: float  # t_f, n_f, Q_f, and how far a unit step moves it
    first_count: float
    first_squares: float
    first_along: float
    second: float  # the same of the other
    second_count: float
    second_squares: float
    second_along: float


@inline_kernel
def log_noise_density(noise_sd, features, count, squares, value):
    """log density of one t, up to a constant."""
    z = value / noise_sd
    if abs(z) > FARTHEST:
        return -math.inf
    return -features * count * value - 0.5 * math.exp(-2.0 * value) * squares - 0.5 * z * z


@implements(log_target, NoiseTarget)
@inline_kernel
def log_noise_moved(target, step):
    """The same of both, moved by ``step`` along their direction."""
    return log_noise_density(
        target.noise_sd,
        target.features,
        target.first_count,
        target.first_squares,
        target.first + target.first_along * step,
    ) + log_noise_density(
        target.noise_sd,
        target.features,
        target.second_count,
        target.second_squares,
        target.second + target.second_along * step,
    )


@inline_kernel
def noise_sd_of(hyper):
    """σ, as it is."""
    if hyper.bias.spread == NOWHERE:
        return hyper.bias.noise_sd
    return math.exp(hyper.law[hyper.bias.spread])


class SpreadTarget(NamedTuple):
    """log σ, given the noise factors."""

    free: float  # F − 1
    squares: float  # Σ t²
    guess: float


@implements(log_target, SpreadTarget)
@inline_kernel
def log_spread_density(target, value):
    """log density of log σ, up to a constant."""
    z = (value - target.guess) / SPREAD_SD
    if abs(z) > FARTHEST:
        return -math.inf
    return -target.free * value - 0.5 * target.squares * math.exp(-2.0 * value) - 0.5 * z * z


@lean_kernel
def update_spread(rng, hyper):
    """One slice update of log σ; leaves p(σ | noise factors) unchanged."""
    law, at, experts = hyper.law, hyper.bias.noise, hyper.bias.work.shape[0]
    squares = 0.0
    for f in range(experts):
        squares += law[at + f] * law[at + f]
    target = SpreadTarget(float(experts - 1), squares, math.log(hyper.bias.noise_sd))
    law[hyper.bias.spread] = slice_update(rng, target, law[hyper.bias.spread], 1.0, 1e-14)


@inline_kernel
def noise_target(hyper, f, e):
    """Of experts f and e, along the line on which the weighted sum of their t is held.

    Experts without items are not in that sum: of two of them the first moves as it likes.
    """
    law, work, at = hyper.law, hyper.bias.work, hyper.bias.noise
    both = work[f, SHARE] + work[e, SHARE]
    first = work[e, SHARE] / both if both > 0.0 else 1.0
    second = -work[f, SHARE] / both if both > 0.0 else 0.0
    return NoiseTarget(
        noise_sd_of(hyper),
        float(hyper.bias.scattering),
        law[at + f],
        work[f, COUNT],
        work[f, SQUARES],
        first,
        law[at + e],
        work[e, COUNT],
        work[e, SQUARES],
        second,
    )


@lean_kernel
def slice_noise(rng, hyper, f, e):
    """One slice update of t_f against t_e, their weighted sum held."""
    law, at = hyper.law, hyper.bias.noise
    target = noise_target(hyper, f, e)
    along_f, along_e = target.first_along, target.second_along
    # About two standard deviations, if both had many items and little else to go by.
    known = 2.0 * target.features
    known *= along_f * along_f * target.first_count + along_e * along_e * target.second_count
    sd = noise_sd_of(hyper)
    width = 2.0 / math.sqrt(known + 1.0 / (sd * sd))
    step = slice_update(rng, target, 0.0, width, 1e-14)
    law[at + f] += along_f * step
    law[at + e] += along_e * step


@lean_kernel
def update_offsets(rng, hyper, data, state):
    """Draw all offsets, axis by axis; leaves p(offsets | the rest) unchanged."""
    gather_offsets(hyper, data, state)
    for axis in range(hyper.bias.offset_sd.shape[0]):
        draw_axis(rng, hyper, axis)


@lean_kernel
def update_noise(rng, hyper, data, state):
    """Move each noise factor against random others; leaves p(noise | the rest) unchanged."""
    gather_squares(hyper, data, state)
    experts = hyper.bias.work.shape[0]
    if experts == 1:
        return
    for _ in range(NOISE_ROUNDS):
        for f in range(experts):
            e = int(rng.random() * (experts - 1))
            slice_noise(rng, hyper, f, e if e < f else e + 1)
        if hyper.bias.spread != NOWHERE:
            update_spread(rng, hyper)


@lean_kernel
def update_bias(rng, hyper, data, state):
    """What is learned of how experts differ; the caller must draw all spares again."""
    if hyper.bias.offsets != NOWHERE:
        update_offsets(rng, hyper, data, state)
    if hyper.bias.noise != NOWHERE:
        update_noise(rng, hyper, data, state)


@inline_kernel
def bias_is_due(hyper, state):
    """Whether this scan compares experts; their noise alone is learned together with the law."""
    often = hyper.bias.offsets != NOWHERE and state.scans[0] % PERIOD == 0
    return hyper.bias.on and (often or law_is_due(state))


def with_newcomers(hyper: Any, experts: NDArray[np.int64], sources: NDArray[np.int64]) -> Any:
    """The hyperparameters for known items, by these experts, and new ones, in this order.

    A new item whose source is not known, or has no items yet, counts as the mean expert's.
    """
    if hyper.tails.on:
        scale = np.zeros(len(experts) + len(sources))
        hyper = hyper._replace(tails=hyper.tails._replace(log_scale=scale))
    bias = hyper.bias
    if not bias.on:
        return hyper
    law, count, p = np.asarray(hyper.law), len(bias.work), len(bias.offset_sd)
    head = [at for at in (bias.offsets, bias.noise) if at != NOWHERE]
    parts, at = [law[: min(head)]], min(head)
    offsets = noise = NOWHERE
    if bias.offsets != NOWHERE:
        found = law[bias.offsets : bias.offsets + p * count]
        parts += [found, np.zeros(p)]
        offsets, at = at, at + p * (count + 1)
    if bias.noise != NOWHERE:
        parts += [law[bias.noise : bias.noise + count], np.zeros(1)]
        noise, at = at, at + count + 1
    known = (sources >= 0) & (sources < count)
    everyone = np.concatenate([experts, np.where(known, sources, count)]).astype(np.int32)
    bias = bias._replace(offsets=offsets, noise=noise, expert=everyone)
    return hyper._replace(law=np.concatenate(parts), bias=bias)
