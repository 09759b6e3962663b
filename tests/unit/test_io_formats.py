"""Every format: what is read of a faithful file, what is left out and told, what is refused."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import format_samples as samples
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io import read_markings, read_table
from dfcrp.io.registry import formats
from dfcrp.io.tables import ReadOptions, ReadTable
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.settings.config import resolve
from shared_data import SHARED


def read(path: Path | list[Path], **options: Any) -> tuple[ReadTable, str]:
    """The records, and all warnings as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        records = read_table(path, options=ReadOptions(**options))
    return records, "\n".join(str(warning.message) for warning in caught)


def sample(folder: Path, format_name: str) -> Path:
    name, content = samples.SINGLE_FILES[format_name]
    path = folder / name
    path.write_bytes(content)
    return path


def circles(records: ReadTable) -> list[tuple[float, float, float]]:
    columns = (records.columns[role].tolist() for role in ("x", "y", "diameter"))
    return [tuple(round(v, 6) for v in circle) for circle in zip(*columns, strict=True)]


ROUND = (60.0, 40.0, 20.0)

EXPECTED: dict[str, tuple[list[tuple[float, float, float]], str]] = {
    "Zooniverse": (
        [(10.5, 20.0, 8.0), (30.0, 40.0, 8.0), (5.0, 6.0, 14.0), (11.0, 21.0, 8.0)],
        "left out: 1 box (row 3); 1 classification made again later by the same user (row 2); "
        "1 line (row 3); 1 mark centred outside the image (row 3); "
        "1 point without a size (row 3); 1 polygon that is not a circle (row 3)",
    ),
    "Zooniverse extracts and reductions": (
        [(375.5, 182.5, 57.0), (261.0, 259.0, 68.0), (4.5, 5.5, 13.0), (375.0, 183.0, 56.0)],
        "1 classification made again later by the same user (row 4); "
        "1 mark of an unknown tool (row 5)",
    ),
    "COCO": (
        [ROUND],
        "1 box (annotation 2); 1 mask (annotation 3); "
        "1 polygon that is not a circle (annotation 4)",
    ),
    "VIA CSV": ([ROUND, (5.0, 6.0, 8.0)], "1 box (row 4); 1 polyline (row 5)"),
    "VIA JSON": ([ROUND, (5.0, 6.0, 8.0)], "1 box (region 3); 1 polyline (region 4)"),
    "LabelMe": (
        [ROUND, ROUND],
        "1 box (shape 3); 1 line (shape 5); 1 point without a size (shape 4)",
    ),
    "CVAT XML": (
        [ROUND, ROUND],
        "1 box (row 9); 2 points without a size (rows 10, 10); 1 polyline (row 11)",
    ),
    "Label Studio": (
        [(60.0, 40.0, 20.0), ROUND],
        "1 annotation repeated by the same annotator (task 1); 1 box (task 1); "
        "1 point without a size (task 1)",
    ),
    "CraterStats .scc": ([(10.1, 5.1, 1.1), (10.11, 5.1, 0.9)], ""),
    "CraterStats .diam": ([(10.1, 5.1, 1.1), (10.11, 5.1, 0.9)], ""),
    "GeoJSON": (
        [(10.1, 5.1, 1.1), (10.11, 5.1, 0.9)],
        "1 LineString (feature 5); 1 feature without geometry (feature 4); "
        "1 polygon that is not a circle (feature 3)",
    ),
    "Parquet": ([(1.0, 2.0, 3.0), (4.0, 5.5, 6.0)], ""),
    "Robbins": ([(264.757, -19.8304, 940.96), (328.602, 44.7763, 249.84)], ""),
}


@pytest.mark.parametrize("format_name", samples.SINGLE_FILES)
def test_reads_a_faithful_file(tmp_path: Path, format_name: str) -> None:
    records, warning = read(sample(tmp_path, format_name))
    expected, told = EXPECTED[format_name]
    assert circles(records) == expected
    assert told in warning
    assert bool(told) == bool(warning)
    counts = [part.removeprefix("left out: ").split()[0] for part in told.split("; ") if part]
    assert len(records.left_out) == sum(map(int, counts))


@pytest.mark.parametrize(("format_name", "units"), [
    ("CraterStats .scc", "deg"), ("CraterStats .diam", "deg"), ("GeoJSON", "deg"),
    ("Robbins", "deg"), ("COCO", "px"), ("Zooniverse", "px"), ("Parquet", "px"),
])  # fmt: skip
def test_units_are_known(tmp_path: Path, format_name: str, units: str) -> None:
    assert read(sample(tmp_path, format_name))[0].site.units == units


