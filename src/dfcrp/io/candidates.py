"""Pairs of items that may share an object, from a file of the user's own."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.io.columns import did_you_mean, listed
from dfcrp.io.item_tables import Table, read_table


def read_candidates(
    path: Path, whole: Table, kept: Table, roles: dict[str, str]
) -> NDArray[np.int64]:
    """Pairs of positions in ``kept``, (m, 2), from a file whose two columns are ids.

    Ids that are nowhere in ``whole`` are refused; pairs with an item that was left out of ``kept``
    say nothing and are dropped.
    """
    name = roles.get("id")
    if name is None:
        raise InputError(
            f"{path}: its pairs name items by their ids, but no column of the items has ids; name "
            "it with --columns id=NAME"
        )
    table, _ = read_table(path)
    if len(table.columns) != 2:
        raise InputError(
            f"{path}: needs two columns, the ids of a pair in each row; it has "
            f"{len(table.columns)}: {listed(list(table.columns))}"
        )
    known = set(whole.columns[name])
    for column, cells in table.columns.items():
        for row, cell in enumerate(cells):
            if cell not in known:
                # Comparing with very many ids would take longer than reading them.
                near = did_you_mean(cell, sorted(known)[:10_000])
                raise InputError(
                    f"{table.where(row)}, column {column!r}: no item has the id {cell!r}{near}"
                )
    place = {one: at for at, one in enumerate(kept.columns[name])}
    pairs = [
        (place[first], place[second])
        for first, second in zip(*table.columns.values(), strict=True)
        if first in place and second in place
    ]
    return np.array(pairs, dtype=np.int64).reshape(-1, 2)
