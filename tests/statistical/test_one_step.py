"""Each update leaves the joint distribution unchanged: independent exact draws, one update each.

(α, order, c, u, θ, y) are drawn from the joint, one update is applied (a few times over), and
the draws are tested again: chi-squares over ALL valid partitions and over all orders, and
Kolmogorov-Smirnov tests of α, u, θ and y | θ. Each update is one test with the false-alarm rate
1e-5 (Bonferroni over its p values), 4e-4 for this file; seeds are fixed. Every test is also run on
an update with a planted bug, which it must catch.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.compiled.state import count_clusters
from dfcrp.likelihoods import bias
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import plane, tolerance
from dfcrp.moves import assignment, pair, paper, regroup, revisit, unordered
from dfcrp.priors import tail
from dfcrp.priors.arrivals import exchange, order, procession, two_lists
from dfcrp.priors.arrivals import kernel as arrivals
from dfcrp.sampling.problem import new_record, new_scratch, new_state
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.joint_draws import After, JointDraws, companions, draw_joint, partition_probabilities

FALSE_ALARM_RATE = 1e-5
DRAWS = 8_000
FAMILIES = [0, 0, 1, 1, 2]
#: Items 0, 1, 2 and 3 in a chain with a cross link; 4 apart from 0 and 1.
LINKS = [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3), (2, 4), (3, 4)]


def links() -> np.ndarray:
    allowed = np.eye(len(FAMILIES), dtype=bool)
    for i, j in LINKS:
        allowed[i, j] = allowed[j, i] = True
    return allowed


SETTINGS = {
    "dfcrp": (FAMILIES, {}),
    "radius": (FAMILIES, {"allowed": links(), "update_alpha": False, "alpha": 1.5}),
    "constrained": (FAMILIES, {"use_order": False, "update_alpha": False, "alpha": 1.5}),
    "learned": (FAMILIES, {"hyper": small.LEARNED}),
    "biased": (FAMILIES, {"hyper": small.biased(FAMILIES)}),
    # As of many markings: spares are drawn from a law that does not move.
    "settled": (FAMILIES, {"hyper": small.SETTLED}),
    "settled, biased": (FAMILIES, {"hyper": small.biased(FAMILIES, small.SETTLED)}),
    # Few enough to count every pair of a partition and an order; D tells when α is small.
    "arrivals": ([0, 0, 1, 1], {"update_alpha": False, "alpha": 0.3}),
    "two lists": ([0, 0, 0, 1, 1], {}),
    "two lists, radius": (
        [0, 0, 1, 1, 1], {"allowed": links(), "update_alpha": False, "alpha": 1.5},
    ),
}  # fmt: skip


class Joint(dict):
    """Draws and the probabilities of their partitions, by setting; made when they are asked for."""

    def __missing__(self, name):
        families, settings = SETTINGS[name]
        draws = draw_joint(families, DRAWS, list(SETTINGS).index(name), **settings)
        self[name] = draws, partition_probabilities(draws)
        return self[name]


@pytest.fixture(scope="module")
def joint():
    return Joint()


class Step:
    """What an update may use; its methods are the updates under test."""

    def __init__(self, draws: JointDraws, seed: int):
        problem = draws.problem
        self.rng = np.random.default_rng([seed, 75])
        self.data, self.prior = problem.data, problem.prior
        self.state, self.scratch = new_state(problem), new_scratch(problem)
        self.hyper = likelihood.of_chain(problem.hyper, self.state.law)
        self.record = new_record(problem, 1)
        self.n = problem.n
        # What the scans visit more often is fixed, as it is once a chain has got going.
        self.state.visit[[0, 3]], self.state.visit[2] = 2, 1
        self.state.contact_visit[:] = 1

    def markings(self):
        assignment.sweep_markings(
            self.rng, self.data, self.hyper, self.prior, self.state, self.scratch, 0, self.n
        )

    def pairs(self):
        pair.sweep_pairs(
            self.rng, self.data, self.hyper, self.prior, self.state, self.scratch, 0, self.n
        )

    def parameters(self):
        paper.update_parameters(
            self.rng, self.data, self.hyper, self.prior, self.state, self.scratch
        )

    def draw_spares_far_off(self):
        """Spares from a law that is not what the law is."""
        self.hyper.reference[:] = small.SETTLED.reference + np.array([1.5, 0.0, 1.5, 0.0])
        assignment.refresh_spares(self.rng, self.data, self.hyper, self.state, 0, self.n, 1)

    def markings_far_off(self):
        self.draw_spares_far_off()
        self.markings()

    def law(self):
        tolerance.update_law_given_variances(self.rng, self.hyper, self.state)

    def law_along(self):
        tolerance.update_law_along(self.rng, self.hyper, self.data, self.state)

    def offsets(self):
        bias.update_offsets(self.rng, self.hyper, self.data, self.state)

    def noise(self):
        bias.update_noise(self.rng, self.hyper, self.data, self.state)

    def order(self):
        order.update_order(self.rng, self.data, self.state, self.scratch)

    def lists(self):
        order.shift_lists(self.rng, self.data, self.state, self.scratch)

    def exchange(self):
        part = small.whole(self.data)
        exchange.exchange_slots(self.rng, self.data, self.state, self.scratch, part, self.n, 1)

    def alpha(self):
        self.state.alpha[0] = order.update_alpha(
            self.rng, self.state.seated, count_clusters(self.state),
            self.prior.alpha_shape, self.prior.alpha_rate, self.state.alpha[0], 0.8,
        )  # fmt: skip

    def procession(self):
        procession.lead_processions(
            self.rng, self.data, self.state, self.scratch,
            self.prior.alpha_shape, self.prior.alpha_rate, self.prior.update_alpha, 3,
        )  # fmt: skip

    def unordered(self):
        unordered.sweep_unordered(
            self.rng, self.data, self.hyper, self.prior, self.state, self.scratch
        )

    def auxiliary(self):
        tail.draw_auxiliary(self.rng, self.state)

    def regroup(self):
        for i, j in self.data.contact:
            regroup.regroup(
                self.rng, self.data, self.hyper, self.prior, self.state, self.scratch, i, j
            )

    def visits(self):
        given = self.data, self.hyper, self.prior, self.state, self.scratch, small.whole(self.data)
        revisit.revisit_once(self.rng, *given)
        regroup.visit_contacts(self.rng, *given, revisit.VISIT_SHARE)

    def exact_scan(self):
        small.run_exact(
            self.rng, self.data, self.hyper, self.prior, self.state, self.scratch, 1, self.record
        )

    def paper_scan(self):
        paper.modified_scan(self.rng, self.data, self.hyper, self.prior, self.state, self.scratch)

    def unmodified_scan(self):
        paper.unmodified_scan(self.rng, self.data, self.hyper, self.prior, self.state, self.scratch)


def apply(draws: JointDraws, step: Step, update, times: int, count: int) -> After:
    """The first draws after the update."""
    after = After(draws)
    for draw in range(count):
        draws.load(draw, step.state)
        step.state.scans[0] = revisit.NOTE_UNTIL + draw
        assignment.refresh_spares(step.rng, step.data, step.hyper, step.state, 0, step.n, 1)
        for _ in range(times):
            update(step)
        after.add(step.state)
    return after


def alarm(p_values: dict[str, float]) -> bool:
    return min(p_values.values()) < FALSE_ALARM_RATE / len(p_values)


ALL = ("partition", "parameters", "alpha", "u", "orders", "joins")
FREE_OF_U = ("partition", "parameters", "alpha", "orders", "joins")
#: Setting, update, how many times it is applied, tests: those that the update could upset.
UPDATES = [
    ("dfcrp", Step.markings, 2, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", Step.pairs, 2, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", Step.regroup, 1, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", Step.visits, 2, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", Step.parameters, 2, ("parameters",)),
    ("dfcrp", Step.order, 3, ("orders", "joins")),
    ("dfcrp", Step.lists, 3, ("orders", "joins")),
    ("dfcrp", Step.exchange, 3, ("u", "orders", "joins")),
    ("arrivals", Step.order, 5, ("cells",)),
    ("arrivals", Step.lists, 5, ("cells",)),
    ("arrivals", Step.exchange, 3, ("cells", "u")),
    ("dfcrp", Step.alpha, 3, ("alpha", "joins")),
    ("dfcrp", Step.procession, 1, ("alpha", "orders", "joins")),
    ("arrivals", Step.procession, 1, ("cells",)),
    ("arrivals", Step.unordered, 2, ("cells",)),
    ("two lists", Step.unordered, 2, ("partition", "parameters", "alpha", "orders", "joins")),
    ("two lists", Step.exact_scan, 3, ALL),
    ("two lists, radius", Step.unordered, 2, ("partition", "parameters")),
    ("dfcrp", Step.auxiliary, 1, ("u",)),
    ("dfcrp", Step.exact_scan, 3, ALL),
    ("dfcrp", Step.paper_scan, 3, FREE_OF_U),
    ("dfcrp", Step.unmodified_scan, 3, FREE_OF_U),
    ("radius", Step.markings, 2, ("partition", "parameters", "u")),
    ("radius", Step.pairs, 2, ("partition", "parameters", "u")),
    ("radius", Step.regroup, 1, ("partition", "parameters", "u")),
    ("radius", Step.exact_scan, 3, ("partition", "parameters", "u")),
    ("radius", Step.paper_scan, 3, ("partition", "parameters")),
    ("radius", Step.unmodified_scan, 3, ("partition", "parameters")),
    ("arrivals", Step.exact_scan, 3, ("cells", "u")),
    ("arrivals", Step.paper_scan, 3, ("cells",)),
    ("arrivals", Step.unmodified_scan, 3, ("cells",)),
    ("constrained", Step.exact_scan, 3, ("partition", "parameters")),
    ("learned", Step.law, 2, ("law", "parameters")),
    ("learned", Step.law_along, 2, ("law", "parameters")),
    ("learned", Step.markings, 2, ("partition", "parameters")),
    ("learned", Step.regroup, 1, ("partition", "parameters", "law")),
    ("learned", Step.parameters, 2, ("parameters", "law")),
    ("learned", Step.exact_scan, 3, (*ALL, "law")),
    ("learned", Step.paper_scan, 2, ("partition", "parameters", "law")),
    ("constrained", Step.paper_scan, 3, ("partition", "parameters")),
    ("biased", Step.offsets, 2, ("bias", "parameters")),
    ("biased", Step.noise, 2, ("bias", "parameters")),
    ("biased", Step.markings, 2, ("partition", "parameters")),
    ("biased", Step.regroup, 1, ("partition", "parameters")),
    ("biased", Step.parameters, 2, ("parameters", "bias")),
    ("biased", Step.law_along, 2, ("law", "parameters")),
    ("biased", Step.exact_scan, 3, (*ALL, "law", "bias")),
    ("settled", Step.markings_far_off, 4, ("partition", "parameters", "law")),
    ("settled", Step.exact_scan, 3, (*ALL, "law")),
    ("settled", Step.paper_scan, 2, ("partition", "parameters", "law")),
    ("settled, biased", Step.exact_scan, 3, (*ALL, "law", "bias")),
]


@pytest.mark.parametrize(
    ("setting", "update", "times", "tests"),
    UPDATES,
    ids=[f"{setting}-{update.__name__}" for setting, update, _, _ in UPDATES],
)
def test_update_leaves_the_joint_unchanged(joint, setting, update, times, tests):
    draws, partitions = joint[setting]
    after = apply(draws, Step(draws, 1), update, times, DRAWS)
    found = after.p_values(tests, partitions)
    assert not alarm(found), found


def test_fresh_draws_pass(joint):
    """The tests' own null: no update at all."""
    for setting in SETTINGS:
        draws, partitions = joint[setting]
        tests = ALL if setting == "dfcrp" else ("partition", "parameters")
        found = apply(draws, Step(draws, 2), None, 0, DRAWS).p_values(tests, partitions)
        assert not alarm(found), (setting, found)


