"""Exact draws of everything under the detection prior, made by the story that the model tells.

Objects and false marks come about, experts find or miss, and whatever does not come to the
asked-for numbers of markings is thrown away.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.priors.detection.kernel import Detection, with_own

Floats = NDArray[np.float64]
#: Parameters drawn at a time.
BATCH = 4000
#: More false marks than this are not counted: they are thrown away in any case.
TOO_MANY = 1e6


class Story(NamedTuple):
    """One draw: parameters, labels, and the log size of each marking's object."""

    own: Floats
    labels: NDArray[np.int64]
    sizes: Floats


def parts(prior: Detection) -> dict[str, slice]:
    """Where the parameters are in ``own``."""
    ends = np.cumsum([0, *(np.size(part) for part in prior.parameters)])
    return {
        name: slice(a, b)
        for name, (a, b) in zip(prior.parameters._fields, pairwise(ends), strict=True)
    }


def draw_parameters(rng: np.random.Generator, prior: Detection, count: int) -> Floats:
    """Draws of ``own`` from the beliefs, (count, parameters); the easiest class first."""
    beliefs, (classes, persons) = prior.beliefs, prior.parameters.skill.shape
    families = len(prior.person)
    ease = rng.normal(beliefs.ease_mean, beliefs.ease_sd, (count, classes))
    while (low := ease < beliefs.ease_least).any():
        ease[low] = rng.normal(beliefs.ease_mean, beliefs.ease_sd, low.sum())
    ease = -np.sort(-ease, axis=1)
    skill = ease[:, :, None] + beliefs.skill_sd * rng.standard_normal((count, classes, persons))
    slope = beliefs.slope_sd * rng.standard_normal((count, persons))
    listing = rng.beta(beliefs.listing_a, beliefs.listing_b, (count, classes, families))
    alone = prior.lists[prior.person] == 1
    listing[:, :, alone] = prior.parameters.listing[:, alone]
    share = beliefs.share_rate / rng.standard_gamma(beliefs.share_shape, (count, 1))
    false = rng.standard_gamma(beliefs.false_shape, (count, families)) / beliefs.false_shape
    false *= share * beliefs.markings
    objects = rng.standard_gamma(beliefs.objects_shape, (count, 1)) / beliefs.objects_rate
    weight = rng.dirichlet([beliefs.class_weight] * classes, count)
    slope = slope if len(prior.away) > 1 else 0.0 * slope
    return np.concatenate(
        [
            *(weight, ease, skill.reshape(count, -1), slope, listing.reshape(count, -1)),
            *(false, share, objects),
            np.zeros((count, len(prior.parameters.tally))),
        ],
        axis=1,
    )


def level_of(prior: Detection, size: float) -> int:
    """The level whose bounds hold the size, or the nearest."""
    if size < prior.low:
        return 0
    for level in range(len(prior.away)):
        if prior.low + level * prior.step <= size < prior.low + (level + 1) * prior.step:
            return level
    return len(prior.away) - 1


def find_objects(rng: np.random.Generator, prior: Detection, sizes: Floats) -> list[list[int]]:
    """Who lists each object of these sizes, drawn until somebody does."""
    parameters, found = prior.parameters, []
    for size in sizes:
        g = rng.choice(len(parameters.weight), p=parameters.weight)
        level = level_of(prior, size)
        members: list[int] = []
        while not members:
            for p in range(len(prior.lists)):
                logit = parameters.skill[g, p] + parameters.slope[p] * prior.away[level]
                if rng.random() * (1.0 + math.exp(-logit)) < 1.0:
                    lists = [f for f in range(len(prior.person)) if prior.person[f] == p]
                    r = parameters.listing[g]
                    members += [f for f in lists if len(lists) == 1 or rng.random() < r[f]]
        found.append(members)
    return found


def tell_stories(
    rng: np.random.Generator,
    template: Detection,
    families: Sequence[int],
    size_mean: float,
    size_sd: float,
) -> Iterator[Story]:
    """Exact draws, one after the other, given how many markings each expert has."""
    prior = with_own(template, template.own.copy())
    where, wanted = parts(template), np.bincount(families)
    while True:
        batch = draw_parameters(rng, template, BATCH)
        n_false = rng.poisson(np.minimum(batch[:, where["false"]], TOO_MANY))
        n_objects = rng.poisson(batch[:, where["objects"]][:, 0])
        # Fewer objects than an expert still needs markings, or too many false ones, cannot do.
        lacking = wanted - n_false
        hopeful = (lacking >= 0).all(axis=1) & (n_objects >= lacking.max(axis=1))
        for row in np.flatnonzero(hopeful & (n_objects <= lacking.sum(axis=1))):
            prior.own[:] = batch[row]
            sizes = rng.normal(size_mean, size_sd, n_objects[row])
            clusters = find_objects(rng, prior, sizes)
            got = np.bincount([f for held in clusters for f in held], minlength=len(wanted))
            if (got != lacking[row]).any():
                continue
            clusters += [[f] for f, count in enumerate(n_false[row]) for _ in range(count)]
            sizes = np.append(sizes, rng.normal(size_mean, size_sd, n_false[row].sum()))
            yield Story(batch[row], *_hand_out(rng, np.asarray(families), clusters, sizes))


def _hand_out(
    rng: np.random.Generator,
    families: NDArray[np.int64],
    clusters: list[list[int]],
    log_size: Floats,
) -> tuple[NDArray[np.int64], Floats]:
    """Say which of an expert's markings is in which cluster: any, equally likely."""
    label, size = np.zeros(len(families), np.int64), np.zeros(len(families))
    left = {f: rng.permutation(np.flatnonzero(families == f)).tolist() for f in set(families)}
    for k, held in enumerate(clusters):
        for f in held:
            i = left[f].pop()
            label[i], size[i] = k, log_size[k]
    return label, size
