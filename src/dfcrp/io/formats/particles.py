"""Particle pickers: EMAN's .box, and STAR tables as RELION (.star) and crYOLO (.cbox) write them.

A .box file has no header: left, top, width and height of a box in each row, and what else a
program adds. A STAR file has tables, each a list of column names after ``loop_``; those with
coordinates are read, as points, or as boxes if they have a width and a height. RELION gives the
centre, crYOLO the corner; either may give a score. Neither says who picked; a folder stands for one
person, and a file in it for the image of its name, unless the file names the image.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import PurePosixPath

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import decode

Row = tuple[int, Sequence[str]]

#: Columns of the coordinates of a centre, and of a corner with the sides of a box.
CENTRE = ("_rlncoordinatex", "_rlncoordinatey")
CORNER = ("_coordinatex", "_coordinatey", "_width", "_height")
MICROGRAPH = "_rlnmicrographname"
#: How sure the picker is, in either program, and how a value is written that is not there.
SCORES = ("_confidence", "_rlnautopickfigureofmerit")
MISSING = "<NA>"
#: Columns of a box, and what EMAN writes into the next one, which says how the box was made.
BOX = 4
EMAN = {"0", "-1", "-2", "-3"}


def looks_like_particles(file: GivenFile) -> bool:
    """By the ending, and of STAR files also by what is in them."""
    ending = file.path.suffix.lower()
    return ending == ".box" or (ending in {".star", ".cbox"} and b"loop_" in file.data)


def read_particles(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read boxes, or points where a file has no sizes."""
    name = file.name
    marks = Drawings(name, "row", options)
    below = options.below
    image = None if below is None else marks.image(str(PurePosixPath(below).with_suffix("")))
    text = decode(name, file.data)
    if file.path.suffix.lower() == ".box":
        _read_box(marks, name, text, image)
    else:
        _refuse_strays(name, text)
        _read_star(marks, name, text, image)
    return marks.table()


def _read_box(marks: Drawings, name: str, text: str, image: str | None) -> None:
    rows = [
        (number, cells)
        for number, line in enumerate(text.splitlines(), 1)
        if (cells := line.replace(",", " ").split()) and not cells[0].startswith("#")
    ]
    scored = _scored([cells for _, cells in rows])
    for number, cells in rows:
        if len(cells) < 4:
            raise InputError(
                f"{name}, row {number}: {len(cells)} numbers; a .box file has left, top, width and "
                "height in each row; correct the row or remove it"
            )
        origin = Origin(number, image=image, score=cells[BOX] if scored else None)
        if scored:
            marks.say(origin, "the fifth column is read as the score")
        elif len(cells) > BOX + 1 or not set(cells[BOX:]) <= EMAN:
            marks.say(origin, "what follows the fourth column is not read")
        marks.box(origin, *cells[:BOX])


def _scored(rows: Sequence[Sequence[str]]) -> bool:
    """Whether all rows have a fifth number, and not what EMAN writes there: 0, or -1 to -3."""
    fifth = [cells[BOX] for cells in rows if len(cells) > BOX]
    try:
        whole = len(fifth) == len(rows) and all(math.isfinite(float(one)) for one in fifth)
    except ValueError:
        return False
    return whole and not set(fifth) <= EMAN


def _read_star(marks: Drawings, name: str, text: str, image: str | None) -> None:
    found = False
    for columns, rows in _tables(text):
        known = {column.lower(): at for at, column in enumerate(columns)}
        wanted = next((way for way in (CORNER, CENTRE) if all(one in known for one in way)), None)
        if wanted is None:
            continue
        found = True
        for number, cells in rows:
            if len(cells) < len(columns):
                raise InputError(
                    f"{name}, row {number}: {len(cells)} values for {len(columns)} columns; "
                    "correct the row or export the file again"
                )
            named = cells[known[MICROGRAPH]] if MICROGRAPH in known else None
            # RELION writes "000001@stack.mrc" for one image of a stack.
            own = marks.image(named.rpartition("@")[2]) if named else image
            scored = next((cells[known[one]] for one in SCORES if one in known), MISSING)
            origin = Origin(number, image=own, score=None if scored == MISSING else scored)
            values = [cells[known[one]] for one in wanted]
            if wanted == CORNER:
                marks.box(origin, *values)
            else:
                marks.point(origin, *values)
    if not found:
        raise InputError(
            f"{name}: no table with {' and '.join(CENTRE)} (RELION) or {', '.join(CORNER)} "
            "(crYOLO); upper and lower case are the same"
        )


def _refuse_strays(name: str, text: str) -> None:
    """Rows after a blank line belong to no table."""
    inside = rows = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if not cells:
            inside = inside and not rows
        elif cells[0].startswith(("#", ";")):
            continue
        elif cells[0] == "loop_" or cells[0].startswith("data_"):
            inside, rows = cells[0] == "loop_", False
        elif inside and (rows or not cells[0].startswith("_")):
            rows = True
        elif not inside and not cells[0].startswith(("_", "save_")):
            raise InputError(
                f"{name}, row {number}: it follows a blank line, which ends a table; remove the "
                "blank line, or the row"
            )


def _tables(text: str) -> Iterator[tuple[list[str], list[Row]]]:
    """The columns and rows of each loop; other entries are passed over."""
    columns: list[str] = []
    rows: list[Row] = []
    inside = False
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.split()
        if cells and cells[0].startswith("#"):
            continue
        if cells and cells[0] == "loop_":
            if rows:
                yield columns, rows
            columns, rows, inside = [], [], True
        elif cells and inside and cells[0].startswith("_") and not rows:
            columns.append(cells[0])
        elif not cells or cells[0].startswith("data_"):
            if rows or (cells and inside):
                yield columns, rows
                columns, rows, inside = [], [], False
        elif inside:
            rows.append((number, cells))
    if rows:
        yield columns, rows


FORMAT = Format("particle boxes", looks_like_particles, read_particles, kinds=("boxes", "points"))
