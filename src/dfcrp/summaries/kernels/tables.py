"""Compiled passes over draws for the tables: consensus, experts, catalogue.

Labels are (draws, markings) and canonical. Cluster parameters are ragged: rows
``offsets[d]:offsets[d + 1]`` belong to draw d, sorted by label.
"""

from __future__ import annotations

import numpy as np

from dfcrp.compiled.abi import F8, I4, I8, F4x2, F8x2, F8x3, I4x2, I4x3, I8x2, I8x3
from dfcrp.compiled.jit import entry_kernel_with_arrays, kernel


@entry_kernel_with_arrays
def count_experts(labels: I4, families: I8, holder: I8x2, out: I8):
    """``out[k]``: number of different families in the cluster named k, for one draw.

    ``holder[0]`` lists the markings family by family, ``holder[1]`` has room for a number per
    cluster: the last family that was seen there. So memory does not grow with the number of
    families. Without families every marking counts.
    """
    out[:] = 0
    if families.size == 0:
        for i in range(labels.size):
            out[labels[i]] += 1
        return
    last = holder[1]
    last[:] = -1
    for i in holder[0]:
        k = labels[i]
        if last[k] != families[i]:
            last[k] = families[i]
            out[k] += 1


@kernel
def member_diameters(labels, diameters, out):
    """``out[k]``: mean diameter of the members of the cluster named k, for one draw."""
    size = np.zeros(out.size, np.int64)
    out[:] = 0.0
    for i in range(labels.size):
        size[labels[i]] += 1
        out[labels[i]] += diameters[i]
    for k in range(out.size):
        if size[k] > 0:
            out[k] /= size[k]


@kernel
def count_consensus(experts, cluster_labels, diameters, edges, min_experts, out):
    """Add one draw's clusters to ``out[m, class]``; class 0 is all, then by size.

    ``cluster_labels`` names the clusters; ``diameters`` goes with it row by row.
    """
    for row in range(cluster_labels.size):
        size_class = 1
        while size_class <= edges.size and diameters[row] >= edges[size_class - 1]:
            size_class += 1
        for m in range(min_experts.size):
            if experts[cluster_labels[row]] >= min_experts[m]:
                out[m, 0] += 1
                if edges.size > 0:
                    out[m, size_class] += 1


@entry_kernel_with_arrays
def consensus_by_mu(
    labels: I4x2,
    offsets: I8,
    cluster_labels: I4,
    log_diameters: F8,
    families: I8,
    edges: F8,
    min_experts: I8,
    holder: I8x2,
    out: I8x3,
):
    """Consensus counts of each draw, the size class by exp of the cluster's log diameter."""
    n = labels.shape[1]
    experts = np.zeros(n, np.int64)
    for d in range(labels.shape[0]):
        count_experts(labels[d], families, holder, experts)
        rows = slice(offsets[d], offsets[d + 1])
        diameters = np.exp(log_diameters[rows])
        count_consensus(experts, cluster_labels[rows], diameters, edges, min_experts, out[d])


@entry_kernel_with_arrays
def consensus_by_members(
    labels: I4x2, diameters: F8, families: I8, edges: F8, min_experts: I8, holder: I8x2, out: I8x3
):
    """Consensus counts of each draw, the size class by the mean diameter of the members."""
    n = labels.shape[1]
    experts = np.zeros(n, np.int64)
    mean = np.zeros(n)
    names = np.empty(n, np.int64)
    for d in range(labels.shape[0]):
        count_experts(labels[d], families, holder, experts)
        member_diameters(labels[d], diameters, mean)
        found = 0
        for i in range(n):
            if labels[d, i] == i:
                names[found] = i
                mean[found] = mean[i]
                found += 1
        count_consensus(experts, names[:found], mean[:found], edges, min_experts, out[d])


