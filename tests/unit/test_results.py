"""Tables and record of a run folder agree at every moment, and Ctrl-C waits for no table."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import dfcrp
from dfcrp.posterior import saving
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.saving import RESULTS
from dfcrp.simulate import paper_design

SHORT: dict[str, Any] = {"chains": 2, "workers": 1, "progress": False}


@pytest.fixture
def usual_interrupt() -> Iterator[None]:
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def results(run: Path) -> list[str]:
    return [name for name in RESULTS if (run / name).exists()]


@pytest.mark.usefixtures("usual_interrupt")
@pytest.mark.parametrize("images", [1, 2])
def test_ctrl_c_waits_for_no_summary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, images: int
) -> None:
    """Summaries of a large image take minutes; here they would fail."""
    one, run, begun = paper_design(5, n_objects=4), tmp_path / "run", []
    drawn: dict[int, int] = {}
    if images > 1:
        columns = [list(getattr(one, name)) * 2 for name in ("x", "y", "diameter", "expert")]
        one = dfcrp.Items.circles(*columns, image=["a"] * len(one) + ["b"] * len(one))
        monkeypatch.setattr(saving, "write_results", lambda *_: pytest.fail("tables"))
    else:
        for name in ("verdict", "summary", "catalogue", "members", "experts"):
            monkeypatch.setattr(Posterior, name, property(lambda _, name=name: pytest.fail(name)))

    def stop(seen: Any) -> None:
        # Before every chain has drawn there is nothing to keep.
        if images == 1:
            drawn[seen.chain] = seen.scans
        if not begun and (images > 1 or len(drawn) == SHORT["chains"]):
            begun.append(time.monotonic())
            # To the process, as a terminal does: one to this thread would not wake the main thread.
            os.kill(os.getpid(), signal.SIGINT)

    scans = {"scans": 10**8} if images == 1 else {"scans": 40}
    found = dfcrp.fit(one, out=run, **{**SHORT, "progress": stop}, **scans)
    assert found.record.stopped_early or images > 1
    assert time.monotonic() - begun[0] < 60
    assert results(run) == []
    monkeypatch.undo()
    assert dfcrp.load(run).record.scans == found.record.scans


def test_tables_of_earlier_draws_go_before_the_record_changes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = tmp_path / "run"
    dfcrp.fit(paper_design(5, n_objects=4), out=run, scans=6, **SHORT)
    (run / "report.html").write_text("of 6 scans")
    assert "summary.json" in results(run)

    def killed(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(saving, "write_results", killed)
    with pytest.raises(KeyboardInterrupt):
        dfcrp.resume(run, scans=9, progress=False)
    assert json.loads((run / "provenance.json").read_text())["run"]["scans"] == 9
    assert results(run) == []
    monkeypatch.undo()
    dfcrp.resume(run, progress=False)
    assert json.loads((run / "summary.json").read_text())["scans"] == 9
