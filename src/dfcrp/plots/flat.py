"""The flat map: items and objects in a plane, also from degrees, and the image beneath.

On a map of degrees a circle is as high as on the ground and wider by 1 / cos(latitude); a map is
drawn so that shapes are right in its middle.
"""

from __future__ import annotations

import contextlib
import math
import os
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.geometry import counted_from, seam
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.base import Outlines
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.memory import refuse_more_than_memory
from dfcrp.plots.ground import ItemPlaces, lying
from dfcrp.settings.config import ImageSettings

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior


#: Left, right, lower and upper end of a part of the map.
Region = tuple[float, float, float, float]

#: Longest side, in pixels, that an image is reduced to: more than a printed page can show.
MAX_PIXELS = 3_000


@dataclass(frozen=True)
class Underlay:
    """An image and where its edges lie in the coordinates of the items."""

    #: (rows, columns) or (rows, columns, 3), the first row on top.
    pixels: NDArray[Any]
    #: Left, right, bottom, top; a bottom above the top means that y runs downwards.
    extent: Region


def read_underlay(
    image: Any,
    y: NDArray[np.float64],
    extent: Region | None = None,
    places: ItemPlaces | None = None,
) -> Underlay | None:
    """An image file, an array or an Underlay, placed beneath items with these y.

    Without an ``extent`` one pixel is one unit and the upper left corner is (0, 0): with y running
    upwards from the negative height to zero if most y are negative, downwards if not. An image
    file with a georeference lies there, if ``places`` tell that the items are on its map.
    """
    if image is None or isinstance(image, Underlay):
        return image
    if isinstance(image, str | os.PathLike):
        if extent is None and places is not None:
            return configured_underlay(ImageSettings(file=os.fspath(image)), y, places)
        pixels, size = read_image(image)
    else:
        pixels = np.asarray(image)
        if pixels.ndim not in (2, 3):
            raise InputError(f"an image has rows, columns and perhaps colours, not {pixels.shape}")
        size = pixels.shape[1], pixels.shape[0]
    return Underlay(pixels, extent or extent_of(size, y, ImageSettings()))


def configured_underlay(
    settings: ImageSettings, y: NDArray[np.float64], places: ItemPlaces | None = None
) -> Underlay | None:
    """The image that a run's settings name; a warning if it is gone.

    Without an offset and a scale it lies where its georeference says, if the items, whose
    ``places`` these are, are on its map. Beneath degrees an image without one has no place.
    """
    if settings.file is None:
        return None
    if not os.path.isfile(settings.file):
        warnings.warn(
            f"{settings.file}: the image is no longer there, so the maps are drawn without it; "
            "say where it is with `dfcrp report RUN --image-file FILE`",
            DfcrpWarning,
            stacklevel=2,
        )
        return None
    pixels, size = read_image(settings.file)
    usual = extent_of(size, y, settings)
    told = replace(ImageSettings(), file=settings.file, y=settings.y) != settings
    if places is None or told:
        return Underlay(pixels, usual)
    lies = lying(settings.file, pixels, size, places, usual)
    return None if lies is None else Underlay(*lies)


def places_of(items: Items) -> ItemPlaces | None:
    """Where items lie on their map, and what is known of it; None if they have no place."""
    found = flat_map_or_none(items)
    return None if found is None else ItemPlaces(found.x, found.y, items.site, found.cut)


def extent_of(size: tuple[int, int], y: NDArray[np.float64], settings: ImageSettings) -> Region:
    """Where the edges of an image of this width and height lie."""
    upwards = settings.y == "up" or (settings.y == "auto" and float(np.median(y)) < 0)
    left, top = settings.offset
    width, height = settings.scale * size[0], settings.scale * size[1]
    return left, left + width, top - height if upwards else top + height, top


def check_image(path: str | os.PathLike[str]) -> None:
    """Refuse what is no image, before any work is done for it."""
    with _opened(path):
        pass


def read_image(path: str | os.PathLike[str]) -> tuple[NDArray[Any], tuple[int, int]]:
    """Pixels reduced to what a figure can show, and the full width and height."""
    with _opened(path) as image:
        size = image.size
        # A JPEG is decoded no finer than needed.
        image.draft(None, (MAX_PIXELS, MAX_PIXELS))
        refuse_more_than_memory(
            # A byte for a grey pixel; four for one in colours, as it is and converted.
            float(image.size[0]) * image.size[1] * (1 if image.mode == "L" else 8),
            f"{os.fspath(path)}: an image of {size[0]:,} by {size[1]:,} pixels",
            "give a smaller version of it, with --image-scale",
        )
        return _reduced(image), size