def test_companions_equal_their_twin(joint):
    arrays = joint["dfcrp"][0].arrays
    found = companions(arrays["label"][:50], FAMILIES, arrays["rank"][:50])
    for draw in range(50):
        assert found[draw].tolist() == reference.companions(
            arrays["label"][draw], FAMILIES, arrays["order"][draw]
        )


# Planted bugs --------------------------------------------------------------------------------


def sizes_forgotten(step: Step):
    """The weight of a cluster lacks n_k."""

    def weigh(data, hyper, prior, state, scratch, i, log_new, candidate, weight):
        count = assignment.weigh_features(
            data, hyper, prior, state, scratch, i, log_new, candidate, weight
        )
        for position in range(count - 1):
            weight[position] -= math.log(state.size[candidate[position]])
        return count

    update = small.with_callees(assignment.update_marking, weigh_features=weigh)
    log_alpha = math.log(step.state.alpha[0])
    for i in range(step.n):
        update(step.rng, step.data, step.hyper, step.prior, step.state, step.scratch, i, log_alpha)


def tail_off_by_one(step: Step):
    """U_f(r) counts the arrival at slot r itself."""
    state = step.state
    for slot, i in enumerate(state.order):
        state.tail.dense[slot, step.data.family[i]] += state.u[i]
        state.tail.total[slot] += state.u[i]
    step.markings()


