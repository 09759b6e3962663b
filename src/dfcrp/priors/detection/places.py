"""Where a cluster lies: its zone of the image, and its level of size.

Both follow from the members where the likelihood draws no size, or where looks cover parts of an
image only. Otherwise the zone is the image and the level that of the cluster's size.
"""

from __future__ import annotations

from dfcrp.compiled.jit import inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE


@inline_kernel
def by_members(prior):
    """Whether the zone or level of a cluster follows from who is in it."""
    return prior.sizes.shape[0] > 0 or prior.looks.share.shape[0] > prior.looks.zones.shape[0] - 1


@inline_kernel
def zone_of(prior, data, state, k, i):
    """The zone of cluster k with i in it as well, unless i is NONE."""
    zones, j = prior.looks.zone, state.head[k]
    zone = zones[data.original[j]]
    if prior.looks.share.shape[0] == prior.looks.zones.shape[0] - 1:
        return zone
    alike = i == NONE or zones[data.original[i]] == zone
    while j != NONE:
        alike = alike and zones[data.original[j]] == zone
        j = state.after[j]
    return zone if alike else zone_of_most(prior, data, state, k, i)


@lean_kernel
def zone_of_most(prior, data, state, k, i):
    """The zone in which most of cluster k and i lie, of several the first."""
    looks, head = prior.looks, data.original[state.head[k]]
    chosen, most = 0, 0
    for zone in range(looks.zones[looks.image[head]], looks.zones[looks.image[head] + 1]):
        count = 1 if i != NONE and looks.zone[data.original[i]] == zone else 0
        j = state.head[k]
        while j != NONE:
            count += looks.zone[data.original[j]] == zone
            j = state.after[j]
        if count > most:
            chosen, most = zone, count
    return chosen


@lean_kernel
def covers(looks, viewer, zone):
    """Whether a viewer is one of a zone's."""
    for look in range(looks.start[zone], looks.start[zone + 1]):
        if looks.viewer[look] == viewer:
            return True
    return False


@inline_kernel
def is_outside(prior, item, zone):
    """Whether an item is of a viewer who does not cover the zone that its cluster lies in."""
    looks = prior.looks
    return looks.zone[item] != zone and not covers(looks, looks.row_viewer[looks.row[item]], zone)


@inline_kernel
def level_of(prior, size):
    """The level of a log size; beyond the ends of the levels it is the last."""
    level = int((size - prior.low) / prior.step)
    return min(max(level, 0), prior.away.shape[0] - 1)


@inline_kernel
def level_with(prior, data, state, k, i, size):
    """The level of cluster k, whose log size is ``size`` if it has one, with i in it as well."""
    if prior.sizes.shape[0] == 0:
        return level_of(prior, size)
    total, count, j = 0.0, 0, state.head[k]
    while j != NONE:
        total += prior.sizes[data.original[j]]
        count += 1
        j = state.after[j]
    if i != NONE:
        total += prior.sizes[data.original[i]]
        count += 1
    # Sizes are whole multiples of a power of two: the sum is the same in any order.
    return min(int(total / count), prior.away.shape[0] - 1)


@inline_kernel
def level_alone(prior, data, i, size):
    """The level of marking i alone in a cluster of this log size."""
    if prior.sizes.shape[0] == 0:
        return level_of(prior, size)
    return min(int(prior.sizes[data.original[i]]), prior.away.shape[0] - 1)
