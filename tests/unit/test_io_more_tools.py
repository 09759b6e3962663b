"""SlideRunner's databases, YOLO's text files, QuPath's GeoJSON, and polygons as other shapes."""

from __future__ import annotations

import json
import math
import sqlite3
import warnings
from pathlib import Path

import numpy as np
import pytest

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.reading import read_items
from dfcrp.io.shapes import ellipse_of_polygon


def sliderunner(folder: Path, *, deleted: bool = True) -> Path:
    """Two persons and one slide: tables and columns as SlideRunner makes them."""
    path = folder / "study.sqlite"
    gone = ", deleted INTEGER DEFAULT 0" if deleted else ""
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE Annotations_label (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE,"
            " person INTEGER, class INTEGER, annoId INTEGER);"
            "CREATE TABLE Annotations_coordinates (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE,"
            " coordinateX INTEGER, coordinateY INTEGER, slide INTEGER, annoId INTEGER,"
            " orderIdx INTEGER);"
            "CREATE TABLE Annotations (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, slide INTEGER,"
            f" type INTEGER, agreedClass INTEGER{gone});"
            "CREATE TABLE Classes (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, name TEXT);"
            "CREATE TABLE Persons (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, name TEXT);"
            "CREATE TABLE Slides (uid INTEGER PRIMARY KEY AUTOINCREMENT UNIQUE, filename TEXT);"
            "INSERT INTO Slides VALUES (1, 'tumour.svs');"
            "INSERT INTO Persons VALUES (1, 'Ann'), (2, 'Bob');"
            "INSERT INTO Classes VALUES (1, 'mitosis'), (2, 'other cell');"
        )
        drawn = [
            (1, 1, [(10, 20)], [(1, 1), (2, 2)]),
            (2, 1, [(11, 21)], [(2, 1)]),
            (3, 2, [(0, 0), (8, 4)], [(1, 1)]),
            (4, 5, [(10, 10), (30, 30)], [(1, 1), (2, 1)]),
            (5, 3, [(0, 0), (40, 0), (40, 20), (0, 20), (0, 0)], [(2, 2)]),
            (6, 1, [(70, 70)], []),
        ]
        for number, kind, points, labels in drawn:
            database.execute(
                "INSERT INTO Annotations (uid, slide, type) VALUES (?, 1, ?)", (number, kind)
            )
            for order, (x, y) in enumerate(points, 1):
                database.execute(
                    "INSERT INTO Annotations_coordinates (coordinateX, coordinateY, slide, annoId,"
                    " orderIdx) VALUES (?, ?, 1, ?, ?)",
                    (x, y, number, order),
                )
            for person, label in labels:
                database.execute(
                    "INSERT INTO Annotations_label (person, class, annoId) VALUES (?, ?, ?)",
                    (person, label, number),
                )
        if deleted:
            database.execute("UPDATE Annotations SET deleted = 1 WHERE uid = 2")
    database.close()
    return path


def read(paths, kind):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        items = read_items(paths, kind)
    return items, "\n".join(str(one.message) for one in caught)


def test_a_database_of_sliderunner(tmp_path):
    """Each person lists what they labelled; deleted annotations and those of nobody are left."""
    path = sliderunner(tmp_path)
    before = path.read_bytes()
    points, said = read(path, "points")
    assert points.values[:2].tolist() == [[10, 20], [10, 20]]
    assert len(points) == 6  # also the centres of a box, of a circle by two and of a polygon
    assert points.expert[:2].tolist() == ["Ann", "Bob"]
    assert set(points.image) == {"tumour.svs"}
    assert "1 annotation that is deleted (annotation 2)" in said
    assert "1 annotation that nobody has labelled (annotation 6)" in said
    boxes, _ = read(path, "boxes")
    assert boxes.values.tolist() == [[4, 2, 8, 4]]
    circles, _ = read(path, "circles")
    assert circles.values.tolist() == [[20, 20, 20]] * 2
    assert path.read_bytes() == before
    older, _ = read(sliderunner(_folder(tmp_path, "older"), deleted=False), "points")
    assert len(older) == 7


def _folder(parent, name):
    folder = parent / name
    folder.mkdir(parents=True)
    return folder


