"""Long runs of the samplers against the enumerated posterior of five markings, and each other.

The target is exact: parameters integrated numerically, the order of arrival averaged over all
orders, α integrated on a grid. All valid partitions are counted, the unvisited included. Draws
are thinned until nearly independent; the chi-square is divided by the largest autocorrelation
time found among the number of clusters and all pair indicators, which makes it conservative.
False-alarm rate of each test 1e-5, 2e-4 for this file; seeds are fixed.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from scipy import stats

from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.moves.paper import run_modified, run_unmodified
from dfcrp.moves.scan import start_alone
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling import problem as problem_module
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data, new_record, new_scratch, new_state
from reference import posterior_reference, small_problems
from reference.prior_reference import canonical

FALSE_ALARM_RATE = 1e-5
DRAWS, BURN_IN = 15_000, 200
#: Scans per draw; the paper's samplers mix more slowly, above all in α.
THIN = {"exact": 6, "paper": 20, "unmodified": 20}
SHAPE, RATE = 2.0, 1.0
HYPER = small_problems.HYPER._replace(
    kappa_x=0.4, eta_x=1.0, tau_x=3.0, kappa_d=0.04, eta_d=1.0, tau_d=30.0,
    var0_l=0.25, floor=0.3, var0_x=6.0, var0_y=6.0,
)  # fmt: skip
FEATURES = np.array(
    [[0.0, 0.0, 3.0], [1.6, 0.8, 3.3], [0.4, -0.7, 2.8], [2.0, 1.2, 3.1], [0.9, 0.3, 3.2]]
)
FAMILIES = np.array([0, 0, 1, 1, 2])
RADIUS = 1.5
SAMPLERS = {"exact": small_problems.run_exact, "paper": run_modified, "unmodified": run_unmodified}
PRIORS = ("dfcrp", "constrained", "crp")


def families_of(prior: str) -> np.ndarray:
    return np.arange(len(FAMILIES)) if prior == "crp" else FAMILIES


def within(radius: float | None):
    if radius is None:
        return None
    apart = FEATURES[:, None, :2] - FEATURES[None, :, :2]
    return np.hypot(apart[..., 0], apart[..., 1]) <= radius


def run(sampler: str, prior: str, radius=None, *, seed=1, **changes) -> np.ndarray:
    """Partitions drawn by a sampler, labels in input order; ``changes`` go to the prior."""
    families = families_of(prior)
    neighbourhood = find_neighbours(FEATURES, families, radius, HYPER)
    arrivals = Arrivals(prior == "dfcrp", True, SHAPE, RATE, np.empty(0))._replace(**changes)
    data = build_data(FEATURES, families, neighbourhood)
    problem = Problem(data, HYPER, arrivals, 2.0, circle.WIDTH, circle_columns(HYPER))
    rng = np.random.default_rng([seed, 76])
    state, scratch = new_state(problem), new_scratch(problem)
    start_alone(rng, problem.data, HYPER, state)
    for draws, thin in ((1, BURN_IN), (DRAWS, THIN[sampler])):
        record = new_record(problem, draws)
        SAMPLERS[sampler](rng, problem.data, HYPER, arrivals, state, scratch, thin, record)
    small_problems.assert_consistent(problem.data, state)
    return record.labels


@pytest.fixture(scope="module")
def marginals():
    return posterior_reference.all_marginals(HYPER, FEATURES)


@pytest.fixture(scope="module")
def drawn():
    """Draws by (sampler, prior, radius), made when first asked for."""
    kept: dict = {}

    def get(*key):
        if key not in kept:
            kept[key] = run(*key, seed=len(kept) + 1)
        return kept[key]

    return get


def target(marginals, prior: str, radius=None) -> dict:
    return posterior_reference.posterior(
        marginals, families_of(prior).tolist(), use_order=prior == "dfcrp", shape=SHAPE,
        rate=RATE, allowed=within(radius),
    )  # fmt: skip


def count(labels: np.ndarray, partitions) -> np.ndarray:
    place = {c: k for k, c in enumerate(partitions)}
    rows, times = np.unique(labels, axis=0, return_counts=True)
    observed = np.zeros(len(place))
    for row, number in zip(rows.tolist(), times, strict=True):
        observed[place[canonical(row)]] += number
    return observed


def autocorrelation_time(labels: np.ndarray) -> float:
    """The largest among the number of clusters and all pairs, at least 1."""
    together = [labels[:, i] == labels[:, j] for i, j in combinations(range(labels.shape[1]), 2)]
    clusters = (labels == np.arange(labels.shape[1])).sum(axis=1)
    return max(1.0, *(_time(series.astype(float)) for series in [*together, clusters]))


def _time(series: np.ndarray, lags: int = 60) -> float:
    """1 + 2 Σ autocorrelations, summed while they are positive (noise included)."""
    if series.std() == 0.0:
        return 1.0
    centred = (series - series.mean()) / series.std()
    total = 1.0
    for lag in range(1, lags):
        correlation = float((centred[:-lag] * centred[lag:]).mean())
        if correlation < 0.0:
            break
        total += 2.0 * correlation
    return total


def compare(labels: np.ndarray, expected: dict) -> tuple[float, float]:
    """Total variation, and the p value of the corrected chi-square.

    The rarest partitions share one cell, so that none expects fewer than five draws.
    """
    observed, n = count(labels, expected), len(labels)
    probability = np.array(list(expected.values()))
    distance = 0.5 * float(np.abs(observed / n - probability).sum())
    rare = n * probability < 5.0
    if n * probability[rare].sum() < 5.0:
        rare |= probability == probability[~rare].min()
    cells = [np.append(v[~rare], v[rare].sum()) for v in (observed, n * probability)]
    statistic = ((cells[0] - cells[1]) ** 2 / cells[1]).sum()
    p_value = stats.chi2.sf(statistic / autocorrelation_time(labels), len(cells[0]) - 1)
    return distance, float(p_value)


def chance_distance(expected: dict, draws: int) -> float:
    """Mean total variation of so many independent draws."""
    p = np.array(list(expected.values()))
    return float(np.sqrt(p * (1 - p) / (2 * np.pi * draws)).sum())


CASES = [
    ("exact", "dfcrp", None),
    ("exact", "constrained", None),
    ("exact", "crp", None),
    ("exact", "dfcrp", RADIUS),
    ("exact", "constrained", RADIUS),
    ("paper", "dfcrp", None),
    ("paper", "constrained", None),
    ("paper", "dfcrp", RADIUS),
    ("unmodified", "dfcrp", None),
    ("unmodified", "dfcrp", RADIUS),
]


@pytest.mark.parametrize(("sampler", "prior", "radius"), CASES)
def test_sampler_reaches_the_posterior(marginals, drawn, sampler, prior, radius):
    expected = target(marginals, prior, radius)
    labels = drawn(sampler, prior, radius)
    distance, p_value = compare(labels, expected)
    time = autocorrelation_time(labels)
    print(f"{sampler} {prior} {radius}: TV {distance:.4f}, p {p_value:.3f}, time {time:.2f}")
    assert p_value > FALSE_ALARM_RATE
    assert time < 4.0
    # Independent draws, as many as these are worth, would be about as far.
    assert distance < 1.8 * chance_distance(expected, len(labels) / time)


def test_sparse_layout_reaches_the_posterior(marginals, monkeypatch):
    """The layout for very many families, whose order move has a cruder surrogate."""
    monkeypatch.setattr(problem_module, "DENSE_TAIL_ENTRIES", 0)
    _, p_value = compare(run("exact", "dfcrp", RADIUS, seed=40), target(marginals, "dfcrp", RADIUS))
    assert p_value > FALSE_ALARM_RATE


def test_parts_reach_the_posterior(marginals, monkeypatch):
    """Two components, each swept as a part of its own."""
    radius = 0.9
    monkeypatch.setattr(problem_module, "BLOCK_MARKINGS", 1)
    neighbourhood = find_neighbours(FEATURES, FAMILIES, radius, HYPER)
    arrivals = Arrivals(True, True, SHAPE, RATE, np.empty(0))
    data = build_data(FEATURES, FAMILIES, neighbourhood)
    problem = Problem(data, HYPER, arrivals, 2.0, circle.WIDTH, circle_columns(HYPER))
    assert problem.data.block_start.tolist() == [0, 2, 5]
    chain = Chain(problem, np.random.SeedSequence([41, 76]), "exact", threads=2)
    chain.run(1, BURN_IN)
    labels = chain.run(DRAWS, 4).labels
    _, p_value = compare(labels, target(marginals, "dfcrp", radius))
    assert p_value > FALSE_ALARM_RATE


@pytest.mark.parametrize("other", ["paper", "unmodified"])
@pytest.mark.parametrize("radius", [None, RADIUS])
def test_samplers_agree(drawn, other, radius):
    """Two-sample chi-square between the exact sampler and the paper's."""
    one, two = drawn("exact", "dfcrp", radius), drawn(other, "dfcrp", radius)
    partitions = sorted({canonical(row) for row in np.unique(np.vstack([one, two]), axis=0)})
    first, second = count(one, partitions), count(two, partitions)
    statistic = ((first - second) ** 2 / (first + second)).sum()
    worst = max(autocorrelation_time(one), autocorrelation_time(two))
    assert stats.chi2.sf(statistic / worst, len(partitions) - 1) > FALSE_ALARM_RATE


