"""Sampling with a likelihood from outside the package; see docs/own-likelihood.md."""

from __future__ import annotations

import hashlib
import inspect
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.items.measurements import Measurements
from dfcrp.likelihoods.normal.pilot import find_pilot
from dfcrp.neighbours.features import find_feature_neighbours
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.settings.config import make_config


def fingerprint(module: ModuleType) -> NDArray[Any]:
    """An empty array whose type tells the source of a module, to be put into the hyperparameters.

    Compiled samplers are kept on disk by the types of their arguments. With this among them a
    changed source is another type, and a sampler compiled from the old one is not taken for it.
    """
    digest = hashlib.sha256(inspect.getsource(module).encode()).hexdigest()
    return np.empty(0, dtype=[(f"source_{digest[:16]}", np.int8)])


def sample_own(
    features: ArrayLike,
    families: ArrayLike | None,
    hyper: Any,
    *,
    row_width: int,
    columns: Columns,
    chains: int = 2,
    scans: int = 1000,
    burn_in: int = 250,
    radius: float | str | None = None,
    candidates: ArrayLike | None = None,
    seed: int = 1,
) -> MemoryDraws:
    """Draws for ``dfcrp.point_partition`` and all that takes draws.

    ``hyper`` is the named tuple that the kernels are registered for, ``columns`` names what its
    ``record_row`` writes and the entries of its law. ``radius`` and ``candidates`` are as in
    ``dfcrp.fit``.
    """
    items = Measurements.from_arrays(features, families, candidates=candidates)
    model = make_config().model
    pilot = find_pilot(items.shape, items.features, items.families, model.growth_x)
    neighbourhood = find_feature_neighbours(
        items.shape,
        items.features,
        items.families,
        pilot.scales(items.shape, items.features, model.growth_x),
        radius=radius,
        nearest=None,
        candidates=items.candidates,
    )
    use_order = families is not None
    problem = Problem(
        data=build_data(items.values, items.families, neighbourhood),
        hyper=hyper,
        prior=Arrivals(use_order, True, model.alpha_shape, model.alpha_rate, np.empty(0)),
        alpha_start=1.0,
        row_width=row_width,
        likelihood_columns=columns,
    )
    blocks = []
    for child in np.random.SeedSequence(seed).spawn(chains):
        chain = Chain(problem, child, "exact")
        chain.run(1, burn_in)
        blocks.append(chain.run(scans - burn_in, 1))
    return MemoryDraws(
        np.stack([block.labels for block in blocks]),
        np.stack([block.alpha for block in blocks]),
        [ClusterBlock(b.offsets, b.cluster_labels, b.parameters) for b in blocks],
        columns,
        np.stack([block.shared for block in blocks]),
    )
