"""Items that are no circles, from delimited files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.io.candidates import read_candidates
from dfcrp.io.columns import did_you_mean, listed
from dfcrp.io.item_columns import CORNERS, by_corners, recognise_items, refuse_missing
from dfcrp.io.item_tables import Table, join_tables, read_table
from dfcrp.items.items import Items
from dfcrp.items.site import Source
from dfcrp.likelihoods.normal.shapes import SHAPES
from dfcrp.likelihoods.record.settings import RecordSettings

PathLike = str | Path
Floats = NDArray[np.float64]


def read_items(
    paths: PathLike | Sequence[PathLike],
    likelihood: str,
    *,
    columns: dict[str, str] | None = None,
    image: str | None = None,
    exclude_experts: Sequence[str] = (),
    records: RecordSettings | None = None,
    candidates: PathLike | None = None,
) -> Items:
    """Read points, boxes, ellipses, rows of numbers or records from files with a header line.

    ``columns`` says which column plays which role where the names do not tell: expert (whose list
    a row is on; several files without such a column are a source each), id, and of shapes x, y and
    so on, and image, of which ``image`` picks one. Of shapes other columns are left aside, of other
    kinds every column counts. ``candidates`` is a file with the pairs of ids that may share an
    object, a pair in each row; all others may not.
    """
    files = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    read = [read_table(path) for path in files]
    whole = join_tables(files, [table for table, _ in read])
    header, where = list(whole.columns), str(files[0])
    found = recognise_items(header, likelihood, columns or {}, where)
    if likelihood in SHAPES:
        refuse_missing(found, header, likelihood, where)
    experts = _experts(whole, found.get("expert"), files)
    kept = _kept(whole, found.get("image"), image, experts, exclude_experts)
    table, experts = whole.select(kept), [experts[at] for at in kept]
    ids = _ids(table, found.get("id"))
    pairs = None if candidates is None else read_candidates(Path(candidates), whole, table, found)
    counts = {path: table.files.count(path) for path in set(files)}
    sources = tuple(
        Source(str(path), digest, len(part.rows), counts[path])
        for path, (part, digest) in zip(files, read, strict=True)
    )
    if likelihood == "records":
        described = {n: c for n, c in table.columns.items() if n not in found.values()}
    else:
        names, values = _numbers(table, likelihood, found)
        described = dict(zip(names, values.T, strict=True))
    items = Items.from_columns(described, experts, kind=likelihood, id=ids, candidates=pairs)
    return replace(items, sources=sources)


def _experts(table: Table, column: str | None, files: list[Path]) -> list[str]:
    """Whose list each row is on."""
    if column is not None:
        names = table.columns[column]
        if "" in names:
            where = table.where(names.index(""))
            raise InputError(f"{where}, column {column!r}: it must say whose list the row is on")
        return names
    if len(files) == 1:
        raise InputError(
            f"{files[0]}: no column says whose list a row is on, among "
            f"{listed(list(table.columns))}; name it with --columns expert=NAME, or give one file "
            "for each list"
        )
    return [path.stem for path in table.files]


def _kept(
    table: Table,
    column: str | None,
    image: str | None,
    experts: list[str],
    excluded: Sequence[str],
) -> list[int]:
    """Rows of the image asked for, by experts who are not left out."""
    kept = list(range(len(experts)))
    images = table.columns[column] if column is not None else [""] * len(experts)
    if image is not None:
        if image not in images:
            raise InputError(f"no image is called {image!r}{did_you_mean(image, images)}")
        kept = [at for at in kept if images[at] == image]
    elif len(set(images)) > 1:
        raise InputError(
            f"column {column!r} names {len(set(images))} images ({listed(sorted(set(images)))}); "
            "items that are no circles are fitted one image at a time: choose it with --image NAME"
        )
    for name in excluded:
        if name not in experts:
            raise InputError(f"no expert is called {name!r}{did_you_mean(name, experts)}")
    kept = [at for at in kept if experts[at] not in excluded]
    if not kept:
        raise InputError("every row is by an excluded expert; exclude fewer")
    return kept


def _ids(table: Table, column: str | None) -> list[str] | None:
    if column is None:
        return None
    ids = table.columns[column]
    if len(set(ids)) < len(ids):
        first: dict[str, int] = {}
        row = next(at for at, name in enumerate(ids) if first.setdefault(name, at) != at)
        raise InputError(
            f"{table.where(row)}, column {column!r}: the id {ids[row]!r} is there already; ids "
            "must differ (--columns id= leaves the column aside)"
        )
    return ids


def _numbers(table: Table, likelihood: str, found: dict[str, str]) -> tuple[list[str], Floats]:
    """Names and numbers of the columns that describe an item."""
    if likelihood not in SHAPES:
        names = [name for name in table.columns if name not in found.values()]
        if not names:
            raise InputError(
                f"{table.files[0]}: has no column that describes an item, among "
                f"{listed(list(table.columns))}; add one, or name the others with --columns"
            )
        return names, np.column_stack([_column(table, name) for name in names])
    shape = SHAPES[likelihood]
    if likelihood == "boxes" and by_corners(found):
        left, top, right, bottom = (_column(table, found[role]) for role in CORNERS)
        values = np.column_stack(
            [(left + right) / 2.0, (top + bottom) / 2.0, right - left, bottom - top]
        )
    else:
        values = np.column_stack([_column(table, found[role]) for role in shape.columns])
    for role in shape.positive:
        at = shape.columns.index(role)
        bad = np.flatnonzero(values[:, at] <= 0.0)
        if bad.size:
            raise InputError(
                f"{table.where(int(bad[0]))}: the {role} is {values[bad[0], at]:g}; it must be "
                "above zero"
            )
    return list(shape.columns), values


def _column(table: Table, name: str) -> Floats:
    cells = table.columns[name]
    try:
        numbers = np.array(cells, dtype=np.float64)
    except ValueError:
        row = next(at for at, cell in enumerate(cells) if not _is_number(cell))
    else:
        if np.isfinite(numbers).all():
            return numbers
        row = int(np.flatnonzero(~np.isfinite(numbers))[0])
    what = "is empty" if not cells[row] else f"{cells[row]!r} is no number"
    raise InputError(f"{table.where(row)}, column {name!r}: {what}; fill it in, or drop the row")


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
