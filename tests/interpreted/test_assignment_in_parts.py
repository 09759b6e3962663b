"""Candidates of a marking, its weights without features, and where it is seated; zones."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves import assignment
from dfcrp.priors.detection import places
from reference import kernel_reference as reference
from reference.random_cases import Case


@pytest.fixture(params=range(12))
def case(request) -> Case:
    return Case(request.param, None if request.param % 3 == 0 else 1.5)


def test_candidates(case):
    """Clusters that keep the rule with the marking in them, however often they are asked for."""
    scratch = case.scratch
    for clock, seen in ((0, 0), (assignment.LAST_TICK - assignment.TICK, 0),
                        (assignment.LAST_TICK - 1, 7), (5 * assignment.TICK, 0)):  # fmt: skip
        scratch.clock[0] = clock
        scratch.seen[:] = seen
        if seen:
            scratch.seen[:] = assignment.LAST_TICK
        for i in range(case.n):
            for _ in range(2):
                state = case.fresh_state()
                assignment.detach(case.data, case.hyper, state, i)
                found = assignment.find_candidates(case.data, state, scratch, i, scratch.candidate)
                slots = {int(state.label[j]): case.labels[j] for j in range(case.n) if j != i}
                expected = []
                for k, label in slots.items():
                    moved = list(case.labels)
                    moved[i] = label
                    fine = reference.keeps_the_rule(moved, case.families, case.allowed)
                    expected += [k] * fine
                assert sorted(scratch.candidate[:found].tolist()) == sorted(expected)
        assert scratch.clock[0] <= assignment.LAST_TICK


def test_weights_without_features(case, monkeypatch):
    """Sizes of all candidates are told to the prior, and none is negligible."""
    data = case.data._replace(weigh_features=False)
    asked = []

    def joins(prior, d, state, scratch, i, candidate, found, weight, size, yardstick):
        asked.append((weight[:found].copy(), size[:found].copy(), yardstick))
        return found

    monkeypatch.setattr(assignment, "weigh_joins", joins)
    for i in range(case.n):
        state = case.fresh_state()
        assignment.detach(data, case.hyper, state, i)
        asked.clear()
        case.scratch.weight[:], case.scratch.log_object[:] = 5.0, 5.0
        count = assignment.weigh_features(
            data, case.hyper, case.prior, state, case.scratch, i, -3.0,
            case.scratch.candidate, case.scratch.weight,
        )  # fmt: skip
        assert case.scratch.candidate[count - 1] == NONE
        assert case.scratch.weight[count - 1] == -3.0
        assert len(asked) == int(count > 1)
        for weight, size, yardstick in asked:
            assert yardstick == -math.inf
            assert not weight.any()
            expected = [
                likelihood.size_of(case.hyper, state.theta, k)
                for k in case.scratch.candidate[: count - 1]
            ]
            np.testing.assert_array_equal(size, expected)
        asked.clear()
        state = case.fresh_state()
        assignment.detach(case.data, case.hyper, state, i)
        assignment.weigh_features(
            case.data, case.hyper, case.prior, state, case.scratch, i, -3.0,
            case.scratch.candidate, case.scratch.weight,
        )  # fmt: skip
        assert all(yardstick == -3.0 for *_, yardstick in asked)


def test_the_size_of_a_new_cluster(case, monkeypatch):
    monkeypatch.setattr(assignment, "log_open", lambda *given: given[-1])
    for i in range(case.n):
        state = case.fresh_state()
        state.theta[:, 2] += 100.0
        assignment.detach(case.data, case.hyper, state, i)
        found = assignment.log_open_detached(case.data, case.hyper, None, 0.0, state, i)
        alone = case.labels.count(case.labels[i]) == 1
        row = state.theta[state.label[i]] if alone else state.spare[i]
        assert found == row[2]


def test_members_are_told_where_they_are_seated(case, monkeypatch):
    told, drawn = [], []
    monkeypatch.setattr(likelihood, "add_member", lambda h, theta, k, y, i: told.append((k, i)))
    monkeypatch.setattr(
        likelihood, "open_cluster", lambda h, rng, y, i, theta, k: drawn.append((i, k)) or 1.25
    )
    others = sorted({int(k) for k in case.state.label})
    for weigh in (True, False):
        data = case.data._replace(weigh_features=weigh)
        for i in range(case.n):
            for k in (NONE, others[0]):
                state = case.fresh_state()
                assignment.detach(data, case.hyper, state, i)
                told.clear()
                drawn.clear()
                alone = state.size[state.label[i]] == 0
                if k != NONE and alone and state.label[i] == k:
                    continue
                assignment.attach(None, data, case.hyper, state, i, k, 0.5)
                assert told == [(k, i)] * (weigh and k != NONE)
                assert drawn == [(i, i)] * (weigh and k == NONE and not alone)
                if k != NONE:
                    assert state.label[i] == k
                    if alone:
                        assert state.spare_weight[i] == 0.5


def test_rows_are_told_who_leaves(case, monkeypatch):
    told = []
    monkeypatch.setattr(likelihood, "remove_member", lambda h, theta, k, y, i: told.append((k, i)))
    for weigh in (True, False):
        data = case.data._replace(weigh_features=weigh)
        for i in range(case.n):
            state = case.fresh_state()
            told.clear()
            k, alone = int(state.label[i]), case.labels.count(case.labels[i]) == 1
            assignment.detach(data, case.hyper, state, i)
            assert told == [(k, i)] * (weigh and not alone)


def test_rows_move_as_a_whole(case, monkeypatch):
    """A spare becomes the row of a new cluster; the row of one that closes becomes a spare."""
    monkeypatch.setattr(likelihood, "open_cluster", lambda *_: 0.0)
    monkeypatch.setattr(likelihood, "opening_weight", lambda *_: 0.0)
    for i in range(case.n):
        others = {int(k) for k in np.delete(case.state.label, i)}
        for k in (NONE, *others):
            state = case.fresh_state()
            for values in (state.theta, state.spare):
                values[:] = case.rng.normal(size=values.shape)
            theta, spare = state.theta.copy(), state.spare.copy()
            old = int(state.label[i])
            assignment.detach(case.data, case.hyper, state, i)
            alone = state.size[old] == 0
            if k == old and alone:
                continue
            assignment.attach(None, case.data, case.hyper, state, i, k, 0.5)
            now = int(state.label[i])
            if k == NONE:
                np.testing.assert_array_equal(state.theta[now], theta[old] if alone else spare[i])
            elif alone:
                np.testing.assert_array_equal(state.spare[i], theta[old])


def zoned(zones, start, share, zone, image):
    looks = SimpleNamespace(
        zones=np.array(zones), share=np.array(share), zone=np.array(zone), image=np.array(image),
        start=np.array(start), viewer=np.array([0, 1, 1, 2]), row_viewer=np.array([0, 1, 2]),
        row=np.array([0, 1, 2, 0, 1]),
    )  # fmt: skip
    return SimpleNamespace(looks=looks, sizes=np.zeros(0))


def test_zones_of_clusters():
    data = SimpleNamespace(original=np.arange(5))
    # Members 0, 1, 2 in a list; 3 and 4 are others.
    state = SimpleNamespace(head=np.array([0]), after=np.array([1, 2, NONE, NONE, NONE]))
    one = zoned([0, 2], [0, 2, 4], [0.5, 0.5], [1, 0, 1, 0, 0], [0] * 5)
    assert places.by_members(one)
    assert places.zone_of(one, data, state, 0, NONE) == 1
    assert places.zone_of(one, data, state, 0, 3) == 0
    alike = zoned([0, 2], [0, 2, 4], [0.5, 0.5], [1, 1, 1, 0, 1], [0] * 5)
    assert places.zone_of(alike, data, state, 0, NONE) == 1
    assert places.zone_of(alike, data, state, 0, 3) == 1
    two = SimpleNamespace(head=np.array([0]), after=np.array([1, NONE, NONE, NONE, NONE]))
    tied = zoned([0, 2], [0, 2, 4], [0.5, 0.5], [1, 0, 1, 0, 1], [0] * 5)
    assert places.zone_of(tied, data, two, 0, NONE) == 0
    single = SimpleNamespace(head=np.array([0]), after=np.array([NONE] * 5))
    assert places.zone_of(tied, data, single, 0, 1) == 0
    assert places.zone_of(tied, data, single, 0, 2) == 1
    # Without footprints an image is a zone.
    plain = zoned([0, 1, 2], [0, 2, 4], [1.0, 1.0], [1, 1, 1, 1, 1], [1] * 5)
    assert not places.by_members(plain)
    assert places.zone_of(plain, data, state, 0, 3) == 1
    sized = SimpleNamespace(looks=plain.looks, sizes=np.zeros(1))
    assert places.by_members(sized)
    second = zoned([0, 1, 3], [0, 1, 2, 4], [1.0, 0.5, 0.5], [2, 1, 2, 1, 1], [1] * 5)
    assert places.zone_of(second, data, state, 0, 3) == 1
    assert places.zone_of(second, data, state, 0, NONE) == 2


def test_who_looks_from_outside():
    one = zoned([0, 2], [0, 2, 4], [0.5, 0.5], [1, 0, 1, 0, 0], [0] * 5)
    # Zone 0 has viewers 0 and 1, zone 1 has 1 and 2.
    assert [places.covers(one.looks, viewer, 0) for viewer in range(3)] == [True, True, False]
    assert [places.covers(one.looks, viewer, 1) for viewer in range(3)] == [False, True, True]
    assert places.is_outside(one, 2, 0)
    assert not places.is_outside(one, 2, 1)
    assert not places.is_outside(one, 1, 1)
    assert places.is_outside(one, 3, 1)


def test_levels_of_sizes():
    prior = SimpleNamespace(low=2.0, step=0.5, away=np.zeros(4), sizes=np.zeros(0))
    sizes = (1.0, 1.9, 2.1, 2.49, 2.51, 3.9, 4.1, 9.0)
    assert [places.level_of(prior, size) for size in sizes] == [0, 0, 0, 0, 1, 3, 3, 3]
    data = SimpleNamespace(original=np.array([2, 0, 1]))
    state = SimpleNamespace(head=np.array([0]), after=np.array([1, NONE, NONE]))
    assert places.level_with(prior, data, state, 0, 2, 2.6) == 1
    assert places.level_alone(prior, data, 1, 2.6) == 1
    # By members: sizes in levels, of 0.5, 9.0 and 1.75 by item.
    own = SimpleNamespace(away=np.zeros(4), sizes=np.array([0.5, 9.0, 1.75]))
    assert places.level_with(own, data, state, 0, NONE, 0.0) == 1
    assert places.level_with(own, data, state, 0, 2, 0.0) == 3
    assert [places.level_alone(own, data, i, 0.0) for i in range(3)] == [1, 0, 3]
