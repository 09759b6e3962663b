"""VIA (VGG Image Annotator): regions by image, as CSV or as JSON; nobody's name."""

from __future__ import annotations

import math
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.io.tables import RawTable, ReadOptions
from dfcrp.io.text import as_list, as_object, decode, load_json, parse_json, text_or_none


def looks_like_via(file: GivenFile) -> bool:
    """Whether the header has VIA's columns; older versions put a # before it."""
    return b"region_shape_attributes" in file.data[:2000].split(b"\n", 1)[0]


def read_via(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read circles, ellipses, polygons, boxes and points."""
    name = file.name
    text = decode(name, file.data)
    table = read_delimited(name, text.removeprefix("#").encode())
    columns = dict(zip(table.header, table.columns, strict=True))
    for title in ("filename", "region_shape_attributes"):
        if title not in columns:
            raise InputError(f"{name}, header: no column {title}; export the file from VIA again")
    labels = columns.get("region_attributes") or ["{}"] * len(table.rows)
    marks = Drawings(name, "row", options)
    sizes = columns.get("file_size") or [""] * len(table.rows)
    cells = zip(
        table.rows,
        columns["filename"],
        sizes,
        columns["region_shape_attributes"],
        labels,
        strict=True,
    )
    for row, path, size, text, notes in cells:
        place = f"{name}, row {row}, column 'region_shape_attributes'"
        image = _image(marks, text_or_none(path), size)
        marks.look(image)
        shape = as_object(parse_json(str(text) or "{}", place), place)
        if shape and image is None:
            marks.leave(Origin(row), "region without the name of an image")
        elif shape:  # an image without a region has a row too
            _take(marks, Origin(row, image=image, label=_label(str(notes))), shape, place)
    return marks.table()


def looks_like_via_json(file: GivenFile) -> bool:
    """Whether the keys of a region are there: of an export, or of a whole project."""
    return (
        b'"regions"' in file.data and b'"filename"' in file.data and file.data.lstrip()[:1] == b"{"
    )


def read_via_json(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read the same of an export or a project; a row is a region, counted through the file."""
    name = file.name
    content = as_object(load_json(name, file.data), name)
    images = as_object(content.get("_via_img_metadata", content), name)
    marks = Drawings(name, "region", options)
    row = 0
    for key, raw in images.items():
        image = as_object(raw, f"{name}, {key[:100]}")
        title = _image(marks, text_or_none(image.get("filename")) or key, image.get("size"))
        marks.look(title)
        regions = image.get("regions") or []
        # The first version had them by number.
        if isinstance(regions, dict):
            regions = list(regions.values())
        for one in as_list(regions, f"{name}, {key[:100]}, regions"):
            row += 1
            place = f"{name}, region {row}"
            region = as_object(one, place)
            shape = as_object(region.get("shape_attributes"), place)
            label = _first_text(region.get("region_attributes"))
            _take(marks, Origin(row, image=title, label=label), shape, place)
    return marks.table()


def _image(marks: Drawings, path: str | None, size: object) -> str | None:
    """VIA tells images apart by their names and the sizes of the files, as in ``a.png4096``."""
    number = None if path is None else f"{path}{text_or_none(size) or ''}"
    return marks.image(path, number=number)


def _take(marks: Drawings, origin: Origin, shape: dict[str, Any], place: str) -> None:
    kind = shape.get("name")
    if kind == "circle":
        marks.circle(origin, shape.get("cx"), shape.get("cy"), shape.get("r"))
    elif kind == "ellipse":
        centre = shape.get("cx"), shape.get("cy")
        theta = marks.number(origin, shape.get("theta") or 0.0, "theta")
        marks.ellipse(origin, *centre, shape.get("rx"), shape.get("ry"), angle=math.degrees(theta))
    elif kind == "polygon":
        across = as_list(shape.get("all_points_x"), place)
        down = as_list(shape.get("all_points_y"), place)
        if len(across) != len(down):
            marks.leave(origin, "polygon that is of more numbers for one axis than for the other")
        else:
            marks.polygon(origin, list(zip(across, down, strict=True)))
    elif kind == "rect":
        marks.box(origin, *(shape.get(key) for key in ("x", "y", "width", "height")))
    elif kind == "point":
        marks.point(origin, shape.get("cx"), shape.get("cy"))
    else:
        marks.leave(origin, str(kind)[:40])


def _label(notes: str) -> str | None:
    try:
        return _first_text(parse_json(notes, ""))
    except InputError:
        return None


def _first_text(attributes: Any) -> str | None:
    """The first attribute of a region that is a piece of text."""
    values = attributes.values() if isinstance(attributes, dict) else ()
    return next((value for value in values if isinstance(value, str) and value), None)


CSV = Format("VIA CSV", looks_like_via, read_via)
JSON = Format("VIA JSON", looks_like_via_json, read_via_json)
