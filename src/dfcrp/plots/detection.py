"""Figures of the detection prior: what experts find, what was missed, how well it fits, scores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.figure import (
    DETECTION,
    ONE_IMAGE,
    SCORES,
    SIZES,
    Columns,
    Figure,
    matrix_columns,
    never,
)
from dfcrp.plots.sizes import plain_ticks
from dfcrp.plots.style import (
    BLUE,
    GREY,
    NARROW,
    VERMILION,
    WIDE,
    figure_of,
    given_axes,
    legend_above,
    new_axes,
    plain,
    single_axes,
    styled,
    whole_numbers,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import NAMED, DetectionSummary
from dfcrp.priors.detection.calibration import SourceScores, source_scores
from dfcrp.priors.detection.curves import sensitivity_curves
from dfcrp.summaries.streaming import Interval, summarise

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dfcrp.plots.style import Handle, Panels

#: Panels in a row, and experts that still get one each: those with most items.
COLUMNS = 4
MAX_EXPERTS = 24
#: Bins of the probability of being real.
BINS = 10
#: Experts that fit on a page: of more the best and the worst are shown.
MAX_SKILLS = 60
#: Panels in a row.
SCORE_COLUMNS = 4


def answers_of(posterior: Posterior) -> DetectionSummary:
    """What the prior says of these draws."""
    assert posterior.detection is not None  # as all figures here need
    return posterior.detection


# --- sensitivity by diameter --------------------------------------------------------------------
@dataclass(frozen=True)
class SensitivityTable:
    """Curves of the experts, most items first: (experts, diameters)."""

    experts: tuple[str, ...]
    diameter: NDArray[np.float64]
    sensitivity: Interval
    #: What experts do with objects, and what their size is called.
    verb: str = "listed"
    size: str = "diameter"


def prepare_sensitivity(posterior: Posterior) -> SensitivityTable:
    """The curves of the experts with most items."""
    items = posterior.items
    found = sensitivity_curves(posterior)
    count = np.bincount(items.families, minlength=len(items.experts))
    order = np.argsort(-count, kind="stable")[:MAX_EXPERTS]
    names = tuple(items.experts[f] for f in order)
    likelihood = posterior.likelihood
    return SensitivityTable(
        names, found.diameter, found.sensitivity[order], likelihood.verb, likelihood.size_label
    )


def draw_sensitivity(table: SensitivityTable, axes: Panels | None = None) -> list[Axes]:
    """A panel for each expert: the curve with its 95 % band, the others' pale behind it."""
    count = len(table.experts)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 1.5 * rows + 0.4, rows, columns, sharex=True, sharey=True)
        panels = given_axes(axes, count)
        for k, name in enumerate(table.experts):
            _draw_panel(panels[k], table, k)
            panels[k].set_title(plain(name))
        for ax in panels[count:]:
            ax.set_axis_off()
        figure_of(panels).supxlabel(f"{table.size} of the object", fontsize=8)
        figure_of(panels).supylabel(f"probability of being {table.verb}", fontsize=8)
    return panels[:count]


def _draw_panel(ax: Axes, table: SensitivityTable, k: int) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    found, x = table.sensitivity, table.diameter
    if len(x) == 1:  # the same for all sizes
        found = Interval(*(np.repeat(v, 2, axis=1) for v in (found.mean, found.lo, found.hi)))
        x = np.array([x[0] / 2.0, x[0] * 2.0])
    ax.plot(x, found.mean.T, color=GREY, linewidth=0.4, alpha=0.5)
    ax.fill_between(x, found.lo[k], found.hi[k], color=BLUE, alpha=0.25, linewidth=0.0)
    ax.plot(x, found.mean[k], color=BLUE, linewidth=1.5)
    ax.set_xscale("log")
    ax.set_ylim(0.0, 1.0)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


# --- size-frequency distribution, corrected -----------------------------------------------------
@dataclass(frozen=True)
class CorrectedSizes:
    """N(≥ D) of the objects that somebody marked, and of all."""

    diameter: NDArray[np.float64]
    seen: Interval
    total: Interval
    #: What size is called.
    size: str = "diameter"


def prepare_corrected_sizes(posterior: Posterior) -> CorrectedSizes:
    """At the lower edge of each level of size."""
    found = answers_of(posterior)

    def at_least(counts: NDArray[np.int64]) -> Interval:
        return summarise(counts[:, ::-1].cumsum(axis=1)[:, ::-1])

    return CorrectedSizes(
        found.level_edges[:-1],
        at_least(found.seen_at),
        at_least(found.seen_at + found.missed_at),
        posterior.likelihood.size_label,
    )


