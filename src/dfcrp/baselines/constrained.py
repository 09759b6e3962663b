"""The constrained Dirichlet process mixture: a CRP cut down to partitions that obey given pairs.

Must-link pairs are in one cluster, cannot-link pairs are not; two markings of one expert are a
cannot-link pair unless told otherwise. Among the partitions that obey, probabilities are in the
CRP's proportion, α included:

    p(c, α) ∝ p(α) α^K Π (n_k - 1)! Γ(α) / Γ(α + n)

Items that must be together are moved together, as a block. The likelihood is the collapsed one
of ``dfcrp.baselines.collapsed``. With no pairs beyond the experts', ``dfcrp.fit(...,
prior="constrained")`` has the full likelihood and moves that mix better.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from dfcrp.baselines.collapsed import CollapsedProblem, new_groups, new_scratch, run_blocks
from dfcrp.baselines.distance_dependent import BLOCK, check_length
from dfcrp.baselines.evidence import compressed_rows, hyper_of, marking_sums, prior_precision
from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.settings import CircleSettings
from dfcrp.priors.arrivals.settings import ArrivalSettings
from dfcrp.summaries.streaming import canonical

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
    problem = _problem(markings, block, cannot, families=families, radius=radius, model=chosen)
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
    rng = np.random.default_rng(seed)
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


def _problem(
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
