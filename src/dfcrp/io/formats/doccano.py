"""doccano's JSONL: a document in each line, with spans of its text, in characters.

Spans are lists [start, end, label] under ``label`` or ``labels``, or objects under ``entities``. A
file is one annotator's, after whom it is named, unless a line names the annotator.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import Spans, in_whole_numbers, spans_by
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, lines_of, parse_json, text_or_none
from dfcrp.items.checks import quoted
from dfcrp.values import Json

LISTS, OBJECTS = ("label", "labels"), "entities"
ANNOTATORS = ("annotator", "username", "user")
#: What names a document, the best first.
DOCUMENTS = ("filename", "document", "id")


def looks_like_doccano(file: GivenFile) -> bool:
    """Lines of JSON with spans."""
    begins = file.data.removeprefix(b"\xef\xbb\xbf").lstrip()[:1] == b"{"
    return file.path.suffix.lower() == ".jsonl" and begins


def read_doccano(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read the spans of all lines."""
    spans = Spans(file.name, "row", options)
    for number, line in enumerate(lines_of(file.name, file.data), 1):
        if not line.strip():
            continue
        where = f"{file.name}, row {number}"
        entry = as_object(parse_json(line, where), where)
        named = (text_or_none(entry.get(key)) for key in DOCUMENTS)
        document = next((name for name in named if name), str(number))
        who = (text_or_none(entry.get(key)) for key in ANNOTATORS)
        expert = next((name for name in who if name), None)
        spans.look(document, expert)
        for start, end, label in _spans_in(entry, where):
            said = {"image": document, "expert": expert, "category": label}
            spans.add(number, start, end, **said)
    return spans.table()


def _spans_in(entry: Json, where: str) -> Iterator[tuple[Any, Any, str | None]]:
    """The spans of one document, whichever way they are written."""
    for key in LISTS:
        for found in as_list(entry.get(key) or [], where):
            span = as_list(found, f"{where}, {key}")
            if len(span) < 2:
                raise InputError(
                    f"{where}: {quoted(str(span))} should be [start, end, label]; export the file "
                    "again, as sequence labels"
                )
            yield span[0], span[1], text_or_none(span[2]) if len(span) > 2 else None
    for found in as_list(entry.get(OBJECTS) or [], where):
        named = as_object(found, f"{where}, {OBJECTS}")
        ends = (named.get(key, named.get(key.partition("_")[0])) for key in _ENDS)
        yield *ends, text_or_none(named.get("label"))  # type: ignore[misc]


_ENDS = ("start_offset", "end_offset")


def write_doccano(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write one list, a line for each document; texts are not known, so they are empty."""
    lines = []
    for name, spans in spans_by(table, "image", path):
        ends = in_whole_numbers(spans, path, "character")
        found = [[*both, span.category] for both, span in zip(ends, spans, strict=True)]
        lines.append(json.dumps({"id": name or "1", "text": "", "label": found}))
    return {path: ("\n".join(lines) + "\n").encode()}


FORMAT = Format(
    "doccano",
    looks_like_doccano,
    read_doccano,
    kinds=("intervals",),
    writers=((".jsonl", write_doccano),),
)
