"""Shapes in a plane and on a sphere: which polygons draw circles, ellipses, rings of points.

On a sphere places are in degrees of longitude and latitude; all is exact at the poles and at
±180°.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.geometry import tangents, unit_vectors

Points = Sequence[tuple[float, float]]

FEWEST_VERTICES = 5
"""A square is no drawing of a circle, whatever its author meant."""
DEVIATION = 0.15
"""By how much of the radius a vertex may lie off the circle."""
ROUND = 0.97
"""Of a polygon that draws a circle, the ratio of axes below which it is read as an ellipse."""
_WIDEST_GAP = math.radians(100)
_AREA_SHARE = 0.7, 1.15
"""Area of the polygon over that of the circle; a pentagon has 0.76, a star less."""


def circle_of_polygon(points: Points) -> tuple[float, float, float] | None:
    """Give centre and radius of the circle that a polygon draws, or None if it draws none.

    The circle has the least sum of (|p - c|² - r²)² over the vertices p, which finds it exactly
    where they lie on one, however they are spaced.
    """
    vertices = np.array(distinct(points), dtype=np.float64)
    if len(vertices) < FEWEST_VERTICES or not np.isfinite(vertices).all():
        return None
    middle = vertices.mean(axis=0)
    spread = float(np.abs(vertices - middle).max())
    if not 0 < spread < 1e150 or spread < 1e-9 * float(np.abs(middle).max()):
        return None
    scaled = (vertices - middle) / spread
    system = np.column_stack([2 * scaled, np.ones(len(scaled))])
    (a, b, c), *_ = np.linalg.lstsq(system, (scaled**2).sum(axis=1), rcond=None)
    radius = math.sqrt(max(c + a * a + b * b, 0.0))
    if not _is_round(scaled - (a, b), radius):
        return None
    return float(middle[0] + spread * a), float(middle[1] + spread * b), spread * radius


def ring(x: float, y: float, radius: float, vertices: int = 72) -> list[tuple[float, float]]:
    """Points around a circle, counterclockwise, the first again at the end."""
    angles = [2 * math.pi * k / vertices for k in range(vertices)]
    points = [(x + radius * math.cos(angle), y + radius * math.sin(angle)) for angle in angles]
    return [*points, points[0]]


def centroid(points: Points) -> tuple[float, float]:
    """The centre of mass of a polygon; of a point or a line the mean of its ends."""
    (x0, y0), *_ = points
    twice = moment_x = moment_y = 0.0
    for (x1, y1), (x2, y2) in itertools.pairwise([*points, points[0]]):
        cross = (x1 - x0) * (y2 - y0) - (x2 - x0) * (y1 - y0)
        twice += cross
        moment_x += cross * (x1 + x2 - 2 * x0)
        moment_y += cross * (y1 + y2 - 2 * y0)
    if not twice:
        return sum(x for x, _ in points) / len(points), sum(y for _, y in points) / len(points)
    return x0 + moment_x / (3 * twice), y0 + moment_y / (3 * twice)


def centre_of_polygon(points: Points) -> tuple[float, float] | None:
    """The centre of the circle that a polygon draws, or else its centre of mass; None without area.

    Vertices that are spaced unevenly along a circle do not shift the first.
    """
    drawn = circle_of_polygon(points)
    if drawn is not None:
        return drawn[:2]
    found = ellipse_of_polygon(points)
    return None if found is None else found[:2]


def ellipse_of_polygon(points: Points) -> tuple[float, float, float, float, float] | None:
    """The ellipse of a polygon's area and of the shape of its second moments; None without area.

    x, y, both axes as full lengths, and the angle of the longer one from x towards y in degrees.
    """
    vertices = np.array(distinct(points), dtype=np.float64)
    if len(vertices) < 3 or not np.isfinite(vertices).all():
        return None
    x0, y0 = centroid([(float(x), float(y)) for x, y in vertices])
    x, y = (vertices - (x0, y0)).T
    u, v = np.roll(x, -1), np.roll(y, -1)
    cross = x * v - u * y
    twice = float(cross.sum())
    if abs(twice) <= 1e-12 * float(np.abs(vertices - (x0, y0)).max()) ** 2:
        return None
    moments = np.array(
        [
            (cross * (x * x + x * u + u * u)).sum() / 6.0,
            (cross * (y * y + y * v + v * v)).sum() / 6.0,
            (cross * (2.0 * (x * y + u * v) + x * v + u * y)).sum() / 12.0,
        ]
    )
    xx, yy, xy = moments / twice
    spread, turned = np.linalg.eigh(np.array([[xx, xy], [xy, yy]]))
    if spread[0] <= 0.0:
        return None
    area = abs(twice) / 2.0
    ratio = math.sqrt(math.sqrt(float(spread[1] / spread[0])))
    size = 2.0 * math.sqrt(area / math.pi)
    angle = math.degrees(math.atan2(turned[1, 1], turned[0, 1])) % 180.0
    return x0, y0, size * ratio, size / ratio, angle


def ellipse_or_circle(points: Points) -> tuple[float, float, float, float, float] | None:
    """The ellipse of a polygon's moments, or the circle that it draws if that is hardly longer."""
    drawn, found = circle_of_polygon(points), ellipse_of_polygon(points)
    if drawn is not None and found is not None and found[3] >= ROUND * found[2]:
        return drawn[0], drawn[1], 2 * drawn[2], 2 * drawn[2], 0.0
    return found


def box_around(points: Points) -> tuple[float, float, float, float] | None:
    """Centre and sides of the upright box around points; None if it has no area."""
    across, down = (sorted(axis) for axis in zip(*points, strict=True))
    width, height = across[-1] - across[0], down[-1] - down[0]
    if not (width > 0 and height > 0):
        return None
    return across[0] + width / 2, down[0] + height / 2, width, height


def distinct(points: Points) -> list[tuple[float, float]]:
    """The vertices of a polygon, without repeats of the one before and of the first at the end."""
    kept = [point for k, point in enumerate(points) if k == 0 or point != points[k - 1]]
    return kept[:-1] if len(kept) > 1 and kept[0] == kept[-1] else kept


def _is_round(around: NDArray[np.float64], radius: float) -> bool:
    """Whether points around the origin draw a circle of this radius."""
    distance = np.hypot(around[:, 0], around[:, 1])
    if radius <= 0 or (np.abs(distance - radius) > DEVIATION * radius).any():
        return False
    angles = np.sort(np.arctan2(around[:, 1], around[:, 0]))
    gaps = np.diff(angles, append=angles[0] + 2 * math.pi)
    if gaps.max() > _WIDEST_GAP:
        return False
    x, y = around.T
    area = abs(float((x * np.roll(y, -1) - np.roll(x, -1) * y).sum())) / 2
    least, most = _AREA_SHARE
    return least <= area / (math.pi * radius**2) <= most


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