def exclusion_ignored(step: Step):
    """The first of a pair is drawn as if the second did not need a place."""

    def choose(rng, scratch, count_i, count_j):
        total = assignment.exponentiate(scratch.weight, count_i)
        first = assignment.pick(rng.random(), scratch.weight, count_i, total)
        assignment.exponentiate(scratch.weight2, count_j)
        taken = scratch.candidate[first]
        for position in range(count_j):
            if taken != -1 and scratch.candidate2[position] == taken:
                scratch.weight2[position] = 0.0
        rest = scratch.weight2[:count_j].sum()
        return first, assignment.pick(rng.random(), scratch.weight2, count_j, rest)

    update = small.with_callees(pair.update_pair, choose_pair=choose)
    for i, j in ((0, 1), (2, 3)):
        update(step.rng, step.data, step.hyper, step.prior, step.state, step.scratch, i, j)


def proposal_forgotten(step: Step):
    """Split and merge leave out the density of the proposed parameters."""

    def value_of(data, hyper, prior, state, k, theta, row):
        value = arrivals.log_cluster(prior, data, state, k, 0.0)
        members = np.flatnonzero(state.label == k)
        value += reference.log_base(hyper, theta[row, :6])
        return value + sum(circle.log_density(hyper, theta, row, data.features, i) for i in members)

    propose = small.with_callees(regroup.propose_clusters, value_of=value_of)
    update = small.with_callees(regroup.regroup, propose_clusters=propose, value_of=value_of)
    for i, j in step.data.contact[::3]:
        update(step.rng, step.data, step.hyper, step.prior, step.state, step.scratch, i, j)


