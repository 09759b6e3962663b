"""Crowds drawn from the detection prior: ranks of what is true among draws of its posterior.

The false-alarm rate is 1e-4 of all ranks together; the seed is fixed, and planted bugs must be
caught. In short with one bug; at length with several and with few looks.
"""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from dfcrp.priors.detection.kernel import with_room
from dfcrp.priors.detection.layout import make_looks
from studies import calibration_crowds
from studies.calibration_crowds import CASES, CrowdCase, calibrate_crowds, draw_crowds

#: So small that a crowd takes a few hundredths of a second.
SMALL = CrowdCase(images=6, experts=5, looks=3)


def believing(**beliefs):
    """The bug that the sampler believes something else than the crowds are drawn from."""

    def mistake(problem):
        wrong = problem.prior.beliefs._replace(**beliefs)
        return replace(problem, prior=problem.prior._replace(beliefs=wrong))

    return mistake


def unlookers(problem):
    """The bug that who looked and marked nothing is forgotten, image by image."""
    classes = len(problem.prior.parameters.class_weight)
    looks, every = problem.prior.looks, CASES["four looks"].viewers()
    families, images = looks.row_list[looks.row].astype(np.int64), looks.image.astype(np.int64)
    bare = every[~np.isin(every[:, 0], images)]
    persons = problem.prior.person.astype(np.int64)
    wrong = make_looks(images, families, persons, bare)._replace(covered=looks.covered)
    return replace(problem, prior=with_room(problem.prior._replace(looks=wrong), classes))


def test_crowds_are_as_the_case_says():
    crowd = next(draw_crowds(np.random.default_rng(3), SMALL))
    looked = {tuple(look) for look in SMALL.viewers().tolist()}
    assert len(looked) == SMALL.images * SMALL.looks
    seen = set(zip(crowd.images.tolist(), crowd.families.tolist(), strict=True))
    assert seen <= looked
    assert len(crowd.objects) == SMALL.images


def test_ranks_in_short():
    found = calibrate_crowds(SMALL, 40, seed=5, draws=31, thin=2, burn_in=60)
    assert found["ok"], found
    wrong = believing(ease_mean=5.0)
    bad = calibrate_crowds(SMALL, 40, seed=5, draws=31, thin=2, burn_in=60, mistake=wrong)
    assert not bad["ok"], bad
    assert bad["smallest_p"] < 1e-8


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(CASES))
def test_ranks_at_length(name):
    found = calibrate_crowds(CASES[name], 400, seed=6)
    assert found["ok"], found
    for what, share in found["held"].items():
        # Five standard errors of crowds, each of which is one try.
        assert abs(share - 0.95) < 5.0 * np.sqrt(0.95 * 0.05 / 400), what


@pytest.mark.long
@pytest.mark.parametrize(
    "mistake",
    [
        unlookers,
        believing(skill_sd=2.5),
        believing(ease_mean=2.5),
        believing(false_shape=8.0),
        believing(look_shape=8.0),
        believing(decoy_least=0.0, decoy_most=1.0),
        believing(image_ease_sd=0.1),
    ],
    ids=["unlookers", "skill_sd", "ease_mean", "false_shape", "look_shape", "decoys", "images"],
)
def test_planted_bugs_are_caught(mistake):
    found = calibrate_crowds(CASES["four looks"], 400, seed=6, mistake=mistake)
    assert not found["ok"], found


def test_the_command_writes_its_outcome(tmp_path):
    out = tmp_path / "outcome.json"
    calibration_crowds.main(["--out", str(out), "--crowds", "4"])
    assert set(CASES) < set(json.loads(out.read_text()))
