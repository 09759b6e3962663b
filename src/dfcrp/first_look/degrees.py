"""Places that may be longitude and latitude, though nothing says so.

Columns called x and y without a unit are taken for pixels, in which a distance is that of a plane.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from scipy.spatial import cKDTree

from dfcrp.first_look.finding import Finding
from dfcrp.items.columns import unit_of

if TYPE_CHECKING:
    from dfcrp.items.items import Items

#: As far as longitude and latitude go.
LONGITUDES, LATITUDES = 360.0, 90.0
#: In one plane with their places, circles are hardly so many times as wide as the next is far.
FAR_TOO_WIDE = 3.0


def perhaps_degrees(items: Items) -> Iterator[Finding]:
    """Circles whose places could be degrees, and whose sizes are in another unit than these."""
    if items.kind != "circles" or items.site.units != "px":
        return
    x, y = items.x, items.y
    if np.abs(x).max() > LONGITUDES or np.abs(y).max() > LATITUDES:
        return
    if (np.mod(x, 1.0) == 0.0).all() and (np.mod(y, 1.0) == 0.0).all():
        return  # degrees have decimals, pixels often have none
    titles = {dict(source.columns).get("diameter") for source in items.sources if source.columns}
    units = {unit_of(title) for title in titles if title} & {"km", "m"}
    if units:
        why = f"diameters are in {units.pop()}, x and y in no unit"
    elif _far_too_wide(items):
        why = "diameters are several times as large as the distances between neighbours"
    else:
        return
    yield Finding(
        "degrees",
        f"x and y lie within ±{LONGITUDES:g} and ±{LATITUDES:g}, and {why}: are they longitude and "
        "latitude? They are taken for places in a plane. If they are degrees, call the columns lon "
        "and lat, or write such a file with `dfcrp convert FILE NEW.csv --units deg`, and give the "
        "body, as in --body moon",
        numbers={"x": [float(x.min()), float(x.max())], "y": [float(y.min()), float(y.max())]},
    )


def _far_too_wide(items: Items) -> bool:
    """Whether most circles of one list are far wider than the next of the list is far."""
    ratios = []
    for family in range(len(items.experts)):
        mine = items.families == family
        if np.count_nonzero(mine) > 1:
            places = np.column_stack([items.x[mine], items.y[mine]])
            nearest = cKDTree(places).query(places, k=2)[0][:, 1]
            ratios.append(items.diameter[mine] / np.maximum(nearest, 1e-300))
    return bool(ratios) and float(np.median(np.concatenate(ratios))) > FAR_TOO_WIDE
