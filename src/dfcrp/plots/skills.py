"""Figure of the detection prior: how good every expert is."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.detection import answers_of
from dfcrp.plots.style import BLUE, GREY, VERMILION, WIDE, given_axes, new_axes, plain, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import NAMED
from dfcrp.summaries.streaming import Interval, summarise

#: Experts that fit on a page: of more the best and the worst are shown.
MAX_EXPERTS = 60


@dataclass(frozen=True)
class SkillTable:
    """Experts from the one who finds most to the one who finds least."""

    experts: tuple[str, ...]
    looks: NDArray[np.int64]
    sensitivity: Interval
    #: False marks per image.
    false: Interval
    #: Whether an expert's marks are mostly false.
    named: NDArray[np.bool_]
    #: Experts that are left out between the best and the worst.
    left_out: int
    verb: str = "listed"


def prepare_skills(posterior: Posterior) -> SkillTable:
    """The best and the worst experts."""
    found = answers_of(posterior)
    sensitivity, false = summarise(found.sensitivity[:, 0]), summarise(found.rates.false)
    order = np.argsort(-np.nan_to_num(sensitivity.mean, nan=-1.0), kind="stable")
    left_out = max(len(order) - MAX_EXPERTS, 0)
    if left_out:
        order = np.concatenate([order[: MAX_EXPERTS // 2], order[-MAX_EXPERTS // 2 :]])
    return SkillTable(
        experts=tuple(posterior.items.experts[f] for f in order),
        looks=found.looks[order],
        sensitivity=sensitivity[order],
        false=false[order],
        named=found.p_mostly_false[order] > NAMED,
        left_out=left_out,
        verb=posterior.likelihood.verb,
    )


def draw_skills(table: SkillTable, axes: Any = None) -> list[Any]:
    """Two panels with a row for each expert; those whose marks are mostly false are orange."""
    count = len(table.experts)
    rows = np.arange(count)
    with styled():
        if axes is None:
            height = 0.9 + 0.14 * max(count, 3)
            axes = new_axes(WIDE, height, 1, 2, sharey=True, width_ratios=(3, 2))[0]
        panels = given_axes(axes, 2)
        colours = np.where(table.named, VERMILION, BLUE)
        for ax, found in zip(panels, (table.sensitivity, table.false), strict=False):
            ax.hlines(rows, found.lo, found.hi, color=colours, linewidth=1.6, alpha=0.45)
            ax.scatter(found.mean, rows, s=9.0, c=colours, zorder=3)
            ax.grid(axis="x", color=GREY, linewidth=0.3, alpha=0.5)
        names = [
            f"{plain(name, 18)} ({looks})"
            for name, looks in zip(table.experts, table.looks.tolist(), strict=True)
        ]
        panels[0].set_yticks(rows, names, fontsize=6)
        panels[0].set_ylim(count - 0.5, -0.5)
        panels[0].set_xlim(0.0, 1.0)
        # Keeps the 0 of this panel apart from the 1 of the one before it.
        panels[1].set_xlim(left=-0.06 * panels[1].get_xlim()[1])
        if table.left_out:
            panels[0].axhline(count // 2 - 0.5, color=GREY, linewidth=0.8, linestyle=":")
        panels[0].set_xlabel(f"probability that an object is {table.verb}")
        panels[1].set_xlabel("false marks per image")
    return panels[:2]


def plot_skills(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[SkillTable, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_skills(posterior, **options)
    return table, draw_skills(table, axes)
