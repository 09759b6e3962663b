"""Scores: what a source's own confidence says about reality, learned source by source.

Only the order of a source's scores counts: its scored markings are put into levels b of rank u_b in
(0, 1), with shares w_b; equal scores share a level. With σ_b the logistic function of
γ_f (u_b − 1/2) + a_f and γ_f > 0, a real marking of source f has a score of level b with
probability w_b σ_b / Σ w σ, a false one with w_b (1 − σ_b) / Σ w (1 − σ). So their ratio rises with
the score, is 1 where γ_f = 0, and if the share of real ones is Σ w σ then all of them together
spread over the levels as they do, and a marking of level b is real with probability σ_b.

A factor's real part is multiplied by that ratio for every member; a marking without a score has
the ratio 1. log γ_f ~ N(m, sd²) with m learned from all sources, a_f ~ N(mean, sd²); both are
sliced, given how many real and false markings each level has.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from dfcrp.compiled.abi import I4, F8x2, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection.categories import LEAST

#: Levels of one source, at most.
LEVELS = 20
#: Width of the first bracket of the slice updates.
WIDTH = 1.0
#: Beyond this a score leaves no doubt.
MOST = 600.0


@frame
class ScoreTables(NamedTuple):
    """The levels of the scores, what follows from the parameters, and counts; float64."""

    level: I4  # (n,) int32: by item in input order, NONE without a score; (0,) if none has one
    rank: F8x2  # (F, B): u − 1/2
    share: F8x2  # (F, B): w, 0 where a source has fewer levels
    gain: F8x2  # (F, B): log of the ratio
    real: F8x2  # (F, B): how many are real
    false: F8x2  # (F, B)


def score_levels(
    scores: NDArray[np.float64], families: NDArray[np.int64], sources: int
) -> ScoreTables:
    """Put the scores of every source into levels; NaN is a missing one."""
    level = np.full(len(scores), NONE, np.int32)
    rank, share = np.zeros((sources, LEVELS)), np.zeros((sources, LEVELS))
    for f in range(sources):
        mine = np.flatnonzero((families == f) & ~np.isnan(scores))
        if not mine.size:
            continue
        place = (rankdata(scores[mine]) - 0.5) / mine.size
        used, at = np.unique((place * LEVELS).astype(np.int64), return_inverse=True)
        counts = np.bincount(at)
        level[mine] = at
        rank[f, : len(used)] = np.bincount(at, weights=place) / counts - 0.5
        share[f, : len(used)] = counts / mine.size
    return score_room(level, rank, share)


def score_room(
    level: NDArray[np.int32], rank: NDArray[np.float64], share: NDArray[np.float64]
) -> ScoreTables:
    """Tables and counts for these levels."""
    return ScoreTables(level, rank, share, *(np.zeros_like(rank) for _ in range(3)))


def no_scores(sources: int) -> ScoreTables:
    """Nothing has a score."""
    return score_room(np.zeros(0, np.int32), np.zeros((sources, 0)), np.zeros((sources, 0)))


def score_start(beliefs: Any) -> dict[str, float]:
    """Where chains begin: at what is expected."""
    return {
        "score_slope": beliefs.score_slope,
        "score_offset": beliefs.score_offset,
        "usual_slope": math.log(beliefs.score_slope),
    }


@inline_kernel
def has_scores(prior):
    """Whether markings have scores."""
    return prior.scores.level.shape[0] > 0


@inline_kernel
def log_score(prior, data, i):
    """log of the ratio of marking i: how much more often real ones have such a score."""
    level = prior.scores.level[data.original[i]]
    return 0.0 if level == NONE else prior.scores.gain[data.family[i], level]


@lean_kernel
def log_scores(prior, data, state, k):
    """The same of all members of cluster k."""
    total, j = 0.0, state.head[k]
    while j != NONE:
        total += log_score(prior, data, j)
        j = state.after[j]
    return total


@inline_kernel
def log_odds(prior, f, slope, offset):
    """log Σ w σ and log Σ w (1 − σ) of a source."""
    rank, share = prior.scores.rank[f], prior.scores.share[f]
    real, false = 0.0, 0.0
    for b in range(rank.shape[0]):
        if share[b] > 0.0:
            likely = 1.0 / (1.0 + math.exp(-min(max(slope * rank[b] + offset, -MOST), MOST)))
            real += share[b] * likely
            false += share[b] / (1.0 + math.exp(min(max(slope * rank[b] + offset, -MOST), MOST)))
    return math.log(max(real, LEAST)), math.log(max(false, LEAST))


@lean_kernel
def rebuild_scores(prior):
    """Bring the ratios up to date with the parameters."""
    scores, parameters = prior.scores, prior.parameters
    for f in range(scores.rank.shape[0]):
        slope, offset = parameters.score_slope[f], parameters.score_offset[f]
        real, false = log_odds(prior, f, slope, offset)
        for b in range(scores.rank.shape[1]):
            gain = slope * scores.rank[f, b] + offset + false - real
            # Within what doubles hold; where there is no level nothing is said.
            gain = min(max(gain, -MOST), MOST)
            scores.gain[f, b] = gain if scores.share[f, b] > 0.0 else 0.0


@lean_kernel
def forget_scores(prior):
    """Set the counts to nothing."""
    prior.scores.real[:] = 0.0
    prior.scores.false[:] = 0.0


@inline_kernel
def count_score(counts, prior, data, i):
    """Count the level of marking i, among real or false ones."""
    level = prior.scores.level[data.original[i]]
    if level != NONE:
        counts[data.family[i], level] += 1.0


@lean_kernel
def count_scores(prior, data, state, k):
    """Count the members of cluster k, which is real."""
    j = state.head[k]
    while j != NONE:
        count_score(prior.scores.real, prior, data, j)
        j = state.after[j]


class ScoreCurve(NamedTuple):
    """log γ_f, or a_f if ``offset``, given the rest."""

    prior: Any
    f: int
    offset: bool


@implements(log_target, ScoreCurve)
@lean_kernel
def log_score_curve(target, value):
    """Its conditional."""
    prior, f = target.prior, target.f
    parameters, beliefs, scores = prior.parameters, prior.beliefs, prior.scores
    slope, offset = parameters.score_slope[f], parameters.score_offset[f]
    if abs(value) > 50.0:
        return -math.inf
    if target.offset:
        offset = value
        z = (value - beliefs.score_offset) / beliefs.score_offset_sd
    else:
        slope = math.exp(value)
        z = (value - parameters.usual_slope[0]) / beliefs.score_slope_sd
    total, real, false = -0.5 * z * z, 0.0, 0.0
    for b in range(scores.rank.shape[1]):
        if scores.share[f, b] > 0.0:
            logit = slope * scores.rank[f, b] + offset
            softplus = max(logit, 0.0) + math.log1p(math.exp(-abs(logit)))
            total += scores.real[f, b] * (logit - softplus) - scores.false[f, b] * softplus
            real += scores.real[f, b]
            false += scores.false[f, b]
    log_real, log_false = log_odds(prior, f, slope, offset)
    return total - real * log_real - false * log_false


@lean_kernel
def update_scores(rng, prior):
    """γ, a and m given the counts."""
    parameters, beliefs, scores = prior.parameters, prior.beliefs, prior.scores
    sources, logs = scores.rank.shape[0], 0.0
    for f in range(sources):
        if scores.share[f, 1] > 0.0:
            start = math.log(parameters.score_slope[f])
            log_slope = slice_update(rng, ScoreCurve(prior, f, False), start, WIDTH, 1e-13)
            parameters.score_slope[f] = math.exp(log_slope)
            offset = parameters.score_offset[f]
            drawn = slice_update(rng, ScoreCurve(prior, f, True), offset, WIDTH, 1e-13)
            parameters.score_offset[f] = drawn
        else:
            # One level says nothing.
            sd = beliefs.score_slope_sd
            log_slope = parameters.usual_slope[0] + sd * rng.standard_normal()
            parameters.score_slope[f] = math.exp(log_slope)
            offset = beliefs.score_offset + beliefs.score_offset_sd * rng.standard_normal()
            parameters.score_offset[f] = offset
        logs += log_slope
    own, each = 1.0 / beliefs.usual_slope_sd**2, 1.0 / beliefs.score_slope_sd**2
    precision = own + sources * each
    mean = (own * math.log(beliefs.score_slope) + each * logs) / precision
    parameters.usual_slope[0] = mean + rng.standard_normal() / math.sqrt(precision)
