"""Experts who differ: offsets and noise factors of their own, as the circle likelihood sees them.

Expert f draws an object with mean μ and covariance Σ as

    y ~ N(μ + b_f, r_f² Σ),   b_f = (x, y, log diameter),   log r_f = t_f,

so y − b_f is what the mean expert would have drawn, with the precision r_f⁻² relative to it. The
b and t are at the end of the law, what is learned of them in ``bias_update``.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.jit import inline_kernel

#: For "not learned", in place of where a parameter begins in the law.
NOWHERE = -1
#: Columns of ``Bias.work``: an expert's share of the markings and their number; sums over them.
SHARE, COUNT, XX, XY, XL, LL, GRADIENT_X, GRADIENT_Y, GRADIENT_L, BEFORE = range(10)
WORK_COLUMNS = 10


class Bias(NamedTuple):
    """Whose markings are whose, and what is believed of how experts differ."""

    on: bool
    offsets: int  # where in the law they begin: three for each expert; or NOWHERE
    noise: int  # the same of the log noise factors, one for each
    offset_sd: tuple[float, float, float]  # prior standard deviations
    noise_sd: float
    expert: np.ndarray  # (n,) int32: the expert of each marking
    work: np.ndarray  # (experts, WORK_COLUMNS)


ALIKE = Bias(
    on=False,
    offsets=NOWHERE,
    noise=NOWHERE,
    offset_sd=(1.0, 1.0, 1.0),
    noise_sd=1.0,
    expert=np.zeros(0, np.int32),
    work=np.zeros((0, WORK_COLUMNS)),
)


@inline_kernel
def log_noise_of(hyper, i):
    """The log noise factor of marking i's expert."""
    if not hyper.bias.on or hyper.bias.noise == NOWHERE:
        return 0.0
    return hyper.law[hyper.bias.noise + hyper.bias.expert[i]]


@inline_kernel
def corrected(hyper, y, i):
    """Marking i without its expert's offsets (x, y, log diameter), and its precision r⁻²."""
    v1, v2, v3, precision = y[i, 0], y[i, 1], y[i, 2], 1.0
    if hyper.bias.on:
        if hyper.bias.offsets != NOWHERE:
            at = hyper.bias.offsets + 3 * hyper.bias.expert[i]
            v1, v2, v3 = v1 - hyper.law[at], v2 - hyper.law[at + 1], v3 - hyper.law[at + 2]
        if hyper.bias.noise != NOWHERE:
            precision = math.exp(-2.0 * log_noise_of(hyper, i))
    return v1, v2, v3, precision
