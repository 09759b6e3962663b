"""The exact posterior over the partitions of a few markings, parameters integrated numerically.

p(c | y) ∝ p(c) Π_k m(members of k) with m(S) = ∫ p(θ) Π_{i ∈ S} p(y_i | θ) dθ. Given (μl, a, d, λ)
the integral over (μx, μy) is normal and done by hand. What is left has four dimensions and is
summed on a regular grid in (μl, log a, log d, atanh λ), centred on the mode and scaled by the
curvature there: for smooth integrands that vanish at the ends this trapezoid rule converges
faster than any power of the step. Two grids must agree.
"""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
from scipy import optimize, special, stats

from dfcrp import prior
from reference import kernel_reference as reference


def log_integrand(hyper, y, points) -> np.ndarray:
    """log of the integrand over the rest, (μx, μy) integrated out; points are (..., 4)."""
    mu_l, log_a, log_d, eta = np.moveaxis(np.asarray(points), -1, 0)
    a, d, lam = np.exp(log_a), np.exp(log_d), np.tanh(eta)
    one_minus = 1.0 / np.cosh(eta) ** 2
    beta, s, count = lam * np.sqrt(d / (2.0 * a)), d * one_minus, len(y)
    # y_l − μl − β (y_x + y_y) enters by its sum and its sum of squares over the members.
    w, along = y[:, 0] + y[:, 1], y[:, 2]
    total = along.sum() - count * mu_l - beta * w.sum()
    squares = (
        (along**2).sum() + count * mu_l**2 + beta**2 * (w**2).sum()
        - 2 * mu_l * along.sum() - 2 * beta * (along * w).sum() + 2 * mu_l * beta * w.sum()
    )  # fmt: skip
    cross = count * beta**2 / s
    p_x, p_y = 1 / hyper.var0_x + count / a + cross, 1 / hyper.var0_y + count / a + cross
    r_x = hyper.mu0_x / hyper.var0_x + y[:, 0].sum() / a - beta * total / s
    r_y = hyper.mu0_y / hyper.var0_y + y[:, 1].sum() / a - beta * total / s
    determinant = p_x * p_y - cross**2
    solved = (p_y * r_x**2 - 2 * cross * r_x * r_y + p_x * r_y**2) / determinant
    constant = (
        hyper.mu0_x**2 / hyper.var0_x
        + hyper.mu0_y**2 / hyper.var0_y
        + (y[:, :2] ** 2).sum() / a
        + squares / s
    )
    value = -0.5 * (constant - solved + np.log(determinant * hyper.var0_x * hyper.var0_y))
    value -= count * (1.5 * math.log(2 * math.pi) + log_a + 0.5 * np.log(s))
    value -= 0.5 * ((mu_l - hyper.mu0_l) ** 2 / hyper.var0_l + math.log(hyper.var0_l * 2 * math.pi))
    held = np.maximum(mu_l, hyper.floor)
    for log_v, kappa, power, tau in (
        (log_a, hyper.kappa_x, hyper.eta_x, hyper.tau_x),
        (log_d, hyper.kappa_d, hyper.eta_d, hyper.tau_d),
    ):
        shape = tau * kappa * held**power
        value += shape * (math.log(tau) + log_v) - special.gammaln(shape) - tau * np.exp(log_v)
    value += hyper.lambda_a * np.log1p(lam) + hyper.lambda_b * np.log1p(-lam)
    return value - (
        special.betaln(hyper.lambda_a, hyper.lambda_b)
        + (hyper.lambda_a + hyper.lambda_b - 1) * math.log(2.0)
    )


def log_marginal(hyper, y, *, step=0.8, reach=8.8) -> float:
    """log m(S) by the trapezoid rule; ``step`` and ``reach`` in units of the curvature."""

    def negative(point):
        return -float(log_integrand(hyper, y, point))

    start = np.array([y[:, 2].mean(), 0.0, -2.0, 0.2])
    mode = optimize.minimize(negative, start, method="Nelder-Mead", options={"xatol": 1e-4}).x
    root = np.linalg.cholesky(np.linalg.inv(_curvature(negative, mode)))
    axis = np.arange(-reach, reach + step / 2, step)
    grid = np.stack(np.meshgrid(axis, axis, axis, axis, indexing="ij"), axis=-1)
    logs = log_integrand(hyper, y, mode + grid.reshape(-1, 4) @ root.T)
    volume = math.log(abs(np.linalg.det(root))) + 4 * math.log(step)
    return float(special.logsumexp(logs) + volume)


def _curvature(function, point, h=1e-2) -> np.ndarray:
    """Second derivatives by central differences."""
    n = len(point)
    found = np.empty((n, n))
    steps = h * np.eye(n)
    for i in range(n):
        for j in range(n):
            found[i, j] = (
                function(point + steps[i] + steps[j])
                - function(point + steps[i] - steps[j])
                - function(point - steps[i] + steps[j])
                + function(point - steps[i] - steps[j])
            ) / (4 * h * h)
    return found


def all_marginals(hyper, features) -> dict[tuple[int, ...], float]:
    """log m of every non-empty set of markings."""
    n = len(features)
    return {
        members: log_marginal(hyper, features[list(members)])
        for size in range(1, n + 1)
        for members in combinations(range(n), size)
    }


def log_priors(partitions, families, use_order, shape, rate) -> np.ndarray:
    """log p(c), α ~ Gamma(shape, rate) integrated on a grid of its logarithm.

    Without the order it is the CRP's probability, which keeps its normalisation at each α.
    """
    alphas = np.exp(np.linspace(-12.0, 5.0, 100))
    weight = stats.gamma.pdf(alphas, shape, scale=1 / rate) * alphas
    found = []
    for c in partitions:
        if use_order:
            logs = [prior.log_prob(c, families, a) for a in alphas]
        else:
            logs = [reference.log_partition_without_order(c, families, a) for a in alphas]
        found.append(special.logsumexp(logs, b=weight))
    return np.array(found)


def posterior(marginals, families, *, use_order, shape, rate, allowed=None) -> dict:
    """Every valid partition with its posterior probability."""
    partitions = [
        c for c in prior.partitions(families) if reference.keeps_the_rule(c, families, allowed)
    ]
    logs = log_priors(partitions, families, use_order, shape, rate)
    for position, c in enumerate(partitions):
        logs[position] += sum(marginals[tuple(members)] for members in reference.clusters(c))
    weights = np.exp(logs - logs.max())
    return dict(zip(partitions, (weights / weights.sum()).tolist(), strict=True))
