"""Where chains begin: with everybody alone, or with the clusters of an earlier run.

Where a chain begins changes nothing of what it converges to, only how soon. Clusters of an earlier
run are kept as far as they are allowed now: what has moved, was corrected or decided apart is in a
cluster of its own.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.state import Data

Members = list[int]


def seats_of(data: Data, labels: NDArray[np.int64]) -> NDArray[np.int32]:
    """The first of each item's cluster, by internal number.

    Items with the same label, by input row, were in one cluster; those with −1 in none.
    """
    label = labels[data.original]
    lead = np.arange(len(label), dtype=np.int32)
    seated = np.zeros(len(label), bool)
    order = np.argsort(label, kind="stable")
    ends = np.flatnonzero(np.diff(label[order])) + 1
    for rows in np.split(order, ends):
        clusters: list[Members] = []
        for i in rows.tolist() if label[rows[0]] >= 0 else ():
            if seated[i]:
                continue
            group = _group(data, i)
            seated[group] = True
            mine = next((one for one in clusters if _may_join(data, group, one)), None)
            if mine is None:
                clusters.append(group)
            else:
                mine += group
        for members in clusters:
            lead[members] = min(members)
    for i in np.flatnonzero(~seated).tolist():
        lead[i] = min(_group(data, i))
    return lead


def _group(data: Data, i: int) -> Members:
    """The item, and those that were decided to be one object with it."""
    found = [i]
    while data.has_groups and (other := int(data.mate[found[-1]])) != i:
        found.append(other)
    return found


def _may_join(data: Data, group: Members, cluster: Members) -> bool:
    """Whether every two of them may share a cluster."""
    if not {int(data.family[i]) for i in group}.isdisjoint(int(data.family[j]) for j in cluster):
        return False
    if not data.has_radius:
        return True
    for i in group:
        near = data.neighbours[data.neighbour_start[i] : data.neighbour_start[i + 1]]
        if not np.isin(cluster, near).all():
            return False
    return True
