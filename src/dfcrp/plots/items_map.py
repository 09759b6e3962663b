"""Figure: the items of all experts, to scale, over the image if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from dfcrp.plots import maps
from dfcrp.plots.flat import FlatMap, flat_map
from dfcrp.plots.style import INK, styled
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.posterior import Posterior


@dataclass(frozen=True)
class ItemsMap:
    """Every item that touches the region."""

    outlines: FlatMap
    #: Left, right, low, high.
    region: maps.Region
    underlay: Underlay | None = None


def prepare_items_map(
    posterior: Posterior,
    *,
    image: Any = None,
    extent: maps.Region | None = None,
    region: maps.Region | None = None,
) -> ItemsMap:
    """The items, and the image (a file or an array) placed as in ``underlay.read_underlay``."""
    placed = flat_map(posterior.items)
    underlay = read_underlay(image, placed.y, extent)
    if region is None:
        region = maps.frame(placed, underlay)
    return ItemsMap(placed.take(maps.touching(placed, region)), region, underlay)


def draw_items_map(table: ItemsMap, ax: Any = None) -> Any:
    """Outlines in one colour: where many experts agree they darken."""
    with styled():
        ax = maps.map_axes(table.region, table.outlines) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
        maps.add_outlines(
            ax,
            table.outlines,
            edgecolors=INK if table.underlay is None else "#ffd166",
            linewidths=maps.line_width(len(table.outlines)),
            alpha=0.55,
        )
    return ax


def plot_items_map(posterior: Posterior, ax: Any = None, **options: Any) -> tuple[ItemsMap, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_items_map(posterior, **options)
    return table, draw_items_map(table, ax)
