"""The collapsed samplers against the enumerated posterior of a handful of markings.

False-alarm rates: each χ² test is called a failure below p = 1e-4; the seeds are fixed. A second
test shows that a wrong target would be noticed.
"""

from __future__ import annotations

import math
from collections import Counter
from itertools import combinations, product

import numpy as np
import pytest
from scipy import stats

from dfcrp import crp, prior
from dfcrp.baselines.collapsed import (
    CollapsedProblem,
    new_groups,
    new_links,
    new_scratch,
    run_links,
)
from dfcrp.baselines.collapsed import update_alpha as draw_alpha
from dfcrp.baselines.relatives import (
    compressed_rows,
    constrained_crp,
    distance_dependent_crp,
    sample_blocks,
)
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.summaries.streaming import canonical

VARIANCE = np.array([0.7, 1.1, 0.9, 1.6])
PLACE = np.array([[-0.9, 0.3, 0.1], [-0.4, 0.5, 0.0], [0.8, -0.2, 0.4], [1.3, 0.6, -0.3]])
PRIOR_VARIANCE = 1.5


def make_problem(pairs, log_weight, weight=(1, 1, 1, 1), blocks=None) -> CollapsedProblem:
    """Four markings, or blocks of them, in three features of equal variance."""
    precision = np.repeat(1 / VARIANCE[:, np.newaxis], 3, axis=1)
    own = np.hstack([precision, precision * PLACE])
    if blocks is not None:
        own = np.array([own[list(members)].sum(axis=0) for members in blocks])
    start, other, which = compressed_rows(np.array(pairs), len(own))
    return CollapsedProblem(
        start, other, np.asarray(log_weight, float)[which], own,
        np.full(3, 1 / PRIOR_VARIANCE), np.array(weight),
    )  # fmt: skip


def log_evidence(labels: tuple[int, ...]) -> float:
    """Σ over clusters of the log density of their members, the mean integrated out."""
    total = 0.0
    for k in set(labels):
        members = [i for i, label in enumerate(labels) if label == k]
        covariance = np.diag(VARIANCE[members]) + PRIOR_VARIANCE
        for feature in range(3):
            values = PLACE[members, feature]
            total += stats.multivariate_normal(np.zeros(len(members)), covariance).logpdf(values)
    return total


def named(labels) -> tuple[int, ...]:
    return tuple(canonical(np.asarray([labels]))[0].tolist())


def p_value(labels: np.ndarray, expected: dict[tuple[int, ...], float]) -> float:
    """χ² test of the draws' frequencies, over every partition that can occur."""
    seen = Counter(map(tuple, canonical(labels).tolist()))
    assert set(seen) <= set(expected)
    total = sum(expected.values())
    counts = [seen[key] for key in expected]
    means = [len(labels) * value / total for value in expected.values()]
    return float(stats.chisquare(counts, means).pvalue)


LOG_DECAY = {(0, 1): -0.2, (0, 2): -1.0, (1, 2): -0.5, (2, 3): -0.1}


def link_posterior(alpha: float, with_features: bool) -> dict[tuple[int, ...], float]:
    """Weight of every partition, summed over all ways to follow."""
    weight = {frozenset(pair): math.exp(value) for pair, value in LOG_DECAY.items()}
    found: Counter[tuple[int, ...]] = Counter()
    for targets in product(range(4), repeat=4):
        value = 1.0
        labels = list(range(4))
        for i, j in enumerate(targets):
            value *= alpha if i == j else weight.get(frozenset((i, j)), 0.0)
            labels = [labels[i] if label == labels[j] else label for label in labels]
        key = named(labels)
        found[key] += value * (math.exp(log_evidence(key)) if with_features else 1.0)
    return {key: value for key, value in found.items() if value > 0}


def draw_links(alpha: float, with_features: bool, draws: int = 20_000) -> np.ndarray:
    problem = make_problem(list(LOG_DECAY), list(LOG_DECAY.values()))
    if not with_features:
        problem.own[:] = 0
    out = np.empty((draws, 4), np.int64)
    rng = np.random.default_rng(5)
    run_links(rng, problem, new_links(4), new_groups(problem), new_scratch(4), alpha, 4, out)
    return out


@pytest.mark.parametrize("with_features", [False, True])
def test_links_sample_the_enumerated_posterior(with_features):
    draws = draw_links(0.8, with_features)
    assert p_value(draws, link_posterior(0.8, with_features)) > 1e-4


