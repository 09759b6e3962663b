"""Items of every kind: shapes, matrices, records, candidates."""

from __future__ import annotations

import numpy as np
import pytest
from dfcrp.items.measurements import Measurements
from dfcrp.items.records import Records, blocked_pairs, digits_of_date

from dfcrp.errors import InputError, SettingsError
from dfcrp.likelihoods.normal.neighbours import find_feature_neighbours
from dfcrp.likelihoods.normal.pilot import find_pilot
from dfcrp.likelihoods.normal.shapes import BOXES, ELLIPSES, SHAPES, shape_of
from dfcrp.likelihoods.record.hyper import records_hyper
from dfcrp.neighbours.neighbourhood import nearest_pairs
from dfcrp.settings.config import RecordSettings, make_config


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
    items = Measurements.from_arrays(frame, ["a", "b"], likelihood="boxes")
    assert items.columns == BOXES.columns
    assert items.values.tolist() == [[0.0, 6.0, 4.0, 2.0], [1.0, 7.0, 5.0, 3.0]]


@pytest.mark.parametrize(
    ("values", "options", "words"),
    [
        ([[1.0, 2.0], [3.0, np.nan]], {}, "index 1, column 'x2': must be a finite number"),
        ([1.0, 2.0], {}, "one row each and at least one column"),
        ([[1.0, 2, 3, -1]], {"likelihood": "boxes"}, "index 0, column 'height': must be above"),
        ([[1.0, 2.0]], {"likelihood": "boxes"}, "boxes have 4 columns"),
        ([[1.0, 2.0]], {"families": [1, 2]}, "families must be 1 names"),
        ([["a", "b"]], {}, "must be numbers"),
        ([[1.0], [2.0]], {"candidates": [[0, 2]]}, "rows go from 0 to 1"),
        ([[1.0], [2.0]], {"columns": ["expert"]}, "cannot be called 'expert'"),
    ],
)
def test_bad_matrices_are_refused(values, options, words):
    with pytest.raises(InputError, match=words):
        Measurements.from_arrays(values, **options)


def test_an_unknown_likelihood_is_refused():
    with pytest.raises(SettingsError, match="points, boxes"):
        Measurements.from_arrays([[1.0]], likelihood="boxs")


def test_what_needs_circles_says_so():
    items = Measurements.from_arrays([[1.0, 2.0]])
    with pytest.raises(InputError, match="this needs circles"):
        items.diameter  # noqa: B018


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
    records = Records.from_columns(COLUMNS, ["p", "q", "p", "q", "q"])
    assert records.codes.tolist() == [[0, 0], [2, 0], [1, 1], [-1, 1], [-1, -1]]
    assert records.values == (("Ann", "Bob", "ann"), ("1980", "1981"))
    assert records.cells["name"] == ["Ann", "ann", "Bob", "", ""]
    assert records.kinds == ("string", "string")
    assert set(map(tuple, records.candidates.tolist())) == {(0, 1), (2, 3)}


def test_keys_say_who_is_compared():
    codes = np.array([[0, 0, 5], [0, 1, 5], [0, 0, 5], [1, 1, -1], [1, 1, -1]])
    fields = ("a", "b", "c")
    pairs = {tuple(pair) for pair in blocked_pairs(codes, fields, [("a", "b")]).tolist()}
    assert pairs == {(0, 2), (3, 4)}
    with pytest.raises(SettingsError, match="no field 'd'"):
        blocked_pairs(codes, fields, ["d"])
    four = np.column_stack([codes, [7, 7, 8, 9, 9]])
    pairs = {tuple(pair) for pair in blocked_pairs(four, (*fields, "d")).tolist()}
    assert pairs == {(0, 1), (0, 2), (1, 2), (3, 4)}


def test_wrong_kinds_are_refused():
    with pytest.raises(SettingsError, match="no field 'age'"):
        Records.from_columns(COLUMNS, kinds={"age": "number"})
    with pytest.raises(InputError, match="index 0, field 'name': 'Ann' is no number"):
        Records.from_columns(COLUMNS, kinds={"name": "number"})


def test_dates_are_known_by_their_look_and_may_be_exchanged():
    columns = {"born": ["1980-01-02", "1980-02-01", "1980-01-03", "1979-12-24"]}
    records = Records.from_columns(columns, candidates=[(0, 1), (0, 2), (0, 3)])
    assert records.kinds == ("date",)
    hyper = records_hyper(make_config().model, records)
    first = hyper.similar_start[records.codes[0, 0]]
    count = hyper.similar_start[records.codes[0, 0] + 1] - first
    similar = hyper.similar[first : first + count].tolist()
    # The exchange of day and month is one error, like another digit; the fourth date is far.
    assert similar == sorted([records.codes[1, 0], records.codes[2, 0]])
    assert hyper.slip[first] == hyper.slip[first + 1] < 0.7
    assert digits_of_date("3.1.1980") == digits_of_date("1980-01-03") == "19800103"
