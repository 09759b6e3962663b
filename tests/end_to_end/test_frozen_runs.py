"""Run folders of earlier versions: read and gone on with, or refused in one message.

Somebody's draws may be years old. A later version may refuse them, but in words; and if it reads
them they are what they were.
"""

from __future__ import annotations

import contextlib
import json
import zipfile
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpError, DfcrpWarning, RunFolderError
from frozen.make import DRAWS, RUNS, digest_of

FROZEN = Path(__file__).resolve().parents[1] / "frozen"
ZIPS = sorted(FROZEN.glob("*/*.zip"))
#: That these draws are of another version is said, and meant.
pytestmark = pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")


@pytest.fixture(params=ZIPS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def run(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    with zipfile.ZipFile(request.param) as file:
        file.extractall(tmp_path / "run")
    (tmp_path / "was").write_text(json.dumps([request.param.parent.name, request.param.stem]))
    return tmp_path / "run"


def known(run: Path) -> dict[str, object]:
    version, name = json.loads((run.parent / "was").read_text())
    return dict(json.loads((FROZEN / version / DRAWS).read_text())["runs"][name])


def refused(code: int, said: str) -> bool:
    """Whether a command refused its run; it did it in words."""
    assert code in (0, 2), said
    lines = [line for line in said.splitlines() if not line.startswith("dfcrp: warning:")]
    if code == 2:
        assert [line.startswith("dfcrp: error: ") for line in lines] == [True], said
    assert "unexpected" not in said
    assert "Traceback" not in said
    return code == 2


@contextlib.contextmanager
def or_refused() -> Iterator[None]:
    """What follows is done, or the run is refused in one line."""
    try:
        yield
    except DfcrpError as error:
        lines = str(error).splitlines()
        if len(lines) != 1:
            raise AssertionError(lines) from error


def test_every_kind_of_run_is_there() -> None:
    names = Counter(path.stem for path in ZIPS)
    assert set(names) >= set(RUNS)


def test_what_is_read_is_what_was_written(run: Path) -> None:
    with or_refused():
        posterior = dfcrp.load(run)
        assert digest_of(run) == known(run)
        assert len(posterior.catalogue()) >= 3
        assert len(posterior.members()) == len(posterior.items)


def test_reports_are_made_or_refused(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = main(["report", str(run), "--quiet"])
    if not refused(code, capsys.readouterr().err):
        assert (run / "report.html").read_text(encoding="utf-8").endswith("</html>\n")


def test_runs_go_on_or_refuse(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = json.loads((run / "provenance.json").read_text())["run"]["scans"]
    # One of the runs was stopped by its limit, which counts again, and may be over at once.
    scans = ["--scans", str(before + 200), "--max-minutes", "5"]
    code = main(["resume", str(run), "--no-report", "--quiet", "--workers", "1", *scans])
    if not refused(code, capsys.readouterr().err):
        record = json.loads((run / "provenance.json").read_text())["run"]
        assert record["scans"] == before + 200 - 200 % record["thin"]


def test_a_posterior_of_memory_is_refused_by_resume(tmp_path: Path) -> None:
    """One that every version refuses, so that refusals are seen here."""
    for path in ZIPS:
        if path.stem == "circles-saved":
            with zipfile.ZipFile(path) as file:
                file.extractall(tmp_path / path.parent.name)
            with pytest.raises(DfcrpError):
                dfcrp.resume(tmp_path / path.parent.name, scans=500)


def test_another_version_is_mentioned(tmp_path: Path) -> None:
    RUNS["circles"](tmp_path / "run")
    path = tmp_path / "run" / "provenance.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "dfcrp": "0.0.1"}))
    with pytest.warns(DfcrpWarning, match="another version of dfcrp"):
        dfcrp.resume(tmp_path / "run", scans=30)


def test_draws_of_0_2_0_are_refused_with_what_to_do(tmp_path: Path) -> None:
    with zipfile.ZipFile(FROZEN / "0.2.0" / "circles.zip") as file:
        file.extractall(tmp_path / "run")
    with pytest.raises(RunFolderError, match=r"format 3, .* or draw again: `dfcrp fit`"):
        dfcrp.load(tmp_path / "run")
    run, again = str(tmp_path / "run"), str(tmp_path / "again")
    settings = ["--config", f"{run}/config.toml", "--quiet", "--no-report", "--workers", "1"]
    assert main(["fit", f"{run}/markings.csv", "--out", again, *settings]) == 0


def test_some_version_is_read() -> None:
    """Otherwise nothing here compares draws."""
    last = max(path.parent for path in ZIPS if path.parent.name != "0.2.0")
    assert {path.stem for path in last.glob("*.zip")} == set(RUNS)
