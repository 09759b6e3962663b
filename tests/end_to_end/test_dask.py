"""Chains on a real Dask cluster: the same draws, also when a worker is killed on the way."""

from __future__ import annotations

import os
import signal
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpError, SettingsError
from dfcrp.runs.dask import ClusterRunner, StopSign, connected
from dfcrp.runs.lock import taken_over
from dfcrp.runs.store import DrawStore
from fuzz.cluster_kills import ClusterTrial
from studies.made_up_crowds import CrowdDesign, make_crowd
from studies.simulation import Plan, run_study

EXTRA = "needs the extra: pip install dfcrp[dask]"
dask = pytest.importorskip("dask", reason=EXTRA)
distributed = pytest.importorskip("distributed", reason=EXTRA)

# Dask's own warnings, when a worker is killed.
pytestmark = pytest.mark.filterwarnings("ignore")


@pytest.fixture(scope="module")
def cluster() -> Any:
    """Two workers, each a process; one that dies is started again."""
    quiet = {"logging.distributed": "critical"}
    with (
        dask.config.set(quiet),
        distributed.LocalCluster(
            n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50
        ) as started,
    ):
        yield started


@pytest.fixture(scope="module")
def markings() -> dfcrp.Items:
    return dfcrp.simulate.paper_design(3)


def same_draws(first: dfcrp.Posterior, second: dfcrp.Posterior) -> bool:
    return np.array_equal(first.labels, second.labels) and np.array_equal(first.alpha, second.alpha)


def test_draws_are_those_of_one_machine(cluster: Any, markings: dfcrp.Items, tmp_path: Path):
    settings = {"chains": 3, "scans": 60, "seed": 5}
    here = dfcrp.fit(markings, out=tmp_path / "here", **settings)
    there = dfcrp.fit(markings, out=tmp_path / "there", dask=cluster.scheduler_address, **settings)
    assert same_draws(here, there)
    assert here.record.tallies == there.record.tallies
    more = dfcrp.resume(tmp_path / "there", scans=90, dask=cluster.scheduler_address)
    assert same_draws(dfcrp.resume(tmp_path / "here", scans=90), more)


@pytest.mark.long
def test_crowds_are_drawn_as_on_one_machine(cluster: Any, tmp_path: Path):
    design = CrowdDesign(images=8, volunteers=6, looks=4, spammers=1, kind="boxes", scores=True)
    items = make_crowd(design, 6).items
    settings = {"prior": "detection", "chains": 2, "scans": 12, "burn_in": 4, "seed": 3}
    here = dfcrp.fit(items, **settings)
    there = dfcrp.fit(items, out=tmp_path / "there", dask=cluster.scheduler_address, **settings)
    assert np.array_equal(here.labels, there.labels)
    assert np.array_equal(here.draws.shared(), there.draws.shared())


def kill_busy_worker(cluster: Any, folder: Path, beyond: int) -> int:
    """Once the chain has a checkpoint beyond so many scans, kill its worker; the scans by then."""
    store = DrawStore.open(folder)
    with distributed.Client(cluster, set_as_default=False) as client:
        # Who is at work is asked first: on a busy machine the chain could be done meanwhile.
        while not (busy := {name for name, tasks in client.processing().items() if tasks}):
            time.sleep(0.02)
        [victim] = [one for one in cluster.workers.values() if one.worker_address in busy]
        while (done := store.scans(0, 1)[0]) <= beyond:
            time.sleep(0.02)
        os.kill(victim.process.pid, signal.SIGKILL)
    return done


def test_a_killed_worker_costs_the_time_since_its_checkpoint(
    cluster: Any, markings: dfcrp.Items, tmp_path: Path
) -> None:
    """With a checkpoint after every block, another worker goes on from where the killed one was."""
    folder, scans = tmp_path / "run", 8_000
    settings = {"chains": 1, "thin": 20, "seed": 5, "checkpoint_seconds": 0.0}
    begun = dfcrp.fit(markings, out=folder, scans=20, **settings)
    killed: list[int] = []
    killer = threading.Thread(
        target=lambda: killed.append(kill_busy_worker(cluster, folder, beyond=20))
    )
    killer.start()
    with connected(cluster.scheduler_address) as client, taken_over(folder) as claim:
        runner = ClusterRunner(client, DrawStore.open(folder, claim=claim), begun.config)
        runner.advance(scans)
    killer.join()
    [chain] = runner.chains
    assert 20 < killed[0] <= chain.begun < chain.scans == scans
    here = dfcrp.fit(markings, scans=scans, burn_in=0, **settings)
    there = DrawStore.open(folder).draws()
    assert np.array_equal(here.labels, there.label_array())
    assert np.array_equal(here.alpha, there.alpha())
    assert here.record.tallies == [chain.tally]


