"""Gathers the shapes of drawing tools as circles, and keeps account of what is none."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.options import ReadOptions
from dfcrp.io.records import LeftOut, describe_left_out
from dfcrp.io.shapes import circle_of_polygon
from dfcrp.io.table import Table
from dfcrp.items.checks import shown
from dfcrp.items.site import Site


@dataclass(frozen=True)
class Origin:
    """Whose mark it is, on what, and what it was called; None where the format does not say."""

    row: int
    expert: str | None = None
    image: str | None = None
    label: str | None = None


class Marks:
    """The marks of one file, in its order."""

    def __init__(self, name: str, record: str, options: ReadOptions) -> None:
        self.name = name
        self.record = record
        self.options = options
        self._origins: list[Origin] = []
        self._circles: list[tuple[float, float, float]] = []
        self._left_out: list[LeftOut] = []

    def number(self, origin: Origin, value: object, what: str) -> float:
        """Read a number, or refuse the file."""
        try:
            if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                return float(value)
        except (ValueError, OverflowError):
            pass
        raise InputError(
            f"{self.name}, {self.record} {origin.row}: {what} is {shown(str(value))}, "
            "not a number; correct it or remove the mark"
        )

    def pairs(self, origin: Origin, points: object) -> list[tuple[float, float]]:
        """Read a list of points, each [x, y] or {"x": ..., "y": ...}, or refuse the file."""
        if not isinstance(points, (list, tuple)):
            raise InputError(
                f"{self.name}, {self.record} {origin.row}: the points are {shown(str(points))}, "
                "not a list; export the file again"
            )
        read = []
        for point in points:
            both = [point.get("x"), point.get("y")] if isinstance(point, dict) else point
            if not isinstance(both, (list, tuple)) or len(both) < 2:
                both = [point, None]
            x, y = (self.number(origin, value, "a coordinate") for value in both[:2])
            read.append((x, y))
        return read

    def circle(self, origin: Origin, x: object, y: object, radius: object) -> None:
        """Take a circle by its radius."""
        self.ellipse(origin, x, y, radius, radius)

    def ellipse(self, origin: Origin, x: object, y: object, rx: object, ry: object) -> None:
        """Take an ellipse as the circle of the same area."""
        a, b = self.number(origin, rx, "a radius"), self.number(origin, ry, "a radius")
        if a <= 0 or b <= 0:
            self.leave(origin, "circle of no size")
            return
        diameter = 2 * (a if a == b else math.sqrt(a) * math.sqrt(b))
        self._keep(origin, x, y, diameter)

    def polygon(self, origin: Origin, points: object) -> None:
        """Take a polygon if it draws a circle."""
        found = circle_of_polygon(self.pairs(origin, points))
        if found is None:
            self.leave(origin, "polygon that is no circle")
        else:
            self._keep(origin, found[0], found[1], 2 * found[2])

    def box(self, origin: Origin, left: Any, top: Any, width: Any, height: Any) -> None:
        """Take a box as the ellipse inside it, if that is asked for."""
        x, y = self.number(origin, left, "x"), self.number(origin, top, "y")
        w, h = self.number(origin, width, "the width"), self.number(origin, height, "the height")
        if self.options.boxes:
            self.ellipse(origin, x + w / 2, y + h / 2, abs(w) / 2, abs(h) / 2)
        else:
            self.leave(origin, "box")

    def point(self, origin: Origin, x: object, y: object) -> None:
        """Take a point, if points were given a diameter."""
        if self.options.point_diameter is None:
            self.leave(origin, "point without a size")
        else:
            self._keep(origin, x, y, self.options.point_diameter)

    def leave(self, origin: Origin, why: str) -> None:
        """Leave out what is no circle; ``why`` says what it is."""
        self._left_out.append(LeftOut(why, origin.row))

    def table(self, site: Site | None = None) -> Table:
        """All circles as a table."""
        if not self._circles:
            raise InputError(self._nothing())
        header = ["x", "y", "diameter"]
        columns: list[Sequence[Any]] = [list(axis) for axis in zip(*self._circles, strict=True)]
        for role in ("expert", "image", "label"):
            cells = [getattr(origin, role) for origin in self._origins]
            if any(cell is not None for cell in cells):
                header.append(role)
                columns.append(cells)
        rows = [origin.row for origin in self._origins]
        return Table(
            self.name, header, columns, rows, self.record, site or Site("px"), self._left_out
        )

    def _keep(self, origin: Origin, x: object, y: object, diameter: float) -> None:
        self._origins.append(origin)
        self._circles.append((self.number(origin, x, "x"), self.number(origin, y, "y"), diameter))

    def _nothing(self) -> str:
        if not self._left_out:
            return f"{self.name}: there is no mark in it; give a file with circles"
        listed = describe_left_out(self._left_out, self.record)
        return f"{self.name}: there is no circle in it, but {listed}{hints(self._left_out)}"


def hints(left_out: Sequence[LeftOut]) -> str:
    """Say how boxes and points can be read after all."""
    found = {entry.why for entry in left_out}
    said = ""
    if "box" in found:
        said += "; `dfcrp convert --boxes` reads boxes as the ellipses inside them"
    if "point without a size" in found:
        said += "; `dfcrp convert --point-diameter` gives points a size"
    return said