def test_a_wrong_alpha_would_be_noticed():
    assert p_value(draw_links(0.8, True), link_posterior(0.9, True)) < 1e-4


@pytest.mark.parametrize(
    ("blocks", "barred"),
    [
        ([(0,), (1,), (2,), (3,)], []),
        ([(0,), (1,), (2,), (3,)], [(0, 1), (2, 3)]),
        ([(0, 1), (2,), (3,)], []),
        ([(0, 2), (1,), (3,)], [(0, 2)]),  # of blocks: marking 3 not with 0 and 2
    ],
)
def test_blocks_sample_the_constrained_crp(blocks, barred):
    alpha = 0.7
    open_pairs = [p for p in combinations(range(len(blocks)), 2) if p not in barred]
    problem = make_problem(open_pairs, np.zeros(len(open_pairs)), [len(b) for b in blocks], blocks)
    expected = {}
    for labels in prior.partitions(range(len(blocks))):
        if all(labels[a] != labels[b] for a, b in barred):
            whole = [0] * 4
            for members, label in zip(blocks, labels, strict=True):
                for i in members:
                    whole[i] = label
            log_weight = crp.log_prob(np.array(whole), alpha) + log_evidence(tuple(whole))
            expected[named(labels)] = math.exp(log_weight)
    seed = np.random.SeedSequence(6)
    slots = sample_blocks(problem, seed, np.array([alpha]), np.array([1.0, 0.0]), 40_000)
    assert p_value(slots[::4], expected) > 1e-4


def test_alpha_given_the_number_of_clusters():
    # p(α | K, n) ∝ α^(a + K - 1) e^(-b α) Γ(α) / Γ(α + n); a chain of its own, thinned.
    n, n_clusters, shape, rate = 12, 5, 2.0, 0.8
    rng = np.random.default_rng(7)
    alpha, kept = 1.0, []
    for step in range(20_000):
        alpha = draw_alpha(rng, alpha, n_clusters, n, shape, rate)
        if step % 10 == 0:
            kept.append(alpha)
    grid = np.linspace(1e-4, 40, 100_000)
    log_density = (
        (shape + n_clusters - 1) * np.log(grid) - rate * grid
        - np.log(grid[:, np.newaxis] + np.arange(n)).sum(axis=1)
    )  # fmt: skip
    cdf = np.cumsum(np.exp(log_density - log_density.max()))
    cdf /= cdf[-1]
    assert stats.kstest(kept, lambda x: np.interp(x, grid, cdf)).pvalue > 1e-4


def three_pairs() -> Items:
    """Three objects, each marked by two experts, and a stray of the first."""
    return Items.circles(
        [10, 11, 200, 201, 400, 402, 300], [0, 1, 50, 49, 90, 91, 10],
        [30, 31, 40, 41, 80, 78, 25], list("ABABABA"),
    )  # fmt: skip


def test_markings_that_lie_together_are_joined():
    labels = distance_dependent_crp(three_pairs(), scans=200, burn_in=100, chains=2, seed=3)
    assert labels.shape == (2, 100, 7)
    together = labels.reshape(-1, 7)
    for first in (0, 2, 4):
        assert np.mean(together[:, first] == together[:, first + 1]) > 0.5
    assert (together[:, 6] == 6).all()


def test_links_given_by_the_user_hold_in_every_draw():
    labels = constrained_crp(
        three_pairs(), must_link=[(0, 3)], cannot_link=[(4, 5)], scans=100, burn_in=20, radius=None
    ).reshape(-1, 7)
    assert (labels[:, 0] == labels[:, 3]).all()
    assert (labels[:, 4] != labels[:, 5]).all()
    for a, b in combinations([0, 2, 4, 6], 2):
        assert (labels[:, a] != labels[:, b]).all()


@pytest.mark.parametrize(
    ("links", "message"),
    [
        ({"must_link": [(0, 2)]}, "two markings of one expert"),
        ({"must_link": [(0, 1)], "cannot_link": [(1, 0)]}, "must be linked"),
        ({"must_link": [(0, 9)]}, "0 to 6"),
        ({"cannot_link": [(3, 3)]}, "with itself"),
        ({"scans": 5, "burn_in": 5}, "leave no draws"),
    ],
)
def test_impossible_links_are_refused(links, message):
    with pytest.raises(InputError, match=message):
        constrained_crp(three_pairs(), **links)


def test_ddcrp_settings_are_checked():
    with pytest.raises(SettingsError, match="decay is 0"):
        distance_dependent_crp(three_pairs(), decay=0)
