"""The Chinese restaurant process: closed form, shapes, refusals."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp import crp
from dfcrp.errors import SettingsError
from reference import prior_reference as reference


def test_log_prob_by_hand():
    # Two clusters of sizes 2 and 1, alpha = 2: 2^2 * 1! * 0! / (2 * 3 * 4).
    assert crp.log_prob([7, -1, 7], 2.0) == pytest.approx(math.log(4 / 24), abs=1e-15)


@pytest.mark.parametrize("alpha", [0.1, 1.0, 12.0])
def test_probabilities_sum_to_one(alpha):
    total = math.fsum(math.exp(crp.log_prob(c, alpha)) for c in reference.partitions(range(6)))
    assert total == pytest.approx(1.0, abs=1e-12)


def test_expected_clusters_equals_the_mean_over_partitions():
    mean = math.fsum(
        reference.crp_prob(c, 1.6) * (max(c) + 1) for c in reference.partitions(range(6))
    )
    assert crp.expected_clusters(6, 1.6) == pytest.approx(mean, abs=1e-12)


def test_sample_is_canonical_and_repeatable():
    draws = crp.sample(30, 2.0, 50, seed=4)
    assert draws.shape == (50, 30)
    assert all(reference.canonical(row) == tuple(row) for row in draws.tolist())
    np.testing.assert_array_equal(draws, crp.sample(30, 2.0, 50, seed=4))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: crp.log_prob([0.5, 1.0], 1.0), "of float64"),
        (lambda: crp.log_prob([], 1.0), "labels must be"),
        (lambda: crp.log_prob([0, 1], -1.0), "alpha is -1.0"),
        (lambda: crp.sample(0, 1.0, 3, 1), "3 partitions of 0 items"),
        (lambda: crp.expected_clusters(-1, 1.0), "n is -1"),
    ],
)
def test_malformed_input_is_refused(call, message):
    with pytest.raises(SettingsError, match=message):
        call()
