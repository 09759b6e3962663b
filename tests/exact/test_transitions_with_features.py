"""Transition matrices of the assignment updates with the likelihood included.

One marking (or a pair of relatives) moves over all places it may take beside every partition of
the others, whose cluster parameters stay fixed. The parameters φ that it carries are part of
the state: those of its own cluster while it is alone, its spare while it is not. Over these
places the target is

    p(c, u | order, α) · Π p(θ_k) · Π p(y_i | θ) · Π q(φ | y) over movers that are not alone,

evaluated by the slow twins. The kernels' source, followed along every branch, must have it as a
fixed point to 1e-10 and must carry φ from one role to the other.
"""

from __future__ import annotations

import math
from itertools import combinations, islice, product

import numpy as np
import pytest

from dfcrp import prior
from dfcrp.compiled.state import NONE
from dfcrp.moves import assignment, pair
from dfcrp.priors import tail
from dfcrp.sampling.problem import new_scratch
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import every_branch

TOLERANCE = 1e-10
ALONE = -1
FAMILIES = [[0, 1, 0, 1, 2], [0, 0, 1, 1, 1], [0, 1, 2, 3, 4]]


class Places:
    """All places of the movers, the others being in a given partition."""

    def __init__(self, families, movers, rest, seed, *, allowed=None, hyper=small.HYPER):
        rng = self.rng = np.random.default_rng([seed, 73])
        n = len(families)
        self.families, self.movers, self.allowed, self.hyper = families, movers, allowed, hyper
        self.others = [i for i in range(n) if i not in movers]
        # A cluster of the others is known by its first member.
        self.home = {
            i: self.others[rest.index(label)] for i, label in zip(self.others, rest, strict=True)
        }
        self.rows = small.random_rows(rng, hyper, (n,))
        self.features = small.random_features(rng, self.rows[rng.integers(n, size=n)])
        self.order, self.u = rng.permutation(n), 0.3 * rng.standard_exponential(n)
        self.alpha = 0.8
        self.problem = small.make_problem(families, self.features, allowed=allowed, hyper=hyper)
        self.scratch = new_scratch(self.problem)
        options = [ALONE, *sorted(set(self.home.values()))]
        self.places = [p for p in product(options, repeat=len(movers)) if self._valid(p)]

    def _valid(self, place) -> bool:
        return reference.keeps_the_rule(self.labels(place), self.families, self.allowed)

    def labels(self, place) -> list[int]:
        labels = dict(self.home)
        for i, home in zip(self.movers, place, strict=True):
            labels[i] = i if home == ALONE else home
        return [labels[i] for i in range(len(self.families))]

    def target(self) -> np.ndarray:
        logs = []
        for place in self.places:
            labels = self.labels(place)
            value = reference.log_partition(
                labels, self.families, self.order, self.u, self.alpha, self.allowed
            )
            value += reference.log_features(self.hyper, labels, self.rows, self.features)
            for i, home in zip(self.movers, place, strict=True):
                if home != ALONE:
                    value += reference.log_proposal(self.hyper, self.rows[i], self.features[i])
            logs.append(value)
        weights = np.exp(np.array(logs) - max(logs))
        return weights / weights.sum()

    def state(self, place):
        labels = self.labels(place)
        theta = np.array([self.rows[label] for label in labels])
        state = small.fill_state(
            self.problem, labels, order=self.order, u=self.u, alpha=self.alpha,
            theta=theta, spare=self.rows,
        )  # fmt: skip
        for i, home in zip(self.movers, place, strict=True):
            if home == ALONE:  # its spare is then another one, and must play no part
                state.spare[i], state.spare_weight[i] = np.nan, np.nan
        tail.rebuild_tail(self.problem.data, state)
        return state

    def read(self, state) -> tuple[int, ...]:
        """The movers' places in a state; checks that all parameters are where they belong."""
        small.assert_consistent(self.problem.data, state)
        for i in self.others:
            assert (state.theta[state.label[i], :6] == self.rows[self.home[i]]).all()
        place = []
        for i in self.movers:
            mates = [j for j in self.others if state.label[j] == state.label[i]]
            carried = state.spare[i] if mates else state.theta[state.label[i]]
            assert (carried[:6] == self.rows[i]).all()
            place.append(self.home[mates[0]] if mates else ALONE)
        return tuple(place)

    def matrix(self, update) -> np.ndarray:
        found = np.zeros((len(self.places),) * 2)
        for row, place in enumerate(self.places):

            def once(pick, place=place):
                state = self.state(place)
                update(pick)(
                    self.rng,
                    self.problem.data,
                    self.hyper,
                    self.problem.prior,
                    state,
                    self.scratch,
                    *self.movers,
                )
                return self.places.index(self.read(state))

            for probability, column in every_branch(once):
                found[row, column] += probability
        return found

    def worst_change(self, update) -> float:
        target, matrix = self.target(), self.matrix(update)
        assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
        return float(np.abs(target @ matrix - target).max())


def one(pick):
    return small.update_marking_by(pick)


