"""COCO JSON: images and annotations in one file, or a detector's results alone.

COCO itself does not say who drew an annotation; tools add it under one of several names. Results
are a list of annotations, whose images have numbers and no names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.formats.geojson import rings_of
from dfcrp.io.outgoing import Outgoing, OutImage, new_ids
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.items.checks import quoted
from dfcrp.items.source_tables import kept_fields
from dfcrp.values import Json

#: The kinds that are written, and read back: by a box, or by an outline as well.
DRAWN_AS = ("boxes", "circles", "ellipses")
#: Where nothing was annotated; and what may stand before the first bracket.
NO_ANNOTATIONS, BLANKS = re.compile(rb'"annotations"\s*:\s*\[\s*\]'), b"\xef\xbb\xbf \t\r\n"
#: What tools call the person who made an annotation.
PERSONS = (
    *("annotator", "annotator_name", "annotator_id", "annotated_by", "created_by", "creator"),
    *("expert", "rater", "rater_id", "user", "username", "user_name", "user_id", "worker_id"),
)


def looks_like_coco(file: GivenFile) -> bool:
    """Whether the keys of a COCO file are there, or those of results."""
    if NO_ANNOTATIONS.search(file.data) and b'"images"' in file.data:
        return file.data.lstrip(BLANKS)[:1] == b"{"
    if b'"image_id"' not in file.data:
        return False
    results = file.data.lstrip()[:1] == b"[" and (
        b'"bbox"' in file.data or b'"segmentation"' in file.data
    )
    return results or (b'"images"' in file.data and b'"annotations"' in file.data)


def read_coco(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read annotations by their outline, or else by their box.

    For boxes and points it is the other way round: the box of an outline is in the file as well.
    Whoever made the file looked at all of its images, unless annotations are by several persons.
    """
    name = file.name
    content = load_json(name, file.data)
    if isinstance(content, list):
        content = {"images": [], "annotations": content}
    content = as_object(content, name)
    marks = Drawings(name, "annotation", options)
    images = _images(content.get("images"), f"{name}, images", marks)
    labels = _names(content.get("categories") or [], "name", f"{name}, categories")
    marks.fields = kept_fields({key: content.get(key) or None for key in ("info", "licenses")})
    for entry in content.get("categories") or []:
        if (title := labels.get(text_or_none(entry.get("id")) or "")) is not None:
            marks.categories.setdefault(title, kept_fields(entry, "name"))
    annotations = [
        as_object(raw, f"{name}, annotation {number}")
        for number, raw in enumerate(as_list(content.get("annotations"), f"{name}, annotations"), 1)
    ]
    person = _person(annotations)
    for looked in images.values() if person is None else ():
        marks.look(looked)
    for number, annotation in enumerate(annotations, 1):
        place = f"{name}, annotation {number}"
        image = text_or_none(annotation.get("image_id"))
        label = text_or_none(annotation.get("category_id"))
        origin = Origin(
            number,
            expert=None if person is None else _named(annotation[person]),
            image=images.get(image) if images else marks.image(image),
            label=None if label is None else labels.get(label, label),
            score=annotation.get("score"),
        )
        if origin.image is None:
            marks.leave(origin, "annotation without an image in the file")
            continue
        if labels and label is not None and label not in labels:
            marks.say(origin, "categories that are not in the file go by their numbers")
        if person is None and any(_named(annotation.get(key)) is not None for key in PERSONS):
            marks.say(origin, "not all annotations say who made them, so it is not read")
        outline, box = annotation.get("segmentation"), annotation.get("bbox")
        corner_and_sides = box if isinstance(box, list) and len(box) == 4 else None
        if corner_and_sides is not None and options.kind in ("boxes", "points"):
            marks.box(origin, *corner_and_sides)
        elif isinstance(outline, list) and len(outline) == 1:
            flat = as_list(outline[0], f"{place}, segmentation")
            if len(flat) % 2:
                marks.leave(origin, "outline that has an odd count of numbers")
            else:
                marks.polygon(origin, list(zip(flat[::2], flat[1::2], strict=True)))
        elif isinstance(outline, list) and outline:
            marks.leave(origin, "outline of several parts")
        elif isinstance(outline, dict):
            marks.leave(origin, "mask")
        elif corner_and_sides is not None:
            marks.box(origin, *corner_and_sides)
        else:
            marks.leave(origin, "annotation without outline and box")
    return marks.table()


def _person(annotations: Sequence[Json]) -> str | None:
    """The field that names who made an annotation, if all have it."""
    for key in PERSONS:
        if annotations and all(_named(one.get(key)) is not None for one in annotations):
            return key
    return None


def _named(person: object) -> str | None:
    """A name or number, also of a person with several fields."""
    if isinstance(person, dict):
        told = (person.get(key) for key in ("username", "name", "email", "id"))
        return next((text for one in told if (text := text_or_none(one))), None)
    return text_or_none(person)


