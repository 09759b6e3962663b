"""What circles store with every draw."""

from __future__ import annotations

from typing import Any

from dfcrp.draws import Columns

#: Where it is learned, the law of the variances: log variance of position at the median diameter
#: and its growth with log diameter, then the same of log diameter.
LAW = ("scale_x", "growth_x", "scale_d", "growth_d")
LAW_WORDS = {
    "scale_x": "scatter of positions",
    "growth_x": "how the scatter of positions grows with diameter",
    "scale_d": "scatter of diameters",
    "growth_d": "how the scatter of diameters grows with diameter",
}
#: Parts of the law that only items of different sizes speak of.
GROWTHS = frozenset({"growth_x", "growth_d"})
#: The parameters of a cluster.
PARAMETERS = ("x", "y", "log_diameter", "var_position", "var_log_diameter", "covariance")
#: On a sphere x is the longitude, y the latitude, in degrees; what single precision cuts off of
#: them comes last. The rest is in km.
REST = ("x_rest", "y_rest")
#: Where experts differ: in the plane along x and y, on a sphere to the east and north.
AXES = ("x", "y", "log_diameter")
CIRCLE_COLUMNS = Columns.plain(PARAMETERS, LAW)
SPHERE_COLUMNS = Columns.plain((*PARAMETERS, *REST), LAW)


def circle_columns(hyper: Any) -> Columns:
    """What circles store with every draw, but for how experts differ."""
    return CIRCLE_COLUMNS if hyper.learned else CIRCLE_COLUMNS._replace(shared=())
