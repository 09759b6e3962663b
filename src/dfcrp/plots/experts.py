"""Figures that compare experts: Jaccard coefficients, items that are alone, a panel for each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, did_you_mean
from dfcrp.markup import counted, plural
from dfcrp.plots import maps
from dfcrp.plots.figure import PLACES, Columns, Figure, matrix_columns
from dfcrp.plots.flat import FlatMap, flat_map, middle_stretch, stretch
from dfcrp.plots.style import (
    COLOURS,
    INK,
    MOST_PATHS,
    NARROW,
    PALE,
    WIDE,
    Look,
    given_axes,
    new_axes,
    plain,
    single_axes,
    styled,
)
from dfcrp.plots.underlay import Beneath, Underlay, has_pixels, read_underlay
from dfcrp.posterior.posterior import Posterior

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from dfcrp.plots.style import Panels

#: Experts up to which every cell has its number printed.
MAX_PRINTED = 20
#: Experts up to which every row has its name; of more, those with most items are shown.
MAX_SHOWN = 60


@dataclass(frozen=True)
class JaccardTable:
    """Posterior mean and 95 % interval for each pair; experts by number of items."""

    #: Of very many only those with most items.
    experts: tuple[str, ...]
    count: NDArray[np.int64]
    #: (experts, experts), ones on the diagonal.
    mean: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    #: Experts in all, shown or not.
    n_experts: int
    #: What items are called.
    nouns: str = "items"

    def extreme_pairs(self) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """The most and the least similar pair; None if there is no pair."""
        first, second = np.triu_indices(len(self.experts), 1)
        values = self.mean[first, second]
        if not np.isfinite(values).any():
            return None
        most, least = int(np.nanargmax(values)), int(np.nanargmin(values))
        return (
            (self.experts[first[most]], self.experts[second[most]]),
            (self.experts[first[least]], self.experts[second[least]]),
        )


def prepare_jaccard(posterior: Posterior) -> JaccardTable:
    """Pairwise coefficients, ordered from the fewest items to the most."""
    found = posterior.expert_summary
    count = found.count[found.compared]
    order = np.argsort(count, kind="stable")[-MAX_SHOWN:]
    pairs = np.ix_(order, order)
    return JaccardTable(
        experts=tuple(posterior.items.experts[f] for f in found.compared[order]),
        count=count[order],
        mean=np.asarray(found.jaccard_matrix.mean)[pairs],
        lo=np.asarray(found.jaccard_matrix.lo)[pairs],
        hi=np.asarray(found.jaccard_matrix.hi)[pairs],
        n_experts=len(found.count),
        nouns=plural(posterior.likelihood.noun),
    )


#: Experts whose numbers fit into one column of a journal.
ONE_COLUMN = 6


def draw_jaccard(table: JaccardTable, ax: Axes | None = None) -> Axes:
    """Darker is more similar; fewest items first, the diagonal from the upper left downwards."""
    count = len(table.experts)
    apart = np.where(np.eye(count, dtype=bool), np.nan, table.mean)
    values = np.where(np.eye(count, dtype=bool), 1.0, table.mean)
    with styled():
        if ax is None:
            size = float(np.clip(1.4 + 0.38 * count, 2.4, 0.8 * WIDE))
            narrow = count <= ONE_COLUMN
            ax = single_axes(*(NARROW, 0.8 * NARROW) if narrow else (size + 0.7, size))
        finite = apart[np.isfinite(apart)]
        # From the least similar pair to the diagonal, on which everyone agrees.
        low, high = min(finite.min(initial=1.0), 0.99), 1.0
        image = ax.imshow(values, origin="upper", cmap="Blues", vmin=low, vmax=high)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="Jaccard coefficient")
        _name_experts(ax, table)
        ax.spines[:].set_visible(False)
        if count <= MAX_PRINTED:
            _print_values(ax, values, (low + high) / 2.0)
    return ax


def _name_experts(ax: Axes, table: JaccardTable) -> None:
    count = len(table.experts)
    if count < table.n_experts:
        ax.set_xlabel(f"the {count} experts with most {table.nouns}, of {table.n_experts:,}")
    names = [plain(name) for name in table.experts]
    rows = [f"{name} ({n})" for name, n in zip(names, table.count, strict=True)]
    size: Look = {"fontsize": 7.0 if count <= MAX_PRINTED else 5.0}
    ax.set_xticks(range(count), names, rotation=90, **size)
    ax.set_yticks(range(count), rows, **size)
    ax.tick_params(length=0)


def _print_values(ax: Axes, values: NDArray[np.float64], middle: float) -> None:
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = values[row, column]
        ax.text(
            column,
            row,
            "1" if row == column else f"{value:.2f}".removeprefix("0"),
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if value > middle else INK,
        )


@dataclass(frozen=True)
class SingletonMap:
    """Items that are alone with at least the threshold's probability."""

    experts: tuple[str, ...]
    #: Posterior mean share of the size-1 clusters, in percent.
    shares: tuple[float, ...]
    #: What one item is called.
    noun: str
    outlines: FlatMap
    #: Position in ``experts``.
    expert: NDArray[np.int64]
    p_alone: NDArray[np.float64]
    threshold: float
    region: maps.Region
    underlay: Underlay | None = None


