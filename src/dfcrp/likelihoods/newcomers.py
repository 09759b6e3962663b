"""New items beside those of a run whose experts differ, or whose items may be careless."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.bias import NOWHERE

Codes = NDArray[np.int64]

#: How often the levels of known items are drawn.
ROUNDS = 3


def with_newcomers(hyper: Any, experts: Codes, sources: Codes) -> Any:
    """The hyperparameters for known items, by these experts, and new ones, in this order.

    A new item whose source is not known, or has no items yet, counts as the mean expert's.
    """
    if hyper.tails.on:
        scale = np.zeros(len(experts) + len(sources))
        hyper = hyper._replace(tails=hyper.tails._replace(log_scale=scale))
    bias = hyper.bias
    if not bias.on:
        return hyper
    law, count, p = np.asarray(hyper.law), len(bias.work), len(bias.offset_sd)
    head = [at for at in (bias.offsets, bias.noise) if at != NOWHERE]
    parts, at = [law[: min(head)]], min(head)
    offsets = noise = NOWHERE
    if bias.offsets != NOWHERE:
        found = law[bias.offsets : bias.offsets + p * count]
        parts += [found, np.zeros(p)]
        offsets, at = at, at + p * (count + 1)
    if bias.noise != NOWHERE:
        parts += [law[bias.noise : bias.noise + count], np.zeros(1)]
        noise, at = at, at + count + 1
    known = (sources >= 0) & (sources < count)
    everyone = np.concatenate([experts, np.where(known, sources, count)]).astype(np.int32)
    bias = bias._replace(offsets=offsets, noise=noise, expert=everyone)
    return hyper._replace(law=np.concatenate(parts), bias=bias)
