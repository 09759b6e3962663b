"""What panoptes_aggregation and Caesar make of a Zooniverse export: extracts and reductions (CSV).

An extract is what one volunteer drew in one classification, by frame and tool: lists such as
``data.frame0.T0_tool0_x``. A reduction is what was made of all of them for a subject: clusters, as
in ``data.frame0.T0_tool0_clusters_x``. Caesar's exports have the same, as JSON in fewer columns.
"""

from __future__ import annotations

import ast
import csv
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.io.formats.zooniverse import image_of, long_cells, take_mark
from dfcrp.io.outgoing import Outgoing
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import text_or_none
from dfcrp.items.checks import quoted
from dfcrp.values import Json

#: Who made a row: an extractor, or a reducer.
EXTRACTOR, REDUCER = ("extractor", "extractor_key"), ("reducer_key", "reducer")
#: ``frame0.T0_tool0_clusters_x``: the frame, the task with its tool, and what is listed.
_KEY = re.compile(
    r"(?:frame(?P<frame>\d{1,4})\.)?(?P<task>[A-Za-z0-9.]+)_(?:tool|toolIndex)(?P<tool>\d{1,4})_"
    r"(?P<cluster>clusters_)?(?P<what>\w+)"
)
#: What describes a shape, as the tools of a project have it.
SHAPES = frozenset({"x", "y", "r", "rx", "ry", "angle", "width", "height", "details"})
#: Not a number, as Python writes it.
_NAN = re.compile(r"\bnan\b")
#: Marks are known by task and tool, as an extract does not name its tools.
LABEL = "{task}_tool{tool}"


def looks_like_panoptes(file: GivenFile) -> bool:
    """Whether the header has a subject, an extractor or reducer, and data."""
    first = file.data[:20_000].split(b"\n", 1)[0]
    made = b"extractor" in first or b"reducer" in first
    return made and b"subject_id" in first and re.search(rb"\bdata\b", first) is not None


class _Tool(NamedTuple):
    """One tool of one task on one frame."""

    frame: int
    task: str
    tool: int


@dataclass
class _Row:
    """One row of the file: an extract, or a reduction."""

    row: int
    subject: str
    user: str
    classification: str
    when: str
    #: Lists by what they are of: shapes that were drawn, and clusters of them.
    drawn: dict[_Tool, dict[str, list[object]]] = field(default_factory=dict)
    clusters: dict[_Tool, dict[str, list[object]]] = field(default_factory=dict)
    workflow: str = ""


