"""Sizes in another unit than places, and lists with other sizes than the rest."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from dfcrp.first_look.agreement import Naming
from dfcrp.first_look.finding import Finding, factor, named
from dfcrp.first_look.nearness import MOST_COMPARED, Nearness

Floats = NDArray[np.float64]

#: Where lists agree, items of one object lie closer together than so many of their sizes.
TOO_SMALL = 5.0
#: On one list the next item lies farther than this share of a size, for most of them.
TOO_LARGE = 0.2
#: Of near items at least this share lies within a radius that was given.
LEAST_WITHIN = 0.2
#: Half a size, along each axis: a corner.
HALF = (0.33, 0.67)
#: Items that both take.
LEAST_ITEMS = 20
#: Sizes of one list by those of another for the same objects: more than this is no habit.
OTHER_SIZE = 1.6
#: Twice or half, to this accuracy, are a diameter and a radius; powers of ten are units.
ACCURACY = 0.12


def sizes_and_places(nearness: Nearness, size: str, words: Naming) -> Iterator[Finding]:
    """Sizes far too small or too large for the places."""
    sizes = nearness.sight.sizes
    if sizes is None:
        return
    middle = float(np.median(sizes))
    where = " and ".join(nearness.sight.names)
    known = np.isfinite(nearness.within_list)
    own = nearness.unit * nearness.within_list[known] / sizes[nearness.sample][known]
    if known.sum() >= LEAST_ITEMS and float(np.median(own)) < TOO_LARGE:
        x = nearness.sight.coordinates[:, 0]
        low, high = float(x.min()), float(x.max())
        yield Finding(
            "sizes",
            f"on each list most {words.nouns} lie on top of each other: the {size} is about "
            f"{middle:.3g}, and {nearness.sight.names[0]} goes from {low:.3g} to {high:.3g}. Is it "
            f"in another unit than {where}?{_degrees(nearness)}",
            numbers={"next_on_list_in_sizes": float(np.median(own))},
        )
        return
    found = nearness.pairs if len(nearness.lists) <= MOST_COMPARED else nearness.others
    apart, agree = found.apart, found.shares.beyond_chance.any()
    if len(apart) >= LEAST_ITEMS and agree and float(np.median(apart)) > TOO_SMALL:
        times = float(np.median(apart))
        yield Finding(
            "sizes",
            f"{words.nouns} of one object lie about {factor(times)} times their {size} apart (it "
            f"is about {middle:.3g}): is it in another unit than {where}? Then hardly anything "
            "will be merged. Give both in one unit",
            numbers={"distance_in_sizes": times},
        )


def _degrees(nearness: Nearness) -> str:
    """Whether places in a plane could be degrees."""
    x, y = np.abs(nearness.sight.coordinates[:, 0]), np.abs(nearness.sight.coordinates[:, 1])
    if nearness.sight.turn is not None or x.max() > 360.0 or y.max() > 90.0:
        return " Give both in one unit"
    return (
        " If they are longitude and latitude, call the columns lon and lat (dfcrp convert FILE NEW "
        "--units deg --body BODY does), and give diameters in km; else give both in one unit"
    )


def radius_and_places(nearness: Nearness, radius: float, words: Naming) -> Iterator[Finding]:
    """A radius, given as a number, within which hardly any items of one object lie."""
    found = nearness.pairs if len(nearness.lists) <= MOST_COMPARED else nearness.others
    distances = found.distances
    if len(distances) < LEAST_ITEMS or not found.shares.beyond_chance.any():
        return
    within, usual = float(np.mean(distances <= radius)), float(np.median(distances))
    if within < LEAST_WITHIN:
        yield Finding(
            "radius",
            f"the radius is {radius:g}, and {words.nouns} of one object lie about {usual:.3g} "
            "apart: hardly anything will be merged. Leave --radius out, or give it in the unit of "
            f"{' and '.join(nearness.sight.names)}",
            numbers={"radius": radius, "usual_distance": usual, "share_within": within},
        )


def sizes_of_lists(
    nearness: Nearness, experts: tuple[str, ...], size: str, words: Naming
) -> Iterator[Finding]:
    """Lists whose sizes differ from those of the others for the same objects."""
    if nearness.sight.sizes is None:
        return
    level = _levels(nearness)
    other = np.flatnonzero(np.abs(np.nan_to_num(level)) > math.log(OTHER_SIZE))
    if len(experts) == 2:
        other = other[np.argmin(level[other])][np.newaxis] if other.size else other
    for some in _alike(level, other):
        names = [experts[f] for f in some]
        times = float(np.exp(np.median(level[some])))
        rival = experts[1 - some[0]] if len(experts) == 2 else "the others"
        yield Finding(
            "size of one list",
            f"{named(names)}: {'their' if len(names) > 1 else 'the'} {size} of an object is about "
            f"{factor(times)} times that of {rival}{_why(times, size)}",
            tuple(names),
            {"times_the_others": times},
        )


def _levels(nearness: Nearness) -> Floats:
    """Log size of each expert for the same objects, relative to most experts."""
    if len(nearness.lists) > MOST_COMPARED:
        found = np.where(nearness.others.shares.beyond_chance, nearness.others.log_ratio, np.nan)
        return np.asarray(found)
    shares = nearness.pairs.shares
    agree = shares.beyond_chance | shares.beyond_chance.T
    ratio = np.where(agree, nearness.pairs.log_ratio, np.nan)
    known = np.isfinite(ratio).sum(axis=1)
    if not known.any():
        return np.full(len(ratio), np.nan)
    first = int(np.argmax(known))
    level = ratio[:, first].copy()
    level[first] = 0.0
    if len(level) == 2:
        # Whoever has the smaller sizes is named.
        return np.array([level[0] - level[1], level[1] - level[0]])
    return np.asarray(level - np.nanmedian(level))


def _alike(level: Floats, some: NDArray[np.int64]) -> Iterator[NDArray[np.int64]]:
    """Experts whose sizes differ in the same way, together."""
    kind = np.round(level[some] / math.log(OTHER_SIZE))
    for value in np.unique(kind):
        yield some[kind == value]


def _why(times: float, size: str) -> str:
    log = math.log(times)
    if abs(abs(log) - math.log(2.0)) < ACCURACY and size == "diameter":
        whose = "are these radii" if log < 0.0 else "are those radii"
        return f": {whose}? Name such a column radius (--columns radius=NAME)"
    tens = log / math.log(10.0)
    if abs(tens - round(tens)) * math.log(10.0) < ACCURACY:
        return ": is it in another unit? Give all lists in one"
    return ": is it in another unit, or measured in another way? Give all lists alike"


def corners(nearness: Nearness, experts: tuple[str, ...], words: Naming) -> Iterator[Finding]:
    """Lists that give a corner where the others give the centre."""
    few = len(nearness.lists) <= MOST_COMPARED
    if nearness.sight.sizes is None or nearness.sight.turn is not None or not few:
        return
    agree = nearness.pairs.shares.beyond_chance
    offset = np.where(agree[:, :, np.newaxis], nearness.pairs.offset, np.nan)
    half = (np.abs(offset) >= HALF[0]) & (np.abs(offset) <= HALF[1])
    known, away = np.isfinite(offset[:, :, 0]).sum(axis=1), half.all(axis=2).sum(axis=1)
    for f in np.flatnonzero((away > 0) & (2 * away > known) & (away >= away.max())).tolist():
        others = [experts[g] for g in np.flatnonzero(half[f].all(axis=1))]
        share = float(np.nanmedian(np.abs(offset[f])))
        rival = named(others) if len(experts) == 2 else "the others"
        yield Finding(
            "corners",
            f"{experts[f]}: the {words.nouns} lie about half their size away from those of "
            f"{rival}, all in one direction: does one list give a corner where the other gives "
            "the centre?",
            (experts[f],),
            {"offset_in_sizes": share},
        )
        if len(experts) == 2:
            return
