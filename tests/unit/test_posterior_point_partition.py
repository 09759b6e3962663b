"""The point partition is the true optimum wherever all partitions can be tried."""

import numpy as np
import pytest

from dfcrp.errors import InputError, SettingsError
from dfcrp.summaries.point_partition import credible_ball, distances, point_partition
from dfcrp.summaries.streaming import as_draws
from reference import summary_reference as twin

CASES = 120


def random_posterior(seed):
    """Draws over at most 8 items: scattered or around one partition, with families or without."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(4, 9))
    families = rng.integers(0, rng.integers(2, 5), n) if seed % 2 else np.arange(n)
    base = twin.random_valid_labels(rng, families) if seed % 4 < 2 else None
    move = rng.uniform(0.1, 0.6)
    pool = [twin.random_valid_labels(rng, families, base, move) for _ in range(12)]
    weights = rng.dirichlet(np.full(12, 0.7))
    draws = np.array(pool)[rng.choice(12, size=40, p=weights)]
    partitions = [p for p in twin.all_partitions(n) if twin.is_valid(p, families)]
    return draws, families if seed % 2 else None, partitions


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("exact_limit", [12, 4, 2])
def test_known_optimum(loss, exact_limit):
    # with a limit below the number of items the search has to find what enumeration gives
    for seed in range(CASES):
        draws, families, partitions = random_posterior(seed)
        lowest = twin.expected_losses(partitions, draws, loss).min()
        found = point_partition(draws, loss, families, exact_limit=exact_limit)
        assert found.expected_loss == pytest.approx(lowest, abs=1e-9), f"seed {seed}"
        assert tuple(found.labels) in partitions
        assert found.exact or exact_limit < 12


@pytest.mark.parametrize("loss", ["vi", "binder"])
def test_losses(loss):
    draws, labels, _, _ = twin.random_draws(0)
    point = labels[1, 3].astype(np.int32)
    expected = [[twin.partition_loss(point, draw, loss) for draw in chain] for chain in labels]
    np.testing.assert_allclose(distances(draws, point, loss), expected, atol=1e-12)
    flat = labels.reshape(-1, labels.shape[2])
    many = twin.expected_losses(flat[:3], flat, loss)
    by_hand = [np.mean([twin.partition_loss(p, d, loss) for d in flat]) for p in flat[:3]]
    np.testing.assert_allclose(many, by_hand, atol=1e-12)


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("seed", range(3))
def test_rule_is_kept_even_if_the_draws_break_it(loss, seed):
    rng = np.random.default_rng(seed)
    families = rng.integers(0, 3, 30)
    draws = np.where(rng.random((50, 30)) < 0.8, np.arange(30) // 6, rng.integers(0, 5, (50, 30)))
    assert twin.is_valid(point_partition(draws, loss, families).labels, families)


def test_large_component_is_as_good_as_the_truth():
    # every marking strays now and then, so that all are linked and nothing can be enumerated
    rng = np.random.default_rng(5)
    truth = np.arange(120) // 6
    draws = np.where(rng.random((200, 120)) < 0.9, truth, rng.integers(0, 20, (200, 120)))
    for loss in ("vi", "binder"):
        found = point_partition(draws, loss)
        assert found.n_exact == 0
        at_truth = distances(as_draws(draws), truth.astype(np.int32), loss).mean()
        assert found.expected_loss <= at_truth + 1e-12
        other_seed = point_partition(draws, loss, seed=1)
        assert found.expected_loss == pytest.approx(other_seed.expected_loss, abs=1e-9)


def test_same_seed_same_answer_and_result_is_an_array():
    draws, _, families, _ = twin.random_draws(2, n=30, n_families=4)
    one = point_partition(draws, families=families, exact_limit=2)
    two = point_partition(draws, families=families, exact_limit=2)
    np.testing.assert_array_equal(np.asarray(one), two.labels)
    assert len(one) == 30
    assert one.n_clusters == len(set(one.labels.tolist()))


def test_draws_and_array_agree_and_thinning_reports_all_draws():
    draws, labels, families, _ = twin.random_draws(4)
    whole = point_partition(draws, families=families)
    np.testing.assert_array_equal(whole.labels, point_partition(labels, families=families).labels)
    thinned = point_partition(draws, families=families, max_labels=9 * 7)
    assert (thinned.n_searched, thinned.n_draws) == (6, 28)
    expected = distances(draws, thinned.labels, "vi").mean()
    assert thinned.expected_loss == pytest.approx(expected)


def test_one_draw_one_item():
    assert point_partition([[5]]).labels.tolist() == [0]
    assert point_partition([[5, 1, 5]]).labels.tolist() == [0, 1, 0]


def test_bad_input():
    with pytest.raises(SettingsError, match='did you mean "binder"'):
        point_partition([[0, 1]], loss="bindr")
    with pytest.raises(SettingsError, match="exact_limit"):
        point_partition([[0, 1]], exact_limit=40)
    with pytest.raises(InputError, match="families"):
        point_partition([[0, 1]], families=[0])


@pytest.mark.parametrize("loss", ["vi", "binder"])
@pytest.mark.parametrize("level", [0.5, 0.95, 1.0])
def test_credible_ball(loss, level):
    draws, labels, families, _ = twin.random_draws(6)
    point = point_partition(draws, loss, families)
    ball = credible_ball(draws, point, level)
    flat = [tuple(d) for chain in labels for d in chain]
    away = {d: twin.partition_loss(point.labels, d, loss) for d in flat}
    radius = min(
        r for r in away.values() if np.mean([away[d] <= r + 1e-9 for d in flat]) >= level - 1e-9
    )
    assert ball.radius == pytest.approx(radius)
    inside = {d for d in flat if away[d] <= radius + 1e-9}
    sizes = {d: len(set(d)) for d in inside}
    for bound, wanted in (
        (ball.horizontal, None),
        (ball.upper, min(sizes.values())),
        (ball.lower, max(sizes.values())),
    ):
        among = [d for d in inside if wanted is None or sizes[d] == wanted]
        far = max(away[d] for d in among)
        expected = {d for d in among if away[d] >= far - 1e-9}
        assert {tuple(d) for d in bound} == expected
