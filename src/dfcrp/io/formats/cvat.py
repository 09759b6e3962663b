"""CVAT's XML for images: shapes by image; it does not say who drew them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.outgoing import SHOWN, Outgoing, new_ids
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.xml import read_elements
from dfcrp.items.checks import LONGEST_NAME
from dfcrp.items.source_tables import kept_fields


def looks_like_cvat(file: GivenFile) -> bool:
    """Whether it is XML with CVAT's outermost element."""
    start = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"<") and b"<annotations" in start


def read_cvat(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read ellipses, polygons, boxes and points."""
    reader = _Reader(file.name, options)
    read_elements(file, reader, "CVAT")
    reader.marks.categories = {name: {} for name in reader.labels}
    return reader.marks.table()


class _Reader:
    def __init__(self, name: str, options: ReadOptions) -> None:
        self.name = name
        self.marks = Drawings(name, "row", options)
        self._image: str | None = None
        self._in_image = self._in_track = False
        self._in_skeleton = 0
        #: The labels of the task, from ``meta``, and where the parser is in it.
        self.labels: dict[str, None] = {}
        self._open: list[str] = []
        self._letters = ""

    def text(self, letters: str) -> None:
        """Of the name of a label."""
        if self._open[-2:] == ["label", "name"]:
            self._letters += letters

    def start(self, tag: str, found: dict[str, str], row: int) -> None:
        self._open.append(tag)
        if tag == "image":
            own, task = found.get("id"), found.get("task_id")
            self._in_image = True
            self._image = self.marks.image(
                found.get("name") or own,
                number=own if task is None else f"{task}:{own}",
                size=(found.get("width"), found.get("height")),
                fields=kept_fields(found, "name", "width", "height"),
            )
            self.marks.look(self._image)
        elif tag == "track":
            self._in_track = True
        elif tag == "skeleton":
            self.marks.leave(Origin(row), tag)
            self._in_skeleton += 1
        elif self._in_skeleton:
            return
        elif self._in_image or self._in_track:
            self._take(tag, found, Origin(row, image=self._image, label=found.get("label")))

    def end(self, tag: str) -> None:
        if self._open[-2:] == ["label", "name"] and (name := self._letters.strip()):
            self.labels[name[:LONGEST_NAME]] = None
        self._open.pop()
        self._letters = ""
        if tag == "image":
            self._image, self._in_image = None, False
        elif tag == "track":
            self._in_track = False
        elif tag == "skeleton":
            self._in_skeleton -= 1

    def _take(self, tag: str, found: dict[str, str], origin: Origin) -> None:
        marks = self.marks
        if tag not in ("ellipse", "polygon", "polyline", "box", "points", "cuboid", "mask"):
            return  # attributes and tags of an image
        if self._in_track:
            marks.leave(origin, f"{tag} of a video track")
        elif self._image is None:
            marks.leave(origin, f"{tag} on an image without a name")
        elif tag == "ellipse":
            numbers = (found.get(key) for key in ("cx", "cy", "rx", "ry"))
            marks.ellipse(origin, *numbers, angle=found.get("rotation"))
        elif tag == "polygon":
            marks.polygon(origin, self._points(found, origin))
        elif tag == "box":
            left, top, right, bottom = (
                marks.number(origin, found.get(key), key) for key in ("xtl", "ytl", "xbr", "ybr")
            )
            turned = found.get("rotation")
            marks.box(origin, left, top, right - left, bottom - top, angle=turned)
        elif tag == "points":
            for x, y in self._points(found, origin):
                marks.point(origin, x, y)
        else:
            marks.leave(origin, tag)

    def _points(self, found: dict[str, str], origin: Origin) -> list[tuple[float, float]]:
        pairs = [pair.split(",") for pair in found.get("points", "").split(";")]
        return self.marks.pairs(origin, pairs)


def write_cvat(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write "CVAT for images 1.1": shapes by image, with their scores as attributes.

    CVAT takes a file back into the task whose images have these names.
    """
    if table.kind not in ("boxes", "circles", "ellipses", "points"):
        raise InputError(
            f"{path}: CVAT holds boxes, ellipses, circles and points; these are {table.kind}"
        )
    out = Outgoing(table, path, (FORMAT.name,)).in_pixels()
    shapes, told = out.row_columns(), _attributes(out)
    numbers = new_ids([_whole(image.fields.get("id")) for image in out.images], first=0)
    root = ElementTree.Element("annotations")
    ElementTree.SubElement(root, "version").text = "1.1"
    _describe(root, out, list(told))
    for number, image in sorted(zip(numbers, out.images, strict=True), key=lambda one: one[0]):
        fields = {key: str(value) for key, value in image.fields.items()}
        fields |= {"id": str(number), "name": image.path}
        if image.size is not None:
            fields |= {"width": str(image.size[0]), "height": str(image.size[1])}
        entry = ElementTree.SubElement(root, "image", fields)
        for row in image.rows:
            tag, place = _shape(table.kind, shapes[row])
            common = {"label": out.labels[row], "source": "auto", "occluded": "0"}
            shape = ElementTree.SubElement(entry, tag, {**common, **place, "z_order": "0"})
            for title, values in told.items():
                if values[row] is not None:
                    ElementTree.SubElement(shape, "attribute", name=title).text = str(values[row])
    ElementTree.indent(root)
    try:
        text = ElementTree.tostring(root, encoding="utf-8", xml_declaration=True)
    except UnicodeEncodeError:
        raise InputError(f"{path}: a name has half a letter (a surrogate); rename it") from None
    return {path: _clean(text) + b"\n"}


def _attributes(out: Outgoing) -> dict[str, list[Any]]:
    """What is said of each object besides its label."""
    if out.scores is None:
        return {}
    told = {title: out.extra[title] for title in SHOWN if title in out.extra}
    return told or {"score": out.scores}


def _describe(root: ElementTree.Element, out: Outgoing, attributes: list[str]) -> None:
    """The labels of the task."""
    task = ElementTree.SubElement(ElementTree.SubElement(root, "meta"), "task")
    labels = ElementTree.SubElement(task, "labels")
    for name in out.categories:
        label = ElementTree.SubElement(labels, "label")
        ElementTree.SubElement(label, "name").text = name
        listed = ElementTree.SubElement(label, "attributes")
        for title in attributes:
            attribute = ElementTree.SubElement(listed, "attribute")
            said = {"name": title, "mutable": "False", "input_type": "text"}
            for tag, text in {**said, "default_value": "", "values": ""}.items():
                ElementTree.SubElement(attribute, tag).text = text


def _shape(kind: str, numbers: tuple[float, ...]) -> tuple[str, dict[str, str]]:
    """The element of an item, and where it lies."""
    x, y, *rest = numbers
    if kind == "points":
        return "points", {"points": f"{x!r},{y!r}"}
    if kind == "boxes":
        width, height = rest
        corners = (x - width / 2, y - height / 2, x + width / 2, y + height / 2)
        return "box", {
            key: repr(v) for key, v in zip(("xtl", "ytl", "xbr", "ybr"), corners, strict=True)
        }
    major, minor, angle = (rest[0], rest[0], 0.0) if kind == "circles" else rest
    place = {"cx": x, "cy": y, "rx": major / 2, "ry": minor / 2}
    turned = {"rotation": repr(angle)} if angle else {}
    return "ellipse", {**{key: repr(value) for key, value in place.items()}, **turned}


def _whole(value: object) -> int | None:
    """The number of an image, which is text in XML."""
    return int(value) if isinstance(value, str) and value.isdecimal() and len(value) < 10 else None


def _clean(text: bytes) -> bytes:
    """Without the characters that XML cannot hold."""
    return re.sub(rb"[\x00-\x08\x0b\x0c\x0e-\x1f]", b"_", text)


FORMAT = Format(
    "CVAT XML", looks_like_cvat, read_cvat, target="cvat", write=write_cvat, ending=".xml"
)
