"""Experts who differ: densities against matrices, and each update against the joint density.

``log_joint`` is the slow twin: Σ_i log N(y_i; μ + b_f, r_f² Σ) and the priors, by matrices. Offsets
are normal given the rest, so the update is a linear map of its normals; with these set to zero and
to unit vectors it gives a mean and a covariance, which must be those of the joint, cut down to
offsets with a weighted sum of zero.
"""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.linalg import null_space

from dfcrp.likelihoods.circle import bias_update
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import proposal as circle_proposal
from dfcrp.likelihoods.circle.bias import SHARE, corrected, log_noise_of
from dfcrp.likelihoods.contract import of_chain
from reference import kernel_reference as reference
from reference import small_problems as small

FAMILIES = [0, 0, 1, 1, 2, 2, 2]
LABELS = [0, 1, 0, 1, 0, 5, 6]


class Setting:
    """A problem in a fixed state, with offsets and noise that satisfy their constraints."""

    def __init__(self, seed: int):
        rng = np.random.default_rng([seed, 91])
        hyper = small.biased(FAMILIES)
        self.theta = small.random_rows(rng, hyper, (len(FAMILIES),))
        features = self.theta[LABELS, :3] + rng.normal(0.0, [1.0, 1.0, 0.3], (len(FAMILIES), 3))
        self.problem = small.make_problem(FAMILIES, features, hyper=hyper)
        self.data = self.problem.data
        self.state = small.fill_state(self.problem, LABELS)
        self.state.theta[:] = small.complete(self.theta)
        self.state.law[4:] = small.draw_bias(rng, hyper.bias, 1)[0]
        self.hyper = of_chain(hyper, self.state.law)
        self.share = hyper.bias.work[:, SHARE]

    def log_marking(self, i: int, row) -> float:
        """log p(y_i | θ) under the current law."""
        offsets, noise = small.offsets_and_noise(self.hyper.bias, self.hyper.law)
        factor = math.exp(2.0 * noise[i, 0])
        mean = np.asarray(row[:3]) + offsets[i]
        return reference.log_normal(self.data.features[i], mean, factor * reference.covariance(row))

    def log_joint(self) -> float:
        """log p(y, offsets, noise | θ), up to a constant."""
        bias, law = self.hyper.bias, self.hyper.law
        value = sum(self.log_marking(i, self.theta[k]) for i, k in enumerate(LABELS))
        offsets = law[bias.offsets : bias.noise].reshape(-1, 3)
        value -= 0.5 * ((offsets / bias.offset_sd) ** 2).sum()
        return value - 0.5 * ((law[bias.noise :] / bias.noise_sd) ** 2).sum()


@pytest.fixture(params=range(3))
def setting(request):
    return Setting(request.param)


def test_density_and_opening_weight(setting):
    """A new cluster's proposal sees the marking without its offsets, and the wider Σ."""
    hyper, rows = setting.hyper, setting.state.theta
    offsets, noise = small.offsets_and_noise(hyper.bias, hyper.law)
    for i in range(len(FAMILIES)):
        factor = math.exp(2.0 * noise[i, 0])
        y = setting.data.features[i] - offsets[i]
        for k, row in enumerate(setting.theta):
            fast = circle.log_density(hyper, rows, k, setting.data.features, i)
            assert fast == pytest.approx(setting.log_marking(i, row), rel=1e-10)
            matrix = reference.base_mean(hyper)[1] + factor * reference.covariance(row)
            slow = (
                reference.log_normal(y, reference.base_mean(hyper)[0], matrix)
                + reference.log_covariance_prior(hyper, row, row[2])
                - reference.log_covariance_prior(hyper, row, y[2])
            )
            fast = circle.opening_weight(hyper, rows, k, setting.data.features, i)
            assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_weight_of_proposed_parameters(setting):
    """Its likelihood and its marginal over the mean, by matrices."""
    hyper, state, y = setting.hyper, setting.state, setting.data.features
    offsets, noise = small.offsets_and_noise(hyper.bias, hyper.law)
    mean0, matrix0 = reference.base_mean(hyper)
    for k in (0, 1, 5):
        members = [i for i, label in enumerate(LABELS) if label == k]
        moments = circle_proposal.moments_of(hyper, y, state, k)
        row = setting.theta[k]
        precision, pull = np.linalg.inv(matrix0), np.linalg.solve(matrix0, mean0)
        for i in members:
            inverse = np.linalg.inv(math.exp(2.0 * noise[i, 0]) * reference.covariance(row))
            precision = precision + inverse
            pull = pull + inverse @ (y[i] - offsets[i])
        spread = np.linalg.inv(precision)
        slow = (
            sum(setting.log_marking(i, row) for i in members)
            + reference.log_normal(row[:3], mean0, matrix0)
            - reference.log_normal(row[:3], spread @ pull, spread)
        )
        fast = circle_proposal.log_marginal(hyper, y, state, k, state.theta, k, moments)
        assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


