"""Likelihoods with parameters integrated out, the kernels' source run as plain Python.

    NUMBA_DISABLE_JIT=1 python interpreted.py

Compiling a scan for every likelihood would take minutes; a handful of items needs no compiler.
Prints JSON: for each likelihood the largest change that an update of one item, or of two relatives,
makes to the enumerated posterior, and Geweke's largest z; the same with planted bugs.
"""

from __future__ import annotations

import json
import math
import sys
from dataclasses import replace
from itertools import combinations_with_replacement, product
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

from dfcrp import prior
from dfcrp.draws import Columns
from dfcrp.items.given import items_of
from dfcrp.items.items import Items
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods import integrated
from dfcrp.likelihoods.bias import with_bias
from dfcrp.likelihoods.normal import covariance
from dfcrp.likelihoods.record import kernel as record_kernel
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.record.likelihood import RECORDS as RECORD_LIKELIHOOD
from dfcrp.moves import assignment, pair
from dfcrp.priors import tail
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, new_scratch, problem_of
from dfcrp.settings.config import make_config
from reference import feature_reference, kernel_reference, record_reference
from reference import small_problems as small
from reference.branches import every_branch

FAMILIES = [0, 0, 1, 1, 2]
#: Items of two objects or so, all of them in doubt.
PLACES = np.array([[0.0, 0.1], [1.1, 0.5], [0.3, -0.2], [1.6, 0.3], [0.7, 0.2]])
SIDES = np.array([[1.0, 0.8], [1.3, 0.9], [0.9, 0.7], [1.2, 1.1], [1.1, 0.8]])
ANGLES = np.array([[30.0], [75.0], [40.0], [100.0], [55.0]])
VALUES = {
    "points": PLACES,
    "boxes": np.hstack([PLACES, SIDES]),
    "ellipses": np.hstack([PLACES, SIDES + np.array([0.5, 0.0]), ANGLES]),
    "diagonal": np.hstack([PLACES, SIDES]),
    "normal": np.hstack([PLACES, SIDES[:, :1]]),
}
RECORDS = {
    "name": ["anna", "bob", "ann", "rob", "anna"],
    "year": ["1980", "1981", "1981", "", "1980"],
    "weight": ["1.5", "1.7", "1.6", "80.25", ""],
}


# The enumerated posterior ---------------------------------------------------------------------


def records() -> Items:
    everyone = [(i, j) for i in range(5) for j in range(i)]
    return Items.from_columns(RECORDS, FAMILIES, kind="records", candidates=everyone)


#: Added to the name of a kind: its experts differ.
UNLIKE = ", experts"


def problem_for(kind: str) -> Problem:
    """The problem as a user's data would make it, but that any two items may share a cluster."""
    if kind.endswith(UNLIKE):
        plain = problem_for(kind.removesuffix(UNLIKE))
        axes = plain.data.features.shape[1]
        hyper = with_bias(plain.hyper, "both", np.array(FAMILIES), np.full(axes, 0.3), 0.5)
        rng = np.random.default_rng(90)
        hyper.law[len(plain.hyper.law) :] = small.draw_bias(rng, hyper.bias, 1)[0]
        return replace(plain, hyper=hyper)
    made = records() if kind == "records" else items_of(VALUES[kind], FAMILIES, kind)
    # Levels of careless items would be part of the state: ``careless_items`` has these.
    own = {} if kind == "records" else {"likelihood": {"tails": "none"}}
    config = make_config({"run": {"likelihood": kind, "radius": "none"}, **own})
    problem = problem_of(made, config)
    data = small.make_problem(FAMILIES, problem.data.features[problem.data.internal]).data
    return replace(problem, data=data, alpha_start=1.0)


def log_marginal(problem: Problem, members: list[int]) -> float:
    """By the slow twins, which integrate or sum numerically."""
    hyper = problem.hyper
    y = problem.data.features[members]
    if isinstance(hyper, record_kernel.RecordHyper):
        return record_reference.log_ratio(hyper, y[:, -1].astype(int).tolist())
    full = isinstance(hyper, covariance.CovarianceHyper)
    twin = feature_reference.log_marginal_full if full else feature_reference.log_marginal
    return twin(hyper, hyper.law, y, np.array(FAMILIES)[members])


