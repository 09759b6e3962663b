"""Lists of several people in the files of all tools, read together: nothing is lost or joined.

``python -m fuzz.exchange --inputs 100000 --out findings`` invents boxes on a few images by a few
people, writes each list in a format of its own with odd rows among the good ones, and names the
images as people do: with folders of their computers, other endings, accents in two encodings. What
is read is compared with what was written:

- every good row is read, with its numbers and its expert; every odd one is counted as left out, and
  said with its row; a row that cannot be left out has the reading refused, and the file named;
- images of one list that are different stay different, and those of several lists that are the same
  are the same. If not, a warning says so. Where only folders of computers and encodings differ,
  this must come out right, without a refusal;
- lists in different units are refused.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import sys
import tempfile
import traceback
import unicodedata
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.reading import read_items

#: Width and height of all images; a power of two, so that shares are exact.
SIDE = 1024


class Box(NamedTuple):
    """Left, top, width and height."""

    left: float
    top: float
    width: float
    height: float

    @property
    def read(self) -> tuple[float, ...]:
        """Centre and sides."""
        x, y = self.left + self.width / 2, self.top + self.height / 2
        return x, y, self.width, self.height


@dataclass
class Row:
    """A row to be written: a good one, or what it has instead of a box."""

    image: str
    box: Box
    #: "" if it is good; else how it is odd, in the words of the format.
    odd: str = ""


@dataclass
class List:
    """One person's list."""

    expert: str
    format: str
    rows: list[Row]
    #: What this person calls each image.
    names: dict[str, str]
    unit: str = ""
    path: Path = field(default_factory=Path)


# ---- formats: write a list, and say which odd rows there can be ("left" out, or "refuse"d) ----

JSON_ODD = {"line": "left", "no size": "left", "text": "refuse", "nan": "refuse"}


def _csv(one: List, folder: Path) -> Path:
    path = folder / f"{one.expert}.csv"
    unit = one.unit and f"_{one.unit}"
    lines = [f"x{unit},y{unit},width{unit},height{unit},image"]
    for row in one.rows:
        cells = [str(value) for value in row.box.read]
        changed = {"nan": "nan", "text": "wide", "negative": "-4", "missing": ""}
        cells[2] = changed.get(row.odd, cells[2])
        cells += ["more"] if row.odd == "too long" else []
        lines.append(",".join([*cells, f'"{one.names[row.image]}"']))
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _labelme(one: List, folder: Path) -> Path:
    path = folder / one.expert
    path.mkdir()
    for number, image in enumerate(dict.fromkeys(row.image for row in one.rows)):
        shapes: list[Any] = []
        for row in one.rows:
            if row.image != image:
                continue
            b = row.box
            points: Any = [[b.left, b.top], [b.left + b.width, b.top + b.height]]
            kind = "linestrip" if row.odd == "line" else "rectangle"
            if row.odd == "no size":
                points[1] = points[0]
            elif row.odd in ("text", "nan"):
                points[1][0] = "wide" if row.odd == "text" else float("nan")
            elif row.odd == "one point":
                points = points[:1]
            shapes.append({"label": "a", "shape_type": kind, "points": points})
        content = {
            "shapes": shapes,
            "imagePath": one.names[image],
            "imageWidth": SIDE,
            "imageHeight": SIDE,
        }
        (path / f"{number}.json").write_text(json.dumps(content), encoding="utf-8")
    return path


