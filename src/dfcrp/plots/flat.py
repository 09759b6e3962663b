"""Markings on a flat map: as they are, or longitude and latitude as a plane.

On a map of degrees a circle is as high as on the ground and wider by 1 / cos(latitude); a map is
drawn so that shapes are right in its middle.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.geometry import counted_from, seam
from dfcrp.items.items import Items
from dfcrp.plots.underlay import Region

Floats = NDArray[np.float64]

#: The poles are drawn as if they were this near to the equator: 1 / cos(89°) is 57.
HIGHEST_LATITUDE = 89.0


@dataclass(frozen=True)
class FlatMap:
    """Centres, and diameters in the unit of y."""

    x: Floats
    y: Floats
    diameter: Floats
    degrees: bool = False
    #: Where longitudes begin to count.
    cut: float = 0.0
    #: One unit of a diameter in the unit of y.
    scale: float = 1.0

    def across(self, x: Any) -> Any:
        """x as the map counts it."""
        return counted_from(x, self.cut) if self.degrees else x

    def beside(self, x: Any, other: Any) -> Any:
        """x within half a turn of another, so that circles astride the map's edge stay whole."""
        return counted_from(x, other - 180.0) if self.degrees else x


def flat_map(markings: Items) -> FlatMap:
    """The map of these markings."""
    site = markings.site
    if not site.on_sphere:
        return FlatMap(markings.x, markings.y, markings.diameter)
    cut, scale = seam(markings.x), math.degrees(1.0 / site.sphere_radius_km)
    x = counted_from(markings.x, cut)
    return FlatMap(x, markings.y, scale * markings.diameter, True, cut, scale)


def stretch(y: Any, degrees: bool) -> Any:
    """How much wider than high a circle is on a map whose degrees are squares."""
    if not degrees:
        return np.ones_like(y, float)
    return 1.0 / np.cos(np.radians(np.clip(np.abs(y), 0.0, HIGHEST_LATITUDE)))


def middle_stretch(region: Region, degrees: bool) -> float:
    """The stretch in the middle of a region: degrees of latitude are drawn longer by it."""
    return float(stretch((region[2] + region[3]) / 2.0, degrees))
