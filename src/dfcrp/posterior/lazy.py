"""What clusters share, as xarray reads it: from the draws, when it is asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray
from xarray.backends import BackendArray
from xarray.core.indexing import (
    ExplicitIndexer,
    IndexingSupport,
    LazilyIndexedArray,
    explicit_indexing_adapter,
)

from dfcrp.draws import Draws, Variable, shared_variable


class _SharedArray(BackendArray):
    """A shared variable of all draws, (chain, draw, ...); it stays where the draws are."""

    def __init__(self, draws: Draws, variable: Variable) -> None:
        self._draws = draws
        self._name = variable.name
        self.shape = (draws.n_chains, draws.n_draws, *draws.columns.shape(variable))
        self.dtype = np.dtype(np.float64)

    def __getitem__(self, key: ExplicitIndexer) -> Any:
        return explicit_indexing_adapter(key, self.shape, IndexingSupport.BASIC, self._read)

    def _read(self, key: tuple[int | slice, ...]) -> NDArray[np.float64]:
        values = shared_variable(self._draws, self._name)
        assert values is not None
        found: NDArray[np.float64] = values[key]
        return found


def lazily(draws: Draws, variable: Variable) -> Any:
    """A shared variable that xarray takes as an array, and reads when it is used."""
    return LazilyIndexedArray(_SharedArray(draws, variable))
