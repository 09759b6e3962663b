"""Relatives of the CRP, with cluster means integrated out: distance dependent, and constrained.

The likelihood of both is the main model's with two simplifications, so that cluster means
integrate out: the covariance is held at its prior mean at each marking's own size, and size and
position are uncorrelated.

The distance dependent CRP of Blei and Frazier (2011) represents the CRP's extensions. Every marking
follows another or itself, and whoever is connected forms a cluster:

    p(i follows j) ∝ exp(-d_ij / decay)  for j ≠ i,      ∝ alpha  for itself,

where d_ij is the distance in units of the mean of the two diameters, and only markings within
``reach`` of each other may follow one another. Families play no part.

The constrained Dirichlet process mixture is a CRP cut down to partitions that obey given pairs:
must-link pairs are in one cluster, cannot-link pairs are not; two markings of one expert are a
cannot-link pair unless told otherwise. Among the partitions that obey, probabilities are in the
CRP's proportion, α included:

    p(c, α) ∝ p(α) α^K Π (n_k - 1)! Γ(α) / Γ(α + n)

Items that must be together are moved together, as a block. With no pairs beyond the experts',
``dfcrp.fit(..., prior="constrained")`` has the full likelihood and moves that mix better.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components
from scipy.spatial import cKDTree

from dfcrp.baselines.collapsed import (
    CollapsedProblem,
    new_groups,
    new_links,
    new_scratch,
    run_blocks,
    run_links,
)
from dfcrp.compiled.random import stream
from dfcrp.errors import InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.hyper import CircleSettings, circle_hyper
from dfcrp.likelihoods.circle.neighbours import find_neighbours, mean_variances
from dfcrp.likelihoods.circle.plane import CircleHyper
from dfcrp.priors.arrivals.prior import ArrivalSettings
from dfcrp.settings.config import make_config
from dfcrp.summaries.streaming import canonical


def model_of(preset: str | None) -> CircleSettings:
    """The mixture model's settings under a preset of the paper."""
    found: CircleSettings = make_config({"run": {"preset": preset}}).likelihood
    return found


def alpha_of(preset: str | None) -> ArrivalSettings:
    """The law of the concentration under a preset of the paper."""
    found: ArrivalSettings = make_config({"run": {"preset": preset}}).prior
    return found


def hyper_of(markings: Items, model: CircleSettings | None) -> CircleHyper:
    """The circle likelihood's hyperparameters; the default model without one."""
    return circle_hyper(model or CircleSettings(), markings.features)


def marking_sums(markings: Items, hyper: CircleHyper) -> NDArray[np.float64]:
    """Precisions w and weighted deviations w (y - μ0), one row per marking.

    The covariance is the prior mean at the marking's own size, without correlation (whose prior
    mean is zero).
    """
    position, size = mean_variances(np.log(markings.diameter), hyper)
    precision = 1.0 / np.column_stack([position, position, size])
    away = markings.features - [hyper.mu0_x, hyper.mu0_y, hyper.mu0_l]
    return np.hstack([precision, precision * away])


def prior_precision(hyper: CircleHyper) -> NDArray[np.float64]:
    """Precision of the prior of a cluster's mean, feature by feature."""
    return 1.0 / np.array([hyper.var0_x, hyper.var0_y, hyper.var0_l])


