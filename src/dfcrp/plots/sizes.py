"""Figures of sizes: size-frequency distributions, counts by size class, and model ages."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypedDict, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.craterstats import Isochrons
from dfcrp.markup import plural
from dfcrp.plots.figure import DIAMETERS, Columns, Figure, Options, Shared
from dfcrp.plots.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    WIDE,
    Look,
    given_axes,
    legend_of,
    line_styles,
    new_axes,
    plain,
    single_axes,
    styled,
    whole_numbers,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.sizes import UNBINNED, Curve, ModelAges, SizeFrequency, mean_diameters
from dfcrp.settings.consensus import Least, in_short
from dfcrp.summaries.consensus import ConsensusCounts
from dfcrp.summaries.streaming import summarise

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis
    from matplotlib.lines import Line2D

    from dfcrp.plots.style import Handle, Panels

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


#: Labels of the items by DBSCAN, or such labels by number of experts.
Dbscan = ArrayLike | Mapping[int, ArrayLike] | None


class SizeOptions(TypedDict, total=False):
    """What ``Posterior.size_frequency`` takes."""

    min_experts: Least | None
    binning: str | None
    points: int
    diameters: tuple[float, float] | None


def prepare_sizes(
    posterior: Posterior,
    kind: str,
    *,
    dbscan: Dbscan = None,
    isochrons: Isochrons | None = None,
    **options: Unpack[SizeOptions],
) -> SizeFrequency:
    """The table of one kind; options are ``min_experts``, ``binning``, ``points``, ``diameters``.

    Without ``diameters`` a bin that begins below the smallest item is left out, as it was not
    counted in full.

    ``isochrons`` are drawn beside it where diameters are in km and the area is known.
    ``dbscan`` holds labels, or labels for several thresholds as {min_experts: labels}.
    """
    wanted = options.get("min_experts") or posterior.config.summary.min_experts
    labels = dbscan_labels(dbscan, posterior.needed_experts(wanted), posterior.min_experts)
    table = posterior.size_frequency(kind, dbscan=labels, **options)
    if options.get("diameters") is None and table.cut_short:
        shown = {**options, "diameters": (float(table.d_max[0]), math.inf)}
        table = posterior.size_frequency(kind, dbscan=labels, **shown)
    known = table.unit == "km" and table.area_km2 is not None
    return replace(table, isochrons=isochrons if known else None)


def draw_sizes(table: SizeFrequency, ax: Axes | None = None) -> Axes:
    """All curves of a table on logarithmic scales."""
    with styled():
        ax = single_axes(WIDE, 4.2) if ax is None else ax
        handles, names = _draw_experts(ax, table)
        entries: list[tuple[Handle, str]] = [
            (_draw_band(ax, table), f"posterior, {in_short(table.min_experts)}")
        ]
        if table.dbscan is not None:
            entries.append((_draw_dbscan(ax, table.diameter, table.dbscan), "DBSCAN"))
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(*_reach(table))
        if table.isochrons is not None:
            entries += _draw_isochrons(ax, table, table.isochrons)
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


#: Isochrons run so much further than the data, to both sides.
BEYOND = 1.3


def _draw_isochrons(ax: Axes, table: SizeFrequency, found: Isochrons) -> list[tuple[Handle, str]]:
    """Thin grey lines with their ages, the model age's own, and equilibrium; for the legend."""
    low, high = table.d_min.min() / BEYOND, table.d_max.max() * BEYOND
    ax.set_xlim(low, high)
    bottom, top = ax.get_ylim()
    entries: list[tuple[Handle, str]] = []
    starts: list[tuple[float, float, str]] = []
    if found.fit_range is not None:
        span = ax.axvspan(*found.fit_range, color=GREY, alpha=0.12, linewidth=0.0, zorder=0)
        entries.append((span, "diameters used for the model age"))
    for age, (at, values) in found.isochrons[table.kind]:
        own = found.age is not None and age == found.age
        seen = (at >= low) & (at <= high) & (values > bottom) & (values < top)
        if not seen.any():
            continue
        look: Look = {"color": INK, "linewidth": 1.3} if own else {"color": GREY, "linewidth": 0.6}
        drawn = _to_the_frame(seen)
        (line,) = ax.plot(at[drawn], values[drawn], zorder=1, **look)
        if own:
            entries.insert(0, (line, f"isochron of {age:.3g} Ga, the model age"))
            continue
        first = int(np.flatnonzero(seen)[0])
        starts.append((at[first], values[first], f"{age:g} Ga"))
        if not any("isochrons" in name for _, name in entries):
            entries.append((line, f"isochrons, {plain(found.chronology, 40)}"))
    level = found.levels[table.kind]
    if level is not None:
        at, values = level
        seen = (at >= low) & (at <= high) & (values > bottom) & (values < top)
        if seen.any():
            look = {"color": INK, "linewidth": 0.9, "linestyle": (0, (5, 2))}
            drawn = _to_the_frame(seen)
            (line,) = ax.plot(at[drawn], values[drawn], zorder=1, **look)
            entries.append((line, plain(found.equilibrium, 40)))
    _name_isochrons(ax, starts)
    return entries


