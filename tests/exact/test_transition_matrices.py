"""Transition matrices of the updates over all partitions or all orders, without sampling.

The kernels' own source is run along every branch of its random choices, so the matrices are
those of the code, its bookkeeping included. Each must have the enumerated target, evaluated
by the slow twins, as its fixed point to 1e-10; a planted bug must not.
"""

from __future__ import annotations

import math
from itertools import combinations, permutations

import numpy as np
import pytest

from dfcrp import prior
from dfcrp.moves import assignment, pair, paper
from dfcrp.priors import tail
from dfcrp.priors.arrivals import exchange, order
from dfcrp.sampling.problem import new_scratch
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.branches import ScriptedGenerator, every_branch

TOLERANCE = 1e-10
FAMILIES = [[0, 0, 1, 1], [0, 1, 0, 1, 2], [0, 0, 0, 1, 1], [0, 1, 2, 3, 4], [0, 1, 1, 0, 2, 2]]
#: Who may share a cluster: a chain of neighbours with one more link, in two components.
LINKS = [(0, 1), (1, 2), (0, 2), (2, 3), (4, 5)]


def allowed_by_links(n: int) -> np.ndarray:
    allowed = np.eye(n, dtype=bool)
    for i, j in LINKS:
        if j < n:
            allowed[i, j] = allowed[j, i] = True
    return allowed


class Setting:
    """A problem about the partition prior alone, with the order, u and α held fixed."""

    def __init__(self, families, seed: int, *, use_order=True, allowed=None):
        rng = self.rng = np.random.default_rng([seed, 72])
        n = len(families)
        self.families, self.allowed, self.use_order = families, allowed, use_order
        self.problem = small.make_problem(families, allowed=allowed, use_order=use_order)
        self.scratch = new_scratch(self.problem)
        self.order, self.u = rng.permutation(n), 0.5 * rng.standard_exponential(n)
        self.alpha = float(rng.uniform(0.4, 3.0))
        self.partitions = [
            c for c in prior.partitions(families) if reference.keeps_the_rule(c, families, allowed)
        ]
        self.place = {c: k for k, c in enumerate(self.partitions)}

    def state(self, labels, arrivals=None):
        arrivals = self.order if arrivals is None else arrivals
        state = small.fill_state(self.problem, labels, order=arrivals, u=self.u, alpha=self.alpha)
        if self.use_order:
            tail.rebuild_tail(self.problem.data, state)
        return state

    def target(self) -> np.ndarray:
        """p(c | order, u, α) by enumeration."""
        given = (self.order, self.u, self.alpha, self.allowed)
        if self.use_order:
            logs = [reference.log_partition(c, self.families, *given) for c in self.partitions]
        else:
            logs = [
                reference.log_partition_without_order(c, self.families, self.alpha, self.allowed)
                for c in self.partitions
            ]
        return normalise(logs)

    def matrix(self, run) -> np.ndarray:
        """Transition probabilities of ``run(pick, state)`` from every partition."""
        found = np.zeros((len(self.partitions),) * 2)
        for row, labels in enumerate(self.partitions):

            def once(pick, labels=labels):
                state = self.state(labels)
                run(pick, state)
                small.assert_consistent(self.problem.data, state)
                return self.place[small.partition_of(state)]

            for probability, column in every_branch(once):
                found[row, column] += probability
        return found


def normalise(logs) -> np.ndarray:
    weights = np.exp(np.array(logs) - max(logs))
    return weights / weights.sum()


def worst_change(target: np.ndarray, matrix: np.ndarray) -> float:
    """How far the matrix moves its target; the rows must sum to one."""
    assert matrix.sum(axis=1) == pytest.approx(1.0, abs=1e-12)
    return float(np.abs(target @ matrix - target).max())


def move_one(setting: Setting, i: int, **callees):
    """Update of marking i, for ``Setting.matrix``."""

    def run(pick, state):
        update = small.update_marking_by(pick, **callees)
        data, hyper = setting.problem.data, setting.problem.hyper
        update(setting.rng, data, hyper, setting.problem.prior, state, setting.scratch, i)

    return run


