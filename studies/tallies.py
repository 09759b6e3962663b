"""What the simulation study keeps of the draws: running sums, block by block."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.baselines.scores import reference_members
from dfcrp.compiled.jit import kernel
from dfcrp.items.items import Items
from dfcrp.summaries.kernels.partitions import rand_index_of_rows

#: Clusters are counted with at least 1, 2, ... members, up to this.
LARGEST_MINIMUM = 6


@kernel
def add_cluster_counts(
    labels: Any, families: Any, holder: Any, by_size: Any, breaking: Any
) -> None:
    """Add each draw's clusters of at least m members to ``by_size[m - 1]``.

    ``breaking[0]`` counts those that hold a family twice; ``holder`` (markings x families) is
    zero before and after.
    """
    n_draws, n = labels.shape
    size = np.zeros(n, np.int64)
    broken = np.zeros(n, np.int64)
    for d in range(n_draws):
        size[:] = 0
        broken[:] = 0
        for i in range(n):
            label = labels[d, i]
            size[label] += 1
            if holder[label, families[i]] == 1:
                broken[label] = 1
            holder[label, families[i]] = 1
        for i in range(n):
            holder[labels[d, i], families[i]] = 0
            breaking[0] += broken[i]
            for minimum in range(min(size[i], by_size.size)):
                by_size[minimum] += 1


class Tally:
    """Sums over the draws of one model on one data set."""

    def __init__(self, markings: Items) -> None:
        if markings.truth is None:
            raise ValueError("the simulation study needs markings whose truth is known")
        n = len(markings)
        self._members = reference_members(markings.truth, n)
        self._families = markings.families.astype(np.int64)
        self._holder = np.zeros((n, len(markings.experts)), np.uint8)
        self._by_size = np.zeros(LARGEST_MINIMUM, np.int64)
        self._breaking = np.zeros(1, np.int64)
        self._ari = 0.0
        self._alpha = 0.0
        self.draws = 0

    def add(self, labels: NDArray[np.int32], alpha: NDArray[np.float64]) -> None:
        """Take in a block of draws."""
        ari = np.empty(len(labels))
        rand_index_of_rows(labels, *self._members, ari)
        add_cluster_counts(labels, self._families, self._holder, self._by_size, self._breaking)
        self._ari += float(ari.sum())
        self._alpha += float(alpha.sum())
        self.draws += len(labels)

    def result(self) -> dict[str, Any]:
        """Posterior means."""
        return {
            "ari": self._ari / self.draws,
            "counts": (self._by_size / self.draws).tolist(),
            "breaking_share": float(self._breaking[0] / self._by_size[0]),
            "alpha": self._alpha / self.draws,
            "draws": self.draws,
        }
