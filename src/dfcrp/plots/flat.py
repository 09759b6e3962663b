"""The flat map: items and objects in a plane, also from degrees.

On a map of degrees a circle is as high as on the ground and wider by 1 / cos(latitude); a map is
drawn so that shapes are right in its middle.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError
from dfcrp.geometry import counted_from, seam
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.likelihoods.base import Outlines
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.values import Json

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior

#: Left, right, lower and upper end of a part of the map.
Region = tuple[float, float, float, float]

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

    def take(self, rows: ArrayLike) -> FlatMap:
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

    def across(self, x: Floats) -> Floats:
        """x as the map counts it."""
        return counted_from(x, self.cut) if self.degrees else x

    def beside(self, x: Floats, other: Floats | float) -> Floats:
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


def _scale_of(site: Site) -> Json:
    """The unit of a plane map, and how long it is on the ground, as far as that is known."""
    if site.units in ("m", "km"):
        return {"unit": site.units, "ground": (1.0, site.units)}
    if site.metres_per_pixel is None:
        return {}
    return {"unit": "px", "ground": (1.0 / site.metres_per_pixel, "m")}


def flat_catalogue(posterior: Posterior, table: pandas.DataFrame) -> FlatMap:
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


def quantities_of(table: Iterable[Hashable]) -> list[str]:
    """The columns of a catalogue that have an uncertainty."""
    names = [str(name) for name in table]
    return [name for name in names if f"{name}_sd" in names]


def _amid(placed: FlatMap, labels: NDArray[np.int32]) -> FlatMap:
    _, first, code = np.unique(labels, return_index=True, return_inverse=True)
    count = np.bincount(code)

    def mean(values: Floats) -> Floats:
        return np.asarray(np.bincount(code, values) / count, np.float64)

    return replace(
        placed,
        x=mean(placed.beside(placed.x, placed.x[first][code])),
        y=mean(placed.y),
        width=mean(placed.width),
        height=mean(placed.height),
        angle=placed.angle[first],
    )


def name_of(values: ArrayLike, columns: Mapping[str, ArrayLike]) -> str:
    """The column that holds just these values; empty if none does."""
    return next((name for name, column in columns.items() if np.array_equal(values, column)), "")


def stretch(y: ArrayLike, degrees: bool) -> Floats:
    """How much wider than high a circle is on a map whose degrees are squares."""
    if not degrees:
        return np.ones_like(y, float)
    return 1.0 / np.cos(np.radians(np.clip(np.abs(y), 0.0, HIGHEST_LATITUDE)))


def middle_stretch(region: Region, degrees: bool) -> float:
    """The stretch in the middle of a region: degrees of latitude are drawn longer by it."""
    return float(stretch((region[2] + region[3]) / 2.0, degrees))
