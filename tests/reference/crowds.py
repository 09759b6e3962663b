"""Crowds of which everything is known: boxes or circles by experts who looked at some images.

Drawn from the model itself (scatter whose variance has the law of the model, objects of two
classes, false marks at one rate for each expert), or made wrong in one way.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from dfcrp.items.items import Items

#: Objects lie in a square of this side; their log size is normal about the log of a tenth of it.
SIDE, SHAPE = 1000.0, 2.5


@dataclass(frozen=True)
class Crowd:
    """How to make one; the defaults are the model."""

    images: int = 24
    experts: int = 10
    looks: int = 6
    objects: float = 7.0
    #: Chance to find an object, of each class, for the usual expert; spread of experts (logit).
    ease: tuple[float, float] = (2.0, -0.2)
    skill_sd: float = 0.4
    false: float = 0.6
    #: Scatter relative to the size; the share of careless boxes, and how much more they scatter.
    scatter: float = 0.04
    careless: float = 0.0
    wild: float = 8.0
    #: Of each look, the chance that it has many false marks, and how many.
    clumps: float = 0.0
    clump: float = 8.0
    #: Expert 1 copies this share of what expert 0 has, on the images of both.
    copied: float = 0.0
    #: Share of looks at which nothing is marked.
    skipped: float = 0.0

    def draw(self, seed: int) -> tuple[Items, list[tuple[str, str]]]:
        """Boxes, and who looked at what."""
        rng = np.random.default_rng(seed)
        skill = rng.normal(0.0, self.skill_sd, self.experts)
        rows: list[tuple[Any, ...]] = []
        looked = []
        for image in range(self.images):
            places = self._objects(rng)
            spread = np.sqrt(SHAPE / rng.gamma(SHAPE, size=(len(places), 3)))
            hard = rng.random(len(places)) < 0.5
            who = np.sort(rng.choice(self.experts, self.looks, replace=False))
            marks: dict[int, np.ndarray] = {}
            for f in who.tolist():
                looked.append((f"i{image:02}", f"e{f}"))
                logit = np.where(hard, self.ease[1], self.ease[0]) + skill[f]
                found = rng.random(len(places)) < 1.0 / (1.0 + np.exp(-logit))
                mine = self._scattered(places[found], spread[found], rng)
                rate = self.clump if rng.random() < self.clumps else self.false
                marks[f] = np.concatenate([mine, self._objects(rng, rate)])
                if rng.random() < self.skipped:
                    marks[f] = marks[f][:0]
            if 0 in marks and 1 in marks and self.copied:
                taken = marks[0][rng.random(len(marks[0])) < self.copied]
                marks[1] = self._scattered(taken, np.full((len(taken), 3), 0.3), rng)
            rows += [(f"i{image:02}", f"e{f}", *row) for f in marks for row in marks[f].tolist()]
        columns = list(zip(*rows, strict=True))
        x, y, width, height = (np.array(one) for one in columns[2:])
        items = Items.from_columns(
            {"x": x, "y": y, "width": np.exp(width), "height": np.exp(height)},
            list(columns[1]), kind="boxes", image=list(columns[0]),
        )  # fmt: skip
        return items, looked

    def _objects(self, rng: np.random.Generator, rate: float | None = None) -> np.ndarray:
        """x, y, log width, log height."""
        count = rng.poisson(self.objects if rate is None else rate)
        size = rng.normal(np.log(0.1 * SIDE), 0.4, (count, 1))
        return np.column_stack(
            [rng.uniform(0, SIDE, (count, 2)), size + rng.normal(0.0, 0.15, (count, 2))]
        )

    def _scattered(
        self, places: np.ndarray, spread: np.ndarray, rng: np.random.Generator
    ) -> np.ndarray:
        size = np.exp(places[:, 2:].mean(axis=1, keepdims=True))
        away = rng.standard_normal(places.shape) * self.scatter * spread[:, [0, 0, 1, 2]]
        wild = rng.random(len(places)) < self.careless
        away[wild] *= self.wild
        return places + away * np.concatenate([size, size, size**0, size**0], axis=1)


Maker = Callable[[int], tuple[Items, list[tuple[str, str]]]]