def _coco(one: List, folder: Path) -> Path:
    images = list(dict.fromkeys(row.image for row in one.rows))
    annotations: list[dict[str, Any]] = []
    for number, row in enumerate(one.rows, 1):
        found: dict[str, Any] = {"id": number, "image_id": 1 + images.index(row.image)}
        found |= {"category_id": 1, "bbox": list(row.box)}
        if row.odd == "negative":
            found["bbox"][2] *= -1
        elif row.odd == "missing image":
            found["image_id"] = 99
        elif row.odd == "mask":
            found |= {"bbox": None, "segmentation": {"counts": ""}}
        elif row.odd == "no size":
            found["bbox"][3] = 0
        elif row.odd in ("text", "nan"):
            found["bbox"][0] = "left" if row.odd == "text" else float("nan")
        annotations.append(found)
    content = {
        "images": [
            {"id": at, "file_name": one.names[image], "width": SIDE, "height": SIDE}
            for at, image in enumerate(images, 1)
        ],
        "categories": [{"id": 1, "name": "a"}],
        "annotations": annotations,
    }
    path = folder / f"{one.expert}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _via_shape(row: Row) -> dict[str, Any]:
    shape: dict[str, Any] = {"name": "rect", "x": row.box.left, "y": row.box.top}
    shape |= {"width": row.box.width, "height": row.box.height}
    if row.odd == "line":
        return {"name": "polyline", "all_points_x": [1, 2], "all_points_y": [1, 2]}
    changed = {"negative": -4, "no size": 0, "text": "wide", "nan": float("nan")}
    return shape | ({"width": changed[row.odd]} if row.odd in changed else {})


def _via(one: List, folder: Path) -> Path:
    path = folder / f"{one.expert}.csv"
    lines = ["filename,file_size,region_count,region_id,region_shape_attributes,region_attributes"]
    for row in one.rows:
        quoted = json.dumps(_via_shape(row)).replace('"', '""')
        lines.append(f'"{one.names[row.image]}",7,1,0,"{quoted}","{{}}"')
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _via_json(one: List, folder: Path) -> Path:
    content: dict[str, Any] = {}
    for row in one.rows:
        name = one.names[row.image]
        entry = content.setdefault(f"{name}7", {"filename": name, "size": 7, "regions": []})
        entry["regions"].append({"shape_attributes": _via_shape(row), "region_attributes": {}})
    path = folder / f"{one.expert}.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    return path


def _cvat(one: List, folder: Path) -> Path:
    from xml.sax.saxutils import quoteattr

    lines = ["<annotations>"]
    for number, image in enumerate(dict.fromkeys(row.image for row in one.rows)):
        name = quoteattr(one.names[image])
        lines.append(f'<image id="{number}" name={name} width="{SIDE}" height="{SIDE}">')
        for row in one.rows:
            if row.image != image:
                continue
            b = row.box
            right: Any = b.left + b.width
            changed = {"negative": b.left - 3, "no size": b.left, "text": "wide", "nan": "nan"}
            right = changed.get(row.odd, right)
            tag = "cuboid" if row.odd == "line" else "box"
            lines.append(
                f'<{tag} label="a" xtl="{b.left}" ytl="{b.top}" xbr="{right}" '
                f'ybr="{b.top + b.height}"/>'
            )
        lines.append("</image>")
    path = folder / f"{one.expert}.xml"
    path.write_text("\n".join([*lines, "</annotations>"]), encoding="utf-8")
    return path


def _yolo(one: List, folder: Path) -> Path:
    path = folder / one.expert
    texts: dict[Path, list[str]] = {}
    for row in one.rows:
        name = one.names[row.image].removesuffix(".png").removesuffix(".jpg")
        shares = [f"{value / SIDE!r}" for value in row.box.read]
        line = {
            "": f"0 {' '.join(shares)}",
            "beyond": f"0 1.02 {' '.join(shares[1:])}",
            "nan": f"0 nan {' '.join(shares[1:])}",
            "text": f"0 left {' '.join(shares[1:])}",
            "short": f"0 {' '.join(shares[:2])}",
            "no class": f"x {' '.join(shares)}",
            "no size": f"0 {shares[0]} {shares[1]} 0 0",
            "comma": f"0 {shares[0].replace('.', ',')},1 {' '.join(shares[1:])}",
        }[row.odd]
        texts.setdefault(path / "labels" / f"{name}.txt", []).append(line)
    for number, (file, lines) in enumerate(texts.items()):
        file.parent.mkdir(parents=True, exist_ok=True)
        mark = "\ufeff" if number == 0 and one.rows[0].box.left % 2 == 0 else ""
        file.write_text(mark + "\n".join(lines) + "\n", encoding="utf-8")
    return path


