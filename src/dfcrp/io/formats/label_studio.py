"""Label Studio's JSON export: tasks with the annotations of each annotator, in per cent."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.outgoing import Outgoing, new_ids
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.items.source_tables import kept_fields
from dfcrp.values import Json

#: What a task is known by in Label Studio.
KEPT = ("id", "data")
#: Of each kind of items its type among results, and what the control is called in most projects.
TYPES = {"boxes": "rectangle", "circles": "ellipse", "ellipses": "ellipse", "points": "keypoint"}
CONTROLS = {"from_name": "label", "to_name": "image"}
#: The width of a keypoint on the screen, in per cent of the image's.
DOT = 0.3
#: Whose list annotations are on that name nobody.
UNKNOWN = "unknown annotator"


def looks_like_label_studio(file: GivenFile) -> bool:
    """Whether the keys of an export are there."""
    return file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"[" and (
        b'"annotations"' in file.data and (b'"result"' in file.data or b'"data"' in file.data)
    )


def read_label_studio(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read ellipses, polygons, boxes and points; an annotator's last annotation of a task counts.

    Rows in messages are tasks, counted from 1.
    """
    name = file.name
    marks = Drawings(name, "task", options)
    for number, raw in enumerate(as_list(load_json(name, file.data), name), 1):
        task = as_object(raw, f"{name}, task {number}")
        image = marks.image(
            _image(task) or str(number),
            number=text_or_none(task.get("id")),
            size=_size_of(task),
            fields=kept_fields({key: task[key] for key in KEPT if key in task}),
        )
        if task.get("predictions"):
            marks.leave(Origin(number), "list of predictions")
        last: dict[str, Json] = {}
        where = f"{name}, task {number}, annotations"
        for entry in as_list(task.get("annotations") or [], where):
            annotation = as_object(entry, where)
            if annotation.get("was_cancelled"):
                # The annotator skipped the task.
                if annotation.get("result"):
                    marks.leave(Origin(number), "annotation that is cancelled by its annotator")
                continue
            expert = annotator(annotation)
            earlier = last.get(expert)
            if earlier is not None:
                marks.leave(Origin(number), "annotation repeated by the same annotator")
                if str(earlier.get("updated_at") or "") > str(annotation.get("updated_at") or ""):
                    continue
            last[expert] = annotation
        for expert, annotation in last.items():
            marks.look(image, expert)
            if expert == UNKNOWN:
                marks.say(Origin(number), f"annotations of nobody are a list of {UNKNOWN!r}")
            for result in as_list(annotation.get("result"), where):
                _take(marks, Origin(number, expert, image), as_object(result, where), where)
    return marks.table()


def _size_of(task: Json) -> tuple[object, ...]:
    """The width and height of the image, which every result repeats."""
    found = task.get("annotations")
    for annotation in found if isinstance(found, list) else ():
        results = annotation.get("result") if isinstance(annotation, dict) else None
        for one in results if isinstance(results, list) else ():
            if isinstance(one, dict) and one.get("original_width") is not None:
                return one.get("original_width"), one.get("original_height")
    return ()


def _take(marks: Drawings, origin: Origin, result: Json, where: str) -> None:
    kind = str(result.get("type") or "")[:40]
    shape = kind.removesuffix("labels")
    if shape not in ("ellipse", "polygon", "rectangle", "keypoint", "brush"):
        if kind.endswith("labels") or "original_width" in result:
            marks.leave(origin, shape)
        return  # answers and comments, not drawings
    value = as_object(result.get("value"), f"{where}, value")
    labels = value.get(kind)
    label = text_or_none(labels[0]) if isinstance(labels, list) and labels else None
    names = {key: result.get(key) for key in ("from_name", "to_name")}
    if all(isinstance(name, str) for name in names.values()):
        marks.fields.setdefault(kind, kept_fields(names))
    if label is not None:
        marks.categories.setdefault(label, {})
    origin = Origin(origin.row, origin.expert, origin.image, label, result.get("score"))
    across, down = (
        marks.number(origin, result.get(key), key) / 100
        for key in ("original_width", "original_height")
    )

    def scaled(key: str, factor: float) -> float:
        return factor * marks.number(origin, value.get(key), key)

    if shape == "ellipse":
        x, y = scaled("x", across), scaled("y", down)
        radii = scaled("radiusX", across), scaled("radiusY", down)
        marks.ellipse(origin, x, y, *radii, angle=value.get("rotation"))
    elif shape == "polygon":
        points = marks.pairs(origin, value.get("points"))
        marks.polygon(origin, [(across * x, down * y) for x, y in points])
    elif shape == "rectangle":
        sides = scaled("width", across), scaled("height", down)
        turned = marks.number(origin, value.get("rotation") or 0.0, "the rotation")
        x, y = _turned_corner(scaled("x", across), scaled("y", down), sides, turned)
        marks.box(origin, x, y, *sides, angle=turned)
    elif shape == "keypoint":
        marks.point(origin, scaled("x", across), scaled("y", down))
    else:
        marks.leave(origin, "mask")


