"""Geweke's joint test of the detection prior, in short.

Two images with different viewers, classes, size dependence, lists of one person and false marks are
all in the case; footprints, categories and scores together in another. A test raises a
false alarm with probability 1e-4; seeds are fixed, planted bugs must be caught. The long version
is a command, ``python -m studies.calibration_detection``; its outcome is
``docs/measurements/calibration-detection.json``.
"""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies import calibration_detection
from studies.calibration_detection import DECOYS, WORDS, DetectionCase, geweke

CASE = DetectionCase()


def base_forgotten(problem):
    """The levels of size are taken to be equally frequent under the base measure."""
    levels = len(problem.prior.usual)
    return replace(problem, prior=problem.prior._replace(usual=np.full(levels, 1.0 / levels)))


def bound_forgotten(problem):
    """Classes may be as hard as they like."""
    beliefs = problem.prior.beliefs._replace(ease_least=-50.0)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def viewers_forgotten(problem):
    """Who looked and marked nothing is not counted."""
    bare = DetectionCase(looks=((0, 0),)).prior()
    return replace(problem, prior=problem.prior._replace(looks=bare.looks))


def spread_of_false_marks_overrated(problem):
    """Experts are taken to be more alike in their false marks than they are."""
    beliefs = problem.prior.beliefs._replace(false_shape=3.0)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def with_beliefs(problem, **beliefs):
    """The problem with other beliefs."""
    beliefs = problem.prior.beliefs._replace(**beliefs)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def interactions_overrated(problem):
    """Experts differ in single classes by more than they do."""
    return with_beliefs(problem, interaction_sd=1.2)


def clumps_overrated(problem):
    """False marks of a list are as many on every image, about."""
    return with_beliefs(problem, look_shape=6.0)


def images_alike(problem):
    """Images are taken to have nearly the same shares of easy objects."""
    return with_beliefs(problem, image_ease_sd=0.1)


def images_overrated(problem):
    """Images are taken to differ by more than they do."""
    return with_beliefs(problem, image_ease_sd=4.0)


def slopes_apart(problem):
    """Nothing is learned of an expert's slope from the others'."""
    beliefs = problem.prior.beliefs
    sd = math.hypot(beliefs.slope_sd, beliefs.size_slope_sd)
    beliefs = beliefs._replace(slope_sd=sd, size_slope_sd=1e-6)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def test_geweke():
    outcome = geweke(CASE, 3000, seed=21)
    assert outcome["ok"], outcome


@pytest.mark.parametrize(
    "mistake",
    [
        base_forgotten,
        bound_forgotten,
        viewers_forgotten,
        spread_of_false_marks_overrated,
        interactions_overrated,
        clumps_overrated,
        slopes_apart,
        images_alike,
        images_overrated,
    ],
)
def test_geweke_catches_a_planted_bug(mistake):
    assert not geweke(CASE, 3000, seed=21, mistake=mistake)["ok"]


#: One image at which all looked: laws of sizes and the spread of false marks may be held.
HELD = DetectionCase(
    families=(0, 0, 1, 1, 2),
    settings=replace(
        CASE.settings, size_weight="held", false_shape_sd="held", look_shape_sd="auto"
    ),
    images=(0,) * 5,
    looks=((0, 0), (0, 1), (0, 2)),
)


def sizes_learned(problem):
    """Laws of sizes are learned where they are held."""
    beliefs = problem.prior.beliefs._replace(size_weight=3.0)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def spread_learned(problem):
    """How much experts differ in their false marks is learned where it is held."""
    beliefs = problem.prior.beliefs._replace(false_shape_sd=0.5)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def test_geweke_on_one_image_at_which_all_looked():
    assert HELD.prior().beliefs.size_weight == math.inf
    assert HELD.prior().beliefs.image_ease_sd == 0.0
    outcome = geweke(HELD, 3000, seed=23)
    assert outcome["ok"], outcome


@pytest.mark.parametrize("mistake", [sizes_learned, spread_learned, bound_forgotten])
def test_geweke_on_one_image_catches_a_planted_bug(mistake):
    assert not geweke(HELD, 3000, seed=23, mistake=mistake)["ok"]


def constraint_forgotten(problem):
    """Decoys may be marked by nobody and by everybody."""
    return with_beliefs(problem, decoy_least=0.0, decoy_most=1.0)


def readiness_overrated(problem):
    """Who makes many false marks is taken for one who makes few."""
    return with_beliefs(problem, usual_false=20.0 * problem.prior.beliefs.usual_false)


def silent_forgotten(problem):
    """Nobody looked but those who marked something."""
    looks = problem.prior.looks
    looks = looks._replace(silent=np.zeros(len(looks.silent)))
    return replace(problem, prior=problem.prior._replace(looks=looks))


def test_geweke_with_decoys_and_silent_looks():
    prior = DECOYS.prior()
    assert (prior.real, len(prior.parameters.class_weight)) == (1, 2)
    assert prior.looks.silent.tolist() == [0.5, 1.5]
    assert prior.beliefs.look_shape_sd > 0.0
    outcome = geweke(DECOYS, 3000, seed=24, draws=1200)
    assert outcome["ok"], outcome


@pytest.mark.parametrize(
    "mistake", [constraint_forgotten, readiness_overrated, silent_forgotten, clumps_overrated]
)
def test_geweke_with_decoys_and_silent_looks_catches_a_planted_bug(mistake):
    assert not geweke(DECOYS, 3000, seed=24, draws=1200, mistake=mistake)["ok"]


def footprints_forgotten(problem):
    """Everyone looked at all of the first image."""
    places, (first, second, third) = WORDS.zones
    zones = (places, (first, (*second[:2], (0, 1, 2)), third))
    looks = replace(WORDS, zones=zones).prior().looks
    return replace(problem, prior=problem.prior._replace(looks=looks))


def accuracy_overrated(problem):
    """Experts are taken to be right more often than they are."""
    beliefs = problem.prior.beliefs._replace(accuracy=0.9)
    return replace(problem, prior=problem.prior._replace(beliefs=beliefs))


def scores_turned(problem):
    """The highest scores are taken for the lowest."""
    scores = problem.prior.scores
    scores = scores._replace(rank=-scores.rank)
    return replace(problem, prior=problem.prior._replace(scores=scores))


def test_geweke_with_footprints_categories_and_scores():
    """In short, with one bug; independent draws take most of the time, so there are few."""
    outcome = geweke(WORDS, 2000, seed=22, draws=250)
    assert outcome["ok"], outcome
    assert not geweke(WORDS, 2000, seed=22, draws=250, mistake=accuracy_overrated)["ok"]


@pytest.mark.long
@pytest.mark.parametrize("mistake", [None, footprints_forgotten, accuracy_overrated, scores_turned])
def test_geweke_with_footprints_categories_and_scores_at_length(mistake):
    outcome = geweke(WORDS, 4000, seed=21, mistake=mistake)
    assert outcome["ok"] == (mistake is None), outcome


def test_the_command_writes_its_outcome(tmp_path):
    out = tmp_path / "outcome.json"
    calibration_detection.main(["--out", str(out), "--steps", "100"])
    assert {"geweke", "seconds", "persons"} <= set(json.loads(out.read_text()))


def test_the_kept_outcome_is_good():
    kept = Path(__file__).parents[2] / "docs" / "measurements" / "calibration-detection.json"
    assert json.loads(kept.read_text())["geweke"]["ok"]
