"""Items of every kind: shapes, matrices, records, candidates."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.footprints import as_text
from dfcrp.items.given import items_of
from dfcrp.items.items import Items
from dfcrp.likelihoods.normal.hyper import find_pilot
from dfcrp.likelihoods.normal.neighbours import find_feature_neighbours
from dfcrp.likelihoods.normal.shapes import BOXES, ELLIPSES, SHAPES, shape_of
from dfcrp.likelihoods.record.fields import digits_of_date
from dfcrp.likelihoods.record.hyper import RecordSettings
from dfcrp.likelihoods.record.levels import NEAR, NEXT
from dfcrp.likelihoods.record.likelihood import RECORDS
from dfcrp.likelihoods.registry import HOMES, likelihood_named
from dfcrp.neighbours.neighbourhood import (
    learned_reach,
    nearest_on_others,
    nearest_pairs,
    side_by_side,
)
from dfcrp.settings.config import make_config


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_features_lead_back_to_the_object(shape):
    rng = np.random.default_rng(0)
    objects = rng.uniform(1.0, 9.0, (50, len(shape.columns)))
    if shape is ELLIPSES:
        objects[:, 2:4] = np.sort(objects[:, 2:4])[:, ::-1]
        objects[:, 4] *= 19.0
    features = shape.to_features(objects)
    assert features.shape == (50, len(shape.features))
    assert sum(shape.groups) == len(shape.features) == len(shape.size)
    assert shape.to_columns(features) == pytest.approx(objects)


def test_an_ellipse_turned_by_half_a_turn_is_the_same():
    one, other = np.array([[0.0, 0, 3, 2, 10], [0.0, 0, 3, 2, 190]])
    assert ELLIPSES.to_features(one) == pytest.approx(ELLIPSES.to_features(other))
    circle = np.array([[0.0, 0, 3, 3, 10], [0.0, 0, 3, 3, 77]])
    assert np.ptp(ELLIPSES.to_features(circle), axis=0) == pytest.approx(0.0)


def test_columns_of_a_shape_may_come_in_any_order():
    import pandas

    frame = pandas.DataFrame({"height": [2.0, 3], "x": [0.0, 1], "width": [4.0, 5], "y": [6.0, 7]})
    items = items_of(frame, ["a", "b"], "boxes")
    assert tuple(items.columns) == BOXES.columns
    assert items.values.tolist() == [[0.0, 6.0, 4.0, 2.0], [1.0, 7.0, 5.0, 3.0]]


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([[1.0, 2.0], [3.0, np.nan]], {}, "index 1, x2: 'nan' is not finite"),
        ([1.0, 2.0], {}, "one row each and at least one column"),
        ([[1.0, 2, 3, -1]], {"kind": "boxes"}, "index 0, height: '-1.0' .* must be positive"),
        ([[1.0, 2.0]], {"kind": "boxes"}, "boxes have 4 columns"),
        ([[1.0, 2.0]], {"experts": [1, 2]}, "families must be 1 names"),
        ([["a", "b"]], {}, "index 0, x1: 'a' is not a number"),
        ([[1.0], [2.0]], {"candidates": [[0, 2]]}, "rows go from 0 to 1"),
        ({"expert": [1.0, 2.0]}, {}, "cannot be called 'expert'"),
    ],
)
def test_bad_matrices_are_refused(values, options, words):
    with pytest.raises(InputError, match=words):
        items_of(values, **options)


def test_an_unknown_likelihood_is_refused():
    with pytest.raises(SettingsError, match="points, boxes"):
        items_of([[1.0]], kind="boxs")


def test_items_have_the_columns_of_their_kind_and_no_others():
    """``hasattr`` asks in the usual way, whatever the kind."""
    records = Items.from_columns({"name": ["Ann", "Bob"]}, kind="records")
    assert not any(hasattr(records, name) for name in ("x", "y", "diameter"))
    points = items_of([[1.0, 2.0], [3.0, 4.0]], kind="points")
    assert points.x.tolist() == [1.0, 3.0]
    assert points.y.tolist() == [2.0, 4.0]
    assert not hasattr(points, "diameter")
    with pytest.raises(AttributeError, match="points with x, y; they have no diameter"):
        points.diameter  # noqa: B018
    circles = Items.circles([1.0], [2.0], [3.0], ["a"])
    assert all(hasattr(circles, name) for name in ("x", "y", "diameter"))


EXAMPLES = {
    "circles": {"x": [1.0, 2.0], "y": [3.0, 4.0], "diameter": [5.0, 6.0]},
    "points": {"x": [1.0, 2.0], "y": [3.0, 4.0]},
    "boxes": {"x": [1.0, 2.0], "y": [3.0, 4.0], "width": [5.0, 6.0], "height": [7.0, 8.0]},
    "ellipses": {
        "x": [1.0, 2.0], "y": [3.0, 4.0], "major": [5.0, 6.0], "minor": [3.0, 2.0],
        "angle": [10.0, 170.0],
    },
    "diagonal": {"a": [1.0, 2.0], "b": [3.0, 4.0]},
    "normal": {"a": [1.0, 2.0], "b": [3.0, 4.0]},
    "records": {"name": ["Ann", ""], "year": ["1980", "1981"]},
}  # fmt: skip


@pytest.mark.parametrize("kind", HOMES)
def test_one_table_for_every_kind(kind):
    columns = EXAMPLES[kind]
    about = {"image": ["p", "q"], "person": ["u", "u"], "truth": [3, 4], "candidates": [(1, 0)]}
    items = Items.from_columns(columns, ["b", "a"], kind=kind, **about)
    assert items.kind == kind == likelihood_named(kind).name
    assert {name: values.tolist() for name, values in items.columns.items()} == columns
    assert items.values.tolist() == [list(row) for row in zip(*columns.values(), strict=True)]
    assert items.cells == {name: [str(cell) for cell in columns[name]] for name in columns}
    assert items.experts == ("a", "b")
    assert items.candidates.tolist() == [[0, 1]]
    words = {"diagonal": "items (diagonal)", "normal": "items (normal)"}.get(kind, kind)
    assert repr(items).startswith(f"<Items: 2 {words} by 2 experts on 2 images")
    assert all(name in items._repr_html_() for name in ("id", "expert", *columns))
    one = items.take(np.array([1]))
    assert one.experts == ("a",)
    assert (one.image.tolist(), one.person.tolist(), one.truth.tolist()) == (["q"], ["u"], [4])
    assert one.candidates.shape == (0, 2)
    assert {name: values.tolist() for name, values in one.columns.items()} == {
        name: values[1:] for name, values in columns.items()
    }
    digests = {items.digest, one.digest}
    digests.add(Items.from_columns(columns, ["b", "a"], kind=kind).digest)
    assert len(digests) == 3
    for values in items.columns.values():
        with pytest.raises(ValueError, match="read-only"):
            values[0] = values[1]


@pytest.mark.parametrize(
    ("kind", "given", "same"),
    [
        ("circles", {"x": [1.0], "y": [2.0], "radius": [3.0]}, {"diameter": [6.0]}),
        (
            "boxes",
            {"left": [1.0], "top": [2.0], "right": [5.0], "bottom": [8.0]},
            {"x": [3.0], "y": [5.0], "width": [4.0], "height": [6.0]},
        ),
        *(
            (
                "boxes",
                dict(zip(names.split(), ([1.0], [2.0], ends[0], ends[1]), strict=True)),
                {"x": [3.0], "y": [5.0], "width": [4.0], "height": [6.0]},
            )
            for names, ends in [
                ("x_min y_min x_max y_max", ([5.0], [8.0])),
                ("xmin ymin xmax ymax", ([5.0], [8.0])),
                ("X1 Y1 X2 Y2", ([5.0], [8.0])),
                ("x0 y0 w h", ([4.0], [6.0])),
                ("left_px top_px box_width box_height", ([4.0], [6.0])),
            ]
        ),
        (
            "boxes",
            {"x_center": [3.0], "y_center": [5.0], "w": [4.0], "h": [6.0]},
            {"x": [3.0], "y": [5.0], "width": [4.0], "height": [6.0]},
        ),
        ("circles", {"cx": [1.0], "cy": [2.0], "r": [3.0]}, {"x": [1.0], "diameter": [6.0]}),
        ("points", {"Y pos": [2.0], "X pos": [1.0]}, {"x": [1.0], "y": [2.0]}),
    ],
)
def test_columns_that_say_the_same(kind, given, same):
    items = Items.from_columns(given, kind=kind)
    assert set(items.columns) == set(EXAMPLES[kind])
    assert {name: items.columns[name].tolist() for name in same} == same


@pytest.mark.parametrize(
    ("kind", "columns", "words"),
    [
        ("points", {"x": [1.0]}, "points have the columns x, y, not x"),
        ("circles", {"x": [1.0], "y": [1.0], "size": [1.0]}, "diameter or x, y, radius, not"),
        ("boxes", {"left": [1.0]}, "x, y, width, height or left, top, right, bottom"),
        ("boxes", {n: [1.0] for n in ("x_min", "x0", "y_min", "x_max", "y_max")}, "x_min, x0"),
        ("circles", {"lon": [1.0], "lat": [1.0], "diameter": [1.0]}, "not lon, lat"),
        ("records", {}, "at least one column"),
        ("records", {"image": ["a"]}, "cannot be called 'image'"),
    ],
)
def test_other_columns_are_refused(kind, columns, words):
    with pytest.raises(InputError, match=words):
        Items.from_columns(columns, kind=kind)


def test_a_bad_number_is_named_by_the_title_of_its_column():
    columns = {"x_min": [1.0, 1.0], "y_min": [1.0, 1.0], "x_max": [2.0, 0.5], "y_max": [2.0, 2.0]}
    with pytest.raises(InputError, match="index 1, x_max"):
        Items.from_columns(columns, kind="boxes")


def lists(rng, objects, sources, noise) -> tuple[np.ndarray, np.ndarray]:
    families = np.repeat(np.arange(sources), len(objects))
    values = np.tile(objects, (sources, 1))
    return values + noise * rng.standard_normal(values.shape), families


def test_pilot_finds_the_scatter_whatever_the_unit():
    """Within a factor of two: it only starts the chain."""
    rng = np.random.default_rng(1)
    noise = np.array([0.3, 20.0, 0.01])
    features, families = lists(rng, rng.uniform(0, [100, 9000, 5], (200, 3)), 5, noise)
    shape = shape_of("diagonal", ("a", "b", "c"))
    pilot = find_pilot(shape, features, families, 1.0)
    assert np.abs(np.log(pilot.within / noise)).max() < np.log(2.0)
    scaled = find_pilot(shape, features * [1e-3, 7.0, 1e6], families, 1.0)
    assert scaled.within == pytest.approx(pilot.within * [1e-3, 7.0, 1e6])


@pytest.mark.parametrize("sources", [4, 12, 40])
def test_pilot_finds_the_scatter_of_any_number_of_lists(sources):
    """The nearest of 40 items of one object lies far closer than the annotators are precise."""
    rng = np.random.default_rng(4)
    features, families = lists(rng, rng.uniform(0, 1000, (60, 2)), sources, 6.0)
    found = rng.random(len(features)) < 0.7
    pilot = find_pilot(shape_of("points", ("x", "y")), features[found], families[found], 1.0)
    assert 3.0 < pilot.within[0] < 9.0


@pytest.mark.parametrize("images", [None, 3])
def test_nearest_on_others_are_the_nearest_of_the_next_lists(images):
    """By comparison with all pairs."""
    rng = np.random.default_rng(5)
    position, experts = rng.normal(size=(90, 2)), rng.integers(0, 6, 90)
    where = rng.integers(0, images, 90) if images else np.zeros(90, np.int64)
    experts[where == 2] = 4  # one expert alone
    found = nearest_on_others(position, experts, where if images else None)
    for i in range(90):
        here = np.flatnonzero(where == where[i])
        length = {e: int((experts[here] == e).sum()) for e in np.unique(experts[here])}
        turns = sorted(length, key=lambda e, length=length: (-length[e], e))
        at = turns.index(experts[i])
        others = [turns[(at + step) % len(turns)] for step in range(1, min(4, len(turns)))]
        some = here[np.isin(experts[here], others)]
        if not len(some):
            assert found[i] == -1
            continue
        distance = np.linalg.norm(position[some] - position[i], axis=1)
        assert found[i] == some[distance.argmin()]
    assert len(nearest_on_others(position[:0], experts[:0])) == 0


@pytest.mark.parametrize("alone", [False, True])
def test_the_reach_of_circles_does_not_depend_on_who_looked_where(alone):
    """Volunteers who saw different images, or every item by an expert of its own."""
    rng = np.random.default_rng(6)
    rows, experts, images = [], [], []
    for image in range(40):
        places = rng.uniform(0.0, 500.0, (5, 2))
        for expert in rng.choice(60, 7, replace=False).tolist():
            found = places[rng.random(5) < 0.7]
            found = found + 2.0 * rng.standard_normal(found.shape)
            rows.append(np.column_stack([found, np.full(len(found), math.log(20.0))]))
            experts += [expert] * len(found)
            images += [image] * len(found)
    circles = side_by_side(np.vstack(rows), np.array(images))
    who = np.arange(len(circles)) if alone else np.array(experts)
    assert learned_reach(circles, who)[0] == pytest.approx(20.0, rel=0.3)


def test_pilot_allows_for_errors_that_grow_with_size():
    rng = np.random.default_rng(2)
    log_size = rng.normal(3.0, 1.0, (300, 2))
    objects = np.column_stack([rng.uniform(0, 3000, (300, 2)), log_size])
    features, families = lists(rng, objects, 5, 0.05)
    features[:, :2] += np.exp(features[:, 2:]) * 0.1 * rng.standard_normal((1500, 2))
    pilot = find_pilot(BOXES, features, families, 2.0)
    assert pilot.within[0] == pytest.approx(0.1 * np.exp(3.0), rel=0.6)


def test_candidates_hold_every_pair_of_one_object():
    rng = np.random.default_rng(3)
    features, families = lists(rng, rng.uniform(0, 50, (80, 2)), 6, 0.2)
    shape = shape_of("points", ("x", "y"))
    scales = find_pilot(shape, features, families, 1.0).scales(shape, features, 1.0)
    found = find_feature_neighbours(
        shape, features, families, scales, radius="auto", nearest=None, candidates=None
    )
    listed = set(map(tuple, found.pairs.tolist()))
    for k in range(80):
        members = np.arange(6) * 80 + k
        assert {(i, j) for i in members for j in members if i < j} <= listed
    assert (found.pairs[:, 0] < found.pairs[:, 1]).all()
    assert len(found.pairs) < 480 * (64 + 8 * 6)


def test_upright_ellipses_have_a_scatter():
    """At 0 and 90 degrees sin 2φ is 0 but for 1e-16, which must not be taken for their scatter."""
    rng = np.random.default_rng(3)
    truth, experts = np.tile(np.arange(25), 3), np.repeat(np.arange(3), 25)
    place, sides = rng.uniform(0, 900, (25, 2))[truth], rng.uniform(20, 90, (25, 2))[truth]
    sides = sides * np.exp(0.05 * rng.standard_normal(sides.shape))
    angle = np.where(sides[:, 0] > sides[:, 1], 0.0, 90.0)
    columns = [place + rng.standard_normal(place.shape), -np.sort(-sides, axis=1), angle[:, None]]
    pilot = find_pilot(ELLIPSES, ELLIPSES.to_features(np.hstack(columns)), experts, 1.0)
    assert 0.2 * 0.035 < pilot.within[2] < 5.0 * 0.035


@pytest.mark.parametrize("unit", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("images", [1, 3])
@pytest.mark.parametrize("kind", ["boxes", "ellipses"])
def test_large_shapes_may_share_an_object_as_small_ones_do(kind, images, unit):
    """Centres are off by 6 % of the size, whatever that is: no pair of one object is excluded."""
    rng = np.random.default_rng(7)
    size = np.exp(rng.uniform(2.2, 4.9, 60))
    truth = np.tile(np.arange(60), 5)
    place = rng.uniform(0, 1200, (60, 2))[truth]
    x, y = (place + 0.06 * size[truth, None] * rng.standard_normal(place.shape)).T
    sides = [unit * size[truth] * np.exp(0.08 * rng.standard_normal(300)) for _ in range(2)]
    columns = {"x": unit * x, "y": unit * y}
    if kind == "boxes":
        columns |= {"width": sides[0], "height": sides[1]}
    else:
        columns |= {"major": np.maximum(*sides), "minor": np.minimum(*sides)}
        columns["angle"] = rng.uniform(0, 180, 300)
    image = [f"image {t % images}" for t in truth] if images > 1 else None
    expert = [f"expert {k}" for k in np.repeat(np.arange(5), 60)]
    items = Items.from_columns(columns, expert, kind=kind, image=image)
    config = make_config({"run": {"likelihood": kind}})
    layout = likelihood_named(kind).lay_out(items, items.families, config)
    listed = set(map(tuple, np.sort(layout.neighbourhood.pairs, axis=1).tolist()))
    together = {
        (int(i), int(j))
        for t in range(60)
        for i in np.flatnonzero(truth == t)
        for j in np.flatnonzero(truth == t)
        if i < j
    }
    assert together <= listed
    assert len(listed) < 12 * len(items)


def test_nearest_pairs_are_the_nearest():
    rng = np.random.default_rng(4)
    points = rng.random((40, 3))
    apart = np.linalg.norm(points[:, None] - points[None], axis=2)
    expected = set()
    for i in range(40):
        expected |= {tuple(sorted((i, int(j)))) for j in np.argsort(apart[i])[1:4]}
    assert set(map(tuple, nearest_pairs(points, 3).tolist())) == expected


COLUMNS = {
    "name": ["Ann", "ann", "Bob", "", None],
    "year": ["1980", "1980", "1981", "1981", "nan"],
}


def test_records_are_encoded_with_missing_values():
    items = Items.from_columns(COLUMNS, ["p", "q", "p", "q", "q"], kind="records")
    records = RECORDS.fields(items, RecordSettings())
    # Capital letters make no difference.
    assert records.codes.tolist() == [[0, 0], [0, 0], [1, 1], [-1, 1], [-1, -1]]
    assert records.values == (("ann", "bob"), ("1980", "1981"))
    assert items.cells["name"] == ["Ann", "ann", "Bob", "", ""]
    assert records.kinds == ("string", "string")


def test_keys_say_who_is_compared():
    columns = {"a": list("xxxyy"), "b": list("pqpqq"), "c": ["5", "5", "5", "", ""]}
    items = Items.from_columns(columns, kind="records")
    found = RECORDS.prepared(items, RecordSettings(keys=("a+b",))).candidates
    assert {tuple(pair) for pair in found.pairs.tolist()} == {(0, 2), (3, 4)}
    with pytest.raises(SettingsError, match="no field 'd'"):
        RECORDS.prepared(items, RecordSettings(keys=("d",)))


def test_wrong_kinds_are_refused():
    items = Items.from_columns(COLUMNS, kind="records")
    with pytest.raises(SettingsError, match="no field 'age'"):
        RECORDS.fields(items, RecordSettings(numbers=("age",)))
    with pytest.raises(InputError, match="index 0, field 'name': 'Ann' is not a number"):
        RECORDS.fields(items, RecordSettings(numbers=("name",)))


def test_dates_are_known_by_their_look_and_may_be_exchanged():
    columns = {"born": ["1980-01-02", "1980-02-01", "1980-01-03", "1979-12-24"]}
    pairs = [(0, 1), (0, 2), (0, 3)]
    items = Items.from_columns(columns, kind="records", candidates=pairs)
    found = RECORDS.prepared(items, RecordSettings())
    assert found.records.kinds == ("date",)
    comparison = found.compared[0].comparison
    codes = found.records.codes[:, 0]
    # Day and month exchanged are one error; the next day is next, ten days are near.
    levels = comparison.levels(np.array([[codes[0], codes[other]] for other in (1, 2, 3)]))
    assert levels.tolist() == [1, NEXT, NEAR]
    assert digits_of_date("3.1.1980") == digits_of_date("1980-01-03") == "19800103"


@pytest.mark.filterwarnings("ignore:.*without being listed as having looked")
@pytest.mark.parametrize("looked", [False, True])
def test_items_that_are_taken_are_those_of_the_same_columns(looked):
    """Codes are carried over; nothing is encoded again, and the answer is the same."""
    rng = np.random.default_rng(3)
    n = 40
    x, y = rng.random((2, n)) * 9.0
    expert = rng.choice(["ann", "bob", "a longer name"], n)
    image = rng.choice(["one", "two", "three"], n)
    looks = {
        "image": ["one", "two", "two", "three"],
        "expert": ["zoe", "bob", "yan", "ann"],
        "footprint": [
            "POLYGON ((0 0, 9 0, 9 9, 0 0))",
            None,
            "POLYGON ((0 0, 5 0, 5 5, 0 0))",
            None,
        ],
    }
    given = {"image": image, "category": rng.choice(["", "pit"], n), "score": rng.random(n)}
    ids = np.array([f"r{k}" for k in range(n)])
    whole = Items.from_columns(
        {"x": x, "y": y}, expert, kind="points", id=ids, looked=looks if looked else None, **given
    )
    for rows in (np.flatnonzero(image == "two"), np.array([7, 3, 31]), np.array([5])):
        taken = whole.take(rows)
        about = {name: values[rows] for name, values in given.items()}
        again = None
        if looked:
            parts = {look: as_text(part) for look, part in whole.footprints.items()}
            again = {
                "image": whole.looked[:, 0],
                "expert": whole.looked[:, 1],
                "footprint": [parts.get(tuple(look)) for look in whole.looked.tolist()],
            }
        fresh = Items.from_columns(
            {"x": x[rows], "y": y[rows]},
            expert[rows],
            kind="points",
            id=ids[rows],
            looked=again,
            **about,
        )
        assert taken.digest == fresh.digest
        assert taken.experts == fresh.experts
        assert taken.families.tolist() == fresh.families.tolist()
        assert taken.expert.tolist() == fresh.expert.tolist() == expert[rows].tolist()
        assert taken.footprints == fresh.footprints
    one = whole.of_image("two", np.flatnonzero(image == "two"))
    who = {"bob", "yan"} if looked else set()
    assert set(one.experts) == who | set(expert[image == "two"].tolist())
    assert (one.footprints is not None) == looked