def move_two(setting: Setting, i: int, j: int, **callees):
    """Update of the relatives i and j, for ``Setting.matrix``."""

    def run(pick, state):
        choose = callees.get("choose_pair", pair.choose_pair)
        choose = (
            small.with_callees(choose, pick=pick) if hasattr(choose, "py_func") else choose(pick)
        )
        update = small.with_callees(
            pair.update_pair, choose_pair=choose, choose_slots=small.slots_as_they_are
        )
        data, hyper = setting.problem.data, setting.problem.hyper
        update(setting.rng, data, hyper, setting.problem.prior, state, setting.scratch, i, j)

    return run


def settings(seed: int):
    families = FAMILIES[seed]
    yield Setting(families, seed)
    yield Setting(families, seed, use_order=False)
    yield Setting(families, seed, allowed=allowed_by_links(len(families)))


every_family = pytest.mark.parametrize("seed", range(len(FAMILIES)))


def relatives(families):
    return [(i, j) for i, j in combinations(range(len(families)), 2) if families[i] == families[j]]


@every_family
def test_update_of_one_marking(seed):
    for setting in settings(seed):
        target = setting.target()
        for i in range(len(setting.families)):
            assert worst_change(target, setting.matrix(move_one(setting, i))) < TOLERANCE


@every_family
def test_update_of_two_relatives(seed):
    for setting in settings(seed):
        target = setting.target()
        for i, j in relatives(setting.families):
            assert worst_change(target, setting.matrix(move_two(setting, i, j))) < TOLERANCE


def test_a_pair_changes_places_where_single_updates_cannot():
    """Two relatives compete for a third marking; one pair update exchanges them."""
    setting = Setting([0, 0, 1], 3)
    first, second = setting.place[0, 1, 0], setting.place[0, 1, 1]
    for i in range(2):
        assert setting.matrix(move_one(setting, i))[first, second] == 0.0
    assert setting.matrix(move_two(setting, 0, 1))[first, second] > 0.05


def weigh_without_sizes(data, hyper, prior, state, scratch, i, log_new, candidate, weight):
    """Planted: the weight of a cluster lacks n_k."""
    count = assignment.weigh_features(
        data, hyper, prior, state, scratch, i, log_new, candidate, weight
    )
    for position in range(count - 1):
        weight[position] -= math.log(state.size[candidate[position]])
    return count


def choose_without_exclusion(pick):
    """Planted: the first of the pair is drawn as if the second did not matter."""

    def choose(rng, scratch, count_i, count_j):
        total = assignment.exponentiate(scratch.weight, count_i)
        first = pick(rng, scratch.weight, count_i, total)
        assignment.exponentiate(scratch.weight2, count_j)
        taken = scratch.candidate[first]
        for position in range(count_j):
            if taken != -1 and scratch.candidate2[position] == taken:
                scratch.weight2[position] = 0.0
        rest = scratch.weight2[:count_j].sum()
        return first, pick(rng, scratch.weight2, count_j, rest)

    return choose


def test_planted_bugs_move_the_target():
    setting = Setting([0, 1, 0, 1, 2], 1)
    target = setting.target()
    without_sizes = move_one(setting, 2, weigh_features=weigh_without_sizes)
    assert worst_change(target, setting.matrix(without_sizes)) > 1e-3
    careless = move_two(setting, 0, 2, choose_pair=choose_without_exclusion)
    assert worst_change(target, setting.matrix(careless)) > 1e-3
    # A tail that counts the arrival at the slot itself as late.
    state_of = setting.state

    def off_by_one(labels):
        state = state_of(labels)
        for slot, i in enumerate(setting.order):
            state.tail.dense[slot, setting.families[i]] += setting.u[i]
        return state

    setting.state = off_by_one
    assert worst_change(target, setting.matrix(move_one(setting, 2))) > 1e-3


def log_joint(setting: Setting, labels, arrivals) -> float:
    """log p(c, order | u by slot, α) up to a constant: α^K Π (n_k − 1)! exp(−Σ u D)."""
    seated = reference.companions(labels, setting.families, arrivals)
    sizes = np.bincount(labels)
    value = len(sizes) * math.log(setting.alpha) + sum(map(math.lgamma, sizes.tolist()))
    return value - sum(u * seated[i] for u, i in zip(setting.by_slot, arrivals, strict=True))


