"""The distance dependent CRP of Blei and Frazier (2011), as the representative of CRP extensions.

Every marking follows another or itself, and whoever is connected forms a cluster:

    p(i follows j) ∝ exp(-d_ij / decay)  for j ≠ i,      ∝ alpha  for itself,

where d_ij is the distance in units of the mean of the two diameters, and only markings within
``reach`` of each other may follow one another. The likelihood is the main model's with two
simplifications, so that cluster means integrate out: the covariance is held at its prior mean at
each marking's own size, and size and position are uncorrelated. Families play no part.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.spatial import cKDTree

from dfcrp.baselines.collapsed import (
    CollapsedProblem,
    new_groups,
    new_links,
    new_scratch,
    run_links,
)
from dfcrp.baselines.evidence import compressed_rows, hyper_of, marking_sums, prior_precision
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.settings import CircleSettings
from dfcrp.summaries.streaming import canonical

#: Sweeps done in compiled code before Python has a say again.
BLOCK = 50


def distance_dependent_crp(
    markings: Items,
    *,
    chains: int = 2,
    scans: int = 1000,
    burn_in: int = 250,
    alpha: float = 1.0,
    decay: float = 0.25,
    reach: float = 1.0,
    model: CircleSettings | None = None,
    seed: int = 1,
) -> NDArray[np.int32]:
    """Posterior draws of the partition, labels (chain, draw, marking)."""
    for name, value in (("alpha", alpha), ("decay", decay), ("reach", reach)):
        if not 0 < value < np.inf:
            raise SettingsError(f"{name} is {value}; it must be positive")
    check_length(chains, scans, burn_in)
    problem = _problem(markings, decay, reach, model)
    seeds = np.random.SeedSequence(seed).spawn(chains)
    return np.stack([_run_chain(problem, child, alpha, scans, burn_in) for child in seeds])


def check_length(chains: int, scans: int, burn_in: int) -> None:
    """Refuse runs that leave no draw."""
    if chains < 1 or not 0 <= burn_in < scans:
        raise SettingsError(
            f"{chains} chains of {scans} scans with a burn-in of {burn_in} leave no draws"
        )


def _problem(
    markings: Items, decay: float, reach: float, model: CircleSettings | None
) -> CollapsedProblem:
    hyper = hyper_of(markings, model)
    pairs, apart = _near_pairs(markings, reach)
    start, other, which = compressed_rows(pairs, len(markings))
    return CollapsedProblem(
        start=start,
        other=other,
        log_weight=-apart[which] / decay,
        own=marking_sums(markings, hyper),
        prior=prior_precision(hyper),
        weight=np.ones(len(markings), np.int64),
    )


def _near_pairs(markings: Items, reach: float) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
    """Pairs within ``reach`` mean diameters, with their distance in that unit.

    Octave by octave of size, each among those no larger, so that a few large markings do not
    make all others look far.
    """
    place = np.column_stack([markings.x, markings.y])
    octave = np.floor(np.log2(markings.diameter / markings.diameter.min())).astype(int)
    found = [np.empty((0, 2), np.int64)]
    for level in np.unique(octave):
        here, smaller = np.flatnonzero(octave == level), np.flatnonzero(octave < level)
        furthest = reach * float(markings.diameter[here].max())
        tree = cKDTree(place[here])
        found.append(here[tree.query_pairs(furthest, output_type="ndarray")].reshape(-1, 2))
        if smaller.size:
            across = tree.sparse_distance_matrix(
                cKDTree(place[smaller]), furthest, output_type="ndarray"
            )
            found.append(np.column_stack([here[across["i"]], smaller[across["j"]]]))
    pairs = np.concatenate(found)
    mean_size = markings.diameter[pairs].mean(axis=1)
    apart = np.hypot(*(place[pairs[:, 0]] - place[pairs[:, 1]]).T) / mean_size
    near = apart <= reach
    return pairs[near], apart[near]


def _run_chain(
    problem: CollapsedProblem, seed: np.random.SeedSequence, alpha: float, scans: int, burn_in: int
) -> NDArray[np.int32]:
    rng = np.random.default_rng(seed)
    n = len(problem.weight)
    links, groups, scratch = new_links(n), new_groups(problem), new_scratch(n)
    blocks = []
    for done in range(0, scans, BLOCK):
        slots = np.empty((min(BLOCK, scans - done), n), np.int64)
        run_links(rng, problem, links, groups, scratch, alpha, 1, slots)
        blocks.append(canonical(slots))
    return np.concatenate(blocks)[burn_in:]
