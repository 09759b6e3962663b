"""Labels from anywhere as a Posterior, so that every table and figure works on them."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.errors import InputError
from dfcrp.geometry import degrees_of
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.parts import RunRecord
from dfcrp.settings.config import Config, make_config
from dfcrp.summaries.kernels.tables import member_means
from dfcrp.summaries.streaming import canonical

#: Columns of the cluster parameters: the members' plain means, as Robbins et al. took them.
MEANS = Columns(("x", "y", "log_diameter"))


def noise_alone(labels: ArrayLike) -> NDArray[np.int64]:
    """Labels in which every noise marking (-1) is a cluster of its own."""
    given = np.asarray(labels, np.int64).copy()
    noise = np.flatnonzero(given < 0)
    given[noise] = given.max(initial=-1) + 1 + np.arange(noise.size)
    return given


def posterior_of_labels(
    labels: ArrayLike,
    markings: Items,
    *,
    keeps_family_rule: bool = False,
    seconds: float = 0.0,
    **summary: object,
) -> Posterior:
    """A Posterior of labels (n,), (draws, n) or (chains, draws, n); -1 is noise.

    A cluster's position and diameter are the plain means of its members. ``summary`` are
    settings of the summaries (thresholds, class_edges, ...).
    """
    given = np.asarray(labels)
    if given.ndim == 1:
        given = noise_alone(given)[np.newaxis]
    if given.ndim == 2:
        given = given[np.newaxis]
    if given.ndim != 3 or given.shape[2] != len(markings) or given.min() < 0:
        raise InputError(f"labels of shape {np.shape(labels)} do not fit {len(markings)} markings")
    draws = draws_with_means(canonical(given), markings)
    record = RunRecord(scans=draws.n_draws, burn_in=0, thin=1, seconds=seconds)
    return Posterior(draws, markings, _config(draws, keeps_family_rule, summary), record)


def draws_with_means(labels: NDArray[np.int32], markings: Items) -> MemoryDraws:
    """Draws whose cluster parameters are the members' means."""
    features = np.column_stack([markings.places, markings.diameter])
    clusters = []
    for chain in labels:
        per_draw = (chain == np.arange(chain.shape[1])).sum(axis=1)
        offsets = np.concatenate([[0], np.cumsum(per_draw)]).astype(np.int64)
        names = np.empty(offsets[-1], np.int32)
        means = np.empty((offsets[-1], features.shape[1]))
        member_means(np.ascontiguousarray(chain), features, offsets, names, means)
        if markings.site.on_sphere:
            means = np.column_stack([*degrees_of(means[:, :3]), means[:, 3]])
        means[:, 2] = np.log(means[:, 2])
        clusters.append(ClusterBlock(offsets, names, means.astype(np.float32)))
    no_alpha = np.full(labels.shape[:2], np.nan)
    return MemoryDraws(labels, no_alpha, clusters, MEANS)


def _config(draws: MemoryDraws, keeps_family_rule: bool, summary: dict[str, object]) -> Config:
    """Settings that tell the summaries whether the family rule holds."""
    run = {
        "chains": draws.n_chains,
        "scans": draws.n_draws,
        "burn_in": 0,
        "prior": "constrained" if keeps_family_rule else "crp",
    }
    return make_config({"run": run, "summary": summary})
