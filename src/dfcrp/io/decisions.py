"""A file of decisions: a table with the columns decision and items, and perhaps some more."""

from __future__ import annotations

from pathlib import Path

from dfcrp.io.registry import read_file
from dfcrp.io.tables import ReadOptions
from dfcrp.items.decisions import Decision, check_titles, decision_in


def read_decisions(path: Path) -> tuple[Decision, ...]:
    """All rows, in the order of the file."""
    table, _ = read_file(path.name, path, ReadOptions(kind="records"))
    check_titles(table.header, str(path))
    rows = zip(*table.columns, strict=True)
    return tuple(
        decision_in(dict(zip(table.header, map(str, row), strict=True)), table.where(at))
        for at, row in enumerate(rows)
    )
