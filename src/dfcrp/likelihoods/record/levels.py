"""In what way two different values of a field are similar: its level, 0 if they are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.fields import Field
from dfcrp.likelihoods.record.strings import COMMON, PARTS, Words, edit_distances, levels_of_words

#: One to four typing errors; 5 to 7 and 10 are levels of words (``strings``); numbers or dates next
#: to one another; and not far from each other.
ERRORS, NEXT, NEAR = 4, 8, 9
LEVELS = 11
#: Whole numbers are near up to this difference, dates up to so many days.
NEAR_NUMBER, NEAR_DAYS = 5, 31
Levels = NDArray[np.int8]


class LevelComparison:
    """Compares values of one field."""

    def __init__(self, field: Field) -> None:
        self.kind = field.kind
        self.plain = list(field.values)
        self.letters = np.array([ord(letter) for letter in "".join(self.plain)], dtype=np.int64)
        self.length = np.array([len(text) for text in self.plain], dtype=np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)
        self.numbers = _whole_numbers(field, self.plain)
        self.words = words_of(self.plain if field.kind == "string" else ())
        self.parts = _incidence(self.plain) if field.several else None

    def levels(self, pairs: NDArray[np.int64]) -> Levels:
        """The level of each pair of different values."""
        if self.kind not in {"string", "date"} or not len(pairs):
            return np.zeros(len(pairs), np.int8)
        errors = self._errors(pairs)
        longest = self.length[pairs].max(axis=1)
        found = np.where((errors <= ERRORS) & (2 * errors <= np.maximum(longest, 2)), errors, 0)
        if self.kind == "date":
            self._exchanged(pairs, found)
        else:
            self._by_words(pairs, found)
        if self.parts is not None:
            one, other = self.parts[pairs[:, 0]], self.parts[pairs[:, 1]]
            common = np.asarray(one.multiply(other).sum(axis=1)).ravel() > 0
            # Of several values words in common say nothing: one of the values must be.
            found[found == COMMON] = 0
            found[common & (found == 0)] = PARTS
        if self.numbers is not None:
            apart = np.abs(self.numbers[pairs[:, 0]] - self.numbers[pairs[:, 1]])
            limit = NEAR_DAYS if self.kind == "date" else NEAR_NUMBER
            found[(apart <= limit) & (found != 1)] = NEAR
            found[apart == 1] = NEXT
        return found.astype(np.int8)

    def _errors(self, pairs: NDArray[np.int64]) -> NDArray[np.int64]:
        """Typing errors; two ways to write the same differ all the same."""
        out = np.empty(len(pairs), np.int64)
        rows = np.empty((3, int(self.length.max()) + 1), np.int64)
        one, other = pairs[:, 0].copy(), pairs[:, 1].copy()
        edit_distances(self.letters, self.start, one, other, ERRORS, rows, out)
        return np.maximum(out, 1)

    def _exchanged(self, pairs: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        """Day and month exchanged count as one error."""
        digits = np.array(self.plain)
        exchanged = np.array([text[:4] + text[6:] + text[4:6] for text in self.plain])
        found[digits[pairs[:, 0]] == exchanged[pairs[:, 1]]] = 1

    def _by_words(self, pairs: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        """Order, abbreviations and words left out, where there are not just one or two errors."""
        rows = np.flatnonzero(found != 1)
        level = np.empty(len(rows), np.int64)
        one, other = pairs[rows, 0].copy(), pairs[rows, 1].copy()
        levels_of_words(self.words, one, other, level)
        # Words in common say less than few errors.
        better = (level > 0) & ((level != COMMON) | (found[rows] == 0))
        found[rows] = np.where(better, level, found[rows])


def words_of(texts: Sequence[str]) -> Words:
    """The words of all texts, for the kernels."""
    parts = [re.findall(r"\w+", text) for text in texts]
    every = [word for one in parts for word in one]
    first = np.cumsum([0, *(len(one) for one in parts)]).astype(np.int64)
    size = np.array([len(word) for word in every], np.int64)
    text = np.repeat(np.arange(len(parts)), np.diff(first))
    return Words(
        letters=np.array([ord(letter) for letter in "".join(every)], np.int64),
        start=np.concatenate([[0], np.cumsum(size)]).astype(np.int64),
        first=first,
        order=np.lexsort((-size, text)).astype(np.int64),
        taken=np.zeros(int(np.diff(first).max(initial=0)) + 1, np.int64),
    )


def _incidence(texts: Sequence[str]) -> Any:
    """Which of several values each text has, as a sparse matrix."""
    from scipy import sparse

    parts = [text.split("; ") for text in texts]
    code = {part: at for at, part in enumerate(sorted({part for one in parts for part in one}))}
    columns = [code[part] for one in parts for part in one]
    starts = np.cumsum([0, *map(len, parts)])
    return sparse.csr_array((np.ones(len(columns)), columns, starts), (len(texts), len(code)))


def _whole_numbers(field: Field, texts: Sequence[str]) -> NDArray[np.float64] | None:
    """Values that are counted: days of dates, or numbers without leading zeros; None of others."""
    if field.kind == "date":
        return np.array([_day(text) for text in texts])
    counted = all(text.isdecimal() and len(text) < 7 and str(int(text)) == text for text in texts)
    return np.array(texts, dtype=np.float64) if texts and counted else None


def _day(digits: str) -> float:
    try:
        return float(date(int(digits[:4]), int(digits[4:6]), int(digits[6:8])).toordinal())
    except ValueError:
        return float("nan")
