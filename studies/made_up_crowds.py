"""Crowds whose truth is known: images, some of them empty, and volunteers of known skill.

Every image is looked at by a few volunteers, chosen at random. A volunteer marks each object of
the image with the probability of their skill, off by a normal error, and makes a few markings
where there is nothing. Spammers hardly find anything and mark at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.items.looks import with_looks

#: Kinds of item that a crowd may mark.
KINDS = ("points", "circles", "boxes")


@dataclass(frozen=True)
class CrowdDesign:
    """How large the crowd is and what it is like."""

    images: int = 500
    volunteers: int = 60
    looks: int = 7
    spammers: int = 5
    #: Skills of those who are no spammers, evenly spaced; and of spammers.
    lowest: float = 0.1
    highest: float = 0.95
    of_spammers: float = 0.03
    #: Objects of an image that is not empty, and the share of images that are.
    objects: float = 5.0
    empty: float = 0.2
    #: False markings per look: of honest ones between these, and of spammers.
    false_low: float = 0.02
    false_high: float = 0.4
    false_spam: float = 3.0
    side: float = 600.0
    error: float = 4.0
    #: Log diameters are normal.
    log_size: float = 3.0
    log_size_sd: float = 0.4
    size_error: float = 0.1
    kind: str = "points"
    #: Above 1 most honest volunteers are near the lowest skill.
    poor: float = 1.0
    #: Gamma shape of the expected numbers of objects on images; 0: all images alike.
    spread: float = 0.0
    #: Share of the objects that lie next to another one, three standard errors away on average.
    clumped: float = 0.0
    #: By how much the log odds to find an object rise with its log size.
    by_size: float = 0.0
    #: So many further volunteers look at two or three images only.
    newcomers: int = 0
    #: Categories of objects, the first twice as common as the second and so on; 0: none are named.
    categories: int = 3
    #: How often volunteers name the right one: between these. Spammers name any.
    accuracy_low: float = 0.5
    accuracy_high: float = 0.95
    #: Whether markings have scores: higher ones, on average, where there is an object.
    scores: bool = False


class Crowd(NamedTuple):
    """A made-up crowd. ``items.truth`` numbers the objects; false markings have numbers after."""

    items: Items
    experts: tuple[str, ...]
    skill: NDArray[np.float64]
    false_rate: NDArray[np.float64]
    spammer: NDArray[np.bool_]
    looks: NDArray[np.int64]
    #: Objects on every image, by the name of the image.
    objects: dict[str, int]
    #: Whether a marking is an object's.
    real: NDArray[np.bool_]
    #: The category of every object by its number, and who says what of which: (volunteers, C, C).
    category: NDArray[np.int64]
    confusion: NDArray[np.float64]


class _Marks(NamedTuple):
    image: list[str]
    expert: list[str]
    place: list[NDArray[np.float64]]
    truth: list[int]
    said: list[int]
    score: list[float]


class _People(NamedTuple):
    names: tuple[str, ...]
    skill: NDArray[np.float64]
    false: NDArray[np.float64]
    spammer: NDArray[np.bool_]
    confusion: NDArray[np.float64]


def make_crowd(design: CrowdDesign, seed: int | Sequence[int]) -> Crowd:
    """Draw one."""
    rng = np.random.default_rng(seed)
    people = _people(design, rng)
    viewers = _viewers(design, rng)
    marks, looked = _Marks([], [], [], [], [], []), []
    objects: dict[str, int] = {}
    categories: list[int] = []
    for at, who in enumerate(viewers):
        image = f"image{at:04d}"
        there = 0 if rng.random() < design.empty else int(rng.poisson(_expected(design, rng)))
        objects[image] = there
        places, kinds = _places(design, there, rng), _categories(design, there, rng)
        for p in who:
            looked.append((image, people.names[p]))
            _look(design, people, rng, p, places, kinds, len(categories), marks)
            marks.image.extend([image] * (len(marks.truth) - len(marks.image)))
        categories.extend(kinds.tolist())
    truth = np.array(marks.truth)
    real = truth >= 0
    truth[~real] = len(categories) + np.arange(np.count_nonzero(~real))
    items = with_looks(_items(design, marks, truth), looked)
    looks = np.bincount(np.concatenate(viewers), minlength=len(people.names))
    sensitivity = _sensitivity(design, people.skill)
    return Crowd(
        items, people.names, sensitivity, people.false, people.spammer, looks, objects, real,
        np.array(categories, np.int64), people.confusion,
    )  # fmt: skip


def _people(design: CrowdDesign, rng: np.random.Generator) -> _People:
    count = design.volunteers + design.newcomers
    names = tuple(f"v{number:03d}" for number in range(1, count + 1))
    spammer = np.zeros(count, bool)
    spammer[rng.choice(design.volunteers, design.spammers, replace=False)] = True
    skill = np.full(count, design.of_spammers)
    even = np.linspace(0.0, 1.0, count - design.spammers) ** design.poor
    skill[~spammer] = rng.permutation(design.lowest + (design.highest - design.lowest) * even)
    false = rng.uniform(design.false_low, design.false_high, count)
    false[spammer] = design.false_spam
    kinds = design.categories
    confusion = np.zeros((count, kinds, kinds))
    for p, right in enumerate(rng.uniform(design.accuracy_low, design.accuracy_high, count)):
        if kinds:
            confusion[p] = (1.0 - right) / max(kinds - 1, 1)
            np.fill_diagonal(confusion[p], right)
            if spammer[p]:
                confusion[p] = 1.0 / kinds
    return _People(names, skill, false, spammer, confusion)


def _viewers(design: CrowdDesign, rng: np.random.Generator) -> list[list[int]]:
    """Who looks at each image; newcomers come besides."""
    who = [
        rng.choice(design.volunteers, design.looks, replace=False).tolist()
        for _ in range(design.images)
    ]
    for number in range(design.newcomers):
        for at in rng.choice(design.images, rng.integers(2, 4), replace=False):
            who[at].append(design.volunteers + number)
    return who


def _expected(design: CrowdDesign, rng: np.random.Generator) -> float:
    """Objects that are expected on an image that is not empty."""
    if design.spread == 0.0:
        return design.objects
    return float(design.objects * rng.gamma(design.spread) / design.spread)


def _categories(design: CrowdDesign, count: int, rng: np.random.Generator) -> NDArray[np.int64]:
    if not design.categories:
        return np.full(count, -1)
    share = 0.5 ** np.arange(design.categories)
    return rng.choice(design.categories, count, p=share / share.sum())


def _logit(
    design: CrowdDesign, skill: NDArray[np.float64], log_size: NDArray[np.float64]
) -> NDArray[np.float64]:
    return np.asarray(np.log(skill / (1.0 - skill)) + design.by_size * (log_size - design.log_size))


def _sensitivity(design: CrowdDesign, skill: NDArray[np.float64]) -> NDArray[np.float64]:
    """The probability to find an object, over all sizes."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(41)
    sizes = design.log_size + design.log_size_sd * nodes
    found = 1.0 / (1.0 + np.exp(-_logit(design, skill[:, np.newaxis], sizes)))
    return np.asarray(found @ weights / weights.sum())


