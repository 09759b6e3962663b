"""Compiled passes over draws of labels: renaming, pairs, components, patterns and losses.

Two layouts occur: (draws, markings) as draws are stored, and (markings, draws), called
"by item", where one marking's history is contiguous. Labels are canonical unless a function
says otherwise: a cluster bears the index of its smallest member.
"""

from __future__ import annotations

import numpy as np

from dfcrp.compiled.abi import F8, I8, U8, I4x2, I8x2, U1x2
from dfcrp.compiled.jit import entry_kernel_with_arrays, kernel


@entry_kernel_with_arrays
def canonical_by_item(labels: I8x2, n_labels: int, out: I4x2):
    """Name every cluster after its smallest member: ``out[i, d]`` for ``labels[d, i]``.

    Labels may be any integers in ``0..n_labels - 1``.
    """
    first = np.empty(n_labels, np.int32)
    last_draw = np.full(n_labels, -1, np.int64)
    for d in range(labels.shape[0]):
        for i in range(labels.shape[1]):
            label = labels[d, i]
            if last_draw[label] != d:
                last_draw[label] = d
                first[label] = i
            out[i, d] = first[label]


@kernel
def find_root(parent, i):
    """Root of ``i`` in a union-find forest, halving the path on the way."""
    while parent[i] != i:
        parent[i] = parent[parent[i]]
        i = parent[i]
    return i


@kernel
def join_roots(parent, i, j):
    """Join the trees of ``i`` and ``j``; the smaller root stays."""
    a = find_root(parent, i)
    b = find_root(parent, j)
    if a < b:
        parent[b] = a
    elif b < a:
        parent[a] = b


@entry_kernel_with_arrays
def component_roots(by_item: I4x2):
    """Smallest member of each marking's component in the graph of pairs ever clustered together."""
    parent = np.arange(by_item.shape[0])
    for i in range(by_item.shape[0]):
        known = i
        for d in range(by_item.shape[1]):
            label = by_item[i, d]
            if label != known:
                known = label
                join_roots(parent, i, label)
    for i in range(parent.size):
        parent[i] = find_root(parent, i)
    return parent


@kernel
def next_members(by_item):
    """The next larger member of a marking's cluster in every draw, -1 at the end."""
    n, n_draws = by_item.shape
    following = np.empty((n, n_draws), np.int32)
    smallest_seen = np.full((n, n_draws), -1, np.int32)
    for i in range(n - 1, -1, -1):
        for d in range(n_draws):
            label = by_item[i, d]
            following[i, d] = smallest_seen[label, d]
            smallest_seen[label, d] = i
    return following


@kernel
def _grown(array):
    """The same array with twice the room."""
    out = np.empty(2 * array.size, array.dtype)
    for i in range(array.size):
        out[i] = array[i]
    return out


@entry_kernel_with_arrays
def count_pairs(by_item: I4x2, draw_weights: I8):
    """Weight of the draws in which i < j share a cluster, as upper-triangular CSR, unsorted.

    Only pairs that ever meet are visited: a marking's row is gathered by walking, draw by
    draw, through the later members of its cluster.
    """
    n, n_draws = by_item.shape
    following = next_members(by_item)
    row = np.zeros(n, np.int64)
    touched = np.empty(n, np.int64)
    offsets = np.zeros(n + 1, np.int64)
    columns = np.empty(max(4 * n, 16), np.int32)
    counts = np.empty(columns.size, np.int64)
    for i in range(n):
        found = 0
        for d in range(n_draws):
            j = following[i, d]
            while j >= 0:
                if row[j] == 0:
                    touched[found] = j
                    found += 1
                row[j] += draw_weights[d]
                j = following[j, d]
        start = offsets[i]
        offsets[i + 1] = start + found
        while columns.size < start + found:
            columns = _grown(columns)
            counts = _grown(counts)
        for t in range(found):
            j = touched[t]
            columns[start + t] = j
            counts[start + t] = row[j]
            row[j] = 0
    return offsets, columns[: offsets[n]], counts[: offsets[n]]


@entry_kernel_with_arrays
def add_alone(labels: I4x2, out: I8):
    """Add to ``out[i]`` the number of draws in which marking i is a cluster by itself."""
    n_draws, n = labels.shape
    size = np.zeros(n, np.int64)
    for d in range(n_draws):
        size[:] = 0
        for i in range(n):
            size[labels[d, i]] += 1
        for i in range(n):
            if size[labels[d, i]] == 1:
                out[i] += 1


@entry_kernel_with_arrays
def count_clusters(labels: I4x2):
    """Number of clusters of each draw."""
    out = np.zeros(labels.shape[0], np.int64)
    for d in range(labels.shape[0]):
        for i in range(labels.shape[1]):
            if labels[d, i] == i:
                out[d] += 1
    return out


