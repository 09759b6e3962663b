"""Pairs of items that may share a cluster, as a user gives them."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError


def checked_pairs(candidates: Any, n: int) -> NDArray[np.int64]:
    """Each pair of n items once, the smaller number first; an item with itself is no pair."""
    pairs = np.asarray(candidates)
    if pairs.ndim != 2 or pairs.shape[1] != 2 or not np.issubdtype(pairs.dtype, np.integer):
        raise InputError("candidates are pairs of row numbers from 0: an integer array (m, 2)")
    if pairs.size and (pairs.min() < 0 or pairs.max() >= n):
        wrong = pairs.min() if pairs.min() < 0 else pairs.max()
        raise InputError(f"candidates name the row {wrong}; rows go from 0 to {n - 1}")
    ordered = np.sort(pairs.astype(np.int64), axis=1)
    return np.unique(ordered[ordered[:, 0] < ordered[:, 1]], axis=0)
