"""The Items table: what it holds, what it refuses, what it warns of."""

from __future__ import annotations

import pickle
import re
from typing import Any

import numpy as np
import pytest

from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.items.items import Items


def good(**changes: Any) -> dict[str, Any]:
    columns = {
        "x": [1.0, 2.0, 3.0],
        "y": [-1.0, -2.0, -3.0],
        "diameter": [10.0, 20.0, 30.0],
        "expert": ["Zoe", "Ann", "Zoe"],
    }
    return columns | changes


def test_holds_what_was_given() -> None:
    markings = Items.circles(**good(image=["p", "q", "p"], truth=[5, 5, 7]))
    assert len(markings) == 3
    assert markings.experts == ("Ann", "Zoe")
    assert markings.families.tolist() == [1, 0, 1]
    assert markings.families.dtype == np.int64
    assert markings.expert.tolist() == ["Zoe", "Ann", "Zoe"]
    assert markings.id.tolist() == ["1", "2", "3"]
    assert markings.images == ("p", "q")
    assert markings.truth is not None
    assert markings.truth.tolist() == [5, 5, 7]
    assert markings.sources == ()
    np.testing.assert_allclose(markings.features[1], [2.0, -2.0, np.log(20.0)])


def test_experts_are_sorted() -> None:
    names = ["f", "b", "e", "A", "d", "c", "b"]
    markings = Items.circles(range(7), range(7), [1] * 7, names)
    assert markings.experts == ("A", "b", "c", "d", "e", "f")
    assert [markings.experts[family] for family in markings.families] == names


def test_one_expert_and_one_marking_are_legal() -> None:
    markings = Items.circles([0], [0], [1], ["Ann"])
    assert markings.experts == ("Ann",)
    assert markings.image is None
    assert markings.images == ()


