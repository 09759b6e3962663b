"""The whole sampler with features integrated out: enumerated posterior, and Geweke's joint test.

Five items of three families; the law of the variances is learned and, in the enumeration, summed
on a grid. False-alarm rate 1e-5 for each test; seeds are fixed, and planted bugs must be caught.
"""

from __future__ import annotations

import math
from itertools import combinations, product

import numpy as np
import pytest
from scipy import special

from dfcrp import prior
from dfcrp.draws import Columns
from dfcrp.likelihoods import integrated
from dfcrp.likelihoods.normal import kernel as normal
from dfcrp.moves import assignment
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from reference import feature_reference as reference
from reference import posterior_reference
from reference import small_problems as small
from reference.chi_square import p_value
from reference.prior_reference import canonical

FALSE_ALARM_RATE = 1e-5
FAMILIES = [0, 0, 1, 1, 2]
SHAPE, RATE = 2.0, 1.0
HYPER = normal.NormalHyper(
    centre=np.zeros(2),
    spread=np.array([1.5, 0.6]),
    start=np.array([0, 1, 2]),
    size=np.array([1, -1]),
    level=np.array([0.1, 0.0]),
    growth=np.array([2, -1]),
    shape=2.5,
    law=np.array([-1.0, -2.0, 1.0]),
    law_mean=np.array([-1.0, -2.0, 1.0]),
    law_sd=np.array([0.7, 0.6, 0.5]),
)
FEATURES = np.array([[0.0, 0.1], [1.1, 0.5], [0.3, -0.2], [1.6, 0.3], [0.7, 0.2]])
COLUMNS = Columns.plain(
    ("x", "l", "x_se", "l_se", "var_x", "var_l"), ("scale_x", "scale_l", "growth_x")
)


def problem_with(features, hyper=HYPER, **changes) -> Problem:
    made = small.make_problem(FAMILIES, features, shape=SHAPE, rate=RATE)
    arrivals = made.prior._replace(**changes)
    return Problem(made.data, hyper, arrivals, 2.0, normal.row_width(2, 2), COLUMNS)


@pytest.fixture(scope="module")
def target() -> dict:
    """p(c | y), the law summed on a grid of 13 nodes a side."""
    nodes = np.linspace(-3.6, 3.6, 13)
    sets = [m for size in range(1, 6) for m in combinations(range(5), size)]
    partitions = list(prior.partitions(FAMILIES))
    log_prior = posterior_reference.log_priors(partitions, FAMILIES, True, SHAPE, RATE)
    logs = []
    for z in product(nodes, repeat=3):
        law = HYPER.law_mean + HYPER.law_sd * np.array(z)
        m = {s: _marginal(law, FEATURES[list(s)]) for s in sets if _valid(s)}
        weight = -0.5 * float(np.square(z).sum())
        logs.append([weight + sum(m[s] for s in _clusters(c)) for c in partitions])
    total = special.logsumexp(np.array(logs), axis=0) + log_prior
    return dict(
        zip(map(canonical, partitions), np.exp(total - special.logsumexp(total)), strict=True)
    )


def _valid(members) -> bool:
    return len({FAMILIES[i] for i in members}) == len(members)


def _clusters(labels) -> list[tuple[int, ...]]:
    return [tuple(i for i in range(5) if labels[i] == k) for k in sorted(set(labels))]


def _marginal(law, y) -> float:
    """The closed form, which ``test_feature_likelihoods`` checks against integrals."""
    hyper = HYPER._replace(law=law)
    theta = np.zeros((1, normal.row_width(2, 2)))
    integrated.empty_row(hyper, theta, 0)
    for i in range(len(y)):
        normal.add_member(hyper, theta, 0, y, i)
    return integrated.log_marginal(hyper, theta, 0)


def test_sampler_reaches_the_posterior(target):
    probability = np.array(list(target.values()))
    assert probability.max() < 0.7
    assert p_value(problem_with(FEATURES), target) > FALSE_ALARM_RATE


@pytest.mark.parametrize(
    ("hyper", "changes"),
    [
        (HYPER._replace(law_mean=np.array([0.2, -2.0, 1.0])), {}),  # wider clusters
        (HYPER._replace(spread=np.array([2.2, 0.6])), {}),  # means spread wider
        (HYPER, {"alpha_rate": 0.7}),
    ],
    ids=["law", "spread", "alpha"],
)
def test_planted_bugs_are_caught(target, hyper, changes):
    assert p_value(problem_with(FEATURES, hyper, **changes), target) < FALSE_ALARM_RATE


