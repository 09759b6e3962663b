"""What is written in any format is read back, to the precision of the format."""

from __future__ import annotations

import math
import unicodedata
import warnings
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.geometry import unit_vectors
from dfcrp.io import read_table, write_table
from dfcrp.io.shapes import circle_of_polygon, circle_on_sphere, ring, ring_on_sphere
from dfcrp.io.tables import ReadTable
from dfcrp.items.checks import MISSING, to_texts
from dfcrp.items.site import Ring, Site

quick = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

names = (
    st.text(st.characters(exclude_categories=["Cs", "Cc", "Zl", "Zp"]), min_size=1, max_size=12)
    .map(str.strip)
    .filter(bool)
)
longitudes = st.floats(-180, 360)
latitudes = st.floats(-90, 90)
sizes_km = st.floats(1e-3, 2000)
rings = st.lists(st.tuples(longitudes, latitudes), min_size=3, max_size=6).map(
    lambda points: Ring((*points, points[0]))
)
areas = st.floats(1e-3, 1e8)


@st.composite
def catalogues(draw: Any, units: str, *, labelled: bool) -> ReadTable:
    """A catalogue as it comes from a run, or one expert's list."""
    count = draw(st.integers(1, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    plane = st.floats(-1e5, 1e5)
    x = column(longitudes if units == "deg" else plane)
    y = column(latitudes if units == "deg" else plane)
    columns: dict[str, Any] = {
        "x": np.array(x),
        "y": np.array(y),
        "diameter": np.array(column(sizes_km)),
    }
    extra: dict[str, Any] = {}
    about: dict[str, Any] = {}
    if labelled:
        about["expert"] = column(names)
        extra["n_experts"] = column(st.integers(0, 99))
        extra["p_consensus"] = column(st.floats(0, 1))
    degrees = units == "deg"
    site = Site(
        units,
        1737.4 if degrees else None,
        draw(areas),
        tuple(draw(st.lists(rings, max_size=2))) if degrees else (),
    )
    return ReadTable("circles", columns, about, site, extra)


def round_trip(records: ReadTable, folder: Path, ending: str, **options: Any) -> ReadTable:
    files = write_table(records, folder / f"a{ending}", overwrite=True, **options)
    return read_table(files[0])


def assert_same(one: ReadTable, other: ReadTable, tolerance: float) -> None:
    assert one.site.units == other.site.units
    for role in ("x", "y", "diameter"):
        np.testing.assert_allclose(other.columns[role], one.columns[role], rtol=0, atol=tolerance)
    names = [unicodedata.normalize("NFC", name) for name in one.about.get("expert", ())]
    assert list(other.about.get("expert", ())) == names
    for title, values in one.extra.items():
        short = next(found for found in other.extra if title.startswith(found))
        read = other.typed_extra()[short]
        np.testing.assert_allclose(read, values, rtol=0, atol=tolerance)


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".geojson"])
@pytest.mark.parametrize("units", ["px", "m", "km", "deg"])
@quick
@given(data=st.data())
def test_tables_keep_every_digit(tmp_path: Path, data: Any, ending: str, units: str) -> None:
    records = data.draw(catalogues(units, labelled=True))
    read = round_trip(records, tmp_path, ending)
    assert_same(records, read, 0.0)
    if ending == ".geojson":
        assert read.site == records.site


@pytest.mark.parametrize("ending", [".diam", ".scc"])
@quick
@given(records=catalogues("deg", labelled=False))
def test_craterstats_keeps_every_digit(tmp_path: Path, records: ReadTable, ending: str) -> None:
    read = round_trip(records, tmp_path, ending)
    assert_same(records, read, 0.0)
    assert read.site.area_km2 == pytest.approx(records.site.area_km2, rel=1e-12)
    if ending == ".scc":
        assert read.site.body_radius_km == records.site.body_radius_km
        assert read.site.boundary == records.site.boundary


