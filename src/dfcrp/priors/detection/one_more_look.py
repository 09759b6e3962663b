"""What one more look at an image is worth: how much surer the number of its objects would become.

The value is the variance of the number of objects on the image less the variance that is expected
once one more, typical expert has looked: one whose skill is what is usual in every class, and whose
false marks are the median over experts. It is computed from the draws; nothing is sampled.

* A cluster is real with probability p, and the newcomer marks it with probability a (only if it is
  real). If they do it is real; if not, it is real with probability (p − a) / (1 − a). The variance
  p (1 − p) falls by a (1 − p)² / (1 − a) on average.
* M objects were missed by everyone, and the newcomer makes T marks on none of the clusters, some
  of them on missed objects and some false. What T says of M is taken to be linear, as it is where
  the expected numbers are known: the variance of M falls by Cov(M, T)² / Var(T).

Clusters and missed objects are taken one by one: what they have in common (an image with many
objects has more of both) is left out.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


def of_clusters(p_real: Any, p_marked: Any) -> Any:
    """By how much the variance of each cluster's reality falls; p_marked ≤ p_real."""
    return p_marked * (1.0 - p_real) ** 2 / np.maximum(1.0 - p_marked, 1e-12)


def of_missed(hidden: Floats, found: Floats, false: Floats) -> Floats:
    """By how much the variance of the number of missed objects falls.

    By draw (first axis): how many objects nobody marked, how many of these one more expert finds,
    and how many false marks they make; all are expected numbers.
    """
    marks = found + false
    shared = found.mean(axis=0) + _covariance(hidden, marks)
    spread = marks.mean(axis=0) + _covariance(marks, marks)
    return np.asarray(shared**2 / np.maximum(spread, 1e-300))


def _covariance(a: Floats, b: Floats) -> Floats:
    return np.asarray(((a - a.mean(axis=0)) * (b - b.mean(axis=0))).mean(axis=0))
