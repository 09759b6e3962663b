"""Suspected doubles: two markings of one expert that are both closest to one object.

The rule that nobody marks an object twice sends the second marking into a cluster of its own.
If it lies as close to the object as markings of that object do, it may be a mistake of the expert.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

#: A double lies within so many standard deviations of the object, on average over the features.
CLOSE = 3.0
#: Objects nearby that are looked at.
NEAREST = 8
#: Members that make an object sure enough to have doubles, and to tell how far members scatter.
FEWEST = 3


def suspected_doubles(
    features: Floats,
    families: NDArray[np.int64],
    labels: NDArray[np.int32],
    size: int | None = None,
) -> dict[str, NDArray[Any]]:
    """Columns ``marking``, ``other`` (indices), ``cluster`` and ``distance``, closest first.

    ``size`` is the feature that holds a log size, if those before it are places whose errors go
    with it. A marking is suspected if it is alone, the nearest object (of FEWEST members or more)
    holds another marking of its expert, and it lies within CLOSE standard deviations of the
    objects' own members.
    """
    names, code, count = np.unique(labels, return_inverse=True, return_counts=True)
    centre = _means(features, code, len(names))
    scale = np.ones_like(centre)
    if size is not None:
        scale[:, :size] = np.exp(centre[:, size : size + 1])
    sure = np.flatnonzero(count >= FEWEST)
    alone = np.flatnonzero(count[code] == 1)
    empty = np.empty(0, np.int64)
    if not (sure.size and alone.size):
        return {"marking": empty, "other": empty, "cluster": empty, "distance": np.empty(0)}
    inside = np.isin(code, sure)
    residual = (features - centre[code])[inside] / scale[code[inside]]
    freedom = inside.sum() - sure.size
    spread = np.sqrt((residual**2).sum(axis=0) / max(freedom, 1))
    spread = np.where(spread > 0.0, spread, 1.0)
    cluster, distance = _nearest(features[alone], centre[sure], scale[sure] * spread)
    other = _of_family(code, families, sure[cluster], families[alone])
    found = np.flatnonzero((distance <= CLOSE) & (other >= 0))
    found = found[np.argsort(distance[found], kind="stable")]
    return {
        "marking": alone[found],
        "other": other[found],
        "cluster": names[sure[cluster[found]]].astype(np.int64),
        "distance": distance[found],
    }


def _of_family(
    code: NDArray[np.int64],
    families: NDArray[np.int64],
    clusters: NDArray[np.int64],
    wanted: NDArray[np.int64],
) -> NDArray[np.int64]:
    """The member of each cluster that is of the wanted family, or -1."""
    span = int(families.max()) + 1
    keys = code * span + families
    order = np.argsort(keys, kind="stable")
    asked = clusters * span + wanted
    place = np.minimum(np.searchsorted(keys[order], asked), len(keys) - 1)
    return np.where(keys[order][place] == asked, order[place], -1)


def _means(features: Floats, code: NDArray[np.int64], count: int) -> Floats:
    sums = np.zeros((count, features.shape[1]))
    np.add.at(sums, code, features)
    return sums / np.bincount(code)[:, np.newaxis]


def _nearest(points: Floats, centre: Floats, spread: Floats) -> tuple[NDArray[np.int64], Floats]:
    """The nearest object of each point by its own spread, among the nearest few by a common one."""
    from scipy.spatial import cKDTree

    usual = np.median(spread, axis=0)
    around = min(NEAREST, len(centre))
    near = cKDTree(centre / usual).query(points / usual, k=around)[1].reshape(len(points), around)
    apart = (points[:, np.newaxis] - centre[near]) / spread[near]
    distance = np.sqrt((apart**2).mean(axis=2))
    best = distance.argmin(axis=1)
    rows = np.arange(len(points))
    return near[rows, best], distance[rows, best]
