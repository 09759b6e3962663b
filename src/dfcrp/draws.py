"""What a finished chain leaves behind: the draws, in memory or on disk, behind one interface.

Labels are canonical: a cluster is named after its smallest member's index, so a label means
the same from draw to draw as long as that member stays, and label switching cannot happen.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

#: Draws read at a time when a summary streams over a run.
BLOCK = 256


@dataclass(frozen=True)
class ClusterBlock:
    """Cluster parameters of consecutive draws of one chain, ragged.

    Rows ``offsets[d]:offsets[d + 1]`` belong to draw ``d`` of the block, sorted by label.
    """

    offsets: NDArray[np.int64]
    labels: NDArray[np.int32]
    parameters: NDArray[np.float32]


class DrawBlock(NamedTuple):
    """Consecutive draws of one chain: b draws of n markings with r clusters between them."""

    labels: NDArray[np.int32]  # (b, n)
    alpha: NDArray[np.float64]  # (b,)
    offsets: NDArray[np.int64]  # (b + 1,): the clusters of a draw, as in ``ClusterBlock``
    cluster_labels: NDArray[np.int32]  # (r,)
    parameters: NDArray[np.float32]  # (r, q)
    shared: NDArray[np.float64]  # (b, s): what a draw's clusters share


class Columns(NamedTuple):
    """Names of what is stored with every draw besides labels and α."""

    parameters: tuple[str, ...] = ()  # of a cluster
    shared: tuple[str, ...] = ()  # by all clusters of a draw


NO_COLUMNS = Columns()


def join_blocks(blocks: Sequence[DrawBlock]) -> DrawBlock:
    """Blocks of one chain, one after the other, as one."""
    if len(blocks) == 1:
        return blocks[0]
    counts = np.concatenate([np.diff(block.offsets) for block in blocks])
    return DrawBlock(
        labels=np.concatenate([block.labels for block in blocks]),
        alpha=np.concatenate([block.alpha for block in blocks]),
        offsets=np.concatenate([[0], np.cumsum(counts)]),
        cluster_labels=np.concatenate([block.cluster_labels for block in blocks]),
        parameters=np.concatenate([block.parameters for block in blocks]),
        shared=np.concatenate([block.shared for block in blocks]),
    )


class Draws(Protocol):
    """Posterior draws after burn-in and thinning; the same number for every chain."""

    n_chains: int
    n_draws: int
    n_markings: int
    columns: Columns

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain, shape (stop - start, n_markings)."""
        ...

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        ...

    def shared(self) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, len(columns.shared))."""
        ...

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        ...

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        ...


def blocks(draws: Draws, size: int = BLOCK) -> Iterator[tuple[int, int, int]]:
    """Cover every draw once as (chain, start, stop), in order."""
    for chain in range(draws.n_chains):
        for start in range(0, draws.n_draws, size):
            yield chain, start, min(start + size, draws.n_draws)


class MemoryDraws:
    """Draws held in arrays: for small runs, tests, and label arrays from elsewhere."""

    def __init__(
        self,
        labels: NDArray[np.int32],
        alpha: NDArray[np.float64],
        clusters: list[ClusterBlock] | None = None,
        columns: Columns = NO_COLUMNS,
        shared: NDArray[np.float64] | None = None,
    ) -> None:
        self._labels = np.asarray(labels, dtype=np.int32)
        self.n_chains, self.n_draws, self.n_markings = self._labels.shape
        self._alpha = np.asarray(alpha, dtype=np.float64).reshape(self.n_chains, self.n_draws)
        shape = (self.n_chains, self.n_draws, len(columns.shared))
        self._shared = np.zeros(shape) if shared is None else shared.reshape(shape)
        self._clusters = clusters
        self.columns = columns

    def labels(self, chain: int, start: int, stop: int) -> NDArray[np.int32]:
        """Labels of draws ``start:stop`` of a chain."""
        return self._labels[chain, start:stop]

    def alpha(self) -> NDArray[np.float64]:
        """Concentration, shape (n_chains, n_draws)."""
        return self._alpha

    def shared(self) -> NDArray[np.float64]:
        """What a draw's clusters share, shape (n_chains, n_draws, len(columns.shared))."""
        return self._shared

    def clusters(self, chain: int, start: int, stop: int) -> ClusterBlock:
        """Cluster parameters of draws ``start:stop`` of a chain."""
        if self._clusters is None:
            raise ValueError("these draws carry labels only, no cluster parameters")
        whole = self._clusters[chain]
        first, last = whole.offsets[start], whole.offsets[stop]
        return ClusterBlock(
            offsets=whole.offsets[start : stop + 1] - first,
            labels=whole.labels[first:last],
            parameters=whole.parameters[first:last],
        )

    def history(self, marking: int) -> NDArray[np.int32]:
        """One marking's labels, shape (n_chains, n_draws)."""
        return self._labels[:, :, marking]
