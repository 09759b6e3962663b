"""ELAN's files (.eaf): tiers of annotations, with times in milliseconds.

A tier may name its annotator; if one does, annotators are experts, else the file is one list.
Categories are the values of annotations, and a column ``tier`` has the names of tiers. Annotations
that refer to others have no times of their own and are left out.
"""

from __future__ import annotations

import math
from xml.parsers import expat

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import Spans
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.items.checks import quoted, to_numbers

#: Of times in the file to one second.
MILLISECONDS = 1000.0


def looks_like_elan(file: GivenFile) -> bool:
    """By the ending."""
    return file.path.suffix.lower() == ".eaf"


def read_elan(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read annotations that have times, in seconds."""
    reader = _ElanReader(file.name, Spans(file.name, "row", options))
    parser = expat.ParserCreate()
    # A document type is the door for entities that unfold without end or fetch other files.
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    parser.StartElementHandler = lambda tag, found: reader.start(
        tag, found, parser.CurrentLineNumber
    )
    parser.EndElementHandler = reader.end
    parser.CharacterDataHandler = reader.text
    try:
        parser.Parse(file.data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"{file.name}, row {error.lineno}: not XML ({expat.errors.messages[error.code]}); "
            "is the file whole? Save it again in ELAN"
        ) from None
    except (ValueError, LookupError):  # an encoding that nobody knows
        raise InputError(f"{file.name}: not XML in UTF-8; save the file again in ELAN") from None
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

    def refuse_doctype(self, *_: object) -> None:
        """ELAN writes none."""
        raise InputError(f"{self.name}: a document type, which ELAN does not write; save it again")

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


FORMAT = Format("ELAN", looks_like_elan, read_elan, kinds=("intervals",))
