"""The image beneath the maps: any kind of file, reduced, at its place."""

import numpy as np
import pytest
from PIL import Image as Pillow

from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.items.site import Site
from dfcrp.plots import maps, underlay
from dfcrp.plots.flat import flat_map
from dfcrp.plots.underlay import configured_underlay, extent_of, places_of, read_underlay
from dfcrp.settings.config import ImageSettings, make_config, to_toml


def test_image_is_placed_by_the_sign_of_y(tmp_path):
    Pillow.fromarray(np.zeros((30, 50), np.uint8)).save(tmp_path / "image.png")
    upwards = read_underlay(tmp_path / "image.png", np.array([-3.0, -20.0]))
    assert upwards.extent == (0, 50, -30, 0)
    downwards = read_underlay(np.zeros((30, 50)), np.array([3.0, 20.0]))
    assert downwards.extent == (0, 50, 30, 0)
    given = read_underlay(np.zeros((30, 50)), np.array([3.0]), (0.0, 1.0, 0.0, 1.0))
    assert given.extent == (0, 1, 0, 1)
    one = flat_map(Items.circles(x=[1.0], y=[1.0], diameter=[1.0], expert=["Ann"]))
    assert maps.frame(one, downwards) == (0, 50, 0, 30)


def test_settings_place_the_image():
    size, y = (50, 30), np.array([1.0])
    assert extent_of(size, y, ImageSettings(y="up", offset=(100.0, 10.0))) == (100, 150, -20, 10)
    assert extent_of(size, -y, ImageSettings(y="down", scale=0.5)) == (0, 25, 15, 0)
    for settings in ({"y": "left"}, {"offset": [1.0]}, {"scale": 0.0}):
        with pytest.raises(SettingsError, match=f"image.{next(iter(settings))}"):
            make_config({"image": settings})


def test_settings_survive_the_toml_file():
    import tomllib

    config = make_config({"image": {"file": "a.png", "offset": [1, 2], "y": "up", "scale": 3}})
    assert make_config(tomllib.loads(to_toml(config))) == config