@contextlib.contextmanager
def _opened(path: str | os.PathLike[str]) -> Iterator[Any]:
    from PIL import Image as Pillow

    limit = Pillow.MAX_IMAGE_PIXELS
    try:
        # Orbital images are larger than what Pillow takes for an attack.
        Pillow.MAX_IMAGE_PIXELS = None
        with Pillow.open(path) as image:
            yield image
    except (OSError, ValueError, SyntaxError, MemoryError) as error:
        raise InputError(f"{os.fspath(path)}: cannot be read as an image: {error}") from None
    finally:
        Pillow.MAX_IMAGE_PIXELS = limit


def _reduced(image: Any) -> NDArray[Any]:
    step = -(-max(image.size) // MAX_PIXELS)
    if image.mode.startswith("I") or image.mode == "F":
        # One channel of more than eight bits, which Pillow cannot reduce in all its forms.
        return _block_means(np.asarray(image), step)
    # Palettes and alpha become colours.
    shown = image if image.mode == "L" else image.convert("RGB")
    return np.asarray(shown.reduce(step) if step > 1 else shown)


def _block_means(pixels: NDArray[Any], step: int) -> NDArray[Any]:
    """Means of squares of ``step`` pixels; those at the edge may hold fewer."""
    if step == 1:
        return pixels
    for axis in (0, 1):
        starts = np.arange(0, pixels.shape[axis], step)
        lengths = np.diff([*starts, pixels.shape[axis]])
        sums = np.add.reduceat(pixels, starts, axis=axis, dtype=np.float64)
        pixels = sums / (lengths[:, np.newaxis] if axis == 0 else lengths)
    return pixels.astype(np.float32)


def grey_levels(pixels: NDArray[Any]) -> NDArray[Any]:
    """Eight-bit images as they are; others between their 1st and 99th percentile."""
    if pixels.dtype == np.uint8:
        return pixels
    low, high = np.nanpercentile(pixels, [1.0, 99.0])
    scaled = (np.asarray(pixels, np.float64) - low) / max(float(high - low), 1e-300)
    return np.clip(np.nan_to_num(scaled), 0.0, 1.0)


Floats = NDArray[np.float64]

#: The first lane of what lies on a line.
OBJECTS = "objects"
#: The poles are drawn as if they were this near to the equator: 1 / cos(89°) is 57.
HIGHEST_LATITUDE = 89.0


@dataclass(frozen=True)
class FlatMap:
    """Outlines on a map: centres, and widths and heights in the unit of y."""

    x: Floats
    y: Floats
    width: Floats
    height: Floats
    #: Degrees, counterclockwise.
    angle: Floats
    #: "ellipse", "box" or "point".
    shape: str
    #: What x and y are called, empty where they are nothing that describes an item.
    axes: tuple[str, str] = ("x", "y")
    degrees: bool = False
    #: Where longitudes begin to count.
    cut: float = 0.0
    #: One unit of a width in the unit of y.
    scale: float = 1.0
    #: What x and y are given in; empty if that is not known.
    unit: str = ""
    #: A length on the ground in the unit of y, and what it is: (0.4, "m"); None if not known.
    ground: tuple[float, str] | None = None
    #: Whether x alone is a place: then y are lanes, 1 apart, from 0 downwards.
    on_line: bool = False
    #: What is in each lane.
    lanes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.x)

    @property
    def size(self) -> Floats:
        """The longer side or axis; of circles the diameter, on a line the length."""
        return self.width if self.on_line else np.maximum(self.width, self.height)

    @property
    def equal(self) -> bool:
        """Whether x and y have one unit, so that their scales must be equal."""
        if self.on_line:
            return False
        return self.degrees or self.shape != "point" or self.axes == ("x", "y")

    @property
    def round(self) -> bool:
        """Whether all are circles."""
        return self.shape == "ellipse" and bool((self.width == self.height).all())

    @property
    def half(self) -> tuple[Floats, Floats]:
        """Half the width and half the height of the upright box around each outline."""
        cos, sin = np.cos(np.radians(self.angle)), np.sin(np.radians(self.angle))
        a, b = self.width / 2.0, self.height / 2.0
        if self.shape == "box":
            across, high = np.abs(a * cos) + np.abs(b * sin), np.abs(a * sin) + np.abs(b * cos)
        else:
            across, high = np.hypot(a * cos, b * sin), np.hypot(a * sin, b * cos)
        return across * stretch(self.y, self.degrees), high

    def take(self, rows: Any) -> FlatMap:
        """Some of them."""
        names = ("x", "y", "width", "height", "angle")
        return replace(self, **{name: getattr(self, name)[rows] for name in names})

    def place(self, outlines: Outlines) -> FlatMap:
        """Other outlines on the same map."""
        return replace(
            self,
            x=self.across(outlines.x),
            y=outlines.y,
            width=self.scale * outlines.width,
            height=self.scale * outlines.height,
            angle=outlines.angle,
            shape=outlines.shape,
        )

    def across(self, x: Any) -> Any:
        """x as the map counts it."""
        return counted_from(x, self.cut) if self.degrees else x

    def beside(self, x: Any, other: Any) -> Any:
        """x within half a turn of another, so that outlines astride the map's edge stay whole."""
        return counted_from(x, other - 180.0) if self.degrees else x

    @property
    def digits(self) -> int:
        """Decimals of a coordinate: a hundred-thousandth of the width of the data, about.

        A thousandth of a typical size where the data are wider than a hundred of them.
        """
        typical = float(np.median(self.size))
        wide = max(float(np.ptp(self.x)), float(np.ptp(self.y)), float(self.size.max()))
        wide = min(wide, 100.0 * typical) if typical > 0.0 else wide
        return int(np.clip(5 - np.ceil(np.log10(wide or 1.0)), 0, 12))