def mean_always_accepted(step: Step):
    """The mean's proposal is taken without p(Σ | μ*) / p(Σ | μ)."""
    update = small.with_callees(plane.update_mean_of_cluster, log_variance_prior=lambda *_: 0.0)
    for k in np.flatnonzero(step.state.size > 0):
        update(step.hyper, step.rng, step.prior, step.data, step.state, k)


def correction_dropped(step: Step):
    """The order move forgets how the surrogate changed."""

    def swap_chosen(rng, data, state, scratch, count):
        order.swap_chosen(rng, data, state, scratch, count)
        return 0.0

    update = small.with_callees(order.update_order, swap_chosen=swap_chosen)
    update(step.rng, step.data, step.state, step.scratch)


def surrogate_uncorrected(step: Step):
    """The order move accepts by the surrogate alone."""
    update = small.with_callees(order.update_order, log_product=lambda *_: 0.0)
    update(step.rng, step.data, step.state, step.scratch)


def jacobian_of_times_forgotten(step: Step):
    """A list arrives sooner or later as if its times were as likely afterwards as before."""

    def move_times(*given):
        order.move_times(*given)
        return 0.0

    update = small.with_callees(order.shift_lists, move_times=move_times)
    update(step.rng, step.data, step.state, step.scratch)


def lists_always(step: Step):
    """A list arrives sooner or later whatever that does to the free seats."""
    update = small.with_callees(order.shift_lists, log_product=lambda *_: 0.0)
    update(step.rng, step.data, step.state, step.scratch)


def exchanges_always(step: Step):
    """Every exchange of slots is accepted."""
    update = small.with_callees(exchange.exchange_slots, gain_of_move=lambda *_: 0.0)
    update(step.rng, step.data, step.state, step.scratch, small.whole(step.data), step.n, 0)


def jacobian_forgotten(step: Step):
    """α is updated on the log scale with the density on its own scale."""

    state = step.state
    clusters = count_clusters(state)

    def target(log_alpha):
        value = order.log_alpha_target(state.seated, clusters, 2.0, 1.0, log_alpha)
        return value - log_alpha

    update = small.with_callees(order.update_alpha, slice_update=small.slice_update_of(target))
    state.alpha[0] = update(step.rng, state.seated, clusters, 2.0, 1.0, float(state.alpha[0]), 0.8)