@pytest.mark.parametrize("bytes_", [b"SQLite format 3\x00", b"SQLite format 3\x00" + b"x" * 5000])
def test_a_damaged_database_is_refused(tmp_path, bytes_):
    path = tmp_path / "a.sqlite"
    path.write_bytes(bytes_)
    with pytest.raises(InputError, match=r"a\.sqlite"):
        read_items(path, "points")


def test_another_database_is_refused(tmp_path):
    """Also one with a view where SlideRunner has a table."""
    path = tmp_path / "a.db"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE x (a)")
        database.execute("CREATE VIEW Annotations AS SELECT a AS uid FROM x")
    database.close()
    with pytest.raises(InputError, match=r"without the table Slides.*Export the table as CSV"):
        read_items(path, "points")


def test_yolo_folders(tmp_path):
    """One folder per person, one file per image; notes and names of classes lie beside them."""
    for who, shift in (("ann", 0.0), ("bob", 0.01)):
        folder = _folder(tmp_path, who)
        (folder / "img1.txt").write_text(f"0 {0.5 + shift} 0.4 0.1 0.2\n1 0.2 0.2 0.05 0.05\n")
        (folder / "img2.txt").write_text(f"1 {0.3 + shift} 0.3 0.1 0.1 0.87\n")
        (folder / "classes.txt").write_text("crater\nrock\n")
        (folder / "notes.txt").write_text("drawn on Monday\n")
    items, _ = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.experts == ("ann", "bob")
    assert items.image.tolist() == ["img1", "img1", "img2"] * 2
    assert items.values[:2].round(9).tolist() == [[0.5, 0.4, 0.1, 0.2], [0.2, 0.2, 0.05, 0.05]]
    assert items.score[[2, 5]].tolist() == [0.87, 0.87]
    assert np.isnan(items.score[[0, 1, 3, 4]]).all()
    points, said = read([tmp_path / "ann", tmp_path / "bob"], "points")
    assert len(points) == 6
    assert "the centres of its shapes are read" in said


@pytest.mark.parametrize(
    "names",
    [
        "names: ['crater', \"rock\"]  # two\n",
        "path: ..\nnames:\n  - crater\n  - rock\nnc: 2\n",
        "names:\n- crater\n- rock\nnc: 2\n",
        "nc: 2\nnames:\n  0: crater\n\n  1: 'rock'\ntrain: images\n",
        "names: {0: crater, 1: rock}\n",
    ],
)
def test_yolo_data_sets(tmp_path, names):
    """NAME/labels/*.txt beside NAME/images, the classes in data.yaml; an empty file is a look."""
    for who, shift in (("ann", 0.0), ("bob", 0.01)):
        folder = _folder(tmp_path, who)
        labels = _folder(folder, "labels/train")
        _folder(folder, "images").joinpath("img1.jpg").write_bytes(b"\xff\xd8")
        (folder / "data.yaml").write_text(names)
        (folder / "README.roboflow.txt").write_text("made by a tool\n")
        (labels / "img1.txt").write_text(f"0 {0.5 + shift} 0.4 0.1 0.2\n1 0.2 0.2 0.05 0.05\n")
        (labels / "img2.txt").write_text("")
    items, said = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.experts == ("ann", "bob")
    assert items.image.tolist() == ["img1", "img1"] * 2
    assert items.category.tolist() == ["crater", "rock"] * 2
    assert sorted(items.looked.tolist()) == [
        [image, who] for image in ("img1", "img2") for who in ("ann", "bob")
    ]
    assert "1 of 2 files have no boxes" in said


def test_yolo_polygons_and_turned_boxes(tmp_path):
    """Vertices in a row, with a confidence or without, as boxes around them or as ellipses."""
    for who in ("ann", "bob"):
        folder = _folder(tmp_path, who)
        rows = ["0 0.1 0.1 0.3 0.1 0.3 0.2 0.1 0.2", "0 0.5 0.5 0.6 0.6 0.5 0.7 0.9"]
        (folder / "img1.txt").write_text("\n".join(rows))
    paths = [tmp_path / "ann", tmp_path / "bob"]
    boxes, _ = read(paths, "boxes")
    assert boxes.values[:2].round(9).tolist() == [[0.2, 0.15, 0.2, 0.1], [0.55, 0.6, 0.1, 0.2]]
    assert np.isnan(boxes.score[0])
    assert boxes.score[1] == 0.9
    assert len(read(paths, "ellipses")[0]) == 4


