"""Large tables of plain text, through the parser of pandas: by column, without lists of rows.

A table is plain if nothing in it needs the rules of ``io.formats.delimited``: no quotes, comments,
empty rows or blanks at the ends of lines, and the same number of fields in every row. Any other is
left to that, which also says what is wrong with it.
"""

from __future__ import annotations

import io
from collections.abc import Sequence
from functools import lru_cache
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.checks import to_numbers
from dfcrp.items.coded import CodedColumn, NumberColumn
from dfcrp.values import Json

#: Smaller files are read row by row, in a moment.
LARGE_BYTES = 4_000_000
#: Rows by which a column is known for one of names or of numbers.
SAMPLE = 1_000
#: The share of different cells among them from which a column is not coded.
MOSTLY_DIFFERENT = 0.5
#: Bytes whose rows are counted at a time, and the longest row of a plain table.
CHUNK, LONGEST_ROW = 1 << 24, 50_000
#: What has a meaning of its own in some tables.
SPECIAL = ('"', "\n\n", "\n#", "\n ", " \n", "\r")

#: How a column is kept.
CODED, NUMBERS, TEXT = "coded", "numbers", "text"
Column = CodedColumn | NumberColumn | list[str]


def plain_columns(
    text: str, data: bytes, delimiter: str, header: Sequence[str]
) -> list[Column] | None:
    """The columns below the header in the first line, if it is a large plain table; else None.

    ``data`` is the file that the text was in.
    """
    if len(text) < LARGE_BYTES or len(header) < 2 or delimiter not in ",;|\t":
        return None
    if "\r" in text:
        text = text.replace("\r\n", "\n")
    if text[0] in "#\n " or any(mark in text for mark in (*SPECIAL, f"\n{delimiter}")):
        return None
    if len(data) != len(text) or not text.isascii():
        data = text.encode()
    if not _same_width(data, delimiter, len(header)):
        return None
    try:
        return _read(data, delimiter, len(header))
    except (ValueError, OverflowError):
        # Something further down is no number, or no text that pandas reads.
        return None


def _same_width(data: bytes, delimiter: str, width: int) -> bool:
    """Whether every row has as many fields as the header, and none is endless."""
    whole = np.frombuffer(data, np.uint8)
    start = 0
    while start < len(whole):
        end = len(data)
        if start + CHUNK < len(data):
            end = data.rfind(b"\n", start, start + CHUNK) + 1
        part = whole[start:end]
        if not part.size:
            return False
        begins = np.flatnonzero(part[:-1] == ord("\n")) + 1
        begins = np.concatenate([[0], begins])
        found = np.add.reduceat(part == ord(delimiter), begins, dtype=np.int64)
        if (found != width - 1).any() or np.diff(begins, append=len(part)).max() > LONGEST_ROW:
            return False
        start = end
    return True


def _read(data: bytes, delimiter: str, width: int) -> list[Column]:
    """Each column as its first rows suggest."""
    lines = io.StringIO(data[: SAMPLE * LONGEST_ROW].decode(errors="replace"), newline="\n")
    rows = [line.rstrip("\n").split(delimiter) for line in islice(lines, 1, SAMPLE + 1)]
    kinds = [
        _kind([row[at].lstrip(" ") for row in rows if len(row) == width]) for at in range(width)
    ]
    table = _parsed(data, delimiter, dict(enumerate(kinds)))
    return [_column(table, data, delimiter, at, kind) for at, kind in enumerate(kinds)]


def _kind(cells: list[str]) -> str:
    """How a column that begins so is kept."""
    if len(set(cells)) <= MOSTLY_DIFFERENT * len(cells):
        return CODED
    return NUMBERS if np.isfinite(to_numbers(cells)).all() else TEXT


def _parsed(data: bytes, delimiter: str, kinds: dict[int, str]) -> Any:
    """Columns by their number; cells are as they are, also those that pandas takes for missing."""
    import csv

    import pandas

    # Equal cells are one object; a categorical dtype would take "007" for 7.
    given: dict[int, Any] = {at: float if kind == NUMBERS else object for at, kind in kinds.items()}
    return pandas.read_csv(
        io.BytesIO(data),
        sep=delimiter,
        header=None,
        skiprows=1,
        usecols=list(given),
        dtype=given,
        na_filter=False,
        skipinitialspace=True,
        quoting=csv.QUOTE_NONE,
        **_all_digits(pandas.__version__),
    )


def _all_digits(version: str) -> Json:
    """What has pandas read numbers as Python does; later versions always do, and do not like it."""
    major, minor = map(int, version.split(".")[:2])
    return {} if (major, minor) >= (3, 1) else {"float_precision": "round_trip"}


def _column(table: Any, data: bytes, delimiter: str, at: int, kind: str) -> Column:
    import pandas

    found = table[at]
    if kind == TEXT:
        return list(found)
    if kind == CODED:
        codes, words = pandas.factorize(found)
        return CodedColumn(codes.astype(np.int32), list(words))

    @lru_cache(maxsize=1)
    def read() -> Sequence[str]:
        return list(_parsed(data, delimiter, {at: TEXT})[at])

    numbers: NDArray[np.float64] = found.to_numpy()
    return NumberColumn(numbers, read)
