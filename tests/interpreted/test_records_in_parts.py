"""Records in clusters: many members, fits of single fields, and rows that are full."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated
from dfcrp.likelihoods.law import log_fit
from dfcrp.likelihoods.record import kernel
from exact import test_records as records
from reference import record_reference


@pytest.fixture(params=[None, [0, 1, 0, 1, 2, 2, 0]], ids=["alike", "sources"])
def hyper(request):
    found = records.hyper_of(None, most=7)
    if request.param is None:
        return found
    entries = len(found.law)
    own = np.full((3, len(found.kind), 3), -1)
    own[found.entry >= 0] = entries + np.arange(3 * (found.entry >= 0).sum()).reshape(-1, 3)
    more = np.random.default_rng(6).normal(0.0, 0.5, 3 * (found.entry >= 0).sum())
    return found._replace(
        own=own, source=np.array(request.param, np.int32), law=np.concatenate([found.law, more])
    )


Y = np.arange(7.0)[:, np.newaxis]
SETS = [(0,), (5,), (0, 1), (0, 3), (4, 2), (2, 3, 5), (6, 0, 1), (0, 1, 3, 4), (0, 1, 2, 3, 4, 6)]


#: Room for all sets of altered members, so that none is given up.
ROOM = kernel.row_width(7, True) + 128 * kernel.SET_WIDTH


def row_of(hyper, members, width=ROOM):
    theta = np.full((2, width), 3.0)
    integrated.empty_row(hyper, theta, 1)
    for i in members:
        likelihood.add_member(hyper, theta, 1, Y, i)
    return theta


def test_marginals(hyper):
    for members in SETS:
        found = integrated.log_marginal(hyper, row_of(hyper, members), 1)
        expected = record_reference.log_ratio(hyper, list(members))
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("many", [2, 3])
def test_marginals_of_many_members(hyper, many, monkeypatch):
    """Products are kept finite by units, which change nothing."""
    monkeypatch.setattr(kernel, "MANY_MEMBERS", many)
    for members in SETS:
        found = integrated.log_marginal(hyper, row_of(hyper, members), 1)
        expected = record_reference.log_ratio(hyper, list(members))
        assert found == pytest.approx(expected, abs=1e-9)


def test_units_bound_the_factors(hyper):
    """So that a product of many cannot overflow."""
    for field in range(len(hyper.kind)):
        for record in range(7):
            seen = hyper.values[record, field]
            if seen < 0:
                continue
            assert kernel.unit(hyper, field, record, seen, False) == 1.0
            size = kernel.unit(hyper, field, record, seen, True)
            expected = 1.0 + 1.0 / hyper.share[hyper.first[field] + seen]
            if hyper.kind[field] == kernel.MEASURE:
                expected += kernel.peak(hyper, field, record, seen)
            assert size == pytest.approx(expected)


def test_products_of_two_are_folded_in(hyper, monkeypatch):
    monkeypatch.setattr(kernel, "SMALL", 0.9)
    monkeypatch.setattr(kernel, "LARGE", 1.1)
    for members in SETS[2:5]:
        found = integrated.log_marginal(hyper, row_of(hyper, members), 1)
        expected = record_reference.log_ratio(hyper, list(members))
        assert found == pytest.approx(expected, abs=1e-9)


@pytest.mark.parametrize("narrow", [False, True])
def test_fit_of_a_field(hyper, narrow, monkeypatch):
    if narrow:
        monkeypatch.setattr(kernel, "SMALL", 0.9)
        monkeypatch.setattr(kernel, "LARGE", 1.1)
    clusters = [(0, 1), (2,), (), (3, 4, 6), (4, 0), (5, 2), (1, 6)]
    theta = np.concatenate([row_of(hyper, members)[1:] for members in clusters])
    state = SimpleNamespace(theta=theta, size=np.array([len(members) for members in clusters]))
    for which in range(len(hyper.about)):
        field = int(hyper.about[which])
        expected = sum(
            record_reference.log_ratio_of_field(hyper, field, list(members))
            for members in clusters
            if len(members) > 1
        )
        assert log_fit(hyper, None, state, which) == pytest.approx(expected, abs=1e-9)


def test_densities_and_departures(hyper):
    for members in SETS:
        for i in range(7):
            if i in members:
                theta = row_of(hyper, members)
                likelihood.remove_member(hyper, theta, 1, Y, i)
                left = [j for j in members if j != i]
                expected = record_reference.log_ratio(hyper, left) if left else 0.0
                assert integrated.log_marginal(hyper, theta, 1) == pytest.approx(expected, abs=1e-9)
                assert theta[1, kernel.MEMBERS] == len(left)
                there = theta[1, kernel.FIRST : kernel.FIRST + len(left)]
                assert sorted(there.tolist()) == sorted(left)
                # Nothing is noted of who was there before.
                likelihood.add_member(hyper, theta, 1, Y, i)
            else:
                theta = row_of(hyper, members)
                found = likelihood.log_density(hyper, theta, 1, Y, i)
                whole = record_reference.log_ratio(hyper, [*members, i])
                expected = whole - record_reference.log_ratio(hyper, list(members))
                assert found == pytest.approx(expected, abs=1e-9)
                # Another joins than the one that was weighed.
                other = next((j for j in range(7) if j not in (*members, i)), i)
                likelihood.add_member(hyper, theta, 1, Y, other)
                whole = record_reference.log_ratio(hyper, [*members, other])
                assert integrated.log_marginal(hyper, theta, 1) == pytest.approx(whole, abs=1e-9)


def test_rows_that_are_full(hyper):
    full = hyper._replace(most=np.array([3]))
    theta = row_of(full, (0, 1, 3), kernel.row_width(3, True))
    assert likelihood.log_density(full, theta, 1, Y, 4) == -math.inf
    assert integrated.log_marginal(full, theta, 1) > -math.inf
    likelihood.add_member(full, theta, 1, Y, 4)
    assert integrated.log_marginal(full, theta, 1) == -math.inf
    assert theta[1, kernel.MEMBERS] == 4


def test_the_least_probable_set_is_given_up():
    width = kernel.SET_WIDTH
    theta = np.zeros((2, 4 + 6 * width))
    theta[1, 4::width] = [5.0, 1.0, 7.0, 0.5, 0.4, 3.0]
    # Of six sets the first four were there before; those up to the third know of the record.
    assert kernel.least_set(theta, 1, 4, 2, 4, 6) == 4
    assert kernel.least_set(theta, 1, 4, 2, 6, 6) == 1
    assert kernel.least_set(theta, 1, 4, 0, 5, 6) == 5
    assert kernel.least_set(theta, 1, 4, 3, 5, 6) == 3


def test_sets_that_are_given_up_cost_little(hyper):
    """The larger ones are kept, so that less and less is lost with more room."""
    members, lost = (0, 1, 2, 3, 4, 6), []
    exact = integrated.log_marginal(hyper, row_of(hyper, members), 1)
    for sets in (4, 8, 16, 32):
        width = kernel.FIRST + 7 + sets * kernel.SET_WIDTH
        lost.append(exact - integrated.log_marginal(hyper, row_of(hyper, members, width), 1))
    assert min(lost) >= -1e-12
    assert lost == sorted(lost, reverse=True)
    assert lost[2] < 1e-3
    assert lost[1] < 0.05


def test_what_is_recorded(hyper):
    out = np.zeros((2, 1))
    kernel.record_row(hyper, row_of(hyper, (0, 3, 5)), 1, out, 1)
    assert out.tolist() == [[0.0], [3.0]]
    assert likelihood.update_cluster(hyper, None, None, None, None, 0, None)
