"""Which objects of an answer may be which of a truth: by overlap, or by distance.

Overlap is the intersection over the union of two areas (IoU). Each pair that may be one object has
a quality from 0 to 1: its IoU, or 1 minus the distance in units of the largest that is allowed.

One to one are as many pairs as possible, and of these the ones that are most alike.

``best_assignment`` is a maximum matching, of largest total quality among all maximum matchings.
``right_by_score`` takes the objects of an answer from the highest score to the lowest; one is right
if the number of pairs that can be made of those so far grows by it. Sets of objects that can be
matched at the same time are the independent sets of a matroid, so that among the k highest there
are at any k as many right ones as the best assignment of these k has, whatever the order of equals.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching
from scipy.spatial import cKDTree

from dfcrp.errors import InputError, SettingsError
from dfcrp.evaluation.objects import Objects
from dfcrp.likelihoods.base import Outlines
from dfcrp.markup import plural
from dfcrp.values import Json

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
#: Pairs of bounding boxes that are compared at once.
AT_ONCE = 2_000_000
#: Of two ellipses, so many chords are summed over.
CHORDS = 256
#: The usual least IoU.
USUAL_IOU = 0.5


#: The distance within which a run expects items of one object, and in words where it comes from.
Learned: TypeAlias = tuple[float | Mapping[str, float], str]


@dataclass(frozen=True)
class Rule:
    """When an object of the answer may be one of the truth.

    ``iou``: the least overlap. Otherwise ``distance``: the largest distance of centres, or for
    each column the distance that counts as 1; the root of the sum of squares may be up to 1.
    """

    iou: float | None = None
    distance: float | Mapping[str, float] | None = None
    same_category: bool = False
    #: Where the distance comes from, if nobody gave it.
    source: str = ""

    def as_dict(self) -> Json:
        """For JSON."""
        if self.iou is not None:
            found: Json = {"by": "iou", "least": self.iou}
        else:
            most = self.distance
            found = {"by": "distance", "most": dict(most) if isinstance(most, Mapping) else most}
        if self.source:
            found["source"] = self.source
        return {**found, "same_category": self.same_category}

    def words(self) -> str:
        """In a sentence's end: "if their IoU is at least 0.5"."""
        same = " and their categories are the same" if self.same_category else ""
        if self.iou is not None:
            return f"if their IoU is at least {self.iou:g}{same}"
        if isinstance(self.distance, Mapping):
            each = ", ".join(f"{name} {value:.4g}" for name, value in self.distance.items())
            far = f"if their columns differ by no more than ({each}), as the axes of an ellipsoid"
        else:
            far = f"if their centres are at most {self.distance:.4g} apart"
        return f"{far}{same}" + (f" ({self.source})" if self.source else "")


def checked_rule(
    kind_columns: tuple[str, ...],
    *,
    has_area: bool,
    iou: float | None,
    distance: float | Mapping[str, float] | None,
    same_category: bool,
    learned: Learned | None,
    noun: str,
) -> Rule:
    """The rule that was asked for, or the usual one.

    ``learned`` is the distance that the run's scatter suggests, and in words where it comes from.
    """
    if iou is not None and distance is not None:
        raise SettingsError("give either iou or distance, not both")
    if iou is not None:
        if not has_area:
            raise SettingsError(f"iou is for items with an area, and {plural(noun)} have none; "
                                "give distance (--distance)")  # fmt: skip
        if not 0.0 < iou <= 1.0:
            raise SettingsError(f"iou is {iou:g}; it must be above 0 and at most 1")
        return Rule(iou=float(iou), same_category=same_category)
    if distance is not None:
        _check_distance(distance, kind_columns)
        return Rule(distance=distance, same_category=same_category)
    if has_area:
        return Rule(iou=USUAL_IOU, same_category=same_category)
    if learned is None:
        raise SettingsError(
            f"how far may {plural(noun)} of the answer be from the truth? Give --distance D (in "
            "Python distance=D), in the units of the data; only a run has a usual one, from the "
            "scatter that it learned"
        )
    return Rule(distance=learned[0], source=learned[1], same_category=same_category)


def _check_distance(distance: float | Mapping[str, float], columns: tuple[str, ...]) -> None:
    each = distance if isinstance(distance, Mapping) else {"distance": distance}
    for name, value in each.items():
        if isinstance(distance, Mapping) and name not in columns:
            raise SettingsError(
                f"distance names the column {name!r}; the columns are {', '.join(columns)}"
            )
        if not 0.0 < value < np.inf:
            raise SettingsError(f"distance is {value!r}; it must be a number above zero")


