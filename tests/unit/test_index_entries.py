"""What an index says of a block is believed only if a run could have written it."""

from __future__ import annotations

import pytest

from dfcrp.draws import Columns
from dfcrp.runs.blocks import IndexEntry

ENTRY = IndexEntry(
    part=0, chain=0, turn=1, first=0, draws=2, rows=4, n=6, saved=True, scans=2, columns=Columns()
)


@pytest.mark.parametrize("kind", ["<f8", "<i4", "|b1"])
def test_kinds_of_arrays_that_are_written_are_read(kind):
    assert ENTRY._replace(state=(("label", kind, (6,)),)).sensible()


@pytest.mark.parametrize("kind", [",", "f8,f8", "3,", "O", "<U4", "f8)", "", "1__import__", ">f8"])
def test_other_kinds_are_refused_and_never_parsed(kind):
    """NumPy would take some of them for Python."""
    assert not ENTRY._replace(state=(("label", kind, (6,)),)).sensible()