def slots_matrix(setting: Setting, i, j, **callees) -> tuple[np.ndarray, np.ndarray]:
    """Target and transitions of the pair update over all partitions and both ways of the slots."""
    here = tuple(setting.order.tolist())
    traded = tuple({i: j, j: i}.get(m, m) for m in here)
    states = [(c, arrivals) for c in setting.partitions for arrivals in (here, traded)]
    place = {state: k for k, state in enumerate(states)}
    setting.by_slot = setting.u[setting.order]
    target = normalise([log_joint(setting, *state) for state in states])
    found = np.zeros((len(states),) * 2)
    data, hyper, prior_ = setting.problem.data, setting.problem.hyper, setting.problem.prior
    kept = setting.u.copy()
    for row, (labels, arrivals) in enumerate(states):
        setting.u[list(arrivals)] = setting.by_slot

        def once(pick, labels=labels, arrivals=arrivals):
            state = setting.state(labels, arrivals)
            slots = small.with_callees(pair.choose_slots, **{"pick": pick, **callees})
            choose = small.with_callees(pair.choose_pair, pick=pick)
            update = small.with_callees(pair.update_pair, choose_pair=choose, choose_slots=slots)
            update(setting.rng, data, hyper, prior_, state, setting.scratch, i, j)
            small.assert_consistent(data, state)
            assert (state.u[state.order] == setting.by_slot).all()
            return place[small.partition_of(state), tuple(state.order.tolist())]

        for probability, column in every_branch(once):
            found[row, column] += probability
    setting.u[:] = kept
    return target, found


@every_family
def test_update_of_two_relatives_and_their_slots(seed):
    for setting in settings(seed):
        for i, j in relatives(setting.families):
            if setting.use_order:
                assert worst_change(*slots_matrix(setting, i, j)) < TOLERANCE


def test_slots_drawn_without_their_weights_move_the_target():
    """Two relatives of whom one has more neighbours."""
    families = [0, 1, 1, 0, 2, 2]
    setting = Setting(families, 3, allowed=allowed_by_links(len(families)))
    assert worst_change(*slots_matrix(setting, 0, 3)) < TOLERANCE
    blind = slots_matrix(setting, 0, 3, log_pair_total=lambda *_: 0.0)
    assert worst_change(*blind) > 1e-3


@every_family
def test_updates_of_the_paper(seed):
    """The last arrival with plain weights, and any marking with full priors; u integrated out."""
    families = FAMILIES[seed]
    for allowed in (None, allowed_by_links(len(families))):
        setting = Setting(families, seed, allowed=allowed)
        data, hyper = setting.problem.data, setting.problem.hyper
        target = normalise(
            [
                reference.log_order(c, families, setting.order, setting.alpha)
                for c in setting.partitions
            ]
        )

        def last(pick, state, setting=setting, data=data, hyper=hyper):
            update = small.update_marking_by(pick)
            i = int(setting.order[-1])
            plain = setting.problem.prior._replace(use_order=False)
            update(setting.rng, data, hyper, plain, state, setting.scratch, i)

        assert worst_change(target, setting.matrix(last)) < TOLERANCE
        for i in range(len(families)):

            def in_place(pick, state, i=i, setting=setting, data=data, hyper=hyper):
                update = small.with_callees(paper.update_in_place, pick=pick)
                update(setting.rng, data, hyper, state, setting.scratch, i)

            assert worst_change(target, setting.matrix(in_place)) < TOLERANCE


# Orders --------------------------------------------------------------------------------------

ORDER_CASES = [
    ([0, 0, 1, 1], (0, 1, 0, 2)),
    ([0, 1, 0, 1, 2], (0, 0, 1, 1, 1)),
    ([0, 1, 1, 0, 2], (0, 1, 2, 1, 1)),
]


def exchange_matrix(setting: Setting, labels, exchange_slots) -> np.ndarray:
    """One try of ``exchange_slots`` for a random marking, over all orders, u tied to the slots."""
    n = len(labels)
    orders = list(permutations(range(n)))
    place = {arrivals: k for k, arrivals in enumerate(orders)}
    by_slot = setting.u.copy()
    found = np.zeros((len(orders),) * 2)
    data = setting.problem.data
    for row, arrivals in enumerate(orders):
        for a in range(n):
            kin = [b for b in range(n) if setting.families[b] == setting.families[a]]
            for choice in range(len(kin)):
                ends = []
                for accept in (True, False):
                    setting.u = np.empty(n)
                    setting.u[list(arrivals)] = by_slot
                    state = setting.state(labels, arrivals)
                    state.visit[:] = 0
                    state.visit[a] = 1
                    rng = ScriptedGenerator([(choice + 0.5) / len(kin)], accept)
                    exchange_slots(rng, data, state, setting.scratch, small.whole(data), 0, 1)
                    assert (state.u[state.order] == by_slot).all()
                    assert (state.rank[state.order] == np.arange(n)).all()
                    ends.append(place[tuple(state.order.tolist())])
                chance = min(1.0, math.exp(rng.threshold.gain)) / (n * len(kin))
                found[row, ends[0]] += chance
                found[row, ends[1]] += 1.0 / (n * len(kin)) - chance
    setting.u = by_slot
    return found


