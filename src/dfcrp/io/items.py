"""Items that are no circles, from delimited files."""

from __future__ import annotations

import csv
import hashlib
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.config import RecordSettings
from dfcrp.errors import InputError
from dfcrp.io.columns import did_you_mean, listed
from dfcrp.markings import Items, Source
from dfcrp.measurements import Measurements
from dfcrp.records import Records
from dfcrp.shapes import SHAPES

#: Names of the column that says whose list a row is on, in small letters.
EXPERT_NAMES = ("expert", "observer", "annotator", "source", "detector", "list", "file", "user")
ID_NAMES = ("id", "rec_id", "record", "marking")
DELIMITERS = ",;\t|"
PathLike = str | Path


def read_items(
    paths: PathLike | Sequence[PathLike],
    likelihood: str,
    *,
    expert: str | None = None,
    records: RecordSettings | None = None,
) -> Items:
    """Read points, boxes, ellipses, rows of numbers or records from files with a header line.

    ``expert`` names the column that says whose list a row is on (found by its usual names); several
    files without one are a source each. An id column is kept; of shapes other columns are left
    aside, of other kinds every column counts.
    """
    files = [Path(p) for p in ([paths] if isinstance(paths, str | Path) else paths)]
    tables = [_read(path) for path in files]
    columns, families = _join(files, tables, expert)
    sources = tuple(
        Source(str(path), digest, rows, rows)
        for path, (_, digest, rows) in zip(files, tables, strict=True)
    )
    known = {name.lower(): name for name in columns}
    name = next((known[n] for n in ID_NAMES if n in known), None)
    ids = columns.pop(name) if name is not None else None
    if ids is not None and len(set(ids)) < len(ids):
        raise InputError(f"column {name!r}: ids must differ; rename it if it is a field")
    items: Items
    if likelihood == "records":
        settings = records or RecordSettings()
        items = Records.from_columns(
            columns, families, kinds=settings.kinds, keys=settings.split_keys, id=ids
        )
    else:
        names = _wanted(columns, likelihood)
        items = Measurements.from_arrays(
            np.column_stack([_numbers(name, columns[name], files) for name in names]),
            families,
            likelihood=likelihood,
            columns=[name.lower() for name in names] if likelihood in SHAPES else names,
            id=ids,
        )
    return replace(items, sources=sources)


def _read(path: Path) -> tuple[dict[str, list[str]], str, int]:
    """Columns by name, a hash of the file, and the number of rows."""
    try:
        content = path.read_bytes()
        text = content.decode("utf-8-sig")
        first_line = text.partition("\n")[0]
        delimiter = max(DELIMITERS, key=first_line.count)
        reader = csv.reader(text.splitlines(), delimiter=delimiter, skipinitialspace=True)
        header, *rows = reader
    except OSError as error:
        raise InputError(f"{path}: cannot be read: {error.strerror}") from None
    except (UnicodeDecodeError, csv.Error, ValueError) as error:
        raise InputError(f"{path}: is no table with a header line: {error}") from None
    rows = [row for row in rows if row]
    names = [name.strip() for name in header]
    for number, row in enumerate(rows, start=2):
        if len(row) != len(names):
            raise InputError(
                f"{path}, line {number}: {len(row)} values under {len(names)} column names"
            )
    if not rows:
        raise InputError(f"{path}: has no rows")
    columns = {name: [row[at].strip() for row in rows] for at, name in enumerate(names)}
    return columns, hashlib.sha256(content).hexdigest(), len(rows)


def _join(
    files: list[Path], tables: list[Any], expert: str | None
) -> tuple[dict[str, list[str]], list[str]]:
    """The files one below the other, and whose list each row is on."""
    first = tables[0][0]
    for path, (columns, _, _) in zip(files, tables, strict=True):
        if list(columns) != list(first):
            raise InputError(f"{path}: its columns are {listed(list(columns))}, not those before")
    if expert is not None and expert not in first:
        raise InputError(f"no column {expert!r}{did_you_mean(expert, list(first))}")
    known = {name.lower(): name for name in first}
    expert = expert or next((known[n] for n in EXPERT_NAMES if n in known), None)
    joined = {name: [cell for table in tables for cell in table[0][name]] for name in first}
    if expert is not None:
        return joined, joined.pop(expert)
    if len(files) == 1:
        raise InputError(
            f"{files[0]}: no column says whose list a row is on; name it expert, or give one file "
            "for each list"
        )
    owners = zip(files, tables, strict=True)
    return joined, [path.stem for path, table in owners for _ in range(table[2])]


def _wanted(columns: dict[str, list[str]], likelihood: str) -> list[str]:
    """The columns of a shape, whatever their case; else all."""
    if likelihood not in SHAPES:
        return list(columns)
    known = {name.lower(): name for name in columns}
    wanted = SHAPES[likelihood].columns
    missing = [name for name in wanted if name not in known]
    if missing:
        raise InputError(
            f"{likelihood} need the columns {', '.join(wanted)}; {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing among {listed(list(columns))}"
        )
    return [known[name] for name in wanted]


def _numbers(name: str, cells: list[str], files: list[Path]) -> Any:
    try:
        return np.array(cells, dtype=np.float64)
    except ValueError:
        row = next(at for at, cell in enumerate(cells) if not _is_number(cell))
        raise InputError(
            f"{files[0] if len(files) == 1 else 'row ' + str(row + 1) + ' of all files'}, row "
            f"{row + 1}, column {name!r}: {cells[row]!r} is no number"
        ) from None


def _is_number(cell: str) -> bool:
    try:
        float(cell)
    except ValueError:
        return False
    return True
