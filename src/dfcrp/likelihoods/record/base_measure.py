"""How frequent values are by chance: shares of values, densities of measures, similar pairs."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.record.fields import Field
from dfcrp.likelihoods.record.levels import LEVELS, LevelComparison

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
