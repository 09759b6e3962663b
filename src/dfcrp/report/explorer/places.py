"""Where the explorer draws items and objects: where they lie, or else on a grid of objects."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.flat import FlatMap, flat_catalogue, flat_map_or_none, quantities_of
from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]

#: Columns over rows of the grid, about the shape of the map.
GRID_SHAPE = 1.5
#: The share of its place on the grid that an object's cell takes, and of that, its members.
CELL = 0.86
INSIDE = 0.74


@dataclass(frozen=True)
class Places:
    """Items, and objects in the order of the catalogue."""

    items: FlatMap
    objects: FlatMap
    #: Width and height of the objects at the lower and at the upper ends of their 95 % intervals.
    least: tuple[Floats, Floats] | None = None
    most: tuple[Floats, Floats] | None = None
    #: Whether positions mean anything.
    real: bool = True


def find_places(posterior: Posterior, catalogue: Any) -> Places:
    """Where items and objects lie; on a grid if they have no place."""
    placed = flat_map_or_none(posterior.items)
    if placed is None:
        return _grid(posterior.point_partition().labels, posterior.membership.stability)
    objects = flat_catalogue(posterior, catalogue)
    names = quantities_of(catalogue)
    if objects.shape == "point" or not names:
        return Places(placed, objects)
    ends: list[tuple[Floats, Floats]] = []
    for end in ("lo", "hi"):
        columns = {name: np.asarray(catalogue[f"{name}_{end}"]) for name in names}
        outlines = posterior.likelihood.outlines(columns)
        assert outlines is not None
        ends.append((placed.scale * outlines.width, placed.scale * outlines.height))
    return Places(placed, objects, least=ends[0], most=ends[1])


def _grid(labels: NDArray[np.int32], stability: Floats) -> Places:
    """A cell for each object, the largest first and among equals the surest; members inside."""
    _, code = np.unique(labels, return_inverse=True)
    size = np.bincount(code)
    count = len(size)
    rank = np.empty(count, np.int64)
    rank[np.lexsort((-stability, -size))] = np.arange(count)
    columns = int(np.ceil(np.sqrt(GRID_SHAPE * count)))
    x, y = (rank % columns).astype(np.float64), -(rank // columns).astype(np.float64)
    # The members of an object fill rows of a square, from the upper left.
    order = np.argsort(code, kind="stable")
    starts = np.cumsum(size) - size
    within = np.empty(len(code), np.int64)
    within[order] = np.arange(len(code)) - starts[code[order]]
    side = np.ceil(np.sqrt(size)).astype(np.int64)
    rows = -(-size // side)
    step = CELL * INSIDE / side
    down, across = np.divmod(within, side[code])
    dx = (across - (side[code] - 1) / 2.0) * step[code]
    dy = ((rows[code] - 1) / 2.0 - down) * step[code]
    return Places(
        items=_points(x[code] + dx, y[code] + dy),
        objects=FlatMap(
            x, y, np.full(count, CELL), np.full(count, CELL), np.zeros(count), "box", ("", "")
        ),
        real=False,
    )


def _points(x: Floats, y: Floats) -> FlatMap:
    nothing = np.zeros(len(x))
    return FlatMap(x, y, nothing, nothing, nothing, "point", ("", ""))
