"""What is left out, repaired or joined in reading is counted, and said with file and row."""

from __future__ import annotations

import json
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import dfcrp
import format_samples as samples
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.io import read_table
from dfcrp.io.reading import read_items

GOOD = "0 .5 .4 .1 .2\n1 .2 .2 .05 .05\n"


def read(paths: Any, kind: str = "boxes", **options: Any) -> tuple[Any, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        items = read_items(paths, kind, **options)
    return items, "\n".join(str(one.message) for one in caught)


def yolo(folder: Path, files: Mapping[str, str | bytes]) -> Path:
    folder.mkdir()
    for name, text in files.items():
        data = text if isinstance(text, bytes) else text.encode()
        (folder / name).write_bytes(data)
    return folder


#: A row, and what it is called where it is left out; None where it is read.
ODD_ROWS = {
    "beyond the image": ("0 1.02 .9 .05 .05", "number that is not a share from 0 to 1"),
    "not a number": ("0 nan .9 .05 .05", "number that is not finite"),
    "infinite": ("0 .5 inf .05 .05", "number that is not finite"),
    "a word": ("0 .5 left .05 .05", "row that is not of numbers"),
    "a class of half a number": ("0.5 .5 .5 .05 .05", "row without the number of a class"),
    "a negative class": ("-1 .5 .5 .05 .05", "row without the number of a class"),
    "too short": ("0 .5 .5 .05", "row of fewer than 5 numbers"),
    "no width": ("0 .5 .5 0 .05", "box of no size"),
    "a decimal comma": ("0 0,5 .5 .05 .05", "row that is not of numbers"),
    "a class with a decimal point": ("0.0 .5 .5 .05 .05", None),
}


@pytest.mark.parametrize("alone", [False, True])
@pytest.mark.parametrize("case", ODD_ROWS)
def test_an_odd_row_of_yolo_costs_that_row_only(tmp_path: Path, case: str, alone: bool) -> None:
    row, why = ODD_ROWS[case]
    text = f"{row}\n" if alone else f"{GOOD}{row}\n"
    ann = yolo(tmp_path / "ann", {"one.txt": text, "two.txt": GOOD, "classes.txt": "a\nb\n"})
    bob = yolo(tmp_path / "bob", {"one.txt": GOOD, "two.txt": GOOD})
    items, said = read([ann, bob])
    whole = 6 if alone else 8
    assert len(items) == whole + (why is None)
    assert [source.left_out for source in items.sources] == [int(why is not None), 0]
    assert f"row {1 if alone else 3}" in said
    assert (why or "read as whole numbers") in said
    assert "one.txt" in said
    assert any("row" in note for note in items.sources[0].notes)
    # Whoever made the file looked at the image.
    assert ["one", "ann"] in items.looked.tolist()


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_a_byte_order_mark_costs_nothing(tmp_path: Path, encoding: str) -> None:
    ann = yolo(tmp_path / "ann", {"one.txt": GOOD.encode(encoding), "two.txt": GOOD})
    bob = yolo(tmp_path / "bob", {"one.txt": GOOD})
    items, said = read([ann, bob])
    assert len(items) == 6
    assert not said


def test_text_among_yolo_that_is_none_is_named(tmp_path: Path) -> None:
    ann = yolo(tmp_path / "ann", {"one.txt": GOOD, "remarks.txt": "all done\n"})
    items, said = read([ann, yolo(tmp_path / "bob", {"one.txt": GOOD})])
    assert "text that is not YOLO's is not read: 'remarks.txt'" in said
    assert any("remarks.txt" in note for note in items.sources[0].notes)


def coco(path: Path, **content: Any) -> Path:
    whole = {
        "images": [{"id": 1, "file_name": "a.png"}],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]}],
    } | content
    path.write_text(json.dumps(whole))
    return path


def test_coco_repairs_nothing_in_silence(tmp_path: Path) -> None:
    good = {"image_id": 1, "category_id": 1, "bbox": [1, 1, 4, 4]}
    odd = [
        {**good, "bbox": [9, 9, -4, 4]},
        {**good, "image_id": 2},
        {"category_id": 1, "bbox": [5, 5, 4, 4]},
        {**good, "bbox": [20, 1, 4, 4], "category_id": 7},
    ]
    paths = [coco(tmp_path / f"{who}.json", annotations=[good, *odd]) for who in ("ann", "bob")]
    items, said = read(paths)
    assert len(items) == 4
    assert items.images == ("a.png",)
    assert "1 box that is of negative width or height (annotation 2)" in said
    assert "2 annotations without an image in the file (annotations 3, 4)" in said
    assert "categories that are not in the file go by their numbers (annotation 5)" in said
    assert [source.left_out for source in items.sources] == [3, 3]


