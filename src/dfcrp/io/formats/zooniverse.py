"""Zooniverse classification exports: volunteers' drawings, as JSON in the cells of a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import NamedTuple

from dfcrp.errors import InputError
from dfcrp.io.drawings import NO_CIRCLE, Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import parse_json, text_or_none
from dfcrp.values import Json

LONGEST_CELL = 2**28
NEEDED = ("user_name", "annotations", "subject_ids")
#: The column with the tool and all that was answered about a mark.
TOOL_AND_DETAILS = "tool and details"
#: A larger number of a frame is none.
MOST_FRAMES = 10_000
#: Letters of an answer; a longer one is no category.
LONGEST_ANSWER = 100


def looks_like_zooniverse(file: GivenFile) -> bool:
    """Whether the header has the columns of a classification export."""
    first = file.data[:4000].split(b"\n", 1)[0]
    return b"annotations" in first and b"subject_data" in first


@dataclass(frozen=True)
class _Classification:
    """All that one user marked on one subject at one time."""

    row: int
    user: str
    subject: str
    when: str
    annotations: str
    metadata: str
    workflow: str = ""


def read_zooniverse(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read the drawings of all tasks; users are experts, subjects are images.

    A further frame of a subject is an image of its own, called SUBJECT#FRAME. Of several
    classifications of a subject by one user the last counts. Whoever classified a subject looked
    at it, also without a mark. Answers to questions about a mark are further columns, as are those
    to questions about the image.
    """
    marks = Drawings(file.name, "row", options)
    with long_cells():
        table = read_delimited(file.name, file.data)
    found = _classifications(table)
    for one in found:
        if not one.subject:
            marks.leave(Origin(one.row), "classification without a subject")
    kept = _last_of_each([one for one in found if one.subject], marks)
    known = _image_sizes(kept)
    for one in kept:
        sizes = _frame_sizes(one.metadata)
        for shown in (0, *sizes):
            marks.look(_image(marks, one, shown, known), one.user)
        where = f"{file.name}, row {one.row}, column 'annotations'"
        annotations = parse_json(one.annotations, where)
        asked = _answers(annotations)
        for at, mark, task in _drawings(annotations):
            frame = mark.get("frame")
            frame = frame if isinstance(frame, int) and not isinstance(frame, bool) else 0
            label = text_or_none(mark.get("tool_label"))
            answers = _details(mark, at, label, asked) | asked.of_image
            image = _image(marks, one, frame, known)
            _keep_tool(marks, mark, label, task)
            origin = Origin(one.row, one.user, image, label, answers=answers)
            take_mark(marks, origin, mark, sizes.get(frame))
    return marks.table()


def _image(
    marks: Drawings,
    one: _Classification,
    frame: int,
    known: Mapping[str, tuple[float, float]],
) -> str | None:
    """A frame of a subject, with its size and what results that go back must say of it."""
    frame = frame if 0 < frame < MOST_FRAMES else 0
    said = {"subject_id": one.subject, "frame": frame, "workflow_id": one.workflow}
    kept = {key: value for key, value in said.items() if value != ""}
    name = image_of(one.subject, frame)
    return marks.image(name, size=known.get(name, ()), fields=kept)


def _keep_tool(marks: Drawings, mark: Json, label: str | None, task: str) -> None:
    """Which tool a label is of, as far as the export says it."""
    number = mark.get("tool", mark.get("toolIndex"))
    if label is not None and type(number) is int:
        marks.categories.setdefault(label, {"task": task[:40], "tool": number})


def image_of(subject: str, frame: int) -> str:
    """What a frame of a subject is called."""
    return f"{subject}#{frame}" if 0 < frame < MOST_FRAMES else subject


@contextmanager
def long_cells() -> Iterator[None]:
    """Let cells be as long as they are: a volunteer's many freehand lines fill one cell."""
    usual = csv.field_size_limit(LONGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(usual)


def _classifications(table: RawTable) -> list[_Classification]:
    columns = dict(zip(table.header, table.columns, strict=True))
    for title in NEEDED:
        if title not in columns:
            raise InputError(
                f"{table.name}, header: no column {title}; a classification export has one"
            )
    blank = [""] * len(table.rows)
    found = []
    for at, row in enumerate(table.rows):
        cell = {title: str(column[at]).strip() for title, column in columns.items()}
        user = cell["user_name"] or f"not-logged-in-{cell.get('user_ip') or f'row-{row}'}"
        when = str(columns.get("created_at", blank)[at])
        found.append(
            _Classification(
                row,
                user,
                cell["subject_ids"],
                when,
                cell["annotations"],
                cell.get("metadata", ""),
                cell.get("workflow_id", ""),
            )
        )
    return found


def _last_of_each(found: list[_Classification], marks: Drawings) -> list[_Classification]:
    """Keep each user's last classification of each subject, and count the others."""
    last: dict[tuple[str, str], _Classification] = {}
    for one in sorted(found, key=lambda one: (one.when, one.row)):
        last[one.user, one.subject] = one
    for one in found:
        if last[one.user, one.subject] is not one:
            marks.leave(Origin(one.row), "classification made again later by the same user")
    return [one for one in found if last[one.user, one.subject] is one]


def _drawings(annotations: object) -> Iterator[tuple[int, Json, str]]:
    """All marks with their numbers within a task, and its name, also those of tasks inside one."""
    waiting = [(0, annotations, "T0")]
    while waiting:
        at, value, task = waiting.pop()
        if isinstance(value, list):
            waiting.extend((k, one, task) for k, one in reversed(list(enumerate(value))))
        elif isinstance(value, dict):
            if "tool" in value or "toolIndex" in value:
                yield at, value, task
            elif "value" in value:
                waiting.append((at, value["value"], text_or_none(value.get("task")) or task))


class _Answers(NamedTuple):
    """Answers to questions."""

    #: About the image, by the name of the task.
    of_image: dict[str, str]
    #: About a mark, by the name of the task and the mark's number, as newer exports have them.
    of_mark: dict[tuple[str, int], str]


def _answers(annotations: object) -> _Answers:
    """All answers of a classification that are not part of a mark."""
    found = _Answers({}, {})
    waiting = [annotations]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict) and "tool" not in value and "toolIndex" not in value:
            task, said = text_or_none(value.get("task")), _in_words(value.get("value"))
            at = value.get("markIndex")
            if task is not None and isinstance(at, int):
                if said is not None:
                    found.of_mark[task, at] = said
            elif task is not None and said is not None:
                found.of_image[task] = said
            else:
                waiting.append(value.get("value"))
    return found


