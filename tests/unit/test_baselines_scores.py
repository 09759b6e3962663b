"""ARI and VI against scikit-learn, and the compiled version against the plain one."""

from __future__ import annotations

import math

import numpy as np
import pytest
from sklearn.metrics import adjusted_rand_score, mutual_info_score

from dfcrp.baselines import adjusted_rand, adjusted_rand_of_draws, variation_of_information
from dfcrp.errors import InputError


def their_information(one: np.ndarray, other: np.ndarray) -> float:
    """VI = H(a) + H(b) - 2 I(a; b), and H(a) = I(a; a)."""
    own = mutual_info_score(one, one) + mutual_info_score(other, other)
    return (own - 2 * mutual_info_score(one, other)) / math.log(2)


@pytest.mark.parametrize("seed", range(8))
def test_agree_with_scikit_learn(seed):
    rng = np.random.default_rng(seed)
    n, a, b = rng.integers([5, 1, 1], [60, 20, 20])
    one, other = rng.integers(-3, a, n), 10 * rng.integers(0, b, n)
    assert adjusted_rand(one, other) == pytest.approx(adjusted_rand_score(one, other), abs=1e-12)
    assert variation_of_information(one, other) == pytest.approx(
        their_information(one, other), abs=1e-10
    )


@pytest.mark.parametrize(
    ("one", "other", "expected"),
    [
        ([0, 1, 2], [5, 3, 4], 1.0),  # all alone in both
        ([0, 0, 0], [1, 1, 1], 1.0),  # all together in both
        ([0], [3], 1.0),
        ([0, 0, 0], [0, 1, 2], 0.0),
    ],
)
def test_where_the_formula_is_empty(one, other, expected):
    assert adjusted_rand(one, other) == expected
    assert adjusted_rand_of_draws([one], other)[0, 0] == expected
    assert variation_of_information(one, one) == 0.0


def test_draws_agree_with_single_partitions():
    rng = np.random.default_rng(1)
    draws = rng.integers(0, 9, (2, 700, 30))  # more draws than a block
    truth = rng.integers(0, 7, 30)
    found = adjusted_rand_of_draws(draws, truth)
    assert found.shape == (2, 700)
    for chain, draw in [(0, 0), (0, 255), (0, 256), (1, 3), (1, 699)]:
        expected = adjusted_rand_score(truth, draws[chain, draw])
        assert found[chain, draw] == pytest.approx(expected, abs=1e-12)


def test_partitions_of_different_items_are_refused():
    with pytest.raises(InputError, match="same items"):
        adjusted_rand([0, 1], [0, 1, 2])
    with pytest.raises(InputError, match="2 labels for 3 markings"):
        adjusted_rand_of_draws([[0, 1, 2]], [0, 1])
