"""What the page shows of each question: where items lie, and the answers as the draws have them.

Everything is laid out here, in a square of ``SIDE`` with x to the right and y downwards, as the
page draws it. An answer is shown by the partition of the items that it has most often.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.decisions import QUESTIONS
from dfcrp.plots.flat import FlatMap, Region, flat_map_or_none, middle_stretch
from dfcrp.posterior.posterior import Posterior
from dfcrp.review.photos import Photos
from dfcrp.review.queue import ReviewQuestion, questions
from dfcrp.summaries.streaming import label_blocks, summarise
from dfcrp.values import Json

Codes = NDArray[np.int64]
Floats = NDArray[np.float64]

SIDE = 1000.0
#: Items that may share an object with what is asked, and others around, that are shown.
MAX_COMPANIONS, MAX_AROUND = 12, 40
#: A companion shares an object with an asked item in so many of the draws at least.
COMPANION = 0.05
#: The view is wider than what is asked by this.
ROOM = 2.0
#: Characters of a cell.
LONGEST_CELL = 300


@dataclass(frozen=True)
class Cases:
    """Everything that a page needs of a run."""

    about: Json
    #: The image's file and the view of each case that has a photograph, by its id.
    pieces: dict[str, tuple[tuple[str, ...], Region]]


def make_cases(posterior: Posterior, n: int, photos: Photos | None = None) -> Cases:
    """The first n questions, laid out, and where the numbers stand."""
    asked = questions(posterior, n)
    layout = _Layout(posterior, photos)
    shown = [layout.companions(one.rows) for one in asked]
    partitions = _partitions(posterior, shown)
    cases = [layout.case(*of_case) for of_case in zip(asked, shown, partitions, strict=True)]
    about = {
        "experts": list(posterior.items.experts),
        "numbers": numbers(posterior),
        "decisions": len(posterior.items.decisions),
        "cases": cases,
    }
    return Cases(about, layout.pieces)


def without_probabilities(about: Json) -> Json:
    """For reviewers who must not be led."""
    cases = []
    for case in about["cases"]:
        options = [{**one, "share": None} for one in case["options"]]
        cases.append({**case, "p": None, "why": "", "options": options})
    return {**about, "cases": cases}


def numbers(posterior: Posterior) -> list[Json]:
    """What a decision may change: how many objects there are, and how much is in doubt."""
    found = posterior.detection
    count = posterior.n_clusters if found is None else found.seen[:, 0]
    p = posterior.pairs.probability
    doubtful = int(np.count_nonzero((p > 0.1) & (p < 0.9)))
    return [
        {"name": "objects", **summarise(np.ravel(count)).as_dict()},
        {"name": "pairs in doubt", "mean": doubtful, "lo": doubtful, "hi": doubtful},
    ]


def case_id(about: str, ids: Sequence[str]) -> str:
    """The same for the same question, whatever the draws."""
    text = "\0".join((about, *sorted(ids)))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _partitions(posterior: Posterior, shown: Sequence[Codes]) -> list[list[Counter[bytes]]]:
    """Of each case the partitions of its items in the draws: if the first two share, and if not.

    A partition is its labels, each the position of the first of its items.
    """
    found: list[list[Counter[bytes]]] = [[Counter(), Counter()] for _ in shown]
    for *_, labels in label_blocks(posterior.draws):
        for rows, (together, apart) in zip(shown, found, strict=True):
            own = labels[:, rows]
            first = (own[:, :, np.newaxis] == own[:, np.newaxis, :]).argmax(axis=2)
            for draw in first.astype(np.uint8):
                shares = len(draw) > 1 and draw[1] == draw[0]
                (together if shares else apart)[draw.tobytes()] += 1
    return found


class _Layout:
    """Lays out cases of one posterior."""

    def __init__(self, posterior: Posterior, photos: Photos | None) -> None:
        self._posterior, self._photos = posterior, photos
        self._items = posterior.items
        self._placed = flat_map_or_none(self._items)
        outlines = posterior.likelihood.outlines(self._items.columns)
        #: Whether items lie on a line, each list in a lane of its own.
        self._lanes = bool(getattr(outlines, "on_line", False))
        self._matrix = posterior.coclustering()
        self.pieces: dict[str, tuple[tuple[str, ...], Region]] = {}

    def companions(self, rows: Sequence[int]) -> Codes:
        """The items that are asked about, then those that most often share an object with one."""
        shared = self._matrix[list(rows)].max(axis=0).toarray().ravel()
        shared[list(rows)] = 0.0
        order = np.argsort(-shared, kind="stable")[:MAX_COMPANIONS]
        return np.array([*rows, *order[shared[order] >= COMPANION]], np.int64)

    def case(self, asked: ReviewQuestion, rows: Codes, found: list[Counter[bytes]]) -> Json:
        """One case as the page takes it."""
        ids = self._items.id[list(asked.rows)].tolist()
        name = case_id(asked.about, ids)
        image = "" if self._items.image is None else str(self._items.image[rows[0]])
        case: Json = {
            "id": name,
            "about": asked.about,
            "items": ids,
            "image": image,
            "p": round(asked.p, 4),
            "why": asked.why,
            "photo": None,
            "lanes": self._lanes,
            "fields": None,
        }
        options = self._options(asked, ids, found)
        if self._placed is None:
            case |= {"shape": None, "shown": self._words(rows, len(asked.rows))}
            case["fields"] = self._fields(rows)
            for one in options:
                one["objects"] = [{"members": part} for part in one.pop("parts")]
            return case | {"options": options}
        return case | self._drawn(name, asked, rows, options, image)

    def _options(
        self, asked: ReviewQuestion, ids: list[str], found: list[Counter[bytes]]
    ) -> list[Json]:
        together, apart = found
        knows_reality = self._posterior.detection is not None
        if asked.about == QUESTIONS["together"]:
            options = [
                _option("together", ids, asked.p, _parts(together, len(ids))),
                _option("apart", ids, 1.0 - asked.p, _parts(apart, len(ids))),
            ]
            if knows_reality:
                options.append(_option("not_real", ids, None, []))
            return options
        whole = [list(range(len(ids)))]
        return [
            _option("real", ids, asked.p, _parts(together + apart, len(ids)) or whole),
            _option("not_real", ids, 1.0 - asked.p, []),
            _option("slip", ids, None, []),
        ]

    def _words(self, rows: Codes, asked: int) -> list[Json]:
        items = self._items
        code = items.families[rows].tolist()
        said = [""] * len(rows) if items.category is None else items.category[rows].tolist()
        return [
            {"id": str(items.id[row]), "expert": code[k], "says": said[k], "asked": k < asked}
            for k, row in enumerate(rows.tolist())
        ]

    def _fields(self, rows: Codes) -> list[Json]:
        """The columns of records, side by side."""
        return [
            {"name": name, "cells": [str(values[row])[:LONGEST_CELL] for row in rows.tolist()]}
            for name, values in self._items.columns.items()
        ]

    def _drawn(
        self,
        name: str,
        asked: ReviewQuestion,
        rows: Codes,
        options: list[Json],
        image: str,
    ) -> Json:
        """The case with everything in its place."""
        placed = self._placed
        assert placed is not None
        parts = None if self._photos is None else self._photos.find(image)
        extent = None if parts is None or placed.degrees else self._extent(parts)
        view = _view(placed, rows, len(asked.rows))
        down = extent is not None and extent[2] > extent[3]
        if down:
            view = (view[0], view[1], view[3], view[2])
        rows = np.concatenate((rows, self._around(placed, rows, view)))
        paper = _Paper(placed, view, self._items.families[rows] if self._lanes else None)
        outlines = paper.outlines(placed.take(rows), np.arange(len(rows)))
        words = self._words(rows, len(asked.rows))
        for one in options:
            one["objects"] = [
                {"members": part, **paper.amid(placed.take(rows[part]), part)}
                for part in one.pop("parts")
            ]
        photo = None
        if extent is not None and parts is not None:
            self.pieces[name] = parts, view
            photo = f"photo/{name}.jpg"
        return {
            "shape": placed.shape,
            "shown": [{**word, **line} for word, line in zip(words, outlines, strict=True)],
            "options": options,
            "photo": photo,
            "lanes": paper.lanes,
        }

    def _extent(self, parts: tuple[str, ...]) -> Region:
        assert self._photos is not None
        return self._photos.extent(parts)

    def _around(self, placed: FlatMap, rows: Codes, view: Region) -> Codes:
        """Other items in the view, the nearest first."""
        x = placed.beside(placed.x, placed.x[rows[0]])
        low, high = sorted(view[2:])
        inside = (x > view[0]) & (x < view[1])
        if not self._lanes:
            inside &= (placed.y > low) & (placed.y < high)
        inside[rows] = False
        if self._items.image is not None:
            inside &= self._items.image == self._items.image[rows[0]]
        others = np.flatnonzero(inside)
        distance = np.hypot(x[others] - x[rows[0]], placed.y[others] - placed.y[rows[0]])
        return others[np.argsort(distance, kind="stable")[:MAX_AROUND]]


def _option(decision: str, ids: list[str], share: float | None, parts: list[list[int]]) -> Json:
    share = None if share is None else round(share, 4)
    return {"decision": decision, "items": ids, "share": share, "parts": parts}


def _parts(found: Counter[bytes], asked: int) -> list[list[int]]:
    """The objects of the most frequent partition that hold an asked item, as positions."""
    if not found:
        return []
    draw = np.frombuffer(found.most_common(1)[0][0], np.uint8)
    names = dict.fromkeys(draw[:asked].tolist())
    return [np.flatnonzero(draw == name).tolist() for name in names]


def _view(placed: FlatMap, rows: Codes, asked: int) -> Region:
    """A square around what is asked, with room; left, right, bottom, top."""
    own = placed.take(rows[: max(asked, 1)])
    x = own.beside(own.x, own.x[0])
    across, high = own.half
    left, right = float((x - across).min()), float((x + across).max())
    low, top = float((own.y - high).min()), float((own.y + high).max())
    wide = middle_stretch((left, right, low, top), placed.degrees)
    side = ROOM * max((right - left) / wide, top - low)
    if side <= 0.0:
        side = 0.05 * (float(max(np.ptp(placed.x), np.ptp(placed.y))) or 1.0)
    if not placed.equal:
        return _stretched(placed, (left + right) / 2.0, (low + top) / 2.0, x, own.y)
    middle, level = (left + right) / 2.0, (low + top) / 2.0
    half = side / 2.0
    return middle - wide * half, middle + wide * half, level - half, level + half


def _stretched(placed: FlatMap, middle: float, level: float, x: Floats, y: Floats) -> Region:
    """Axes of two units have a scale each."""
    wide = max(ROOM * float(np.ptp(x)), 0.1 * float(np.ptp(placed.x)), 1e-12) / 2.0
    high = max(ROOM * float(np.ptp(y)), 0.1 * float(np.ptp(placed.y)), 1e-12) / 2.0
    return middle - wide, middle + wide, level - high, level + high


class _Paper:
    """From the map to the square that the page draws."""

    def __init__(self, placed: FlatMap, view: Region, families: Codes | None) -> None:
        self._view = view
        left, right, bottom, top = view
        self._across = SIDE / (right - left)
        self._up = SIDE / (bottom - top)
        #: Of lists on a line the experts, in the order of their lanes.
        self.lanes = [] if families is None else list(dict.fromkeys(sorted(families.tolist())))
        self._families = families
        # A width is in the unit of y; in degrees it is wider on the map.
        self._wide = middle_stretch(view, placed.degrees)

    def outlines(self, own: FlatMap, at: Codes) -> list[Json]:
        """Centres, sides and turns of these, which are shown at these positions."""
        middle = (self._view[0] + self._view[1]) / 2.0
        x = (own.beside(own.x, middle) - self._view[0]) * self._across
        wide = own.width * self._wide * self._across
        if self._families is not None:
            lane = np.searchsorted(self.lanes, self._families[at])
            room = SIDE / max(len(self.lanes), 1)
            y, high = (lane + 0.5) * room, np.full(len(own), 0.6 * room)
        else:
            y = (own.y - self._view[3]) * self._up
            high = own.height * abs(self._up)
        turn = own.angle if self._up > 0.0 else -own.angle
        columns = (x, y, wide, high, turn)
        return [
            dict(zip("xywha", (round(float(v), 2) for v in line), strict=True))
            for line in zip(*columns, strict=True)
        ]

    def amid(self, own: FlatMap, part: list[int]) -> Json:
        """The outline of an object: amid its members."""
        lines = self.outlines(own, np.array(part))
        found = {side: round(float(np.mean([one[side] for one in lines])), 2) for side in "xywh"}
        if self._families is not None:
            found |= {"y": SIDE / 2.0, "h": SIDE}
        return {**found, "a": lines[0]["a"]}