@pytest.mark.parametrize("units", ["km", "deg"])
@quick
@given(data=st.data())
def test_shapefile_keeps_twelve_decimals(tmp_path: Path, data: Any, units: str) -> None:
    for file in tmp_path.iterdir():
        file.unlink()  # an area of the example before would be read with this one's craters
    records = data.draw(catalogues(units, labelled=True))
    read = round_trip(records, tmp_path, ".shp")
    assert_same(records, read, 1e-11)
    assert read.site.boundary == records.site.boundary


@quick
@given(records=catalogues("km", labelled=True))
def test_outlines_in_a_plane(tmp_path: Path, records: ReadTable) -> None:
    read = round_trip(records, tmp_path, ".geojson", outlines=True)
    assert_same(records, read, 1e-6)


@quick
@given(records=catalogues("deg", labelled=True))
def test_outlines_on_a_sphere(tmp_path: Path, records: ReadTable) -> None:
    """Also across ±180° and around a pole."""
    read = round_trip(records, tmp_path, ".geojson", outlines=True)
    assert read.site == records.site
    places = [unit_vectors(found.columns["x"], found.columns["y"]) for found in (records, read)]
    np.testing.assert_allclose(*places, rtol=0, atol=1e-6)
    np.testing.assert_allclose(read.columns["diameter"], records.columns["diameter"], rtol=1e-6)


lengths = st.floats(1e-3, 1e5)
coordinates = st.floats(-1e5, 1e5)
KINDS: dict[str, dict[str, Any]] = {
    "points": {"x": coordinates, "y": coordinates},
    "boxes": {"x": coordinates, "y": coordinates, "width": lengths, "height": lengths},
    "ellipses": {
        "x": coordinates,
        "y": coordinates,
        "major": lengths,
        "minor": lengths,
        "angle": st.floats(0, 180, exclude_max=True),
    },
    "diagonal": {"mass": st.floats(-1e9, 1e9), "colour index": st.floats(-9, 9)},
    "records": {"name": names, "born": st.one_of(names, st.just(""))},
}


@st.composite
def lists(draw: Any, kind: str, units: str) -> ReadTable:
    """Items of two experts on two images, as tables hold them."""
    count = draw(st.integers(1, 6))

    def column(values: Any) -> list[Any]:
        return draw(st.lists(values, min_size=count, max_size=count))

    columns = {role: np.array(column(values)) for role, values in KINDS[kind].items()}
    if kind == "records":
        # What stands for a missing value is read as one.
        columns = {role: np.array(to_texts(values)) for role, values in columns.items()}
    about = {
        "id": [f"i{at}" for at in range(count)],
        "expert": column(st.sampled_from(["ann", "bob"])),
        "image": column(st.sampled_from(["p.png", "q.png"])),
        "truth": np.array(column(st.integers(0, 99)), dtype=np.float64),
    }
    return ReadTable(kind, columns, about, Site(units))


@pytest.mark.parametrize("ending", [".csv", ".tsv", ".parquet", ".geojson"])
@pytest.mark.parametrize("kind", KINDS)
@quick
@given(data=st.data())
def test_items_of_every_kind(tmp_path: Path, data: Any, kind: str, ending: str) -> None:
    placeless = kind in ("diagonal", "records")
    if placeless and ending == ".geojson":
        with pytest.raises(InputError, match=f"these are {kind}; end the name in"):
            write_table(data.draw(lists(kind, "px")), tmp_path / "a.geojson")
        return
    units = "px" if placeless else data.draw(st.sampled_from(["px", "m", "km"]))
    table = data.draw(lists(kind, units))
    files = write_table(table, tmp_path / f"a{ending}", overwrite=True)
    read = read_table(files[0], kind)
    assert read.site.units == units
    assert list(read.columns) == list(table.columns)
    for role, values in table.columns.items():
        assert read.columns[role].tolist() == values.tolist()
    for role, values in table.about.items():
        assert list(read.about[role]) == list(values)
    assert not read.extra


words = st.text(st.characters(categories=["L", "N"]), min_size=1, max_size=9).filter(
    lambda text: text.lower() not in MISSING
)


