"""Settings and hyperparameters of records: tables of similar values, and the law with its prior.

How values of one object come to differ is a *level* (``levels``) with probability P(level). Of two
values at a level, S(x, v) = P(level) / F, where F is how often unrelated values are at that level,
at least the share of either value. So what weighs is not how many strings a typo could lead to but
how rarely two that have nothing to do with each other are as similar as these.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import check
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.candidates import sorted_once
from dfcrp.likelihoods.record.fields import Field, Fields
from dfcrp.likelihoods.record.levels import (
    COMMON,
    ERRORS,
    LEVELS,
    NEAR,
    NEXT,
    ORDER,
    PARTS,
    SHORT,
    LevelComparison,
    chance_of_levels,
    density_of,
    length_class,
    random_pairs,
    shares_of,
)
from dfcrp.likelihoods.record.relations import NEGLIGIBLE, Alike, Relations
from dfcrp.likelihoods.record.texts import (
    BINS,
    TextComparison,
    chance_of_similarity,
    log_ratios,
    usual_similarity,
)


@dataclass(frozen=True)
class RecordSettings:
    """Kinds of fields, keys for candidates, and how often fields go wrong."""

    #: Fields of text with typing errors, parts in another order or abbreviated; of free text, in
    #: which rare words and codes count; of dates; of numbers measured with a learned width; of
    #: places, "latitude+longitude"; of categories and identifiers, which are right or wrong as a
    #: whole. Those not named are told by their values.
    strings: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    dates: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
    places: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    identifiers: tuple[str, ...] = ()
    #: Records may be of one object if they agree in one of these: a field, or several as "a+b".
    #: None given: keys are chosen from the data.
    keys: tuple[str, ...] = ()
    #: Whether a list may have an object several times, as the prior says: records of one list then
    #: are compared like those of different lists.
    repeats: bool = False
    #: Log odds that a field's value has nothing to do with the true one (miss), and that it has a
    #: typo if it has; how uncertain they are before the data speak.
    miss_odds: float = -3.5
    typo_odds: float = -2.5
    odds_sd: float = 1.0

    def __post_init__(self) -> None:
        check(self.odds_sd > 0, "likelihood.odds_sd", self.odds_sd, "above 0")
        for place in self.places:
            two = len([part for part in place.split("+") if part]) == 2
            check(two, "likelihood.places", place, 'of the form "latitude+longitude"')

    @property
    def kinds(self) -> dict[str, str]:
        """The kind of each field that is named."""
        named = {
            "string": self.strings,
            "text": self.texts,
            "date": self.dates,
            "number": self.numbers,
            "place": self.places,
            "category": self.categories,
            "identifier": self.identifiers,
        }
        return {name: kind for kind, names in named.items() for name in names}

    @property
    def split_keys(self) -> list[list[str]] | None:
        """The keys as lists of fields; None if there are none."""
        return [key.split("+") for key in self.keys] or None


Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

#: Of several errors in one value each further one has this probability.
FURTHER = 0.3
#: Levels of any field, 0 among them.
MOST_LEVELS = max(LEVELS, BINS + 1)
#: Probability of one way to differ that is not a number of errors.
OTHER_LEVEL = 0.06
#: Prior of the log odds that free text is about something else: a list may leave out what another
#: one says.
TEXT_MISS_ODDS, TEXT_SD = -2.0, 1.5
#: Prior of the log odds that a measure is not exact, or free text not the same, and of a measure's
#: log scale, which is so much of the spread of all its values.
INEXACT_ODDS, INEXACT_SD = 0.0, 2.0
SCALE_SHARE, SCALE_SD = 0.01, 2.0
#: How sources differ in log odds and in log scale; learned for so many sources, if each has so many
#: records. Of two lists it would not be known which of them is wrong.
OWN_ODDS_SD, OWN_SCALE_SD = 0.5, 2.0
LEAST_SOURCES, MOST_SOURCES, LEAST_PER_SOURCE = 3, 12, 100
SEED = 20_180_711


@dataclass(frozen=True)
class Compared:
    """One field with what is known of its values by chance."""

    field: Field
    #: The share of each value, and the log density of a measure's.
    share: Floats
    log_density: Floats
    #: Text: its comparison, and how often unrelated values are at a level, by class of length; of
    #: free text how often they are in each class of similarity.
    comparison: LevelComparison | TextComparison | None
    chance: Floats

    @property
    def kind(self) -> int:
        """How values are compared in the kernels."""
        if self.field.dimensions:
            return kernel.MEASURE
        return kernel.SAME_OR_NOT if self.comparison is None else kernel.SIMILAR


def compare_fields(records: Fields, source: Ints) -> tuple[Compared, ...]:
    """What is known of the values of every field by chance."""
    unrelated = random_pairs(source, SEED)
    return tuple(_compared(field, source, unrelated) for field in records.fields)


def _compared(field: Field, source: Ints, unrelated: Ints) -> Compared:
    nothing = np.zeros(len(field.values))
    if field.dimensions and len(field.values):
        return Compared(field, *density_of(field, source), None, np.empty((0, 0)))
    if field.kind not in {"string", "text", "date"} or not len(field.values):
        return Compared(field, shares_of(field, source), nothing, None, np.empty((0, 0)))
    if field.kind == "text":
        texts = TextComparison(field)
        chance = chance_of_similarity(texts, field, source)
        return Compared(field, shares_of(field, source), nothing, texts, chance)
    comparison = LevelComparison(field)
    chance = chance_of_levels(comparison, field, unrelated)
    return Compared(field, shares_of(field, source), nothing, comparison, chance)


def usual_levels(one: Compared | None = None) -> Floats:
    """P(level) of a field before the data speak; of free text, of its classes of similarity.

    All fields have as many numbers, the last ones 0 if there are fewer levels.
    """
    found = np.zeros(MOST_LEVELS)
    if one is not None and isinstance(one.comparison, TextComparison):
        found[: BINS + 1] = usual_similarity()
        return found
    found[1:LEVELS] = OTHER_LEVEL
    errors = np.arange(ERRORS)
    rest = 1.0 - OTHER_LEVEL * (LEVELS - 1 - ERRORS)
    found[1 : ERRORS + 1] = rest * (1.0 - FURTHER) * FURTHER**errors / (1.0 - FURTHER**ERRORS)
    return found


def usual_of_all(compared: Sequence[Compared]) -> Floats:
    """P(level) of every field before the data speak."""
    return np.stack([usual_levels(one) for one in compared])


def twice(levels: Floats) -> Floats:
    """P(level) of two values that are both altered from a third.

    Errors add up. Of two ways in which words differ the one that leaves less of them shows, and one
    error in a word does not hide it. Numbers near a third are near each other. All else is not
    similar, or the same.
    """
    found = np.zeros(len(levels))
    found[1 : ERRORS + 1] = np.convolve(levels[: ERRORS + 1], levels[: ERRORS + 1])[1 : ERRORS + 1]
    below = levels[1]
    for level in (ORDER, SHORT, PARTS, COMMON):
        found[level] = levels[level] * (2.0 * below + levels[level])
        below += levels[level]
    found[NEAR] = levels[NEXT : NEAR + 1].sum() ** 2
    return found


@dataclass(frozen=True)
class Similar:
    """Similar values of one field: (one, other), sorted, with S and J of each pair."""

    pairs: Ints
    altered: Floats
    both_altered: Floats


def similar_values(one: Compared, candidates: Ints, levels: Floats) -> Similar:
    """The similar ones among values in which candidates differ; ``levels`` are P(level)."""
    if one.comparison is None or not len(candidates):
        return Similar(np.empty((0, 2), np.int64), np.empty(0), np.empty(0))
    pairs = one.field.codes[candidates]
    pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    span = len(one.field.values)
    keys = sorted_once(pairs.min(axis=1) * span + pairs.max(axis=1))
    pairs = np.column_stack(np.divmod(keys, span))
    if isinstance(one.comparison, TextComparison):
        similarity = one.comparison.similarity(pairs)
        kept = similarity > 0.0
        altered = np.exp(log_ratios(similarity[kept], levels[: BINS + 1], one.chance))
        both_altered = altered
    else:
        level = one.comparison.levels(pairs).astype(np.int64)
        kept = level > 0
        by_chance = _by_chance(one, pairs[kept], level[kept])
        altered, both_altered = levels[level[kept]], twice(levels)[level[kept]]
        altered, both_altered = altered / by_chance, both_altered / by_chance
    pairs = pairs[kept]
    pairs = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((pairs[:, 1], pairs[:, 0]))
    both = [np.concatenate([found, found])[order] for found in (altered, both_altered)]
    return Similar(pairs[order], *both)


def _by_chance(one: Compared, pairs: Ints, level: Ints) -> Floats:
    """F: symmetric in both values."""
    assert isinstance(one.comparison, LevelComparison)
    of = length_class(one.comparison, pairs.reshape(-1)).reshape(-1, 2)
    chance = one.chance[level[:, None], of].max(axis=1)
    return np.asarray(np.maximum(chance, one.share[pairs].max(axis=1)))


def records_hyper(
    model: RecordSettings,
    compared: tuple[Compared, ...],
    candidates: Ints,
    source: Ints,
    most: int,
    levels: Floats | None = None,
) -> kernel.RecordHyper:
    """Tables for the kernels; ``levels`` are P(level) by field. ``with_relations`` adds D."""
    fields = [one.field for one in compared]
    values = np.stack([field.codes for field in fields], axis=1)
    chosen = usual_of_all(compared) if levels is None else levels
    similar = [similar_values(one, candidates, p) for one, p in zip(compared, chosen, strict=True)]
    starts = [
        np.bincount(found.pairs[:, 0], minlength=len(field.values))
        for found, field in zip(similar, fields, strict=True)
    ]
    law = Law.of(model, compared, source)
    found = kernel.RecordHyper(
        kind=np.array([one.kind for one in compared], np.int64),
        first=np.cumsum([0, *(len(field.values) for field in fields)]).astype(np.int64),
        share=np.concatenate([one.share for one in compared]),
        similar_start=np.cumsum(np.concatenate([[0], *starts])).astype(np.int64),
        similar=np.concatenate([found.pairs[:, 1] for found in similar]).astype(np.int32),
        altered=np.concatenate([found.altered for found in similar]),
        both_altered=np.concatenate([found.both_altered for found in similar]),
        place=np.concatenate([_places(field) for field in fields]),
        log_density=np.concatenate([one.log_density for one in compared]),
        dimensions=np.array([float(field.dimensions) for field in fields]),
        rounding=np.array([field.step**2 / 4.0 for field in fields]),
        alike_start=np.zeros(len(values) + 1, np.int64),
        alike=np.empty(0, np.int32),
        excess=np.empty(0),
        values=np.ascontiguousarray(values, dtype=np.int32),
        source=law.source.astype(np.int32),
        most=np.array([most], np.int64),
        entry=law.entry,
        own=law.own,
        about=law.about,
        law=law.mean.copy(),
        law_mean=law.mean,
        law_sd=law.sd,
        noted=np.empty((0, 0, 0)),
        rates=np.empty((0, 0, 0)),
        facts=np.empty((0, 0)),
    )
    return kernel.with_room(found)


def alike_of(compared: Sequence[Compared], factors: Floats, pairs: Ints) -> Alike:
    """How pairs of records are alike, by log R_f of every field."""
    classes, chance = {}, {}
    for at, one in enumerate(compared):
        if isinstance(one.comparison, TextComparison):
            codes = one.field.codes[pairs]
            known = (codes >= 0).all(axis=1)
            classes[at] = np.full(len(pairs), -1, np.int64)
            classes[at][known] = one.comparison.levels(codes[known])
            chance[at] = one.chance
    return Alike(factors, classes, chance)


def with_relations(
    hyper: kernel.RecordHyper, compared: Sequence[Compared], relations: Relations, pairs: Ints
) -> kernel.RecordHyper:
    """The same with D of these pairs, at ``hyper.law``."""
    if not len(relations.share) or not len(pairs):
        return hyper
    factors = np.stack(list(field_factors(hyper, pairs)))
    excess = relations.excess(alike_of(compared, factors, pairs))
    kept = excess > NEGLIGIBLE
    pairs, excess = pairs[kept], excess[kept]
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((both[:, 1], both[:, 0]))
    both, excess = both[order], np.concatenate([excess, excess])[order]
    count = np.bincount(both[:, 0], minlength=len(hyper.values))
    return hyper._replace(
        alike_start=np.concatenate([[0], np.cumsum(count)]).astype(np.int64),
        alike=both[:, 1].astype(np.int32),
        excess=excess,
    )


def with_clumps(hyper: kernel.RecordHyper, clumped: Floats) -> kernel.RecordHyper:
    """The same with the f of every field multiplied by a number."""
    return hyper._replace(share=hyper.share * np.repeat(clumped, np.diff(hyper.first)))


def _places(field: Field) -> Floats:
    return field.places if len(field.places) else np.zeros((len(field.values), 3))


@dataclass(frozen=True)
class Law:
    """What is learned: for each field m, t and of a measure s, and what a source adds to them."""

    names: tuple[str, ...]
    entry: Ints
    own: Ints
    about: Ints
    mean: Floats
    sd: Floats
    source: Ints

    @staticmethod
    def of(
        model: RecordSettings,
        compared: tuple[Compared, ...],
        source: Ints,
        names: Sequence[str] = (),
    ) -> Law:
        """Its entries and their prior: those of the fields, then what sources add."""
        groups = sources_apart(source)
        entry = np.full((3, len(compared)), -1, np.int64)
        own = np.full((3, len(compared), int(groups.max(initial=0)) + 1), -1, np.int64)
        rows: list[tuple[str, int, float, float]] = []
        for what, name in enumerate(("miss", "typo", "scale")):
            for at, one in enumerate(compared):
                prior = _prior(model, one, what)
                if prior is not None:
                    entry[what, at] = len(rows)
                    rows.append((f"{name}_{one.field.name}", at, *prior))
        for what, at in zip(*np.nonzero(entry >= 0), strict=True):
            for group in range(own.shape[2] if own.shape[2] > 1 else 0):
                own[what, at, group] = len(rows)
                sd = OWN_SCALE_SD if what == kernel.SCALE else OWN_ODDS_SD
                who = names[group] if names else str(group + 1)
                rows.append((f"own_{rows[entry[what, at]][0]} ({who})", int(at), 0.0, sd))
        titles, about, mean, sd_of = zip(*rows, strict=True)
        return Law(
            tuple(titles), entry, own, np.array(about), np.array(mean), np.array(sd_of), groups
        )


def sources_apart(source: Ints) -> Ints:
    """The number of each record's source, or 0 for all if they are not learned one by one."""
    sizes = np.bincount(source)
    sizes = sizes[sizes > 0]
    enough = LEAST_SOURCES <= len(sizes) <= MOST_SOURCES and sizes.min() >= LEAST_PER_SOURCE
    return np.unique(source, return_inverse=True)[1] if enough else np.zeros_like(source)