def loneliest_experts(posterior: Posterior, count: int = 2) -> tuple[str, ...]:
    """The experts with the largest shares of the size-1 clusters, largest first."""
    share = np.nan_to_num(np.asarray(posterior.expert_summary.size_1.mean), nan=-1.0)
    order = np.argsort(-share, kind="stable")[:count]
    return tuple(posterior.items.experts[f] for f in order)


def prepare_singletons(
    posterior: Posterior,
    *,
    experts: Sequence[str] | None = None,
    threshold: float = 0.5,
    image: Beneath = None,
    extent: maps.Region | None = None,
) -> SingletonMap:
    """Without ``experts`` the two with the largest shares of the size-1 clusters."""
    found = posterior.items
    names = loneliest_experts(posterior) if experts is None else tuple(experts)
    for name in names:
        if name not in found.experts:
            raise InputError(f"there is no expert {name!r}{did_you_mean(name, found.experts, 0.0)}")
    codes = np.array([found.experts.index(name) for name in names])
    alone = posterior.expert_summary.alone
    position = np.full(len(found.experts), -1, np.int64)
    position[codes] = np.arange(len(codes))
    shown = (position[found.families] >= 0) & (alone >= threshold)
    placed = flat_map(found)
    underlay = read_underlay(image, placed.y, extent)
    share = np.asarray(posterior.expert_summary.size_1.mean)
    return SingletonMap(
        experts=names,
        shares=tuple(float(share[f]) for f in codes),
        noun=posterior.likelihood.noun,
        outlines=placed.take(shown),
        expert=position[found.families[shown]],
        p_alone=alone[shown],
        threshold=threshold,
        region=maps.frame(placed, underlay),
        underlay=underlay,
    )


def draw_singletons(table: SingletonMap, ax: Axes | None = None) -> Axes:
    """One colour for each expert, the first one beneath the others."""
    from matplotlib.lines import Line2D

    colours = (PALE, "#E69F00") if has_pixels(table.underlay) else COLOURS
    with styled():
        ax = maps.map_axes(table.region, table.outlines) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
        maps.add_scale_bar(ax, table.region, table.outlines)
        handles, names = [], []
        for k, name in enumerate(table.experts):
            own = table.expert == k
            colour = colours[k % len(colours)]
            maps.add_outlines(ax, table.outlines.take(own), edgecolors=colour, linewidths=0.9)
            handles.append(Line2D([], [], color=colour, **maps.marker_of(table.outlines.shape)))
            count = int(own.sum())
            names.append(f"{plain(name)}: {counted(count, table.noun)}")
        maps.map_legend(ax, handles, names)
    return ax


#: Items of a typical expert that the default region shows.
SHOWN = 8
#: Panels of one figure; of more experts those with most items in the region are shown.
MAX_PANELS = 24
PER_ROW = 6


@dataclass(frozen=True)
class ExpertPanels:
    """Items that touch the region, and whose they are."""

    outlines: FlatMap
    #: Panel of each item; -1 for experts without a panel.
    panel: NDArray[np.int64]
    experts: tuple[str, ...]
    #: Items of each expert whose centre lies in the region.
    counts: tuple[int, ...]
    region: maps.Region
    underlay: Underlay | None = None


def region_around(
    found: FlatMap, n_experts: int, x: float, y: float, shown: int = SHOWN
) -> maps.Region:
    """A square around a point in which a typical expert has ``shown`` items."""
    left, right, low, high = maps.frame(found)
    each = len(found) / n_experts
    share = np.sqrt(min(shown / each, 1.0))
    if found.on_line:
        wide, tall = (right - left) * share**2, high - low
    elif found.equal:
        side = np.sqrt((right - left) * (high - low)) * share
        wider = np.sqrt(float(stretch(y, found.degrees)))
        wide, tall = side * wider, side / wider
    else:
        wide, tall = (right - left) * share, (high - low) * share
    # The square stays inside the data, so that no panel is half empty.
    half_x, half_y = min(wide, right - left) / 2.0, min(tall, high - low) / 2.0
    x = float(np.clip(x, left + half_x, right - half_x))
    y = float(np.clip(y, low + half_y, high - half_y))
    return x - half_x, x + half_x, y - half_y, y + half_y


