"""What priors and likelihoods answer by default: one cluster after the other."""

from __future__ import annotations

import math

import numpy as np

from dfcrp.likelihoods import contract as likelihood
from dfcrp.priors import contract as partition_prior


def test_clusters_are_weighed_by_the_likelihood(monkeypatch):
    monkeypatch.setattr(likelihood, "size_of", lambda hyper, theta, k: 10.0 + k)
    monkeypatch.setattr(likelihood, "log_density", lambda hyper, theta, k, y, i: 100.0 * i + k)
    weight, size = np.zeros(4), np.zeros(4)
    likelihood.weigh_each(None, None, None, 3, np.array([5, 0, 7, 2]), 3, weight, size)
    assert weight.tolist() == [305.0, 300.0, 307.0, 0.0]
    assert size.tolist() == [15.0, 10.0, 17.0, 0.0]


def test_what_cannot_count_is_left_out(monkeypatch):
    """A cluster whose weight is negligible beside a new one even at its bound."""
    bounds = {11.0: 2.0, 12.0: math.inf, 13.0: -1.0}
    monkeypatch.setattr(
        partition_prior, "log_join_bound", lambda prior, data, i, size: bounds[float(size)]
    )
    monkeypatch.setattr(partition_prior, "log_join", lambda *given: 0.5 * given[5])
    log_new = 1.0
    edge = log_new - partition_prior.NEGLIGIBLE
    for at_edge, kept in ((1e-9, [4, 8, 6]), (0.0, [4, 8, 6]), (-1e-9, [8])):
        cluster = np.array([4, 8, 6, 9])
        weight = np.array([edge - 2.0 + at_edge, -500.0, edge + 1.0 + at_edge, 7.0])
        given = weight.copy()
        size = np.array([11.0, 12.0, 13.0, 99.0])
        found = partition_prior.weigh_each(
            None, None, None, None, 1, cluster, 3, weight, size, log_new
        )
        assert found == len(kept)
        assert cluster[:found].tolist() == kept
        old = {4: given[0], 8: given[1], 6: given[2]}
        np.testing.assert_allclose(weight[:found], [old[k] + 0.5 * k for k in kept])
