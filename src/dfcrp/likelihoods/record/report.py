"""What the report says of records: which may be of one object, how often fields are wrong, and
whether they are wrong independently of each other.

Given that two records are of one object, the model takes each field to be wrong or altered
independently of the others. Fields that change together (an address and its post code, all fields
of somebody who married and moved) break that; links then come out too sure.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.candidates import Candidates
from dfcrp.likelihoods.record.fields import Aside, Fields
from dfcrp.likelihoods.record.pilot import LEAST_SHARE, Guess
from dfcrp.markup import Column, Section, estimate_of, join, listed, paragraph, table
from dfcrp.summaries.fit import BEYOND_CHANCE, GOOD, Check, level_of
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.report.contents import Contents

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
Floats = NDArray[np.float64]
#: How many times more pairs than expected disagree in two fields or more.
MINOR, SERIOUS = 1.4, 2.0
#: Fewest linked pairs that say anything, and most that are looked at; fewest of one pair of
#: sources that are judged by rates of their own.
LEAST_PAIRS, MOST_PAIRS, LEAST_OWN = 50, 50_000, 200
#: Share of linked pairs that must be concerned.
LEAST_CONCERNED = 0.01
_SEED = 5


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
            f"By the error rates of the fields, blocking misses an estimated "
            f"{100.0 * candidates.missed:.2g} % of the matches."
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
            f"expect about {100.0 * doubt:.0f} % linkage errors: of about {guess.matches:,.0f} "
            "links that are expected, that share would be wrong or missed (by how similar the "
            f"records of one list are, about {guess.by_chance * guess.matches:,.0f} pairs of "
            "different objects look like one and have no better partner); read p_member before any "
            "link is used; learned error rates are approximate"
        )
    return found


def learned_words(found: Json) -> list[str]:
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


def faults(contents: Contents) -> Section | None:
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


def dependent_fields(posterior: Posterior) -> list[Check]:
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
    surprising = observed - predicted > max(chance, LEAST_CONCERNED)
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