def prepare_expert_panels(
    posterior: Posterior,
    *,
    region: maps.Region | None = None,
    image: Beneath = None,
    extent: maps.Region | None = None,
) -> ExpertPanels:
    """Without a ``region`` it lies around the item whose cluster is least certain."""
    found = posterior.items
    placed = flat_map(found)
    if region is None:
        least = int(np.argmin(posterior.membership.p_member))
        region = region_around(placed, len(found.experts), placed.x[least], placed.y[least])
    centred = maps.touching(placed, region, centres=True)
    counts = np.bincount(found.families[centred], minlength=len(found.experts))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MAX_PANELS])
    panel_of = np.full(len(found.experts), -1, np.int64)
    panel_of[chosen] = np.arange(len(chosen))
    shown = maps.touching(placed, region)
    return ExpertPanels(
        outlines=placed.take(shown),
        panel=panel_of[found.families[shown]],
        experts=tuple(found.experts[f] for f in chosen),
        counts=tuple(int(counts[f]) for f in chosen),
        region=region,
        underlay=read_underlay(image, placed.y, extent),
    )


def draw_expert_panels(table: ExpertPanels, axes: Panels | None = None) -> list[Axes]:
    """Black outlines are this expert's, grey ones the others'; the number is this expert's."""
    count = len(table.experts)
    with styled():
        if axes is None:
            columns = min(count, PER_ROW)
            rows = -(-count // columns)
            shape = _panel_shape(table)
            width = WIDE if columns > 3 else 1.8 * columns
            axes = new_axes(width, rows * (width / columns * shape + 0.2), rows, columns)
        panels = given_axes(axes, count)
        for spare in panels[count:]:
            spare.set_axis_off()
        for k, ax in enumerate(panels[:count]):
            _draw_panel(ax, table, k)
        # Below the first panel of the last row it is in nobody's way.
        first = (count - 1) // PER_ROW * PER_ROW
        maps.add_scale_bar(panels[first], table.region, table.outlines, below=7.0)
    return panels[:count]


def _panel_shape(table: ExpertPanels) -> float:
    """Height over width of a panel."""
    if not table.outlines.equal:
        return 1.0
    left, right, low, high = table.region
    taller = middle_stretch(table.region, table.outlines.degrees)
    return float(np.clip(taller * (high - low) / (right - left), 0.4, 2.0))


def _draw_panel(ax: Axes, table: ExpertPanels, panel: int) -> None:
    maps.set_map(ax, table.region, table.outlines, table.underlay)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    over_image = has_pixels(table.underlay)
    own = table.panel == panel
    # The others' outlines are drawn once for each expert.
    many = len(table.outlines) * len(table.experts) > MOST_PATHS
    for which, colour, width, pixels in (
        (~own, "#9fd3ff" if over_image else PALE, 0.7, many),
        (own, "#ffd166" if over_image else INK, 0.9, False),
    ):
        look = {"edgecolors": colour, "linewidths": width, "rasterized": pixels}
        maps.add_outlines(ax, table.outlines.take(which), **look)
    ax.set_title(f"{plain(table.experts[panel], 14)} ({table.counts[panel]})", fontsize=7.5)


def list_jaccard(table: JaccardTable) -> Columns:
    """A row for each pair, both ways."""
    names = {"expert": table.experts, "other": table.experts}
    return matrix_columns(names, mean=table.mean, lo=table.lo, hi=table.hi)


FIGURES = (
    Figure(
        "expert_panels",
        "a small region, one panel for each expert: black this expert's items, grey the others' "
        "(the paper's figure 3); by default the region is around the least certain item",
        prepare_expert_panels,
        draw_expert_panels,
        needs=(PLACES,),
        in_report=lambda shared: {"image": shared.underlay},
    ),
    Figure(
        "jaccard",
        "how much each pair of experts agrees, ordered by number of items",
        prepare_jaccard,
        draw_jaccard,
        in_report=lambda shared: {} if len(shared.posterior.items.experts) > 1 else None,
        listing=list_jaccard,
    ),
    Figure(
        "singletons",
        "items that are more likely alone than not, by default of the two experts with the "
        "largest shares of clusters of size 1",
        prepare_singletons,
        draw_singletons,
        needs=(PLACES,),
        in_report=lambda shared: {"image": shared.underlay} if shared.n_singletons else None,
    ),
)