def certainty_forgotten(step: Step):
    """A procession is weighed as if joining and opening were always both possible."""

    def odds(joins, openers, joiners, free, alpha):
        return joiners / free if joins else float(openers)

    walk = small.with_callees(procession.walk_line, odds=odds)
    update = small.with_callees(procession.update_alpha_and_order, walk_line=walk)
    lead = small.with_callees(
        procession.lead_processions, walk_line=walk, update_alpha_and_order=update
    )
    lead(step.rng, step.data, step.state, step.scratch, 2.0, 1.0, False, 1)


def unordered_with(step: Step, **callees):
    """A sweep without an order, with functions of ``two_lists`` replaced by name."""
    prior, state = step.prior, step.state

    def drop(_, *given):
        own = {name: f for name, f in callees.items() if name == "log_opening"}
        return small.with_callees(two_lists.weigh_opening, **own)(*given)

    def take(_, *given):
        own = {name: f for name, f in callees.items() if name != "log_opening"}
        draw = small.with_callees(two_lists.draw_order, **own)
        draw(*given, prior.alpha_shape, prior.alpha_rate, prior.update_alpha)

    sweep = small.with_callees(unordered.sweep_unordered, drop_order=drop, take_order=take)
    sweep(step.rng, step.data, step.hyper, prior, state, step.scratch)


def ways_to_pair_forgotten(step: Step):
    """A pair more is weighed as if there were as many partitions with it as without."""

    def opening(waiting, row, m, shorter, longer):
        return two_lists.log_ending(waiting, row, m) - two_lists.log_ending(waiting, row, m - 1)

    unordered_with(step, log_opening=opening)


def alpha_as_if_all_had_partners(step: Step):
    """α is drawn as if no marking of the shorter list were alone."""

    def redraw(rng, data, state, scratch, alone, shape, rate):
        two_lists.redraw_alpha(rng, data, state, scratch, 0, shape, rate)

    unordered_with(step, redraw_alpha=redraw)


def the_first_who_waits(step: Step):
    """Who joins a table joins the one that has waited longest."""

    def mates(rng, data, state, scratch):
        family = data.family[state.order]
        waiting = [[], []]
        for slot, joins in enumerate(scratch.chosen[: step.n]):
            scratch.slots[slot] = -1
            if joins:
                mate = waiting[1 - family[slot]].pop(0)
                scratch.slots[slot], scratch.slots[mate] = mate, slot
            else:
                waiting[family[slot]].append(slot)

    unordered_with(step, draw_mates=mates)


def rate_without_alpha(step: Step):
    """u has the rate D + 1."""
    state = step.state
    state.u[state.order] = step.rng.standard_exponential(step.n) / (state.seated + 1.0)


def swaps_always(step: Step):
    """The paper's exchange with the last arrival is always accepted."""
    swap = small.with_callees(paper.swap_arrivals, log_product=lambda *_: 0.0)
    update = small.with_callees(
        paper.modified_scan, swap_arrivals=swap, update_parameters=lambda *_: None
    )
    update(step.rng, step.data, step.hyper, step.prior, step.state, step.scratch)


def neighbours_of_one(step: Step):
    """The paper's rule: one neighbour in a cluster is enough."""

    def find(data, state, scratch, i, candidate):
        near = data.neighbours[data.neighbour_start[i] : data.neighbour_start[i + 1]]
        options = sorted({int(state.label[max(j, ~j)]) for j in near})
        count = 0
        for k in options:
            if state.size[k] > 0 and not assignment.holds_family(data, state, k, data.family[i]):
                candidate[count] = k
                count += 1
        return count

    weigh = small.with_callees(assignment.weigh_features, find_candidates=find)
    update = small.with_callees(assignment.update_marking, weigh_features=weigh)
    log_alpha = math.log(step.state.alpha[0])
    for i in range(step.n):
        update(step.rng, step.data, step.hyper, step.prior, step.state, step.scratch, i, log_alpha)


def empty_slots_counted(step: Step):
    """The law is learned from slots without a cluster as well."""

    def everything(hyper, state):
        sums = tolerance.gather_variances(hyper, state._replace(size=np.ones_like(state.size)))
        return sums._replace(weight=float(count_clusters(state)))

    update = small.with_callees(tolerance.update_law_given_variances, gather_variances=everything)
    update(step.rng, step.hyper, step.state)


