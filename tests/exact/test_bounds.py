"""What the kernels call a bound is one, and what they leave out as negligible is negligible.

Exact tests over a handful of markings cannot strain a bound: there the order's share is small. The
states here are larger, the auxiliary variables heavy-tailed, and some are built so that a bound is
reached; a bound that is too small by any factor would be passed there.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.moves import assignment
from dfcrp.priors import contract, tail
from dfcrp.priors.contract import NEGLIGIBLE, log_join, log_join_bound
from dfcrp.sampling import problem as problem_module
from dfcrp.sampling.problem import new_scratch
from reference import detection_reference, every_kernel
from reference import kernel_reference as reference
from reference import small_problems as small

NONE = -1


def plain(kernel, **callees):
    """A kernel as Python, with what it calls."""
    return small.with_callees(kernel, **callees) if callees else kernel.py_func


tail_sum = plain(tail.tail_sum)
order_term = plain(assignment.order_term, tail_sum=tail_sum)
order_bound = plain(assignment.order_bound, tail_sum=tail_sum)
add_order = plain(assignment.add_order, order_bound=order_bound, order_term=order_term)


def favourite_by(bound):
    return plain(assignment.favourite, order_bound=bound, uses_order=lambda prior: prior)


def halved(data, state, i, size):
    """The planted bug: the first term of the bound is halved."""
    return order_bound(data, state, i, size) - 0.5 * state.tail.total[state.rank[i]]


@pytest.fixture(params=["dense", "sparse"])
def layout(request, monkeypatch):
    if request.param == "sparse":
        monkeypatch.setattr(problem_module, "DENSE_TAIL_ENTRIES", 0)


def random_partition(rng, families, few: int) -> list[int]:
    """Large clusters: each marking in one of a few, where none of its family is."""
    labels: list[int] = []
    for i, family in enumerate(families):
        held = [{families[j] for j in range(i) if labels[j] == k} for k in range(few)]
        options = [k for k in range(few) if family not in held[k]]
        labels.append(int(rng.choice(options)) if options else few + i)
    first: dict[int, int] = {}
    return [first.setdefault(label, i) for i, label in enumerate(labels)]


def states(seeds: int):
    """Random states of 40 markings, and some in which everything adds up to the bound."""
    for seed in range(seeds):
        rng = np.random.default_rng([seed, 97])
        n, experts = 40, int(rng.choice([2, 5, 12, 30]))
        families = rng.integers(0, experts, size=n)
        problem = small.make_problem(families.tolist())
        labels = random_partition(rng, families.tolist(), int(rng.integers(1, 6)))
        # Heavy tails: one late arrival may hold nearly all of the sum.
        u = np.exp(rng.normal(-2.0, 3.0, size=n))
        yield filled(problem, labels, rng.permutation(n), u)
    for members in (1, 3, 9):
        # Members arrive first, then a marking that may join them, then one more of each family.
        families = [*range(members), members, *range(members + 1)]
        problem = small.make_problem(families)
        labels = [0] * members + list(range(members, len(families)))
        u = np.linspace(0.5, 1.5, len(families))
        u[-1] = 0.0
        yield filled(problem, labels, np.arange(len(families)), u)


def filled(problem, labels, order, u):
    state = small.fill_state(problem, labels, order=order, u=u)
    plain(tail.rebuild_tail, _rebuild_sparse=plain(tail._rebuild_sparse))(problem.data, state)
    return problem.data, state, labels


def joinable(data, labels):
    """Markings, and clusters that are not their own and hold none of their family."""
    held = [(members, set(data.family[members].tolist())) for members in reference.clusters(labels)]
    for i, family in enumerate(data.family.tolist()):
        yield from ((i, members) for members, families in held if family not in families)


def choices(data, labels):
    """For each marking the clusters that it could join, by their first members."""
    found: dict[int, list[int]] = {i: [] for i in range(len(labels))}
    for i, members in joinable(data, labels):
        found[i].append(members[0])
    return found.items()


def excess_over(bound, seeds: int = 12) -> tuple[float, float]:
    """By how much the order's share passes a bound, and the largest share of it that it reaches."""
    worst, closest = -math.inf, 0.0
    for data, state, labels in states(seeds):
        for i, members in joinable(data, labels):
            term = order_term(data, state, i, members[0])
            most = bound(data, state, i, len(members))
            assert term >= 0.0
            worst = max(worst, (term - most) / max(1.0, term))
            closest = max(closest, term / most if most > 0.0 else 0.0)
    return worst, closest