def _prior(model: RecordSettings, one: Compared, what: int) -> tuple[float, float] | None:
    """Mean and standard deviation of an entry; None if the field has none."""
    measure = one.kind == kernel.MEASURE
    text = one.field.kind == "text"
    if what == kernel.MISS:
        if text:
            return TEXT_MISS_ODDS, TEXT_SD
        return model.miss_odds, model.odds_sd
    if what == kernel.ALTER:
        if measure or text:
            return INEXACT_ODDS, INEXACT_SD
        return (model.typo_odds, model.odds_sd) if one.kind == kernel.SIMILAR else None
    if not measure:
        return None
    known = one.field.places[one.field.codes[one.field.codes >= 0]]
    spread = float(np.sqrt(((known - np.median(known, axis=0)) ** 2).sum(axis=1).mean()))
    return float(np.log(max(SCALE_SHARE * spread, one.field.step, 1e-300))), SCALE_SD


# Pairs ----------------------------------------------------------------------------------------


def log_bayes_factors(hyper: kernel.RecordHyper, pairs: Ints) -> Floats:
    """log R of two records: how much more likely they are as one object than as two."""
    total = -excess_of_pairs(hyper, pairs)
    for factors in field_factors(hyper, pairs):
        total += factors
    return total


def excess_of_pairs(hyper: kernel.RecordHyper, pairs: Ints) -> Floats:
    """D of pairs of records."""
    if not len(hyper.alike):
        return np.zeros(len(pairs))
    n = len(hyper.values)
    rows = np.repeat(np.arange(n), np.diff(hyper.alike_start))
    keys, wanted = rows * n + hyper.alike, pairs[:, 0] * n + pairs[:, 1]
    place = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[place] == wanted, hyper.excess[place], 0.0)