class Partitions:
    """All partitions of the items, and how an update moves probability among them.

    An update of two items may trade their places in the order of arrival: then the states are all
    partitions with either order. u stays with the places.
    """

    def __init__(self, kind: str):
        self.problem = problem_for(kind)
        self.scratch = new_scratch(self.problem)
        self.rng = np.random.default_rng(91)
        self.partitions = [tuple(c) for c in prior.partitions(FAMILIES)]
        self.order = tuple(self.rng.permutation(5).tolist())
        self.u = 0.3 * self.rng.standard_exponential(5)  # by place
        self.known: dict[tuple[int, ...], float] = {}

    def u_of(self, order) -> np.ndarray:
        """By item."""
        found = np.empty(5)
        found[list(order)] = self.u
        return found

    def log_posterior(self, labels, order) -> float:
        u = self.u_of(order)
        value = kernel_reference.log_partition(labels, FAMILIES, np.array(order), u, 0.8)
        for members in kernel_reference.clusters(labels):
            key = tuple(members)
            self.known[key] = self.known.get(key) or log_marginal(self.problem, members)
            value += self.known[key]
        return value

    def state(self, labels, order):
        problem = self.problem
        state = small.fill_state(problem, labels, order=order, u=self.u_of(order), alpha=0.8)
        features = problem.data.features
        for k in set(state.label.tolist()):
            integrated.gather(problem.hyper, features, state, k, state.theta, k)
        assignment.refresh_spares(self.rng, problem.data, problem.hyper, state, 0, 5, 1)
        tail.rebuild_tail(problem.data, state)
        return state

    def worst_change(self, update, movers) -> float:
        """Of the target, over one update of each of the movers."""
        worst = 0.0
        given = self.rng, self.problem.data, self.problem.hyper, self.problem.prior
        for mover in movers:
            traded = dict(zip(mover, mover[::-1], strict=True))
            orders = dict.fromkeys([self.order, tuple(traded.get(i, i) for i in self.order)])
            places = [(labels, order) for labels in self.partitions for order in orders]
            logs = np.array([self.log_posterior(*place) for place in places])
            target = np.exp(logs - logs.max()) / np.exp(logs - logs.max()).sum()
            after = np.zeros(len(target))
            for mass, place in zip(target, places, strict=True):

                def once(pick, place=place, mover=mover, places=places):
                    assignment.pick = pair.pick = pick
                    state = self.state(*place)
                    update(*given, state, self.scratch, *mover)
                    small.assert_consistent(self.problem.data, state)
                    assert (state.u[state.order] == self.u).all()
                    return places.index((small.partition_of(state), tuple(state.order.tolist())))

                for probability, column in every_branch(once):
                    after[column] += mass * probability
            worst = max(worst, float(np.abs(after - target).max()))
        return worst


def update_one(rng, data, hyper, prior_, state, scratch, i) -> None:
    assignment.update_marking(rng, data, hyper, prior_, state, scratch, i, math.log(0.8))


def exactness() -> dict:
    """Worst changes by likelihood, and with a density that is off by a little."""
    kept = assignment.pick, assignment.favourite
    assignment.favourite = lambda *_: -1  # a shortcut, which decides before the weights are known
    found: dict = {}
    unlike = [kind + UNLIKE for kind in ("points", "boxes", "normal")]
    for kind in (*VALUES, "records", *unlike):
        cases = Partitions(kind)
        found[kind] = {
            "one": cases.worst_change(update_one, [(i,) for i in range(5)]),
            "two": cases.worst_change(pair.update_pair, [(0, 1), (2, 3)]),
        }
        total = pair.log_pair_total
        pair.log_pair_total = lambda *_: 0.0
        found[kind]["blind"] = cases.worst_change(pair.update_pair, [(0, 1)])
        pair.log_pair_total = total
        hyper = type(cases.problem.hyper)
        density = likelihood.log_density.implementations[hyper]
        likelihood.log_density.implementations[hyper] = lambda *args, own=density: own(*args) + 0.05
        found[kind]["planted"] = cases.worst_change(update_one, [(0,)])
        likelihood.log_density.implementations[hyper] = density
    assignment.pick, assignment.favourite = kept
    pair.pick = kept[0]
    return found