@dataclass(frozen=True)
class PossiblePairs:
    """Pairs that may be one object: rows of the answer and of the truth, and how alike they are."""

    answer: Whole
    truth: Whole
    quality: Floats

    def select(self, keep: NDArray[np.bool_]) -> PossiblePairs:
        """Some of them."""
        return PossiblePairs(self.answer[keep], self.truth[keep], self.quality[keep])


def possible_pairs(answer: Objects, truth: Objects, rule: Rule) -> PossiblePairs:
    """Every pair on the same image that the rule allows, sorted."""
    nothing = PossiblePairs(np.zeros(0, np.int64), np.zeros(0, np.int64), np.zeros(0))
    if not len(answer) or not len(truth):
        return nothing
    images = _image_codes(answer, truth)
    if rule.iou is not None:
        found = _overlapping(answer, truth, images, rule.iou)
    else:
        found = _near(answer, truth, images, rule)
    if rule.same_category:
        if answer.category is None or truth.category is None:
            lacking = answer if answer.category is None else truth
            raise InputError(
                f"{lacking.name} has no column category, so categories cannot be compared; leave "
                "--same-category out"
            )
        found = found.select(answer.category[found.answer] == truth.category[found.truth])
    order = np.lexsort([found.truth, found.answer])
    return PossiblePairs(found.answer[order], found.truth[order], found.quality[order])


def _image_codes(answer: Objects, truth: Objects) -> tuple[Whole, Whole]:
    if answer.image is None or truth.image is None:
        return np.zeros(len(answer), np.int64), np.zeros(len(truth), np.int64)
    code = {name: at for at, name in enumerate(sorted({*answer.images, *truth.images}))}
    found = [np.array([code[n] for n in one.image.tolist()], np.int64) for one in (answer, truth)]  # type: ignore[union-attr]
    return found[0], found[1]


def _near(
    answer: Objects, truth: Objects, images: tuple[Whole, Whole], rule: Rule
) -> PossiblePairs:
    """By distance: within 1 in units of the largest that is allowed."""
    scaled = []
    for one, codes in zip((answer, truth), images, strict=True):
        if isinstance(rule.distance, Mapping):
            places = np.column_stack(
                [np.asarray(one.columns[n], np.float64) / d for n, d in rule.distance.items()]
            )
        else:
            assert rule.distance is not None
            places = one.centres / rule.distance
        # Other images are out of reach.
        scaled.append(np.column_stack([places, 4.0 * codes]))
    tree = cKDTree(scaled[1])
    near = tree.query_ball_point(scaled[0], 1.0 + 1e-12)
    rows = np.repeat(np.arange(len(answer)), [len(one) for one in near])
    columns = np.array([j for one in near for j in one], np.int64)
    away = np.linalg.norm(scaled[0][rows] - scaled[1][columns], axis=1)
    return PossiblePairs(rows, columns, np.clip(1.0 - away, 0.0, 1.0))


def _overlapping(
    answer: Objects, truth: Objects, images: tuple[Whole, Whole], least: float
) -> PossiblePairs:
    """By IoU."""
    outlines = [one.likelihood.outlines(one.columns) for one in (answer, truth)]
    first, second = outlines
    assert first is not None
    assert second is not None
    discs = all(np.array_equal(one.width, one.height) for one in (first, second))
    if first.shape == "ellipse" and discs:
        centres = answer.centres, truth.centres
        rows, columns = _near_discs(centres, (first.width, second.width), images, least)
        away = np.linalg.norm(centres[0][rows] - centres[1][columns], axis=1)
        shared = disc_overlap(away, first.width[rows] / 2.0, second.width[columns] / 2.0)
        areas = [0.25 * np.pi * one.width**2 for one in (first, second)]
    else:
        rows, columns = _near_boxes(first, second, images)
        measure = box_overlap if first.shape == "box" else ellipse_overlap
        shared = measure(_some(first, rows), _some(second, columns))
        share = 1.0 if first.shape == "box" else 0.25 * np.pi
        areas = [share * one.width * one.height for one in (first, second)]
    iou = shared / (areas[0][rows] + areas[1][columns] - shared)
    return PossiblePairs(rows, columns, np.clip(iou, 0.0, 1.0)).select(iou >= least - 1e-12)


def _some(one: Outlines, rows: Whole) -> Outlines:
    parts = (one.x, one.y, one.width, one.height, one.angle)
    x, y, width, height, angle = (values[rows] for values in parts)
    return Outlines(x, y, width, height, angle, one.shape)


