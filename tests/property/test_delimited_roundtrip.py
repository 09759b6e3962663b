"""What is written as delimited text is read back; what is not text is refused politely."""

from __future__ import annotations

import csv
import io
import unicodedata
import warnings
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io import read_markings
from dfcrp.items.items import Items

quick = settings(
    max_examples=150,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

coordinates = st.floats(-1e15, 1e15)
diameters = st.floats(1e-15, 1e15)
# Control characters are refused; lone surrogates cannot be written.
names = (
    st.text(st.characters(exclude_categories=["Cs", "Cc"]), min_size=1, max_size=12)
    .map(str.strip)
    # Names are read in this form of Unicode.
    .map(lambda name: unicodedata.normalize("NFC", name))
    .filter(bool)
)
markings_rows = st.lists(st.tuples(coordinates, coordinates, diameters, names, names), min_size=1)


def read_quietly(path: Path) -> Items:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        return read_markings(path)


def read_or_message(path: Path) -> Items | str:
    try:
        return read_quietly(path)
    except InputError as error:
        return str(error)


@quick
@given(
    rows=markings_rows,
    delimiter=st.sampled_from(",\t;| "),
    ending=st.sampled_from(["\n", "\r\n"]),
    encoding=st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    quoting=st.sampled_from([csv.QUOTE_MINIMAL, csv.QUOTE_NONNUMERIC, csv.QUOTE_ALL]),
    comment=st.sampled_from(["", "# made for a test\n", "\n"]),
)
def test_write_then_read(
    tmp_path: Path,
    rows: list[tuple[float, float, float, str, str]],
    delimiter: str,
    ending: str,
    encoding: str,
    quoting: int,
    comment: str,
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(buffer, delimiter=delimiter, lineterminator=ending, quoting=quoting)
    writer.writerows([("X", "Y", "Diameter", "Observer", "Image"), *rows])
    path = tmp_path / "markings.txt"
    path.write_bytes((comment + buffer.getvalue()).encode(encoding))
    markings = read_quietly(path)
    assert markings.image is not None
    read = zip(
        markings.x.tolist(),
        markings.y.tolist(),
        markings.diameter.tolist(),
        markings.expert.tolist(),
        markings.image.tolist(),
        strict=True,
    )
    assert list(read) == rows


@quick
@given(
    data=st.binary(max_size=300), header=st.sampled_from([b"", b"x,y,d,expert\n", b"x y d user\n"])
)
def test_any_bytes_are_read_or_refused(tmp_path: Path, data: bytes, header: bytes) -> None:
    path = tmp_path / "bytes.csv"
    path.write_bytes(header + data)
    outcome = read_or_message(path)
    assert "bytes.csv" in outcome if isinstance(outcome, str) else len(outcome) > 0


good_rows = st.tuples(*[st.sampled_from(["1", "2.5", " 7e1"])] * 3, st.sampled_from(["A", "B C"]))
odd_cell = st.sampled_from(
    ["1", "0", "-2", "nan", "1,5", "", " ", "A", "#", '"', '"A"', "'", "\u2028"]
)
odd_rows = st.lists(odd_cell, max_size=6)
endings = st.sampled_from(["\n", "\r\n", "\r", "\n\n", "\n# note\n"])


@quick
@given(
    rows=st.lists(st.tuples(good_rows | good_rows | good_rows | odd_rows, endings), max_size=6),
    delimiter=st.sampled_from(",\t;|"),
)
def test_no_row_is_lost(
    tmp_path: Path, rows: list[tuple[tuple[str, ...] | list[str], str]], delimiter: str
) -> None:
    """Every line below the header is a marking, blank, or a comment, or the file is refused."""
    text = "".join(delimiter.join(cells) + ending for cells, ending in rows)
    path = tmp_path / "nearly.csv"
    header = delimiter.join(["x", "y", "d", "expert"])
    path.write_bytes(f"{header}\n{text}".encode())
    outcome = read_or_message(path)
    if isinstance(outcome, str):
        assert "nearly.csv" in outcome
    else:
        lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
        data = [line for line in lines if line.strip(" " + delimiter) and line[0] != "#"]
        assert len(outcome) == len(data)
