"""Scans, extra visits, the paper's samplers, slices and lists of members with known numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled import slice as slices
from dfcrp.compiled import state as states
from dfcrp.compiled.state import (
    ALPHA_ACCEPTED,
    ALPHA_PROPOSED,
    MEAN_ACCEPTED,
    MEAN_PROPOSED,
    NONE,
    SWAP_ACCEPTED,
    SWAP_PROPOSED,
    Block,
)
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves import assignment, paper, regroup, revisit, scan
from dfcrp.priors import contract as partition_prior
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.known_numbers import KnownNumbers, just_inside
from reference.random_cases import Case


@pytest.fixture(params=range(6))
def case(request) -> Case:
    """From three markings on."""
    seed = request.param
    while (made := Case(seed, None)).n < 3:
        seed += 50
    return made


def noting(monkeypatch, module, *names, result=None) -> list:
    """Replace functions; what they are given is noted."""
    done: list = []
    for name in names:
        monkeypatch.setattr(
            module, name, lambda *given, name=name: done.append((name, given)) or result
        )
    return done


def around(gain):
    if gain > -1e-8:
        return [(1e-7, True)]
    return [(-gain + 1e-9, True), (-gain - 1e-9, False)]


def whole(case) -> Block:
    return Block(0, case.n, 0, len(case.data.contact))


# Lists of members ---------------------------------------------------------------------------------


def members(state, k) -> list[int]:
    found, i, before = [], int(state.head[k]), NONE
    while i != NONE:
        assert state.before[i] == before
        found.append(i)
        before, i = i, int(state.after[i])
    return found


def test_lists_of_members(case):
    state = case.state
    k = int(max(range(case.n), key=lambda k: state.size[k]))
    for i in members(state, k):
        size, there = state.size[k], members(state, k)
        states.unlink(state, i)
        assert members(state, k) == [j for j in there if j != i]
        assert state.size[k] == size - 1
        for j in members(state, k):
            assert state.label[j] == k
        other = next(m for m in range(case.n + 1) if m != k)
        before, count = members(state, other), int(state.size[other])
        states.link(state, i, other)
        assert members(state, other) == [i, *before]
        assert (state.size[other], state.label[i]) == (count + 1, other)
        states.unlink(state, i)
        assert members(state, other) == before
        states.link(state, i, k)
        assert members(state, k) == [i, *(j for j in there if j != i)]


def test_slots_are_given_back(case):
    state, data = case.state, case.data
    state.free_head[:] = NONE
    for k in (2, 0, 1):
        states.release_slot(data, state, k)
    assert [states.take_slot(data, state, 0) for _ in range(3)] == [1, 0, 2]
    assert state.free_head[data.component[0]] == NONE


def test_clusters_are_counted(case):
    assert states.count_clusters(case.state) == len(set(case.labels))
    case.state.size[:] = 0
    case.state.size[case.n] = 1
    case.state.size[0] = 1
    assert states.count_clusters(case.state) == 2


# Slices -------------------------------------------------------------------------------------------


def parts_of_a_slice(limits):
    """A slice update of a density that is 1 between the limits and 0 outside; and what it asked."""
    asked = []

    def density(value):
        asked.append(value)
        return 0.0 if limits[0] < value < limits[1] else -math.inf

    return small.slice_update_of(density), asked


def test_a_slice_steps_out_and_shrinks():
    update, asked = parts_of_a_slice((-2.2, 3.1))
    # Level 0.7 below; the bracket begins at -0.25; all steps to either side are allowed.
    rng = KnownNumbers([0.25, 0.5, 0.95, 0.02, 0.5], [0.7])
    found = update(rng, None, 0.0, 1.0, 1e-9)
    lows, highs = [-0.25, -1.25, -2.25], [0.75, 1.75, 2.75, 3.75]
    assert asked[0] == 0.0
    assert asked[1:8] == pytest.approx(lows + highs)
    width = 3.75 + 2.25
    first = -2.25 + 0.95 * width  # outside, so that the bracket ends there
    second = -2.25 + 0.02 * (first + 2.25)
    assert asked[8:10] == pytest.approx([first, second])
    assert found == pytest.approx(second)


def test_a_slice_shrinks_from_both_sides():
    update, asked = parts_of_a_slice((-0.1, 0.15))
    rng = KnownNumbers([0.5, 0.5, 0.05, 0.9, 0.7], [0.7])
    found = update(rng, None, 0.0, 1.0, 1e-9)
    low, high = -0.5, 0.5
    low = low + 0.05 * (high - low)
    high = low + 0.9 * (high - low)
    assert found == asked[-1] == pytest.approx(low + 0.7 * (high - low))


def test_a_slice_that_shrinks_to_nothing_stays():
    update, asked = parts_of_a_slice((0.0, 0.0))
    rng = KnownNumbers([0.5, 0.5, 0.25, 0.5, 0.5], [0.7])
    # 1, 0.75 (from -0.25 on), then 0.375 - ... until the bracket is no wider than 0.4.
    assert update(rng, None, 0.0, 1.0, 0.4) == 0.0
    assert len(asked) >= 4
    again, asked = parts_of_a_slice((0.0, 0.0))
    assert again(KnownNumbers([0.5, 0.5], [0.7]), None, 0.0, 1.0, 1.0) == 0.0
    assert len(asked) == 3


def test_steps_of_a_slice_are_limited():
    for share, below in ((0.0, 0), (0.5, 3), (0.99, 6)):
        rng = KnownNumbers([0.5, share], [0.7])
        limited = small.with_callees(
            slices.slice_update,
            log_target=lambda _, value: 0.0,
            shrink=lambda rng, target, start, level, low, high, least: (low, high),
            MOST_STEPS=7,
        )
        low, high = limited(rng, None, 0.0, 1.0, 1e-9)
        assert (low, high) == pytest.approx((-0.5 - below, 0.5 + 6 - below))


def test_a_shrinking_update_does_not_step_out():
    update = small.with_callees(
        slices.shrinking_update,
        log_target=lambda _, value: 0.0,
        shrink=lambda rng, target, start, level, low, high, least: (start, level, low, high, least),
    )
    found = update(KnownNumbers([0.25], [0.7]), None, 2.0, 3.0, 1e-9)
    assert found == pytest.approx((2.0, -0.7, 1.25, 4.25, 1e-9))


def test_a_slice_keeps_to_its_level():
    for above, expected in ((1e-9, 0.2), (-1e-9, 0.0)):
        shrink = small.with_callees(slices.shrink, log_target=lambda _, v, a=above: -0.7 + a)
        found = shrink(KnownNumbers([0.7]), None, 0.0, -0.7, -0.5, 0.5, 0.8)
        assert found == pytest.approx(expected)


# Scans --------------------------------------------------------------------------------------------


def test_parameters_of_clusters_are_updated(case, monkeypatch):
    done = []
    monkeypatch.setattr(
        likelihood, "update_cluster", lambda *given: done.append(given[5]) or given[5] % 2
    )
    given = None, case.data, case.hyper, case.prior, case.state, case.scratch
    for first, last in ((0, case.n), (1, case.n - 1)):
        case.state.tally[:] = 0
        done.clear()
        scan.update_clusters(*given, first, last)
        used = [k for k in range(first, last) if case.state.size[k] > 0]
        assert done == used
        assert case.state.tally[MEAN_PROPOSED] == len(used)
        assert case.state.tally[MEAN_ACCEPTED] == sum(k % 2 for k in used)
    bare = case.data._replace(weigh_features=False)
    done.clear()
    scan.update_clusters(None, bare, *given[2:], 0, case.n)
    assert done == []


def test_what_clusters_share_is_updated(case, monkeypatch):
    for stale in (True, False):
        monkeypatch.setattr(likelihood, "update_shared", lambda *given, stale=stale: stale)
        case.state.stale[0] = not stale
        scan.update_shared(None, case.data, case.hyper, case.state)
        assert bool(case.state.stale[0]) == stale
        bare = case.data._replace(weigh_features=False)
        case.state.stale[0] = not stale
        scan.update_shared(None, bare, case.hyper, case.state)
        assert bool(case.state.stale[0]) != stale


def test_spares_are_renewed_in_turns(case, monkeypatch):
    done = noting(monkeypatch, scan, "refresh_spares")
    case.state.stale[0] = 1
    scan.renew_spares(None, case.data, case.hyper, case.state, 2, 9)
    assert done.pop()[1][-3:] == (2, 9, 1)
    case.state.stale[0] = 0
    renewed = []
    for number in range(scan.SPARE_PERIOD):
        case.state.scans[0] = 5 * scan.SPARE_PERIOD + number
        scan.renew_spares(None, case.data, case.hyper, case.state, 2, 90)
        renewed += range(*done.pop()[1][-3:])
    assert sorted(renewed) == list(range(2, 90))


def test_a_draw_is_recorded(case, monkeypatch):
    n, state = case.n, case.state
    rows = []
    monkeypatch.setattr(
        likelihood, "record_row", lambda hyper, theta, k, out, row: rows.append((k, row))
    )
    state = state._replace(law=np.array([1.5, 2.5]), own=np.array([7.0, 8.0, 9.0]))
    record = scan.DrawRecord(
        np.full((2, n), -1, np.int32), np.zeros(2), np.zeros((2, 5)), np.array([0, 3, 0]),
        np.full(2 * n + 3, -1, np.int32), np.zeros((2 * n, 4), np.float32),
    )  # fmt: skip
    scan.record_draw(case.data, case.hyper, state, case.scratch, record, 1)
    inner = case.data.internal
    labels = [case.labels[i] for i in inner]
    expected = [labels.index(k) for k in labels]
    assert record.labels[1].tolist() == expected
    assert (record.labels[0] == -1).all()
    assert record.alpha.tolist() == [0.0, case.alpha]
    assert record.shared[1].tolist() == [1.5, 2.5, 7.0, 8.0, 9.0]
    firsts = sorted(set(expected))
    assert record.offsets.tolist() == [0, 3, 3 + len(firsts)]
    assert record.cluster_labels[3 : 3 + len(firsts)].tolist() == firsts
    assert record.cluster_labels[3 + len(firsts)] == -1
    slots = [int(state.label[inner[first]]) for first in firsts]
    assert rows == [(k, 3 + at) for at, k in enumerate(slots)]


STEPS = (
    "renew_spares", "update_block", "sweep_markings", "sweep_pairs", "sweep_contacts",
    "update_clusters", "revisit", "sweep_unordered", "update_shared", "update_prior",
    "record_draw",
)  # fmt: skip


@pytest.mark.parametrize("weigh", [True, False])
def test_a_scan_does_everything_in_turn(case, weigh, monkeypatch):
    done = noting(monkeypatch, scan, *STEPS)
    ages = []
    monkeypatch.setattr(scan, "contact_share", lambda age, block: ages.append(age) or 0.125)
    data = case.data._replace(weigh_features=weigh)
    block = Block(1, 8, 0, 0)

    def run(sweep, finish, keep):
        done.clear()
        case.state.scans[0] = 10
        task = scan.Task(sweep, finish, keep, 3, 5, 2)
        scan.run_exact(
            None, data, case.hyper, case.prior, case.state, case.scratch, block, task, None
        )
        return [name for name, _ in done]

    sweeps = [one for one in STEPS[:7] if weigh or one != "revisit"]
    once = [*sweeps, *STEPS[7:10]]
    assert run(True, True, True) == ([*once, *once, "record_draw"]) * 2
    assert case.state.scans[0] == 14
    assert ages == [10, 11, 12, 13]
    assert [given[-1] for name, given in done if name == "record_draw"] == [3, 4]
    halves = [given[-2:] for name, given in done if name == "sweep_pairs"]
    assert halves == [(1, 4), (4, 8)] * 2
    assert all(given[-2:] == (1, 8) for name, given in done if name in STEPS[:1] + STEPS[2:3])
    assert {given[-1] for name, given in done if name == "sweep_contacts"} == {0.125}
    assert run(True, False, False) == sweeps * 4
    assert case.state.scans[0] == 10
    assert run(False, True, False) == [*STEPS[7:10]] * 4


def test_everyone_starts_alone(case, monkeypatch):
    opened = []
    monkeypatch.setattr(
        likelihood, "open_cluster", lambda hyper, rng, f, i, theta, k: opened.append((i, k))
    )
    renewed = noting(monkeypatch, scan, "refresh_spares")
    n, state = case.n, case.state
    numbers = [0.3, 0.99, 0.5, 0.01] * n
    for values in (state.size, state.free_head, state.after, state.before, state.seated):
        values[:] = 5
    scan.start_alone(KnownNumbers(numbers), case.data, case.hyper, state)
    assert opened == [(i, i) for i in range(n)]
    assert state.label[:n].tolist() == list(range(n)) == state.head[:n].tolist()
    assert (state.size[:n] == 1).all()
    assert state.size[n] == -1
    assert (state.after[:n] == NONE).all()
    assert (state.before[:n] == NONE).all()
    assert (state.free_head == NONE).all()
    assert [given[-3:] for _, given in renewed] == [(0, n, 1)]
    expected = list(range(n))
    for slot in range(n - 1, 0, -1):
        other = int(numbers[n - 1 - slot] * (slot + 1))
        expected[slot], expected[other] = expected[other], expected[slot]
    assert state.order.tolist() == expected
    assert state.rank[expected].tolist() == list(range(n))
    assert state.seated.tolist() == list(range(n))
    bare = case.data._replace(weigh_features=False)
    opened.clear()
    scan.start_alone(KnownNumbers(numbers), bare, case.hyper, state)
    assert opened == []


# Extra visits -------------------------------------------------------------------------------------


def test_weighing_leaves_a_marking_in_place(case):
    state = case.state
    for i in range(case.n):
        kept = [np.array(values) for values in (state.label, state.size, state.theta)]
        heads = [sorted(members(state, k)) for k in range(case.n) if state.size[k] > 0]
        count = revisit.weigh_in_place(case.data, case.hyper, case.prior, state, case.scratch, i)
        assert count >= 1
        for values, before in zip((state.label, state.size, state.theta), kept, strict=True):
            np.testing.assert_allclose(values, before, rtol=1e-12)
        assert [sorted(members(state, k)) for k in range(case.n) if state.size[k] > 0] == heads
        options = case.scratch.candidate[: count - 1].tolist()
        slots = {int(state.label[j]): case.labels[j] for j in range(case.n) if j != i}
        for position, k in enumerate(options):
            others = sum(case.labels[j] == slots[k] for j in range(case.n) if j != i)
            density = reference.log_density(case.theta[slots[k]], case.features[i])
            expected = math.log(others) + density
            assert case.scratch.weight[position] == pytest.approx(expected, abs=1e-9)


def test_rows_are_told_who_leaves_and_comes_back(case, monkeypatch):
    told, state = [], case.state
    for name in ("remove_member", "add_member"):
        monkeypatch.setattr(
            likelihood, name, lambda h, theta, k, y, i, name=name: told.append((name, k, i))
        )
    for i in range(case.n):
        told.clear()
        revisit.weigh_in_place(case.data, case.hyper, case.prior, state, case.scratch, i)
        k = int(state.label[i])
        both = [("remove_member", k, i), ("add_member", k, i)]
        assert told == (both if state.size[k] > 1 else [])


@pytest.fixture
def weighed(case, monkeypatch):
    """Known weights of every marking's options."""
    table = {
        i: [40.0 + 4.0 * ((3 * i + 5 * at) % 7) for at in range(1 + (i % 4))] for i in range(case.n)
    }

    def weigh(data, hyper, prior, state, scratch, i):
        for at, value in enumerate(table[i]):
            scratch.weight[at] = value
            scratch.candidate[at] = (i + at) % case.n
        return len(table[i])

    monkeypatch.setattr(revisit, "weigh_in_place", weigh)
    return table


