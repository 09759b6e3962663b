"""Posteriors survive pickling, as scikit-learn, joblib and multiprocessing ask for it."""

from __future__ import annotations

import pickle
from dataclasses import replace
from pathlib import Path

import numpy as np

import dfcrp
from dfcrp.draws import DrawBlock
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.parts import Parts
from dfcrp.runs.store import MemoryStore
from reference.small_posteriors import random_posterior


def same(posterior: Posterior) -> None:
    """A copy without anything that was computed before has the same answers."""
    copy = pickle.loads(pickle.dumps(posterior))
    np.testing.assert_array_equal(copy.labels, posterior.labels)
    np.testing.assert_array_equal(copy.alpha, posterior.alpha)
    for table in ("catalogue", "members", "experts"):
        assert getattr(copy, table)().equals(getattr(posterior, table)())
    assert copy.images == posterior.images
    # Once more, now with summaries.
    assert pickle.loads(pickle.dumps(posterior)).summary() == posterior.summary()


def in_memory(posterior: Posterior, parts: int = 1) -> MemoryStore:
    """The same draws for every part, as a run without a folder has them."""
    store, draws = MemoryStore(), posterior.draws
    for part in range(parts):
        for chain in range(draws.n_chains):
            block = draws.clusters(chain, 0, draws.n_draws)
            writer = store.writer(part, chain, draws.n_markings, draws.columns)
            writer.append(
                DrawBlock(
                    draws.labels(chain, 0, draws.n_draws),
                    posterior.alpha[chain],
                    block.offsets,
                    block.labels,
                    block.parameters,
                    draws.shared()[chain],
                )
            )
    return store


def test_of_one_image_in_memory() -> None:
    made = random_posterior(5)
    draws = in_memory(made).draws()
    same(Posterior(draws, made.items, made.config, made.record))


def test_of_one_image_on_disk(tmp_path: Path) -> None:
    random_posterior(6, n_chains=4).save(tmp_path / "run")
    found = dfcrp.load(tmp_path / "run")
    assert len(pickle.dumps(found.draws)) < 5000, "a pickle names the folder, and holds no draws"
    same(found)


def test_of_several_images(tmp_path: Path) -> None:
    made = random_posterior(7)
    n, one = len(made.items), made.items
    items = dfcrp.Items.circles(
        *(np.tile(values, 2) for values in (one.x, one.y, one.diameter, one.expert)),
        image=np.repeat(["p", "q"], n),
    )
    record = replace(made.record, scans=made.draws.n_draws, burn_in=0)
    parts = Parts.of_run(items, made.config)
    posterior = Posterior.of_images(parts, [record, record], in_memory(made, 2), record)
    same(posterior)
    posterior.save(tmp_path / "run")
    same(dfcrp.load(tmp_path / "run"))
