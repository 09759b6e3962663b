"""VIA (VGG Image Annotator): regions by image, as CSV or as JSON; nobody's name."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.io.outgoing import NAMELESS, SHOWN, Outgoing
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, decode, load_json, parse_json, text_or_none
from dfcrp.items.checks import LONGEST_NAME
from dfcrp.items.source_tables import kept_fields
from dfcrp.values import Json

#: Columns of an export.
HEADER = (
    *("filename", "file_size", "file_attributes", "region_count", "region_id"),
    *("region_shape_attributes", "region_attributes"),
)


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
    files = columns.get("file_attributes") or ["{}"] * len(table.rows)
    cells = zip(
        table.rows,
        columns["filename"],
        sizes,
        columns["region_shape_attributes"],
        labels,
        strict=True,
    )
    for at, (row, path, size, text, notes) in enumerate(cells):
        place = f"{name}, row {row}, column 'region_shape_attributes'"
        whole = {"size": size, "file_attributes": _object(str(files[at]))}
        image = _image(marks, text_or_none(path), size, whole)
        marks.look(image)
        shape = as_object(parse_json(str(text) or "{}", place), place)
        if shape and image is None:
            marks.leave(Origin(row), "region without the name of an image")
        elif shape:  # an image without a region has a row too
            said = _object(str(notes))
            _take(marks, Origin(row, image=image, label=_label(marks, said)), shape, place)
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
        path, whole = text_or_none(image.get("filename")) or key, kept_fields(image, "regions")
        title = _image(marks, path, image.get("size"), whole)
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
            label = _label(marks, region.get("region_attributes"))
            _take(marks, Origin(row, image=title, label=label), shape, place)
    return marks.table()


def _image(marks: Drawings, path: str | None, size: object, fields: Json) -> str | None:
    """VIA tells images apart by their names and the sizes of the files, as in ``a.png4096``."""
    number = None if path is None else f"{path}{text_or_none(size) or ''}"
    return marks.image(path, number=number, fields=fields)


def _take(marks: Drawings, origin: Origin, shape: Json, place: str) -> None:
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


def _object(notes: str) -> Any:
    """What stands in a cell; nothing if it is no JSON."""
    try:
        return parse_json(notes, "")
    except InputError:
        return {}


def _label(marks: Drawings, attributes: object) -> str | None:
    """The first attribute of a region that is a piece of text; its name is kept."""
    told = attributes.items() if isinstance(attributes, dict) else ()
    found = ((key, value) for key, value in told if isinstance(value, str) and value)
    key, label = next(found, ("", None))
    if label is not None:
        marks.fields.setdefault("attribute", key[:LONGEST_NAME])
        marks.categories.setdefault(label, {})
    return label


def write_via_json(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write regions by image, as VIA imports them, with what is said of objects as attributes."""
    content = {
        key: {
            **fields,
            "regions": [
                {"shape_attributes": shape, "region_attributes": said} for shape, said in regions
            ],
        }
        for key, fields, regions in _written(table, path)
    }
    return {path: (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()}


def write_via_csv(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """The same as a table; an image without a region has a row too."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(HEADER)
    for _, fields, regions in _written(table, path):
        first = [fields["filename"], fields["size"], json.dumps(fields["file_attributes"])]
        for number, (shape, said) in enumerate(regions or [({}, {})]):
            cells = [len(regions), number, json.dumps(shape), json.dumps(said)]
            writer.writerow([*first, *cells])
    return {path: text.getvalue().encode()}


_Region = tuple[Json, dict[str, str]]


def _written(table: ReadTable, path: Path) -> Iterator[tuple[str, Json, list[_Region]]]:
    """The key of each image, what is said of it, and its regions with their attributes."""
    if table.kind not in ("boxes", "circles", "ellipses", "points"):
        raise InputError(
            f"{path}: VIA holds boxes, circles, ellipses and points; these are {table.kind}"
        )
    out = Outgoing(table, path, (CSV.name, JSON.name)).in_pixels()
    attribute, shapes = str(out.file_fields("attribute") or "type"), out.row_columns()
    named = out.scores is not None or out.labels != [NAMELESS] * len(out.labels)
    for image in out.images:
        told = image.fields
        size = told.get("size", -1)
        fields = {
            "filename": image.path,
            "size": int(size) if isinstance(size, str) and size.isdecimal() else size,
            "file_attributes": told.get("file_attributes") or {},
        }
        regions = []
        for row in image.rows:
            said = {attribute: out.labels[row]} if named else {}
            for title in SHOWN if table.scores else ():
                if title in out.extra:
                    said[title] = str(out.extra[title][row])
            regions.append((_shape(table.kind, shapes[row]), said))
        yield f"{image.path}{fields['size']}", fields, regions


def _shape(kind: str, numbers: tuple[float, ...]) -> Json:
    """The attributes of a shape."""
    x, y, *rest = numbers
    if kind == "points":
        return {"name": "point", "cx": x, "cy": y}
    if kind == "circles":
        return {"name": "circle", "cx": x, "cy": y, "r": rest[0] / 2}
    if kind == "boxes":
        width, height = rest
        corner = {"x": x - width / 2, "y": y - height / 2}
        return {"name": "rect", **corner, "width": width, "height": height}
    major, minor, angle = rest
    radii = {"rx": major / 2, "ry": minor / 2, "theta": math.radians(angle)}
    return {"name": "ellipse", "cx": x, "cy": y, **radii}


CSV = Format(
    "VIA CSV", looks_like_via, read_via, target="via-csv", write=write_via_csv, ending="via.csv"
)
JSON = Format(
    "VIA JSON",
    looks_like_via_json,
    read_via_json,
    target="via",
    write=write_via_json,
    ending=".json",
)
