"""A run folder from a stranger is data: nothing that it names is run, and no link is followed."""

from __future__ import annotations

import json
import os
import re
import shutil
import sys
import tracemalloc
from pathlib import Path
from typing import Any

import click
import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main, run_safely
from dfcrp.errors import InputError, RunFolderError, SettingsError
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.runs.dask import Errand, _check_scheduler_file, advance_chain
from dfcrp.runs.folder import versions
from dfcrp.runs.lock import LOCK, locked
from dfcrp.runs.store import DrawStore
from dfcrp.settings.config import load_config
from dfcrp.simulate import paper_design
from fuzz.zipped import change_index


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    run = tmp_path_factory.mktemp("strangers") / "run"
    dfcrp.fit(paper_design(5, n_objects=4), out=run, scans=8, chains=2, seed=2, workers=1)
    return run


@pytest.fixture
def run(finished: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(finished, tmp_path / "run"))


def edit(run: Path, setting: str, value: str) -> None:
    """Change a line of config.toml, or add it to [run]."""
    path = run / "config.toml"
    text, found = re.subn(rf"(?m)^{setting} = .*$", f"{setting} = {value}", path.read_text())
    path.write_text(text if found else text.replace("[run]\n", f"[run]\n{setting} = {value}\n"))


def content(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    files = sorted(path for path in folder.rglob("*") if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


# Code


@pytest.fixture
def evil(run: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Code in a run folder that could be imported; the file that it would leave."""
    left = run.parent / "was run"
    (run / "evil.py").write_text(f"import pathlib\npathlib.Path({str(left)!r}).touch()\nX = 1\n")
    edit(run, "likelihood", '"run.evil:X"')
    monkeypatch.syspath_prepend(run.parent)
    monkeypatch.chdir(run.parent)
    for name in ("run", "run.evil"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    return left


WAYS: dict[str, Any] = {
    "load": dfcrp.load,
    "resume": lambda run: dfcrp.resume(run, scans=12),
    "settings": lambda run: dfcrp.fit(paper_design(2), config=run / "config.toml", scans=8),
    "settings of a matrix": lambda run: dfcrp.fit(
        np.zeros((3, 2)), config=run / "config.toml", scans=8
    ),
    "cluster": lambda run: advance_chain(0, 12, Errand(str(run), "x", versions(), "circles")),
}
COMMANDS: dict[str, list[str]] = {
    "report": ["report", "run"],
    "resume": ["resume", "run", "--scans", "12"],
    "explain": ["explain", "run", "1"],
    "convert": ["convert", "run", "new.csv"],
    "fit": ["fit", "run/markings.csv", "--config", "run/config.toml", "--out", "new"],
}


@pytest.mark.parametrize("way", WAYS)
def test_code_that_a_file_names_is_not_run(run: Path, evil: Path, way: str) -> None:
    with pytest.raises(InputError):
        WAYS[way](run)
    assert not evil.exists()


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_say_what_to_do(evil: Path, name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(COMMANDS[name]) == 2
    said = capsys.readouterr().err
    assert "dfcrp runs no code because a file names it" in said
    assert "--likelihood" in said
    assert not evil.exists()


def test_code_that_the_caller_names_is_run(run: Path, evil: Path) -> None:
    with pytest.raises(SettingsError, match=r"run\.evil:X.*not a dfcrp Likelihood"):
        dfcrp.load(run, likelihood="run.evil:X")
    assert evil.exists()


def test_a_run_is_of_what_the_caller_says_or_refused(run: Path) -> None:
    assert len(dfcrp.load(run, likelihood="circles").items)
    with pytest.raises(SettingsError, match="the run is of 'circles', not of 'points'"):
        dfcrp.load(run, likelihood="points")
    assert main(["resume", str(run), "--likelihood", "boxes"]) == 2


@pytest.mark.parametrize("name", [":x", "x:", ":", "..a:b", "no such module:X", "circle"])
def test_names_of_likelihoods_that_are_none(name: str) -> None:
    with pytest.raises(SettingsError, match=r"run\.likelihood is"):
        likelihood_named(name)


def test_a_module_of_ones_own_that_fails_is_said(tmp_path: Path, monkeypatch: Any) -> None:
    (tmp_path / "broken_module.py").write_text("1 / 0\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(SettingsError, match="ZeroDivisionError"):
        likelihood_named("broken_module:X")


# Links


def test_a_lock_that_is_another_file_leaves_it_alone(run: Path) -> None:
    dear = run.parent / "dear.txt"
    dear.write_text("dear to me")
    os.link(dear, run / LOCK)
    with locked(run):
        assert json.loads((run / LOCK).read_text())["pid"] == os.getpid()
        with pytest.raises(RunFolderError, match="is working on this run"), locked(run):
            pass
    assert dear.read_text() == "dear to me"
    assert not (run / LOCK).exists()


def test_whatever_is_a_hard_link_is_replaced(run: Path, tmp_path: Path) -> None:
    """Each file of the folder and each that a command makes has a second name elsewhere."""
    outside = tmp_path / "outside"
    outside.mkdir()
    made = (LOCK, f"{LOCK}.part", "summary.json.part", "ages.csv", "figures/traces.svg")
    for name in (*content(run), *made):
        kept = outside / name.replace("/", "_")
        kept.write_bytes((run / name).read_bytes() if (run / name).exists() else b"dear to me")
        (run / name).unlink(missing_ok=True)
        (run / name).parent.mkdir(exist_ok=True)
        os.link(kept, run / name)
    before = content(outside)
    assert main(["report", str(run), "--quiet", "--min-experts", "2", "--area-km2", "5"]) == 0
    dfcrp.resume(run, scans=24, workers=1)
    assert content(outside) == before


# Sizes


def test_forged_parameters_are_refused_before_they_are_unpacked(run: Path) -> None:
    """A list of names that stands for hundreds of MB."""
    many = [f"p{k}" for k in range(500_000)]
    (path, *_) = sorted((run / "draws.zarr").glob("shard-*.zip"))
    change_index(path, lambda index: index["columns"].update(parameters=many))
    tracemalloc.start()
    try:
        for way in (dfcrp.load, lambda run: dfcrp.resume(run, scans=12)):
            with pytest.raises(RunFolderError, match=r"have [\d,]+ parameters"):
                way(run)
        # The names alone are some MB.
        assert tracemalloc.get_traced_memory()[1] < 150e6
    finally:
        tracemalloc.stop()
    assert main(["resume", str(run), "--scans", "12", "--quiet"]) == 2


def test_forged_shared_quantities_are_refused(run: Path) -> None:
    """A short list of names stands for millions of numbers in every draw."""
    block: Any = DrawStore.open(run).spans(0, 0)[-1].block
    columns = block.entry.columns.as_json()
    columns["shared"] = [["x", ["a"] * 3, True, True]]
    columns["coords"] = {"a": [str(k) for k in range(120)]}
    change_index(block.shard.path, lambda index: {**index, "columns": columns})
    with pytest.raises(RunFolderError, match=r"1,728,000 numbers each"):
        dfcrp.load(run)


# Settings


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("seed", "7", "run.seed is 7, it was 2"),
        ("thin", "3", "run.thin is 3, it was 1"),
        ("scale_x", "0.5", "likelihood.scale_x is 0.5, it was 0.1"),
        ("alpha_shape", "9.0", "prior.alpha_shape is 9.0, it was 1.0"),
    ],
)
def test_edited_settings_are_not_shown_as_those_of_the_draws(
    run: Path, setting: str, value: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    edit(run, setting, value)
    assert main(["report", str(run), "--quiet"]) == 2
    assert said in capsys.readouterr().err
    with pytest.raises(RunFolderError, match=re.escape(said)):
        dfcrp.load(run)


def test_an_edited_length_is_said_on_the_page(run: Path) -> None:
    assert main(["report", str(run), "--quiet"]) == 0
    assert "was changed since these draws" not in (run / "report.html").read_text()
    edit(run, "scans", "900")
    assert main(["report", str(run), "--quiet"]) == 0
    assert "run.scans is 900, it was 8" in (run / "report.html").read_text()


def test_a_setting_that_another_version_has_is_no_edit(run: Path) -> None:
    path = run / "provenance.json"
    record = json.loads(path.read_text())
    record["settings_of_draws"] |= {"prior.of_another_version": 1}
    del record["settings_of_draws"]["run.radius"]
    path.write_text(json.dumps(record))
    assert dfcrp.load(run).record.scans == 8


# Odd files


NESTED = "[" * 100_000


@pytest.mark.parametrize("name", ["provenance.json", "config.toml"])
@pytest.mark.parametrize("text", [NESTED, '{"site":' * 60_000, "\0", "site = 3"])
def test_convert_says_what_is_wrong_with_a_run(
    run: Path, name: str, text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    (run / name).write_text(text)
    code = main(["convert", str(run), str(run.parent / "new.csv")])
    said = capsys.readouterr().err
    assert code == (0 if name == "config.toml" and text == "site = 3" else 2), said
    assert "unexpected" not in said


def test_an_age_that_dfcrp_would_not_write(run: Path, capsys: pytest.CaptureFixture[str]) -> None:
    posterior = dfcrp.load(run)
    made_of = {"items": posterior.items.digest, "chains": 2, "draws": posterior.draws.n_draws}
    for rest in ({}, {"posterior": 3, "isochrons": None}, {"posterior": None, "isochrons": 7}):
        (run / "ages.json").write_text(json.dumps({"made_of": made_of, **rest}))
        assert main(["report", str(run), "--quiet"]) == 2
        assert "ages.json: damaged" in capsys.readouterr().err
    for text in (NESTED, "7", json.dumps({"made_of": "others"})):
        (run / "ages.json").write_text(text)
        assert main(["report", str(run), "--quiet"]) == 0


def test_what_a_link_leads_to_is_not_put_into_the_page(run: Path, tmp_path: Path) -> None:
    posterior = dfcrp.load(run)
    made_of = {"items": posterior.items.digest, "chains": 2, "draws": posterior.draws.n_draws}
    (run / "ages.json").write_text(
        json.dumps({"made_of": made_of, "posterior": None, "isochrons": None})
    )
    secret = tmp_path / "secret"
    secret.write_text("my key")
    (run / "figures").mkdir(exist_ok=True)
    (run / "figures" / "ages.svg").symlink_to(secret)
    assert main(["report", str(run), "--quiet"]) == 0
    assert "bXkga2V5" not in (run / "report.html").read_text()  # "my key"


def test_footprints_that_are_nested_too_deeply(run: Path) -> None:
    (run / "looked.csv").write_text("image,expert\n,a\n")
    (run / "footprints.json").write_text(NESTED)
    with pytest.raises(RunFolderError, match="nested too deeply"):
        dfcrp.load(run)


def test_tables_of_a_run_that_do_not_fit_into_memory(run: Path, monkeypatch: Any) -> None:
    """A file of a terabyte that takes no space."""
    with open(run / "markings.csv", "ab") as file:
        file.truncate(1 << 40)
    monkeypatch.setenv("DFCRP_MEMORY", "1000000000")
    with pytest.raises(RunFolderError, match=r"markings\.csv: reading a file of 1\.1 TB takes"):
        dfcrp.load(run)


@pytest.mark.skipif(not Path("/dev/zero").exists(), reason="there is no /dev/zero here")
def test_files_without_an_end(tmp_path: Path, monkeypatch: Any) -> None:
    monkeypatch.setenv("DFCRP_MEMORY", "1000000000")
    (tmp_path / "endless.parquet").symlink_to("/dev/zero")
    tracemalloc.start()
    try:
        with pytest.raises(SettingsError, match="more than 16 MB"):
            load_config("/dev/zero")
        with pytest.raises(InputError, match=r"reading a file of .* takes about"):
            dfcrp.read_items(tmp_path / "endless.parquet")
        assert tracemalloc.get_traced_memory()[1] < 500e6
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "text", ["", "root:x:0:0", "[]", '{"address": 7}', '{"address": "none"}', NESTED, "\xff"]
)
def test_a_file_that_no_dask_scheduler_wrote(tmp_path: Path, text: str) -> None:
    path = tmp_path / "scheduler.json"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(SettingsError, match="is not a file that a Dask scheduler wrote"):
        _check_scheduler_file(str(path))
    path.write_text('{"address": "tcp://127.0.0.1:8786"}')
    _check_scheduler_file(str(path))


def test_too_little_memory_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    @click.command()
    def greedy() -> None:
        raise MemoryError("Unable to allocate 8.00 TiB")

    assert run_safely(greedy, []) == 1
    said = capsys.readouterr().err
    assert "error: there is not enough memory" in said
    assert "8.00 TiB" in said
    assert "unexpected" not in said
