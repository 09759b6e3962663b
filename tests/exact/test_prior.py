"""The prior against enumeration: every valid partition, every order."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pytest

from dfcrp import crp, prior
from dfcrp.errors import DfcrpWarning, SettingsError
from reference import prior_reference as reference

TWO_AND_FOUR = [0, 0, 1, 1, 1, 1]
THREE_AND_THREE = [0, 0, 0, 1, 1, 1]


def random_layouts(count: int, largest: int, seed: int) -> list[list[int]]:
    rng = np.random.default_rng(seed)
    return [
        rng.integers(0, rng.integers(1, 5), size=rng.integers(1, largest + 1)).tolist()
        for _ in range(count)
    ]


def random_partition(families, seed: int) -> np.ndarray:
    return prior.sample(families, 1.0, 1, seed)[0]


@pytest.mark.parametrize(
    ("families", "published"),
    [
        (TWO_AND_FOUR, {0.062155: 12, 0.029901: 8, 0.014930: 1}),
        (THREE_AND_THREE, {0.050231: 6, 0.030153: 18, 0.016341: 9, 0.008796: 1}),
    ],
)
def test_tables_of_two_families(families, published):
    listed = prior.partitions(families)
    values = [math.exp(prior.log_prob(c, families, 1.0)) for c in listed]
    assert Counter(round(value, 6) for value in values) == published
    assert values == pytest.approx([reference.prob(c, families, 1.0) for c in listed], abs=1e-9)
    assert math.fsum(values) == pytest.approx(1.0, abs=1e-12)


def test_the_same_partition_in_two_orders():
    # Customers A, B of one family and C of another, each alone at a table.
    labels, families = [0, 1, 2], [1, 1, 2]
    a, b, c = 0, 1, 2
    in_order = [
        prior.log_prob_given_order(labels, families, 1.0, o) for o in ([a, b, c], [a, c, b])
    ]
    assert np.exp(in_order) == pytest.approx([1 / 3, 1 / 4], abs=1e-15)


@pytest.mark.parametrize("alpha", [0.2, 1.0, 7.5])
def test_probabilities_sum_to_one(alpha):
    for families in random_layouts(24, 7, seed=5):
        total = math.fsum(
            math.exp(prior.log_prob(c, families, alpha)) for c in prior.partitions(families)
        )
        assert total == pytest.approx(1.0, abs=1e-12), families


def test_probabilities_given_an_order_sum_to_one():
    rng = np.random.default_rng(6)
    for families in random_layouts(20, 8, seed=7):
        order = rng.permutation(len(families))
        total = math.fsum(
            math.exp(prior.log_prob_given_order(c, families, 0.7, order))
            for c in prior.partitions(families)
        )
        assert total == pytest.approx(1.0, abs=1e-12), families


def test_given_an_order_equals_the_seating_rule():
    rng = np.random.default_rng(8)
    for trial in range(40):
        n = int(rng.integers(1, 30))
        families = rng.integers(0, 6, size=n).tolist()
        labels = random_partition(families, trial).tolist()
        order = rng.permutation(n).tolist()
        alpha = float(rng.gamma(1.0) + 0.05)
        expected = math.log(reference.prob_given_order(labels, families, alpha, order))
        assert prior.log_prob_given_order(labels, families, alpha, order) == pytest.approx(
            expected, abs=1e-11
        )


def test_many_items_do_not_underflow():
    # n items of one family: every one is alone, with nobody to join, whatever the order.
    n = 5000
    assert prior.log_prob_given_order(range(n), [0] * n, 1e-3, range(n)) == 0.0
    # n families: the Chinese restaurant process, 10^-300 many times over.
    labels = np.arange(n) % 700
    order = np.random.default_rng(1).permutation(n)
    assert prior.log_prob_given_order(labels, range(n), 2.5, order) == pytest.approx(
        crp.log_prob(labels, 2.5), rel=1e-12
    )


@pytest.mark.parametrize("alpha", [1e-20, 1e-3, 0.4, 1.0, 30.0, 1e20])
def test_recursion_over_sets_equals_all_permutations(alpha):
    for trial, families in enumerate(random_layouts(12, 6, seed=9)):
        labels = random_partition(families, trial).tolist()
        assert prior.log_prob(labels, families, alpha) == pytest.approx(
            math.log(reference.prob(labels, families, alpha)), abs=1e-9
        )


@pytest.mark.parametrize("alpha", [1e-20, 1e20])
def test_recursion_stays_within_range_at_its_largest(alpha):
    n = prior.EXACT_LIMIT
    one_family = prior.log_prob(range(n), [0] * n, alpha)
    assert one_family == pytest.approx(0.0, abs=1e-9)
    labels = np.arange(n) // 2
    assert prior.log_prob(labels, range(n), alpha) == pytest.approx(
        crp.log_prob(labels, alpha), abs=1e-8
    )


def test_partitions_equal_the_brute_force_list():
    for families in random_layouts(20, 6, seed=10):
        listed = prior.partitions(families)
        assert listed == reference.partitions(families)
        assert prior.count_partitions(families) == len(listed)


def test_bell_numbers():
    assert [prior.count_partitions(range(n)) for n in range(1, 8)] == [1, 2, 5, 15, 52, 203, 877]


def test_absurd_numbers_of_partitions_are_refused():
    with pytest.raises(SettingsError, match=r"8\.47e\+23 valid partitions"):
        prior.partitions(range(30))


def test_chinese_restaurant_is_the_special_case():
    families = range(7)
    for labels in prior.partitions(families)[::29]:
        expected = math.log(reference.crp_prob(labels, 1.7))
        assert crp.log_prob(labels, 1.7) == pytest.approx(expected, abs=1e-12)
        assert prior.log_prob(labels, families, 1.7) == pytest.approx(expected, abs=1e-11)
        assert prior.log_prob_given_order(
            labels, families, 1.7, [3, 1, 6, 0, 2, 5, 4]
        ) == pytest.approx(expected, abs=1e-12)


def test_monte_carlo_agrees_within_its_error():
    # 30 comparisons at 4.5 standard errors: false alarms below 30 * 7e-6 = 2e-4.
    rng = np.random.default_rng(11)
    for trial in range(30):
        families = rng.integers(0, 3, size=10)
        labels = random_partition(families, trial)
        value, error = prior.log_prob_with_error(labels, families, 1.3, n_orders=4000, seed=trial)
        exact = prior.log_prob(labels, families, 1.3)
        assert 0 < error < 0.1
        assert abs(value - exact) < 4.5 * error


def test_monte_carlo_takes_over_beyond_the_limit():
    families = np.arange(prior.EXACT_LIMIT + 1) % 4
    labels = random_partition(families, 1)
    expected = prior.log_prob_with_error(labels, families, 20.0, n_orders=50, seed=3)[0]
    assert prior.log_prob(labels, families, 20.0, n_orders=50, seed=3) == expected


def test_too_few_orders_are_owned_up_to():
    families = np.arange(2000) % 11
    labels = random_partition(families, 1)
    with pytest.warns(DfcrpWarning, match="raise n_orders"):
        prior.log_prob(labels, families, 5.0, n_orders=20, seed=1)


def test_invariances():
    rng = np.random.default_rng(12)
    for trial in range(15):
        families = rng.integers(0, 4, size=9)
        labels = random_partition(families, trial)
        value = prior.log_prob(labels, families, 0.8)
        renamed = rng.permutation(100)[labels] - 50
        assert prior.log_prob(renamed, families, 0.8) == pytest.approx(value, abs=1e-12)
        other_families = np.array(["d", "a", "c", "b"])[families]
        assert prior.log_prob(labels, other_families, 0.8) == pytest.approx(value, abs=1e-12)
        # Exchanging the items, each with its family, changes nothing ...
        shuffled = rng.permutation(9)
        assert prior.log_prob(labels[shuffled], families[shuffled], 0.8) == pytest.approx(
            value, abs=1e-12
        )
        # ... nor does exchanging two relatives between their clusters.
        within = labels.copy()
        for family in range(4):
            members = np.flatnonzero(families == family)
            within[members] = labels[rng.permutation(members)]
        assert prior.log_prob(within, families, 0.8) == pytest.approx(value, abs=1e-12)


def test_invalid_partitions_have_no_probability():
    assert prior.log_prob([0, 0, 1], [1, 1, 2], 1.0) == -math.inf
    assert prior.log_prob_given_order([0, 1, 0], [1, 2, 1], 1.0, [2, 1, 0]) == -math.inf
    assert prior.log_prob_with_error([0, 1, 0], [1, 2, 1], 1.0, seed=1) == (-math.inf, 0.0)


def test_bounds():
    # The paper's example: four customers of one family, six of the other.
    assert prior.bounds([0] * 4 + [1] * 6) == (6, 10, 1, 2)
    for families in random_layouts(20, 7, seed=13):
        listed = prior.partitions(families)
        numbers = [max(c) + 1 for c in listed]
        sizes = [max(Counter(c).values()) for c in listed]
        assert prior.bounds(families) == (min(numbers), max(numbers), 1, max(sizes))


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: prior.log_prob([0, 1], [0, 1, 1], 1.0), "labels must be 3 integers"),
        (lambda: prior.log_prob([0.0, 1.0], [0, 1], 1.0), "of float64"),
        (lambda: prior.log_prob([0, 1], [0, 1], 0.0), "alpha is 0.0"),
        (lambda: prior.log_prob([0, 1], [0, 1], math.nan), "alpha is nan"),
        (lambda: prior.log_prob([], [], 1.0), "families must be a list"),
        (lambda: prior.partitions([[0, 1]]), r"got shape \(1, 2\)"),
        (lambda: prior.log_prob_given_order([0, 1], [0, 1], 1.0, [0, 0]), "items 0 to 1 once"),
        (lambda: prior.log_prob_given_order([0, 1], [0, 1], 1.0, [1.0, 0.0]), "items 0 to 1"),
        (lambda: prior.log_prob_with_error([0, 1], [0, 1], 1.0, n_orders=1), "n_orders is 1"),
        (lambda: prior.sample([0, 1], 1.0, -1, 0), "draws is -1"),
        (lambda: prior.expected_clusters([0, 1], 1.0, draws=0), "draws is 0"),
    ],
)
def test_malformed_input_is_refused(call, message):
    with pytest.raises(SettingsError, match=message):
        call()