def test_coco_with_a_category_twice_is_refused(tmp_path: Path) -> None:
    twice = [{"id": 1, "name": "a"}, {"id": 1, "name": "b"}]
    with pytest.raises(InputError, match=r"a\.json, categories: entry 2, 'b', has the id '1', as"):
        read(coco(tmp_path / "a.json", categories=twice))
    same = [{"id": 1, "name": "a"}, {"id": 1, "name": "a"}]
    paths = [coco(tmp_path / f"{who}.json", categories=same) for who in ("ann", "bob")]
    assert len(read(paths)[0]) == 2


def test_coco_outlines_with_half_a_vertex(tmp_path: Path) -> None:
    outlines = [[0, 0, 8, 0, 8, 8, 0, 8], [0, 0, 8, 0, 8, 8, 0]]
    found = [{"image_id": 1, "segmentation": [outline]} for outline in outlines]
    paths = [coco(tmp_path / f"{who}.json", annotations=found) for who in ("ann", "bob")]
    items, said = read(paths, "ellipses")
    assert len(items) == 2
    assert "1 outline that has an odd count of numbers (annotation 2)" in said


def test_via_polygons_with_unequal_axes(tmp_path: Path) -> None:
    good = {"name": "polygon", "all_points_x": [0, 8, 8], "all_points_y": [0, 0, 8]}
    odd = {**good, "all_points_y": [0, 0]}
    regions = [{"shape_attributes": one, "region_attributes": {}} for one in (good, odd)]
    content = {"a.png9": {"filename": "a.png", "size": 9, "regions": regions}}
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.json").write_text(json.dumps(content))
    items, said = read([tmp_path / "ann.json", tmp_path / "bob.json"], "points")
    assert len(items) == 2
    assert "more numbers for one axis than for the other (region 2)" in said


def test_cvat_images_without_a_name_and_skeletons(tmp_path: Path) -> None:
    box = '<box xtl="{}" ytl="1" xbr="30" ybr="9"/>'
    bones = '<skeleton><points points="1,2"/></skeleton>'
    text = (
        f"<annotations><image>{box.format(1)}</image>"
        f'<image name="a.png">{box.format(2)}{bones}</image></annotations>'
    )
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.xml").write_text(text)
    items, said = read([tmp_path / "ann.xml", tmp_path / "bob.xml"])
    assert len(items) == 2
    assert items.images == ("a.png",)
    assert "1 box on an image without a name (row 1)" in said
    assert "1 skeleton (row 1)" in said


def test_marks_of_nobody_and_on_nothing(tmp_path: Path) -> None:
    """LabelMe without a path, Label Studio without an annotator, Zooniverse without a subject."""
    for who in ("ann", "bob"):
        (tmp_path / who).mkdir()
        shape = {"shape_type": "rectangle", "points": [[1, 1], [5, 5]], "label": "a"}
        text = json.dumps({"shapes": [shape], "imagePath": None})
        (tmp_path / who / "one.json").write_text(text)
    items, said = read([tmp_path / "ann", tmp_path / "bob"])
    assert items.images == ("one",)
    assert "goes by the name of the file" in said
    result = samples.studio_result("rectangle", x=10, y=10, width=4, height=4)
    task = {"id": 1, "data": {"image": "a.png"}, "annotations": [{"result": [result]}]}
    (tmp_path / "tasks.json").write_text(json.dumps([task]))
    items, said = read(tmp_path / "tasks.json")
    assert items.experts == ("unknown annotator",)
    assert "annotations of nobody are a list of 'unknown annotator' (task 1)" in said
    drawn = [samples.drawing({"x": 1, "y": 2, "r": 3})]
    rows = [{"annotations": drawn}, {"annotations": drawn, "subject_ids": "", "user_name": "b"}]
    (tmp_path / "export.csv").write_bytes(samples.zooniverse(rows))
    items, said = read(tmp_path / "export.csv", "circles")
    assert items.images == ("7",)
    assert "1 classification without a subject (row 3)" in said


def test_scores_in_the_fifth_column_of_box_files(tmp_path: Path) -> None:
    paths = [tmp_path / "ann.box", tmp_path / "bob.box"]
    for path in paths:
        path.write_text("1 2 6 6 0.9\n30 40 6 6 0.2\n")
    items, said = read(paths)
    assert items.score.tolist() == [0.9, 0.2] * 2
    assert "the fifth column is read as the score (rows 1, 2)" in said
    for path in paths:
        path.write_text("1 2 6 6 -3\n30 40 6 6 -3\n")
    items, said = read(paths)
    assert items.score is None
    assert not said
    for path in paths:
        path.write_text("1 2 6 6 0.9 x\n30 40 6 6\n")
    items, said = read(paths)
    assert items.score is None
    assert "what follows the fourth column is not read (row 1)" in said


