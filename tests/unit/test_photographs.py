"""Photographs in a folder are found by the names of images, and lie behind their marks."""

import base64
import dataclasses
import io
import json
import re

import numpy as np
import pytest
from PIL import Image

from dfcrp import plots
from dfcrp.cli.main import main
from dfcrp.examples import crowd
from dfcrp.io import read_items
from dfcrp.items.source_tables import SourceTables
from dfcrp.plots.underlay import Photographs, frame_of, photographs
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.data import Packer
from dfcrp.report.explorer.embed import make_payload as make_map_payload
from dfcrp.report.overview import _pack_outlines, make_payload
from dfcrp.settings.config import ImageSettings
from reference.kind_posteriors import kind_posterior

IMAGES = ("a.jpg", "deep/b", "c")


@pytest.fixture
def folder(tmp_path):
    """Two photographs of three, 1,000 by 700 pixels, red at the top."""
    photographs.cache_clear()
    root = tmp_path / "photographs"
    (root / "deep").mkdir(parents=True)
    pixels = np.full((700, 1000, 3), 90, np.uint8)
    pixels[:100] = (250, 0, 0)
    for name in ("a.jpg", "deep/b.png"):
        Image.fromarray(pixels).save(root / name)
    (root / "notes.txt").write_text("no photograph")
    return root


def with_folder(folder, images=IMAGES):
    posterior = kind_posterior("boxes", images=images, n_draws=6)
    config = dataclasses.replace(posterior.config, image=ImageSettings(folder=str(folder)))
    posterior.config = config
    return posterior


def framed_images(posterior):
    settings, items = posterior.config.image, posterior.items
    return [frame_of(settings, items, name) for name in posterior.images]


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("a.jpg", "a.jpg"),
        ("a", "a.jpg"),
        ("a.png", "a.jpg"),
        ("deep/b", "deep/b.png"),
        ("elsewhere/b.tif", "deep/b.png"),
        ("b", "deep/b.png"),
        ("c", None),
        ("notes", None),
        ("A.jpg", None),
    ],
)
def test_an_image_is_found_with_or_without_its_ending(folder, name, file):
    found = Photographs(str(folder)).find(name)
    assert found == (None if file is None else folder / file)


def test_what_may_be_two_photographs_is_none(folder):
    (folder / "deep" / "a.png").write_bytes((folder / "a.jpg").read_bytes())
    found = Photographs(str(folder))
    assert found.find("a") is None
    assert found.find("a.jpg") == folder / "a.jpg"
    assert found.find("deep/a") == folder / "deep" / "a.png"


def test_the_page_of_an_image_has_its_photograph(folder):
    posterior = with_folder(folder)

    def of(name):
        part = posterior[name]
        part.config = posterior.config
        return Contents(part).underlay

    beneath = of("a.jpg")
    assert beneath.pixels.shape == (700, 1000, 3)
    assert beneath.extent == (0.0, 1000.0, 700.0, 0.0)
    assert of("c") is None


def test_thumbnails_have_the_frame_of_the_photograph(folder):
    """Once they zoomed to what was marked, and were upside down."""
    posterior = with_folder(folder)
    extents = framed_images(posterior)
    packer = Kept()
    assert _pack_outlines(packer, posterior, extents) == "box"
    frames, framed = packer.kept["frames"], packer.kept["framed"]
    assert [bool(one) for one in framed] == [name != "c" for name in posterior.images]
    at = posterior.images.index("deep/b")
    assert tuple(frames[at]) == (-500.0, 500.0, -350.0, 350.0)
    first, last = packer.kept["outlineStart"][at : at + 2]
    catalogue = posterior.findings[at].catalogue
    for name, column, sign, middle in (("X", "x", 1, 500), ("Y", "y", -1, 350)):
        drawn = np.sort(packer.kept[f"outline{name}"][first:last])
        own = np.sort(sign * (np.asarray(catalogue[column]) - middle))
        assert drawn == pytest.approx(own)


def test_images_without_a_photograph_are_drawn_the_same_way_up(folder):
    posterior = with_folder(folder)
    packer = Kept()
    _pack_outlines(packer, posterior, framed_images(posterior))
    at = posterior.images.index("c")
    first, last = packer.kept["outlineStart"][at : at + 2]
    y = np.asarray(posterior.findings[at].catalogue["y"])
    drawn = packer.kept["outlineY"][first:last]
    assert np.ptp(drawn) == pytest.approx(np.ptp(y))
    assert np.sort(drawn - drawn.min()) == pytest.approx(np.sort(y.max() - y))


class Kept(Packer):
    """What is packed, as it was given."""

    def __init__(self) -> None:
        super().__init__()
        self.kept = {}

    def floats(self, name, values, kind="float32", **_):
        self.kept[name] = np.asarray(values)

    def counts(self, name, values, **_):
        self.kept[name] = np.asarray(values)


def test_thumbnails_hold_small_photographs(folder):
    posterior = with_folder(folder)
    about, _ = make_payload(posterior, {})
    there = dict(zip(about["names"], about["photographs"], strict=True))
    assert there["c"] is None
    content = base64.b64decode(there["a.jpg"].partition(",")[2])
    with Image.open(io.BytesIO(content)) as small:
        assert small.size == (320, 224)
        top = small.getpixel((160, 5))
    assert top[0] > 200 > 60 > top[1]


