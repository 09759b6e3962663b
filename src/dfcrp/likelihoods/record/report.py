"""What the report says of records: which may be of one object, and how often fields are wrong."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.candidates import Candidates
from dfcrp.likelihoods.record.fields import Aside, Fields
from dfcrp.likelihoods.record.pilot import LEAST_SHARE, Guess
from dfcrp.markup import Column, Section, estimate_of, join, listed, paragraph, table

#: What is learned of a field, as the names of the numbers begin.
MISS, TYPO, SCALE = "miss_", "typo_", "scale_"
#: Fields that are named in a sentence.
WORST = 4
#: Share of related objects that have a field in common from which it is named.
COMMON_FIELD = 0.3
#: Values left aside that are named.
NAMED = 5
#: Share of records that are the same as another one of their list from which it is said.
MANY_REPEATED = 0.05
#: Shares of missed pairs and of doubtful links that are worth a warning.
MANY_MISSED, MUCH_DOUBT = 0.1, 0.1


def reach_words(candidates: Candidates, n: int) -> list[str]:
    """Which records could share a cluster, and what that may have cost."""
    count = f"{len(candidates.pairs):,} pairs of records were compared"
    keys = listed([f"{name} ({pairs:,} pairs)" for name, pairs in candidates.keys])
    words = [
        f"{count}: those that agree in {keys}. {candidates.alone:,} of {n:,} records have no "
        "candidate in another list."
    ]
    if candidates.missed == candidates.missed:
        words.append(
            f"By the faults of the fields an estimated {100.0 * candidates.missed:.2g} % of the "
            "pairs of one object are not among them."
        )
    return words


def kinds_words(records: Fields) -> list[str]:
    """What was taken for free text."""
    texts = [field.name for field in records.fields if field.kind == "text"]
    if not texts:
        return []
    one = len(texts) == 1
    return [
        f"The field{'' if one else 's'} {listed(texts)} {'is' if one else 'are'} compared as free "
        "text: words count by how rare they are, codes of letters and digits also by their parts."
    ]


def relation_words(names: Sequence[str], guess: Guess) -> list[str]:
    """In what different objects are alike at once."""
    found = guess.relations
    words = []
    for share, common in zip(found.share, found.common, strict=True):
        fields = [name for name, c in zip(names, common, strict=True) if c > COMMON_FIELD]
        fields = [name for at, name in enumerate(names) if at in found.spread or name in fields]
        if len(fields) > 1:
            words.append(f"in {listed(fields)} (one pair in {1.0 / share:,.0f})")
    if not words:
        return []
    return [
        "Different records of one list are more often alike in several fields at once than these "
        f"fields are one by one: {'; '.join(words)}. Such likeness counts the less for a link."
    ]


def aside_words(aside: Sequence[Aside], ids: Sequence[str]) -> list[str]:
    """Which values are left aside."""
    if not aside:
        return []
    named = [
        f"{one.value!r} in {one.column} of record {ids[one.row]}, which is no {one.what}"
        for one in aside[:NAMED]
    ]
    more = f", and {len(aside) - NAMED:,} more" if len(aside) > NAMED else ""
    count = "A value is" if len(aside) == 1 else f"{len(aside):,} values are"
    return [f"{count} left aside, as if missing: {'; '.join(named)}{more}."]


@dataclass(frozen=True)
class Repeated:
    """Records with the same values as another one of their list: how many, and two of them."""

    rows: int
    one: str = ""
    other: str = ""

    @staticmethod
    def of(records: Fields, source: NDArray[np.int64], ids: Sequence[str]) -> Repeated:
        """None where sources have one record each."""
        known = np.flatnonzero((records.codes >= 0).any(axis=1))
        both = np.column_stack([source, records.codes])[known]
        which, count = np.unique(both, axis=0, return_inverse=True, return_counts=True)[1:]
        again = np.flatnonzero(count[which.ravel()] > 1)
        if not len(again):
            return Repeated(0)
        same = known[which.ravel() == which.ravel()[again[0]]]
        return Repeated(len(again), ids[same[0]], ids[same[1]])


def alike_elsewhere(records: Fields, pairs: NDArray[np.int64], source: NDArray[np.int64]) -> int:
    """Records that have half of their values in common with a candidate of another source."""
    pairs = pairs[source[pairs[:, 0]] != source[pairs[:, 1]]]
    one, other = records.codes[pairs[:, 0]], records.codes[pairs[:, 1]]
    same = ((one == other) & (one >= 0)).sum(axis=1)
    found = np.zeros(len(source), np.bool_)
    for end, codes in ((0, one), (1, other)):
        found[pairs[2 * same >= np.maximum((codes >= 0).sum(axis=1), 1), end]] = True
    return int(found.sum())


def repeated_words(found: Repeated, n: int) -> list[str]:
    """What to know of lists with records that are the same."""
    if found.rows <= MANY_REPEATED * n:
        return []
    return [
        f"{found.rows:,} of {n:,} records have the same values in all their fields as another "
        f"record of the same list (records {found.one} and {found.other}, for example). No list is "
        "thought to have an object twice, so at most one of such records is linked, and it cannot "
        "be told which; if they are one object, keep one of them."
    ]


def doubts(candidates: Candidates, guess: Guess, n: int, alike: int) -> list[str]:
    """What to warn of before the chains start; ``alike`` is of ``alike_elsewhere``."""
    found = []
    if candidates.missed > MANY_MISSED:
        found.append(
            f"an estimated {100.0 * candidates.missed:.0f} % of the pairs of records of one object "
            f"are not compared ({len(candidates.pairs):,} pairs are, and {candidates.alone:,} of "
            f"{n:,} records have no candidate in another list): name fields that records of one "
            "object agree in with likelihood.keys, or give pairs with --candidates"
        )
    elif not len(candidates.pairs) and n > 1:
        found.append(
            "no two records agree in any key, so that none can be of one object: name fields that "
            "records of one object agree in with likelihood.keys, or give pairs with --candidates"
        )
    if guess.matches <= LEAST_SHARE * n and (alike or guess.matches > 0.0):
        although = (
            f" (about {guess.matches:,.0f} links are expected), although {alike:,} of {n:,} "
            "records have the same value in half of their fields or more as one of another list"
        )
        found.append(
            "hardly any record has a match on another list, as far as the fields tell"
            f"{although if alike else ''}: if there should be more, this answer is of no use; look "
            "whether the same columns mean the same on every list, and leave out fields that are "
            "not about the object"
        )
        return found
    doubt = max(guess.doubt, guess.by_chance)
    if doubt > MUCH_DOUBT and doubt * guess.matches >= 1.0:
        found.append(
            f"the fields tell records apart poorly: of about {guess.matches:,.0f} links that are "
            f"expected, {100.0 * doubt:.0f} % would be wrong or missed by the best guess (by how "
            "similar the records of one list are, about "
            f"{guess.by_chance * guess.matches:,.0f} pairs of different objects look like one and "
            "have no better partner); read p_member before any link is used, and take the learned "
            "rates of faults as rough"
        )
    return found


def learned_words(found: Mapping[str, Any]) -> list[str]:
    """The most frequent faults."""
    rates = {
        name: rate
        for name, rate in found.items()
        if name.startswith((MISS, TYPO)) and not name.endswith(")")
    }
    worst = sorted(rates, key=lambda name: -rates[name]["mean"])[:WORST]
    words = ", ".join(
        f"{'wrong values' if name.startswith(MISS) else 'altered values'} in "
        f"{name.removeprefix(MISS).removeprefix(TYPO)} ({found[name]['mean']:.2g} %)"
        for name in worst
    )
    return [f"Learned from the data, the most frequent faults: {words}."]


def faults(contents: Any) -> Section | None:
    """The learned rates, field by field."""
    posterior = contents.posterior
    found = posterior.tolerances
    if not found:
        return None
    fields = [name.removeprefix(MISS) for name in found if name.startswith(MISS)]
    rows = []
    for field in fields:
        cells: list[object] = [field]
        for fault in (TYPO, MISS, SCALE):
            rate = found.get(fault + field)
            cells += ("", "") if rate is None else estimate_of(rate, 2).cells
        rows.append(cells)
    columns = [
        Column("field", number=False),
        Column("altered, %"),
        Column("95 %"),
        Column("wrong, %"),
        Column("95 %"),
        Column("error"),
        Column("95 %"),
    ]
    caption = (
        "Faults in percent of the values of a field. An altered value has a typo, is abbreviated "
        "or, of a number or place, measured with the error given (one standard deviation; of a "
        "place in km); wrong is any other value than that of the object."
    )
    words = [paragraph(words) for words in posterior.likelihood.learned_words(found)]
    body = join([*words, table(columns, rows, caption)])
    return Section("learned", "How often are fields wrong?", body)
