"""Praat's TextGrid, as long or short text: tiers of intervals, each with a text.

Praat reads numbers, texts in double quotes and flags in angle brackets that stand by themselves,
and passes over everything else, so that the long and the short form are one. An interval without a
text is what lies between two that are meant. Points have no length and are left out. A file is one
list, whose texts are categories; a column ``tier`` has the names of the tiers.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.spans import (
    NO_LENGTH,
    Spans,
    SpanToWrite,
    only_one_recording,
    spans_by,
    without_overlap,
)
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import decode
from dfcrp.items.checks import quoted
from dfcrp.items.columns import quoted_names
from dfcrp.values import Json

_TOKEN = re.compile(
    r'"((?:[^"]|"")*)"|(?<!\S)!.*|(?<!\S)([-+]?\d+(?:\.\d*)?(?:[eE][-+]?\d+)?)(?!\S)'
    r"|(?<!\S)<(\w+)>(?!\S)"
)
INTERVALS, POINTS = "IntervalTier", "TextTier"


def looks_like_textgrid(file: GivenFile) -> bool:
    """By the ending."""
    return file.path.suffix.lower() == ".textgrid"


@dataclass
class _Tokens:
    """What Praat reads, one after the other, and the line of each."""

    name: str
    text: str

    def __post_init__(self) -> None:
        self.breaks = [found.start() for found in re.finditer("\n", self.text)]
        self.found = (match for match in _TOKEN.finditer(self.text) if match.lastindex)
        self.row = 1

    def _next(self, group: int, what: str) -> str:
        match = next(self.found, None)
        if match is None:
            raise InputError(
                f"{self.name}: the TextGrid ends where {what} should be; save it again in Praat, "
                "as a text file"
            )
        self.row = 1 + bisect.bisect_left(self.breaks, match.start())
        if match.lastindex != group:
            raise InputError(
                f"{self.name}, row {self.row}: {what} should be here, not {quoted(match[0])}; save "
                "the TextGrid again in Praat, as a text file"
            )
        return match[group]

    def string(self, what: str) -> str:
        return self._next(1, what).replace('""', '"')

    def number(self, what: str) -> str:
        return self._next(2, what)

    def count(self, what: str) -> int:
        found = self.number(what)
        if not found.isdecimal() or len(found) > 15:
            raise InputError(f"{self.name}, row {self.row}: {what} is {quoted(found)}")
        return int(found)

    def flag(self) -> str:
        return self._next(3, "<exists>")


def read_textgrid(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read the intervals that have a text, of all tiers."""
    tokens = _Tokens(file.name, decode(file.name, file.data))
    spans = Spans(file.name, "row", options)
    spans.look(spans.recording)
    kinds = tokens.string("the type of the file"), tokens.string("the class of the object")
    if kinds[1] != "TextGrid":
        raise InputError(f"{file.name}: it holds {quoted(kinds[1])}; give a TextGrid")
    tokens.number("the start"), tokens.number("the end")
    names = []
    if tokens.flag() == "exists":
        names = [_read_tier(tokens, spans) for _ in range(tokens.count("the number of tiers"))]
    if len(names) > 1:
        spans.say(
            f"its tiers ({quoted_names(names)}) are one list; --columns expert=tier makes each a "
            "list of its own, --columns category=tier a category"
        )
    return spans.table()


def _read_tier(tokens: _Tokens, spans: Spans) -> str:
    kind, name = tokens.string("the class of a tier"), tokens.string("the name of a tier")
    if kind not in (INTERVALS, POINTS):
        raise InputError(f"{tokens.name}, row {tokens.row}: a tier of the class {quoted(kind)}")
    tokens.number("the start of a tier"), tokens.number("the end of a tier")
    for _ in range(tokens.count("the number of entries")):
        start = tokens.number("a time")
        row = tokens.row
        if kind == POINTS:
            tokens.string("the text of a point")
            spans.leave(row, NO_LENGTH)
            continue
        end, text = tokens.number("a time"), tokens.string("the text of an interval").strip()
        if text:
            said: Json = {"category": text, "image": spans.recording, "tier": name}
            spans.add(row, start, end, **said)
    return name


def write_textgrid(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write one recording in long form, with a tier for each expert.

    Intervals of a tier must not overlap: those that do are put into one more tier.
    """
    only_one_recording(table, path)
    tiers = [
        (" ".join([name or "objects", *([str(number)] if number > 1 else [])]), own)
        for name, spans in spans_by(table, "expert", path)
        for number, own in enumerate(without_overlap(spans), 1)
    ]
    first = min(0.0, *(spans[0].start for _, spans in tiers))
    last = max(spans[-1].end for _, spans in tiers)
    lines = ['File type = "ooTextFile"', 'Object class = "TextGrid"', ""]
    lines += [f"xmin = {first!r}", f"xmax = {last!r}", "tiers? <exists>", f"size = {len(tiers)}"]
    lines.append("item []:")
    for number, (name, spans) in enumerate(tiers, 1):
        rows = list(_without_gaps(spans, first, last))
        lines += [f"    item [{number}]:", f'        class = "{INTERVALS}"']
        lines += [f"        name = {_quoted(name)}", f"        xmin = {first!r}"]
        lines += [f"        xmax = {last!r}", f"        intervals: size = {len(rows)}"]
        for at, (start, end, text) in enumerate(rows, 1):
            lines += [f"        intervals [{at}]:", f"            xmin = {start!r}"]
            lines += [f"            xmax = {end!r}", f"            text = {_quoted(text)}"]
    return {path: ("\n".join(lines) + "\n").encode()}


def _quoted(text: str) -> str:
    return '"' + text.replace('"', '""') + '"'


def _without_gaps(
    spans: Sequence[SpanToWrite], first: float, last: float
) -> Iterator[tuple[float, float, str]]:
    """With an empty interval between two that do not touch, as Praat wants."""
    at = first
    for span in spans:
        if span.start > at:
            yield at, span.start, ""
        yield span.start, span.end, span.category
        at = span.end
    if at < last:
        yield at, last, ""


FORMAT = Format(
    "TextGrid",
    looks_like_textgrid,
    read_textgrid,
    kinds=("intervals",),
    writers=((".textgrid", write_textgrid),),
)
