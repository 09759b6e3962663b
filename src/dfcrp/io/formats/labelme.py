"""LabelMe: one JSON file per image with its shapes; it does not say who drew them."""

from __future__ import annotations

import posixpath
from pathlib import PurePosixPath

from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.items.image_names import is_absolute


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
    image = marks.image(path, size=(content.get("imageWidth"), content.get("imageHeight")))
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


FORMAT = Format("LabelMe", looks_like_labelme, read_labelme)
