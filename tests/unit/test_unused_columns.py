"""What was read as what, and what was left aside, is said; what looks like a role is a warning."""

from __future__ import annotations

import json
import warnings
from pathlib import Path

import pytest

import dfcrp
from dfcrp.cli.main import main
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.items.site import column_words

ROWS = ("1,2,3,ann,{a}", "1,2,3,bob,{a}", "9,9,3,ann,{b}", "9,9,3,bob,{b}")


def table(path: Path, title: str, a: str = "first", b: str = "second") -> Path:
    rows = [row.format(a=a, b=b) for row in ROWS]
    path.write_text("\n".join([f"x,y,diameter,expert,{title}", *rows, ""]))
    return path


@pytest.mark.parametrize(
    "title", ["image_filename", "frame", "Frame_No", "subject_code", "file", "photo_id", "tileName"]
)
def test_images_that_are_not_recognised_are_a_warning(tmp_path: Path, title: str) -> None:
    path = table(tmp_path / "markings.csv", title)
    with pytest.warns(DfcrpWarning, match=f"looks like images.*--columns image={title}"):
        found = dfcrp.read_markings(path)
    assert found.images == ()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dfcrp.read_markings(path, columns={"image": title}).images == ("first", "second")
        assert dfcrp.read_markings(path, columns={"image": ""}).images == ()


def test_the_look_of_the_cells_counts_too(tmp_path: Path) -> None:
    path = table(tmp_path / "markings.csv", "where", "a.png", "b.PNG")
    with pytest.warns(DfcrpWarning, match="'where' looks like images"):
        dfcrp.read_markings(path)


@pytest.mark.parametrize(
    ("title", "a", "b"),
    [
        ("image_width", "640", "480"),
        ("frame", "same", "same"),
        ("note", "a", "b"),
        ("user_agent", "a", "b"),
    ],
)
def test_what_is_no_image_is_not_warned_of(tmp_path: Path, title: str, a: str, b: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = dfcrp.read_markings(table(tmp_path / "markings.csv", title, a, b))
    [source] = found.sources
    assert source.unused == (title,)


def test_experts_in_a_column_that_is_not_recognised(tmp_path: Path) -> None:
    for name in "ab":
        (tmp_path / f"{name}.csv").write_text("x,y,diameter,worker_login\n1,2,3,p\n7,8,9,q\n")
    with pytest.warns(DfcrpWarning, match="looks like experts.*--columns expert=worker_login"):
        dfcrp.read_markings([tmp_path / "a.csv", tmp_path / "b.csv"])
    with pytest.raises(InputError, match=r"no column for expert \(is it 'worker_login'\?\)"):
        dfcrp.read_markings(tmp_path / "a.csv")


def test_other_kinds_and_data_frames_too(tmp_path: Path) -> None:
    path = tmp_path / "points.csv"
    path.write_text("x,y,expert,image_filename\n1,2,a,p\n1,2,b,q\n")
    with pytest.warns(DfcrpWarning, match="looks like images"):
        dfcrp.read_items(path, "points")
    frame = {"x": [1, 2], "y": [1, 2], "diameter": [3, 4], "expert": list("ab"), "frame": [1, 2]}
    with pytest.warns(DfcrpWarning, match="looks like images"):
        dfcrp.Items.from_frame(frame)


def test_it_is_said_in_every_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, run = table(tmp_path / "markings.csv", "note"), tmp_path / "run"
    short = ["--scans", "6", "--chains", "2", "--workers", "1"]
    assert main(["fit", str(path), "--out", str(run), *short]) == 0
    line = "Columns: x, y, diameter, expert; not used: note."
    assert line in capsys.readouterr().err
    assert line in (run / "report.html").read_text()
    [source] = json.loads((run / "provenance.json").read_text())["sources"]
    assert source["columns"] == [[name, name] for name in ("x", "y", "diameter", "expert")]
    assert source["unused"] == ["note"]
    assert column_words(dfcrp.load(run).items.sources) == [line]


def test_files_that_differ_are_told_apart(tmp_path: Path) -> None:
    (tmp_path / "a.csv").write_text("X,Y,Diam,observer\n1,2,3,p\n")
    (tmp_path / "b.csv").write_text("lon_px,x,y,diameter,expert\n1,2,3,4,q\n")
    found = dfcrp.read_markings([tmp_path / "a.csv", tmp_path / "b.csv"])
    assert column_words(found.sources) == [
        "Columns of a.csv: x = X, y = Y, diameter = Diam, expert = observer.",
        "Columns of b.csv: x, y, diameter, expert; not used: lon_px.",
    ]


def test_names_cannot_write_to_the_terminal(tmp_path: Path) -> None:
    path = table(tmp_path / "markings.csv", "\x1b[31mred")
    [line] = column_words(dfcrp.read_markings(path).sources)
    assert "\x1b" not in line
