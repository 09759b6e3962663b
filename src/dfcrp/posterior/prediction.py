"""Where new items would belong, given the point partition of a run."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.posterior.kernels.predictive import weigh_new
from dfcrp.posterior.posterior import Posterior
from dfcrp.sampling.setup import problem_of

Floats = NDArray[np.float64]


def membership_of_new(
    posterior: Posterior, values: Floats, families: NDArray[np.int64] | None = None
) -> Floats:
    """(m, K + 1): probability of each cluster of the point partition, and of none of them.

    The weight of a cluster is its size times the predictive density given its members, of none α
    times the prior's; what all clusters share, and α, are at their posterior means. ``families``
    are codes of the new items' sources (-1: a source not seen before); a cluster that holds the
    source already is barred.
    """
    items = posterior.items
    problem = problem_of(items, posterior.config)
    shared = posterior.draws.shared().reshape(-1, posterior.draws.columns.width)
    hyper = problem.hyper._replace(law=shared.mean(axis=0)[: len(problem.hyper.law)])
    names, code = np.unique(posterior.point_partition().labels, return_inverse=True)
    new = posterior.likelihood.features_of_new(items, values)
    weight = np.empty((len(new), len(names) + 1))
    theta = np.zeros((len(names) + 1, problem.row_width))
    weigh_new(
        hyper, items.features, code.astype(np.int64), np.ascontiguousarray(new), theta, weight
    )
    sizes = np.append(np.bincount(code), posterior.alpha.mean())
    weight += np.log(sizes)
    if families is not None:
        weight[:, :-1][_barred(items.families, code, families, len(names))] = -np.inf
    weight -= weight.max(axis=1, keepdims=True)
    chance: Any = np.exp(weight)
    return chance / chance.sum(axis=1, keepdims=True)


def _barred(
    own: NDArray[np.int64], code: NDArray[np.int64], new: NDArray[np.int64], count: int
) -> NDArray[np.bool_]:
    """(m, K): whether the cluster has a member of the new item's source."""
    holds = np.zeros((count, int(own.max()) + 2), dtype=np.bool_)
    holds[code, own] = True
    return holds.T[new]
