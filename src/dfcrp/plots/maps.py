"""What all maps share: circles to scale, the frame around them, equal scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.flat import middle_stretch, stretch
from dfcrp.plots.style import GREY, NARROW, WIDE, legend_of, single_axes
from dfcrp.plots.underlay import Region, Underlay, grey_levels

#: Share of the range that is left free around the outermost centres.
MARGIN = 0.03
#: Inches that a map may be high.
MAX_HEIGHT = 5.5


def frame(
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    diameter: NDArray[np.float64],
    underlay: Underlay | None = None,
) -> Region:
    """The part of the plane that shows all centres; the whole image if there is one."""
    if underlay is not None:
        left, right, bottom, top = underlay.extent
        return left, right, min(bottom, top), max(bottom, top)
    ends = []
    for values in (x, y):
        low, high = float(values.min()), float(values.max())
        space = max(MARGIN * (high - low), 0.6 * float(np.median(diameter)))
        ends += [low - space, high + space]
    return ends[0], ends[1], ends[2], ends[3]


def within(
    x: NDArray[np.float64], y: NDArray[np.float64], region: Region, reach: Any = 0.0
) -> NDArray[np.bool_]:
    """Which points lie in the region, or no further than ``reach`` outside of it."""
    left, right, low, high = region
    inside: NDArray[np.bool_] = (
        (x >= left - reach) & (x <= right + reach) & (y >= low - reach) & (y <= high + reach)
    )
    return inside


def map_axes(region: Region, degrees: bool = False) -> Any:
    """An axes whose figure has the shape of the region, and fits on a page."""
    left, right, low, high = region
    shape = (high - low) / (right - left) * middle_stretch(region, degrees)
    width = max(min(WIDE, MAX_HEIGHT / shape), NARROW)
    return single_axes(width, float(np.clip(width * shape + 0.4, 2.2, MAX_HEIGHT + 0.4)))


def set_map(
    ax: Any, region: Region, underlay: Underlay | None = None, *, degrees: bool = False
) -> None:
    """Equal scales (on the ground, in the middle of the map), y as given, the image beneath."""
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
    ax.set_aspect(middle_stretch(region, degrees), adjustable="box")
    ax.set_xlim(left, right)
    ax.set_ylim(*((high, low) if downwards else (low, high)))
    ax.set_xlabel("longitude (°)" if degrees else "x")
    ax.set_ylabel("latitude (°)" if degrees else "y")
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)


def add_circles(
    ax: Any,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    diameter: NDArray[np.float64],
    *,
    degrees: bool = False,
    **keywords: Any,
) -> Any:
    """Circles to scale; ``keywords`` go to matplotlib's collection."""
    from matplotlib.collections import EllipseCollection

    options: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.6}
    circles = EllipseCollection(
        diameter * stretch(y, degrees),
        diameter,
        np.zeros(len(diameter)),
        units="xy",
        offsets=np.column_stack((x, y)),
        offset_transform=ax.transData,
        **(options | keywords),
    )
    ax.add_collection(circles, autolim=False)
    return circles


def legend_above(ax: Any, handles: Sequence[Any], names: Sequence[str]) -> None:
    """A legend over the map, in a row if the figure is wide and the entries are few."""
    wide = ax.get_figure(root=True).get_figwidth() > 0.8 * WIDE
    columns = 3 if wide else 1
    legend_of(ax, handles, names, loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=columns)


def line_width(count: int) -> float:
    """Thinner lines for more circles."""
    return float(np.clip(9.0 / np.sqrt(max(count, 1)), 0.3, 0.9))