# Geweke ---------------------------------------------------------------------------------------

SHAPE, RATE = 2.0, 1.0
STEPS, BATCHES, DIRECT = 600, 30, 1500
#: Where an alarm is what is wanted, fewer will do.
STEPS_WITH_A_BUG = 150
FULL = covariance.CovarianceHyper(
    features=2,
    shape=2.5,
    log_volume=math.log(9.0),
    law=np.array([-1.0, -1.2, 0.3]),
    law_mean=np.array([-1.0, -1.2, 0.3]),
    law_sd=np.array([0.6, 0.5, 0.4]),
)
#: Items lie in this square, whose area is that of ``FULL``.
SQUARE = 1.5


class FullNormal:
    """Cluster means uniform over the square; draws with an item outside are thrown away."""

    columns = ("x", "y", "x_se", "y_se", "var_x", "var_y"), ("scale_x", "scale_y", "tie")
    row_width = covariance.row_width(2)
    hyper = FULL
    mistake = FULL._replace(law_mean=np.array([-0.4, -1.2, 0.3]))

    def first(self) -> np.ndarray:
        return PLACES - PLACES.mean(axis=0)

    def draw(self, rng, hyper, law, labels):
        """Features, or None if one lies outside."""
        y = np.empty((5, 2))
        lower = np.diag(np.exp(law[:2])) @ np.array([[1.0, 0.0], [law[2], 1.0]])
        for k in set(labels):
            members = np.flatnonzero(np.asarray(labels) == k)
            scale = 2.0 * hyper.shape * lower @ lower.T
            for n, i in enumerate(members):
                if n == 0:
                    y[i] = rng.uniform(-SQUARE, SQUARE, 2)
                    continue
                before = y[members[:n]]
                apart = before - before.mean(axis=0)
                freedom = 2.0 * hyper.shape - 1.0 + n
                spread = (scale + apart.T @ apart) * (1.0 + 1.0 / n) / freedom
                z = np.linalg.cholesky(spread) @ rng.normal(size=2)
                y[i] = before.mean(axis=0) + z / math.sqrt(rng.chisquare(freedom) / freedom)
        return y if (np.abs(y) < SQUARE).all() else None

    def renew(self, rng, chain) -> None:
        labels = chain.state.label.tolist()
        while (y := self.draw(rng, self.hyper, chain.state.law, labels)) is None:
            pass
        chain.problem.data.features[:] = y

    def weight(self, rng, law, labels) -> float:
        return float(self.draw(rng, self.hyper, law, labels) is not None)


class FewValues:
    """Text and a category with few values: all data of a cluster can be listed.

    Chances of a measure's values do not add up to one exactly, and there are too many to list; its
    marginals are checked by the enumerated posterior.
    """

    row_width = record_kernel.row_width(3, False)
    columns = ("members",), ("miss_name", "miss_year", "typo_name")

    def __init__(self):
        made = records()
        two = {name: made.columns[name] for name in ("name", "year")}
        settings = RecordSettings(categories=("year",))
        items = Items.from_columns(two, FAMILIES, kind="records", candidates=made.candidates)
        hyper = RECORD_LIKELIHOOD.prepared(items, settings).hyper(3)
        law = np.array([-0.5, -1.0, -0.7])
        self.hyper = hyper._replace(law=law, law_mean=law, law_sd=np.full(3, 0.8))
        self.mistake = self.hyper._replace(law_mean=law + 0.8)

    def first(self) -> np.ndarray:
        codes = self.hyper.values
        return np.column_stack([codes, np.arange(len(codes))]).astype(np.float64)

    def _tables(self, law, labels):
        """For each cluster and field: members, all their data, and the probability of each."""
        known: dict[tuple[int, int], tuple[list, np.ndarray]] = {}
        for members in kernel_reference.clusters(labels):
            for field in range(2):
                key = len(members), field
                if key not in known:
                    known[key] = self._table(law, *key)
                yield members, field, *known[key]

    def _table(self, law, size: int, field: int) -> tuple[list, np.ndarray]:
        """All data of so many members, whose order does not matter, and their probabilities."""
        everyone = [*range(size)]
        count = int(self.hyper.first[field + 1] - self.hyper.first[field])
        empty = np.full((size, 2), -1, np.int32)
        hyper = self.hyper._replace(law=law, values=empty)
        chances = {}
        for values in combinations_with_replacement(range(count), size):
            hyper.values[:, field] = values
            ratio = record_reference.log_ratio_of_field(hyper, field, everyone)
            chances[values] = math.exp(ratio + record_reference.log_share(hyper, field, everyone))
        data = list(product(range(count), repeat=size))
        return data, np.array([chances[tuple(sorted(values))] for values in data])

    def renew(self, rng, chain) -> None:
        features = chain.problem.data.features
        for members, field, data, chance in self._tables(chain.state.law, chain.state.label):
            features[members, field] = data[rng.choice(len(data), p=chance / chance.sum())]
        chain.hyper.values[:] = features[:, :-1]

    def weight(self, rng, law, labels) -> float:
        return math.prod(float(chance.sum()) for *_, chance in self._tables(law, labels))