def test_zooniverse_users_subjects_and_frames(tmp_path: Path) -> None:
    path = sample(tmp_path, "Zooniverse")
    with pytest.warns(DfcrpWarning, match="left out"):
        markings = read_markings(path)
    assert markings.expert.tolist() == ["ann"] * 3 + ["not-logged-in-beef"]
    assert markings.image is not None
    assert markings.image.tolist() == ["7", "7", "7", "7#1"]
    assert markings.sources[0].left_out == 6


def test_boxes_and_points_are_read_when_asked_for(tmp_path: Path) -> None:
    records, warning = read(sample(tmp_path, "VIA CSV"), boxes=True)
    assert circles(records)[2] == (4.0, 1.0, 4.0)
    assert "box" not in warning
    records, warning = read(sample(tmp_path, "CVAT XML"), point_diameter=5.0)
    assert circles(records)[2:] == [(1.0, 2.0, 5.0), (3.0, 4.0, 5.0)]


def test_a_list_of_boxes_says_how_to_read_it(tmp_path: Path) -> None:
    path = tmp_path / "boxes.json"
    content = json.loads(samples.COCO)
    content["annotations"] = content["annotations"][1:2]
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"no circle in it, but 1 box .*--boxes"):
        read(path)


def test_a_radius_of_nothing_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    marks = samples.drawing({"x": 1, "y": 2, "r": 0}, {"x": 1, "y": 2, "r": 3})
    path.write_bytes(samples.zooniverse([{"annotations": [marks]}]))
    records, warning = read(path)
    assert len(records) == 1
    assert "1 circle of no size (row 2)" in warning


def test_craterstats_keeps_area_boundary_and_radius(tmp_path: Path) -> None:
    site = read(sample(tmp_path, "CraterStats .scc"))[0].site
    assert site.area_km2 == 99.7
    assert site.body_radius_km == 1737.4
    assert [(ring.hole, len(ring.points)) for ring in site.boundary] == [(False, 4), (True, 3)]
    assert read(sample(tmp_path, "CraterStats .diam"))[0].site.area_km2 == 100.0


