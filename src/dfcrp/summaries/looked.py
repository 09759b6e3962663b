"""Who looked at the place of an object: what every table about experts counts by.

Images are cut into zones, all places of which were seen by the same experts; without footprints an
image is one zone. A cluster lies in the zone of most of its members, of several in the first, as
under the detection prior. Those who looked at it are whoever saw that zone, and its members.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

Ints = NDArray[np.int64]


class Coverage(NamedTuple):
    """Which expert saw which zone."""

    #: The zone of each item.
    zone: Ints
    #: (m, 2): a zone and an expert who saw it, ascending.
    pairs: Ints
    n_zones: int
    n_experts: int
    #: Whether an image may have several zones.
    in_parts: bool

    @property
    def counts(self) -> Ints:
        """How many experts saw each zone."""
        return np.bincount(self.pairs[:, 0], minlength=self.n_zones)

    def looked_at(self, labels: NDArray[np.int32], families: Ints) -> Ints:
        """How many looked at each cluster of one partition, where the name of the cluster is."""
        if not self.in_parts:
            return self.counts[self.zone]
        found = who_looked(self, labels[np.newaxis], families)
        looked = np.zeros(len(labels), np.int64)
        looked[found.name] = found.looked
        return looked


def everyone(families: Ints, n_experts: int | None = None) -> Coverage:
    """Every expert looked everywhere."""
    experts = int(families.max()) + 1 if n_experts is None else n_experts
    pairs = np.column_stack([np.zeros(experts, np.int64), np.arange(experts)])
    return Coverage(np.zeros(len(families), np.int64), pairs, 1, experts, False)


class WhoLooked(NamedTuple):
    """The clusters of some draws, one after the other, with their experts."""

    draw: Ints
    name: Ints
    #: Whether an expert is in a cluster, and whether they looked at it; (clusters, experts).
    held: csr_array
    seen: csr_array

    @property
    def experts(self) -> Ints:
        """How many experts are in each cluster."""
        return np.diff(self.held.indptr).astype(np.int64)

    @property
    def looked(self) -> Ints:
        """How many looked at each cluster."""
        return np.diff(self.seen.indptr).astype(np.int64)

    def apart(self, draws: int) -> tuple[csr_array, csr_array]:
        """Both tables with columns of their own for every draw: (clusters, draws · experts)."""
        wide = draws * self.held.shape[1]
        return _moved(self.held, self.draw, wide), _moved(self.seen, self.draw, wide)


def who_looked(coverage: Coverage, labels: NDArray[np.int32], families: Ints) -> WhoLooked:
    """Of every cluster of the draws (draws, items): who is in it, and who looked at it."""
    draws, n = labels.shape
    code = np.arange(draws)[:, np.newaxis] * n + labels.astype(np.int64)
    keys, zone = zones_of(coverage, code)
    seats = np.unique(code * coverage.n_experts + families)
    row = np.searchsorted(keys, seats // coverage.n_experts)
    shape = (len(keys), coverage.n_experts)
    held = _table(row, seats % coverage.n_experts, shape)
    zones, experts = coverage.pairs.T
    saw = _table(zones, experts, (coverage.n_zones, coverage.n_experts))
    seen = csr_array(saw[zone] + held)
    seen.data[:] = 1
    return WhoLooked(keys // n, keys % n, held, seen)


def zones_of(coverage: Coverage, code: Ints) -> tuple[Ints, Ints]:
    """The clusters in ascending order, and the zone of each: that of most of its members."""
    held, count = np.unique(code * coverage.n_zones + coverage.zone, return_counts=True)
    cluster, zone = np.divmod(held, coverage.n_zones)
    order = np.lexsort((zone, -count, cluster))
    keys, first = np.unique(cluster[order], return_index=True)
    return keys, zone[order][first]


def _table(rows: Ints, columns: Ints, shape: tuple[int, int]) -> csr_array:
    return csr_array((np.ones(len(rows), np.int32), (rows, columns)), shape=shape)


def _moved(table: csr_array, draw: Ints, wide: int) -> csr_array:
    columns = table.indices + np.repeat(draw, np.diff(table.indptr)) * table.shape[1]
    return csr_array((table.data, columns, table.indptr), shape=(table.shape[0], wide))
