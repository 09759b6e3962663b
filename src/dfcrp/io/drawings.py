"""Gathers the shapes of drawing tools, and gives them as items of the kind that is asked for."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.circles import Points, circle_of_polygon
from dfcrp.io.tables import (
    LeftOut,
    NothingToReadError,
    RawTable,
    ReadOptions,
    describe_left_out,
)
from dfcrp.items.checks import shown
from dfcrp.items.site import Site

NO_CIRCLE = "polygon that is no circle"
CENTRES = "there are no points in it; the centres of its shapes are read"

#: The columns of each kind that shapes can be read as.
COLUMNS = {
    "circles": ("x", "y", "diameter"),
    "points": ("x", "y"),
    "boxes": ("x", "y", "width", "height"),
    "ellipses": ("x", "y", "major", "minor", "angle"),
}
DRAWN = tuple(COLUMNS)
_ONE = {"circles": "circle", "points": "point", "boxes": "box", "ellipses": "ellipse"}
#: The kinds that each shape may be read as.
_READ_AS = {
    "circle": ("circles", "ellipses", "points"),
    "ellipse": ("ellipses", "circles", "points"),
    "box": ("boxes", "points"),
    "point": ("points",),
}


@dataclass(frozen=True)
class Origin:
    """Whose mark it is, on what, and what it was called; None where the format does not say."""

    row: int
    expert: str | None = None
    image: str | None = None
    label: str | None = None


@dataclass(frozen=True)
class Mark:
    """One shape as it was drawn."""

    origin: Origin
    shape: str
    """ "circle", "ellipse", "box", "point" or "polygon"."""
    x: Any = None
    """The centre, as the file has it; it is read when it is needed."""
    y: Any = None
    across: float = 0.0
    """Half the first axis or side, and half the second."""
    down: float = 0.0
    angle: float = 0.0
    """Degrees by which it is turned, from x towards y."""
    points: Points = ()


class Drawings:
    """The shapes of one file, in its order."""

    def __init__(self, name: str, record: str, options: ReadOptions) -> None:
        self.name = name
        self.record = record
        self.options = options
        self._marks: list[Mark] = []
        self._left_out: list[LeftOut] = []
        self._note = ""

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
        r = self.number(origin, radius, "a radius")
        if r <= 0:
            self.leave(origin, "circle of no size")
        else:
            self._marks.append(Mark(origin, "circle", x, y, r, r))

    def ellipse(
        self, origin: Origin, x: object, y: object, rx: object, ry: object, *, angle: object = 0.0
    ) -> None:
        """Take an ellipse by its radii; ``angle`` is from x towards y, in degrees."""
        a, b = self.number(origin, rx, "a radius"), self.number(origin, ry, "a radius")
        if a <= 0 or b <= 0:
            self.leave(origin, "circle of no size")
            return
        turned = self.number(origin, angle or 0.0, "the angle")
        self._marks.append(Mark(origin, "ellipse", x, y, a, b, turned))

    def polygon(self, origin: Origin, points: object) -> None:
        """Take a polygon."""
        self._marks.append(Mark(origin, "polygon", points=self.pairs(origin, points)))

    def box(
        self, origin: Origin, left: Any, top: Any, width: Any, height: Any, *, angle: object = 0.0
    ) -> None:
        """Take a box; ``angle`` turns it about its centre."""
        x, y = self.number(origin, left, "x"), self.number(origin, top, "y")
        w, h = self.number(origin, width, "the width"), self.number(origin, height, "the height")
        turned = self.number(origin, angle or 0.0, "the angle")
        self._marks.append(
            Mark(origin, "box", x + w / 2, y + h / 2, abs(w) / 2, abs(h) / 2, turned)
        )

    def point(self, origin: Origin, x: object, y: object) -> None:
        """Take a point."""
        self._marks.append(Mark(origin, "point", x, y))

    def leave(self, origin: Origin, why: str) -> None:
        """Leave out what is no shape; ``why`` says what it is."""
        self._left_out.append(LeftOut(why, origin.row))

    def table(self, site: Site | None = None) -> RawTable:
        """All marks that are of the kind asked for, as a table."""
        convert = self._conversion()
        origins: list[Origin] = []
        numbers: list[tuple[float, ...]] = []
        for mark in self._marks:
            found = convert(mark)
            if isinstance(found, str):
                self.leave(mark.origin, found)
            else:
                origins.append(mark.origin)
                numbers.append(found)
        if not numbers:
            raise NothingToReadError(self._nothing())
        header = list(COLUMNS[self.options.kind])
        columns: list[Sequence[Any]] = [list(column) for column in zip(*numbers, strict=True)]
        for role in ("expert", "image", "label"):
            cells = [getattr(origin, role) for origin in origins]
            if any(cell is not None for cell in cells):
                header.append(role)
                columns.append(cells)
        rows = [origin.row for origin in origins]
        site = site or Site("px")
        left_out = sorted(self._left_out, key=lambda entry: entry.row)
        return RawTable(self.name, header, columns, rows, self.record, site, left_out, self._note)

    def _conversion(self) -> Callable[[Mark], tuple[float, ...] | str]:
        """What makes an item of a mark, or says what it is instead."""
        if self.options.kind != "points":
            found: dict[str, Callable[[Mark], tuple[float, ...] | str]] = {
                "circles": self._as_circle,
                "boxes": self._as_box,
                "ellipses": self._as_ellipse,
            }
            return found[self.options.kind]
        shapes = Counter(mark.shape for mark in self._marks)
        if shapes["point"] or not self._marks:
            return lambda mark: self._place(mark) if mark.shape == "point" else mark.shape
        self._note = CENTRES
        return self._as_centre

    def _place(self, mark: Mark) -> tuple[float, float]:
        return self.number(mark.origin, mark.x, "x"), self.number(mark.origin, mark.y, "y")

    def _as_circle(self, mark: Mark) -> tuple[float, ...] | str:
        """A circle; an ellipse as the circle of the same area; a polygon that draws a circle."""
        options = self.options
        if mark.shape == "polygon":
            drawn = circle_of_polygon(mark.points)
            return NO_CIRCLE if drawn is None else (drawn[0], drawn[1], 2 * drawn[2])
        if mark.shape == "point":
            if options.point_diameter is None:
                return "point without a size"
            return *self._place(mark), options.point_diameter
        if mark.shape == "box" and not options.boxes:
            return "box"
        a, b = mark.across, mark.down
        if a <= 0 or b <= 0:
            return "circle of no size"
        return *self._place(mark), 2 * (a if a == b else math.sqrt(a) * math.sqrt(b))

    def _as_ellipse(self, mark: Mark) -> tuple[float, ...] | str:
        """An ellipse or a circle, also one drawn as a polygon."""
        if mark.shape == "polygon":
            drawn = circle_of_polygon(mark.points)
            return NO_CIRCLE if drawn is None else (*drawn[:2], 2 * drawn[2], 2 * drawn[2], 0.0)
        if mark.shape not in ("circle", "ellipse"):
            return mark.shape
        major, minor = 2 * max(mark.across, mark.down), 2 * min(mark.across, mark.down)
        angle = mark.angle if mark.across >= mark.down else mark.angle + 90.0
        return *self._place(mark), major, minor, 0.0 if major == minor else angle % 180.0

    def _as_box(self, mark: Mark) -> tuple[float, ...] | str:
        """A box whose sides are along x and y."""
        if mark.shape != "box":
            return mark.shape
        if mark.across <= 0 or mark.down <= 0:
            return "box of no size"
        if mark.angle % 90.0:
            return "box that is turned"
        sides = (2 * mark.across, 2 * mark.down)
        return *self._place(mark), *(sides[::-1] if mark.angle % 180.0 else sides)

    def _as_centre(self, mark: Mark) -> tuple[float, ...] | str:
        if mark.shape != "polygon":
            return self._place(mark)
        drawn = circle_of_polygon(mark.points)
        return NO_CIRCLE if drawn is None else drawn[:2]

    def _nothing(self) -> str:
        kind = self.options.kind
        if not self._left_out:
            return f"{self.name}: there is no mark in it; give a file with {kind}"
        listed = describe_left_out(self._left_out, self.record)
        shapes = {mark.shape for mark in self._marks}
        shapes |= {
            "circle"
            for mark in self._marks
            if mark.shape == "polygon" and circle_of_polygon(mark.points) is not None
        }
        others = dict.fromkeys(k for s in sorted(shapes) for k in _READ_AS.get(s, ()) if k != kind)
        instead = f"; it can be read as {' or '.join(others)} (--likelihood)" if others else ""
        return (
            f"{self.name}: there is no {_ONE[kind]} in it, but {listed}"
            f"{hints(self._left_out, kind)}{instead}"
        )


def hints(left_out: Sequence[LeftOut], kind: str) -> str:
    """Say how boxes and points can be read as circles after all."""
    found = {entry.why for entry in left_out} if kind == "circles" else set()
    said = ""
    if "box" in found:
        said += "; `dfcrp convert --boxes` reads boxes as the ellipses inside them"
    if "point without a size" in found:
        said += "; `dfcrp convert --point-diameter` gives points a size"
    return said


def told(table: RawTable, kind: str) -> str:
    """What the user should know of a table that was read: what was left out, and how often."""
    said = []
    if table.note:
        said.append(table.note)
    if table.left_out:
        listed = describe_left_out(table.left_out, table.record)
        hint = hints(table.left_out, kind)
        count = len(table.rows)
        read = f"1 {_ONE.get(kind, 'row')} is" if count == 1 else f"{count} {kind} are"
        said.append(f"{read} read; left out: {listed}{hint}")
    return "; ".join(said)