def _particles(one: List, folder: Path) -> Path:
    path = folder / one.expert
    texts: dict[Path, list[str]] = {}
    for row in one.rows:
        name = one.names[row.image].removesuffix(".png").removesuffix(".jpg")
        cells = [str(value) for value in row.box]
        changed = {"negative": "-4", "no size": "0", "text": "wide", "nan": "nan"}
        cells[2] = changed.get(row.odd, cells[2])
        if row.odd == "short":
            del cells[3]
        texts.setdefault(path / f"{name}.box", []).append("\t".join(cells))
    for file, lines in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _cbox(one: List, folder: Path) -> Path:
    path = folder / one.expert
    texts: dict[Path, list[str]] = {}
    for row in one.rows:
        name = one.names[row.image].removesuffix(".png").removesuffix(".jpg")
        cells = [str(value) for value in row.box]
        changed = {"negative": "-4", "no size": "0", "text": "wide", "nan": "nan"}
        cells[2] = changed.get(row.odd, cells[2])
        if row.odd == "short":
            del cells[3]
        head = ["data_cryolo", "", "loop_"]
        head += ["_CoordinateX #1", "_CoordinateY #2", "_Width #3", "_Height #4"]
        texts.setdefault(path / f"{name}.cbox", head).append(" ".join(cells))
    for file, lines in texts.items():
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def _label_studio(one: List, folder: Path) -> Path:
    tasks = []
    for number, image in enumerate(dict.fromkeys(row.image for row in one.rows), 1):
        results: list[Any] = []
        for row in one.rows:
            if row.image != image:
                continue
            shares: list[Any] = [100 * value / SIDE for value in row.box]
            changed = {"negative": -4, "no size": 0, "text": "wide", "nan": float("nan")}
            shares[2] = changed.get(row.odd, shares[2])
            value = dict(zip(("x", "y", "width", "height"), shares, strict=True))
            kind = "brushlabels" if row.odd == "line" else "rectanglelabels"
            size = {"original_width": SIDE, "original_height": SIDE}
            results.append({"type": kind, **size, "value": value | {kind: ["a"]}})
        annotation = {"completed_by": {"email": one.expert}, "result": results}
        data = {"image": one.names[image]}
        tasks.append({"id": number, "data": data, "annotations": [annotation]})
    path = folder / f"{one.expert}.json"
    path.write_text(json.dumps(tasks), encoding="utf-8")
    return path


class Format(NamedTuple):
    """How to write a list, and what becomes of odd rows."""

    write: Callable[[List, Path], Path]
    odd: dict[str, str]
    #: Whether images go by the names of files, which end in what the format says.
    by_file: bool = False


FORMATS: dict[str, Format] = {
    "delimited": Format(
        _csv, dict.fromkeys(("nan", "text", "negative", "missing", "too long"), "refuse")
    ),
    "labelme": Format(_labelme, {**JSON_ODD, "one point": "left"}),
    "coco": Format(
        _coco,
        {
            **{name: way for name, way in JSON_ODD.items() if name != "line"},
            **{"negative": "left", "missing image": "left", "mask": "left"},
        },
    ),
    "via": Format(_via, {**JSON_ODD, "negative": "left"}),
    "via-json": Format(_via_json, {**JSON_ODD, "negative": "left"}),
    "cvat": Format(_cvat, {**JSON_ODD, "negative": "left"}),
    "yolo": Format(
        _yolo,
        dict.fromkeys(("beyond", "nan", "text", "short", "no class", "no size", "comma"), "left"),
        by_file=True,
    ),
    "box": Format(
        _particles,
        {
            **{"negative": "left", "no size": "left"},
            **{"text": "refuse", "nan": "refuse", "short": "refuse"},
        },
        by_file=True,
    ),
}

FORMATS["cbox"] = FORMATS["box"]._replace(write=_cbox)
FORMATS["label-studio"] = Format(_label_studio, {**JSON_ODD, "negative": "left"})
#: Formats whose lists are in pixels and do not name the expert, so that they can be mixed.
ALIKE = tuple(name for name in FORMATS if name not in ("yolo", "label-studio"))

# ---- names of images ----

