"""Tables of decisions: which stand, which contradict each other, and what they make of items."""

from __future__ import annotations

import numpy as np
import pytest

import dfcrp
from dfcrp.errors import InputError
from dfcrp.fitting.api import check_decisions, complete_config
from dfcrp.io.decisions import read_decisions
from dfcrp.items.decisions import decisions_given, split_ids, with_decisions
from dfcrp.runs.folder import prepare_folder, read_markings_back
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import make_config


def items(**more):
    return dfcrp.Items.circles(
        x=[0.0, 0.2, 0.1, 9.0, 9.2, 40.0],
        y=[0.0, 0.1, 0.2, 9.0, 9.1, 40.0],
        diameter=[4.0, 4.1, 4.2, 5.0, 5.1, 6.0],
        expert=["ann", "bob", "cleo", "ann", "bob", "cleo"],
        id=["a", "b", "c", "d", "e", "f"],
        **more,
    )


def row(decision, ids, by="", value="", when="", **more):
    return {"decision": decision, "items": ids, "by": by, "value": value, "when": when, **more}


def standing(*rows, of=None):
    decided = with_decisions(of or items(), rows).decided
    return [(one.decision, " ".join(one.items), one.by) for one in decided.standing]


def test_groups_pairs_and_words_become_arrays():
    table = [
        row("together", "a b"),
        row("together", "b c"),
        row("apart", "d f e"),
        row("real", "f"),
    ]
    found = with_decisions(items(), table).decided
    assert found.group.tolist() == [0, 0, 0, -1, -1, -1]
    assert found.apart.tolist() == [[3, 4], [3, 5], [4, 5]]
    assert found.reality.tolist() == [0, 0, 0, 0, 0, 1]


def test_slips_are_left_out_and_experts_corrected():
    table = [row("slip", "b"), row("expert", "f", value="bob"), row("together", "a c")]
    found = with_decisions(items(), table)
    assert found.id.tolist() == ["a", "c", "d", "e", "f"]
    assert found.expert.tolist() == ["ann", "cleo", "ann", "bob", "bob"]
    assert found.experts == ("ann", "bob", "cleo")
    assert found.decided.group.tolist() == [0, 0, -1, -1, -1]
    assert found.given.id.tolist() == ["a", "b", "c", "d", "e", "f"]
    # The same as if the file had been right.
    right = dfcrp.Items.circles(
        *(values[[0, 2, 3, 4, 5]] for values in (items().x, items().y, items().diameter)),
        ["ann", "cleo", "ann", "bob", "bob"],
    )
    found = with_decisions(items(), table[:2])
    assert found.expert.tolist() == right.expert.tolist()
    assert found.features.tolist() == right.features.tolist()


def test_who_looked_is_known_after_a_slip_and_a_correction():
    looked = [("", "ann"), ("", "bob"), ("", "cleo"), ("", "dan")]
    of = items(looked=looked)
    found = with_decisions(of, [row("slip", "c f"), row("expert", "a", value="dan")])
    assert found.experts == ("ann", "bob", "cleo", "dan")
    assert found.looked.tolist() == of.looked.tolist()


def test_later_decisions_take_back_earlier_ones():
    first = row("together", "a b", "ann")
    assert standing(first, row("apart", "b a", "ann")) == [("apart", "b a", "ann")]
    assert standing(first, row("withdraw", "a b", "ann"), row("real", "c")) == [("real", "c", "")]
    real = row("real", "a b", "ann")
    kept = standing(first, real, row("withdraw", "a b", "ann", value="together"))
    assert kept == [("real", "a b", "ann")]
    # By the time, where every row has one.
    later = {**first, "when": "2026-11-20T10:00:00+01:00"}
    earlier = {**row("apart", "a b", "ann"), "when": "2026-11-20T08:30"}
    assert standing(later, earlier) == [("together", "a b", "ann")]
    # Others keep their own.
    assert len(standing(first, row("together", "a b", "bob"))) == 2
    with pytest.raises(InputError, match="nothing to withdraw: no earlier decision by bob"):
        standing(first, row("withdraw", "a b", "bob"))


