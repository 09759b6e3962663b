"""YOLO's text files: a shape in each row, relative to the image, and one file for each image.

A row is the number of a class, then x and y of the centre, width and height, as shares of the
image's width and height, and of a detector's output its confidence, which is the score. Six or more
shares are the vertices of a polygon, four of a turned box. The file does not know the image's size,
so that numbers stay shares, which makes no difference to what is found. The names of classes are in
``classes.txt`` or ``obj.names``, one in each line, or in the data set's ``data.yaml``, beside the
file or in a folder above it. A row that is none of this is left out, and said.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePosixPath

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.geojson import rings_of
from dfcrp.io.outgoing import Outgoing, new_ids
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import decode

#: Numbers in a row of a box, without a confidence.
BOX = 5
#: Digits of the number of a class, at most.
DIGITS = 9
#: Classes that are named in a file; a data set has fewer.
MOST_CLASSES = 100_000
#: Tools that round may end beyond the image by this much.
BEYOND = 1e-4
#: Where names of classes are, and in how many folders: beside the file, and above ``labels/train``.
PLAIN_NAMES, DATA_SET = ("classes.txt", "obj.names"), ("data.yaml", "data.yml", "dataset.yaml")
FOLDERS = 3
#: The folder of labels, which says nothing of an image.
LABELS = "labels"
#: Notes on rows that are read.
WHOLE_CLASS = "numbers of classes with a decimal point are read as whole numbers"


def looks_like_yolo(file: GivenFile) -> bool:
    """Whether rows are a whole number and shares: at least half of them, and below no header."""
    rows = _rows_of(file.path, file.data)
    if not rows or (len(rows[0]) >= BOX and not _starts_with_number(rows[0])):
        return False
    good = sum(_why_not(cells) is None for cells in rows)
    return 2 * good >= len(rows)


def is_text_of_yolo(path: Path) -> bool:
    """Whether a text file among others of YOLO is one of them: a row begins with a number."""
    try:
        rows = _rows_of(path, path.read_bytes())
    except OSError:
        return False
    return path.name.lower() not in PLAIN_NAMES and any(map(_starts_with_number, rows))


def has_row_of_yolo(path: Path) -> bool:
    """Whether a text file has a row as YOLO writes them, whatever the others are."""
    try:
        rows = _rows_of(path, path.read_bytes())
    except OSError:
        return False
    return any(_why_not(cells) is None for cells in rows)


def _rows_of(path: Path, data: bytes) -> list[list[str]]:
    if path.suffix.lower() != ".txt":
        return []
    try:
        text = decode(path.name, data)
    except InputError:
        return []
    return [cells for line in text.split("\n") if (cells := line.split())]


def _starts_with_number(cells: Sequence[str]) -> bool:
    """A row that is meant as one of YOLO: a number and something else."""
    return len(cells) > 1 and _number(cells[0]) is not None


def _number(cell: str) -> float | None:
    try:
        return None if "_" in cell else float(cell)
    except ValueError:
        return None


def _why_not(cells: Sequence[str]) -> str | None:
    """What is odd about a row; None if nothing is."""
    numbers = [_number(cell) for cell in cells]
    code = numbers[0]
    if None in numbers or code is None:
        return "row that is not of numbers"
    values = [value for value in numbers if value is not None]
    if not all(map(math.isfinite, values)):
        return "row with a number that is not finite"
    if code < 0 or not code.is_integer() or code >= 10**DIGITS:
        return "row without the number of a class"
    if len(cells) < BOX:
        return f"row of fewer than {BOX} numbers"
    if not all(-BEYOND <= share <= 1.0 + BEYOND for share in values[1:]):
        return "row with a number that is not a share from 0 to 1"
    return None


def read_yolo(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read boxes and polygons; a file in a folder is of the image of its name."""
    marks = Drawings(file.name, "row", options)
    marks.shares = True
    names = class_names(file.path, options.below)
    image = marks.image(_image(options.below), fields={"file": options.below})
    marks.categories = {title: {"id": number} for number, title in sorted(names.items())}
    marks.look(image)
    for number, line in enumerate(decode(file.name, file.data).split("\n"), 1):
        cells = line.split()
        if not cells:
            continue
        origin = Origin(number, image=image)
        why = _why_not(cells)
        if why is not None:
            marks.leave(origin, why)
            continue
        code, *shares = cells
        if not code.isdigit():
            marks.say(origin, WHOLE_CLASS)
        label = names.get(int(float(code)), str(int(float(code))))
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


