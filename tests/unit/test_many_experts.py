"""Thousands of experts: the sparse comparison gives what the dense one does, in little memory."""

from __future__ import annotations

import tracemalloc

import numpy as np

from dfcrp.summaries import experts
from dfcrp.summaries.looked import everyone
from dfcrp.summaries.streaming import as_draws, canonical


def random_draws(rng: np.random.Generator, draws: int, n: int, clusters: int) -> np.ndarray:
    return canonical(rng.integers(0, clusters, (1, draws, n)))[0]


def test_sparse_and_dense_counts_are_the_same() -> None:
    rng = np.random.default_rng(5)
    for n_families, n, clusters in ((3, 40, 12), (7, 60, 60), (2, 30, 9), (12, 24, 2)):
        codes = np.concatenate([np.arange(n_families), rng.integers(0, n_families, n - n_families)])
        labels = random_draws(rng, 6, n, clusters)
        given = codes, np.arange(n_families), everyone(codes)
        dense = experts.count_densely(labels, *given)
        sparse = experts.count_sparsely(labels, *given)
        for name in dense._fields:
            assert np.allclose(getattr(dense, name), getattr(sparse, name)), name


def test_pairs_are_of_the_experts_with_most_markings(monkeypatch) -> None:
    rng = np.random.default_rng(6)
    codes = np.repeat(np.arange(6), [2, 9, 1, 7, 3, 8])
    draws = as_draws(random_draws(rng, 8, len(codes), 10))
    whole = experts.expert_summary(draws, codes)
    monkeypatch.setattr(experts, "MAX_COMPARED", 3)
    some = experts.expert_summary(draws, codes)
    assert some.compared.tolist() == [1, 3, 5]
    chosen = np.ix_(some.compared, some.compared)
    assert np.allclose(some.jaccard_matrix.mean, np.asarray(whole.jaccard_matrix.mean)[chosen])
    for name in ("jaccard", "size_1", "all_but_one"):
        for end in ("mean", "lo", "hi"):
            here, there = getattr(getattr(some, name), end), getattr(getattr(whole, name), end)
            assert np.allclose(here, there, equal_nan=True), (name, end)


def test_memory_does_not_grow_with_the_square_of_the_experts() -> None:
    rng = np.random.default_rng(7)
    n, n_families = 40_000, 10_000
    codes = np.concatenate([np.arange(n_families), rng.integers(0, n_families, n - n_families)])
    draws = as_draws(random_draws(rng, 4, n, 8000))
    tracemalloc.start()
    try:
        found = experts.expert_summary(draws, codes)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(found.jaccard.mean) == n_families
    assert peak < 100e6, "a matrix of all pairs alone would take 400 MB"
