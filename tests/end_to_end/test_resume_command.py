"""``dfcrp resume`` as a user meets it: after a kill, on a full disk, with odd names."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main
from fuzz.kills import Trial

QUICK = ["--chains", "2", "--no-report"]


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "markings.csv"
    assert main(["simulate", "--out", str(path), "--n-objects", "8", "--seed", "5"]) == 0
    return path


@pytest.mark.long
@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_killed_runs_end_with_the_same_draws(tmp_path: Path) -> None:
    outcome = Trial(tmp_path, scans=1500, seed=2).run(kills=5)
    assert outcome.good, outcome
    assert outcome.kills == 5
    assert outcome.finished == outcome.identical > 0


def test_resume_extends_and_says_so(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run"
    filters = ["--min-diameter", "20"]
    assert main(["fit", str(csv_file), "--out", str(out), "--scans", "30", *QUICK, *filters]) == 0
    assert main(["resume", str(out), "--scans", "50", "--no-report"]) == 0
    said = capsys.readouterr()
    assert "Resuming after 30 scans to 50 scans" in said.err
    assert "2 chains of 50 scans" in said.out
    provenance = json.loads((out / "provenance.json").read_text())
    assert provenance["filters"] == {"min_diameter": 20.0}
    whole = dfcrp.fit(dfcrp.read_markings(csv_file, min_diameter=20), chains=2, scans=50)
    np.testing.assert_array_equal(dfcrp.load(out).labels, whole.labels)
    assert main(["resume", str(out), "--no-report"]) == 0
    assert "All 50 scans of this run are done" in capsys.readouterr().err
    assert main(["resume", str(out), "--scans", "40"]) == 2
    assert "has 50 scans already" in capsys.readouterr().err


#: The first argument is the largest file that the process may write, in bytes.
ON_A_SMALL_DISK = (
    "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN); "
    "resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2); del sys.argv[1]; "
    "from dfcrp.cli.main import main; sys.exit(main())"
)


@pytest.mark.skipif(sys.platform == "win32", reason="there are no such limits")
def test_a_disk_that_takes_no_more(csv_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["fit", str(csv_file), "--out", str(out), "--scans", "30", *QUICK]) == 0
    before = dfcrp.load(out).labels
    command = [sys.executable, "-c", ON_A_SMALL_DISK, "30000"]
    done = subprocess.run(
        [*command, "resume", str(out), "--scans", "3000", "--no-report"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 1, done.stderr
    assert "cannot be written: File too large" in done.stderr
    assert "`dfcrp resume` continues" in done.stderr
    assert "Traceback" not in done.stderr
    np.testing.assert_array_equal(dfcrp.load(out).labels, before)
    assert main(["resume", str(out), "--no-report"]) == 0
    whole = dfcrp.fit(dfcrp.read_markings(csv_file), chains=2, scans=3000)
    np.testing.assert_array_equal(dfcrp.load(out).labels, whole.labels)


def test_few_experts_need_a_majority(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "three.csv"
    path.write_text("x,y,diameter,expert\n1,1,20,Ann\n2,1,20,Bob\n1,2,20,Cleo\n300,300,50,Ann\n")
    out = tmp_path / "run"
    assert main(["fit", str(path), "--out", str(out), "--scans", "40", *QUICK]) == 0
    assert "Consensus means at least 2 of the 3 experts" in capsys.readouterr().err
    summary = json.loads((out / "summary.json").read_text())
    assert {row["min_experts"] for row in summary["consensus"]} == {2, 3}
    assert "min_experts = 2" in (out / "config.toml").read_text()


@pytest.mark.parametrize("name", ["../../../escape", "/etc/escape", "a\\b:c*?", "..", "con\u202e"])
def test_names_from_the_data_name_no_file(tmp_path: Path, name: str) -> None:
    path = tmp_path / "in" / "odd.csv"
    path.parent.mkdir()
    path.write_text(
        f"x,y,diameter,expert,image\n1,1,20,{name},{name}\n2,1,20,Bob,{name}\n90,9,30,Bob,{name}\n",
        encoding="utf-8",
    )
    out = tmp_path / "deep" / "er" / "run"
    assert main(["fit", str(path), "--out", str(out), "--scans", "30", "--chains", "2"]) == 0
    found = {file for file in tmp_path.rglob("*") if file.is_file()} - {path}
    assert all(out in file.parents for file in found)
    assert not any("escape" in file.name for file in found)
