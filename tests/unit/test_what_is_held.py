"""Where laws of sizes and the spread of false marks are held under the detection prior."""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import LEARNED_SIZES, LEARNED_SPREAD, DetectionSettings
from reference.detection_reference import make_zones

HELD = (math.inf, 0.0)
LEARNED = (LEARNED_SIZES, LEARNED_SPREAD)
FAMILIES = np.array([0, 1, 2, 0, 1])


def held(images=None, looks=None, zones=None, persons=(0, 1, 2), **settings):
    beliefs = make_detection(
        DetectionSettings(**settings),
        np.linspace(2.0, 4.0, len(FAMILIES)),
        FAMILIES,
        np.array(persons),
        None if images is None else np.array(images),
        None if looks is None else np.array(looks),
        zones=zones,
    ).beliefs
    return beliefs.size_weight, beliefs.false_shape_sd


def test_one_image_at_which_all_looked():
    assert held() == HELD
    assert held(persons=(0, 0, 1)) == HELD


def test_images_with_the_same_viewers():
    """Several images are learned from, whoever looked."""
    assert held([0, 0, 0, 1, 1], [(1, 2)]) == LEARNED


def test_images_with_other_viewers():
    assert held([0, 0, 0, 1, 1]) == LEARNED
    assert held([0, 0, 0, 0, 0], [(1, 0), (1, 1)]) == LEARNED


def test_parts_of_an_image():
    both = make_zones([0, 0, 1, 1, 1], [(0, 0.5, (0, 1, 2)), (0, 0.5, (0, 1, 2))])
    some = make_zones([0, 0, 1, 1, 1], [(0, 0.5, (0, 1)), (0, 0.5, (0, 1, 2))])
    looks = [(0, 0), (0, 1), (0, 2)]
    assert held([0] * 5, looks, both) == HELD
    assert held([0] * 5, looks, some) == LEARNED


@pytest.mark.parametrize("images", [None, [0, 0, 0, 1, 1]])
def test_settings_have_the_last_word(images):
    assert held(images, size_weight="held", false_shape_sd="held") == HELD
    assert held(images, size_weight=7.0, false_shape_sd=0.3) == (7.0, 0.3)
