"""Groups that move as one: transition matrices over all partitions that hold them whole.

The kernels' source is followed along every branch. The target is the prior over partitions given
the order, u and α, restricted to partitions that people's decisions allow; it must be a fixed point
of every update to 1e-10. Together the updates must lead from every partition to every other.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from dfcrp import prior
from dfcrp.moves import assignment, group, regroup
from dfcrp.neighbours.decided import with_groups, without_pairs
from dfcrp.neighbours.neighbourhood import Neighbourhood
from dfcrp.priors import tail
from dfcrp.sampling.problem import _circles, new_scratch
from exact.test_regroup import shuffle_by
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import BranchingGenerator, every_branch

TOLERANCE = 1e-10
#: Families, and the group of every item.
CASES = {
    "two of five": ([0, 1, 0, 1, 2], [0, 0, -1, -1, -1]),
    "two pairs": ([0, 1, 2, 0, 1], [0, 0, -1, 1, 1]),
    "three": ([0, 1, 2, 0, 3], [0, 0, 0, -1, -1]),
    "all different": ([0, 1, 2, 3, 4], [0, -1, 0, 1, 1]),
}


class Choices(BranchingGenerator):
    """Whole numbers below a limit, each as likely, besides comparisons."""

    def random(self):
        pick = self.pick

        class Number:
            def __mul__(self, count):
                return pick(None, np.ones(count), count, float(count))

            def __lt__(self, limit):
                return pick(None, [limit, 1.0 - limit], 2, 1.0) == 0

        return Number()


class Setting:
    """The prior over partitions that hold the groups whole."""

    def __init__(self, families, groups, seed, *, use_order=True, allowed=None):
        rng = np.random.default_rng([seed, 79])
        n = len(families)
        self.families, self.groups, self.use_order, self.allowed = (
            families,
            groups,
            use_order,
            allowed,
        )
        self.problem = small.make_problem(families, use_order=use_order, allowed=allowed)
        self.problem.data.features[:] = rng.normal([0, 0, 3], 0.6, size=(n, 3))
        mate, lead = _circles(np.array(groups), np.arange(n, dtype=np.int32))
        data = self.problem.data._replace(has_groups=True, mate=mate, lead=lead)
        self.data, self.scratch = data, new_scratch(self.problem)
        self.order, self.u, self.alpha = rng.permutation(n), 0.5 * rng.exponential(size=n), 0.8
        self.partitions = [
            c
            for c in prior.partitions(families)
            if reference.keeps_the_rule(c, families, allowed) and self.whole(c)
        ]
        self.place = {c: k for k, c in enumerate(self.partitions)}

    def whole(self, labels) -> bool:
        return all(
            len({label for label, g in zip(labels, self.groups, strict=True) if g == number}) == 1
            for number in set(self.groups) - {-1}
        )

    def target(self) -> np.ndarray:
        given = self.families, self.order, self.u, self.alpha
        logs = np.array(
            [
                reference.log_partition(c, *given)
                if self.use_order
                else reference.log_partition_without_order(c, self.families, self.alpha)
                for c in self.partitions
            ]
        )
        weights = np.exp(logs - logs.max())
        return weights / weights.sum()

    def matrix(self, run) -> np.ndarray:
        found = np.zeros((len(self.partitions),) * 2)
        for row, labels in enumerate(self.partitions):

            def once(pick, labels=labels):
                state = small.fill_state(
                    self.problem, labels, order=self.order, u=self.u, alpha=self.alpha
                )
                if self.use_order:
                    tail.rebuild_tail(self.data, state)
                run(pick, state)
                small.assert_consistent(self.data, state)
                return self.place[small.partition_of(state)]

            for probability, column in every_branch(once):
                found[row, column] += probability
        return found

    def move_group(self, lead, **callees):
        """One try, without what items have of their own."""

        def run(pick, state):
            given = Choices(pick), self.data, self.problem.hyper, self.problem.prior, state
            choose = small.with_callees(group.choose_target, **callees.get("choose", {}))
            names = {"propose_clusters": regroup.propose_clusters.py_func}
            propose = small.with_callees(group.propose_move, **names)
            old = state.label[lead]
            target = choose(given[0], self.data, state, self.scratch, lead)
            if target != old:
                propose(*given, self.scratch, lead, old, target)

        return run

    def regroup(self, i, j, **callees):
        def run(pick, state):
            update = small.with_callees(
                regroup.regroup,
                shuffle_deal=shuffle_by(pick),
                deal_members=regroup.deal_members.py_func,
                propose_clusters=regroup.propose_clusters.py_func,
                **callees,
            )
            given = self.data, self.problem.hyper, self.problem.prior, state, self.scratch
            update(BranchingGenerator(pick), *given, i, j)

        return run

    def move_one(self, i):
        def run(pick, state):
            update = small.update_marking_by(pick)
            given = self.data, self.problem.hyper, self.problem.prior, state, self.scratch
            update(np.random.default_rng(1), *given, i)

        return run

    def change(self, matrix) -> float:
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        target = self.target()
        return float(np.abs(target @ matrix - target).max())


def settings(case):
    families, groups = CASES[case]
    yield Setting(families, groups, 1)
    yield Setting(families, groups, 2, use_order=False)
    allowed = np.ones((5, 5), dtype=bool)
    # Decided apart: one of a group, and one beside it.
    allowed[0, 4] = allowed[4, 0] = False
    if groups[0] != groups[4]:
        yield Setting(families, groups, 3, allowed=allowed)


@pytest.mark.parametrize("case", CASES)
def test_the_conditional_prior_is_a_fixed_point(case):
    for setting in settings(case):
        leads = [i for i in range(5) if setting.data.mate[i] != i and setting.data.lead[i] == i]
        both = np.eye(len(setting.partitions))
        for lead in leads:
            matrix = setting.matrix(setting.move_group(lead))
            assert setting.change(matrix) < TOLERANCE
            both = both @ matrix
        for i in range(5):
            if setting.data.mate[i] == i:
                matrix = setting.matrix(setting.move_one(i))
                assert setting.change(matrix) < TOLERANCE
                both = both @ matrix
        # From every partition to every other, without splits and merges.
        assert (np.linalg.matrix_power(0.5 * (both + np.eye(len(both))), 12) > 0.0).all()
        families = setting.families
        for i, j in [(0, 2), (1, 3), (2, 4)]:
            together = setting.groups[i] == setting.groups[j] != -1
            if families[i] != families[j] and not together:
                assert setting.change(setting.matrix(setting.regroup(i, j))) < TOLERANCE


def test_planted_bugs_are_caught():
    """Groups that are torn apart; a target that is drawn as if a new cluster were another one."""
    families, groups = CASES["two of five"]
    setting = Setting(families, groups, 1)
    with pytest.raises(KeyError):  # a partition that must not be
        setting.matrix(setting.regroup(0, 4, holds_whole_groups=lambda *_: True))

    def forgets_others(data, state, scratch, lead, candidate):
        """Planted: only the first cluster that the group might join is among its choices."""
        count = assignment.find_candidates.py_func(data, state, scratch, lead, candidate)
        return min(count, 1 + int(state.size[: len(families)].max() > 2))

    blind = setting.move_group(0, choose={"find_candidates": forgets_others})
    assert setting.change(setting.matrix(blind)) > 1e-3


def neighbourhood(n, pairs, **more):
    pairs = np.array(pairs).reshape(-1, 2)
    return Neighbourhood(
        bounded=True,
        pairs=pairs,
        rivals=np.empty((0, 2), np.int64),
        contacts=pairs,
        component=more.pop("component", np.zeros(n, np.int64)),
        numbering=np.arange(n),
    )


def test_groups_beyond_the_reach_join_components():
    found = neighbourhood(6, [(0, 1), (2, 3), (4, 5)], component=np.array([0, 0, 1, 1, 2, 2]))
    groups = np.array([0, -1, -1, -1, 0, -1])
    made = with_groups(found, groups)
    pairs = set(map(tuple, np.sort(made.pairs, axis=1).tolist()))
    # 0 and 4 are one object: 1 and 5 may join it, as they might have joined either.
    assert pairs == {(0, 1), (2, 3), (4, 5), (0, 4), (1, 4), (0, 5)}
    assert made.component[[0, 1, 4, 5]].tolist() == [made.component[0]] * 4
    ordered = made.component[made.original]
    assert (np.diff(np.flatnonzero(ordered == made.component[0])) == 1).all()
    assert sorted(made.numbering.tolist()) == list(range(6))


def test_groups_of_neighbours_change_nothing_but_moves():
    found = neighbourhood(4, [(0, 1), (0, 2), (1, 2), (2, 3)])
    made = with_groups(found, np.array([0, 0, -1, -1]))
    assert made.pairs is found.pairs
    assert made.contacts.tolist() == [[0, 2], [1, 2], [2, 3]]


def test_pairs_apart_are_no_neighbours():
    found = neighbourhood(4, list(combinations(range(4), 2)))
    made = without_pairs(
        found, np.array([[1, 0]]), np.array([3]), lambda pairs: np.zeros(len(pairs), bool)
    )
    assert made.pairs.tolist() == [[0, 2], [1, 2]]
    assert made.contacts.tolist() == [[0, 2], [1, 2]]
