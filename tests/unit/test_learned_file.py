"""What an update begins with is read from a file, which anybody may have changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from dfcrp.errors import RunFolderError
from dfcrp.items.learned import Learned
from dfcrp.runs.folder import START_LEARNED, _read_learned

WHOLE = {
    "alpha": [1.0, 2.0],
    "coords": {"class": ["1"]},
    "quantities": {"ease": {"dims": ["class"], "values": [[0.5], [0.25]], "learned": [True]}},
}


def test_as_it_was_written(tmp_path: Path) -> None:
    (tmp_path / START_LEARNED).write_text(json.dumps({"": WHOLE}))
    assert _read_learned(tmp_path)[""].as_json() == WHOLE
    assert Learned.from_json(WHOLE).quantities["ease"].values.tolist() == [[0.5], [0.25]]


@pytest.mark.parametrize(
    "found",
    [
        *([], {"": []}, {"": {}}, {"": {**WHOLE, "alpha": [-1.0]}}, {"": {**WHOLE, "coords": 3}}),
        {"": {**WHOLE, "coords": {}}},
        {"": {**WHOLE, "quantities": {"ease": {"dims": ["class"]}}}},
        {"": {**WHOLE, "quantities": {"ease": {"dims": ["class"], "values": [[0.5], [0.25]]}}}},
        {"": {**WHOLE, "alpha": [10**400, 1.0]}},
    ],
)
def test_what_nobody_wrote_is_refused(tmp_path: Path, found: object) -> None:
    (tmp_path / START_LEARNED).write_text(json.dumps(found))
    with pytest.raises(RunFolderError, match=r"start\.json: damaged"):
        _read_learned(tmp_path)


def test_brackets_without_end_are_refused(tmp_path: Path) -> None:
    (tmp_path / START_LEARNED).write_text("[" * 100_000)
    with pytest.raises(RunFolderError, match="nested too deeply"):
        _read_learned(tmp_path)
