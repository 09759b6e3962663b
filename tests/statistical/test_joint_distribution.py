"""Short versions of Geweke's joint test and of simulation-based calibration.

The long ones are a command of their own, ``python -m studies.calibration``; what it found is
kept in ``docs/measurements/calibration.json``. Each test raises a false alarm with probability
1e-4; seeds are fixed, and planted bugs must be caught.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from studies import calibration
from studies.calibration import Design, calibrate, geweke

DESIGN = Design()
#: Where an alarm is what is wanted, half the steps will do.
STEPS, STEPS_WITH_A_BUG = 4000, 2000


def order_forgotten(problem):
    """The constrained CRP in place of the DFCRP."""
    return replace(problem, prior=problem.prior._replace(use_order=False))


def variance_prior_twice(problem):
    """As if the prior of the position variance were counted twice: same mean, half the spread."""
    return replace(problem, hyper=problem.hyper._replace(tau_x=2.0 * problem.hyper.tau_x))


def another_alpha(problem):
    """α with its prior's shape off by one."""
    shape = problem.prior.alpha_shape - 1.0
    return replace(problem, prior=problem.prior._replace(alpha_shape=shape))


@pytest.mark.parametrize("sampler", ["exact", "paper"])
def test_geweke(sampler):
    outcome = geweke(DESIGN, STEPS, seed=11, sampler=sampler, scans=2 if sampler == "exact" else 5)
    assert outcome["ok"], outcome


@pytest.mark.parametrize("mistake", [order_forgotten, variance_prior_twice, another_alpha])
def test_geweke_catches_a_planted_bug(mistake):
    assert not geweke(DESIGN, STEPS_WITH_A_BUG, seed=12, mistake=mistake)["ok"]


def noisier_experts(problem):
    """The prior of the noise factors with twice the spread."""
    bias = problem.hyper.bias
    wider = bias._replace(noise_sd=2.0 * bias.noise_sd)
    return replace(problem, hyper=problem.hyper._replace(bias=wider))


def experts_mixed_up(problem):
    """Every marking is taken for the next expert's."""
    bias = problem.hyper.bias
    other = (bias.expert + 1) % len(bias.work)
    return replace(problem, hyper=problem.hyper._replace(bias=bias._replace(expert=other)))


def test_geweke_with_experts_who_differ():
    outcome = geweke(Design(hyper=calibration.UNLIKE), STEPS, seed=16, scans=4)
    assert outcome["ok"], outcome


@pytest.mark.parametrize("mistake", [noisier_experts, experts_mixed_up])
def test_geweke_catches_a_bug_in_how_experts_differ(mistake):
    design = Design(hyper=calibration.UNLIKE)
    assert not geweke(design, STEPS_WITH_A_BUG, seed=17, scans=4, mistake=mistake)["ok"]


def test_calibration():
    outcome = calibrate(DESIGN, 300, seed=13)
    assert outcome["ok"], outcome


def test_calibration_catches_a_planted_bug():
    assert not calibrate(DESIGN, 300, seed=14, mistake=another_alpha)["ok"]


def test_the_likelihood_of_a_draw():
    """The study's own density against the kernels' twin."""
    from reference import kernel_reference as reference

    rng = np.random.default_rng(15)
    draw = calibration.draw_prior(rng, DESIGN)
    features = calibration.draw_features(rng, draw, DESIGN.hyper)
    expected = 0.0
    for row, y in zip(draw.parameters, features, strict=True):
        *start, a, d, covariance = row
        lam = covariance / np.sqrt(a * d / 2.0)
        expected += reference.log_density([*start, a, d, lam], y)
    found = calibration.log_likelihood(draw, features, DESIGN.hyper)
    assert found == pytest.approx(expected)


def test_the_command_writes_its_outcome(tmp_path):
    out = tmp_path / "calibration.json"
    calibration.main(["--out", str(out), "--steps", "800", "--replicates", "40"])
    outcome = json.loads(out.read_text())
    assert set(outcome["exact"]) == {"geweke", "calibration", "seconds"}


def test_the_kept_outcome_is_good():
    kept = Path(__file__).parents[2] / "docs" / "measurements" / "calibration.json"
    outcome = json.loads(kept.read_text())
    for sampler in ("exact", "paper"):
        assert outcome[sampler]["geweke"]["ok"]
        assert outcome[sampler]["calibration"]["ok"]
