"""What the draws under the detection prior say of objects, experts and single markings.

In each draw every cluster's class, or that it is false, and the missed objects that go with it are
drawn from their law given the draw, as the sampler itself does. Draws of new data under the draw's
parameters are there to be compared with the data.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.jit import entry_kernel, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection.kernel import level_of, log_noticed, rebuild_tables
from dfcrp.priors.detection.update import FALSE, draw_class, draw_missed

#: Tries to draw an object that is seen; one of a class that hardly ever is counts for nothing.
MOST_TRIES = 10_000


class Lists(NamedTuple):
    """Whose the markings are; ``Data`` as far as weights of clusters need it."""

    family: np.ndarray  # (n,) int32


class SummarySeats(NamedTuple):
    """One draw's partition, by label; ``State`` as far as weights of clusters need it."""

    head: np.ndarray  # (n,) int32
    after: np.ndarray  # (n,) int32
    size: np.ndarray  # (n,) int32


class Found(NamedTuple):
    """Where the summary of a block of b draws is written; c are size classes."""

    seen: np.ndarray  # (b, C) int64
    missed: np.ndarray  # (b, C) int64
    seen_at: np.ndarray  # (b, L) int32: seen objects by level of size
    missed_at: np.ndarray  # (b, L) int32
    listed: np.ndarray  # (b, C, F) int32: real markings of each expert
    false: np.ndarray  # (b, C, F) int32
    classes: np.ndarray  # (b,) int64: classes with an object
    common: np.ndarray  # (b, F): expected pairs of a list's object and another list of its person
    common_again: np.ndarray  # (b, F): the same if the person had looked again for every list
    sizes: np.ndarray  # (b, F + 1) int64: clusters by number of markings
    new_sizes: np.ndarray  # (b, F + 1) int64: the same in new data
    real: np.ndarray  # (b, n) float32 by label: probability that the cluster is an object


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
def new_markings(rng, prior, level):
    """In how many lists a new object of this level is, given that it is in one."""
    parameters = prior.parameters
    threshold, g = rng.random() - parameters.weight[0], 0
    while threshold > 0.0 and g + 1 < parameters.weight.shape[0]:
        g += 1
        threshold -= parameters.weight[g]
    for _ in range(MOST_TRIES):
        count = 0
        for p in range(prior.lists.shape[0]):
            if math.log(rng.random()) < log_noticed(parameters, g, p, prior.away[level])[0]:
                if prior.lists[p] == 1:
                    count += 1
                    continue
                for f in range(prior.person.shape[0]):
                    if prior.person[f] == p:
                        count += rng.random() < parameters.listing[g, f]
        if count > 0:
            return count
    return 0


@inline_kernel
def new_false_marks(rng, expected):
    """A Poisson number, as arrivals within one unit of time."""
    count, spent = 0, rng.standard_exponential()
    while spent < expected:
        count += 1
        spent += rng.standard_exponential()
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
def summarise_cluster(rng, prior, lists, seats, k, log_size, size_number, found, draw):
    """Add cluster k of a draw to its summary."""
    level = level_of(prior, log_size)
    single, first = seats.size[k] == 1, lists.family[seats.head[k]]
    found.sizes[draw, seats.size[k]] += 1
    found.real[draw, k] = 1.0
    if single:
        false = math.log(max(prior.parameters.false[first], 1e-300))
        found.real[draw, k] = -math.expm1(min(false - prior.tables.alone[level, first], 0.0))
    g = draw_class(rng, prior, lists, seats, k, level)
    if g == FALSE:
        found.false[draw, size_number, first] += 1
        return FALSE
    missed = draw_missed(rng, 1.0, prior.tables.missed[level, g])
    found.seen[draw, size_number] += 1
    found.missed[draw, size_number] += int(missed)
    found.seen_at[draw, level] += 1
    found.missed_at[draw, level] += int(missed)
    i = seats.head[k]
    while i != NONE:
        found.listed[draw, size_number, lists.family[i]] += 1
        i = seats.after[i]
    for f in range(prior.person.shape[0]):
        if prior.lists[prior.person[f]] > 1:
            s, common = in_common(prior, g, f, level)
            found.common[draw, f] += common * (1.0 + missed)
            found.common_again[draw, f] += s * common * (1.0 + missed)
    found.new_sizes[draw, new_markings(rng, prior, level)] += 1
    return g


@entry_kernel
def summarise_draws(rng, prior, own, lists, seats, labels, offsets, names, log_sizes, edges, found):
    """Fill in ``found`` for a block of draws; ``names`` are the labels that the rows belong to."""
    for draw in range(labels.shape[0]):
        for column in range(own.shape[1]):
            prior.own[column] = own[draw, column]
        rebuild_tables(prior)
        seat(labels[draw], seats)
        in_use = 0
        for row in range(offsets[draw], offsets[draw + 1]):
            number = size_class(edges, log_sizes[row])
            g = summarise_cluster(
                rng, prior, lists, seats, names[row], log_sizes[row], number, found, draw
            )
            if g != FALSE:
                in_use |= 1 << g
        for g in range(FALSE):
            found.classes[draw] += (in_use >> g) & 1
        for f in range(prior.person.shape[0]):
            found.new_sizes[draw, 1] += new_false_marks(rng, prior.parameters.false[f])
