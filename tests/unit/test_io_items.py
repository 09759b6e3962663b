"""Reading items of every kind: tables and exports, columns, filters, images, candidate pairs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest

import format_samples as samples
from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.io import read_items, read_markings, read_table
from dfcrp.io.format import GivenFile
from dfcrp.io.registry import formats
from dfcrp.likelihoods.registry import likelihood_named


def written(folder: Path, text: str | bytes, name: str = "items.csv") -> Path:
    path = folder / name
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def read(path: Path | list[Path], kind: str, **options: Any) -> tuple[Any, str]:
    """The items, and all warnings as one text."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        items = read_items(path, kind, **options)
    return items, "\n".join(str(warning.message) for warning in caught)


def test_boxes_from_a_file(tmp_path: Path) -> None:
    path = written(tmp_path, "id;Detector;X;Y;Width;Height;score\n7;A;1;2;3;4;0.5\n8;B;1,0\n")
    with pytest.raises(InputError, match=r"items.csv, row 3: 3 fields, the header has 7"):
        read_items(path, "boxes")
    path = written(
        tmp_path, "id;Detector;X;Y;Width;Height;score\n7;A;1;2;3;4;0.5\n8;B;1;2;3;5;0.1\n"
    )
    items = read_items(path, "boxes")
    assert items.kind == "boxes"
    assert items.values.tolist() == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert items.experts == ("A", "B")
    assert items.id.tolist() == ["7", "8"]
    with pytest.raises(InputError, match=r"no column for major, minor, angle .* major=NAME"):
        read_items(path, "ellipses")


def test_boxes_by_their_corners(tmp_path: Path) -> None:
    path = written(tmp_path, "source,xmin,ymin,xmax,ymax\nA,1,2,5,8\nB,1,2,5,2\n")
    with pytest.raises(
        InputError, match=r"items.csv, row 3, column 'ymax': the height of the box would be 0"
    ):
        read_items(path, "boxes")
    path = written(tmp_path, "source,xmin,ymin,xmax,ymax\nA,1,2,5,8\nB,1,2,5,9\n")
    items = read_items(path, "boxes")
    assert items.values.tolist() == [[3, 5, 4, 6], [3, 5.5, 4, 7]]


def test_boxes_by_corner_and_sides(tmp_path: Path) -> None:
    path = written(tmp_path, "source,left,top,width,height\nA,1,2,4,6\nB,1,2,4,7\n")
    items = read_items(path, "boxes")
    assert list(items.columns) == ["x", "y", "width", "height"]
    assert items.values.tolist() == [[3, 5, 4, 6], [3, 5.5, 4, 7]]
    path = written(tmp_path, "source,xmin,ymin,w,h\nA,1,2,4,6\nB,1,2,4,-7\n")
    with pytest.raises(InputError, match=r"row 3, column 'h': .*-7"):
        read_items(path, "boxes")


def test_centre_goes_before_corner(tmp_path: Path) -> None:
    path = written(tmp_path, "source,left,top,x,y,width,height\nA,1,2,9,9,4,6\n")
    assert read_items(path, "boxes").values.tolist() == [[9, 9, 4, 6]]


def test_turned_boxes_are_read_as_ellipses(tmp_path: Path) -> None:
    text = "source,cx,cy,width,height,rotation\nA,1,2,8,4,10\nB,1,2,4,8,10\n"
    items = read_items(written(tmp_path, text), "ellipses")
    assert list(items.columns) == ["x", "y", "major", "minor", "angle"]
    assert items.values.tolist() == [[1, 2, 8, 4, 10], [1, 2, 8, 4, 100]]
    with pytest.raises(InputError, match=r"row 2, column 'height': .*0"):
        read_items(written(tmp_path, text.replace("8,4,10", "8,0,10", 1)), "ellipses")