def jacobian_of_variances_forgotten(step: Step):
    """Law and variances move together as if the variances were not rescaled: Gamma terms stay."""

    def moved(hyper, data, state):
        sums = tolerance.gather_members(hyper, data, state)
        return sums._replace(weight=sums.weight - sums.rows)

    update = small.with_callees(tolerance.update_law_along, gather_members=moved)
    update(step.rng, step.hyper, step.data, step.state)


def scale_the_wrong_way(step: Step):
    """The growth moves around the mean size, but the scale with it, not against it."""

    def grow(rng, hyper, sums, which, share):
        growth = tolerance.step_growth(rng, hyper, sums, which, share)
        hyper.law[2 * which] += 2.0 * sums.centre * growth
        return growth

    both = small.with_callees(tolerance.step_law, step_growth=grow)
    update = small.with_callees(tolerance.update_law_given_variances, step_law=both)
    update(step.rng, step.hyper, step.state)


def correlation_ignored(step: Step):
    """Variances move with the law as if place and size were independent."""

    def plain(hyper, data, state):
        sums = tolerance.gather_members(hyper, data, state)
        hyper.room[:, tolerance.CROSS] = 0.0
        return sums

    update = small.with_callees(tolerance.update_law_along, gather_members=plain)
    update(step.rng, step.hyper, step.data, step.state)


def spares_weighed_by_their_own_law(step: Step):
    """The law moves, and the spares keep the weights of the law they are drawn from."""
    step.draw_spares_far_off()
    hyper = step.hyper._replace(law=step.hyper.reference)
    tolerance.account_for_law(hyper, step.data, step.state)
    step.markings()


def reference_moves_under_spares(step: Step):
    """What spares are drawn from becomes the law, and the spares stay as they are."""
    step.draw_spares_far_off()
    step.hyper.reference[:] = step.hyper.law
    tolerance.account_for_law(step.hyper, step.data, step.state)
    step.markings()


def sum_of_offsets_let_go(step: Step):
    """Offsets are drawn one by one and then centred, as if that were conditioning."""
    hyper, law = step.hyper, step.hyper.law
    bias.gather_offsets(hyper, step.data, step.state)
    share = hyper.bias.work[:, bias.SHARE]
    for axis in range(3):
        prior = 1.0 / hyper.bias.offset_sd[axis] ** 2
        at = slice(hyper.bias.offsets + axis, hyper.bias.noise, 3)
        precision = hyper.bias.work[:, bias.GRADIENT + 3 + 4 * axis] + prior
        law[at] += (hyper.bias.work[:, bias.GRADIENT + axis] - prior * law[at]) / precision
        law[at] += step.rng.standard_normal(len(share)) / np.sqrt(precision)
        law[at] -= share @ law[at]
        bias.gather_offsets(hyper, step.data, step.state)


def noise_of_variances(step: Step):
    """The noise factor is taken for one of variances, not of standard deviations."""

    def density(noise_sd, features, count, squares, value):
        extra = 0.5 * (math.exp(-2.0 * value) - math.exp(-value)) * squares
        return bias.log_noise_density(noise_sd, features, count, squares, value) + extra

    moved = small.with_callees(bias.log_noise_moved, log_noise_density=density)
    bias.gather_squares(step.hyper, step.data, step.state)
    for f, e in ((0, 1), (1, 2), (2, 0)):
        target = bias.noise_target.py_func(step.hyper, f, e)
        update = small.with_callees(
            bias.slice_noise, slice_update=small.slice_update_of(lambda at, t=target: moved(t, at))
        )
        update(step.rng, step.hyper, f, e)


def precision_ignored_in_means(step: Step):
    """Means are drawn as if all experts were equally exact."""

    def alike(hyper, y, i):
        return (*plane.corrected(hyper, y, i)[:3], 1.0)

    update = small.with_callees(plane.update_mean_of_cluster, corrected=alike)
    for k in np.flatnonzero(step.state.size > 0):
        update(step.hyper, step.rng, step.prior, step.data, step.state, k)


