"""Ties and lattices: numbers that experts agree on exactly are set apart."""

from __future__ import annotations

import numpy as np
import pytest

from dfcrp.items.items import Items
from dfcrp.likelihoods.normal.hyper import find_pilot, set_ties_apart, step_of
from dfcrp.likelihoods.normal.shapes import shape_of
from dfcrp.sampling.problem import problem_of
from dfcrp.settings.config import make_config

OBJECTS, EXPERTS = 40, 5


@pytest.mark.parametrize(
    ("values", "step"),
    [
        ([5.0, 10.0, 25.0, 1005.0], 5.0),
        ([1.0, 2.0, 7.0], 1.0),
        ([0.1, 0.4, 12.3], 0.1),
        ([20.0, 40.0, 60.0], 20.0),
        ([3.0, 3.0], 0.0),
        ([], 0.0),
        ([0.0, 0.0], 0.0),
    ],
)
def test_steps(values, step):
    assert step_of(np.array(values)) == pytest.approx(step)


def test_measured_numbers_have_no_coarse_step():
    assert step_of(np.random.default_rng(1).uniform(0, 100, 50)) < 1e-5


def made(kind: str):
    """Columns of items of objects that every expert saw, and the experts."""
    rng = np.random.default_rng(7)
    at, size = rng.uniform(0, 500, (OBJECTS, 2)), np.exp(rng.normal(3.2, 0.5, OBJECTS))
    who, what = np.repeat(np.arange(EXPERTS), OBJECTS), np.tile(np.arange(OBJECTS), EXPERTS)
    place = at[what] + 2.0 * rng.standard_normal((len(who), 2))
    sides = size[what, None] * np.exp(0.1 * rng.standard_normal((len(who), 2)))
    angle = rng.uniform(0, 180, len(who))
    columns = {"x": place[:, 0], "y": place[:, 1]}
    if kind == "boxes":
        columns |= {"width": sides[:, 0], "height": sides[:, 1]}
    elif kind == "ellipses":
        columns |= {"major": sides.max(axis=1), "minor": sides.min(axis=1), "angle": angle}
    elif kind != "points":
        columns |= {"size": np.log(sides[:, 0])}
    return columns, [f"e{k}" for k in who]


def problem(kind, columns, experts):
    items = Items.from_columns(columns, experts, kind=kind)
    return problem_of(items, make_config({"run": {"likelihood": kind}}))


def scales(found) -> np.ndarray:
    """Guessed variances (standard deviations of full covariances), as logarithms."""
    return found.hyper.law_mean[: min(3, len(found.hyper.law_mean))]


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses", "diagonal", "normal"])
def test_numbers_without_ties_stay_as_they_are(kind):
    columns, experts = made(kind)
    items = Items.from_columns(columns, experts, kind=kind)
    found = problem(kind, columns, experts)
    assert found.data.features[found.data.internal] == pytest.approx(items.features, abs=0)


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses", "diagonal", "normal"])
def test_the_guess_hardly_changes_by_rounding_to_five(kind):
    columns, experts = made(kind)
    rounded = {n: 5.0 * np.round(v / 5.0) if n in "xy" else v for n, v in columns.items()}
    before, after = problem(kind, columns, experts), problem(kind, rounded, experts)
    assert abs(scales(after) - scales(before)).max() < 2.0
    moved = after.data.features[after.data.internal][:, :2]
    assert len(np.unique(moved[:, 0])) == len(moved)
    given = Items.from_columns(rounded, experts, kind=kind).features[:, :2]
    assert 1.0 < np.abs(moved - given).max() <= 2.5


