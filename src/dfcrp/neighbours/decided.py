"""Neighbours after people have decided: some items are one object, some pairs are two.

A cluster is allowed if every two of its members are neighbours. So two items are two objects if
they are no neighbours, whatever joins them. Items that are one object move as a whole
(``moves.group``); they are each other's neighbours, whatever their distance.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.neighbours.neighbourhood import (
    Neighbourhood,
    Pairs,
    all_pairs,
    components_of,
    unique_pairs,
)

Codes = NDArray[np.int64]


def with_groups(found: Neighbourhood, groups: Codes) -> Neighbourhood:
    """Items with the same number, from 0, are one object; those with −1 are in no group.

    Where some of a group are no neighbours, all of it have the neighbours of each.
    """
    if groups.max(initial=-1) < 0:
        return found
    pairs = found.pairs
    if found.bounded:
        pairs = _widened(pairs, groups)
    alone = groups < 0
    rivals, contacts = found.rivals, found.contacts
    first, second = contacts.T
    return _with_pairs(
        replace(
            found,
            rivals=rivals[alone[rivals].all(axis=1)],
            contacts=contacts[alone[first] | (groups[first] != groups[second])],
            groups=groups,
        ),
        pairs,
    )


def without_pairs(
    found: Neighbourhood,
    apart: Pairs,
    solitary: Codes,
    at_odds: Callable[[Pairs], NDArray[np.bool_]],
) -> Neighbourhood:
    """The pairs ``apart`` and those ``at_odds`` are two objects; what is solitary shares none."""
    n = len(found.component)

    def left(pairs: Pairs) -> Pairs:
        if len(solitary):
            alone = np.zeros(n, bool)
            alone[solitary] = True
            pairs = pairs[~alone[pairs].any(axis=1)]
        return pairs[~(_among(pairs, apart, n) | at_odds(pairs))]

    pairs = found.pairs if found.bounded else all_pairs(np.zeros(n, np.int64))
    kept = left(pairs)
    if len(kept) == len(pairs):
        return found
    # Components may stay as they are: those of fewer pairs lie within them.
    return replace(found, bounded=True, pairs=kept, contacts=left(found.contacts))


def _among(pairs: Pairs, some: Pairs, n: int) -> NDArray[np.bool_]:
    """Which pairs are among some others, whatever their order."""
    low, high = np.sort(pairs, axis=1).T
    low2, high2 = np.sort(np.asarray(some, np.int64).reshape(-1, 2), axis=1).T
    return np.isin(low * n + high, low2 * n + high2)


def _widened(pairs: Pairs, groups: Codes) -> Pairs:
    """The pairs, and those that a group lacks."""
    n = len(groups)
    added = []
    for number in range(int(groups.max()) + 1):
        members = np.flatnonzero(groups == number)
        inner = np.column_stack([members[at] for at in np.triu_indices(len(members), 1)])
        if _among(inner, pairs, n).all():
            continue
        inside = groups == number
        touching = pairs[inside[pairs[:, 0]] ^ inside[pairs[:, 1]]]
        others = np.unique(touching[~inside[touching]])
        added += [inner, np.array([(a, b) for a in members for b in others]).reshape(-1, 2)]
    return unique_pairs(np.concatenate([pairs, *added])) if added else pairs


def _with_pairs(found: Neighbourhood, pairs: Pairs) -> Neighbourhood:
    """The same with more pairs; components that were joined are numbered together."""
    if len(pairs) == len(found.pairs):
        return found
    n = len(found.component)
    component = components_of(pairs, n, found.bounded)
    first = np.full(int(component.max()) + 1, n)
    np.minimum.at(first, component, found.numbering)
    order = np.lexsort((found.numbering, first[component]))
    numbering = np.empty(n, np.int64)
    numbering[order] = np.arange(n)
    return replace(found, pairs=pairs, component=component, numbering=numbering)
