"""YOLO's text files: a shape in each row, relative to the image, and one file for each image.

A row is the number of a class, then x and y of the centre, width and height, as shares of the
image's width and height, and of a detector's output its confidence, which is the score. Six or more
shares are the vertices of a polygon, four of a turned box. The file does not know the image's size,
so that numbers stay shares, which makes no difference to what is found. The names of classes are in
``classes.txt`` or ``obj.names``, one in each line, or in the data set's ``data.yaml``, beside the
file or in a folder above it.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.tables import RawTable, ReadOptions

#: Numbers in a row of a box, without a confidence.
BOX = 5
#: Digits of the number of a class, at most.
DIGITS = 9
#: Tools that round may end beyond the image by this much.
BEYOND = 1e-4
#: Where names of classes are, and in how many folders: beside the file, and above ``labels/train``.
PLAIN_NAMES, DATA_SET = ("classes.txt", "obj.names"), ("data.yaml", "data.yml", "dataset.yaml")
FOLDERS = 3


def looks_like_yolo(path: Path, data: bytes) -> bool:
    """Whether every row is a whole number and shares, as many as of a box or a polygon."""
    if path.suffix.lower() != ".txt":
        return False
    rows = [line.split() for line in data.split(b"\n") if line.strip()]
    return bool(rows) and all(
        len(cells) >= BOX
        and cells[0].isdigit()
        and len(cells[0]) <= DIGITS
        and all(map(_is_share, cells[1:]))
        for cells in rows
    )


def read_yolo(name: str, path: Path, data: bytes, options: ReadOptions) -> RawTable:
    """Read boxes and polygons; a file in a folder is of the image of its name."""
    marks = Drawings(name, "row", options)
    names = class_names(path)
    image = path.stem if "/" in name else None
    marks.look(image)
    for number, line in enumerate(data.decode("ascii").split("\n"), 1):
        if not line.strip():
            continue
        code, *shares = line.split()
        label = names.get(int(code), str(int(code)))
        # A polygon has two numbers for each vertex, a box four: one more is the confidence.
        score = float(shares.pop()) if len(shares) % 2 else None
        origin = Origin(number, image=image, label=label, score=score)
        values = [float(share) for share in shares]
        if len(values) == BOX - 1:
            x, y, width, height = values
            marks.box(origin, x - width / 2, y - height / 2, width, height)
        else:
            marks.polygon(origin, list(zip(values[::2], values[1::2], strict=True)))
    return marks.table()


def class_names(path: Path) -> dict[int, str]:
    """The names of classes by their numbers, of the first file with names beside or above."""
    for folder in list(path.absolute().parents)[:FOLDERS]:
        for name in (*PLAIN_NAMES, *DATA_SET):
            if (folder / name).is_file():
                lines = _lines(folder / name)
                return _named_in_yaml(lines) if name in DATA_SET else _numbered(lines)
    return {}


def _is_share(cell: bytes) -> bool:
    try:
        return -BEYOND <= float(cell) <= 1.0 + BEYOND
    except ValueError:
        return False


def _lines(path: Path) -> list[str]:
    try:
        return path.read_text(encoding="utf-8").split("\n")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path}: the names of classes cannot be read: {error}") from None


def _numbered(names: Sequence[str]) -> dict[int, str]:
    return {number: name.strip() for number, name in enumerate(names) if name.strip()}


def _named_in_yaml(lines: Sequence[str]) -> dict[int, str]:
    """What follows ``names:``, a list or numbers with names, in one line or in several."""
    text = "\n".join(re.sub(r"(^|\s)#.*", "", line) for line in lines)
    found = re.search(
        r"^names:[ \t]*(?:[\[{](?P<inside>[^\]}]*)[\]}]|\n(?P<below>(?:[ \t]*\n|[ \t-].*\n?)*))",
        text,
        re.MULTILINE,
    )
    if found is None:
        return {}
    inside = found["inside"]
    parts = (found["below"].split("\n")) if inside is None else inside.split(",")
    entries = [part.strip().removeprefix("-").strip() for part in parts if part.strip()]
    numbered = [re.fullmatch(r"(\d{1,9})[ \t]*:[ \t]*(.*)", entry) for entry in entries]
    if entries and all(numbered):
        return {int(one[1]): _unquoted(one[2]) for one in numbered if one}
    return _numbered([_unquoted(entry) for entry in entries])


def _unquoted(text: str) -> str:
    quoted = len(text) > 1 and text[0] == text[-1] and text[0] in "'\""
    return text[1:-1] if quoted else text
