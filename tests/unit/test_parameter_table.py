"""The parameters of the detection prior are declared in one place, and all else follows from it."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.priors.detection.parameters import (
    TALLY,
    Parameters,
    axes_of,
    joined,
    local,
    of_image,
    parts,
    shapes_of,
    variables,
)

SIZES = {
    **{"class": 2, "person": 3, "expert": 4, "image_of_objects": 2, "look": 5},
    **{"law_of_objects": 2, "level": 3, "category": 2, "said": 2, "score": 7, "tally": 3},
}


def test_one_array_has_every_parameter_once_and_in_order():
    """Parts of it are the parameters, and together they are the array."""
    each = shapes_of(Parameters, SIZES)
    assert tuple(each) == Parameters._fields
    size = sum(math.prod(shape) for shape in each.values())
    found = parts(np.arange(size, dtype=np.float64), each)
    assert found["confusion"].shape == (2, 2, 3)
    np.testing.assert_array_equal(joined(each, found), np.arange(size))
    assert joined(each, dict.fromkeys(each, 0.5)).tolist() == [0.5] * size


@pytest.mark.parametrize(
    ("without", "gone"),
    [
        (
            {"category": 0, "said": 0},
            {
                *("category_share", "false_category", "confusion"),
                *("usual_confusion", "confusion_strength"),
            },
        ),
        ({"score": 0}, {"score_slope", "score_offset", "usual_slope"}),
    ],
)
def test_what_the_data_do_not_have_has_no_parameters(without, gone):
    """Neither in the array nor in the draws."""
    each = shapes_of(Parameters, SIZES | without)
    assert {name for name, shape in each.items() if math.prod(shape) == 0} == gone
    names = [one.name for one in variables(each)]
    assert names == [name for name in Parameters._fields[:-1] if name not in gone] + list(TALLY)


def test_an_image_has_its_own_numbers_and_all_that_are_shared():
    """By the last axis of each parameter."""
    each = shapes_of(Parameters, SIZES)
    chosen = {"person": [0, 2], "expert": [1], "look": [3, 4], "image_of_objects": [1]}
    columns = of_image(each, {axis: np.array(at) for axis, at in chosen.items()})
    size = sum(math.prod(shape) for shape in each.values())
    whole = parts(np.arange(size, dtype=np.float64), each)
    of_one = shapes_of(Parameters, SIZES | {axis: len(at) for axis, at in chosen.items()})
    found = parts(columns.astype(np.float64), of_one)
    for name, axes in axes_of(Parameters).items():
        last = axes.names[-1:]
        at = chosen.get(last[0]) if last else None
        expected = whole[name] if at is None else whole[name][..., at]
        np.testing.assert_array_equal(found[name], expected, name)


def test_only_images_and_looks_are_local():
    """They are the many."""
    assert {name for name in Parameters._fields if local(name)} == {
        *("image_ease", "false_marks_on", "expected_objects")
    }
