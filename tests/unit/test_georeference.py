"""Places on a body: uncertainties that move with the coordinates, systems, and refusals."""

from __future__ import annotations

import json
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from dfcrp.cli.main import main
from dfcrp.errors import SettingsError
from dfcrp.io import read_table
from dfcrp.io.converting import placed, scaled
from dfcrp.io.georeference import Georeference, georeferenced, read_georeference
from dfcrp.io.tables import ReadTable
from dfcrp.items.site import Site

CATALOGUE = (
    "cluster,x,x_sd,x_lo,x_hi,y,y_sd,y_lo,y_hi,diameter,diameter_sd,diameter_lo,diameter_hi,"
    "n_experts,p_consensus,experts\n"
    "0,100,0.5,99,102,200,0.25,199.5,200.75,40,1,38,43,3,0.99,ann;bob;cleo\n"
    "7,900,0.5,899,901,50,0.5,49,51,18,1,16,20,1,0.01,ann\n"
)
MOON_KM = 1737.4


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "config.toml").write_text("")
    (folder / "markings.csv").write_text("x,y,d,expert\n1,2,3,ann\n")
    (folder / "catalogue.csv").write_text(CATALOGUE)
    return folder


def spreads(table: ReadTable, role: str) -> list[float]:
    """sd, lo and hi of the first object."""
    return [float(table.typed_extra()[f"{role}_{end}"][0]) for end in ("sd", "lo", "hi")]


def test_uncertainties_are_scaled_with_the_rest(run_folder: Path) -> None:
    found = scaled(read_table(run_folder), 500.0)
    assert found.columns["x"][0] == 50.0
    assert spreads(found, "x") == pytest.approx([0.25, 49.5, 51.0])
    assert spreads(found, "y") == pytest.approx([0.125, 99.75, 100.375])
    assert spreads(found, "diameter") == pytest.approx([0.5, 19.0, 21.5])


def test_uncertainties_go_onto_the_body(run_folder: Path) -> None:
    """At the equator a degree is the same both ways; y downwards turns its interval around."""
    body = Site("km", MOON_KM)
    table = read_table(run_folder)
    table = ReadTable(table.kind, table.columns, table.about, body, table.extra)
    degree = np.degrees(1.0 / MOON_KM)
    found = placed(table, 10.0, 0.0, y_down=True)
    lon, lat = found.columns["x"][0], found.columns["y"][0]
    assert lat == pytest.approx(-200 * degree, rel=1e-2)
    sd, lo, hi = spreads(found, "y")
    assert sd == pytest.approx(0.25 * degree, rel=0.02)
    assert [lat - lo, hi - lat] == pytest.approx([0.75 * degree, 0.5 * degree], rel=0.02)
    sd, lo, hi = spreads(found, "x")
    assert sd == pytest.approx(0.5 * degree, rel=0.02)
    assert [lon - lo, hi - lon] == pytest.approx([degree, 2 * degree], rel=0.02)
    assert spreads(found, "diameter") == [1.0, 38.0, 43.0]