def _images(entries: object, where: str, marks: Drawings) -> dict[str | None, str]:
    """What stands for each image, by its number."""
    found: dict[str | None, str] = {}
    for at, raw in enumerate(as_list(entries, where), 1):
        entry = as_object(raw, where)
        number = text_or_none(entry.get("id"))
        path = text_or_none(entry.get("file_name")) or number
        size = (entry.get("width"), entry.get("height"))
        fields = kept_fields(entry, "file_name", "width", "height")
        image = marks.image(path, number=number, size=size, fields=fields)
        if number is None or image is None:
            raise InputError(f"{where}: entry {at} has no id; export the file again")
        if found.setdefault(number, image) != image:
            raise InputError(
                f"{where}: entry {at} has the id {quoted(number)}, as {quoted(found[number])} has: "
                "the image of an annotation cannot be told; give each image a number of its own"
            )
    return found


def _names(entries: object, key: str, where: str) -> dict[str, str]:
    """The name of each entry by its id."""
    named: dict[str, str] = {}
    for at, raw in enumerate(as_list(entries, where), 1):
        entry = as_object(raw, where)
        number, title = text_or_none(entry.get("id")), text_or_none(entry.get(key))
        if number is not None and title is not None and named.setdefault(number, title) != title:
            raise InputError(
                f"{where}: entry {at}, {quoted(title)}, has the id {quoted(number)}, as "
                f"{quoted(named[number])} has; give each a number of its own"
            )
    return named


def write_coco(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write objects as annotations; the other columns are fields of them.

    Images and categories are those of the files that the objects come from, with their ids. The
    score is the probability that the object is real, or else that of a consensus.
    """
    if table.kind not in DRAWN_AS:
        raise InputError(
            f"{path}: COCO files are written of {', '.join(DRAWN_AS)}; these are {table.kind}"
        )
    out = Outgoing(table, path, (FORMAT.name,)).in_pixels()
    image_ids = new_ids([image.fields.get("id") for image in out.images])
    label_ids = new_ids([fields.get("id") for fields in out.categories.values()])
    ids = dict(zip((image.name for image in out.images), image_ids, strict=True))
    codes = dict(zip(out.categories, label_ids, strict=True))
    annotations = []
    for row, (corner_and_sides, outline) in enumerate(_drawn(out.table, path)):
        annotation: Json = {
            "id": row + 1,
            "image_id": ids[out.names[row]],
            "category_id": codes[out.labels[row]],
            "bbox": corner_and_sides,
            "area": corner_and_sides[2] * corner_and_sides[3],
            "iscrowd": 0,
        }
        if outline:
            annotation |= {"segmentation": [outline], "area": _area(outline)}
        if out.scores is not None:
            annotation["score"] = out.score(row)
        annotations.append(annotation | {title: cells[row] for title, cells in out.extra.items()})
    whole = {
        "info": out.file_fields("info") or {"description": "Written by dfcrp"},
        "licenses": out.file_fields("licenses") or [],
        "images": [
            _image_entry(image, number) for image, number in zip(out.images, image_ids, strict=True)
        ],
        "categories": [
            {**fields, "id": codes[name], "name": name} for name, fields in out.categories.items()
        ],
        "annotations": annotations,
    }
    return {path: (json.dumps(whole, indent=1) + "\n").encode()}


def _image_entry(image: OutImage, number: object) -> Json:
    entry = {**image.fields, "id": number, "file_name": image.path}
    if image.size is not None:
        entry |= {"width": image.size[0], "height": image.size[1]}
    return entry


def _drawn(table: ReadTable, path: Path) -> Iterator[tuple[list[float], list[float]]]:
    """Of each object the corner and sides of its box, and of circles and ellipses the outline."""
    if table.kind == "boxes":
        rows = zip(*(values.tolist() for values in table.columns.values()), strict=True)
        for x, y, width, height in rows:
            yield [x - width / 2, y - height / 2, width, height], []
        return
    for points in rings_of(table, path):
        across, down = zip(*points, strict=True)
        left, top = min(across), min(down)
        outline = [value for point in points[:-1] for value in point]
        yield [left, top, max(across) - left, max(down) - top], outline


def _area(outline: Sequence[float]) -> float:
    """Of a polygon, by its vertices one after the other."""
    x, y = outline[::2], outline[1::2]
    ends = zip(x, y, [*x[1:], x[0]], [*y[1:], y[0]], strict=True)
    return abs(sum(a * d - c * b for a, b, c, d in ends)) / 2


FORMAT = Format(
    "COCO",
    looks_like_coco,
    read_coco,
    writers=((".coco.json", write_coco),),
    target="coco",
    write=write_coco,
    ending=".json",
)