def two(pick):
    choose = small.with_callees(pair.choose_pair, pick=pick)
    return small.with_callees(
        pair.update_pair, choose_pair=choose, choose_slots=small.slots_as_they_are
    )


def every_setting(movers_of):
    """All layouts, movers and partitions of the others, with and without a radius."""
    links = np.eye(5, dtype=bool)
    for i, j in [(0, 1), (1, 2), (0, 2), (2, 3), (1, 3)]:
        links[i, j] = links[j, i] = True
    for seed, families in enumerate(FAMILIES):
        for movers in movers_of(families):
            others = [f for i, f in enumerate(families) if i not in movers]
            for number, rest in enumerate(prior.partitions(others)):
                for allowed in (None, links):
                    places = Places(families, movers, rest, [seed, number], allowed=allowed)
                    if places.places:  # else the others already break the radius
                        yield places


def relatives(families):
    return [(i, j) for i, j in combinations(range(len(families)), 2) if families[i] == families[j]]


PARTS = 8
part_of_all = pytest.mark.parametrize("part", range(PARTS))


@part_of_all
def test_update_of_one_marking(part):
    every = every_setting(lambda families: [(i,) for i in range(len(families))])
    for places in islice(every, part, None, PARTS):
        assert places.worst_change(one) < TOLERANCE


@part_of_all
def test_update_of_two_relatives(part):
    for places in islice(every_setting(relatives), part, None, PARTS):
        assert places.worst_change(two) < TOLERANCE


def without_the_size_ratio(data, hyper, state, i):
    """Planted: the opening weight forgets p(Σ | μ_l) / p(Σ | y_l)."""
    log_opening = assignment.detach(data, hyper, state, i)
    k = state.label[i]
    row = state.theta[k] if state.size[k] == 0 else state.spare[i]
    return log_opening - (
        reference.log_covariance_prior(hyper, row[:6], row[2])
        - reference.log_covariance_prior(hyper, row[:6], data.features[i, 2])
    )


def test_a_planted_bug_moves_the_target():
    places = Places([0, 1, 2, 3, 4], (2,), (0, 0, 1, 2), [9, 0])

    def update(pick):
        return small.update_marking_by(pick, detach=without_the_size_ratio)

    assert places.worst_change(one) < TOLERANCE
    assert places.worst_change(update) > 1e-3


def two_rivals(spread: float, far: float) -> Places:
    """Relatives at 0 and 1 compete for clusters at 0.5 and ``far``, all of unit variance."""
    hyper = small.HYPER._replace(var0_x=spread**2, var0_y=spread**2)
    places = Places([0, 0, 1, 1], (0, 1), (0, 1), [10, 0], hyper=hyper)
    places.rows[:, 2:] = [3.0, 1.0, 0.1, 0.0]
    places.rows[:, :2] = [[0.0, 0.0], [1.0, 0.0], [0.5, 0.0], [far, 0.0]]
    places.features[:] = places.problem.data.features[:] = places.rows[:, :3]
    return places


@pytest.mark.parametrize("spread", [1e4, 1e6, 1e8])
def test_pairs_when_one_cluster_outweighs_all_else(spread):
    """The image is large beside the clusters, so new ones and far ones weigh very little.

    The cluster that both want takes nearly all of either's weight; what is left over when the
    relative has it must still be known to full precision.
    """
    assert two_rivals(spread, far=12.0).worst_change(two) < TOLERANCE


def test_pairs_that_must_share_two_clusters():
    """Both prefer one cluster by more than e^45, and the other one to a new cluster.

    An option that is negligible beside another must not be left out when the relative may take
    that other one.
    """
    assert two_rivals(1e15, far=11.0).worst_change(two) < TOLERANCE


@pytest.mark.parametrize("scale", [1.0, 30.0, 1000.0, 100_000.0])
def test_a_pair_is_drawn_by_its_joint_weights(scale):
    """p(k, l) ∝ w_i(k) w_j(l) [k ≠ l], however far the weights lie apart.

    With two long lists the order's share of a log weight comes to thousands, and both may want
    one cluster by more than e^745: then no other option of either is left as a plain number.
    """
    rng = np.random.default_rng(11)
    problem = small.make_problem([0, 0, 1, 1], np.zeros((4, 3)))
    scratch = new_scratch(problem)
    options = np.array([3, 2, NONE])
    for wanted in (rng.normal(0.0, scale, (2, 3)) for _ in range(20)):
        joint = {
            (a, b): wanted[0, a] + wanted[1, b]
            for a, b in product(range(3), repeat=2)
            if a != b or options[a] == NONE
        }
        largest = max(joint.values())
        weights = {places: math.exp(value - largest) for places, value in joint.items()}

        def once(pick, wanted=wanted):
            scratch.candidate[:3] = scratch.candidate2[:3] = options
            scratch.weight[:3], scratch.weight2[:3] = wanted
            return small.with_callees(pair.choose_pair, pick=pick)(rng, scratch, 3, 3)

        found = dict.fromkeys(weights, 0.0)
        for probability, places in every_branch(once):
            found[places] += probability
        total = sum(weights.values())
        for places, weight in weights.items():
            assert found[places] == pytest.approx(weight / total, abs=1e-12)
