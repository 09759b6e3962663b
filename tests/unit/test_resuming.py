"""``dfcrp.resume``: same draws as never stopped; longer runs; what is refused."""

from __future__ import annotations

import errno
import json
import os
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import DfcrpError, DfcrpWarning, InputError, RunFolderError, SettingsError
from dfcrp.fitting.progress import Tracker
from dfcrp.items.site import Ring, Site
from dfcrp.runs.lock import LOCK, locked
from dfcrp.runs.parts import next_look
from dfcrp.runs.store import DrawStore
from dfcrp.sampling.chain import DrawBlock
from dfcrp.sampling.runner import Progress
from dfcrp.settings.config import make_config
from fuzz.zipped import place_of_member

SETTINGS: dict[str, Any] = {"chains": 2, "seed": 4, "thin": 2}


@pytest.fixture(scope="module")
def markings() -> dfcrp.Items:
    return dfcrp.simulate.paper_design(
        2, n_objects=6, detection=(1, 0.9, 0.8), false_rate=(0.2,) * 3
    )


@pytest.fixture(scope="module")
def finished(markings: dfcrp.Items, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    dfcrp.fit(markings, out=out, scans=40, **SETTINGS)
    return out


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    """A copy of a finished run of 40 scans, to be spoilt."""
    return Path(shutil.copytree(finished, tmp_path / "run"))


def same(first: dfcrp.Posterior, second: dfcrp.Posterior) -> None:
    np.testing.assert_array_equal(first.labels, second.labels)
    np.testing.assert_array_equal(first.alpha, second.alpha)
    for chain in range(first.draws.n_chains):
        one = first.draws.clusters(chain, 0, first.draws.n_draws)
        two = second.draws.clusters(chain, 0, second.draws.n_draws)
        for part in ("offsets", "labels", "parameters"):
            np.testing.assert_array_equal(getattr(one, part), getattr(two, part))


def stop_after(scans: int) -> Any:
    """A progress function that fails, as a kill would, once a chain has come so far."""

    def watch(seen: Any) -> None:
        if seen.scans >= scans:
            raise ZeroDivisionError("planted")

    return watch


# Going on


def test_a_finished_run_is_extended(run: Path, markings: dfcrp.Items) -> None:
    longer = dfcrp.resume(run, scans=100)
    assert (longer.record.scans, longer.record.burn_in) == (100, 25)
    whole = dfcrp.fit(markings, scans=100, **SETTINGS)
    same(longer, whole)
    same(dfcrp.load(run), whole)
    assert longer.record.tallies == whole.record.tallies
    assert dfcrp.load(run).config.run.scans == 100
    assert json.loads((run / "summary.json").read_text())["scans"] == 100


def test_a_run_that_broke_off_goes_on(markings: dfcrp.Items, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with pytest.raises(ZeroDivisionError):
        dfcrp.fit(
            markings, out=out, scans=90, checkpoint_seconds=0, progress=stop_after(30), **SETTINGS
        )
    with pytest.raises(RunFolderError, match=r"`dfcrp resume .*` continues"):
        dfcrp.load(out)
    same(dfcrp.resume(out), dfcrp.fit(markings, scans=90, **SETTINGS))
    assert not (out / LOCK).exists()


def test_results_stay_readable_while_a_run_is_extended(run: Path) -> None:
    before = dfcrp.load(run).labels
    with pytest.raises(ZeroDivisionError):
        dfcrp.resume(run, scans=300, progress=stop_after(60))
    np.testing.assert_array_equal(dfcrp.load(run).labels, before)


def test_a_finished_run_without_more_scans_is_left_as_it_is(run: Path) -> None:
    before = dfcrp.load(run)
    (run / "catalogue.csv").unlink()
    same(dfcrp.resume(run), before)
    assert (run / "catalogue.csv").exists()


def test_an_open_ended_run_looks_when_it_would_have(markings: dfcrp.Items, tmp_path: Path) -> None:
    def looks_of(call: Any) -> tuple[dfcrp.Posterior, list[int]]:
        looks: list[int] = []
        return call(lambda posterior: looks.append(posterior.record.scans)), looks

    out = tmp_path / "run"
    settings: dict[str, Any] = {"chains": 2, "seed": 4}
    dfcrp.fit(markings, out=out, max_scans=300, **settings)
    found, late = looks_of(lambda f: dfcrp.resume(out, max_scans=4000, on_look=f))
    whole, all_looks = looks_of(
        lambda f: dfcrp.fit(markings, max_scans=4000, on_look=f, **settings)
    )
    assert late == [scans for scans in all_looks if scans >= 300]
    same(found, whole)


@pytest.mark.parametrize(
    ("scans", "look"),
    [(0, 500), (500, 500), (501, 750), (751, 1000), (1001, 1500), (3000, 3000), (4001, 4500)],
)
def test_the_next_look(scans: int, look: int) -> None:
    assert next_look(1, 4500, scans) == look


def test_a_lost_checkpoint_costs_time_only(run: Path, markings: dfcrp.Items) -> None:
    shard_of(run, 1).unlink()
    same(dfcrp.resume(run, scans=60), dfcrp.fit(markings, scans=60, **SETTINGS))


def test_filters_and_markings_need_no_input_file(run: Path) -> None:
    provenance = json.loads((run / "provenance.json").read_text())
    provenance["filters"] = {"min_diameter": 18}
    (run / "provenance.json").write_text(json.dumps(provenance))
    assert dfcrp.resume(run).markings.filters == {"min_diameter": 18}
    assert json.loads((run / "provenance.json").read_text())["filters"] == {"min_diameter": 18}


def test_the_site_comes_back(markings: dfcrp.Items, tmp_path: Path) -> None:
    square = Ring(((0.0, 0.0), (9.0, 0.0), (9.0, 9.0)), hole=True)
    there = Site("km", body_radius_km=1737.4, area_km2=81.0, boundary=(square,))
    dfcrp.fit(replace(markings, site=there), out=tmp_path / "run", scans=10, **SETTINGS)
    assert dfcrp.load(tmp_path / "run").markings.site == there
    assert dfcrp.resume(tmp_path / "run", scans=12).markings.site == there


def test_progress_counts_what_was_done_before(markings: dfcrp.Items) -> None:
    config = make_config({"run": {"chains": 2, "scans": 400}})
    tracker = Tracker(markings.families, config, [100, 150])
    labels = np.zeros((1, len(markings)), np.int32)
    block = DrawBlock(labels, np.ones(1), *[np.zeros(0)] * 4)
    seen = tracker.note(Progress(chain=0, scans=200, target=400, last=block))
    assert seen.scans == (200 + 150) / 2


def test_workers_take_turns(markings: dfcrp.Items) -> None:
    """No chain is far ahead of another, also when there are more chains than workers."""
    scans = [0] * 5

    leads: list[int] = []

    def watch(seen: Progress) -> None:
        scans[seen.chain] = seen.scans
        leads.append(max(scans) - min(scans))

    dfcrp.fit(markings, chains=5, scans=6000, workers=2, progress=watch)
    # Blocks have at most 512 scans here, and a chain may be four of them ahead when it begins one;
    # a chain whose block is done may not have said so yet.
    assert max(leads) <= (4 + 1 + 1) * 512


# A full disk


def fill_disk(patch: pytest.MonkeyPatch) -> None:
    def full(descriptor: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    patch.setattr(os, "fsync", full)


def test_a_full_disk_costs_no_earlier_draw(
    run: Path, markings: dfcrp.Items, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = dfcrp.load(run).labels

    def fill(seen: Any) -> None:
        if seen.scans >= 60:
            fill_disk(monkeypatch)

    with pytest.raises(DfcrpError, match=r"the disk is full.*safe.*`dfcrp resume` continues"):
        dfcrp.resume(run, scans=400, progress=fill)
    monkeypatch.undo()
    np.testing.assert_array_equal(dfcrp.load(run).labels, before)
    assert not [path for path in run.rglob("*") if path.suffix in {".tmp", ".part"}]
    same(dfcrp.resume(run), dfcrp.fit(markings, scans=400, **SETTINGS))


def test_a_disk_that_is_full_from_the_start(
    markings: dfcrp.Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill_disk(monkeypatch)
    with pytest.raises(DfcrpError, match="the disk is full"):
        dfcrp.fit(markings, out=tmp_path / "run", scans=10)
    assert not (tmp_path / "run").exists()


# What is refused


def test_other_settings_are_refused(run: Path) -> None:
    text = (run / "config.toml").read_text()
    (run / "config.toml").write_text(text.replace('radius = "auto"', "radius = 60"))
    with pytest.raises(RunFolderError, match=r"run\.radius is 60\.0, it was 'auto'.*Put it back"):
        dfcrp.resume(run, scans=60)


def test_other_data_are_refused(run: Path) -> None:
    lines = (run / "markings.csv").read_text().splitlines()
    (run / "markings.csv").write_text("\n".join(lines[:-1]) + "\n")
    with pytest.raises(RunFolderError, match=r"markings\.csv is not what the run was made from"):
        dfcrp.resume(run, scans=60)


def shard_of(run: Path, chain: int) -> Path:
    """The shard that holds the last draws of a chain, and its state."""
    return DrawStore.open(run).spans(0, chain)[-1].block.shard.path


def test_a_damaged_checkpoint_is_named(run: Path) -> None:
    shard = path = shard_of(run, 0)
    content = bytearray(path.read_bytes())
    place = place_of_member(path, "state/label/c/0")
    content[(place.start + place.stop) // 2] ^= 0xFF
    for damaged in (bytes(content), content[: len(content) // 2], b"", b"no zip"):
        path.write_bytes(damaged)
        with pytest.raises(RunFolderError, match=shard.name):
            dfcrp.resume(run, scans=60)


def test_a_checkpoint_of_another_run_does_not_fit(run: Path, tmp_path: Path) -> None:
    other = dfcrp.simulate.paper_design(3, n_objects=9)
    dfcrp.fit(other, out=tmp_path / "other", scans=10, **SETTINGS)
    shard_of(run, 0).unlink()
    shard = shard_of(tmp_path / "other", 0)
    shutil.copy(shard, run / "draws.zarr" / shard.name)
    with pytest.raises(RunFolderError, match=r"does not fit|not belong|of different"):
        dfcrp.resume(run, scans=60)


def test_a_saved_posterior_has_no_way_on(markings: dfcrp.Items, tmp_path: Path) -> None:
    dfcrp.fit(markings, scans=20, **SETTINGS).save(tmp_path / "saved")
    with pytest.raises(RunFolderError, match="holds no checkpoints"):
        dfcrp.resume(tmp_path / "saved")


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"scans": 39}, "has 40 scans already"),
        ({"max_scans": 50}, "extend it with --scans"),
        ({"scans": 50, "max_scans": 50}, "not both"),
        ({"scans": 60, "workers": 0}, "run.workers is 0"),
    ],
)
def test_wrong_lengths(run: Path, changes: dict[str, Any], said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        dfcrp.resume(run, **changes)


def test_a_folder_in_use_is_refused(run: Path) -> None:
    with locked(run), pytest.raises(RunFolderError, match=f"process {os.getpid()} .* is working"):
        dfcrp.resume(run, scans=60)


def test_another_version_is_mentioned(run: Path) -> None:
    path = run / "provenance.json"
    written = json.loads(path.read_text())
    path.write_text(json.dumps({**written, "kernels": "of old"}))
    with pytest.warns(DfcrpWarning, match="another version of kernels"):
        dfcrp.resume(run, scans=44)


def test_no_run(tmp_path: Path) -> None:
    for path in (tmp_path / "nowhere", tmp_path):
        with pytest.raises(InputError, match=r"no such run folder|not a run folder"):
            dfcrp.resume(path)


def test_what_a_kill_at_the_very_start_leaves_can_be_used(
    markings: dfcrp.Items, tmp_path: Path
) -> None:
    for name in (LOCK, "markings.csv", "config.toml.part"):
        (tmp_path / name).write_text("half")
    (tmp_path / LOCK).write_text("")
    with pytest.raises(RunFolderError, match="stopped before it began; fit again"):
        dfcrp.resume(tmp_path)
    assert dfcrp.fit(markings, out=tmp_path, scans=10, **SETTINGS).record.scans == 10


def test_someones_markings_are_not_taken_for_such_a_start(
    markings: dfcrp.Items, tmp_path: Path
) -> None:
    (tmp_path / "markings.csv").write_text("mine")
    with pytest.raises(InputError, match="not an empty folder"):
        dfcrp.fit(markings, out=tmp_path, scans=10)
    assert (tmp_path / "markings.csv").read_text() == "mine"


def test_a_start_that_was_killed_before_the_run_began_is_no_obstacle(tmp_path: Path) -> None:
    out = tmp_path / "run"
    DrawStore.create(out)
    (out / LOCK).touch()  # killed here: no provenance.json yet, and no draws
    found = dfcrp.fit(dfcrp.simulate.paper_design(1), chains=1, scans=4, seed=1, out=out)
    assert found.labels.shape[1] > 0
    assert dfcrp.load(out).labels.shape == found.labels.shape