def draw_corrected_sizes(table: CorrectedSizes, ax: Axes | None = None) -> Axes:
    """Two bands on logarithmic scales."""
    with styled():
        ax = single_axes(0.7 * WIDE, 3.2) if ax is None else ax
        handles = []
        # Where nothing was missed the thick line still shows on both sides of the thin one.
        for band, colour, width in ((table.total, VERMILION, 3.0), (table.seen, BLUE, 1.0)):
            low, high = np.maximum(band.lo, 0.5), np.maximum(band.hi, 0.5)
            ax.fill_between(table.diameter, low, high, color=colour, alpha=0.25, linewidth=0.0)
            middle = np.where(band.mean >= 0.5, band.mean, np.nan)
            handles += ax.plot(table.diameter, middle, color=colour, linewidth=width)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.8)
        ax.set_xlabel(table.size)
        ax.set_ylabel("number of objects of this size or larger")
        for axis in (ax.xaxis, ax.yaxis):
            plain_ticks(axis)
        legend_above(ax, handles, ["seen and missed", "seen"])
    return ax


# --- clusters by number of experts --------------------------------------------------------------
@dataclass(frozen=True)
class ClusterSizes:
    """Numbers of clusters by size, observed (posterior mean) and predicted."""

    size: NDArray[np.int64]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Where the observed number is within the predicted interval."""
        return (self.lo <= self.observed) & (self.observed <= self.hi)


def prepare_cluster_sizes(posterior: Posterior) -> ClusterSizes:
    """From the detection prior's summary."""
    rows = answers_of(posterior).fit_of_sizes()
    return ClusterSizes(
        size=np.array([row["size"] for row in rows]),
        observed=np.array([row["observed"] for row in rows]),
        predicted=np.array([row["predicted"]["mean"] for row in rows]),
        lo=np.array([row["predicted"]["lo"] for row in rows]),
        hi=np.array([row["predicted"]["hi"] for row in rows]),
    )


def draw_cluster_sizes(table: ClusterSizes, ax: Axes | None = None) -> Axes:
    """Predicted means with 95 % intervals; observed numbers as diamonds, red outside."""
    with styled():
        ax = single_axes(0.7 * WIDE, 2.8) if ax is None else ax
        predicted = ax.errorbar(
            table.size,
            table.predicted,
            # The mean of a number that is nearly always the same may lie outside of its interval.
            yerr=np.maximum([table.predicted - table.lo, table.hi - table.predicted], 0.0),
            fmt="none",
            ecolor=BLUE,
            elinewidth=5.0,
            alpha=0.4,
        )
        inside = table.inside
        (good,) = ax.plot(
            table.size[inside], table.observed[inside], "D", color=BLUE, markersize=4.0
        )
        handles: list[Handle] = [predicted, good]
        names = ["predicted, 95 %", "observed"]
        if not inside.all():
            (bad,) = ax.plot(
                table.size[~inside], table.observed[~inside], "D", color=VERMILION, markersize=4.0
            )
            handles.append(bad)
            names.append("observed, outside")
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("experts who share it")
        ax.set_ylabel("number of clusters")
        whole_numbers(ax.xaxis)
        legend_above(ax, handles, names)
    return ax


# --- probability of being real ------------------------------------------------------------------
@dataclass(frozen=True)
class Reality:
    """Items by their probability of being real; the truth may be known."""

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    mean_p: NDArray[np.float64]
    #: Share of real ones in each bin, and two standard errors; None if the truth is not known.
    share: NDArray[np.float64] | None
    error: NDArray[np.float64] | None