@st.composite
def one_list(draw: Any, whole: bool) -> ReadTable:
    """Intervals with categories; whole ones do not overlap."""
    count = draw(st.integers(1, 6))
    gaps = st.integers(1, 50) if whole else st.floats(1e-3, 1e4)
    steps = draw(st.lists(gaps, min_size=2 * count, max_size=2 * count))
    ends = np.cumsum(np.array(steps, np.float64)).reshape(count, 2)
    about = {"category": draw(st.lists(words, min_size=count, max_size=count))}
    return ReadTable("intervals", {"start": ends[:, 0], "end": ends[:, 1]}, about)


@pytest.mark.parametrize(
    "ending", [".labels.txt", ".TextGrid", ".label-studio.json", ".jsonl", ".conll"]
)
@quick
@given(data=st.data())
def test_intervals_keep_every_digit(tmp_path: Path, data: Any, ending: str) -> None:
    table = data.draw(one_list(ending in (".jsonl", ".conll")))
    files = write_table(table, tmp_path / f"a{ending}", overwrite=True)
    if ending == ".label-studio.json":
        # A list of nobody is written as a prediction, which is no list to be read.
        content = files[0].read_bytes().replace(b'"predictions"', b'"annotations"')
        files[0].write_bytes(content)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        read = read_table(files[0], "intervals")
    for role, values in table.columns.items():
        assert read.columns[role].tolist() == values.tolist()
    said = [unicodedata.normalize("NFC", name) for name in table.about["category"]]
    assert list(read.about["category"]) == said


@pytest.mark.parametrize("kind", ["boxes", "ellipses"])
@quick
@given(data=st.data())
def test_outlines_of_boxes_and_ellipses(tmp_path: Path, data: Any, kind: str) -> None:
    table = data.draw(lists(kind, "km"))
    files = write_table(table, tmp_path / "a.geojson", outlines=True, overwrite=True)
    read = read_table(files[0], kind)
    largest = max(float(np.abs(values).max()) for values in table.columns.values())
    for role, values in table.columns.items():
        np.testing.assert_allclose(read.columns[role], values, rtol=0, atol=1e-9 * largest)


@quick
@given(
    x=st.floats(-1e6, 1e6),
    y=st.floats(-1e6, 1e6),
    radius=st.floats(0.1, 1e5),
    vertices=st.integers(5, 200),
    turn=st.integers(0, 199),
)
def test_a_ring_is_a_circle(x: float, y: float, radius: float, vertices: int, turn: int) -> None:
    points = ring(x, y, radius, vertices)[:-1]
    turn %= vertices
    found = circle_of_polygon([*points[turn:], *points[:turn]])
    assert found is not None
    np.testing.assert_allclose(found, (x, y, radius), rtol=1e-6, atol=1e-6 * radius)


@quick
@given(
    longitude=st.floats(-180, 180),
    latitude=st.floats(-90, 90),
    radius=st.floats(1e-3, 60),
    vertices=st.integers(6, 100),
)
def test_a_ring_on_a_sphere_is_a_circle(
    longitude: float, latitude: float, radius: float, vertices: int
) -> None:
    """Also across ±180° and around a pole."""
    found = circle_on_sphere(ring_on_sphere(longitude, latitude, radius, vertices))
    assert found is not None
    assert found[2] == pytest.approx(radius, rel=1e-6)
    assert found[1] == pytest.approx(latitude, abs=1e-5)
    apart = (found[0] - longitude + 180) % 360 - 180
    assert apart * math.cos(math.radians(latitude)) == pytest.approx(0, abs=1e-5)


@quick
@given(
    width=st.floats(1, 100),
    height=st.floats(1, 100),
    steps=st.integers(1, 20),
)
def test_a_box_is_no_circle(width: float, height: float, steps: int) -> None:
    corners = [(0.0, 0.0), (width, 0.0), (width, height), (0.0, height), (0.0, 0.0)]
    points = [
        (a[0] + (b[0] - a[0]) * k / steps, a[1] + (b[1] - a[1]) * k / steps)
        for a, b in pairwise(corners)
        for k in range(steps)
    ]
    if steps != 2:  # corners and middles of the sides are an octagon of a kind
        assert circle_of_polygon(points) is None