def test_decisions_add_up_and_nothing_is_overwritten():
    once = with_decisions(items(), [row("slip", "b", "ann")])
    twice = with_decisions(once, [row("withdraw", "b", "ann"), row("together", "a b", "bob")])
    assert twice.id.tolist() == items().id.tolist()
    assert [one.decision for one in twice.decisions] == ["slip", "withdraw", "together"]


def refusal(*rows, of=None):
    with pytest.raises(InputError) as error:
        with_decisions(of or items(), rows)
    return str(error.value)


def test_contradictions_are_named_by_the_fewest_rows():
    chain = [row("together", "a b", "ann"), row("together", "b c", "ann"), row("real", "f")]
    said = refusal(*chain, row("together", "c a d", "cleo"), row("apart", "a d", "bob"))
    assert said.startswith("these decisions contradict each other, as a and d are one object and")
    assert "index 3 (together c a d, by cleo)" in said
    assert "index 4 (apart a d, by bob)" in said
    assert "index 0" not in said
    said = refusal(*chain, row("apart", "a c", "bob"))
    assert all(f"index {at} (" in said for at in (0, 1, 3))
    assert "index 2" not in said


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ([row("real", "a", "ann"), row("not_real", "a b", "bob")], "a is real and not real"),
        (
            [row("real", "a"), row("together", "a b"), row("not_real", "b")],
            "a and b, one object, are real and not real",
        ),
        ([row("slip", "a"), row("together", "a b")], "a is a slip"),
        ([row("slip", "a", "ann"), row("real", "a", "bob")], "a is a slip and real"),
        (
            [row("expert", "a", "x", "bob"), row("expert", "a", "y", "cleo")],
            "a is by two experts",
        ),
    ],
)
def test_other_contradictions(rows, words):
    said = refusal(*rows)
    assert words in said
    assert said.count("index ") == len(rows)


def test_images_and_categories():
    of = items(image=["i", "i", "i", "i", "j", "j"], category=["cat", "dog", "cat", "", "dog", ""])
    said = refusal(row("together", "d e", "ann"), of=of)
    assert "d and e are on two images" in said
    same = [row("category", "a", value="cat"), row("category", "b", value="dog")]
    assert len(standing(*same, of=of)) == 2
    assert "two categories" in refusal(*same, row("together", "a b"), of=of)
    assert "no category is called 'cta'; did you mean 'cat'" in refusal(
        row("category", "a", value="cta"), of=of
    )
    assert "the items have no categories" in refusal(row("category", "a", value="cat"))


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        (row("togehter", "a b"), "index 0, decision: 'togehter' is none; did you mean 'together'"),
        (row("together", "a"), "'together' needs two items or more"),
        (row("together", "a a"), "names 'a' twice"),
        (row("real", ""), "names no item"),
        (row("real", "g"), "index 0, items: no item has the id 'g'"),
        (row("expert", "a"), "needs the expert's name"),
        (row("expert", "a", value="Bob"), "no expert is called 'Bob'; did you mean 'bob'"),
        (row("real", "a", when="yesterday"), "'yesterday' is no date"),
        ({"decision": "real", "item": "a"}, "unknown column 'item'; did you mean 'items'"),
        ({"items": "a"}, "no column 'decision'"),
    ],
)
def test_wrong_rows_are_refused_with_their_place(bad, words):
    assert words in refusal(bad)


def test_ids_with_spaces_and_names_of_files():
    assert split_ids('a "b c"  d:1') == ("a", "b c", "d:1")
    frame = decisions_given({"decision": ["real"], "items": ['"a b" c'], "by": [None]})
    assert frame[0].items == ("a b", "c")
    assert frame[0].by == ""
    assert frame[0].cells == ["real", '"a b" c', "", "", "", ""]


def test_several_files(tmp_path):
    text = "id,x,y,diameter\n{0},1,1,3\n9,{1},5,3\n"
    for name, own in (("ann", 1), ("bob", 2)):
        (tmp_path / f"{name}.csv").write_text(text.format(own, own))
    read = dfcrp.read_markings([tmp_path / "ann.csv", tmp_path / "bob.csv"])
    found = with_decisions(read, [row("together", "1 bob.csv:2")])
    assert found.decided.group.tolist() == [0, -1, 0, -1]
    with pytest.raises(InputError, match="several items have the id '9'"):
        with_decisions(read, [row("real", "9")])


