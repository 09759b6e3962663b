"""Large plain tables are read as small ones are, to the last digit, in a fraction of the time."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from benchmarks.large_crowd import LOOKS, MARKINGS, LargeCrowd
from dfcrp.errors import InputError
from dfcrp.io import large_tables, read_items
from dfcrp.io.formats.delimited import read_delimited
from dfcrp.items.checks import to_names, to_numbers
from dfcrp.items.coded import CodedColumn, NumberColumn
from dfcrp.items.items import Items

HEAD = "image,expert,x,y,diameter,id,note\n"
PLAIN = [
    "a.png,Ann,1.5,2e3,3.25,17,first",
    "b.png,007,-0.1, 7,1e-3,18,",
    "b.png,007,0.30000000000000004,-0,123456789.123456789,019,nan",
    "c é.png, Bob ,+4,5.,.5,20,NA",
]
NUMBERS, NAMES = (2, 3, 4), (0, 1, 5)


@pytest.fixture
def any_size(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(large_tables, "LARGE_BYTES", 0)


@pytest.fixture
def watched(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Whether each table was taken for a large plain one."""
    taken: list[bool] = []

    def noted(*given):
        found = large_tables.plain_columns(*given)
        taken.append(found is not None)
        return found

    monkeypatch.setattr("dfcrp.io.formats.delimited.plain_columns", noted)
    return taken


def both(text: str, monkeypatch: pytest.MonkeyPatch):
    """A table read as a large one, and row by row."""
    found = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(large_tables, "LARGE_BYTES", least)
        found.append(read_delimited("t.csv", text.encode()))
    return found


@pytest.mark.parametrize("repeats", [1, 40])
@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_the_same_cells(repeats, delimiter, end, watched, monkeypatch) -> None:
    text = (HEAD + "\n".join(PLAIN * repeats) + "\n").replace("\n", end).replace(",", delimiter)
    fast, slow = both(text, monkeypatch)
    assert watched == [True, False]
    assert list(fast.rows) == list(slow.rows)
    for at in range(len(slow.header)):
        ours, theirs = fast.columns[at], slow.columns[at]
        assert to_names(ours) == to_names(theirs)
        assert len(ours) == len(theirs)
        assert ours[1].strip() == theirs[1].strip()
        assert [cell.strip() for cell in ours[:3]] == [cell.strip() for cell in theirs[:3]]
        if at in NUMBERS:
            assert to_numbers(ours).tobytes() == to_numbers(theirs).tobytes()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param([*PLAIN, "# a comment"], id="comment"),
        pytest.param([*PLAIN, "", PLAIN[0]], id="empty row"),
        pytest.param([*PLAIN, 'd.png,"Ann, B.",1,2,3,4,'], id="quotes"),
        pytest.param([*PLAIN, ",,,,,,", PLAIN[0]], id="row of nothing"),
        pytest.param([*PLAIN, PLAIN[0] + "  "], id="blanks at the end"),
    ],
)
def test_what_is_not_plain_is_read_row_by_row(rows, watched, monkeypatch) -> None:
    fast, slow = both(HEAD + "\n".join(rows) + "\n", monkeypatch)
    assert watched == [False, False]
    assert fast == slow


@pytest.mark.parametrize("bad", ["e.png,Ann,1,2,3,5", "e.png,Ann,1,2,3,5,,6", "e.png,Ann,1,2"])
def test_rows_of_another_width_are_refused(bad, any_size) -> None:
    with pytest.raises(InputError, match=r"t\.csv, row 6: \d fields?, the header has 7"):
        read_delimited("t.csv", (HEAD + "\n".join([*PLAIN, bad, PLAIN[0]])).encode())


@pytest.mark.parametrize("bad", ["", "1_0", "x", "nan", "1e400"])
def test_what_is_no_number_is_told_where_it_is(bad, any_size, tmp_path: Path) -> None:
    rows = [f"a.png,Ann,{k}.5,{k},3,{k},n{k}" for k in range(large_tables.SAMPLE + 5)]
    rows.append(f"a.png,Ann,{bad},1,3,z,last")
    (tmp_path / "t.csv").write_text(HEAD + "\n".join(rows) + "\n")
    with pytest.raises(InputError, match=rf"row {len(rows) + 1}, column 'x'") as error:
        read_items(tmp_path / "t.csv", "circles")
    assert not bad or repr(bad) in str(error.value)


def test_the_same_items(tmp_path: Path, monkeypatch) -> None:
    LargeCrowd(images=20, volunteers=20, categories=3).write(tmp_path)
    found: list[Items] = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(large_tables, "LARGE_BYTES", least)
        found.append(read_items(tmp_path / MARKINGS, "circles", looked=tmp_path / LOOKS))
    assert found[0].digest == found[1].digest
    assert found[0].sources == found[1].sources
    assert found[0].id.tolist() == found[1].id.tolist()


def cost(work: Callable[[], object]) -> float:
    found = []
    for _ in range(3):
        begun = time.thread_time()
        work()
        found.append(time.thread_time() - begun)
    return min(found)


def test_no_object_for_every_row_and_half_of_the_time(tmp_path: Path, monkeypatch) -> None:
    LargeCrowd(images=1_000, volunteers=60).write(tmp_path)
    data = (tmp_path / MARKINGS).read_bytes()
    seconds = []
    for least in (0, 1 << 40):
        monkeypatch.setattr(large_tables, "LARGE_BYTES", least)
        seconds.append(cost(lambda: read_delimited("t.csv", data)))
    assert seconds[0] < seconds[1] / 2
    monkeypatch.setattr(large_tables, "LARGE_BYTES", 0)
    kinds = [type(column) for column in read_delimited("t.csv", data).columns]
    assert kinds == [CodedColumn] * 2 + [NumberColumn] * 3
    assert np.array(read_delimited("t.csv", data).columns[2].numbers).dtype == np.float64
