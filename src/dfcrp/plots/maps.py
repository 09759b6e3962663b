"""What all maps share: outlines to scale, the frame around them, equal scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.flat import FlatMap, middle_stretch, stretch
from dfcrp.plots.style import GREY, NARROW, WIDE, legend_of, plain, single_axes
from dfcrp.plots.underlay import Region, Underlay, grey_levels

#: Share of the range that is left free around everything.
MARGIN = 0.03
#: Inches that a map may be high.
MAX_HEIGHT = 5.5
#: Height over width of a map whose scales are free.
FREE_SHAPE = 0.7


def frame(placed: FlatMap, underlay: Underlay | None = None) -> Region:
    """The part of the plane that shows everything; the whole image if there is one.

    Of circles all centres are shown, of other outlines the whole of each.
    """
    if underlay is not None:
        left, right, bottom, top = underlay.extent
        return left, right, min(bottom, top), max(bottom, top)
    half: tuple[Any, Any] = (0.0, 0.0) if placed.round else placed.half
    ends = []
    for values, reach in zip((placed.x, placed.y), half, strict=True):
        low, high = float((values - reach).min()), float((values + reach).max())
        around = 0.6 * float(np.median(placed.size)) if placed.round else 0.0
        space = max(MARGIN * (high - low), around)
        ends.append((low, high, space))
    # What lies on a line, or in one place, has some room around it all the same.
    room = MARGIN * max(high - low for low, high, _ in ends) or 1.0
    (left, right, x), (low, high, y) = ((*e[:2], e[2] or room) for e in ends)
    return left - x, right + x, low - y, high + y


def touching(placed: FlatMap, region: Region, *, centres: bool = False) -> NDArray[np.bool_]:
    """Which outlines, or which centres, lie in the region or reach into it."""
    left, right, low, high = region
    half: tuple[Any, Any] = (0.0, 0.0) if centres else placed.half
    across, up = half
    x, y = placed.x, placed.y
    inside: NDArray[np.bool_] = (
        (x >= left - across) & (x <= right + across) & (y >= low - up) & (y <= high + up)
    )
    return inside


def map_axes(region: Region, placed: FlatMap) -> Any:
    """An axes whose figure has the shape of the region, and fits on a page."""
    left, right, low, high = region
    shape = FREE_SHAPE
    if placed.equal:
        shape = (high - low) / (right - left) * middle_stretch(region, placed.degrees)
    width = max(min(WIDE, MAX_HEIGHT / shape), NARROW)
    return single_axes(width, float(np.clip(width * shape + 0.4, 2.2, MAX_HEIGHT + 0.4)))


def set_map(ax: Any, region: Region, placed: FlatMap, underlay: Underlay | None = None) -> None:
    """Equal scales (on the ground, in the middle of the map), y as given, the image beneath.

    Where x and y have units of their own, so have their scales.
    """
    left, right, low, high = region
    downwards = False
    if underlay is not None:
        downwards = underlay.extent[2] > underlay.extent[3]
        ax.imshow(
            grey_levels(underlay.pixels),
            extent=underlay.extent,
            cmap="gray",
            interpolation="antialiased",
            aspect="equal",
            zorder=0,
        )
    if placed.equal:
        ax.set_aspect(middle_stretch(region, placed.degrees), adjustable="box")
    ax.set_xlim(left, right)
    ax.set_ylim(*((high, low) if downwards else (low, high)))
    names = ("longitude (°)", "latitude (°)") if placed.degrees else placed.axes
    ax.set_xlabel(plain(names[0]))
    ax.set_ylabel(plain(names[1]))
    if not names[1]:
        ax.set_yticks([])
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)


def add_outlines(ax: Any, placed: FlatMap, **keywords: Any) -> Any:
    """Outlines to scale, points as dots; ``keywords`` go to matplotlib's collection."""
    from matplotlib.collections import EllipseCollection, PolyCollection

    options: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.6}
    options |= keywords
    centres = np.column_stack((placed.x, placed.y))
    made: Any
    if placed.shape == "box":
        made = PolyCollection(list(_corners(placed)), **options)
    elif placed.shape == "ellipse":
        made = EllipseCollection(
            placed.width * stretch(placed.y, placed.degrees),
            placed.height,
            placed.angle,
            units="xy",
            offsets=centres,
            offset_transform=ax.transData,
            **options,
        )
    else:
        made = _dots(ax, centres, options)
    ax.add_collection(made, autolim=False)
    return made


def _corners(placed: FlatMap) -> NDArray[np.float64]:
    """Of boxes, (n, 4, 2)."""
    cos, sin = np.cos(np.radians(placed.angle)), np.sin(np.radians(placed.angle))
    a, b = placed.width / 2.0, placed.height / 2.0
    across = np.stack([-a, a, a, -a], axis=1)
    up = np.stack([-b, -b, b, b], axis=1)
    x = placed.x[:, np.newaxis] + across * cos[:, np.newaxis] - up * sin[:, np.newaxis]
    y = placed.y[:, np.newaxis] + across * sin[:, np.newaxis] + up * cos[:, np.newaxis]
    return np.stack([x, y], axis=2)


def _dots(ax: Any, centres: NDArray[np.float64], options: dict[str, Any]) -> Any:
    """Round dots, the larger the thicker a line would be; hollow instead of dashed."""
    from matplotlib.collections import EllipseCollection

    width = np.full(len(centres), 2.0 + 2.0 * options["linewidths"])
    hollow = options.pop("linestyles", "-") != "-"
    colour = options["edgecolors"]
    look = {"facecolors": "none" if hollow else colour, "linewidths": 0.8 if hollow else 0.0}
    return EllipseCollection(
        width,
        width,
        np.zeros(len(centres)),
        units="points",
        offsets=centres,
        offset_transform=ax.transData,
        **(options | look),
    )


def marker_of(shape: str, width: float = 1.0) -> dict[str, Any]:
    """How an outline of this line width looks in a legend."""
    if shape == "point":
        return {"linestyle": "none", "marker": "o", "markersize": 2.0 + 2.0 * width, "mew": 0.0}
    marker = "s" if shape == "box" else "o"
    return {"linestyle": "none", "marker": marker, "fillstyle": "none", "mew": width}


def legend_above(ax: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend over the map, in a row if the figure is wide and the entries are few."""
    wide = ax.get_figure(root=True).get_figwidth() > 0.8 * WIDE
    columns = 3 if wide else 1
    legend_of(ax, handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)


def line_width(count: int) -> float:
    """Thinner lines for more outlines."""
    return float(np.clip(9.0 / np.sqrt(max(count, 1)), 0.3, 0.9))
