"""What a source's scores say: the probability that a marking is real, by its score."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, VERMILION, WIDE, given_axes, new_axes, plain, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.calibration import SourceScores, source_scores

#: Panels in a row.
COLUMNS = 4


@dataclass(frozen=True)
class ScoresTable:
    """The sources with most scores."""

    sources: tuple[SourceScores, ...]


def prepare_scores(posterior: Posterior) -> ScoresTable:
    """Levels, curves and answers of every source."""
    found = source_scores(posterior.whole or posterior)
    if found is None:
        raise InputError(
            'this figure is about scores, which the prior "detection" learns from; these items '
            "have none, or images were drawn each by itself"
        )
    return ScoresTable(tuple(found))


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
