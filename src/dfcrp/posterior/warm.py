"""Compile the summaries ahead of use, and a part of the sampler, in a process of their own while
a first run compiles the rest of its sampler: on two cores the one hides behind the other.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np

from dfcrp.draws import ClusterBlock, Columns, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.columns import CIRCLE_COLUMNS
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.record import RunRecord
from dfcrp.sampling.warm import warm_up_from_the_end
from dfcrp.settings.config import make_config
from dfcrp.summaries.streaming import canonical


def warm_up_beside() -> None:
    """Start ``warm_up`` in another process if nothing is compiled yet, and do not wait for it."""
    from dfcrp.compiled import jit
    from dfcrp.sampling.runner import cores

    if not jit.INTERPRETED and cores() > 1 and not any(Path(jit.CACHE).rglob("*.nbi")):
        subprocess.Popen(
            [sys.executable, "-m", "dfcrp.posterior.warm"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )


def warm_up() -> None:
    """Summarise a few simulated draws of five experts' eight markings each."""
    rng = np.random.default_rng(0)
    experts, each, chains, draws = 5, 8, 2, 12
    raw = [
        np.concatenate([rng.permutation(each + 2)[:each] for _ in range(experts)])
        for _ in range(chains * draws)
    ]
    labels = canonical(np.array(raw)).reshape(chains, draws, experts * each)
    blocks = []
    for chain in labels:
        names = [np.unique(draw) for draw in chain]
        offsets = np.concatenate([[0], np.cumsum([len(name) for name in names])])
        parameters = rng.random((offsets[-1], len(CIRCLE_COLUMNS.parameters))).astype(np.float32)
        blocks.append(ClusterBlock(offsets, np.concatenate(names), parameters))
    columns = Columns(CIRCLE_COLUMNS.parameters)
    stored = MemoryDraws(labels, rng.random((chains, draws)), blocks, columns)
    n = experts * each
    markings = Items.circles(
        rng.random(n), rng.random(n), 1.0 + rng.random(n), [f"expert {i // each}" for i in range(n)]
    )
    posterior = Posterior(stored, markings, make_config(), RunRecord(draws, 0, 1, 0.0))
    posterior.summary()
    posterior.catalogue()
    posterior.members()


if __name__ == "__main__":
    warm_up_from_the_end()
    warm_up()
