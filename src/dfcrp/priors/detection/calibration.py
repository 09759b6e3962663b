"""What the scores of a source say of being real, beside what the markings came to."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dfcrp.draws import shared_variable
from dfcrp.summaries.streaming import Interval, summarise

Floats = NDArray[np.float64]

#: Sources that are looked at: those with most scores.
MAX_SOURCES = 24
#: Draws that the bands are made from.
MAX_DRAWS = 1_000


@dataclass(frozen=True)
class SourceScores:
    """One source: its levels of score, lowest first."""

    source: str
    #: The mean score of each level, and how many markings have one of it.
    score: Floats
    count: NDArray[np.int64]
    #: Probability of being real by the score alone, and the markings' mean p_real, which knows what
    #: the other experts listed.
    by_score: Interval
    p_real: Floats
    #: The same probability in some draws, (draws, levels).
    drawn: Floats


def source_scores(run: Any) -> list[SourceScores] | None:
    """Levels, curves and answers of every source of items that were drawn together.

    None if there are no scores.
    """
    slope = shared_variable(run.draws, "score_slope")
    answers = run.detection
    if answers is None or slope is None or run.items.score is None:
        return None
    offset = shared_variable(run.draws, "score_offset")
    assert offset is not None
    step = -(-slope.shape[0] * slope.shape[1] // MAX_DRAWS)
    slopes, offsets = (values.reshape(-1, values.shape[2])[::step] for values in (slope, offset))
    prior = run.prior_laid_out.prior
    levels, p_real = prior.scores.level, answers.p_real_marking
    items = run.items
    scored = np.bincount(items.families[levels >= 0], minlength=len(items.experts))
    order = np.argsort(-scored, kind="stable")[:MAX_SOURCES]
    found = []
    for f in order[scored[order] > 0]:
        mine = np.flatnonzero((items.families == f) & (levels >= 0))
        curve = slopes[:, f : f + 1], offsets[:, f : f + 1]
        found.append(_source(run, mine, prior.scores, curve, p_real[mine]))
    return found


def _source(
    run: Any,
    mine: NDArray[np.int64],
    scores: Any,
    curve: tuple[Floats, Floats],
    p_real: Floats,
) -> SourceScores:
    """One source, of which these are the scored markings and draws of γ and a."""
    level, f = scores.level[mine], int(run.items.families[mine[0]])
    count = np.bincount(level)
    rank, share = scores.rank[f, : len(count)], scores.share[f, : len(count)]
    likely = expit(curve[0] * rank + curve[1])
    usual = (likely * share).sum(axis=1, keepdims=True)
    # The ratio of real to false ones at a level, times their ratio among all of the source.
    real = np.clip(np.nanmean(p_real), 1e-12, 1.0 - 1e-12)
    by_score = expit(_log_odds(likely) - _log_odds(usual) + logit(real))
    return SourceScores(
        run.items.experts[f],
        np.bincount(level, weights=run.items.score[mine]) / count,
        count,
        summarise(by_score),
        np.bincount(level, weights=np.nan_to_num(p_real)) / count,
        by_score,
    )


def _log_odds(probability: Floats) -> Floats:
    """Within what doubles hold."""
    return np.asarray(logit(np.clip(probability, 1e-15, 1.0 - 1e-15)))
