"""Files of particle pickers, after their documentation."""

from __future__ import annotations

import contextlib
import math
from pathlib import Path

import numpy as np
import pytest

from dfcrp.errors import InputError
from dfcrp.io.reading import read_items

BOX = "100\t200\t64\t64\t-3\n300\t120\t64\t64\t-3\n"
CBOX = """
data_global

_cbox_format_version 1.0

data_cryolo

loop_
_CoordinateX #1
_CoordinateY #2
_CoordinateZ #3
_Width #4
_Height #5
_Depth #6
_EstWidth #7
_EstHeight #8
_Confidence #9
_NumBoxes #10
_Angle #11
10.5 20.0 <NA> 60.0 50.0 <NA> 61 52 0.91 1 <NA>
30.0 40.0 <NA> 60.0 50.0 <NA> 60 51 0.45 1 <NA>

data_cryolo_include

loop_
_slice_index #1
"""
STAR = """# version 30001

data_optics

loop_
_rlnOpticsGroupName #1
_rlnOpticsGroup #2
opticsGroup1 1

data_particles

loop_
_rlnCoordinateX #1
_rlnCoordinateY #2
_rlnMicrographName #3
  120.500000   340.000000 MotionCorr/job002/m1.mrc
  12.000000   34.000000 000002@MotionCorr/job002/m2.mrc

"""


@pytest.fixture
def folders(tmp_path: Path) -> list[Path]:
    for who in ("ann", "bob"):
        (tmp_path / who).mkdir()
    return [tmp_path / "ann", tmp_path / "bob"]


def fill(folders: list[Path], name: str, text: str) -> None:
    for folder in folders:
        (folder / name).write_text(text)


@pytest.mark.filterwarnings("ignore:.*centres of its shapes")
def test_box_files_in_folders(folders: list[Path]) -> None:
    fill(folders, "m1.box", BOX)
    fill(folders, "m2.box", "# none\n5,6,10,20\n")
    boxes = read_items(folders, "boxes")
    assert boxes.experts == ("ann", "bob")
    assert boxes.image is not None
    assert boxes.image.tolist() == ["m1", "m1", "m2"] * 2
    assert boxes.values[:3].tolist() == [[132, 232, 64, 64], [332, 152, 64, 64], [10, 16, 10, 20]]
    points = read_items(folders, "points")
    assert points.values[:3].tolist() == [[132, 232], [332, 152], [10, 16]]


def test_box_files_of_one_image_by_several(tmp_path: Path) -> None:
    """Files that are given themselves are experts, not images."""
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.box").write_text(BOX)
    found = read_items([tmp_path / "ann.box", tmp_path / "bob.box"], "boxes")
    assert found.experts == ("ann", "bob")
    assert found.image is None


def test_boxes_of_cryolo(folders: list[Path]) -> None:
    fill(folders, "m1.cbox", CBOX)
    found = read_items(folders, "boxes")
    assert found.values[:2].tolist() == [[40.5, 45.0, 60.0, 50.0], [60.0, 65.0, 60.0, 50.0]]
    assert found.score is not None
    assert found.score.tolist() == [0.91, 0.45] * 2


def test_points_of_relion(folders: list[Path]) -> None:
    fill(folders, "particles.star", STAR)
    found = read_items(folders, "points")
    assert found.image is not None
    assert found.image.tolist() == ["m1.mrc", "m2.mrc"] * 2
    assert found.values[:2].tolist() == [[120.5, 340.0], [12.0, 34.0]]
    assert found.score is None
    with pytest.raises(InputError, match="points"):
        read_items(folders, "boxes")


def test_figures_of_merit_of_relion_are_scores(folders: list[Path]) -> None:
    text = "data_\n\nloop_\n_rlnCoordinateX #1\n_rlnCoordinateY #2\n_rlnAutopickFigureOfMerit #3\n"
    fill(folders, "m1.star", text + "1.0 2.0 0.7\n3.0 4.0 <NA>\n")
    found = read_items(folders, "points")
    assert found.score is not None
    assert found.score[0] == 0.7
    assert math.isnan(found.score[1])


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.box", "1 2 3\n", "a.box, row 1: 3 numbers; .* correct the row"),
        ("a.box", "1 2 x 4\n", "a.box, row 1: the width is 'x', not a number"),
        ("a.star", STAR.replace("CoordinateX", "X"), "a.star: no table with _rlncoordinatex"),
        ("a.star", STAR.replace("  340.000000 MotionCorr/job002/m1.mrc", ""), "row 16: 1 values"),
    ],
)
def test_damaged_files_are_refused(tmp_path: Path, name: str, text: str, message: str) -> None:
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InputError, match=message):
        read_items(path, "points")


@pytest.mark.parametrize(("name", "text"), [("a.box", BOX), ("a.cbox", CBOX), ("a.star", STAR)])
@pytest.mark.filterwarnings("ignore")
def test_any_damage_is_read_or_refused(tmp_path: Path, name: str, text: str) -> None:
    rng = np.random.default_rng(1)
    (tmp_path / "other.box").write_text(BOX)
    path = tmp_path / name
    for _ in range(150):
        data = bytearray(text.encode())
        for _ in range(rng.integers(1, 6)):
            at = int(rng.integers(len(data)))
            data[at : at + int(rng.integers(0, 9))] = rng.bytes(int(rng.integers(0, 4)))
        path.write_bytes(bytes(data))
        with contextlib.suppress(InputError):
            read_items([path, tmp_path / "other.box"], "points")