@pytest.mark.parametrize(
    ("ending", "options", "said"),
    [
        (".geojson", "", ["pixels", "--georeference", "--origin", "--crs none"]),
        (".gpkg", "", ["pixels", "--georeference", "--metres-per-pixel"]),
        (".gpkg", "--units deg --columns y=x,x=y", ["of which body", "--body moon"]),
        (".gpkg", "--crs EPSG:99999999", ["not a coordinate reference system"]),
        (".gpkg", "--crs EPSG:32633", ["in pixels", "--georeference"]),
        (".gpkg", "--units m --crs EPSG:4326", ["is in degrees"]),
    ],
)
def test_what_has_no_place_is_refused(
    tmp_path: Path, ending: str, options: str, said: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyproj")
    (tmp_path / "a.csv").write_text("x,y,d,expert\n10,20,3,ann\n11,21,3,bob\n")
    out = tmp_path / f"c{ending}"
    assert main(["convert", str(tmp_path / "a.csv"), str(out), *options.split()]) == 2
    error = capsys.readouterr().err
    assert all(words in error for words in said), error
    assert not out.exists()


def test_pixels_are_never_written_as_degrees(run_folder: Path, tmp_path: Path) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    for name in ("c.geojson", "c.gpkg"):
        assert main(["convert", str(run_folder), str(tmp_path / name), "--crs", "none"]) == 0
        assert "LOCAL_CS" in pyogrio.read_info(tmp_path / name)["crs"]


def test_a_geopackage_reads_back_with_its_system_and_style(
    run_folder: Path, tmp_path: Path
) -> None:
    pyogrio, shapely = pytest.importorskip("pyogrio"), pytest.importorskip("shapely")
    out = tmp_path / "c.gpkg"
    options = "--metres-per-pixel 500 --body moon --origin 30,20 --y-down"
    assert main(["convert", str(run_folder), str(out), *options.split()]) == 0
    assert "Moon (2015)" in pyogrio.read_info(out)["crs"]
    meta, _, shapes, values = pyogrio.raw.read(out)
    columns = dict(zip(meta["fields"], values, strict=True))
    assert columns["diameter_km"].tolist() == [20.0, 9.0]
    assert columns["diameter_sd"].tolist() == [0.5, 0.5]
    middle = shapely.centroid(shapely.from_wkb(shapes[0]))
    assert (middle.x, middle.y) == pytest.approx((31.72, 16.69), abs=0.02)
    # The style has the file's name, and colours by a column that is there.
    style = ElementTree.parse(out.with_suffix(".qml")).getroot()
    renderer = style.find("renderer-v2")
    assert renderer is not None
    assert renderer.get("attr") == "p_consensus"
    assert len(renderer.findall("symbols/symbol")) == len(renderer.findall("ranges/range")) == 4


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses"])
def test_other_kinds_go_to_a_geopackage(tmp_path: Path, kind: str) -> None:
    pyogrio = pytest.importorskip("pyogrio")
    heads = {"points": "x,y", "boxes": "x,y,width,height", "ellipses": "x,y,major,minor,angle"}
    rows = "\n".join(
        ",".join(str(5 * k + j) for j in range(1, 6)[: heads[kind].count(",") + 1]) for k in (3, 2)
    )
    (tmp_path / "a.csv").write_text(f"{heads[kind]},expert\n" + rows.replace("\n", ",b\n") + ",a\n")
    out = tmp_path / "c.gpkg"
    asked = ["--likelihood", kind, "--units", "m", "--crs", "EPSG:32633"]
    assert main(["convert", str(tmp_path / "a.csv"), str(out), *asked]) == 0
    info = pyogrio.read_info(out)
    assert (info["features"], info["crs"]) == (2, "EPSG:32633")
    assert info["geometry_type"] == ("Point" if kind == "points" else "Polygon")


def test_a_world_file_gives_the_middle_of_the_first_pixel(tmp_path: Path) -> None:
    pytest.importorskip("pyproj")
    (tmp_path / "a.tfw").write_text("2.0\n0\n0\n-2.0\n1001.0\n4999.0\n")
    where = read_georeference(tmp_path / "a.tfw")
    assert [where.c, where.f, where.side] == [1000.0, 5000.0, 2.0]
    table = ReadTable(
        "circles",
        {"x": np.array([10.0]), "y": np.array([20.0]), "diameter": np.array([7.0])},
        site=Site("px"),
    )
    with pytest.raises(SettingsError, match="--crs"):
        georeferenced(table, where, None)
    found = georeferenced(table, where, "EPSG:32633")
    assert [float(found.columns[role][0]) for role in ("x", "y", "diameter")] == [1020, 4960, 14]
    assert (found.site.units, found.site.crs) == ("m", "EPSG:32633")
    # Rows that are counted upwards to 0, as in the file of Robbins et al., are the same rows.
    table = ReadTable("points", {"x": np.array([10.0]), "y": np.array([-20.0])}, site=Site("px"))
    assert float(georeferenced(table, where, "EPSG:32633").columns["y"][0]) == 4960
    turned = Georeference(1.0, 0.5, 0.0, -0.5, -1.0, 0.0)
    table = ReadTable(
        "circles",
        {"x": np.array([1.0]), "y": np.array([2.0]), "diameter": np.array([7.0])},
        site=Site("px"),
    )
    with pytest.raises(SettingsError, match="turned"):
        georeferenced(table, turned, "EPSG:32633")


def test_a_geotiff_leads_to_longitude_and_latitude(run_folder: Path, tmp_path: Path) -> None:
    rasterio = pytest.importorskip("rasterio")
    system = "+proj=eqc +R=1737400 +units=m +no_defs"
    image = tmp_path / "moon.tif"
    with rasterio.open(
        image,
        "w",
        driver="GTiff",
        width=4,
        height=4,
        count=1,
        dtype="uint8",
        crs=system,
        transform=rasterio.Affine(100.0, 0, 50_000.0, 0, -100.0, 30_000.0),
    ) as made:
        made.write(np.zeros((1, 4, 4), "uint8"))
    out = tmp_path / "c.geojson"
    assert main(["convert", str(run_folder), str(out), "--georeference", str(image)]) == 0
    content = json.loads(out.read_text())
    first = content["features"][0]
    degree = np.degrees(1.0 / 1_737_400.0)
    assert first["geometry"]["coordinates"] == pytest.approx([60_000 * degree, 10_000 * degree])
    assert first["properties"]["diameter_km"] == pytest.approx(4.0)
    assert first["properties"]["x_sd"] == pytest.approx(50.0 * degree, rel=1e-6)
    # Rows run down, latitudes up.
    assert first["properties"]["y_hi"] == pytest.approx(10_050 * degree, rel=1e-6)
    assert "1737400" in content["crs"]["properties"]["name"]
    back = read_table(out)
    assert back.site.units == "deg"


def test_an_image_without_a_place_is_refused(
    tmp_path: Path, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rasterio")
    from PIL import Image

    Image.new("L", (4, 4)).save(tmp_path / "plain.tif")
    asked = ["convert", str(run_folder), str(tmp_path / "c.gpkg"), "--georeference"]
    assert main([*asked, str(tmp_path / "plain.tif")]) == 2
    assert "does not say where it lies" in capsys.readouterr().err
