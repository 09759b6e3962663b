"""YOLO's text files: a box in each row, relative to the image, and one file for each image.

A row is the number of a class, then x and y of the centre, width and height, as shares of the
image's width and height, and of a detector's output its confidence, which is the score. The file
does not know the image's size, so that numbers stay shares, which makes no difference to what is
found. A file ``classes.txt`` beside it names the classes, one in each line.
"""

from __future__ import annotations

from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.tables import RawTable, ReadOptions

#: Numbers in a row: without and with a confidence.
FEWEST, MOST = 5, 6
CLASSES = "classes.txt"


def looks_like_yolo(path: Path, data: bytes) -> bool:
    """Whether every row is a whole number and four or five shares."""
    if path.suffix.lower() != ".txt":
        return False
    rows = [line.split() for line in data.split(b"\n") if line.strip()]
    return bool(rows) and all(
        FEWEST <= len(cells) <= MOST and cells[0].isdigit() and all(map(_is_share, cells[1:]))
        for cells in rows
    )


def read_yolo(name: str, path: Path, data: bytes, options: ReadOptions) -> RawTable:
    """Read boxes; a file in a folder is of the image of its name."""
    marks = Drawings(name, "row", options)
    names = _classes(path)
    image = path.stem if "/" in name else None
    marks.look(image)
    for number, line in enumerate(data.decode("ascii").splitlines(), 1):
        if not line.strip():
            continue
        cells = line.split()
        x, y, width, height = map(float, cells[1:FEWEST])
        code = int(cells[0])
        label = names[code] if code < len(names) else str(code)
        score = float(cells[FEWEST]) if len(cells) == MOST else None
        origin = Origin(number, image=image, label=label, score=score)
        marks.box(origin, x - width / 2, y - height / 2, width, height)
    return marks.table()


def _is_share(cell: bytes) -> bool:
    try:
        return 0.0 <= float(cell) <= 1.0
    except ValueError:
        return False


def _classes(path: Path) -> list[str]:
    beside = path.parent / CLASSES
    if not beside.is_file():
        return []
    try:
        return beside.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{beside}: the names of classes cannot be read: {error}") from None
