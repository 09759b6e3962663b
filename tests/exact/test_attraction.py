"""The DFCRP with attraction against its definition, by enumeration and by exact draws.

The twin lets customers arrive one by one. Given the order and u the kernels' factors must have its
probability as their product for every partition, exactly. Updates of the order, of α and of the
strength are applied to exact draws of everything, which must stay what they are: the false-alarm
rate of that test is 1e-5 (Bonferroni over its p values), seeds are fixed, planted bugs are caught.
"""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from scipy import stats

from dfcrp import prior as prior_module
from dfcrp.compiled.state import Block
from dfcrp.errors import SettingsError
from dfcrp.moves import pair
from dfcrp.persons import Persons
from dfcrp.priors.attraction import kernel as attraction
from dfcrp.priors.attraction.prior import ATTRACTION, AttractionSettings
from dfcrp.priors.base import Facts
from dfcrp.priors.contract import log_cluster, log_join
from dfcrp.priors.tail import rebuild_tail
from dfcrp.sampling.problem import new_scratch, new_state
from reference import kernel_reference as reference
from reference import prior_reference
from reference import small_problems as small
from reference.prior_reference import canonical

FALSE_ALARM_RATE = 1e-5
DRAWS = 4_000
FAMILIES = [0, 1, 2, 0, 1]
#: The first two lists are one person's.
PERSONS = Persons(np.array([0, 0, 1]), ("a/b", "c"))
MODEL = AttractionSettings(strength_sd=1.0, alpha_shape=3.0, alpha_rate=2.0)


def weight(i, j, strength) -> float:
    kin = PERSONS.codes[FAMILIES[i]] == PERSONS.codes[FAMILIES[j]]
    return math.exp(strength) if kin else 1.0


def tables_open_to(i, tables, strength) -> dict[int, float]:
    """Weight of every table without i's family."""
    return {
        k: sum(weight(i, j, strength) for j in members)
        for k, members in tables.items()
        if all(FAMILIES[j] != FAMILIES[i] for j in members)
    }


def arrive(order, labels, strength):
    """By arrival: weight of the own table (0 if it is new), and of all that are open."""
    tables: dict[int, list[int]] = {}
    for i in order:
        weights = tables_open_to(i, tables, strength)
        yield i, weights.get(labels[i], 0.0), sum(weights.values())
        tables.setdefault(labels[i], []).append(i)


def log_given_order(labels, alpha, strength, order) -> float:
    arrivals = arrive(order, labels, strength)
    return sum(math.log((own or alpha) / (whole + alpha)) for _, own, whole in arrivals)


def sit_down(rng, order, alpha, strength) -> list[int]:
    """A partition by the seating rule."""
    tables: dict[int, list[int]] = {}
    labels = [0] * len(order)
    for i in order:
        weights = {**tables_open_to(i, tables, strength), len(tables): alpha}
        p = np.array(list(weights.values()))
        labels[i] = list(weights)[rng.choice(len(p), p=p / p.sum())]
        tables.setdefault(labels[i], []).append(i)
    return labels


PARTITIONS = list(prior_module.partitions(FAMILIES))


@pytest.fixture(scope="module")
def problem():
    facts = Facts(np.array(FAMILIES), ("a", "b", "c"), PERSONS, None)
    layout, made = ATTRACTION.lay_out(facts, MODEL), small.make_problem(FAMILIES)
    assert layout.columns.names == ("attraction",)
    columns = made.columns.joined(layout.columns)
    return replace(made, prior=layout.prior, alpha_start=layout.alpha_start, columns=columns)


class Chamber:
    """One state, filled as asked."""

    def __init__(self, problem):
        self.data, self.hyper = problem.data, problem.hyper
        self.state, self.scratch = new_state(problem), new_scratch(problem)
        self.prior = attraction.of_chain(problem.prior, self.state.own)

    def fill(self, labels, order, alpha, strength):
        state = self.state
        for name, values in small.seat_partition(labels, self.data.component).items():
            getattr(state, name)[:] = values
        state.order[:] = order
        state.rank[state.order] = np.arange(len(order))
        state.alpha[0] = alpha
        state.own[0] = strength
        self.prior.strong[0] = math.exp(strength)

    def refresh_auxiliary(self, rng, labels, strength):
        """u from its conditional, by the twin."""
        order = self.state.order.tolist()
        for i, _, whole in arrive(order, labels, strength):
            self.state.u[i] = rng.standard_exponential() / (whole + self.state.alpha[0])
        rebuild_tail(self.data, self.state)