def test_boxes_with_an_angle(tmp_path: Path) -> None:
    """By right angles they are boxes; otherwise none, unless the angles are left aside."""
    text = "source,x,y,width,height,angle\nA,1,2,8,4,0\nB,1,2,8,4,90\nC,1,2,8,4,-180\n"
    items = read_items(written(tmp_path, text), "boxes")
    assert items.values.tolist() == [[1, 2, 8, 4], [1, 2, 4, 8], [1, 2, 8, 4]]
    path = written(tmp_path, text.replace("90", "30"))
    with pytest.raises(InputError, match=r"row 3, column 'angle': .*by 30°; .*ellipses.*angle="):
        read_items(path, "boxes")
    assert read_items(path, "boxes", columns="angle=").values[1].tolist() == [1, 2, 8, 4]


LISTS_FROM_ONE = "expert,image,id,x,y\nA,p,1,1,2\nA,p,2,3,4\nB,p,1,1,2\n"


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        (LISTS_FROM_ONE, ["A:1", "A:2", "B:1"]),
        (LISTS_FROM_ONE + "A,q,1,5,6\n", ["p:A:1", "p:A:2", "p:B:1", "q:A:1"]),
        ("expert,image,id,x,y\nA,p,1,1,2\nA,q,1,3,4\n", ["p:1", "q:1"]),
    ],
)
@pytest.mark.parametrize("kind", ["points", "records"])
def test_ids_that_every_list_begins_from_one(
    tmp_path: Path, kind: str, text: str, ids: list[str]
) -> None:
    assert read_items(written(tmp_path, text), kind).id.tolist() == ids


def test_an_id_left_aside_is_no_field(tmp_path: Path) -> None:
    path = written(tmp_path, "source,id,rec_id,name\nA,1,7,Ann\nB,1,7,Bob\n")
    items = read_items(path, "records", columns="id=")
    assert list(items.columns) == ["name"]
    assert items.id.tolist() == ["1", "2"]


def test_what_boxes_need(tmp_path: Path) -> None:
    path = written(tmp_path, "who,x,y\nA,1,2\n")
    message = r"no column for width, height \(boxes have x, y, width, height, or left, top, right,"
    with pytest.raises(InputError, match=message):
        read_items(path, "boxes")


@pytest.mark.parametrize(
    "choice", [{"x": "lng", "y": "Lat", "expert": "who"}, "x=lng,y=Lat,expert=who"]
)
def test_columns_by_the_users_word(tmp_path: Path, choice: Any) -> None:
    path = written(tmp_path, "who,lng,Lat,id\nA,1,2,p\nB,3,4,q\n")
    items = read_items(path, "points", columns=choice)
    assert items.values.tolist() == [[1, 2], [3, 4]]
    assert items.id.tolist() == ["p", "q"]
    with pytest.raises(InputError, match=r"column 'lngg', wanted for x, .* did you mean 'lng'"):
        read_items(path, "points", columns={"x": "lngg"})
    with pytest.raises(SettingsError, match="unknown role 'width'; the roles are x, y, expert"):
        read_items(path, "points", columns={"width": "lng"})


def test_one_file_for_each_list(tmp_path: Path) -> None:
    text = "name,city\nAnn,Rome\nBob,\n"
    paths = [written(tmp_path, text, f"{name}.csv") for name in ("north", "south")]
    records = read_items(paths, "records")
    assert records.experts == ("north", "south")
    assert records.columns["city"].tolist() == ["Rome", "", "Rome", ""]
    assert records.id.tolist() == ["north.csv:1", "north.csv:2", "south.csv:1", "south.csv:2"]
    alone = read_items(paths[0], "records")
    assert alone.experts == ("north",)
    assert any("it is one list" in note for note in alone.notes)
    paths.append(written(tmp_path, "city,name\nOslo,Eve\n", "west.csv"))
    assert read_items(paths, "records").columns["name"].tolist()[-1] == "Eve"
    paths.append(written(tmp_path, "name,town\nEve,Oslo\n", "east.csv"))
    with pytest.raises(InputError, match=r"east\.csv: the columns that describe an item are"):
        read_items(paths, "records")


