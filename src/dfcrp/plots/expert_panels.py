"""Figure: one panel for each expert over a small region, the others' items in grey."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots import maps
from dfcrp.plots.flat import FlatMap, flat_map, middle_stretch, stretch
from dfcrp.plots.style import INK, PALE, WIDE, given_axes, new_axes, plain, styled
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.posterior import Posterior

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
    if found.equal:
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
    image: Any = None,
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


def draw_expert_panels(table: ExpertPanels, axes: Any = None) -> list[Any]:
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
    return panels[:count]


def _panel_shape(table: ExpertPanels) -> float:
    """Height over width of a panel."""
    if not table.outlines.equal:
        return 1.0
    left, right, low, high = table.region
    taller = middle_stretch(table.region, table.outlines.degrees)
    return float(np.clip(taller * (high - low) / (right - left), 0.4, 2.0))


def _draw_panel(ax: Any, table: ExpertPanels, panel: int) -> None:
    maps.set_map(ax, table.region, table.outlines, table.underlay)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    over_image = table.underlay is not None
    own = table.panel == panel
    for which, colour, width in (
        (~own, "#9fd3ff" if over_image else PALE, 0.7),
        (own, "#ffd166" if over_image else INK, 0.9),
    ):
        maps.add_outlines(ax, table.outlines.take(which), edgecolors=colour, linewidths=width)
    ax.set_title(f"{plain(table.experts[panel], 14)} ({table.counts[panel]})", fontsize=7.5)


def plot_expert_panels(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[ExpertPanels, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_expert_panels(posterior, **options)
    return table, draw_expert_panels(table, axes)