def images(count: int = 5) -> dfcrp.Items:
    parts = [dfcrp.simulate.paper_design(seed).take(np.arange(40)) for seed in range(count)]
    return dfcrp.Items.circles(
        *(
            np.concatenate([getattr(part, name) for part in parts])
            for name in ("x", "y", "diameter")
        ),
        np.concatenate([part.expert for part in parts]),
        image=np.repeat([f"image {k}" for k in range(count)], 40),
    )


def test_images_are_those_of_one_machine(cluster: Any, tmp_path: Path) -> None:
    settings = {"chains": 2, "scans": 40, "seed": 5}
    here = dfcrp.fit(images(), out=tmp_path / "here", **settings)
    there = dfcrp.fit(images(), out=tmp_path / "there", dask=cluster.scheduler_address, **settings)
    assert all(same_draws(here[name], there[name]) for name in here)
    assert {**here.summary(), "seconds": 0.0} == {**there.summary(), "seconds": 0.0}
    more = dfcrp.resume(tmp_path / "there", scans=60, dask=cluster.scheduler_address)
    again = dfcrp.resume(tmp_path / "here", scans=60)
    assert all(same_draws(more[name], again[name]) for name in again)
    assert not (tmp_path / "there" / "writing").exists()


def test_a_study_is_that_of_one_machine(cluster: Any, tmp_path: Path) -> None:
    plan = Plan(datasets=3, scans=30, burn_in=10)
    here = run_study(plan, tmp_path / "here")
    there = run_study(plan, tmp_path / "there", dask=cluster.scheduler_address)
    for one in (*here, *there):
        for model in one["models"].values():
            del model["core_seconds"]
    np.testing.assert_equal(here, there)


@pytest.mark.long
def test_resuming_while_tasks_of_a_dead_client_still_run(tmp_path: Path) -> None:
    """Client, worker or scheduler are killed; before there were claims this destroyed draws."""
    outcome = ClusterTrial(tmp_path, scans=3000, seed=3).run(kills=4)
    assert outcome.good, outcome
    assert outcome.kills == outcome.identical == 4


class Cancelled:
    """A task whose scheduler is gone."""

    def done(self) -> bool:
        return True

    def result(self) -> None:
        from distributed.client import FutureCancelledError

        raise FutureCancelledError("advance_chain-1", "scheduler-connection-lost")


def test_a_dead_scheduler_is_said(tmp_path: Path) -> None:
    """It ended in "unexpected error: FutureCancelledError"."""
    with taken_over(tmp_path) as claim:
        sign = StopSign(claim, threading.Event(), None)
        said = r"the Dask cluster lost a task \(FutureCancelledError\).*`dfcrp resume .*` continues"
        with pytest.raises(DfcrpError, match=said):
            sign.result(Cancelled())


def test_what_cannot_be_reached_is_said(
    markings: dfcrp.Items, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfcrp.runs.dask.PATIENCE", 1)
    with pytest.raises(SettingsError, match="no Dask scheduler answers"):
        dfcrp.fit(markings, out=tmp_path / "run", dask="tcp://127.0.0.1:9")
    with pytest.raises(SettingsError, match="no such scheduler file"):
        dfcrp.fit(markings, out=tmp_path / "run", dask=tmp_path / "scheduler.json")
    with pytest.raises(SettingsError, match="give out="):
        dfcrp.fit(markings, dask="tcp://127.0.0.1:9")
    assert not (tmp_path / "run").exists()


def test_the_command_line_takes_a_scheduler_file(cluster: Any, tmp_path: Path) -> None:
    with distributed.Client(cluster, set_as_default=False) as client:
        client.write_scheduler_file(str(tmp_path / "scheduler.json"))
    source = tmp_path / "markings.csv"
    assert main(["simulate", "--out", str(source), "--n-objects", "5"]) == 0
    arguments = ["fit", str(source), "--out", str(tmp_path / "run"), "--no-report", "--quiet"]
    arguments += ["--chains", "2", "--scans", "20", "--dask", str(tmp_path / "scheduler.json")]
    assert main(arguments) == 0
    assert dfcrp.load(tmp_path / "run").labels.shape[:2] == (2, 15)