def test_doubt_is_noted(case, weighed):
    case.state.doubt[:] = 0.5
    block = Block(1, case.n, 0, 0)
    revisit.note_doubt(case.data, case.hyper, case.prior, case.state, case.scratch, block)
    for i in range(case.n):
        chances = np.exp(weighed[i]) / np.exp(weighed[i]).sum()
        more = 1.0 - chances.max() if i >= 1 else 0.0
        assert case.state.doubt[i] == pytest.approx(0.5 + more, abs=1e-12)


def test_the_doubtful_are_listed(case, weighed):
    state = case.state
    limit = revisit.DOUBT * (revisit.NOTE_UNTIL - revisit.NOTE_FROM)
    state.doubt[:] = [0.999 * limit if i % 3 == 1 else limit for i in range(case.n)]
    state.visit[:] = 0
    state.head[:] = np.arange(len(state.head))[::-1] % case.n
    block = Block(0, case.n, 0, 0)
    revisit.list_doubtful(case.data, case.hyper, case.prior, state, case.scratch, block)
    expected = [0] * case.n
    for i in [i for i in range(case.n) if i % 3 != 1]:
        expected[i] = 2
        best = max(weighed[i])
        for at in range(len(weighed[i]) - 1):
            if weighed[i][at] > best - revisit.POSSIBLE:
                mate = int(state.head[(i + at) % case.n])
                expected[mate] = max(expected[mate], 1)
    assert state.visit[: case.n].tolist() == expected


