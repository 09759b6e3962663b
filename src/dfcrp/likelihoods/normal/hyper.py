"""Settings and hyperparameters of normal features: a first guess, ties set apart, the laws' priors.

How far features of one object lie apart is guessed from the data alone, free of units (``Pilot``).
The guess centres the prior of what is then learned (``scale_sd`` says how firmly), is where chains
start, and tells how far to look for candidates.

Numbers that experts agree on exactly, as rounding or a drawing tool makes them, are set apart.
Where several experts give the very same numbers, nothing keeps the variance of their cluster above
zero, and what is learned of the scatter collapses. Two things do that. *Rounding*: numbers lie on a
lattice of some step, in pixels or in fives; a uniform move within half a step gives back what was
rounded away. *A mass*: many have one value, such as the smallest size that a tool can draw; such
items are moved by the scatter of all others. Moves are the same for the same data.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import check, check_choice
from dfcrp.likelihoods import EXPERT_BIAS, TAILS
from dfcrp.likelihoods.base import HELD, NARROW
from dfcrp.likelihoods.normal.covariance import CovarianceHyper, law_width
from dfcrp.likelihoods.normal.kernel import NormalHyper
from dfcrp.likelihoods.normal.shapes import Shape
from dfcrp.neighbours.neighbourhood import nearest_on_others

#: What the paper's samplers go with.
AS_IN_THE_PAPER = {"expert_bias": "none", "tails": "none"}


@dataclass(frozen=True)
class NormalSettings:
    """Hyperparameters of normal features; scales are relative to a guess from the data."""

    #: Shape of the inverse Gamma law of a cluster's variances, and how uncertain the logarithm of
    #: the typical standard deviation is about a guess from the data.
    variance_shape: float = 2.5
    scale_sd: float = 1.5
    #: Where errors grow with size: the variance goes as size to this power, and how uncertain
    #: that is.
    growth: float = 1.0
    growth_sd: float = 0.7
    #: Whether experts differ in where they place items ("offset"), in how exactly ("precision"),
    #: or in both; standard deviations between experts of the offsets, relative to the typical
    #: standard deviation of a feature, and of the log of the noise.
    expert_bias: str = "none"
    expert_offset_sd: float = 0.5
    expert_noise_sd: float = 0.3
    #: Whether some items may be careless, with a share that is learned ("learned"), or none are.
    tails: str = "none"

    def __post_init__(self) -> None:
        check_choice("likelihood.expert_bias", self.expert_bias, EXPERT_BIAS)
        check_choice("likelihood.tails", self.tails, TAILS)
        check(self.variance_shape > 1, "likelihood.variance_shape", self.variance_shape, "above 1")
        for name in ("scale_sd", "growth_sd", "expert_offset_sd", "expert_noise_sd"):
            check(getattr(self, name) > 0, f"likelihood.{name}", getattr(self, name), "above 0")


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
Truths = NDArray[np.bool_]
#: Ties matter if so many experts agree on one value, or this share of items agree with another
#: expert's. The law of a variance bears less.
FEWEST_TIED, TIED_SHARE = 3, 0.05
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
#: How strongly features may go together within clusters, before the data speak (entries of U).
CORRELATION_SD = 0.5


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
    matters = agreeing.max() >= FEWEST_TIED or tied.mean() >= TIED_SHARE
    return tied if matters else np.zeros_like(tied)


def normal_hyper(
    model: NormalSettings, shape: Shape, features: Floats, pilot: Pilot
) -> NormalHyper:
    """Variances only, by groups of features."""
    groups = len(shape.groups)
    starts = np.cumsum([0, *shape.groups]).astype(np.int64)
    growing = [g for g in range(groups) if max(shape.size[starts[g] : starts[g + 1]]) >= 0]
    growth = np.full(groups, -1, dtype=np.int64)
    growth[growing] = groups + np.arange(len(growing))
    law = np.concatenate([2.0 * np.log(pilot.within), np.full(len(growing), model.growth)])
    ranges = [np.ptp(features[:, max(shape.size[starts[g] : starts[g + 1]])]) for g in growing]
    growth_sd = np.where(np.array(ranges) < NARROW, HELD, model.growth_sd)
    return NormalHyper(
        centre=features.mean(axis=0),
        spread=pilot.spread,
        start=starts,
        size=np.array(shape.size, dtype=np.int64),
        level=pilot.level,
        growth=growth,
        shape=model.variance_shape,
        law=law,
        law_mean=law.copy(),
        law_sd=np.concatenate([np.full(groups, 2.0 * model.scale_sd), growth_sd]),
    )


def covariance_hyper(model: NormalSettings, features: Floats, pilot: Pilot) -> CovarianceHyper:
    """A full covariance for each cluster; means uniform over a box of the data's spread.

    A box of width 2 √π t has the mean density of a normal of standard deviation t.
    """
    p = features.shape[1]
    law = np.zeros(law_width(p))
    law[:p] = np.log(pilot.within)
    return CovarianceHyper(
        features=p,
        shape=model.variance_shape,
        log_volume=float(np.log(2.0 * math.sqrt(math.pi) * pilot.spread).sum()),
        law=law,
        law_mean=law.copy(),
        law_sd=np.concatenate([np.full(p, model.scale_sd), np.full(len(law) - p, CORRELATION_SD)]),
    )
