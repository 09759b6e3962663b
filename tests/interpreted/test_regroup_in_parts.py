"""Splits, merges and divisions step by step, with known random numbers and weights."""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest

from dfcrp.compiled.state import (
    DIVIDE_ACCEPTED,
    DIVIDE_PROPOSED,
    MERGE_ACCEPTED,
    MERGE_PROPOSED,
    NONE,
    SPLIT_ACCEPTED,
    SPLIT_PROPOSED,
    Block,
)
from dfcrp.likelihoods import contract as likelihood
from dfcrp.moves import regroup
from dfcrp.sampling.problem import new_scratch
from reference import small_problems as small
from reference.known_numbers import KnownNumbers

FAMILIES = [0, 1, 2, 0, 1, 3, 2]
TALLIES = {
    "split": (SPLIT_PROPOSED, SPLIT_ACCEPTED),
    "merge": (MERGE_PROPOSED, MERGE_ACCEPTED),
    "divide": (DIVIDE_PROPOSED, DIVIDE_ACCEPTED),
}


class Setting:
    """Clusters of markings with features, of which nothing but attractions is asked."""

    def __init__(self, labels, families=FAMILIES, allowed=None):
        rng = np.random.default_rng(3)
        n = len(families)
        self.problem = small.make_problem(families, rng.normal(size=(n, 3)), allowed=allowed)
        self.data, self.hyper = self.problem.data, self.problem.hyper
        self.scratch, self.labels, self.families = new_scratch(self.problem), labels, families
        theta = small.random_rows(rng, self.hyper, (n,))
        self.state = small.fill_state(self.problem, labels, theta=theta, spare=theta)

    @property
    def deal(self):
        return self.scratch.deal

    def set_deal(self, members, sides, partners=None):
        count = len(members)
        self.deal.member[:count], self.deal.side[:count] = members, sides
        self.deal.partner[:count] = [NONE] * count if partners is None else partners
        return count


def around(gain):
    if gain > -1e-8:
        return [(1e-7, True)]
    return [(-gain + 1e-9, True), (-gain - 1e-9, False)]


def test_members_are_put_into_random_order():
    setting = Setting([0] * 7, list(range(7)))
    count = setting.set_deal([1, 2, 3, 4], [0, 1, 1, 0])
    regroup.shuffle_deal(KnownNumbers([0.3, 0.1, 0.9]), setting.scratch, count)
    pairs = [(1, 0), (2, 1), (3, 1), (4, 0)]
    for position, u in ((3, 0.3), (2, 0.1), (1, 0.9)):
        other = int(u * (position + 1))
        pairs[position], pairs[other] = pairs[other], pairs[position]
    assert list(zip(setting.deal.member[:4], setting.deal.side[:4], strict=True)) == pairs


@pytest.mark.parametrize(
    ("i", "j", "members", "partners", "disjoint"),
    [
        (0, 5, [1, 2], [NONE, NONE], True),
        (0, 5, [1, 2, 4], [2, NONE, 0], False),
        (0, 5, [3, 1], [0, NONE], False),
        (5, 0, [3, 1], [0, NONE], False),
        (0, 1, [2, 5, 6], [2, NONE, 0], False),
    ],
)
def test_relatives_are_tied(i, j, members, partners, disjoint):
    setting = Setting([0, 0, 0, 3, 3, 3, 3])
    count = setting.set_deal(members, [0] * len(members))
    assert regroup.find_partners(setting.data, setting.scratch, count, i, j) is disjoint
    assert setting.deal.partner[:count].tolist() == partners
    # The last family has no relatives, the last but one has.
    assert setting.data.family_start.tolist() == [0, 2, 4, 6, 7]


@pytest.fixture
def attracted(monkeypatch):
    """Attractions that depend on who was dealt before; who is put where is noted."""
    put = []

    def start(hyper, data, deal, i, j):
        put[:] = [("start", i, j)]

    def attraction(hyper, data, deal, side, m):
        return 0.3 * m * (1 - 2 * side) + 0.1 * len(put) * side

    monkeypatch.setattr(likelihood, "start_deal", start)
    monkeypatch.setattr(likelihood, "log_attraction", attraction)
    monkeypatch.setattr(
        likelihood, "put_on_side", lambda hyper, data, deal, side, m: put.append((side, m))
    )
    return put


def test_attraction_of_sides(attracted):
    attracted[:] = [1, 2]
    assert regroup.pull(None, None, None, 4) == pytest.approx(1.2 + 1.2 - 0.2)


