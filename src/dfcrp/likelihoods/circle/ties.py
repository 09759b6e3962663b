"""Markings that agree exactly, as rounding or copying makes them, are set a little apart.

Where several experts give the very same numbers, nothing keeps the variance of their cluster above
zero: its density grows without bound as the variance shrinks, and there is no posterior to draw
from. No marking is exact to a thousandth of its diameter, so such markings are moved by about that
much, always by the same amounts for the same data.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

#: Standard deviation of the moves, relative to the marking's diameter.
APART = 1e-3
#: Experts that must agree for it to matter. The law of a variance bears two at one place, even
#: where it is weakest, and five with the same diameter; what fewer agree on is left as it is.
FEWEST_AT_A_PLACE = 3
FEWEST_OF_A_SIZE = 6
_SEED = 20_140_415


def set_apart(
    features: NDArray[np.float64], families: NDArray[np.int64], *, sized: bool = True
) -> NDArray[np.float64]:
    """The features (x, y, log diameter), with those moved on which many experts agree exactly.

    Unless they are ``sized``, the model does without diameters, which stay as they are.
    """
    place, size = shared_rows(features[:, :2], features[:, 2:], families)
    size &= sized
    if not (place.any() or size.any()):
        return features
    moves = APART * tie_moves(features.shape)
    moves[:, :2] *= np.exp(features[:, 2:])
    return features + moves * np.stack([place, place, size], axis=1)


def shared_rows(
    places: NDArray[np.float64], sizes: NDArray[np.float64], families: NDArray[np.int64]
) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
    """Whose place, and whose size, many experts agree on exactly."""
    return (
        _shared(places, families, FEWEST_AT_A_PLACE),
        _shared(sizes, families, FEWEST_OF_A_SIZE),
    )


def tie_moves(shape: tuple[int, ...]) -> NDArray[np.float64]:
    """Standard normal moves, the same for data of the same shape."""
    return np.random.default_rng(_SEED).standard_normal(shape)


def _shared(
    values: NDArray[np.float64], families: NDArray[np.int64], fewest: int
) -> NDArray[np.bool_]:
    """Which rows are the same by at least so many families."""
    _, group = np.unique(values, axis=0, return_inverse=True)
    group = group.reshape(-1)
    by_group = np.unique(np.stack([group, families], axis=1), axis=0)[:, 0]
    return np.bincount(by_group, minlength=int(group.max()) + 1)[group] >= fewest