@pytest.mark.parametrize(("families", "labels"), ORDER_CASES)
def test_exchange_of_slots(families, labels):
    setting = Setting(families, 4)
    by_slot = setting.u
    logs = []
    for arrivals in permutations(range(len(labels))):
        seated = reference.companions(labels, families, arrivals)
        logs.append(-sum(u * seated[i] for u, i in zip(by_slot, arrivals, strict=True)))
    target = normalise(logs)
    relative = exchange.random_relative.py_func
    careful = small.with_callees(exchange.exchange_slots, random_relative=relative)
    matrix = exchange_matrix(setting, labels, careful)
    assert worst_change(target, matrix) < TOLERANCE
    careless = small.with_callees(
        exchange.exchange_slots, gain_of_move=lambda *_: 0.0, random_relative=relative
    )
    assert worst_change(target, exchange_matrix(setting, labels, careless)) > 1e-3


def order_move_matrix(setting: Setting, labels, chosen, *, corrected=True) -> np.ndarray:
    """The order move for a given set of chosen customers, from the kernels' own surrogate.

    All swaps of the chosen leave the surrogate invariant, so the proposal is a power of one
    swap's matrix; it is then accepted by the true ratio over the surrogate's.
    """
    n = len(labels)
    orders = list(permutations(range(n)))
    place = {arrivals: k for k, arrivals in enumerate(orders)}
    data, scratch = setting.problem.data, setting.scratch
    count = len(chosen)
    value = np.empty(len(orders))
    truth = np.empty(len(orders))
    step = np.zeros((len(orders),) * 2)
    for row, arrivals in enumerate(orders):
        state = setting.state(labels, arrivals)
        scratch.chosen[:] = -1
        for position, i in enumerate(chosen):
            scratch.slots[position] = state.rank[i]
            scratch.chosen[state.rank[i]] = position
        order.tabulate_surrogate(data, state, scratch, count)
        value[row] = sum(
            order.surrogate(data, state, scratch, i, position) for position, i in enumerate(chosen)
        )
        order.walk_arrivals(data, state, scratch, state.order, scratch.proposed)
        truth[row] = -order.log_product(scratch.proposed, setting.alpha)
    for row, arrivals in enumerate(orders):
        for i in chosen:
            for j in chosen:
                swapped = list(arrivals)
                p, q = arrivals.index(i), arrivals.index(j)
                swapped[p], swapped[q] = j, i
                column = place[tuple(swapped)]
                chance = min(1.0, math.exp(value[column] - value[row])) / count**2
                step[row, column] += chance
                step[row, row] += 1.0 / count**2 - chance
    proposal = np.linalg.matrix_power(step, order.SWAPS * count)
    log_ratio = (truth[None, :] - truth[:, None]) - (value[None, :] - value[:, None])
    moved = proposal * (np.minimum(1.0, np.exp(log_ratio)) if corrected else 1.0)
    return moved + np.diag(1.0 - moved.sum(axis=1))


@pytest.mark.parametrize(("families", "labels"), ORDER_CASES)
def test_order_move(families, labels):
    setting = Setting(families, 5)
    target = normalise(
        [
            reference.log_order(labels, families, arrivals, setting.alpha)
            for arrivals in permutations(range(len(labels)))
        ]
    )
    tables = reference.clusters(labels)
    for count in range(2, len(tables) + 1):
        for some in combinations(tables, count):
            chosen = [members[-1] for members in some]
            matrix = order_move_matrix(setting, labels, chosen)
            assert worst_change(target, matrix) < TOLERANCE
    careless = order_move_matrix(setting, labels, [m[0] for m in tables], corrected=False)
    assert worst_change(target, careless) > 1e-4
