"""Parquet tables, through pyarrow where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.tables import RawTable, ReadTable
from dfcrp.io.writing import titled_columns

#: A file of a few kB may claim any number of equal rows.
MOST_ROWS = 50_000_000


def looks_like_parquet(path: Path, data: bytes) -> bool:
    """Whether the file has Parquet's first bytes, or its name."""
    return data[:4] == b"PAR1" or path.suffix.lower() == ".parquet"


def _pyarrow(place: str) -> Any:
    """This is the one home of pyarrow."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            f"{place}: Parquet needs pyarrow; install it with: pip install 'dfcrp[parquet]'"
        ) from None
    return pyarrow


def read_parquet(name: str, data: bytes) -> RawTable:
    """Read all columns of single values; rows count from 1."""
    pyarrow = _pyarrow(name)
    try:
        rows = pyarrow.parquet.read_metadata(pyarrow.BufferReader(data)).num_rows
        if rows > MOST_ROWS:
            raise InputError(
                f"{name}: {rows:,} rows, more than the {MOST_ROWS:,} that are read; split the file"
            )
        read = pyarrow.parquet.read_table(pyarrow.BufferReader(data), use_threads=False)
        columns = [column.to_pylist() for column in read.columns]
    except (pyarrow.ArrowException, OSError, ValueError, OverflowError, MemoryError) as error:
        reason = str(error).splitlines()[0][:200] if str(error) else type(error).__name__
        raise InputError(f"{name}: not a Parquet file ({reason}); write it again") from None
    if not read.num_rows:
        raise InputError(f"{name}: the table has no rows; add the items")
    return RawTable(name, read.column_names, columns, range(1, read.num_rows + 1))


def write_parquet(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write a table with the titles of our CSV files."""
    pyarrow = _pyarrow(str(path))
    buffer = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(titled_columns(table)), buffer)
    return {path: buffer.getvalue().to_pybytes()}
