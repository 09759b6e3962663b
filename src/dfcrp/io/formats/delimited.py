"""Delimited text: commas, tabs, semicolons, bars or blanks between fields, quoted or not."""

from __future__ import annotations

import contextlib
import csv
import io
import re
import string
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.large_tables import plain_columns
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable, titled_columns
from dfcrp.io.text import decode
from dfcrp.items.checks import quoted, to_numbers

_SPOKEN = {",": "commas", "\t": "tabs", ";": "semicolons", "|": "bars", " ": "blanks"}
"""The delimiters, in order of preference; a blank stands for any run of blanks and tabs."""

_SNIFFED_LINES = 200
#: Separates fields in some files; none of it is read as such, as names of things hold it too.
_STRANGE = "%&$^~!:/\\@*+="
#: A table with more columns is no list of items.
MOST_COLUMNS = 100_000
_RECORDS_AT_A_TIME = 500

_DOUBLE_QUOTED = re.compile(r'(?:^|[,\t;| ])"', re.MULTILINE)
_SINGLE_QUOTED = re.compile(r"(?:^|[,\t;| ])'[^'\n]*'(?=[,\t;| ]|$)", re.MULTILINE)


@dataclass(frozen=True)
class Dialect:
    """How a file separates and quotes its fields."""

    delimiter: str
    quote: str

    def reader(self, lines: Iterator[str], *, strict: bool) -> Iterator[list[str]]:
        """Parse lines, which `tidy` has seen, into lists of fields."""
        return csv.reader(
            lines,
            delimiter=self.delimiter,
            quotechar=self.quote,
            skipinitialspace=True,
            strict=strict,
        )

    def tidy(self, line: str) -> str:
        """Take off blanks at the end; where blanks delimit, also those in front and all tabs."""
        if self.delimiter == " ":
            line = line.replace("\t", " ").lstrip()
        return line.rstrip(" \n") + "\n"


def _anything(_: GivenFile) -> bool:
    """Delimited text has no mark of its own: it says what is wrong with what nobody else claims."""
    return True


def _read(file: GivenFile, _: ReadOptions) -> RawTable:
    return read_delimited(file.name, file.data)


def read_delimited(name: str, data: bytes) -> RawTable:
    """Read delimited text with a header; rows of another width than the header's are refused."""
    text = decode(name, data)
    dialect = sniff(text)
    records = _records(name, text, dialect)
    header = [title.strip() for title in next(records, (0, []))[1]]
    if not header:
        raise InputError(f"{name}: the file is empty; it needs a header and one row per item")
    if (strange := _strange_delimiter(text, dialect)) is not None:
        raise InputError(
            f"{name}, header: its fields, and those of the rows below, are separated by "
            f"{quoted(strange)}, which is not read; separate them by commas, tabs, "
            "semicolons, bars "
            "or blanks"
        )
    if len(header) > MOST_COLUMNS:
        raise InputError(
            f"{name}: the header has {len(header):,} columns, the most is {MOST_COLUMNS:,}; "
            "is every item in a row of its own?"
        )
    large = None
    if dialect.quote == '"':
        large = plain_columns(text, data, dialect.delimiter, header)
    if large is not None:
        return RawTable(name, header, large, range(2, len(large[0]) + 2))
    columns: list[list[str]] = [[] for _ in header]
    rows: list[int] = []
    misfits: list[tuple[int, int]] = []
    # Turned into columns in pieces so small that their lists are gone before Python's garbage
    # collector counts them: twice as fast on a million rows.
    while piece := list(islice(records, _RECORDS_AT_A_TIME)):
        rows += [row for row, _ in piece]
        misfits += [(row, len(fields)) for row, fields in piece if len(fields) != len(header)]
        if not misfits:
            turned = zip(*(fields for _, fields in piece), strict=True)
            for column, cells in zip(columns, turned, strict=True):
                column.extend(cells)
    if misfits:
        whole = len(misfits) == len(rows)
        raise InputError(_misfit_message(name, text, dialect, header, misfits, whole=whole))
    if not rows:
        note = _like_comments(text, dialect, len(header))
        hint = f". {note}" if note else "; add the items"
        raise InputError(f"{name}: there is a header but no row below it{hint}")
    note = "" if _are_numbers(columns[0]) else _like_comments(text, dialect, len(header))
    return RawTable(name, header, columns, rows, note=note)


def _are_numbers(cells: Sequence[str]) -> bool:
    """Whether a column holds numbers, so that what begins with '#' there is a comment."""
    return bool(np.isfinite(to_numbers(cells)).all())


def _like_comments(text: str, dialect: Dialect, width: int) -> str:
    """What to say of rows that begin like comments, and have as many fields as the header."""
    if "\n#" not in text and "\r#" not in text:
        return ""
    found = [
        row
        for row, line in enumerate(_lines(text), 1)
        if line[0] == "#" and row > 1 and width > 1 and _width(line, dialect) == width
    ]
    if not found:
        return ""
    are = "row begins" if len(found) == 1 else "rows begin"
    return (
        f"{len(found):,} {are} with '#' (row {found[0]}) and count as comments, though they have "
        f"as many fields as the header; if they are items, put the first field in quotes"
    )


def _width(line: str, dialect: Dialect) -> int:
    try:
        return len(next(dialect.reader(iter([dialect.tidy(line)]), strict=False), []))
    except csv.Error:
        return 0