@pytest.mark.parametrize(
    ("weights", "companions"),
    [([0.0, 30.0, 0.0], [1]), ([30.0, 0.0, 0.0], [0]), ([0.0, 1.0, 30.0], []), ([24.0, 30.0], [0])],
)
def test_companions_are_those_near_the_best_option(case, weights, companions, monkeypatch):
    """Which may be any of them, a new cluster too, which is the last."""
    state = case.state

    def weigh(data, hyper, prior, state, scratch, i):
        scratch.weight[: len(weights)] = weights
        scratch.candidate[: len(weights)] = range(len(weights))
        return len(weights)

    monkeypatch.setattr(revisit, "weigh_in_place", weigh)
    state.doubt[:], state.visit[:] = 0.0, 0
    state.doubt[2] = 9.0
    state.head[:3] = [0, 1, 2]
    block = Block(0, case.n, 0, 0)
    revisit.list_doubtful(case.data, case.hyper, case.prior, state, case.scratch, block)
    expected = [1 if i in companions else 0 for i in range(case.n)]
    expected[2] = 2
    assert state.visit[: case.n].tolist() == expected


def test_contacts_in_doubt_are_listed(case):
    state, count = case.state, len(case.data.contact)
    block = Block(0, case.n, min(1, count), count)
    share = min(revisit.NOTE_SHARE, revisit.NOTE_MOST * case.n / max(count - 1, 1))
    limit = revisit.DOUBT * share * (revisit.NOTE_UNTIL - revisit.NOTE_FROM)
    state.visit[:] = 0
    state.visit[0] = 2
    state.contact_visit[:] = 5
    state.contact_doubt[:] = [limit * (1.001 if c % 2 else 1.0) for c in range(count)]
    revisit.list_contacts(case.data, state, block)
    expected = [0] * case.n
    for c in range(block.first_contact, count):
        assert state.contact_visit[c] == c % 2
        if c % 2:
            for i in case.data.contact[c]:
                expected[i] = 1
    expected[0] = 2
    assert state.visit[: case.n].tolist() == expected