#: Ways of naming that must come out right in all cases, and those after which a warning will do.
PLAIN = ("as it is", "home", "windows", "here", "decomposed")
OTHER = ("name", "upper", "stem", "jpg", "underscore")
STEMS = ("a", "b7", "Zoë", "2019.05", "tile 12", "x-3")


def called(image: str, way: str, expert: str) -> str:
    """What someone calls an image."""
    name = image.rpartition("/")[2]
    return {
        "as it is": image,
        "home": f"/home/{expert}/pictures/{image}",
        "windows": f"C:\\Users\\{expert}\\{image}".replace("/", "\\"),
        "here": f"./{image}",
        "decomposed": unicodedata.normalize("NFD", image),
        "name": name,
        "upper": image.upper(),
        "stem": image.rpartition(".")[0],
        "jpg": image.replace(".png", ".jpg"),
        "underscore": image.replace(".png", "_.png"),
    }[way]


# ---- a case, and what must hold of it ----


@dataclass
class Case:
    """Lists, and how they were made."""

    lists: list[List]
    plain: bool
    refuse: set[str]
    #: Odd rows that are left out, by expert.
    left: Counter[str]


def make_case(rng: random.Random) -> Case:
    """Two or three people, one to four images."""
    ending = ".png"
    stems = rng.sample(STEMS, rng.randint(1, 3))
    images = [stem + ending for stem in stems]
    in_folders = rng.random() < 0.4
    if in_folders:
        images = [f"s{k}/{rng.choice(images)}" for k in range(1, rng.randint(2, 4))]
    usual = rng.choice(list(FORMATS))
    mixed = rng.random() < 0.3
    plain = rng.random() < 0.6
    ways = [rng.choice(PLAIN if plain else (*PLAIN, *OTHER)) for _ in range(3)]
    units = rng.random() < 0.05
    case = Case([], plain, set(), Counter())
    for k, expert in enumerate(("ann", "bob", "cleo")[: rng.randint(2, 3)]):
        name = rng.choice(ALIKE) if mixed and usual in ALIKE else usual
        form = FORMATS[name]
        if form.by_file and ways[k] in ("home", "windows", "here"):
            ways[k] = "as it is"
        own = images if plain else rng.sample(images, rng.randint(1, len(images)))
        rows = []
        for image in own:
            rows += [Row(image, _box(rng)) for _ in range(rng.randint(1, 3))]
        unit = rng.choice(["px", "km", "m"]) if units and name == "delimited" else ""
        if rng.random() < 0.5:
            for _ in range(rng.randint(1, 2)):
                odd = rng.choice(list(form.odd))
                if form.odd[odd] == "refuse" and rng.random() < 0.7:
                    continue
                rows.insert(rng.randint(0, len(rows)), Row(rng.choice(own), _box(rng), odd))
                if form.odd[odd] == "refuse":
                    case.refuse.add(expert)
                else:
                    case.left[expert] += 1
        names = {image: called(image, ways[k], expert) for image in own}
        case.lists.append(List(expert, name, rows, names, unit))
    return case


def _box(rng: random.Random) -> Box:
    left, top = rng.randint(1, 700), rng.randint(1, 700)
    return Box(left, top, 2 * rng.randint(1, 100), 2 * rng.randint(1, 100))


def check_case(case: Case, folder: Path) -> str:
    """Write the lists, read them, and compare; what became of them, or an AssertionError."""
    for one in case.lists:
        one.path = FORMATS[one.format].write(one, folder)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", DfcrpWarning)
        try:
            items = read_items([one.path for one in case.lists], "boxes")
        except InputError as error:
            return _refused(case, error)
    said = "\n".join(str(one.message) for one in caught)
    assert not case.refuse, f"a row that is no box was read: {said}"
    units = {one.unit or "px" for one in case.lists if one.format == "delimited"}
    units |= {"px" for one in case.lists if one.format != "delimited"}
    assert len(units) == 1, f"units were mixed: {units}"
    _compare_rows(case, items, said)
    return _compare_images(case, items, said)


