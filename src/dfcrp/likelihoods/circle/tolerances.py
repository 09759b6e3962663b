"""How far markings of one object lie apart, where that was learned, in words a reader knows."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws, shared_variable
from dfcrp.likelihoods.circle.columns import LAW

#: What ``spreads`` gives, in the order of LAW.
NAMES = ("position", "position_growth", "diameter_percent", "diameter_growth")


def spreads(draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Standard deviations at the median diameter and how variances grow with diameter.

    ``position`` is in the units of the data, ``diameter_percent`` relative to the diameter; a
    growth of g means that the variance is proportional to diameter^g. Nothing if fixed.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for name, stored in zip(NAMES, LAW, strict=True):
        values = shared_variable(draws, stored)
        if values is not None:
            found[name] = values
    if found:
        found["position"] = np.exp(0.5 * found["position"])
        found["diameter_percent"] = 100.0 * np.exp(0.5 * found["diameter_percent"])
    return found
