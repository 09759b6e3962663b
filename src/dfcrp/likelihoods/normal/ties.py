"""Numbers that experts agree on exactly, as rounding or a drawing tool makes them, are set apart.

Where several experts give the very same numbers, nothing keeps the variance of their cluster above
zero, and what is learned of the scatter collapses. Two things do that. *Rounding*: numbers lie on a
lattice of some step, in pixels or in fives; a uniform move within half a step gives back what was
rounded away. *A mass*: many have one value, such as the smallest size that a tool can draw; such
items are moved by the scatter of all others. Moves are the same for the same data.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.normal.pilot import Pilot
from dfcrp.likelihoods.normal.shapes import Shape

Floats = NDArray[np.float64]
Truths = NDArray[np.bool_]

#: Ties matter if so many experts agree on one value, or this share of items agree with another
#: expert's. The law of a variance bears less.
FEWEST_EXPERTS, SHARE = 3, 0.05
#: Numbers lie on a lattice if this share of them do.
ON_LATTICE = 0.95
#: A lattice matters if its step is at least so much of the scatter; finer ones are a mass.
COARSE = 0.05
#: Moves of a mass, relative to the scatter of others: what it hides is taken to be like them.
MASS_MOVE = 1.0
#: Steps that are looked for, relative to the largest number.
STEPS = (5.0, 2.0, 1.0)
FINEST = 1e-9
_SEED = 20_140_416


def set_ties_apart(
    shape: Shape, columns: Floats, features: Floats, experts: NDArray[np.int64], pilot: Pilot
) -> Floats:
    """The features, with those moved on which experts agree exactly.

    ``columns`` are what items are given as, before a shape turns them into ``features``. Where
    every item is by an expert of its own nothing is moved.
    """
    if len(np.unique(experts)) == len(experts):
        return features
    rng = np.random.default_rng(_SEED)
    uniform = rng.uniform(-0.5, 0.5, columns.shape)
    normal = rng.standard_normal(features.shape)
    steps = np.array([step_of(column) for column in columns.T])
    # Features may be about their mean, which moves must not change.
    moved = shape.to_features(columns + steps * uniform) - shape.to_features(columns)
    found = features.copy()
    starts = np.cumsum([0, *shape.groups])
    for group, (a, b) in enumerate(pairwise(starts)):
        tied = _tied(features[:, a:b], experts)
        # Of numbers that are all the same there are no others, and no scatter is known.
        if not tied.any() or not np.ptp(features[:, a:b], axis=0).any():
            continue
        scatter = float(pilot.within[group])
        if np.median(np.abs(moved[:, a:b])) >= 0.25 * COARSE * scatter:
            found[:, a:b] += moved[:, a:b]
        else:
            found[tied, a:b] += MASS_MOVE * scatter * normal[tied, a:b]
    return found


def step_of(values: Floats) -> float:
    """The largest of 1, 2 or 5 times a power of ten that nearly all numbers are multiples of.

    Zero if there is none, or if all numbers are the same.
    """
    largest = float(np.abs(values).max(initial=0.0))
    if largest == 0.0 or np.ptp(values) == 0.0:
        return 0.0
    for power in range(int(np.floor(np.log10(largest))), int(np.log10(largest * FINEST)), -1):
        for times in STEPS:
            step = times * 10.0**power
            whole = values / step
            if np.mean(np.abs(whole - np.round(whole)) < 1e-6) >= ON_LATTICE:
                return step
    return 0.0


def _tied(values: Floats, experts: NDArray[np.int64]) -> Truths:
    """Which items have the numbers of another expert's, if these are enough to matter."""
    group = np.unique(values, axis=0, return_inverse=True)[1].reshape(-1)
    both = np.unique(np.column_stack([group, experts]), axis=0)
    agreeing = np.bincount(both[:, 0], minlength=int(group.max()) + 1)[group]
    tied: Truths = agreeing > 1
    matters = agreeing.max() >= FEWEST_EXPERTS or tied.mean() >= SHARE
    return tied if matters else np.zeros_like(tied)