def test_what_is_about_a_record_is_no_field(tmp_path: Path) -> None:
    path = written(tmp_path, "id,list,subject,truth,person,name\n1,a,p,5,x,Ann\n2,b,q,5,,Anna\n")
    records = read_items(path, "records")
    assert list(records.columns) == ["name"]
    assert records.experts == ("a", "b")
    assert records.images == ("p", "q")
    assert records.truth is not None
    assert records.truth.tolist() == [5, 5]
    assert records.person is not None
    assert records.person.tolist() == ["x", "b"]


def test_a_column_that_is_left_aside_is_no_field(tmp_path: Path) -> None:
    path = written(tmp_path, "id,expert,subject,a\n1,A,4,1\n1,B,5,2\n")
    items = read_items(path, "diagonal", columns="id=,image=")
    assert list(items.columns) == ["a"]
    assert items.image is None
    assert items.id.tolist() == ["1", "2"]
    items = read_items(path, "diagonal", columns="id=,subject=subject")
    assert list(items.columns) == ["subject", "a"]


def test_rows_of_numbers_take_every_other_column(tmp_path: Path) -> None:
    path = written(tmp_path, "model,first,second,id\nA,1,2,i\nB,3,4e2,j\n")
    items = read_items(path, "normal")
    assert items.values.tolist() == [[1, 2], [3, 400]]
    assert list(items.columns) == ["first", "second"]
    with pytest.raises(InputError, match="no column describes an item"):
        read_items(written(tmp_path, "id,expert\n1,a\n2,b\n"), "diagonal")


@pytest.mark.parametrize("kind", ["circles", "points", "boxes", "ellipses", "diagonal", "records"])
def test_filters_of_every_kind(tmp_path: Path, kind: str) -> None:
    numbers = {
        "circles": "x,y,d\n1,1,10\n2,2,20\n3,3,30\n4,4,40",
        "points": "x,y\n1,1\n2,2\n3,3\n4,4",
        "boxes": "x,y,w,h\n1,1,10,10\n2,2,20,20\n3,3,30,30\n4,4,40,40",
        "ellipses": "x,y,major,minor,angle\n1,1,10,10,0\n2,2,20,20,0\n3,3,90,10,5\n4,4,40,40,0",
        "diagonal": "a,b\n1,1\n2,2\n3,3\n4,4",
        "records": "name,city\nAnn,Rome\nBob,Rome\nCy,Rome\nDan,Oslo",
    }[kind].split("\n")
    rest = ["expert,image", "Ann,p", "Bob,p", "Ann,q", "Cy,r"]
    path = written(tmp_path, "\n".join(map(",".join, zip(numbers, rest, strict=True))) + "\n")
    assert read_items(path, kind).images == ("p", "q", "r")
    assert "".join(read_items(path, kind, image="p").id) == "12"
    items = read_items(path, kind, image=["p", "r"], exclude_experts="Bob")
    assert "".join(items.id) == "14"
    assert items.images == ("p", "r")
    assert (items.sources[0].rows, items.sources[0].kept) == (4, 2)
    assert items.filters == {"image": ["p", "r"], "exclude_experts": "Bob"}
    with pytest.raises(InputError, match="no image is called 'P'; did you mean 'p'"):
        read_items(path, kind, image="P")
    with pytest.raises(InputError, match="is by an excluded expert"):
        read_items(path, kind, exclude_experts=["Ann", "Bob", "Cy"])
    if likelihood_named(kind).sizes(items) is not None:
        assert "".join(read_items(path, kind, min_diameter=20).id) == "234"
        with pytest.raises(InputError, match="the largest is 40"):
            read_items(path, kind, min_diameter=41)
    else:
        with pytest.raises(SettingsError, match=f"items with a size, and {kind} have none"):
            read_items(path, kind, min_diameter=20)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expert,x,y\nA,1,\n", "items.csv, row 2, column 'y': no value"),
        ("expert,x,y\nA,1,2\nB,1,two\n", "row 3, column 'y': 'two' is not a number"),
        ("expert,x,y\nA,1,inf\n", "row 2, column 'y': 'inf' is not finite"),
        ("expert,x,y,x\nA,1,2,3\n", "the columns 'x', 'x' could all be x"),
        ("expert,x,y,id\nA,1,2,7\nA,1,2,7\n", "row 3, column 'id': id '7' was used before"),
        ("expert,x,y\n,1,2\n", "row 2, column 'expert': no expert"),
        ("expert,x,y\n", "no row below it"),
    ],
)
def test_bad_tables_are_refused_by_their_place(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_items(written(tmp_path, text), "points")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expert,a,a\nA,1,2\n", "column 'a' is there several times"),
        ("expert,a,\nA,1,2\n", "column 3 has no name"),
        ("who,expert,a\nA,1,2\n", "column 'expert' cannot describe items"),
        ("who,a\nA,x\n", "row 2, column 'a': 'x' is not a number"),
    ],
)
def test_bad_tables_of_any_columns(tmp_path: Path, text: str, message: str) -> None:
    choice = {"expert": "who"} if text.startswith("who") else None
    with pytest.raises(InputError, match=message):
        read_items(written(tmp_path, text), "diagonal", columns=choice)


