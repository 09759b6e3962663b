"""Does the model fit? Checks of what users rely on, each with a size and a sentence.

A check compares something that can be counted in the data with the same in new data from the fitted
model. With much data every model is off by a little, so that a small probability alone says
nothing: a check is *minor* or *serious* only if the difference is beyond chance and large enough to
matter to whoever reads the answers.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.markup import counted
from dfcrp.values import Array, Json

GOOD, MINOR, SERIOUS = "good", "minor", "serious"
#: Draws, of all chains together, that checks look at.
FIT_DRAWS = 50
#: Labels in memory at a time; of more items fewer draws are looked at, but so many at least.
MAX_LABELS, LEAST_DRAWS = 20_000_000, 12
#: A difference of so many standard deviations is beyond chance.
BEYOND_CHANCE = 3.5


@dataclass(frozen=True)
class Check:
    """One comparison of data and model."""

    check: str
    observed: float
    #: What the model expects, and the 95 % interval of it; NaN where it expects nothing.
    predicted: float
    lo: float
    hi: float
    #: How large the difference is, in the unit that the words name.
    size: float
    #: "good", "minor" or "serious".
    level: str
    #: What is off, which numbers not to trust, what to try.
    words: str
    #: In a few words each, what not to trust if this is serious.
    distrust: tuple[str, ...] = ()

    def as_dict(self) -> Json:
        """As in summary.json; None where a number does not exist."""
        numbers = {name: getattr(self, name) for name in ("observed", "predicted", "lo", "hi")}
        numbers["size"] = self.size
        known = {
            name: float(value) if math.isfinite(value) else None for name, value in numbers.items()
        }
        return {"check": self.check, **known, "level": self.level, "words": self.words}


@dataclass(frozen=True)
class ModelFit:
    """All checks of a run."""

    checks: tuple[Check, ...] = ()

    def of_level(self, level: str) -> tuple[Check, ...]:
        """The checks that came out so."""
        return tuple(check for check in self.checks if check.level == level)

    @property
    def ok(self) -> bool:
        """Whether no check is serious."""
        return not self.of_level(SERIOUS)

    @property
    def distrust(self) -> str:
        """What not to trust, in a few words; nothing if all is well."""
        named = [what for check in self.of_level(SERIOUS) for what in check.distrust]
        *first, last = dict.fromkeys(named) if named else [""]
        return f"{', '.join(first)} or {last}" if first else last

    @property
    def said(self) -> tuple[str, ...]:
        """What is off, serious differences first."""
        return tuple(check.words for level in (SERIOUS, MINOR) for check in self.of_level(level))

    @property
    def sentence(self) -> str:
        """The outcome, and what not to trust."""
        return self.outcome if self.ok else f"{self.outcome} Do not trust {self.distrust}."

    @property
    def outcome(self) -> str:
        """What all checks together found."""
        serious, minor = len(self.of_level(SERIOUS)), len(self.of_level(MINOR))
        if not self.checks:
            return "Nothing could be checked."
        if serious:
            return (
                f"No: {counted(serious, 'check')} of {len(self.checks)} found a difference that "
                "matters."
            )
        if minor:
            return (
                f"Yes, but for small differences in {minor} of "
                f"{counted(len(self.checks), 'check')}."
            )
        return f"Yes: {counted(len(self.checks), 'check')} found no difference that matters."

    def as_dict(self) -> Json:
        """As in summary.json."""
        return {"ok": self.ok, "checks": [check.as_dict() for check in self.checks]}


def level_of(size: float, minor: float, serious: float, *, surprising: bool) -> str:
    """From the size of a difference; good if chance can make it."""
    if not surprising or not size >= minor:
        return GOOD
    return SERIOUS if size >= serious else MINOR


def fit_draws(draws: Draws) -> list[tuple[int, int]]:
    """Evenly spaced draws as (chain, draw); fewer of very many items."""
    wanted = min(FIT_DRAWS, max(MAX_LABELS // draws.n_markings, LEAST_DRAWS))
    each = min(max(wanted // draws.n_chains, 1), draws.n_draws)
    chosen = (2 * np.arange(each) + 1) * draws.n_draws // (2 * each)
    return [(chain, int(draw)) for chain in range(draws.n_chains) for draw in chosen]


def labels_of(draws: Draws, chosen: Sequence[tuple[int, int]]) -> NDArray[np.int32]:
    """Their labels, one row for each."""
    return np.concatenate([draws.labels(chain, at, at + 1) for chain, at in chosen])


def predicted_of(values: Array) -> tuple[float, float, float, float]:
    """Mean, ends of the 95 % interval, and standard deviation of what new data show."""
    lo, hi = np.quantile(values, [0.025, 0.975])
    return float(np.mean(values)), float(lo), float(hi), float(np.std(values))