def _refused(case: Case, error: InputError) -> str:
    text = str(error)
    units = {one.unit or "px" for one in case.lists}
    if case.refuse:
        named = [one.path.stem for one in case.lists if one.expert in case.refuse]
        assert any(name in text for name in named) or "image" in text, f"no file named: {text}"
        return "refused: odd row"
    if len(units) > 1 and " is in " in text:
        return "refused: units"
    assert not case.plain, f"what is plain was refused: {text}"
    reasons = ("may be the same as", "several images are called")
    assert any(one in text for one in reasons), f"refused for no reason: {text}"
    return "refused: images"


def _compare_rows(case: Case, items: Any, said: str) -> None:
    scale = SIDE if case.lists[0].format == "yolo" else 1
    for one, source in zip(case.lists, items.sources, strict=True):
        good = Counter(row.box.read for row in one.rows if not row.odd)
        mine = items.values[items.expert == one.expert] * scale
        found = Counter(tuple(round(float(v), 6) for v in row) for row in mine)
        assert found == good, f"{one.expert}: written {good}, read {found}"
        left = case.left[one.expert]
        assert source.left_out == left, f"{one.expert}: {left} odd rows, {source.left_out} counted"
        assert source.kept + source.left_out == len(one.rows)
        if left:
            assert f"{one.path.stem}" in said, f"no file is named: {said}"
            assert "left out" in said, f"nothing is said: {said}"
            assert source.notes, "nothing is noted"


def _compare_images(case: Case, items: Any, said: str) -> str:
    """Which rows are on the same image, before and after."""
    before: dict[tuple[str, tuple[float, ...]], str] = {}
    scale = SIDE if case.lists[0].format == "yolo" else 1
    for one in case.lists:
        for row in one.rows:
            if not row.odd:
                before[one.expert, row.box.read] = row.image
    pairs: set[tuple[str, str, str]] = set()
    for expert, values, image in zip(
        items.expert.tolist(), (items.values * scale).tolist(), items.image.tolist(), strict=True
    ):
        pairs.add((expert, before[expert, tuple(round(v, 6) for v in values)], image))
    written = {one.expert: one.names for one in case.lists}
    for expert in {expert for expert, _, _ in pairs}:
        own = {(written[expert][image], name) for who, image, name in pairs if who == expert}
        assert len({image for image, _ in own}) == len(own), f"an image of {expert} became two"
        assert len({name for _, name in own}) == len(own), f"images of {expert} became one"
    # Without its folder, nobody can tell which of two images it is.
    bare = {name for who, image, name in pairs if "/" in image and "/" not in written[who][image]}
    same = {(image, name) for _, image, name in pairs}
    split = len({image for image, _ in same}) < len(same)
    joined = len({name for _, name in same if name not in bare}) < len(
        [name for _, name in same if name not in bare]
    )
    if not split and not joined:
        return "read"
    told = "taken as" in said
    assert told, f"images are not what they were, and nothing is said: {sorted(pairs)}"
    assert not case.plain, f"plain names came out wrong: {sorted(pairs)}; {said}"
    return "read with a warning"


def main(arguments: Sequence[str] | None = None) -> int:
    """The command: 0 if nothing went wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="fuzz.exchange", description=__doc__)
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--first", type=int, default=1, help="the first seed; others follow")
    parser.add_argument("--out", type=Path, default=Path("findings"))
    asked = parser.parse_args(arguments)
    shared = "/dev/shm" if Path("/dev/shm").is_dir() else None
    ends: Counter[str] = Counter()
    for seed in range(asked.first, asked.first + asked.inputs):
        case = make_case(random.Random(seed))
        folder = Path(tempfile.mkdtemp(dir=shared))
        try:
            ends[check_case(case, folder)] += 1
        except Exception:
            ends["wrong"] += 1
            if ends["wrong"] <= 20:
                kept = asked.out / f"exchange-{seed}"
                shutil.copytree(folder, kept, dirs_exist_ok=True)
                text = f"{case}\n\n{traceback.format_exc()}"
                (kept / "why.txt").write_text(text, encoding="utf-8", errors="replace")
        finally:
            shutil.rmtree(folder)
    print(f"{asked.inputs:,} inputs: " + ", ".join(f"{n:,} {end}" for end, n in ends.items()))
    return 1 if ends["wrong"] else 0


if __name__ == "__main__":
    sys.exit(main())
