"""Different objects that are alike in several fields at once: families, series, kinds of people.

By the ratios R_f of fields alone (``kernel``), two objects would agree in one field as if they did
not agree in another. But two of a household share name, address and telephone. Records of one
source are different objects, so their pairs tell how often. A share ρ_r of the pairs is of relation
r, in which two have the true value of field f in common with probability λ_rf. Of two objects

    p(values) / Π_f p(values of f) = e^D = 1 - Σ_r ρ_r + Σ_r ρ_r Π_f (1 - λ_rf + λ_rf R_f),

so what speaks for one object is not Σ log R_f but Σ log R_f - D. A cluster of n records has
Σ log R_f - (2 / n) Σ_pairs D: n - 1 times the mean D of its pairs. ρ and λ are found before the
chains start, by EM, and relations are added one by one as long as each makes the pairs of one
source much more probable. D counts where it is positive.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: Relations at most, rounds of EM for each, and what a relation must add to the log likelihood, for
#: each of its parameters.
MOST, ROUNDS, WORTHWHILE = 3, 30, 3.0
#: Pairs that the prior of ρ and of each λ is worth.
WORTH = 1.0
#: Bounds of log R_f and of D, so that products stay finite.
LARGEST = 300.0
#: D that is not worth an entry.
NEGLIGIBLE = 1e-3


@dataclass(frozen=True)
class Relations:
    """Relations of different objects."""

    #: ρ of each, and λ of each in every field.
    share: Floats
    common: Floats

    @staticmethod
    def none(fields: int) -> Relations:
        """No relation."""
        return Relations(np.empty(0), np.empty((0, fields)))

    def excess(self, factors: Floats) -> Floats:
        """D of pairs by the log R_f of every field, (fields, pairs); 0 where it is negative."""
        log_ratio = _log_ratios(self.common, factors)
        with np.errstate(divide="ignore"):
            parts = np.log(self.share)[:, None] + log_ratio
            rest = np.full((1, factors.shape[1]), np.log1p(-self.share.sum()))
        return np.maximum(np.logaddexp.reduce(np.concatenate([rest, parts]), axis=0), 0.0)


def _log_ratios(common: Floats, factors: Floats) -> Floats:
    """Σ_f log(1 - λ + λ R_f) of each relation, (relations, pairs)."""
    found = np.zeros((len(common), factors.shape[1]))
    for field, log_r in enumerate(factors):
        added = common[:, field, None] * np.expm1(np.minimum(log_r, LARGEST))[None, :]
        found += np.log1p(np.maximum(added, -1.0 + 1e-12))
    return np.minimum(found, LARGEST)


def learn_relations(factors: Floats, weight: Floats) -> Relations:
    """From pairs of different objects: log R_f, (fields, pairs), and how many each stands for."""
    fields = len(factors)
    found, best = Relations.none(fields), 0.0
    ratio = np.exp(np.clip(factors, -LARGEST, LARGEST))
    for _ in range(MOST):
        start = Relations(
            np.append(found.share, 0.01), np.vstack([found.common, np.full((1, fields), 0.5)])
        )
        tried, value = _expect(start, factors, ratio, weight)
        if value - best < WORTHWHILE * (fields + 1.0):
            break
        found, best = tried, value
    return found


def _expect(
    start: Relations, factors: Floats, ratio: Floats, weight: Floats
) -> tuple[Relations, float]:
    """EM from a start, and the log likelihood over that without relations."""
    share, common, total = start.share, start.common, float(weight.sum())
    value = 0.0
    for _ in range(ROUNDS):
        log_ratio = _log_ratios(common, factors)
        parts = np.log(np.maximum(share, 1e-300))[:, None] + log_ratio
        rest = np.full((1, factors.shape[1]), np.log1p(-share.sum()))
        every = np.logaddexp.reduce(np.concatenate([rest, parts]), axis=0)
        value = float(weight @ every)
        probable = weight * np.exp(parts - every)
        count = probable.sum(axis=1)
        for field in range(len(factors)):
            both = common[:, field, None] * ratio[field][None, :]
            in_common = both / (1.0 - common[:, field, None] + both)
            hits = (probable * in_common).sum(axis=1)
            common[:, field] = (hits + 0.5 * WORTH) / (count + WORTH)
        share = count / (total + WORTH)
    return Relations(share, common), value
