"""Records in clusters: many members, fits of single fields, and rows that are full."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.slice import log_target
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated, law
from dfcrp.likelihoods.law import log_fit
from dfcrp.likelihoods.record import kernel, rates
from exact import test_records as records
from reference import record_reference
from reference.known_numbers import KnownNumbers


@pytest.fixture(params=[None, [0, 1, 0, 1, 1, 1, 0]], ids=["alike", "sources"])
def hyper(request):
    found = records.hyper_of(None, most=7)
    # Two who are both altered from a third; there are none in these few records.
    found.both_altered[:] = [0.7, 0.7, 1.3, 1.3]
    if request.param is None:
        return found
    entries = len(found.law)
    own = np.full((3, len(found.kind), 2), -1)
    own[found.entry >= 0] = entries + np.arange(2 * (found.entry >= 0).sum()).reshape(-1, 2)
    more = np.random.default_rng(6).normal(0.0, 0.5, 2 * (found.entry >= 0).sum())
    source = np.array(request.param, np.int32)
    law = np.concatenate([found.law, more])
    return kernel.with_room(found._replace(own=own, source=source, law=law))


Y = np.arange(7.0)[:, np.newaxis]
SETS = [
    (0,),
    (5,),
    (0, 2, 6),
    (1, 3, 6),
    (0, 1),
    (0, 3),
    (4, 2),
    (2, 3, 5),
    (6, 0, 1),
    (0, 1, 3, 4),
    (0, 1, 2, 3, 4, 6),
]


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
    for members in SETS[4:7]:
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
    for members in SETS[:-2]:
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


def test_what_was_weighed_before_a_change_is_not_used(hyper):
    """A record is weighed, another comes or leaves, then the first one joins."""
    for change, members in ((likelihood.add_member, (0, 3)), (likelihood.remove_member, (0, 3, 6))):
        theta = row_of(hyper, members)
        likelihood.log_density(hyper, theta, 1, Y, 1)
        change(hyper, theta, 1, Y, 6)
        likelihood.add_member(hyper, theta, 1, Y, 1)
        now = [0, 3, 6, 1] if len(members) == 2 else [0, 3, 1]
        expected = record_reference.log_ratio(hyper, now)
        assert integrated.log_marginal(hyper, theta, 1) == pytest.approx(expected, abs=1e-9)


def test_an_empty_row_says_nothing(hyper):
    theta = row_of(hyper, ())
    assert integrated.log_marginal(hyper, theta, 1) == 0.0
    assert theta[1, kernel.MEMBERS] == 0.0
    assert likelihood.log_density(hyper, theta, 1, Y, 3) == 0.0


def test_a_record_is_known_by_the_last_of_its_features(hyper):
    y = np.column_stack([Y[:, 0] + 1.0, Y])
    theta = row_of(hyper, ())
    for i in (4, 0, 3):
        likelihood.log_density(hyper, theta, 1, y, i)
        assert theta[1, kernel.NOTED] == i
        likelihood.add_member(hyper, theta, 1, y, i)
    likelihood.remove_member(hyper, theta, 1, y, 0)
    assert theta[1, kernel.FIRST : kernel.FIRST + 2].tolist() == [4.0, 3.0]


def test_one_value_says_nothing(hyper):
    """Nor does none: of three records, whoever else has a value."""
    for field in range(len(hyper.kind)):
        there = [i for i in range(7) if hyper.values[i, field] >= 0]
        values = hyper.values.copy()
        # The last of all records has a value, and is not among them.
        values[6, field] = values[there[0], field]
        values[:6, field] = -1
        theta = row_of(hyper, (0, 1, 2))
        few = hyper._replace(values=values)
        assert kernel.log_ratio_of_field(few, theta, 1, 3, field) == 0.0
        for one in range(3):
            values[:6, field] = -1
            values[one, field] = hyper.values[there[1], field]
            found = kernel.log_ratio_of_field(few, theta, 1, 3, field)
            assert found == pytest.approx(0.0, abs=1e-12)


def test_pairs_of_similar_values_are_found():
    listed = [[1, 2, 4, 5, 7, 9], [0], [], [3, 4], [8], [0, 2, 3, 6, 7], [], [], [], []]
    hyper = SimpleNamespace(
        first=np.array([0, 3]),
        similar_start=np.cumsum([0, 0, 0, 0, *map(len, listed)]),
        similar=np.concatenate(listed).astype(int),
    )
    for one, others in enumerate(listed):
        for other in range(10):
            at = kernel.listed_at(hyper, 1, one, other)
            if other in others:
                assert at == hyper.similar_start[3 + one] + others.index(other)
            else:
                assert at < 0


def test_a_set_is_given_up_for_a_more_probable_one_alone(hyper):
    """With room for one set, of values far apart and often unrelated: that of nobody."""
    field = 2
    assert hyper.kind[field] == kernel.MEASURE
    hyper.law[hyper.entry[kernel.MISS, field]] = 4.0
    place = hyper.place.copy()
    place[hyper.first[field] : hyper.first[field + 1]] = (
        1e6 * np.arange(hyper.first[field + 1] - hyper.first[field])[:, np.newaxis]
    )
    apart = hyper._replace(place=place)
    members = [0, 1, 2]
    theta = row_of(apart, members, kernel.FIRST + 7 + kernel.SET_WIDTH)
    found = kernel.nobody_same_of_measure(apart, theta, 1, 3, field, False)
    expected = math.prod(kernel.miss_rate(apart, field, i) for i in members)
    assert found == pytest.approx(expected)


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


# Rates --------------------------------------------------------------------------------------------

CLUSTERS = [(0, 1), (2,), (), (3, 4, 6), (4, 0), (5, 2), (1, 6), (0, 1, 2, 3)]


def clustered(hyper) -> SimpleNamespace:
    """As if records were in several clusters, which is all the same to the fit."""
    theta = np.concatenate([row_of(hyper, members)[1:] for members in CLUSTERS])
    return SimpleNamespace(
        theta=theta, size=np.array([len(members) for members in CLUSTERS]),
        label=np.zeros(7), scans=[0], spare=np.zeros((3, ROOM)),
    )  # fmt: skip


def fit_of(hyper, field) -> float:
    return sum(
        record_reference.log_ratio_of_field(hyper, field, list(members))
        for members in CLUSTERS
        if len(members) > 1
    )


def test_when_rates_are_due(monkeypatch):
    monkeypatch.setattr(rates, "law_is_due", lambda state: state.due)
    for sizes, every, less in (
        ([2] * 16, 1, 8.0),
        ([2] * 14 + [1, 3], 1 + 8 * 9 // 16, 8.0),
        ([1] * 15 + [9], 8, 8.0),
        ([2] * 14 + [1, 3], 1, 0.5),
        ([4] * 4 + [0] * 12, 1 + 2, 0.5),
        ([16] + [0] * 15, 8, 0.5),
    ):
        for scan in range(9, 20):
            for due in (True, False):
                state = SimpleNamespace(
                    label=np.zeros(16), size=np.array(sizes), scans=[scan], due=due
                )
                expected = due or scan % min(every, law.PERIOD) == 0
                assert rates.rates_are_due(state, less) == expected


def test_rates_are_noted(hyper):
    sources_of = hyper.noted.shape[2]
    for field in range(len(hyper.kind)):
        hyper.noted[:], hyper.rates[:] = 9.0, 9.0
        rates.note_rates(hyper, field)
        for what in range(kernel.SCALE):
            for source in range(sources_of):
                record = next((i for i in range(7) if hyper.source[i] == source), None)
                if hyper.entry[what, field] < 0 or record is None:
                    continue
                odds = record_reference.learned(hyper, what, field, record)
                assert hyper.noted[what, field, source] == pytest.approx(odds)
                chance = 1.0 / (1.0 + math.exp(-odds))
                assert hyper.rates[what, field, source] == pytest.approx(chance)
        others = [other for other in range(len(hyper.kind)) if other != field]
        assert (hyper.noted[:, others] == 9.0).all()


@pytest.mark.parametrize("narrow", [False, True])
def test_posterior_of_a_rate(hyper, narrow, monkeypatch):
    """By the table of facts, as by the sum over all ways."""
    if narrow:
        monkeypatch.setattr(rates, "SMALL", 0.9)
        monkeypatch.setattr(rates, "LARGE", 1.1)
    hyper = hyper._replace(
        law_mean=np.full(len(hyper.law), -0.7), law_sd=np.full(len(hyper.law), 1.3),
        facts=np.full((9, hyper.facts.shape[1]), 5.0),
    )  # fmt: skip
    state = clustered(hyper)
    for field in range(len(hyper.kind)):
        rates.note_rates(hyper, field)
    for field in range(len(hyper.kind)):
        pairs, larger = rates.gather_facts(hyper, state, field)
        entries = [hyper.entry[kernel.MISS, field], hyper.entry[kernel.ALTER, field]]
        entries += hyper.own[: kernel.SCALE, field].ravel().tolist()
        for which in entries:
            if which < 0:
                continue
            start = hyper.law[which]
            target = rates.Rate(hyper, state, field, which, pairs, larger)
            found, expected = [], []
            for value in (start, start + 0.8, start - 1.1):
                found.append(log_target(target, value))
                assert hyper.law[which] == value
                expected.append(fit_of(hyper, field) - 0.5 * ((value + 0.7) / 1.3) ** 2)
            np.testing.assert_allclose(found, expected, atol=1e-9)
            far = law.FARTHEST * 1.3
            for end, open_ in ((0.9999, True), (-0.9999, True), (1.01, False), (-1.01, False)):
                assert (log_target(target, -0.7 + end * far) > -math.inf) == open_
            log_target(target, start)


def test_slices_of_rates(hyper, monkeypatch):
    asked, noted = [], []

    def known(rng, target, start, width, least):
        asked.append((target, start, width, least))
        return start + 0.25

    monkeypatch.setattr(rates, "slice_update", known)
    monkeypatch.setattr(rates, "note_rates", lambda _, field: noted.append(field))
    monkeypatch.setattr(rates, "slice_width", lambda *_: 0.6)
    start = hyper.law[1]
    rates.slice_rate(hyper, None, "state", 2, 1, 5, 3)
    [(target, begun, width, least)] = asked
    assert target[1:] == ("state", 2, 1, 5, 3)
    assert (begun, width) == (start, 0.6)
    assert least == pytest.approx(1e-12 * (1.0 + abs(start)))
    assert hyper.law[1] == start + 0.25
    assert noted == [2]
    hyper.law[1] = start


@pytest.mark.parametrize("measures", [True, False])
def test_which_rates_are_updated(measures, hyper, monkeypatch):
    most = int(law.MOST_AT_ONCE)
    short, long = (SimpleNamespace(law_mean=np.zeros(n)) for n in (most, 2 * most))
    assert rates.is_chosen(short, None)
    assert rates.is_chosen(long, KnownNumbers([0.49]))
    assert not rates.is_chosen(long, KnownNumbers([0.51]))
    done, chosen = [], []
    monkeypatch.setattr(rates, "gather_facts", lambda h, s, field: (field + 10, field + 20))
    monkeypatch.setattr(rates, "slice_rate", lambda *given: done.append(given[3:]))
    monkeypatch.setattr(rates, "is_chosen", lambda *_: chosen.append(1) or len(chosen) % 3 != 0)
    asked_of = []
    monkeypatch.setattr(rates, "rates_are_due", lambda s, less: asked_of.append(less) or measures)
    rates.update_rates(hyper, None, None)
    assert asked_of == [rates.LESS_OFTEN_MEASURES]
    expected, asked = [], 0
    for field in range(len(hyper.kind)):
        if hyper.kind[field] == kernel.MEASURE and not measures:
            continue
        for what in range(kernel.SCALE):
            if hyper.entry[what, field] < 0:
                continue
            for which in (hyper.entry[what, field], *hyper.own[what, field]):
                if which >= 0:
                    asked += 1
                    if asked % 3 != 0:
                        expected.append((field, which, field + 10, field + 20))
    assert done == expected
    assert len(chosen) == asked


def test_rows_are_weighed_again(hyper):
    state = clustered(hyper)
    kept = state.theta.copy()
    used = state.size > 0
    state.theta[used, kernel.LOG_MARGINAL] = 9.0
    state.theta[:, kernel.NOTED] = 4.0
    state.spare[:, kernel.NOTED] = 4.0
    rates.weigh_rows(hyper, state)
    np.testing.assert_allclose(
        state.theta[used, kernel.LOG_MARGINAL], kept[used, kernel.LOG_MARGINAL]
    )
    assert (state.theta[used, kernel.NOTED] == kernel.NOBODY).all()
    assert (state.theta[~used, kernel.NOTED] == 4.0).all()
    assert (state.spare[:, kernel.NOTED] == kernel.NOBODY).all()
