"""Intervals in files of other programs, as a table; what formats of such files have in common.

Events without a length are no intervals: they are left out, and that is said. What ends before it
starts is refused where every item is checked.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.io.tables import (
    FileLook,
    LeftOut,
    NothingToReadError,
    RawTable,
    ReadOptions,
    ReadTable,
    describe_left_out,
    only_one_list,
)
from dfcrp.items.checks import to_names, to_numbers
from dfcrp.items.site import Site

KINDS = ("intervals",)
#: What an interval is called that nobody gave a name.
UNNAMED = "object"
NO_LENGTH = "event without a length"
#: Columns of a catalogue by which an object is sure, the best first.
SURE = ("p_real", "p_consensus")


class Spans:
    """The intervals of one file, in its order; cells are as the file has them."""

    def __init__(self, name: str, record: str, options: ReadOptions) -> None:
        self.name, self.record = name, record
        #: The recording or document, where only the name of a file in a folder tells it.
        below = options.below
        self.recording = None if below is None else str(PurePosixPath(below).with_suffix(""))
        self._rows: list[int] = []
        self._cells: dict[str, list[object]] = {"start": [], "end": []}
        self._left_out: list[LeftOut] = []
        self._looked: dict[FileLook, None] = {}
        self._notes: dict[str, None] = {}

    def add(self, row: int, start: object, end: object, **said: object) -> None:
        """Take an interval; ``said`` are expert, image, category, score and others by title."""
        if _same(start, end):
            self.leave(row, NO_LENGTH)
            return
        for title, given in {"start": start, "end": end, **said}.items():
            cell = None if isinstance(given, list | dict) else given
            cells = self._cells.setdefault(title, [])
            cells += [None] * (len(self._rows) - len(cells))
            cells.append(cell)
        self._rows.append(row)

    def leave(self, row: int, why: str) -> None:
        """Leave out what is no interval; ``why`` says what it is."""
        self._left_out.append(LeftOut(why, row))

    def look(self, image: str | None, expert: str | None = None) -> None:
        """Note that someone went through a recording, whether or not something is marked in it."""
        if image is not None:
            self._looked[image, expert] = None

    def say(self, what: str) -> None:
        """Tell the user how the file was read."""
        self._notes[what] = None

    def table(self) -> RawTable:
        """All that was taken."""
        left_out = sorted(self._left_out, key=lambda entry: entry.row)
        if not self._rows:
            listed = describe_left_out(left_out, self.record)
            but = f", but {listed}" if listed else "; give a file with intervals"
            raise NothingToReadError(
                f"{self.name}: there is no interval in it{but}",
                tuple(self._looked),
                left_out=tuple(left_out),
            )
        columns = {
            title: [*cells, *[None] * (len(self._rows) - len(cells))]
            for title, cells in self._cells.items()
            if title in {"start", "end"} or any(cell is not None for cell in cells)
        }
        return RawTable(
            self.name,
            list(columns),
            list(columns.values()),
            self._rows,
            self.record,
            Site("px"),
            left_out,
            "; ".join(self._notes),
            tuple(self._looked),
        )


def _same(start: object, end: object) -> bool:
    first, last = to_numbers([start, end]).tolist()
    return bool(first == last)


@dataclass(frozen=True)
class SpanToWrite:
    """An interval to be written."""

    start: float
    end: float
    category: str
    #: How sure it is, of a catalogue's objects.
    score: float | None = None


def only_intervals(table: ReadTable, path: Path) -> None:
    """Refuse items of another kind."""
    if table.kind not in KINDS:
        raise InputError(
            f"{path}: such a file holds intervals, and these are {table.kind}; "
            "end the name in .csv, .tsv or .parquet"
        )


def only_one_recording(table: ReadTable, path: Path) -> None:
    """Refuse to melt recordings into one."""
    names = sorted(set(table.about.get("image", ())))
    if len(names) > 1:
        raise InputError(
            f"{path}: such a file holds one recording, but there are {len(names)}; choose one "
            f"with --image, as in --image '{names[0]}'"
        )


def spans_by(table: ReadTable, role: str, path: Path) -> Iterator[tuple[str, list[SpanToWrite]]]:
    """The intervals of each expert or image, by name and in time; all as one where none is named.

    ``path`` is what messages call the file.
    """
    only_intervals(table, path)
    if role == "image":
        only_one_list(table, path)
    spans = _spans_of(table)
    names = to_names(table.about[role]) if role in table.about else [""] * len(spans)
    order = sorted(range(len(spans)), key=lambda at: (names[at], spans[at].start, spans[at].end))
    for name, rows in itertools.groupby(order, key=lambda at: names[at]):
        yield name, [spans[at] for at in rows]


def without_overlap(spans: Sequence[SpanToWrite]) -> list[list[SpanToWrite]]:
    """As few lists as possible without an overlap; ``spans`` are in the order of their starts."""
    tiers: list[list[SpanToWrite]] = []
    for span in spans:
        free = next((tier for tier in tiers if tier[-1].end <= span.start), None)
        if free is None:
            tiers.append([span])
        else:
            free.append(span)
    return tiers


def spans_of_both(table: ReadTable) -> dict[str, dict[str, list[SpanToWrite]]]:
    """By recording and expert, both "" where none is named."""
    found: dict[str, dict[str, list[SpanToWrite]]] = {}
    spans = _spans_of(table)
    both = [to_names(table.about.get(role, [""] * len(spans))) for role in ("image", "expert")]
    for span, image, expert in zip(spans, *both, strict=True):
        found.setdefault(image, {}).setdefault(expert, []).append(span)
    return found


def _spans_of(table: ReadTable) -> list[SpanToWrite]:
    """Every row."""
    extra, count = table.typed_extra(), len(table)
    told = table.about.get("category", extra.get("category"))
    names = [name or UNNAMED for name in to_names([None] * count if told is None else told)]
    sure: Sequence[Any] = next((extra[title] for title in SURE if title in extra), [None] * count)
    sure = table.about.get("score", sure)
    ends: Mapping[str, NDArray[np.float64]] = table.columns
    rows = zip(ends["start"].tolist(), ends["end"].tolist(), names, sure, strict=True)
    return [SpanToWrite(*row) for row in rows]


def in_whole_numbers(spans: Sequence[SpanToWrite], path: Path, what: str) -> list[tuple[int, int]]:
    """Starts and ends as whole numbers, or a request for them."""
    for span in spans:
        if span.start % 1.0 or span.end % 1.0 or span.start < 0.0:
            raise InputError(
                f"{path}: {path.suffix} counts {what}s, and there is an interval from "
                f"{span.start:g} to {span.end:g}; round the ends to whole numbers from 0 on"
            )
    return [(int(span.start), int(span.end)) for span in spans]
