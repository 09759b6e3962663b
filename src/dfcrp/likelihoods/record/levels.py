"""In what way two different values of a field are similar, and how frequent values are by chance.

The way is a level, 0 if they are not similar. By chance: shares of values, densities of measures,
and how often unrelated values are similar in each way. Of strings: typing errors between them, and
the words that they have in common.
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from datetime import date
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import I8, I8x2, frame
from dfcrp.compiled.jit import entry_kernel, inline_kernel, lean_kernel
from dfcrp.likelihoods.record.fields import Field

if TYPE_CHECKING:
    from scipy.sparse import csr_array

#: One to four typing errors; 5 to 7 and 10 are levels of words (``strings``); numbers or dates next
#: to one another; and not far from each other.
ERRORS, NEXT, NEAR = 4, 8, 9
LEVELS = 11
#: Whole numbers are near up to this difference, dates up to so many days.
NEAR_NUMBER, NEAR_DAYS = 5, 31
Levels = NDArray[np.int8]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
#: Neighbours from which the density of a measure is told: at least so many, and so many times the
#: number of sources, as one object may be in each.
LEAST_NEIGHBOURS, NEIGHBOURS_PER_SOURCE = 10, 4
#: Records of a source, on average, from which rare values are told.
LEAST_PER_SOURCE = 10.0
#: Random pairs by which the frequency of similar values is told.
MOST_RANDOM, RANDOM_PER_RECORD = 200_000, 20
#: Classes of length in which similarity is equally frequent by chance.
LENGTHS = np.array([5, 8, 12, 20])


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


def _incidence(texts: Sequence[str]) -> csr_array:
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


def shares_of(field: Field, source: Ints) -> Floats:
    """f: how often an object that is picked at random has a value.

    The records of one source are different objects. By Good and Turing's estimate a value that c of
    them have is expected c* = (c + 1) N(c + 1) / N(c) times among as many others, with N(c) the
    number of values that c have; of rare values, c* is far below c. Where sources have one record
    each there is nothing to tell it from, and c* = c.
    """
    known = field.codes >= 0
    codes, n = field.codes[known], max(int(known.sum()), 1)
    count = np.bincount(codes, minlength=len(field.values)).astype(np.float64)
    if len(np.unique(source)) > len(source) / LEAST_PER_SOURCE:
        return count / n
    both, times = np.unique(np.column_stack([source[known], codes]), axis=0, return_counts=True)
    having = np.bincount(times, minlength=4).astype(np.float64)
    expected = np.arange(having.size, dtype=np.float64)
    for c in (1, 2):
        turing = (c + 1.0) * (having[c + 1] + 0.5) / (having[c] + 1.0)
        expected[c] = min(turing, float(c))
    return np.bincount(both[:, 1], weights=expected[times], minlength=len(field.values)) / n


def density_of(field: Field, source: Ints) -> tuple[Floats, Floats]:
    """f and log g of a measure's values.

    The density is told from the distance to the nearest neighbours, and f(x) is that of one step.
    Values that one source repeats are more frequent than that. Nor is f below the frequency with
    which two records of one source, which are two objects, have the same value (``tie_rate``).
    """
    from scipy.spatial import cKDTree

    known = field.codes >= 0
    codes, n, d = field.codes[known], int(known.sum()), field.dimensions
    sources = len(np.unique(source))
    k = max(LEAST_NEIGHBOURS, NEIGHBOURS_PER_SOURCE * min(sources, n // LEAST_NEIGHBOURS))
    k = min(k, max(n - 1, 1))
    tree = cKDTree(field.places[codes])
    reach = tree.query(field.places, k=[min(k + 1, n)])[0][:, 0]
    volume = {1: 2.0, 2: math.pi}[d] * np.maximum(reach, field.step) ** d
    density = k / (n * volume)
    cell = field.step**d
    count, ties, pairs = _repeated(codes, source[known], len(field.values))
    repeated = count / n
    expected = float((cell * density)[codes].mean()) if n else 0.0
    least = tie_rate(ties, pairs, expected) if pairs else 1.0 / max(n, 1)
    share = np.minimum(np.maximum(cell * density, least) + repeated, 1.0)
    return share, np.log(density + repeated / cell)


def tie_rate(ties: float, pairs: float, expected: float) -> float:
    """How often two different objects have the same value, if so many pairs of them have.

    Values may be rounder than they are written, so that ties are more frequent than ``expected`` of
    a smooth density. The rate λ has the prior 1 / λ above that; given the ties its mean is

        ∫ λ^ties e^(-pairs λ) dλ / ∫ λ^(ties - 1) e^(-pairs λ) dλ.
    """
    from scipy.special import exp1, gammaincc

    x = min(max(expected * pairs, 1e-300), 500.0 + ties)
    if ties < 1.0:
        return max(float(np.exp(-x) / exp1(x)) / pairs, expected)
    upper, lower = gammaincc(ties + 1.0, x), gammaincc(ties, x)
    return max(ties * float(upper / max(lower, 1e-300)) / pairs, expected)


def _repeated(codes: Ints, source: Ints, values: int) -> tuple[Floats, float, float]:
    """Times that a source repeats a value, values repeated so, and all pairs of one source."""
    both, count = np.unique(np.column_stack([source, codes]), axis=0, return_counts=True)
    again = np.asarray(np.bincount(both[:, 1], weights=count - 1.0, minlength=values), np.float64)
    sizes = np.bincount(source).astype(np.float64)
    ties = float(np.count_nonzero(count > 1))
    return again, ties, float((sizes * (sizes - 1.0)).sum()) / 2.0


def random_pairs(source: Ints, seed: int) -> Ints:
    """Pairs of records that are two objects: of one source, or any two if sources have one each."""
    rng = np.random.default_rng(seed)
    n = len(source)
    wanted = min(MOST_RANDOM, RANDOM_PER_RECORD * n)
    order = np.argsort(source, kind="stable")
    sizes = np.bincount(source)
    first = np.cumsum(sizes) - sizes
    one = rng.integers(n, size=wanted)
    of = source[one]
    own = order[first[of] + rng.integers(1 << 62, size=wanted) % sizes[of]]
    pairs = np.column_stack([one, own])
    if sizes.max(initial=0) < 2:
        pairs = rng.integers(n, size=(wanted, 2))
    return pairs[pairs[:, 0] != pairs[:, 1]]


def chance_of_levels(comparison: LevelComparison, field: Field, unrelated: Ints) -> Floats:
    """How often unrelated values are similar in each way, (levels, classes of length)."""
    codes = field.codes[unrelated]
    codes = codes[(codes >= 0).all(axis=1)]
    differ = codes[:, 0] != codes[:, 1]
    level = np.zeros(len(codes), np.int64)
    level[differ] = comparison.levels(codes[differ])
    of = length_class(comparison, codes[:, 0])
    classes = len(LENGTHS) + 1
    hits = np.bincount(level * classes + of, minlength=LEVELS * classes)
    total = np.bincount(of, minlength=classes)
    return (hits.reshape(LEVELS, classes) + 0.5) / (total + 1.0)


def length_class(comparison: LevelComparison, codes: Ints) -> Ints:
    """The class of length of each value."""
    return np.searchsorted(LENGTHS, comparison.length[codes]).astype(np.int64)


#: Levels of two lists of words: the same in another order or with other signs; some abbreviated;
#: some left out; only half of them in common.
ORDER, SHORT, PARTS, COMMON = 5, 6, 7, 10
#: Words that may be left out, and the length from which a word may have a typing error.
MOST_LEFT_OUT, LONG = 2, 5
#: Words that must be in common at least, where not every word stands for another.
LEAST_COMMON = 2


@frame
class Words(NamedTuple):
    """The words of all strings, one after the other."""

    letters: I8  # by letter
    start: I8  # by word: where its letters begin, and at last where the last one ends
    first: I8  # by string: where its words begin, and at last where the last one's end
    order: I8  # by word: the string's words by length, the longest first
    taken: I8  # room for the words of one string


@entry_kernel
def edit_distances(text: I8, start: I8, first: I8, second: I8, most: int, rows: I8x2, out: I8):
    """For each pair: insertions, deletions, replacements and swaps of neighbours between them.

    String s is ``text[start[s]:start[s + 1]]``. Distances above ``most`` are given as most + 1;
    ``rows`` is room for three rows of the table, one longer than the longest string.
    """
    for pair in range(first.shape[0]):
        a, b = start[first[pair]], start[second[pair]]
        n, m = start[first[pair] + 1] - a, start[second[pair] + 1] - b
        if abs(n - m) > most:
            out[pair] = most + 1
            continue
        for j in range(m + 1):
            rows[0, j] = j
        for i in range(1, n + 1):
            now, last, older = i % 3, (i - 1) % 3, (i - 2) % 3
            rows[now, 0] = i
            for j in range(1, m + 1):
                same = text[a + i - 1] == text[b + j - 1]
                best = rows[last, j - 1] + (0 if same else 1)
                best = min(best, rows[last, j] + 1, rows[now, j - 1] + 1)
                if (
                    i > 1
                    and j > 1
                    and text[a + i - 1] == text[b + j - 2]
                    and text[a + i - 2] == text[b + j - 1]
                ):
                    best = min(best, rows[older, j - 2] + 1)
                rows[now, j] = best
        out[pair] = min(rows[n % 3, m], most + 1)


@entry_kernel
def levels_of_words(words: Words, first: I8, second: I8, out: I8):
    """For each pair of strings: a level of words, or 0 if their words do not go together.

    Each word of the one with fewer should stand for one of the other: it is the same, has one
    typing error, or one of the two abbreviates the other. The longest choose first. Where some do
    not, the level is COMMON if those that do, abbreviations aside, are half of the longer list. Of
    as many words either side chooses once, and the lesser level counts, so that the order of the
    two makes no difference.
    """
    for pair in range(first.shape[0]):
        one, other = first[pair], second[pair]
        fewer = words.first[one + 1] - words.first[one]
        more = words.first[other + 1] - words.first[other]
        if fewer > more:
            one, other, fewer, more = other, one, more, fewer
        needed = max(LEAST_COMMON, (more + 1) // 2)
        if fewer == 0 or (more - fewer > MOST_LEFT_OUT and fewer < needed):
            out[pair] = 0
        else:
            found = level_of_words(words, one, other, more - fewer, needed)
            if 1 < fewer == more:
                turned = level_of_words(words, other, one, 0, needed)
                found = min(found, turned) if min(found, turned) > 0 else max(found, turned)
            out[pair] = found


@lean_kernel
def level_of_words(words, one, other, left, needed):
    """The level of a string with fewer words than another, which has ``left`` more.

    ``needed`` are the words in common that will do where not every one stands for another.
    """
    begin, end = words.first[other], words.first[other + 1]
    for place in range(end - begin):
        words.taken[place] = 0
    short, known, lost = False, 0, 0
    may_be_lost = words.first[one + 1] - words.first[one] - needed
    for at in range(words.first[one], words.first[one + 1]):
        word = words.order[at]
        match = same_word(words, word, begin, end)
        if match >= 0:
            known += 1 if length_of(words, word) > 1 else 0
        else:
            match = similar_word(words, word, begin, end, False)
            if match >= 0:
                known += 1
            else:
                match, short = similar_word(words, word, begin, end, True), True
        if match >= 0:
            words.taken[match - begin] = 1
            continue
        lost += 1
        if lost > may_be_lost:
            return 0
    if lost > 0 or left > MOST_LEFT_OUT:
        return COMMON if known >= needed else 0
    if left > 0:
        return PARTS if known > 0 else 0
    return SHORT if short else ORDER


@inline_kernel
def length_of(words, word):
    """Of a word."""
    return words.start[word + 1] - words.start[word]


@inline_kernel
def same_letters(words, a, b, count):
    """Whether so many letters from a and from b on are the same."""
    for step in range(count):
        if words.letters[a + step] != words.letters[b + step]:
            return False
    return True


@lean_kernel
def same_word(words, word, begin, end):
    """The first of the words that is the same and not taken, or -1."""
    size = length_of(words, word)
    for found in range(begin, end):
        free = words.taken[found - begin] == 0 and length_of(words, found) == size
        if free and same_letters(words, words.start[word], words.start[found], size):
            return found
    return -1


@lean_kernel
def similar_word(words, word, begin, end, abbreviated):
    """The longest of the words, not taken, with one error or that abbreviates or is so; or -1."""
    best = -1
    for found in range(begin, end):
        if words.taken[found - begin]:
            continue
        if best >= 0 and length_of(words, found) <= length_of(words, best):
            continue
        if abbreviated:
            like = abbreviates(words, word, found) or abbreviates(words, found, word)
        else:
            like = one_error(words, word, found)
        if like:
            best = found
    return best


@lean_kernel
def abbreviates(words, short, word):
    """Whether a word has letters of the other, in order and from the first on: "st", "saint"."""
    a, b = words.start[short], words.start[word]
    size, longer = length_of(words, short), length_of(words, word)
    if size >= longer or words.letters[a] != words.letters[b]:
        return False
    step = 0
    for at in range(longer):
        if step < size and words.letters[a + step] == words.letters[b + at]:
            step += 1
    return step == size


@lean_kernel
def one_error(words, one, other):
    """Whether two long words differ by one typing error."""
    a, b = words.start[one], words.start[other]
    n, m = length_of(words, one), length_of(words, other)
    if min(n, m) < LONG or abs(n - m) > 1:
        return False
    at = 0
    while at < n and at < m and words.letters[a + at] == words.letters[b + at]:
        at += 1
    a, b, n, m = a + at, b + at, n - at, m - at
    if n > m:
        return same_letters(words, a + 1, b, m)
    if m > n:
        return same_letters(words, a, b + 1, n)
    if n < 2 or same_letters(words, a + 1, b + 1, n - 1):
        return True
    swapped = words.letters[a] == words.letters[b + 1] and words.letters[a + 1] == words.letters[b]
    return swapped and same_letters(words, a + 2, b + 2, n - 2)
