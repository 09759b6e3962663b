"""Simulated markings: what each design promises."""

from __future__ import annotations

import numpy as np
import pytest

from dfcrp import simulate
from dfcrp.errors import SettingsError


def sizes(truth: np.ndarray) -> np.ndarray:
    return np.unique(truth, return_counts=True)[1]


def every_design():
    drawn = [pytest.param(d.draw(3), id=name) for name, d in simulate.DESIGNS.items()]
    return [*drawn, pytest.param(simulate.highlands_like(3, scale=0.1), id="highlands")]


@pytest.mark.parametrize("markings", every_design())
def test_the_truth_keeps_the_family_rule(markings):
    places = set(zip(markings.truth.tolist(), markings.families.tolist(), strict=True))
    assert len(places) == len(markings)


def test_same_seed_same_markings():
    one, other = simulate.paper_design(4), simulate.paper_design(4)
    for name in ("x", "y", "diameter", "expert", "truth"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert len(simulate.paper_design(5)) != 0
    assert not np.array_equal(one.x[:20], simulate.paper_design(5).x[:20])


def test_paper_design_has_the_paper_s_rates():
    # 200 data sets. Each mean is held to 4.5 standard errors of the design's own binomials.
    design = simulate.DESIGNS["paper"]
    n_sets = 200
    found, false = np.zeros(6), np.zeros(6)
    for seed in range(n_sets):
        m = simulate.paper_design(seed)
        assert m.experts == ("A", "B", "C", "D", "E", "F")
        real = m.truth < design.n_objects
        found += np.bincount(m.families[real], minlength=6)
        false += np.bincount(m.families[~real], minlength=6)
    for counts, rate in ((found, np.array(design.detection)), (false, np.array(design.false_rate))):
        trials = n_sets * design.n_objects
        error = np.sqrt(rate * (1 - rate) / trials)
        np.testing.assert_array_less(np.abs(counts / trials - rate), 4.5 * error)


def test_paper_design_has_the_paper_s_spread():
    design = simulate.SimulationDesign(n_objects=20_000)
    m = design.draw(6)
    real = m.truth < design.n_objects
    for values, variance in ((m.x, 5.0), (m.y, 5.0), (np.log(m.diameter), 0.01)):
        count = np.bincount(m.truth[real])
        mean = np.bincount(m.truth[real], values[real]) / np.maximum(count, 1)
        residual = values[real] - mean[m.truth[real]]
        pooled = (residual**2).sum() / (real.sum() - (count > 0).sum())
        # About 90,000 degrees of freedom: relative standard error 0.5 %.
        assert pooled == pytest.approx(variance, rel=0.025)
    assert m.x.min() > -15
    assert m.x.max() < 715
    # Gamma(64, 16) has mean 4 and standard deviation 0.5.
    assert np.log(m.diameter).mean() == pytest.approx(4.0, abs=0.02)


def test_every_parameter_can_be_changed():
    m = simulate.paper_design(
        7, n_objects=40, x_min=1000, width=10, detection=[1.0] * 8, false_rate=[0.0] * 8
    )
    assert m.experts == ("A", "B", "C", "D", "E", "E07", "E08", "F")
    assert len(m) == 320
    assert 980 < m.x.min() < m.x.max() < 1030


def test_highlands_like_resembles_the_highlands_image():
    m = simulate.highlands_like(8)
    assert len(m) == 9517
    assert np.bincount(m.families).tolist() == list(simulate.HighlandsDesign().counts)
    assert m.experts == tuple("ABCDEFGHIJK")
    assert m.diameter.min() >= 18
    assert -2230 < m.y.min() < m.y.max() < 15
    assert np.median(m.diameter) == pytest.approx(25, abs=1.5)
    by_size = np.bincount(sizes(m.truth), minlength=12)[1:]
    # As in the image: many seen by one expert or by all, few in between.
    assert 1550 < by_size.sum() < 1800
    assert by_size[[0, -1]].min() > 300
    assert 40 < by_size[1:-1].min() < by_size[1:-1].max() < 170


def test_highlands_like_keeps_its_density_when_scaled():
    m = simulate.highlands_like(9, scale=0.25)
    assert len(m) == pytest.approx(9517 / 4, abs=11)
    assert m.x.max() < 4107 / 2 + 20


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: simulate.paper_design(1, n_object=3), "did you mean 'n_objects'"),
        (lambda: simulate.paper_design(1, detection=(0.5,)), "detection is given for 1 experts"),
        (lambda: simulate.paper_design(1, false_rate=(1.5,) * 6), "needs a probability"),
        (lambda: simulate.paper_design(1, width=0), "width is 0"),
        (lambda: simulate.paper_design(1, n_objects=2.5), "whole number"),
        (lambda: simulate.paper_design(1, position_variance=-1), "must not be negative"),
        (lambda: simulate.highlands_like(1, scale=0), "the scale is 0"),
    ],
)
def test_wrong_settings_are_refused(call, message):
    with pytest.raises(SettingsError, match=message):
        call()
