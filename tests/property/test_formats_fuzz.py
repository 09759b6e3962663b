"""Damaged files: every reader gives items of the kind asked for or an InputError, and soon."""

from __future__ import annotations

import time
import warnings
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import format_samples as samples
import interval_samples
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io import read_table
from dfcrp.io.tables import ReadOptions

SECONDS = 5.0
KINDS = ("circles", "points", "boxes", "ellipses", "records", "intervals")
ALL = ReadOptions(boxes=True, point_diameter=1.0, body_radius_km=1737.4)

fuzzing = settings(
    max_examples=60,
    derandomize=True,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)

# What readers may stumble over, where a valid piece was.
odd_pieces = st.sampled_from(
    [b"", b"\0", b"null", b"[]", b"{}", b'""', b"-1", b"0", b"1e999", b"NaN", b"true", b"9" * 400,
     b"[[[[", b'"x"', b"\xff\xfe", b"\n", b",", b"<", b"&amp;", b"&lol;", b"\xc3\xa9"]
)  # fmt: skip
edits = st.lists(
    st.tuples(st.floats(0, 1), st.integers(0, 30), odd_pieces | st.binary(max_size=8)),
    min_size=1,
    max_size=4,
)


SINGLE_FILES = samples.SINGLE_FILES | {
    name: sample[:2] for name, sample in interval_samples.SAMPLES.items()
}


def damaged(content: bytes, changes: list[tuple[float, int, bytes]]) -> bytes:
    for share, length, piece in changes:
        at = int(share * len(content))
        content = content[:at] + piece + content[at + length :]
    return content


def message_or_count(path: Path, kind: str) -> str | int:
    try:
        return len(read_table(path, kind, options=ALL))
    except InputError as error:
        return str(error)


def read_or_refuse(path: Path) -> None:
    for kind in KINDS:
        began = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DfcrpWarning)
            outcome = message_or_count(path, kind)
        assert path.stem in outcome if isinstance(outcome, str) else outcome > 0
        assert time.process_time() - began < SECONDS


@pytest.mark.parametrize("format_name", SINGLE_FILES)
@fuzzing
@given(changes=edits)
@example(changes=[(0.5, 10_000, b"")])
def test_damaged_files(
    tmp_path: Path, format_name: str, changes: list[tuple[float, int, bytes]]
) -> None:
    name, content = SINGLE_FILES[format_name]
    path = tmp_path / name
    path.write_bytes(damaged(content, changes))
    read_or_refuse(path)


# Tokens are exchanged whole, so that files stay well-formed and damage gets to the readers' core.
@pytest.mark.parametrize(
    "format_name",
    [
        *("Zooniverse", "COCO", "VIA CSV", "VIA JSON", "LabelMe", "Label Studio", "GeoJSON"),
        *(name for name in interval_samples.SAMPLES if name != "CoNLL"),
    ],
)
@fuzzing
@given(at=st.integers(0, 10_000), value=odd_pieces, count=st.integers(1, 3))
def test_strange_values(
    tmp_path: Path, format_name: str, at: int, value: bytes, count: int
) -> None:
    import re

    name, content = SINGLE_FILES[format_name]
    tokens = list(re.finditer(rb"-?\d+(?:\.\d+)?|\[[^\[\]]*\]|null|\{\}", content))
    for number in range(count):
        token = tokens[(at + 37 * number) % len(tokens)]
        if content[token.start() : token.end()] == token[0]:
            content = content[: token.start()] + value + content[token.end() :]
    path = tmp_path / name
    path.write_bytes(content)
    read_or_refuse(path)


@pytest.mark.parametrize("format_name", SINGLE_FILES)
@fuzzing
@given(content=st.binary(max_size=200), keep=st.integers(0, 60))
def test_any_bytes(tmp_path: Path, format_name: str, content: bytes, keep: int) -> None:
    """Random bytes after the beginning by which the format is known."""
    name, valid = SINGLE_FILES[format_name]
    path = tmp_path / name
    path.write_bytes(valid[:keep] + content)
    read_or_refuse(path)


@pytest.mark.parametrize("part", [".shp", ".dbf", ".prj"])
@pytest.mark.parametrize("attributes", [True, False])
@fuzzing
@given(changes=edits)
def test_damaged_shapefiles(
    tmp_path: Path, part: str, attributes: bool, changes: list[tuple[float, int, bytes]]
) -> None:
    parts = samples.shapefile_parts(attributes=attributes)
    parts[part] = damaged(parts[part], changes)
    read_or_refuse(samples.write_shapefile_parts(tmp_path, parts))