def test_a_seating_is_a_distribution():
    """Every order's probabilities sum to one; without strength they are the DFCRP's."""
    for order in list(permutations(range(5)))[::7]:
        for strength in (-0.7, 0.0, 1.6):
            logs = [log_given_order(c, 0.8, strength, order) for c in PARTITIONS]
            assert math.fsum(map(math.exp, logs)) == pytest.approx(1.0, abs=1e-12)
        plain = [prior_reference.prob_given_order(c, FAMILIES, 0.8, order) for c in PARTITIONS]
        found = [math.exp(log_given_order(c, 0.8, 0.0, order)) for c in PARTITIONS]
        assert found == pytest.approx(plain, abs=1e-12)


def test_factors_have_the_seatings_probability(problem):
    """Given the order and any u: of all partitions, of joining, and of the walk over arrivals."""
    rng, chamber = np.random.default_rng(95), Chamber(problem)
    data, prior, state, scratch = chamber.data, chamber.prior, chamber.state, chamber.scratch
    for strength in (-0.7, 1.3):
        order, u = rng.permutation(5), rng.standard_exponential(5)
        excess = []
        for labels in PARTITIONS:
            chamber.fill(labels, order, 0.8, strength)
            state.u[:] = u
            rebuild_tail(data, state)
            arrivals = list(arrive(order.tolist(), labels, strength))
            expected = sum(math.log(own or 0.8) - u[i] * whole for i, own, whole in arrivals)
            whole = sum(
                log_cluster(prior, data, state, members[0], 0.0)
                for members in reference.clusters(labels)
            )
            excess.append(whole - expected)
            check_joining(chamber, labels)
            attraction.rearrange(prior, rng, data, state, scratch)
            now = list(arrive(state.order.tolist(), labels, strength))
            seated = prior.arrived.open + (prior.strong[0] - 1.0) * prior.arrived.kin
            assert seated == pytest.approx([whole for _, _, whole in now])
            mates = prior.arrived.mates + (prior.strong[0] - 1.0) * prior.arrived.mate_kin
            assert mates == pytest.approx([own for _, own, _ in now])
        assert excess == pytest.approx([excess[0]] * len(excess), abs=1e-10)


def check_joining(chamber, labels):
    """Ratios of factors, for every marking that is alone and every cluster it may join."""
    data, prior, state, scratch = chamber.data, chamber.prior, chamber.state, chamber.scratch
    clusters = reference.clusters(labels)
    order, alpha, strength = state.order.copy(), state.alpha[0], float(state.own[0])
    for (i,) in (members for members in clusters if len(members) == 1):
        for members in clusters:
            if all(FAMILIES[j] != FAMILIES[i] for j in members):
                k = members[0]
                found = log_join(prior, data, state, scratch, i, k, 0.0)
                before = log_cluster(prior, data, state, k, 0.0)
                joined = [labels[k] if m == i else labels[m] for m in range(len(labels))]
                chamber.fill(canonical(joined), order, alpha, strength)
                after = log_cluster(prior, data, state, state.label[i], 0.0)
                chamber.fill(labels, order, alpha, strength)
                assert found == pytest.approx(after - before, abs=1e-10)


def draw_everything(rng):
    """(τ, α, order, c) from the model."""
    strength = MODEL.strength_sd * rng.standard_normal()
    alpha = rng.standard_gamma(MODEL.alpha_shape) / MODEL.alpha_rate
    order = rng.permutation(len(FAMILIES))
    return strength, alpha, order, canonical(sit_down(rng, order.tolist(), alpha, strength))


def statistics(rows) -> dict[str, np.ndarray]:
    """Numbers by draw, from (τ, α, order, c)."""
    strength, alpha = (np.array([row[k] for row in rows]) for k in (0, 1))
    rank = np.array([np.argsort(row[2]) for row in rows])
    table = np.array([row[3] for row in rows])
    kin = (table[:, 0] == table[:, 1]) * 1.0 + (table[:, 3] == table[:, 4])
    return {
        "strength": strength,
        "alpha": alpha,
        "strength by kin": strength * (kin - 0.8),
        "strength together": np.where(kin > 0, strength, np.nan),
        "alpha by clusters": alpha / (1.0 + table.max(axis=1)),
        "strength by rank": strength * (rank[:, 0] - rank[:, 1]),
        "kin in order": kin * (rank[:, 2] - rank[:, 0]),
        "rank together": np.where(table[:, 0] == table[:, 1], rank[:, 1], np.nan),
        "rank apart": np.where(table[:, 0] != table[:, 1], rank[:, 2], np.nan),
    }


