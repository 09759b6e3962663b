"""Draws of a chain beside enumerated probabilities of partitions."""

from __future__ import annotations

import numpy as np
from scipy import stats

from dfcrp.sampling.chain import Chain
from reference.prior_reference import canonical


def p_value(problem, target, draws=12_000, thin=5) -> float:
    """Of a chi-square test; rare partitions are one cell."""
    chain = Chain(problem, np.random.SeedSequence(83), "exact")
    chain.run(1, 200)
    labels = np.concatenate([chain.run(draws // 24, thin).labels for _ in range(24)])
    observed = dict.fromkeys(target, 0)
    for row, count in zip(*np.unique(labels, axis=0, return_counts=True), strict=True):
        observed[canonical(row.tolist())] += int(count)
    expected = np.array(list(target.values())) * len(labels)
    found = np.array([observed[c] for c in target], dtype=float)
    rare = expected < 5.0
    cells = [np.append(v[~rare], v[rare].sum()) for v in (found, expected)]
    statistic = ((cells[0] - cells[1]) ** 2 / np.maximum(cells[1], 1e-9)).sum()
    # Draws that are thinned this far are worth at least half as many independent ones.
    return float(stats.chi2.sf(statistic / 2.0, len(cells[0]) - 1))
