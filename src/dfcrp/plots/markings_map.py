"""Figure: the markings of all experts, to scale, over the image if there is one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots import maps
from dfcrp.plots.flat import flat_map
from dfcrp.plots.style import INK, styled
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.posterior import Posterior


@dataclass(frozen=True)
class MarkingsMap:
    """Every marking that touches the region."""

    x: NDArray[np.float64]
    y: NDArray[np.float64]
    diameter: NDArray[np.float64]
    #: Left, right, low, high.
    region: maps.Region
    underlay: Underlay | None = None
    degrees: bool = False


def prepare_markings_map(
    posterior: Posterior,
    *,
    image: Any = None,
    extent: maps.Region | None = None,
    region: maps.Region | None = None,
) -> MarkingsMap:
    """The markings, and the image (a file or an array) placed as in ``underlay.read_underlay``."""
    found = flat_map(posterior.markings)
    underlay = read_underlay(image, found.y, extent)
    if region is None:
        region = maps.frame(found.x, found.y, found.diameter, underlay)
    shown = maps.within(found.x, found.y, region, found.diameter / 2.0)
    circles = found.x[shown], found.y[shown], found.diameter[shown]
    return MarkingsMap(*circles, region, underlay, found.degrees)


def draw_markings_map(table: MarkingsMap, ax: Any = None) -> Any:
    """Circles in one colour: where many experts agree they darken."""
    with styled():
        ax = maps.map_axes(table.region, table.degrees) if ax is None else ax
        maps.set_map(ax, table.region, table.underlay, degrees=table.degrees)
        maps.add_circles(
            ax,
            table.x,
            table.y,
            table.diameter,
            degrees=table.degrees,
            edgecolors=INK if table.underlay is None else "#ffd166",
            linewidths=maps.line_width(len(table.x)),
            alpha=0.55,
        )
    return ax


def plot_markings_map(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[MarkingsMap, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_markings_map(posterior, **options)
    return table, draw_markings_map(table, ax)
