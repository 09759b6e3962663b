"""CVAT's XML for images: shapes by image; it does not say who drew them."""

from __future__ import annotations

from typing import Any
from xml.parsers import expat

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions


def looks_like_cvat(file: GivenFile) -> bool:
    """Whether it is XML with CVAT's outermost element."""
    start = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")
    return start.startswith(b"<") and b"<annotations" in start


def read_cvat(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read ellipses, polygons, boxes and points."""
    reader = _Reader(file.name, options)
    parser = expat.ParserCreate()
    # A document type is the door for entities that unfold without end or fetch other files;
    # CVAT writes none.
    parser.StartDoctypeDeclHandler = reader.refuse_doctype
    parser.StartElementHandler = lambda tag, found: reader.start(
        tag, found, parser.CurrentLineNumber
    )
    parser.EndElementHandler = reader.end
    try:
        parser.Parse(file.data, True)
    except expat.ExpatError as error:
        raise InputError(
            f"{file.name}, row {error.lineno}: not XML ({expat.errors.messages[error.code]}); "
            "is the file whole? Export it again"
        ) from None
    except (ValueError, LookupError):  # an encoding that nobody knows
        raise InputError(f"{file.name}: not XML in UTF-8; export the file again") from None
    return reader.marks.table()


class _Reader:
    def __init__(self, name: str, options: ReadOptions) -> None:
        self.name = name
        self.marks = Drawings(name, "row", options)
        self._image: str | None = None
        self._in_image = self._in_track = False
        self._in_skeleton = 0

    def refuse_doctype(self, *_: Any) -> None:
        raise InputError(
            f"{self.name}: the XML has a document type, which CVAT's files do not have; remove it"
        )

    def start(self, tag: str, found: dict[str, str], row: int) -> None:
        if tag == "image":
            own, task = found.get("id"), found.get("task_id")
            self._in_image = True
            self._image = self.marks.image(
                found.get("name") or own,
                number=own if task is None else f"{task}:{own}",
                size=(found.get("width"), found.get("height")),
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


FORMAT = Format("CVAT XML", looks_like_cvat, read_cvat)
