"""Which values of a field are similar, and how likely a typo leads from one to the other."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.fields import Fields, digits_of_date
from dfcrp.likelihoods.record.settings import RecordSettings
from dfcrp.likelihoods.record.strings import edit_distances

#: Typing errors up to which two strings may be one; a string of n letters at most n / 2.
MOST_ERRORS = 4
#: Of several errors in one value each further one has this probability.
FURTHER = 0.3
#: Letters and digits that may come in by an error.
ALPHABET = 36.0


def records_hyper(model: RecordSettings, records: Fields) -> kernel.RecordHyper:
    """Frequencies of values, and typos between those that candidates differ in."""
    first = np.cumsum([0, *map(len, records.values)]).astype(np.int64)
    frequency = np.concatenate(
        [_frequencies(records.codes[:, at], len(v)) for at, v in enumerate(records.values)]
    )
    starts, similar, typo = [np.zeros(1, np.int64)], [], []
    for at in range(len(records.names)):
        true, seen, chance = _typos(records, at)
        starts.append(np.bincount(true, minlength=len(records.values[at])))
        similar.append(seen)
        typo.append(chance)
    fields = len(records.names)
    law = np.repeat([model.miss_odds, model.typo_odds], fields).astype(np.float64)
    return kernel.RecordHyper(
        first=first,
        frequency=frequency,
        similar_start=np.cumsum(np.concatenate(starts)).astype(np.int64),
        similar=np.concatenate(similar).astype(np.int32),
        typo=np.concatenate(typo),
        values=np.ascontiguousarray(records.codes, dtype=np.float64),
        law=law,
        law_mean=law.copy(),
        law_sd=np.full(2 * fields, model.odds_sd),
    )


def log_bayes_factors(
    hyper: kernel.RecordHyper, records: Fields, pairs: NDArray[np.int64]
) -> NDArray[np.float64]:
    """How much more likely two records are as one object than as two, at the mean of the law."""
    total = np.zeros(len(pairs))
    for factors in field_factors(hyper, records, pairs):
        total += factors
    return total


def field_factors(
    hyper: kernel.RecordHyper, records: Fields, pairs: NDArray[np.int64]
) -> Iterator[NDArray[np.float64]]:
    """What each field adds to ``log_bayes_factors``; a missing value adds nothing."""
    fields = len(records.names)
    rates = 1.0 / (1.0 + np.exp(-hyper.law_mean))
    for at in range(fields):
        miss, typo = float(rates[at]), float(rates[fields + at])
        one, other = records.codes[pairs[:, 0], at], records.codes[pairs[:, 1], at]
        known = (one >= 0) & (other >= 0)
        share = hyper.frequency[hyper.first[at] + np.maximum(np.stack([one, other]), 0)]
        typos = [_listed(hyper, at, other, one), _listed(hyper, at, one, other)]
        # Either value may be the true one.
        differing = (miss + (1.0 - miss) * typo * np.stack(typos) / share).sum(axis=0)
        same = miss + (1.0 - miss) * (1.0 - typo) / share[0]
        yield np.where(known, np.log(np.where(one == other, same, differing)), 0.0)


def _listed(
    hyper: kernel.RecordHyper, at: int, true: NDArray[np.int64], seen: NDArray[np.int64]
) -> NDArray[np.float64]:
    """T(seen | true) of each pair of values."""
    first, count = int(hyper.first[at]), int(hyper.first[at + 1] - hyper.first[at])
    start = hyper.similar_start[first : first + count + 1]
    rows = np.repeat(np.arange(count), np.diff(start))
    keys = rows * count + hyper.similar[start[0] : start[-1]]
    if not keys.size:
        return np.zeros(len(true))
    wanted = true * count + seen
    place = np.minimum(np.searchsorted(keys, wanted), keys.size - 1)
    found = (keys[place] == wanted) & (true >= 0) & (seen >= 0)
    return np.where(found, hyper.typo[start[0] : start[-1]][place], 0.0)


def _frequencies(codes: NDArray[np.int64], count: int) -> NDArray[np.float64]:
    """Shares of the values among those that are known."""
    found = np.bincount(codes[codes >= 0], minlength=count).astype(np.float64)
    return found / max(found.sum(), 1.0)


def _typos(
    records: Fields, at: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.float64]]:
    """(true, seen, T(seen | true)) for the values in which candidates differ, sorted."""
    pairs = records.codes[records.candidates, at]
    pairs = pairs[(pairs >= 0).all(axis=1) & (pairs[:, 0] != pairs[:, 1])]
    if records.kinds[at] == "category" or not len(pairs):
        return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0)
    pairs = np.unique(np.concatenate([pairs, pairs[:, ::-1]]), axis=0)
    if records.kinds[at] == "number":
        chance = _number_typos(records.values[at], pairs)
    elif records.kinds[at] == "date":
        chance = _date_typos(records.values[at], pairs)
    else:
        chance = _string_typos(records.values[at], pairs)
    kept = chance > 0.0
    return pairs[kept, 0], pairs[kept, 1], chance[kept]


def _string_typos(values: Sequence[str], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Typing errors, whatever the case of the letters."""
    lower = [value.lower() for value in values]
    lengths = np.array([len(value) for value in lower])
    return _chance_of_errors(_errors_between(lower, pairs), lengths[pairs[:, 0]])


