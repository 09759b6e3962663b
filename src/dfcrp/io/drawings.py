"""Marks that drawing tools export, as items of the kind that is asked for; what to say of them."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.shapes import (
    Points,
    box_around,
    centre_of_polygon,
    circle_of_polygon,
    ellipse_or_circle,
)
from dfcrp.io.tables import (
    COLUMNS,
    FileLook,
    LeftOut,
    NothingToReadError,
    RawTable,
    ReadOptions,
    describe_left_out,
    in_plural,
    some_rows,
)
from dfcrp.items.checks import LONGEST_NAME, quoted
from dfcrp.items.image_names import Mention, composed, refuse_same_name, size_or_none
from dfcrp.items.site import Site
from dfcrp.items.source_tables import FileTables
from dfcrp.values import Json

NO_CIRCLE = "polygon that is not a circle"
NEGATIVE_BOX = "box that is of negative width or height"
CENTRES = "there are no points in it; the centres of its shapes are read"
MOMENTS = "there are no ellipses in it; its polygons are read as ellipses of the same moments"
TURNED_BOX = "box that is turned"
TURNED_BOXES = "there are no ellipses in it; its turned boxes are read by their sides and angles"
BOXES_AROUND = "there are no boxes in it; its polygons are read by the boxes around them"

_ONE = {"circles": "circle", "points": "point", "boxes": "box", "ellipses": "ellipse"}
#: The kinds that each shape may be read as.
_READ_AS = {
    "circle": ("circles", "ellipses", "points"),
    "ellipse": ("ellipses", "circles", "points"),
    "box": ("boxes", "points"),
    "point": ("points",),
    "polygon": ("boxes", "ellipses", "points"),
}


@dataclass(frozen=True)
class Origin:
    """Whose mark it is, on what, and what it was called; None where the format does not say."""

    row: int
    expert: str | None = None
    image: str | None = None
    label: str | None = None
    score: Any = None
    #: What else was said of the mark, by the name of a column that the user may ask for.
    answers: Mapping[str, str] = field(default_factory=dict)


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
        self._looked: dict[FileLook, None] = {}
        self._note = ""
        self._notes: dict[str, list[int]] = {}
        self._images: dict[Mention, str] = {}
        #: Whether lengths are shares of the sides of the image.
        self.shares = False
        #: What the file says of itself and of its categories.
        self.fields: Json = {}
        self.categories: dict[str, Mapping[str, object]] = {}
        #: The shapes of all marks, once they are asked for.
        self._shapes: set[str] = set()

    def number(self, origin: Origin, value: object, what: str) -> float:
        """Read a number, or refuse the file."""
        try:
            if isinstance(value, (int, float, str)) and not isinstance(value, bool):
                return float(value)
        except (ValueError, OverflowError):
            pass
        raise InputError(
            f"{self.name}, {self.record} {origin.row}: {what} is {quoted(str(value))}, "
            "not a number; correct it or remove the mark"
        )

    def pairs(self, origin: Origin, points: object) -> list[tuple[float, float]]:
        """Read a list of points, each [x, y] or {"x": ..., "y": ...}, or refuse the file."""
        if not isinstance(points, (list, tuple)):
            raise InputError(
                f"{self.name}, {self.record} {origin.row}: the points are {quoted(str(points))}, "
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
        self,
        origin: Origin,
        left: object,
        top: object,
        width: object,
        height: object,
        *,
        angle: object = 0.0,
    ) -> None:
        """Take a box; ``angle`` turns it about its centre."""
        x, y = self.number(origin, left, "x"), self.number(origin, top, "y")
        w, h = self.number(origin, width, "the width"), self.number(origin, height, "the height")
        turned = self.number(origin, angle or 0.0, "the angle")
        if w < 0 or h < 0:
            self.leave(origin, NEGATIVE_BOX)
            return
        self._marks.append(Mark(origin, "box", x + w / 2, y + h / 2, w / 2, h / 2, turned))

    def point(self, origin: Origin, x: object, y: object) -> None:
        """Take a point."""
        self._marks.append(Mark(origin, "point", x, y))

    def image(
        self,
        path: str | None,
        *,
        number: str | None = None,
        size: Sequence[object] = (),
        fields: Mapping[str, object] | None = None,
    ) -> str | None:
        """The name that stands for an image here, until all lists are read.

        ``number`` is how the program tells images apart, ``size`` the width and height in pixels,
        which may be anything: what is no size says nothing. ``fields`` is what else is said of it.
        """
        if path is None or not path.strip():
            return None
        picture = Mention(path.strip(), number, size_or_none(size), drawn=True, fields=fields or {})
        if picture not in self._images:
            taken = set(self._images.values())
            short = composed(picture.path)[-LONGEST_NAME // 2 :]
            names = itertools.chain([short], (f"{short} [{n}]" for n in itertools.count(2)))
            self._images[picture] = next(name for name in names if name not in taken)
        return self._images[picture]

    def say(self, origin: Origin, what: str) -> None:
        """Note what was done with a mark that is read; the row 0 is the file as a whole."""
        self._notes.setdefault(what, []).append(origin.row)

    def look(self, image: str | None, expert: str | None = None) -> None:
        """Note that someone looked at an image, whether or not there is a mark on it."""
        if image is not None:
            self._looked[image, expert] = None

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
            pictures = {key: picture for picture, key in self._images.items()}
            raise NothingToReadError(
                self._nothing(), tuple(self._looked), pictures, tuple(self._left_out)
            )
        header = list(COLUMNS[self.options.kind])
        columns: list[Sequence[object]] = [list(column) for column in zip(*numbers, strict=True)]
        titles = {"label": "category"}
        for role in ("expert", "image", "label", "score"):
            cells = [getattr(origin, role) for origin in origins]
            if any(cell is not None for cell in cells):
                header.append(titles.get(role, role))
                columns.append(cells)
        for title in dict.fromkeys(title for origin in origins for title in origin.answers):
            header.append(title)
            columns.append([origin.answers.get(title) for origin in origins])
        self._refuse_same_names()
        rows = [origin.row for origin in origins]
        site = site or Site("px")
        left_out = sorted(self._left_out, key=lambda entry: entry.row)
        return RawTable(
            self.name,
            header,
            columns,
            rows,
            self.record,
            site,
            left_out,
            "; ".join(filter(None, [self._note, *self._other_notes()])),
            tuple(self._looked),
            {key: picture for picture, key in self._images.items()},
            self.shares,
            FileTables(fields=self.fields, categories=self.categories),
        )

    def _other_notes(self) -> list[str]:
        return [
            f"{what} ({some_rows(self.record, at)})" if any(at) else what
            for what, at in self._notes.items()
        ]

    def _refuse_same_names(self) -> None:
        """One name, several numbers, and one person: two images, or one that is there twice."""
        if self.options.image_names != "auto":
            return
        named = {key: picture for picture, key in self._images.items()}
        own = [(mark.origin.expert, mark.origin.image) for mark in self._marks]
        found: dict[tuple[object, ...], set[str]] = {}
        for expert, key in [*own, *((expert, key) for key, expert in self._looked)]:
            picture = named.get(key or "")
            if picture is not None and picture.number is not None:
                found.setdefault((expert, picture.parts), set()).add(picture.number)
                if len(found[expert, picture.parts]) > 1:
                    numbers = sorted(found[expert, picture.parts])
                    refuse_same_name(self.name, picture.path, numbers)

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
        self._note = centres_note(shapes.pop("point", 0), shapes)
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
        """An ellipse or a circle; polygons by their moments.

        Beside ellipses and circles a polygon is one only if it is a drawing of a circle. Where
        boxes are turned, and there is nothing else, a box stands for the ellipse in it.
        """
        if mark.shape == "polygon":
            if self._no_others("circle", "ellipse"):
                self._note = MOMENTS
                return ellipse_or_circle(mark.points) or "polygon without an area"
            drawn = circle_of_polygon(mark.points)
            return NO_CIRCLE if drawn is None else (*drawn[:2], 2 * drawn[2], 2 * drawn[2], 0.0)
        if mark.shape == "box" and mark.across > 0 and mark.down > 0 and self._boxes_for_ellipses():
            self._note = TURNED_BOXES
        elif mark.shape not in ("circle", "ellipse"):
            return mark.shape
        major, minor = 2 * max(mark.across, mark.down), 2 * min(mark.across, mark.down)
        angle = mark.angle if mark.across >= mark.down else mark.angle + 90.0
        return *self._place(mark), major, minor, 0.0 if major == minor else angle % 180.0

    def _as_box(self, mark: Mark) -> tuple[float, ...] | str:
        """A box whose sides are along x and y; a polygon by the box around it."""
        if mark.shape == "polygon" and self._no_others("box"):
            self._note = BOXES_AROUND
            return box_around(mark.points) or "polygon without an area"
        if mark.shape != "box":
            return mark.shape
        if mark.across <= 0 or mark.down <= 0:
            return "box of no size"
        if mark.angle % 90.0:
            return TURNED_BOX
        sides = (2 * mark.across, 2 * mark.down)
        return *self._place(mark), *(sides[::-1] if mark.angle % 180.0 else sides)

    def _boxes_for_ellipses(self) -> bool:
        """Whether there are boxes alone, some of them turned."""
        return self._no_others("circle", "ellipse", "polygon") and "turned box" in self._shapes

    def _no_others(self, *shapes: str) -> bool:
        """Whether no mark has one of these shapes, so that polygons may stand for them."""
        if not self._shapes:
            self._shapes = {mark.shape for mark in self._marks}
            if any(mark.shape == "box" and mark.angle % 90.0 for mark in self._marks):
                self._shapes.add("turned box")
        return self._shapes.isdisjoint(shapes)

    def _as_centre(self, mark: Mark) -> tuple[float, ...] | str:
        if mark.shape != "polygon":
            return self._place(mark)
        return centre_of_polygon(mark.points) or "polygon without an area"

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
        ways = " or ".join(f"--likelihood {other}" for other in others)
        instead = f"; read it with {ways}" if others else ""
        return (
            f"{self.name}: there is no {_ONE[kind]} in it, but {listed}{instead}"
            f"{hints(self._left_out, kind)}"
        )


def centres_note(points: int, others: Mapping[str, int]) -> str:
    """What to say where shapes are read as points."""
    told = [
        f"{count:,} {in_plural(shape) if count > 1 else shape}" for shape, count in others.items()
    ]
    if not sum(others.values()):
        return ""
    if not points:
        return CENTRES
    beside = "1 point" if points == 1 else f"{points:,} points"
    return f"beside {beside} the centres of {', '.join(sorted(told))} are read"


def hints(left_out: Sequence[LeftOut], kind: str) -> str:
    """Say how what was left out can be read after all."""
    found = {entry.why for entry in left_out}
    said = ""
    if kind != "points" and found & {"point", "point without a size", "box", "circle"}:
        said += "; `--likelihood points` reads all of them by their centres"
    if kind == "circles" and "box" in found:
        said += "; `dfcrp convert --boxes` reads boxes as the ellipses inside them"
    if kind == "circles" and "point without a size" in found:
        said += "; `dfcrp convert --point-diameter` gives points a size"
    if TURNED_BOX in found:
        said += "; `--likelihood ellipses` reads turned boxes by their sides and angles"
    return said


def what_to_say(table: RawTable, kind: str) -> str:
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