def _details(mark: Json, at: int, label: str | None, asked: _Answers) -> dict[str, str]:
    """What was answered about a mark: each answer, and the tool together with all."""
    details, found = mark.get("details"), {}
    for number, detail in enumerate(details if isinstance(details, list) else [], 1):
        said = None
        if isinstance(detail, dict):
            said = _in_words(detail.get("value"))
            said = said or asked.of_mark.get((str(detail.get("task")), at))
        if said is not None:
            found[f"detail {number}"] = said
    if found:
        parts = [label or f"tool {mark.get('tool', mark.get('toolIndex'))}", *found.values()]
        found[TOOL_AND_DETAILS] = ": ".join([parts[0], ", ".join(parts[1:])])
    return found


def _in_words(value: object) -> str | None:
    """An answer as text; None if it is none, or holds marks. Several are joined by +."""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, (str, int)):
        return str(value).strip()[:LONGEST_ANSWER] or None
    if isinstance(value, dict) and ("option" in value or "select" in value):
        return _in_words(value.get("label") or value.get("value"))
    if isinstance(value, list):
        parts = [_in_words(one) for one in value]
        if parts and all(part is not None for part in parts):
            return "+".join(map(str, parts))[:LONGEST_ANSWER]
    return None


def _frame_sizes(metadata: str) -> dict[int, tuple[float, float]]:
    """The width and height of each frame, as far as the volunteer's browser told them."""
    try:
        content = parse_json(metadata, "metadata")
    except InputError:
        return {}
    entries = content.get("subject_dimensions") if isinstance(content, dict) else None
    sizes: dict[int, tuple[float, float]] = {}
    for frame, entry in enumerate(entries if isinstance(entries, list) else ()):
        if isinstance(entry, dict):
            width, height = entry.get("naturalWidth"), entry.get("naturalHeight")
            if isinstance(width, (int, float)) and isinstance(height, (int, float)):
                sizes[frame] = width, height
    return sizes


def _image_sizes(found: Sequence[_Classification]) -> dict[str, tuple[float, float]]:
    """The size of each image on which all browsers agree that told one."""
    told: dict[str, set[tuple[float, float]]] = {}
    for one in found:
        for frame, size in _frame_sizes(one.metadata).items():
            told.setdefault(image_of(one.subject, frame), set()).add(size)
    return {name: sizes.pop() for name, sizes in told.items() if len(sizes) == 1}


def take_mark(
    marks: Drawings, origin: Origin, mark: Json, size: tuple[float, float] | None
) -> None:
    """A mark by what its tool says of it; ``size`` is that of the frame, if it is known."""
    if "points" in mark or "pathX" in mark:
        _take_line(marks, origin, mark)
        return
    x, y = (mark.get(axis, mark.get(f"{axis}_center")) for axis in "xy")
    if x is None or y is None:
        marks.leave(origin, "line" if "x1" in mark else "mark of an unknown tool")
        return
    across, down = marks.number(origin, x, "x"), marks.number(origin, y, "y")
    is_box = "width" in mark and "height" in mark
    if size is not None and not is_box and not (0 <= across <= size[0] and 0 <= down <= size[1]):
        marks.leave(origin, "mark centred outside the image")
    elif "r" in mark:
        marks.circle(origin, across, down, mark["r"])
    elif "rx" in mark and "ry" in mark:
        angle = marks.number(origin, mark.get("angle") or 0.0, "the angle")
        # An ellipse is turned the other way round than a box: from y towards x.
        marks.ellipse(origin, across, down, mark["rx"], mark["ry"], angle=-angle)
    elif is_box:
        width, height = (marks.number(origin, mark[key], key) for key in ("width", "height"))
        if "x_center" in mark:
            across, down = across - width / 2, down - height / 2
        marks.box(origin, across, down, width, height, angle=mark.get("angle"))
    else:
        marks.point(origin, across, down)


def _take_line(marks: Drawings, origin: Origin, mark: Json) -> None:
    points = mark.get("points")
    if isinstance(points, list) and mark.get("closed", True):
        if all(isinstance(point, dict) and "x" in point and "y" in point for point in points):
            marks.polygon(origin, points)
        else:
            marks.leave(origin, NO_CIRCLE)
    else:
        marks.leave(origin, "line")


FORMAT = Format("Zooniverse", looks_like_zooniverse, read_zooniverse)
