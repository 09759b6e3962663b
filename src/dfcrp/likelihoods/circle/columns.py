"""What circles store with every draw, and how far markings scatter according to it."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns, Draws, shared_variable

#: Where it is learned, the law of the variances: log variance of position at the median diameter
#: and its growth with log diameter, then the same of log diameter.
LAW = ("scale_x", "growth_x", "scale_d", "growth_d")
LAW_WORDS = {
    "scale_x": "scatter of positions",
    "growth_x": "how the scatter of positions grows with diameter",
    "scale_d": "scatter of diameters",
    "growth_d": "how the scatter of diameters grows with diameter",
}
#: What ``spreads`` gives, in the order of LAW.
SPREADS = ("position", "position_growth", "diameter_percent", "diameter_growth")
#: Of these, what is about diameters.
OF_DIAMETERS = frozenset(SPREADS[2:])
#: Parts of the law that only items of different sizes speak of.
GROWTHS = frozenset({"growth_x", "growth_d"})
#: The parameters of a cluster.
PARAMETERS = ("x", "y", "log_diameter", "var_position", "var_log_diameter", "covariance")
#: What single precision cuts off of x and y, where that matters: on a sphere, where they are
#: longitude and latitude in degrees and all else is in km, and in a plane far from its origin.
REST = ("x_rest", "y_rest")
#: Where experts differ: in the plane along x and y, on a sphere to the east and north.
AXES = ("x", "y", "log_diameter")
CIRCLE_COLUMNS = Columns.plain(PARAMETERS, LAW)
CIRCLE_COLUMNS_WITH_REST = Columns.plain((*PARAMETERS, *REST), LAW)


def circle_columns(hyper: Any, *, with_rest: bool = False) -> Columns:
    """What circles store with every draw, but for how experts differ."""
    columns = CIRCLE_COLUMNS_WITH_REST if with_rest else CIRCLE_COLUMNS
    return columns if hyper.learned else columns._replace(shared=())


def spreads(draws: Draws) -> dict[str, NDArray[np.float64]]:
    """Standard deviations at the median diameter and how variances grow with diameter.

    ``position`` is in the units of the data, ``diameter_percent`` relative to the diameter; a
    growth of g means that the variance is proportional to diameter^g. Nothing if fixed.
    """
    found: dict[str, NDArray[np.float64]] = {}
    for name, stored in zip(SPREADS, LAW, strict=True):
        values = shared_variable(draws, stored)
        if values is not None:
            found[name] = values
    if found:
        found["position"] = np.exp(0.5 * found["position"])
        found["diameter_percent"] = 100.0 * np.exp(0.5 * found["diameter_percent"])
    return found
