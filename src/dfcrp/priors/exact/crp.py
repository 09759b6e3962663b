"""The Chinese restaurant process: the partition prior without families.

    p(c | alpha) = alpha^K * prod_k (n_k - 1)! / (alpha * (alpha + 1) * ... * (alpha + n - 1))

whatever the order of arrival. It is ``dfcrp.prior`` with every item a family of its own.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln

from dfcrp.errors import SettingsError


def log_prob(labels: ArrayLike, alpha: float) -> float:
    """log p(c | alpha) of the partition that the labels (any integers) describe."""
    given = np.asarray(labels)
    if given.dtype.kind not in "iu" or given.ndim != 1 or given.size == 0:
        raise SettingsError(
            f"labels must be a list of integers, one for each item; "
            f"got shape {given.shape} of {given.dtype}"
        )
    _check_alpha(alpha)
    sizes = np.unique(given, return_counts=True)[1]
    denominator = np.log(alpha + np.arange(given.size)).sum()
    return float(sizes.size * math.log(alpha) + gammaln(sizes).sum() - denominator)


def sample(
    n: int, alpha: float, draws: int, seed: int | np.random.Generator | None
) -> NDArray[np.int32]:
    """Independent partitions of n items, shape (draws, n), labels in order of first appearance.

    To join a cluster with probability n_k / (i + alpha) is to follow one of the i items before,
    drawn uniformly. Since the order does not matter, the items arrive as they are numbered.
    """
    if n < 1 or draws < 0:
        raise SettingsError(f"cannot draw {draws} partitions of {n} items")
    _check_alpha(alpha)
    rng = np.random.default_rng(seed)
    rows = np.arange(draws)
    labels = np.zeros((draws, n), np.int32)
    n_clusters = np.ones(draws, np.int32)
    for i in range(1, n):
        spot = rng.random(draws) * (i + alpha)
        new = spot >= i
        followed = np.where(new, 0, spot).astype(np.intp)
        labels[:, i] = np.where(new, n_clusters, labels[rows, followed])
        n_clusters += new
    return labels


def expected_clusters(n: int, alpha: float) -> float:
    """E[K] = sum over i < n of alpha / (alpha + i)."""
    if n < 0:
        raise SettingsError(f"n is {n}; it must not be negative")
    _check_alpha(alpha)
    return float((alpha / (alpha + np.arange(n))).sum())


def _check_alpha(alpha: float) -> None:
    if not (alpha > 0 and math.isfinite(alpha)):
        raise SettingsError(f"alpha is {alpha}; it must be positive")
