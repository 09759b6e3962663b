"""What is learned of experts and their items unless somebody says it: as much as the data can bear.

Items may be careless where items are repeated marks at all, so that a scatter can be told. Experts
may differ in scatter where there are a few with enough items each.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

#: Experts may differ if at least so many of them have at least so many items.
FEWEST_EXPERTS, FEWEST_ITEMS = 3, 20

Codes = NDArray[np.int64]


def decide(settings: Any, experts: Codes, images: Codes | None = None) -> Any:
    """The settings with a decision in place of each "auto".

    ``experts`` are codes of who listed each item. With ``images`` each is fitted by itself: then
    what holds for the typical one decides.
    """
    chosen = {}
    if settings.tails == "auto":
        repeated = 1 < len(np.unique(experts)) < len(experts)
        chosen["tails"] = "learned" if repeated else "none"
    if settings.expert_bias == "auto":
        several = _experts_with_enough(experts, images) >= FEWEST_EXPERTS
        chosen["expert_bias"] = "precision" if several else "none"
    return replace(settings, **chosen) if chosen else settings


def _experts_with_enough(experts: Codes, images: Codes | None) -> float:
    """How many experts have enough items; of several images, on the typical one."""
    if images is None:
        return float((np.bincount(experts) >= FEWEST_ITEMS).sum())
    count = np.zeros((int(images.max()) + 1, int(experts.max()) + 1), np.int64)
    np.add.at(count, (images, experts), 1)
    return float(np.median((count >= FEWEST_ITEMS).sum(axis=1)))
