"""SlideRunner: a SQLite database of slides, with the labels that persons gave to annotations.

The database is opened from the bytes of the file, in memory, and only tables are asked: nothing is
written, and no code in it runs. An annotation is listed by each person who gave it a label. Circles
are kept by the corners of the box around them, as boxes are.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.items.checks import quoted
from dfcrp.values import Json

MARK = b"SQLite format 3\x00"
#: Tables that a database of SlideRunner has.
TABLES = ("Annotations", "Annotations_coordinates", "Annotations_label", "Classes", "Persons")
#: Kinds of annotations by their number.
SPOT, BOX, POLYGON, SPECIAL_SPOT, CIRCLE = 1, 2, 3, 4, 5

Point = tuple[float, float]


def looks_like_sqlite(file: GivenFile) -> bool:
    """By the first bytes."""
    return file.data.startswith(MARK)


def read_sliderunner(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read every annotation that is not deleted, once for each person who labelled it."""
    marks = Drawings(file.name, "annotation", options)
    try:
        with closing(sqlite3.connect(":memory:")) as database:
            database.deserialize(file.data)
            database.execute("PRAGMA trusted_schema = OFF")
            database.execute("PRAGMA query_only = ON")
            _check(file.name, database)
            for origin, kind, points in _annotations(database, marks):
                _take(marks, origin, kind, points)
    except (sqlite3.Error, UnicodeError) as error:  # the second of text that is none
        raise InputError(
            f"{file.name}: the database cannot be read ({error}); export it again"
        ) from None
    return marks.table()


def _check(name: str, database: sqlite3.Connection) -> None:
    """Refuse another program's database; a view could be anything, so it is no table."""
    found = database.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
    there = {str(row[0]) for row in found}
    lacking = [table for table in ("Slides", *TABLES) if table not in there]
    if lacking:
        raise InputError(
            f"{name}: a SQLite database without the table {lacking[0]}; of databases those of "
            "SlideRunner are read. Export the table as CSV"
        )


def _annotations(
    database: sqlite3.Connection, marks: Drawings
) -> Iterator[tuple[Origin, int, list[Point]]]:
    """Whose mark, of what kind, with its points in their order."""
    kept = ""
    if "deleted" in _columns(database, "Annotations"):
        kept = "WHERE COALESCE(deleted, 0) = 0"
        for (number,) in database.execute(
            "SELECT uid FROM Annotations WHERE COALESCE(deleted, 0) <> 0 ORDER BY uid"
        ):
            marks.leave(Origin(number), "annotation that is deleted")
    slides = _slides(database, marks)
    persons, classes = _names(database, "Persons", "name"), _names(database, "Classes", "name")
    _refuse_same(marks.name, persons)
    points: dict[int, list[Point]] = {}
    for number, x, y in database.execute(
        "SELECT annoId, coordinateX, coordinateY FROM Annotations_coordinates "
        "ORDER BY annoId, orderIdx, uid"
    ):
        points.setdefault(number, []).append((x, y))
    labels: dict[int, dict[int | None, int | None]] = {}
    for number, person, label in database.execute(
        "SELECT annoId, person, class FROM Annotations_label ORDER BY uid"
    ):
        labels.setdefault(number, {})[person] = label
    for number, slide, kind in database.execute(
        f"SELECT uid, slide, type FROM Annotations {kept} ORDER BY uid"
    ):
        for person, label in labels.get(number, {None: None}).items():
            expert = None if person is None else persons.get(person, f"person {person}")
            image = slides.get(slide) or marks.image(str(slide), number=str(slide))
            origin = Origin(number, expert, image, None if label is None else classes.get(label))
            yield origin, kind, points.get(number, [])


def _columns(database: sqlite3.Connection, table: str) -> set[str]:
    return {str(row[1]) for row in database.execute(f"PRAGMA table_info({table})")}


def _slides(database: sqlite3.Connection, marks: Drawings) -> dict[int, str]:
    """What stands for each slide: its file, in the folder where that is told."""
    there = _columns(database, "Slides")
    folder = "directory" if "directory" in there else "NULL"
    size = "width, height" if {"width", "height"} <= there else "NULL, NULL"
    found = {}
    for number, file, where, *sides in database.execute(
        f"SELECT uid, filename, {folder}, {size} FROM Slides"
    ):
        if file is None:
            continue
        path = f"{where}/{file}" if where and "/" not in str(file) else str(file)
        key = marks.image(path, number=str(number), size=sides)
        if key is not None:
            found[number] = key
    return found


def _refuse_same(name: str, persons: dict[int, str]) -> None:
    """Two persons of one name would be one expert."""
    first: Json = {}
    for number, person in persons.items():
        if first.setdefault(person, number) != number:
            raise InputError(
                f"{name}: the persons {first[person]} and {number} are both called "
                f"{quoted(person)}; rename one in SlideRunner"
            )


def _names(database: sqlite3.Connection, table: str, column: str) -> dict[int, str]:
    found = database.execute(f"SELECT uid, {column} FROM {table}")
    return {number: str(name) for number, name in found if name is not None}


def _take(marks: Drawings, origin: Origin, kind: int, points: list[Point]) -> None:
    """Hand an annotation over; one without a label was made by nobody."""
    if origin.expert is None:
        marks.leave(origin, "annotation that nobody has labelled")
    elif kind in (SPOT, SPECIAL_SPOT) and len(points) == 1:
        marks.point(origin, *points[0])
    elif kind == POLYGON and len(points) > 1:
        marks.polygon(origin, points)
    elif kind in (BOX, CIRCLE) and len(points) == 2:
        (left, top), (right, bottom) = marks.pairs(origin, points)
        if kind == BOX:
            # Drawn from any corner to the one across.
            corner = min(left, right), min(top, bottom)
            marks.box(origin, *corner, abs(right - left), abs(bottom - top))
        else:
            middle = (left + right) / 2, (top + bottom) / 2
            marks.ellipse(origin, *middle, abs(right - left) / 2, abs(bottom - top) / 2)
    else:
        marks.leave(origin, f"annotation of type {kind} with {len(points)} points")


FORMAT = Format("SlideRunner", looks_like_sqlite, read_sliderunner)
