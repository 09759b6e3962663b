"""Draws from the prior against the enumerated probabilities.

Each chi-square counts ALL valid partitions, the unvisited included, and raises a false alarm
with probability 1e-4; seeds are fixed. Two planted bugs show that it can fail.
"""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import chi2

from dfcrp import crp, prior
from reference import prior_reference as reference

FALSE_ALARM_RATE = 1e-4
LAYOUTS = [
    [0, 0, 1, 1, 1, 1],
    [0, 0, 0, 1, 1, 1],
    [0, 1, 2, 0, 1, 2],
    [0, 1, 2, 3, 4],
    [2, 2, 0, 1],
]


def p_value(draws: np.ndarray, families, probability) -> float:
    """Chi-square of the draws over every valid partition; 0 if a draw is not one of them."""
    listed = reference.partitions(families)
    expected = np.array([probability(c) for c in listed]) * len(draws)
    assert expected.min() > 5
    place = {c: k for k, c in enumerate(listed)}
    observed = np.zeros(len(listed))
    for row in draws:
        k = place.get(tuple(row.tolist()))
        if k is None:
            return 0.0
        observed[k] += 1
    statistic = ((observed - expected) ** 2 / expected).sum()
    return float(chi2.sf(statistic, len(listed) - 1))


def dfcrp_p_value(draws: np.ndarray, families, alpha: float) -> float:
    return p_value(draws, families, lambda c: np.exp(prior.log_prob(c, families, alpha)))


def seat_with_a_bug(families, alpha: float, draws: int, seed: int, bug: str) -> np.ndarray:
    """Sequential seating by the paper's rule, but for one mistake."""
    rng = np.random.default_rng(seed)
    n = len(families)
    rows = []
    for _ in range(draws):
        order = range(n) if bug == "one order" else rng.permutation(n)
        labels = [-1] * n
        tables: list[list[int]] = []
        for seated, i in enumerate(order):
            weights = [
                0 if families[i] in [families[j] for j in members] else len(members)
                for members in tables
            ]
            if bug == "relatives tolerated":
                weights = [len(members) for members in tables]
            total = sum(weights)
            if bug == "n_-x counts non-relatives":
                total = sum(families[j] != families[i] for members in tables for j in members)
            spot = rng.random() * (total + alpha)
            table = int(np.searchsorted(np.cumsum(weights), spot, side="right")) if seated else 0
            if table >= len(tables):
                table = len(tables)
                tables.append([])
            tables[table].append(int(i))
            labels[i] = table
        rows.append(reference.canonical(labels))
    return np.array(rows)


@pytest.mark.parametrize("alpha", [0.5, 1.0, 4.0])
@pytest.mark.parametrize("families", LAYOUTS, ids=str)
def test_draws_follow_the_enumerated_prior(families, alpha):
    draws = prior.sample(families, alpha, 40_000, seed=20)
    assert dfcrp_p_value(draws, families, alpha) > FALSE_ALARM_RATE


def test_crp_draws_follow_the_closed_form():
    draws = crp.sample(6, 1.4, 60_000, seed=21)
    assert p_value(draws, range(6), lambda c: reference.crp_prob(c, 1.4)) > FALSE_ALARM_RATE


def test_mean_number_of_clusters():
    families = LAYOUTS[0]
    exact = sum(
        np.exp(prior.log_prob(c, families, 1.0)) * (max(c) + 1) for c in prior.partitions(families)
    )
    simulated = prior.expected_clusters(families, 1.0, draws=40_000, seed=22)
    # The number lies within 4 to 6: 4.5 standard errors are below 4.5 * 1 / sqrt(40,000).
    assert simulated == pytest.approx(exact, abs=0.0225)


def test_the_harness_itself_passes_without_a_bug():
    draws = seat_with_a_bug(LAYOUTS[0], 1.0, 5000, seed=23, bug="none")
    assert dfcrp_p_value(draws, LAYOUTS[0], 1.0) > FALSE_ALARM_RATE


@pytest.mark.parametrize("bug", ["relatives tolerated", "n_-x counts non-relatives", "one order"])
def test_planted_bugs_are_found(bug):
    draws = seat_with_a_bug(LAYOUTS[0], 1.0, 5000, seed=24, bug=bug)
    assert dfcrp_p_value(draws, LAYOUTS[0], 1.0) < FALSE_ALARM_RATE
