"""ELAN's files (.eaf): tiers of annotations, with times in milliseconds.

A tier may name its annotator; if one does, annotators are experts, else the file is one list.
Categories are the values of annotations, and a column ``tier`` has the names of tiers. Annotations
that refer to others have no times of their own and are left out.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import Spans, SpanToWrite, only_one_recording, spans_by, without_overlap
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.xml import read_elements
from dfcrp.items.checks import quoted, to_numbers

#: Of times in the file to one second.
MILLISECONDS = 1000.0


def looks_like_elan(file: GivenFile) -> bool:
    """By the ending."""
    return file.path.suffix.lower() == ".eaf"


def read_elan(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read annotations that have times, in seconds."""
    reader = _ElanReader(file.name, Spans(file.name, "row", options))
    read_elements(file, reader, "ELAN")
    return reader.spans.table()


class _ElanReader:
    """Follows the elements of one file."""

    def __init__(self, name: str, spans: Spans) -> None:
        self.name, self.spans = name, spans
        self.times: dict[str, float] = {}
        self.tier: dict[str, str] = {}
        #: Row and slots of the annotation that the parser is in, and its value so far.
        self.open: tuple[int, str, str] | None = None
        self.value: list[str] | None = None
        spans.look(spans.recording)

    def start(self, tag: str, found: dict[str, str], row: int) -> None:
        """An element begins."""
        if tag == "TIME_SLOT":
            value = float(to_numbers([found.get("TIME_VALUE")])[0])
            self.times[found.get("TIME_SLOT_ID", "")] = value / MILLISECONDS
        elif tag == "TIER":
            self.tier = found
        elif tag == "ALIGNABLE_ANNOTATION":
            slots = found.get("TIME_SLOT_REF1", ""), found.get("TIME_SLOT_REF2", "")
            self.open, self.value = (row, *slots), None
        elif tag == "REF_ANNOTATION":
            self.spans.leave(row, "annotation without times of its own")
        elif tag == "ANNOTATION_VALUE":
            self.value = []

    def text(self, data: str) -> None:
        """Part of a value."""
        if self.value is not None:
            self.value.append(data)

    def end(self, tag: str) -> None:
        """An element ends."""
        if tag != "ALIGNABLE_ANNOTATION" or self.open is None:
            return
        row, *slots = self.open
        ends = [self.times.get(slot, math.nan) for slot in slots]
        if not all(map(math.isfinite, ends)):
            raise InputError(
                f"{self.name}, row {row}: the time of an annotation ({quoted(', '.join(slots))}) "
                "is not in the file; save it again in ELAN"
            )
        said = {"image": self.spans.recording, "expert": self.tier.get("ANNOTATOR") or None}
        category = "".join(self.value or ()).strip() or None
        self.spans.add(row, *ends, **said, category=category, tier=self.tier.get("TIER_ID") or None)
        self.open = self.value = None


#: The version of the format, its schema, and the type that every tier has.
VERSION, SCHEMA = "3.0", "http://www.mpi.nl/tools/elan/EAFv3.0.xsd"
_INSTANCE = "http://www.w3.org/2001/XMLSchema-instance"
_TYPE = "default-lt"


def write_elan(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write one recording with a tier for each expert, who is its annotator.

    Annotations of a tier must not overlap: those that do are put into one more tier.
    """
    only_one_recording(table, path)
    tiers = [
        (name, number, [(*_slots(span, path), span.category) for span in own])
        for name, spans in spans_by(table, "expert", path)
        for number, own in enumerate(without_overlap(spans), 1)
    ]
    # A slot for each end of each annotation, in the order of their times.
    ends = sorted(
        (time, tier, at, side)
        for tier, (*_, rows) in enumerate(tiers)
        for at, row in enumerate(rows)
        for side, time in enumerate(row[:2])
    )
    slots = {end[1:]: f"ts{number}" for number, end in enumerate(ends, 1)}
    root = _document()
    order = ElementTree.SubElement(root, "TIME_ORDER")
    for time, tier, at, side in ends:
        said = {"TIME_SLOT_ID": slots[tier, at, side], "TIME_VALUE": str(time)}
        ElementTree.SubElement(order, "TIME_SLOT", said)
    count = 0
    for tier, (name, number, rows) in enumerate(tiers):
        title = " ".join([name or "objects", *([str(number)] if number > 1 else [])])
        told = {"LINGUISTIC_TYPE_REF": _TYPE, "TIER_ID": title}
        entry = ElementTree.SubElement(root, "TIER", told | ({"ANNOTATOR": name} if name else {}))
        for at, (*_, category) in enumerate(rows):
            count += 1
            refs = [slots[tier, at, side] for side in (0, 1)]
            _annotation(entry, f"a{count}", refs, category)
    ElementTree.SubElement(root, "LINGUISTIC_TYPE", _LINGUISTIC_TYPE)
    return {path: _as_text(root, path)}


_LINGUISTIC_TYPE = {
    "GRAPHIC_REFERENCES": "false",
    "LINGUISTIC_TYPE_ID": _TYPE,
    "TIME_ALIGNABLE": "true",
}


def _slots(span: SpanToWrite, path: Path) -> tuple[int, int]:
    """Start and end in whole milliseconds."""
    start, end = (round(time * MILLISECONDS) for time in (span.start, span.end))
    if start < 0 or end <= start:
        raise InputError(
            f"{path}: .eaf counts milliseconds from 0 on, and there is an interval from "
            f"{span.start:g} to {span.end:g}; write a .TextGrid or .csv"
        )
    return start, end


def _document() -> ElementTree.Element:
    ElementTree.register_namespace("xsi", _INSTANCE)
    now = datetime.now(UTC).isoformat(timespec="seconds")
    said = {"AUTHOR": "dfcrp", "DATE": now, "FORMAT": VERSION, "VERSION": VERSION}
    schema = {f"{{{_INSTANCE}}}noNamespaceSchemaLocation": SCHEMA}
    root = ElementTree.Element("ANNOTATION_DOCUMENT", said | schema)
    ElementTree.SubElement(root, "HEADER", {"MEDIA_FILE": "", "TIME_UNITS": "milliseconds"})
    return root


def _annotation(tier: ElementTree.Element, name: str, refs: Sequence[str], category: str) -> None:
    said = {"ANNOTATION_ID": name, "TIME_SLOT_REF1": refs[0], "TIME_SLOT_REF2": refs[1]}
    outer = ElementTree.SubElement(tier, "ANNOTATION")
    inner = ElementTree.SubElement(outer, "ALIGNABLE_ANNOTATION", said)
    ElementTree.SubElement(inner, "ANNOTATION_VALUE").text = category


def _as_text(root: ElementTree.Element, path: Path) -> bytes:
    """The file, which XML can hold."""
    ElementTree.indent(root)
    try:
        text: bytes = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
        expat.ParserCreate().Parse(text, True)
    except (UnicodeEncodeError, expat.ExpatError):
        raise InputError(
            f"{path}: a name or category has a character that XML cannot hold; rename it"
        ) from None
    return text + b"\n"


FORMAT = Format(
    "ELAN",
    looks_like_elan,
    read_elan,
    kinds=("intervals",),
    writers=((".eaf", write_elan),),
)
