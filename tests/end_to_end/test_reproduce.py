"""``./run reproduce`` and ``dfcrp compare`` as a user runs them, killed and interrupted too."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from dfcrp.cli.compare import command as compare_command
from dfcrp.runs.folder import write_markings
from dfcrp.simulate import paper_design
from studies.reproduce import command as reproduce_command
from studies.reproduce import main

TABLES = ("tables.md", "results.json", "ari.csv", "counts.csv", "datasets.csv")


def run(command, *arguments: object) -> str:
    result = CliRunner().invoke(command, [str(a) for a in arguments], catch_exceptions=False)
    assert result.exit_code == 0, result.output
    return result.output


OPTIONS = ["--datasets", "10", "--scans", "300", "--burn-in", "50", "--workers", "2"]


def start_study(out: Path) -> subprocess.Popen[str]:
    """The study in a process of its own, which can be killed."""
    # A shell may have started the tests with Ctrl-C ignored, which processes inherit.
    program = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler);"
        "from studies.reproduce import main; sys.exit(main())"
    )
    return subprocess.Popen(
        [sys.executable, "-c", program, "simulation-study", "--out", str(out), *OPTIONS],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(path for path in sys.path if path)},
    )


@pytest.fixture(scope="module")
def whole(tmp_path_factory) -> Path:
    """The same study in one go."""
    out = tmp_path_factory.mktemp("whole")
    run(reproduce_command, "simulation-study", "--out", out, *OPTIONS)
    return out


def finished(out: Path) -> dict[str, float]:
    """Finished data sets, and when each was written."""
    folder = out / "paper" / "datasets"
    return {p.name: p.stat().st_mtime_ns for p in folder.glob("*.json")} if folder.is_dir() else {}


def wait_for(out: Path, count: int, process: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + 300
    while len(finished(out)) < count:
        assert process.poll() is None, process.stderr.read()  # type: ignore[union-attr]
        assert time.monotonic() < deadline, "the study does not come forward"
        time.sleep(0.01)


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_a_study_that_was_stopped_resumes(tmp_path, whole, how):
    stopped = tmp_path / "stopped"
    with start_study(stopped) as process:
        wait_for(stopped, 3, process)
        process.send_signal(how)
        message = process.communicate(timeout=300)[1]
    assert process.returncode != 0
    if how == signal.SIGINT:
        assert "the same command resumes here" in message
    kept = finished(stopped)
    assert 3 <= len(kept) < 10
    run(reproduce_command, "simulation-study", "--out", stopped, *OPTIONS)
    after = finished(stopped)
    assert len(after) == 10
    assert {name: after[name] for name in kept} == kept  # none was done a second time
    for name in TABLES:
        assert (stopped / "paper" / name).read_bytes() == (whole / "paper" / name).read_bytes()


def test_other_settings_in_the_same_folder_are_refused(tmp_path):
    options = ["simulation-study", "--out", tmp_path, "--datasets", 2, "--burn-in", 5]
    output = run(reproduce_command, *options, "--scans", 15)
    assert "DFCRP ahead of CRP in" in output
    result = CliRunner().invoke(
        reproduce_command, [str(a) for a in (*options, "--scans", 16)], catch_exceptions=True
    )
    assert "other settings (scans differ)" in str(result.exception)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["radius", "--data", "missing.csv"], 2, "./run reproduce: error: missing.csv: "),
        (["highlands", "--scan", "9"], 2, "No such option"),
        (["prior-tabel"], 2, "No such command"),
        (["mixing", "--help"], 0, ""),
    ],
)
def test_errors_are_one_line_and_an_exit_code(
    tmp_path, monkeypatch, capsys, arguments, code, message
):
    monkeypatch.chdir(tmp_path)
    assert main([*arguments, "--out", "results"]) == code
    said = capsys.readouterr()
    assert message in said.err
    assert "Traceback" not in said.err
    assert not (tmp_path / "results").exists()


def test_prior_table(tmp_path):
    output = run(reproduce_command, "prior-table", "--out", tmp_path, "--quick")
    assert "| exact " in output
    assert (tmp_path / "prior-table.csv").exists()


def test_compare_reads_files_with_truth(tmp_path):
    file = tmp_path / "markings.csv"
    write_markings(file, paper_design(3, n_objects=8))
    options = ["--scans", 40, "--burn-in", 10, "--preset", "simulation", "--threshold", 3]
    output = run(compare_command, file, "--out", tmp_path / "out", *options, "--method", "dfcrp",
                 "--method", "dbscan")  # fmt: skip
    assert "Agreement with the truth" in output
    with open(tmp_path / "out" / "compare.csv", newline="") as stream:
        rows = list(csv.DictReader(stream))
    assert [row["method"] for row in rows] == ["dfcrp", "dbscan"]
    assert float(rows[0]["ari_truth"]) > 0.8
    stored = json.loads((tmp_path / "out" / "compare.json").read_text())
    assert stored["broken_claims"] == []
    assert stored["provenance"]["settings"]["scans"] == 40