def _image(below: str | None) -> str | None:
    """The path of the image among those of a person: that of the file, without ``labels``."""
    if below is None:
        return None
    parts = PurePosixPath(below).with_suffix("").parts
    return "/".join([*(part for part in parts[:-1] if part != LABELS), parts[-1]])


def class_names(path: Path, below: str | None = None) -> dict[int, str]:
    """The names of classes by their numbers, of the first file with names beside or above.

    They are looked for up to the folder that was given, ``below`` which the file is.
    """
    most = max(FOLDERS, len(PurePosixPath(below or "").parts))
    for folder in list(path.absolute().parents)[:most]:
        for name in (*PLAIN_NAMES, *DATA_SET):
            if (folder / name).is_file():
                lines = _lines(folder / name)
                return _named_in_yaml(lines) if name in DATA_SET else _numbered(lines)
    return {}


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


def write_yolo(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write a folder: a file of rows for each image, also for one without objects, and the classes.

    A row has the object's score at the end, if there is one.
    """
    if table.kind not in ("boxes", "circles", "ellipses"):
        raise InputError(f"{path}: YOLO's files hold boxes and polygons; these are {table.kind}")
    out = Outgoing(table, path, (FORMAT.name,))
    numbers = new_ids([fields.get("id") for fields in out.categories.values()], first=0)
    codes = dict(zip(out.categories, numbers, strict=True))
    shapes = list(_boxes(out) if table.kind == "boxes" else _polygons(out))
    files = {}
    for image, file in out.files(".txt", LABELS):
        lines = []
        for row in image.rows:
            score = out.score(row)
            cells = [*shapes[row], *([] if score is None else [score])]
            lines.append(" ".join([str(codes[out.labels[row]]), *(f"{v:.9g}" for v in cells)]))
        files[file] = "".join(f"{line}\n" for line in lines).encode()
    # A class is known by its row.
    named = {number: name for name, number in codes.items()}
    last = max((number for number in numbers if isinstance(number, int)), default=-1)
    titles = [named.get(number, str(number)) for number in range(min(last + 1, MOST_CLASSES))]
    return {**files, path / PLAIN_NAMES[0]: "".join(f"{title}\n" for title in titles).encode()}


def _boxes(out: Outgoing) -> Iterator[tuple[float, ...]]:
    """Shares of centre and sides; a box that ends far outside the image is cut off at its edge."""
    for x, y, width, height in out.in_shares().row_columns():
        if all(0.0 <= share <= 1.0 for share in (x, y, width, height)):
            yield x, y, width, height
            continue
        left, right = (min(max(x + side * width / 2, 0.0), 1.0) for side in (-1, 1))
        top, bottom = (min(max(y + side * height / 2, 0.0), 1.0) for side in (-1, 1))
        yield (left + right) / 2, (top + bottom) / 2, right - left, bottom - top


def _polygons(out: Outgoing) -> Iterator[tuple[float, ...]]:
    """Shares of the vertices of an outline."""
    for image, points in zip(out.image_of, rings_of(out.table, out.path), strict=True):
        across, down = (1, 1) if out.table.shares else out.size_of(image)
        corners = [(x / across, y / down) for x, y in points[:-1:2]]
        yield tuple(min(max(share, 0.0), 1.0) for corner in corners for share in corner)


FORMAT = Format(
    "YOLO",
    looks_like_yolo,
    read_yolo,
    kinds=("boxes", "points", "ellipses"),
    target="yolo",
    write=write_yolo,
)
