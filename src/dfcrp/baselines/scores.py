"""How alike two partitions are: adjusted Rand index and variation of information.

With cluster sizes n_k and m_l of the two partitions, overlaps n_kl, C(x) = x (x - 1) / 2 and
E = Σ C(n_k) Σ C(m_l) / C(n) for what chance alone would give,

    ARI = (Σ C(n_kl) - E) / ((Σ C(n_k) + Σ C(m_l)) / 2 - E)

    VI  = Σ (n_kl / n) [log2 (n_k / n_kl) + log2 (m_l / n_kl)]      (bits)

ARI is 1 for equal partitions and about 0 for unrelated ones; VI is 0 for equal partitions.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError
from dfcrp.summaries.kernels.partitions import rand_index_of_rows
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import as_draws, label_blocks


def adjusted_rand(first: ArrayLike, second: ArrayLike) -> float:
    """ARI of two arrays of labels, any integers; 1 if both have a single possible answer."""
    rows, columns, overlaps = _contingency(first, second)
    together = _pairs(overlaps).sum()
    in_first, in_second = _pairs(rows).sum(), _pairs(columns).sum()
    chance = in_first * in_second / max(_pairs(rows.sum()), 1.0)
    most = (in_first + in_second) / 2.0 - chance
    return float((together - chance) / most) if most > 0 else 1.0


def variation_of_information(first: ArrayLike, second: ArrayLike) -> float:
    """VI of two arrays of labels in bits."""
    rows, columns, overlaps = _contingency(first, second)
    # f(x) = x log2 x turns the definition into sums over clusters and over overlaps.
    bits = [float((sizes * np.log2(sizes)).sum()) for sizes in (rows, columns, overlaps)]
    return max(bits[0] + bits[1] - 2.0 * bits[2], 0.0) / float(rows.sum())


def adjusted_rand_of_draws(draws: object, reference: ArrayLike) -> NDArray[np.float64]:
    """ARI between every draw and one partition, shape (n_chains, n_draws).

    ``draws`` is a Draws object or an array of labels, (draws, n) or (chains, draws, n).
    """
    source = as_draws(draws)
    order, offsets = reference_members(reference, source.n_markings)
    out = np.empty((source.n_chains, source.n_draws))
    for chain, start, stop, labels in label_blocks(source):
        rand_index_of_rows(labels, order, offsets, out[chain, start:stop])
    return out


def reference_members(reference: ArrayLike, n: int) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """A partition as its members, cluster by cluster, for ``rand_index_of_rows``."""
    labels = np.asarray(reference)
    if labels.shape != (n,):
        raise InputError(f"the reference has {labels.size} labels for {n} markings")
    _, order, offsets = members_by_cluster(labels)
    return order, offsets


def _contingency(
    first: ArrayLike, second: ArrayLike
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Cluster sizes of both partitions and the sizes of the overlaps that are not empty."""
    one, other = np.asarray(first), np.asarray(second)
    if one.ndim != 1 or one.shape != other.shape or one.size == 0:
        raise InputError(
            f"two partitions of the same items are needed; got shapes {one.shape}, {other.shape}"
        )
    row = np.unique(one, return_inverse=True)[1]
    column = np.unique(other, return_inverse=True)[1]
    overlaps = np.unique(row * (int(column.max()) + 1) + column, return_counts=True)[1]
    sizes = (np.bincount(row), np.bincount(column), overlaps)
    as_float = tuple(size.astype(np.float64) for size in sizes)
    return as_float[0], as_float[1], as_float[2]


def _pairs(sizes: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.asarray(sizes * (sizes - 1.0) / 2.0)
