"""What a user is told of a run: how far, how long still, and that kernels are being compiled."""

import re
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

import dfcrp
from dfcrp.draws import DrawBlock
from dfcrp.fitting import progress
from dfcrp.fitting.progress import Lines, Tracker, expected_scans
from dfcrp.items.items import Items
from dfcrp.sampling import runner
from dfcrp.sampling.runner import Compiling, Progress, TimeLimit
from dfcrp.settings.config import make_config


@pytest.fixture
def record(monkeypatch):
    """Compiling that happens when the test says so."""
    found = Compiling()
    for module in (runner, progress):
        monkeypatch.setattr(module, "compiling", lambda: found)
    return found


@pytest.fixture
def clock(monkeypatch):
    """A clock that the test moves."""
    now = SimpleNamespace(time=100.0)
    monkeypatch.setattr(runner.time, "monotonic", lambda: now.time)
    return now


def test_compiling_does_not_count_against_the_limit(record, clock):
    record.begin()
    clock.time += 50.0
    record.end()
    allowed = TimeLimit(1.0)
    assert allowed.seconds_left() == 60.0
    clock.time += 20.0
    record.begin()
    record.begin()
    clock.time += 500.0
    assert allowed.seconds_left() == pytest.approx(40.0)
    record.end()
    clock.time += 500.0
    record.end()
    assert not record.busy
    assert allowed.seconds_left() == pytest.approx(40.0)
    assert not allowed.passed
    clock.time += 41.0
    assert allowed.passed


def test_no_limit_never_passes(record, clock):
    clock.time += 1e9
    assert TimeLimit(None).seconds_left() is None
    assert not TimeLimit(None).passed


def test_time_of_compiling_is_noted(clock):
    """One stretch within another counts once."""
    record = Compiling()
    record.begin()
    clock.time += 2.0
    record.begin()
    clock.time += 3.0
    record.end()
    assert record.busy
    assert record.seconds == 5.0
    record.end()
    clock.time += 7.0
    assert not record.busy
    assert record.seconds == 5.0


@pytest.mark.filterwarnings("ignore:only .* lie near one of another expert")
def test_a_run_keeps_to_its_limit(record):
    rng = np.random.default_rng(1)
    markings = Items.circles(
        rng.random(40) * 90.0, rng.random(40) * 90.0, 4.0 + rng.random(40), ["a", "b"] * 20
    )
    dfcrp.fit(markings, chains=2, scans=4)  # what is to be compiled is
    begun = time.monotonic()
    found = dfcrp.fit(markings, chains=2, scans=10**8, max_minutes=1.0 / 60.0)
    took = time.monotonic() - begun
    assert found.record.stopped_early
    # The time of preparing counts too; all scans would take hours, also on a busy machine.
    assert 0.0 < found.record.seconds <= took
    assert 1.0 <= took < 60.0


def block(n):
    return DrawBlock(np.zeros((1, n), np.int32), np.ones(1), *[np.zeros(0)] * 4)


def test_the_whole_run_is_estimated(record, monkeypatch):
    now = SimpleNamespace(time=0.0)
    monkeypatch.setattr(progress.time, "monotonic", lambda: now.time)
    config = make_config({"run": {"chains": 1}})
    tracker = Tracker(np.array([0, 1]), config)
    seen = tracker.note(Progress(0, 100, 500, block(2)))
    assert seen.place() == "scan 100 of 500"
    now.time = 40.0
    tracker.expect(4_000)
    seen = tracker.note(Progress(0, 500, 1_000, block(2)))
    assert seen.place() == "scan 500 of about 4,000"
    assert seen.seconds_left == pytest.approx(40.0 * 3_500 / 400)
    assert seen.share == 500 / 4_000
    assert not seen.arrived
    assert tracker.note(Progress(0, 1_000, 1_000, block(2))).arrived


@pytest.mark.parametrize(
    ("rhat", "ess", "pairs", "expected"),
    [
        (1.005, 300.0, 0, 750),
        (1.005, 250.0, 0, 1_000),
        (1.005, 100.0, 0, 2_000),
        (1.005, 90.0, 0, 3_000),
        (1.04, 400.0, 0, 2_000),
        (1.0, 500.0, 3, 750),  # at the next look at the earliest
        (np.inf, 4.0, 9, 20_000),
        (np.nan, np.nan, 0, 750),
    ],
)
def test_scans_that_the_verdict_will_need(rhat, ess, pairs, expected):
    run = SimpleNamespace(scans=None, max_scans=20_000, thin=1)
    verdict = SimpleNamespace(ok=False, max_rhat=rhat, min_ess=ess, pairs_disagreeing=pairs)
    posterior = SimpleNamespace(
        convergence=verdict,
        config=SimpleNamespace(run=run),
        record=SimpleNamespace(scans=500),
        items=SimpleNamespace(learned={}),
    )
    assert expected_scans(posterior) == expected
    verdict.ok = True
    assert expected_scans(posterior) == 500
    run.scans = 700
    assert expected_scans(posterior) == 700


def test_compiling_is_announced_once_and_followed(record, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_PER_TICK", 0.01)
    monkeypatch.setattr(progress, "SECONDS_TO_COMPILE", 0.05)
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.1)
    config = make_config({"run": {"chains": 1}})
    said: list[str] = []
    enough = threading.Event()

    class Heard(Lines):
        def say(self, line):
            super().say(line)
            said.append(line)
            if len(said) == 3:
                enough.set()

    with Heard(Tracker(np.array([0, 1]), config)):
        record.begin()
        record.parts += 1
        assert enough.wait(60.0)
        record.end()
    assert capsys.readouterr().err.splitlines() == said
    assert said[0] == progress.COMPILING
    assert said.count(progress.COMPILING) == 1
    assert all(re.fullmatch(r"compiling: 1 part done, \d+ s", line) for line in said[1:])


def test_lines_come_where_output_is_piped(monkeypatch, capsys):
    """Unless somebody wants none."""
    monkeypatch.setattr(progress, "_interactive", lambda: False)
    monkeypatch.setattr(progress, "SECONDS_PER_LINE", 0.0)
    items = dfcrp.simulate.paper_design(5, n_objects=4)
    dfcrp.fit(items, chains=1, scans=400, seed=1)
    said = capsys.readouterr().err.splitlines()
    assert any("400" in line and "clusters" in line for line in said), said
    dfcrp.fit(items, chains=1, scans=400, seed=1, progress=False)
    assert capsys.readouterr().err == ""


def test_nothing_is_said_where_nothing_is_compiled(record, monkeypatch, capsys):
    monkeypatch.setattr(progress, "SECONDS_PER_TICK", 0.01)
    with Lines(Tracker(np.array([0, 1]), make_config({"run": {"chains": 1}}))):
        threading.Event().wait(0.1)
    assert capsys.readouterr().err == ""
