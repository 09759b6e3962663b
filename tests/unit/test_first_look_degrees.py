"""Longitude and latitude in columns called x and y: the first look asks, and says what to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

import dfcrp
from dfcrp.cli.main import main
from dfcrp.first_look import first_look
from dfcrp.first_look.degrees import perhaps_degrees


def craters(folder: Path, header: str, *, scale: float = 1.0, decimals: int = 5) -> Path:
    """Twenty craters of about a kilometre, ten to a degree, marked by two."""
    rng = np.random.default_rng(5)
    x, y = rng.uniform(10, 11, 20) * scale, rng.uniform(-5, -4, 20) * scale
    rows = [
        f"{a + e:.{decimals}f},{b + e:.{decimals}f},{d:.3f},{who}"
        for who, e in (("ann", 0.0), ("bob", 0.0004 * scale))
        for a, b, d in zip(x, y, rng.uniform(0.5, 2.0, 20), strict=True)
    ]
    path = folder / "craters.csv"
    path.write_text("\n".join([header, *rows]) + "\n")
    return path


def checks(path: Path) -> list[str]:
    return [finding.check for finding in perhaps_degrees(dfcrp.read_markings(path))]


def test_degrees_without_a_word_are_asked_about(tmp_path: Path) -> None:
    path = craters(tmp_path, "x,y,diameter_km,expert")
    [finding] = [f for f in first_look(dfcrp.read_markings(path)) if f.check == "degrees"]
    assert "are they longitude and latitude?" in finding.text
    # What it says to do does it.
    assert main(["convert", str(path), str(tmp_path / "new.csv"), "--units", "deg"]) == 0
    items = dfcrp.read_markings(tmp_path / "new.csv")
    assert items.site.units == "deg"
    assert not list(perhaps_degrees(items))


def test_what_is_not_asked_about(tmp_path: Path) -> None:
    assert "degrees" not in checks(craters(tmp_path, "lon,lat,diameter_km,expert"))
    assert "degrees" not in checks(craters(tmp_path, "x,y,diameter_km,expert", scale=100.0))
    assert "degrees" not in checks(craters(tmp_path, "x,y,diameter,expert"))  # others ask
    assert "degrees" not in checks(craters(tmp_path, "x,y,diameter,expert", decimals=0, scale=20.0))
    assert "degrees" not in checks(craters(tmp_path, "x_km,y_km,diameter_km,expert"))
