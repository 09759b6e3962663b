"""Links: the table of probable pairs, and duplicates within one list."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import InputError

NAMES = ("anna schmidt", "bert maier", "carla wolf", "dora lang", "emil klein", "frida gross")
TOWNS = ("ulm", "bonn", "kiel", "trier", "jena", "fulda")


def write_lists(folder: Path, *, one: bool = False) -> list[Path]:
    """Twelve persons, the first six on both lists."""
    rows = [
        (f"{name} {k}", TOWNS[(k + 2 * m) % 6], 1950 + 7 * k + m)
        for m, name in enumerate(NAMES)
        for k in range(4)
    ]
    lists = [rows[:18], rows[:6] + rows[18:]]
    if one:
        lists = [lists[0] + lists[1]]
    paths = []
    for name, listed in zip(("left", "right"), lists, strict=False):
        path = folder / f"{name}.csv"
        cells = "".join(f"{a},{b},{c}\n" for a, b, c in listed)
        path.write_text(f"name,town,born\n{cells}")
        paths.append(path)
    return paths


def test_links_are_the_probable_pairs(tmp_path: Path) -> None:
    items = dfcrp.read_items(write_lists(tmp_path), "records")
    settings = {"chains": 2, "scans": 60, "seed": 1}
    posterior = dfcrp.fit(items, likelihood="records", out=tmp_path / "run", **settings)
    links = posterior.links()
    assert list(links) == ["id_l", "source_l", "id_r", "source_r", "p"]
    assert links["p"].gt(0.1).all()
    assert links["p"].is_monotonic_decreasing
    assert set(links["source_l"]) == {"left"}
    assert set(links["source_r"]) == {"right"}
    matrix = posterior.coclustering()
    at = {name: row for row, name in enumerate(items.id.tolist())}
    for left, right, p in zip(links["id_l"], links["id_r"], links["p"], strict=True):
        assert matrix[at[left], at[right]] == p
    upper = np.triu(matrix.toarray(), 1)
    assert len(links) == np.count_nonzero(upper > 0.1)
    assert len(posterior.links(p_min=0.0)) == np.count_nonzero(upper)
    assert {(f"left.csv:{k}", f"right.csv:{k}") for k in range(1, 7)} == {
        (left, right) for left, right, p in links[["id_l", "id_r", "p"]].to_numpy() if p > 0.9
    }
    written = pandas.read_csv(tmp_path / "run" / "links.csv")
    assert written["id_l"].tolist() == links["id_l"].tolist()
    assert written["name_l"].iloc[0] == written["name_r"].iloc[0]
    for wrong in (-0.1, 1.0, float("nan")):
        with pytest.raises(InputError, match="p_min"):
            posterior.links(p_min=wrong)


def test_links_name_the_image(tmp_path: Path) -> None:
    x, image = [1.0, 9.0, 1.0, 9.0] * 2, ["a"] * 4 + ["b"] * 4
    items = dfcrp.Items.circles(x, x, [2.0] * 8, ["ann", "ann", "bob", "bob"] * 2, image=image)
    links = dfcrp.fit(items, chains=1, scans=60, burn_in=10, seed=1).links()
    assert list(links) == ["id_l", "source_l", "id_r", "source_r", "image", "p"]
    assert set(links["image"]) == {"a", "b"}
    at = {name: row for row, name in enumerate(items.id.tolist())}
    for left, right, place in links[["id_l", "id_r", "image"]].to_numpy():
        assert image[at[left]] == image[at[right]] == place


def test_one_list_is_searched_for_duplicates(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    [path] = write_lists(tmp_path, one=True)
    arguments = ["fit", str(path), "--likelihood", "records", "--chains", "1", "--scans", "60"]
    assert main([*arguments, "--no-report", "--out", str(tmp_path / "run")]) == 0
    said = capsys.readouterr().err
    assert "left.csv names no source, so it is one list" in said
    assert 'prior = "crp"' in (tmp_path / "run" / "config.toml").read_text()
    links = pandas.read_csv(tmp_path / "run" / "links.csv")
    found = {(int(a), int(b)) for a, b, p in links[["id_l", "id_r", "p"]].to_numpy() if p > 0.5}
    assert found == {(k, k + 18) for k in range(1, 7)}
    # A prior that somebody names is theirs.
    out = tmp_path / "other"
    assert main([*arguments, "--prior", "dfcrp", "--no-report", "--out", str(out)]) == 0
    assert 'prior = "dfcrp"' in (out / "config.toml").read_text()


def test_other_items_of_one_list_are_still_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "circles.csv"
    path.write_text("x,y,diameter\n1,2,3\n")
    assert main(["fit", str(path), "--out", str(tmp_path / "run")]) == 2
    assert "no column for expert" in capsys.readouterr().err
