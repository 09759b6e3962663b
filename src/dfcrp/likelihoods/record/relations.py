"""Different objects that are alike in several fields at once: families, series, kinds of people.

By the ratios R_f of fields alone (``kernel``), two objects would agree in one field as if they did
not agree in another. But two of a household share name, address and telephone. Records of one
source are different objects, so their pairs tell how often. A share ρ_r of the pairs is of relation
r, in which two have the true value of field f in common with probability λ_rf. Of two objects

    p(values) / Π_f p(values of f) = e^D = 1 - Σ_r ρ_r + Σ_r ρ_r Π_f (1 - λ_rf + λ_rf R_f),

so what speaks for one object is not Σ log R_f but Σ log R_f - D. Free texts of related objects need
not be versions of one text: there T_rf(s) / F(s) stands for the factor of f, with the similarities
s of a relation distributed as T, and F as in ``texts``.

A cluster of n records has Σ log R_f - (2 / n) Σ_pairs D: n - 1 times the mean D of its pairs. ρ, λ
and T are found before the chains start, by EM, and relations are added one by one as long as each
makes the pairs of one source much more probable. D counts where it is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Relations at most, rounds of EM for each, and what a relation must add to the log likelihood, for
#: each of its parameters.
MOST, ROUNDS, WORTHWHILE = 3, 30, 3.0
#: Pairs that the prior of ρ, of each λ and of each T is worth.
WORTH = 1.0
#: Bounds of log R_f and of D, so that products stay finite.
LARGEST = 300.0
#: D that is not worth an entry.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Alike:
    """How pairs of records are alike in every field."""

    #: log R_f, (fields, pairs).
    factors: Floats
    #: Of free texts: their class of similarity, -1 where one is missing; and F. By field.
    classes: dict[int, Ints]
    chance: dict[int, Floats]


@dataclass(frozen=True)
class Relations:
    """Relations of different objects."""

    #: ρ of each, and λ of each in every field.
    share: Floats
    common: Floats
    #: Of free texts: T of each, (relations, classes of similarity). By field.
    spread: dict[int, Floats]

    @staticmethod
    def none(fields: int) -> Relations:
        """A law without relations: different objects agree by chance alone."""
        return Relations(np.empty(0), np.empty((0, fields)), {})

    def log_parts(self, alike: Alike) -> Floats:
        """log of every part of e^D, (relations + 1, pairs), that of no relation last."""
        if not len(self.share):
            return np.zeros((1, alike.factors.shape[1]))
        found = np.log(np.maximum(self.share, 1e-300))[:, None] + np.zeros(alike.factors.shape[1])
        for field, log_r in enumerate(alike.factors):
            if field in alike.classes:
                ratio = np.log(self.spread[field] / alike.chance[field])
                known = alike.classes[field] >= 0
                found[:, known] += ratio[:, alike.classes[field][known]]
            else:
                ratio = np.expm1(np.minimum(log_r, LARGEST))[None, :]
                added = self.common[:, field, None] * ratio
                found += np.log1p(np.maximum(added, -1.0 + 1e-12))
        none = np.full((1, found.shape[1]), np.log1p(-self.share.sum()))
        return np.concatenate([np.minimum(found, LARGEST), none])

    def excess(self, alike: Alike) -> Floats:
        """D of pairs; 0 where it is negative."""
        return np.maximum(np.logaddexp.reduce(self.log_parts(alike), axis=0), 0.0)

    def with_another(self, alike: Alike) -> Relations:
        """These and a new one, from which EM starts."""
        one = np.full((1, len(alike.factors)), 0.5)
        spread = {}
        for field, chance in alike.chance.items():
            start = np.sqrt(chance)[None, :] / np.sqrt(chance).sum()
            spread[field] = np.concatenate([self.spread.get(field, start[:0]), start])
        return Relations(np.append(self.share, 0.01), np.vstack([self.common, one]), spread)


def learn_relations(alike: Alike, weight: Floats) -> Relations:
    """From pairs of different objects, and how many each stands for."""
    fields = len(alike.factors)
    found, best = Relations.none(fields), np.zeros(len(weight))
    for _ in range(MOST):
        tried, value = _expect(found.with_another(alike), alike, weight)
        added = value - best
        # Chance adds as much again for each of the pairs that one stands for.
        stands = float(weight**2 @ added**2) / max(float(weight @ added**2), 1e-300)
        if weight @ added < WORTHWHILE * (fields + 1.0) * max(stands, 1.0):
            break
        found, best = tried, value
    return found


def _expect(start: Relations, alike: Alike, weight: Floats) -> tuple[Relations, Floats]:
    """EM from a start, and log p of every pair over that without relations."""
    found, every = start, np.zeros(len(weight))
    ratio = np.exp(np.clip(alike.factors, -LARGEST, LARGEST))
    for _ in range(ROUNDS):
        parts = found.log_parts(alike)
        every = np.logaddexp.reduce(parts, axis=0)
        probable = weight * np.exp(parts[:-1] - every)
        common, spread = found.common.copy(), {}
        for field, of_field in enumerate(ratio):
            if field in alike.classes:
                spread[field] = _spread(probable, alike.classes[field], alike.chance[field])
                continue
            both = common[:, field, None] * of_field[None, :]
            hits = (probable * both / (1.0 - common[:, field, None] + both)).sum(axis=1)
            common[:, field] = (hits + 0.5 * WORTH) / (probable.sum(axis=1) + WORTH)
        share = probable.sum(axis=1) / (weight.sum() + WORTH)
        found = Relations(share, common, spread)
    return found, every


def _spread(probable: Floats, classes: Ints, chance: Floats) -> Floats:
    """T of every relation, evened out over neighbouring classes; by chance where there is none."""
    known = classes >= 0
    rows = []
    for weight in probable:
        count = np.bincount(classes[known], weights=weight[known], minlength=len(chance))
        wide = np.pad(count[1:], 1, mode="edge")
        count[1:] = 0.25 * wide[:-2] + 0.5 * wide[1:-1] + 0.25 * wide[2:]
        rows.append((count + WORTH * chance) / (count.sum() + WORTH))
    return np.stack(rows)
