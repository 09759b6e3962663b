"""Do items that are alone lie beside objects that their experts seem to have missed?

If the clusters are right, an expert's single item may happen to lie near an object of others, but
then it does not matter whether the expert marked that object too. A careless item of an object,
a part of it, or a group that holds it, was cut off: it lies near the object, and the expert has no
other item there. So of the single items near an object, those whose expert lacks the object are
compared with as many as the share of objects that the expert lacks anyway.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dfcrp.summaries.looked import Coverage, who_looked
from dfcrp.summaries.tails import Scatter

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Near is within so many standard deviations, on average over the features.
NEAR = 10.0
#: Objects nearby that are looked at, for each single item.
NEAREST = 6


class Beside(NamedTuple):
    """Single items near an object of two items or more."""

    near: int
    #: Of these, those whose expert has no item in the object, and how many are expected to.
    lacking: int
    expected: float
    sd: float
    #: Items that seem to have been cut off.
    cut_off: float


def beside(
    labels: NDArray[np.int32],
    families: Codes,
    coverage: Coverage,
    scatter: Scatter,
    images: Codes | None,
) -> Beside:
    """Of one partition and the scatter of a draw."""
    single, object_of, members = _nearest(labels, scatter, images)
    missing = _share_lacking(labels, families, coverage)
    kept = np.isfinite(missing[families[single]])
    single, object_of = single[kept], object_of[kept]
    held = {(int(labels[i]), int(families[i])) for i in members}
    pairs = zip(object_of.tolist(), families[single].tolist(), strict=True)
    lacks = np.array([pair not in held for pair in pairs], bool)
    p = missing[families[single]]
    expected, variance = float(p.sum()), float((p * (1.0 - p)).sum())
    lacking, mean = int(lacks.sum()), expected / max(len(single), 1)
    cut_off = (lacking - expected) / (1.0 - mean) if mean < 1.0 else 0.0
    return Beside(len(single), lacking, expected, np.sqrt(variance), max(cut_off, 0.0))


def _share_lacking(labels: NDArray[np.int32], families: Codes, coverage: Coverage) -> Floats:
    """Of the objects with two items or more where an expert looked, the share they are not in.

    Of objects that others have made two of: an expert's own item must not make it one.
    """
    found = who_looked(coverage, labels[np.newaxis], families)
    several = found.experts > 1
    held, seen = found.held.tocsr()[several], found.seen.tocsr()[several]
    others = found.experts[several]
    inside = np.asarray(held[others > 2].sum(axis=0)).ravel()
    looked = np.asarray(seen.sum(axis=0)).ravel()
    own_pairs = np.asarray(held[others == 2].sum(axis=0)).ravel()
    share = np.full(coverage.n_experts, np.nan)
    known = looked - own_pairs > 0
    share[known] = 1.0 - inside[known] / (looked - own_pairs)[known]
    return share


def _nearest(
    labels: NDArray[np.int32], scatter: Scatter, images: Codes | None
) -> tuple[Codes, Codes, Codes]:
    """Single items near an object, the object nearest to each, and all items of objects."""
    size = np.bincount(labels, minlength=len(labels))
    members, alone = np.flatnonzero(size[labels] > 1), np.flatnonzero(size[labels] == 1)
    nothing = np.zeros(0, np.int64)
    if not (members.size and alone.size):
        return nothing, nothing, members
    names, code = np.unique(labels[members], return_inverse=True)
    count = np.bincount(code)[:, np.newaxis]
    columns = scatter.values.shape[1]
    total = np.stack(
        [np.bincount(code, weights=scatter.values[members, j]) for j in range(columns)], axis=1
    )
    mean: Floats = total / count
    usual = np.median(scatter.spread, axis=0)
    here, there = scatter.values / usual, mean / usual
    if images is not None:
        # Far apart, so that items of different images are never near.
        step = 10.0 * (1.0 + float(np.ptp(here, axis=0).max()))
        here = np.column_stack([here, step * images])
        there = np.column_stack([there, step * images[names]])
    tree = cKDTree(there)
    nearest = min(NEAREST, len(names))
    _, found = tree.query(here[alone], k=nearest)
    found = found.reshape(len(alone), nearest)
    away = (scatter.values[alone][:, np.newaxis] - mean[found]) / scatter.spread[alone][
        :, np.newaxis
    ]
    distance = np.sqrt((away**2).mean(axis=2))
    if images is not None:
        distance[images[alone][:, np.newaxis] != images[names][found]] = np.inf
    best = distance.argmin(axis=1)
    row = np.arange(len(alone))
    near = distance[row, best] < NEAR
    return alone[near], names[found[row, best]][near].astype(np.int64), members