def field_factors(hyper: kernel.RecordHyper, pairs: Ints) -> Iterator[Floats]:
    """What each field adds to ``log_bayes_factors`` at ``hyper.law``; a missing value nothing."""
    for at in range(len(hyper.kind)):
        yield pair_ratio(hyper, at, facts_of_pairs(hyper, at, pairs), law_of_field(hyper, at))


@dataclass(frozen=True)
class PairFacts:
    """What of two records' values of a field enters their ratio."""

    known: NDArray[np.bool_]
    same: NDArray[np.bool_]
    #: Share of the first value; S and J of text; squared distance and log densities of a measure.
    share: Floats
    altered: Floats
    both_altered: Floats
    apart: Floats
    log_density: Floats


def facts_of_pairs(hyper: kernel.RecordHyper, at: int, pairs: Ints) -> PairFacts:
    """For each pair of records."""
    one, other = hyper.values[pairs[:, 0], at], hyper.values[pairs[:, 1], at]
    known = (one >= 0) & (other >= 0)
    first = hyper.first[at] + np.maximum(one, 0)
    second = hyper.first[at] + np.maximum(other, 0)
    place, found = _listed(hyper, at, one.astype(np.int64), other.astype(np.int64))
    tables = [hyper.altered, hyper.both_altered]
    altered, both = (
        np.where(found, table[place], 0.0) if len(table) else np.zeros(len(pairs))
        for table in tables
    )
    return PairFacts(
        known=known,
        same=one == other,
        share=hyper.share[first],
        altered=altered,
        both_altered=both,
        apart=((hyper.place[first] - hyper.place[second]) ** 2).sum(axis=1),
        log_density=np.stack([hyper.log_density[first], hyper.log_density[second]]),
    )


