"""How the experts compare: overlap, marks of their own, and what only they missed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.kernels.partitions import add_alone
from dfcrp.kernels.summaries import expert_counts
from dfcrp.posterior.consensus import family_arrays
from dfcrp.posterior.intervals import Interval, summarise
from dfcrp.posterior.streaming import kept, label_blocks, stride_for
from dfcrp.sampling.draws import Draws

#: Matrix entries kept for the intervals; more draws than fit are thinned evenly.
MAX_VALUES = 16_000_000


@dataclass(frozen=True)
class ExpertSummary:
    """Posterior summaries of F experts, in the order of their family codes."""

    #: Markings of each expert.
    count: NDArray[np.int64]
    #: Mean Jaccard coefficient with the other experts.
    jaccard: Interval
    #: Jaccard coefficient of each pair; (F, F), ones on the diagonal.
    jaccard_matrix: Interval
    #: Percentage of the size-1 clusters that are this expert's.
    size_1: Interval
    #: Percentage of the clusters with all experts but one that lack this one.
    all_but_one: Interval
    #: Each marking's probability of being alone: where the singletons lie.
    alone: NDArray[np.float64]

    def rows(self, names: Sequence[str]) -> list[dict[str, Any]]:
        """As in summary.json: one row for each expert."""
        return [
            {
                "expert": name,
                "count": int(self.count[f]),
                "jaccard": float(self.jaccard.mean[f]),
                "size_1": self.size_1[f].as_dict(),
                "all_but_one": self.all_but_one[f].as_dict(),
            }
            for f, name in enumerate(names)
        ]


def expert_summary(draws: Draws, families: NDArray[np.int64]) -> ExpertSummary:
    """Compare the experts, draw by draw, then average over draws.

    In a draw the Jaccard coefficient of two experts is the number of clusters that hold both
    over the number that hold either. A share of clusters that do not exist in a draw is
    undefined there, and the draw does not count for it.
    """
    codes, holder = family_arrays(families, draws.n_markings)
    n_families = int(codes.max()) + 1
    alone_counts = np.zeros(draws.n_markings, np.int64)
    samples: dict[str, list[NDArray[Any]]] = {"matrix": [], "size_1": [], "all_but_one": []}
    step = stride_for(draws, MAX_VALUES // n_families**2)
    for _, start, _, labels in label_blocks(draws):
        add_alone(labels, alone_counts)
        part = np.ascontiguousarray(labels[kept(start, step)])
        both = np.zeros((len(part), n_families, n_families), np.int32)
        alone = np.zeros((len(part), n_families), np.int64)
        lacking = np.zeros((len(part), n_families), np.int64)
        expert_counts(part, codes, holder, both, alone, lacking)
        samples["matrix"].append(_jaccard(both))
        samples["size_1"].append(_shares(alone))
        samples["all_but_one"].append(_shares(lacking))
    matrix = np.concatenate(samples["matrix"])
    return ExpertSummary(
        count=np.bincount(codes, minlength=n_families),
        jaccard=summarise(_mean_with_others(matrix)),
        jaccard_matrix=summarise(matrix),
        size_1=summarise(np.concatenate(samples["size_1"])),
        all_but_one=summarise(np.concatenate(samples["all_but_one"])),
        alone=alone_counts / (draws.n_chains * draws.n_draws),
    )


def _jaccard(both: NDArray[np.int32]) -> NDArray[np.float32]:
    """Clusters with both over clusters with either, for each draw and pair."""
    own = np.diagonal(both, axis1=1, axis2=2)
    either = own[:, :, np.newaxis] + own[:, np.newaxis, :] - both
    return (both / either).astype(np.float32)


def _shares(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """Percentages of each draw's total; NaN where the total is zero."""
    total = counts.sum(axis=1, keepdims=True)
    shares = np.full(counts.shape, np.nan)
    np.divide(100.0 * counts, total, out=shares, where=total > 0)
    return shares


def _mean_with_others(matrix: NDArray[np.float32]) -> NDArray[np.float64]:
    """Mean of each row without the diagonal; NaN for a lone expert."""
    n_families = matrix.shape[1]
    if n_families == 1:
        return np.full((len(matrix), 1), np.nan)
    return (matrix.sum(axis=2, dtype=np.float64) - 1.0) / (n_families - 1)