class Given:
    """In place of a generator: normals that are known."""

    def __init__(self, normals):
        self.normals = iter(normals)

    def standard_normal(self):
        return next(self.normals)


def drawn(setting: Setting, axis: int, normals) -> np.ndarray:
    """One coordinate of the offsets after its update with these normals."""
    before = setting.state.law.copy()
    bias_update.gather_offsets(setting.hyper, setting.data, setting.state)
    bias_update.draw_axis.py_func(Given(normals), setting.hyper, axis)
    first = setting.hyper.bias.offsets
    found = setting.state.law[first + axis : setting.hyper.bias.noise : 3].copy()
    setting.state.law[:] = before
    return found


@pytest.mark.parametrize("axis", range(3))
def test_offsets_have_the_conditional_of_the_joint(setting, axis):
    experts = len(setting.share)
    mean = drawn(setting, axis, np.zeros(experts))
    root = np.array([drawn(setting, axis, row) - mean for row in np.eye(experts)]).T
    # The joint is quadratic in the offsets, so finite differences are exact but for rounding.
    free, law = null_space(setting.share[np.newaxis]), setting.state.law
    at = setting.hyper.bias.offsets + axis + 3 * np.arange(experts)
    here = law[at].copy()

    def value(step):
        law[at] = here + free @ step
        found = setting.log_joint()
        law[at] = here
        return found

    unit = np.eye(free.shape[1])
    slope = np.array([(value(u) - value(-u)) / 2.0 for u in unit])
    curve = np.array(
        [[(value(u + v) - value(u - v) - value(v - u) + value(-u - v)) / 4.0 for u in unit]
         for v in unit]
    )  # fmt: skip
    spread = free @ np.linalg.inv(-curve) @ free.T
    assert mean == pytest.approx(here + spread @ (free @ slope), rel=1e-7, abs=1e-8)
    assert root @ root.T == pytest.approx(spread, rel=1e-7, abs=1e-9)
    assert setting.share @ mean == pytest.approx(0.0, abs=1e-12)


def test_gradients_are_kept_up_to_date(setting):
    """After each axis they are what gathering anew would give, where they are still needed."""
    hyper, rng = setting.hyper, np.random.default_rng(5)
    bias_update.gather_offsets(hyper, setting.data, setting.state)
    for axis in range(3):
        bias_update.draw_axis(rng, hyper, axis)
        kept = hyper.bias.work.copy()
        bias_update.gather_offsets(hyper, setting.data, setting.state)
        others = [c for c in range(3) if c != axis]
        columns = [bias_update.GRADIENT_X + c for c in others]
        assert kept[:, columns] == pytest.approx(hyper.bias.work[:, columns], rel=1e-9, abs=1e-9)


def test_noise_has_the_density_of_the_joint(setting):
    hyper, law = setting.hyper, setting.state.law
    bias_update.gather_squares(hyper, setting.data, setting.state)
    at, start = hyper.bias.noise, setting.log_joint()
    for f, e in ((0, 1), (2, 0)):
        along = setting.share[e], -setting.share[f]
        still = bias_update.log_noise_moved(hyper, f, e, *along, 0.0)
        for step in (-0.7, 0.2, 1.5):
            fast = bias_update.log_noise_moved(hyper, f, e, *along, step) - still
            law[at + f] += along[0] * step
            law[at + e] += along[1] * step
            slow = setting.log_joint() - start
            law[at + f] -= along[0] * step
            law[at + e] -= along[1] * step
            assert fast == pytest.approx(slow, rel=1e-9, abs=1e-9)


def test_updates_hold_the_sums(setting):
    rng, bias, law = np.random.default_rng(6), setting.hyper.bias, setting.state.law
    for _ in range(200):
        bias_update.update_bias(rng, setting.hyper, setting.data, setting.state)
    offsets = law[bias.offsets : bias.noise].reshape(-1, 3)
    assert setting.share @ offsets == pytest.approx(0.0, abs=1e-12)
    assert setting.share @ law[bias.noise :] == pytest.approx(0.0, abs=1e-12)


def test_a_lone_expert_is_the_mean_expert():
    families = [0, 0]
    problem = small.make_problem(families, np.ones((2, 3)), hyper=small.biased(families))
    state = small.fill_state(problem, [0, 1])
    state.theta[:] = small.complete(
        small.random_rows(np.random.default_rng(7), small.LEARNED, (2,))
    )
    hyper = of_chain(problem.hyper, state.law)
    bias_update.update_bias(np.random.default_rng(8), hyper, problem.data, state)
    assert state.law[4:] == pytest.approx(0.0, abs=1e-12)


def test_experts_alike_are_left_alone():
    """To the last bit, whether the switch is off or all offsets are zero."""
    y = np.random.default_rng(9).normal(size=(len(FAMILIES), 3))
    for hyper in (small.LEARNED, small.biased(FAMILIES)):
        for i in range(len(FAMILIES)):
            assert corrected(hyper, y, i) == (*y[i], 1.0)
            assert log_noise_of(hyper, i) == 0.0
