"""Pairs of items that a file names by their ids: only these may share a cluster."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, did_you_mean
from dfcrp.io.registry import read_file
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable
from dfcrp.items.checks import quoted, to_names
from dfcrp.items.columns import quoted_names
from dfcrp.items.items import Items


def read_pairs(path: Path, parts: Sequence[ReadTable], items: Items) -> NDArray[np.int64]:
    """Pairs of rows, (m, 2), from a file whose two columns are ids.

    With several files an id may be given as in its file, or with the file's name before it.
    """
    if any("id" not in part.about for part in parts):
        raise InputError(
            f"{path}: its pairs name items by their ids, but no column of the items has ids; name "
            "it with --columns id=NAME"
        )
    table, _ = read_file(path.name, path, ReadOptions(kind="records"))
    if len(table.header) != 2:
        raise InputError(
            f"{path}: needs two columns, the ids of a pair in each row; it has "
            f"{len(table.header)}: {quoted_names(table.header)}"
        )
    rows = _rows_by_id(parts, items)
    found = [
        [_row(rows, table, column, record, name) for record, name in enumerate(to_names(cells))]
        for column, cells in enumerate(table.columns)
    ]
    return np.array(found, dtype=np.int64).T.reshape(-1, 2)


def _rows_by_id(parts: Sequence[ReadTable], items: Items) -> dict[str, int]:
    """The row of every id, also without the name of its file; -1 where several files have it."""
    bare = [name for part in parts for name in part.about["id"]]
    rows: dict[str, int] = {}
    for row, name in enumerate(bare):
        rows[name] = -1 if name in rows else row
    return rows | {name: row for row, name in enumerate(items.id.tolist())}


def _row(rows: dict[str, int], table: RawTable, column: int, record: int, name: str) -> int:
    row = rows.get(name)
    if row is not None and row >= 0:
        return row
    where = f"{table.where(record)}, column {quoted(table.header[column])}"
    if row is None:
        # Comparing with very many ids would take longer than reading them.
        near = did_you_mean(name, sorted(rows)[:10_000])
        raise InputError(f"{where}: no item has the id {quoted(name)}{near}")
    raise InputError(
        f"{where}: several files have an item {quoted(name)}; write the file's name before it, as "
        f"in FILE.csv:{name}"
    )
