"""Delimited tables of items that are no circles, row by row with the place of each."""

from __future__ import annotations

import csv
import hashlib
import io
from dataclasses import dataclass
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.columns import listed

DELIMITERS = ",;\t|"


@dataclass(frozen=True)
class Table:
    """The rows of one file or several, one below the other."""

    columns: dict[str, list[str]]
    #: File and row within it, of each row.
    files: list[Path]
    rows: list[int]

    def where(self, row: int) -> str:
        """The place of a row, for messages."""
        return f"{self.files[row]}, row {self.rows[row]}"

    def select(self, kept: list[int]) -> Table:
        """Some of the rows."""
        columns = {name: [cells[at] for at in kept] for name, cells in self.columns.items()}
        return Table(columns, [self.files[at] for at in kept], [self.rows[at] for at in kept])


def read_table(path: Path) -> tuple[Table, str]:
    """The table of a file, and a hash of it."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
        delimiter = max(DELIMITERS, key=text.partition("\n")[0].count)
        lines = io.StringIO(text, newline="")
        header, *rows = csv.reader(lines, delimiter=delimiter, skipinitialspace=True)
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"{path}: is no table with a header line: {error}") from None
    names = [name.strip() for name in header]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice is not None:
        raise InputError(f"{path}: column {twice!r} is there several times; rename the others")
    rows = [row for row in rows if row]
    for number, row in enumerate(rows, start=1):
        if len(row) != len(names):
            raise InputError(
                f"{path}, row {number}: {len(row)} values under {len(names)} column names"
            )
    if not rows:
        raise InputError(f"{path}: has no rows")
    columns = {name: [row[at].strip() for row in rows] for at, name in enumerate(names)}
    numbers = list(range(1, len(rows) + 1))
    return Table(columns, [path] * len(rows), numbers), hashlib.sha256(content).hexdigest()


def join_tables(files: list[Path], tables: list[Table]) -> Table:
    """The files one below the other."""
    first = tables[0].columns
    for path, table in zip(files, tables, strict=True):
        if list(table.columns) != list(first):
            raise InputError(
                f"{path}: its columns are {listed(list(table.columns))}, but those of {files[0]} "
                f"are {listed(list(first))}"
            )
    return Table(
        {name: [cell for table in tables for cell in table.columns[name]] for name in first},
        [path for table in tables for path in table.files],
        [row for table in tables for row in table.rows],
    )
