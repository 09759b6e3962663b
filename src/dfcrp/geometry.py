"""Places on a sphere: unit vectors, tangent planes, distances."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Places whose longitudes leave no gap of so many degrees lie all around.
WIDE_GAP = 20.0


def unit_vectors(longitudes: Floats, latitudes: Floats) -> Floats:
    """Points of the unit sphere, one per row (the last axis), from degrees."""
    lon, lat = np.radians(longitudes), np.radians(latitudes)
    return np.stack([np.cos(lat) * np.cos(lon), np.cos(lat) * np.sin(lon), np.sin(lat)], axis=-1)


def degrees_of(vectors: Floats) -> tuple[Floats, Floats]:
    """Longitude in −180° to 180° and latitude of vectors of any length."""
    x, y, z = np.moveaxis(vectors, -1, 0)
    return np.degrees(np.arctan2(y, x)), np.degrees(np.arctan2(z, np.hypot(x, y)))


def seam(longitudes: Floats) -> float:
    """The longitude at which a map of these places is cut, counted as the places count.

    That is the middle of the widest gap; of places all around, -180° or 0°.
    """
    around = np.unique(np.mod(longitudes, 360.0))
    gaps = np.diff(around, append=around[0] + 360.0)
    widest = int(np.argmax(gaps))
    if gaps[widest] < WIDE_GAP:
        return 0.0 if longitudes.min() >= 0.0 else -180.0
    cut = float(around[widest] + gaps[widest] / 2.0)
    turns = np.round(np.median(counted_from(longitudes, cut) - longitudes) / 360.0)
    return cut - 360.0 * float(turns)


def counted_from(longitudes: Floats, cut: float) -> Floats:
    """The same longitudes between the cut and 360° more."""
    return cut + np.mod(longitudes - cut, 360.0)


def tangents(normal: Sequence[float] | Floats) -> tuple[Floats, Floats]:
    """The directions east and north where the normal stands; at a pole, as at longitude 0 there."""
    x, y, z = normal
    length = math.hypot(x, y)
    east = np.array([-y, x, 0.0]) / length if length > 1e-15 else np.array([0.0, 1.0, 0.0])
    return east, np.cross([x, y, z], east)


@dataclass(frozen=True)
class TangentPlanes:
    """The planes that touch a sphere at some places, with x to the east and y to the north.

    A place is seen from above (orthographic): what is small keeps its shape and size, wherever on
    the sphere it is, and means and spreads are taken there as in any plane.
    """

    longitude: Floats
    latitude: Floats
    radius: float

    def offsets(self, longitude: Floats, latitude: Floats) -> tuple[Floats, Floats]:
        """East and north of each place's own point of contact, in the unit of the radius."""
        vectors = self.radius * unit_vectors(longitude, latitude)
        east, north, _ = self._frames()
        return (vectors * east).sum(axis=-1), (vectors * north).sum(axis=-1)

    def places(self, east: Floats, north: Floats) -> tuple[Floats, Floats]:
        """Longitude and latitude; what ``offsets`` takes apart."""
        to_east, to_north, up = self._frames()
        e, n = east / self.radius, north / self.radius
        height = np.sqrt(np.maximum(1.0 - e * e - n * n, 0.0))
        e, n, height = (part[..., np.newaxis] for part in (e, n, height))
        return degrees_of(e * to_east + n * to_north + height * up)

    def _frames(self) -> tuple[Floats, Floats, Floats]:
        lon = np.radians(self.longitude)
        zero = np.zeros_like(lon)
        east = np.stack([-np.sin(lon), np.cos(lon), zero], axis=-1)
        up = unit_vectors(self.longitude, self.latitude)
        return east, np.cross(up, east), up
