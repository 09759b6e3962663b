"""How far markings of one object lie apart, where that was learned, in words a reader knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.posterior.intervals import summarise
from dfcrp.sampling.draws import Draws
from dfcrp.sampling.problem import CIRCLE_COLUMNS


def tolerances(draws: Draws, diameters: NDArray[np.float64]) -> dict[str, Any] | None:
    """Standard deviations at the median diameter and how variances grow with diameter.

    ``position`` is in the units of the data, ``diameter_percent`` relative to the diameter; a
    growth of g means that the variance is proportional to diameter^g. None if fixed.
    """
    if "scale_x" not in draws.columns.shared:
        return None
    columns = [draws.columns.shared.index(name) for name in CIRCLE_COLUMNS.shared]
    law = draws.shared()[:, :, columns].reshape(-1, len(columns))
    return {
        "median_diameter": float(np.median(diameters)),
        "position": summarise(np.exp(0.5 * law[:, 0])).as_dict(),
        "position_growth": summarise(law[:, 1]).as_dict(),
        "diameter_percent": summarise(100.0 * np.exp(0.5 * law[:, 2])).as_dict(),
        "diameter_growth": summarise(law[:, 3]).as_dict(),
    }
