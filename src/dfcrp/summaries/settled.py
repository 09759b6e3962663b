"""A point partition in which no item is listed where it is less often than somewhere else.

The partition of least expected loss leaves an item alone if it belongs to one of two objects, each
in half of the draws: wherever it were listed, the loss would be greater. But whoever reads that the
item is alone with a probability of 0.01 takes it for a mistake. So each item whose most probable
place (``summaries.membership``) is another than its own moves there, the clearest first. If its
expert has another item in that cluster, the one that is there more often stays.

A move changes what the cluster is, and so the places of other items; they are found again, round by
round. No item joins the same companions twice. Not all items can always have their way: one may be
with a second one in half of the draws and hardly ever alone, and the second alone in the other
half. Of all partitions on the way that one is kept in which the item that is worst off lacks least.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.summaries.membership import ALONE, NOWHERE, Membership, membership
from dfcrp.summaries.point_partition import PointPartition, distances

Labels = NDArray[np.int32]
Codes = NDArray[np.int64]

#: Rounds at most; most partitions take one or two.
ROUNDS = 12


class _Settling:
    """One partition on its way."""

    def __init__(self, labels: Labels, draws: Draws, families: Codes | None) -> None:
        self.labels, self.draws, self.families = labels.copy(), draws, families
        self.moved: set[int] = set()
        self._tried: set[tuple[int, tuple[int, ...]]] = set()

    def run(self) -> Membership:
        """Move items as long as any wants to; where all of them are at the end."""
        places = membership(self.labels, self.draws)
        best = (self._lack(places), self.labels.copy(), places)
        for _ in range(ROUNDS):
            if not self._round(places):
                break
            places = membership(self.labels, self.draws)
            lack = self._lack(places)
            if lack < best[0]:
                best = (lack, self.labels.copy(), places)
        _, self.labels, places = best
        return places

    def _lack(self, places: Membership) -> tuple[float, float]:
        """By how much items are more often elsewhere than where they are: at most, and in all."""
        gap = np.where(places.second != NOWHERE, places.p_second - places.p_member, 0.0)
        gap = np.maximum(gap, 0.0)
        for i in np.flatnonzero(gap).tolist():
            rivals = self._rivals(i, np.flatnonzero(self.labels == places.second[i]))
            if rivals.size and places.p_member[rivals].max() >= places.p_second[i]:
                gap[i] = 0.0
        return float(gap.max(initial=0.0)), float(gap.sum())

    def _round(self, places: Membership) -> bool:
        """One move from and into each cluster at most; whether there was one."""
        before, touched = self.labels.copy(), {-1}
        gain = places.p_second - places.p_member
        wanted = np.flatnonzero((gain > 0.0) & (places.second != NOWHERE))
        for i in wanted[np.argsort(-gain[wanted], kind="stable")].tolist():
            own, other = int(before[i]), int(places.second[i])
            if own in touched or (other in touched and other != ALONE):
                continue
            members = np.flatnonzero(before == other)
            rivals = self._rivals(i, members)
            if rivals.size and places.p_member[rivals].max() >= places.p_second[i]:
                continue
            members = np.setdiff1d(members, rivals)
            move = (i, tuple(members.tolist()))
            if move not in self._tried:
                self._tried.add(move)
                self._move(i, members, rivals)
                touched |= {own, other}
        return bool((self.labels != before).any())

    def _rivals(self, item: int, members: Codes) -> Codes:
        """Those of the same family."""
        if self.families is None:
            return members[:0]
        return members[self.families[members] == self.families[item]]

    def _move(self, item: int, members: Codes, rivals: Codes) -> None:
        """Clusters stay named after their smallest members."""
        rest = np.flatnonzero(self.labels == self.labels[item])
        rest = rest[rest != item]
        if rest.size:
            self.labels[rest] = rest.min()
        self.labels[rivals] = rivals
        together = np.append(members, item)
        self.labels[together] = together.min()
        self.moved |= {item, *rivals.tolist()}


def settled(
    best: PointPartition, draws: Draws, families: Codes | None
) -> tuple[PointPartition, Membership]:
    """The partition with such items moved, and where all items are.

    With ``families`` no two members of a cluster are of the same family.
    """
    one = _Settling(best.labels, draws, families)
    places = one.run()
    if (one.labels == best.labels).all():
        return best, places
    loss = float(distances(draws, one.labels, best.loss).mean())
    moved = replace(best, labels=one.labels, expected_loss=loss, n_moved=len(one.moved))
    return moved, places
