"""Figure: items with a place (points, boxes, ellipses, circles), and the objects they became."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.shapes import SHAPES
from dfcrp.plots import maps
from dfcrp.plots.catalogue_map import add_legend, looks, state_of
from dfcrp.plots.style import BLUE, GREY, styled
from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]
#: Of the items, which lie beneath everything.
LIGHT = "#bbbbbb"


@dataclass(frozen=True)
class ItemsMap:
    """Rows (x, y), (x, y, width, height) or (x, y, major, minor, angle): items and objects."""

    likelihood: str
    items: Floats
    objects: Floats
    p_consensus: Floats
    min_experts: int
    region: maps.Region


def prepare_items_map(posterior: Posterior, *, catalogue: Any = None) -> ItemsMap:
    """Items and catalogue of a posterior whose items have a place."""
    likelihood = posterior.config.run.likelihood
    columns = SHAPES[likelihood].columns if likelihood in SHAPES else ("x", "y", "diameter")
    table = posterior.catalogue() if catalogue is None else catalogue
    items = _outlines(likelihood, posterior.markings.columns, columns)
    # A frame that holds whole items, not only their centres.
    sides = {2: items[:, :2] * 0.0, 4: items[:, 2:4]}.get(items.shape[1], items[:, 2:3])
    ends = np.concatenate([items[:, :2] - sides / 2.0, items[:, :2] + sides / 2.0])
    space = 0.05 * float(np.ptp(ends, axis=0).max()) or 1.0
    return ItemsMap(
        likelihood,
        items,
        _outlines(likelihood, table, columns),
        table["p_consensus"].to_numpy(np.float64),
        posterior.config.summary.min_experts,
        maps.frame(ends[:, 0], ends[:, 1], np.array([space])),
    )


def _outlines(likelihood: str, table: Any, columns: tuple[str, ...]) -> Floats:
    """The columns of a shape; a circle as an ellipse of equal axes."""
    found = np.column_stack([np.asarray(table[name], np.float64) for name in columns])
    if likelihood in SHAPES:
        return found
    return np.column_stack([found, found[:, 2], np.zeros(len(found))])


def draw_items_map(table: ItemsMap, ax: Any = None) -> Any:
    """Items in light grey; objects coloured by how sure their consensus is."""
    from matplotlib.lines import Line2D

    state = state_of(table.p_consensus)
    with styled():
        ax = maps.map_axes(table.region) if ax is None else ax
        maps.set_map(ax, table.region)
        thin = maps.line_width(len(table.items))
        _outline(ax, table.likelihood, table.items, colour=LIGHT, width=thin)
        entries = {}
        for kind, colour, width, words in looks(f"≥ {table.min_experts} experts", BLUE, GREY):
            own = state == kind
            _outline(ax, table.likelihood, table.objects[own], colour=colour, width=width)
            handle = Line2D([], [], color=colour, linewidth=1.0 + width)
            entries[kind] = (handle, f"{words} ({int(own.sum()):,})")
        add_legend(ax, entries)
    return ax


def _outline(ax: Any, likelihood: str, values: Floats, *, colour: str, width: float) -> None:
    """Each row as what it is: a box, an ellipse or a dot."""
    from matplotlib.collections import EllipseCollection, PolyCollection

    style: dict[str, Any] = {"facecolors": "none", "edgecolors": colour, "linewidths": width}
    style["zorder"] = 2.0 + width * (colour != LIGHT)
    if likelihood == "boxes":
        sides = np.array([[-1, -1], [1, -1], [1, 1], [-1, 1]]) / 2.0
        corners = values[:, np.newaxis, :2] + sides * values[:, np.newaxis, 2:4]
        ax.add_collection(PolyCollection(list(corners), **style), autolim=False)
    elif likelihood != "points":
        major, minor, angle = values[:, 2:5].T
        style |= {"units": "xy", "offsets": values[:, :2], "offset_transform": ax.transData}
        ellipses = EllipseCollection(major, minor, angle, **style)
        ax.add_collection(ellipses, autolim=False)
    else:
        x, y = values[:, :2].T
        ax.plot(x, y, ".", color=colour, markersize=3.0 + 2.0 * width, zorder=style["zorder"])


def plot_items_map(posterior: Posterior, ax: Any = None, **options: Any) -> tuple[ItemsMap, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_items_map(posterior, **options)
    return table, draw_items_map(table, ax)
