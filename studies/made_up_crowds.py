"""Crowds whose truth is known: images, some of them empty, and volunteers of known skill.

Every image is looked at by a few volunteers, chosen at random. A volunteer marks each object of
the image with the probability of their skill, off by a normal error, and makes a few markings
where there is nothing. Spammers hardly find anything and mark at random.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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


class _Marks(NamedTuple):
    image: list[str]
    expert: list[str]
    place: list[NDArray[np.float64]]
    truth: list[int]


def make_crowd(design: CrowdDesign, seed: int | Sequence[int]) -> Crowd:
    """Draw one."""
    rng = np.random.default_rng(seed)
    count = design.volunteers
    names = tuple(f"v{number:03d}" for number in range(1, count + 1))
    spammer = np.zeros(count, bool)
    spammer[rng.choice(count, design.spammers, replace=False)] = True
    skill = np.full(count, design.of_spammers)
    skill[~spammer] = rng.permutation(
        np.linspace(design.lowest, design.highest, count - design.spammers)
    )
    false = rng.uniform(design.false_low, design.false_high, count)
    false[spammer] = design.false_spam
    marks, looked = _Marks([], [], [], []), []
    objects, number, n_looks = {}, 0, np.zeros(count, np.int64)
    for at in range(design.images):
        image = f"image{at:04d}"
        there = 0 if rng.random() < design.empty else int(rng.poisson(design.objects))
        objects[image] = there
        places = _places(design, there, rng)
        for p in rng.choice(count, design.looks, replace=False):
            n_looks[p] += 1
            looked.append((image, names[p]))
            found = np.flatnonzero(rng.random(there) < skill[p])
            wrong = _places(design, int(rng.poisson(false[p])), rng)
            seen = rng.normal(places[found], [design.error, design.error, design.size_error])
            marks.place.extend([*seen, *wrong])
            marks.truth.extend([*(number + found).tolist(), *[-1] * len(wrong)])
            marks.image.extend([image] * (len(found) + len(wrong)))
            marks.expert.extend([names[p]] * (len(found) + len(wrong)))
        number += there
    truth = np.array(marks.truth)
    real = truth >= 0
    truth[~real] = number + np.arange(np.count_nonzero(~real))
    items = with_looks(_items(design, marks, truth), looked)
    return Crowd(items, names, skill, false, spammer, n_looks, objects, real)


def _places(design: CrowdDesign, count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """So many x, y and log diameters."""
    across = rng.uniform(0.0, design.side, (count, 2))
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
    return Items.build(columns, design.kind)