def test_the_posterior_is_spread_out(marginals):
    """Else agreement would prove little."""
    for prior, radius in [("dfcrp", None), ("constrained", None), ("crp", None), ("dfcrp", RADIUS)]:
        probability = np.array(list(target(marginals, prior, radius).values()))
        assert probability.max() < 0.75
        assert (probability > 0.005).sum() >= 5


def test_the_grid_is_fine_enough(marginals):
    """Another step and reach; errors far below what the counts resolve (1 in 100)."""
    for members in [(0,), (3,), (0, 2), (1, 3, 4), (0, 1, 2, 3, 4)]:
        y = FEATURES[list(members)]
        finer = posterior_reference.log_marginal(HYPER, y, step=0.65, reach=9.1)
        assert marginals[members] == pytest.approx(finer, abs=5e-4)


def test_marginals_by_simulation(marginals):
    """An independent check of the integrals: the mean likelihood under the base measure.

    The relative standard error is that of the draws; 4.9 of them are exceeded once in 1e6.
    """
    rng = np.random.default_rng(77)
    rows = small_problems.complete(small_problems.random_rows(rng, HYPER, (200_000,)))
    logs = []
    for y in FEATURES:
        v = y - rows[:, :3]
        z = v[:, 2] - rows[:, 7] * (v[:, 0] + v[:, 1])
        squares = (v[:, 0] ** 2 + v[:, 1] ** 2) * rows[:, 6] + z**2 * rows[:, 8]
        logs.append(rows[:, 9] - 0.5 * squares)
    for members in [(0,), (3,), (0, 2), (1, 3)]:
        likelihood = np.exp(sum(logs[i] for i in members))
        error = likelihood.std() / likelihood.mean() / np.sqrt(len(rows))
        assert np.log(likelihood.mean()) == pytest.approx(marginals[members], abs=4.9 * error)


@pytest.mark.parametrize(
    ("prior", "radius", "changes"),
    [
        ("dfcrp", None, {"use_order": False}),  # the order correction is forgotten
        ("dfcrp", None, {"update_alpha": False}),  # α never moves from its start
        ("dfcrp", RADIUS, {"alpha_rate": 0.8}),  # α has a slightly different prior
    ],
)
def test_planted_bugs_are_caught(marginals, prior, radius, changes):
    labels = run("exact", prior, radius, seed=50, **changes)
    _, p_value = compare(labels, target(marginals, prior, radius))
    assert p_value < FALSE_ALARM_RATE


def test_a_forgotten_radius_is_caught(marginals, drawn):
    expected = target(marginals, "dfcrp", RADIUS)
    strangers = {c for c in target(marginals, "dfcrp") if c not in expected}
    labels = drawn("exact", "dfcrp", None)
    assert any(canonical(row) in strangers for row in labels.tolist())
