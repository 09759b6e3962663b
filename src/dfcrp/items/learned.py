"""What the chains of an earlier run had learned at their last draws, by name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.values import Json


class LearnedQuantity(NamedTuple):
    """One variable that clusters share."""

    dims: tuple[str, ...]
    #: (chains, ...): the last draw of each chain.
    values: NDArray[np.float64]
    #: (...): whether the run learned it; what is the same in all draws it held.
    learned: NDArray[np.bool_]


@dataclass(frozen=True)
class Learned:
    """What chains may begin with: α, and what clusters share."""

    #: (chains,)
    alpha: NDArray[np.float64]
    coords: Mapping[str, tuple[str, ...]]
    quantities: Mapping[str, LearnedQuantity]

    def as_json(self) -> Json:
        """To be written into a run folder."""
        return {
            "alpha": [value if np.isfinite(value) else None for value in self.alpha.tolist()],
            "coords": {name: list(labels) for name, labels in self.coords.items()},
            "quantities": {
                name: {
                    "dims": list(one.dims),
                    "values": one.values.tolist(),
                    "learned": one.learned.tolist(),
                }
                for name, one in self.quantities.items()
            },
        }

    @classmethod
    def from_json(cls, found: Any) -> Learned:
        """As it was written; ValueError, TypeError or LookupError if nobody wrote it so."""
        alpha = np.array([np.nan if one is None else one for one in found["alpha"]], np.float64)
        coords = {str(name): tuple(map(str, one)) for name, one in found["coords"].items()}
        quantities = {}
        for name, one in found["quantities"].items():
            dims = tuple(one["dims"])
            shape = tuple(len(coords[dim]) for dim in dims)
            values = np.array(one["values"], np.float64)
            learned = np.array(one["learned"], bool)
            if values.shape != (len(alpha), *shape) or learned.shape != shape:
                raise ValueError(f"{name} is not of the shape {shape}")
            if not np.isfinite(values).all():
                raise ValueError(f"{name} has values that are no numbers")
            quantities[str(name)] = LearnedQuantity(dims, values, learned)
        if alpha.ndim != 1 or (alpha <= 0.0).any() or not len(alpha):
            raise ValueError("alpha is not positive")
        return cls(alpha, coords, quantities)
