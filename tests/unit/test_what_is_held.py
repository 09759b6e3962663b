"""Laws of sizes and the spread of false marks are learned unless settings hold them.

That of one list's false marks over its images is learned where some list covers several.
"""

from __future__ import annotations

import math

import numpy as np
import pytest

from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import (
    LEARNED_CLUMPS,
    LEARNED_IMAGES,
    LEARNED_SIZES,
    LEARNED_SPREAD,
    DetectionSettings,
)
from reference.detection_reference import make_zones

HELD = (math.inf, 0.0)
LEARNED = (LEARNED_SIZES, LEARNED_SPREAD)
FAMILIES = np.array([0, 1, 2, 0, 1])


def made(images=None, looks=None, zones=None, persons=(0, 1, 2), looks_known=True, **settings):
    return make_detection(
        DetectionSettings(**settings),
        np.linspace(2.0, 4.0, len(FAMILIES)),
        FAMILIES,
        np.array(persons),
        None if images is None else np.array(images),
        None if looks is None else np.array(looks),
        zones=zones,
        looks_known=looks_known,
    )


def held(*given, **settings):
    beliefs = made(*given, **settings).beliefs
    return beliefs.size_weight, beliefs.false_shape_sd


def clumps(*given, **settings):
    beliefs = made(*given, **settings).beliefs
    return beliefs.look_shape, beliefs.look_shape_sd


def test_one_image_at_which_all_looked():
    assert held() == LEARNED
    assert held(persons=(0, 0, 1)) == LEARNED


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
    assert held([0] * 5, looks, both) == LEARNED
    assert held([0] * 5, looks, some) == LEARNED


@pytest.mark.parametrize("images", [None, [0, 0, 0, 1, 1]])
def test_settings_have_the_last_word(images):
    assert held(images, size_weight="held", false_shape_sd="held") == HELD
    assert held(images, size_weight=7.0, false_shape_sd=0.3) == (7.0, 0.3)


def test_clumps_of_false_marks():
    """On one image there is nothing to learn of them, and one rate is all there is."""
    one, several = (math.inf, 0.0), (1.0, LEARNED_CLUMPS)
    assert clumps() == one
    assert clumps([0, 0, 0, 1, 1], [(1, 2)]) == several
    # Nobody looked twice.
    assert clumps([0, 0, 1, 0, 1], persons=(0, 1, 2)) == several
    disjoint = make_detection(
        DetectionSettings(), None, np.array([0, 1]), np.array([0, 0]), np.array([0, 1])
    )
    assert disjoint.beliefs.look_shape == math.inf
    # A look without markings counts.
    assert clumps([0] * 5, [(1, 0)]) == several
    assert clumps(look_shape=2.0, look_shape_sd="held") == (2.0, 0.0)
    assert clumps([0, 0, 0, 1, 1], look_shape_sd=0.3) == (1.0, 0.3)
    assert clumps([0, 0, 0, 1, 1], look_shape=math.inf) == one
    assert made().parameters.look_shape[0] == math.inf


def test_how_images_differ():
    """There is something to learn where there are several images and several classes of objects."""
    several = [0, 0, 0, 1, 1]

    def images_differ(*given, **settings):
        prior = made(*given, **settings)
        [start] = prior.parameters.image_ease_sd
        assert start == prior.beliefs.image_ease_sd
        assert prior.parameters.image_ease.tolist() == [0.0] * (len(prior.looks.zones) - 1)
        return start

    assert images_differ(several, classes=2) == LEARNED_IMAGES
    assert images_differ(several, classes=2, image_ease_sd=0.3) == 0.3
    assert images_differ(several, classes=2, image_ease_sd="held") == 0.0
    assert images_differ(several, classes=1) == 0.0
    assert images_differ(several, classes=2, decoys=True) == LEARNED_IMAGES
    # One class of objects, and decoys.
    assert images_differ(several, classes=1, decoys=True, image_ease_sd=0.3) == 0.0
    assert images_differ(classes=2) == 0.0
    assert images_differ(classes=2, image_ease_sd=0.3) == 0.0


def test_classes_are_at_equal_steps_from_easy_to_hard():
    for classes in (1, 2, 3, 4):
        node = made([0, 0, 0, 1, 1], classes=classes).node
        assert len(node) == classes
        assert node.mean() == pytest.approx(0.0)
        if classes > 1:
            assert node.std() == pytest.approx(1.0)
            assert (np.diff(node) < 0.0).all()
            assert np.diff(node, 2) == pytest.approx(np.zeros(classes - 2))
        else:
            assert node.tolist() == [0.0]


def test_decoys_need_images_and_experts():
    """By default where there are several images and ten persons, five of whom looked at one."""

    def decoys(*given, **settings):
        prior = made(*given, **settings)
        return len(prior.parameters.class_weight) - prior.real

    assert decoys() == 0
    assert decoys([0, 0, 0, 1, 1]) == 0
    assert decoys([0, 0, 0, 1, 1], decoys=True) == 1
    assert of_crowd(experts=10, looks=5) == 1
    assert of_crowd(experts=9, looks=5) == 0
    assert of_crowd(experts=10, looks=4) == 0
    assert of_crowd(experts=10, looks=5, decoys=False) == 0
    assert decoys(decoys=True) == 1
    prior = made(decoys=True, classes=4)
    assert (prior.real, len(prior.parameters.class_weight)) == (3, 4)


def of_crowd(experts, looks, **settings):
    """How many classes of decoys there are if so many look at each of as many images."""
    images = np.repeat(np.arange(experts), looks)
    families = (images + np.tile(np.arange(looks), experts)) % experts
    chosen = DetectionSettings(**settings)
    prior = make_detection(chosen, None, families, np.arange(experts), images)
    return len(prior.parameters.class_weight) - prior.real


def test_silent_looks():
    """As many as on busy images, if nobody says who looked; none on one image."""
    images = [0, 0, 0, 1, 1]

    def silent(*given, **settings):
        return made(*given, looks_known=False, **settings).looks.silent.tolist()

    assert silent(images) == [0.0, 1.0]
    assert silent(images, assumed_looks=4.5) == [1.5, 2.5]
    assert silent(images, assumed_looks=0) == [0.0, 0.0]
    assert silent() == [0.0]
    assert made(images).looks.silent.tolist() == [0.0, 0.0]