def read_panoptes(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read extracts, a volunteer's list each, or reductions, which are nobody's.

    Of several classifications of a subject by one volunteer the last counts, as of an export.
    """
    marks = Drawings(file.name, "row", options)
    with long_cells():
        table = read_delimited(file.name, file.data)
    reduced = any(title in table.header for title in REDUCER)
    rows = list(_rows(table))
    for one in rows:
        if not one.subject:
            marks.leave(Origin(one.row), "row without a subject")
    known = [one for one in rows if one.subject]
    for one in known if reduced else _last_of_each(known, marks):
        tools = one.clusters if reduced else one.drawn
        for frame in sorted({0, *(tool.frame for tool in tools)}):
            marks.look(_image(marks, one, frame), None if reduced else one.user)
        for tool, lists in tools.items():
            _take(marks, one, tool, lists, reduced=reduced)
    return marks.table()


def _image(marks: Drawings, row: _Row, frame: int) -> str | None:
    said = {"subject_id": row.subject, "frame": frame}
    if row.workflow:
        said["workflow_id"] = row.workflow
    return marks.image(image_of(row.subject, frame), fields=said)


def _take(
    marks: Drawings, row: _Row, tool: _Tool, lists: dict[str, list[object]], *, reduced: bool
) -> None:
    """The shapes of one tool; a list that is shorter than another is an error of the file."""
    label = LABEL.format(task=tool.task, tool=tool.tool)
    marks.categories.setdefault(label, {"task": tool.task, "tool": tool.tool})
    shapes = {name: values for name, values in lists.items() if name in SHAPES}
    lengths = {len(values) for values in shapes.values()}
    image = _image(marks, row, tool.frame)
    if len(lengths) > 1:
        marks.leave(Origin(row.row), "list of shapes with unequal numbers of x, y and sizes")
        return
    for at in range(lengths.pop() if lengths else 0):
        mark = {name: values[at] for name, values in shapes.items() if name != "details"}
        answers = _answers(shapes["details"][at]) if "details" in shapes else {}
        if reduced:
            others = {name: v for name, v in lists.items() if name not in SHAPES and len(v) > at}
            answers |= {name: str(v[at]) for name, v in others.items() if v[at] is not None}
        user = None if reduced else row.user
        take_mark(marks, Origin(row.row, user, image, label, answers=answers), mark, None)


def _answers(details: object) -> dict[str, str]:
    """What was answered about a mark: [{"0": 1}, ...] has the number of each answer."""
    found = {}
    for number, one in enumerate(details if isinstance(details, list) else [], 1):
        if isinstance(one, dict) and one:
            found[f"detail {number}"] = "+".join(str(key)[:40] for key in one)
        elif (said := text_or_none(one)) is not None:
            found[f"detail {number}"] = said
    return found


def _last_of_each(rows: Sequence[_Row], marks: Drawings) -> list[_Row]:
    """The rows of each volunteer's last classification of each subject."""
    last: dict[tuple[str, str], str] = {}
    for one in sorted(rows, key=lambda one: (one.when, one.row)):
        last[one.user, one.subject] = one.classification
    kept = []
    for one in rows:
        if last[one.user, one.subject] == one.classification:
            kept.append(one)
        else:
            marks.leave(Origin(one.row), "classification made again later by the same user")
    return kept


def _rows(table: RawTable) -> Iterator[_Row]:
    columns = dict(zip(table.header, table.columns, strict=True))
    if "subject_id" not in columns:
        raise InputError(f"{table.name}, header: no column subject_id; export the file again")
    data = [title for title in table.header if title == "data" or title.startswith("data.")]
    for at, row in enumerate(table.rows):

        def cell(*titles: str, at: int = at) -> str:
            found = (str(columns[title][at]).strip() for title in titles if title in columns)
            return next((text for text in found if text), "")

        classification = cell("classification_id") or f"row {row}"
        user = cell("user_name", "user_id") or f"not-logged-in-{classification}"
        subject = cell("subject_id").removesuffix(".0")
        when = cell("classification_at", "created_at")
        one = _Row(row, subject, user.removesuffix(".0"), classification, when)
        one.workflow = cell("workflow_id").removesuffix(".0")
        for title in data:
            text = str(columns[title][at]).strip()
            if text:
                _gather(one, title.removeprefix("data").lstrip("."), text, table, title)
        yield one


def _gather(one: _Row, key: str, text: str, table: RawTable, title: str) -> None:
    """Put what a cell holds where it belongs; an object is a cell for each of its members."""
    nested = not key or re.fullmatch(r"frame\d{1,4}", key) is not None
    if not nested and _KEY.fullmatch(key) is None:
        return  # the version of the program, answers to questions
    value = _value(text, f"{table.name}, row {one.row}, column {quoted(title)}")
    waiting = [(key, value)]
    while waiting:
        name, found = waiting.pop()
        if isinstance(found, dict):
            waiting += [(f"{name}.{k}".lstrip("."), v) for k, v in reversed(list(found.items()))]
            continue
        match = _KEY.fullmatch(name)
        if match is None or not isinstance(found, list):
            continue
        tool = _Tool(int(match["frame"] or 0), match["task"], int(match["tool"]))
        lists = one.clusters if match["cluster"] else one.drawn
        lists.setdefault(tool, {})[match["what"]] = found


def _value(text: str, where: str) -> Any:
    """A list or object, as JSON or as Python writes it."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        pass
    try:
        return ast.literal_eval(_NAN.sub("None", text))
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        raise InputError(
            f"{where}: {quoted(text[:100])} is no list; make the extracts again"
        ) from None


#: What describes a cluster, for each kind of items, by the names of a tool's shape.
WRITTEN = {"points": ("x", "y"), "circles": ("x", "y", "r"), "boxes": ("x", "y", "width", "height")}
ELLIPSE = ("x", "y", "rx", "ry", "angle")


def write_reductions(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write a row for each subject, with clusters by frame and tool, as panoptes_aggregation does.

    ``clusters_count`` is how many volunteers marked an object; its probability is beside it.
    """
    if table.kind not in WRITTEN and table.kind != "ellipses":
        raise InputError(
            f"{path}: reductions hold points, circles, ellipses and boxes; these are {table.kind}"
        )
    out = Outgoing(table, path, FORMATS_OF_ZOONIVERSE).in_pixels()
    shapes = [_as_drawn(table.kind, numbers) for numbers in out.row_columns()]
    beside = {"clusters_count": out.extra.get("n_experts")}
    beside |= {f"clusters_{t}": out.extra.get(t) for t in ("p_real", "p_consensus", "p_category")}
    rows: dict[tuple[str, str], dict[str, list[object]]] = {}
    for image in out.images:
        subject, frame = _subject_and_frame(image.fields, image.path)
        row = rows.setdefault((subject, str(image.fields.get("workflow_id", ""))), {})
        for at in image.rows:
            known = out.categories[out.labels[at]]
            key = f"data.frame{frame}.{known.get('task', 'T0')}_tool{known.get('tool', 0)}"
            told = {f"clusters_{name}": value for name, value in shapes[at].items()}
            told |= {name: cells[at] for name, cells in beside.items() if cells is not None}
            for name, value in told.items():
                row.setdefault(f"{key}_{name}", []).append(value)
    return {path: _as_csv(rows)}


def _as_drawn(kind: str, numbers: tuple[float, ...]) -> dict[str, float]:
    """An item by what a tool of Zooniverse says of its shape."""
    x, y, *rest = numbers
    if kind == "circles":
        return {"x": x, "y": y, "r": rest[0] / 2}
    if kind == "boxes":
        return {"x": x - rest[0] / 2, "y": y - rest[1] / 2, "width": rest[0], "height": rest[1]}
    if kind == "ellipses":
        # Zooniverse turns ellipses from y towards x.
        return dict(zip(ELLIPSE, (x, y, rest[0] / 2, rest[1] / 2, -rest[2]), strict=True))
    return {"x": x, "y": y}


def _subject_and_frame(fields: Json, path: str) -> tuple[str, int]:
    subject, frame = fields.get("subject_id"), fields.get("frame")
    if isinstance(subject, str) and isinstance(frame, int):
        return subject, frame
    name, _, number = path.rpartition("#")
    return (name, int(number)) if name and number.isdecimal() else (path, 0)


def _as_csv(rows: dict[tuple[str, str], dict[str, list[object]]]) -> bytes:
    titles = dict.fromkeys(title for row in rows.values() for title in sorted(row))
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["subject_id", "workflow_id", "task", "reducer", *titles])
    for (subject, workflow), row in rows.items():
        tasks = sorted({title.split(".")[2].split("_")[0] for title in row})
        cells = [json.dumps(row[title]) if title in row else "" for title in titles]
        writer.writerow([subject, workflow, "+".join(tasks), "dfcrp", *cells])
    return text.getvalue().encode()


FORMAT = Format(
    "Zooniverse extracts and reductions",
    looks_like_panoptes,
    read_panoptes,
    target="zooniverse",
    write=write_reductions,
    ending="reductions.csv",
)
#: Formats whose subjects, frames and tools are Zooniverse's.
FORMATS_OF_ZOONIVERSE = ("Zooniverse", FORMAT.name)
