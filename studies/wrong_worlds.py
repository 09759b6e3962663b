"""Crowds that no model of ours made, each wrong in one way, and one of our own for a control.

Objects lie on images at random, some easy to find and some hard; workers look at some images each.
By default the log odds that a worker finds an object are the worker's skill plus the object's ease,
errors are normal, and the number of false marks is Poisson.
``WORLDS`` names what is different in each crowd.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.items.looks import with_looks

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
#: Kinds of item that workers may mark.
KINDS = ("boxes", "points")
#: Objects, or marks, as rows of x, y, width and height.
Boxes = Floats


@dataclass(frozen=True)
class Design:
    """How large a crowd is, what its workers are like, and what is wrong with it."""

    images: int = 200
    workers: int = 60
    looks: int = 7
    kind: str = "boxes"
    #: Expected objects on an image, and the share of images without any.
    objects: float = 5.0
    empty: float = 0.15
    side: float = 1000.0
    #: Log sizes of objects, with their standard deviation.
    log_size: float = 4.3
    log_size_sd: float = 0.5
    #: Errors: of the centre in sizes, of log sizes.
    error: float = 0.06
    size_error: float = 0.08
    #: Log odds to find an object, over workers, and expected false marks of a look, over workers.
    skill: float = 0.5
    skill_sd: float = 0.9
    false_marks: float = 0.5
    false_shape: float = 2.0
    #: Share of objects that are hard to find, and by how much lower the log odds are.
    hard: float = 0.3
    harder: float = 2.0
    #: Share of careless marks, and by how much larger their errors are.
    careless: float = 0.0
    careless_factor: float = 6.0
    #: By these factors the coordinates of the first workers are scaled.
    scales: tuple[float, ...] = ()
    #: Share of objects that a worker marks a part of, and of looks with a box around a group.
    parts: float = 0.0
    groups: float = 0.0
    #: Gamma shape of the false marks of a look about the worker's rate; 0: Poisson.
    clumps: float = 0.0
    #: Workers who copy another's marks, and on what share of the images that both saw.
    copiers: int = 0
    copied: float = 0.5
    #: By how much log odds change from the first to the last image; the sign is the worker's own.
    drift: float = 0.0
    #: Standard deviation of log odds over images.
    image_sd: float = 0.0
    #: Things on an image that are no objects, and how often careless and careful people mark one.
    decoys: float = 0.0
    decoy_careless: float = 0.5
    decoy_careful: float = 0.04
    #: Whether it is known who looked.
    looks_known: bool = True


#: What differs, by name; and in words.
WORLDS: dict[str, tuple[Mapping[str, Any], str]] = {
    "our own model": ({}, "nothing is wrong"),
    "careless boxes": ({"careless": 0.1}, "one mark in ten errs six times as much"),
    "scaled browsers": (
        {"scales": (0.75, 1.25, 1.5)},
        "all coordinates of three workers are scaled, by 0.75, 1.25 and 1.5",
    ),
    "parts and groups": (
        {"parts": 0.08, "groups": 0.15},
        "8 % of the marks are of a part; on 15 % of the looks two neighbours get a box around both",
    ),
    "clumped false marks": (
        {"clumps": 0.1},
        "false marks of a look are Gamma-Poisson of shape 0.1 about the worker's rate",
    ),
    "copied work": (
        {"copiers": 10, "copied": 0.5},
        "ten workers copy another's marks on half of the images that both saw",
    ),
    "drifting skills": (
        {"drift": 2.5},
        "log odds to find an object rise or fall by 2.5 from the first to the last image",
    ),
    "looks unknown": (
        {"looks_known": False, "objects": 2.0, "empty": 0.5, "skill": 1.0, "false_marks": 0.3},
        "nobody recorded who looked; half of the images are empty, the others have two objects",
    ),
    "hard images": ({"image_sd": 1.5}, "log odds differ between images, sd 1.5"),
    "decoys": (
        {"decoys": 1.5},
        "1.5 decoys an image, which two workers in five mark with chance ½, the others 0.04",
    ),
}


@dataclass(frozen=True)
class World:
    """A crowd and its truth."""

    items: Items
    #: All objects, also those that nobody marked.
    truth: dict[str, Any]
    #: The object of each mark, -1 for a false one.
    source: Whole


@dataclass
class _Made:
    """Marks as they are made."""

    image: list[str]
    expert: list[str]
    boxes: list[Boxes]
    source: list[Whole]

    def add(self, image: str, expert: str, boxes: Boxes, source: Whole) -> None:
        self.image += [image] * len(boxes)
        self.expert += [expert] * len(boxes)
        self.boxes.append(boxes)
        self.source.append(source)


@dataclass(frozen=True)
class _Workers:
    """What each worker is like."""

    names: tuple[str, ...]
    skill: Floats
    false: Floats
    scale: Floats
    drift: Floats
    careless: NDArray[np.bool_]


def design_of(name: str, base: Design) -> Design:
    """The design of a named world."""
    return replace(base, **WORLDS[name][0])


def make_world(design: Design, seed: Any) -> World:
    """Draw one."""
    rng = np.random.default_rng(seed)
    people, made = _workers(design, rng), _Made([], [], [], [])
    looked: list[tuple[str, str]] = []
    images, objects, first = [], [], 0
    for at in range(design.images):
        name = f"image{at:04d}"
        count = 0 if rng.random() < design.empty else int(rng.poisson(design.objects))
        there, decoys = (
            _things(design, count, rng),
            _things(design, rng.poisson(design.decoys), rng),
        )
        logit = np.where(rng.random(count) < design.hard, -design.harder, 0.0)
        if design.image_sd:
            logit += rng.normal(0.0, design.image_sd)
        progress = at / max(design.images - 1, 1) - 0.5
        who = _who_looks(design, rng)
        looked += [(name, people.names[p]) for p in who]
        marks = {
            p: _look(design, people, rng, p, there, decoys, logit + progress * people.drift[p])
            for p in who
        }
        _copy(design, rng, marks)
        for p, (boxes, source) in marks.items():
            made.add(name, people.names[p], boxes, np.where(source >= 0, source + first, -1))
        images += [name] * count
        objects.append(there)
        first += count
    return _world(design, made, looked, images, np.vstack(objects))


def _workers(design: Design, rng: np.random.Generator) -> _Workers:
    count = design.workers
    scale = np.ones(count)
    scale[: len(design.scales)] = design.scales[:count]
    return _Workers(
        tuple(f"w{number:03d}" for number in range(1, count + 1)),
        rng.normal(design.skill, design.skill_sd, count),
        rng.gamma(design.false_shape, design.false_marks / design.false_shape, count),
        scale,
        design.drift * rng.choice([-1.0, 1.0], count),
        rng.random(count) < 0.4,
    )


def _who_looks(design: Design, rng: np.random.Generator) -> list[int]:
    """Workers of one image; whoever copies comes with the one that is copied, who is before."""
    chosen = rng.choice(design.workers, min(design.looks, design.workers), replace=False).tolist()
    if design.copiers:
        victims = [p for p in chosen if p < design.copiers]
        # Worker p is copied by worker copiers + p, who takes the place of somebody else.
        wanted = [p + design.copiers for p in victims if p + design.copiers < design.workers]
        others = [p for p in chosen if p not in victims and p not in wanted]
        chosen = [*victims, *wanted, *others][: len(chosen)]
    return list(dict.fromkeys(chosen))


def _things(design: Design, count: int, rng: np.random.Generator) -> Boxes:
    """Objects, decoys and false marks are alike."""
    sizes = np.exp(rng.normal(design.log_size, design.log_size_sd, (count, 1)))
    sides = sizes * np.exp(rng.normal(0.0, 0.25, (count, 2)))
    return np.hstack([rng.uniform(0.0, design.side, (count, 2)), sides])


def _look(
    design: Design,
    people: _Workers,
    rng: np.random.Generator,
    p: int,
    there: Boxes,
    decoys: Boxes,
    easier: Floats,
) -> tuple[Boxes, Whole]:
    """One worker's marks on one image, and the object of each."""
    found = rng.random(len(there)) < 1.0 / (1.0 + np.exp(-(people.skill[p] + easier)))
    seen, source = there[found], np.flatnonzero(found)
    boxes = _drawn(design, rng, seen)
    boxes = _parts(design, rng, boxes)
    boxes, source = _groups(design, rng, boxes, source)
    rate = people.false[p]
    if design.clumps:
        rate *= rng.gamma(design.clumps) / design.clumps
    wrong = _things(design, int(rng.poisson(rate)), rng)
    chance = design.decoy_careless if people.careless[p] else design.decoy_careful
    taken = _drawn(design, rng, decoys[rng.random(len(decoys)) < chance])
    boxes = np.vstack([boxes, wrong, taken]) * people.scale[p]
    none = np.full(len(wrong) + len(taken), -1)
    return boxes, np.concatenate([source, none]).astype(np.int64)


