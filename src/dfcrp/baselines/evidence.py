"""What the baselines take from the main model: hyperparameters, and sums for ``collapsed``."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.hyper import circle_hyper
from dfcrp.likelihoods.circle.kernel import CircleHyper
from dfcrp.likelihoods.circle.neighbours import mean_variances
from dfcrp.likelihoods.circle.settings import CircleSettings
from dfcrp.priors.arrivals.settings import ArrivalSettings
from dfcrp.settings.config import make_config


def model_of(preset: str | None) -> CircleSettings:
    """The mixture model's settings under a preset of the paper."""
    found: CircleSettings = make_config({"run": {"preset": preset}}).likelihood
    return found


def alpha_of(preset: str | None) -> ArrivalSettings:
    """The law of the concentration under a preset of the paper."""
    found: ArrivalSettings = make_config({"run": {"preset": preset}}).prior
    return found


def hyper_of(markings: Items, model: CircleSettings | None) -> CircleHyper:
    """The circle likelihood's hyperparameters; the default model without one."""
    return circle_hyper(model or CircleSettings(), markings.features)


def marking_sums(markings: Items, hyper: CircleHyper) -> NDArray[np.float64]:
    """Precisions w and weighted deviations w (y - μ0), one row per marking.

    The covariance is the prior mean at the marking's own size, without correlation (whose prior
    mean is zero).
    """
    position, size = mean_variances(np.log(markings.diameter), hyper)
    precision = 1.0 / np.column_stack([position, position, size])
    away = markings.features - [hyper.mu0_x, hyper.mu0_y, hyper.mu0_l]
    return np.hstack([precision, precision * away])


def prior_precision(hyper: CircleHyper) -> NDArray[np.float64]:
    """Precision of the prior of a cluster's mean, feature by feature."""
    return 1.0 / np.array([hyper.var0_x, hyper.var0_y, hyper.var0_l])


def compressed_rows(
    pairs: NDArray[np.int64], n: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Index pairs, each given once, as rows of neighbours: (start, other, which pair)."""
    first = np.concatenate([pairs[:, 0], pairs[:, 1]])
    second = np.concatenate([pairs[:, 1], pairs[:, 0]])
    by_row = np.lexsort((second, first))
    start = np.concatenate([[0], np.cumsum(np.bincount(first, minlength=n))])
    return start.astype(np.int64), second[by_row], by_row % max(len(pairs), 1)
