"""What comes in from an annotation tool goes out to it again, in the tool's own terms."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io import read_table, write_table
from dfcrp.items.source_tables import SOURCE_TABLES, SourceTables

IMAGES = {"sub/a.png": (640, 480), "b.png": (800, 600), "empty.png": (320, 200)}
#: Three objects on the first image, and one on the second.
BOXES = [
    ("sub/a.png", "person", (100.0, 100.0, 40.0, 30.0)),
    ("sub/a.png", "cell", (300.0, 200.0, 50.0, 20.0)),
    ("sub/a.png", "person", (500.0, 400.0, 30.0, 30.0)),
    ("b.png", "cell", (400.0, 300.0, 60.0, 60.0)),
]
PERSONS = ("ann", "bob", "cyd")


def _of(person: str) -> list[tuple[str, str, tuple[float, ...]]]:
    """What a person marks: nearly the same, and one object is marked by one person alone."""
    shift = PERSONS.index(person) * 0.5
    found = [
        (image, label, (x + shift, y - shift, w + shift, h)) for image, label, (x, y, w, h) in BOXES
    ]
    return found if person == "ann" else found[:2] + found[3:]


def write_coco(folder: Path, person: str, first_image: int = 100, first_class: int = 3) -> Path:
    ids = {name: first_image + 7 * at for at, name in enumerate(IMAGES)}
    codes = {"person": first_class, "cell": first_class + 4, "never drawn": 90}
    content = {
        "info": {"description": "our data", "year": 2024},
        "licenses": [{"id": 1, "name": "CC BY"}],
        "images": [
            {"id": ids[name], "file_name": name, "width": w, "height": h, "coco_url": f"x/{name}"}
            for name, (w, h) in IMAGES.items()
        ],
        "categories": [
            {"id": code, "name": name, "supercategory": "thing"} for name, code in codes.items()
        ],
        "annotations": [
            {
                "id": number,
                "image_id": ids[image],
                "category_id": codes[label],
                "bbox": [x - w / 2, y - h / 2, w, h],
            }
            for number, (image, label, (x, y, w, h)) in enumerate(_of(person), 1)
        ],
    }
    path = folder / f"{person}.json"
    path.write_text(json.dumps(content))
    return path


def write_yolo(folder: Path, person: str) -> Path:
    root = folder / person
    names = ["nothing", "cell", "person", "unused"]
    for image, (width, height) in IMAGES.items():
        file = root / "labels" / "train" / Path(image).with_suffix(".txt")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(
            "".join(
                f"{names.index(label)} {x / width} {y / height} {w / width} {h / height}\n"
                for drawn_on, label, (x, y, w, h) in _of(person)
                if drawn_on == image
            )
        )
    (root / "classes.txt").write_text("\n".join(names) + "\n")
    return root


def write_cvat(folder: Path, person: str) -> Path:
    labels = "".join(f"<label><name>{n}</name></label>" for n in ("cell", "person", "never drawn"))
    images = "".join(
        f'<image id="{40 + at}" name="{image}" subset="train" width="{w}" height="{h}">'
        + "".join(
            f'<box label="{label}" xtl="{x - a / 2}" ytl="{y - b / 2}" xbr="{x + a / 2}" '
            f'ybr="{y + b / 2}" z_order="0"/>'
            for drawn_on, label, (x, y, a, b) in _of(person)
            if drawn_on == image
        )
        + "</image>"
        for at, (image, (w, h)) in enumerate(IMAGES.items())
    )
    path = folder / f"{person}.xml"
    head = f"<version>1.1</version><meta><task><labels>{labels}</labels></task></meta>"
    path.write_text(f"<annotations>{head}{images}</annotations>")
    return path


def write_label_studio(folder: Path) -> Path:
    def result(image: str, label: str, numbers: tuple[float, ...]) -> dict[str, Any]:
        (width, height), (x, y, w, h) = IMAGES[image], numbers
        value = {"x": 100 * (x - w / 2) / width, "y": 100 * (y - h / 2) / height}
        value |= {"width": 100 * w / width, "height": 100 * h / height, "rotation": 0}
        return {
            "type": "rectanglelabels",
            "from_name": "things",
            "to_name": "photo",
            "original_width": width,
            "original_height": height,
            "value": {**value, "rectanglelabels": [label]},
        }

    tasks = [
        {
            "id": 500 + at,
            "data": {"photo": f"/data/upload/{image}", "site": "north"},
            "annotations": [
                {
                    "completed_by": {"email": f"{person}@example.org"},
                    "result": [result(*one) for one in _of(person) if one[0] == image],
                }
                for person in PERSONS
            ],
        }
        for at, image in enumerate(IMAGES)
    ]
    path = folder / "project.json"
    path.write_text(json.dumps(tasks))
    return path


def write_labelme(folder: Path, person: str) -> Path:
    root = folder / person
    root.mkdir()
    for image, (width, height) in IMAGES.items():
        shapes = [
            {
                "label": label,
                "points": [[x - w / 2, y - h / 2], [x + w / 2, y + h / 2]],
                "shape_type": "rectangle",
            }
            for drawn_on, label, (x, y, w, h) in _of(person)
            if drawn_on == image
        ]
        content = {
            "version": "5.0.1",
            "flags": {"checked": True},
            "shapes": shapes,
            "imagePath": f"../photos/{image}",
            "imageData": "A" * 20_000,
            "imageHeight": height,
            "imageWidth": width,
        }
        (root / f"{Path(image).stem}_labels.json").write_text(json.dumps(content))
    return root


def write_via(folder: Path, person: str) -> Path:
    content = {
        f"{image}{1000 + at}": {
            "filename": image,
            "size": 1000 + at,
            "file_attributes": {"caption": "dusk"},
            "regions": [
                {
                    "shape_attributes": {
                        "name": "rect",
                        **{"x": x - w / 2, "y": y - h / 2, "width": w, "height": h},
                    },
                    "region_attributes": {"what": label},
                }
                for drawn_on, label, (x, y, w, h) in _of(person)
                if drawn_on == image
            ],
        }
        for at, image in enumerate(IMAGES)
    }
    path = folder / f"{person}.json"
    path.write_text(json.dumps(content))
    return path


def fitted(paths: list[Path], out: Path, **settings: Any) -> Path:
    """A run folder, made in a moment."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)  # of files without a box
        items = dfcrp.read_items(paths, "boxes")
    settings = {"prior": "detection", "chains": 1, "scans": 40, "burn_in": 10, **settings}
    dfcrp.fit(items, likelihood="boxes", seed=1, out=out, **settings)
    return out