#: Setting, bug, how many times it is applied, how many draws it takes to show, tests.
BUGS = [
    ("dfcrp", sizes_forgotten, 2, 3000, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", tail_off_by_one, 1, 4000, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", exclusion_ignored, 2, DRAWS, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", proposal_forgotten, 1, 300, ("partition", "parameters", "alpha", "u", "joins")),
    ("dfcrp", mean_always_accepted, 4, DRAWS, ("parameters",)),
    ("arrivals", correction_dropped, 5, 4000, ("cells",)),
    ("arrivals", surrogate_uncorrected, 5, 2000, ("cells",)),
    ("arrivals", jacobian_of_times_forgotten, 5, DRAWS, ("cells",)),
    ("arrivals", lists_always, 5, DRAWS, ("cells",)),
    ("dfcrp", exchanges_always, 3, DRAWS, ("u", "orders", "joins")),
    ("dfcrp", jacobian_forgotten, 3, 400, ("alpha", "joins")),
    ("arrivals", certainty_forgotten, 3, 1500, ("cells",)),
    ("two lists", ways_to_pair_forgotten, 1, 1000, ("partition", "parameters", "alpha", "joins")),
    ("two lists", alpha_as_if_all_had_partners, 3, 2000, ("alpha", "joins")),
    ("arrivals", the_first_who_waits, 1, DRAWS, ("cells",)),
    ("dfcrp", rate_without_alpha, 1, 800, ("u",)),
    ("arrivals", swaps_always, 2, 1000, ("cells",)),
    ("radius", neighbours_of_one, 1, 400, ("partition", "parameters", "u")),
    ("learned", empty_slots_counted, 2, 800, ("law", "parameters")),
    ("learned", jacobian_of_variances_forgotten, 2, 800, ("law", "parameters")),
    ("learned", scale_the_wrong_way, 4, 2500, ("law", "parameters")),
    ("learned", correlation_ignored, 2, 2500, ("law", "parameters")),
    ("settled", spares_weighed_by_their_own_law, 4, 5000, ("partition", "parameters", "law")),
    ("settled", reference_moves_under_spares, 4, 2000, ("partition", "parameters", "law")),
    ("biased", sum_of_offsets_let_go, 4, DRAWS, ("bias", "parameters")),
    ("biased", noise_of_variances, 2, 1000, ("bias", "parameters")),
    ("biased", precision_ignored_in_means, 2, 3000, ("parameters", "bias")),
]


def test_a_procession_returns_the_weight_of_the_order_that_it_leaves(joint):
    """The next one is weighed against it, whether this one was accepted or not."""
    draws, _ = joint["dfcrp"]
    step, changed = Step(draws, 4), 0
    given = step.rng, step.data, step.state, step.scratch

    def weight() -> float:
        state = step.state
        order, seated = state.order.copy(), state.seated.copy()
        return procession.walk_line(*given, float(state.alpha[0]), order, seated, True)

    for draw in range(100):
        draws.load(draw, step.state)
        before = weight()
        found = procession.update_alpha_and_order(*given, 2.0, 1.0, 1.0, before)
        assert found == pytest.approx(weight(), abs=1e-12)
        changed += abs(found - before) > 1e-3
    assert 20 < changed < 80


@pytest.mark.parametrize(
    ("setting", "bug", "times", "count", "tests"), BUGS, ids=[bug[1].__name__ for bug in BUGS]
)
def test_planted_bug_is_caught(joint, setting, bug, times, count, tests):
    draws, partitions = joint[setting]
    found = apply(draws, Step(draws, 3), bug, times, count).p_values(tests, partitions)
    assert alarm(found), min(found.items(), key=lambda item: item[1])


def test_spares_are_weighed_again_when_the_law_has_moved(joint):
    """Of many markings they stay; of few, what they are drawn from becomes the law."""
    for setting in ("settled", "learned"):
        draws, _ = joint[setting]
        step = Step(draws, 4)
        draws.load(0, step.state)
        step.state.scans[0] = tolerance.SETTLED
        assignment.refresh_spares(step.rng, step.data, step.hyper, step.state, 0, step.n, 1)
        spare, weight = step.state.spare.copy(), step.state.spare_weight.copy()
        law, own = step.state.law.copy(), step.hyper.reference.copy()
        drawn = likelihood.update_shared(step.hyper, step.rng, step.data, step.state)
        assert drawn == (setting == "learned")
        assert (step.state.law != law).all()
        assert np.array_equal(step.hyper.reference, step.state.law if drawn else own)
        assert np.array_equal(step.state.spare, spare)
        if not drawn:
            assert (step.state.spare_weight != weight).all()
            for i in range(step.n):
                found = reference.opening_weight(step.hyper, spare[i, :6], step.data.features[i])
                assert step.state.spare_weight[i] == pytest.approx(found, rel=1e-9)
