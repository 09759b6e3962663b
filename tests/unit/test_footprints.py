"""Looks at parts of images: how they are given, the zones they make, and that a run knows them."""

from __future__ import annotations

import json

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import InputError
from dfcrp.io.looks import read_looked
from dfcrp.items import footprints
from dfcrp.items.footprints import contains, read_footprint
from dfcrp.items.looks import looks_given, with_looks
from dfcrp.items.site import Site
from dfcrp.runs.folder import prepare_folder, read_markings_back
from dfcrp.settings.config import Config

SQUARE = [[0, 0], [10, 0], [10, 10], [0, 10], [0, 0]]
HOLE = [[4, 4], [6, 4], [6, 6], [4, 6], [4, 4]]
WKT = "POLYGON ((0 0, 10 0, 10 10, 0 10, 0 0), (4 4, 6 4, 6 6, 4 6, 4 4))"


class Shapely:
    """What shapely's shapes offer."""

    @property
    def __geo_interface__(self):
        return {"type": "Polygon", "coordinates": [SQUARE, HOLE]}


@pytest.mark.parametrize(
    "given",
    [
        WKT,
        "multipolygon(((0 0,1e1 0,10. 10.0,.0 10,0 0),(4 4 0,6 4 0,6 6 0,4 6 0)))",
        {"type": "Polygon", "coordinates": [SQUARE, HOLE]},
        {"type": "MultiPolygon", "coordinates": [[SQUARE, HOLE]]},
        json.dumps(
            {"type": "Feature", "geometry": {"type": "Polygon", "coordinates": [SQUARE, HOLE]}}
        ),
        Shapely(),
    ],
)
def test_forms_of_a_footprint(given):
    found = read_footprint(given, "here")
    x, y = np.array([1.0, 5.0, 11.0, 7.0]), np.array([1.0, 5.0, 5.0, 9.0])
    assert contains(found, x, y).tolist() == [True, False, False, True]


def test_sides_are_a_rectangle():
    assert read_footprint((0, 0, 10, 5), "here") == ((((0, 0), (10, 0), (10, 5), (0, 5)),),)
    assert read_footprint("", "here") is None
    assert read_footprint(float("nan"), "here") is None


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("all of it", "'all of it' is not a polygon; write it as WKT"),
        ("POLYGON ((0 0, 1 1", "not well-formed WKT"),
        ("POLYGON ((0 0, 1 1))", "three points or more"),
        ("POLYGON ((0 0, 1 1, 2 2, 0 0))", "no area"),
        ({"type": "Point", "coordinates": [1, 2]}, "a Polygon or MultiPolygon, not Point"),
        ({"type": "Polygon", "coordinates": 7}, "three points or more"),
        ({"type": "MultiPolygon", "coordinates": []}, "is empty"),
        ({"type": "Polygon", "coordinates": [[[0, 0], [1, "a"], [1, 1]]]}, "three points"),
        ((5, 0, 1, 2), "must be below x_max"),
        ((5, 0, 1), "is not a footprint"),
    ],
)  # fmt: skip
def test_what_is_no_footprint(given, message):
    with pytest.raises(InputError, match=f"^here: .*{message}"):
        read_footprint(given, "here")


def test_tables_and_geojson(tmp_path):
    table = tmp_path / "looked.csv"
    table.write_text("image,expert,x_min,y_min,x_max,y_max\na,ann,0,0,10,10\na,bob,,,,\n")
    square = {"type": "Polygon", "coordinates": [SQUARE]}
    shapes = [
        {"type": "Feature", "properties": {"image": "a", "Observer": who}, "geometry": shape}
        for who, shape in (("ann", square), ("bob", None))
    ]
    (tmp_path / "looked.geojson").write_text(
        json.dumps({"type": "FeatureCollection", "features": shapes})
    )
    wkt = {
        "image": ["a", "a"],
        "expert": ["ann", "bob"],
        "Footprint": ["POLYGON ((0 0, 10 0, 10 10, 0 10))", None],
    }
    for given in (read_looked(table), read_looked(tmp_path / "looked.geojson"), looks_given(wkt)):
        assert given.pairs.tolist() == [["a", "ann"], ["a", "bob"]]
        assert list(given.footprints) == [("a", "ann")]
        assert contains(given.footprints["a", "ann"], np.array([5.0]), np.array([9.0])).all()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,expert,x_min,x_max\na,ann,0,1\n", "footprint needs .*; y_min, y_max is not there"),
        ("image,expert,width,height\na,ann,0,1\n", "header: the column width seems to say"),
        ("image,expert,wkt,geometry\na,ann,,\n", "several columns for the footprint"),
        ("image,expert,wkt\na,ann,\na,bob,POINT\n", "row 3, column wkt: 'POINT' is not a polygon"),
        ("image,expert,x_min,y_min,x_max,y_max\na,ann,0,0,b,1\n", "row 2, .* x.?max: 'b' is not"),
    ],
)  # fmt: skip
def test_messages_of_a_table(tmp_path, text, message):
    file = tmp_path / "looked.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_looked(file)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[]", "should be {...}"),
        ("{", "not JSON at line 1"),
        ("{}", "looks in GeoJSON are a FeatureCollection"),
        ('{"features": [{"properties": {}}]}', "feature 1: it needs one property called expert"),
        ('{"features": [{"properties": [1]}]}', "feature 1, properties: '.1.' should be {...}"),
        ('{"features": [3]}', "feature 1: '3' should be {...}"),
        ('{"features": [{"properties": {"expert": ""}}]}', "property expert: it is empty"),
        ('{"features": [{"properties": {"expert": "a\\u0007"}}]}', "contains a line break"),
    ],
)
def test_geojson_that_is_none(tmp_path, text, message):
    file = tmp_path / "looked.geojson"
    file.write_text(text)
    with pytest.raises(InputError, match=message) as refused:
        read_looked(file)
    assert "looked.geojson" in str(refused.value)


