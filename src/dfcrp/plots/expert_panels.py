"""Figure: one panel for each expert over a small region, the others' markings in grey."""

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
#: Panels of one figure; of more experts those with most markings in the region are shown.
MAX_PANELS = 24
PER_ROW = 6


@dataclass(frozen=True)
class ExpertPanels:
    """Markings that touch the region, and whose they are."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    diameter: NDArray[np.float64]
    #: Panel of each marking; -1 for experts without a panel.
    panel: NDArray[np.int64]
    experts: tuple[str, ...]
    #: Items of each expert whose centre lies in the region.
    counts: tuple[int, ...]
    region: maps.Region
    underlay: Underlay | None = None
    degrees: bool = False


def region_around(
    found: FlatMap, n_experts: int, x: float, y: float, shown: int = SHOWN
) -> maps.Region:
    """A square around a point in which a typical expert has ``shown`` markings."""
    left, right, low, high = maps.frame(found.x, found.y, found.diameter)
    each = len(found.x) / n_experts
    side = np.sqrt((right - left) * (high - low) * min(shown / each, 1.0))
    wider = np.sqrt(float(stretch(y, found.degrees)))
    # The square stays inside the data, so that no panel is half empty.
    half_x, half_y = min(side * wider, right - left) / 2.0, min(side / wider, high - low) / 2.0
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
    """Without a ``region`` it lies around the marking whose cluster is least certain."""
    found = posterior.markings
    placed = flat_map(found)
    if region is None:
        least = int(np.argmin(posterior.membership.p_member))
        region = region_around(placed, len(found.experts), placed.x[least], placed.y[least])
    centred = maps.within(placed.x, placed.y, region)
    counts = np.bincount(found.families[centred], minlength=len(found.experts))
    chosen = np.sort(np.argsort(-counts, kind="stable")[:MAX_PANELS])
    panel_of = np.full(len(found.experts), -1, np.int64)
    panel_of[chosen] = np.arange(len(chosen))
    shown = maps.within(placed.x, placed.y, region, placed.diameter / 2.0)
    return ExpertPanels(
        x=placed.x[shown],
        y=placed.y[shown],
        diameter=placed.diameter[shown],
        panel=panel_of[found.families[shown]],
        experts=tuple(found.experts[f] for f in chosen),
        counts=tuple(int(counts[f]) for f in chosen),
        region=region,
        underlay=read_underlay(image, found.y, extent),
        degrees=placed.degrees,
    )


def draw_expert_panels(table: ExpertPanels, axes: Any = None) -> list[Any]:
    """Black circles are this expert's, grey ones the others'; the number is this expert's."""
    count = len(table.experts)
    with styled():
        if axes is None:
            columns = min(count, PER_ROW)
            rows = -(-count // columns)
            left, right, low, high = table.region
            taller = middle_stretch(table.region, table.degrees)
            shape = float(np.clip(taller * (high - low) / (right - left), 0.4, 2.0))
            width = WIDE if columns > 3 else 1.8 * columns
            axes = new_axes(width, rows * (width / columns * shape + 0.2), rows, columns)
        panels = given_axes(axes, count)
        for spare in panels[count:]:
            spare.set_axis_off()
        for k, ax in enumerate(panels[:count]):
            _draw_panel(ax, table, k)
    return panels[:count]


def _draw_panel(ax: Any, table: ExpertPanels, panel: int) -> None:
    maps.set_map(ax, table.region, table.underlay, degrees=table.degrees)
    ax.set(xticks=[], yticks=[], xlabel="", ylabel="")
    over_image = table.underlay is not None
    own = table.panel == panel
    for which, colour, width in (
        (~own, "#9fd3ff" if over_image else PALE, 0.7),
        (own, "#ffd166" if over_image else INK, 0.9),
    ):
        maps.add_circles(
            ax,
            table.x[which],
            table.y[which],
            table.diameter[which],
            degrees=table.degrees,
            edgecolors=colour,
            linewidths=width,
        )
    ax.set_title(f"{plain(table.experts[panel], 14)} ({table.counts[panel]})", fontsize=7.5)


def plot_expert_panels(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[ExpertPanels, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_expert_panels(posterior, **options)
    return table, draw_expert_panels(table, axes)