def design(shape, sizes) -> normal.NormalHyper:
    """Features in groups as a shape has them, on scales at which the partition stays in doubt."""
    starts = np.cumsum([0, *shape])
    growth, laws = np.full(len(shape), -1), len(shape)
    if max(sizes) >= 0:
        growth[0], laws = len(shape), len(shape) + 1
    law = np.linspace(-1.0, -2.0, laws)
    law[len(shape) :] = 1.0
    return normal.NormalHyper(
        centre=np.zeros(starts[-1]),
        spread=np.linspace(1.5, 0.6, starts[-1]),
        start=starts,
        size=np.array(sizes),
        level=np.full(starts[-1], 0.1),
        growth=growth,
        shape=2.5,
        law=law,
        law_mean=law.copy(),
        law_sd=np.linspace(0.7, 0.5, laws),
    )


DESIGNS = {
    "points": design([2], [-1, -1]),
    "boxes": design([2, 2], [2, 3, -1, -1]),
    "ellipses": design([2, 1, 2], [2, 2, -1, -1, -1]),
    "intervals": design([1, 1], [1, -1]),
    "diagonal": design([1, 1], [-1, -1]),
}


def any_problem(hyper) -> Problem:
    """Items of so many features, to be drawn again in every step."""
    p, groups, laws = len(hyper.centre), len(hyper.growth), len(hyper.law)
    made = small.make_problem(FAMILIES, np.zeros((5, p)), shape=SHAPE, rate=RATE)
    columns = Columns.plain("abcdefghijklm"[: 2 * p + groups], "stuvw"[:laws])
    return Problem(made.data, hyper, made.prior, 2.0, normal.row_width(p, groups), columns)


def successive(truth, hyper, steps, seed) -> dict[str, np.ndarray]:
    """Features given (partition, law), then a scan given features, over and over."""
    rng = np.random.default_rng([seed, 84])
    problem = any_problem(hyper)
    chain = Chain(problem, np.random.SeedSequence(seed), "exact")
    data, state = problem.data, chain.state
    found: dict[str, list[float]] = {"first": [], "last": [], "alpha": [], "clusters": []}
    for _ in range(steps):
        data.features[:] = reference.draw_features(rng, truth, state.law, state.label.tolist())
        for k in np.flatnonzero(state.size[:-1] > 0):
            integrated.gather(chain.hyper, data.features, state, k, state.theta, k)
        assignment.refresh_spares(chain.rng, data, chain.hyper, state, 0, len(FAMILIES), 1)
        chain.run(1, 2)
        found["first"].append(state.law[0])
        found["last"].append(state.law[-1])
        found["alpha"].append(math.log(state.alpha[0]))
        found["clusters"].append(float((state.size[:-1] > 0).sum()))
    return {name: np.array(values) for name, values in found.items()}


def worst_z(truth, found, batches=40) -> float:
    """Largest deviation from the prior, of means and mean squares, by batch means."""
    rng = np.random.default_rng(85)
    alphas = rng.gamma(SHAPE, 1.0 / RATE, 4000)
    clusters = [
        len(set(prior.sample(FAMILIES, a, 1, seed=i)[0].tolist())) for i, a in enumerate(alphas)
    ]
    exact = {
        "first": truth.law_mean[0] + truth.law_sd[0] * rng.normal(size=4000),
        "last": truth.law_mean[-1] + truth.law_sd[-1] * rng.normal(size=4000),
        "alpha": np.log(alphas),
        "clusters": np.array(clusters, dtype=float),
    }
    worst = 0.0
    for name, values in found.items():
        for power in (1, 2):
            means = np.mean(np.split(values**power, batches), axis=1)
            other = exact[name] ** power
            error = math.hypot(means.std() / math.sqrt(batches - 1), other.std() / math.sqrt(4000))
            worst = max(worst, abs(means.mean() - other.mean()) / error)
    return worst


@pytest.mark.parametrize("shape", DESIGNS)
def test_geweke(shape):
    """Eight comparisons; 5.3 standard errors of 40 batches are exceeded once in 1e5."""
    truth = DESIGNS[shape]
    assert worst_z(truth, successive(truth, truth, 2400, seed=86)) < 5.3


@pytest.mark.parametrize("shape", ["points", "boxes", "intervals"])
def test_geweke_catches_a_planted_bug(shape):
    truth = DESIGNS[shape]
    wrong = truth._replace(law_sd=truth.law_sd * 1.6)
    assert worst_z(truth, successive(truth, wrong, 2400, seed=87)) > 5.3