def bin_reality(
    p_real: NDArray[np.float64], real: NDArray[np.bool_] | None, bins: int = BINS
) -> Reality:
    """Put items into bins of equal width."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.searchsorted(edges, p_real, side="right") - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    many = np.maximum(count, 1)
    mean_p = np.where(count, np.bincount(place, p_real, minlength=bins) / many, np.nan)
    if real is None:
        return Reality(edges, count, mean_p, None, None)
    share = np.where(count, np.bincount(place, real, minlength=bins) / many, np.nan)
    error = 2.0 * np.sqrt(mean_p * (1.0 - mean_p) / many)
    return Reality(edges, count, mean_p, share, error)


def prepare_reality(posterior: Posterior, *, real: NDArray[np.bool_] | None = None) -> Reality:
    """``real`` says of each item whether it is one of an object, if that is known."""
    return bin_reality(answers_of(posterior).p_real_marking, real)


def draw_reality(table: Reality, ax: Axes | None = None) -> Axes:
    """Shares with what chance allows around them; numbers of items if there is no truth."""
    with styled():
        ax = single_axes(NARROW, 2.8) if ax is None else ax
        ax.set_xlabel("probability of being real")
        ax.set_xlim(0.0, 1.0)
        if table.share is None or table.error is None:
            ax.stairs(table.count, table.edges, color=BLUE, fill=True, alpha=0.5)
            ax.set_yscale("symlog", linthresh=1.0)
            ax.set_ylabel("items")
            return ax
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
        ax.errorbar(
            table.mean_p, table.share, yerr=table.error, fmt="o", color=BLUE, markersize=3.5
        )
        for x, y, count in zip(table.mean_p, table.share, table.count, strict=True):
            if count:
                ax.annotate(str(count), (x, y), (4, -8), textcoords="offset points", fontsize=6)
        ax.set_ylim(-0.03, 1.03)
        ax.set_ylabel("share that is real")
    return ax


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
    left_out = max(len(order) - MAX_SKILLS, 0)
    if left_out:
        order = np.concatenate([order[: MAX_SKILLS // 2], order[-MAX_SKILLS // 2 :]])
    return SkillTable(
        experts=tuple(posterior.items.experts[f] for f in order),
        looks=found.looks[order],
        sensitivity=sensitivity[order],
        false=false[order],
        named=found.p_mostly_false[order] > NAMED,
        left_out=left_out,
        verb=posterior.likelihood.verb,
    )


def draw_skills(table: SkillTable, axes: Panels | None = None) -> list[Axes]:
    """Two panels with a row for each expert; those whose marks are mostly false are orange."""
    count = len(table.experts)
    rows = np.arange(count)
    with styled():
        if axes is None:
            height = 0.9 + 0.14 * max(count, 3)
            axes = new_axes(WIDE, height, 1, 2, sharey=True, width_ratios=(3, 2))
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


@dataclass(frozen=True)
class ScoresTable:
    """The sources with most scores."""

    sources: tuple[SourceScores, ...]


def prepare_scores(posterior: Posterior) -> ScoresTable:
    """Levels, curves and answers of every source."""
    found = source_scores(posterior.whole or posterior)
    if found is None:
        raise InputError(SCORES.refusal(posterior))
    return ScoresTable(tuple(found))


def draw_scores(table: ScoresTable, axes: Panels | None = None) -> list[Axes]:
    """A panel for each source: the curve with its 95 % band, and what the markings came to."""
    count = len(table.sources)
    columns = min(SCORE_COLUMNS, count)
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
        figure_of(panels).supxlabel("score", fontsize=8)
        figure_of(panels).supylabel("probability of being real", fontsize=8)
    return panels[:count]


def list_sensitivity(table: SensitivityTable) -> Columns:
    """A row for each expert and size."""
    found = table.sensitivity
    names = {"expert": table.experts, "size": table.diameter}
    return matrix_columns(names, mean=found.mean, lo=found.lo, hi=found.hi)


def list_scores(table: ScoresTable) -> Columns:
    """A row for each source and score."""
    columns: dict[str, list[object]] = {}
    for one in table.sources:
        found = one.by_score
        for name, values in (
            ("source", [one.source] * len(one.score)),
            ("score", one.score),
            ("mean", found.mean),
            ("lo", found.lo),
            ("hi", found.hi),
            ("p_real", one.p_real),
            ("count", one.count),
        ):
            columns.setdefault(name, []).extend(values)
    return columns


FIGURES = (
    Figure(
        "skills",
        "sensitivity and false marks per image of every expert, with intervals, the best first; "
        "of more than 60 the best and the worst 30",
        prepare_skills,
        draw_skills,
        needs=(DETECTION,),
        of_many=True,
    ),
    Figure(
        "sensitivity",
        "how likely each expert is to find an object, by size",
        prepare_sensitivity,
        draw_sensitivity,
        needs=(DETECTION, SIZES),
        listing=list_sensitivity,
    ),
    Figure(
        "corrected_sizes",
        "cumulative number of real objects against size, seen, and with the missed ones",
        prepare_corrected_sizes,
        draw_corrected_sizes,
        needs=(DETECTION, SIZES, ONE_IMAGE),
    ),
    Figure(
        "cluster_sizes",
        "clusters by number of experts, observed, and in new data from the model",
        prepare_cluster_sizes,
        draw_cluster_sizes,
        needs=(DETECTION,),
        of_many=True,
    ),
    Figure(
        "scores",
        "for each source with scores, the probability that an item is real by its score alone "
        "(line and 95 % band), and what its items came to (points)",
        prepare_scores,
        draw_scores,
        needs=(DETECTION, SCORES),
        of_many=True,
        listing=list_scores,
    ),
    Figure(
        "reality",
        "items by probability of being real; against the share that is, where the truth is known",
        prepare_reality,
        draw_reality,
        needs=(DETECTION,),
        in_report=never,
    ),
)