def test_an_unknown_kind_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="did you mean 'boxes'"):
        read_items(written(tmp_path, "x,y\n1,2\n"), "boxs")


def test_items_of_a_likelihood_of_ones_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "photometry.py").write_text(
        "from dfcrp.likelihoods.base import Likelihood\n"
        "class Fluxes(Likelihood):\n"
        "    name, noun = 'photometry:FLUXES', 'flux'\n"
        "    columns, positive = ('red', 'blue'), ('red',)\n"
        "    spellings = {'red': frozenset({'r', 'rband'})}\n"
        "FLUXES = Fluxes()\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    kind = "photometry:FLUXES"
    items = read_items(
        written(tmp_path, "survey,R band,Blue,note\nA,1,-2,n\nB,3,4,\n"),
        kind,
        columns="expert=survey",
    )
    assert {name: column.tolist() for name, column in items.columns.items()} == {
        "red": [1, 3],
        "blue": [-2, 4],
    }
    with pytest.raises(InputError, match=r"column 'r': '-1' is not a red; reds must be positive"):
        read_items(written(tmp_path, "expert,r,blue\nA,-1,2\n"), kind)
    with pytest.raises(InputError, match=r"COCO files hold circles, .* not photometry:FLUXES"):
        read_items(written(tmp_path, samples.COCO, "a.json"), kind)


PEOPLE = "id,list,name,city\n1,a,Ann,Rome\n2,b,Anne,Rome\n3,b,Bob,Oslo\n4,c,Bob,Oslo\n"


def test_own_pairs_from_a_file_name_ids(tmp_path: Path) -> None:
    path = written(tmp_path, PEOPLE)
    pairs = written(tmp_path, "one,other\n2,1\n1,2\n3,4\n3,3\n", "pairs.csv")
    found = read_items(path, "records", candidates=pairs).candidates
    assert found is not None
    assert found.tolist() == [[0, 1], [2, 3]]
    without = read_items(path, "records", exclude_experts=["c"], candidates=pairs).candidates
    assert without is not None
    assert without.tolist() == [[0, 1]]


def test_own_pairs_of_several_files(tmp_path: Path) -> None:
    paths = [
        written(tmp_path, "id,x,y\n1,0,0\n2,5,5\n", "ann.csv"),
        written(tmp_path, "id,x,y\n1,0,0\n3,5,5\n", "bob.csv"),
    ]
    pairs = written(tmp_path, "one,other\nann.csv:1,bob.csv:1\n2,3\n", "pairs.csv")
    found = read_items(paths, "points", candidates=pairs).candidates
    assert found is not None
    assert found.tolist() == [[0, 2], [1, 3]]
    pairs = written(tmp_path, "one,other\n1,3\n", "pairs.csv")
    with pytest.raises(InputError, match=r"several files have an item '1'; write .* FILE.csv:1"):
        read_items(paths, "points", candidates=pairs)


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("one,other\n1,7\n", {}, "pairs.csv, row 2, column 'other': no item has the id '7'"),
        ("one\n1\n", {}, "needs two columns"),
        ("one,other\n1,2\n", {"id": ""}, "no column of the items has ids"),
    ],
)
def test_bad_own_pairs_are_refused_by_their_place(
    tmp_path: Path, text: str, columns: dict[str, str], message: str
) -> None:
    path, pairs = written(tmp_path, PEOPLE), written(tmp_path, text, "pairs.csv")
    with pytest.raises(InputError, match=message):
        read_items(path, "records", columns=columns, candidates=pairs)


