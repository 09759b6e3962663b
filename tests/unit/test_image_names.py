"""Which names of images are one image: in tables, exports and data frames."""

from __future__ import annotations

import json
import sqlite3
import unicodedata
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

import dfcrp
import format_samples as samples
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.io.reading import read_items

COMPOSED, APART = "Zoë.png", unicodedata.normalize("NFD", "Zoë.png")


def tables(folder: Path, lists: Mapping[str, Sequence[str]]) -> list[Path]:
    """A table for each expert, with one circle on each of these images."""
    paths = []
    for expert, images in lists.items():
        rows = "".join(f"{3 * k},{2 * k},5,{image}\n" for k, image in enumerate(images, 1))
        paths.append(folder / f"{expert}.csv")
        paths[-1].write_text(f"x,y,diameter,image\n{rows}", encoding="utf-8")
    return paths


def labelme(folder: Path, lists: Mapping[str, Sequence[str]]) -> list[Path]:
    """A folder for each expert, with a file for each of these images."""
    for expert, images in lists.items():
        (folder / expert).mkdir()
        for k, image in enumerate(images, 1):
            shape = {"shape_type": "circle", "points": [[9 * k, 8], [9 * k, 12]], "label": "a"}
            content = {"shapes": [shape], "imagePath": image}
            (folder / expert / f"{k}.json").write_text(json.dumps(content), encoding="utf-8")
    return [folder / expert for expert in lists]


def read(paths: Any, kind: str = "circles", **options: Any) -> tuple[Any, str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        items = read_items(paths, kind, **options)
    return items, "\n".join(str(one.message) for one in caught)


#: Lists, their images as they are read, and what is warned of.
ONE_IMAGE = {
    "a path beside a name": (["/home/ann/a.jpg", "/home/ann/b.jpg"], ["a.jpg", "b.jpg"], ""),
    "paths of two computers": (
        ["/home/ann/a.jpg", "/home/ann/b.jpg"],
        ["C:\\data\\a.jpg", "C:\\data\\b.jpg"],
        "",
    ),
    "the same folders, absolute and relative": (
        ["/home/ann/s1/a.jpg", "/home/ann/s2/b.jpg"],
        ["s1/a.jpg", "s2/b.jpg"],
        "",
    ),
    "upper and lower case": (["A.JPG", "B.JPG"], ["a.jpg", "b.jpg"], "taken as one image"),
    "another format": (["a.png", "b.png"], ["a.jpg", "b.jpg"], "taken as one image"),
    "no ending": (["a", "b"], ["a.jpg", "b.jpg"], ""),
    "accents": ([COMPOSED, "b.jpg"], [APART, "b.jpg"], ""),
    "numbers with a decimal point": (["1", "2"], ["1.0", "2.0"], "taken as one image"),
}


@pytest.mark.parametrize("case", ONE_IMAGE)
@pytest.mark.parametrize("write", [tables, labelme])
def test_spellings_of_one_image(tmp_path: Path, write: Any, case: str) -> None:
    ann, bob, told = ONE_IMAGE[case]
    items, said = read(write(tmp_path, {"ann": ann, "bob": bob}))
    assert len(items.images) == 2
    first, second = (items.image[items.expert == who].tolist() for who in ("ann", "bob"))
    assert first == second
    assert told in said
    assert items.notes  # whatever was joined or renamed is kept for provenance.json


@pytest.mark.parametrize("write", [tables, labelme])
def test_images_of_one_name_in_several_folders_are_several(tmp_path: Path, write: Any) -> None:
    paths = write(tmp_path, {"ann": ["s1/f.jpg", "s2/f.jpg"], "bob": ["s1/f.jpg", "s2/f.jpg"]})
    assert read(paths)[0].images == ("s1/f.jpg", "s2/f.jpg")
    assert read(paths, image_names="name")[0].images == ("f.jpg",)


@pytest.mark.parametrize("write", [tables, labelme])
@pytest.mark.parametrize(
    ("ann", "bob"),
    [
        (["s1/f.jpg", "s2/f.jpg"], ["f.jpg"]),
        (["s1/f.jpg", "s2/f.jpg"], ["/home/bob/f.jpg"]),
        (["train/a.jpg"], ["val/a.jpg"]),
        (["s1/f.jpg", "s2/h.jpg"], ["/data/s2/f.jpg"]),
        (["a.png", "a.jpg"], ["a"]),
    ],
)
def test_what_could_be_meant_in_two_ways_is_refused(
    tmp_path: Path, write: Any, ann: list[str], bob: list[str]
) -> None:
    paths = write(tmp_path, {"ann": ann, "bob": bob})
    with pytest.raises(InputError, match=r"may be the same as .*--image-names name"):
        read(paths)
    by_path = read(paths, image_names="path")[0]
    assert len(by_path.images) == len({*ann, *bob})
    by_stem = read(paths, image_names="stem")[0]
    assert len(by_stem.images) < len({*ann, *bob})


def test_lists_that_share_paths_use_the_same_paths(tmp_path: Path) -> None:
    """Another path is another image then; names that are no files of images are left alone."""
    paths = tables(tmp_path, {"ann": ["x/c.png", "x/a.png"], "bob": ["x/c.png", "y/a.png"]})
    assert read(paths)[0].images == ("x/a.png", "x/c.png", "y/a.png")
    paths = tables(tmp_path, {"ann": ["2019/05"], "bob": ["2020/05"]})
    assert read(paths)[0].images == ("2019/05", "2020/05")
    paths = tables(tmp_path, {"ann": ["c.png", "a.png"], "bob": ["c.png", "a.jpg"]})
    items, said = read(paths)
    assert items.images == ("a.jpg", "a.png", "c.png")
    assert "'a.png' (list of ann) and 'a.jpg' (list of bob) are taken as 2 images" in said
    assert "--image-names stem" in said


@pytest.mark.parametrize(
    ("one", "other"),
    [("img_1.png", "img1.png"), ("img-01.png", "img 1.png"), ("1a2b3c4d-x.png", "x.png")],
)
def test_suspicious_names_are_named(tmp_path: Path, one: str, other: str) -> None:
    items, said = read(tables(tmp_path, {"ann": [one], "bob": [other]}))
    assert len(items.images) == 2
    assert f"{one!r} (list of ann)" in said
    assert f"{other!r} (list of bob)" in said
    assert any(note.startswith("doubtful: ") for note in items.notes)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("/home/ann/pictures/s1/x.png", "/home/bob/pictures/s2/x.png"),
        ("s1/x.png", "/home/bob/x.png"),
    ],
)
def test_folders_that_may_be_of_the_data_are_named(tmp_path: Path, one: str, other: str) -> None:
    items, said = read(tables(tmp_path, {"ann": [one], "bob": [other]}))
    assert items.images == ("x.png",)
    assert "lie in different folders and are taken as one image" in said
    assert "--image-names path" in said


