"""The command line as a user meets it: files, exit codes, messages."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dfcrp
from dfcrp.cli.main import COMMANDS, main

QUICK = ["--chains", "2", "--scans", "40", "--no-report"]


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "markings.csv"
    assert main(["simulate", "--out", str(path), "--n-objects", "8", "--seed", "5"]) == 0
    return path


@pytest.fixture(scope="module")
def run_folder(csv_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["fit", str(csv_file), "--out", str(out), *QUICK, "--min-experts", "3"]) == 0
    return out


def rows_of(path: Path) -> list[dict[str, str]]:
    with open(path, encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


# The front door


def test_help_loads_no_heavy_library() -> None:
    code = (
        "import sys; from dfcrp.cli.main import main; main(['--help']); "
        "heavy = {'numpy', 'numba', 'scipy', 'pandas', 'matplotlib', 'rich'}; "
        "sys.exit(str(heavy & set(sys.modules)) if heavy & set(sys.modules) else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert all(f"  {name} " in done.stdout for name in COMMANDS)


def test_the_module_runs_like_the_command() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "dfcrp.cli", "--version"], capture_output=True, text=True, check=True
    )
    assert dfcrp.__version__ in done.stdout


def test_unknown_command_names_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["fitt"]) == 2
    assert "did you mean 'fit'?" in capsys.readouterr().err


def test_unexpected_error_is_one_line_with_a_hint(
    monkeypatch: pytest.MonkeyPatch, csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    def broken(*_: object, **__: object) -> None:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr("dfcrp.io.read_items", broken)
    arguments = ["fit", str(csv_file), "--out", str(tmp_path / "run")]
    assert main(arguments) == 1
    plain = capsys.readouterr().err
    assert "planted" in plain
    assert "--debug" in plain
    assert "Traceback" not in plain
    assert main([*arguments, "--debug"]) == 1
    assert "Traceback" in capsys.readouterr().err


# fit


def test_the_run_folder_has_its_files(run_folder: Path) -> None:
    assert {
        "config.toml",
        "provenance.json",
        "draws.zarr",
        "catalogue.csv",
        "members.csv",
        "experts.csv",
        "summary.json",
    } <= {path.name for path in run_folder.iterdir()}


def test_summary_has_the_keys_of_the_interface(run_folder: Path, csv_file: Path) -> None:
    summary = json.loads((run_folder / "summary.json").read_text())
    span = {"mean", "lo", "hi"}
    scalars = {"n_markings", "n_experts", "chains", "scans", "burn_in", "draws", "seconds"}
    assert set(summary) >= {*scalars, "n_clusters", "alpha", "consensus", "experts", "convergence"}
    assert summary["n_markings"] == len(rows_of(csv_file))
    assert (summary["n_experts"], summary["chains"]) == (6, 2)
    assert (summary["scans"], summary["burn_in"], summary["draws"]) == (40, 10, 60)
    assert set(summary["n_clusters"]) == set(summary["alpha"]) == span
    asked = {(row["min_experts"], row["size_class"]) for row in summary["consensus"]}
    assert asked == {(m, s) for m in (3, 4, 5, 6) for s in ("all", "small", "medium", "large")}
    assert all(set(row) == {"min_experts", "size_class", *span} for row in summary["consensus"])
    assert [row["expert"] for row in summary["experts"]] != []
    for row in summary["experts"]:
        assert set(row) >= {"expert", "count", "jaccard", "size_1", "all_but_one"}
        assert set(row["size_1"]) == set(row["all_but_one"]) == span
    assert set(summary["convergence"]) >= {
        "max_rhat",
        "min_ess",
        "max_pair_disagreement",
        "pairs_disagreeing",
        "ok",
    }


def test_members_follow_the_input(run_folder: Path, csv_file: Path) -> None:
    members, markings = rows_of(run_folder / "members.csv"), rows_of(csv_file)
    assert list(members[0])[:4] == ["marking", "expert", "cluster", "p_member"]
    assert [row["marking"] for row in members] == [str(i + 1) for i in range(len(markings))]
    assert [row["expert"] for row in members] == [row["expert"] for row in markings]
    assert all(0 < float(row["p_member"]) <= 1 for row in members)


def test_catalogue_columns_and_clusters(run_folder: Path) -> None:
    catalogue, members = rows_of(run_folder / "catalogue.csv"), rows_of(run_folder / "members.csv")
    spread = [name + end for name in ("x", "y", "diameter") for end in ("", "_sd", "_lo", "_hi")]
    expected = ["cluster", *spread, "n_experts", "p_consensus", "experts"]
    assert list(catalogue[0])[: len(expected)] == expected
    assert {row["cluster"] for row in catalogue} == {row["cluster"] for row in members}
    for row in catalogue:
        inside = sorted(m["expert"] for m in members if m["cluster"] == row["cluster"])
        assert row["experts"].split(";") == inside
        assert int(row["n_experts"]) == len(inside)
        assert float(row["x_lo"]) <= float(row["x"]) <= float(row["x_hi"])
        assert 0 <= float(row["p_consensus"]) <= 1


def test_the_number_of_workers_changes_no_draw(
    csv_file: Path, run_folder: Path, tmp_path: Path
) -> None:
    one = tmp_path / "one"
    assert main(["fit", str(csv_file), "--out", str(one), *QUICK, "--workers", "1"]) == 0
    usual, alone = dfcrp.load(run_folder), dfcrp.load(one)
    np.testing.assert_array_equal(usual.labels, alone.labels)
    np.testing.assert_array_equal(usual.alpha, alone.alpha)


def test_config_file_and_options(csv_file: Path, run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "again"
    settings = str(run_folder / "config.toml")
    arguments = ["fit", str(csv_file), "--out", str(out), "--config", settings, "--no-report"]
    assert main([*arguments, "--min-experts", "4", "--quiet"]) == 0
    first, again = dfcrp.load(run_folder), dfcrp.load(out)
    np.testing.assert_array_equal(first.labels, again.labels)
    assert (first.config.summary.min_experts, again.config.summary.min_experts) == (3, 4)


def test_filters_tell_what_they_removed(
    csv_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    count = sum(row["expert"] == "A" for row in rows_of(csv_file))
    filters = ["--exclude-expert", "A", "--min-diameter", "1"]
    assert main(["fit", str(csv_file), "--out", str(tmp_path / "r"), *QUICK, *filters]) == 0
    assert f"The filters removed {count} of" in capsys.readouterr().err


def test_a_single_expert_gives_singletons(tmp_path: Path) -> None:
    path = tmp_path / "one.csv"
    path.write_text("x,y,diameter,expert\n1,1,20,Ann\n2,2,21,Ann\n300,300,50,Ann\n")
    assert main(["fit", str(path), "--out", str(tmp_path / "run"), *QUICK]) == 0
    members = rows_of(tmp_path / "run" / "members.csv")
    assert len({row["cluster"] for row in members}) == 3
    assert all(float(row["p_member"]) == 1 for row in members)


def test_consensus_as_a_share(csv_file: Path, tmp_path: Path, capsys: Any) -> None:
    """Of six experts 60 % are four; the settings keep the share, and the report may change it."""
    out = tmp_path / "run"
    assert main(["fit", str(csv_file), "--out", str(out), *QUICK, "--min-experts", "60 %"]) == 0
    assert "at least 4 experts (60 % of the 6 who looked)" in capsys.readouterr().err
    assert 'min_experts = "60%"' in (out / "config.toml").read_text()

    def consensus() -> dict[Any, float]:
        rows = json.loads((out / "summary.json").read_text())["consensus"]
        return {r["min_experts"]: r["mean"] for r in rows if r["size_class"] == "all"}

    assert consensus()["60%"] == consensus()[4]
    share = [float(row["p_consensus"]) for row in rows_of(out / "catalogue.csv")]
    for asked, number in (("4", 4), ("100%", 6)):
        assert main(["report", str(out), "--min-experts", asked, "--quiet"]) == 0
        assert consensus()[4 if asked == "4" else asked] == consensus()[number]
        found = [float(row["p_consensus"]) for row in rows_of(out / "catalogue.csv")]
        assert (found == share) == (asked == "4")


def test_a_warning_is_one_plain_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "twice.csv"
    path.write_text("x,y,diameter,expert\n1,1,20,Ann\n1,1,20,Ann\n2,2,20,Bob\n")
    assert main(["fit", str(path), "--out", str(tmp_path / "run"), *QUICK, "--quiet"]) == 0
    printed = capsys.readouterr()
    (line,) = printed.err.splitlines()
    assert line.startswith("dfcrp: warning: 1 marking with the x, y, diameter")
    assert printed.out == ""


# What is wrong is said in one line, with exit code 2, and leaves nothing behind

NO_DIAMETER = "x,y,expert\n1,2,Ann\n"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["missing.csv"], "missing.csv: there is no such file"),
        (["no_diameter.csv"], "diameter"),
        (["good.csv", "--chains", "0"], "run.chains is 0"),
        (["good.csv", "--scans", "10", "--burn-in", "10"], "run.burn_in is 10"),
        (["good.csv", "--scans", "10", "--thin", "11"], "run.thin is 11"),
        (["good.csv", "--radius", "near"], "'near' is not"),
        (["good.csv", "--min-experts", "half"], "summary.min_experts is 'half'"),
        (["good.csv", "--min-experts", "120%"], "above 0% and up to 100%"),
        (["good.csv", "--min-experts", "0"], "summary.min_experts is 0; it must be at least 1"),
        (["good.csv", "--radius", "-1"], "run.radius is -1.0"),
        (["good.csv", "--config", "none.toml"], "none.toml: cannot be read"),
        (["good.csv", "--config", "typo.toml"], "did you mean 'chains'?"),
        (["good.csv", "--columns", "x=LON"], "column 'LON', wanted for x, is not in the header"),
        (["good.csv", "--exclude-expert", "Zoe"], "no expert is called 'Zoe'"),
        (["good.csv", "--preset", "moon"], "'moon' is not one of"),
        (["good.csv", "--scan-count", "5"], "No such option"),
    ],
)
def test_wrong_input(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("no_diameter.csv").write_text(NO_DIAMETER)
    Path("good.csv").write_text("x,y,diameter,expert\n1,2,20,Ann\n1,2,20,Bob\n")
    Path("typo.toml").write_text("[run]\nchain = 3\n")
    assert main(["fit", *arguments, "--out", "run"]) == 2
    printed = capsys.readouterr()
    assert said in printed.err.splitlines()[-1]
    assert printed.out == ""
    assert not Path("run").exists()


def test_a_used_folder_is_left_alone(csv_file: Path, tmp_path: Path) -> None:
    kept = tmp_path / "thesis.txt"
    kept.write_text("two years of work")
    for command in (["fit", str(csv_file)], ["demo"]):
        assert main([*command, "--out", str(tmp_path)]) == 2
        assert [path.name for path in tmp_path.iterdir()] == ["thesis.txt"]
    assert main(["simulate", "--out", str(kept)]) == 2
    assert kept.read_text() == "two years of work"


def test_nothing_drawn_leaves_nothing(csv_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["fit", str(csv_file), "--out", str(out), "--max-minutes", "1e-9"]) == 1
    assert not out.exists()


# Ctrl-C

#: Under a shell's "&" SIGINT is ignored from birth; a user's terminal does not do that.
AS_ON_A_TERMINAL = (
    "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler); "
    "from dfcrp.cli.main import main; sys.exit(main())"
)


def draws_on_disk(folder: Path, chains: int) -> int:
    """Of the chain that has the fewest."""
    from dfcrp.errors import RunFolderError
    from dfcrp.runs.store import DrawStore

    try:
        saved = DrawStore.open(folder).saved_draws()
    except RunFolderError:
        return 0
    return min(saved.get(chain, 0) for chain in range(chains))


@pytest.mark.skipif(sys.platform == "win32", reason="SIGINT cannot be sent to one process")
def test_an_interrupt_leaves_a_usable_run(csv_file: Path, tmp_path: Path) -> None:
    import signal

    out = tmp_path / "run"
    often = tmp_path / "often.toml"
    often.write_text("[run]\ncheckpoint_seconds = 0.5\n")
    options = ["--scans", "1000000000", "--chains", "3", "--workers", "2", "--no-report"]
    options += ["--config", str(often)]
    command = [sys.executable, "-c", AS_ON_A_TERMINAL, "fit", str(csv_file), "--out", str(out)]
    with subprocess.Popen(
        [*command, *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        # Every chain must have begun, also the third, which two workers leave for later.
        while draws_on_disk(out, 3) < 3 and process.poll() is None:
            time.sleep(0.1)
        process.send_signal(signal.SIGINT)
        printed, said = process.communicate(timeout=300)
    assert process.returncode == 0, said
    assert "Stopping; what is drawn so far will be kept" in said
    assert f"`dfcrp report {out}` makes tables" in printed
    posterior = dfcrp.load(out)
    assert posterior.record.stopped_early
    assert posterior.draws.n_chains == 3
    assert not (out / "summary.json").exists()
    assert main(["report", str(out), "--quiet"]) == 0
    assert json.loads((out / "summary.json").read_text())["draws"] == posterior.alpha.size
    scans = posterior.record.scans
    assert main(["resume", str(out), "--scans", str(scans + 20), "--no-report", "--quiet"]) == 0
    assert dfcrp.load(out).record.scans == scans + 20


# report, demo, simulate


def test_image_scale_and_area_are_kept(csv_file: Path, tmp_path: Path, capsys: Any) -> None:
    out, image = tmp_path / "run", tmp_path / "image.png"
    Image.fromarray(np.zeros((30, 50), np.uint8)).save(image)
    fit = ["fit", str(csv_file), "--out", str(out), *QUICK]
    assert main([*fit, "--image-file", str(tmp_path / "no.png")]) == 2
    assert "there is no such image file" in capsys.readouterr().err
    assert main([*fit, "--image-file", str(csv_file)]) == 2
    assert "cannot be read as an image" in capsys.readouterr().err
    assert main([*fit, "--metres-per-pixel", "-1"]) == 2
    assert not out.exists()
    placed = ["--image-file", str(image), "--image-offset", "-5,10", "--image-y", "up"]
    assert main([*fit, *placed, "--metres-per-pixel", "500"]) == 0
    assert main(["report", str(out), "--area-km2", "4", "--image-scale", "2"]) == 0
    posterior = dfcrp.load(out)
    assert posterior.config.image.file == str(image)
    assert posterior.config.image.offset == (-5.0, 10.0)
    assert (posterior.config.image.y, posterior.config.image.scale) == ("up", 2.0)
    assert posterior.items.site.area_km2 == 4.0
    assert posterior.items.site.km_per_diameter == 0.5
    page = (out / "report.html").read_text()
    assert '"extent":[-5.0,95.0,-50.0,10.0]' in page.replace(" ", "")
    assert "with 500 m per pixel" in page
    assert main(["convert", str(out), str(tmp_path / "catalogue.diam")]) == 0
    assert "area = 4" in (tmp_path / "catalogue.diam").read_text()


def test_report_remakes_what_is_missing(csv_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    assert main(["fit", str(csv_file), "--out", str(out), *QUICK]) == 0
    before = (out / "members.csv").read_text()
    (out / "members.csv").unlink()
    assert main(["report", str(out), "--min-experts", "2"]) == 0
    assert (out / "members.csv").read_text() == before
    assert (out / "report.html").stat().st_size > 1000
    assert any((out / "figures").iterdir())
    assert dfcrp.load(out).config.summary.min_experts == 2


@pytest.mark.parametrize(
    ("arguments", "said"),
    [(["nowhere"], "there is no such run folder"), (["."], "is not a run folder of dfcrp")],
)
def test_report_of_no_run(
    arguments: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["report", *arguments]) == 2
    assert said in capsys.readouterr().err


def test_demo_replaces_only_a_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The job is left out: it is the same as that of fit."""
    monkeypatch.chdir(tmp_path)
    seen = []

    def job(markings: dfcrp.Items, _: object, out: Path, **__: object) -> None:
        seen.append(len(markings))
        out.mkdir()
        (out / "summary.json").write_text("{}")

    monkeypatch.setattr("dfcrp.cli.job.run_job", job)
    assert main(["demo"]) == 0
    Path("demo-run/old").touch()
    assert main(["demo", "--quiet"]) == 0
    assert not Path("demo-run/old").exists()
    assert seen == [616, 616]


