"""How far markings of one object lie apart, where that was learned, in words a reader knows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws, shared_variable
from dfcrp.likelihoods.circle.columns import LAW
from dfcrp.summaries.intervals import summarise

#: What ``spreads`` gives, in this order.
NAMES = ("position", "position_growth", "diameter_percent", "diameter_growth")


def tolerances(draws: Draws, diameters: NDArray[np.float64]) -> dict[str, Any] | None:
    """Standard deviations at the median diameter and how variances grow with diameter.

    ``position`` is in the units of the data, ``diameter_percent`` relative to the diameter; a
    growth of g means that the variance is proportional to diameter^g. None if fixed.
    """
    law = laws(draws)
    return None if law is None else describe_spreads(spreads(law.reshape(-1, 4)), diameters)


def laws(draws: Draws) -> NDArray[np.float64] | None:
    """The law of the variances in every draw, (chains, draws, 4); None if it was fixed."""
    found = [shared_variable(draws, name) for name in LAW]
    return None if found[0] is None else np.stack(found, axis=2)  # type: ignore[arg-type]


def describe_spreads(
    samples: NDArray[np.float64], diameters: NDArray[np.float64]
) -> dict[str, Any]:
    """The same from samples of what ``spreads`` gives."""
    found = {name: summarise(samples[:, q]).as_dict() for q, name in enumerate(NAMES)}
    return {"median_diameter": float(np.median(diameters)), **found}


def spreads(law: NDArray[np.float64]) -> NDArray[np.float64]:
    """NAMES from draws of the law of the variances, along the last axis."""
    found = law.copy()
    found[..., 0] = np.exp(0.5 * law[..., 0])
    found[..., 2] = 100.0 * np.exp(0.5 * law[..., 2])
    return found
