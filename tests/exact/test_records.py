"""The record likelihood against its slow twin, and edit distances in plain loops."""

from __future__ import annotations

import math
from itertools import product

import numpy as np
import pytest

from dfcrp.items.items import Items
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated
from dfcrp.likelihoods.record import kernel
from dfcrp.likelihoods.record.hyper import RecordSettings, log_bayes_factors
from dfcrp.likelihoods.record.levels import edit_distances
from dfcrp.likelihoods.record.likelihood import RECORDS
from reference import record_reference

COLUMNS = {
    "name": ["anna", "ann", "bob", "rob", "anna", "", "zoe"],
    "year": ["1980", "1981", "1980", "1980", "", "1981", "1890"],
    "weight": ["1.5", "1.6", "80.25", "1.5", "79", "", "2"],
    "lat": ["48.1", "48.11", "", "48.1", "48.12", "50.0", "48.1"],
    "lon": ["11.5", "11.5", "11.5", "11.5", "11.51", "8.0", ""],
}
MANY = [(0,), (5,), (0, 1), (0, 3), (0, 4), (2, 3, 5), (0, 1, 3, 4), (0, 1, 2, 3, 4, 6)]


def hyper_of(sources, most=6):
    everyone = [(i, j) for i in range(7) for j in range(i)]
    items = Items.from_columns(COLUMNS, sources, kind="records", candidates=everyone)
    found = RECORDS.prepared(items, RecordSettings(categories=("year",))).hyper(most)
    rng = np.random.default_rng(8)
    found.law[:] = rng.normal(-1.0, 0.7, len(found.law))
    return found


@pytest.fixture(scope="module")
def hyper():
    found = hyper_of(None)
    assert found.kind.tolist() == [
        kernel.SIMILAR,
        kernel.SAME_OR_NOT,
        kernel.MEASURE,
        kernel.MEASURE,
    ]
    return found


@pytest.fixture(scope="module")
def sourced(hyper):
    """Each of two sources with its own rates and scale."""
    entries = np.argwhere(hyper.entry >= 0)
    own = np.full((3, 4, 2), -1)
    for number, (what, field) in enumerate(entries):
        own[what, field] = len(hyper.law) + 2 * number + np.arange(2)
    added = np.random.default_rng(9).normal(0.0, 0.8, 2 * len(entries))
    source = np.array([0, 1, 0, 1, 1, 0, 1], np.int32)
    return hyper._replace(law=np.concatenate([hyper.law, added]), own=own, source=source)


def features(hyper) -> np.ndarray:
    """Codes, and the record's own number."""
    return np.column_stack([hyper.values, np.arange(7)]).astype(np.float64)


def row_of(hyper, members) -> np.ndarray:
    theta = np.zeros((1, kernel.row_width(6, True)))
    integrated.empty_row(hyper, theta, 0)
    for i in members:
        likelihood.add_member(hyper, theta, 0, features(hyper), i)
    return theta


@pytest.mark.parametrize("which", ["hyper", "sourced"])
@pytest.mark.parametrize("members", MANY)
def test_ratio_is_the_sum_over_all_ways(which, members, request):
    """Of six members the least probable sets of altered measures are given up."""
    made = request.getfixturevalue(which)
    found = integrated.log_marginal(made, row_of(made, members), 0)
    close = 1e-10 if len(members) <= 4 else 2e-3
    assert found == pytest.approx(record_reference.log_ratio(made, list(members)), abs=close)


@pytest.fixture(scope="module")
def alike():
    """Five spellings of one name, any two of which may be altered from a third."""
    names = ["maria lee", "lee maria", "m. lee", "maria leee", "lee", "zoe", "bob"]
    everyone = [(i, j) for i in range(7) for j in range(i)]
    items = Items.from_columns({"name": names}, None, kind="records", candidates=everyone)
    found = RECORDS.prepared(items, RecordSettings(strings=("name",))).hyper(6)
    found.law[:] = [-1.5, 0.5]
    # J of a pair is the same both ways.
    of = np.repeat(np.arange(len(found.share)), np.diff(found.similar_start))
    pair = np.minimum(of, found.similar) * 7 + np.maximum(of, found.similar)
    found.both_altered[:] = 20.0 * np.random.default_rng(4).random(49)[pair]
    assert len(pair) >= 12
    return found


@pytest.mark.parametrize(
    "members", [(0, 1, 2), (4, 2, 1), (0, 1, 2, 3), (3, 4, 0, 5), (0, 1, 5, 6)]
)
def test_three_who_are_all_altered(alike, members):
    """Against the sum over all ways; that they say nothing, as of more members, is noticed."""
    found = kernel.log_ratio_of_field(alike, row_of(alike, members), 0, len(members), 0)
    exact = record_reference.log_ratio_of_field(alike, 0, list(members))
    assert found == pytest.approx(exact, abs=1e-10)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel, "FEW_MEMBERS", 2)
        planted = record_reference.log_ratio_of_field(alike, 0, list(members))
    assert abs(found - planted) > 1e-3