@pytest.mark.parametrize("kind", ["ellipses", "points"])
@pytest.mark.parametrize("tool", ["LabelMe", "QuPath"])
def test_round_outlines_do_not_keep_longer_ones_out(tmp_path, kind, tool):
    """Cells drawn as polygons: some are round, and all of them are ellipses with a centre."""
    angles = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    rings = [
        np.column_stack([40.0 * at + 8 * np.cos(angles), 30 + down * np.sin(angles)]).tolist()
        for at, down in ((1, 8.0), (2, 7.6), (3, 4.0), (4, 2.0))
    ]
    if tool == "LabelMe":
        shapes = [{"label": "cell", "points": ring, "shape_type": "polygon"} for ring in rings]
        content = {"version": "5.4.1", "shapes": shapes, "imagePath": "a.png", "imageHeight": 100}
    else:
        features = [
            {
                "type": "Feature",
                "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
                "properties": {"objectType": "annotation"},
            }
            for ring in rings
        ]
        content = {"type": "FeatureCollection", "features": features}
    paths = [tmp_path / f"{who}.json" for who in ("ann", "bob")]
    for path in paths:
        path.write_text(json.dumps(content))
    items, _ = read(paths, kind)
    assert items.values[:4, :2] == pytest.approx(np.array([[40.0 * k, 30.0] for k in range(1, 5)]))
    if kind == "ellipses":
        ratio = items.values[:4, 3] / items.values[:4, 2]
        assert ratio == pytest.approx([1.0, 0.95, 0.5, 0.25])


def annotated(person, **more):
    """COCO annotations, each with what a tool adds of the person who made it."""
    boxes = [[10, 10, 4, 6], [30, 10, 5, 5]]
    return [
        {"id": at, "image_id": 1, "category_id": 1, "bbox": box, "score": 0.5, **who, **more}
        for at, (box, who) in enumerate(zip(boxes, person, strict=True), 1)
    ]


@pytest.mark.parametrize(
    "person",
    [
        [{"annotator": "ann"}, {"annotator": "bob"}],
        [{"created_by": {"id": 1, "username": "ann"}}, {"created_by": {"username": "bob"}}],
    ],
)
def test_coco_with_annotators_in_one_file(tmp_path, person):
    """Who looked at images without a mark is then not known, and nothing is said of it."""
    path = tmp_path / "all.json"
    images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}]
    path.write_text(json.dumps({"images": images, "annotations": annotated(person)}))
    items, _ = read(path, "boxes")
    assert items.expert.tolist() == ["ann", "bob"]
    assert items.looked is None or ["b.png", "ann"] not in items.looked.tolist()


def test_coco_of_which_some_annotations_name_nobody_is_one_list(tmp_path):
    path = tmp_path / "all.json"
    images = [{"id": 1, "file_name": "a.png"}]
    found = annotated([{"annotator": "ann"}, {}])
    path.write_text(json.dumps({"images": images, "annotations": found}))
    with (
        pytest.warns(DfcrpWarning, match=r"not all annotations say who made them.*annotation 1"),
        pytest.raises(InputError, match="no column for expert"),
    ):
        read_items(path, "boxes")


def test_coco_results_of_detectors(tmp_path):
    """A list without images and categories: they go by their numbers."""
    paths = [tmp_path / f"{who}.json" for who in ("one", "two")]
    for path in paths:
        path.write_text(json.dumps(annotated([{}, {}])))
    items, _ = read(paths, "boxes")
    assert items.experts == ("one", "two")
    assert items.image.tolist() == ["1"] * 4
    assert items.score.tolist() == [0.5] * 4
    assert items.values[0].tolist() == [12.0, 13.0, 4.0, 6.0]