def successive(design, hyper, seed, steps) -> np.ndarray:
    """(steps, statistics): data given partition and law, then a scan given the data."""
    rng = np.random.default_rng([seed, 92])
    made = small.make_problem(FAMILIES, design.first(), shape=SHAPE, rate=RATE)
    columns = Columns.plain(*design.columns)
    problem = Problem(made.data, hyper, made.prior, 2.0, design.row_width, columns)
    chain = Chain(problem, np.random.SeedSequence(seed), "exact")
    state, out = chain.state, []
    for _ in range(steps):
        design.renew(rng, chain)
        for k in np.flatnonzero(state.size[:-1] > 0):
            integrated.gather(chain.hyper, problem.data.features, state, k, state.theta, k)
        assignment.refresh_spares(chain.rng, problem.data, chain.hyper, state, 0, 5, 1)
        chain.run(1, 1)
        out.append([*state.law[:2], math.log(state.alpha[0]), (state.size[:-1] > 0).sum()])
    return np.array(out)


def direct(design) -> tuple[np.ndarray, np.ndarray]:
    """The same statistics from the prior, with weights."""
    rng = np.random.default_rng(93)
    rows, weights = [], []
    for seed in range(DIRECT):
        alpha = rng.gamma(SHAPE) / RATE
        labels = prior.sample(FAMILIES, alpha, 1, seed=seed)[0].tolist()
        law = design.hyper.law_mean + design.hyper.law_sd * rng.standard_normal(
            len(design.hyper.law_mean)
        )
        rows.append([*law[:2], math.log(alpha), len(set(labels))])
        weights.append(design.weight(rng, law, labels))
    return np.array(rows), np.array(weights)


def worst_z(found: np.ndarray, rows: np.ndarray, weights: np.ndarray) -> float:
    """Largest difference of means and mean squares, in standard errors."""
    worst = 0.0
    share = weights / weights.sum()
    for column in range(found.shape[1]):
        for power in (1, 2):
            means = np.mean(np.split(found[:, column] ** power, BATCHES), axis=1)
            values = rows[:, column] ** power
            mean = float(share @ values)
            variance = float(share**2 @ (values - mean) ** 2)
            error = math.sqrt(means.var() / (BATCHES - 1) + variance)
            worst = max(worst, abs(float(means.mean()) - mean) / error)
    return worst


def geweke() -> dict:
    out = {}
    for name, design in (("normal", FullNormal()), ("records", FewValues())):
        exact = direct(design)
        out[name] = {
            "z": worst_z(successive(design, design.hyper, 94, STEPS), *exact),
            "planted": worst_z(successive(design, design.mistake, 95, STEPS_WITH_A_BUG), *exact),
        }
    return out


if __name__ == "__main__":
    print(json.dumps({"exactness": exactness(), "geweke": geweke()}))