@pytest.mark.parametrize("replay", [True, False])
def test_members_are_dealt(attracted, replay):
    setting = Setting([0, 0, 0, 3, 3, 3, 3])
    # 2 and 6 are partners, 3 stays opposite an anchor, 5 goes anywhere.
    members, partners = [2, 3, 5, 6], [3, 1, NONE, 0]
    for u in (0.0, 0.5, 0.999):
        count = setting.set_deal(members, [1, 1, 0, 0], partners)
        rng = KnownNumbers([] if replay else [u, u])
        found = regroup.deal_members(
            rng, setting.data, setting.hyper, setting.scratch, count, 0, 1, replay
        )
        put, expected, sides = [("start", 0, 1)], 0.0, [1, 1, 0, 0]

        def odds(m, put=put):
            return 0.6 * m - 0.1 * len(put)

        for position, alone in ((0, False), (1, None), (2, True)):
            if alone is None:
                put.append((1, 3))
                continue
            log_odds = odds(members[position])
            if not alone:
                log_odds -= odds(6)
            first = 1.0 / (1.0 + math.exp(-log_odds))
            if not replay:
                sides[position] = 0 if u < first else 1
            side = sides[position]
            expected += math.log(first if side == 0 else 1.0 - first)
            put.append((side, members[position]))
            if not alone:
                sides[3] = 1 - side
                put.append((1 - side, 6))
        assert found == pytest.approx(expected)
        assert attracted == put
        assert setting.deal.side[:4].tolist() == sides
        assert rng.used_up()


def test_every_two_may_share_a_cluster():
    allowed = np.eye(5, dtype=bool)
    for a, b in ((0, 1), (1, 2), (0, 2), (2, 3), (3, 4)):
        allowed[a, b] = allowed[b, a] = True
    for labels, fine in (
        ([0, 0, 0, 3, 3], (True, True)),
        ([0, 0, 2, 2, 2], (True, False)),
        ([0, 0, 0, 0, 4], (False, True)),
        ([0, 1, 0, 1, 1], (True, False)),
    ):
        setting = Setting(labels, list(range(5)), allowed)
        slots = list(dict.fromkeys(setting.state.label.tolist()))
        found = [regroup.all_neighbours(setting.data, setting.state, k) for k in slots[:2]]
        assert tuple(found) == fine
    free = Setting([0, 1, 0, 1, 1], list(range(5)))
    assert regroup.all_neighbours(free.data, free.state, 0) is True


def test_value_of_a_cluster(monkeypatch):
    setting = Setting([0, 0, 0, 3, 3, 3, 3])
    monkeypatch.setattr(regroup, "log_cluster", lambda prior, data, state, k, size: 10.0 * k + size)
    monkeypatch.setattr(likelihood, "size_of", lambda hyper, theta, row: 0.25 + row)
    monkeypatch.setattr(likelihood, "row_weight", lambda h, y, state, k, theta, row: 100.0 + row)
    given = None, None, setting.state, 3, None, 2
    assert regroup.value_of(setting.data, *given) == 30.0 + 2.25 + 102.0
    bare = setting.data._replace(weigh_features=False)
    assert regroup.value_of(bare, *given) == 32.25


def test_clusters_are_proposed(monkeypatch):
    setting, done = Setting([0, 0, 0, 3, 3, 3, 3]), []
    monkeypatch.setattr(
        likelihood, "propose_row", lambda h, rng, y, state, k, theta, row: done.append((k, row))
    )
    monkeypatch.setattr(regroup, "value_of", lambda *given: 10.0 * given[4] + given[6])
    rest = setting.hyper, None, setting.state, setting.scratch
    assert regroup.propose_clusters(None, setting.data, *rest, 2, 5) == 20.0 + 51.0
    assert done == [(2, 0), (5, 1)]
    done.clear()
    assert regroup.propose_clusters(None, setting.data, *rest, 2, 2) == 20.0
    assert done == [(2, 0)]
    done.clear()
    bare = setting.data._replace(weigh_features=False)
    assert regroup.propose_clusters(None, bare, *rest, 2, 5) == 71.0
    assert done == []


def test_same_sides():
    setting = Setting([0] * 7, list(range(7)))
    count = setting.set_deal([1, 2, 3], [0, 1, 1])
    setting.deal.old_side[:3] = [0, 1, 1]
    assert regroup.same_sides(setting.scratch, count) is True
    for at in range(3):
        setting.deal.old_side[:3] = [0, 1, 1]
        setting.deal.old_side[at] ^= 1
        assert regroup.same_sides(setting.scratch, count) is False


#: Labels, anchors, and what kind of step they make.
STEPS = [
    ([0, 0, 0, 3, 3, 3, 6], 0, 2, "split"),
    ([0, 0, 2, 3, 4, 2, 6], 0, 2, "merge"),
    ([0, 0, 0, 3, 3, 3, 3], 0, 4, "divide"),
]