def test_other_text_is_no_yolo_file(tmp_path):
    """Numbers beyond the image are a table without a header, which says so."""
    path = tmp_path / "a.txt"
    path.write_text("0 50 40 10 20\n")
    with pytest.raises(InputError):
        read_items(path, "boxes")


def qupath(folder: Path, name: str, shift: float, *, listed: bool) -> Path:
    angles = np.linspace(0, 2 * np.pi, 40, endpoint=False)
    cells = []
    for x, y in ((40.0, 30.0), (70.0, 60.0)):
        across, down = 8 * np.cos(angles), 4 * np.sin(angles)
        ring = np.column_stack([x + shift + across, y + down]).tolist()
        cells.append(
            {
                "type": "Feature",
                "id": f"{x}",
                "geometry": {"type": "Polygon", "coordinates": [[*ring, ring[0]]]},
                "properties": {
                    "objectType": "annotation",
                    "classification": {"name": "Tumor", "color": [200, 0, 0]},
                    "isLocked": False,
                },
            }
        )
    content = cells if listed else {"type": "FeatureCollection", "features": cells}
    path = folder / f"{name}.{'json' if listed else 'geojson'}"
    path.write_text(json.dumps(content))
    return path


@pytest.mark.parametrize("listed", [True, False])
def test_geojson_of_qupath_is_in_pixels(tmp_path, listed):
    """Also where all coordinates could be degrees; its polygons are read by moments or boxes."""
    paths = [qupath(tmp_path, who, at, listed=listed) for who, at in (("ann", 0.0), ("bob", 0.5))]
    ellipses, said = read(paths, "ellipses")
    assert ellipses.site.units == "px"
    assert ellipses.values[0] == pytest.approx([40, 30, 16, 8, 0], rel=5e-3, abs=1e-6)
    assert "its polygons are read as ellipses of the same moments" in said
    boxes, said = read(paths, "boxes")
    assert boxes.values[0] == pytest.approx([40, 30, 16, 8])
    assert "its polygons are read by the boxes around them" in said


@pytest.mark.parametrize("turned", [0.0, 30.0, 100.0])
@pytest.mark.parametrize("way", [1, -1])
def test_moments_of_an_ellipse_are_its_own(turned, way):
    angle = np.linspace(0, 2 * np.pi, 720, endpoint=False)[::way]
    a, b, t = 10.0, 4.0, math.radians(turned)
    x = 5 + a * np.cos(angle) * np.cos(t) - b * np.sin(angle) * np.sin(t)
    y = 7 + a * np.cos(angle) * np.sin(t) + b * np.sin(angle) * np.cos(t)
    found = ellipse_of_polygon(list(zip(x.tolist(), y.tolist(), strict=True)))
    assert found == pytest.approx((5, 7, 20, 8, turned), abs=1e-3)


def test_a_box_as_an_ellipse_keeps_its_area_and_proportions():
    x, y, major, minor, angle = ellipse_of_polygon([(0, 0), (8, 0), (8, 2), (0, 2)])
    assert (x, y, angle) == pytest.approx((4, 1, 0))
    assert major / minor == pytest.approx(4)
    assert math.pi * major * minor / 4 == pytest.approx(16)


@pytest.mark.parametrize("points", [[(0, 0), (1, 1)], [(0, 0), (1, 1), (2, 2)], [(0, 0)]])
def test_a_line_is_no_ellipse(points):
    assert ellipse_of_polygon(points) is None


def test_polygons_beside_boxes_are_left_out(tmp_path):
    """What was drawn as a box and what was not are two things."""
    shapes = [
        {"label": "a", "points": [[0, 0], [8, 2]], "shape_type": "rectangle"},
        {"label": "a", "points": [[0, 0], [8, 2], [3, 9]], "shape_type": "polygon"},
    ]
    paths = []
    for who in ("ann", "bob"):
        paths.append(tmp_path / f"{who}.json")
        paths[-1].write_text(json.dumps({"version": "5", "shapes": shapes, "imagePath": "a.png"}))
    with pytest.warns(DfcrpWarning, match=r"left out: 1 polygon \(shape 2\)"):
        assert len(read_items(paths, "boxes")) == 2
    ellipses, _ = read(paths, "ellipses")
    assert len(ellipses) == 2
