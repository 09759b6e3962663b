"""However a run is cut into sittings, its draws are those of a run that was never stopped."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from dfcrp.runs.checkpoints import ChainFolder, make_checkpoint_folder
from dfcrp.runs.storage import StoredDraws
from hypothesis import given, settings
from hypothesis import strategies as st

import dfcrp
from dfcrp.sampling.runner import Runner
from dfcrp.sampling.setup import make_problem
from dfcrp.settings.config import make_config

SCANS, CHAINS = 60, 2
MARKINGS = dfcrp.simulate.paper_design(4, n_objects=6)


def sitting(folder: Path, thin: int, prior: str, upto: int, saved: int | None = None) -> None:
    """Go on from the checkpoints to ``upto`` scans, the last checkpoint being at ``saved``."""
    config = make_config({"run": {"preset": "simulation", "prior": prior}})
    problem = make_problem(MARKINGS.features, MARKINGS.families, config)
    make_checkpoint_folder(folder)
    files = [
        ChainFolder.open(folder, number, len(MARKINGS), problem.columns) for number in range(CHAINS)
    ]
    runner = Runner(problem, list(files), seed=3, thin=thin)
    for chain_files, chain in zip(files, runner.chains, strict=True):
        chain_files.restore(chain, thin)
    if saved is not None:
        runner.advance(saved)
        kept = [chain_files.path.read_bytes() for chain_files in files]
    runner.advance(upto)
    if saved is not None:
        # As if the process had been killed after it had stored draws beyond its checkpoint.
        for chain_files, content in zip(files, kept, strict=True):
            chain_files.path.write_bytes(content)


def everything(folder: Path) -> list[Any]:
    draws = StoredDraws(folder)
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
        sitting(folder / "whole", thin, prior, SCANS)
        for cut in cuts:
            sitting(folder / "cut", thin, prior, cut + lost, saved=cut)
        sitting(folder / "cut", thin, prior, max([SCANS, *(cut + lost for cut in cuts)]))
        for whole, found in zip(
            everything(folder / "whole"), everything(folder / "cut"), strict=True
        ):
            same = np.asarray(found)
            if same.shape != whole.shape:  # the last cut may lie beyond the end of the whole
                index = tuple(slice(0, length) for length in whole.shape)
                same = same[index]
            np.testing.assert_array_equal(same, whole)
