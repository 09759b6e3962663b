"""What to ask next: pairs that share an object in half of the draws, marks that may be real."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from dfcrp.items.decisions import QUESTIONS
from dfcrp.posterior.explain import percent
from dfcrp.posterior.posterior import Posterior

#: Nobody is asked about what is as sure as this.
LEAST = 0.02


@dataclass(frozen=True)
class Question:
    """Something to decide about items."""

    #: "one object" or "real", as in ``items.decisions.QUESTIONS``.
    about: str
    rows: tuple[int, ...]
    #: The probability of the answer yes.
    p: float
    #: Why it is asked, in a sentence.
    why: str = ""


def review_queue(posterior: Posterior, n: int = 20) -> list[Question]:
    """The n most doubtful questions, no two of them about the same item."""
    every = [*_pairs(posterior), *_reality(posterior)]
    every.sort(key=lambda one: (abs(one.p - 0.5), one.rows))
    chosen: list[Question] = []
    asked: set[int] = set()
    for one in every:
        if not asked.intersection(one.rows):
            chosen.append(one)
            asked.update(one.rows)
        if len(chosen) == n:
            break
    return chosen


def _pairs(posterior: Posterior) -> Iterator[Question]:
    found = posterior.pairs
    doubtful = np.flatnonzero((found.probability > LEAST) & (found.probability < 1.0 - LEAST))
    for at in doubtful.tolist():
        rows = int(found.first[at]), int(found.second[at])
        p = float(found.probability[at])
        why = f"In {percent(p)} of the draws they are one object, in the others two."
        yield Question(QUESTIONS["together"], rows, p, why)


def _reality(posterior: Posterior) -> Iterator[Question]:
    found = posterior.detection
    if found is None:
        return
    labels, p = posterior.point_partition().labels, found.p_real_marking
    for label in np.unique(labels[(p > LEAST) & (p < 1.0 - LEAST)]).tolist():
        rows = np.flatnonzero(labels == label)
        share = float(p[rows].mean())
        if LEAST < share < 1.0 - LEAST:
            why = f"It is real with a probability of {percent(share)}."
            yield Question(QUESTIONS["real"], tuple(rows.tolist()), share, why)
