"""Split, merge and re-divide: transition matrices over all partitions, and the proposal's density.

The kernels' source is followed along every branch: every order of dealing, every deal, accepted or
not. Over the partition prior alone (features steer the deals, but have no likelihood) the target
must be a fixed point to 1e-10. With parameters the step's weight equals the joint's over
the proposal's density, evaluated by the slow twins.
"""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pytest
from scipy.stats import beta, norm

from dfcrp import prior
from dfcrp.compiled.state import DIVIDE_ACCEPTED, MERGE_ACCEPTED, SPLIT_ACCEPTED
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane
from dfcrp.moves import regroup
from dfcrp.priors import tail
from dfcrp.sampling.problem import new_scratch
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import BranchingGenerator, every_branch

TOLERANCE = 1e-10
FAMILIES = [[0, 1, 0, 1, 2], [0, 1, 2, 3, 4], [0, 1, 2, 0, 1, 2]]


class Setting:
    """The partition prior given an order, u and α, with features that steer the deals."""

    def __init__(self, families, seed, *, use_order=True, allowed=None):
        rng = np.random.default_rng([seed, 78])
        n = len(families)
        self.families, self.use_order, self.allowed = families, use_order, allowed
        self.problem = small.make_problem(families, use_order=use_order, allowed=allowed)
        self.problem.data.features[:] = rng.normal([0, 0, 3], 0.6, size=(n, 3))
        self.scratch = new_scratch(self.problem)
        self.order, self.u, self.alpha = rng.permutation(n), 0.5 * rng.exponential(size=n), 0.8
        self.partitions = [
            c for c in prior.partitions(families) if reference.keeps_the_rule(c, families, allowed)
        ]
        self.place = {c: k for k, c in enumerate(self.partitions)}
        self.tally = np.zeros(1)

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

    def matrix(self, i, j, deal=regroup.deal_members.py_func) -> np.ndarray:
        found = np.zeros((len(self.partitions),) * 2)
        for row, labels in enumerate(self.partitions):

            def once(pick, labels=labels):
                state = small.fill_state(
                    self.problem, labels, order=self.order, u=self.u, alpha=self.alpha
                )
                if self.use_order:
                    tail.rebuild_tail(self.problem.data, state)
                update = small.with_callees(
                    regroup.regroup,
                    shuffle_deal=shuffle_by(pick),
                    deal_members=deal,
                    propose_clusters=regroup.propose_clusters.py_func,
                )
                update(
                    BranchingGenerator(pick), self.problem.data, self.problem.hyper,
                    self.problem.prior, state, self.scratch, i, j,
                )  # fmt: skip
                small.assert_consistent(self.problem.data, state)
                self.tally = self.tally + state.tally
                return self.place[small.partition_of(state)]

            for probability, column in every_branch(once):
                found[row, column] += probability
        return found

    def worst_change(self, matrix) -> float:
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        target = self.target()
        return float(np.abs(target @ matrix - target).max())


def shuffle_by(pick):
    """Every order of the members, with equal probability."""

    def shuffle_deal(rng, scratch, count):
        orders = list(permutations(range(count)))
        weight = np.ones(len(orders))
        chosen = list(orders[pick(None, weight, len(orders), float(len(orders)))])
        for values in (scratch.deal.member, scratch.deal.side):
            values[:count] = values[chosen]

    return shuffle_deal


def contacts(families):
    """A few pairs of different families."""
    return [(i, j) for i, j in [(0, 1), (2, 1), (0, 4), (3, 4)] if families[i] != families[j]]


def links(n: int) -> np.ndarray:
    """All but one pair may share a cluster."""
    allowed = np.ones((n, n), dtype=bool)
    for i, j in [(2, 4)]:
        allowed[i, j] = allowed[j, i] = False
    return allowed


@pytest.mark.parametrize("families", FAMILIES, ids=str)
def test_target_is_a_fixed_point(families):
    settings = [
        Setting(families, 1),
        Setting(families, 2, use_order=False),
        Setting(families, 3, allowed=links(len(families))),
    ]
    tally = np.zeros(1)
    for setting in settings:
        for i, j in contacts(families)[: 2 if len(families) > 5 else 4]:
            assert setting.worst_change(setting.matrix(i, j)) < TOLERANCE
        tally = tally + setting.tally
    assert tally[SPLIT_ACCEPTED] > 0
    assert tally[MERGE_ACCEPTED] > 0
    assert len(set(families)) == len(families) or tally[DIVIDE_ACCEPTED] > 0


def test_a_forgotten_deal_is_caught():
    """Planted: the probability of the deal is left out of the ratio."""

    def deal(*arguments):
        regroup.deal_members.py_func(*arguments)
        return 0.0

    setting = Setting([0, 1, 2, 3, 4], 1)
    assert setting.worst_change(setting.matrix(0, 1, deal)) > 1e-3


@pytest.mark.parametrize("hyper", [small.HYPER, small.LEARNED], ids=["fixed", "learned"])
def test_weight_of_proposed_parameters(hyper):
    """p(members | θ) p(θ) over the density of the proposal, by matrices and scipy."""
    rng = np.random.default_rng(79)
    for members in ([0], [0, 1], [0, 1, 2, 3]):
        n = len(members)
        rows = small.random_rows(rng, hyper, (n,))
        features = small.random_features(rng, rows[np.zeros(n, int)])
        problem = small.make_problem(list(range(n)), features, hyper=hyper)
        state = small.fill_state(problem, [0] * n)
        drawn = np.zeros((2, circle.WIDTH))
        for _ in range(5):
            circle.propose_row(hyper, rng, features, state, 0, drawn, 1)
            row = drawn[1, :6]
            assert drawn[1] == pytest.approx(small.complete(row), rel=1e-12)
            moments = plane.moments_of_cluster(hyper, features, state, 0)
            mode_a, width_a, mode_d, width_d = circle.peaks(
                hyper, moments, moments.sum_l / moments.weight
            )
            slow = (
                sum(reference.log_density(row, y) for y in features)
                + reference.log_base(hyper, row)
                - log_mean_conditional(hyper, row, features)
                - norm.logpdf(math.log(row[3]), mode_a, width_a) + math.log(row[3])
                - norm.logpdf(math.log(row[4]), mode_d, width_d) + math.log(row[4])
                - beta.logpdf((row[5] + 1) / 2, hyper.lambda_a, hyper.lambda_b) + math.log(2.0)
            )  # fmt: skip
            fast = circle.row_weight(hyper, features, state, 0, drawn, 1)
            # Both the fast prior and the fast marginal leave out the same constant, n-free.
            assert fast - slow == pytest.approx(0.0, abs=1e-8)


def log_mean_conditional(hyper, row, features) -> float:
    """log density of μ given Σ and the members, by matrices."""
    mean0, matrix0 = reference.base_mean(hyper)
    inverse = np.linalg.inv(reference.covariance(row))
    precision = np.linalg.inv(matrix0) + len(features) * inverse
    pull = np.linalg.solve(matrix0, mean0) + inverse @ features.sum(axis=0)
    return reference.log_normal(row[:3], np.linalg.solve(precision, pull), np.linalg.inv(precision))
