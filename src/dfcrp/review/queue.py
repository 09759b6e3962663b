"""The queue of a posterior as questions about its items, with a sentence why each is asked."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.items.decisions import QUESTIONS, split_ids
from dfcrp.posterior.explain import percent
from dfcrp.posterior.posterior import Posterior


@dataclass(frozen=True)
class ReviewQuestion:
    """Something to decide about items."""

    #: "one object" or "real", as in ``items.decisions.QUESTIONS``.
    about: str
    rows: tuple[int, ...]
    #: The probability of the answer yes.
    p: float
    #: Why it is asked.
    why: str


def questions(posterior: Posterior, n: int) -> list[ReviewQuestion]:
    """The first n of ``Posterior.review_queue``."""
    row_of = {name: row for row, name in enumerate(posterior.items.id.tolist())}
    found = []
    for one in posterior.review_queue(n).to_dict("records"):
        rows = tuple(row_of[name] for name in split_ids(one["items"]))
        about, p = QUESTIONS[one["question"]], float(one["p"])
        why = f"{_yes(about, p)} {_left(float(one['left']))}"
        found.append(ReviewQuestion(about, rows, p, why))
    return found


def _yes(about: str, p: float) -> str:
    if about == QUESTIONS["together"]:
        return f"In {percent(p)} of the draws they are one object, in the others two."
    return f"The probability that it is real is {percent(p)}."


def _left(left: float) -> str:
    """What is still unknown with the answer to this question and to those before it."""
    share = f"{100.0 * left:.1f} %" if left >= 0.001 else "less than 0.1 %"
    return f"With this answer, the number of objects is expected to be known to within {share}."
