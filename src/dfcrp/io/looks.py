"""Who looked at which image, or part of it: from a table, GeoJSON, or what the exports say."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import numpy as np

from dfcrp.errors import InputError
from dfcrp.io.images import naming
from dfcrp.io.registry import PathLike, bytes_of, read_file
from dfcrp.io.tables import ReadOptions, ReadTable
from dfcrp.io.text import as_object, load_json, text_or_none
from dfcrp.items.checks import bad_names, to_names, why_not_name
from dfcrp.items.columns import ABOUT, ABOUT_ELSE, plain, quoted_names
from dfcrp.items.footprints import Footprint, footprint_columns, footprints_in, read_footprint
from dfcrp.items.image_names import composed
from dfcrp.items.items import Items
from dfcrp.items.looks import Looked, looks_given, looks_in_rows


def read_looked(path: PathLike) -> Looked:
    """Who looked at which image, or part of it, from a table or a GeoJSON file.

    A table has the columns image and expert; features of GeoJSON have these properties.
    """
    file = Path(path)
    if file.suffix.lower() in (".geojson", ".json"):
        return _looked_geojson(file)
    table, _ = read_file(file.name, file, ReadOptions(kind="records"))
    found: dict[str, list[str]] = {}
    for role in ("image", "expert"):
        names = ABOUT[role] | ABOUT_ELSE.get(role, frozenset())
        at = [k for k, title in enumerate(table.header) if plain(title) in names]
        if len(at) == 1:
            found[role] = to_names(table.columns[at[0]])
        elif at or role == "expert":
            what = "several columns" if at else "no column"
            raise InputError(
                f"{file}, header: {what} for {role}; it needs one called image and one called "
                f"expert, and has {quoted_names(table.header)}"
            )
    for role, names_given in found.items():
        for record in bad_names(names_given)[:1]:
            name = names_given[record]
            why = why_not_name(role, name) if name else "it is empty; fill it in"
            raise InputError(f"{table.where(record)}, column {role}: {why}")
    chosen = footprint_columns(table.header, f"{file}, header")
    cells = {role: list(table.columns[table.header.index(name)]) for role, name in chosen.items()}
    parts = (
        footprints_in(
            cells, lambda row, column: f"{table.where(row)}, column {chosen.get(column, column)}"
        )
        if cells
        else []
    )
    images = found.get("image") or [""] * len(found["expert"])
    return looks_in_rows(list(zip(images, found["expert"], strict=True)), parts)


def _looked_geojson(file: Path) -> Looked:
    """A feature for each look, with the properties image and expert."""
    content = as_object(load_json(str(file), bytes_of(str(file), file)), str(file))
    rows: list[tuple[str, str]] = []
    parts: list[Footprint | None] = []
    features = content.get("features")
    if not isinstance(features, list):
        raise InputError(
            f"{file}: looks in GeoJSON are a FeatureCollection; each feature has a polygon and the "
            "properties image and expert"
        )
    for number, feature in enumerate(features, 1):
        where = f"{file}, feature {number}"
        one = as_object(feature, where)
        properties = as_object(one.get("properties") or {}, f"{where}, properties")
        image, expert = (_property(properties, role, where) for role in ("image", "expert"))
        rows.append((image, expert))
        parts.append(read_footprint(one.get("geometry"), where))
    return looks_in_rows(rows, parts)


def _property(properties: dict[str, object], role: str, where: str) -> str:
    names = ABOUT[role] | ABOUT_ELSE.get(role, frozenset())
    values = [value for title, value in properties.items() if plain(title) in names]
    if role == "expert" and len(values) != 1:
        raise InputError(f"{where}: it needs one property called expert")
    name = (text_or_none(values[0]) if values else None) or ""
    if len(bad_names([name])) and (name or role == "expert"):
        why = why_not_name(role, name) if name else "it is empty; fill it in"
        raise InputError(f"{where}, property {role}: {why}")
    return name


def kept_looks(
    table: ReadTable,
    looked: object,
    items: Items,
    image: str | Sequence[str] | None,
    exclude_experts: str | Sequence[str],
) -> Looked | None:
    """Who looked where, after the filters; None if nothing says it."""
    if looked is None:
        known = [(name, expert) for name, expert in table.looked if expert is not None]
        if not known or items.image is None:
            return None
        given = looks_given(known)
    elif isinstance(looked, (str, os.PathLike)):
        given = read_looked(looked)
    else:
        given = looks_given(looked)
    if looked is not None and "image" in table.about:
        given = _as_items_are_called(table, given)
    if image is not None:
        kept = [image] if isinstance(image, str) else list(image)
        given = given.select(np.isin(given.pairs[:, 0], ["", *kept]))
    excluded = [exclude_experts] if isinstance(exclude_experts, str) else exclude_experts
    excluded = [composed(name) for name in excluded]
    return given.select(~np.isin(given.pairs[:, 1], excluded))


def _as_items_are_called(table: ReadTable, given: Looked) -> Looked:
    """The same looks, with images called as those of the items are."""
    name_of = naming(table)
    pairs = [(name_of(image), expert) for image, expert in given.pairs.tolist()]
    parts = {(name_of(image), who): one for (image, who), one in given.footprints.items()}
    if len(set(pairs)) < len(pairs) and parts:
        raise InputError(
            "looked names an image in several ways, with footprints; name it in one way"
        )
    return Looked(np.array(sorted(set(pairs)), dtype=np.str_).reshape(-1, 2), parts)