def test_rows_of_a_star_file_after_a_blank_line_are_not_lost(tmp_path: Path) -> None:
    path = tmp_path / "a.star"
    path.write_text("data_\n\nloop_\n\n_rlnCoordinateX #1\n_rlnCoordinateY #2\n1 2\n\n3 4\n")
    with pytest.raises(InputError, match=r"a\.star, row 9: it follows a blank line"):
        read(path, "points")
    path.write_text("data_\n\nloop_\n\n_rlnCoordinateX #1\n_rlnCoordinateY #2\n1 2\n3 4\n\n")
    assert len(read_table(path, "points")) == 2


def test_circles_and_spots_in_one_file_are_all_read_as_points(tmp_path: Path) -> None:
    for who in ("ann", "bob"):
        shapes = [
            {"shape_type": "circle", "points": [[9, 9], [9, 12]], "label": "a"},
            {"shape_type": "point", "points": [[40, 9]], "label": "a"},
            {"shape_type": "point", "points": [[80, 9]], "label": "a"},
        ]
        (tmp_path / f"{who}.json").write_text(json.dumps({"shapes": shapes, "imagePath": "a.png"}))
    paths = [tmp_path / "ann.json", tmp_path / "bob.json"]
    circles, said = read(paths, "circles")
    assert len(circles) == 2
    assert "2 points without a size (shapes 2, 3)" in said
    assert "`--likelihood points` reads all of them by their centres" in said
    points, said = read(paths, "points")
    assert len(points) == 6
    assert "beside 2 points the centres of 1 circle are read" in said


