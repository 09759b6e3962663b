"""Zooniverse classification exports: volunteers' drawings, as JSON in the cells of a CSV file."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import NO_CIRCLE, Drawings, Origin, parse_json, text_or_none
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.io.tables import RawTable, ReadOptions

LONGEST_CELL = 2**28
NEEDED = ("user_name", "annotations", "subject_ids")


def looks_like_zooniverse(data: bytes) -> bool:
    """Whether the header has the columns of a classification export."""
    first = data[:4000].split(b"\n", 1)[0]
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


def read_zooniverse(name: str, data: bytes, options: ReadOptions) -> RawTable:
    """Read the drawings of all tasks; users are experts, subjects are images.

    A further frame of a subject is an image of its own, called SUBJECT#FRAME. Of several
    classifications of a subject by one user the last counts. Whoever classified a subject looked
    at it, also without a mark.
    """
    marks = Drawings(name, "row", options)
    with _long_cells():
        table = read_delimited(name, data)
    for one in _last_of_each(_classifications(table), marks):
        sizes = _frame_sizes(one.metadata)
        for shown in (0, *sizes):
            marks.look(_image(one.subject, shown), one.user)
        where = f"{name}, row {one.row}, column 'annotations'"
        for mark in _drawings(parse_json(one.annotations, where)):
            frame = mark.get("frame")
            frame = frame if isinstance(frame, int) and not isinstance(frame, bool) else 0
            label = text_or_none(mark.get("tool_label"))
            origin = Origin(one.row, one.user, _image(one.subject, frame), label)
            _take(marks, origin, mark, sizes.get(frame))
    return marks.table()


def _image(subject: str, frame: int) -> str:
    return f"{subject}#{frame}" if 0 < frame < 10_000 else subject


@contextmanager
def _long_cells() -> Iterator[None]:
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
                cell["subject_ids"] or "?",
                when,
                cell["annotations"],
                cell.get("metadata", ""),
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


def _drawings(annotations: Any) -> Iterator[dict[str, Any]]:
    """All marks, also those of tasks inside a task; answers to questions are none."""
    waiting = [annotations]
    while waiting:
        value = waiting.pop()
        if isinstance(value, list):
            waiting.extend(reversed(value))
        elif isinstance(value, dict):
            if "tool" in value or "toolIndex" in value:
                yield value
            elif "value" in value:
                waiting.append(value["value"])


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


def _take(
    marks: Drawings, origin: Origin, mark: dict[str, Any], size: tuple[float, float] | None
) -> None:
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


def _take_line(marks: Drawings, origin: Origin, mark: dict[str, Any]) -> None:
    points = mark.get("points")
    if isinstance(points, list) and mark.get("closed", True):
        if all(isinstance(point, dict) and "x" in point and "y" in point for point in points):
            marks.polygon(origin, points)
        else:
            marks.leave(origin, NO_CIRCLE)
    else:
        marks.leave(origin, "line")
