"""Intervals on a line, by start and end: events in audio or video, spans of text."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.likelihoods.base import Outlines, Place, Sight
from dfcrp.likelihoods.interval.shape import find_floor, interval_shape
from dfcrp.likelihoods.normal.likelihood import NormalLikelihood
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.likelihoods.report import counted_items
from dfcrp.markup import significant
from dfcrp.values import Array, Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Floats = NDArray[np.float64]
#: Height of a bar; lanes are 1 apart.
HEIGHT = 0.6
#: Formats of tools for text alone, by their names.
TEXT_TOOLS = ("doccano", "CoNLL")
#: Floors of items that were asked for theirs.
_FLOORS: WeakKeyDictionary[Items, float] = WeakKeyDictionary()
#: Names of columns, as ``dfcrp.items.columns.plain`` leaves them.
_BEGINS = ("start", "begin", "starts", "begins")
_FINISHES = ("end", "stop", "ends", "stops", "finish")
_COUNTED_IN = ("", "time", "s", "sec", "seconds", "ms", "char", "token", "frame", "sample", "pos")


def _counted(*names: str) -> frozenset[str]:
    both = [pair for unit in _COUNTED_IN for name in names for pair in (name + unit, unit + name)]
    return frozenset(both)


class _Intervals(NormalLikelihood):
    """The centre scatters with the length; the length by a share of itself above a floor."""

    columns = ("start", "end")
    alternatives = (("start", "duration"),)
    verb = "marked"
    size_word = "length"
    spellings: Mapping[str, frozenset[str]] = {
        "start": _counted(*_BEGINS) | {"onset", "tmin", "xmin", "from", "startoffset", "t0"},
        "end": _counted(*_FINISHES) | {"tmax", "xmax", "to", "endoffset", "t1"},
        "duration": _counted("duration", "length", "dur"),
        "image": frozenset(
            base + ending
            for base in ("recording", "file", "document", "doc", "track", "audio", "video")
            for ending in ("", "id", "name")
        ),
        "expert": frozenset({"listener", "scorer", "coder", "transcriber"}),
        "category": frozenset({"label", "labels", "type", "class", "tag", "eventtype", "entity"}),
    }
    groups: Mapping[str, tuple[str, float]] = {
        "centre": ("position", 1.0),
        "log_length": ("length", 100.0),
    }

    def image_word(self, items: Items) -> str:
        """A document where a tool for text wrote the files."""
        return "document" if items.source_tables.format in TEXT_TOOLS else "recording"

    def standard(self, columns: dict[str, Any], place: Place) -> dict[str, Any]:
        """A duration becomes an end; an interval must have a length."""
        start = columns["start"]
        asked = "duration" if "duration" in columns else "end"
        end = start + columns["duration"] if asked == "duration" else columns["end"]
        bad = np.flatnonzero(~(end > start))
        if bad.size:
            row = int(bad[0])
            more = f" (and {bad.size - 1} more bad row{'s' if bad.size > 2 else ''})"
            raise InputError(
                f"{place(asked, row)}: {_why_no_interval(start[row], end[row])}"
                f"{more if bad.size > 1 else ''}"
            )
        rest = {name: values for name, values in columns.items() if name != "duration"}
        return {"start": start, "end": end} | {n: v for n, v in rest.items() if n != "start"}

    def floor(self, items: Items) -> float:
        """The length below which scatter no longer shrinks."""
        if items.origin is not None:
            return float(items.origin[-1])
        if items not in _FLOORS:
            _FLOORS[items] = find_floor(items.values, items.families, items.image_codes)
        return _FLOORS[items]

    def shape(self, items: Items) -> Shape:
        """With the floor of these items."""
        return interval_shape(self.floor(items))

    def origin(self, items: Items) -> Floats:
        """The mean of all features, and the floor."""
        if items.origin is not None:
            return items.origin
        return np.append(self.raw_features(items).mean(axis=0), self.floor(items))

    def middle(self, items: Items) -> Floats:
        """Without the floor."""
        return self.origin(items)[:-1]

    def log_sizes(self, items: Items) -> Floats:
        """Of lengths."""
        return np.log(lengths(items.columns))

    def learned_about(self, items: Items) -> Json:
        """The floor, and where scatter is told."""
        found = lengths(items.columns)
        return {"floor": self.floor(items), "median_length": float(np.median(found))}

    def learned_words(self, found: Json) -> list[str]:
        """With the floor."""
        words = [
            f"Lengths scatter by a share of the length and {found['floor']:.3g}; what is told of "
            f"positions is for the median length ({found['median_length']:.4g})."
        ]
        return [*super().learned_words(found), *words]

    def data_words(self, items: Items) -> list[str]:
        """With the range of lengths."""
        found = lengths(items.columns)
        return [
            f"{counted_items(items, self.noun)}, with lengths from {significant(found.min())} to "
            f"{significant(found.max())}."
        ]

    def sight(self, items: Items) -> Sight:
        """Centres on the line, and lengths; whole numbers are characters, tokens or frames."""
        centre = np.mean([items.columns["start"], items.columns["end"]], axis=0)
        found = lengths(items.columns)
        whole = bool((items.values % 1.0 == 0.0).all())
        return Sight(
            centre[:, np.newaxis], ("position",), lambda given: given, found, counted=whole
        )

    def apart(self, items: Items, row: int) -> Floats:
        """The distance of the centres."""
        centre = np.mean([items.columns["start"], items.columns["end"]], axis=0)
        return np.abs(centre - centre[row])

    def outlines(self, columns: Mapping[str, Array]) -> Outlines:
        """Bars on a line, all of one height."""
        start, end = (np.asarray(columns[name], np.float64) for name in ("start", "end"))
        nothing, centre = np.zeros_like(start), 0.5 * (start + end)
        length = np.maximum(end - start, 0.0)
        return Outlines(centre, nothing, length, nothing + HEIGHT, nothing, "box", on_line=True)

    def band(
        self, low: Mapping[str, Array], high: Mapping[str, Array]
    ) -> tuple[Outlines, Outlines]:
        """From the last start to the first end, and from the first start to the last end."""
        least = self.outlines({"start": high["start"], "end": low["end"]})
        return least, self.outlines({"start": low["start"], "end": high["end"]})


def lengths(columns: Mapping[str, Array]) -> Floats:
    """Of intervals by start and end."""
    return np.asarray(columns["end"] - columns["start"], np.float64)


def _why_no_interval(start: float, end: float) -> str:
    if end == start:
        return (
            f"the interval from {start:.10g} to {end:.10g} has no length; give it one or remove "
            "the row. Events without a length are numbers: read them with --likelihood diagonal "
            "and one column, the time"
        )
    return (
        f"the interval from {start:.10g} to {end:.10g} ends before it starts; correct it or remove "
        "the row"
    )


INTERVALS = _Intervals("intervals", "interval")