def _turned_corner(
    x: float, y: float, sides: tuple[float, float], angle: float
) -> tuple[float, float]:
    """The upper left corner that a box had before it was turned about its centre.

    Label Studio gives the corner about which the box was turned.
    """
    if not math.isfinite(angle) or not angle:
        return x, y
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    half, tall = sides[0] / 2, sides[1] / 2
    return x + half * cos - tall * sin - half, y + half * sin + tall * cos - tall


def _image(task: Json) -> str | None:
    data = task.get("data")
    names = data.values() if isinstance(data, dict) else ()
    return next((text for value in names if (text := text_or_none(value))), None)


def annotator(annotation: Mapping[str, object]) -> str:
    """Who made an annotation."""
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return text_or_none(who) or UNKNOWN


def write_label_studio(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write tasks with predictions, as Label Studio imports them, with a score for each result."""
    if table.kind not in TYPES:
        raise InputError(
            f"{path}: Label Studio files are written of {', '.join(TYPES)}; these are {table.kind}"
        )
    out = Outgoing(table, path, (FORMAT.name,)).in_pixels()
    kind = f"{TYPES[table.kind]}labels"
    names = out.file_fields(kind) or CONTROLS
    shapes, tasks = out.row_columns(), []
    numbers = new_ids([image.fields.get("id") for image in out.images])
    for number, image in zip(numbers, out.images, strict=True):
        across, down = out.size_of(image) if image.rows else (0, 0)
        results = []
        for row in image.rows:
            place = _percentages(table.kind, shapes[row], across, down)
            score = out.score(row)
            results.append(
                {
                    "id": f"dfcrp{row + 1}",
                    "type": kind,
                    **names,
                    "original_width": across,
                    "original_height": down,
                    "image_rotation": 0,
                    "value": {**place, kind: [out.labels[row]]},
                    **({} if score is None else {"score": score}),
                }
            )
        known = [one["score"] for one in results if "score" in one]
        prediction = {"model_version": "dfcrp", "result": results}
        if known:
            prediction["score"] = sum(known) / len(known)
        data = image.fields.get("data") or {names["to_name"]: image.path}
        tasks.append({"id": number, "data": data, "predictions": [prediction]})
    return {path: (json.dumps(tasks, ensure_ascii=False, indent=1) + "\n").encode()}


def _percentages(kind: str, numbers: tuple[float, ...], across: int, down: int) -> dict[str, float]:
    """Where an item lies, in per cent of the image's width and height."""
    x, y, *rest = numbers
    wide, high = 100 / across, 100 / down
    if kind == "points":
        return {"x": x * wide, "y": y * high, "width": DOT}
    if kind == "boxes":
        width, height = rest
        corner = {"x": (x - width / 2) * wide, "y": (y - height / 2) * high}
        return {**corner, "width": width * wide, "height": height * high, "rotation": 0}
    major, minor, angle = (rest[0], rest[0], 0.0) if kind == "circles" else rest
    radii = {"radiusX": major / 2 * wide, "radiusY": minor / 2 * high}
    return {"x": x * wide, "y": y * high, **radii, "rotation": angle}


FORMAT = Format(
    "Label Studio",
    looks_like_label_studio,
    read_label_studio,
    target="label-studio",
    write=write_label_studio,
    ending=".json",
)
