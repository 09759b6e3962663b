"""Free text, such as titles and descriptions: words weighed by how rare they are.

The similarity s of two texts is the cosine of their words, each of which weighs log(N / d) if d of
N texts have it. Codes such as "KDL-46XBR9" count as a whole, without the signs or blanks in them,
by their parts and by their beginnings, so that "KDL46XBR9/B" is similar to it. Of two texts with a
similarity, how much more likely they are as two versions of one text than as texts of two objects
is g(s) = P(s) / F(s). F is told by the records of one source, which are different objects, P by the
probable matches (``pilot``), and g never falls as s grows.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.fields import Field

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Levels = NDArray[np.int8]

#: Classes of similarity; the level of a pair is 0 if no word is in common, or else 1 to BINS.
BINS = 40
#: A code has letters and digits, and so many of both to have beginnings that count.
LEAST_CODE = 5
#: Products of two words' weights that are summed up for nearest texts, at once, and for chances.
MOST_PRODUCTS, AT_ONCE, PRODUCTS_BY_CHANCE = 1_000_000_000, 20_000_000, 200_000_000
#: Most similar texts that are candidates: in other sources, for each of these, and in its own.
NEAREST, NEAREST_PER_SOURCE, NEAREST_OWN = 10, 3, 6
#: Classes of similarity over which log g is evened out on either side.
EVEN = 2

_WORD = re.compile(r"[^\W_]+")
_RUN = re.compile(r"[^\s/,;()]+")
_PIECE = re.compile(r"\d+|[^\W\d_]+")


def words_in(text: str) -> set[str]:
    """The words of a text, its codes also without the signs in them, and by parts.

    A part of a code is marked by a sign, as it counts only if it is found elsewhere.
    """
    words = _WORD.findall(text)
    found, codes = set(words), {word for word in words if is_code(word)}
    for run in _RUN.findall(text):
        whole = "".join(_WORD.findall(run))
        if is_code(whole):
            found.add(whole)
            codes.add(whole)
    for code in codes:
        found |= {f"~{piece}" for piece in _PIECE.findall(code)}
        if len(code) >= LEAST_CODE:
            found |= {f"^{code}", f"^{code[:-1]}", f"^{code[:-2]}"}
    for one, other in pairwise(words):
        both = one + other
        if len(both) >= LEAST_CODE and is_code(both):
            found.add(f"^{both}")
    return found


def is_code(word: str) -> bool:
    """Whether it has letters and digits."""
    return any(map(str.isdigit, word)) and any(map(str.isalpha, word))


class TextComparison:
    """Compares texts of one field."""

    def __init__(self, field: Field) -> None:
        self.weights = weights_of(field.values)

    def similarity(self, pairs: Ints) -> Floats:
        """s of each pair of values."""
        found = np.zeros(len(pairs))
        for start in range(0, len(pairs), 100_000):
            piece = pairs[start : start + 100_000]
            one, other = self.weights[piece[:, 0]], self.weights[piece[:, 1]]
            found[start : start + 100_000] = np.asarray(one.multiply(other).sum(axis=1)).ravel()
        return np.minimum(found, 1.0)

    def levels(self, pairs: Ints) -> Levels:
        """The class of similarity of each pair of values."""
        return classes_of(self.similarity(pairs))


def classes_of(similarity: Floats) -> Levels:
    """1 to BINS, or 0 where there is no similarity."""
    found = 1 + np.minimum((similarity * BINS).astype(np.int64), BINS - 1)
    return np.where(similarity > 0.0, found, 0).astype(np.int8)


def weights_of(texts: Sequence[str]) -> csr_array:
    """A sparse matrix, (texts, words), with rows of length 1, or 0 where no word counts."""
    from scipy import sparse

    known: dict[str, int] = {}
    columns: list[int] = []
    starts = [0]
    for text in texts:
        columns += [known.setdefault(word, len(known)) for word in sorted(words_in(text))]
        starts.append(len(columns))
    shape = (len(texts), max(len(known), 1))
    found = sparse.csr_array((np.ones(len(columns)), np.array(columns, np.int64), starts), shape)
    having = np.bincount(columns, minlength=shape[1])
    # What is made of a code, and is nowhere else, would only make its text longer.
    made = np.zeros(shape[1], np.bool_)
    made[[at for word, at in known.items() if word[0] in "~^"]] = True
    rarity = np.log((len(texts) + 1.0) / np.maximum(having, 1))
    rarity[made & (having < 2)] = 0.0
    found.data *= rarity[found.indices]
    found.eliminate_zeros()
    length = np.sqrt(np.asarray(found.multiply(found).sum(axis=1)).ravel())
    found.data /= np.repeat(np.maximum(length, 1e-300), np.diff(found.indptr))
    return sparse.csr_array(found)


def _similar_rows(
    weights: csr_array, rows: Ints, others: csr_array, per_row: Floats
) -> Iterator[csr_array]:
    """Similarities of these rows to all others, as sparse matrices of some rows at a time."""
    start, room = 0, np.cumsum(per_row[rows])
    while start < len(rows):
        before = room[start - 1] if start else 0.0
        end = max(int(np.searchsorted(room, before + AT_ONCE)), start + 1)
        yield rows[start:end], (weights[rows[start:end]] @ others.T).tocsr()
        start = end


def chance_of_similarity(comparison: TextComparison, field: Field, source: Ints) -> Floats:
    """F: how often texts of two objects are in each class of similarity, (BINS + 1,).

    All pairs of one source, or as many as there is time for. Where sources have one record each,
    of all pairs, the most similar one of each text left out, as it may be of the same object.
    """
    known = np.flatnonzero(field.codes >= 0)
    weights, source = comparison.weights[field.codes[known]], source[known]
    ruled = len(np.unique(source)) <= len(source) / 2
    hits, total = np.zeros(BINS + 1), 0.0
    rng = np.random.default_rng(len(known))
    groups = (
        [np.flatnonzero(source == one) for one in np.unique(source)]
        if ruled
        else [np.arange(len(known))]
    )
    for group in groups:
        own = weights[group]
        having = np.bincount(own.indices, minlength=own.shape[1]).astype(np.float64)
        per_row = np.asarray((own != 0.0).astype(np.float64) @ having).ravel()
        share = PRODUCTS_BY_CHANCE * len(group) / len(known) / max(float(per_row.sum()), 1.0)
        rows = np.arange(len(group))
        if share < 1.0:
            rows = np.sort(rng.permutation(rows)[: max(int(share * len(group)), 1)])
        for some, found in _similar_rows(own, rows, own, per_row):
            found.data[found.indices == np.repeat(some, np.diff(found.indptr))] = 0.0
            if not ruled:
                best = found.max(axis=1).toarray().ravel()
                found.data[found.data == np.repeat(best, np.diff(found.indptr))] = 0.0
            level = classes_of(np.minimum(found.data, 1.0))
            hits += np.bincount(level, minlength=BINS + 1)
        total += len(rows) * (len(group) - 1.0)
    hits[0] = 0.0
    hits[0] = max(total - hits.sum(), 0.0)
    return np.asarray((hits + 0.5) / (total + 1.0))


def usual_similarity() -> Floats:
    """P before the data speak: any similarity may be, little ones less."""
    found = np.minimum(np.arange(BINS + 1) / (0.2 * BINS), 1.0)
    return np.asarray(found / found.sum())


def log_ratios(similarity: Floats, matches: Floats, chance: Floats) -> Floats:
    """log g(s), between the middles of classes by a straight line; below all others if s is 0."""
    level = rising(matches[1:], chance[1:])
    wide = np.pad(level, EVEN, mode="edge")
    level = np.mean([wide[at : at + BINS] for at in range(2 * EVEN + 1)], axis=0)
    middle = (np.arange(BINS) + 0.5) / BINS
    return np.asarray(np.interp(similarity, middle, level))


def rising(matches: Floats, chance: Floats) -> Floats:
    """log of the ratio of two distributions, as near as one that never falls can be.

    Neighbours that would fall are put together (pool adjacent violators).
    """
    blocks: list[tuple[float, float, int]] = []
    for over, under in zip(matches.tolist(), chance.tolist(), strict=True):
        block = (max(over, 1e-12), under, 1)
        while blocks and blocks[-1][0] * block[1] >= block[0] * blocks[-1][1]:
            last = blocks.pop()
            block = (last[0] + block[0], last[1] + block[1], last[2] + block[2])
        blocks.append(block)
    return np.repeat(
        [np.log(over / under) for over, under, _ in blocks], [size for *_, size in blocks]
    )


def nearest_texts(comparison: TextComparison, field: Field, source: Ints) -> Ints:
    """Pairs of records: the most similar ones of each, in other sources and in its own.

    Words that very many texts have are left out where there would be too many products.
    """
    known = np.flatnonzero(field.codes >= 0)
    weights, source = comparison.weights[field.codes[known]], source[known]
    having = np.bincount(weights.indices, minlength=weights.shape[1]).astype(np.float64)
    order = np.argsort(having, kind="stable")
    fine = np.zeros(len(having), np.bool_)
    fine[order[np.cumsum(having[order] ** 2) <= MOST_PRODUCTS]] = True
    weights = weights.copy()
    weights.data[~fine[weights.indices]] = 0.0
    weights.eliminate_zeros()
    per_row = np.asarray((weights != 0.0).astype(np.float64) @ having).ravel()
    most = max(NEAREST, NEAREST_PER_SOURCE * (min(len(np.unique(source)), 64) - 1))
    pairs = [np.empty((0, 2), np.int64)]
    for rows, found in _similar_rows(weights, np.arange(len(known)), weights, per_row):
        one = np.repeat(rows, np.diff(found.indptr))
        other = found.indices.astype(np.int64)
        own = source[one] == source[other]
        for kept, count in ((~own, most), (own & (one != other), NEAREST_OWN)):
            a, b, s = one[kept], other[kept], found.data[kept]
            best = np.lexsort((-s, a))
            a, b = a[best], b[best]
            place = np.arange(len(a)) - np.searchsorted(a, a)
            pairs.append(np.column_stack([a, b])[place < count])
    return known[np.concatenate(pairs)]
