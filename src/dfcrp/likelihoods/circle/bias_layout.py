"""Experts who differ: what the kernels need to learn their offsets and noise factors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Variable
from dfcrp.likelihoods.circle.bias import COUNT, NOWHERE, SHARE, WORK_COLUMNS, Bias
from dfcrp.likelihoods.circle.kernel import CircleHyper
from dfcrp.likelihoods.circle.settings import CircleSettings

#: What is stored with a draw, and the axes of the offsets.
OFFSET, NOISE = "offset", "log_noise"
AXES = ("x", "y", "log_diameter")


def with_bias(hyper: CircleHyper, model: CircleSettings, experts: NDArray[np.int64]) -> CircleHyper:
    """The hyperparameters with a law that has the experts' offsets and noise factors as well.

    ``experts`` are codes from 0, in the numbering of the kernels.
    """
    counts = np.bincount(experts)
    work = np.zeros((len(counts), WORK_COLUMNS))
    work[:, COUNT], work[:, SHARE] = counts, counts / len(experts)
    at, offsets, noise = len(hyper.law), NOWHERE, NOWHERE
    if model.expert_bias in ("offset", "both"):
        offsets, at = at, at + 3 * len(counts)
    if model.expert_bias in ("precision", "both"):
        noise, at = at, at + len(counts)
    # Positions relative to the median diameter: no unit enters.
    position_sd = model.expert_position_sd * float(np.exp(hyper.level))
    bias = Bias(
        on=True,
        offsets=offsets,
        noise=noise,
        offset_sd=(position_sd, position_sd, model.expert_size_sd),
        noise_sd=model.expert_noise_sd,
        expert=experts.astype(np.int32),
        work=work,
    )
    return hyper._replace(law=np.append(hyper.law, np.zeros(at - len(hyper.law))), bias=bias)


def bias_columns(bias: Bias, experts: Sequence[str]) -> Columns:
    """The offsets and noise factors, as they follow each other in the law."""
    shared: list[Variable] = []
    if bias.offsets != NOWHERE:
        shared.append(Variable(OFFSET, ("expert", "axis")))
    if bias.noise != NOWHERE:
        shared.append(Variable(NOISE, ("expert",)))
    return Columns(shared=tuple(shared), coords={"expert": tuple(experts), "axis": AXES})
