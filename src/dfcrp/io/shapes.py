"""Circles in the plane: which polygons are one, and a ring of points for one."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Points = Sequence[tuple[float, float]]

FEWEST_VERTICES = 5
"""A square is no drawing of a circle, whatever its author meant."""
DEVIATION = 0.15
"""By how much of the radius a vertex may lie off the circle."""
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
