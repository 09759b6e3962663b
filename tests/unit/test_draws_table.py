"""The table by which draws before and after a change are compared tells them apart."""

from __future__ import annotations

import json

import pytest

from reference import draws_table

ROW = "points/dfcrp/one"


def test_the_same_draws_are_the_same(tmp_path, capsys):
    file = tmp_path / "before.json"
    assert draws_table.main(["--write", str(file), "--only", ROW]) == 0
    assert list(json.loads(file.read_text())) == [ROW]
    assert draws_table.main(["--against", str(file), "--only", ROW]) == 0
    assert "the same, bit for bit" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("settings", "parts"),
    [
        ({"seed": 12}, {"labels", "alpha", "shared", "clusters", "end"}),
        ({"scans": 18}, {"labels", "alpha", "shared", "clusters", "end"}),
        ({"burn_in": 6}, {"labels", "alpha", "shared", "clusters"}),
    ],
)
def test_other_draws_are_not(monkeypatch, settings, parts):
    before = draws_table.table(ROW)
    monkeypatch.setattr(draws_table, "SETTINGS", {**draws_table.SETTINGS, **settings})
    [line] = draws_table.differences(before, draws_table.table(ROW))
    name, _, told = line.partition(": ")
    assert (name, set(told.split(", "))) == (ROW, parts)


def test_rows_that_only_one_table_has_are_told():
    lines = draws_table.differences({"a": {}, "b": {}}, {"b": {}, "c": {}})
    assert lines == ["a: only before", "c: only after"]


def test_every_kind_meets_every_prior():
    names = {name.rsplit("/", 1)[0] for name, _ in draws_table.runs()}
    expected = {f"{kind}/{prior}" for kind in draws_table.KINDS for prior in draws_table.PRIORS}
    assert expected <= names