def test_longitude_and_latitude_of_points_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "expert,lon,lat\nA,1,2\nB,1,2\n")
    items, warning = read(path, "points")
    assert items.values.tolist() == [[1, 2], [1, 2]]
    assert "points are fitted in a plane" in warning
    assert items.site.units == "px"


def test_exact_repeats_by_one_expert_are_told(tmp_path: Path) -> None:
    path = written(tmp_path, "expert,x,y\nA,1,2\nA,1,2\nB,1,2\n")
    with pytest.warns(DfcrpWarning, match=r"1 point .* 2 repeats 1 \(A\)"):
        read_items(path, "points")


# What is in the samples, by format and kind: items and, in part, the warning.
DRAWINGS: dict[tuple[str, str], tuple[list[tuple[float, ...]], str]] = {
    ("COCO", "boxes"): (
        [(60, 40, 20, 20), (4, 1, 8, 2)],
        "2 boxes are read; left out: 1 mask (annotation 3); 1 polygon (annotation 4)",
    ),
    ("COCO", "points"): (
        [(60, 40), (4, 1), (4, 4)],
        "there are no points in it; the centres of its shapes are read; 3 points are read; "
        "left out: 1 mask (annotation 3)",
    ),
    ("COCO", "ellipses"): (
        [(60, 40, 20, 20, 0), (4, 4, 9.027033, 9.027033, 90)],
        "2 ellipses are read; left out: 1 box (annotation 2); 1 mask",
    ),
    ("CVAT XML", "boxes"): (
        [(4, 1, 8, 2)],
        "left out: 1 ellipse (row 5); 2 points (rows 10, 10); 1 polygon (row 8); 1 polyline",
    ),
    ("CVAT XML", "points"): (
        [(60, 40), (60, 40), (4, 1), (1, 2), (3, 4)],
        "beside 2 points the centres of 1 box, 1 ellipse, 1 polygon are read",
    ),
    ("CVAT XML", "ellipses"): (
        [(60, 40, 20, 20, 0), (60, 40, 20, 20, 0)],
        "left out: 1 box (row 9); 2 points (rows 10, 10); 1 polyline (row 11)",
    ),
    ("Zooniverse", "boxes"): (
        [(10.5, 11, 3, 4)],
        "1 box is read; left out: 3 circles (rows 3, 3, 4); 1 classification made again later",
    ),
    ("Zooniverse", "points"): (
        [(10.5, 20), (30, 40), (50, 60), (10.5, 11), (4, 4), (5, 6), (11, 21)],
        "beside 1 point the centres of 1 box, 1 ellipse, 1 polygon, 3 circles are read",
    ),
    ("Zooniverse", "ellipses"): (
        [(10.5, 20, 8, 8, 0), (30, 40, 16, 4, 175), (5, 6, 14, 14, 0), (11, 21, 8, 8, 0)],
        "left out: 1 box (row 3)",
    ),
    ("VIA CSV", "boxes"): ([(4, 1, 8, 2)], "1 circle (row 2)"),
    ("VIA JSON", "boxes"): ([(4, 1, 8, 2)], "1 circle (region 1)"),
    ("VIA CSV", "ellipses"): ([(60, 40, 20, 20, 0), (5, 6, 16, 4, 0)], "1 box (row 4)"),
    ("LabelMe", "boxes"): ([(4, 1, 8, 2)], "1 circle (shape 1)"),
    ("LabelMe", "points"): (
        [(60, 40), (60, 40), (4, 1), (0, 0)],
        "beside 1 point the centres of 1 box, 1 circle, 1 polygon are read",
    ),
    ("Label Studio", "boxes"): ([(4, 1, 8, 2)], "1 ellipse (task 1)"),
    ("Label Studio", "points"): (
        [(60, 40), (4, 1), (60, 40), (2, 1)],
        "beside 1 point the centres of 1 box, 1 ellipse, 1 polygon are read",
    ),
    ("GeoJSON", "points"): (
        [(10.1, 5.1), (10.11, 5.1), (4, 4)],
        "beside 1 point the centres of 2 polygons are read",
    ),
    ("GeoJSON", "boxes"): ([(4, 4, 8, 8)], "1 point without width and height (feature 1)"),
    ("GeoJSON", "ellipses"): (
        [(10.1, 5.1, 1.1, 1.1, 0), (10.11, 5.1, 0.9, 0.9, 0)],
        "1 polygon that is not a circle (feature 3)",
    ),
    ("CraterStats .scc", "points"): ([(10.1, 5.1), (10.11, 5.1)], ""),
    ("Parquet", "points"): ([(1, 2), (4, 5.5)], ""),
    ("Robbins", "points"): ([(264.757, -19.8304), (328.602, 44.7763)], ""),
}


