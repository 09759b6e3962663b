"""How far features of one object lie apart: a first guess from the data alone, free of units.

It centres the prior of what is then learned (``scale_sd`` says how firmly), is where chains start,
and tells how far to look for candidates.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.neighbourhood import nearest_on_others

Floats = NDArray[np.float64]

#: The closest share of the items with a match on another list is taken for matches of one object.
SHARE = 0.3
#: Where |N(0, 1)| has this quantile.
QUANTILE_OF_NORMAL = 0.3853
#: Of lists that agree exactly: a share of the features' spread, far less than objects lie apart.
ALIKE = 1e-3
#: Differences below this, relative to a guess, are errors of floating-point numbers: sin(180°).
NO_DIFFERENCE = 1e-9
#: Without families every marking may be of one object: a share of the features' own spread.
MIXTURE_SHARE = 0.25
#: The guess is repeated until it changes by less than this share, or so many times.
SETTLED, ROUNDS = 0.05, 12


@dataclass(frozen=True)
class Pilot:
    """Standard deviations: of each feature in all, and of each group within an object."""

    spread: Floats  # (p,)
    within: Floats  # (G,)
    level: Floats  # (p,): median of the log size that a feature's errors grow with, else 0

    def scales(self, shape: Shape, features: Floats, growth: float) -> Floats:
        """(n, p): the within-object standard deviation of each feature of each marking."""
        return np.repeat(self.within, shape.groups) * relative_scales(
            shape, features, self.level, growth
        )


def relative_scales(shape: Shape, features: Floats, level: Floats, growth: float) -> Floats:
    """(n, p): errors relative to those at the median size, when variances go as size^growth."""
    scales = np.ones_like(features)
    for j, at in enumerate(shape.size):
        if at >= 0:
            scales[:, j] = np.exp(0.5 * growth * (features[:, at] - level[j]))
    return scales


def find_pilot(
    shape: Shape,
    features: Floats,
    experts: NDArray[np.int64],
    growth: float,
    images: NDArray[np.int64] | None = None,
) -> Pilot:
    """Guess from the distance of items to the nearest on a few other lists of the same image.

    Nearness is judged by the guess itself, which begins with the features' overall spread.
    """
    spread = features.std(axis=0)
    # A feature that never varies says nothing; any scale will do.
    spread = np.where(spread > 1e-12 * np.abs(features).max(axis=0), spread, 1.0)
    level = np.array(
        [np.median(features[:, at]) if at >= 0 else 0.0 for at in shape.size], dtype=np.float64
    )
    starts = np.cumsum([0, *shape.groups[:-1]])
    together = np.sqrt(np.add.reduceat(spread**2, starts) / np.array(shape.groups))
    pilot = Pilot(spread, MIXTURE_SHARE * together, level)
    if len(np.unique(experts)) == len(experts):
        return pilot
    for _ in range(ROUNDS):
        scales = pilot.scales(shape, features, growth)
        apart = _apart_from_others(features, experts, scales, images)
        if not len(apart):
            return pilot
        factor = _typical(apart, shape)
        alike = np.isnan(factor)
        pilot = Pilot(spread, np.where(alike, ALIKE * together, pilot.within * factor), level)
        if np.abs(factor[~alike] - 1.0).max(initial=0.0) < SETTLED:
            break
    return pilot


def _apart_from_others(
    features: Floats,
    experts: NDArray[np.int64],
    scales: Floats,
    images: NDArray[np.int64] | None,
) -> Floats:
    """(m, p): differences to the nearest on a few other lists, relative to an item's scales.

    Where many items are copies of others, as of marks that were proposed and left as they are, the
    closest ones do not differ, and what nobody copied would be compared with another object.
    """
    match = nearest_on_others(features / np.exp(np.log(scales).mean(axis=0)), experts, images)
    rows = np.flatnonzero(match >= 0)
    if not len(rows):
        return np.empty((0, features.shape[1]))
    apart: Floats = (features[rows] - features[match[rows]]) / scales[rows]
    copies = (np.abs(apart) <= NO_DIFFERENCE).all(axis=1)
    return apart[copies] if copies.mean() >= SHARE else apart


def _typical(apart: Floats, shape: Shape) -> Floats:
    """(G,): standard deviation of each group that the closest differences speak of.

    NaN where nothing differs from its match.
    """
    found = []
    for group in np.split(np.abs(apart), np.cumsum(shape.groups)[:-1], axis=1):
        differ = group[
            group > NO_DIFFERENCE
        ]  # of rounded or copied numbers, those that differ tell
        typical = float(np.quantile(differ, SHARE)) if differ.size else np.nan
        found.append(typical / QUANTILE_OF_NORMAL / np.sqrt(2.0))
    return np.array(found)
