"""Longitude and latitude from a file to the report and on to other formats."""

from __future__ import annotations

import csv
from pathlib import Path
from typing import Any

import dfcrp
from dfcrp.cli.main import main
from dfcrp.io import read_table
from studies.moon import moon_markings

QUICK = ["--chains", "1", "--scans", "40", "--burn-in", "20", "--min-experts", "2"]


def write_lists(folder: Path) -> list[str]:
    """One file for each expert, with the columns of Robbins's catalogue."""
    markings = moon_markings(200, seed=3)
    files = []
    for expert in markings.experts:
        own = markings.expert == expert
        files.append(str(folder / f"{expert}.csv"))
        columns = (markings.x[own], markings.y[own], markings.diameter[own])
        with open(files[-1], "w", newline="") as stream:
            writer = csv.writer(stream)
            writer.writerow(["LON_CIRC_IMG", "LAT_CIRC_IMG", "DIAM_CIRC_IMG"])
            writer.writerows(zip(*columns, strict=True))
    return files


def test_from_longitude_and_latitude_to_a_catalogue(tmp_path: Path, capsys: Any) -> None:
    files, out = write_lists(tmp_path), tmp_path / "run"
    fit = ["fit", *files, "--out", str(out), *QUICK]
    assert main(fit) == 2
    assert "--body moon" in capsys.readouterr().err
    assert main([*fit, "--body", "moon", "--preset", "highlands"]) == 2
    assert "--metres-per-pixel" in capsys.readouterr().err
    assert not out.exists()
    assert main([*fit, "--body", "moon", "--area-km2", "3.79e7"]) == 0
    page = (out / "report.html").read_text()
    assert "distances are those on a sphere with a radius of 1737.4 km" in page
    assert "so the unit does not matter" in page
    assert '"radius":1737.4' in page.replace(" ", "")
    table = dfcrp.load(out).catalogue()
    for name in ("catalogue.geojson", "catalogue.scc", "catalogue_CRATER.shp"):
        assert main(["convert", str(out), str(tmp_path / name)]) == 0
        found = read_table(tmp_path / name)
        assert found.site.units == "deg"
        assert abs(found.columns["diameter"] - table["diameter"]).max() < 1e-6
        assert abs((found.columns["x"] - table["x"] + 180.0) % 360.0 - 180.0).max() < 1e-6