def flat_map(items: Items) -> FlatMap:
    """The map of these items; an error if they have no place."""
    found = flat_map_or_none(items)
    if found is None:
        raise InputError(f"a map needs items with a place; {items.kind} have none")
    return found


def flat_map_or_none(items: Items) -> FlatMap | None:
    """The map of these items; None if they have no place."""
    columns = items.columns
    outlines = likelihood_named(items.kind).outlines(columns)
    if outlines is None:
        return None
    if outlines.on_line:
        return FlatMap(
            **{**vars(outlines), "y": -1.0 - items.families},
            axes=("position", ""),
            lanes=(OBJECTS, *items.experts),
        )
    names = name_of(outlines.x, columns), name_of(outlines.y, columns)
    site = items.site
    whole = FlatMap(**vars(outlines), axes=names)
    if not site.on_sphere:
        return replace(whole, **_scale_of(site)) if whole.equal else whole
    cut, scale = seam(outlines.x), math.degrees(1.0 / site.sphere_radius_km)
    ground = (scale, "km")
    return replace(whole, degrees=True, cut=cut, scale=scale, ground=ground).place(outlines)


def _scale_of(site: Site) -> dict[str, Any]:
    """The unit of a plane map, and how long it is on the ground, as far as that is known."""
    if site.units in ("m", "km"):
        return {"unit": site.units, "ground": (1.0, site.units)}
    if site.metres_per_pixel is None:
        return {}
    return {"unit": "px", "ground": (1.0 / site.metres_per_pixel, "m")}


def flat_catalogue(posterior: Posterior, table: Any) -> FlatMap:
    """The objects of a catalogue on the map of the items.

    Where a catalogue has no numbers of its own, an object lies amid its members.
    """
    placed = flat_map(posterior.items)
    described = {name: np.asarray(table[name]) for name in quantities_of(table)}
    if not described:
        return _amid(placed, posterior.point_partition().labels)
    outlines = posterior.likelihood.outlines(described)
    assert outlines is not None
    return placed.place(outlines)


def quantities_of(table: Any) -> list[str]:
    """The columns of a catalogue that have an uncertainty."""
    names = list(table)
    return [name for name in names if f"{name}_sd" in names]


def _amid(placed: FlatMap, labels: NDArray[np.int32]) -> FlatMap:
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    count = np.bincount(code)

    def mean(values: Floats) -> Floats:
        total: Any = np.bincount(code, values)
        return np.asarray(total / count, np.float64)

    return replace(
        placed,
        x=mean(placed.beside(placed.x, placed.x[first][code])),
        y=mean(placed.y),
        width=mean(placed.width),
        height=mean(placed.height),
        angle=placed.angle[first],
    )


def name_of(values: Any, columns: Mapping[str, Any]) -> str:
    """The column that holds just these values; empty if none does."""
    return next((name for name, column in columns.items() if np.array_equal(values, column)), "")


def stretch(y: Any, degrees: bool) -> Any:
    """How much wider than high a circle is on a map whose degrees are squares."""
    if not degrees:
        return np.ones_like(y, float)
    return 1.0 / np.cos(np.radians(np.clip(np.abs(y), 0.0, HIGHEST_LATITUDE)))


def middle_stretch(region: Region, degrees: bool) -> float:
    """The stretch in the middle of a region: degrees of latitude are drawn longer by it."""
    return float(stretch((region[2] + region[3]) / 2.0, degrees))