@pytest.mark.parametrize(
    ("share", "contacts", "most", "expected"),
    [
        (0.25, 100, 50.0, 0.25),
        (0.25, 400, 50.0, 0.125),
        (0.25, 0, 50.0, 0.25),
        (0.5, 1, 0.25, 0.25),
    ],
)
def test_a_share_is_bounded_by_the_number_of_tries(share, contacts, most, expected):
    assert regroup.bounded_share(share, contacts, most) == expected


def test_contacts_of_a_block_that_are_listed_are_counted(case):
    count = len(case.data.contact)
    case.state.contact_visit[:] = [c % 2 for c in range(count)]
    for first, last in [(0, count), (min(1, count), count), (0, count // 2), (0, 0)]:
        block = Block(0, case.n, first, last)
        assert regroup.count_listed(case.state, block) == sum(c % 2 for c in range(first, last))


@pytest.mark.parametrize("age", [0, revisit.NOTE_FROM, revisit.NOTE_UNTIL - 1, revisit.NOTE_UNTIL])
def test_a_scan_tries_a_share_of_the_contacts_or_so_many_for_each_marking(age):
    noted = revisit.NOTE_FROM <= age < revisit.NOTE_UNTIL
    share = revisit.NOTE_SHARE if noted else revisit.CONTACT_SHARE
    most = revisit.NOTE_MOST if noted else revisit.CONTACT_MOST
    assert revisit.contact_share(age, Block(3, 11, 5, 6)) == share
    assert revisit.contact_share(age, Block(3, 11, 5, 10_005)) == most * 8 / 10_000


def test_a_prior_without_an_order_counts_no_ranks():
    """Else every pair would be weighed three times, for nothing."""
    assert not partition_prior.counts_no_ranks(None)


def test_an_extra_visit(case, monkeypatch):
    state, data = case.state, case.data
    done = noting(monkeypatch, revisit, "update_marking", "update_pair")
    clusters = []
    monkeypatch.setattr(likelihood, "update_cluster", lambda *given: clusters.append(given[5]))
    state.visit[:] = [[2, 1, 0][i % 3] for i in range(len(state.visit))]
    case.scratch.slots[:] = 1
    block = Block(0, case.n, 0, 0)
    revisit.revisit_once(None, data, case.hyper, case.prior, state, case.scratch, block)
    expected = []
    for i in range(case.n):
        if state.visit[i] == 2:
            expected.append(("update_marking", (i, math.log(case.alpha))))
            for edge in range(data.pair_start[i], data.pair_start[i + 1]):
                expected.append(("update_pair", (i, data.pair_other[edge])))
    assert [(name, given[-2:]) for name, given in done] == expected
    visited = [int(state.label[i]) for i in range(case.n) if state.visit[i] > 0]
    assert clusters == list(dict.fromkeys(visited))


def test_what_a_scan_does_about_doubt(case, monkeypatch):
    done = noting(
        monkeypatch, revisit, "note_doubt", "list_doubtful", "list_contacts", "revisit_once",
        "visit_contacts",
    )  # fmt: skip
    state = case.state
    start, end = revisit.NOTE_FROM, revisit.NOTE_UNTIL
    block = Block(1, case.n, 0, len(case.data.contact))
    for age in (0, start - 2, start - 1, start, end - 2, end - 1, end, end + 1):
        done.clear()
        state.scans[0] = age
        state.contact_doubt[:] = 3.0
        noted = start <= age < end
        state.contact_visit[:] = 1
        revisit.revisit(None, case.data, case.hyper, case.prior, state, case.scratch, block)
        names = [name for name, _ in done]
        expected = ["note_doubt"] * noted
        expected += ["list_doubtful", "list_contacts"] * (age == end - 1)
        expected += [*["revisit_once"] * revisit.VISITS, "visit_contacts"] * (age >= end)
        assert names == expected
        assert (state.contact_doubt == (0.0 if age == start - 1 else 3.0)).all()
        if age >= end:
            tries = revisit.VISIT_MOST * (case.n - 1)
            listed = max(len(case.data.contact), 1)
            assert done[-1][1][-1] == min(revisit.VISIT_SHARE, tries / listed)
    state.scans[0] = start - 1
    state.contact_doubt[:] = 3.0
    if len(case.data.contact) > 2:
        part = Block(0, case.n, 1, len(case.data.contact) - 1)
        revisit.revisit(None, case.data, case.hyper, case.prior, state, case.scratch, part)
        assert state.contact_doubt[[0, -1]].tolist() == [3.0, 3.0]
        assert not state.contact_doubt[1:-1].any()


# The paper's samplers -----------------------------------------------------------------------------


def test_alpha_of_the_paper(case):
    precision = paper.ALPHA_PRECISION
    for normal in (0.9, -1.4, 8.0, -8.0):
        old = case.alpha
        new = old * math.exp(normal / math.sqrt(precision) - 0.5 / precision)

        def density(alpha, case=case):
            # On the scale of α itself.
            value = reference.log_alpha(case.labels, case.families, case.order, alpha, 2.0, 0.5)
            return value - math.log(alpha)

        def proposal(to, start, precision=precision):
            z = math.log(to / start) + 0.5 / precision
            return -0.5 * precision * z * z - math.log(to)

        gain = density(new) - density(old) + proposal(old, new) - proposal(new, old)
        for exponential, taken in around(gain):
            case.state.alpha[0] = old
            case.state.tally[:] = 0
            rng = KnownNumbers([], [exponential], [normal])
            paper.propose_alpha(rng, case.prior, case.state)
            assert case.state.alpha[0] == pytest.approx(new if taken else old, rel=1e-12)
            assert case.state.tally[ALPHA_PROPOSED] == 1
            assert case.state.tally[ALPHA_ACCEPTED] == int(taken)
    case.state.alpha[0] = case.alpha


def test_swaps_of_the_paper(case):
    before = case.order.copy()
    old = reference.log_order(case.labels, case.families, before, case.alpha)
    constant = sum(
        math.log(case.alpha) + math.lgamma(len(one)) for one in reference.clusters(case.labels)
    )
    for p in range(case.n):
        for q in range(p):
            after = before.copy()
            after[[p, q]] = after[[q, p]]
            new = reference.log_order(case.labels, case.families, after, case.alpha)
            for exponential, taken in around(new - old):
                state = case.fresh_state()
                state.seated[:] = 99
                rng = KnownNumbers([], [exponential])
                found = paper.swap_arrivals(
                    rng, case.data, state, case.scratch, p, q, constant - old
                )
                assert found == pytest.approx(constant - (new if taken else old))
                now = after if taken else before
                np.testing.assert_array_equal(state.order, now)
                np.testing.assert_array_equal(state.rank[now], np.arange(case.n))
                if taken:
                    seated = reference.companions(case.labels, case.families, now)
                    assert state.seated.tolist() == [seated[i] for i in now]
                assert state.tally[SWAP_PROPOSED] == 1
                assert state.tally[SWAP_ACCEPTED] == int(taken)


def test_a_marking_updated_in_place(case, monkeypatch):
    """Drawn by the joint probability with it in each cluster."""
    for i in range(case.n):
        attached = []
        monkeypatch.setattr(paper, "attach", lambda *given, a=attached: a.append(given[5]))
        for picked in range(2):
            seen = []

            def pick(u, weight, count, total, seen=seen, picked=picked):
                seen.append((u, np.array(weight[:count]), total))
                return min(picked, count - 1)

            monkeypatch.setattr(paper, "pick", pick)
            state = case.fresh_state()
            old = int(state.label[i])
            paper.update_in_place(
                KnownNumbers([0.6]), case.data, case.hyper, state, case.scratch, i
            )
            [(u, weight, total)] = seen
            assert u == 0.6
            assert total == pytest.approx(weight.sum())
            count = len(weight)
            options = [int(k) for k in case.scratch.candidate[: count - 1]]
            assert attached.pop() == [*options, NONE][min(picked, count - 1)]
            assert state.label[i] == old
            slots = {int(state.label[j]): case.labels[j] for j in range(case.n) if j != i}
            logs = []
            for k in [*options, NONE]:
                moved = list(case.labels)
                moved[i] = slots[k] if k != NONE else case.n
                value = reference.log_order(moved, case.families, case.order, case.alpha)
                value += (
                    reference.log_density(case.theta[slots[k]], case.features[i])
                    if k != NONE
                    else 0.0
                )
                logs.append(value)
            if options:
                found = np.log(weight[:-1]) - math.log(weight[0])
                np.testing.assert_allclose(found, np.array(logs[:-1]) - logs[0], atol=1e-9)
            opening = assignment.detach(case.data, case.hyper, case.fresh_state(), i)
            if options:
                found = math.log(weight[-1] / weight[0])
                assert found == pytest.approx(opening + logs[-1] - logs[0], abs=1e-9)


def test_the_scans_of_the_paper(case, monkeypatch):
    names = ("update_clusters", "update_shared", "renew_spares", "propose_alpha", "walk_arrivals",
             "swap_arrivals", "update_marking", "update_in_place", "record_draw")  # fmt: skip
    done = noting(monkeypatch, paper, *names, result=-3.5)
    monkeypatch.setattr(paper, "log_product", lambda seated, alpha: 4.25)
    n = case.n
    given = case.data, case.hyper
    for use_order in (True, False):
        for update_alpha in (True, False):
            prior = case.prior._replace(use_order=use_order, update_alpha=update_alpha)
            begin = ["walk_arrivals"] * use_order + ["propose_alpha"] * update_alpha
            end = ["update_clusters", "update_shared", "renew_spares"]
            rest = prior, case.state, case.scratch
            done.clear()
            case.state.scans[0] = 4
            numbers = [(at + 0.5) / n for at in range(n)]
            paper.modified_scan(KnownNumbers(numbers), *given, *rest)
            step = ["swap_arrivals"] * use_order + ["update_marking"]
            assert [name for name, _ in done] == [*begin, *(step * n), *end]
            swaps = [one[-3:] for name, one in done if name == "swap_arrivals"]
            start = [4.25, *([-3.5] * (n - 1))]
            assert swaps == [(at, n - 1, start[at]) for at in range(n)][: len(swaps)]
            moved = [one[-2:] for name, one in done if name == "update_marking"]
            last = case.state.order[n - 1]
            where = [last] * n if use_order else list(range(n))
            assert moved == [(i, math.log(case.alpha)) for i in where]
            plain = next(one for name, one in done if name == "update_marking")[3]
            assert not plain.use_order
            assert case.state.scans[0] == 5
            assert [one[-2:] for name, one in done if name in end[::2]] == [(0, n)] * 2
            done.clear()
            numbers = [value for at in range(n) for value in ((at + 0.5) / n, 0.99)]
            paper.unmodified_scan(KnownNumbers(numbers), *given, *rest)
            step = ["swap_arrivals", "update_in_place", "walk_arrivals"]
            assert [name for name, _ in done] == [*begin, *(step * n), *end]
            swaps = [one[-3:] for name, one in done if name == "swap_arrivals"]
            assert swaps == [(at, n - 1, 4.25) for at in range(n)]
            assert [one[-1] for name, one in done if name == "update_in_place"] == list(range(n))
            assert case.state.scans[0] == 6


def test_draws_of_the_paper(case, monkeypatch):
    done = noting(monkeypatch, paper, "modified_scan", "unmodified_scan", "record_draw")
    record = scan.DrawRecord(*([np.zeros(3)] * 6))
    given = None, case.data, case.hyper, case.prior, case.state, case.scratch, 2, record
    for run, name in (
        (paper.run_modified, "modified_scan"),
        (paper.run_unmodified, "unmodified_scan"),
    ):
        done.clear()
        run(*given)
        assert [one for one, _ in done] == [name, name, "record_draw"] * 3
        assert [one[-1] for name, one in done if name == "record_draw"] == [0, 1, 2]


def test_an_empty_slot(case):
    state = case.state
    state.free_head[:] = 77
    alone = next((i for i in range(case.n) if case.labels.count(case.labels[i]) == 1), None)
    if alone is not None:
        k = int(state.label[alone])
        state.size[k] = 0
        assert paper._empty_slot(case.data, state, alone, k) == k
        state.size[k] = 1
        assert paper._empty_slot(case.data, state, alone, k) == 77


# Choices ------------------------------------------------------------------------------------------


def test_picks_by_weight():
    weights = np.array([0.5, 0.0, 2.0, 1.5, 9.0])
    for u, expected in just_inside(weights[:4]):
        assert assignment.pick(u, weights, 4, 4.0) == expected
