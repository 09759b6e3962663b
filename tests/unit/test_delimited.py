"""Reading marking lists from delimited text: what works without flags, and every complaint."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.io import read_markings
from dfcrp.io.format import GivenFile
from dfcrp.io.formats.delimited import sniff
from dfcrp.io.registry import formats
from dfcrp.items.columns import ABOUT, ABOUT_ELSE, GEOGRAPHIC, SAID, SPELLINGS, recognise
from dfcrp.likelihoods.registry import likelihood_named
from shared_data import highlands_path

Write = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Write:
    def write_file(content: str | bytes, name: str = "m.csv") -> Path:
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write_file


PLAIN = "x,y,diameter,expert\n1,2,3,Ann\n4,5.5,6e0,Bob Day\n"


@pytest.mark.parametrize(
    "content",
    [
        PLAIN,
        PLAIN.replace("\n", "\r\n"),
        PLAIN.replace("\n", "\r"),
        PLAIN.rstrip("\n"),
        PLAIN.replace(",", ", "),
        PLAIN.replace(",", "\t"),
        PLAIN.replace(",", ";"),
        PLAIN.replace(",", " | "),
        PLAIN.replace("Bob Day", '"Bob Day"'),
        PLAIN.replace("Bob Day", "'Bob Day'"),
        PLAIN.replace("Bob Day", '"Bob Day"').replace(",", " "),
        PLAIN.replace("Bob Day", "'Bob Day'").replace(",", "  "),
        PLAIN.replace("Bob Day", '"Bob Day"').replace(",", " \t").replace("\n", "  \n  "),
        "\ufeff" + PLAIN,
        PLAIN.encode("utf-16"),
        b"\xfe\xff" + PLAIN.encode("utf-16-be"),
        PLAIN.encode("utf-32"),
        "# a comment, with a \" quote\n\n  \n" + PLAIN.replace("4,", "#9,9,9,Eve\n\n,,,\n4,"),
        "X,Y,D,User_Name\n1,2,3,Ann\n4,5.5,6,Bob Day\n",
        "x_centre (px),y_centre (px),radius [px],Rater\n1,2,1.5,Ann\n4,5.5,3,Bob Day\n",
        "note,expert,diam,y,x\n,Ann,3,2,1\n\"#1\n#2\n\n\",Bob Day,6,5.5,4\n",
        "diameter,radius,x,y,expert\n3,99,1,2,Ann\n6,99,4,5.5,Bob Day\n",
    ],
)  # fmt: skip
def test_reads_without_flags(write: Write, content: str | bytes) -> None:
    markings = read_markings(write(content))
    assert markings.x.tolist() == [1.0, 4.0]
    assert markings.y.tolist() == [2.0, 5.5]
    assert markings.diameter.tolist() == [3.0, 6.0]
    assert markings.expert.tolist() == ["Ann", "Bob Day"]
    assert markings.id.tolist() == ["1", "2"]


HEAD = "x,y,diameter,expert\n1,2,3,Ann\n"

NASTY: dict[str, tuple[str | bytes, list[str]]] = {
    "empty file": ("", ["m.csv", "empty"]),
    "only blank lines": ("\n \n\n", ["m.csv", "empty"]),
    "only comments": ("# x,y\n", ["m.csv", "empty"]),
    "header only": ("x,y,diameter,expert\n", ["m.csv", "no row"]),
    "missing column": ("x,y,expert\n1,2,A\n", ["m.csv", "diameter (or radius)", "'expert'"]),
    "misspelt column": ("x,y,diametre,expert\n1,2,3,A\n", ["m.csv", "is diameter 'diametre'?"]),
    "no header": ("1,2,3,Ann\n4,5,6,Ann\n", ["m.csv", "x, y, diameter", "is it missing?"]),
    "no expert": ("x,y,d\n1,2,3\n", ["m.csv", "expert", "--columns expert=NAME"]),
    "two for a role": ("x,X,y,d,expert\n1,1,2,3,A\n", ["m.csv", "'x', 'X'", "--columns x=NAME"]),
    "decimal comma": (
        "x;y;diameter;expert\n1;2;3;A\n1;12,5;3;A\n1;2,5;3;A\n",
        ["m.csv, row 3, column 'y'", "'12,5'", "write '12.5'", "and 1 more bad row)"],
    ),
    "thousands": (HEAD + '"1,234.5",2,3,A\n', ["m.csv, row 3, column 'x'", "write '1234.5'"]),
    "text in a number": (HEAD + "1,2,wide,A\n", ["m.csv, row 3, column 'diameter'", "'wide'"]),
    "no number": (HEAD + "1,,3,A\n", ["m.csv, row 3, column 'y'", "no value"]),
    "missing value of R": (HEAD + "1,NA,3,A\n", ["m.csv, row 3, column 'y'", "'NA'"]),
    "nan": (HEAD + "NaN,2,3,A\n", ["m.csv, row 3, column 'x'", "'NaN' is not finite"]),
    "infinite": (HEAD + "1,-inf,3,A\n", ["m.csv, row 3, column 'y'", "not finite"]),
    "overflow": (HEAD + "1,1e400,3,A\n", ["m.csv, row 3, column 'y'", "'1e400' is not finite"]),
    "absurd": (HEAD + "1,1e16,3,A\n", ["m.csv, row 3, column 'y'", "beyond 1e+15"]),
    "negative diameter": (HEAD + "1,2,-4,A\n", ["m.csv, row 3, column 'diameter'", "positive"]),
    "zero radius": ("x,y,r,expert\n1,2,0,A\n", ["m.csv, row 2, column 'r'", "radii must be"]),
    "no expert name": (HEAD + "1,2,3,\n", ["m.csv, row 3, column 'expert'", "no expert"]),
    "many bad rows": (
        HEAD + "1,2,3,\n\n# skipped\n1,2,0,A\n1,x,0,A\n",
        ["m.csv, row 3, column 'expert'", "and 2 more bad rows)"],
    ),
    "too few fields": (
        HEAD + "1,2,3\n1,2\n",
        ["m.csv, row 3: 3 fields, the header has 4", "'expert'", "and 1 more bad row)"],
    ),
    "too many fields": (HEAD + "1,2,3,A,5\n", ["m.csv, row 3: 5 fields, the header has 4"]),
    "row names of R": (
        '"x" "y" "diameter" "expert"\n"1" 1 2 3 "A"\n"2" 1 2 4 "A"\n',
        ["m.csv, row 2: 5 fields", "row.names = FALSE", "and 1 more bad row)"],
    ),
    "delimiter changes": (
        HEAD * 1 + "1,2,3,B\n1;2;3;A\n",
        ["m.csv, row 4: 1 field", "commas as above, not semicolons"],
    ),
    "delimiter changes to blanks": (
        HEAD.replace(",", "\t") + "1 2 3 B\n" + "7\t8\t9\tC\n" * 3,
        ["m.csv, row 3: 1 field", "tabs as above, not blanks"],
    ),
    "unterminated quote": (HEAD + '1,2,3,"A\n4,5,6,B\n', ["m.csv, row 3", "quote", "not closed"]),
    "endless quote": (HEAD + '1,2,3,"' + "A\n" * 200_000, ["m.csv, row 3", "quote"]),
    "quote closed in a later row": (
        HEAD + '1,2,3,"A\n4,5,6,B"\n',
        ["m.csv, row 3, column 'expert'", "line break", "quote"],
    ),
    "quote closed in a later row, blanks": (
        'x y d expert\n1 2 3 "A\n4 5 6 B"\n',
        ["m.csv, row 2, column 'expert'", "line break", "quote"],
    ),
    "text after a quote": (HEAD + '1,2,3,"A"B\n', ["m.csv, row 3", "quote"]),
    "Latin-1": (HEAD.encode() + b"1,2,3,Andr\xe9\n", ["m.csv", "0xE9 at offset 40", "row 3"]),
    "half a character": (HEAD.encode("utf-16") + b"\n", ["m.csv", "UTF-16", "offset"]),
    "NUL": (HEAD.encode() + b"1,2,3,A\0\n", ["m.csv", "NUL byte at offset 37", "CSV"]),
    "NUL in UTF-16": ((HEAD + "1,2,3,A\0\n").encode("utf-16"), ["m.csv, row 3", "NUL"]),
    "binary": (b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR", ["m.csv", "not a text file"]),
    "repeated id": (
        "id,x,y,d,expert\na,1,2,3,A\nb,1,2,4,A\na,1,2,5,A\n",
        ["m.csv, row 4, column 'id'", "'a'", "--columns id="],
    ),
    "no image name": ("image,x,y,d,expert\n,1,2,3,A\n", ["m.csv, row 2, column 'image'"]),
    "label not whole": ("x,y,d,expert,truth\n1,2,3,A,c\n", ["m.csv, row 2, column 'truth'"]),
    "long cell": (HEAD + "1,2," + "9x" * 500 + ",A\n", ["m.csv, row 3", "9x9x9..."]),
}  # fmt: skip


@pytest.mark.parametrize("case", NASTY)
def test_refuses_with_place_and_fix(write: Write, case: str) -> None:
    content, expected = NASTY[case]
    with pytest.raises(InputError) as caught:
        read_markings(write(content))
    message = str(caught.value)
    assert [part for part in expected if part not in message] == [], message
    assert "\n" not in message
    assert len(message) < 500


def test_refuses_missing_file_and_directory(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"none\.csv: there is no such file"):
        read_markings(tmp_path / "none.csv")
    with pytest.raises(InputError, match="this is a directory"):
        read_markings(str(tmp_path))
    with pytest.raises(InputError, match="cannot be read"):
        read_markings(tmp_path / "a\0b.csv")
    with pytest.raises(InputError, match="no file to read"):
        read_markings([])


def test_columns_as_dict_or_string(write: Write) -> None:
    path = write("LON,LAT,size,who,x\n1,2,3,Ann,77\n")
    text = "x=LON, y=lat,radius=size,expert=who"
    for choice in (text, dict(pair.strip().split("=") for pair in text.split(","))):
        markings = read_markings(path, columns=choice)
        assert (markings.x[0], markings.y[0], markings.diameter[0]) == (1, 2, 6)


@pytest.mark.parametrize(
    ("columns", "error", "expected"),
    [
        ("ex=LON", SettingsError, ["unknown role 'ex'", "the roles are x, y"]),
        ({"diamter": "d"}, SettingsError, ["did you mean 'diameter'"]),
        ("LON", SettingsError, ["'LON' is not of the form role=NAME"]),
        ("x=LON,x=LAT", SettingsError, ["x is given twice"]),
        ("x=LON,y=LON", SettingsError, ["'LON' is wanted for both x and y"]),
        ("diameter=d,radius=d2", SettingsError, ["either diameter or radius"]),
        ("x=LONG", InputError, ["m.csv", "'LONG'", "did you mean 'LON'?", "'LON', 'LAT', 'd'"]),
        ("x=twin", InputError, ["m.csv", "'twin'", "2 times"]),
        ("diameter=", InputError, ["m.csv", "no column for diameter"]),
    ],
)
def test_refuses_columns(
    write: Write, columns: Any, error: type[Exception], expected: list[str]
) -> None:
    path = write("LON,LAT,d,d2,expert,twin,twin\n1,2,3,3,A,0,0\n")
    with pytest.raises(error) as caught:
        read_markings(path, columns=columns)
    assert [part for part in expected if part not in str(caught.value)] == [], str(caught.value)


def test_a_role_can_be_left_unfilled(write: Write) -> None:
    path = write("id,x,y,d,expert\n1,1,2,3,A\n1,4,5,6,B\n")
    assert read_markings(path, columns="id=").id.tolist() == ["1", "2"]
    assert read_markings(path, columns={"id": None}).id.tolist() == ["1", "2"]


def test_a_column_given_to_one_role_is_not_taken_for_another(write: Write) -> None:
    markings = read_markings(write("x,y,d,image\n1,2,3,Ann\n"), columns="expert=image")
    assert markings.experts == ("Ann",)
    assert markings.image is None


@pytest.mark.parametrize("odd", ["\x85", "\u2028", "\xa0", "é", "深", "\U0001f311"])
def test_only_line_ends_end_lines(write: Write, odd: str) -> None:
    markings = read_markings(write(f"x,y,d,expert\n1,2,3,A{odd}B\n"))
    assert markings.experts == (f"A{odd}B",)


def test_every_spelling_is_recognised_alone() -> None:
    """Of every kind, the columns that describe an item in any of the ways it can be described."""
    for kind in ("circles", "points", "boxes", "ellipses"):
        likelihood = likelihood_named(kind)
        for way in (likelihood.columns, *likelihood.alternatives):
            for role in way:
                for name in SPELLINGS[role]:
                    header = [other for other in way if other != role] + [name.upper()]
                    roles = recognise(header, likelihood, None, "h")
                    assert set(roles.columns) == set(way)
                    assert roles.columns[role] == len(header) - 1


@pytest.mark.parametrize("kind", ["circles", "points", "diagonal", "records"])
def test_what_is_about_an_item_is_recognised_for_every_kind(kind: str) -> None:
    likelihood = likelihood_named(kind)
    described = list(likelihood.columns or ("a", "b"))
    for spellings in (ABOUT, ABOUT_ELSE):
        for role, names in spellings.items():
            for name in names:
                # Of items described by any columns, what they say is named by the user.
                free = role in SAID and likelihood.columns is None
                choice = {role: name} if free else None
                roles = recognise([*described, name.title()], likelihood, choice, "h")
                assert roles.about == {role: len(described)}
                assert list(roles.columns) == described


def test_no_spelling_has_two_roles() -> None:
    tables = (SPELLINGS, GEOGRAPHIC, ABOUT, ABOUT_ELSE)
    names = [name for table in tables for spellings in table.values() for name in spellings]
    assert len(names) == len(set(names))


def test_files_without_expert_column_are_one_expert_each(write: Write) -> None:
    first = write("x,y,d\n1,2,3\n4,5,6\n", "Zoe.csv")
    second = write("x y r\n7 8 9\n", "Ann.txt")
    markings = read_markings([first, second])
    assert markings.expert.tolist() == ["Zoe", "Zoe", "Ann"]
    assert markings.id.tolist() == ["Zoe.csv:1", "Zoe.csv:2", "Ann.txt:1"]
    assert markings.diameter.tolist() == [3, 6, 18]
    assert [source.file for source in markings.sources] == ["Zoe.csv", "Ann.txt"]
    assert markings.sources[1].sha256 == hashlib.sha256(second.read_bytes()).hexdigest()


def test_files_of_one_name_keep_ids_apart(write: Write) -> None:
    paths = [write("id,x,y,d,expert\nk,1,2,3,A\n", f"{folder}/m.csv") for folder in "ab"]
    with pytest.warns(DfcrpWarning, match="1 marking"):
        markings = read_markings(paths)
    assert markings.id.tolist() == [f"{path}:k" for path in paths]


BARE, FULL = "x,y,d\n1,2,3\n", "x,y,d,expert\n1,2,3,A\n"


@pytest.mark.parametrize(
    ("files", "message"),
    [
        ({"a.csv": BARE, "a.txt": BARE}, "a.csv and a.txt would both be the expert 'a'"),
        ({"a.csv": BARE, "b.csv": FULL}, "a.csv has no column for expert, but b.csv has one"),
        ({"a\tb.csv": BARE, "b.csv": BARE}, "cannot be printed"),
        (
            {"a.csv": FULL, "b.csv": "image,x,y,d,expert\np,1,2,3,A\n"},
            "a.csv has no column for image, but b.csv has one",
        ),
    ],
)
def test_refuses_files_that_do_not_go_together(
    write: Write, files: dict[str, str], message: str
) -> None:
    paths = [write(content, name) for name, content in files.items()]
    with pytest.raises(InputError) as caught:
        read_markings(paths)
    assert message in str(caught.value)


def test_refuses_a_file_given_twice(write: Write) -> None:
    path = write(FULL)
    with pytest.raises(InputError, match=r"m\.csv: the file is given twice"):
        read_markings([path, path.parent / "." / "m.csv"])


FILTERED = "x,y,d,expert,image\n1,1,10,Ann,p\n2,2,20,Bob,p\n3,3,30,Ann,q\n4,4,40,Cy,q\n"


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        ({}, "1234"),
        ({"image": "p"}, "12"),
        ({"image": ["p", "q"]}, "1234"),
        ({"min_diameter": 20}, "234"),
        ({"exclude_experts": ["Ann"]}, "24"),
        ({"exclude_experts": "Ann", "image": "q", "min_diameter": 1.5}, "4"),
    ],
)
def test_filters(write: Write, filters: dict[str, Any], ids: str) -> None:
    markings = read_markings(write(FILTERED), **filters)
    assert "".join(markings.id) == ids
    assert markings.rows_read == 4
    assert markings.rows_filtered_out == 4 - len(ids)
    assert markings.sources[0].kept == len(ids)


@pytest.mark.parametrize(
    ("filters", "error", "message"),
    [
        ({"image": "P"}, InputError, "no image is called 'P'; did you mean 'p'"),
        ({"exclude_experts": ["Bobb"]}, InputError, "expert is called 'Bobb'; did you mean 'Bob"),
        ({"exclude_experts": ["Ann", "Bob", "Cy"]}, InputError, "every marking is by an excluded"),
        ({"image": "p", "exclude_experts": ["Ann", "Bob"]}, InputError, "the chosen image is by"),
        ({"image": "p", "min_diameter": 21}, InputError, "least diameter, 21: the largest is 20"),
        ({"min_diameter": float("nan")}, SettingsError, "min_diameter is nan"),
        ({"min_diameter": -1}, SettingsError, "min_diameter is -1"),
        ({"min_diameter": "18"}, SettingsError, "min_diameter is '18'"),
    ],
)  # fmt: skip
def test_refuses_filters(
    write: Write, filters: dict[str, Any], error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        read_markings(write(FILTERED), **filters)


def test_refuses_to_filter_by_image_without_images(write: Write) -> None:
    with pytest.raises(InputError, match="no image column"):
        read_markings(write(FULL), image="p")


def test_bad_rows_are_refused_even_where_a_filter_would_drop_them(write: Write) -> None:
    with pytest.raises(InputError, match="row 3, column 'd'"):
        read_markings(write(FULL + "1,2,0,B\n"), exclude_experts="B")


def test_repeats_matter_only_after_filters(write: Write) -> None:
    path = write(FULL + "1,2,3,A\n7,8,9,B\n")
    with pytest.warns(DfcrpWarning, match=r"2 repeats 1 \(A\)"):
        read_markings(path)
    read_markings(path, exclude_experts="A")


@pytest.mark.parametrize(
    ("text", "delimiter", "quote"),
    [
        ("x;y;size,mm;expert\n1,5;2;3;A\n", ";", '"'),
        ("X (px), Y (px), D (px)\n1, 2, 3\n", ",", '"'),
        ("x\ty d\n1 2 3\n1 2 4\n", " ", '"'),
        ("x,y,d,who\n1,2,3,'Day, B'\n", ",", "'"),
        ("x,y,d,who\n1,2,3,'t Hart\n4,5,6,O'Hara\n", ",", '"'),
        ("x,y,d,who\n1,2,3,\"Bob 'the eye' Day\"\n", ",", '"'),
        ('x,y,note\n1,2,"a;b;c;d"\n3,4,"e;f;g;h"\n', ",", '"'),
        ("x\n1\n", ",", '"'),
    ],
)
def test_sniffs(text: str, delimiter: str, quote: str) -> None:
    dialect = sniff(text)
    assert (dialect.delimiter, dialect.quote) == (delimiter, quote)


def test_the_last_format_takes_what_no_other_claims() -> None:
    assert formats()[-1].name == "delimited text"
    assert formats()[-1].recognises(GivenFile("anything", Path("anything"), b"\0"))


def test_truth_is_read(write: Write) -> None:
    markings = read_markings(write("x,y,d,expert,truth\n1,2,3,A,4\n2,2,3,A,-1\n"))
    assert markings.truth is not None
    assert markings.truth.tolist() == [4, -1]


def test_highlands() -> None:
    markings = read_markings(highlands_path(), min_diameter=18, exclude_experts=["Concensus"])
    counts = np.bincount(markings.families)
    assert (len(markings), len(markings.experts)) == (9517, 11)
    assert (counts.min(), counts.max()) == (636, 1197)
    assert (markings.rows_filtered_out, markings.rows_read) == (5869, 15386)
    assert markings.images == ("NAC",)
    assert markings.diameter.min() >= 18


def test_a_hundred_thousand_rows_take_little_time(write: Write) -> None:
    rows = "".join(f"{n}.25,{n % 977}.5,{1 + n % 50},e{n % 11}\n" for n in range(100_000))
    path = write("x,y,diameter,expert\n" + rows)
    start = time.process_time()
    markings = read_markings(path)
    assert len(markings) == 100_000
    assert time.process_time() - start < 5.0  # about 0.4 s when this was written