def compressed_rows(
    pairs: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Index pairs, each given once, as rows of neighbours: (start, other, which pair)."""
    first = np.concatenate([pairs[:, 0], pairs[:, 1]])
    second = np.concatenate([pairs[:, 1], pairs[:, 0]])
    by_row = np.lexsort((second, first))
    start = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n))])
    return start.astype(np.int64), second[by_row], by_row % max(len(pairs), 1)


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
    problem = _link_problem(markings, decay, reach, model)
    seeds = np.random.SeedSequence(seed).spawn(chains)
    return np.stack([_run_chain(problem, child, alpha, scans, burn_in) for child in seeds])


def check_length(chains: int, scans: int, burn_in: int) -> None:
    """Refuse runs that leave no draw."""
    if chains < 1 or not 0 <= burn_in < scans:
        raise SettingsError(
            f"{chains} chains of {scans} scans with a burn-in of {burn_in} leave no draws"
        )


def _link_problem(
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
    rng = stream(seed)
    n = len(problem.weight)
    links, groups, scratch = new_links(n), new_groups(problem), new_scratch(n)
    blocks = []
    for done in range(0, scans, BLOCK):
        slots = np.empty((min(BLOCK, scans - done), n), np.int64)
        run_links(rng, problem, links, groups, scratch, alpha, 1, slots)
        blocks.append(canonical(slots))
    return np.concatenate(blocks)[burn_in:]


Pairs = Iterable[tuple[int, int]]
#: Without a radius every two markings are neighbours; beyond so many that is too much to list.
MOST_WITHOUT_RADIUS = 3000


def constrained_crp(
    markings: Items,
    *,
    must_link: Pairs = (),
    cannot_link: Pairs = (),
    families: bool = True,
    chains: int = 2,
    scans: int = 1000,
    burn_in: int = 250,
    radius: float | str | None = "auto",
    model: CircleSettings | None = None,
    alpha: ArrivalSettings | None = None,
    seed: int = 1,
) -> NDArray[np.int32]:
    """Posterior draws of the partition, labels (chain, draw, marking).

    Pairs are of row numbers from 0. ``families=False`` lets an expert's markings share a cluster.
    """
    check_length(chains, scans, burn_in)
    chosen = model or CircleSettings()
    law = alpha or ArrivalSettings()
    shape, rate = law.alpha_shape, law.rate(0.01)
    must, cannot = _checked(must_link, len(markings)), _checked(cannot_link, len(markings))
    block = _blocks(must, len(markings))
    problem = _block_problem(
        markings, block, cannot, families=families, radius=radius, model=chosen
    )
    draws = []
    for child in np.random.SeedSequence(seed).spawn(chains):
        start, prior = np.array([shape / rate]), np.array([shape, rate])
        slots = sample_blocks(problem, child, start, prior, scans)[burn_in:]
        draws.append(canonical(slots[:, block]))
    return np.stack(draws)


def sample_blocks(
    problem: CollapsedProblem,
    seed: np.random.SeedSequence,
    alpha: NDArray[np.float64],
    alpha_prior: NDArray[np.float64],
    scans: int,
) -> NDArray[np.int64]:
    """Slot of every block after each scan; ``alpha`` is changed in place."""
    rng = stream(seed)
    n = len(problem.weight)
    groups, scratch = new_groups(problem), new_scratch(n)
    rows = np.empty((scans, n), np.int64)
    for done in range(0, scans, BLOCK):
        part = rows[done : done + BLOCK]
        run_blocks(rng, problem, groups, scratch, alpha, alpha_prior, 1, part)
    return rows


def _checked(pairs: Pairs, n: int) -> NDArray[np.int64]:
    given = np.array([tuple(pair) for pair in pairs], dtype=np.int64).reshape(-1, 2)
    if given.size and (given.min() < 0 or given.max() >= n):
        raise InputError(f"linked pairs must be of markings 0 to {n - 1}")
    if (given[:, 0] == given[:, 1]).any():
        raise InputError("a marking cannot be linked with itself")
    return given


def _blocks(must: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Block of each marking: must-links carry over from pair to pair."""
    graph = coo_array((np.ones(len(must), np.int8), (must[:, 0], must[:, 1])), shape=(n, n))
    return connected_components(graph, directed=False)[1].astype(np.int64)


def _block_problem(
    markings: Items,
    block: NDArray[np.int64],
    cannot: NDArray[np.int64],
    *,
    families: bool,
    radius: float | str | None,
    model: CircleSettings,
) -> CollapsedProblem:
    hyper = hyper_of(markings, model)
    n_blocks = int(block.max()) + 1
    if radius is None:
        if len(markings) > MOST_WITHOUT_RADIUS:
            raise InputError(
                f"{len(markings)} markings without a radius are too many for this method; "
                'give one, or "auto"'
            )
        near = np.column_stack(np.triu_indices(len(markings), 1))
    else:
        near = find_neighbours(markings.features, markings.families, radius, hyper).pairs
    if families:
        near = near[markings.families[near[:, 0]] != markings.families[near[:, 1]]]
        _refuse_relatives(markings, block)
    own = np.zeros((n_blocks, 6))
    np.add.at(own, block, marking_sums(markings, hyper))
    start, other, _ = compressed_rows(_open_pairs(near, cannot, block), n_blocks)
    return CollapsedProblem(
        start=start,
        other=other,
        log_weight=np.zeros(len(other)),
        own=own,
        prior=prior_precision(hyper),
        weight=np.bincount(block).astype(np.int64),
    )


def _open_pairs(
    near: NDArray[np.int64], cannot: NDArray[np.int64], block: NDArray[np.int64]
) -> NDArray[np.int64]:
    """Pairs of blocks that may share a cluster: every marking of one with every one of the other.

    So many pairs of markings are near as the product of the blocks' sizes, and none is barred.
    """
    size = np.bincount(block)
    barred = _ordered(block[cannot])
    if (barred[:, 0] == barred[:, 1]).any():
        raise InputError("a cannot-link pair must be linked, directly or through others")
    between = _ordered(block[near])
    between = between[between[:, 0] != between[:, 1]]
    found, times = np.unique(between, axis=0, return_counts=True)
    whole = times == size[found[:, 0]] * size[found[:, 1]]
    n_blocks = len(size)
    keys, shut = found @ [n_blocks, 1], barred @ [n_blocks, 1]
    return np.asarray(found[whole & ~np.isin(keys, shut)], np.int64)


def _ordered(pairs: NDArray[np.int64]) -> NDArray[np.int64]:
    return np.sort(pairs.reshape(-1, 2), axis=1)


def _refuse_relatives(markings: Items, block: NDArray[np.int64]) -> None:
    held = np.column_stack([block, markings.families])
    if len(np.unique(held, axis=0)) < len(held):
        raise InputError(
            "must-links join two markings of one expert, which the family rule forbids; "
            "drop the pair, or set families=False"
        )
