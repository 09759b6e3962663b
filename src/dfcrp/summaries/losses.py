"""Distances between partitions: variation of information and Binder's loss.

For partitions with cluster sizes n_k and m_l and overlaps n_kl, both are

    scale * [ sum_k f(n_k) + sum_l f(m_l) - 2 sum_kl f(n_kl) ]

Variation of information ("vi"): f(x) = x log2 x, scale 1 / n, in bits.
Binder ("binder"): f(x) = x (x - 1) / 2, scale 1: the number of pairs that are together in one
of the two partitions and apart in the other.
"""

from __future__ import annotations

import difflib

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import SettingsError
from dfcrp.posterior.kernels.partitions import partition_losses
from dfcrp.summaries.streaming import label_blocks

LOSSES = ("vi", "binder")


def check_loss(loss: str) -> None:
    """Refuse an unknown loss, naming the nearest known one."""
    if loss not in LOSSES:
        near = difflib.get_close_matches(loss, LOSSES, n=1, cutoff=0.0)
        raise SettingsError(f'unknown loss "{loss}"; did you mean "{near[0]}"?')


def loss_table(loss: str, n: int) -> NDArray[np.float64]:
    """f at 0, 1, ..., n."""
    sizes = np.arange(n + 1, dtype=np.float64)
    if loss == "vi":
        return sizes * np.log2(np.maximum(sizes, 1.0))
    return sizes * (sizes - 1.0) / 2.0


def loss_scale(loss: str, n: int) -> float:
    """Factor in front of the bracket."""
    return 1.0 / n if loss == "vi" else 1.0


def members_by_cluster(
    labels: NDArray[np.int32],
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Cluster names in ascending order, and CSR (order, offsets) of their members."""
    names, sizes = np.unique(labels, return_counts=True)
    order = np.argsort(labels, kind="stable").astype(np.int64)
    offsets = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    return names.astype(np.int64), order, offsets


def distances(draws: Draws, labels: NDArray[np.int32], loss: str = "vi") -> NDArray[np.float64]:
    """Loss between one partition and every draw, shape (n_chains, n_draws)."""
    check_loss(loss)
    _, order, offsets = members_by_cluster(labels)
    table = loss_table(loss, draws.n_markings)
    out = np.empty((draws.n_chains, draws.n_draws))
    for chain, start, stop, block in label_blocks(draws):
        partition_losses(block, order, offsets, table, out[chain, start:stop])
    # the bracket of two equal partitions can come out as -1e-13
    return np.maximum(loss_scale(loss, draws.n_markings) * out, 0.0)