@pytest.mark.parametrize(("format_name", "kind"), DRAWINGS, ids=lambda part: str(part))
def test_every_format_gives_the_kinds_it_can_hold(
    tmp_path: Path, format_name: str, kind: str
) -> None:
    name, content = samples.SINGLE_FILES[format_name]
    # Formats that do not say who drew are one expert per file.
    names_experts = format_name in ("Zooniverse", "Label Studio", "Parquet")
    who = ("ann",) if names_experts else ("ann", "bob")
    items, warning = read([written(tmp_path, content, f"{one}/{name}").parent for one in who], kind)
    expected, told = DRAWINGS[format_name, kind]
    assert items.values.round(6).tolist() == [list(row) for row in expected] * len(who)
    assert told in warning
    assert items.kind == kind
    assert names_experts or items.experts == who


@pytest.mark.parametrize("kind", ["diagonal", "normal", "records"])
@pytest.mark.parametrize("format_name", samples.SINGLE_FILES)
def test_drawings_are_no_records(tmp_path: Path, format_name: str, kind: str) -> None:
    name, content = samples.SINGLE_FILES[format_name]
    form = next(f for f in formats() if f.recognises(GivenFile(name, Path(name), content)))
    if form.kinds is None:
        pytest.skip("a table")
    with pytest.raises(InputError, match=rf"{form.name} files hold circles, .*not {kind}"):
        read_items(written(tmp_path, content, name), kind)


@pytest.mark.parametrize(
    ("mark", "kind", "message"),
    [
        (
            {"x": 1, "y": 2, "r": 3},
            "boxes",
            "no box in it, but 1 circle .*read it with --likelihood circles or --likelihood elli",
        ),
        (
            {"x": 1, "y": 2},
            "ellipses",
            "no ellipse in it, but 1 point .*read it with --likelihood points",
        ),
        (
            {"x": 1, "y": 2, "width": 3, "height": 4},
            "circles",
            "read it with --likelihood boxes or --likelihood points; .*--boxes",
        ),
        ({"x1": 1, "y1": 2, "x2": 3, "y2": 4}, "points", r"no point in it, but 1 line \(row 2\)$"),
    ],
)
def test_a_file_without_the_kind_says_what_it_has(
    tmp_path: Path, mark: dict[str, Any], kind: str, message: str
) -> None:
    content = samples.zooniverse([{"annotations": [samples.drawing(mark)]}])
    with pytest.raises(InputError, match=message):
        read_items(written(tmp_path, content, "export.csv"), kind)