def _look(
    design: CrowdDesign,
    people: _People,
    rng: np.random.Generator,
    p: int,
    places: NDArray[np.float64],
    kinds: NDArray[np.int64],
    first: int,
    marks: _Marks,
) -> None:
    """One volunteer marks one image, whose objects are numbered from ``first``."""
    logit = _logit(design, people.skill[p], places[:, 2])
    found = np.flatnonzero(rng.random(len(places)) < 1.0 / (1.0 + np.exp(-logit)))
    wrong = _places(replace(design, clumped=0.0), int(rng.poisson(people.false[p])), rng)
    seen = rng.normal(places[found], [design.error, design.error, design.size_error])
    marks.place.extend([*seen, *wrong])
    marks.truth.extend([*(first + found).tolist(), *[-1] * len(wrong)])
    marks.expert.extend([people.names[p]] * (len(found) + len(wrong)))
    if design.categories:
        said = [int(rng.choice(design.categories, p=people.confusion[p, kinds[i]])) for i in found]
        marks.said.extend([*said, *rng.integers(0, design.categories, len(wrong)).tolist()])
    if design.scores:
        high, low = rng.beta(5.0, 2.0, len(found)), rng.beta(2.0, 4.0, len(wrong))
        marks.score.extend([*high.tolist(), *low.tolist()])


def _places(design: CrowdDesign, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """So many x, y and log diameters."""
    across = rng.uniform(0.0, design.side, (count, 2))
    for i in np.flatnonzero(rng.random(count) < design.clumped):
        if i > 0:
            across[i] = rng.normal(across[rng.integers(i)], 3.0 * design.error)
    return np.column_stack([across, rng.normal(design.log_size, design.log_size_sd, count)])


def _items(design: CrowdDesign, marks: _Marks, truth: NDArray[np.int64]) -> Items:
    x, y, log_size = np.array(marks.place).T
    size = np.exp(log_size)
    shape = {
        "points": {"x": x, "y": y},
        "circles": {"x": x, "y": y, "diameter": size},
        "boxes": {"x": x, "y": y, "width": size, "height": size},
    }[design.kind]
    columns = {**shape, "expert": marks.expert, "image": marks.image, "truth": truth}
    said: dict[str, list[str] | list[float]] = {}
    if design.categories:
        said["category"] = [f"kind {number + 1}" for number in marks.said]
    if design.scores:
        said["score"] = marks.score
    return Items.build(columns, design.kind, said)