@pytest.mark.parametrize("members", [(0, 1), (2, 0), (0, 3), (0, 1, 2), (0, 1, 2, 3, 4)])
def test_likeness_of_different_objects_is_taken_away(hyper, members):
    """2 / n times Σ D of the pairs, however they join; that all pairs count in full is noticed."""
    rng = np.random.default_rng(11)
    full = np.triu(rng.random((7, 7)) < 0.7, 1) * rng.random((7, 7)) * 3.0
    full += full.T
    rows, others = np.nonzero(full)
    related = hyper._replace(
        alike_start=np.searchsorted(rows, np.arange(8)).astype(np.int64),
        alike=others.astype(np.int32),
        excess=full[rows, others],
    )
    alone = integrated.log_marginal(hyper, row_of(hyper, members), 0)
    found = integrated.log_marginal(related, row_of(related, members), 0)
    pairs = sum(full[i, j] for i in members for j in members if i < j)
    assert found == pytest.approx(alone - 2.0 * pairs / len(members))
    assert found == pytest.approx(record_reference.log_ratio(related, list(members)))
    if len(members) > 2:
        assert abs(found - (alone - pairs)) > 1e-3
    turned = integrated.log_marginal(related, row_of(related, members[::-1]), 0)
    assert turned == pytest.approx(found)
    pair = np.array([members[:2]])
    assert log_bayes_factors(related, pair)[0] == pytest.approx(
        record_reference.log_ratio(related, list(members[:2]))
    )


def test_the_order_of_joining_makes_no_difference(hyper):
    found = {
        integrated.log_marginal(hyper, row_of(hyper, members), 0)
        for members in [(0, 1, 2, 3, 4, 6), (6, 4, 3, 2, 1, 0), (3, 0, 6, 1, 4, 2)]
    }
    assert max(found) - min(found) < 1e-10


def test_density_is_the_ratio_and_leaving_undoes_joining(hyper):
    theta = row_of(hyper, (0, 2, 4))
    before = theta[0, kernel.LOG_MARGINAL]
    density = likelihood.log_density(hyper, theta, 0, features(hyper), 1)
    likelihood.add_member(hyper, theta, 0, features(hyper), 1)
    assert theta[0, kernel.LOG_MARGINAL] == pytest.approx(before + density)
    likelihood.remove_member(hyper, theta, 0, features(hyper), 2)
    expected = record_reference.log_ratio(hyper, [0, 1, 4])
    assert integrated.log_marginal(hyper, theta, 0) == pytest.approx(expected)


def test_a_full_cluster_takes_no_more(hyper):
    theta = row_of(hyper, range(6))
    assert likelihood.log_density(hyper, theta, 0, features(hyper), 6) == -math.inf
    likelihood.add_member(hyper, theta, 0, features(hyper), 6)
    assert integrated.log_marginal(hyper, theta, 0) == -math.inf


def test_bayes_factors_of_pairs(hyper):
    pairs = np.array([(i, j) for i in range(7) for j in range(i)])
    found = log_bayes_factors(hyper, pairs)
    exact = [record_reference.log_ratio(hyper, pair) for pair in pairs.tolist()]
    assert found == pytest.approx(np.array(exact), abs=1e-10)


@pytest.mark.parametrize("field", [0, 1])
@pytest.mark.parametrize("members", [1, 2, 3])
def test_chances_of_all_values_add_up(hyper, field, members):
    """To one for categories; of text, similar values that the data lack are a part of it."""
    count = int(hyper.first[field + 1] - hyper.first[field])
    made = hyper._replace(values=np.full((members, 4), -1, np.int32))
    total = 0.0
    for values in product(range(count), repeat=members):
        made.values[:, field] = values
        everyone = [*range(members)]
        log_p = record_reference.log_ratio_of_field(made, field, everyone)
        total += math.exp(log_p + record_reference.log_share(made, field, everyone))
    if field == 1 or members == 1:
        assert total == pytest.approx(1.0)
    else:
        assert 0.5 < total < 1.0 + 1e-12


def test_altered_measures_integrate_over_the_true_value():
    """J(B) as a number against an integral, of three members with their own precision."""
    made = hyper_of(None)
    flat = made._replace(
        log_density=np.full_like(made.log_density, math.log(0.02)),
        source=np.array([0, 1, 2, 2, 2, 2, 2], np.int32),
        own=np.where(np.arange(3)[:, None, None] == kernel.SCALE, len(made.law) + np.arange(3), -1)
        * np.ones((1, 4, 1), int),
        law=np.concatenate([made.law, [-0.5, 0.0, 0.7]]),
    )
    flat.law[flat.entry[kernel.SCALE, 2]] = 0.3
    true = np.linspace(-40.0, 60.0, 200_001)
    product_ = np.full(len(true), 0.02)
    for i in (0, 1, 6):
        x = flat.place[flat.first[2] + flat.values[i, 2], 0]
        s2 = record_reference.variance(flat, 2, i)
        product_ *= np.exp(-0.5 * (x - true) ** 2 / s2) / np.sqrt(2 * np.pi * s2) / 0.02
    expected = float(product_.sum() * (true[1] - true[0]))
    assert record_reference.nobody_same(flat, 2, [0, 1, 6], 3) == pytest.approx(expected, rel=1e-9)


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
