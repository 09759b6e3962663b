"""The image beneath the maps: any kind of file, reduced, at its place."""

import numpy as np
import pytest
from PIL import Image as Pillow

from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.items.items import Items
from dfcrp.plots import flat, maps
from dfcrp.plots.flat import configured_underlay, extent_of, flat_map, read_underlay
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
    monkeypatch.setattr(flat, "MAX_PIXELS", 20)
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
    levels = flat.grey_levels(found.pixels)
    levels = levels if levels.ndim == 2 else levels[..., 0]
    bright = levels > 0.5 * levels.max()
    rows, columns = bright.shape
    assert bright[rows // 2 + 1 :, columns // 2 + 1 :].all()
    assert not bright[: rows // 2 - 1].any()
    assert not bright[:, : columns // 2 - 1].any()


def test_block_means_are_means():
    pixels = np.arange(35, dtype=np.uint16).reshape(5, 7)
    found = flat._block_means(pixels, 3)
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
