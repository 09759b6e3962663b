"""Figures of size-frequency distributions: cumulative N(≥ D), differential dN/dD, and R-plot."""

from __future__ import annotations

from typing import Any

import numpy as np

from dfcrp.plots.counts_by_size import dbscan_labels
from dfcrp.plots.style import (
    BLUE,
    COLOURS,
    INK,
    WIDE,
    legend_of,
    line_styles,
    plain,
    single_axes,
    styled,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.size_frequency import UNBINNED, SizeFrequency

#: Experts that still get a name each.
MAX_NAMES = 24
NAMES = {
    "cumulative": "number of objects of diameter ≥ D",
    "differential": "number of objects per {unit} of diameter",
    "relative": "R × area (D³ dN/dD)",
}
DENSITIES = {
    "cumulative": "objects of diameter ≥ D per km²",
    "differential": "objects per km² and {unit} of diameter",
    "relative": "relative density R",
}


def prepare_sizes(
    posterior: Posterior, kind: str, *, dbscan: Any = None, **options: Any
) -> SizeFrequency:
    """The table of one kind; options are ``min_experts``, ``binning`` and ``points``.

    ``dbscan`` holds labels, or labels for several thresholds as {min_experts: labels}.
    """
    usual = posterior.config.summary.min_experts
    wanted = options.get("min_experts") or usual
    labels = dbscan_labels(dbscan, wanted, usual)
    return posterior.size_frequency(kind, dbscan=labels, **options)


def draw_sizes(table: SizeFrequency, ax: Any = None) -> Any:
    """All curves of a table on logarithmic scales."""
    with styled():
        ax = single_axes(WIDE, 4.2) if ax is None else ax
        handles, names = _draw_experts(ax, table)
        entries = [(_draw_band(ax, table), f"posterior, ≥ {table.min_experts} experts")]
        if table.dbscan is not None:
            entries.append((_draw_dbscan(ax, table), "DBSCAN"))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(*_reach(table))
        ax.set_xlabel(f"diameter D, {table.unit}")
        words = NAMES if table.area_km2 is None else DENSITIES
        ax.set_ylabel(words[table.kind].format(unit=table.unit))
        plain_ticks(ax.xaxis)
        if table.kind == "relative" or (table.kind == "cumulative" and table.area_km2 is None):
            plain_ticks(ax.yaxis)
        # most items on top, as in the figure
        legend_of(
            ax,
            [*(handle for handle, _ in entries), *handles[::-1]],
            [*(name for _, name in entries), *names[::-1]],
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
        )
    return ax


def _reach(table: SizeFrequency) -> tuple[float, float]:
    """From just below the lowest value that one object makes to just above the highest."""
    everything = np.concatenate((table.by_expert.ravel(), table.hi, table.mean))
    present = table.by_expert[table.by_expert > 0]
    return 0.6 * float(present.min()), 1.6 * float(everything.max())


def _shown(values: Any) -> Any:
    """Zero has no place on a logarithmic scale."""
    return np.where(values > 0, values, np.nan)


def _draw_experts(ax: Any, table: SizeFrequency) -> tuple[list[Any], list[str]]:
    """A line for each expert; the lines and their names for the legend."""
    many = len(table.experts) > MAX_NAMES
    # Blue is the posterior's.
    styles = line_styles(len(table.experts), COLOURS[1:])
    handles = []
    for values, style in zip(table.by_expert, styles, strict=True):
        look: dict[str, Any] = {"color": INK, "alpha": 0.3} if many else dict(style)
        if table.binning != UNBINNED or np.count_nonzero(values) == 1:
            look |= {"marker": ".", "markersize": 3.0}
        handles += ax.plot(table.diameter, _shown(values), linewidth=0.8, **look)
    if many:
        return handles[:1], ["each expert"]
    return handles, [plain(name) for name in table.experts]


def _draw_band(ax: Any, table: SizeFrequency) -> tuple[Any, Any]:
    """The posterior's interval and mean, and in bins the error of a count."""
    at = table.diameter
    bottom = _reach(table)[0]
    reached = table.hi > 0
    band = ax.fill_between(
        at,
        np.maximum(table.lo, bottom),
        table.hi,
        where=reached,
        color=BLUE,
        alpha=0.3,
        linewidth=0.0,
    )
    mean = np.where(table.mean >= 0.5 * _one_object(table), table.mean, np.nan)
    (middle,) = ax.plot(at, mean, color=BLUE, linewidth=1.8)
    if table.binning != UNBINNED:
        below = np.maximum(mean - table.counting, bottom)
        ax.vlines(at, below, mean + table.counting, color=BLUE, linewidth=0.7)
        ax.plot(at, mean, "s", color=BLUE, markersize=3.0)
    return band, middle


def _one_object(table: SizeFrequency) -> Any:
    """What a single object would add to each bin."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # counting = √n · factor and mean = n · factor
        return np.where(table.mean > 0, table.counting**2 / table.mean, np.inf)


def _draw_dbscan(ax: Any, table: SizeFrequency) -> Any:
    (line,) = ax.plot(
        table.diameter, _shown(table.dbscan), color=INK, linewidth=1.4, linestyle=(0, (1, 1))
    )
    return line


def plain_ticks(axis: Any) -> None:
    """20, 50, 100 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_formatter(NullFormatter())


def prepare_size_frequency(posterior: Posterior, **options: Any) -> SizeFrequency:
    """The cumulative distribution, N(≥ D); options are those of ``prepare_sizes``."""
    return prepare_sizes(posterior, "cumulative", **options)


def plot_size_frequency(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SizeFrequency, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_size_frequency(posterior, **options)
    return table, draw_sizes(table, ax)


def prepare_size_differential(posterior: Posterior, **options: Any) -> SizeFrequency:
    """The differential distribution, dN/dD; options are those of ``prepare_sizes``."""
    return prepare_sizes(posterior, "differential", **options)


def plot_size_differential(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SizeFrequency, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_size_differential(posterior, **options)
    return table, draw_sizes(table, ax)


def prepare_size_relative(posterior: Posterior, **options: Any) -> SizeFrequency:
    """The R-plot: the distribution relative to D⁻³; options are those of ``prepare_sizes``."""
    return prepare_sizes(posterior, "relative", **options)


def plot_size_relative(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SizeFrequency, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_size_relative(posterior, **options)
    return table, draw_sizes(table, ax)


#: The table tells which distribution it is, and is drawn accordingly.
draw_size_frequency = draw_size_differential = draw_size_relative = draw_sizes
