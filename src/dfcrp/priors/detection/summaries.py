"""What the draws under the detection prior say of objects, experts and single markings.

In each draw every cluster's class, or that it is false, and the objects that nobody marked are
drawn from their law given the draw, as the sampler itself does. Draws of new data under the draw's
parameters are there to be compared with the data. The items are those of one image, on which all
of the prior's lists count.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.abi import F8, I4, I8, F4x2, F8x2, F8x3, I4x2, I4x3, I8x2, I8x3, frame
from dfcrp.compiled.jit import entry_kernel, inline_kernel, lean_kernel
from dfcrp.compiled.random import Stream
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection.kernel import (
    LEAST,
    Detection,
    class_weights,
    expected_on,
    level_share,
    log_alone,
    log_false,
    log_noticed,
    log_unseen,
    rebuild_weights,
    usual_notice,
)
from dfcrp.priors.detection.places import level_with, zone_of
from dfcrp.priors.detection.update import FALSE, draw_class, draw_poisson


@frame
class Lists(NamedTuple):
    """Whose the markings are; ``Data`` as far as weights of clusters need it."""

    family: I4  # (n,) int32
    original: I4  # (n,) int32: 0, 1, ...


@frame
class SummarySeats(NamedTuple):
    """One draw's partition, by label; ``State`` as far as weights of clusters need it."""

    head: I4  # (n,) int32
    after: I4  # (n,) int32
    size: I4  # (n,) int32


@frame
class Found(NamedTuple):
    """Where the summary of a block of b draws is written; c are size classes."""

    seen: I8x2  # (b, C) int64
    missed: I8x2  # (b, C) int64
    seen_at: I4x2  # (b, L) int32: seen objects by level of size
    missed_at: I4x2  # (b, L) int32
    listed: I4x3  # (b, C, F) int32: real markings of each expert
    false: I4x3  # (b, C, F) int32
    classes: I8  # (b,) int64: classes with an object
    decoys: I8  # (b,) int64: clusters that are decoys
    common: F8x2  # (b, F): expected pairs of a list's object and another list of its person
    common_again: F8x2  # (b, F): the same if the person had looked again for every list
    sizes: I8x2  # (b, F + 1) int64: clusters by number of markings
    new_sizes: I8x2  # (b, F + 1) int64: the same in new data
    real: F4x2  # (b, n) float32 by label: probability that the cluster is an object
    marked: F4x2  # (b, n) float32 by label: and that one more, typical expert marks it
    hidden: F8x2  # (b, 2): expected objects nobody marked, and those that one more expert finds


@lean_kernel
def seat(labels, seats):
    """Lay out a draw's labels as lists of members."""
    seats.head[:] = NONE
    seats.size[:] = 0
    for i in range(labels.shape[0] - 1, -1, -1):
        k = labels[i]
        seats.after[i] = seats.head[k]
        seats.head[k] = i
        seats.size[k] += 1


@inline_kernel
def size_class(edges, log_size):
    """In which class a log size is; the edges are diameters."""
    found = 0
    for edge in edges:
        found += math.exp(log_size) >= edge
    return found


@lean_kernel
def new_markings(rng, prior, g, zone, level):
    """In how many lists a new object of this class, zone and level is."""
    parameters, looks, count = prior.parameters, prior.looks, 0
    for look in range(looks.start[zone], looks.start[zone + 1]):
        viewer = looks.viewer[look]
        p = looks.viewer_person[viewer]
        if math.log(1.0 - rng.random()) < log_noticed(parameters, g, p, prior.away[level])[0]:
            for row in range(looks.viewer_row[viewer], looks.viewer_row[viewer + 1]):
                if prior.lists[p] == 1:
                    count += 1
                else:
                    count += rng.random() < parameters.listing[g, looks.row_list[row]]
    return count


@inline_kernel
def in_common(prior, g, f, level):
    """How likely f's person notices an object, and on how many of their lists beside f it is."""
    parameters, p = prior.parameters, prior.person[f]
    s = math.exp(log_noticed(parameters, g, p, prior.away[level])[0])
    others = 0.0
    for other in range(prior.person.shape[0]):
        if prior.person[other] == p and other != f:
            others += parameters.listing[g, other]
    return s, s * parameters.listing[g, f] * others


@lean_kernel
def add_common(prior, found, draw, g, level, objects):
    """What lists of one person have in common, of so many objects."""
    for f in range(prior.person.shape[0]):
        if prior.lists[prior.person[f]] > 1:
            s, common = in_common(prior, g, f, level)
            found.common[draw, f] += common * objects
            found.common_again[draw, f] += s * common * objects


@inline_kernel
def typical(prior, g):
    """How likely a typical expert notices an object of a class; their slope is 0."""
    return 1.0 / (1.0 + math.exp(-prior.parameters.ease[g]))


@lean_kernel
def chances(prior, lists, seats, k, zone, level):
    """How likely cluster k is an object if it is no false mark, and one more expert marks it then.

    What is no false mark is an object or a decoy; the expert is a typical one.
    """
    weights = class_weights(prior, lists, seats, k, zone, level)
    largest = max(weights)
    if largest == -math.inf:
        return 0.0, 0.0  # decided to be a false mark
    total, real, found = 0.0, 0.0, 0.0
    for g in range(prior.parameters.class_weight.shape[0]):
        weight = math.exp(weights[g] - largest)
        total += weight
        if g < prior.real:
            real += weight
            found += weight * typical(prior, g)
    return real / total, found / max(real, LEAST)


