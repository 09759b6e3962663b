"""Items that are no circles: shapes, matrices, records, candidates, files."""

from __future__ import annotations

import numpy as np
import pytest
from dfcrp.items.measurements import Measurements
from dfcrp.items.records import Records, blocked_pairs, digits_of_date

from dfcrp.errors import InputError, SettingsError
from dfcrp.io.items import read_items
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


def test_boxes_from_a_file(tmp_path):
    path = tmp_path / "boxes.csv"
    path.write_text("id;Detector;X;Y;Width;Height;score\n7;A;1;2;3;4;0.5\n8;B;1,0\n")
    with pytest.raises(InputError, match="row 2: 3 values under 7 column names"):
        read_items(path, "boxes")
    path.write_text("id;Detector;X;Y;Width;Height;score\n7;A;1;2;3;4;0.5\n8;B;1;2;3;5;0.1\n")
    items = read_items(path, "boxes")
    assert isinstance(items, Measurements)
    assert items.values.tolist() == [[1, 2, 3, 4], [1, 2, 3, 5]]
    assert items.experts == ("A", "B")
    assert items.id.tolist() == ["7", "8"]
    with pytest.raises(
        InputError, match=r"major, minor, angle are missing; .* --columns major=NAME"
    ):
        read_items(path, "ellipses")


def test_one_file_for_each_list(tmp_path):
    for name in ("north", "south"):
        (tmp_path / f"{name}.csv").write_text("name,city\nAnn,Rome\nBob,\n")
    paths = [tmp_path / "north.csv", tmp_path / "south.csv"]
    records = read_items(paths, "records", records=RecordSettings(categories=("city",)))
    assert isinstance(records, Records)
    assert records.experts == ("north", "south")
    assert records.kinds == ("string", "category")
    with pytest.raises(InputError, match="no column says whose list"):
        read_items(paths[0], "records")


def written(folder, text, name="items.csv"):
    path = folder / name
    path.write_text(text)
    return path


def test_boxes_by_their_corners(tmp_path):
    path = written(tmp_path, "source,xmin,ymin,xmax,ymax\nA,1,2,5,8\nB,1,2,5,2\n")
    with pytest.raises(InputError, match=r"items.csv, row 2: the height is 0; it must be above"):
        read_items(path, "boxes")
    path = written(tmp_path, "source,xmin,ymin,xmax,ymax\nA,1,2,5,8\nB,1,2,5,9\n")
    items = read_items(path, "boxes")
    assert items.values.tolist() == [[3, 5, 4, 6], [3, 5.5, 4, 7]]


def test_columns_by_the_users_word(tmp_path):
    path = written(tmp_path, "who,lon,lat,id\nA,1,2,p\nB,3,4,q\n")
    items = read_items(path, "points", columns={"x": "lon", "y": "lat", "expert": "who"})
    assert items.values.tolist() == [[1, 2], [3, 4]]
    with pytest.raises(InputError, match=r"column 'lom', wanted for x, .* did you mean 'lon'"):
        read_items(path, "points", columns={"x": "lom"})
    with pytest.raises(SettingsError, match="unknown role 'width'; for points the roles are"):
        read_items(path, "points", columns={"width": "lon"})


def test_rows_of_one_image_and_without_an_expert(tmp_path):
    text = "image,expert,x,y\nm,A,1,2\nn,A,3,4\nm,B,5,6\n"
    path = written(tmp_path, text)
    with pytest.raises(InputError, match=r"column 'image' names 2 images .* --image NAME"):
        read_items(path, "points")
    items = read_items(path, "points", image="m")
    assert items.values.tolist() == [[1, 2], [5, 6]]
    assert (items.sources[0].rows, items.sources[0].kept) == (3, 2)
    items = read_items(path, "points", image="m", exclude_experts=["B"])
    assert items.values.tolist() == [[1, 2]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("expert,x,y\nA,1,\n", "items.csv, row 1, column 'y': is empty; fill it in"),
        ("expert,x,y\nA,1,2\nB,1,two\n", "row 2, column 'y': 'two' is no number"),
        ("expert,x,y\nA,1,inf\n", "row 1, column 'y': 'inf' is no number"),
        ("expert,x,y,x\nA,1,2,3\n", "column 'x' is there several times"),
        ("expert,x,y,id\nA,1,2,7\nB,1,2,7\n", "row 2, column 'id': the id '7' is there already"),
        ("expert,x,y\n,1,2\n", "row 1, column 'expert': it must say whose list"),
        ("expert,x,y\n", "has no rows"),
    ],
)
def test_bad_tables_are_refused_by_their_place(tmp_path, text, message):
    with pytest.raises(InputError, match=message):
        read_items(written(tmp_path, text), "points")


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


PEOPLE = "id,list,name,city\n1,a,Ann,Rome\n2,b,Anne,Rome\n3,b,Bob,Oslo\n4,c,Bob,Oslo\n"


def test_own_pairs_from_a_file_name_ids(tmp_path):
    path = written(tmp_path, PEOPLE)
    pairs = tmp_path / "pairs.csv"
    pairs.write_text("one,other\n2,1\n1,2\n3,4\n3,3\n", encoding="utf-8")
    chosen = {"columns": {"expert": "list"}, "candidates": pairs}
    assert read_items(path, "records", **chosen).candidates.tolist() == [[0, 1], [2, 3]]
    without = read_items(path, "records", exclude_experts=["c"], **chosen)
    assert without.candidates.tolist() == [[0, 1]]


@pytest.mark.parametrize(
    ("text", "columns", "message"),
    [
        ("one,other\n1,7\n", {}, "row 1, column 'other': no item has the id '7'"),
        ("one\n1\n", {}, "needs two columns"),
        ("one,other\n1,2\n", {"id": ""}, "no column of the items has ids"),
    ],
)
def test_bad_own_pairs_are_refused_by_their_place(tmp_path, text, columns, message):
    path, pairs = written(tmp_path, PEOPLE), tmp_path / "pairs.csv"
    pairs.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=message):
        read_items(path, "records", columns={"expert": "list", **columns}, candidates=pairs)


def test_a_table_without_anything_to_compare_is_refused(tmp_path):
    with pytest.raises(InputError, match="no column that describes an item"):
        read_items(written(tmp_path, "id,expert\n1,a\n2,b\n"), "diagonal")
