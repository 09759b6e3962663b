"""COCO JSON: images and annotations in one file, or a detector's results alone.

COCO itself does not say who drew an annotation; tools add it under one of several names. Results
are a list of annotations, whose images have numbers and no names.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import Drawings, Origin
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable, only_one_list
from dfcrp.io.text import as_list, as_object, load_json, text_or_none
from dfcrp.items.checks import quoted, to_names

#: Where an annotation's score comes from: the first of these columns that a catalogue has.
SCORES = ("p_real", "p_consensus")
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


def _person(annotations: Sequence[dict[str, Any]]) -> str | None:
    """The field that names who made an annotation, if all have it."""
    for key in PERSONS:
        if annotations and all(_named(one.get(key)) is not None for one in annotations):
            return key
    return None


def _named(person: Any) -> str | None:
    """A name or number, also of a person with several fields."""
    if isinstance(person, dict):
        told = (person.get(key) for key in ("username", "name", "email", "id"))
        return next((text for one in told if (text := text_or_none(one))), None)
    return text_or_none(person)


def _images(entries: Any, where: str, marks: Drawings) -> dict[str | None, str]:
    """What stands for each image, by its number."""
    found: dict[str | None, str] = {}
    for at, raw in enumerate(as_list(entries, where), 1):
        entry = as_object(raw, where)
        number = text_or_none(entry.get("id"))
        path = text_or_none(entry.get("file_name")) or number
        image = marks.image(path, number=number, size=(entry.get("width"), entry.get("height")))
        if number is None or image is None:
            raise InputError(f"{where}: entry {at} has no id; export the file again")
        if found.setdefault(number, image) != image:
            raise InputError(
                f"{where}: entry {at} has the id {quoted(number)}, as {quoted(found[number])} has: "
                "the image of an annotation cannot be told; give each image a number of its own"
            )
    return found


def _names(entries: Any, key: str, where: str) -> dict[str, str]:
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
    """Write boxes as annotations; the other columns are fields of them.

    The score is the probability that the object is real, or else that of a consensus. Images are
    those with a box: a catalogue names no others, and does not know how large images are.
    """
    if table.kind != "boxes":
        raise InputError(f"{path}: COCO files are written of boxes; these are {table.kind}")
    only_one_list(table, path)
    extra = table.typed_extra()
    count = len(table)
    drawn_on = table.about.get("image")
    names = ["image"] * count if drawn_on is None else to_names(drawn_on)
    told = table.about.get("category", extra.pop("category", None))
    labels = ["object"] * count if told is None else to_names(told)
    image_ids = {name: number for number, name in enumerate(sorted(set(names)), 1)}
    label_ids = {name: number for number, name in enumerate(sorted(set(labels)), 1)}
    score = next((extra[title] for title in SCORES if title in extra), None)
    sides = (table.columns[role].tolist() for role in ("x", "y", "width", "height"))
    annotations = []
    for at, (x, y, width, height) in enumerate(zip(*sides, strict=True)):
        annotation = {
            "id": at + 1,
            "image_id": image_ids[names[at]],
            "category_id": label_ids[labels[at]],
            "bbox": [x - width / 2, y - height / 2, width, height],
            "area": width * height,
            "iscrowd": 0,
        }
        if score is not None:
            annotation["score"] = score[at]
        annotations.append(annotation | {title: cells[at] for title, cells in extra.items()})
    whole = {
        "info": {"description": "Written by dfcrp"},
        "images": [{"id": number, "file_name": name} for name, number in image_ids.items()],
        "categories": [{"id": number, "name": name} for name, number in label_ids.items()],
        "annotations": annotations,
    }
    return {path: (json.dumps(whole, indent=1) + "\n").encode()}


FORMAT = Format("COCO", looks_like_coco, read_coco, writers=((".coco.json", write_coco),))
