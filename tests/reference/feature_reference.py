"""Slow twins of the likelihoods for any features: parameters integrated numerically."""

from __future__ import annotations

import math

import numpy as np
from scipy import special, stats

#: Nodes of log v, in units in which its prior has a spread of about one.
NODES = np.linspace(-9.0, 12.0, 4001)


def as_if_alike(hyper, law, y, experts) -> tuple[np.ndarray, np.ndarray]:
    """Features without their experts' offsets, and their experts' squared noise factors.

    Of all items, these have their own level in the factor (``likelihoods.tails``).
    """
    own = np.ones(len(y))
    if hyper.tails.on and len(y) == len(hyper.tails.log_scale):
        own = np.exp(2.0 * hyper.tails.log_scale)
    if not hyper.bias.on:
        return y, own
    count, p = len(hyper.bias.work), y.shape[1]
    offsets = law[hyper.bias.offsets : hyper.bias.offsets + p * count].reshape(count, p)
    noise = law[hyper.bias.noise : hyper.bias.noise + count]
    return y - offsets[experts], own * np.exp(2.0 * noise[experts])


def log_marginal(hyper, law, y, experts=None) -> float:
    """log p(rows of y in one cluster) for ``normal.kernel``; v integrated by the trapezoid rule.

    Given v a feature of the members is jointly normal: N(m, v (diag(w) + 1 1ᵀ / κ)).
    """
    alike, factor = as_if_alike(hyper, law, y, experts)
    total, groups = 0.0, len(hyper.growth)
    for g in range(groups):
        s = math.exp(law[g])
        log_v = math.log(s) + NODES
        logs = stats.invgamma.logpdf(np.exp(log_v), hyper.shape, scale=hyper.shape * s) + log_v
        for j in range(hyper.start[g], hyper.start[g + 1]):
            w = factor.copy()
            if hyper.size[j] >= 0:
                w *= np.exp(law[hyper.growth[g]] * (y[:, hyper.size[j]] - hyper.level[j]))
            kappa = s / hyper.spread[j] ** 2
            shape = np.diag(w) + 1.0 / kappa
            z = alike[:, j] - hyper.centre[j]
            squares = z @ np.linalg.solve(shape, z)
            logs -= 0.5 * (len(y) * (log_v + math.log(2 * math.pi)) + squares / np.exp(log_v))
            logs -= 0.5 * np.linalg.slogdet(shape)[1]
        total += special.logsumexp(logs) + math.log(NODES[1] - NODES[0])
    return total


def log_marginal_full(hyper, law, y, experts=None) -> float:
    """log p(rows of y in one cluster) for ``normal.covariance``, row by row as Student t."""
    y, factor = as_if_alike(hyper, law, y, experts)
    p = y.shape[1]
    lower = np.diag(np.exp(law[:p]))
    unit = np.eye(p)
    unit[np.tril_indices(p, -1)] = law[p : p + p * (p - 1) // 2]
    scale = 2.0 * hyper.shape * (lower @ unit) @ (lower @ unit).T
    total = -hyper.log_volume
    for n in range(1, len(y)):
        before, weight = y[:n], 1.0 / factor[:n]
        mean = weight @ before / weight.sum()
        apart = before - mean
        freedom = 2.0 * hyper.shape - 1.0 + n
        scatter = scale + (weight * apart.T) @ apart
        spread = scatter * (factor[n] + 1.0 / weight.sum()) / freedom
        total += stats.multivariate_t.logpdf(y[n], mean, spread, freedom)
    return float(total)


def draw_features(rng, hyper, law, labels) -> np.ndarray:
    """Features of every item, from the prior of (v, μ) of its cluster; sizes come first."""
    p, n = len(hyper.centre), len(labels)
    y = np.empty((n, p))
    # What experts take off is what they put on, the other way round.
    minus, factor = as_if_alike(hyper, law, np.zeros((n, p)), hyper.bias.expert)
    for g in reversed(range(len(hyper.growth))):
        s = math.exp(law[g])
        for k in set(labels):
            members = np.flatnonzero(np.asarray(labels) == k)
            v = hyper.shape * s / rng.gamma(hyper.shape)
            for j in range(hyper.start[g], hyper.start[g + 1]):
                w = factor[members]
                if hyper.size[j] >= 0:
                    away = y[members, hyper.size[j]] - hyper.level[j]
                    w = w * np.exp(law[hyper.growth[g]] * away)
                mu = hyper.centre[j] + rng.normal() * math.sqrt(v / s) * hyper.spread[j]
                error = np.sqrt(v * w) * rng.normal(size=len(members))
                y[members, j] = mu - minus[members, j] + error
    return y
