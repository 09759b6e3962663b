"""How well features fit the law of their group (``normal.kernel``), for its updates.

Of one group's law (log s_g, r_g) this group's features alone matter, so no rows are built.
"""

from __future__ import annotations

import math

from dfcrp.compiled.jit import implements, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods.law import log_fit
from dfcrp.likelihoods.normal.kernel import (
    NormalHyper,
    feature_of,
    log_marginal_of_group,
    log_scale,
)


@implements(log_fit, NormalHyper)
@lean_kernel
def log_fit_of_group(hyper, data, state, which):
    """log p(features of the group that entry ``which`` of the law is about)."""
    group = which
    for candidate in range(hyper.growth.shape[0]):
        if hyper.growth[candidate] == which:
            group = candidate
    total = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            total += log_group_of_cluster(hyper, data.features, state, k, group)
    return total


@lean_kernel
def log_group_of_cluster(hyper, y, state, k, group):
    """log p(features of one group in cluster k)."""
    variance = math.exp(hyper.law[group])
    b, log_ratio, log_scales = hyper.shape * variance, 0.0, 0.0
    for j in range(hyper.start[group], hyper.start[group + 1]):
        kappa = variance / hyper.spread[j] ** 2
        mean, precision = hyper.centre[j], kappa
        i = state.head[k]
        while i != NONE:
            log_w = log_scale(hyper, y, i, j, group)
            w, before = math.exp(log_w), precision
            z = feature_of(hyper, y, i, j) - mean
            precision += 1.0 / w
            mean += z / (w * precision)
            b += 0.5 * z * z / (w + 1.0 / before)
            log_scales += log_w
            i = state.after[i]
        log_ratio += math.log(kappa / precision)
    marginal = log_marginal_of_group(hyper, group, state.size[k], b, log_ratio)
    return marginal - 0.5 * log_scales
