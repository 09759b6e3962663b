"""However a run is cut by stops and kills, its draws are those of a run that was never stopped."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dfcrp
from dfcrp.runs import blocks
from dfcrp.runs.store import STORE, DrawStore
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.runner import Runner
from dfcrp.settings.config import make_config

SCANS, CHAINS = 60, 2
ITEMS = dfcrp.simulate.paper_design(4, n_objects=6)


@pytest.fixture(autouse=True, scope="module")
def short_blocks() -> Iterator[None]:
    """Blocks that are full, and so written, between two saves."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks, "MOST_DRAWS", 7)
        yield


def resume(folder: Path, thin: int, prior: str, upto: int, saved: int | None = None) -> None:
    """Go on from the last save to ``upto`` scans, the last save being at ``saved``."""
    config = make_config({"run": {"preset": "simulation", "prior": prior}})
    problem = problem_of(ITEMS, config)
    store = DrawStore.open(folder) if (folder / STORE).exists() else DrawStore.create(folder)
    writers = [store.writer(0, chain, problem.n, problem.columns) for chain in range(CHAINS)]
    runner = Runner(problem, list(writers), seed=3, thin=thin)
    runner.restore()
    if saved is not None:
        runner.advance(saved)
        # From here on as if the process were killed before it saves again.
        for writer in writers:
            writer.save = lambda *_: None  # type: ignore[method-assign]
    runner.advance(upto)


def everything(folder: Path) -> list[Any]:
    draws = DrawStore.open(folder).draws(0)
    clusters = [draws.clusters(chain, 0, draws.n_draws) for chain in range(draws.n_chains)]
    parts = [part for block in clusters for part in vars(block).values()]
    return [draws.label_array(), draws.alpha(), *parts]


@settings(max_examples=12, deadline=None)
@given(
    cuts=st.lists(st.integers(0, SCANS), max_size=4).map(sorted),
    lost=st.integers(0, 15),
    thin=st.sampled_from([1, 3]),
    prior=st.sampled_from(["dfcrp", "constrained", "crp"]),
)
def test_any_cut_gives_the_draws_of_the_whole(
    cuts: list[int], lost: int, thin: int, prior: str
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "whole").mkdir()
        (folder / "cut").mkdir()
        resume(folder / "whole", thin, prior, SCANS)
        for cut in cuts:
            resume(folder / "cut", thin, prior, cut + lost, saved=cut)
        resume(folder / "cut", thin, prior, max([SCANS, *(cut + lost for cut in cuts)]))
        for whole, found in zip(
            everything(folder / "whole"), everything(folder / "cut"), strict=True
        ):
            same = np.asarray(found)
            if same.shape != whole.shape:  # the last cut may lie beyond the end of the whole
                index = tuple(slice(0, length) for length in whole.shape)
                same = same[index]
            np.testing.assert_array_equal(same, whole)