@pytest.mark.parametrize(("labels", "i", "j", "kind"), STEPS, ids=[one[3] for one in STEPS])
def test_a_step(labels, i, j, kind, monkeypatch):
    """Taken by the ratio of values and of the ways to deal; else everything is as it was."""

    def deal(rng, data, hyper, scratch, count, a, b, replay):
        dealt = scratch.deal
        assert (a, b) == (i, j)
        if replay:
            return -1.7
        for position in range(count):
            dealt.side[position] = new_side(int(dealt.member[position]))
        return -0.9

    def new_side(m):
        if kind == "split":
            return int(m == 1)
        return 1 - int(m in (1, 5, 6)) if kind == "divide" else 0

    monkeypatch.setattr(regroup, "deal_members", deal)
    monkeypatch.setattr(regroup, "shuffle_deal", lambda *_: None)
    old_values = {"split": 2.0, "merge": 4.5, "divide": 4.5}
    for new_value in (3.1, -0.4, 1.9, 5.2):
        gain = new_value - old_values[kind]
        gain += {"split": 0.9, "merge": -1.7, "divide": -0.8}[kind]
        for exponential, taken in around(gain):
            setting = Setting(labels)
            state = setting.state
            first = int(state.label[i])
            monkeypatch.setattr(
                regroup, "value_of",
                lambda d, h, p, s, k, theta, row, f=first: 2.0 if k == f else 2.5,
            )  # fmt: skip

            def propose(rng, data, hyper, prior, state, scratch, one, two, new=new_value):
                scratch.deal.theta[0, :], scratch.deal.theta[1, :] = 0.25, 0.75
                assert (one == two) == (kind == "merge")
                return new

            monkeypatch.setattr(regroup, "propose_clusters", propose)
            before = small.partition_of(state)
            theta = state.theta.copy()
            rng = KnownNumbers(exponentials=[exponential])
            found = regroup.regroup(
                rng, setting.data, setting.hyper, None, state, setting.scratch, i, j
            )
            assert found == pytest.approx(math.exp(min(gain, 0.0)))
            small.assert_consistent(setting.data, state)
            proposed, accepted = TALLIES[kind]
            assert state.tally[proposed] == 1
            assert state.tally[accepted] == int(taken)
            assert state.tally.sum() == 1 + int(taken)
            after = list(labels)
            if kind == "merge":
                after = [labels[i] if k == labels[j] else k for k in labels]
            else:
                members = [m for m in range(7) if labels[m] in (labels[i], labels[j])]
                for m in members:
                    side = 0 if m == i else 1 if m == j else new_side(m)
                    after[m] = 100 if side else labels[i]
            number: dict[int, int] = {}
            expected = tuple(number.setdefault(k, len(number)) for k in after)
            assert small.partition_of(state) == (expected if taken else before)
            if taken:
                assert (state.theta[state.label[i]] == 0.25).all()
                assert (state.theta[state.label[j]] == (0.25 if kind == "merge" else 0.75)).all()
            else:
                np.testing.assert_array_equal(state.theta, theta)
            others = [k for k in range(7) if k not in (state.label[i], state.label[j])]
            np.testing.assert_array_equal(state.theta[others], theta[others])


def test_a_division_that_changes_nothing(monkeypatch):
    setting = Setting([0, 0, 0, 3, 3, 3, 3])
    monkeypatch.setattr(regroup, "deal_members", lambda *_: -0.5)
    monkeypatch.setattr(regroup, "shuffle_deal", lambda *_: None)
    before = small.partition_of(setting.state)
    found = regroup.regroup(
        None, setting.data, setting.hyper, None, setting.state, setting.scratch, 0, 4
    )
    assert found == 0.0
    assert small.partition_of(setting.state) == before
    assert setting.state.tally[DIVIDE_PROPOSED] == 1


def test_contacts_are_tried(monkeypatch):
    tried = []

    def step(rng, data, hyper, prior, state, scratch, i, j):
        tried.append((i, j))
        return 0.25

    monkeypatch.setattr(regroup, "regroup", step)
    contact = np.array([[c, c + 1] for c in range(8)])
    data = SimpleNamespace(contact=contact)
    state = SimpleNamespace(contact_doubt=np.zeros(8), contact_visit=[1, 0, 1, 1, 0, 2, 1, 1])
    block = Block(0, 9, 2, 7)
    rng = KnownNumbers([0.55, 0.0, 0.99])
    regroup.sweep_contacts(rng, data, None, None, state, None, block, 0.3)
    assert tried == [(2, 3), (6, 7)]
    assert state.contact_doubt.tolist() == [0, 0, 0.25, 0, 0, 0, 0.25, 0]
    assert rng.used_up()
    tried.clear()
    regroup.sweep_contacts(KnownNumbers([0.45, 0.5]), data, None, None, state, None, block, 0.3)
    assert tried == [(4, 5)]
    tried.clear()
    rng = KnownNumbers([0.2, 0.4, 0.29])
    regroup.visit_contacts(rng, data, None, None, state, None, block, 0.3)
    assert tried == [(2, 3), (6, 7)]
    assert rng.used_up()