@lean_kernel
def summarise_cluster(rng, prior, lists, seats, k, log_size, size_number, found, draw):
    """Add cluster k of a draw to its summary."""
    zone = zone_of(prior, lists, seats, k, NONE)
    level = level_with(prior, lists, seats, k, NONE, log_size)
    head = seats.head[k]
    found.sizes[draw, seats.size[k]] += 1
    real, once_more = chances(prior, lists, seats, k, zone, level)
    if seats.size[k] == 1:
        false = log_false(prior, lists, head, level) - log_alone(prior, lists, head, level)
        real *= -math.expm1(min(false, 0.0))
    found.real[draw, k] = real
    found.marked[draw, k] = real * once_more
    g = draw_class(rng, prior, lists, seats, k, zone, level)
    i = head
    if g == FALSE or g >= prior.real:
        found.decoys[draw] += g != FALSE
        while i != NONE:
            found.false[draw, size_number, lists.family[i]] += 1
            i = seats.after[i]
        return FALSE
    found.seen[draw, size_number] += 1
    found.seen_at[draw, level] += 1
    while i != NONE:
        found.listed[draw, size_number, lists.family[i]] += 1
        i = seats.after[i]
    add_common(prior, found, draw, g, level, 1.0)
    return g


@inline_kernel
def new_rate(rng, prior, f):
    """A list's rate of false marks on a new image."""
    rate, shape = prior.parameters.false_marks[f], prior.parameters.look_shape[0]
    return rate if shape == math.inf else rate * rng.standard_gamma(shape) / shape


@lean_kernel
def summarise_missed(rng, prior, size_numbers, found, draw):
    """Objects that nobody marked, and as many new ones as are expected, by who marks them."""
    parameters, looks = prior.parameters, prior.looks
    for zone in range(looks.share.shape[0]):
        for level in range(prior.away.shape[0]):
            for g in range(parameters.class_weight.shape[0]):
                rate = expected_on(prior, 0, g) * level_share(prior, g, level)
                rate *= looks.share[zone]
                expected = rate
                if looks.silent[zone] > 0.0:
                    # What typical persons who marked nothing saw is not among the new ones, either.
                    unseen = log_unseen(usual_notice(prior, g))
                    expected *= math.exp(looks.silent[zone] * unseen)
                for _ in range(int(draw_poisson(rng, expected))):
                    found.new_sizes[draw, new_markings(rng, prior, g, zone, level)] += 1
                if g >= prior.real:
                    continue
                hidden = rate * math.exp(prior.tables.missed[zone, level, g])
                found.hidden[draw, 0] += hidden
                found.hidden[draw, 1] += hidden * typical(prior, g)
                missed = draw_poisson(rng, hidden)
                found.missed[draw, size_numbers[level]] += int(missed)
                found.missed_at[draw, level] += int(missed)
                if missed > 0.0:
                    add_common(prior, found, draw, g, level, missed)
    for f in range(prior.person.shape[0]):
        rate = new_rate(rng, prior, f) * looks.covered[f]
        found.new_sizes[draw, 1] += int(draw_poisson(rng, rate))


@entry_kernel
def summarise_draws(
    rng: Stream,
    prior: Detection,
    own: F8x2,
    lists: Lists,
    seats: SummarySeats,
    labels: I4x2,
    offsets: I8,
    names: I4,
    log_sizes: F8,
    edges: F8,
    size_numbers: I8,
    found: Found,
):
    """Fill in ``found`` for a block of draws; ``names`` are the labels that the rows belong to.

    ``size_numbers`` are the size classes of the levels, for objects that nobody marked.
    """
    for draw in range(labels.shape[0]):
        for column in range(own.shape[1]):
            prior.own[column] = own[draw, column]
        rebuild_weights(prior)
        seat(labels[draw], seats)
        in_use = 0
        for row in range(offsets[draw], offsets[draw + 1]):
            number = size_class(edges, log_sizes[row])
            g = summarise_cluster(
                rng, prior, lists, seats, names[row], log_sizes[row], number, found, draw
            )
            if g != FALSE:
                in_use |= 1 << g
        for g in range(prior.real):
            found.classes[draw] += (in_use >> g) & 1
        summarise_missed(rng, prior, size_numbers, found, draw)


@entry_kernel
def draw_missed_on(
    rng: Stream,
    prior: Detection,
    own: F8x2,
    images: I8,
    size_numbers: I8,
    missed: I8x3,
    hidden: F8x3,
):
    """Objects that nobody marked, on some images, in each draw: (draws, images, size classes).

    ``hidden`` (draws, images, 2): how many are expected, and how many one more expert finds.
    """
    for draw in range(own.shape[0]):
        for column in range(own.shape[1]):
            prior.own[column] = own[draw, column]
        rebuild_weights(prior)
        parameters = prior.parameters
        for at in range(images.shape[0]):
            v = images[at]
            for zone in range(prior.looks.zones[v], prior.looks.zones[v + 1]):
                for level in range(prior.away.shape[0]):
                    for g in range(prior.real):
                        rate = expected_on(prior, v, g) * prior.looks.share[zone]
                        rate *= parameters.size_share[level]
                        rate *= math.exp(prior.tables.missed[zone, level, g])
                        hidden[draw, at, 0] += rate
                        hidden[draw, at, 1] += rate * typical(prior, g)
                        missed[draw, at, size_numbers[level]] += int(draw_poisson(rng, rate))