def _date_typos(values: Sequence[str], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Typing errors in the digits; day and month exchanged count as one."""
    digits = [digits_of_date(value) for value in values]
    exchanged = np.array([text[:4] + text[6:] + text[4:6] for text in digits])
    errors = _errors_between(digits, pairs)
    swapped = np.array(digits)[pairs[:, 0]] == exchanged[pairs[:, 1]]
    lengths = np.array([len(text) for text in digits])
    return _chance_of_errors(np.where(swapped, 1, errors), lengths[pairs[:, 0]])


def _errors_between(texts: Sequence[str], pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    """Typing errors between texts that are not the same, up to one more than MOST_ERRORS."""
    letters = np.array([ord(letter) for letter in "".join(texts)], dtype=np.int64)
    lengths = [len(text) for text in texts]
    start = np.concatenate([[0], np.cumsum(lengths)]).astype(np.int64)
    out = np.empty(len(pairs), np.int64)
    rows = np.empty((3, max(lengths) + 1), np.int64)
    edit_distances(letters, start, pairs[:, 0].copy(), pairs[:, 1].copy(), MOST_ERRORS, rows, out)
    # Two ways to write the same differ all the same.
    return np.maximum(out, 1)


def _chance_of_errors(errors: NDArray[np.int64], n: NDArray[np.int64]) -> NDArray[np.float64]:
    """e errors have probability (1 - q) q^(e - 1), and there are about (2 n A)^e / e! ways.

    Only so many of the ways are ever taken; that many strings share the probability.
    """
    ways = errors * np.log(2.0 * n * ALPHABET) - np.array([math.lgamma(e + 1.0) for e in errors])
    chance = np.exp(math.log(1.0 - FURTHER) + (errors - 1) * math.log(FURTHER) - ways)
    return np.where((errors <= MOST_ERRORS) & (2 * errors <= np.maximum(n, 2)), chance, 0.0)


def _number_typos(values: tuple[str, ...], pairs: NDArray[np.int64]) -> NDArray[np.float64]:
    """Laplace about the true value, with a tenth of the field's spread, by steps of the values."""
    numbers = np.array([float(value) for value in values])
    spread = max(float(numbers.std()), 1e-300) / 10.0
    step = float(np.diff(np.unique(numbers)).min())
    apart = np.abs(numbers[pairs[:, 0]] - numbers[pairs[:, 1]])
    return np.minimum(step / (2.0 * spread), 1.0) * np.exp(-apart / spread)