def test_arrays_are_read_only_copies() -> None:
    x = np.array([1.0, 2.0, 3.0])
    markings = Items.circles(**good(x=x))
    for array in (markings.x, markings.families, markings.expert, markings.id):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[1]
    x[0] = 99.0
    assert markings.x[0] == 1.0


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"y": [1.0, 2.0]}, "x has 3 values but y has 2"),
        ({"expert": ["a", "b"]}, "x has 3 values but expert has 2"),
        ({"x": [1.0, np.nan, np.inf]}, "index 1, x: 'nan' is not finite.*and 1 more bad row"),
        ({"y": [0, 0, -np.inf]}, "index 2, y: '-inf' is not finite"),
        ({"diameter": [1, -4, 0]}, "index 1, diameter: '-4' .*must be positive.*and 1 more"),
        ({"diameter": [1, 1, 1e-30]}, "index 2, diameter: '1e-30' is below 1e-15"),
        ({"x": [0, 2e15, 0]}, r"index 1, x: '2000000000000000.0' is beyond 1e\+15"),
        ({"x": [0, 10**400, 0]}, "index 1, x: .* is not finite"),
        ({"x": [0, None, 0]}, "index 1, x: 'None' is not a number"),
        ({"x": ["0", "1_0", "0"]}, "index 1, x: '1_0' is not a number"),
        ({"x": np.array([True, False, True])}, "index 0, x: 'True' is not a number"),
        ({"x": np.ma.array([1.0, 2.0, 3.0], mask=[0, 0, 1])}, "index 2, x: 'nan'"),
        ({"x": np.zeros((3, 1))}, "x has 2 dimensions"),
        ({"x": [[1.0], [2.0], [3.0]]}, "x is a table"),
        ({"expert": "Ann"}, "expert has 0 dimensions"),
        ({"expert": ["a", " ", None]}, "index 1, expert: no expert; .*and 1 more"),
        ({"expert": ["a", "b\nc", "d"]}, "index 1, expert: .*line break"),
        ({"expert": ["a", "b\0", "d"]}, "index 1, expert: .*cannot be printed"),
        ({"expert": ["a", "b\ud800", "d"]}, "index 1, expert: .*cannot be printed"),
        ({"expert": ["a", "b" * 201, "d"]}, "index 1, expert: .*201 characters"),
        ({"image": ["p", "", "p"]}, "index 1, image: no image"),
        ({"id": ["a", "b", "a"]}, "index 2, id: id 'a' was used before"),
        ({"truth": [1, 2, 2.5]}, "index 2, truth: '2.5' is not a whole number"),
    ],
)
def test_refuses(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(InputError) as caught:
        Items.circles(**good(**changes))
    assert re.search(message, str(caught.value)), str(caught.value)


def test_refuses_no_markings() -> None:
    with pytest.raises(InputError, match="no items"):
        Items.circles([], [], [], [])


def test_names_the_first_bad_marking_of_all_columns() -> None:
    with pytest.raises(InputError, match=r"index 1, diameter: .*and 1 more bad row\)"):
        Items.circles(**good(x=[0, 0, np.nan], diameter=[1, -1, -1]))


def test_warns_of_exact_repeats_by_one_expert() -> None:
    columns = good(
        x=[1.0, 1.0, 1.0, 2.0], y=[0.0] * 4, diameter=[5.0] * 4, expert=["a", "b", "a", "a"]
    )
    with pytest.warns(DfcrpWarning, match=r"^1 marking .*: 3 repeats 1 \(a\)"):
        Items.circles(**columns)


def test_a_repeat_in_another_image_is_none() -> None:
    Items.circles([1, 1], [1, 1], [1, 1], ["a", "a"], image=["p", "q"])


def test_select_keeps_ids_and_recodes_experts() -> None:
    markings = Items.circles(**good(image=["p", "q", "p"], truth=[1, 2, 3]))
    chosen = markings.select(markings.diameter > 15)
    assert chosen.id.tolist() == ["2", "3"]
    assert chosen.experts == ("Ann", "Zoe")
    only_zoe = markings.select(markings.expert == "Zoe")
    assert only_zoe.experts == ("Zoe",)
    assert only_zoe.families.tolist() == [0, 0]
    assert only_zoe.images == ("p",)
    assert only_zoe.truth is not None
    assert only_zoe.truth.tolist() == [1, 3]


@pytest.mark.parametrize("mask", [[False] * 3, [True] * 2, [0, 1, 2]])
def test_select_refuses(mask: list[Any]) -> None:
    with pytest.raises(InputError, match="selection"):
        Items.circles(**good()).select(mask)


def test_digest_follows_what_the_model_sees() -> None:
    base = Items.circles(**good())
    same = Items.circles(**good(id=["i", "j", "k"], truth=[1, 2, 3]))
    assert base.digest == same.digest
    others = [
        good(x=[1.0, 2.0, 3.5]),
        good(expert=["Zoe", "Ann", "Ann"]),
        good(expert=["Zo", "Ann", "Zo"]),
        good(image=["p", "p", "p"]),
        {name: column[::-1] for name, column in good().items()},
    ]
    digests = {base.digest} | {Items.circles(**columns).digest for columns in others}
    assert len(digests) == 1 + len(others)


def test_survives_pickling() -> None:
    markings = Items.circles(**good())
    assert pickle.loads(pickle.dumps(markings)).digest == markings.digest


def test_from_frame_takes_a_dict_with_any_known_spelling() -> None:
    frame = {"X_px": [1.0, 2.0], "Ycentre": [1.0, 2.0], "Radius (m)": [3.0, 4.0], "User": [7, 8]}
    markings = Items.from_frame(frame)
    assert markings.diameter.tolist() == [6.0, 8.0]
    assert markings.experts == ("7", "8")


def test_from_frame_takes_pandas() -> None:
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(good()).rename(columns={"expert": "Observer"})
    frame.index = [30, 20, 10]
    assert Items.from_frame(frame).digest == Items.circles(**good()).digest
    frame["x"] = pandas.array([1.0, None, 3.0], dtype="Float64")
    with pytest.raises(InputError, match=r"index 1, column 'x': .* is not"):
        Items.from_frame(frame)
    with pytest.raises(InputError, match="index 2, column 'expert': no expert"):
        Items.from_frame(pandas.DataFrame(good(expert=["a", "b", None])))


@pytest.mark.parametrize(
    ("frame", "columns", "error", "message"),
    [
        ([1, 2, 3], None, InputError, "a list is not a table"),
        ({}, None, InputError, "a dict is not a table"),
        ({"x": [1], "y": [1], "d": [1]}, None, InputError, "no column for expert"),
        (good(), {"xx": "x"}, SettingsError, "unknown role 'xx'; did you mean 'x'"),
    ],
)
def test_from_frame_refuses(
    frame: Any, columns: dict[str, str] | None, error: type[Exception], message: str
) -> None:
    with pytest.raises(error, match=message):
        Items.from_frame(frame, columns=columns)
