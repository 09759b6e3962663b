"""LabelMe: one JSON file per image with its shapes; it does not say who drew them."""

from __future__ import annotations

import json
import posixpath
from pathlib import Path, PurePosixPath
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.geojson import rings_of
from dfcrp.io.outgoing import SHOWN, Outgoing
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.items.image_names import is_absolute
from dfcrp.items.source_tables import kept_fields

#: The version of LabelMe whose files these are.
VERSION = "5.4.1"
#: What a file says of itself and its image.
KEPT = ("version", "flags", "imagePath")


def looks_like_labelme(file: GivenFile) -> bool:
    """Whether the keys of a LabelMe file are there."""
    return b'"shapes"' in file.data and b'"imagePath"' in file.data


def read_labelme(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read circles (centre and a point on the rim), polygons, rectangles and points."""
    name = file.name
    content = as_object(load_json(name, file.data), name)
    marks = Drawings(name, "shape", options)
    path = text_or_none(content.get("imagePath"))
    if path is None:
        path = str(PurePosixPath(options.below or name).with_suffix(""))
        marks.say(Origin(0), "it does not name its image, which goes by the name of the file")
    plain = path.replace("\\", "/")
    if options.below is not None and "/" in options.below and not is_absolute(plain):
        # Relative to the file itself, which lies in a folder of the person's.
        path = posixpath.normpath(posixpath.join(posixpath.dirname(options.below), plain))
    fields = kept_fields({key: content[key] for key in KEPT if key in content})
    if options.below is not None:
        fields["file"] = options.below
    size = (content.get("imageWidth"), content.get("imageHeight"))
    image = marks.image(path, size=size, fields=fields)
    marks.look(image)
    for number, raw in enumerate(as_list(content.get("shapes"), f"{name}, shapes"), 1):
        shape = as_object(raw, f"{name}, shape {number}")
        origin = Origin(number, image=image, label=text_or_none(shape.get("label")))
        kind = shape.get("shape_type") or "polygon"
        if kind not in ("circle", "polygon", "rectangle", "point"):
            marks.leave(origin, str(kind)[:40])
            continue
        points = marks.pairs(origin, shape.get("points"))
        if kind == "polygon":
            marks.polygon(origin, points)
        elif len(points) < (1 if kind == "point" else 2):
            marks.leave(origin, f"{kind} with too few points")
        elif kind == "point":
            marks.point(origin, *points[0])
        else:
            (x, y), (across, down) = points[0], points[1]
            if kind == "circle":
                marks.circle(origin, x, y, ((across - x) ** 2 + (down - y) ** 2) ** 0.5)
            else:
                marks.box(origin, min(x, across), min(y, down), abs(across - x), abs(down - y))
    return marks.table()


def write_labelme(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write a folder: a file of shapes for each image, named as it was, without the picture."""
    if table.kind not in ("boxes", "circles", "ellipses", "points"):
        raise InputError(
            f"{path}: LabelMe holds boxes, circles, ellipses and points; these are {table.kind}"
        )
    out = Outgoing(table, path, (FORMAT.name,)).in_pixels()
    shapes = _shapes(out)
    files = {}
    for image, file in out.files(".json"):
        width, height = out.size_of(image)
        fields = image.fields
        content = {
            "version": fields.get("version", VERSION),
            "flags": fields.get("flags", {}),
            "shapes": [_entry(out, row, *shapes[row]) for row in image.rows],
            "imagePath": fields.get("imagePath")
            or PurePosixPath(image.path.replace("\\", "/")).name,
            "imageData": None,
            "imageHeight": height,
            "imageWidth": width,
        }
        files[file] = (json.dumps(content, ensure_ascii=False, indent=2) + "\n").encode()
    return files


def _entry(out: Outgoing, row: int, kind: str, points: list[list[float]]) -> dict[str, Any]:
    """A shape; what LabelMe has no field for is its description, which it shows."""
    score = out.score(row)
    known = [f"{title} {out.extra[title][row]}" for title in SHOWN if title in out.extra]
    return {
        "label": out.labels[row],
        "points": points,
        "group_id": None,
        "description": ", ".join(known) if out.table.scores else "",
        "shape_type": kind,
        "flags": {},
        **({} if score is None else {"score": score}),
    }


def _shapes(out: Outgoing) -> list[tuple[str, list[list[float]]]]:
    """The type of each shape, and its points."""
    found: list[tuple[str, list[list[float]]]] = []
    if out.table.kind == "ellipses":
        rings = rings_of(out.table, out.path)
        return [("polygon", [list(point) for point in ring[:-1:2]]) for ring in rings]
    for x, y, *rest in out.row_columns():
        if not rest:
            found.append(("point", [[x, y]]))
        elif len(rest) == 1:
            found.append(("circle", [[x, y], [x + rest[0] / 2, y]]))
        else:
            half, tall = rest[0] / 2, rest[1] / 2
            found.append(("rectangle", [[x - half, y - tall], [x + half, y + tall]]))
    return found


FORMAT = Format("LabelMe", looks_like_labelme, read_labelme, target="labelme", write=write_labelme)
