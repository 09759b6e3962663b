"""What all maps share: circles to scale, the frame around them, the image beneath them."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.style import GREY, NARROW, WIDE, legend_of, single_axes

#: Left, right, lower and upper end of a part of the map.
Region = tuple[float, float, float, float]

#: Longest side, in pixels, that an image is reduced to: more than a printed page can show.
MAX_PIXELS = 3_000
#: Share of the range that is left free around the outermost centres.
MARGIN = 0.03
#: Inches that a map may be high.
MAX_HEIGHT = 5.5


@dataclass(frozen=True)
class Underlay:
    """An image and where its edges lie in the coordinates of the markings."""

    #: (rows, columns) or (rows, columns, 3), the first row on top.
    pixels: NDArray[Any]
    #: Left, right, bottom, top; a bottom above the top means that y runs downwards.
    extent: Region


def read_underlay(
    image: Any, y: NDArray[np.float64], extent: Region | None = None
) -> Underlay | None:
    """An image file, an array or an Underlay, placed beneath markings with these y.

    Without an ``extent`` one pixel is one unit and the upper left corner is (0, 0): with y running
    upwards from the negative height to zero if most y are negative, downwards if not.
    """
    if image is None or isinstance(image, Underlay):
        return image
    if isinstance(image, str | os.PathLike):
        pixels, (width, height) = _read_image(image)
    else:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3):
            raise InputError(f"an image has rows, columns and perhaps colours, not {pixels.shape}")
        height, width = pixels.shape[:2]
    if extent is None:
        upwards = float(np.median(y)) < 0
        extent = (0.0, float(width), -float(height) if upwards else float(height), 0.0)
    return Underlay(pixels, extent)


def _read_image(path: str | os.PathLike[str]) -> tuple[NDArray[Any], tuple[int, int]]:
    """Pixels reduced to what a figure can show, and the full width and height."""
    from PIL import Image

    limit = Image.MAX_IMAGE_PIXELS
    try:
        # Orbital images are larger than what Pillow takes for an attack.
        Image.MAX_IMAGE_PIXELS = None
        with Image.open(path) as image:
            size = image.size
            # One channel of any depth is kept as it is; palettes and alpha become colours.
            single = image.mode in ("L", "F") or image.mode.startswith("I")
            shown = image if single else image.convert("RGB")
            step = -(-max(size) // MAX_PIXELS)
            return np.asarray(shown.reduce(step) if step > 1 else shown), size
    except (OSError, ValueError, SyntaxError) as error:
        raise InputError(f"{os.fspath(path)}: cannot be read as an image: {error}") from None
    finally:
        Image.MAX_IMAGE_PIXELS = limit


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


def map_axes(region: Region, width: float = WIDE) -> Any:
    """An axes whose figure has the shape of the region, and fits on a page."""
    left, right, low, high = region
    shape = (high - low) / (right - left)
    width = max(min(width, MAX_HEIGHT / shape), NARROW)
    return single_axes(width, float(np.clip(width * shape + 0.4, 2.2, MAX_HEIGHT + 0.4)))


def set_map(ax: Any, region: Region, underlay: Underlay | None = None) -> None:
    """Equal scales, y as given, the image beneath."""
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
    ax.set_aspect("equal", adjustable="box")
    ax.set_xlim(left, right)
    ax.set_ylim(*((high, low) if downwards else (low, high)))
    ax.set_xlabel("x")
    ax.set_ylabel("y")
    for side in ("top", "right"):
        ax.spines[side].set_visible(True)


def grey_levels(pixels: NDArray[Any]) -> NDArray[Any]:
    """Eight-bit images as they are; others between their 1st and 99th percentile."""
    if pixels.dtype == np.uint8:
        return pixels
    low, high = np.nanpercentile(pixels, [1.0, 99.0])
    scaled = (np.asarray(pixels, np.float64) - low) / max(float(high - low), 1e-300)
    return np.clip(np.nan_to_num(scaled), 0.0, 1.0)


def add_circles(
    ax: Any,
    x: NDArray[np.float64],
    y: NDArray[np.float64],
    diameter: NDArray[np.float64],
    **keywords: Any,
) -> Any:
    """Circles to scale; ``keywords`` go to matplotlib's collection."""
    from matplotlib.collections import EllipseCollection

    options: dict[str, Any] = {"facecolors": "none", "edgecolors": GREY, "linewidths": 0.6}
    circles = EllipseCollection(
        diameter,
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
