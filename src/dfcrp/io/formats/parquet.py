"""Parquet tables, through pyarrow where it is installed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable, titled_columns
from dfcrp.memory import refuse_more_than_memory

#: Bytes that a value takes on its way: in Arrow, as an object of Python, and as an array.
BYTES_PER_VALUE = 150


def looks_like_parquet(file: GivenFile) -> bool:
    """Whether the file has Parquet's first bytes, or its name."""
    return file.data[:4] == b"PAR1" or file.path.suffix.lower() == ".parquet"


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


def read_parquet(file: GivenFile, _: ReadOptions) -> RawTable:
    """Read all columns of single values; rows count from 1."""
    name = file.name
    pyarrow = _pyarrow(name)
    try:
        about = pyarrow.parquet.read_metadata(pyarrow.BufferReader(file.data))
        # A file of a few kB may hold any number of equal rows.
        refuse_more_than_memory(
            BYTES_PER_VALUE * about.num_rows * about.num_columns,
            f"{name}: a table of {about.num_rows:,} rows and {about.num_columns:,} columns",
            "split the file by image, or leave columns out of it",
        )
        read = pyarrow.parquet.read_table(pyarrow.BufferReader(file.data), use_threads=False)
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


FORMAT = Format(
    "Parquet",
    looks_like_parquet,
    read_parquet,
    kinds=None,
    writers=((".parquet", write_parquet),),
)
