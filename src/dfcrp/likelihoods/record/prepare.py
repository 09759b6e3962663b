"""From items to candidates and a first guess of the law: what is done before the chains start.

So it is with records that were not part of a run, beside those that were. Values that the run has
not seen get codes of their own. How frequent values are, and how similar by chance, is told from
all records together; how often fields go wrong is what the run has learned. A list that the run
does not know has the rates that the lists share.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.base import NewItems
from dfcrp.likelihoods.integrated import Newcomers
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.candidates import (
    NOBODY,
    Candidates,
    KeyRates,
    alone,
    find_candidates,
    given_keys,
    unique_pairs,
)
from dfcrp.likelihoods.record.fields import Fields, encode_fields
from dfcrp.likelihoods.record.hyper import (
    Compared,
    Law,
    RecordSettings,
    compare_fields,
    log_bayes_factors,
    records_hyper,
    with_clumps,
    with_relations,
)
from dfcrp.likelihoods.record.pilot import FIRST_ROUNDS, Guess, guess_law
from dfcrp.likelihoods.record.texts import TextComparison, nearest_texts
from dfcrp.neighbours.neighbourhood import within_images

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Ints = NDArray[np.int64]
#: Pairs that are more probable than this (log odds) make partners of partners candidates.
PROBABLE = -2.0
#: Such partners that a record may have, for each source, and rounds of looking for theirs.
PARTNERS, ROUNDS = 2, 2
#: How often a field is wrong, at least, when keys are chosen.
LEAST_MISS = 0.01


@dataclass(frozen=True)
class Prepared:
    """Fields, candidates and the first guess."""

    settings: RecordSettings
    records: Fields
    compared: tuple[Compared, ...]
    source: Ints
    experts: tuple[str, ...]
    candidates: Candidates
    guess: Guess

    @property
    def law(self) -> Law:
        """What is learned, by name."""
        return Law.of(self.settings, self.compared, self.source, self.experts)

    def hyper(self, most: int, pairs: Ints | None = None) -> kernel.RecordHyper:
        """For clusters of so many, with similar values and D of the candidates or other pairs."""
        pairs = self.candidates.pairs if pairs is None else pairs
        found = records_hyper(
            self.settings,
            self.compared,
            pairs,
            self.source,
            most,
            self.guess.levels,
        )
        found.law[:] = self.guess.law
        found = with_relations(found, self.compared, self.guess.relations, pairs)
        return with_clumps(found, self.guess.clumped)

    def probable(self) -> Ints:
        """Candidates of different sources that are more probably of one object than not."""
        pairs = self.candidates.pairs
        pairs = pairs[self.source[pairs[:, 0]] != self.source[pairs[:, 1]]]
        odds = log_bayes_factors(self.hyper(2, pairs), pairs) + self.guess.log_odds
        return pairs[odds > 0.0]


_known: WeakKeyDictionary[Items, dict[RecordSettings, Prepared]] = WeakKeyDictionary()


def prepare(items: Items, settings: RecordSettings) -> Prepared:
    """Worked out once for each items and settings."""
    known = _known.setdefault(items, {})
    if settings not in known:
        known[settings] = _prepare(items, settings)
    return known[settings]


def _prepare(items: Items, settings: RecordSettings) -> Prepared:
    records = encode_fields(items.columns, settings.kinds)
    source = np.arange(len(items)) if settings.repeats else np.asarray(items.families, np.int64)
    compared = compare_fields(records, source)
    law = Law.of(settings, compared, source)
    texts = {
        at: nearest_texts(one.comparison, one.field, source)
        for at, one in enumerate(compared)
        if isinstance(one.comparison, TextComparison)
    }
    keys, images = settings.split_keys, items.image_codes

    def found_by(
        guess: NDArray[np.float64],
        matches: float = 0.0,
        doubt: float = 0.0,
        pairs: Ints = NOBODY,
    ) -> Candidates:
        if items.candidates is not None:
            given = np.asarray(items.candidates, np.int64)
            made = Candidates(given, (), alone(given, source), float("nan"))
        elif keys is not None:
            made = given_keys(records, keys, source)
        else:
            lists = max(len(np.unique(source)), 2)
            thirds = 2.0 * matches / max(len(source), 1) * (lists - 2.0) / (lists - 1.0)
            rates = rates_of(compared, law, guess)
            made = find_candidates(records, rates, source, texts, thirds, doubt, pairs)
        return replace(made, pairs=within_images(made.pairs, images))

    candidates = found_by(law.mean)
    if items.candidates is None and keys is None:
        first = guess_law(settings, compared, candidates.pairs, source, FIRST_ROUNDS)
        known = Prepared(settings, records, compared, source, items.experts, candidates, first)
        candidates = found_by(first.law, first.matches, first.doubt, known.probable())
    guess = guess_law(settings, compared, candidates.pairs, source)
    found = Prepared(settings, records, compared, source, items.experts, candidates, guess)
    if items.candidates is not None:
        return found
    pairs = within_images(_with_partners(found), images)
    return replace(found, candidates=replace(candidates, pairs=pairs))


def rates_of(compared: tuple[Compared, ...], law: Law, values: NDArray[np.float64]) -> KeyRates:
    """How often two records of one object agree in a field, or nearly, by entries of the law.

    A field that every key so far needs would seem never to be wrong, so it is wrong now and then.
    Unrelated values agree by chance.
    """
    rows = []
    for at, one in enumerate(compared):
        miss, alter, scale = (
            values[entry] if entry >= 0 else -np.inf for entry in law.entry[:, at]
        )
        m, t = 1.0 / (1.0 + np.exp(-miss)), 1.0 / (1.0 + np.exp(-alter))
        related = (1.0 - max(m, LEAST_MISS)) ** 2
        exact = related * (1.0 - t) ** 2
        known = one.field.codes[one.field.codes >= 0]
        chance = float(one.share[known].mean()) if len(known) else 0.0
        rows.append((exact + (1.0 - related) * chance, related - exact, np.exp(scale)))
    return KeyRates(*np.array(rows).T)


def _with_partners(found: Prepared) -> Ints:
    """Candidates with the partners of partners, so that a missing value keeps no cluster apart.

    Records of which one has only the name and the other only the place have no key in common, yet
    both may be of one object with a third.
    """
    pairs, source = found.candidates.pairs, found.source
    sizes = np.bincount(source).astype(np.float64)
    most = PARTNERS * max(len(sizes) - 1, 1) if len(sizes) <= 64 else 64
    for _ in range(ROUNDS):
        factors = log_bayes_factors(found.hyper(2, pairs), pairs)
        across = source[pairs[:, 0]] != source[pairs[:, 1]]
        close = across & (factors + found.guess.log_odds > PROBABLE)
        more = _two_steps(pairs[close], factors[close], most, len(source))
        more = more[source[more[:, 0]] != source[more[:, 1]]]
        together = unique_pairs(np.concatenate([pairs, more]), len(source))
        if len(together) == len(pairs):
            break
        pairs = together
    return pairs


def _two_steps(pairs: Ints, weight: NDArray[np.float64], most: int, n: int) -> Ints:
    """Pairs of records with a partner in common, of the ``most`` best partners of each."""
    both = np.concatenate([pairs, pairs[:, ::-1]])
    order = np.lexsort((-np.concatenate([weight, weight]), both[:, 0]))
    both = both[order]
    first = np.searchsorted(both[:, 0], np.arange(n))
    place = np.arange(len(both)) - first[both[:, 0]]
    both = both[place < most]
    found = [np.empty((0, 2), np.int64)]
    starts = np.searchsorted(both[:, 0], np.arange(n))
    sizes = np.diff(starts, append=len(both))
    for size in np.unique(sizes[sizes > 1]).tolist():
        partners = both[starts[sizes == size][:, None] + np.arange(size), 1]
        one, other = np.triu_indices(size, 1)
        found.append(np.column_stack([partners[:, one].ravel(), partners[:, other].ravel()]))
    return np.concatenate(found)


def new_records(found: Prepared, asked: NewItems) -> Newcomers:
    """Known and new records, in codes of both."""
    items, texts, sources = asked.items, asked.values.astype(np.str_), asked.sources
    names, n = list(items.columns), len(items)
    new = {name: texts[:, at] for at, name in enumerate(names)}
    encode_fields(new, found.settings.kinds)  # refuses what is no number, by its row
    both = {name: np.concatenate([items.columns[name], new[name]]) for name in names}
    records = encode_fields(both, found.settings.kinds)
    unknown = int(found.source.max(initial=-1)) + 1
    source = np.concatenate([found.source, np.where(sources < 0, unknown, sources)])
    pairs = np.concatenate([found.candidates.pairs, _every_pair(n, len(texts))])
    compared = compare_fields(records, source)
    hyper = records_hyper(found.settings, compared, pairs, source, asked.most, found.guess.levels)
    hyper.law[:] = found.guess.law
    hyper = with_relations(hyper, compared, found.guess.relations, pairs)
    hyper = with_clumps(hyper, found.guess.clumped)
    hyper = _with_law(hyper, found, asked.hyper.law, sources)
    features = _features(records)
    measures = bool((hyper.kind == kernel.MEASURE).any())
    return Newcomers(hyper, features[:n], features[n:], kernel.row_width(asked.most, measures))


def _every_pair(n: int, m: int) -> Ints:
    """Each new record with each of the run."""
    return np.column_stack([np.tile(np.arange(n), m), n + np.repeat(np.arange(m), n)])


def _with_law(
    hyper: kernel.RecordHyper, found: Prepared, law: NDArray[np.float64], sources: Ints
) -> kernel.RecordHyper:
    """The run's own law, with one more group of lists that adds nothing to it."""
    known = found.law
    shared = np.full((*known.own.shape[:2], 1), -1, np.int64)
    group = np.full(int(found.source.max(initial=-1)) + 2, known.own.shape[2])
    group[found.source] = known.source
    own = np.concatenate([known.own, shared], axis=2)
    longer = hyper._replace(
        source=np.concatenate([known.source, group[sources]]).astype(np.int32),
        entry=known.entry,
        own=np.ascontiguousarray(own),
        about=known.about,
        law=np.array(law),
        law_mean=known.mean,
        law_sd=known.sd,
    )
    return kernel.with_room(longer)


def _features(records: Fields) -> NDArray[np.float64]:
    """Codes, then the record's own number."""
    codes = records.codes
    return np.column_stack([codes, np.arange(len(codes))]).astype(np.float64)
