"""Conditionals of a cluster's variances and correlation given its members, and slices of them.

Of a cluster of circles: Σ as in ``circle.kernel``, with log a, log d and λ taking turns. Members
enter through their second moments about the mean alone, so an update costs the same for any number.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled import slice as slices
from dfcrp.compiled.jit import implements, inline_kernel


class Spread(NamedTuple):
    """Members' second moments about μ, weighted with their precisions; w = v1 + v2."""

    members: float
    position: float  # Σ v1² + v2²
    ww: float
    w3: float
    v33: float


class CorrelationLaw(NamedTuple):
    """The parameters of λ's Beta law: of all hyperparameters, what slices need of them."""

    lambda_a: float
    lambda_b: float


class Conditional(NamedTuple):
    """What the covariance's conditional needs besides (a, d, λ)."""

    shape_a: float
    rate_a: float
    shape_d: float
    rate_d: float
    spread: Spread


@inline_kernel
def log_target_position(given, log_a, d, lam):
    """log p(log a | d, λ, members) up to a constant; with p = a^(-1/2), β = λ sqrt(d/2) p."""
    spread = given.spread
    p = math.exp(-0.5 * log_a)
    beta = lam * math.sqrt(0.5 * d) * p
    cross = beta * (beta * spread.ww - 2.0 * spread.w3) / (d * (1.0 - lam * lam))
    return (
        (given.shape_a - spread.members) * log_a
        - given.rate_a / (p * p)
        - 0.5 * (spread.position * p * p + cross)
    )


@inline_kernel
def log_target_size(given, log_d, a, lam):
    """log p(log d | a, λ, members) up to a constant."""
    spread = given.spread
    root = math.exp(0.5 * log_d)
    d = root * root
    beta = lam * root / math.sqrt(2.0 * a)
    quadratic = spread.v33 + beta * (beta * spread.ww - 2.0 * spread.w3)
    return (
        (given.shape_d - 0.5 * spread.members) * log_d
        - given.rate_d * d
        - 0.5 * quadratic / (d * (1.0 - lam * lam))
    )


@inline_kernel
def log_target_lambda(law, given, lam, a, d):
    """log p(λ | a, d, members) up to a constant."""
    if lam <= -1.0 or lam >= 1.0:
        return -math.inf
    spread = given.spread
    beta = lam * math.sqrt(0.5 * d / a)
    quadratic = spread.v33 + beta * (beta * spread.ww - 2.0 * spread.w3)
    half = 0.5 * spread.members
    return (
        (law.lambda_a - 1.0 - half) * math.log1p(lam)
        + (law.lambda_b - 1.0 - half) * math.log1p(-lam)
        - 0.5 * quadratic / (d * (1.0 - lam * lam))
    )


@inline_kernel
def log_target(law, given, coordinate, value, first, second):
    """The conditional of one coordinate of (log a, log d, λ) given the two others' values."""
    if coordinate == 0:
        return log_target_position(given, value, first, second)
    if coordinate == 1:
        return log_target_size(given, value, first, second)
    return log_target_lambda(law, given, value, first, second)


class Coordinate(NamedTuple):
    """One of (log a, log d, λ), given the values of the two others."""

    law: CorrelationLaw
    given: Conditional
    which: int
    first: float
    second: float


@implements(slices.log_target, Coordinate)
@inline_kernel
def log_coordinate(target, value):
    """Its conditional."""
    return log_target(target.law, target.given, target.which, value, target.first, target.second)


@inline_kernel
def slice_coordinate(rng, law, given, which, start, width, first, second):
    """One slice update of a coordinate; leaves its conditional unchanged."""
    target = Coordinate(law, given, which, first, second)
    return slices.slice_update(rng, target, start, width, 1e-14 * (1.0 + abs(start)))