def _to_the_frame(seen: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """What is seen and the next point on either side, so that lines end at the frame."""
    wider = seen.copy()
    wider[1:] |= seen[:-1]
    wider[:-1] |= seen[1:]
    return wider


#: Points to the right and upwards that the name of an isochron takes.
NAME_SIZE = (24.0, 8.0)


def _name_isochrons(ax: Axes, starts: Sequence[tuple[float, float, str]]) -> None:
    """Ages where the lines begin; one that would lie on another is left out."""
    points = 72.0 / ax.figure.dpi
    named: list[NDArray[np.float64]] = []
    for x, y, age in starts:
        place = points * ax.transData.transform((x, y))
        if any((np.abs(place - other) < NAME_SIZE).all() for other in named):
            continue
        named.append(place)
        inside = ax.transAxes.inverted().transform(ax.transData.transform((x, y)))[0] < 0.93
        ax.annotate(
            age,
            (x, y),
            xytext=(2.0 if inside else -2.0, -1.0),
            ha="left" if inside else "right",
            textcoords="offset points",
            fontsize=6.0,
            color=GREY,
            va="top",
            clip_on=True,
            bbox={"facecolor": "white", "edgecolor": "none", "pad": 0.3, "alpha": 0.8},
        )


def _shown(values: Curve) -> Curve:
    """Zero has no place on a logarithmic scale."""
    return np.where(values > 0, values, np.nan)


def _draw_experts(ax: Axes, table: SizeFrequency) -> tuple[list[Line2D], list[str]]:
    """A line for each expert; the lines and their names for the legend."""
    many = len(table.experts) > MAX_NAMES
    # Blue is the posterior's.
    styles = line_styles(len(table.experts), COLOURS[1:])
    handles = []
    for values, style in zip(table.by_expert, styles, strict=True):
        look: Look = {"color": INK, "alpha": 0.3} if many else dict(style)
        if table.binning != UNBINNED or np.count_nonzero(values) == 1:
            look |= {"marker": ".", "markersize": 3.0}
        handles += ax.plot(table.diameter, _shown(values), linewidth=0.8, **look)
    if many:
        return handles[:1], ["each expert"]
    return handles, [plain(name) for name in table.experts]


def _draw_band(ax: Axes, table: SizeFrequency) -> tuple[Artist, Artist]:
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


def _one_object(table: SizeFrequency) -> Curve:
    """What a single object would add to each bin."""
    with np.errstate(divide="ignore", invalid="ignore"):
        # counting = √n · factor and mean = n · factor
        return np.where(table.mean > 0, table.counting**2 / table.mean, np.inf)


def _draw_dbscan(ax: Axes, at: Curve, values: Curve) -> Line2D:
    (line,) = ax.plot(at, _shown(values), color=INK, linewidth=1.4, linestyle=(0, (1, 1)))
    return line


def plain_ticks(axis: Axis) -> None:
    """20, 50, 100 rather than powers of ten; all of them as 2×10⁵ where they are far from one."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    # Over many decades these would be too many, and matplotlib would then show none at all.
    fine = high / low <= FEW_DECADES
    axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0) if fine else (1.0,)))
    near = low >= PLAIN[0] and high <= PLAIN[1]
    axis.set_major_formatter(FuncFormatter(lambda value, _: tick_words(value, near)))
    axis.set_minor_formatter(NullFormatter())


#: Between these, numbers are written out.
PLAIN = (1e-4, 1e5)
#: Over so wide a range there are ticks at 1, 2 and 5 times each power of ten.
FEW_DECADES = 5e3


def tick_words(value: float, near: bool) -> str:
    """A number written out, or as 2×10⁵."""
    if near:
        return f"{value:g}"
    digit, power = f"{value:.0e}".split("e")
    raised = str(int(power)).translate(str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹"))
    return f"10{raised}" if digit == "1" else f"{digit}×10{raised}"


#: Rows of the figure that the histogram takes.
COUNT_ROWS = 3.0
#: Experts that still get a name each.
MAX_ROW_NAMES = 40


@dataclass(frozen=True)
class CountsBySize:
    """Counts in every size class; the first class is "all" if there are no classes."""

    size_classes: tuple[str, ...]
    #: What a class means, such as "below 50"; "" where there is nothing to say.
    bounds: tuple[str, ...]
    #: By number of items, fewest first.
    experts: tuple[str, ...]
    #: (classes, experts)
    by_expert: NDArray[np.int64]
    #: Consensus clusters in every draw, (classes, draws).
    posterior: NDArray[np.int64]
    min_experts: Least
    #: Clusters of DBSCAN in each class, if given.
    dbscan: NDArray[np.int64] | None = None
    #: What items are called.
    nouns: str = "items"


def size_class_of(diameter: ArrayLike, edges: tuple[float, ...]) -> NDArray[np.int64]:
    """Position of the class of each diameter; an edge belongs to the class above it."""
    return np.searchsorted(np.asarray(edges), np.asarray(diameter), side="right")


def dbscan_counts(posterior: Posterior, labels: ArrayLike) -> NDArray[np.int64]:
    """Clusters in each size class by their members' mean diameter; label -1 is noise."""
    edges, sizes = posterior.size_classes.edges, posterior.diameters
    # Without sizes there are no classes, and any numbers will do.
    means = mean_diameters(labels, np.ones(len(posterior.items)) if sizes is None else sizes)
    return np.bincount(size_class_of(means, edges), minlength=len(edges) + 1)


def dbscan_labels(dbscan: Dbscan, min_experts: int, usual: int) -> ArrayLike | None:
    """The labels for a threshold, of {threshold: labels} or of one array for the usual one."""
    if isinstance(dbscan, Mapping):
        return dbscan.get(min_experts)
    return dbscan if min_experts == usual else None


def prepare_counts_by_size(
    posterior: Posterior,
    *,
    min_experts: Least | None = None,
    dbscan: Dbscan = None,
    counts: ConsensusCounts | None = None,
) -> CountsBySize:
    """Count the items of each expert and the clusters of each draw; items without sizes as one.

    ``dbscan`` holds DBSCAN's labels of the items, or labels for several thresholds as
    {min_experts: labels}. ``counts`` saves counting the clusters a second time.
    """
    usual = posterior.config.summary.min_experts
    wanted = usual if min_experts is None else min_experts
    items, classes, sizes = posterior.items, posterior.size_classes, posterior.diameters
    of_item = np.zeros(len(items), np.int64)
    if sizes is not None:
        of_item = size_class_of(sizes, classes.edges)
    n_classes, n_experts = len(classes.edges) + 1, len(items.experts)
    each = np.zeros((n_classes, n_experts), np.int64)
    np.add.at(each, (of_item, items.families), 1)
    order = np.argsort(each.sum(axis=0), kind="stable")
    counts = posterior.consensus_counts((wanted,)) if counts is None else counts
    of_draws = counts.counts[:, :, counts.min_experts.index(wanted)]
    # Column 0 is the total; without classes it is all there is.
    of_draws = of_draws[..., 1:] if classes.edges else of_draws[..., :1]
    labels = dbscan_labels(dbscan, posterior.needed_experts(wanted), posterior.min_experts)
    return CountsBySize(
        size_classes=classes.names if classes.edges else ("all",),
        bounds=classes.bounds or ("" if sizes is None else "any diameter",),
        experts=tuple(items.experts[f] for f in order),
        by_expert=each[:, order],
        posterior=of_draws.reshape(-1, n_classes).T,
        min_experts=wanted,
        dbscan=None if labels is None else dbscan_counts(posterior, labels),
        nouns=plural(posterior.likelihood.noun),
    )


def draw_counts_by_size(table: CountsBySize, axes: Panels | None = None) -> list[Axes]:
    """One panel for each class: experts as points, DBSCAN as a diamond, draws as a histogram."""
    count = len(table.size_classes)
    rows = len(table.experts) + COUNT_ROWS + (table.dbscan is not None)
    with styled():
        if axes is None:
            height = float(np.clip(0.7 + 0.17 * rows, 2.2, 8.0))
            width = WIDE if count > 1 else 0.6 * WIDE
            axes = new_axes(width, height, 1, count, sharey=True)
        panels = given_axes(axes, count)
        for k, ax in enumerate(panels[:count]):
            _draw_class(ax, table, k)
            ax.tick_params(axis="y", length=0)
        _name_rows(panels[0], table)
    return panels[:count]


def _draw_class(ax: Axes, table: CountsBySize, k: int) -> None:
    n_experts = len(table.experts)
    draws = table.posterior[k]
    found = summarise(draws)
    base = n_experts + (table.dbscan is not None)
    ax.axvspan(found.lo, found.hi, color=BLUE, alpha=0.15, linewidth=0.0)
    ax.plot(table.by_expert[k], np.arange(n_experts), "o", color=INK, markersize=3.5)
    if table.dbscan is not None:
        ax.plot(table.dbscan[k], n_experts, "D", color=GREY, markersize=5.0)
    values, times = np.unique(draws, return_counts=True)
    ax.bar(
        values,
        (COUNT_ROWS - 0.4) * times / times.max(),
        width=1.0,
        bottom=base - 0.3,
        color=BLUE,
        edgecolor=BLUE,
        # A bar one object wide may be thinner than a pixel.
        linewidth=0.8,
    )
    ax.axhline(base - 0.5, color=GREY, linewidth=0.5)
    ax.set_ylim(-0.7, base + COUNT_ROWS - 0.4)
    reached = np.concatenate((table.by_expert[k], draws))
    space = max(0.06 * (reached.max() - reached.min()), 1.5)
    left, right = reached.min() - space, reached.max() + space
    if table.dbscan is not None:
        left, right = min(left, table.dbscan[k] - space), max(right, table.dbscan[k] + space)
    ax.set_xlim(max(left, -0.8), right)
    whole_numbers(ax.xaxis, 5)
    bounds = f" ({table.bounds[k]})" if table.bounds[k] else ""
    ax.set_title(plain(table.size_classes[k]) + bounds)
    ax.set_xlabel("number of objects")


def _name_rows(ax: Axes, table: CountsBySize) -> None:
    n_experts = len(table.experts)
    places: list[float] = list(range(n_experts)) if n_experts <= MAX_ROW_NAMES else []
    names = [plain(name) for name in table.experts] if n_experts <= MAX_ROW_NAMES else []
    if not names:
        ax.set_ylabel(f"{n_experts} experts, by number of {table.nouns}")
    if table.dbscan is not None:
        places.append(n_experts)
        names.append("DBSCAN")
    base = n_experts + (table.dbscan is not None)
    places.append(base + 0.8)
    names.append(f"posterior, {in_short(table.min_experts)}")
    ax.set_yticks(places, names)


#: Rows of the figure that the histogram takes.
AGE_ROWS = 4.0
AGE_BINS = 60


def draw_model_ages(table: ModelAges, ax: Axes | None = None) -> Axes:
    """Histograms of the draws' ages, without and with the counting error; experts as points."""
    n_experts = len(table.experts)
    total = table.with_counting_error()
    low = np.nanmin([*np.quantile(total, [0.001]), *table.by_expert.low])
    high = np.nanmax([*np.quantile(total, [0.999]), *table.by_expert.high])
    edges = np.linspace(max(low, 0.0), high, AGE_BINS + 1)
    with styled():
        ax = single_axes(WIDE, 1.6 + 0.2 * (n_experts + AGE_ROWS)) if ax is None else ax
        for ages, alpha, name in (
            (total, 0.25, "posterior and counting error"),
            (table.draws.age, 1.0, "posterior"),
        ):
            counts, _ = np.histogram(ages[np.isfinite(ages)], edges)
            shown = (AGE_ROWS - 0.4) * counts / max(counts.max(), 1)
            ax.stairs(
                shown + n_experts,
                edges,
                baseline=n_experts,
                fill=True,
                color=BLUE,
                alpha=alpha,
                label=name,
            )
        found = table.by_expert
        rows = np.arange(n_experts)
        ax.errorbar(
            found.age,
            rows,
            xerr=[found.age - found.low, found.high - found.age],
            fmt="o",
            color=INK,
            markersize=3.5,
            linewidth=0.8,
            label="an expert and one standard error of the count",
        )
        ax.axhline(n_experts - 0.5, color=INK, linewidth=0.5)
        ax.set_ylim(-0.7, n_experts + AGE_ROWS)
        names = [plain(name) for name in table.experts]
        ax.set_yticks(
            [*rows, n_experts + 1.2], [*names, f"posterior, {in_short(table.min_experts)}"]
        )
        ax.tick_params(axis="y", length=0)
        first, last = table.dating.fit_range
        ax.set_xlabel(
            f"model age, Ga ({plain(table.dating.chronology, 60)}; {first:g} to {last:g} km)"
        )
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return ax


def list_counts_by_size(table: CountsBySize) -> Columns:
    """A row for each class and expert, for DBSCAN, and for the posterior's mean and interval."""
    rows = []
    for k, name in enumerate(table.size_classes):
        found = summarise(table.posterior[k])
        rows += [
            (name, who, n, "", "") for who, n in zip(table.experts, table.by_expert[k], strict=True)
        ]
        if table.dbscan is not None:
            rows.append((name, "DBSCAN", table.dbscan[k], "", ""))
        rows.append((name, "posterior", found.mean, found.lo, found.hi))
    names = ("size_class", "who", "count", "lo", "hi")
    return dict(zip(names, zip(*rows, strict=True), strict=True))


def list_sizes(table: SizeFrequency) -> Columns:
    """As in size_frequency.csv."""
    rows = list(table.rows())
    return {name: [row[name] for row in rows] for name in rows[0]}


def _sizes_in_report(shared: Shared) -> Options:
    return {"dbscan": shared.dbscan, "isochrons": shared.isochrons}


def _of_sizes(name: str, kind: str, shows: str) -> Figure[SizeFrequency, Axes]:
    """The figure of one kind of distribution."""
    return Figure(
        name,
        shows,
        partial(prepare_sizes, kind=kind),
        draw_sizes,
        needs=(DIAMETERS,),
        in_report=_sizes_in_report,
        listing=list_sizes,
    )


FIGURES = (
    Figure(
        "counts_by_size",
        "for each size class, or for all items together if they have no diameter: the count of "
        "each expert (points), of DBSCAN (diamond), and the histogram of the posterior",
        prepare_counts_by_size,
        draw_counts_by_size,
        in_report=lambda shared: {"counts": shared.counts, "dbscan": shared.dbscan},
        listing=list_counts_by_size,
    ),
    _of_sizes(
        "size_frequency",
        "cumulative",
        "cumulative [size-frequency distribution](sizes.md): posterior band, DBSCAN and each "
        "expert's own",
    ),
    _of_sizes("size_differential", "differential", "differential size-frequency distribution"),
    _of_sizes(
        "size_relative",
        "relative",
        "R-plot; like the two before it with `isochrons`: [after `dfcrp age`](ages.md#isochrons) "
        "what CraterStats' production function makes of surfaces of several ages, of the model "
        "age, and the line of equilibrium",
    ),
)
