"""Comparing thousands of experts: only pairs that share an object are ever formed."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array


class Agreement(NamedTuple):
    """How the experts compare in some draws."""

    #: Jaccard coefficients of the pairs that are compared; (draws, compared, compared).
    matrix: NDArray[np.float32]
    #: Mean Jaccard coefficient of each expert with all others; (draws, experts).
    with_others: NDArray[np.float64]
    #: Clusters of one marking, by whose it is; (draws, experts).
    alone: NDArray[np.int64]
    #: Clusters with all experts but one, by who is not in it; (draws, experts).
    lacking: NDArray[np.int64]


def count_sparsely(
    labels: NDArray[np.int32],
    codes: NDArray[np.int64],
    holder: NDArray[np.int64],
    compared: NDArray[np.int64],
) -> Agreement:
    """Compare the experts in each draw, in memory that grows with the pairs sharing a cluster."""
    n_families = int(codes.max()) + 1
    shape = (len(labels), n_families)
    found = Agreement(
        np.empty((len(labels), len(compared), len(compared)), np.float32),
        np.empty(shape),
        np.zeros(shape, np.int64),
        np.zeros(shape, np.int64),
    )
    for d, draw in enumerate(labels):
        _compare(draw, codes, compared, d, found)
    return found


def _compare(
    draw: NDArray[np.int32],
    codes: NDArray[np.int64],
    compared: NDArray[np.int64],
    d: int,
    out: Agreement,
) -> None:
    n, n_families = len(draw), out.alone.shape[1]
    seats = np.unique(draw * np.int64(n_families) + codes)
    cluster, family = np.divmod(seats, n_families)
    held = csr_array((np.ones(len(seats), np.int32), (cluster, family)), shape=(n, n_families))
    both = (held.T @ held).tocoo()
    own = np.bincount(family, minlength=n_families)
    either = own[both.row] + own[both.col] - both.data
    jaccard = csr_array((both.data / either, (both.row, both.col)), shape=both.shape)
    out.with_others[d] = (jaccard.sum(axis=1) - 1.0) / (n_families - 1)
    out.matrix[d] = jaccard[compared][:, compared].toarray()
    single = np.bincount(draw, minlength=n)[draw] == 1
    out.alone[d] = np.bincount(codes[single], minlength=n_families)
    experts = np.bincount(cluster, minlength=n)
    for k in np.flatnonzero(experts == n_families - 1):
        out.lacking[d, n_families * (n_families - 1) // 2 - family[cluster == k].sum()] += 1
