"""Particle pickers: EMAN's .box, and STAR tables as RELION (.star) and crYOLO (.cbox) write them.

A .box file has no header: left, top, width and height of a box in each row, and what else a
program adds. A STAR file has tables, each a list of column names after ``loop_``; those with
coordinates are read, as points, or as boxes if they have a width and a height. RELION gives the
centre, crYOLO the corner; either may give a score. Neither says who picked; a folder stands for one
person, and a file in it for the image of its name, unless the file names the image.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.tables import RawTable, ReadOptions

Row = tuple[int, Sequence[str]]

#: Columns of the coordinates of a centre, and of a corner with the sides of a box.
CENTRE = ("_rlncoordinatex", "_rlncoordinatey")
CORNER = ("_coordinatex", "_coordinatey", "_width", "_height")
MICROGRAPH = "_rlnmicrographname"
#: How sure the picker is, in either program, and how a value is written that is not there.
SCORES = ("_confidence", "_rlnautopickfigureofmerit")
MISSING = "<NA>"


def looks_like_particles(path: Path, data: bytes) -> bool:
    """By the ending, and of STAR files also by what is in them."""
    ending = path.suffix.lower()
    return ending == ".box" or (ending in {".star", ".cbox"} and b"loop_" in data)


def read_particles(name: str, path: Path, data: bytes, options: ReadOptions) -> RawTable:
    """Read boxes, or points where a file has no sizes."""
    marks = Drawings(name, "row", options)
    image = path.stem if "/" in name else None
    text = data.decode("utf-8", errors="replace")
    if path.suffix.lower() == ".box":
        _read_box(marks, name, text, image)
    else:
        _read_star(marks, name, text, image)
    return marks.table()


def _read_box(marks: Drawings, name: str, text: str, image: str | None) -> None:
    for number, line in enumerate(text.splitlines(), 1):
        cells = line.replace(",", " ").split()
        if not cells or cells[0].startswith("#"):
            continue
        if len(cells) < 4:
            raise InputError(
                f"{name}, row {number}: {len(cells)} numbers; a .box file has left, top, width and "
                "height in each row; correct the row or remove it"
            )
        marks.box(Origin(number, image=image), *cells[:4])


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
            own = PurePosixPath(named.rpartition("@")[2]).name if named else image
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
