"""Audacity's label tracks: start, end and text in each row, with tabs between them.

A track is one list of one recording: the name of the file, or of its folder, is the expert's. Rows
that begin with a backslash hold the frequencies of the label above; they are passed over.
"""

from __future__ import annotations

import re
from pathlib import Path

from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import Spans, only_one_recording, spans_by
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import lines_of

_ROW = re.compile(rb"(-?\d+(?:[.,]\d+)?)\t(-?\d+(?:[.,]\d+)?)\t[^\t\r\n]*")
FREQUENCIES = b"\\\t"


def looks_like_audacity(file: GivenFile) -> bool:
    """A text without a header: two numbers in order, and a third field.

    One without any label is of somebody who found nothing, if it lies beside others.
    """
    if file.path.suffix.lower() != ".txt":
        return False
    if not file.data.strip():
        return any(map(_holds_labels, sorted(file.path.parent.glob("*.txt"))))
    return _are_labels(file.data)


def _holds_labels(path: Path) -> bool:
    try:
        return _are_labels(path.read_bytes())
    except OSError:
        return False


def _are_labels(data: bytes) -> bool:
    lines = [line for line in data.removeprefix(b"\xef\xbb\xbf").splitlines() if line.strip()]
    rows = [_ROW.fullmatch(line) for line in lines if not line.startswith(FREQUENCIES)]
    return bool(rows) and all(
        row is not None and _number(row[1]) <= _number(row[2]) for row in rows
    )


def _number(text: bytes) -> float:
    return float(text.replace(b",", b"."))


def read_audacity(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read all labels that have a length."""
    spans = Spans(file.name, "row", options)
    spans.look(spans.recording)
    for number, line in enumerate(lines_of(file.name, file.data), 1):
        cells = line.split("\t")
        if line.strip() and cells[0] != "\\":
            start, end = (cell.replace(",", ".") for cell in cells[:2])
            spans.add(number, start, end, image=spans.recording, category=cells[2].strip() or None)
    return spans.table()


def write_audacity(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write one list of one recording."""
    only_one_recording(table, path)
    rows = [
        f"{span.start!r}\t{span.end!r}\t{' '.join(span.category.split())}\n"
        for _, spans in spans_by(table, "image", path)
        for span in spans
    ]
    return {path: "".join(rows).encode()}


FORMAT = Format(
    "Audacity",
    looks_like_audacity,
    read_audacity,
    kinds=("intervals",),
    writers=((".labels.txt", write_audacity),),
)
