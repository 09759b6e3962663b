"""Many images as a user meets them: fit, a kill, resume, report, explain."""

from __future__ import annotations

import csv
import json
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pandas
import pytest

import dfcrp
from dfcrp.cli.main import main

QUICK = ["--chains", "2", "--scans", "60"]


@pytest.fixture(scope="module")
def csv_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five images of few objects; one marking has an image to itself."""
    path = tmp_path_factory.mktemp("data") / "markings.csv"
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream)
        writer.writerow(["Image", "Observer", "X", "Y", "Diameter"])
        for number, name in enumerate(["a", "b <i>", "c/../d", "e"]):
            one = dfcrp.simulate.paper_design(number, n_objects=4)
            for row in zip(one.expert, one.x, one.y, one.diameter, strict=True):
                writer.writerow([name, *row])
        writer.writerow(["lonely", "A", 5, 5, 20])
    return path


@pytest.fixture(scope="module")
def finished(csv_file: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("runs") / "run"
    assert main(["fit", str(csv_file), "--out", str(out), *QUICK, "--quiet"]) == 0
    return out


def loaded(path: Path) -> dfcrp.Posterior:
    return dfcrp.load(path)


def test_fit_says_what_it_does(csv_file, tmp_path, capsys):
    out = tmp_path / "run"
    arguments = ["fit", str(csv_file), "--out", str(out), "--no-report", "--images", "shared"]
    assert main([*arguments, *QUICK]) == 0
    said = capsys.readouterr()
    assert "on 5 images, shared: 2 chains, 60 scans" in said.err
    assert "on 5 images; 2 chains of 60 scans" in said.out
    assert "images.csv" in said.out
    assert not (out / "report.html").exists()


def test_one_image_is_still_filtered_out(csv_file, finished, tmp_path, capsys):
    """And with the seed that images.csv names it has the same draws."""
    table = pandas.read_csv(finished / "images.csv").set_index("image")
    seed = str(table.loc["c/../d", "seed"])
    arguments = ["fit", str(csv_file), "--out", str(tmp_path / "run"), "--image", "c/../d"]
    assert main([*arguments, *QUICK, "--seed", seed, "--no-report", "--quiet"]) == 0
    alone = dfcrp.load(tmp_path / "run")
    assert isinstance(alone, dfcrp.Posterior)
    np.testing.assert_array_equal(alone.labels, loaded(finished)["c/../d"].labels)
    assert not (tmp_path / "run" / "images.csv").exists()


def test_the_overview_names_every_image_and_nothing_else_is_written(finished):
    page = (finished / "report.html").read_text(encoding="utf-8")
    assert "<i>" not in page
    assert "b \\u003ci\\u003e" in page
    assert sorted(path.name for path in (finished / "pages").iterdir()) == [
        f"{number:06d}" for number in range(5)
    ]
    assert not (finished.parent / "d").exists()
    summary = json.loads((finished / "summary.json").read_text())
    assert summary["n_images"] == 5


def test_report_of_one_image(csv_file, finished, capsys):
    assert main(["report", str(finished), "--image", "b <i>"]) == 0
    page = Path(capsys.readouterr().out.strip().removeprefix("page: "))
    assert page == finished / "pages" / "000001" / "report.html"
    assert "<h1>b &lt;i&gt;</h1>" in page.read_text(encoding="utf-8")
    assert (page.parent / "figures" / "traces.svg").exists()
    # Objects have the names that the catalogue gives them.
    catalogue = pandas.read_csv(finished / "catalogue.csv")
    mine = loaded(finished)["b <i>"].catalogue()["cluster"]
    assert set(mine) == set(catalogue[catalogue["image"] == "b <i>"]["cluster"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--image", "bb"], "there is no image 'bb' in this run"),
        (["--image", "a", "--min-experts", "2"], "give it without --image"),
        (["--image-scale", "2"], "name it with --image"),
    ],
)
def test_wrong_ways_to_ask_for_a_report(finished, capsys, arguments, message):
    assert main(["report", str(finished), *arguments]) == 2
    assert message in capsys.readouterr().err


def test_reports_of_a_run_of_one_image_take_no_image(csv_file, tmp_path, capsys):
    arguments = ["fit", str(csv_file), "--out", str(tmp_path / "run"), "--image", "lonely"]
    assert main([*arguments, *QUICK, "--no-report", "--quiet"]) == 0
    assert main(["report", str(tmp_path / "run"), "--pages", "3"]) == 2
    assert "are for runs over many images" in capsys.readouterr().err


def test_min_experts_can_be_changed_later(finished, tmp_path, capsys):
    assert main(["report", str(finished), "--min-experts", "2", "--pages", "1", "--quiet"]) == 0
    assert loaded(finished).config.summary.min_experts == 2
    table = pandas.read_csv(finished / "images.csv")
    counts = loaded(finished)["a"].consensus(2)
    assert table.loc[0, "consensus"] == pytest.approx(counts.loc[0, "mean"])
    assert len(list((finished / "pages").iterdir())) == 1


def test_explain_finds_the_image(csv_file, finished, capsys):
    members = pandas.read_csv(finished / "members.csv")
    last = members.iloc[-1]
    assert main(["explain", str(finished), str(last["marking"])]) == 0
    said = capsys.readouterr().out
    assert "alone in its cluster" in said
    shared = members[members.duplicated("cluster") & (members["p_member"] > 0.9)].iloc[-1]
    assert main(["explain", str(finished), str(shared["marking"])]) == 0
    assert f"it belongs to cluster {shared['cluster']}," in capsys.readouterr().out


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_killed_run_goes_on_to_the_same_draws(csv_file, tmp_path, capsys):
    out = tmp_path / "run"
    settings = tmp_path / "settings.toml"
    settings.write_text("[run]\ncheckpoint_seconds = 0\nchains = 2\nscans = 6000\nworkers = 1\n")
    arguments = ["fit", str(csv_file), "--out", str(out), "--config", str(settings)]
    program = [sys.executable, "-m", "dfcrp.cli", *arguments, "--no-report", "--quiet"]
    with subprocess.Popen(program) as process:
        while process.poll() is None and not list(out.glob("draws.zarr/shard-*.zip")):
            time.sleep(0.01)
        process.kill()
    assert process.returncode == -9, "it was done before the first shard was seen"
    assert not (out / "catalogue.csv").exists()
    assert main(["resume", str(out), "--no-report"]) == 0
    assert "with 5 images, of which" in capsys.readouterr().err
    whole = dfcrp.fit(dfcrp.read_markings(csv_file), config=settings)
    again = loaded(out)
    for name in whole:
        np.testing.assert_array_equal(whole[name].labels, again[name].labels)
        np.testing.assert_array_equal(whole[name].alpha, again[name].alpha)
