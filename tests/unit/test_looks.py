"""Who looked at which image: given by users, read from files and exports, kept through filters."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
from click.testing import CliRunner

import dfcrp
from dfcrp.cli.main import dfcrp as command
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.looks import looks_given, with_looks
from dfcrp.runs.folder import prepare_folder, read_markings_back
from dfcrp.settings.config import Config

TABLE = "x,y,diameter,expert,image\n1,2,30,ann,a\n1,2,31,bob,a\n5,5,12,ann,b\n"
LOOKED = "image,expert\na,ann\na,bob\na,cho\nb,ann\nc,bob\n"


@pytest.fixture
def files(tmp_path):
    (tmp_path / "markings.csv").write_text(TABLE, encoding="utf-8")
    (tmp_path / "looked.csv").write_text(LOOKED, encoding="utf-8")
    return tmp_path


def looks(items) -> set[tuple[str, str]]:
    found = items.looks
    return {(found.images[v], items.experts[f]) for v, f in found.pairs.tolist()}


def test_forms_of_a_table_of_looks():
    pairs = [("a", "ann"), ("b", "bob")]
    table = {"image": ["a", "b"], "expert": ["ann", "bob"]}
    for given in (
        pairs,
        table,
        np.array(pairs),
        [list(pair) for pair in pairs],
        [*pairs, pairs[0]],
    ):
        assert looks_given(given).pairs.tolist() == [["a", "ann"], ["b", "bob"]]
    assert looks_given(["bob", "ann"]).pairs.tolist() == [["", "ann"], ["", "bob"]]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ("looked.csv", "must be pairs"),
        (3, "must be pairs"),
        ([("a", "b", "c")], "a pair of an image and an expert"),
        ({"image": ["a"]}, "no column expert"),
        (["ann", "bo\nb"], "looked: expert .* contains a line break"),
        ([("a" * 201, "ann")], "looked: image .* has 201 characters, the most is 200"),
        ({"image": ["a", "b"], "expert": ["ann"]}, "2 images and 1 experts"),
    ],
)
def test_what_is_no_table_of_looks(given, message):
    with pytest.raises(InputError, match=message):
        looks_given(given)


def test_those_who_marked_nothing_are_experts(files):
    items = dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv")
    assert items.experts == ("ann", "bob", "cho")
    assert (items.expert == np.array(items.experts)[items.families]).all()
    assert looks(items) == {("a", "ann"), ("a", "bob"), ("a", "cho"), ("b", "ann"), ("c", "bob")}
    assert items.looks.image.tolist() == [0, 0, 1]
    assert items.images == ("a", "b")


def test_without_looks_whoever_marked_something_looked(files):
    items = dfcrp.read_markings(files / "markings.csv")
    assert items.looked is None
    assert looks(items) == {("a", "ann"), ("a", "bob"), ("b", "ann")}


def test_filters_and_parts_keep_their_looks(files):
    items = dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv")
    image = items.of_image("a", np.array([0, 1]))
    assert image.experts == ("ann", "bob", "cho")
    assert image.looks.images == ("a",)
    only = dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv", image="b")
    assert looks(only) == {("b", "ann")}
    fewer = dfcrp.read_markings(
        files / "markings.csv", looked=files / "looked.csv", exclude_experts="bob"
    )
    assert "bob" not in fewer.experts
    # An image that loses all its items was looked at all the same.
    large = dfcrp.read_markings(
        files / "markings.csv", looked=files / "looked.csv", min_diameter=20
    )
    assert ("b", "ann") in looks(large)
    assert large.images == ("a",)


def test_whoever_marked_something_is_added_with_a_warning(files):
    items = dfcrp.read_markings(files / "markings.csv")
    with pytest.warns(DfcrpWarning, match="1 times an expert has items.*ann on b"):
        told = with_looks(items, [("a", "ann"), ("a", "bob")])
    assert ("b", "ann") in looks(told)


def test_images_of_looks_and_items_must_fit():
    items = dfcrp.Items.circles([1.0, 1.0], [2.0, 2.0], [3.0, 3.0], ["ann", "bob"])
    assert with_looks(items, ["ann", "bob", "cho"]).experts == ("ann", "bob", "cho")
    with pytest.raises(InputError, match="names 2 images"):
        with_looks(items, [("a", "ann"), ("b", "bob")])
    several = dfcrp.Items.circles([1.0, 1.0], [2.0, 2.0], [3.0, 3.0], ["ann"] * 2, image=["a", "b"])
    with pytest.raises(InputError, match="names no images"):
        with_looks(several, ["ann"])


def test_looks_are_data(files):
    """Two runs that differ in who looked are not the same."""
    items = dfcrp.read_markings(files / "markings.csv")
    told = dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv")
    assert items.digest != told.digest


def test_the_run_folder_keeps_looks(files):
    items = dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv")
    folder = files / "run"
    folder.mkdir()
    prepare_folder(folder, items, Config())
    back = read_markings_back(folder, Config())
    assert (back.looked == items.looked).all()
    assert back.experts == items.experts
    assert back.digest == items.digest


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("image,who\na,ann\n", "no column for expert"),
        ("image,expert,user\na,ann,x\n", "several columns for expert"),
        ("image,expert\na,\n", "row 2, column expert: it is empty"),
        ('image,expert\na,ann\na,"bo\x01b"\n', "row 3, column expert: expert .* cannot be"),
    ],
)
def test_a_bad_file_of_looks_is_refused(files, text, message):
    (files / "looked.csv").write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=rf"looked\.csv.*{message}"):
        dfcrp.read_markings(files / "markings.csv", looked=files / "looked.csv")


def test_the_option(files):
    """What is wrong with the file is found before anything is written."""
    (files / "looked.csv").write_text("image,who\na,ann\n", encoding="utf-8")
    arguments = ["fit", str(files / "markings.csv"), "--out", str(files / "run")]
    result = CliRunner().invoke(command, [*arguments, "--looked", str(files / "looked.csv")])
    assert isinstance(result.exception, InputError)
    assert not (files / "run").exists()


# Exports ---------------------------------------------------------------------------------------


def test_zooniverse_classifications_without_marks(tmp_path):
    def row(user, subject, marks):
        annotations = json.dumps([{"task": "T0", "value": marks}]).replace('"', '""')
        return f'{user},{subject},"{annotations}","{{}}"\n'

    circle = {"tool": 0, "x": 10, "y": 20, "r": 5}
    text = "user_name,subject_ids,annotations,subject_data\n"
    text += row("ann", 1, [circle]) + row("bob", 1, []) + row("bob", 2, [])
    (tmp_path / "export.csv").write_text(text, encoding="utf-8")
    items = dfcrp.read_markings(tmp_path / "export.csv")
    assert items.expert.tolist() == ["ann"]
    assert looks(items) == {("1", "ann"), ("1", "bob"), ("2", "bob")}


def test_coco_images_by_source(tmp_path):
    box = {"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 2, 3, 4]}
    images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "b.png"}]
    for name, count in (("one", 2), ("two", 1)):
        content = {"images": images[:count], "annotations": [box], "categories": []}
        (tmp_path / f"{name}.json").write_text(json.dumps(content), encoding="utf-8")
    items = dfcrp.read_items([tmp_path / "one.json", tmp_path / "two.json"], "boxes")
    assert looks(items) == {("a.png", "one"), ("b.png", "one"), ("a.png", "two")}


def test_cvat_images_without_shapes(tmp_path):
    box = '<box label="x" xtl="1" ytl="2" xbr="5" ybr="6"/>'
    for name, second in (("one", box), ("two", "")):
        text = f'<annotations><image id="0" name="a">{box}</image>'
        text += f'<image id="1" name="b">{second}</image></annotations>'
        (tmp_path / f"{name}.xml").write_text(text, encoding="utf-8")
    items = dfcrp.read_items([tmp_path / "one.xml", tmp_path / "two.xml"], "boxes")
    assert looks(items) == {(image, name) for image in "ab" for name in ("one", "two")}
    assert len(items) == 3


def test_labelme_files_without_shapes(tmp_path):
    shape = {"label": "x", "points": [[1, 2], [5, 6]], "shape_type": "rectangle"}
    for name, shapes in (("ann", [[shape], []]), ("bob", [[shape], [shape]])):
        (tmp_path / name).mkdir()
        for image, held in zip("ab", shapes, strict=True):
            content = {"imagePath": f"{image}.png", "shapes": held}
            (tmp_path / name / f"{image}.json").write_text(json.dumps(content), encoding="utf-8")
    with pytest.warns(DfcrpWarning, match="1 of 2 files have no boxes"):
        items = dfcrp.read_items([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert looks(items) == {(f"{image}.png", name) for image in "ab" for name in ("ann", "bob")}


def test_label_studio_annotations_without_results(tmp_path):
    value = {"x": 10, "y": 10, "width": 20, "height": 20, "rectanglelabels": ["x"]}
    result = {
        "type": "rectanglelabels", "value": value, "original_width": 100, "original_height": 100,
    }  # fmt: skip
    tasks = [
        {
            "data": {"image": image},
            "annotations": [
                {"completed_by": 1, "result": [result]},
                {"completed_by": 2, "result": []},
                {"completed_by": 3, "result": [], "was_cancelled": True},
            ],
        }
        for image in ("a", "b")
    ]
    (tmp_path / "export.json").write_text(json.dumps(tasks), encoding="utf-8")
    items = dfcrp.read_items(tmp_path / "export.json", "boxes")
    assert looks(items) == {(image, who) for image in "ab" for who in "12"}


def with_looks_by_loop(items, given):
    """Looks, experts, codes and what is warned of, name by name."""
    images = [""] * len(items) if items.image is None else items.image.tolist()
    own = set(zip(images, items.expert.tolist(), strict=True))
    told = {(image, expert) for image, expert in given}
    every = np.array(sorted(told | own), dtype=np.str_).reshape(-1, 2)
    experts = tuple(sorted(set(every[:, 1].tolist())))
    families = [experts.index(name) for name in items.expert.tolist()]
    names = tuple(sorted(set(every[:, 0].tolist())))
    pairs = [(names.index(image), experts.index(expert)) for image, expert in every.tolist()]
    missing = sorted(own - told)
    return every, experts, families, names, sorted(set(pairs)), missing


@pytest.mark.parametrize("several", [True, False])
def test_looks_at_once_are_as_name_by_name(several):
    for seed in range(40):
        rng = np.random.default_rng([seed, several])
        n = int(rng.integers(1, 12))
        words = np.array(["b", "a10", "é", "a9", "Zoë", "cc cc"])
        image = words[rng.integers(0, 6, n)].tolist() if several else None
        items = dfcrp.Items.from_columns(
            {"x": rng.random(n), "y": rng.random(n)},
            words[rng.integers(0, 6, n)].tolist(),
            kind="points",
            image=image,
        )
        where = words[rng.integers(0, 6, 8)].tolist() if several else [""] * 8
        given = list(zip(where, words[rng.integers(0, 6, 8)].tolist(), strict=True))
        every, experts, families, names, pairs, missing = with_looks_by_loop(items, given)
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            found = with_looks(items, given)
        assert found.looked.dtype == every.dtype
        assert found.looked.tolist() == every.tolist()
        assert found.experts == experts
        assert found.families.dtype == np.int64
        assert found.families.tolist() == families
        assert found.looks.images == names
        assert found.looks.pairs.tolist() == [list(pair) for pair in pairs]
        assert len(warned) == bool(missing)
        for image_name, expert in missing[:3]:
            assert f"{expert} on {image_name or 'the image'}" in str(warned[0].message)