def turned_ellipses() -> dict[str, tuple[bytes, float]]:
    """An ellipse turned by 30° as each tool writes it, and the angle from x towards y."""
    drawn = samples.drawing({"x": 60, "y": 40, "rx": 20, "ry": 10, "angle": 30})
    shape = {"name": "ellipse", "cx": 60, "cy": 40, "rx": 20, "ry": 10, "theta": np.pi / 6}
    quoted = json.dumps(shape).replace('"', '""')
    cvat = (
        '<annotations><image name="a"><ellipse cx="60" cy="40" rx="20" ry="10" rotation="30"/>'
        "</image></annotations>"
    )
    studio = samples.studio_result("ellipse", x=30, y=40, radiusX=10, radiusY=10, rotation=30)
    annotation = {"completed_by": 1, "result": [studio]}
    task = {"data": {"image": "a"}, "annotations": [annotation]}
    return {
        # Zooniverse turns ellipses the other way, the others as SVG does.
        "Zooniverse": (samples.zooniverse([{"annotations": [drawn]}]), 150.0),
        "CVAT XML": (cvat.encode(), 30.0),
        "VIA CSV": (f'filename,region_shape_attributes\na.png,"{quoted}"\n'.encode(), 30.0),
        "Label Studio": (json.dumps([task]).encode(), 30.0),
    }


@pytest.mark.parametrize("format_name", turned_ellipses())
def test_angles_are_from_x_towards_y(tmp_path: Path, format_name: str) -> None:
    content, angle = turned_ellipses()[format_name]
    name = samples.SINGLE_FILES[format_name][0]
    table = read_table(written(tmp_path, content, name), "ellipses")
    values = [column[0] for column in table.columns.values()]
    assert values == pytest.approx([60, 40, 40, 20, angle])


def test_the_longer_axis_is_the_major_one(tmp_path: Path) -> None:
    content = turned_ellipses()["CVAT XML"][0].replace(b'"20"', b'"5"')
    table = read_table(written(tmp_path, content, "a.xml"), "ellipses")
    assert [column[0] for column in table.columns.values()] == [60, 40, 20, 10, 120]


def test_turned_boxes(tmp_path: Path) -> None:
    """By a right angle they are boxes with the sides exchanged, otherwise none."""

    def task(rotation: float) -> bytes:
        box = samples.studio_result("rectangle", x=10, y=10, width=4, height=4, rotation=rotation)
        annotations = [{"completed_by": who, "result": [box]} for who in (1, 2)]
        return json.dumps([{"data": {"image": "a"}, "annotations": annotations}]).encode()

    # 8 wide and 4 high, turned about its upper left corner (20, 10) by 90° from x towards y.
    items = read_items(written(tmp_path, task(90), "a.json"), "boxes")
    assert items.values[0] == pytest.approx([18, 14, 4, 8])
    with pytest.raises(InputError, match=r"2 boxes that are turned \(tasks 1, 1\)"):
        read_items(written(tmp_path, task(20), "a.json"), "boxes")


