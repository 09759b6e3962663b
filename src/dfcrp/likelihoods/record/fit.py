"""Do the fields of linked records disagree independently of each other?

Given that two records are of one object, the model takes each field to be wrong or altered
independently of the others. Fields that change together (an address and its post code, all fields
of somebody who married and moved) break that; links then come out too sure.
"""

from __future__ import annotations

from itertools import combinations
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.summaries.fit import BEYOND_CHANCE, GOOD, Check, level_of

Floats = NDArray[np.float64]

#: How many times more pairs than expected disagree in two fields or more.
MINOR, SERIOUS = 1.4, 2.0
#: Fewest linked pairs that say anything, and most that are looked at; fewest of one pair of
#: sources that are judged by rates of their own.
LEAST_PAIRS, MOST_PAIRS, LEAST_OWN = 50, 50_000, 200
#: Share of linked pairs that must be concerned.
LEAST_SHARE = 0.01
_SEED = 5


def dependent_fields(posterior: Any) -> list[Check]:
    """Linked pairs that disagree in two fields or more, beside what independence predicts."""
    items = posterior.items
    first, second = _linked(posterior.point_partition().labels, items.families)
    if len(first) < LEAST_PAIRS or len(items.columns) < 2:
        return []
    values = list(items.columns.values())
    known = np.stack([(one[first] != "") & (one[second] != "") for one in values], axis=1)
    wrong = known & np.stack([one[first] != one[second] for one in values], axis=1)
    rates = _rates(wrong, known, items.families[first], items.families[second])
    observed = float(np.mean(wrong.sum(axis=1) >= 2))
    several = _two_or_more(rates)
    predicted = float(several.mean())
    sd = float(np.sqrt((several * (1.0 - several)).sum())) / len(first)
    size = observed / max(predicted, 1.0 / len(first))
    # Few are Poisson rather than normal: the second term of Cornish and Fisher.
    chance = BEYOND_CHANCE * sd + (BEYOND_CHANCE**2 - 1.0) / 6.0 / len(first)
    surprising = observed - predicted > max(chance, LEAST_SHARE)
    level = level_of(size, MINOR, SERIOUS, surprising=surprising)
    said = (
        f"{100.0 * observed:.1f} % of linked pairs differ in two fields or more, "
        f"{100.0 * predicted:.1f} % if fields differ independently"
    )
    words = f"Fields differ independently of each other, or nearly ({said})."
    if level != GOOD:
        together = _together(wrong, rates, list(items.columns))
        words = (
            f"Fields differ together: {said}; most of all {together}. Links come out too sure: "
            "do not trust probabilities of links near 0 and 1, nor intervals of counts. Join "
            "fields that say the same into one, or leave one of them out."
        )
    return [
        Check(
            "fields that differ together", observed, predicted,
            max(predicted - 1.96 * sd, 0.0), predicted + 1.96 * sd, size, level, words,
            ("probabilities of links",),
        )
    ]  # fmt: skip


def _linked(
    labels: NDArray[np.int32], families: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs of records of one object on different lists: each record and the next of its object."""
    order = np.argsort(labels, kind="stable")
    same = np.flatnonzero(labels[order[:-1]] == labels[order[1:]])
    first, second = order[same], order[same + 1]
    swapped = families[first] > families[second]
    first, second = np.where(swapped, second, first), np.where(swapped, first, second)
    if len(first) > MOST_PAIRS:
        chosen = np.random.default_rng(_SEED).choice(len(first), MOST_PAIRS, replace=False)
        first, second = first[chosen], second[chosen]
    return first, second


def _rates(
    wrong: NDArray[np.bool_],
    known: NDArray[np.bool_],
    first: NDArray[np.int64],
    second: NDArray[np.int64],
) -> Floats:
    """(pairs, fields): how often a field differs between these two sources; 0 where missing."""
    most = int(max(first.max(), second.max())) + 1
    _, code, count = np.unique(first * most + second, return_inverse=True, return_counts=True)
    code = np.where(count[code] >= LEAST_OWN, code + 1, 0)
    rates = np.zeros(wrong.shape)
    for own in np.unique(code):
        mine = code == own
        rates[mine] = wrong[mine].sum(axis=0) / np.maximum(known[mine].sum(axis=0), 1)
    return np.where(known, rates, 0.0)


def _two_or_more(rates: Floats) -> Floats:
    """The probability of two successes or more of independent trials, row by row."""
    none = np.prod(1.0 - rates, axis=1)
    held = np.clip(rates, 0.0, 1.0 - 1e-12)
    one = np.prod(1.0 - held, axis=1) * (held / (1.0 - held)).sum(axis=1)
    return np.asarray(np.clip(1.0 - none - one, 0.0, 1.0))


def _together(wrong: NDArray[np.bool_], rates: Floats, names: list[str]) -> str:
    """The two fields that differ together most often beyond what is expected."""
    pairs = list(combinations(range(len(names)), 2))
    more = [
        np.mean(wrong[:, a] & wrong[:, b]) - np.mean(rates[:, a] * rates[:, b]) for a, b in pairs
    ]
    a, b = pairs[int(np.argmax(more))]
    return f"{names[a]} and {names[b]}"
