"""Links: which pairs of items are one object, and how probable that is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError

if TYPE_CHECKING:
    import pandas

    from dfcrp.posterior.posterior import Posterior

#: Pairs below are not listed unless they are asked for.
LEAST = 0.1


def links_frame(posterior: Posterior, p_min: float, *, rows: bool = False) -> pandas.DataFrame:
    """One row for each pair that is more probable than ``p_min``, the most probable first."""
    import pandas

    if not 0 <= p_min < 1:
        raise InputError(f"p_min is {p_min!r}; it must be at least 0 and below 1")
    items, found = posterior.items, posterior.pairs
    probability = found.probability
    listed = np.flatnonzero(probability > p_min)
    first, second = found.first[listed], found.second[listed]
    # Records of one pair of lists stand on the same sides, in the order of the lists.
    turned = items.families[first] > items.families[second]
    first, second = np.where(turned, second, first), np.where(turned, first, second)
    order = np.lexsort((second, first, -probability[listed]))
    table = _columns(posterior, first[order], second[order], rows=rows)
    table["p"] = probability[listed][order]
    return pandas.DataFrame(table)


def _columns(
    posterior: Posterior, first: NDArray[np.int64], second: NDArray[np.int64], *, rows: bool
) -> dict[str, Any]:
    """Who the two are, where they are, and with ``rows`` what they say."""
    items = posterior.items
    sides = {"l": first, "r": second}
    table: dict[str, Any] = {}
    for side, at in sides.items():
        table[f"id_{side}"] = items.id[at]
        if len(items.experts) > 1:
            table[f"source_{side}"] = items.expert[at]
    if items.image is not None:
        # Two items of one object are on one image.
        table["image"] = items.image[first]
    if rows:
        for name, values in items.columns.items():
            table |= {f"{name}_{side}": values[at] for side, at in sides.items()}
    return table