def test_sizes_in_the_files_are_frames_without_a_photograph(folder):
    """As exports of Zooniverse, COCO and CVAT have them: rows run downwards on every map."""
    posterior = kind_posterior("boxes", images=IMAGES, n_draws=6)
    tables = SourceTables().with_size((800, 600), IMAGES[:1])
    items = dataclasses.replace(posterior.items, source_tables=tables)
    posterior.items = items
    extents = framed_images(posterior)
    at = posterior.images.index("a.jpg")
    assert extents[at] == (None, (0.0, 800.0, 600.0, 0.0))
    assert extents.count(None) == 2
    about, _ = make_payload(posterior, {})
    assert about["photographs"] == [None] * 3
    part = posterior["a.jpg"]
    part.items = dataclasses.replace(part.items, source_tables=tables)
    contents = Contents(part)
    assert contents.underlay.pixels is None
    table, ax = plots.plot_items_map(part, image=contents.underlay)
    assert table.region == (0.0, 800.0, 0.0, 600.0)
    assert ax.get_ylim() == (600.0, 0.0)
    shown, _ = make_map_payload(contents)
    assert shown["image"] is None
    assert shown["frame"] == [0.0, 800.0, 600.0, 0.0]
    # Sizes that are not in the unit of the items say nothing.
    tiny = SourceTables().with_size((8, 6), IMAGES)
    assert frame_of(ImageSettings(), dataclasses.replace(items, source_tables=tiny), "c") is None


def test_without_a_folder_nothing_changes(folder):
    posterior = kind_posterior("boxes", images=IMAGES, n_draws=6)
    about, _ = make_payload(posterior, {})
    assert about["photographs"] == [None] * 3


BOXES = "x_min,y_min,x_max,y_max,expert,image\n" + "".join(
    f"{x},{y},{x + 20},{y + 30},{who},{image}\n"
    for image in ("a", "b", "c")
    for x, y in ((10, 20), (80, 60), (140, 30))
    for who in ("ann", "bob")
)


def command(folder, tmp_path, *more):
    tmp_path.mkdir(exist_ok=True)
    (tmp_path / "boxes.csv").write_text(BOXES)
    given = ["fit", str(tmp_path / "boxes.csv"), "--likelihood", "boxes", "--out"]
    options = ["--chains", "2", "--scans", "10", "--images-from", str(folder)]
    return main([*given, str(tmp_path / "run"), *options, *more])


def test_the_command_says_which_images_have_none(folder, tmp_path, capsys):
    assert command(folder, tmp_path) == 0
    said = capsys.readouterr().err
    assert f"Note: 1 image of 3 has no photograph in {folder}: c." in said
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    about = json.loads(re.search(r'id="explorer-about">(.*?)</script>', page, re.DOTALL)[1])
    assert [one is not None for one in about["photographs"]] == [True, True, False]
    assert f'folder = "{folder}"' in (tmp_path / "run" / "config.toml").read_text()
    # Elsewhere by now: the report takes the new place, and keeps it.
    moved = folder.rename(tmp_path / "moved")
    run = str(tmp_path / "run")
    assert main(["report", run, "--images-from", str(moved), "--quiet"]) == 0
    assert f'folder = "{moved}"' in (tmp_path / "run" / "config.toml").read_text()


def test_a_folder_of_other_images_is_refused(folder, tmp_path, capsys):
    for name in ("a.jpg", "deep/b.png"):
        (folder / name).rename(folder / f"other-{name[-5:]}")
    assert command(folder, tmp_path) == 2
    said = capsys.readouterr().err
    assert "holds no photograph of these images: they are called a, b, c, and there" in said
    assert not (tmp_path / "run").exists()


def test_one_file_is_the_image_of_a_run_with_one(folder, tmp_path):
    assert command(folder / "a.jpg", tmp_path, "--image", "a") == 0
    assert f'file = "{folder / "a.jpg"}"' in (tmp_path / "run" / "config.toml").read_text()
    assert command(folder / "nothing.jpg", tmp_path / "other") == 2


def test_an_export_of_zooniverse_says_how_large_its_photographs_are(tmp_path):
    """800 by 600, once for each; of an image on which browsers do not agree nothing is known."""
    [path] = crowd(tmp_path)
    items = read_items([path], "points")
    sizes = items.source_tables.sizes
    assert set(items.images) <= set(sizes)
    assert set(sizes.values()) == {(800, 600)}
    first = items.images[0]
    assert frame_of(ImageSettings(), items, first) == (None, (0.0, 800.0, 600.0, 0.0))
    lines = path.read_text().splitlines()
    at = next(k for k, line in enumerate(lines) if line.endswith(f",{first}"))
    lines[at] = lines[at].replace('naturalWidth"": 800', 'naturalWidth"": 400')
    path.write_text("\n".join(lines) + "\n")
    again = read_items([path], "points").source_tables.sizes
    assert first not in again
    assert len(again) == len(sizes) - 1