def test_a_strange_delimiter_is_named(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    for mark in "%&$@":
        path.write_text("x,y,d,expert\n1,2,3,ann\n4,5,6,bob\n".replace(",", mark))
        with pytest.raises(InputError, match=r"header: its fields.* are separated by '[%&$@]'"):
            read(path, "circles")
    path.write_text("expert name\nann 10:30\nbob 11:20\n")
    assert len(read(path, "records")[0]) == 2


SPELLED = "x,y,d,expert,category\n1,2,3,a,Binucleated\n9,9,3,b,Bi-nucleated\n20,9,3,b,binucleated\n"


def test_spellings_of_categories_are_named_and_joined(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_text(SPELLED + "30,9,3,b,Binucleated\n40,9,3,a,other\n")
    items, said = read(path, "circles")
    assert len(items.categories) == 4
    assert "'Bi-nucleated' (1) and 'Binucleated' (2) and 'binucleated' (1)" in said
    assert "--join-categories spellings" in said
    items, said = read(path, "circles", join_categories="spellings")
    assert items.categories == ("Binucleated", "other")
    assert not said
    assert any("2 categories are joined to others: 'Bi-nucleated' to" in one for one in items.notes)
    items, _ = read(path, "circles", join_categories="binucleated=other")
    assert items.categories == ("Bi-nucleated", "Binucleated", "other")
    with pytest.raises(InputError, match="no category is called 'Other'; did you mean 'other'"):
        read(path, "circles", join_categories={"Other": "x"})
    with pytest.raises(SettingsError, match="join_categories is 'all'"):
        read(path, "circles", join_categories="all")


def test_categories_of_data_frames() -> None:
    frame = {
        "x": [1.0, 9.0],
        "y": [1.0, 9.0],
        "d": [1.0, 1.0],
        "expert": ["a", "b"],
        "category": ["Bi nucleated", "Binucleated"],
    }
    with pytest.warns(DfcrpWarning, match="categories that may be one"):
        assert len(dfcrp.Items.from_frame(frame).categories) == 2
    joined = dfcrp.Items.from_frame(frame, join_categories="spellings")
    assert joined.categories == ("Bi nucleated",)


def test_the_command_joins_categories(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = tmp_path / "a.csv", tmp_path / "b.csv"
    path.write_text(SPELLED)
    assert main(["convert", str(path), str(out), "--join-categories", "spellings"]) == 0
    assert out.read_text().count('"Bi-nucleated"') == 3
    assert "joined to others" in capsys.readouterr().err


def test_what_is_left_out_stands_in_provenance(tmp_path: Path) -> None:
    shapes = [
        {"shape_type": "circle", "points": [[9, 9], [9, 12]], "label": "a"},
        {"shape_type": "line", "points": [[40, 9], [1, 1]], "label": "a"},
    ]
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.json").write_text(json.dumps({"shapes": shapes, "imagePath": "a.png"}))
    run, files = tmp_path / "run", [str(tmp_path / f"{who}.json") for who in ("ann", "bob")]
    options = ["--chains", "1", "--scans", "20", "--no-report", "--quiet"]
    assert main(["fit", *files, "--out", str(run), *options]) == 0
    sources = json.loads((run / "provenance.json").read_text())["sources"]
    assert [source["left_out"] for source in sources] == [1, 1]
    assert sources[0]["notes"] == ["1 circle is read; left out: 1 line (shape 2)"]
    assert dfcrp.load(run).items.sources[0].notes == tuple(sources[0]["notes"])


def test_why_a_share_makes_a_consensus_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    from dfcrp.cli.job import _consensus_note

    said = _consensus_note("60%", 18, 3, [3, 18, 18])
    assert "as not equally many experts looked at every image or part of it (3 to 18)" in said
    assert "(3 to" not in _consensus_note("60%", 18, 3, [18, 18])


def test_numbers_are_whole_arrays(tmp_path: Path) -> None:
    """Rows that are left out leave no gap."""
    ann = yolo(tmp_path / "ann", {"one.txt": f"x\n{GOOD}0 nan 1 1 1\n"})
    items, _ = read([ann, yolo(tmp_path / "bob", {"one.txt": GOOD})])
    assert np.isfinite(items.values).all()
    assert items.values[0] == pytest.approx([0.5, 0.4, 0.1, 0.2])


STUDIO = {"completed_by": {"email": "studio"}, "result": []}
#: Exports of somebody who looked at a.jpg and marked nothing.
NOTHING: dict[str, Any] = {
    "coco.json": {"images": [{"id": 1, "file_name": "a.jpg"}], "annotations": []},
    "cvat.xml": '<annotations><image id="0" name="a.jpg" width="9" height="9"/></annotations>',
    "via.json": {"a.jpg9": {"filename": "a.jpg", "size": 9, "regions": []}},
    "via.csv": "filename,file_size,file_attributes,region_count,region_id,"
    'region_shape_attributes,region_attributes\na.jpg,9,"{}",0,0,"{}","{}"\n',
    "studio.json": [{"data": {"image": "a.jpg"}, "annotations": [STUDIO]}],
    "labelme.json": {"shapes": [], "imagePath": "a.jpg"},
    "yolo/a.txt": "",
}


@pytest.mark.parametrize("file", NOTHING)
def test_a_file_without_marks_says_who_looked(tmp_path: Path, file: str) -> None:
    """An empty truth, and beside other lists that of somebody who found nothing."""
    name = "a" if file.startswith("yolo") else "a.jpg"
    image = {"id": 1, "file_name": name}
    box = {"id": 1, "image_id": 1, "bbox": [10.0, 10.0, 9.0, 9.0]}
    ours, nothing = tmp_path / "ann.json", tmp_path / file
    ours.write_text(json.dumps({"images": [image], "annotations": [box]}))
    nothing.parent.mkdir(exist_ok=True)
    text = NOTHING[file]
    nothing.write_text(text if isinstance(text, str) else json.dumps(text))
    given = nothing.parent if file.startswith("yolo") else nothing
    found = dfcrp.evaluate(ours, given, "boxes")
    assert (found["n_true"], found["n_listed"]) == (0, 1)
    with pytest.warns(DfcrpWarning, match=r"no boxes in it: .* looked at 1 image and marked nothi"):
        items = dfcrp.read_items([ours, given], kind="boxes")
    assert items.looked is not None
    assert items.looked.tolist() == [[name, "ann"], [name, given.stem]]
    assert len(items) == 1
    with pytest.raises(InputError, match=r"no mark in it|no boxes in its files"):
        dfcrp.read_items(given, kind="boxes")


def test_marks_of_another_kind_are_no_empty_truth(tmp_path: Path) -> None:
    """What could not be read as a box is no image without boxes."""
    shapes = [{"shape_type": "point", "points": [[5, 5]], "label": "a"}]
    ours, points = tmp_path / "ann.json", tmp_path / "points.json"
    points.write_text(json.dumps({"shapes": shapes, "imagePath": "a.jpg"}))
    box = {"shape_type": "rectangle", "points": [[1, 1], [9, 9]], "label": "a"}
    ours.write_text(json.dumps({"shapes": [box], "imagePath": "a.jpg"}))
    for read in (
        lambda: dfcrp.evaluate(ours, points, "boxes"),
        lambda: dfcrp.read_items([ours, points], kind="boxes"),
    ):
        with pytest.raises(InputError, match="no box in it, but 1 point"):
            read()