@entry_kernel_with_arrays
def expert_counts(labels: I4x2, families: I8, holder: I8x2, both: I4x3, alone: I8x2, lacking: I8x2):
    """For each draw, how the experts share its clusters. The outputs start at zero.

    ``both[d, f, g]``: clusters that hold experts f and g (f = g: that hold f).
    ``alone[d, f]``: clusters of one marking, of expert f.
    ``lacking[d, f]``: clusters with all experts but f.
    """
    n_draws, n = labels.shape
    n_families = both.shape[1]
    size = np.zeros(n, np.int64)
    stop = np.zeros(n, np.int64)
    member_family = np.empty(n, np.int64)
    present = np.empty(n_families, np.int64)
    for d in range(n_draws):
        size[:] = 0
        for i in range(n):
            size[labels[d, i]] += 1
        total = 0
        for k in range(n):
            stop[k] = total
            total += size[k]
        # Family by family, so that a cluster's members end up in the order of their families.
        for i in holder[0]:
            member_family[stop[labels[d, i]]] = families[i]
            stop[labels[d, i]] += 1
        for k in range(n):
            if size[k] == 0:
                continue
            found = 0
            missing = n_families * (n_families - 1) // 2
            for p in range(stop[k] - size[k], stop[k]):
                if found == 0 or present[found - 1] != member_family[p]:
                    present[found] = member_family[p]
                    found += 1
                    missing -= member_family[p]
            if size[k] == 1:
                alone[d, present[0]] += 1
            if found == n_families - 1:
                lacking[d, missing] += 1
            for p in range(found):
                for q in range(found):
                    both[d, present[p], present[q]] += 1


@entry_kernel_with_arrays
def represent_clusters(
    labels: I4x2, order: I8, offsets: I8, families: I8, holder: I8x2, names: I4x2, experts: I8x2
):
    """Which cluster of each draw stands for a cluster of the point partition.

    It is the one that holds most of the point cluster's members (``order`` from ``offsets``),
    the smallest label among equals: ``names[d, k]``. It has ``experts[d, k]`` experts, which
    is 0 where it is rather another's: where it holds more of another point cluster, or as much
    of an earlier one. So no cluster of a draw is counted twice.
    """
    n_draws, n = labels.shape
    cluster_experts = np.zeros(n, np.int64)
    overlap = np.zeros(n, np.int64)
    held = np.zeros(offsets.size - 1, np.int64)
    owner = np.empty(n, np.int64)
    for d in range(n_draws):
        count_experts(labels[d], families, holder, cluster_experts)
        owner[:] = -1
        for k in range(offsets.size - 1):
            for p in range(offsets[k], offsets[k + 1]):
                overlap[labels[d, order[p]]] += 1
            best = labels[d, order[offsets[k]]]
            for p in range(offsets[k], offsets[k + 1]):
                label = labels[d, order[p]]
                more = overlap[label] > overlap[best]
                if more or (overlap[label] == overlap[best] and label < best):
                    best = label
            names[d, k] = best
            held[k] = overlap[best]
            if owner[best] == -1 or held[k] > held[owner[best]]:
                owner[best] = k
            for p in range(offsets[k], offsets[k + 1]):
                overlap[labels[d, order[p]]] = 0
        for k in range(offsets.size - 1):
            best = names[d, k]
            experts[d, k] = cluster_experts[best] if owner[best] == k else 0


@entry_kernel_with_arrays
def gather_parameters(
    names: I4x2, offsets: I8, cluster_labels: I4, parameters: F4x2, columns: I8, out: F8x3
):
    """``out[c, d, k]``: parameter ``columns[c]`` of the cluster ``names[d, k]`` of draw d."""
    largest = 0
    for label in cluster_labels:
        largest = max(largest, label)
    row_of = np.zeros(largest + 1, np.int64)
    for d in range(names.shape[0]):
        for row in range(offsets[d], offsets[d + 1]):
            row_of[cluster_labels[row]] = row
        for k in range(names.shape[1]):
            for c in range(columns.size):
                out[c, d, k] = parameters[row_of[names[d, k]], columns[c]]


@entry_kernel_with_arrays
def member_means(labels: I4x2, features: F8x2, offsets: I8, names: I4, means: F8x2):
    """Names of each draw's clusters, ascending, and the mean features of their members."""
    n = labels.shape[1]
    row_of = np.zeros(n, np.int64)
    size = np.zeros(n, np.int64)
    for d in range(labels.shape[0]):
        row = offsets[d]
        for i in range(n):
            # Labels are canonical: a cluster's smallest member comes first and names it.
            if labels[d, i] == i:
                row_of[i] = row
                names[row] = i
                size[i] = 0
                means[row, :] = 0.0
                row += 1
            label = labels[d, i]
            size[label] += 1
            for column in range(features.shape[1]):
                means[row_of[label], column] += features[i, column]
        for i in range(n):
            if labels[d, i] == i:
                for column in range(features.shape[1]):
                    means[row_of[i], column] /= size[i]
