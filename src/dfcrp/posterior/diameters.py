"""Diameters of the objects that enough experts agree on, draw by draw."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.errors import InputError
from dfcrp.markup import plural
from dfcrp.posterior.kernels.summaries import count_experts
from dfcrp.summaries.consensus import family_arrays, parameter_columns
from dfcrp.summaries.streaming import kept, label_blocks, stride_for

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior


def consensus_diameters(
    posterior: Posterior, min_experts: int, limit: int
) -> list[NDArray[np.float64]]:
    """Ascending diameters of the consensus clusters, for at most ``limit`` evenly spaced draws.

    A cluster's diameter is exp of its own log diameter or the mean of its members', as the
    settings say.
    """
    draws, diameters = posterior.draws, posterior.diameters
    if diameters is None:
        raise InputError(f"{plural(posterior.likelihood.noun)} have no diameter")
    parameter = posterior.likelihood.size_parameter()
    from_members = posterior.diameter_from == "members" or parameter is None
    column = 0 if from_members else int(parameter_columns(draws, (str(parameter),))[0])
    step = stride_for(draws, limit)
    codes, holder = family_arrays(posterior.items.families, draws.n_markings)
    experts = np.empty(draws.n_markings, np.int64)
    out = []
    for chain, start, stop, labels in label_blocks(draws):
        chosen = np.arange(stop - start)[kept(start, step)]
        block = None if from_members else draws.clusters(chain, start, stop)
        for d in chosen:
            count_experts(labels[d], codes, holder, experts)
            names = np.flatnonzero(experts >= min_experts)
            if block is None:
                sizes = np.bincount(labels[d], minlength=len(experts))
                sums = np.bincount(labels[d], diameters, minlength=len(experts))
                found = sums[names] / sizes[names]
            else:
                rows = slice(block.offsets[d], block.offsets[d + 1])
                at = np.searchsorted(block.labels[rows], names)
                found = np.exp(block.parameters[rows, column][at].astype(np.float64))
            out.append(np.sort(found))
    return out


def mean_diameters(labels: ArrayLike, diameter: NDArray[np.float64]) -> NDArray[np.float64]:
    """The members' mean diameter of every cluster of one partition; label -1 is noise."""
    codes: NDArray[Any] = np.asarray(labels)
    if codes.shape != diameter.shape:
        raise InputError(
            f"the labels have shape {codes.shape}; there must be one for each of the "
            f"{len(diameter)} items"
        )
    clustered = codes >= 0
    _, cluster = np.unique(codes[clustered], return_inverse=True)
    means: NDArray[np.float64] = np.bincount(cluster, diameter[clustered]) / np.bincount(cluster)
    return means
