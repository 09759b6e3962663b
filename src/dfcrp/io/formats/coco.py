"""COCO JSON: images and annotations in one file; it does not say who drew them."""

from __future__ import annotations

from typing import Any

from dfcrp.io.drawings import Drawings, Origin, as_list, as_object, load_json, text_or_none
from dfcrp.io.tables import RawTable, ReadOptions


def looks_like_coco(data: bytes) -> bool:
    """Whether the keys of a COCO file are there."""
    return b'"images"' in data and b'"annotations"' in data and b'"image_id"' in data


def read_coco(name: str, data: bytes, options: ReadOptions) -> RawTable:
    """Read annotations by their outline, or else by their box.

    For boxes and points it is the other way round: the box of an outline is in the file as well.
    Whoever made the file looked at all of its images.
    """
    content = as_object(load_json(name, data), name)
    images = _names(content.get("images"), "file_name", f"{name}, images")
    labels = _names(content.get("categories") or [], "name", f"{name}, categories")
    marks = Drawings(name, "annotation", options)
    for image in images.values():
        marks.look(image)
    annotations = as_list(content.get("annotations"), f"{name}, annotations")
    for number, raw in enumerate(annotations, 1):
        place = f"{name}, annotation {number}"
        annotation = as_object(raw, place)
        image = text_or_none(annotation.get("image_id")) or "?"
        label = text_or_none(annotation.get("category_id"))
        origin = Origin(
            number,
            image=images.get(image, image),
            label=None if label is None else labels.get(label, label),
            score=annotation.get("score"),
        )
        outline, box = annotation.get("segmentation"), annotation.get("bbox")
        corner_and_sides = box if isinstance(box, list) and len(box) == 4 else None
        if corner_and_sides is not None and options.kind in ("boxes", "points"):
            marks.box(origin, *corner_and_sides)
        elif isinstance(outline, list) and len(outline) == 1:
            flat = as_list(outline[0], f"{place}, segmentation")
            marks.polygon(origin, list(zip(flat[::2], flat[1::2], strict=False)))
        elif isinstance(outline, list) and outline:
            marks.leave(origin, "outline of several parts")
        elif isinstance(outline, dict):
            marks.leave(origin, "mask")
        elif corner_and_sides is not None:
            marks.box(origin, *corner_and_sides)
        else:
            marks.leave(origin, "annotation without outline and box")
    return marks.table()


def _names(entries: Any, key: str, where: str) -> dict[str, str]:
    """The name of each entry by its id."""
    named = {}
    for raw in as_list(entries, where):
        entry = as_object(raw, where)
        number, title = text_or_none(entry.get("id")), text_or_none(entry.get(key))
        if number is not None and title is not None:
            named[number] = title
    return named