def test_several_rows_of_a_look_add_up():
    table = {
        "image": ["a"] * 4, "expert": ["ann", "ann", "bob", "bob"],
        "footprint": [(0, 0, 1, 1), (2, 0, 3, 1), (0, 0, 1, 1), None],
    }  # fmt: skip
    found = looks_given(table).footprints
    assert list(found) == [("a", "ann")]
    inside = contains(found["a", "ann"], np.array([0.5, 1.5, 2.5]), np.array([0.5, 0.5, 0.5]))
    assert inside.tolist() == [True, False, True]


def some_points(**about):
    """Ann saw all of it, bob the left half, cho the right one; the last mark is outside."""
    columns = {"x": [1.0, 1.1, 9.0, 9.1, 9.2], "y": [0.5, 0.5, 0.2, 0.2, 0.9]}
    experts = ["ann", "bob", "ann", "cho", "bob"]
    items = dfcrp.Items.from_columns(columns, experts, kind="points", **about)
    looked = {
        "expert": ["ann", "bob", "cho"], "footprint": [None, (0, 0, 6, 1), (4, 0, 12, 1)],
    }  # fmt: skip
    return with_looks(items, looked)


def test_zones_have_the_same_viewers_everywhere():
    items = some_points()
    zones = items.zones
    seen = [
        tuple(items.experts[f] for z, f in zones.pairs.tolist() if z == zone)
        for zone in range(len(zones.share))
    ]
    # Of 12 units of length 4 are bob's, 2 of both, 6 cho's; bob marked something outside.
    share = dict(zip(seen, zones.share, strict=True))
    assert share["ann", "bob"] == pytest.approx(4 / 12, abs=0.003)
    assert share["ann", "bob", "cho"] == pytest.approx(2 / 12 + 1e-4, abs=0.003)
    assert share["ann", "cho"] == pytest.approx(6 / 12, abs=0.003)
    assert zones.share.sum() == pytest.approx(1.0)
    assert [seen[z] for z in zones.zone] == [
        ("ann", "bob"), ("ann", "bob"), ("ann", "cho"), ("ann", "cho"), ("ann", "bob", "cho"),
    ]  # fmt: skip


def test_degrees_go_around_and_count_by_area():
    columns = {"x": [359.0, 1.0], "y": [0.0, 0.0], "diameter": [1.0, 1.0]}
    site = Site(units="deg", body_radius_km=1737.4)
    items = dfcrp.Items.from_columns(columns, ["ann", "bob"], site=site)
    looked = {"expert": ["ann", "bob"], "footprint": [(-2, 0, 2, 60), (-2, -1, 2, 90)]}
    zones = with_looks(items, looked).zones
    assert zones.zone.tolist() == [0, 0]
    both, below, above = np.sin(np.radians(60)), np.sin(np.radians(1)), 1 - np.sin(np.radians(60))
    expected = np.array([both, below + above]) / (both + below + above)
    assert zones.share == pytest.approx(expected, abs=0.003)


def test_images_without_footprints_are_one_zone():
    columns = {"x": [1.0, 1.0, 2.0], "y": [2.0, 2.0, 2.0]}
    items = dfcrp.Items.from_columns(
        columns, ["ann", "bob", "ann"], kind="points", image=["a", "b", "b"]
    )
    assert items.zones is None
    told = {"image": ["a", "a", "b", "b"], "expert": ["ann", "bob"] * 2}
    told["footprint"] = [(0, 0, 5, 5), (0, 0, 5, 2.5), None, None]
    zones = with_looks(items, told).zones
    assert zones.image.tolist() == [0, 0, 1]
    assert zones.zone.tolist() == [0, 2, 2]
    assert with_looks(items, told).of_image("b", np.array([1, 2])).zones is None


