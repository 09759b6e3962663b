"""How an interval becomes features: its centre, and the logarithm of its length above a floor.

An interval from s to e has the features

    centre = (s + e) / 2,    l = log(e − s + f),

with a floor f. The spread of l within an object is the same for all lengths. So lengths scatter by
a share of the length where that is far above f, and by the same share of f where it is far below:
nobody hits the ends of a short interval more exactly than this. The spread of the centre grows with
exp(l), by a power that is learned. Both follow ``likelihoods.normal.kernel``.

Which f suits the data is guessed from pairs of intervals that overlap, of different experts: with
differences d of their lengths about m, it is the f for which d / (m + f) varies least with m, by
the likelihood of a Laplace distribution,

    max over f of  −n log(mean |d| / (m + f)) − Σ log(m + f).
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.hyper import step_of
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.neighbourhood import nearest_on_others

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]
#: Without pairs that tell, the floor is this share of the median length.
USUAL_SHARE = 0.1
#: Floors that are tried, relative to the median length of the pairs.
TRIED = 2.0 ** np.arange(-7.0, 3.5, 0.5)
#: Pairs that tell, if there are so many: those that share this much of what they cover together.
FEWEST, OVERLAP = 20, 1.0 / 3.0


def find_floor(ends: Floats, experts: Codes, images: Codes | None) -> float:
    """The floor that suits intervals, (n, 2) starts and ends; at least the step of their lattice.

    Rounded ends are moved by up to half a step each, so that a length may shrink by a step.
    """
    middle = float(np.median(ends[:, 1] - ends[:, 0]))
    found = _of_pairs(ends, experts, images)
    return max(USUAL_SHARE * middle if found is None else found, *map(step_of, ends.T))


def _of_pairs(ends: Floats, experts: Codes, images: Codes | None) -> float | None:
    """The floor by pairs that overlap; None if these are too few, or all have the same length."""
    match = nearest_on_others(ends, experts, images)
    rows = np.flatnonzero(match >= 0)
    one, other = ends[rows], ends[match[rows]]
    shared = np.minimum(one[:, 1], other[:, 1]) - np.maximum(one[:, 0], other[:, 0])
    covered = np.maximum(one[:, 1], other[:, 1]) - np.minimum(one[:, 0], other[:, 0])
    near = shared >= OVERLAP * covered
    lengths = np.stack([pair[near, 1] - pair[near, 0] for pair in (one, other)])
    apart, mean = np.abs(lengths[0] - lengths[1]), lengths.mean(axis=0)
    if len(mean) < FEWEST or not apart.any() or np.ptp(mean) == 0.0:
        return None
    floors = TRIED * float(np.median(mean))
    beyond = mean + floors[:, np.newaxis]
    fit = -len(mean) * np.log((apart / beyond).mean(axis=1)) - np.log(beyond).sum(axis=1)
    return float(floors[np.argmax(fit)])


def interval_shape(floor: float) -> Shape:
    """Intervals by start and end."""

    def to_features(ends: Floats) -> Floats:
        start, end = ends[..., 0], ends[..., 1]
        return np.stack([0.5 * (start + end), np.log(end - start + floor)], axis=-1)

    def to_columns(features: Floats) -> Floats:
        centre, half = features[..., 0], 0.5 * np.maximum(np.exp(features[..., 1]) - floor, 0.0)
        return np.stack([centre - half, centre + half], axis=-1)

    return Shape(
        name="intervals",
        columns=("start", "end"),
        positive=(),
        features=("centre", "log_length"),
        groups=(1, 1),
        size=(1, -1),
        to_features=to_features,
        to_columns=to_columns,
        places=1,
        extents=_length_and_floor,
    )


def _length_and_floor(features: Floats) -> Floats:
    return np.asarray(np.exp(features[..., 1]))
