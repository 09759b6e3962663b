"""Values of any kind: how their types are called everywhere, and what JSON knows of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

#: Numbers, whatever their type is.
Array: TypeAlias = NDArray[Any]
#: An object of JSON, as it is read and as it is written: the values are what its keys say.
Json: TypeAlias = dict[str, Any]


def as_json(value: object) -> Any:
    """Only what JSON knows: arrays as lists, what is not finite as null."""
    if isinstance(value, Mapping):
        return {str(key): as_json(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [as_json(item) for item in value]
    if isinstance(value, np.ndarray):
        return as_json(value.tolist())
    if isinstance(value, np.generic):
        return as_json(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