def test_demo_data_come_from_the_command_in_its_source(tmp_path: Path) -> None:
    import inspect

    from dfcrp.cli import demo

    lines = [line[2:] for line in inspect.getsource(demo).splitlines() if line.startswith("#   ")]
    words = " ".join(lines).split()
    shipped = Path(dfcrp.__file__).parent / "data" / "demo.csv"
    assert words[:3] == ["dfcrp", "simulate", "--out"]
    assert main(["simulate", "--out", str(tmp_path / "demo.csv"), *words[4:]]) == 0
    assert (tmp_path / "demo.csv").read_text() == shipped.read_text()


def test_simulate_is_the_library(tmp_path: Path) -> None:
    out = tmp_path / "data.csv"
    options = ["--seed", "3", "--n-objects", "12", "--x-min", "-5", "--false-rate", "0.5,0.1,0"]
    assert main(["simulate", "--out", str(out), *options, "--detection", "1,0.5,0.9"]) == 0
    expected = dfcrp.simulate.paper_design(
        3, n_objects=12, x_min=-5, false_rate=(0.5, 0.1, 0), detection=(1, 0.5, 0.9)
    )
    found = dfcrp.read_markings(out)
    assert found.digest == expected.digest
    np.testing.assert_array_equal(found.truth, expected.truth)
    # Its own output may be written over.
    assert main(["simulate", "--out", str(out), "--design", "few-experts"]) == 0


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--design", "papr"], "did you mean 'paper'?"),
        (["--n-objects", "0"], "n_objects is 0"),
        (["--detection", "0.5"], "detection is given for 1 experts"),
        (["--detection", "a,b"], "is not a list of numbers"),
        (["--seed", "-1"], "the seed is -1"),
    ],
)
def test_simulate_refuses(
    options: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", "--out", str(tmp_path / "x.csv"), *options]) == 2
    assert said in capsys.readouterr().err
    assert not (tmp_path / "x.csv").exists()