def test_a_file_of_turned_boxes_holds_ellipses(tmp_path: Path) -> None:
    """The ellipse in a box has its sides as axes; where there are ellipses, boxes are none."""
    box = '<box xtl="40" ytl="30" xbr="80" ybr="50" rotation="{}"/>'
    frame = '<annotations><image name="a">{}</image></annotations>'

    def read(*shapes: str, kind: str = "ellipses") -> list[list[float]]:
        path = written(tmp_path, frame.format("".join(shapes)).encode(), "a.xml")
        columns = read_table(path, kind).columns.values()
        return [[float(value) for value in row] for row in zip(*columns, strict=True)]

    with pytest.warns(DfcrpWarning, match="turned boxes are read by their sides"):
        found = read(box.format(30), box.format(0))
    assert found == [[60, 40, 40, 20, 30], [60, 40, 40, 20, 0]]
    ellipse = '<ellipse cx="1" cy="2" rx="4" ry="3"/>'
    with pytest.warns(DfcrpWarning, match="left out: 1 box "):
        assert read(box.format(30), ellipse) == [[1, 2, 8, 6, 0]]
    with pytest.raises(InputError, match="no ellipse in it, but 1 box "):
        read(box.format(0))
    with pytest.raises(InputError, match=r"1 box that is turned .*--likelihood ellipses"):
        read(box.format(30), kind="boxes")


def test_parquet_of_every_kind(tmp_path: Path) -> None:
    def write(name: str, columns: dict[str, list[Any]]) -> Path:
        pyarrow.parquet.write_table(pyarrow.table(columns), tmp_path / name)
        return tmp_path / name

    about: dict[str, list[Any]] = {"annotator": ["a", "b"], "image": ["p", "q"]}
    boxes = read_items(
        write("b.parquet", {**about, "x": [1, 2], "y": [1, 2], "w": [3, 4], "h": [5.0, 6]}), "boxes"
    )
    assert boxes.values.tolist() == [[1, 1, 3, 5], [2, 2, 4, 6]]
    assert boxes.images == ("p", "q")
    records = read_items(
        write("r.parquet", {**about, "name": ["Ann", None], "born": [1980, 1981]}), "records"
    )
    assert {name: cells.tolist() for name, cells in records.columns.items()} == {
        "name": ["Ann", ""],
        "born": ["1980", "1981"],
    }


@pytest.mark.parametrize(("kind", "count"), [("circles", 8), ("boxes", 4), ("points", 16)])
def test_a_folder_for_each_expert_with_several_images(
    tmp_path: Path, kind: str, count: int
) -> None:
    for who in ("ann", "bob"):
        written(tmp_path, samples.LABELME, f"{who}/a.json")
        written(tmp_path, samples.LABELME.replace(b"a.png", b"b.png"), f"{who}/b.json")
    folders = [tmp_path / "ann", tmp_path / "bob"]
    items, warning = read(folders, kind)
    assert len(items) == count
    assert items.experts == ("ann", "bob")
    assert items.images == ("a.png", "b.png")
    assert items.id[0] == "ann:ann/a.json:1"
    assert warning.count(" read; left out: ") == 4
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert read_items(folders, kind, image="b.png").images == ("b.png",)


def test_an_image_without_a_box_is_passed_over(tmp_path: Path) -> None:
    for who in ("ann", "bob"):
        written(tmp_path, samples.LABELME, f"{who}/a.json")
        written(tmp_path, b'{"shapes": [], "imagePath": "b.png"}', f"{who}/b.json")
    items, warning = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.images == ("a.png",)
    assert "ann: 1 of 2 files have no boxes and are skipped, the first: ann/b.json" in warning
    (tmp_path / "bob" / "a.json").unlink()
    items, warning = read([tmp_path / "ann", tmp_path / "bob"], "boxes")
    assert items.looked is not None
    assert ["b.png", "bob"] in items.looked.tolist()
    assert "bob: there are no boxes in it: who made it looked at 1 image and marked" in warning
    with pytest.raises(InputError, match="bob: there are no boxes in its files"):
        read([tmp_path / "bob"], "boxes")


def test_markings_are_items_of_circles(tmp_path: Path) -> None:
    path = written(tmp_path, "x,y,r,observer\n1,2,3,A\n4,5,6,B\n")
    markings, items = read_markings(path), read_items(path)
    assert markings.digest == items.digest
    assert markings.diameter.tolist() == [6, 12]
    assert markings.families.tolist() == [0, 1]
