"""How sure is each marking's place in the point partition, and where else could it be."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

from dfcrp.summaries.coclustering import Coclustering

#: ``second`` of a marking whose second-best place is a cluster of its own.
ALONE = -1
#: ``second`` of a marking that was nowhere else in any draw.
NOWHERE = -2
#: A marking is called undecided if it belongs where it is listed with less than this probability.
UNDECIDED = 0.9
#: Label of a marking that a partial partition leaves out.
LEFT_OUT = -1


@dataclass(frozen=True)
class Membership:
    """Probabilities of the point partition's clusters, marking by marking."""

    #: Mean co-clustering probability with the other members; alone: probability of being alone.
    p_member: NDArray[np.float64]
    #: Second-best cluster by the same measure (``ALONE``, ``NOWHERE``), and its probability.
    second: NDArray[np.int64]
    p_second: NDArray[np.float64]
    #: Names of the clusters, ascending, and the mean of ``p_member`` over their members.
    clusters: NDArray[np.int64]
    stability: NDArray[np.float64]


def membership(labels: NDArray[np.int32], pairs: Coclustering) -> Membership:
    """Membership probabilities of a partition, from the co-clustering probabilities p_ij.

    With cluster(i) = S the membership probability is the mean of p_ij over j in S, j ≠ i:
    how often i is found with a companion picked at random. For a cluster of one it is the
    probability that i is alone. The second-best place is the other cluster T with the
    highest mean of p_ij over j in T, or being alone, if that is more probable.
    A cluster's stability is the mean of its members' probabilities, for two or more members
    the mean of p_ij over its pairs.
    """
    clusters, code = np.unique(labels, return_inverse=True)
    size = np.bincount(code)
    n, n_clusters = len(labels), len(clusters)
    indicator = sparse.csr_array((np.ones(n), (np.arange(n), code)), shape=(n, n_clusters))
    together = sparse.csr_array(pairs.matrix() @ indicator)
    rows = np.repeat(np.arange(n), np.diff(together.indptr))
    own = together.indices == code[rows]
    single = size[code] == 1
    total = np.zeros(n)
    total[rows[own]] = np.maximum(together.data[own] - 1.0, 0.0)
    p_member = np.where(single, pairs.alone, total / np.maximum(size[code] - 1, 1))
    second = np.where(single | (pairs.alone == 0.0), NOWHERE, ALONE)
    p_second = np.where(single, 0.0, pairs.alone)
    others = np.flatnonzero(~own)
    mean = together.data[others] / size[together.indices[others]]
    # ascending, so that the best is written last and stays; the smaller label among equals
    others = others[np.lexsort((-together.indices[others], mean))]
    best = np.full(n, -1, np.int64)
    best[rows[others]] = others
    rival = np.zeros(n)
    rival[best >= 0] = (together.data / size[together.indices])[best[best >= 0]]
    wins = (best >= 0) & (rival >= p_second)
    p_second[wins] = rival[wins]
    second[wins] = clusters[together.indices[best[wins]]]
    stability = np.bincount(code, weights=p_member) / size
    return Membership(p_member, second, p_second, clusters.astype(np.int64), stability)


@dataclass(frozen=True)
class PartialPartition:
    """A partition of the markings whose place is decided."""

    #: Cluster of each marking, ``LEFT_OUT`` (-1) for the undecided ones.
    labels: NDArray[np.int32]
    #: The markings that are left out, and the threshold below which they fell.
    undecided: NDArray[np.int64]
    threshold: float


def partial_partition(
    labels: NDArray[np.int32], p_member: NDArray[np.float64], threshold: float = 0.5
) -> PartialPartition:
    """Leave out the markings whose membership probability is below the threshold.

    Clusters are named after the smallest member that stays.
    """
    undecided = np.flatnonzero(p_member < threshold)
    kept = np.flatnonzero(p_member >= threshold)
    out = np.full(len(labels), LEFT_OUT, np.int32)
    _, first, code = np.unique(labels[kept], return_index=True, return_inverse=True)
    out[kept] = kept[first][code]
    return PartialPartition(out, undecided, threshold)