@entry_kernel_with_arrays
def pair_indicators(labels: I4x2, first: I8, second: I8, out: U1x2):
    """``out[p, d]`` is 1 where ``first[p]`` and ``second[p]`` share a cluster in draw d."""
    for p in range(first.size):
        for d in range(labels.shape[0]):
            out[p, d] = labels[d, first[p]] == labels[d, second[p]]


@entry_kernel_with_arrays
def hash_columns(table: I4x2, rows: I8, out: U8):
    """64-bit hash of every column of ``table[rows]``.

    Two different columns get the same hash with probability about 2^-64, so equal hashes
    are taken for equal columns.
    """
    out[:] = np.uint64(0x9E3779B97F4A7C15)
    for r in rows:
        for d in range(out.size):
            h = out[d] ^ (np.uint64(table[r, d]) + np.uint64(0x632BE59BD9B4E019))
            h *= np.uint64(0xFF51AFD7ED558CCD)
            h ^= h >> np.uint64(32)
            h *= np.uint64(0xC4CEB9FE1A85EC53)
            out[d] = h ^ (h >> np.uint64(29))


@entry_kernel_with_arrays
def group_equal(hashes: U8):
    """First index of each distinct value, and every entry's group, by order of appearance."""
    n = hashes.size
    capacity = 16
    while capacity < 2 * n:
        capacity *= 2
    slots = np.full(capacity, -1, np.int64)
    first = np.empty(n, np.int64)
    group = np.empty(n, np.int64)
    found = 0
    for i in range(n):
        slot = np.int64(hashes[i] & np.uint64(capacity - 1))
        while slots[slot] >= 0 and hashes[first[slots[slot]]] != hashes[i]:
            slot = (slot + 1) & (capacity - 1)
        if slots[slot] < 0:
            slots[slot] = found
            first[found] = i
            found += 1
        group[i] = slots[slot]
    return first[:found].copy(), group


@entry_kernel_with_arrays
def distinct_patterns(by_item: I4x2, items: I8):
    """The distinct partitions that the draws give to ``items``: a draw of each, and how many."""
    hashes = np.empty(by_item.shape[1], np.uint64)
    hash_columns(by_item, items, hashes)
    first, group = group_equal(hashes)
    counts = np.zeros(first.size, np.int64)
    for d in range(group.size):
        counts[group[d]] += 1
    return first, counts


@entry_kernel_with_arrays
def partition_losses(labels: I4x2, order: I8, offsets: I8, table: F8, out: F8):
    """Unscaled loss between one partition and each draw.

        sum_k f(n_k) + sum_l f(m_l) - 2 sum_kl f(n_kl)

    n_k are the sizes of the partition's clusters (members ``order[offsets[k]:offsets[k + 1]]``),
    m_l those of the draw's, n_kl their overlaps, and f is ``table``.
    """
    n_draws, n = labels.shape
    size = np.zeros(n, np.int64)
    overlap = np.zeros(n, np.int64)
    own = 0.0
    for k in range(offsets.size - 1):
        own += table[offsets[k + 1] - offsets[k]]
    for d in range(n_draws):
        size[:] = 0
        total = own
        for k in range(offsets.size - 1):
            for p in range(offsets[k], offsets[k + 1]):
                label = labels[d, order[p]]
                size[label] += 1
                overlap[label] += 1
            for p in range(offsets[k], offsets[k + 1]):
                label = labels[d, order[p]]
                total -= 2.0 * table[overlap[label]]
                overlap[label] = 0
        for i in range(n):
            total += table[size[i]]
        out[d] = total


@entry_kernel_with_arrays
def rand_index_of_rows(labels: I4x2, order: I8, offsets: I8, out: F8) -> None:
    """ARI between each row of canonical labels and one partition.

    The partition's clusters have the members ``order[offsets[k]:offsets[k + 1]]``. Overlaps are
    counted cluster by cluster and wiped by the same walk, so a row costs O(n).
    """
    n_draws, n = labels.shape
    size = np.zeros(n, np.int64)
    overlap = np.zeros(n, np.int64)
    all_pairs = 0.5 * n * (n - 1)
    in_reference = 0.0
    for k in range(offsets.size - 1):
        members = offsets[k + 1] - offsets[k]
        in_reference += 0.5 * members * (members - 1)
    for d in range(n_draws):
        size[:] = 0
        together = 0
        for k in range(offsets.size - 1):
            for p in range(offsets[k], offsets[k + 1]):
                label = labels[d, order[p]]
                size[label] += 1
                # The pairs that this member makes with those of its cluster and label so far.
                together += overlap[label]
                overlap[label] += 1
            for p in range(offsets[k], offsets[k + 1]):
                overlap[labels[d, order[p]]] = 0
        in_draw = 0.0
        for i in range(n):
            in_draw += 0.5 * size[i] * (size[i] - 1)
        chance = in_reference * in_draw / max(all_pairs, 1.0)
        most = 0.5 * (in_reference + in_draw) - chance
        out[d] = (together - chance) / most if most > 0.0 else 1.0