def sniff(text: str) -> Dialect:
    """Find the delimiter and quote of a text from its first lines.

    A delimiter must split the header. Of those that do, one that splits most rows into as many
    fields is better, blanks are the last resort, and then agreement and the number of fields count.
    """
    lines = (line for line in _lines(text) if line[0] != "#" and not line.isspace())
    sample = list(islice(lines, _SNIFFED_LINES))
    joined = "".join(sample)
    single = _SINGLE_QUOTED.search(joined) and not _DOUBLE_QUOTED.search(joined)
    dialects = [Dialect(delimiter, "'" if single else '"') for delimiter in _SPOKEN]
    return max(dialects, key=lambda dialect: _fitness(sample, dialect))


def _strange_delimiter(text: str, dialect: Dialect) -> str | None:
    """What separates fields instead of a delimiter: it splits all rows into equally many.

    Blanks, as in names, may be beside it; another delimiter is not.
    """
    lines = (line.strip() for line in _lines(text) if line[0] != "#" and not line.isspace())
    sample = list(islice(lines, _SNIFFED_LINES))
    if len(sample) < 2 or any(one in sample[0] for one in _SPOKEN if one != " "):
        return None
    widths = [_width(line, dialect) for line in sample]
    for mark in _STRANGE:
        counts = {line.count(mark) for line in sample}
        if counts == {1} and mark in ":/=+*\\":
            continue  # times, paths and the like in a single column
        if len(counts) == 1 and counts != {0} and max(widths) <= 1 + min(counts):
            return mark
    return None


def _fitness(sample: Sequence[str], dialect: Dialect) -> tuple[bool, bool, float, int]:
    widths: list[int] = []
    with contextlib.suppress(csv.Error):  # an endless field; the real reading will say so
        for fields in dialect.reader(map(dialect.tidy, sample), strict=False):
            widths.append(len(fields))
    if not widths or widths[0] < 2:
        return False, False, 0.0, 0
    below = widths[1:] or widths
    agreement = sum(width == widths[0] for width in below) / len(below)
    return agreement > 0.5, dialect.delimiter != " ", agreement, widths[0]


def _lines(text: str) -> Iterator[str]:
    """Split at \\n, \\r\\n or \\r and nowhere else; str.splitlines knows ten more."""
    return io.StringIO(text, newline=None)


def _records(name: str, text: str, dialect: Dialect) -> Iterator[tuple[int, list[str]]]:
    """Give each record with the row where it begins.

    A comment or a blank line counts as such only between records: inside quotes it is text.
    """
    start = 0  # the row where the record under way began, 0 between records
    empty = string.whitespace + dialect.delimiter

    def lines() -> Iterator[str]:
        nonlocal start
        for row, line in enumerate(_lines(text), 1):
            if not start:
                if line[0] == "#" or not line.strip(empty):
                    continue
                start = row
            yield dialect.tidy(line)

    try:
        for fields in dialect.reader(lines(), strict=True):
            yield start, fields
            start = 0
    except csv.Error as error:
        if "field limit" in str(error):
            raise InputError(
                f"{name}, row {start}: a field has more than {csv.field_size_limit():,} "
                "characters; correct it, and see that every quote is closed"
            ) from None
        raise InputError(
            f"{name}, row {start}: a quote that opens in this row is not closed where a field "
            "ends; close it, and write a quote inside a quoted field twice"
        ) from None


def _misfit_message(
    name: str,
    text: str,
    dialect: Dialect,
    header: Sequence[str],
    misfits: Sequence[tuple[int, int]],
    *,
    whole: bool,
) -> str:
    row, width = misfits[0]
    line = next(islice(_lines(text), row - 1, None))
    message = f"{name}, row {row}: {width} field{'s' * (width != 1)}, the header has {len(header)}"
    if width < len(header):
        message += f" (nothing for column {quoted(header[width])})"
    other = _delimiter_that_fits(line, dialect, len(header))
    if other:
        message += f"; separate them by {_SPOKEN[dialect.delimiter]} as above, not {_SPOKEN[other]}"
    elif whole and width == len(header) + 1:
        message += (
            ", as in all rows; if the first field is a row number, "
            "give it a name in the header (from R, write with row.names = FALSE)"
        )
    else:
        message += "; look for a missing or extra delimiter or an unquoted name"
    if len(misfits) > 1:
        message += f" (and {len(misfits) - 1} more bad row{'s' * (len(misfits) > 2)})"
    return message


def _delimiter_that_fits(line: str, used: Dialect, width: int) -> str | None:
    for delimiter in _SPOKEN:
        dialect = Dialect(delimiter, used.quote)
        fields: list[str] = next(dialect.reader(iter([dialect.tidy(line)]), strict=False), [])
        if delimiter != used.delimiter and width > 1 and len(fields) == width:
            return delimiter
    return None


def write_delimited(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write commas, or tabs into a .tsv or .txt file, with a header that tells the units."""
    columns = titled_columns(table)
    text = io.StringIO()
    delimiter = "," if path.suffix.lower() == ".csv" else "\t"
    # Quotes around text keep a leading '#' from being read as a comment.
    writer = csv.writer(
        text, delimiter=delimiter, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC
    )
    text.write(delimiter.join(_quoted(title) for title in columns) + "\n")
    writer.writerows(zip(*columns.values(), strict=True))
    return {path: text.getvalue().encode()}


def _quoted(title: str) -> str:
    plain = title.replace("_", "").isalnum()
    return title if plain else '"' + title.replace('"', '""') + '"'


FORMAT = Format(
    "delimited text",
    _anything,
    _read,
    kinds=None,
    writers=((".csv", write_delimited), (".tsv", write_delimited), (".txt", write_delimited)),
)
