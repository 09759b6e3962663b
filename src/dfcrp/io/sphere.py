"""Circles on a sphere, in degrees of longitude and latitude: exact at the poles and at ±180°."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError
from dfcrp.geometry import tangents, unit_vectors
from dfcrp.io.columns import did_you_mean
from dfcrp.io.shapes import DEVIATION, FEWEST_VERTICES, Points, circle_of_polygon, distinct
from dfcrp.items.checks import shown

BODIES = {"moon": 1737.4, "mars": 3396.19, "mercury": 2439.4, "ceres": 469.7}
"""Radii in km."""


def body_radius(body: str) -> float:
    """Give the radius in km of a body, by its name or as a number."""
    if body.casefold() in BODIES:
        return BODIES[body.casefold()]
    try:
        radius = float(body)
    except ValueError:
        raise SettingsError(
            f"there is no body {shown(body)}{did_you_mean(body, BODIES)}; "
            f"there are {', '.join(BODIES)}, or give a radius in km"
        ) from None
    if not 0 < radius < math.inf:
        raise SettingsError(f"the body's radius is {body}; it must be a positive number of km")
    return radius


def circle_on_sphere(points: Points) -> tuple[float, float, float] | None:
    """Give longitude, latitude and angular radius (all in degrees) of the circle drawn, or None.

    The vertices of a circle on a sphere lie in a plane, whose normal points to its centre.
    """
    vertices = np.array(distinct(points), dtype=np.float64)
    if len(vertices) < FEWEST_VERTICES or not np.isfinite(vertices).all():
        return None
    vectors = unit_vectors(vertices[:, 0], vertices[:, 1])
    normal = np.linalg.svd(vectors - vectors.mean(axis=0))[2][2]
    if normal @ vectors.sum(axis=0) < 0:
        normal = -normal
    # The sine of half the chord keeps its digits where the cosine of a small angle does not.
    chords = np.linalg.norm(vectors - normal, axis=1)
    angles = 2 * np.arcsin(np.minimum(chords / 2, 1.0))
    radius = float(angles.mean())
    if radius <= 0 or (np.abs(angles - radius) > DEVIATION * radius).any():
        return None
    east, north = tangents(normal)
    flat = list(zip((vectors @ east).tolist(), (vectors @ north).tolist(), strict=True))
    if circle_of_polygon(flat) is None:
        return None
    longitude = math.degrees(math.atan2(normal[1], normal[0]))
    latitude = math.degrees(math.atan2(normal[2], math.hypot(normal[0], normal[1])))
    return longitude, latitude, math.degrees(radius)


def ring_on_sphere(
    longitude: float, latitude: float, radius: float, vertices: int = 72
) -> list[tuple[float, float]]:
    """Points around a circle of this angular radius in degrees, the first again at the end.

    Longitudes run on across ±180° instead of jumping, as long as the circle holds no pole.
    """
    angles = 2 * np.pi * np.arange(vertices) / vertices
    away = np.full(vertices, math.radians(radius))
    return [*(points := offsets(longitude, latitude, angles, away)), points[0]]


def offsets(
    longitude: float,
    latitude: float,
    bearings: NDArray[np.float64],
    distances: NDArray[np.float64],
) -> list[tuple[float, float]]:
    """Where one gets to from a place, by angle from the east and distance, both in radians."""
    centre = unit_vectors(np.array([longitude]), np.array([latitude]))[0]
    east, north = tangents(centre)
    ways = np.outer(np.cos(bearings), east) + np.outer(np.sin(bearings), north)
    ends = np.cos(distances)[:, None] * centre + np.sin(distances)[:, None] * ways
    longitudes = np.degrees(np.arctan2(ends[:, 1], ends[:, 0]))
    longitudes += 360 * np.round((longitude - longitudes) / 360)
    latitudes = np.degrees(np.arctan2(ends[:, 2], np.hypot(ends[:, 0], ends[:, 1])))
    return list(zip(longitudes.tolist(), latitudes.tolist(), strict=True))
