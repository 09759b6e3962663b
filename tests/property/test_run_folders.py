"""Spoiled run folders are refused or read, and any sequence of events leaves a folder in order."""

from __future__ import annotations

import random
from pathlib import Path

import numpy as np
import pytest

from fuzz import sequences
from fuzz.blind import mutated
from fuzz.folders import FILES, WORDS, Spoiler, make_run, try_one

pytestmark = pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("template") / "run"
    make_run(run)
    return run


def test_each_way_to_spoil_a_folder(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The long version is ``python -m fuzz.folders``."""
    monkeypatch.syspath_prepend(tmp_path)
    spoiler, rng = Spoiler(template, tmp_path), random.Random(5)
    seeds = spoiler.seeds()
    assert len(seeds) == len(spoiler._ways)
    for data in [*seeds, *(mutated(rng, seeds, WORDS) for _ in range(40))]:
        try_one(spoiler, data)


def test_what_changes_files_is_a_finding(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fuzz.folders.use", lambda run: (run / "stray").touch())
    with pytest.raises(AssertionError, match="reading changed files"):
        try_one(Spoiler(template, tmp_path), b"\0")


def test_code_that_runs_and_files_that_are_overwritten_are_findings(
    template: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    spoiler = Spoiler(template, tmp_path)
    code, link = (
        next(seed for seed in spoiler.seeds() if spoiler._ways[seed[0]] == way)
        for way in (spoiler._code, spoiler._hard_link)
    )
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr("fuzz.folders.use", lambda run: __import__("spoiled.evil"))
    with pytest.raises(AssertionError, match="reading changed files"):
        try_one(spoiler, code)
    monkeypatch.setattr("fuzz.folders.use", lambda run: None)
    monkeypatch.setattr("fuzz.folders.write", lambda run: (run / FILES[0]).write_text("other"))
    with pytest.raises(AssertionError, match="writing changed files outside"):
        try_one(spoiler, link)


@pytest.mark.filterwarnings("ignore")
def test_any_sequence_leaves_the_folder_in_order() -> None:
    """The long version is ``python -m fuzz.sequences``."""
    sequences.check(times=3, steps=5)


def test_a_killed_disk_changes_nothing_more(tmp_path: Path) -> None:
    done = []
    with sequences.DISK.killed_after(2):
        for step in range(5):
            sequences.DISK.tick()
            done.append(step)
    assert done == [0, 1]
    assert np.array_equal(sequences.whole()[0].shape[:2], (2, sequences.MOST_SCANS))