@pytest.mark.usefixtures("layout")
def test_the_bound_of_the_order_is_one():
    worst, closest = excess_over(order_bound)
    assert worst <= 1e-12
    assert closest > 1.0 - 1e-12  # it is strained


@pytest.mark.usefixtures("layout")
def test_the_order_is_that_of_the_definition():
    for data, state, labels in states(6):
        for i, members in joinable(data, labels):
            late = [(j, max(state.rank[i], state.rank[j])) for j in members]
            given = data.family.tolist(), state.order.tolist(), state.u
            expected = math.fsum(
                reference.tail(*given, data.family[one], rank) for j, rank in late for one in (i, j)
            )
            assert order_term(data, state, i, members[0]) == pytest.approx(expected, abs=1e-9)


def test_a_bound_that_is_too_small_is_noticed():
    assert excess_over(halved, 0)[0] > 0.1
    assert excess_over(halved)[0] > 0.1


def options_of(rng, clusters):
    """Clusters to join and a new one last, with log weights that leave it open."""
    candidate = np.array([*clusters, NONE], np.int32)
    weight = rng.normal(0.0, rng.choice([0.5, 4.0, 60.0]), size=len(candidate))
    return candidate, weight


def exact_weights(data, state, i, candidate, weight):
    order = [0.0 if k == NONE else order_term(data, state, i, k) for k in candidate]
    return weight + np.array(order)


def wrong_choices(bound) -> tuple[int, int]:
    """How often ``favourite`` decides otherwise than the exact weights; how often it decides."""
    favourite, wrong, taken = favourite_by(bound), 0, 0
    rng = np.random.default_rng(98)
    for data, state, labels in states(12):
        for i, clusters in choices(data, labels):
            candidate, weight = options_of(rng, clusters)
            if len(candidate) == 1:
                continue
            exact = exact_weights(data, state, i, candidate, weight)
            best = int(np.argmax(weight))
            share = 1.0 / np.exp(np.minimum(exact - exact[best], 700.0)).sum()
            # Just beyond what the exact weights allow, where a wrong bound decides too soon.
            for threshold in (*rng.random(3), min(1.0 - 2.0**-53, share * (1.0 + 1e-9))):
                found = favourite(data, True, state, i, len(weight), candidate, weight, threshold)
                assert found in (NONE, best)
                taken += found == best
                wrong += found == best and threshold > share * (1.0 + 1e-12)
    return wrong, taken


def test_no_favourite_is_wrong():
    wrong, taken = wrong_choices(order_bound)
    assert wrong == 0
    assert taken > 100
    assert wrong_choices(halved)[0] > 0
    assert wrong_choices(lambda *_: 0.0)[0] > 20


def test_the_favourite_is_that_of_the_definition():
    """Nor does the shortcut decide later than it could."""
    rng = np.random.default_rng(99)
    for uses_order in (True, False):
        favourite = favourite_by(order_bound)
        for data, state, labels in states(4):
            for i, clusters in choices(data, labels):
                candidate, weight = options_of(rng, clusters)
                best, rest = int(np.argmax(weight)), 0.0
                for k, value in zip(candidate, weight, strict=True):
                    if value != weight[best]:
                        more = order_bound(data, state, i, state.size[k]) if k != NONE else 0.0
                        rest += math.exp(min(value - weight[best] + more * uses_order, 700.0))
                edge = 1.0 / (1.0 + rest)
                given = data, uses_order, state, i, len(weight), candidate, weight
                assert favourite(*given, edge * (1.0 - 1e-9)) == best
                if edge * (1.0 + 1e-9) < 1.0:
                    assert favourite(*given, edge * (1.0 + 1e-9)) == NONE


