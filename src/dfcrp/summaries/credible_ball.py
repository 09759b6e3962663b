"""The uncertainty of a point partition: the ball around it that holds most of the draws."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.summaries.losses import distances
from dfcrp.summaries.point_partition import PointPartition
from dfcrp.summaries.streaming import as_draws, n_clusters

#: Distances closer than this are equal.
TOLERANCE = 1e-9


@dataclass(frozen=True)
class CredibleBall:
    """Wade and Ghahramani's credible ball; each bound is an array of labels, (partitions, n)."""

    level: float
    #: Smallest distance within which at least ``level`` of the draws lie.
    radius: float
    #: Draws of the ball that are farthest from the point partition.
    horizontal: NDArray[np.int32]
    #: Draws of the ball with the fewest clusters, of these the farthest.
    upper: NDArray[np.int32]
    #: Draws of the ball with the most clusters, of these the farthest.
    lower: NDArray[np.int32]


def credible_ball(draws: object, point: PointPartition, level: float = 0.95) -> CredibleBall:
    """The ball around the point partition, in its own loss, with the bounds drawn inside it.

    radius = min { r : share of draws c with loss(c, point) <= r is at least ``level`` }
    """
    source = as_draws(draws)
    distance = distances(source, point.labels, point.loss).ravel()
    clusters = n_clusters(source).ravel()
    rank = int(np.ceil(level * distance.size - TOLERANCE)) - 1
    radius = float(np.sort(distance)[max(rank, 0)])
    inside = np.flatnonzero(distance <= radius + TOLERANCE)
    fewest = inside[clusters[inside] == clusters[inside].min()]
    most = inside[clusters[inside] == clusters[inside].max()]
    return CredibleBall(
        level=level,
        radius=radius,
        horizontal=_farthest(source, distance, inside),
        upper=_farthest(source, distance, fewest),
        lower=_farthest(source, distance, most),
    )


def _farthest(
    draws: Draws, distance: NDArray[np.float64], among: NDArray[np.int64]
) -> NDArray[np.int32]:
    """The different partitions among these draws that are farthest away."""
    far = among[distance[among] >= distance[among].max() - TOLERANCE]
    rows = [draws.labels(int(d) // draws.n_draws, *_one(int(d) % draws.n_draws))[0] for d in far]
    return np.unique(np.asarray(rows, np.int32), axis=0)


def _one(draw: int) -> tuple[int, int]:
    return draw, draw + 1
