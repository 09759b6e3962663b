"""Geweke's joint test of circles on a sphere, whose tolerances are learned.

Scans of the sampler take turns with fresh data y | c, θ; the law, α, the partition, θ and the
distances of y from θ must then follow their joint prior, of which independent draws are made here
without the kernels. The sphere's radius is about ten standard deviations, so that its curvature
tells. False-alarm rate 1e-4; seeds are fixed, and planted bugs must be caught.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import pytest

from dfcrp import prior
from dfcrp.likelihoods.circle import kernel as circle
from dfcrp.likelihoods.circle import sphere
from dfcrp.likelihoods.circle.scatter import CIRCLE_COLUMNS_WITH_REST
from dfcrp.moves.assignment import refresh_spares
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from studies.calibration import LAW_NAMES, compare_moments, everyone_in_touch

FAMILIES = (0, 0, 1, 1, 2, 2)
SHAPE, RATE = 3.0, 1.5
#: Places wander slowly here, and the batches by which errors are judged must be longer than that:
#: with a fourth of these steps false alarms came far more often than stated.
STEPS = 16_000
#: Where an alarm is what is wanted, fewer will do.
STEPS_WITH_A_BUG = 4_000
HYPER = sphere.SphereHyper(
    kappa_x=1.0, eta_x=1.0, tau_x=1.0, kappa_d=1.0, eta_d=1.0, tau_d=1.0, lambda_a=1.0,
    lambda_b=1.0, mu0_l=3.0, var0_l=0.3, floor=0.3, radius=6.0, unit=1.0,
    **circle.with_law(
        (3.0, 4.0), 3.0, np.array([-1.0, 0.5, -2.5, -0.4]), np.array([0.4, 0.4, 0.5, 0.5]), n=16
    ),
)  # fmt: skip


class Draw(NamedTuple):
    """One draw of everything; θ and y by marking."""

    alpha: float
    labels: np.ndarray
    place: np.ndarray
    size: np.ndarray
    a: np.ndarray
    d: np.ndarray
    law: np.ndarray
    features: np.ndarray


def directions(rng, n) -> np.ndarray:
    """Uniform on the unit sphere."""
    found = rng.standard_normal((n, 3))
    return found / np.linalg.norm(found, axis=1, keepdims=True)


def scatter(rng, place, a) -> np.ndarray:
    """Places around their means by the von Mises-Fisher law, drawn at the pole and then mirrored
    to the mean."""
    radius, n = HYPER.radius, len(a)
    kappa = radius**2 / a
    height = 1.0 + np.log1p(-rng.random(n) * -np.expm1(-2.0 * kappa)) / kappa
    flat, turn = np.sqrt(1.0 - height**2), rng.uniform(0.0, 2.0 * np.pi, n)
    drawn = np.column_stack([flat * np.cos(turn), flat * np.sin(turn), height])
    mirror = place / radius - [0.0, 0.0, 1.0]
    mirror /= np.linalg.norm(mirror, axis=1, keepdims=True)
    return radius * (drawn - 2.0 * (drawn * mirror).sum(axis=1, keepdims=True) * mirror)


def draw_features(rng, place, size, a, d) -> np.ndarray:
    places = scatter(rng, place, a)
    sizes = size + np.sqrt(d) * rng.standard_normal(len(d))
    return np.column_stack([places[:, :2], sizes, places[:, 2]])


def draw_joint(rng) -> Draw:
    n = len(FAMILIES)
    alpha = float(rng.gamma(SHAPE) / RATE)
    labels = prior.sample(FAMILIES, alpha, 1, rng)[0]
    law = np.array(HYPER.law_mean) + HYPER.law_sd * rng.standard_normal(4)
    place = HYPER.radius * directions(rng, n)
    size = HYPER.mu0_l + math.sqrt(HYPER.var0_l) * rng.standard_normal(n)
    away = size - HYPER.level
    a = rng.gamma(HYPER.nu_x, np.exp(law[0] + law[1] * away) / HYPER.nu_x)
    d = rng.gamma(HYPER.nu_d, np.exp(law[2] + law[3] * away) / HYPER.nu_d)
    own = [values[labels] for values in (place, size, a, d)]
    return Draw(alpha, labels, *own, law, draw_features(rng, *own))


def quantities(draw: Draw) -> dict[str, float]:
    """Functions of a draw; the cluster in question is that of the first marking."""
    sizes = np.unique(draw.labels, return_counts=True)[1]
    away = draw.size[0] - HYPER.level
    v = draw.features[0]
    return {
        **dict(zip(LAW_NAMES, draw.law.tolist(), strict=True)),
        "log_alpha": math.log(draw.alpha),
        "clusters": float(len(sizes)),
        "first_with_last": float(draw.labels[0] == draw.labels[-1]),
        "mean_x": float(draw.place[0, 0]),
        "mean_z": float(draw.place[0, 2]),
        "mu_log_diameter": float(draw.size[0]),
        "var_position_ratio": math.log(draw.a[0]) - draw.law[0] - draw.law[1] * away,
        "var_size_ratio": math.log(draw.d[0]) - draw.law[2] - draw.law[3] * away,
        "chord": float(((v[[0, 1, 3]] - draw.place[0]) ** 2).sum() / draw.a[0]),
        "size_error": float((v[2] - draw.size[0]) / math.sqrt(draw.d[0])),
    }


def current(chain: Chain) -> Draw:
    state, data = chain.state, chain.problem.data
    rows = state.theta[state.label]
    return Draw(
        float(state.alpha[0]),
        state.label,
        rows[:, [circle.MU_X, circle.MU_Y, sphere.MU_Z]],
        rows[:, circle.MU_L],
        rows[:, circle.VAR_POSITION],
        rows[:, circle.VAR_SIZE],
        state.law.copy(),
        data.features.copy(),
    )


def geweke(hyper: sphere.SphereHyper, seed: int, steps: int) -> dict[str, Any]:
    """Compare the chain of a sampler that believes in ``hyper`` with independent draws."""
    rng = np.random.default_rng([seed, 1])
    independent = [quantities(draw_joint(rng)) for _ in range(steps)]
    data = build_data(draw_joint(rng).features, np.array(FAMILIES), everyone_in_touch(FAMILIES))
    arrivals = Arrivals(True, True, SHAPE, RATE, np.empty(0))
    problem = Problem(data, hyper, arrivals, SHAPE / RATE, sphere.WIDTH, CIRCLE_COLUMNS_WITH_REST)
    chain = Chain(problem, np.random.SeedSequence([seed, 2]), "exact")
    data, successive = chain.problem.data, []
    for step in range(200 + steps):
        chain.run(1, 2)
        now = current(chain)
        if step >= 200:
            successive.append(quantities(now))
        data.features[:] = draw_features(rng, now.place, now.size, now.a, now.d)
        # Spares are drawn given y, so new data need new ones.
        refresh_spares(chain.rng, data, chain.hyper, chain.state, 0, len(FAMILIES), 1)
    return compare_moments(independent, successive)


def test_geweke():
    outcome = geweke(HYPER, 41, STEPS)
    assert outcome["ok"], outcome


@pytest.mark.parametrize(
    "wrong",
    [
        {"radius": 1.1 * HYPER.radius},
        {"nu_d": 3.0, "log_gamma": 2 * math.lgamma(3.0)},
        {"law_sd": np.array((0.4, 0.4, 0.8, 0.5))},
    ],
    ids=["radius", "shape", "law"],
)
def test_geweke_catches_a_planted_bug(wrong):
    assert not geweke(HYPER._replace(**wrong), 42, STEPS_WITH_A_BUG)["ok"]
