"""Refusals are quick, say the limit, and small misreadings are said for what they are."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

import dfcrp
from dfcrp import memory
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.memory import in_words, memory_at_hand, refuse_more_than_memory
from dfcrp.neighbours.neighbourhood import refuse_copies
from dfcrp.runs.folder import without_formula


def test_memory_is_the_least_of_machine_container_and_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv(memory.VARIABLE, raising=False)
    assert 10e6 < memory_at_hand() < 1e14
    monkeypatch.setattr(memory, "_CGROUPS", tmp_path)
    (tmp_path / "memory.max").write_text("max\n")
    (tmp_path / "memory.current").write_text("5\n")
    before = memory_at_hand()
    (tmp_path / "memory.max").write_text("1000005\n")
    assert list(memory._left(tmp_path / "memory.max", tmp_path / "memory.current")) == [1_000_000]
    if any(line.startswith("0::") for line in Path("/proc/self/cgroup").read_text().splitlines()):
        assert memory_at_hand() == 1_000_000 < before
    monkeypatch.setenv(memory.VARIABLE, "77")
    assert memory_at_hand() == 77


def test_the_limit_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(memory.VARIABLE, str(2 * 10**9))
    refuse_more_than_memory(1e9, "this", "that")
    with pytest.raises(
        InputError, match=r"takes about 4.2 TB of memory, and 2 GB are available; do"
    ):
        refuse_more_than_memory(4.2e12, "it", "do")
    assert [in_words(size) for size in (7, 1500, 2.5e6)] == ["7 bytes", "1.5 kB", "2.5 MB"]


def test_a_parquet_file_of_very_many_rows_is_refused_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the extra: pip install dfcrp[parquet]")
    import pyarrow.parquet as parquet

    n, path = 3_000_000, tmp_path / "many.parquet"
    columns = {name: np.ones(n) for name in ("x", "y", "diameter")}
    parquet.write_table(pyarrow.table({**columns, "expert": np.zeros(n, np.int8)}), path)
    assert path.stat().st_size < 1e6
    monkeypatch.setenv(memory.VARIABLE, str(10**9))
    begun = time.process_time()
    with pytest.raises(InputError, match=r"3,000,000 rows and 4 columns takes about 1.8 GB of mem"):
        dfcrp.read_markings(path)
    assert time.process_time() - begun < 2


def test_a_large_file_that_is_no_text_is_refused_at_once(tmp_path: Path) -> None:
    path = tmp_path / "zeros.csv"
    with path.open("wb") as file:
        file.truncate(200 << 20)
    begun = time.process_time()
    with pytest.raises(InputError, match="not a text file, there is a NUL byte at offset 0"):
        dfcrp.read_markings(path)
    assert time.process_time() - begun < 0.5


def test_a_file_larger_than_memory_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "markings.csv"
    path.write_text("x,y,diameter,expert\n" + "1,2,3,a\n" * 1000)
    monkeypatch.setenv(memory.VARIABLE, "50000")
    with pytest.raises(InputError, match=r"markings.csv: reading a file of 8.02 kB takes about"):
        dfcrp.read_markings(path)


def test_very_many_columns(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    for count, refused in ((50_000, False), (150_000, True)):
        titles = ["x", "y", "diameter", "expert", *(f"c{k}" for k in range(count))]
        rows = [",".join([*"123", name, *("0" * count)]) for name in "ab"]
        path.write_text("\n".join([",".join(titles), *rows, ""]))
        begun = time.process_time()
        if refused:
            with pytest.raises(InputError, match=r"150,004 columns, the most is 100,000"):
                dfcrp.read_markings(path)
        else:
            assert len(dfcrp.read_markings(path)) == 2
        assert time.process_time() - begun < 10


COLUMNS = {
    "circles": ("x", "y", "diameter"),
    "points": ("x", "y"),
    "boxes": ("left", "top", "right", "bottom"),
    "ellipses": ("x", "y", "major", "minor", "angle"),
    "diagonal": ("height", "weight"),
    "normal": ("height", "weight"),
}


@pytest.mark.filterwarnings("ignore::dfcrp.errors.DfcrpWarning")
@pytest.mark.parametrize("kind", COLUMNS)
def test_very_many_copies_are_refused_before_neighbours_are_searched(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The search takes minutes among copies."""

    def search(*_: object, **__: object) -> None:
        raise AssertionError("neighbours were searched")

    monkeypatch.setattr("dfcrp.neighbours.neighbourhood._nearest_of_others", search)
    monkeypatch.setattr("dfcrp.likelihoods.normal.hyper._apart_from_others", search)
    monkeypatch.setattr("dfcrp.neighbours.neighbourhood.MOST_PAIRS", 1_000)
    experts = np.array([f"expert {k}" for k in range(7)])[np.arange(60) % 7]
    columns = {name: np.full(60, 1.0 + k // 2) for k, name in enumerate(COLUMNS[kind])}
    items = dfcrp.Items.from_columns(columns, experts, kind=kind)
    with pytest.raises(InputError, match=r"60 .*remove (the )?copies"):
        dfcrp.fit(items, likelihood=kind, chains=1, scans=2)


@pytest.mark.parametrize("images", [None, np.arange(60) % 3])
def test_copies_on_several_images_are_no_pairs(
    images: np.ndarray | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dfcrp.neighbours.neighbourhood.MOST_PAIRS", 600)
    features = np.ones((60, 2))
    if images is None:
        with pytest.raises(InputError, match="up to 60 points are exactly the same: their 1,770 p"):
            refuse_copies(features, None, "points")
        features[:, 1] = np.arange(60) // 2
    refuse_copies(features, images, "points")  # 3 groups of 20 have 570 pairs, 30 of 2 have 30


def test_rows_that_begin_like_comments_are_said(tmp_path: Path) -> None:
    path = tmp_path / "markings.csv"
    path.write_text("id,x,y,diameter,expert\n#1,2,3,1,a\n#2,2,3,1,b\nc7,7,7,1,a\n# a note\n")
    with pytest.warns(DfcrpWarning, match=r"2 rows begin with '#' \(row 2\).*in quotes"):
        assert dfcrp.read_markings(path).id.tolist() == ["c7"]
    path.write_text('id,x,y,diameter,expert\n"#1",2,3,1,a\n# note, with, commas\n7,7,7,1,a\n')
    assert dfcrp.read_markings(path).id.tolist() == ["#1", "7"]
    path.write_text("id,x,y,diameter,expert\n#1,2,3,1,a\n")
    with pytest.raises(InputError, match=r"no row below it. 1 row begins with '#' \(row 2\)"):
        dfcrp.read_markings(path)


def test_an_endless_number_is_not_called_a_quote(tmp_path: Path) -> None:
    path = tmp_path / "markings.csv"
    path.write_text(f"x,y,diameter,expert\n{'1' * 500_000},2,3,a\n")
    with pytest.raises(InputError, match=r"row 2: a field has more than 131,072 characters"):
        dfcrp.read_markings(path)


def test_a_number_beyond_reason_is_called_so(tmp_path: Path) -> None:
    one = dfcrp.simulate.paper_design(5, n_objects=3)
    with pytest.raises(SettingsError, match=r"radius is 1e\+300; it must be .*no number beyond"):
        dfcrp.fit(one, radius=1e300)


def test_places_keep_their_digits_far_from_the_origin() -> None:
    rng = np.random.default_rng(5)
    x, y = np.tile(rng.uniform(0.0, 90.0, (2, 12)), 4) + rng.normal(0.0, 0.05, (2, 48))
    east, north = 4_194_304.0, -16_777_216.0  # metres on Mars; the sum is exact
    experts = np.repeat(list("abcd"), 12)
    found = []
    for items in (
        dfcrp.Items.circles(np.round(x, 4), np.round(y, 4), np.full(48, 2.0), experts),
        dfcrp.Items.circles(
            np.round(x, 4) + east, np.round(y, 4) + north, np.full(48, 2.0), experts
        ),
    ):
        posterior = dfcrp.fit(items, chains=2, scans=60, seed=3, progress=False)
        found.append((posterior.catalogue(), posterior.explain(0)))
    (near, _), (far, explained) = found
    assert len(far) == len(near) == 12
    for name, shift in {"x": east, "y": north}.items():
        for end in ("", "_lo", "_hi"):
            assert np.allclose(far[name + end] - shift, near[name + end], atol=0.05)
        assert np.median(far[name + "_sd"]) < 0.1
    # A 32-bit float has steps of 1 and 0.25 there: markings would be many deviations away.
    assert explained.candidates[0].distance < 5.0


@pytest.mark.parametrize(
    ("x", "said"),
    [
        ([9e14, 9e14 + 2], r"Subtract a constant from x, as in x - 9e\+14"),
        ([-1e15, 1e15], r"as far apart as from -1e\+15 to 1e\+15: look for misread rows"),
    ],
)
def test_advice_for_far_points_helps(x: list[float], said: str) -> None:
    items = dfcrp.Items.circles(np.array(x), np.zeros(2), np.ones(2), list("ab"))
    with pytest.raises(InputError, match=said):
        dfcrp.fit(items, scans=5)


@pytest.mark.parametrize(
    ("name", "written"),
    [
        ("=cmd|' /C calc'!A0", "'=cmd|' /C calc'!A0"),
        ("=1+2", "'=1+2"),
        (" =1", "' =1"),
        ("+SUM(1)", "'+SUM(1)"),
        ("@SUM(1)", "'@SUM(1)"),
        ("-2+3+cmd|x", "'-2+3+cmd|x"),
        ("@ann", "@ann"),
        ("-5", "-5"),
        ("a=b", "a=b"),
        (3, 3),
    ],
)
def test_names_are_no_formulas(name: object, written: object) -> None:
    assert without_formula(name) == written


def test_tables_hold_no_formulas(tmp_path: Path) -> None:
    path, run = tmp_path / "markings.csv", tmp_path / "run"
    path.write_text("id,x,y,diameter,expert\n=1+2,1,2,3,=evil()\n@x,1,2,3,b\n")
    short = ["--scans", "4", "--chains", "1", "--workers", "1", "--no-report", "--quiet"]
    assert main(["fit", str(path), "--out", str(run), *short]) == 0
    for name in ("catalogue.csv", "members.csv", "experts.csv"):
        cells = (run / name).read_text().replace("\n", ",").split(",")
        assert not any(cell.strip('"').startswith("=") for cell in cells), name
    assert dfcrp.load(run).items.experts == ("=evil()", "b")


def test_a_folder_deleted_in_mid_run_is_said(tmp_path: Path) -> None:
    import shutil

    from dfcrp.errors import DfcrpError

    run = tmp_path / "run"

    def delete(_: object) -> None:
        shutil.rmtree(run, ignore_errors=True)

    one = dfcrp.simulate.paper_design(5, n_objects=3)
    with pytest.raises(DfcrpError, match="deleted or moved while the run was at work") as error:
        dfcrp.fit(one, out=run, scans=500, chains=1, progress=delete, checkpoint_seconds=0.0)
    assert "safe" not in str(error.value)
    assert not run.exists()