def test_one_diam_file_per_expert(tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        (tmp_path / f"{name}.diam").write_bytes(samples.DIAM)
    markings = read_markings([tmp_path / "ann.diam", tmp_path / "bob.diam"])
    assert markings.expert.tolist() == ["ann", "ann", "bob", "bob"]
    assert markings.site.units == "deg"
    assert markings.site.area_km2 == 100.0
    assert markings.select(markings.expert == "ann").site == markings.site


def test_a_folder_is_one_annotator(tmp_path: Path) -> None:
    for name in ("ann", "bob"):
        folder = tmp_path / name
        folder.mkdir()
        (folder / "a.json").write_bytes(samples.LABELME)
        (folder / "b.json").write_bytes(samples.LABELME.replace(b"a.png", b"b.png"))
        (folder / "a.png").write_bytes(b"\x89PNG")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        markings = read_markings([tmp_path / "ann", tmp_path / "bob"], image="b.png")
    assert "ann/a.json: 2 circles are read; left out: 1 box" in str(caught[0].message)
    assert markings.expert.tolist() == ["ann", "ann", "bob", "bob"]
    assert markings.id[0] == "ann:ann/b.json:1"


def test_folders_that_hold_nothing_to_read(tmp_path: Path) -> None:
    (tmp_path / "a.png").write_bytes(b"")
    with pytest.raises(InputError, match="this is a directory"):
        read_markings(tmp_path)
    for name in ("config.toml", "markings.csv"):
        (tmp_path / name).write_text("")
    with pytest.raises(InputError, match=r"run folder; give the markings\.csv"):
        read_markings(tmp_path)


def test_shapefile_by_attributes_and_by_outline(tmp_path: Path) -> None:
    path = samples.write_shapefile_parts(tmp_path, samples.shapefile_parts())
    records, warning = read(path)
    assert circles(records) == [(10.1, 5.1, 1.1), (179.99, -89.9, 0.9)]
    assert not warning
    assert records.site.body_radius_km == 1737.4
    assert list(records.extra) == ["tag"]
    bare = samples.write_shapefile_parts(tmp_path, samples.shapefile_parts(attributes=False), "b")
    measured, warning = read(bare)
    assert circles(measured) == circles(records)
    assert "1 polygon that is not a circle (shape 3)" in warning


def test_shapefile_parts_that_lack(tmp_path: Path) -> None:
    parts = samples.shapefile_parts()
    path = samples.write_shapefile_parts(tmp_path, {".shp": parts[".shp"]})
    with pytest.raises(InputError, match=r"no a_CRATER\.dbf beside it"):
        read(path)
    (tmp_path / "a_CRATER.dbf").write_bytes(parts[".dbf"])
    assert len(read(path)[0]) == 2
    with pytest.raises(InputError, match=r"give the \.shp file"):
        read(tmp_path / "a_CRATER.dbf")


def test_circles_in_degrees_need_a_body(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    content = json.loads(samples.GEOJSON)
    content["features"] = content["features"][1:2]
    content["features"][0]["properties"] = {}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"feature 1: a circle in degrees.*--body moon"):
        read(path)
    records, _ = read(path, body_radius_km=1737.4)
    assert records.columns["diameter"][0] == pytest.approx(2 * np.radians(0.02) * 1737.4, rel=1e-6)


def test_points_without_a_size(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    content = json.loads(samples.GEOJSON)
    content["features"] = content["features"][:1]
    content["features"][0]["properties"] = {}
    path.write_text(json.dumps(content))
    with pytest.raises(InputError, match=r"1 point without a size .*--point-diameter"):
        read(path)
    assert circles(read(path, point_diameter=2.0)[0]) == [(10.1, 5.1, 2.0)]


def test_an_outline_beside_diameters_in_metres(tmp_path: Path) -> None:
    path = tmp_path / "a.geojson"
    content = json.loads(samples.GEOJSON.replace(b"Diam_km", b"diam_m"))
    content["features"] = content["features"][:2]
    del content["features"][1]["properties"]["diam_m"]
    path.write_text(json.dumps(content))
    records, _ = read(path, body_radius_km=1737.4)
    expected = [1.1 / 1000, 2 * np.radians(0.02) * 1737.4]
    np.testing.assert_allclose(records.columns["diameter"], expected, rtol=1e-6)


def test_a_volunteer_may_fill_a_long_cell(tmp_path: Path) -> None:
    path = tmp_path / "export.csv"
    marks = samples.drawing(*({"x": k % 90, "y": 2, "r": 1 + k} for k in range(3000)))
    path.write_bytes(samples.zooniverse([{"annotations": [marks]}]))
    assert len(read(path)[0]) == 3000


def test_metres_become_km_beside_degrees(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("lon,lat,diameter (m)\n10,5,1500\n")
    assert circles(read(path)[0]) == [(10.0, 5.0, 1.5)]


def test_plane_coordinates_go_before_degrees(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text("lon,lat,x,y,d\n10,5,1,2,3\n")
    records, _ = read(path)
    assert circles(records) == [(1.0, 2.0, 3.0)]
    assert records.site.units == "px"


def test_units_do_not_mix(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("x,y,d\n1,2,3\n")
    (tmp_path / "b.csv").write_text("lon,lat,d\n1,2,3\n")
    with pytest.raises(InputError, match=r"a\.csv is in px, b\.csv in deg"):
        read_markings([tmp_path / "a.csv", tmp_path / "b.csv"])


def test_degrees_need_a_body(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("lon,lat,d,expert\n1,2,3,A\n")
    markings = read_markings(tmp_path / "a.csv")
    with pytest.raises(InputError, match="--body moon"):
        likelihood_named("circles").check(markings, resolve(None, {}))


BILLION_LAUGHS = b"""<?xml version="1.0"?>
<!DOCTYPE annotations [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>
<annotations><image name="&b;"><ellipse cx="1" cy="1" rx="1" ry="1"/></image></annotations>
"""

NASTY: dict[str, tuple[str, bytes, list[str]]] = {
    "entities": ("a.xml", BILLION_LAUGHS, ["a.xml", "document type"]),
    "half an XML": ("a.xml", samples.CVAT[:300], ["a.xml, row", "not XML"]),
    "XML in a strange encoding": (
        "a.xml",
        b'<?xml version="1.0" encoding="klingon"?><annotations/>',
        ["a.xml", "not XML"],
    ),
    "CVAT without numbers": (
        "a.xml",
        samples.CVAT.replace(b'cx="60"', b'cx="left"'),
        ["a.xml, row 5", "'left', not a number"],
    ),
    "half a JSON": ("a.json", samples.COCO[:-20], ["a.json", "not JSON at line 1"]),
    "a nest of brackets": ("a.geojson", b"[" * 100_000, ["a.geojson", "JSON"]),
    "digits without end": ("a.geojson", b"9" * 10_000, ["a.geojson"]),
    "JSON of something else": ("a.json", b'{"a": 1}', ["a.json", "unknown kind"]),
    "COCO with a list for an object": (
        "a.json",
        b'{"images": [1], "annotations": [], "x": "image_id", "image_id": 1}',
        ["a.json, images", "should be {...}"],
    ),
    "LabelMe without points": (
        "a.json",
        b'{"shapes": [{"shape_type": "circle"}], "imagePath": "a"}',
        ["a.json, shape 1", "points"],
    ),
    "LabelMe without shapes": ("a.json", b'{"shapes": [], "imagePath": "a"}', ["no mark"]),
    "Label Studio without size": (
        "a.json",
        samples.LABEL_STUDIO.replace(b'"original_width": 200', b'"original_width": null'),
        ["a.json, task 1", "original_width"],
    ),
    "VIA with broken shapes": (
        "a.csv",
        b"filename,region_shape_attributes\na.png,{\n",
        ["a.csv, row 2, column 'region_shape_attributes'", "not JSON"],
    ),
    "Zooniverse with broken annotations": (
        "a.csv",
        b"user_name,annotations,subject_data,subject_ids\nann,[,x,1\n",
        ["a.csv, row 2, column 'annotations'", "not JSON"],
    ),
    "Zooniverse without subjects": (
        "a.csv",
        b"user_name,annotations,subject_data\nann,[],x\n",
        ["a.csv, header", "subject_ids"],
    ),
    "diam without places": ("a.diam", b"area = 1\ncrater = {diameter\n1\n}\n", ["no lon"]),
    "diam not closed": ("a.diam", samples.DIAM[:-2], ["a.diam", "not closed"]),
    "diam with a short row": (
        "a.diam",
        samples.DIAM.replace(b"\t5.1\n}", b"\n}"),
        ["a.diam, row 5: 3 fields, the table has 4"],
    ),
    "diam with a negative size": (
        "a.diam",
        samples.DIAM.replace(b"0.9", b"-9"),
        ["a.diam, row 5, column 'diameter_km'", "must be positive"],
    ),
    "diam without craters": ("a.diam", b"area = 1\n", ["a.diam", "crater = {"]),
    "diam of no area": ("a.diam", samples.DIAM.replace(b"100.", b"none"), ["area is 'none'"]),
    "scc with a boundary on no planet": (
        "a.scc",
        samples.SCC.replace(b"10.0	5.33", b"10.0	533"),
        ["a.scc, row 8", "not a longitude and latitude"],
    ),
    "latitude beyond the pole": (
        "a.csv",
        b"lon,lat,d\n1,2,3\n1,200,3\n",
        ["a.csv, row 3, column 'lat'", "200 is not a latitude"],
    ),
    "GeoJSON with a word for a diameter": (
        "a.geojson",
        samples.GEOJSON.replace(b"1.1", b'"wide"'),
        ["a.geojson, feature 1, column 'Diam_km'", "'wide'"],
    ),
    "GeoJSON without features": ("a.geojson", b'{"type": "FeatureCollection"}', ["features"]),
    "Parquet cut off": ("a.parquet", samples.parquet_bytes()[:-9], ["a.parquet", "Parquet"]),
    "a shapefile's first bytes": ("a.shp", b"\x00\x00\x27\x0a", ["a.shp", ".dbf"]),
}  # fmt: skip


@pytest.mark.parametrize("case", NASTY)
def test_refuses_with_place_and_fix(tmp_path: Path, case: str) -> None:
    name, content, expected = NASTY[case]
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        read(path)
    assert [part for part in expected if part not in str(caught.value)] == [], str(caught.value)


def test_parquet_names_the_extra_where_it_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(InputError, match=r"pip install 'dfcrp\[parquet\]'"):
        read(sample(tmp_path, "Parquet"))


def test_every_format_has_a_sample() -> None:
    # Others are in test_io_particles.py, test_io_more_tools.py and test_io_intervals.py.
    others = {"shapefile", "particle boxes", "SlideRunner", "YOLO"}
    others |= {"Audacity", "TextGrid", "ELAN", "doccano", "CoNLL", "Label Studio spans"}
    covered = {name.split(" .")[0] for name in samples.SINGLE_FILES} | others
    assert {form.name for form in formats()} - covered == {"other JSON", "delimited text"}


def shared(*parts: str) -> Path:
    path = SHARED.joinpath("formats", *parts)
    if not path.is_file():
        pytest.skip(f"{'/'.join(parts)} is not in ../shared/data; it belongs to others")
    return path


def test_real_zooniverse_export() -> None:
    import csv

    records, _ = read(shared("zooniverse", "ap-aas229-test-classifications.csv"))
    flat = shared("zooniverse", "ap-aas229-test-markings.csv")
    with open(flat, encoding="utf-8", newline="") as stream:
        known = {(float(r["x"]), float(r["y"]), 2 * float(r["r"])) for r in csv.DictReader(stream)}
    columns = [records.columns[role].tolist() for role in ("x", "y", "diameter")]
    ours = set(zip(*columns, strict=True))
    # The flattened list begins a day later than the export and has no ellipses.
    assert (len(ours), len(ours & known)) == (62, 51)
    assert len(set(records.about["expert"])) == 3


@pytest.mark.parametrize(("file", "count"), [
    ("tiny.diam", 8), ("tiny.scc", 6), ("sample.scc", 30), ("Pickering.scc", 1707),
    ("tiny_CRATER.shp", 6),
])  # fmt: skip
def test_real_craterstats_files(file: str, count: int) -> None:
    records, warning = read(shared("craterstats", file))
    assert len(records) == count
    assert records.site.units == "deg"
    assert not warning
