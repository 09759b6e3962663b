"""The slice sampler, on targets that are known; false-alarm rate 1e-5 each."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from dfcrp.compiled import slice as slices
from dfcrp.likelihoods import bias
from dfcrp.likelihoods.circle import tolerance
from reference import small_problems as small

FALSE_ALARM_RATE = 1e-5
DRAWS = 3000


def log_gamma(value: float) -> float:
    """log density of a Gamma(3, 1) number."""
    return 2.0 * math.log(value) - value if value > 0.0 else -math.inf


def p_value(update, width: float, law) -> float:
    """Of draws that start from the target, one update each."""
    rng = np.random.default_rng(3)
    start = rng.standard_gamma(3.0, DRAWS)
    found = [update(rng, None, float(value), width, 1e-14) for value in start]
    return float(stats.kstest(found, law.cdf).pvalue)


@pytest.mark.parametrize("width", [0.3, 2.0, 30.0])
@pytest.mark.parametrize("kernel", [slices.slice_update, slices.shrinking_update])
def test_an_update_leaves_its_target_unchanged(kernel, width):
    update = small.slice_update_of(log_gamma, kernel)
    assert p_value(update, width, stats.gamma(3.0)) > FALSE_ALARM_RATE


@pytest.mark.parametrize("kernel", [slices.slice_update, slices.shrinking_update])
def test_another_target_is_noticed(kernel):
    update = small.slice_update_of(log_gamma, kernel)
    assert p_value(update, 2.0, stats.gamma(3.2)) < FALSE_ALARM_RATE


def test_a_slice_of_one_point_is_given_up():
    """As where rounding leaves nothing of it; the number stays what it was."""

    def spike(value):
        return 0.0 if value == 2.0 else -math.inf

    update = small.slice_update_of(spike)
    assert update(np.random.default_rng(4), None, 2.0, 1.0, 1e-14) == 2.0


def with_limit(most: int, deal):
    """An update of the Gamma number whose bracket grows by few steps, dealt to its sides so."""

    class Dealt:
        """The second uniform number that an update asks for deals the steps."""

        def __init__(self, rng):
            self.rng, self.asked = rng, 0

        def random(self):
            self.asked += 1
            return deal(self.rng.random()) if self.asked == 2 else self.rng.random()

        def standard_exponential(self):
            return self.rng.standard_exponential()

    def target(_, value):
        return log_gamma(value)

    shrink = small.with_callees(slices.shrink, log_target=target)
    update = small.with_callees(
        slices.slice_update, log_target=target, shrink=shrink, MOST_STEPS=most
    )
    return lambda rng, _, start, width, least: update(Dealt(rng), None, start, width, least)


def test_a_limit_of_steps_is_dealt_at_random():
    """A bracket too short for the slice leaves the target unchanged only then."""
    assert p_value(with_limit(3, lambda u: u), 0.5, stats.gamma(3.0)) > FALSE_ALARM_RATE
    above_only = with_limit(3, lambda u: 0.0)
    assert p_value(above_only, 0.5, stats.gamma(3.0)) < FALSE_ALARM_RATE


@pytest.mark.parametrize("value", [0.0, math.nan, math.inf, -math.inf])
def test_an_update_ends_whatever_the_density_is(value):
    """A density that does not fall, or is no number, must not keep a kernel busy for ever."""
    found = small.slice_update_of(lambda _: value)(np.random.default_rng(5), None, 2.0, 1.0, 1e-14)
    assert abs(found - 2.0) <= slices.MOST_STEPS + 1.0


#: Targets of log variances with a standard normal prior, whose data are 10^126 times off.
OFF = {
    "scale": (tolerance.log_scale_step, tolerance.ScaleStep(0.0, 0.0, 1.0, 5.0, 1e126, 0.0)),
    "growth": (
        tolerance.log_growth_step,
        tolerance.GrowthStep(
            0.0, 0.0, 1.0, 0.0, 0.0, 1.0, 0.0, np.array([[1.0, 1e126, 0.0, 0.0]]), 1, 1
        ),
    ),
    "noise": (
        bias.log_noise_moved,
        bias.NoiseTarget(1.0, 3.0, 0.0, 4.0, 1e126, 1.0, 0.0, 4.0, 1.0, 0.0),
    ),
}


@pytest.mark.parametrize("name", OFF)
def test_stepping_out_ends_where_the_data_are_absurdly_far_off(name):
    density, target = OFF[name]

    def log_density(value):
        try:
            found = density.py_func(target, value)
        except OverflowError:  # compiled code has infinity
            return -math.inf
        assert abs(value) <= slices.FARTHEST or found == -math.inf
        return found

    assert log_density(999.0) > -math.inf
    assert log_density(1001.0) == -math.inf
    update = small.slice_update_of(log_density)
    moved = update(np.random.default_rng(5), None, 0.0, 2.0, 1e-14)
    assert 0.0 < moved < slices.FARTHEST
