"""What a source's scores say: the probability that a marking is real, by its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dfcrp.draws import shared_variable
from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, VERMILION, WIDE, given_axes, new_axes, plain, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.streaming import Interval, summarise

#: Panels in a row, and sources that still get one each: those with most scores.
COLUMNS = 4
MAX_SOURCES = 24
#: Draws that the bands are made from.
MAX_DRAWS = 1_000


@dataclass(frozen=True)
class SourceScores:
    """One source: its levels of score, lowest first."""

    source: str
    #: The mean score of each level, and how many markings have one of it.
    score: NDArray[np.float64]
    count: NDArray[np.int64]
    #: Probability of being real by the score alone, and the markings' mean p_real, which knows what
    #: the other experts listed.
    by_score: Interval
    p_real: NDArray[np.float64]


@dataclass(frozen=True)
class ScoresTable:
    """The sources with most scores."""

    sources: tuple[SourceScores, ...]


def prepare_scores(posterior: Posterior) -> ScoresTable:
    """Levels, curves and answers of every source."""
    run = posterior.whole or posterior
    slope = shared_variable(run.draws, "score_slope")
    answers = run.detection
    if answers is None or slope is None or posterior.items.score is None:
        raise InputError(
            'this figure is about scores, which the prior "detection" learns from; these items '
            "have none, or images were drawn each by itself"
        )
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
    return ScoresTable(tuple(found))


def _source(
    run: Posterior,
    mine: NDArray[np.int64],
    scores: Any,
    curve: tuple[NDArray[np.float64], NDArray[np.float64]],
    p_real: NDArray[np.float64],
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
    assert run.items.score is not None
    return SourceScores(
        run.items.experts[f],
        np.bincount(level, weights=run.items.score[mine]) / count,
        count,
        summarise(by_score),
        np.bincount(level, weights=np.nan_to_num(p_real)) / count,
    )


def _log_odds(probability: NDArray[np.float64]) -> NDArray[np.float64]:
    """Within what doubles hold."""
    return np.asarray(logit(np.clip(probability, 1e-15, 1.0 - 1e-15)))


def draw_scores(table: ScoresTable, axes: Any = None) -> list[Any]:
    """A panel for each source: the curve with its 95 % band, and what the markings came to."""
    count = len(table.sources)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 1.6 * rows + 0.4, rows, columns, sharey=True)
        panels = given_axes(axes, count)
        for ax, one in zip(panels, table.sources, strict=False):
            found = one.by_score
            ax.fill_between(one.score, found.lo, found.hi, color=BLUE, alpha=0.25, linewidth=0.0)
            ax.plot(one.score, found.mean, color=BLUE, linewidth=1.5)
            size = 4.0 + 30.0 * one.count / one.count.max()
            ax.scatter(one.score, one.p_real, s=size, color=VERMILION, alpha=0.8, linewidths=0.0)
            ax.set_ylim(-0.03, 1.03)
            ax.set_title(plain(one.source))
        for ax in panels[count:]:
            ax.set_axis_off()
        panels[0].get_figure().supxlabel("score", fontsize=8)
        panels[0].get_figure().supylabel("probability of being real", fontsize=8)
    return panels[:count]


def plot_scores(posterior: Posterior, axes: Any = None) -> tuple[ScoresTable, list[Any]]:
    """Prepare and draw."""
    table = prepare_scores(posterior)
    return table, draw_scores(table, axes)