@pytest.mark.parametrize("kind", ["boxes", "ellipses"])
def test_a_quarter_at_the_smallest_size_does_not_collapse_the_guess(kind):
    columns, experts = made(kind)
    names = [name for name in columns if name not in "xy"][:2]
    size = np.sqrt(columns[names[0]] * columns[names[1]])
    least = size < np.quantile(size, 0.25)
    tied = {n: np.where(least, 10.0, v) if n in names else v for n, v in columns.items()}
    if kind == "ellipses":
        tied["angle"] = np.where(least, 0.0, tied["angle"])
    before, after = problem(kind, columns, experts), problem(kind, tied, experts)
    assert abs(scales(after) - scales(before)).max() < 1.5
    sizes = after.data.features[after.data.internal][:, 2]
    assert len(np.unique(sizes)) == len(sizes)
    # What is not tied is not moved.
    given = Items.from_columns(tied, experts, kind=kind).features
    assert sizes[~least] == pytest.approx(given[~least, 2], abs=0)


def test_integer_boxes_move_by_half_a_pixel():
    columns, experts = made("boxes")
    whole = {name: np.maximum(np.round(values), 1.0) for name, values in columns.items()}
    found = problem("boxes", whole, experts)
    moved = found.data.features[found.data.internal]
    given = Items.from_columns(whole, experts, kind="boxes")
    width = np.exp(moved[:, 2] - given.features[:, 2]) * given.columns["width"]
    assert 0.3 < np.abs(width - given.columns["width"]).max() <= 0.5


def test_items_of_one_expert_each_are_not_moved():
    values = np.array([[1.0, 2.0]] * 6)
    shape = shape_of("points", ("x", "y"))
    pilot = find_pilot(shape, values, np.arange(6), 1.0)
    assert set_ties_apart(shape, values, values, np.arange(6), pilot) is values


def test_moves_are_the_same_for_the_same_data():
    columns, experts = made("points")
    rounded = {name: np.round(values, -1) for name, values in columns.items()}
    one, other = problem("points", rounded, experts), problem("points", rounded, experts)
    assert (one.data.features == other.data.features).all()


@pytest.mark.parametrize("kind", ["points", "boxes", "ellipses", "diagonal"])
@pytest.mark.parametrize("whole", [True, False], ids=["whole numbers", "any numbers"])
def test_lists_that_agree_exactly_scatter_little(kind, whole):
    """Nothing tells how much; it is far less than objects lie apart, and no move is as large."""
    rng = np.random.default_rng(4)
    shape = shape_of(kind, ("a", "b"))
    objects = rng.uniform(20.0, 900.0, (30, len(shape.columns)))
    objects = np.round(objects) if whole else objects
    if kind == "ellipses":
        objects[:, 2:4] = -np.sort(-objects[:, 2:4], axis=1)
        objects[:, 4] %= 180.0
    columns, experts = np.tile(objects, (3, 1)), np.repeat(np.arange(3), 30)
    features = shape.to_features(columns)
    pilot = find_pilot(shape, features, experts, 0.0)
    spread = features.std(axis=0)
    assert (np.repeat(pilot.within, shape.groups) < 0.01 * spread).all()
    moved = set_ties_apart(shape, columns, features, experts, pilot)
    assert (np.abs(moved - features).max(axis=0) < 0.05 * spread).all()
    assert (moved != features).any()


@pytest.mark.parametrize("whole", [True, False], ids=["whole numbers", "any numbers"])
def test_marks_that_nobody_copied_are_not_compared_with_other_objects(whole):
    """Three experts left most of the proposed boxes as they were, and added some of their own."""
    rng = np.random.default_rng(5)
    shape = shape_of("boxes", ())
    proposed, added = rng.uniform(20.0, 900.0, (25, 4)), rng.uniform(20.0, 900.0, (9, 4))
    columns = np.concatenate([np.tile(proposed, (3, 1)), added])
    experts = np.concatenate([np.repeat(np.arange(3), 25), np.repeat(np.arange(3), 3)])
    features = shape.to_features(np.round(columns) if whole else columns)
    pilot = find_pilot(shape, features, experts, 1.0)
    assert (np.repeat(pilot.within, shape.groups) < 0.01 * features.std(axis=0)).all()
