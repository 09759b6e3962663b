"""Label Studio's JSON export: tasks with the annotations of each annotator, in per cent."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import as_list, as_object, load_json, text_or_none

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
            _image(task) or str(number), number=text_or_none(task.get("id")), size=_size_of(task)
        )
        if task.get("predictions"):
            marks.leave(Origin(number), "list of predictions")
        last: dict[str, dict[str, Any]] = {}
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


def _size_of(task: dict[str, Any]) -> tuple[Any, ...]:
    """The width and height of the image, which every result repeats."""
    found = task.get("annotations")
    for annotation in found if isinstance(found, list) else ():
        results = annotation.get("result") if isinstance(annotation, dict) else None
        for one in results if isinstance(results, list) else ():
            if isinstance(one, dict) and one.get("original_width") is not None:
                return one.get("original_width"), one.get("original_height")
    return ()


def _take(marks: Drawings, origin: Origin, result: dict[str, Any], where: str) -> None:
    kind = str(result.get("type") or "")[:40]
    shape = kind.removesuffix("labels")
    if shape not in ("ellipse", "polygon", "rectangle", "keypoint", "brush"):
        if kind.endswith("labels") or "original_width" in result:
            marks.leave(origin, shape)
        return  # answers and comments, not drawings
    value = as_object(result.get("value"), f"{where}, value")
    labels = value.get(kind)
    label = text_or_none(labels[0]) if isinstance(labels, list) and labels else None
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


def _image(task: dict[str, Any]) -> str | None:
    data = task.get("data")
    names = data.values() if isinstance(data, dict) else ()
    return next((text for value in names if (text := text_or_none(value))), None)


def annotator(annotation: Mapping[str, Any]) -> str:
    """Who made an annotation."""
    who = annotation.get("completed_by")
    if isinstance(who, dict):
        who = who.get("email") or who.get("username") or who.get("id")
    return text_or_none(who) or UNKNOWN


FORMAT = Format("Label Studio", looks_like_label_studio, read_label_studio)