def test_footprints_are_data_and_are_kept(tmp_path):
    items = some_points(image=["a"] * 5)
    assert items.digest != with_looks(items, items.looked).digest
    config = Config()
    config = config.__class__(run=config.run.__class__(likelihood="points"))
    (tmp_path / "run").mkdir()
    prepare_folder(tmp_path / "run", items, config)
    back = read_markings_back(tmp_path / "run", config)
    assert back.footprints == items.footprints
    assert back.digest == items.digest
    assert back.take(np.arange(3)).footprints == items.footprints


def test_rows_of_numbers_have_no_places():
    items = dfcrp.Items.from_columns({"a": [1.0, 2.0]}, ["ann", "bob"], kind="diagonal")
    with pytest.raises(InputError, match="diagonal have no position"):
        with_looks(items, {"expert": ["ann"], "footprint": [(0, 0, 1, 1)]})


def crowd(seed=3):
    """Marks of 80 objects; whoever looks finds 3 of 4, and the last looks at the left half only."""
    rng = np.random.default_rng(seed)
    x, y = rng.uniform(0, 1000, (2, 80))
    rows = []
    for who in range(5):
        found = (rng.random(80) < 0.75) & ((who < 4) | (x < 500))
        rows += [
            (f"e{who}", x[k] + rng.normal(), y[k] + rng.normal()) for k in np.flatnonzero(found)
        ]
    names, left, down = zip(*rows, strict=True)
    return dfcrp.Items.from_columns({"x": left, "y": down}, names, kind="points")


def test_only_objects_in_a_footprint_are_missed():
    """An expert who looks at a half finds as much there as the others; without it, half as much."""
    items = crowd()
    names = list(items.experts)
    whole = (0, 0, 1000, 1000)
    part = {"expert": names, "footprint": [*[whole] * 4, (0, 0, 500, 1000)]}
    options = {"prior": "detection", "chains": 2, "scans": 300, "burn_in": 100, "seed": 1}
    told, untold = (
        dfcrp.fit(given, **options).detection.sensitivity[:, 0].mean(axis=0)
        for given in (with_looks(items, part), items)
    )
    assert told[4] == pytest.approx(0.75, abs=0.12)
    assert untold[4] < 0.5
    assert told[:4] == pytest.approx(untold[:4], abs=0.1)


def test_a_footprint_is_read_once(tmp_path, monkeypatch):
    """It is not written as text to be read again."""
    file = tmp_path / "looked.csv"
    file.write_text(
        "image,expert,footprint\n"
        'a,ann,"POLYGON ((0 0, 9 0, 9 9, 0 0))"\n'
        'a,bob,"POLYGON ((0 0, 5 0, 5 5, 0 0))"\n',
        encoding="utf-8",
    )
    real, calls = footprints.read_footprint, []

    def counted(value, where):
        calls.append(where)
        return real(value, where)

    monkeypatch.setattr(footprints, "read_footprint", counted)
    assert len(read_looked(file).footprints) == len(calls) == 2


@pytest.mark.filterwarnings("ignore:.*without being listed as having looked")
@pytest.mark.parametrize("images", ["independent", "shared"])
@pytest.mark.parametrize("cut", ["first", "second"])
def test_footprints_on_some_images_only(images, cut):
    """The catalogue says of every object how many looked, also where all saw all of the image."""
    rng = np.random.default_rng(3)
    x, y = rng.uniform(0.0, 100.0, (2, 24))
    image = np.repeat(["first", "second"], 12)
    looked = {
        "image": ["first", "second", "second", cut],
        "expert": ["zoe", "zoe", "yan", "ann"],
        "footprint": [None, None, None, "POLYGON ((0 0, 60 0, 60 100, 0 100, 0 0))"],
    }
    columns = {"x": x, "y": y}
    items = dfcrp.Items.from_columns(
        columns, ["ann", "bob", "cleo"] * 8, kind="points", image=image, looked=looked
    )
    run = dfcrp.fit(items, chains=1, scans=20, images=images, progress=False)
    table = run.catalogue()
    assert list(table)[list(table).index("n_experts") + 1] == "n_looked"
    other = "second" if cut == "first" else "first"
    whole = len(items.looks.experts_of(items.looks.images.index(other)))
    assert set(table["n_looked"][table["image"] == other]) == {whole}
    own = run[cut].catalogue()["n_looked"].tolist()
    assert table["n_looked"][table["image"] == cut].tolist() == own
    assert len(set(own)) > 1
