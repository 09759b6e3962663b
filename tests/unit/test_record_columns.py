"""Lists of records as people have them: odd values, other names of columns, data frames."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.items.columns import for_file, same_field
from dfcrp.items.items import Items
from dfcrp.likelihoods.record.fields import encode_fields
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.likelihoods.record.report import Repeated, alike_elsewhere
from dfcrp.settings.config import make_config

CONFIG = make_config({"run": {"likelihood": "records"}})
N = 30


@pytest.fixture
def lists() -> tuple[pd.DataFrame, pd.DataFrame]:
    rng = np.random.default_rng(1)
    words = ["".join(rng.choice(list("abcdefgh"), 6)) for _ in range(N)]
    first = pd.DataFrame({"surname": words, "town": rng.choice(words, N), "born": range(N)})
    return first, first.copy()


@pytest.fixture
def places() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(2)
    where = rng.uniform([40, 0], [50, 10], (N, 2))
    columns = {
        "name": [f"inn {n}" for n in range(N)],
        "lat": [f"{x:.4f}" for x in where[:, 0]],
        "lon": [f"{y:.4f}" for y in where[:, 1]],
        "weight": [f"{x:.1f}" for x in rng.normal(70, 9, N)],
    }
    return {name: np.array(values * 2, dtype="<U12") for name, values in columns.items()}


@pytest.mark.parametrize("odd", ["8990.33", "unknown", "nan"])
def test_one_odd_latitude_is_left_aside_and_named(places, odd):
    """It made two strings of the place, in silence."""
    places["lat"][7] = odd
    found = encode_fields(places, {})
    assert dict(zip(found.names, found.kinds, strict=True))["lat+lon"] == "place"
    assert found.codes[7, list(found.names).index("lat+lon")] == -1
    assert [(one.column, one.row, one.value) for one in found.aside] == [("lat", 7, odd)]
    # The same where the user names the place, as a run that is read back does.
    assert encode_fields(places, {"lat+lon": "place"}).aside == found.aside
    items = Items.from_columns(places, ["a"] * N + ["b"] * N, kind="records")
    if odd == "nan":  # which tables have where a value is missing
        return
    with pytest.warns(DfcrpWarning, match=rf"'{odd}' in lat of record 8, which is no latitude"):
        RECORDS.lay_out(items, items.families, CONFIG)
    assert any("of record 8" in words for words in RECORDS.reach_words(items, CONFIG))


def test_one_odd_number_is_left_aside(places):
    places["weight"][40] = "inf"
    found = encode_fields(places, {})
    assert "number" in found.kinds
    assert [(one.row, one.what) for one in found.aside] == [(40, "number")]


def test_columns_with_many_odd_values_are_no_numbers(places):
    places["weight"][::6] = "x"
    assert "number" not in encode_fields(places, {}).kinds
    with pytest.raises(InputError, match="index 0, field 'weight': 'x' is not a number"):
        encode_fields(places, {"weight": "number"})


@pytest.mark.filterwarnings("ignore:hardly any record")
def test_a_frame_says_whose_list_a_row_is_on(lists):
    """``source`` was a field, and every row an expert."""
    frame = pd.concat(lists).assign(source=["x"] * N + ["y"] * N)
    found = dfcrp.fit(frame, likelihood="records", scans=20, chains=2, workers=1)
    assert found.items.experts == ("x", "y")
    assert list(found.items.columns) == ["surname", "town", "born"]
    assert found.config.run.prior == "dfcrp"
    alone = dfcrp.fit(lists[0], likelihood="records", scans=20, chains=2, workers=1)
    assert len(alone.items.experts) == N
    assert alone.config.run.prior == "crp"


@pytest.mark.parametrize("given", [tuple, list, lambda both: dict(zip("hr", both, strict=True))])
def test_several_frames_are_a_list_each(lists, given):
    found = dfcrp.fit(given(lists), likelihood="records", scans=20, chains=2, workers=1)
    assert len(found.items.experts) == 2
    assert len(found.items) == 2 * N


def test_frames_and_files_that_are_none_are_refused_in_words(lists):
    other = lists[1].rename(columns={"surname": "Name"})
    with pytest.raises(InputError, match=r"list 2: the columns are .*'Name'"):
        dfcrp.fit([lists[0], other], likelihood="records", scans=5)
    for kind in ("records", "points"):
        with pytest.raises(InputError, match=rf"dfcrp.read_items\('m.csv', '{kind}'\)"):
            dfcrp.fit("m.csv", likelihood=kind, scans=5)


def written(folder, lists, **renamed):
    first, second = folder / "a.csv", folder / "b.csv"
    lists[0].to_csv(first, index=False)
    lists[1].rename(columns=renamed).to_csv(second, index=False)
    return [first, second]


def test_columns_that_differ_in_signs_alone_are_the_same(tmp_path, lists):
    paths = written(tmp_path, lists, surname="Sur_Name", town="TOWN")
    assert list(dfcrp.read_items(paths, "records").columns) == ["surname", "town", "born"]


def test_other_columns_are_refused_with_a_way_to_map_them(tmp_path, lists):
    """What the message proposes is accepted as it stands."""
    lists = lists[0], lists[1].assign(extra="x")
    paths = written(tmp_path, lists, surname="family name")
    with pytest.raises(InputError, match="say which are the same") as refused:
        dfcrp.read_items(paths, "records")
    said = str(refused.value).partition('--columns "')[2].partition('"')[0]
    assert said == "b.csv:surname=family name,b.csv:extra="
    found = dfcrp.read_items(paths, "records", columns=said)
    assert list(found.columns) == ["surname", "town", "born"]
    assert found.columns["surname"][N] == found.columns["surname"][0]
    out = tmp_path / "run"
    given = ["fit", *map(str, paths), "--likelihood", "records", "--columns", said]
    main([*given, "--out", str(out), "--scans", "20", "--chains", "2", "--no-report"])
    assert (out / "catalogue.csv").is_file()


@pytest.mark.parametrize(
    "choice",
    [
        {"b.csv:surname": "family name"},
        {"b:surname": "family name"},
        {"surname": "family name"},
        "b.csv:surname=family name",
    ],
)
def test_columns_are_renamed_in_one_file_or_where_they_are(tmp_path, lists, choice):
    paths = written(tmp_path, lists, surname="family name")
    found = dfcrp.read_items(paths, "records", columns=choice)
    assert list(found.columns) == ["surname", "town", "born"]


def test_a_file_that_is_not_given_is_named():
    with pytest.raises(SettingsError, match=r"'z\.csv', which is not given"):
        for_file("z.csv:x=y", ["a.csv", "b.csv"])
    assert for_file("x=y,b:z=w", ["a.csv", "b.csv"]) == [{"x": "y"}, {"x": "y", "z": "w"}]


def test_a_misspelt_role_is_no_new_field(tmp_path, lists):
    with pytest.raises(SettingsError, match="did you mean 'expert'"):
        dfcrp.read_items(written(tmp_path, lists), "records", columns="expertt=town")


def test_the_same_field_by_other_names():
    assert same_field("Last Name", "family_name")
    assert same_field("Date of birth", "dob")
    assert not same_field("surname", "first name")


def test_a_column_with_a_value_for_nearly_each_row_is_no_expert(tmp_path, lists):
    """Products have a ``model``: there were 1,304 experts."""
    models = [f"m{n}" for n in range(N)]
    paths = written(tmp_path, (lists[0].assign(model=models), lists[1].assign(model=models)))
    found = dfcrp.read_items(paths, "records")
    assert found.experts == ("a", "b")
    assert "model" in found.columns
    both = tmp_path / "both.csv"
    pd.concat(lists).assign(source=["x"] * N + ["y"] * N).to_csv(both, index=False)
    assert dfcrp.read_items(both, "records").experts == ("x", "y")
    with pytest.warns(DfcrpWarning, match="of another by the same expert"):
        chosen = dfcrp.read_items(paths, "records", columns="expert=model")
    assert len(chosen.experts) == N


def test_it_is_said_when_hardly_anything_links():
    """Two lists with a category in common and nothing else."""
    rng = np.random.default_rng(3)
    columns = {
        "name": ["".join(rng.choice(list("abcdefghijklmnop"), 9)) for _ in range(400)],
        "kind": rng.choice(["x", "y"], 400).tolist(),
    }
    items = Items.from_columns(columns, ["a"] * 200 + ["b"] * 200, kind="records")
    with pytest.warns(DfcrpWarning, match=r"hardly any record has a match .* although"):
        RECORDS.lay_out(items, items.families, CONFIG)
    assert any("this answer is of no use" in words for words in RECORDS.reach_words(items, CONFIG))


def test_records_that_their_own_list_repeats_are_named():
    values = ["anna", "bob", "anna", "", "", "anna", "bob"]
    records = encode_fields({"name": np.array(values)}, {"name": "string"})
    source = np.array([0, 0, 0, 0, 0, 1, 1])
    found = Repeated.of(records, source, list("pqrstuv"))
    assert (found.rows, found.one, found.other) == (2, "p", "r")
    assert Repeated.of(records, np.array([0, 0, 1, 1, 1, 2, 2]), list("pqrstuv")).rows == 0
    pairs = np.array([[0, 5], [2, 5], [1, 6], [0, 2]])
    assert alike_elsewhere(records, pairs, source) == 5
