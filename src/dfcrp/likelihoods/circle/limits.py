"""Data that the numbers cannot bear: refused, with a way out."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError

#: Relative error of what is stored as a 32-bit float, as clusters' positions are.
SINGLE = 2.0**-24
#: Relative error of a position after sums and differences of 64-bit floats, with room to spare.
DOUBLE = 2.0**-40
#: Largest error of a position that is let pass, in median diameters.
WORST_ERROR = 0.05
#: Largest error of a stored position for which nothing is done.
SMALL_ERROR = 0.001
#: Largest ratio of two diameters; what is beyond it is no list of like objects.
WIDEST_RANGE = 1e9


def far_from_origin(features: NDArray[np.float64]) -> bool:
    """Whether positions (x, y, log diameter) need more digits than a 32-bit float has."""
    farthest = float(np.abs(features[:, :2]).max())
    return farthest * SINGLE > SMALL_ERROR * float(np.exp(np.median(features[:, 2])))


def refuse_beyond_reason(items: Any) -> None:
    """Refuse coordinates too large for their diameters, and diameters of all magnitudes."""
    smallest, largest = float(items.diameter.min()), float(items.diameter.max())
    if largest > WIDEST_RANGE * smallest:
        raise InputError(
            f"the diameters go from {smallest:g} to {largest:g}, too far for one kind of object; "
            "look for misread rows, or leave some out with min_diameter= (--min-diameter)"
        )
    median = float(np.median(items.diameter))
    for axis in ("x", "y"):
        values = getattr(items, axis)
        farthest = float(values[np.argmax(np.abs(values))])
        if abs(farthest) * DOUBLE > WORST_ERROR * median:
            raise InputError(
                f"{axis} goes to {farthest:g}, where diameters are about {median:g}: positions are "
                "known to about twelve digits, and the objects would be lost in the rounding. "
                + _way_out(axis, values, median)
            )


def _way_out(axis: str, values: NDArray[np.float64], median: float) -> str:
    """A constant to be subtracted, if that is enough."""
    low, high = float(values.min()), float(values.max())
    middle = low + (high - low) / 2.0
    if (high - low) / 2.0 * DOUBLE <= WORST_ERROR * median:
        return f"Subtract a constant from {axis}, as in {axis} - {middle:.6g}, or check the units"
    return (
        f"The items are as far apart as from {low:g} to {high:g}: look for misread rows, check the "
        "units of diameters, or fit parts of the ground by themselves"
    )