@pytest.mark.usefixtures("layout")
def test_what_the_order_leaves_out_is_negligible():
    rng, left_out = np.random.default_rng(100), 0
    for data, state, labels in states(12):
        for i, clusters in choices(data, labels):
            candidate, weight = options_of(rng, clusters)
            exact = dict(
                zip(candidate, exact_weights(data, state, i, candidate, weight), strict=True)
            )
            yardstick = float(weight[-1])
            kept = add_order(data, state, i, len(weight), candidate, weight, yardstick)
            for k, value in zip(candidate[:kept], weight[:kept], strict=True):
                assert exact.pop(k) == pytest.approx(value, rel=1e-12, abs=1e-12)
            left_out += len(exact)
            assert all(value < yardstick - NEGLIGIBLE + 1e-9 for value in exact.values())
    assert left_out > 100


# The priors' own bounds


def detection_states():
    """Priors with random parameters, some of them extreme, and large clusters under them."""
    for seed in range(8):
        rng = np.random.default_rng([seed, 101])
        experts = int(rng.choice([3, 6, 10]))
        persons = rng.integers(0, experts, size=experts)
        persons = np.unique(persons, return_inverse=True)[1]
        families = [*range(experts), *rng.integers(0, experts, size=14).tolist()]
        prior = detection_reference.make_prior(
            families, persons, seed=seed, classes=int(rng.integers(1, 5))
        )
        if seed % 2:
            prior.parameters.notice[:] *= 10.0
            detection_reference.rebuild_tables(prior)
        problem = detection_reference.with_prior(small.make_problem(families), prior)
        labels = random_partition(rng, families, int(rng.integers(1, 5)))
        yield problem, prior, small.fill_state(problem, labels), labels


def test_the_bound_of_detection_is_one():
    closest = -math.inf
    for problem, prior, state, labels in detection_states():
        data, scratch = problem.data, new_scratch(problem)
        for i, members in joinable(data, labels):
            for size in (1.0, 3.0, 6.0):
                joined = log_join(prior, data, state, scratch, i, members[0], size)
                most = log_join_bound(prior, data, i, size)
                assert joined <= most + 1e-9 * max(1.0, abs(most))
                closest = max(closest, joined - most)
    assert closest > -1e-6  # it is strained


@pytest.mark.parametrize("name", ["dfcrp", "constrained", "crp", "attraction"])
def test_other_priors_know_no_bound(name):
    problem = every_kernel.problem_of("circles", name, neighbours=False)
    for i in range(problem.n):
        assert log_join_bound(problem.prior, problem.data, i, 1.0) == math.inf


def test_what_a_prior_leaves_out_is_negligible():
    """Every cluster of a state is weighed, with densities from the usual to the absurd."""
    weigh = contract.weigh_joins.usual.py_func
    rng, left_out, kept_in = np.random.default_rng(102), 0, 0
    for problem, prior, state, labels in detection_states():
        data, scratch = problem.data, new_scratch(problem)
        for i, options in choices(data, labels):
            count = len(options)
            density, log_new = rng.normal(0.0, 60.0, size=count), float(rng.normal(0.0, 20.0))
            size = rng.uniform(1.0, 6.0, size=count)
            exact = {
                k: density[at] + log_join(prior, data, state, scratch, i, k, size[at])
                for at, k in enumerate(options)
            }
            cluster, weight = np.array(options, np.int32), density.copy()
            given = prior, data, state, scratch, i, cluster, count, weight, size, log_new
            kept = weigh(*given)
            kept_in += kept
            for k, value in zip(cluster[:kept].tolist(), weight[:kept], strict=True):
                assert exact.pop(k) == pytest.approx(value, rel=1e-12, abs=1e-12)
            left_out += len(exact)
            assert all(value < log_new - NEGLIGIBLE + 1e-9 for value in exact.values())
    assert left_out > 20
    assert kept_in > 20


def test_negligible_is_beyond_double_precision():
    """A thousand candidates at the limit together do not change a sum."""
    assert 1e3 * math.exp(-NEGLIGIBLE) < 0.5 * np.finfo(float).eps
