"""How far items lie from the others of their object: more often far away than the model expects?

An item's residual is its distance from the mean of the other members of its cluster, in standard
deviations of such distances. Residuals are divided by what makes their median that of a normal
distribution, so that only the form of the distribution counts: how many lie beyond three times the
usual scatter. New data for the same clusters, from the model, say how many to expect.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]

#: Beyond so many times the usual scatter an item counts as far, and as very far.
FAR, VERY_FAR = 3.0, 5.0
#: Median distance of a normal with a standard deviation of one in 1, 2 and 3 dimensions.
MEDIANS = {1: 0.6745, 2: 1.1774, 3: 1.5382}


@dataclass(frozen=True)
class Scatter:
    """What one draw says of the scatter of items about their objects."""

    #: Features of the items without their experts' offsets, (n, p).
    values: Floats
    #: Their usual standard deviation about their object, (n, p).
    spread: Floats
    #: Names of the parts of a distance, their features, and in how many dimensions they scatter.
    parts: tuple[tuple[str, slice, int], ...]
    #: From a generator, codes of objects (m,) and rows of items (m,): deviations of new items in
    #: the place of these from their objects, in units of ``spread``, (m, p); items of one code
    #: share an object.
    new: Callable[[np.random.Generator, Codes, Codes], Floats]


@dataclass(frozen=True)
class TailShares:
    """Shares of items of one part that lie far and very far away, in every draw: (draws,)."""

    part: str
    items: int
    far: Floats
    very_far: Floats
    new_far: Floats
    new_very_far: Floats


def residuals(values: Floats, spread: Floats, code: Codes) -> Floats:
    """(m, p): each item less the mean of the others of its code, in standard deviations of that."""
    count = np.bincount(code)[code][:, np.newaxis]
    away, square = np.empty_like(values), spread**2
    for j in range(values.shape[1]):
        total = np.bincount(code, weights=values[:, j])[code]
        squares = np.bincount(code, weights=square[:, j])[code]
        others = count[:, 0] - 1.0
        mean = (total - values[:, j]) / others
        variance = square[:, j] + (squares - square[:, j]) / others**2
        away[:, j] = (values[:, j] - mean) / np.sqrt(variance)
    return away


def in_spreads(away: Floats, dimensions: int) -> Floats:
    """Distances, divided so that their median is that of a normal distribution."""
    distance = np.linalg.norm(away, axis=1)
    middle = float(np.median(distance))
    usual = MEDIANS.get(dimensions, float(np.sqrt(dimensions)))
    return np.asarray(distance * (usual / middle if middle else 0.0))


@dataclass(frozen=True)
class DrawnItems:
    """Items that were drawn together, in some draws."""

    #: From what the clusters of a draw share to the scatter.
    scatter: Callable[[Floats], Scatter]
    #: (draws, width) and (draws, items).
    shared: Floats
    labels: NDArray[np.int32]


def tails(sets: list[DrawnItems], rng: np.random.Generator) -> list[TailShares]:
    """Of all sets together, draw by draw; clusters of one item say nothing."""
    found: dict[str, list[list[float]]] = {}
    items: dict[str, int] = {}
    for at in range(min(len(one.labels) for one in sets)):
        scatters = [one.scatter(one.shared[at]) for one in sets]
        pairs = zip(scatters, sets, strict=True)
        both = [_of_draw(scatter, one.labels[at], rng) for scatter, one in pairs]
        own, new = (np.concatenate(some) for some in zip(*both, strict=True))
        if not len(own):
            continue
        for name, part, dimensions in scatters[0].parts:
            shares = []
            for away in (own[:, part], new[:, part]):
                distance = in_spreads(away, dimensions)
                shares += [float(np.mean(distance > FAR)), float(np.mean(distance > VERY_FAR))]
            found.setdefault(name, []).append(shares)
            items[name] = len(own)
    return [TailShares(name, items[name], *np.array(rows).T) for name, rows in found.items()]


def _of_draw(
    scatter: Scatter, labels: NDArray[np.int32], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Residuals of the items of one draw that have companions, and of new ones in their place."""
    size = np.bincount(labels, minlength=len(labels))
    rows = np.flatnonzero(size[labels] > 1)
    if not rows.size:
        nothing = np.empty((0, scatter.values.shape[1]))
        return nothing, nothing
    code = np.unique(labels[rows], return_inverse=True)[1].astype(np.int64)
    spread = scatter.spread[rows]
    made = scatter.new(rng, code, rows) * spread
    return residuals(scatter.values[rows], spread, code), residuals(made, spread, code)
