"""The record likelihood against the sum over all true values, and edit distances in plain loops."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.items.items import Items
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.fields import Fields
from dfcrp.likelihoods.record.hyper import log_bayes_factors, records_hyper
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.likelihoods.record.settings import RecordSettings
from dfcrp.likelihoods.record.strings import edit_distances

NAMES = ["anna", "ann", "bob", "rob", "anna", "", "zoe"]
YEARS = ["1980", "1981", "1980", "1980", "", "1981", "1890"]
WEIGHTS = ["1.5", "1.6", "80.25", "1.5", "79", "", "2"]


@pytest.fixture(scope="module")
def records() -> Fields:
    everyone = [(i, j) for i in range(7) for j in range(i)]
    columns = {"name": NAMES, "year": YEARS, "weight": WEIGHTS}
    items = Items.from_columns(columns, kind="records", candidates=everyone)
    return RECORDS.fields(items, RecordSettings(categories=("year",)))


def features(records) -> np.ndarray:
    """Codes, and the record's own number."""
    codes = records.codes
    return np.column_stack([codes, np.arange(len(codes))]).astype(np.float64)


@pytest.fixture(scope="module")
def hyper(records):
    found = records_hyper(RecordSettings(), records)
    found.law[:] = [-2.0, -1.5, -2.5, -1.0, -0.5, -1.2]
    return found


def typo(hyper, records, field, true, seen) -> float:
    at = hyper.first[field] + true
    for place in range(hyper.similar_start[at], hyper.similar_start[at + 1]):
        if hyper.similar[place] == seen:
            return float(hyper.typo[place])
    return 0.0


def brute_force(hyper, records, members) -> float:
    """The definition, value by value; typos to a value that no member shows are left out."""
    total = 0.0
    for field, values in enumerate(records.values):
        seen = [c for c in records.codes[list(members), field].tolist() if c >= 0]
        miss = 1.0 / (1.0 + math.exp(-hyper.law[field]))
        mistyped = 1.0 / (1.0 + math.exp(-hyper.law[3 + field]))
        share = hyper.frequency[hyper.first[field] : hyper.first[field + 1]]
        sum_of_all = 0.0
        for true in range(len(values)):
            chance = float(share[true])
            for x in seen:
                p = miss * share[x]
                if true in seen:
                    p += (1 - miss) * (1 - mistyped) * (x == true)
                    p += (1 - miss) * mistyped * typo(hyper, records, field, true, x)
                chance *= p
            sum_of_all += chance
        total += math.log(sum_of_all)
    return total


def row_of(hyper, records, members) -> np.ndarray:
    theta = np.zeros((1, kernel.FIRST + 6))
    integrated.empty_row(hyper, theta, 0)
    for i in members:
        likelihood.add_member(hyper, theta, 0, features(records), i)
    return theta


def test_marginal_is_the_sum_over_true_values(records, hyper):
    for members in [(0,), (5,), (0, 1), (0, 4), (2, 3, 5), (0, 1, 2, 3, 4, 6)]:
        found = integrated.log_marginal(hyper, row_of(hyper, records, members), 0)
        assert found == pytest.approx(brute_force(hyper, records, members), abs=1e-12)


def test_density_is_the_ratio_and_leaving_undoes_joining(records, hyper):
    theta = row_of(hyper, records, (0, 2, 4))
    before = theta[0, kernel.LOG_MARGINAL]
    density = likelihood.log_density(hyper, theta, 0, features(records), 1)
    likelihood.add_member(hyper, theta, 0, features(records), 1)
    assert theta[0, kernel.LOG_MARGINAL] == pytest.approx(before + density)
    likelihood.remove_member(hyper, theta, 0, features(records), 2)
    expected = brute_force(hyper, records, (0, 1, 4))
    assert integrated.log_marginal(hyper, theta, 0) == pytest.approx(expected)


def test_a_full_cluster_takes_no_more(records, hyper):
    theta = row_of(hyper, records, range(6))
    assert likelihood.log_density(hyper, theta, 0, features(records), 6) == -math.inf
    likelihood.add_member(hyper, theta, 0, features(records), 6)
    assert integrated.log_marginal(hyper, theta, 0) == -math.inf


def test_bayes_factors_of_pairs(records, hyper):
    """At the prior's odds; a pair's marginal differs by true values that neither shows."""
    at_prior = hyper._replace(law=hyper.law_mean)
    pairs = np.array([(0, 4), (2, 3), (0, 6)])
    found = log_bayes_factors(at_prior, records, pairs)
    for (i, j), value in zip(pairs.tolist(), found, strict=True):
        exact = brute_force(at_prior, records, (i, j))
        exact -= brute_force(at_prior, records, (i,)) + brute_force(at_prior, records, (j,))
        assert value == pytest.approx(exact, abs=0.35)


def slow_distance(a, b) -> int:
    table = {(-1, -1): 0}
    for i in range(-1, len(a)):
        for j in range(-1, len(b)):
            options = [table[-1, -1]] if (i, j) == (-1, -1) else []
            if i >= 0:
                options.append(table[i - 1, j] + 1)
            if j >= 0:
                options.append(table[i, j - 1] + 1)
            if i >= 0 and j >= 0:
                options.append(table[i - 1, j - 1] + (a[i] != b[j]))
                if i and j and a[i] == b[j - 1] and a[i - 1] == b[j]:
                    options.append(table[i - 2, j - 2] + 1)
            table[i, j] = min(options)
    return table[len(a) - 1, len(b) - 1]


def test_edit_distances():
    rng = np.random.default_rng(5)
    words = ["".join(rng.choice(list("abc"), rng.integers(1, 8))) for _ in range(40)]
    start = np.concatenate([[0], np.cumsum([len(w) for w in words])])
    text = np.array([ord(c) for c in "".join(words)])
    first, second = (found.astype(np.int64) for found in np.triu_indices(40, 1))
    out = np.empty(len(first), np.int64)
    edit_distances(text, start, first, second, 3, np.empty((3, 9), np.int64), out)
    for i, j, distance in zip(first, second, out, strict=True):
        assert distance == min(slow_distance(words[i], words[j]), 4)