@pytest.mark.parametrize("kind", ["png", "jpg", "tif", "16 bit tif", "32 bit tif", "palette png"])
def test_large_images_are_reduced(kind, tmp_path, monkeypatch):
    """Bright in the lower right corner, where it stays; the last pixels are a block of fewer."""
    monkeypatch.setattr(underlay, "MAX_PIXELS", 20)
    pixels = np.zeros((301, 499), np.uint8)
    pixels[150:, 250:] = 200
    path = tmp_path / f"image.{kind[-3:]}"
    if kind == "16 bit tif":
        image = Pillow.fromarray(pixels.astype(np.uint16) * 100)
    elif kind == "32 bit tif":
        image = Pillow.fromarray(pixels.astype(np.float32) / 7)
    else:
        image = Pillow.fromarray(pixels)
    (image.convert("P") if kind == "palette png" else image).save(path)
    found = read_underlay(path, np.array([1.0]))
    assert 10 <= max(found.pixels.shape[:2]) <= 20
    assert found.extent == (0, 499, 301, 0)
    levels = underlay.grey_levels(found.pixels)
    levels = levels if levels.ndim == 2 else levels[..., 0]
    bright = levels > 0.5 * levels.max()
    rows, columns = bright.shape
    assert bright[rows // 2 + 1 :, columns // 2 + 1 :].all()
    assert not bright[: rows // 2 - 1].any()
    assert not bright[:, : columns // 2 - 1].any()


def test_block_means_are_means():
    pixels = np.arange(35, dtype=np.uint16).reshape(5, 7)
    found = underlay._block_means(pixels, 3)
    expected = [[pixels[r : r + 3, c : c + 3].mean() for c in (0, 3, 6)] for r in (0, 3)]
    assert found == pytest.approx(np.array(expected))


def test_an_image_that_is_gone_is_told(tmp_path):
    settings = ImageSettings(file=str(tmp_path / "gone.png"))
    with pytest.warns(DfcrpWarning, match=r"gone\.png: the image is no longer there"):
        assert configured_underlay(settings, np.zeros(1)) is None
    assert configured_underlay(ImageSettings(), np.zeros(1)) is None


def test_what_is_no_image(tmp_path):
    (tmp_path / "image.png").write_text("no image")
    with pytest.raises(InputError, match=r"image\.png: cannot be read as an image"):
        read_underlay(tmp_path / "image.png", np.array([1.0]))
    with pytest.raises(InputError, match="cannot be read"):
        read_underlay(tmp_path / "missing.png", np.array([1.0]))
    with pytest.raises(InputError, match="rows, columns"):
        read_underlay(np.zeros(3), np.array([1.0]))


MOON = (
    'GEOGCS["GCS_Moon",DATUM["D_Moon",SPHEROID["Moon",1737400,0]],'
    'PRIMEM["Reference_Meridian",0],UNIT["Degree",0.0174532925199433]]'
)
ON_A_MAP = (
    f'PROJCS["map",{MOON},PROJECTION["Equirectangular"],PARAMETER["standard_parallel_1",0],'
    'PARAMETER["central_meridian",0],UNIT["metre",1]]'
)
METRES_PER_DEGREE = np.pi / 180 * 1_737_400


def circles_in(units, x, y):
    return Items.circles(
        x=x, y=y, diameter=[1.0] * len(x), expert=["Ann"] * len(x), site=Site(units, 1737.4)
    )


def mosaic(path, crs, west, north, side):
    """Bright in the upper left quarter."""
    rasterio = pytest.importorskip("rasterio")
    pixels = np.zeros((30, 50), np.uint8)
    pixels[:15, :25] = 200
    place = rasterio.transform.Affine(side, 0.0, west, 0.0, -side, north)
    with rasterio.open(
        path, "w", driver="GTiff", height=30, width=50, count=1, dtype="uint8", crs=crs,
        transform=place,
    ) as file:  # fmt: skip
        file.write(pixels, 1)
    return path


def placed(path, items):
    settings = ImageSettings(file=str(path))
    return configured_underlay(settings, flat_map(items).y, places_of(items))


@pytest.mark.parametrize("metres", [False, True])
@pytest.mark.parametrize("west", [30.0, -170.0])
def test_a_georeferenced_image_lies_where_it_says(tmp_path, metres, west):
    """On a map in degrees; also where longitudes are counted from 0."""
    scale = METRES_PER_DEGREE if metres else 1.0
    crs = ON_A_MAP if metres else MOON
    path = mosaic(tmp_path / "a.tif", crs, west * scale, 20.0 * scale, 0.01 * scale)
    items = circles_in("deg", [(west + 0.1) % 360, (west + 0.4) % 360], [19.9, 19.8])
    found = placed(path, items)
    start = items.x[0] - 0.1
    assert found.extent == pytest.approx((start, start + 0.5, 19.7, 20.0), abs=0.02)
    rows, columns = found.pixels.shape[:2]
    assert found.pixels[: rows // 2 - 1, : columns // 2 - 1].min() == 200
    assert found.pixels[rows // 2 + 1 :].max() == 0


def test_an_image_on_a_map_beneath_lengths(tmp_path):
    path = mosaic(tmp_path / "a.tif", ON_A_MAP, 5000.0, 900.0, 10.0)
    assert placed(path, circles_in("m", [5100.0], [800.0])).extent == (5000, 5500, 600, 900)
    found = placed(path, circles_in("km", [5.1], [0.8])).extent
    assert found == pytest.approx((5.0, 5.5, 0.6, 0.9))
    # Of an unknown unit: on the map, or in pixels of the image.
    assert placed(path, circles_in("px", [5100.0], [800.0])).extent == (5000, 5500, 600, 900)
    assert placed(path, circles_in("px", [10.0], [20.0])).extent == (0, 50, 30, 0)


def test_what_the_user_says_goes_before_the_georeference(tmp_path):
    path = mosaic(tmp_path / "a.tif", ON_A_MAP, 5000.0, 900.0, 10.0)
    items = circles_in("m", [5100.0], [800.0])
    told = ImageSettings(file=str(path), offset=(5000.0, 900.0), scale=2.0, y="up")
    found = configured_underlay(told, flat_map(items).y, places_of(items))
    assert found.extent == (5000, 5100, 840, 900)


@pytest.mark.parametrize("name", ["a.tfw", "a.wld"])
def test_a_world_file_beside_the_image(tmp_path, name):
    Pillow.fromarray(np.zeros((30, 50), np.uint8)).save(tmp_path / "a.tif")
    (tmp_path / name).write_text("0.01\n0\n0\n-0.01\n30.005\n19.995\n")
    found = placed(tmp_path / "a.tif", circles_in("deg", [30.1], [19.9]))
    assert found.extent == pytest.approx((30.0, 30.5, 19.7, 20.0))


@pytest.mark.parametrize(
    ("world", "units", "place", "why"),
    [
        ("", "deg", (30.1, 19.9), "the image does not say where it lies"),
        ("0.01 0.005 0.005 -0.01 30 20", "deg", (30.1, 19.9), "its pixels are turned"),
        ("0.01 0 0 -0.01 30 20", "deg", (80.0, 19.9), "most items lie beyond it"),
        ("no numbers", "deg", (30.1, 19.9), "it cannot be read"),
    ],
)
def test_why_an_image_is_not_drawn(tmp_path, world, units, place, why):
    """Rather than far away from the items, with nothing but black between."""
    Pillow.fromarray(np.zeros((30, 50), np.uint8)).save(tmp_path / "a.png")
    if world:
        (tmp_path / "a.pgw").write_text(world.replace(" ", "\n"))
    with pytest.warns(DfcrpWarning, match=why):
        assert placed(tmp_path / "a.png", circles_in(units, [place[0]], [place[1]])) is None
