"""One to one: as many pairs as possible, and of these the ones that are most alike.

``best_assignment`` is a maximum matching, of largest total quality among all maximum matchings.
``right_by_score`` takes the objects of an answer from the highest score to the lowest; one is right
if the number of pairs that can be made of those so far grows by it. Sets of objects that can be
matched at the same time are the independent sets of a matroid, so that among the k highest there
are at any k as many right ones as the best assignment of these k has, whatever the order of equals.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy import sparse
from scipy.sparse.csgraph import connected_components, min_weight_full_bipartite_matching

from dfcrp.evaluation.matching import PossiblePairs

Whole = NDArray[np.int64]


def best_assignment(pairs: PossiblePairs, n_answer: int, n_truth: int) -> Whole:
    """The truth's row of each row of the answer; -1 for one that is not matched."""
    found = np.full(n_answer, -1, np.int64)
    rows = np.unique(pairs.answer)
    if not rows.size:
        return found
    at = np.searchsorted(rows, pairs.answer)
    # Being alone costs more than the worst pairs of all others of the component together.
    graph = sparse.coo_array(
        (np.ones(len(at)), (at, len(rows) + pairs.truth)), shape=(len(rows) + n_truth,) * 2
    )
    component = connected_components(graph, directed=False)[1][: len(rows)]
    alone = 2.0 * (np.bincount(component)[component] + 1.0)
    costs = sparse.coo_array(
        (
            np.concatenate([2.0 - pairs.quality, alone]),
            (
                np.concatenate([at, np.arange(len(rows))]),
                np.concatenate([pairs.truth, n_truth + np.arange(len(rows))]),
            ),
        ),
        shape=(len(rows), n_truth + len(rows)),
    ).tocsr()
    # scipy's graph functions take matrices, and indices of 32 bits
    row, column = min_weight_full_bipartite_matching(sparse.csr_matrix(costs))
    matched = column < n_truth
    found[rows[row[matched]]] = column[matched]
    return found


def right_by_score(pairs: PossiblePairs, order: Whole, n_truth: int) -> NDArray[np.bool_]:
    """Whether each object of the answer is right; ``order`` has the rows, best score first."""
    near: dict[int, list[int]] = {}
    by_quality = np.lexsort([-pairs.quality, pairs.answer])
    for i, j in zip(
        pairs.answer[by_quality].tolist(), pairs.truth[by_quality].tolist(), strict=True
    ):
        near.setdefault(i, []).append(j)
    owner = [-1] * n_truth
    right = np.zeros(len(order), np.bool_)
    for i in order.tolist():
        if i in near and _finds_place(i, near, owner):
            right[i] = True
    return right


def _finds_place(start: int, near: dict[int, list[int]], owner: list[int]) -> bool:
    """Give a row one of its truths, moving others to further ones of theirs; whether that works."""
    came_from: dict[int, int] = {}
    rows = [start]
    for i in rows:  # grows while it is gone through: nearest first
        for j in near[i]:
            if j in came_from:
                continue
            came_from[j] = i
            if owner[j] >= 0:
                rows.append(owner[j])
                continue
            _move_along(j, start, came_from, near, owner)
            return True
    return False


def _move_along(
    free: int, start: int, came_from: dict[int, int], near: dict[int, list[int]], owner: list[int]
) -> None:
    """Give the free truth to the row that it was reached from, its own to the one before, ..."""
    while True:
        row = came_from[free]
        given_up = next((k for k in near[row] if owner[k] == row), -1)
        owner[free] = row
        if row == start:
            return
        free = given_up