def test_a_file_names_its_rows(tmp_path):
    path = tmp_path / "decisions.csv"
    path.write_text("decision,items,by\nreal,a,ann\nreel,b,ann\n")
    with pytest.raises(InputError, match=r"decisions.csv, row 3, decision: 'reel' is none"):
        read_decisions(path)
    path.write_text("decision;items;note\nreal;a b;x, y\n")
    assert read_decisions(path)[0].items == ("a", "b")


def test_two_items_of_one_expert():
    table = [row("together", "a b"), row("together", "b c"), row("expert", "c", value="ann")]
    found = with_decisions(items(), table)
    with pytest.raises(InputError, match="a and c are by one expert, ann") as error:
        complete_config(found, make_config({}))
    assert str(error.value).count("index ") == 3
    check_decisions(found, make_config({"run": {"prior": "crp"}}))


@pytest.mark.parametrize("kind", ["real", "not_real"])
def test_priors_that_know_no_reality_refuse_words_on_it(kind):
    found = with_decisions(items(), [row(kind, "a")])
    with pytest.raises(InputError, match='use prior="detection"'):
        complete_config(found, make_config({}))


def test_the_papers_samplers_move_no_groups():
    found = with_decisions(items(), [row("together", "a b")])
    with pytest.raises(InputError, match="moves one item at a time"):
        complete_config(found, make_config({"run": {"sampler": "paper"}}))


def test_false_marks_are_no_groups():
    found = with_decisions(items(), [row("together", "a b"), row("not_real", "a")])
    config = make_config({"run": {"prior": "detection"}})
    with pytest.raises(InputError, match="a, a false mark, is one object with others"):
        problem_of(found, config)
    decoys = make_config({"run": {"prior": "detection"}, "prior": {"decoys": True}})
    assert problem_of(found, decoys).data.has_groups


def test_the_run_folder_has_all_rows_and_all_items(tmp_path):
    table = [row("slip", "b", "ann", note='say "x", y'), row("together", "a c", "bob")]
    table += [row("withdraw", "b", "ann"), row("slip", "e", "ann", when="2026-11-20T10:00")]
    of = items(image=["i i"] * 6, looked=[("i i", n) for n in ("ann", "bob", "cleo", "dan")])
    found = with_decisions(of, table)
    config = make_config({})
    prepare_folder(tmp_path, found, config)
    text = (tmp_path / "decisions.csv").read_text()
    assert text.splitlines()[0] == "decision,items,by,when,note,value"
    assert text.splitlines()[1] == 'slip,b,ann,,"say ""x"", y",'
    again = read_markings_back(tmp_path, config)
    assert again.digest == found.digest
    assert again.id.tolist() == found.id.tolist() == ["a", "b", "c", "d", "f"]
    assert [one.cells for one in again.decisions] == [one.cells for one in found.decisions]
    assert again.given.id.tolist() == of.id.tolist()
    assert again.looked.tolist() == of.looked.tolist()


def test_decisions_are_part_of_the_data():
    plain, table = items(), [row("together", "a b", "ann"), row("apart", "c f")]
    found = with_decisions(plain, table)
    other = with_decisions(plain, [row("apart", "f c"), row("together", "b a", "bob")])
    assert found.digest == other.digest != plain.digest
    assert with_decisions(plain, [*table, row("apart", "a f")]).digest != found.digest


def test_parts_of_the_items_keep_what_is_about_them():
    found = with_decisions(
        items(), [row("together", "a b c"), row("apart", "d f"), row("real", "e")]
    )
    part = found.take(np.array([4, 1, 2, 3]))
    assert part.decided.group.tolist() == [-1, 0, 0, -1]
    assert part.decided.apart.tolist() == []
    assert part.decided.reality.tolist() == [1, 0, 0, 0]
    assert [one.decision for one in part.decisions] == ["real"]
    assert found.take(np.array([0, 3, 5])).decided.group.tolist() == [-1, -1, -1]