def _drawn(design: Design, rng: np.random.Generator, boxes: Boxes) -> Boxes:
    """The same with errors, some of them large."""
    factor = np.where(rng.random((len(boxes), 1)) < design.careless, design.careless_factor, 1.0)
    centre = boxes[:, :2] + factor * design.error * boxes[:, 2:] * rng.standard_normal(
        (len(boxes), 2)
    )
    grown = np.exp(factor * design.size_error * rng.standard_normal((len(boxes), 2)))
    return np.hstack([centre, boxes[:, 2:] * grown])


def _parts(design: Design, rng: np.random.Generator, boxes: Boxes) -> Boxes:
    """Some boxes are around a half of their object, to the left or right, above or below."""
    boxes = boxes.copy()
    for row in np.flatnonzero(rng.random(len(boxes)) < design.parts):
        axis, side = rng.integers(2), rng.choice([-1.0, 1.0])
        boxes[row, axis] += 0.25 * side * boxes[row, 2 + axis]
        boxes[row, 2 + axis] *= 0.5
    return boxes


def _groups(
    design: Design, rng: np.random.Generator, boxes: Boxes, source: Whole
) -> tuple[Boxes, Whole]:
    """On some looks one box is around two neighbours, instead of theirs; it is of neither."""
    if len(boxes) < 2 or rng.random() >= design.groups:
        return boxes, source
    one = int(rng.integers(len(boxes)))
    away = np.hypot(*(boxes[:, :2] - boxes[one, :2]).T)
    away[one] = np.inf
    other = int(np.argmin(away))
    pair = boxes[[one, other]]
    low = (pair[:, :2] - pair[:, 2:] / 2.0).min(axis=0)
    high = (pair[:, :2] + pair[:, 2:] / 2.0).max(axis=0)
    rest = np.setdiff1d(np.arange(len(boxes)), [one, other])
    around = np.concatenate([(low + high) / 2.0, high - low])
    return np.vstack([boxes[rest], around]), np.append(source[rest], -1)


def _copy(design: Design, rng: np.random.Generator, marks: dict[int, tuple[Boxes, Whole]]) -> None:
    """Whoever copies has the other's marks instead of their own, moved by a hair."""
    for p in range(design.copiers):
        copier = p + design.copiers
        if p in marks and copier in marks and rng.random() < design.copied:
            boxes, source = marks[p]
            moved = boxes.copy()
            moved[:, :2] += rng.normal(0.0, 0.5, (len(boxes), 2))
            marks[copier] = (moved, source)


def _world(
    design: Design,
    made: _Made,
    looked: list[tuple[str, str]],
    images: list[str],
    objects: Boxes,
) -> World:
    names = ("x", "y") if design.kind == "points" else ("x", "y", "width", "height")
    boxes = np.vstack(made.boxes)
    columns: dict[str, Any] = {name: boxes[:, k] for k, name in enumerate(names)}
    columns |= {"expert": made.expert, "image": made.image}
    items = Items.build(columns, design.kind)
    if design.looks_known:
        items = with_looks(items, looked)
    truth: dict[str, Any] = {name: objects[:, k] for k, name in enumerate(names)}
    return World(items, {**truth, "image": np.array(images)}, np.concatenate(made.source))
