"""Extracts and reductions of panoptes_aggregation, and Caesar's exports."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import format_samples as samples
from dfcrp.errors import InputError
from dfcrp.io import read_items, read_table
from shared_data import SHARED

EXPORT = SHARED / "formats" / "zooniverse" / "ap-aas229-test-classifications.csv"


def written(folder: Path, content: bytes) -> Path:
    path = folder / "extract.csv"
    path.write_bytes(content)
    return path


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_extracts_are_the_lists_of_volunteers(tmp_path: Path) -> None:
    content = samples.EXTRACTS.replace(b"nan", b"20.0")
    items = read_items(written(tmp_path, content))
    assert items.expert.tolist() == ["ann", "ann", "ann", "bob", "bob"]
    assert items.image.tolist() == ["26", "26", "26#1", "26", "26"]
    assert items.x.tolist() == [375.5, 261.0, 4.5, 375.0, 20.0]
    assert items.diameter.tolist() == [57.0, 68.0, 13.0, 56.0, 2.0]
    assert items.category.tolist() == ["T0_tool0"] * 2 + ["T0_tool1"] + ["T0_tool0"] * 2
    # Who was not logged in looked, and marked nothing.
    assert ["26", "not-logged-in-2"] in items.looked.tolist()
    # bob's first classification is replaced by his second.
    assert items.sources[0].left_out == 1


def test_answers_about_marks(tmp_path: Path) -> None:
    path = written(tmp_path, samples.EXTRACTS.replace(b"nan", b"20.0"))
    with pytest.warns(UserWarning, match="made again later"):
        table = read_table(path)
    assert table.extra["detail 1"][:2] == ["0", "1"]


def test_a_shape_without_a_place_is_left_out(tmp_path: Path) -> None:
    with pytest.warns(UserWarning, match="1 mark of an unknown tool"):
        items = read_items(written(tmp_path, samples.EXTRACTS))
    assert items.x.tolist() == [375.5, 261.0, 4.5, 375.0]


def test_reductions_are_one_list(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, samples.REDUCTIONS))
    assert "expert" not in table.about
    assert table.columns["x"].tolist() == [375.25, 10.0]
    assert table.columns["diameter"].tolist() == [56.5, 10.0]
    assert table.typed_extra()["count"] == [2, 3]
    assert {image for image, _ in table.looked} == {"26", "27"}


def test_caesars_columns_of_json(tmp_path: Path) -> None:
    items = read_items(written(tmp_path, samples.CAESAR))
    assert items.expert.tolist() == ["7"]
    assert (items.x[0], items.y[0], items.diameter[0]) == (5.0, 6.0, 14.0)
    assert items.experts == ("7", "8")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        (b"[375.5, 261.0]", b"[375.5, 261.0", "row 2, column 'data.frame0.T0_tool0_x'"),
        (b"[375.5, 261.0]", b"__import__('os')", "is no list"),
        (b"[375.5, 261.0]", b"(" * 5000, "is no list"),
        (b"[375.5, 261.0]", b"['a', 'b']", "row 2"),
    ],
)
@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_what_is_wrong_is_named(tmp_path: Path, old: bytes, new: bytes, said: str) -> None:
    with pytest.raises(InputError) as caught:
        read_items(written(tmp_path, samples.EXTRACTS.replace(old, new)))
    assert said in str(caught.value)
    assert "extract.csv" in str(caught.value)


def test_unequal_lists_cost_these_shapes_only(tmp_path: Path) -> None:
    content = samples.EXTRACTS.replace(b"[375.5, 261.0]", b"[375.5]").replace(b"nan", b"20.0")
    with pytest.warns(UserWarning, match="unequal numbers"):
        items = read_items(written(tmp_path, content))
    assert items.x.tolist() == [4.5, 375.0, 20.0]


@pytest.mark.filterwarnings("ignore")
def test_as_the_program_itself_extracts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The circles of a real export are those of its extracts."""
    scripts = pytest.importorskip(
        "panoptes_aggregation.scripts", reason="panoptes_aggregation is not installed"
    )
    yaml = pytest.importorskip("yaml")
    if not EXPORT.exists():
        pytest.skip("the shared data are not here")
    config = tmp_path / "extract.yaml"
    shapes = [{"task": "T0", "shape": "circle", "tools": [0, 1]}]
    versions = {"min": "0.0", "max": "999.0"}
    content = {"workflow_id": 3149, "workflow_version": versions}
    config.write_text(yaml.safe_dump({**content, "extractor_config": {"shape_extractor": shapes}}))
    path = scripts.extract_csv(str(EXPORT), str(config), output_name="x", output_dir=str(tmp_path))
    found = read_items(path[0] if isinstance(path, list) else path)
    direct = read_items(EXPORT)
    there = {tuple(row) for row in np.column_stack([direct.x, direct.y, direct.diameter]).tolist()}
    for row in np.column_stack([found.x, found.y, found.diameter]).tolist():
        assert min(np.abs(np.subtract(row, one)).max() for one in there) < 1e-9
    assert len(found) > 50