def _near_discs(
    centres: tuple[Floats, Floats],
    diameters: tuple[Floats, Floats],
    images: tuple[Whole, Whole],
    least: float,
) -> tuple[Whole, Whole]:
    """Discs whose IoU may be large enough: then neither is wider than 1 / √IoU times the other."""
    reach = 0.5 * diameters[0] * (1.0 + 1.0 / np.sqrt(least))
    apart = 4.0 * float(reach.max())
    with_image = [
        np.column_stack([c, apart * codes]) for c, codes in zip(centres, images, strict=True)
    ]
    near = cKDTree(with_image[1]).query_ball_point(with_image[0], reach * (1.0 + 1e-9))
    rows = np.repeat(np.arange(len(reach)), [len(one) for one in near])
    return rows, np.array([j for one in near for j in one], np.int64)


def _bounds(one: Outlines) -> tuple[Floats, Floats, Floats, Floats]:
    """Left, right, bottom and top of each."""
    if one.shape == "box":
        across, up = 0.5 * one.width, 0.5 * one.height
    else:
        turn = np.radians(one.angle)
        across = 0.5 * np.hypot(one.width * np.cos(turn), one.height * np.sin(turn))
        up = 0.5 * np.hypot(one.width * np.sin(turn), one.height * np.cos(turn))
    return one.x - across, one.x + across, one.y - up, one.y + up


def _near_boxes(
    first: Outlines, second: Outlines, images: tuple[Whole, Whole]
) -> tuple[Whole, Whole]:
    """Pairs on one image whose bounding boxes overlap."""
    left, right, bottom, top = _bounds(first)
    left_2, right_2, bottom_2, top_2 = _bounds(second)
    rows, columns = [], []
    order = np.lexsort([left_2, images[1]])
    starts = np.searchsorted(images[1][order], np.arange(images[1].max() + 2))
    for image in np.unique(images[0]):
        if image >= len(starts) - 1 or starts[image] == starts[image + 1]:
            continue
        mine = np.flatnonzero(images[0] == image)
        theirs = order[starts[image] : starts[image + 1]]
        widest = float((right_2[theirs] - left_2[theirs]).max())
        low = np.searchsorted(left_2[theirs], left[mine] - widest)
        high = np.searchsorted(left_2[theirs], right[mine], side="right")
        for part in _in_portions(high - low):
            count = (high - low)[part]
            i = np.repeat(mine[part], count)
            within = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
            j = theirs[np.repeat(low[part], count) + within]
            meet = (right_2[j] > left[i]) & (bottom_2[j] < top[i]) & (top_2[j] > bottom[i])
            rows.append(i[meet])
            columns.append(j[meet])
    if not rows:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    return np.concatenate(rows), np.concatenate(columns)


def _in_portions(counts: Whole) -> list[slice]:
    """Slices of rows, each with about AT_ONCE pairs at most."""
    portion = np.cumsum(counts) // AT_ONCE
    ends = np.flatnonzero(np.diff(portion)) + 1
    return [slice(a, b) for a, b in zip([0, *ends], [*ends, len(counts)], strict=True)]


def box_overlap(one: Outlines, other: Outlines) -> Floats:
    """Area that two upright boxes share, pair by pair."""
    sides = []
    for place, length in (("x", "width"), ("y", "height")):
        a, b = getattr(one, place), getattr(other, place)
        u, v = getattr(one, length) / 2.0, getattr(other, length) / 2.0
        sides.append(np.clip(np.minimum(a + u, b + v) - np.maximum(a - u, b - v), 0.0, None))
    return np.asarray(sides[0] * sides[1])


def disc_overlap(away: Floats, r: Floats, s: Floats) -> Floats:
    """Area that two discs share, by the distance of their centres and their radii."""
    smaller, larger = np.minimum(r, s), np.maximum(r, s)
    inside, outside = away <= larger - smaller, away >= r + s
    d = np.where(inside | outside, larger, away)
    with np.errstate(divide="ignore", invalid="ignore"):
        a = np.clip((d**2 + r**2 - s**2) / (2.0 * d * r), -1.0, 1.0)
        b = np.clip((d**2 + s**2 - r**2) / (2.0 * d * s), -1.0, 1.0)
        kite = (-d + r + s) * (d + r - s) * (d - r + s) * (d + r + s)
    lens = r**2 * np.arccos(a) + s**2 * np.arccos(b) - 0.5 * np.sqrt(np.clip(kite, 0.0, None))
    return np.where(outside, 0.0, np.where(inside, np.pi * smaller**2, lens))


