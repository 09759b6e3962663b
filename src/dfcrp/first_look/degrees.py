"""Places that may be longitude and latitude, though nothing says so.

Columns called x and y without a unit are taken for pixels, in which a distance is that of a plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np

from dfcrp.first_look.finding import Finding
from dfcrp.items.columns import unit_of
from dfcrp.likelihoods.registry import likelihood_named

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: As far as longitude and latitude go.
LONGITUDES, LATITUDES = 360.0, 90.0


def perhaps_degrees(items: Items) -> Iterator[Finding]:
    """Circles whose places could be degrees, and whose sizes are in another unit than these."""
    placed = likelihood_named(items.kind).sphere  # what can be fitted by longitude and latitude
    if not placed or items.site.units != "px":
        return
    x, y = items.x, items.y
    if np.abs(x).max() > LONGITUDES or np.abs(y).max() > LATITUDES:
        return
    if (np.mod(x, 1.0) == 0.0).all() and (np.mod(y, 1.0) == 0.0).all():
        return  # degrees have decimals, pixels often have none
    titles = {dict(source.columns).get("diameter") for source in items.sources if source.columns}
    units = {unit_of(title) for title in titles if title} & {"km", "m"}
    if not units:
        return  # sizes that do not go with places are asked about elsewhere (``sizes``)
    why = f"diameters are in {units.pop()}, x and y in no unit"
    yield Finding(
        "degrees",
        f"x and y lie within ±{LONGITUDES:g} and ±{LATITUDES:g}, and {why}: are they longitude and "
        "latitude? They are taken for places in a plane. If they are degrees, call the columns lon "
        "and lat, or write such a file with `dfcrp convert FILE NEW.csv --units deg`, and give the "
        "body, as in --body moon",
        numbers={"x": [float(x.min()), float(x.max())], "y": [float(y.min()), float(y.max())]},
    )
