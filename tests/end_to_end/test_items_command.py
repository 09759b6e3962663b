"""``dfcrp fit`` of boxes, ellipses and records, as a user meets it: tables, report, messages."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp.cli.main import main

QUICK = ["--chains", "2", "--scans", "160", "--burn-in", "110", "--workers", "1"]
OBJECTS = np.array(
    [[10.0, 10, 6, 3, 20], [40, 12, 9, 5, 80], [20, 45, 5, 2, 150], [60, 50, 8, 3, 175]]
)


def rows_of(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(path.read_text().splitlines()))


def write(path: Path, columns: str, rows) -> Path:
    path.write_text("\n".join([columns, *(",".join(map(str, row)) for row in rows)]) + "\n")
    return path


@pytest.fixture(scope="module")
def boxes(tmp_path_factory) -> Path:
    """Four objects by four detectors as corners, one of them marked twice by the last."""
    rng = np.random.default_rng(31)
    rows = []
    for detector in "ABCD":
        for x, y, w, h in [*OBJECTS[:, :4], *([OBJECTS[0, :4] + 0.05] if detector == "D" else [])]:
            w, h = np.array([w, h]) * np.exp(0.05 * rng.standard_normal(2))
            x, y = np.array([x, y]) + 0.03 * rng.standard_normal(2) * [w, h]
            rows.append([detector, x - w / 2, y - h / 2, x + w / 2, y + h / 2])
    folder = tmp_path_factory.mktemp("boxes")
    path = write(folder / "boxes.csv", "detector,xmin,ymin,xmax,ymax", rows)
    assert (
        main(["fit", str(path), "--likelihood", "boxes", "--out", str(folder / "run"), *QUICK]) == 0
    )
    return folder / "run"


def test_boxes_and_their_double(boxes, capsys):
    table = rows_of(boxes / "catalogue.csv")
    shared = [row for row in table if int(row["n_experts"]) == 4]
    assert len(table) == 5
    assert len(shared) == 4
    assert float(shared[0]["width"]) == pytest.approx(6.0, rel=0.1)
    assert json.loads((boxes / "summary.json").read_text())["suspected_doubles"] == 1
    assert main(["report", str(boxes)]) == 0
    out = capsys.readouterr().out
    assert "Possible duplicates: 1 box" in out
    assert "report.html" in out


def test_report_in_the_items_own_columns(boxes):
    page = (boxes / "report.html").read_text(encoding="utf-8")
    for words in (
        "x ± sd",
        "width (95 %)",
        "Possible duplicates",
        "How far do boxes scatter?",
        "17 boxes by 4 experts",
    ):
        assert words in page
    assert "diameter" not in page.split("All settings (TOML)")[0]
    assert (boxes / "figures" / "items_map.svg").exists()
    assert dfcrp.load(boxes).suspected_doubles()["expert"].tolist() == ["D"]


def test_ellipses_and_their_angles(tmp_path):
    """An angle near 175° is met by markings at 178° and 2°."""
    rng = np.random.default_rng(32)
    rows = []
    for expert in range(5):
        for x, y, major, minor, angle in OBJECTS:
            place = np.array([x, y]) + 0.1 * rng.standard_normal(2)
            axes = np.array([major, minor]) * np.exp(0.03 * rng.standard_normal(2))
            rows.append([expert, *place, *axes, (angle + 4.0 * rng.standard_normal()) % 180.0])
    path = write(tmp_path / "ellipses.csv", "expert,x,y,Major axis,minor,angle", rows)
    run = tmp_path / "run"
    assert main(["fit", str(path), "--likelihood", "ellipses", "--out", str(run), *QUICK]) == 0
    table = rows_of(run / "catalogue.csv")
    assert [int(row["n_experts"]) for row in table] == [5, 5, 5, 5]
    found = np.array([[float(row[name]) for name in ("x", "major", "angle")] for row in table])
    assert found[:, :2] == pytest.approx(OBJECTS[:, [0, 2]], rel=0.06)
    turned = (found[:, 2] - OBJECTS[:, 4] + 90.0) % 180.0 - 90.0
    assert np.abs(turned).max() < 8.0


def test_records_from_two_files(tmp_path):
    """As plain Python: a scan of a dozen records needs no compiler."""
    first = [["Anna Berg", "1980-01-02", "Rome"], ["Bob Stone", "1971-05-06", "Oslo"]]
    first += [["Carla Diaz", "1999-11-30", "Lima"], ["Dan Young", "1965-07-08", ""]]
    second = [["Ana Berg", "1980-02-01", "Rome"], ["Bob Stone", "1971-05-06", "Oslo"]]
    second += [["Carla Diaz", "1999-11-03", "Lima"], ["Eve Adams", "1950-10-10", "Oslo"]]
    paths = [
        str(write(tmp_path / f"{name}.csv", "name,born,city", rows))
        for name, rows in (("clinic", first), ("registry", second))
    ]
    run = tmp_path / "run"
    command = [sys.executable, "-m", "dfcrp.cli", "fit", *paths, "--likelihood", "records"]
    command += ["--out", str(run), *QUICK, "--scans", "130", "--chains", "1"]
    environment = {**os.environ, "NUMBA_DISABLE_JIT": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    members = rows_of(run / "members.csv")
    cluster = [row["cluster"] for row in members]
    # The one pair that agrees in everything; where there are so few names a typo says little.
    assert cluster[1] == cluster[5]
    assert cluster.count(cluster[7]) == 1
    page = (run / "report.html").read_text(encoding="utf-8")
    assert "Anna Berg" in page
    assert "How often are fields wrong?" in page
    assert "altered values in born" in page or "wrong values in born" in page


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--likelihood", "boxes"], "boxes have x, y, width, height, or left, top, right, bottom"),
        (
            ["--likelihood", "points", "--min-diameter", "3", "--columns", "expert=who"],
            "--min-diameter is for items with a size",
        ),
        (["--likelihood", "points", "--columns", "expert=whom"], "did you mean 'who'?"),
        (["--likelihood", "points"], "no column for expert; name it with --columns expert=NAME"),
        (["--likelihood", "point"], "did you mean 'points'?"),
    ],
)
def test_messages(tmp_path, capsys, options, message):
    path = write(tmp_path / "items.csv", "who,x,y", [["A", 1, 2], ["B", 1, 2]])
    assert main(["fit", str(path), "--out", str(tmp_path / "run"), *options]) == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "run").exists()