def ellipse_overlap(one: Outlines, other: Outlines) -> Floats:
    """Area that two turned ellipses share: the sum of what their chords at each x share."""
    found = np.zeros(len(one.x))
    step = np.pi / CHORDS
    angles = (np.arange(CHORDS) + 0.5) * step
    each = max(AT_ONCE // CHORDS, 1)
    for start in range(0, len(found), each):
        part = np.arange(start, min(start + each, len(found)))
        a, b = _some(one, part), _some(other, part)
        (left, right, _, _), (left_2, right_2, _, _) = _bounds(a), _bounds(b)
        low, high = np.maximum(left, left_2), np.minimum(right, right_2)
        half = np.clip(0.5 * (high - low), 0.0, None)
        x = (0.5 * (low + high))[:, np.newaxis] + half[:, np.newaxis] * np.cos(angles)
        (bottom, top), (bottom_2, top_2) = _chords(a, x), _chords(b, x)
        shared = np.clip(np.minimum(top, top_2) - np.maximum(bottom, bottom_2), 0.0, None)
        found[part] = half * step * (shared * np.sin(angles)).sum(axis=1)
    return found


def _chords(one: Outlines, x: Floats) -> tuple[Floats, Floats]:
    """From where to where each ellipse reaches along y, at every x of its row."""
    turn, p, q = np.radians(one.angle), 0.5 * one.width, 0.5 * one.height
    xx = (p * np.cos(turn)) ** 2 + (q * np.sin(turn)) ** 2
    xy = (p**2 - q**2) * np.sin(turn) * np.cos(turn)
    away = (x - one.x[:, np.newaxis]) / np.sqrt(xx)[:, np.newaxis]
    middle = one.y[:, np.newaxis] + (xy / np.sqrt(xx))[:, np.newaxis] * away
    half = (p * q / np.sqrt(xx))[:, np.newaxis] * np.sqrt(np.clip(1.0 - away**2, 0.0, None))
    return middle - half, middle + half


def best_assignment(pairs: PossiblePairs, n_answer: int, n_truth: int) -> Whole:
    """The truth's row of each row of the answer; -1 for one that is not matched."""
    found = np.full(n_answer, -1, np.int64)
    rows = np.unique(pairs.answer)
    if not rows.size:
        return found
    at = np.searchsorted(rows, pairs.answer)
    # Being alone costs more than the worst pairs of all others of the component together.
    graph = sparse.coo_array(
        (np.ones(len(at)), (at, len(rows) + pairs.truth)), shape=(len(rows) + n_truth,) * 2
    )
    component = connected_components(graph, directed=False)[1][: len(rows)]
    alone = 2.0 * (np.bincount(component)[component] + 1.0)
    costs = sparse.coo_array(
        (
            np.concatenate([2.0 - pairs.quality, alone]),
            (
                np.concatenate([at, np.arange(len(rows))]),
                np.concatenate([pairs.truth, n_truth + np.arange(len(rows))]),
            ),
        ),
        shape=(len(rows), n_truth + len(rows)),
    ).tocsr()
    # scipy's graph functions take matrices, and indices of 32 bits
    row, column = min_weight_full_bipartite_matching(sparse.csr_matrix(costs))
    matched = column < n_truth
    found[rows[row[matched]]] = column[matched]
    return found


def right_by_score(pairs: PossiblePairs, order: Whole, n_truth: int) -> NDArray[np.bool_]:
    """Whether each object of the answer is right; ``order`` has the rows, best score first."""
    near: dict[int, list[int]] = {}
    by_quality = np.lexsort([-pairs.quality, pairs.answer])
    for i, j in zip(
        pairs.answer[by_quality].tolist(), pairs.truth[by_quality].tolist(), strict=True
    ):
        near.setdefault(i, []).append(j)
    owner = [-1] * n_truth
    right = np.zeros(len(order), np.bool_)
    for i in order.tolist():
        if i in near and _finds_place(i, near, owner):
            right[i] = True
    return right


def _finds_place(start: int, near: dict[int, list[int]], owner: list[int]) -> bool:
    """Give a row one of its truths, moving others to further ones of theirs; whether that works."""
    came_from: dict[int, int] = {}
    rows = [start]
    for i in rows:  # grows while it is gone through: nearest first
        for j in near[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if owner[j] >= 0:
                rows.append(owner[j])
                continue
            _move_along(j, start, came_from, near, owner)
            return True
    return False


def _move_along(
    free: int, start: int, came_from: dict[int, int], near: dict[int, list[int]], owner: list[int]
) -> None:
    """Give the free truth to the row that it was reached from, its own to the one before, ..."""
    while True:
        row = came_from[free]
        given_up = next((k for k in near[row] if owner[k] == row), -1)
        owner[free] = row
        if row == start:
            return
        free = given_up