@pytest.fixture
def lists(tmp_path: Path) -> Path:
    folder = tmp_path / "lists"
    folder.mkdir()
    return folder


def of_all(write: Callable[[Path, str], Path], folder: Path) -> list[Path]:
    return [write(folder, person) for person in PERSONS]


def convert(run: Path, out: Path, *options: str) -> None:
    assert main(["convert", str(run), str(out), *options]) == 0


def test_coco_keeps_ids_sizes_and_categories(tmp_path: Path, lists: Path) -> None:
    run = fitted(of_all(write_coco, lists), tmp_path / "run")
    convert(run, tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    original = json.loads((lists / "ann.json").read_text())
    for table in ("images", "categories", "info", "licenses"):
        assert content[table] == original[table]
    found = {(one["image_id"], one["category_id"]) for one in content["annotations"]}
    assert found == {(100, 3), (100, 7), (107, 7)}
    assert all(0 <= one["score"] <= 1 for one in content["annotations"])


@pytest.mark.filterwarnings("ignore::DeprecationWarning:pycocotools")
def test_coco_is_read_by_pycocotools(
    tmp_path: Path, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reader = pytest.importorskip("pycocotools.coco", reason="pycocotools is not installed")
    evaluation = pytest.importorskip("pycocotools.cocoeval")
    run = fitted(of_all(write_coco, lists), tmp_path / "run")
    convert(run, tmp_path / "out.json", "--p-real", "0.5")
    truth, found = reader.COCO(str(lists / "bob.json")), reader.COCO(str(tmp_path / "out.json"))
    for one in truth.dataset["annotations"]:
        one |= {"area": one["bbox"][2] * one["bbox"][3], "iscrowd": 0}
    truth.createIndex()
    for one in found.dataset["annotations"]:
        assert (
            found.annToMask({**one, "segmentation": [[0, 0, 9, 0, 9, 9]]}).shape
            == (IMAGES[found.imgs[one["image_id"]]["file_name"]][::-1])
        )
    # Their ids are those of the user's truth, so results can be evaluated beside it as they are.
    score = evaluation.COCOeval(truth, truth.loadRes(found.dataset["annotations"]), "bbox")
    score.evaluate()
    score.accumulate()
    score.summarize()
    assert score.stats[0] > 0.9
    capsys.readouterr()


def test_one_category_keeps_its_name(tmp_path: Path, lists: Path) -> None:
    for person in PERSONS:
        path = write_coco(lists, person)
        content = json.loads(path.read_text())
        content["annotations"] = [a for a in content["annotations"] if a["category_id"] == 7]
        path.write_text(json.dumps(content))
    run = fitted(sorted(lists.iterdir()), tmp_path / "run")
    convert(run, tmp_path / "out.json")
    content = json.loads((tmp_path / "out.json").read_text())
    assert {one["category_id"] for one in content["annotations"]} == {7}


def test_files_with_different_ids(
    tmp_path: Path, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    paths = [write_coco(lists, "ann"), write_coco(lists, "bob", 1, 1), write_coco(lists, "cyd")]
    run = fitted(paths, tmp_path / "run")
    convert(run, tmp_path / "out.json")
    said = capsys.readouterr().err
    assert "3 images have different values of id in the files" in said
    assert "100 in ann.json and 1 in bob.json" in said
    assert json.loads((tmp_path / "out.json").read_text())["images"][0]["id"] == 100
    convert(run, tmp_path / "two.json", "--ids-from", "bob.json")
    content = json.loads((tmp_path / "two.json").read_text())
    assert [one["id"] for one in content["images"]] == [1, 8, 15]
    assert {one["name"]: one["id"] for one in content["categories"]}["person"] == 1
    assert main(["convert", str(run), str(tmp_path / "no.json"), "--ids-from", "bo.json"]) == 2
    assert "did you mean 'bob.json'" in capsys.readouterr().err


def test_objects_are_chosen(
    tmp_path: Path, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fitted(of_all(write_coco, lists), tmp_path / "run")
    catalogue = read_table(run)
    experts = np.array(catalogue.typed_extra()["n_experts"])
    real = np.array(catalogue.typed_extra()["p_real"])

    def count(*options: str) -> int:
        convert(run, tmp_path / "out.json", "--overwrite", *options)
        return len(json.loads((tmp_path / "out.json").read_text())["annotations"])

    assert count() == 4
    assert count("--min-experts", "2") == np.count_nonzero(experts >= 2) == 3
    assert count("--p-real", "0.9") == np.count_nonzero(real >= 0.9)
    arguments = ["convert", str(run), str(tmp_path / "no.json")]
    for options, told in (
        (("--p-real", "1.5"), "from 0 to 1"),
        (("--min-experts", "0"), "1 or more"),
        (("--min-experts", "9"), "lower --min-experts"),
    ):
        assert main([*arguments, *options]) == 2
        assert told in capsys.readouterr().err
    assert not (tmp_path / "no.json").exists()


def test_disagreements_are_chosen(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "catalogue.csv"
    source.write_text(
        "image,x,y,width,height,category,p_category,n_experts,p_consensus,p_real\n"
        "a.png,5,5,2,4,cell,1,3,1,0.99\na.png,15,5,2,4,cell,1,1,0,0.4\n"
        "a.png,25,5,2,4,dust,0.6,2,1,0.99\na.png,35,5,2,4,dust,1,1,0,0.01\n"
    )
    out = tmp_path / "out.csv"
    convert(source, out, "--likelihood", "boxes", "--disagreements")
    assert read_table(out, "boxes").columns["x"].tolist() == [15.0, 25.0]
    source.write_text("x,y,width,height,p_real\n1,2,3,4,0.99\n")
    arguments = ["convert", str(source), str(tmp_path / "no.csv"), "--likelihood", "boxes"]
    assert main([*arguments, "--disagreements"]) == 2
    assert "no object is in doubt" in capsys.readouterr().err


def read_as_yolo(folder: Path) -> dict[str, list[tuple[str, list[float]]]]:
    """An independent reader: the rules of Ultralytics, for labels beside images."""
    names = (folder / "classes.txt").read_text().splitlines()
    found = {}
    for file in sorted(folder.rglob("*.txt")):
        if file.name == "classes.txt":
            continue
        rows = [line.split() for line in file.read_text().splitlines()]
        assert all(len(row) in (5, 6) for row in rows)
        shares = [[float(cell) for cell in row[1:]] for row in rows]
        assert all(0 <= share <= 1 for row in shares for share in row)
        found[file.relative_to(folder).as_posix()] = [
            (names[int(row[0])], cells) for row, cells in zip(rows, shares, strict=True)
        ]
    return found


def test_yolo_keeps_files_and_classes(tmp_path: Path, lists: Path) -> None:
    run = fitted(of_all(write_yolo, lists), tmp_path / "run")
    convert(run, tmp_path / "out", "--min-experts", "2", "--no-scores")
    found = read_as_yolo(tmp_path / "out")
    assert set(found) == {
        "labels/train/sub/a.txt",
        "labels/train/b.txt",
        "labels/train/empty.txt",
    }
    assert found["labels/train/empty.txt"] == []
    assert (tmp_path / "out" / "classes.txt").read_text().split() == [
        *("nothing", "cell", "person", "unused")
    ]
    [(label, shares)] = found["labels/train/b.txt"]
    assert label == "cell"
    np.testing.assert_allclose(shares, [0.5, 0.5, 0.075, 0.1], atol=0.003)
    convert(run, tmp_path / "scored", "--min-experts", "2")
    [(_, shares)] = read_as_yolo(tmp_path / "scored")["labels/train/b.txt"]
    assert len(shares) == 5


def test_yolo_of_pixels_needs_the_size(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "boxes.csv"
    source.write_text("image,x,y,width,height,category\n../a.png,50,25,10,10,cell\n")
    arguments = ["convert", str(source), str(tmp_path / "out"), "--likelihood", "boxes"]
    assert main([*arguments, "--to", "yolo"]) == 2
    assert "--image-size" in capsys.readouterr().err
    assert main([*arguments, "--to", "yolo", "--image-size", "100x50"]) == 0
    # The name of the image leads nowhere else.
    assert read_as_yolo(tmp_path / "out") == {"labels/a.txt": [("cell", [0.5, 0.5, 0.1, 0.2])]}
    assert main([*arguments, "--to", "yolo", "--image-size", "100x50"]) == 2
    assert "already exists and is not empty" in capsys.readouterr().err
    for wrong in ("100", "0x5", "ax5"):
        assert main([*arguments, "--to", "yolo", "--image-size", wrong]) == 2
    assert main([*arguments, "--to", "yol"]) == 2
    assert "did you mean 'yolo'" in capsys.readouterr().err


def test_cvat_keeps_ids_and_labels(tmp_path: Path, lists: Path) -> None:
    from xml.etree import ElementTree

    run = fitted(of_all(write_cvat, lists), tmp_path / "run")
    convert(run, tmp_path / "out.xml", "--min-experts", "2")
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    images = [dict(one.attrib) for one in root.iter("image")]
    assert images == [
        {"id": f"{40 + k}", "name": name, "subset": "train", "width": str(w), "height": str(h)}
        for k, (name, (w, h)) in enumerate(IMAGES.items())
    ]
    labels = [one.text for one in root.findall("meta/task/labels/label/name")]
    assert labels == ["cell", "person", "never drawn"]
    boxes = list(root.iter("box"))
    assert len(boxes) == 3
    # What CVAT's importer takes of a box.
    for one in boxes:
        assert {"label", "xtl", "ytl", "xbr", "ybr", "occluded", "z_order"} <= set(one.attrib)
        assert {"p_real", "n_experts"} <= {note.attrib["name"] for note in one}


def test_cvat_is_read_by_datumaro(tmp_path: Path, lists: Path) -> None:
    datumaro = pytest.importorskip("datumaro", reason="datumaro is not installed")
    run = fitted(of_all(write_cvat, lists), tmp_path / "run")
    for name, size in IMAGES.items():
        file = tmp_path / "task" / "images" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.new("L", size).save(file)
    convert(run, tmp_path / "task" / "train.xml", "--min-experts", "2")
    found = datumaro.Dataset.import_from(str(tmp_path / "task"), "cvat")
    names = [one.name for one in found.categories()[datumaro.AnnotationType.label]]
    assert {"cell", "person", "never drawn"} <= set(names)
    boxes = {item.id: [one.get_bbox() for one in item.annotations] for item in found}
    assert {name: len(listed) for name, listed in boxes.items()} == {
        "sub/a": 2,
        "b": 1,
        "empty": 0,
    }
    np.testing.assert_allclose(boxes["b"][0], [370, 270, 60, 60], atol=2)


def test_label_studio_keeps_tasks_and_controls(tmp_path: Path, lists: Path) -> None:
    run = fitted([write_label_studio(lists)], tmp_path / "run")
    convert(run, tmp_path / "out.json", "--min-experts", "2")
    tasks = json.loads((tmp_path / "out.json").read_text())
    assert [task["id"] for task in tasks] == [500, 501, 502]
    assert [task["data"]["photo"] for task in tasks] == [f"/data/upload/{name}" for name in IMAGES]
    assert {task["data"]["site"] for task in tasks} == {"north"}
    [result] = tasks[1]["predictions"][0]["result"]
    assert (result["from_name"], result["to_name"]) == ("things", "photo")
    assert (result["original_width"], result["original_height"]) == (800, 600)
    np.testing.assert_allclose(
        [result["value"][key] for key in ("x", "y", "width", "height")],
        [46.25, 45, 7.5, 10],
        atol=0.3,
    )


def test_label_studio_predictions_are_valid(tmp_path: Path, lists: Path) -> None:
    reason = "label-studio-sdk is not installed"
    sdk = pytest.importorskip("label_studio_sdk.label_interface", reason=reason)
    interface = sdk.LabelInterface(
        '<View><Image name="photo" value="$photo"/><RectangleLabels name="things" toName="photo">'
        '<Label value="cell"/><Label value="person"/></RectangleLabels></View>'
    )
    run = fitted([write_label_studio(lists)], tmp_path / "run")
    convert(run, tmp_path / "out.json")
    for task in json.loads((tmp_path / "out.json").read_text()):
        for prediction in task["predictions"]:
            assert interface.validate_prediction(prediction, return_errors=True) == []


def test_labelme_keeps_files(tmp_path: Path, lists: Path) -> None:
    run = fitted(of_all(write_labelme, lists), tmp_path / "run")
    assert "AAAA" not in (run / SOURCE_TABLES).read_text()
    convert(run, tmp_path / "out", "--min-experts", "2")
    names = sorted(file.name for file in (tmp_path / "out").iterdir())
    assert names == ["a_labels.json", "b_labels.json", "empty_labels.json"]
    content = json.loads((tmp_path / "out" / "b_labels.json").read_text())
    shapes = content.pop("shapes")
    assert content == {
        "version": "5.0.1",
        "flags": {"checked": True},
        "imagePath": "../photos/b.png",
        "imageData": None,
        "imageHeight": 600,
        "imageWidth": 800,
    }
    [shape] = shapes
    assert (shape["label"], shape["shape_type"]) == ("cell", "rectangle")
    assert "p_real" in shape["description"]


@pytest.mark.parametrize("target", ["via", "via-csv"])
def test_via_keeps_keys_and_attributes(tmp_path: Path, lists: Path, target: str) -> None:
    run = fitted(of_all(write_via, lists), tmp_path / "run")
    out = tmp_path / f"out.{'json' if target == 'via' else 'csv'}"
    convert(run, out, "--min-experts", "2", "--to", target)
    if target == "via":
        content = json.loads(out.read_text())
        assert list(content) == ["sub/a.png1000", "b.png1001", "empty.png1002"]
        assert content["b.png1001"]["file_attributes"] == {"caption": "dusk"}
        [region] = content["b.png1001"]["regions"]
        assert region["region_attributes"]["what"] == "cell"
        assert content["empty.png1002"]["regions"] == []
    again = read_table(out, "boxes")
    assert sorted(zip(again.about["image"], again.about["category"], strict=True)) == [
        ("a.png", "cell"),
        ("a.png", "person"),
        ("b.png", "cell"),
    ]


WRITTEN = {
    "coco": (("boxes", "circles", "ellipses"), ".json"),
    "yolo": (("boxes", "ellipses"), ""),
    "cvat": (("boxes", "circles", "ellipses", "points"), ".xml"),
    "label-studio": (("boxes", "circles", "ellipses", "points"), ".json"),
    "labelme": (("boxes", "circles", "ellipses", "points"), ""),
    "via": (("boxes", "circles", "ellipses", "points"), ".json"),
    "via-csv": (("boxes", "circles", "ellipses", "points"), ".csv"),
}
CELLS = {
    "boxes": ("x,y,width,height", "60,40,20,10"),
    "circles": ("x,y,diameter", "60,40,20"),
    "ellipses": ("x,y,major,minor,angle", "60,40,20,10,30"),
    "points": ("x,y", "60,40"),
}


@pytest.mark.parametrize(
    ("target", "kind"), [(name, kind) for name, (kinds, _) in WRITTEN.items() for kind in kinds]
)
@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
def test_shapes_come_back(tmp_path: Path, target: str, kind: str) -> None:
    """Every shape that a tool knows is read back as it was, from a table of no tool."""
    header, cells = CELLS[kind]
    source = tmp_path / "table.csv"
    source.write_text(f"image,{header},category\nsub/a.png,{cells},cell\n")
    out = tmp_path / f"out{WRITTEN[target][1]}"
    options = ["--likelihood", kind, "--to", target, "--image-size", "200x100"]
    convert(source, out, *options)
    given = read_table(source, kind)
    if target == "label-studio":  # predictions are nobody's list
        content = json.loads(out.read_text())
        for task in content:
            task["annotations"] = task.pop("predictions")
        out.write_text(json.dumps(content))
    found = read_table(out, kind)
    sides = {"x": 200, "y": 100, "width": 200, "height": 100}
    for role, values in given.columns.items():
        scale = sides.get(role, 1) if target == "yolo" else 1
        if target == "yolo" and kind == "ellipses":
            break  # of shares of unequal sides: another ellipse
        np.testing.assert_allclose(scale * found.columns[role], values, rtol=0.005, err_msg=role)
    assert found.about["category"] == ["cell"]
    assert found.about["image"][0].startswith("a")


def test_a_tool_without_the_shape_says_so(tmp_path: Path) -> None:
    source = tmp_path / "table.csv"
    source.write_text("image,x,y\na.png,1,2\n")
    for target in ("coco", "yolo"):
        with pytest.raises(InputError, match="these are points"):
            write_table(read_table(source, "points"), tmp_path / "out", to=target)


def test_source_tables_survive_a_journey(tmp_path: Path, lists: Path) -> None:
    run = fitted(of_all(write_coco, lists), tmp_path / "run")
    posterior = dfcrp.load(run)
    tables = posterior.items.source_tables
    assert tables.sizes == {"a.png": (640, 480), "b.png": (800, 600), "empty.png": (320, 200)}
    posterior.save(tmp_path / "again")
    assert (tmp_path / "again" / SOURCE_TABLES).read_text() == (run / SOURCE_TABLES).read_text()
    # One entry for what all three files say.
    assert len(tables.images) == 3
    assert tables.images[0].files == (0, 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        *("", "3", "[]", "{", '{"files": 3}', '{"files": [{}]}', "[" * 100_000),
        '{"files": [{"file": "a", "format": "COCO"}], "images": [{"name": "a", "files": [1]}]}',
        '{"files": [{"file": "a", "format": "COCO"}], "categories": [{"name": 3, "files": [0]}]}',
        '{"files": [{"file": "a", "format": "COCO", "fields": 3}]}',
        '{"files": [{"file": "a", "format": "b"}], '
        '"images": [{"name": "a", "files": [0], "path": "a", "size": [0, 1]}]}',
    ],
)
def test_damaged_source_tables_are_refused(
    text: str,
) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        SourceTables.read(text.encode())


def test_a_run_with_damaged_source_tables(
    tmp_path: Path, lists: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = fitted(of_all(write_coco, lists), tmp_path / "run")
    (run / SOURCE_TABLES).write_text('{"files": 3}')
    assert main(["convert", str(run), str(tmp_path / "out.json")]) == 2
    said = capsys.readouterr().err
    assert SOURCE_TABLES in said
    assert "remove it" in said
    (run / SOURCE_TABLES).unlink()
    convert(run, tmp_path / "out.coco.json")