def law_of_field(hyper: kernel.RecordHyper, at: int) -> Floats:
    """Log odds of a miss, of an altered value, and log scale, as the fields have them."""
    found = [hyper.law[e] if e >= 0 else -np.inf for e in hyper.entry[:, at]]
    return np.array(found)


def pair_ratio(hyper: kernel.RecordHyper, at: int, facts: PairFacts, law: Floats) -> Floats:
    """log R of one field for two records, by the formula of the kernels."""
    with np.errstate(over="ignore"):
        m, t = 1.0 / (1.0 + np.exp(-law[:2]))
    c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
    if hyper.kind[at] == kernel.MEASURE:
        d = float(hyper.dimensions[at])
        precision = 1.0 / (np.exp(2.0 * law[2]) + hyper.rounding[at])
        peak = 0.5 * d * np.log(precision / (2.0 * np.pi))
        altered = np.exp(peak - 0.5 * precision * facts.apart - facts.log_density)
        half = peak - 0.5 * d * np.log(2.0)
        both = np.exp(half - 0.25 * precision * facts.apart - facts.log_density.mean(axis=0))
        ratio = m * m + 2.0 * m * c + c * c * both + e * (2.0 * m + c * altered.sum(axis=0))
        ratio = ratio + np.where(facts.same, e * e / facts.share, 0.0)
    else:
        either = (m + c) ** 2 - c * c
        same = either + e * e / facts.share + 2.0 * e * m
        ratio = either + c * c * facts.both_altered + 2.0 * e * (m + c * facts.altered)
        ratio = np.where(facts.same, same, ratio)
    return np.where(facts.known, np.log(ratio), 0.0)


def _listed(
    hyper: kernel.RecordHyper, at: int, one: Ints, other: Ints
) -> tuple[Ints, NDArray[np.bool_]]:
    """Where each pair of values is listed, and whether it is."""
    first, count = int(hyper.first[at]), int(hyper.first[at + 1] - hyper.first[at])
    start = hyper.similar_start[first : first + count + 1]
    rows = np.repeat(np.arange(count), np.diff(start))
    keys = rows * count + hyper.similar[start[0] : start[-1]]
    if not keys.size:
        return np.zeros(len(one), np.int64), np.zeros(len(one), np.bool_)
    wanted = one * count + other
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    return start[0] + place, (keys[place] == wanted) & (one >= 0) & (other >= 0)
