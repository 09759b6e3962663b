"""How often two markings share a cluster: sparse, only pairs that ever do."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dfcrp.draws import Draws
from dfcrp.summaries.kernels.partitions import add_alone, count_pairs, pair_indicators
from dfcrp.summaries.streaming import kept, label_blocks


@dataclass(frozen=True)
class Coclustering:
    """Counts of the pairs i < j that share a cluster in at least one draw.

    Counts are kept for each half of each chain: from them follow the probabilities, the
    disagreement between chains and the split R-hat, without a second look at the draws.
    """

    n_markings: int
    #: Draws in the first and the second half of a chain.
    half_draws: tuple[int, int]
    #: The pairs, sorted, first < second.
    first: NDArray[np.int64]
    second: NDArray[np.int64]
    #: Draws in which the pair is together; (chains, 2 halves, pairs).
    counts: NDArray[np.int32]
    #: Draws in which a marking is alone; (chains, markings).
    alone_counts: NDArray[np.int64]

    @property
    def n_chains(self) -> int:
        """The number of chains that were counted."""
        return len(self.counts)

    @property
    def n_draws(self) -> int:
        """Draws of one chain."""
        return sum(self.half_draws)

    @property
    def probability(self) -> NDArray[np.float64]:
        """Posterior probability of each pair."""
        return self.counts.sum(axis=(0, 1)) / (self.n_chains * self.n_draws)

    @property
    def frequency(self) -> NDArray[np.float64]:
        """Share of each chain's draws in which the pair is together; (chains, pairs)."""
        return self.counts.sum(axis=1) / self.n_draws

    @property
    def alone(self) -> NDArray[np.float64]:
        """Posterior probability of each marking to be a cluster by itself."""
        return self.alone_counts.sum(axis=0) / (self.n_chains * self.n_draws)

    def disagreement(self) -> NDArray[np.float64]:
        """Largest difference between two chains in each pair's frequency; 0 with one chain."""
        frequency = self.frequency
        return np.asarray(frequency.max(axis=0) - frequency.min(axis=0))

    def matrix(self) -> sparse.csr_array:
        """Symmetric matrix of probabilities, with ones on the diagonal."""
        own = np.arange(self.n_markings)
        rows = np.concatenate((self.first, self.second, own))
        columns = np.concatenate((self.second, self.first, own))
        values = np.concatenate((self.probability, self.probability, np.ones(own.size)))
        shape = (self.n_markings, self.n_markings)
        return sparse.csr_array(sparse.coo_array((values, (rows, columns)), shape=shape))


def coclustering(draws: Draws) -> Coclustering:
    """Count, for each half of each chain, the draws in which a pair shares a cluster."""
    half = draws.n_draws // 2
    empty = sparse.csr_array((draws.n_markings, draws.n_markings), dtype=np.int64)
    totals = [empty] * (2 * draws.n_chains)
    alone = np.zeros((draws.n_chains, draws.n_markings), np.int64)
    for chain, start, stop, labels in label_blocks(draws):
        add_alone(labels, alone[chain])
        middle = min(max(half - start, 0), stop - start)
        for which, part in enumerate((labels[:middle], labels[middle:])):
            if len(part):
                totals[2 * chain + which] = totals[2 * chain + which] + _pairs(part)
    first, second, counts = _aligned(totals, draws.n_markings)
    return Coclustering(
        n_markings=draws.n_markings,
        half_draws=(half, draws.n_draws - half),
        first=first,
        second=second,
        counts=counts.reshape(draws.n_chains, 2, -1),
        alone_counts=alone,
    )


def _pairs(labels: NDArray[np.int32]) -> sparse.csr_array:
    by_item = np.ascontiguousarray(labels.T)
    offsets, columns, counts = count_pairs(by_item, np.ones(len(labels), np.int64))
    block = sparse.csr_array((counts, columns, offsets), shape=(len(by_item), len(by_item)))
    # sorted rows make the sums over blocks linear in the pairs
    block.sort_indices()
    return block


def _aligned(
    parts: list[sparse.csr_array], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int32]]:
    """Counts of all parts over the union of their pairs."""
    keys = []
    for part in parts:
        rows = np.repeat(np.arange(n, dtype=np.int64), np.diff(part.indptr))
        keys.append(rows * n + part.indices)
    union = np.unique(np.concatenate(keys))
    counts = np.zeros((len(parts), union.size), np.int32)
    for row, key, part in zip(counts, keys, parts, strict=True):
        row[np.searchsorted(union, key)] = part.data
    return union // n, union % n, counts


def pair_histories(
    draws: Draws, first: NDArray[np.int64], second: NDArray[np.int64], step: int = 1
) -> NDArray[np.uint8]:
    """Whether each pair is together, in every ``step``-th draw; (pairs, chains, draws)."""
    n_kept = -(-draws.n_draws // step)
    pairs = np.ascontiguousarray(first, np.int64), np.ascontiguousarray(second, np.int64)
    out = np.zeros((len(first), draws.n_chains, n_kept), np.uint8)
    for chain, start, _, labels in label_blocks(draws):
        part = np.ascontiguousarray(labels[kept(start, step)])
        if len(part):
            at = -(-start // step)
            together = np.empty((len(first), len(part)), np.uint8)
            pair_indicators(part, *pairs, together)
            out[:, chain, at : at + len(part)] = together
    return out