def test_many_doubts_are_one_warning(tmp_path: Path) -> None:
    lists = {
        who: [f"i{k}.{end}" for k in range(9)] for who, end in (("ann", "png"), ("bob", "tif"))
    }
    items, said = read(tables(tmp_path, lists))
    assert len(items.images) == 9
    assert "and so for 8 more" in said
    assert len(said.splitlines()) == 1


def test_experts_and_categories_with_accents_are_one(tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    apart = unicodedata.normalize("NFD", "Zoë")
    path.write_text(
        f"x,y,d,expert,category\n1,2,3,Zoë,{apart}\n9,9,3,{apart},Zoë\n", encoding="utf-8"
    )
    items, _ = read(path)
    assert items.experts == items.categories == ("Zoë",)
    assert any("1 expert is with accents as separate characters" in one for one in items.notes)
    assert any("1 category is with accents" in one for one in items.notes)


def test_names_of_files_are_experts_in_one_spelling(tmp_path: Path) -> None:
    apart = unicodedata.normalize("NFD", "Zoë")
    paths = tables(tmp_path, {apart: ["a.png"], "bob": ["a.png"]})
    items, _ = read(paths)
    assert items.experts == ("Zoë", "bob")
    assert any("in NFD, is read in NFC" in note for note in items.notes)
    assert read(paths, exclude_experts=apart)[0].experts == ("bob",)
    (tmp_path / "other").mkdir()
    paths += tables(tmp_path / "other", {"Zoë": ["a.png"]})
    with pytest.raises(InputError, match="would both be the expert 'Zoë'"):
        read(paths)


def test_data_frames_follow_the_same_rules() -> None:
    frame = {
        "x": [1.0, 2.0, 3.0],
        "y": [1.0, 2.0, 3.0],
        "d": [1.0, 1.0, 1.0],
        "expert": ["ann", "bob", unicodedata.normalize("NFD", "Zoë")],
        "image": ["/home/ann/a.jpg", "a.jpg", "a.jpg"],
    }
    items = dfcrp.Items.from_frame(frame)
    assert items.images == ("a.jpg",)
    assert "Zoë" in items.experts
    assert dfcrp.Items.from_frame(frame, image_names="path").images == ("/home/ann/a.jpg", "a.jpg")
    with pytest.raises(SettingsError, match=r"image_names is 'nam'; did you mean 'name'"):
        dfcrp.Items.from_frame(frame, image_names="nam")


def test_who_looked_and_the_filter_know_the_names_in_the_files(tmp_path: Path) -> None:
    paths = tables(tmp_path, {"ann": ["/home/ann/a.jpg", "/home/ann/b.jpg"], "bob": ["a.jpg"]})
    looked = tmp_path / "looked.csv"
    looked.write_text("image,expert\n/home/ann/a.jpg,ann\na.jpg,bob\nb.jpg,bob\nb.jpg,ann\n")
    items, said = read(paths, looked=looked)
    assert [tuple(pair) for pair in items.looked.tolist()] == [
        (image, who) for image in ("a.jpg", "b.jpg") for who in ("ann", "bob")
    ]
    assert not said
    assert read(paths, image="/home/ann/a.jpg")[0].expert.tolist() == ["ann", "bob"]


def coco(folder: Path, name: str, images: Sequence[Mapping[str, Any]], ids: Sequence[Any]) -> Path:
    annotations = [
        {"id": k, "image_id": number, "category_id": 1, "bbox": [10 * k, 10, 4, 4]}
        for k, number in enumerate(ids, 1)
    ]
    content = {
        "images": images,
        "categories": [{"id": 1, "name": "a"}],
        "annotations": annotations,
    }
    path = folder / name
    path.write_text(json.dumps(content))
    return path


def test_one_name_with_two_numbers(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.png"}, {"id": 2, "file_name": "a.png"}]
    paths = [coco(tmp_path, f"{who}.json", images, [1, 2]) for who in ("ann", "bob")]
    with pytest.raises(InputError, match=r"ann\.json: several images are called 'a\.png' \(1, 2\)"):
        read(paths, "boxes")
    assert read(paths, "boxes", image_names="id")[0].images == ("1", "2")
    assert read(paths, "boxes", image_names="name")[0].images == ("a.png",)


def test_a_task_for_each_annotator(tmp_path: Path) -> None:
    """Two tasks have the same image: one image if no one has both, else either is possible."""
    result = samples.studio_result("rectangle", x=10, y=10, width=4, height=4)

    def tasks(*experts: str) -> Path:
        content = [
            {
                "id": number,
                "data": {"image": "a.png"},
                "annotations": [{"completed_by": {"email": who}, "result": [result]}],
            }
            for number, who in enumerate(experts, 1)
        ]
        path = tmp_path / "tasks.json"
        path.write_text(json.dumps(content))
        return path

    assert read(tasks("ann", "bob"), "boxes")[0].images == ("a.png",)
    with pytest.raises(InputError, match=r"several images are called 'a\.png' \(1, 2\)"):
        read(tasks("ann", "ann"), "boxes")


def test_two_images_with_one_number(tmp_path: Path) -> None:
    images = [{"id": 1, "file_name": "a.png"}, {"id": 1, "file_name": "b.png"}]
    with pytest.raises(InputError, match=r"images: entry 2 has the id '1', as 'a\.png' has"):
        read(coco(tmp_path, "a.json", images, [1]), "boxes")


def test_an_image_in_two_sizes(tmp_path: Path) -> None:
    sizes = {"ann": (640, 480), "bob": (1280, 960)}
    paths = [
        coco(
            tmp_path,
            f"{who}.json",
            [{"id": 1, "file_name": "a.png", "width": width, "height": height}],
            [1],
        )
        for who, (width, height) in sizes.items()
    ]
    with pytest.raises(InputError, match=r"640 x 480 px in the list of ann, 1280 x 960 px in the"):
        read(paths, "boxes")
    found = read(paths, "boxes", image_names="size")[0]
    assert found.images == ("a.png (1280x960)", "a.png (640x480)")


def test_numbers_as_whole_and_with_a_decimal_point(tmp_path: Path) -> None:
    items, said = read(
        [coco(tmp_path, f"{who}.json", [{"id": 1, "file_name": "a.png"}], [1.0]) for who in "ab"],
        "boxes",
    )
    assert items.images == ("a.png",)
    assert "left out" not in said


def test_via_tells_images_apart_by_the_size_of_the_file(tmp_path: Path) -> None:
    circle = {"name": "circle", "cx": 6, "cy": 4, "r": 1}
    regions = [{"shape_attributes": circle, "region_attributes": {}}]
    content = {
        f"a.png{size}": {"filename": "a.png", "size": size, "regions": regions} for size in (9, 12)
    }
    quoted = json.dumps(circle).replace('"', '""')
    rows = "".join(f'a.png,{size},"{quoted}"\n' for size in (9, 12))
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.json").write_text(json.dumps(content))
        (tmp_path / f"{who}.csv").write_text(f"filename,file_size,region_shape_attributes\n{rows}")
    for ending in ("json", "csv"):
        paths = [tmp_path / f"{who}.{ending}" for who in ("ann", "bob")]
        with pytest.raises(InputError, match=r"several images are called 'a\.png'"):
            read(paths)
        assert read(paths, image_names="id")[0].images == ("a.png12", "a.png9")


def test_cvat_with_two_images_of_one_name(tmp_path: Path) -> None:
    image = '<image id="{0}" name="a.png"><box xtl="{0}" ytl="1" xbr="9" ybr="9"/></image>'
    text = f"<annotations>{image.format(0)}{image.format(1)}</annotations>"
    for who in ("ann", "bob"):
        (tmp_path / f"{who}.xml").write_text(text)
    paths = [tmp_path / f"{who}.xml" for who in ("ann", "bob")]
    with pytest.raises(InputError, match=r"several images are called 'a\.png' \(0, 1\)"):
        read(paths, "boxes")
    assert read(paths, "boxes", image_names="id")[0].images == ("0", "1")


def slides(folder: Path, directory: str) -> Path:
    path = folder / "study.sqlite"
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE Annotations_label (uid INTEGER, person, class, annoId);"
            "CREATE TABLE Annotations_coordinates (uid INTEGER, coordinateX, coordinateY, slide,"
            " annoId, orderIdx);"
            "CREATE TABLE Annotations (uid INTEGER, slide INTEGER, type INTEGER);"
            "CREATE TABLE Classes (uid INTEGER, name TEXT);"
            "CREATE TABLE Persons (uid INTEGER, name TEXT);"
            f"CREATE TABLE Slides (uid INTEGER, filename TEXT{directory and ', directory TEXT'});"
            "INSERT INTO Persons VALUES (1, 'Ann');"
            "INSERT INTO Annotations VALUES (1, 1, 1), (2, 2, 1);"
            "INSERT INTO Annotations_label VALUES (1, 1, 1, 1), (2, 1, 1, 2);"
            "INSERT INTO Annotations_coordinates VALUES (1, 5, 5, 1, 1, 1), (2, 5, 5, 2, 2, 1);"
        )
        for number in (1, 2):
            own = f", '{directory}{number}'" if directory else ""
            database.execute(f"INSERT INTO Slides VALUES ({number}, 'a.svs'{own})")
    database.close()
    return path


def test_slides_of_one_name(tmp_path: Path) -> None:
    """Their folders tell them apart; without them their numbers do, if the user says so."""
    items, _ = read(slides(tmp_path, "s"), "points")
    assert items.images == ("s1/a.svs", "s2/a.svs")
    (tmp_path / "other").mkdir()
    path = slides(tmp_path / "other", "")
    with pytest.raises(InputError, match=r"several images are called 'a\.svs'"):
        read(path, "points")
    assert read(path, "points", image_names="id")[0].images == ("1", "2")


def test_two_persons_of_one_name_are_refused(tmp_path: Path) -> None:
    path = slides(tmp_path, "s")
    with sqlite3.connect(path) as database:
        database.execute("INSERT INTO Persons VALUES (2, 'Ann')")
    database.close()
    with pytest.raises(InputError, match="persons 1 and 2 are both called 'Ann'"):
        read(path, "points")


def yolo(folder: Path, files: Mapping[str, str]) -> None:
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def test_yolo_in_folders_of_train_and_val(tmp_path: Path) -> None:
    row = "0 .5 .5 .1 .1\n"
    for who in ("ann", "bob"):
        yolo(tmp_path / who, {"labels/train/a.txt": row, "labels/val/a.txt": row})
    items, _ = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.images == ("train/a", "val/a")
    yolo(tmp_path / "cleo", {"labels/a.txt": row})
    with pytest.raises(InputError, match="may be the same as"):
        read([tmp_path / "ann", tmp_path / "cleo"], "boxes")
    yolo(tmp_path / "dan", {"train/labels/a.txt": row, "valid/labels/b.txt": row})
    assert read([tmp_path / "dan", tmp_path / "cleo"], "boxes")[0].images == ("a", "b")


def test_a_folder_with_files_at_two_levels_says_what_is_not_read(tmp_path: Path) -> None:
    row = "0 .5 .5 .1 .1\n"
    for who in ("ann", "bob"):
        yolo(tmp_path / who, {"a.txt": row, "more/b.txt": row})
    items, said = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.images == ("a",)
    assert "1 file in folders inside it, such as more/b.txt, not read" in said
    assert any("more/b.txt" in note for source in items.sources for note in source.notes)


def test_two_files_of_one_image_in_a_folder(tmp_path: Path) -> None:
    paths = labelme(tmp_path, {"ann": ["a.png", "a.png"], "bob": ["a.png"]})
    items, said = read(paths)
    assert items.images == ("a.png",)
    assert "1 image is in several files, whose marks are joined: a.png (ann/1.json and" in said


def test_files_of_a_folder_that_name_no_image(tmp_path: Path) -> None:
    """QuPath's do not: whether they are of one image or of several, nothing says."""
    square = [[[1, 1], [5, 1], [5, 5], [1, 5], [1, 1]]]
    feature = {
        "type": "Feature",
        "geometry": {"type": "Polygon", "coordinates": square},
        "properties": {"objectType": "annotation"},
    }
    text = json.dumps({"type": "FeatureCollection", "features": [feature]})
    for who in ("ann", "bob"):
        for name in ("one", "two"):
            (tmp_path / who).mkdir(exist_ok=True)
            (tmp_path / who / f"{name}.geojson").write_text(text)
    items, said = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.image is None
    assert "ann: 2 files that name no image are taken to be of one image: ann/one.geojson" in said
    assert any("name no image" in note for note in items.sources[0].notes)


def test_formats_exchange_images(tmp_path: Path) -> None:
    """COCO, with endings, beside YOLO's names of files: but shares are no pixels."""
    [folder] = labelme(tmp_path, {"bob": ["../images/a.png"]})
    shape = {"shape_type": "rectangle", "points": [[0, 0], [9, 9]], "label": "a"}
    (folder / "1.json").write_text(json.dumps({"shapes": [shape], "imagePath": "..\\a.png"}))
    ann = coco(tmp_path, "ann.json", [{"id": 7, "file_name": "train/a.png"}], [7])
    assert read([ann, folder], "boxes")[0].images == ("a.png",)
    yolo(tmp_path / "cleo", {"a.txt": "0 .5 .5 .1 .1\n"})
    with pytest.raises(InputError, match="are shares of the image's sides, those in"):
        read([ann, tmp_path / "cleo"], "boxes")


def test_the_commands_know_the_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    paths = tables(tmp_path, {"ann": ["s1/f.jpg", "s2/f.jpg"], "bob": ["f.jpg"]})
    out = tmp_path / "out.csv"
    given = [*map(str, paths), str(out)]
    assert main(["convert", *given]) == 2
    assert "--image-names name" in capsys.readouterr().err
    assert main(["convert", *given, "--image-names", "name"]) == 0
    assert "1 image is named in several ways: 'f.jpg' for 'f.jpg'" in capsys.readouterr().err
    assert out.read_text().count('"f.jpg"') == 3


def test_what_was_done_with_names_stands_in_provenance(tmp_path: Path) -> None:
    paths = tables(tmp_path, {"ann": ["/home/ann/a.jpg"], "bob": ["a.jpg"]})
    run = tmp_path / "run"
    options = ["--chains", "1", "--scans", "20", "--no-report", "--quiet"]
    assert main(["fit", *map(str, paths), "--out", str(run), *options]) == 0
    record = json.loads((run / "provenance.json").read_text())
    assert record["notes"] == [
        "1 image is named in several ways: 'a.jpg' for '/home/ann/a.jpg', 'a.jpg'"
    ]
    assert list(dfcrp.load(run).items.notes) == record["notes"]


def test_warnings_are_of_the_package(tmp_path: Path) -> None:
    with pytest.warns(DfcrpWarning, match="taken as one image"):
        read_items(tables(tmp_path, {"ann": ["a.png"], "bob": ["a.tif"]}))
