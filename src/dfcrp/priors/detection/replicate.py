"""New data from the detection prior: who marks what on which image, by the parameters of a draw.

In arrays, not in a kernel: checks of the fit need a few dozen of these.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.kernel import Detection, LookTables
from dfcrp.priors.detection.skills import (
    log_odds_of_noticing,
    parameters_by_name,
    shares_on_images,
)

Floats = NDArray[np.float64]
Codes = NDArray[np.int64]


class NewLists(NamedTuple):
    """How long the new lists are, look by look."""

    #: (looks,): markings, and those that nobody else has.
    marks: Codes
    alone: Codes


class Replicator:
    """Draws new lists for looks, given as pairs of an image and a list, (looks, 2)."""

    def __init__(self, prior: Detection, looked: Codes) -> None:
        self.prior, looks = prior, prior.looks
        self.lists = len(prior.person)
        #: The image of every zone, and how many viewers looked at it.
        self.image = np.repeat(np.arange(len(looks.zones) - 1), np.diff(looks.zones))
        self.viewers = np.diff(looks.start)
        #: Number, list and covered share of the image of every look.
        self.looked = looked[:, 0] * self.lists + looked[:, 1]
        self.list = looked[:, 1]
        self.covered = _covered(looks, self.image, self.lists, self.looked)

    def draw(self, own: Floats, rng: np.random.Generator) -> NewLists:
        """New lists by one row of parameters."""
        by_name = parameters_by_name(self.prior, own[np.newaxis])
        found = {name: values[0] for name, values in by_name.items()}
        item, look = self._marked(found, rng)
        others = np.bincount(item)[item] if item.size else item
        false = rng.poisson(false_rates(found, self.list, rng) * self.covered)
        return NewLists(self._by_look(look) + false, self._by_look(look[others == 1]) + false)

    def _by_look(self, look: Codes) -> Codes:
        """How many there are of each look."""
        order = np.sort(look)
        ends = np.searchsorted(order, self.looked, side="right")
        return np.asarray(ends - np.searchsorted(order, self.looked))

    def _marked(self, found: Mapping[str, Floats], rng: np.random.Generator) -> tuple[Codes, Codes]:
        """An object and a look for every marking of a new object."""
        prior, looks = self.prior, self.prior.looks
        share = shares_on_images(prior, found["class_weight"], found["image_ease"])
        expected = (found["expected_objects"][:, np.newaxis] * share)[self.image]
        number = rng.poisson(expected * looks.share[:, np.newaxis])
        zone, g = (np.repeat(at, number.ravel()) for at in np.indices(number.shape).reshape(2, -1))
        level = np.where(
            g < prior.real,
            _choose(found["size_share"], len(zone), rng),
            _choose(found["false_size"], len(zone), rng),
        )
        unseen = -np.logaddexp(0.0, found["notice"].mean(axis=1))
        kept = rng.random(len(zone)) < np.exp(looks.silent[zone] * unseen[g])
        zone, g, level = zone[kept], g[kept], level[kept]
        item, at = _each(self.viewers[zone])
        viewer = looks.viewer[looks.start[zone[item]] + at]
        p = looks.viewer_person[viewer]
        logit = log_odds_of_noticing(found, g[item], p, prior.away[level[item]])
        noticed = np.flatnonzero(rng.random(len(item)) < 1.0 / (1.0 + np.exp(-logit)))
        item, viewer, p = item[noticed], viewer[noticed], p[noticed]
        which, at = _each(looks.viewer_row[viewer + 1] - looks.viewer_row[viewer])
        f = looks.row_list[looks.viewer_row[viewer[which]] + at]
        item, p = item[which], p[which]
        listing = np.where(prior.lists[p] > 1, found["listing"][g[item], f], 1.0)
        listed = np.flatnonzero(rng.random(len(item)) < listing)
        item, f = item[listed], f[listed].astype(np.int64)
        return item, self.image[zone[item]] * self.lists + f


def false_rates(found: Mapping[str, Floats], lists: Codes, rng: np.random.Generator) -> Floats:
    """Expected false marks of new looks by these lists, if all of an image is covered."""
    shape = float(found["look_shape"][0])
    usual = np.asarray(found["false_marks"][lists])
    return usual if np.isinf(shape) else usual * rng.gamma(shape, size=len(lists)) / shape


def _covered(looks: LookTables, image: Codes, lists: int, looked: Codes) -> Floats:
    """The share of its image that each look covers; looks are numbered image · lists + list."""
    zone, at = _each(np.diff(looks.start))
    viewer = looks.viewer[looks.start[zone] + at]
    which, at = _each(looks.viewer_row[viewer + 1] - looks.viewer_row[viewer])
    f = looks.row_list[looks.viewer_row[viewer[which]] + at]
    keys, where = np.unique(image[zone[which]] * lists + f, return_inverse=True)
    share = np.bincount(where, weights=looks.share[zone[which]])
    at = np.minimum(np.searchsorted(keys, looked), len(keys) - 1)
    return np.where(keys[at] == looked, share[at], 0.0)


def _each(counts: NDArray[np.integer]) -> tuple[Codes, Codes]:
    """For so many of each: which it is, and its number among them."""
    which = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return which, np.arange(len(which)) - first[which]


def _choose(weights: Floats, count: int, rng: np.random.Generator) -> Codes:
    return rng.choice(len(weights), size=count, p=weights / weights.sum()).astype(np.int64)