def smallest_p(one, two) -> float:
    """Of all tests, times their number."""
    a, b = statistics(one), statistics(two)
    pairs = [(a[name][~np.isnan(a[name])], b[name][~np.isnan(b[name])]) for name in a]
    found = [stats.ks_2samp(*pair).pvalue for pair in pairs]
    counts = [Counter(row[3] for row in rows) for rows in (one, two)]
    kinds = sorted({*counts[0], *counts[1]})
    found.append(stats.chi2_contingency([[c[kind] for kind in kinds] for c in counts]).pvalue)
    return float(min(found)) * len(found)


def after(problem, update, seed):
    """Exact draws to which the update was applied."""
    rng, chamber, rows = np.random.default_rng([seed, 96]), Chamber(problem), []
    for _ in range(DRAWS):
        strength, alpha, order, labels = draw_everything(rng)
        chamber.fill(labels, order, alpha, strength)
        chamber.refresh_auxiliary(rng, labels, strength)
        update(rng, chamber)
        state = chamber.state
        rows.append(
            (state.own[0], state.alpha[0], state.order.copy(), canonical(state.label.tolist()))
        )
    return rows


def parameters_and_slots(rng, chamber):
    """Exchange slots given u, then everything with u integrated out."""
    n = len(FAMILIES)
    given = chamber.data, chamber.state, chamber.scratch
    attraction.update_slots(chamber.prior, rng, *given, Block(0, n, 0, 0))
    attraction.update_attraction(
        chamber.prior, rng, chamber.data, chamber.hyper, chamber.state, chamber.scratch
    )


def pairs_and_slots(rng, chamber):
    """Relatives draw their clusters and slots together."""
    given = chamber.data, chamber.hyper, chamber.prior, chamber.state, chamber.scratch
    for i, j in ((0, 3), (1, 4)):
        pair.update_pair(rng, *given, i, j)


def order_left_out_of_pairs(rng, chamber):
    """Relatives draw their clusters by the numbers of those who sit there alone."""

    def weigh(data, hyper, prior, state, scratch, i, log_new, candidate, weight):
        count = pair.weigh(data, hyper, prior, state, scratch, i, log_new, candidate, weight)
        weight[: count - 1] = np.log(state.size[candidate[: count - 1]])
        return count

    both = small.with_callees(pair.weigh_both, weigh=weigh)
    slots = small.with_callees(pair.choose_slots, weigh_both=both)
    update = small.with_callees(pair.update_pair, choose_slots=slots)
    given = chamber.data, chamber.hyper, chamber.prior, chamber.state, chamber.scratch
    for i, j in ((0, 3), (1, 4)):
        update(rng, *given, i, j)


def normalisation_forgotten(rng, chamber):
    """The strength is updated as if the sums of the weights did not depend on it."""
    attraction.rearrange(chamber.prior, rng, chamber.data, chamber.state, chamber.scratch)
    chamber.prior.arrived.kin[:] = 0.0
    attraction.update_strength(chamber.prior, rng, chamber.state)


def order_shuffled(rng, chamber):
    """The order is drawn again, whatever the partition."""
    chamber.state.order[:] = rng.permutation(len(FAMILIES))
    parameters_and_slots(rng, chamber)


def fresh(seed):
    rng = np.random.default_rng([seed, 97])
    return [draw_everything(rng) for _ in range(DRAWS)]


@pytest.mark.parametrize("update", [parameters_and_slots, pairs_and_slots])
def test_updates_leave_exact_draws_as_they_are(problem, update):
    assert smallest_p(after(problem, update, 1), fresh(1)) > FALSE_ALARM_RATE


@pytest.mark.parametrize("bug", [normalisation_forgotten, order_shuffled, order_left_out_of_pairs])
def test_planted_bugs_are_caught(problem, bug):
    assert smallest_p(after(problem, bug, 2), fresh(2)) < FALSE_ALARM_RATE


def test_attraction_needs_lists_of_one_person():
    with pytest.raises(SettingsError, match=r"run\.persons"):
        ATTRACTION.check(Persons(np.arange(3), ("a", "b", "c")))
    ATTRACTION.check(PERSONS)
