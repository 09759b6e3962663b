"""Intervals in files: tables with columns of many names, and the formats of other programs."""

from __future__ import annotations

import json
import warnings
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io import read_items, read_table, write_table
from dfcrp.items.items import Items
from interval_samples import AUDIO, ELAN, LONG, SAMPLES, SHORT, studio


def written(folder: Path, name: str, content: bytes | str) -> Path:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


def quietly(read: Any, *given: Any, **options: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        return read(*given, **options)


@pytest.mark.parametrize("sample", SAMPLES)
def test_every_format_of_intervals_is_read(tmp_path: Path, sample: str) -> None:
    name, content, expected = SAMPLES[sample]
    table = quietly(read_table, written(tmp_path, name, content), "intervals")
    rows = zip(table.columns["start"], table.columns["end"], table.about["category"], strict=True)
    assert list(rows) == expected


@pytest.mark.parametrize("sample", SAMPLES)
def test_intervals_are_nothing_else(tmp_path: Path, sample: str) -> None:
    name, content, _ = SAMPLES[sample]
    path = written(tmp_path, name, content)
    with pytest.raises(InputError, match=r"files hold intervals, not circles; .*--likelihood"):
        read_table(path, "circles")


def test_who_marked_and_in_what(tmp_path: Path) -> None:
    """The file names the expert; in a folder the folder does, and files name the recordings."""
    row = "1.0\t2.0\tcall\n"
    for place in ("ann/dawn.txt", "ann/dusk.txt", "bob/dawn.txt", "bob/dusk.txt"):
        written(tmp_path, place, row)
    found = read_items([tmp_path / "ann", tmp_path / "bob"], "intervals")
    assert found.experts == ("ann", "bob")
    assert found.image is not None
    assert found.image.tolist() == ["dawn", "dusk"] * 2
    assert found.looked is not None
    assert len(found.looked) == 4
    one = read_items([written(tmp_path, f"{who}.txt", row) for who in ("c", "d")], "intervals")
    assert (one.experts, one.image) == (("c", "d"), None)
    content = b"".join(
        json.dumps({"id": 3, "text": "", "label": [[0, 2, "A"]], "username": who}).encode() + b"\n"
        for who in ("eva", "fred")
    )
    two = read_items(written(tmp_path, "all.jsonl", content), "intervals")
    assert two.experts == ("eva", "fred")
    path = written(tmp_path, "p.json", studio(AUDIO, who={"email": "g@x.org"}, data={"a": "u.wav"}))
    three = read_items(path, "intervals")
    assert (three.experts, three.images) == (("g@x.org",), ("u.wav",))


def test_annotators_of_tiers_are_experts(tmp_path: Path) -> None:
    path = written(tmp_path, "a.eaf", ELAN)
    with pytest.warns(DfcrpWarning, match="left out: 1 annotation without times of its own"):
        found = read_items(path, "intervals")
    assert found.experts == ("ann", "bob")
    nameless = ELAN.replace('ANNOTATOR="ann"', "").replace('ANNOTATOR="bob"', "")
    both = [written(tmp_path, f"{who}.eaf", nameless) for who in ("cleo", "dev")]
    assert quietly(read_items, both, "intervals").experts == ("cleo", "dev")
    for old, new, message in (
        ("ts3", "ts9", r"the time of an annotation \('ts9, ts2'\) is not in the file"),
        ("1300", "soon", r"row 23: the time of an annotation"),
        ("<HEADER", "<!DOCTYPE x><HEADER", "not XML"),
        ("</TIER>", "", "not XML"),
    ):
        broken = (
            ELAN.replace(old, new, 1) if old != "ts3" else ELAN.replace('REF1="ts3', 'REF1="ts9')
        )
        with pytest.raises(InputError, match=message):
            read_items(written(tmp_path, "b.eaf", broken), "intervals")


def test_tiers_may_be_experts_or_categories(tmp_path: Path) -> None:
    grid = SHORT.replace('1\n"IntervalTier"', '2\n"IntervalTier"') + (
        '"IntervalTier"\n"others"\n0\n9.5\n1\n0\n9.5\n"x"\n'
    )
    path = written(tmp_path, "ann.TextGrid", grid)
    with pytest.warns(DfcrpWarning, match=r"tiers \('calls', 'others'\) are one list; --columns"):
        table = read_table(path, "intervals")
    assert table.extra["tier"] == ["calls", "calls", "others"]
    items = quietly(read_items, path, "intervals", columns="expert=tier")
    assert items.experts == ("calls", "others")
    assert (
        quietly(
            read_items, [path], "intervals", columns={"expert": "tier", "category": ""}
        ).category
        is None
    )


@pytest.mark.parametrize(
    ("tags", "expected"),
    [
        ("B-A I-A O", [(0, 2, "A")]),
        ("I-A I-A O", [(0, 2, "A")]),
        ("I-A B-A I-A", [(0, 1, "A"), (1, 3, "A")]),
        ("B-A I-B", [(0, 1, "A"), (1, 2, "B")]),
        ("S-A B-A E-A O", [(0, 1, "A"), (1, 3, "A")]),
        ("U-A B-A L-A", [(0, 1, "A"), (1, 3, "A")]),
        ("B-A I-A", [(0, 2, "A")]),
        ("B I O", [(0, 2, "span")]),
        ("B-A E-A I-A", [(0, 2, "A"), (2, 3, "A")]),
    ],
)
def test_tags_of_any_scheme(tmp_path: Path, tags: str, expected: list[Any]) -> None:
    content = "".join(f"token {tag}\n" for tag in tags.split())
    table = read_table(written(tmp_path, "a.bio", content), "intervals")
    rows = zip(table.columns["start"], table.columns["end"], table.about["category"], strict=True)
    assert list(rows) == expected


def test_sentences_and_documents_end_spans(tmp_path: Path) -> None:
    text = "-DOCSTART- O\n\na B-X\n\nb I-X\n\n-DOCSTART- -X- O O\nc B-X\n"
    table = read_table(written(tmp_path, "a.conll", text), "intervals")
    assert list(table.about["image"]) == ["1", "1", "2"]
    assert table.columns["start"].tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.conll", "a B-X\nb\n", r"a\.conll, row 2: a token without a tag; write O"),
        ("a.conll", "a B-X\nb Q-X\n", r"a\.conll, row 2: 'Q-X' is not a tag"),
        ("a.jsonl", '{"label": [[1]]}', r"a\.jsonl, row 1: '\[1\]' should be \[start, end, label"),
        ("a.jsonl", '{"label": [[1, 2, "A"]]', r"a\.jsonl, row 1: not JSON"),
        ("a.jsonl", '{"label": [[4, 2, "A"]]}', "row 1, column 'end': .* ends before it starts"),
        ("a.jsonl", '{"label": [["x", 2, "A"]]}', "row 1, column 'start': 'x' is not a number"),
        ("a.jsonl", '{"text": "x", "label": []}', r"a\.jsonl: there is no interval in it"),
        (
            "a.txt",
            "3.0\t3.0\tclick\n",
            r"no interval in it, but 1 event without a length \(row 1\)",
        ),
        ("a.TextGrid", LONG[:300], r"a\.TextGrid: the TextGrid ends where a time should be"),
        ("a.TextGrid", LONG.replace("xmax = 1.25", 'xmax = "x"'), "row 17: a time should be here"),
        ("a.TextGrid", LONG.replace('"TextGrid"', '"Pitch"'), "holds 'Pitch'; give a TextGrid"),
        (
            "a.csv",
            "start,end,expert\n1,2,a\n3,3,a\n",
            "row 3, column 'end': .* 3 to 3 has no length",
        ),
        ("a.csv", "start,end,expert\n5,2,a\n4,3,b\n", r"ends before it starts; .*\(and 1 more bad"),
        ("a.csv", "onset,duration,expert\n5,0,a\n", "column 'duration': .*no length; .*diagonal"),
        ("a.csv", "start,expert\n5,a\n", "no column for end"),
    ],
)
def test_what_is_no_interval_is_refused(
    tmp_path: Path, name: str, content: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        read_items(written(tmp_path, name, content), "intervals", columns=None)


@pytest.mark.parametrize(
    ("header", "image", "category"),
    [
        ("start,end,expert,image,category", "image", "category"),
        ("Start Time (s),End Time (s),annotator,recording,label", "recording", "label"),
        ("Begin,Finish,rater,track,class", "track", "class"),
        ("onset,offset_end,listener,filename,type", None, None),
        ("tmin,tmax,scorer,file,label", "file", "label"),
        ("start_offset,end_offset,user,document_id,entity", "document_id", "entity"),
        ("Begin Time (s),End Time (s),coder,audio,event_type", "audio", "event_type"),
        ("start_char,end_char,annotator,doc,tag", "doc", "tag"),
        ("t0,t1,expert,video,label", "video", "label"),
        ("start,stop,expert,image,label", "image", "label"),
    ],
)
def test_columns_by_many_names(
    tmp_path: Path, header: str, image: str | None, category: str | None
) -> None:
    path = written(tmp_path, "a.csv", f"{header}\n1,2.5,ann,u,call\n1.5,2,bob,u,song\n")
    if image is None:
        with pytest.raises(InputError, match="no column for end"):
            read_items(path, "intervals")
        return
    items = read_items(path, "intervals")
    assert items.values.tolist() == [[1.0, 2.5], [1.5, 2.0]]
    assert items.experts == ("ann", "bob")
    assert items.images == ("u",)
    assert items.category is not None
    assert items.category.tolist() == ["call", "song"]


@pytest.mark.parametrize("title", ["duration", "length", "Duration (s)", "dur"])
def test_a_duration_stands_for_the_end(tmp_path: Path, title: str) -> None:
    path = written(tmp_path, "a.csv", f"onset,{title},rater\n1,2.5,ann\n2,1,bob\n")
    assert read_items(path, "intervals").values.tolist() == [[1.0, 3.5], [2.0, 3.0]]
    both = written(tmp_path, "b.csv", f"start,end,{title},rater\n1,2.5,1.5,ann\n2,3,1,bob\n")
    assert read_items(both, "intervals").values.tolist() == [[1.0, 2.5], [2.0, 3.0]]


def test_a_file_column_is_the_expert_of_items_of_other_kinds(tmp_path: Path) -> None:
    path = written(tmp_path, "a.csv", "x,y,file\n1,2,ann\n3,4,bob\n")
    assert read_items(path, "points").experts == ("ann", "bob")


def table_of(**about: Any) -> Any:
    items = Items.intervals([0.0, 4.0, 6.0], [3.0, 5.0, 9.0], ["a"] * 3)
    columns: Any = dict(items.columns)
    return dfcrp.io.tables.ReadTable("intervals", columns, about)


@pytest.mark.parametrize(
    "ending",
    [
        *(".labels.txt", ".TextGrid", ".eaf", ".jsonl", ".conll", ".bio"),
        *(".label-studio.json", ".csv"),
    ],
)
def test_what_is_written_is_read_again(tmp_path: Path, ending: str) -> None:
    names = ["call", "x y" if ending not in (".conll", ".bio") else "x", 'a "b"']
    names[2] = names[2] if ending not in (".conll", ".bio") else "c"
    table = table_of(category=names, expert=["ann"] * 3, image=["u.wav"] * 3)
    path = tmp_path / f"ann{ending}"
    write_table(table, path)
    found = quietly(read_table, path, "intervals")
    assert found.columns["start"].tolist() == [0, 4, 6]
    assert found.columns["end"].tolist() == [3, 5, 9]
    assert list(found.about["category"]) == names


def test_tiers_are_written_for_experts_and_where_intervals_overlap(tmp_path: Path) -> None:
    table = table_of(expert=["ann", "bob", "bob"])
    table.columns["start"].flags.writeable = True
    table.columns["start"][2] = 4.5
    write_table(table, tmp_path / "a.TextGrid")
    found = quietly(read_table, tmp_path / "a.TextGrid", "intervals")
    assert found.extra["tier"] == ["ann", "bob", "bob 2"]
    assert found.columns["start"].tolist() == [0.0, 4.0, 4.5]
    # In ELAN a tier names its annotator, so both tiers of bob are his list.
    write_table(table, tmp_path / "a.eaf")
    found = quietly(read_table, tmp_path / "a.eaf", "intervals")
    assert found.extra["tier"] == ["ann", "bob", "bob 2"]
    assert list(found.about["expert"]) == ["ann", "bob", "bob"]
    assert found.columns["start"].tolist() == [0.0, 4.0, 4.5]


def test_elan_has_slots_in_order_and_whole_milliseconds(tmp_path: Path) -> None:
    table = table_of(expert=["bob", "ann", "bob"], category=["a & b", "<c>", "d"])
    table.columns["start"].flags.writeable = True
    table.columns["start"][0] = 0.0004
    write_table(table, tmp_path / "a.eaf")
    root = ElementTree.parse(tmp_path / "a.eaf").getroot()
    slots = [(s.get("TIME_SLOT_ID"), int(s.get("TIME_VALUE", ""))) for s in root.iter("TIME_SLOT")]
    assert [time for _, time in slots] == [0, 3000, 4000, 5000, 6000, 9000]
    assert root.get("FORMAT") == "3.0"
    assert [tier.get("TIER_ID") for tier in root.iter("TIER")] == ["ann", "bob"]
    types = {entry.get("LINGUISTIC_TYPE_ID") for entry in root.iter("LINGUISTIC_TYPE")}
    assert {tier.get("LINGUISTIC_TYPE_REF") for tier in root.iter("TIER")} == types
    found = [entry.attrib for entry in root.iter("ALIGNABLE_ANNOTATION")]
    used = {entry[f"TIME_SLOT_REF{end}"] for entry in found for end in (1, 2)}
    assert used == {name for name, _ in slots}
    assert {entry.text for entry in root.iter("ANNOTATION_VALUE")} == {"a & b", "<c>", "d"}


@pytest.mark.parametrize(
    ("start", "category", "message"),
    [
        (-1.0, "x", "counts milliseconds from 0 on, and there is an interval from -1 to 3"),
        (2.9999, "x", "counts milliseconds"),
        (0.0, "bell \a", "XML cannot hold"),
    ],
)
def test_what_elan_cannot_hold_is_refused(
    tmp_path: Path, start: float, category: str, message: str
) -> None:
    table = table_of(category=[category, "y", "z"])
    table.columns["start"].flags.writeable = True
    table.columns["start"][0] = start
    with pytest.raises(InputError, match=message):
        write_table(table, tmp_path / "a.eaf")
    assert not (tmp_path / "a.eaf").exists()


@pytest.mark.parametrize(
    ("ending", "about", "message"),
    [
        (".labels.txt", {"expert": ["a", "b", "b"]}, "holds one list, but there are 2 experts"),
        (
            ".labels.txt",
            {"image": ["a", "b", "b"]},
            "holds one recording, but there are 2; .*--image 'a'",
        ),
        (".TextGrid", {"image": ["a", "b", "b"]}, "holds one recording"),
        (".eaf", {"image": ["a", "b", "b"]}, "holds one recording"),
        (".jsonl", {"expert": ["a", "b", "b"]}, "holds one list"),
    ],
)
def test_what_a_format_cannot_hold_is_refused(
    tmp_path: Path, ending: str, about: Any, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        write_table(table_of(**about), tmp_path / f"a{ending}")


def test_texts_are_counted_in_whole_numbers(tmp_path: Path) -> None:
    table = dfcrp.io.tables.ReadTable(
        "intervals", {"start": np.array([0.5]), "end": np.array([2.0])}
    )
    for ending, what in ((".jsonl", "characters"), (".conll", "tokens")):
        with pytest.raises(InputError, match=f"counts {what}, and there is an interval from 0.5"):
            write_table(table, tmp_path / f"a{ending}")


def test_other_kinds_are_no_intervals(tmp_path: Path) -> None:
    points = dfcrp.io.tables.ReadTable("points", {"x": np.zeros(1), "y": np.zeros(1)})
    for ending in (".labels.txt", ".TextGrid", ".eaf", ".jsonl", ".conll", ".label-studio.json"):
        with pytest.raises(InputError, match="such a file holds intervals, and these are points"):
            write_table(points, tmp_path / f"a{ending}")
