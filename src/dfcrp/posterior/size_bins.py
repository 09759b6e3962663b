"""Bins of diameter as crater counters use them."""

from __future__ import annotations

import difflib
import math

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import SettingsError

#: Bins in a decade, where they are all of one ratio.
_PER_DECADE = {"root-2": 2.0 / math.log10(2.0), "10/decade": 10.0, "20/decade": 20.0}
#: Edges of one decade of the pseudo-logarithmic binning of CraterStats.
_PSEUDO_LOG = (1, 1.1, 1.2, 1.3, 1.4, 1.5, 1.7, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)
BINNINGS = ("pseudo-log", *_PER_DECADE)


def bin_edges(binning: str, smallest: float, largest: float) -> NDArray[np.float64]:
    """Ascending edges of the bins that hold diameters from the smallest to the largest.

    An edge lies at 1 in the unit of the diameters, so that counts in one unit share their bins.
    """
    if binning not in BINNINGS:
        near = difflib.get_close_matches(binning, BINNINGS, n=1)
        hint = f'; did you mean "{near[0]}"?' if near else "."
        raise SettingsError(
            f'there is no binning "{binning}"{hint} There are {", ".join(BINNINGS)}.'
        )
    low, high = math.log10(smallest), math.log10(largest)
    if binning == "pseudo-log":
        decades = np.arange(math.floor(low) - 1, math.ceil(high) + 1)
        edges = np.outer(10.0**decades, _PSEUDO_LOG).ravel()
    else:
        ratio = _PER_DECADE[binning]
        steps = np.arange(math.floor(low * ratio) - 1, math.ceil(high * ratio) + 2)
        edges = 10.0 ** (steps / ratio)
    # An edge belongs to the bin above it; what lies on one but for rounding does too.
    first = int(np.searchsorted(edges, smallest * (1.0 + 1e-12), side="right")) - 1
    last = int(np.searchsorted(edges, largest, side="right"))
    return edges[first : last + 1]
