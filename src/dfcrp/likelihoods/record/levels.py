"""In what way two different values of a field are similar: its level, 0 if they are not."""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import date

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.fields import Field, digits_of_date
from dfcrp.likelihoods.record.strings import edit_distances

#: One to four typing errors; the same parts in another order or with other signs; parts that are
#: abbreviated; parts left out; numbers or dates next to each other; and not far from each other.
ERRORS, ORDER, SHORT, PARTS, NEXT, NEAR = 4, 5, 6, 7, 8, 9
LEVELS = 10
#: Whole numbers are near up to this difference, dates up to so many days.
NEAR_NUMBER, NEAR_DAYS = 5, 31
#: Parts that may be left out, and the length from which a part may have a typing error.
MOST_LEFT_OUT, LONG = 2, 5
Levels = NDArray[np.int8]


class LevelComparison:
    """Compares values of one field."""

    def __init__(self, field: Field) -> None:
        self.kind = field.kind
        self.plain = list(field.values)
        if field.kind == "date":
            self.plain = [digits_of_date(value) for value in field.values]
        self.letters = np.array([ord(letter) for letter in "".join(self.plain)], dtype=np.int64)
        self.length = np.array([len(text) for text in self.plain], dtype=np.int64)
        self.start = np.concatenate([[0], np.cumsum(self.length)]).astype(np.int64)
        self.numbers = _whole_numbers(field, self.plain)
        self.parts = [re.findall(r"\w+", text) for text in self.plain]

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
            self._by_parts(pairs, found)
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

    def _by_parts(self, pairs: NDArray[np.int64], found: NDArray[np.int64]) -> None:
        """Order, abbreviations and parts left out, where there are not just one or two errors."""
        for at in np.flatnonzero((found == 0) | (found > 1)).tolist():
            level = level_of_parts(self.parts[pairs[at, 0]], self.parts[pairs[at, 1]])
            if level:
                found[at] = level


def level_of_parts(one: Sequence[str], other: Sequence[str]) -> int:
    """ORDER, SHORT or PARTS for two lists of words, or 0.

    A word stands for another if it abbreviates it, or has one typing error.
    """
    if not one or not other:
        return 0
    if len(one) > len(other):
        one, other = other, one
    left = list(other)
    short, equal = False, 0
    for word in sorted(one, key=len, reverse=True):
        if word in left:
            left.remove(word)
            equal += len(word) > 1
            continue
        like = [found for found in left if one_error(word, found)]
        if like:
            equal += 1
        else:
            like = [found for found in left if abbreviates(word, found) or abbreviates(found, word)]
            short = True
        if not like:
            return 0
        left.remove(max(like, key=len))
    if left:
        return PARTS if equal and len(left) <= MOST_LEFT_OUT else 0
    return SHORT if short else ORDER


def abbreviates(short: str, word: str) -> bool:
    """Whether a word has letters of the other, in order and from the first on: "st", "saint"."""
    if len(short) >= len(word) or short[0] != word[0]:
        return False
    letters = iter(word)
    return all(letter in letters for letter in short)


def one_error(one: str, other: str) -> bool:
    """Whether two long words differ by one typing error."""
    if min(len(one), len(other)) < LONG or abs(len(one) - len(other)) > 1:
        return False
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), len(one))
    a, b = one[at:], other[at:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[1::-1] + a[2:] == b)


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
