"""``dfcrp convert``: what the options do, and what is asked for where something is missing."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import format_samples as samples
from dfcrp.cli.main import main
from dfcrp.errors import InputError
from dfcrp.io import read_table, write_table
from dfcrp.io.converting import placed, scaled
from dfcrp.io.tables import ReadTable, typed
from dfcrp.items.site import Site

CATALOGUE = (
    "cluster,x,x_sd,y,y_sd,diameter,diameter_sd,n_experts,p_consensus,experts\n"
    "0,100,0.5,200,0.5,40,1,3,0.99,ann;bob;cleo\n"
    "7,900,0.5,50,0.5,18,1,1,0.01,ann\n"
)


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.toml").write_text("")
    (folder / "markings.csv").write_text("x,y,d,expert\n1,2,3,ann\n")
    (folder / "catalogue.csv").write_text(CATALOGUE)
    return folder


def test_a_run_folder_gives_its_catalogue(run_folder: Path, tmp_path: Path) -> None:
    assert main(["convert", str(run_folder), str(tmp_path / "c.geojson"), "--crs", "none"]) == 0
    records = read_table(tmp_path / "c.geojson")
    assert records.columns["x"].tolist() == [100.0, 900.0]
    assert records.site.units == "px"
    assert records.typed_extra()["p_consensus"] == [0.99, 0.01]
    assert records.typed_extra()["experts"] == ["ann;bob;cleo", "ann"]


@pytest.mark.parametrize(
    "ending", [".csv", ".tsv", ".parquet", ".geojson", ".diam", ".scc", ".shp"]
)
def test_the_catalogue_goes_to_every_format(
    run_folder: Path, tmp_path: Path, ending: str, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / f"c{ending}"
    options = "--metres-per-pixel 500 --body moon --origin 30,-89.9 --y-down --area-km2 250000"
    assert main(["convert", str(run_folder), str(out), *options.split()]) == 0
    said = capsys.readouterr()
    assert "left out" not in said.err
    written = tmp_path / "c_CRATER.shp" if ending == ".shp" else out
    records = read_table(written)
    assert records.site.units == "deg"
    np.testing.assert_allclose(records.columns["diameter"], [20, 9])
    direct = read_table(run_folder)
    # Distances from the origin, here almost at the pole, are those in the plane.
    at = [np.radians(records.columns[role]) for role in ("x", "y")]
    origin = np.radians([30, -89.9])
    cosine = np.sin(at[1]) * np.sin(origin[1]) + np.cos(at[1]) * np.cos(origin[1]) * np.cos(
        at[0] - origin[0]
    )
    plane = 0.5 * np.hypot(direct.columns["x"], direct.columns["y"])
    np.testing.assert_allclose(1737.4 * np.arccos(cosine), plane, rtol=1e-5)


def test_pixels_to_diam_have_no_places(
    run_folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "c.diam"
    arguments = ["convert", str(run_folder), str(out), "--metres-per-pixel", "2.5"]
    assert main(arguments) == 2
    assert "--area-km2" in capsys.readouterr().err
    assert main([*arguments, "--area-km2", "12"]) == 0
    assert "the places are not written" in capsys.readouterr().err
    assert "area = 12.0\ncrater = {diameter, fraction\n0.1\t1\n" in out.read_text()


@pytest.mark.parametrize(
    ("ending", "options", "asked"),
    [
        (".diam", "--area-km2 5", "--metres-per-pixel"),
        (".scc", "", "--origin LON,LAT and --body"),
        (".scc", "--units deg", "900 is not a longitude"),
        (".shp", "", "--metres-per-pixel"),
        (".csv", "--origin 1,2", "give --metres-per-pixel too"),
        (".csv", "--origin 1,2 --metres-per-pixel 1", "--body moon"),
        (".csv", "--body mooon", "did you mean 'moon'?"),
        (".csv", "--body -3", "positive"),
        (".csv", "--expert ann", "no column expert"),
        (".csv", "--metres-per-pixel 0", "must be positive"),
        (".csv", "--area-km2 -1", "must be positive"),
        (".csv", "--outlines", "for GeoJSON"),
        (".docx", "", "cannot tell the format"),
        ("", "", "a name without ending"),
    ],
)
def test_asks_for_what_is_missing(
    run_folder: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    ending: str,
    options: str,
    asked: str,
) -> None:
    out = tmp_path / f"c{ending}"
    assert main(["convert", str(run_folder), str(out), *options.split()]) == 2
    assert asked in capsys.readouterr().err
    assert not out.exists()


def test_a_catalogue_is_in_the_units_of_its_run(run_folder: Path, tmp_path: Path) -> None:
    site = {"units": "px", "area_km2": 3.6, "metres_per_pixel": 500.0}
    (run_folder / "provenance.json").write_text(json.dumps({"site": site}))
    assert read_table(run_folder).site == Site("px", area_km2=3.6, metres_per_pixel=500.0)
    assert main(["convert", str(run_folder), str(tmp_path / "c.diam")]) == 0
    text = (tmp_path / "c.diam").read_text()
    assert "area = 3.6" in text
    assert "20.0\t1" in text  # 40 pixels
    (run_folder / "provenance.json").write_text('{"site": {"boundary": 3}}')
    assert main(["convert", str(run_folder), str(tmp_path / "d.diam")]) == 2


def test_objects_that_are_agreed_on(run_folder: Path, tmp_path: Path) -> None:
    target = tmp_path / "c.csv"
    assert main(["convert", str(run_folder), str(target), "--p-consensus", "0.5"]) == 0
    assert read_table(target).columns["x"].tolist() == [100.0]
    again = ["convert", str(run_folder), str(tmp_path / "d.csv"), "--p-consensus"]
    assert main([*again, "1"]) == 2
    assert main([*again, "2"]) == 2
    assert main(["convert", str(run_folder / "markings.csv"), *again[2:], "0.5"]) == 2


def test_does_not_overwrite_unasked(run_folder: Path, tmp_path: Path) -> None:
    out = tmp_path / "c.csv"
    out.write_text("mine")
    assert main(["convert", str(run_folder), str(out)]) == 2
    assert out.read_text() == "mine"
    assert main(["convert", str(run_folder), str(out), "--overwrite"]) == 0
    assert out.read_text().startswith("x,y,diameter,")


def test_several_lists_become_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.diam").write_bytes(samples.DIAM)
    both = [str(tmp_path / "ann.diam"), str(tmp_path / "bob.diam")]
    assert main(["convert", *both, str(tmp_path / "both.csv")]) == 0
    records = read_table(tmp_path / "both.csv")
    assert records.about["expert"] == ["ann", "ann", "bob", "bob"]
    assert records.typed_extra()["fraction"] == [1, 0.5, 1, 0.5]
    again = ["convert", str(tmp_path / "both.csv"), str(tmp_path / "one.diam"), "--area-km2", "100"]
    assert main(again) == 2
    assert "there are 2 experts; choose one with --expert" in capsys.readouterr().err
    assert main([*again, "--expert", "bob"]) == 0
    kept = [line for line in samples.DIAM.decode().splitlines() if "\t" in line]
    assert [s for s in (tmp_path / "one.diam").read_text().splitlines() if "\t" in s] == kept


def test_labels_choose_marks(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "export.csv").write_bytes(samples.ZOONIVERSE)
    arguments = ["convert", str(tmp_path / "export.csv"), str(tmp_path / "c.csv")]
    assert main([*arguments, "--label", "Craters"]) == 2
    assert "did you mean 'Crater'?" in capsys.readouterr().err
    assert main([*arguments, "--label", "Crater", "--image", "7"]) == 0
    assert read_table(tmp_path / "c.csv").columns["diameter"].tolist() == [8.0]


def test_a_run_without_a_catalogue(run_folder: Path, tmp_path: Path) -> None:
    (run_folder / "catalogue.csv").unlink()
    assert main(["convert", str(run_folder), str(tmp_path / "c.csv")]) == 2


def test_a_target_that_cannot_be_written(run_folder: Path, tmp_path: Path) -> None:
    assert main(["convert", str(run_folder), str(tmp_path / "none" / "c.csv")]) == 2


def test_the_plane_is_kept_near_the_origin() -> None:
    columns = {role: np.array([0.0, 3.0]) for role in ("x", "y")} | {"diameter": np.ones(2)}
    records = placed(
        scaled(ReadTable("circles", columns, site=Site("px", 1737.4)), 1000.0),
        179.95,
        0.0,
        y_down=False,
    )
    degree = np.radians(1737.4)
    np.testing.assert_allclose(records.columns["x"], [179.95, 179.95 + 3 / degree], atol=1e-6)
    np.testing.assert_allclose(records.columns["y"], [0.0, 3 / degree], atol=1e-6)


def test_craters_do_not_inherit_an_area(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.csv").write_text("x_km,y_km,d_km\n1,2,3\n")
    (tmp_path / "a_AREA.shp").write_bytes(b"")
    assert main(["convert", str(tmp_path / "a.csv"), str(tmp_path / "a.shp")]) == 2
    assert "area of another count" in capsys.readouterr().err


def test_a_long_text_is_cut_with_a_warning(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text(f"x_km,y_km,d_km,note\n1,2,3,{'n' * 300}\n")
    out = str(tmp_path / "a.shp")
    assert main(["convert", str(tmp_path / "a.csv"), out]) == 0
    read = read_table(tmp_path / "a_CRATER.shp")
    assert read.extra["note"] == ["n" * 254]


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        (["1", "2", ""], [1, 2, None]),
        (["1", "2.5"], [1.0, 2.5]),
        (["1", "b"], ["1", "b"]),
        ([None, None], [None, None]),
        ([[1], [2]], ["[1]", "[2]"]),
        (["nan", "1"], ["nan", "1"]),
    ],
)
def test_columns_find_their_type(cells: list[object], expected: list[object]) -> None:
    assert typed(cells) == expected


def run_of(folder: Path, kind: str, catalogue: str) -> Path:
    folder.mkdir()
    (folder / "config.toml").write_text(f'[run]\nlikelihood = "{kind}"\n')
    (folder / "markings.csv").write_text("")
    (folder / "catalogue.csv").write_text(catalogue)
    return folder


BOXES = (
    "cluster,x,x_sd,y,y_sd,width,width_sd,height,height_sd,n_experts,p_consensus,experts\n"
    "0,10,1,20,1,6,1,3,1,2,0.9,A;B\n1,40,1,12,1,9,1,5,1,1,0.1,A\n"
)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".geojson"])
def test_the_catalogue_of_boxes(tmp_path: Path, ending: str) -> None:
    run = run_of(tmp_path / "run", "boxes", BOXES)
    out = tmp_path / f"c{ending}"
    place = ["--crs", "none"] if ending == ".geojson" else []
    assert main(["convert", str(run), str(out), "--p-consensus", "0.5", *place]) == 0
    table = read_table(out, "boxes")
    assert [values.tolist() for values in table.columns.values()] == [[10], [20], [6], [3]]
    assert table.typed_extra()["width_sd"] == [1]
    assert main(["convert", str(run), str(tmp_path / "km.csv"), "--metres-per-pixel", "500"]) == 0
    table = read_table(tmp_path / "km.csv", "boxes")
    assert table.columns["width"].tolist() == [3.0, 4.5]
    assert table.site.units == "km"
    assert table.typed_extra()["width_sd"] == [0.5, 0.5]


def test_the_catalogue_of_records(tmp_path: Path) -> None:
    text = "cluster,name,born,n_experts,p_consensus,experts\n0,Ann,1980,2,0.9,a;b\n1,Bo,,1,0.1,a\n"
    run = run_of(tmp_path / "run", "records", text)
    out = tmp_path / "c.parquet"
    assert main(["convert", str(run), str(out), "--p-consensus", "0.5"]) == 0
    assert read_table(out, "records").columns["name"].tolist() == ["Ann"]


@pytest.mark.parametrize(
    ("kind", "out", "options", "asked"),
    [
        ("boxes", "c.diam", "", ".diam holds circles, and these are boxes"),
        ("boxes", "c.scc", "", ".scc holds circles"),
        ("boxes", "c.shp", "", ".shp holds circles"),
        ("boxes", "c.csv", "--origin 1,2", "for circles and points"),
        ("points", "c.geojson", "--outlines --crs none", "points have no outline"),
        ("records", "c.geojson", "", "GeoJSON holds circles, points, boxes, ellipses"),
        ("records", "c.csv", "--metres-per-pixel 2", "records have none"),
        ("boxs", "c.csv", "", "did you mean 'boxes'"),
    ],
)
def test_what_other_kinds_cannot_be_turned_into(
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    kind: str,
    out: str,
    options: str,
    asked: str,
) -> None:
    (tmp_path / "a.csv").write_text("x,y,width,height,expert\n1,2,3,4,A\n")
    command = ["convert", str(tmp_path / "a.csv"), str(tmp_path / out), "--likelihood", kind]
    assert main([*command, *options.split()]) == 2
    assert asked in capsys.readouterr().err


def test_drawings_as_boxes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "a.xml").write_bytes(samples.CVAT)
    out = tmp_path / "boxes.csv"
    assert main(["convert", str(tmp_path / "a.xml"), str(out), "--likelihood", "boxes"]) == 0
    said = capsys.readouterr()
    assert "1 boxes: " in said.out
    assert "left out: 1 ellipse (row 5)" in said.err
    assert out.read_text() == 'x,y,width,height,image,category\n4.0,1.0,8.0,2.0,"a.png","crater"\n'


def test_a_catalogue_of_boxes_becomes_coco(tmp_path: Path) -> None:
    source = tmp_path / "catalogue.csv"
    source.write_text(
        "image,x,y,width,height,category,n_experts,p_consensus,p_real,experts\n"
        "b.png,15,25,10,20,cell,3,0.9,0.99,ann;bob\na.png,5,5,2,4,dust,1,0.1,,ann\n"
    )
    table = read_table(source, "boxes")
    [path] = write_table(table, tmp_path / "all.coco.json")
    content = json.loads(path.read_text(encoding="utf-8"))
    assert [image["file_name"] for image in content["images"]] == ["a.png", "b.png"]
    first, second = content["annotations"]
    assert first["bbox"] == [10, 15, 10, 20]
    assert (first["image_id"], first["area"], first["score"]) == (2, 200, 0.99)
    assert first["experts"] == "ann;bob"
    names = {one["id"]: one["name"] for one in content["categories"]}
    assert [names[one["category_id"]] for one in (first, second)] == ["cell", "dust"]
    assert second["score"] is None
    again = read_table(path, "boxes")
    for role in ("x", "y", "width", "height"):
        assert again.columns[role].tolist() == table.columns[role].tolist()
    with pytest.raises(InputError, match="COCO"):
        write_table(read_table(source, "points"), tmp_path / "points.coco.json")
