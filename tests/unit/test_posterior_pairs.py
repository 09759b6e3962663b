"""Co-clustering, membership and partial partitions against their slow twins."""

from itertools import combinations

import numpy as np
import pytest

from dfcrp.draws import MemoryDraws
from dfcrp.errors import InputError
from dfcrp.summaries.coclustering import coclustering, pair_histories
from dfcrp.summaries.kernels.partitions import component_roots
from dfcrp.summaries.membership import ALONE, ELSEWHERE, NOWHERE, membership, partial_partition
from dfcrp.summaries.streaming import as_draws, canonical, labels_by_item, n_clusters
from reference import summary_reference as twin


@pytest.mark.parametrize("seed", range(4))
def test_pair_counts(seed):
    draws, labels, _, _ = twin.random_draws(seed)
    pairs = coclustering(draws)
    half = labels.shape[1] // 2
    found = {
        (int(i), int(j)): p for p, (i, j) in enumerate(zip(pairs.first, pairs.second, strict=True))
    }
    for i, j in combinations(range(labels.shape[2]), 2):
        together = labels[:, :, i] == labels[:, :, j]
        if not together.any():
            assert (i, j) not in found
            continue
        counts = pairs.counts[:, :, found[i, j]]
        assert counts[:, 0].tolist() == together[:, :half].sum(axis=1).tolist()
        assert counts[:, 1].tolist() == together[:, half:].sum(axis=1).tolist()
        assert pairs.probability[found[i, j]] == twin.pair_probability(labels, i, j)
        by_chain = together.mean(axis=1)
        assert pairs.disagreement()[found[i, j]] == pytest.approx(by_chain.max() - by_chain.min())


def test_matrix_and_alone():
    draws, labels, _, _ = twin.random_draws(7)
    pairs = coclustering(draws)
    n = labels.shape[2]
    matrix = pairs.matrix().toarray()
    expected = [[twin.pair_probability(labels, i, j) for j in range(n)] for i in range(n)]
    np.testing.assert_allclose(matrix, expected)
    np.testing.assert_allclose(pairs.alone, [twin.alone_probability(labels, i) for i in range(n)])


def test_many_blocks_give_the_same_counts():
    # more draws than one block holds, an odd number, so that the halves cut through a block
    rng = np.random.default_rng(3)
    families = np.array([0, 1, 2, 0, 1, 2])
    base = [0, 0, 0, 3, 3, 3]
    few = np.array([twin.random_valid_labels(rng, families, base) for _ in range(40)])
    labels = few[rng.integers(0, 40, (2, 601))]
    pairs = coclustering(MemoryDraws(labels, np.ones((2, 601))))
    together = labels[:, :, pairs.first] == labels[:, :, pairs.second]
    assert pairs.half_draws == (300, 301)
    np.testing.assert_array_equal(pairs.counts[:, 0], together[:, :300].sum(axis=1))
    np.testing.assert_array_equal(pairs.counts[:, 1], together[:, 300:].sum(axis=1))


@pytest.mark.parametrize("step", [1, 3])
def test_pair_histories(step):
    draws, labels, _, _ = twin.random_draws(1)
    first, second = np.array([0, 1, 2]), np.array([3, 4, 5])
    together = labels[:, ::step, first] == labels[:, ::step, second]
    np.testing.assert_array_equal(
        pair_histories(draws, first, second, step), together.transpose(2, 0, 1)
    )


@pytest.mark.parametrize("seed", range(12))
def test_membership(seed):
    draws, labels, _, _ = twin.random_draws(seed, n=16, n_families=2 + seed % 5)
    point = labels[0, 0].astype(np.int32)
    result = membership(point, draws)
    for i, (p_member, places) in enumerate(twin.membership(point, labels)):
        assert result.p_member[i] == pytest.approx(p_member)
        elsewhere = places.pop("elsewhere", 0.0)
        best = max(places.values(), default=0.0)
        assert result.p_second[i] == pytest.approx(best)
        second = int(result.second[i])
        if best == 0.0:
            assert second == NOWHERE
        else:
            assert places["alone" if second == ALONE else second] == pytest.approx(best)
        others = sum(places.values()) - best + elsewhere
        assert result.p_elsewhere[i] == pytest.approx(others, abs=1e-12)
        rows = result.places.of(i)
        shares = result.places.probability[rows].tolist()
        assert sum(shares) == pytest.approx(1.0)
        found = dict(zip(result.places.place[rows].tolist(), shares, strict=True))
        assert found.get(ELSEWHERE, 0.0) == pytest.approx(elsewhere)
    for name, stability in zip(result.clusters, result.stability, strict=True):
        assert stability == pytest.approx(result.p_member[point == name].mean())


def test_places_are_fair_to_both_sides():
    """Two that part are both alone, halves that part both leave, two that meet both do."""
    point = np.array([0, 0, 2, 2, 2, 2, 6, 7], np.int32)
    split = [0, 1, 2, 2, 4, 4, 6, 6]
    result = membership(point, as_draws(np.array([point, split])))
    assert result.p_member.tolist() == [0.5] * 8
    assert result.second.tolist() == [ALONE, ALONE, *[NOWHERE] * 4, 7, 6]
    assert result.p_second.tolist() == [0.5, 0.5, 0, 0, 0, 0, 0.5, 0.5]
    assert result.p_elsewhere.tolist() == [0, 0, 0.5, 0.5, 0.5, 0.5, 0, 0]


def test_a_small_cluster_joins_a_large_one_and_not_the_reverse():
    point = np.array([0, 0, 2, 2, 2], np.int32)
    merged = [0, 0, 0, 0, 0]
    result = membership(point, as_draws(np.array([point, point, merged, merged])))
    assert result.p_member.tolist() == [0.5, 0.5, 1, 1, 1]
    assert result.second.tolist() == [2, 2, NOWHERE, NOWHERE, NOWHERE]
    assert result.p_second.tolist() == [0.5, 0.5, 0, 0, 0]


def test_partial_partition_renames_and_lists():
    labels = np.array([0, 0, 0, 3, 3, 5], np.int32)
    partial = partial_partition(labels, np.array([0.2, 0.9, 0.8, 0.5, 0.49, 1.0]))
    assert partial.labels.tolist() == [-1, 1, 1, 3, -1, 5]
    assert partial.undecided.tolist() == [0, 4]


def test_any_labels_become_canonical():
    labels = np.array([[7, -3, 7, 10**9], [2, 2, 1, 1]])
    np.testing.assert_array_equal(canonical(labels), [[0, 1, 0, 3], [0, 0, 2, 2]])
    draws = as_draws(labels)
    assert n_clusters(draws).tolist() == [[3, 2]]
    np.testing.assert_array_equal(labels_by_item(draws, 2), [[0], [1], [0], [3]])


@pytest.mark.parametrize(
    "labels", [np.zeros(3, int), np.zeros((0, 3), int), np.zeros((2, 3)), np.zeros((2, 0), int)]
)
def test_labels_that_are_no_draws(labels):
    with pytest.raises(InputError, match="labels"):
        as_draws(labels)


def test_components_are_those_of_the_pairs():
    labels = np.array([[0, 0, 2, 3, 4], [0, 1, 1, 3, 4], [0, 1, 2, 3, 3]], np.int32)
    assert component_roots(labels.T.copy()).tolist() == [0, 0, 0, 3, 3]
