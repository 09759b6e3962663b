"""Slice updates of one number (Neal 2003): no tuning, and any width leaves the target unchanged.

A target is a named tuple of whatever its log density needs, which ``log_target`` is told for its
type. As a target is known when a kernel is compiled, the density is inlined where it is asked for.
"""

from __future__ import annotations

from dfcrp.compiled.jit import by_type, inline_kernel, lean_kernel

#: Most steps by which a bracket grows. They are dealt to its two sides at random, without which a
#: limit would not leave the target unchanged; nothing that has a density needs as many.
MOST_STEPS = 4096
#: Standard deviations after which a normal prior of a log variance ends. Nothing is lost, and every
#: slice is short enough to be stepped over: that of a variance 10^100 times off would not be.
FARTHEST = 1000.0


@by_type
def log_target(target, value):
    """Log density at a value, up to a constant."""


@inline_kernel
def shrink(rng, target, start, level, low, high, least):
    """A value of the slice above ``level``, uniformly drawn from a bracket that holds ``start``.

    A bracket narrower than ``least`` is given up: the value is then ``start``.
    """
    while high - low > least:
        value = low + (high - low) * rng.random()
        if log_target(target, value) > level:
            return value
        if value < start:
            low = value
        else:
            high = value
    return start


@lean_kernel
def slice_update(rng, target, start, width, least):
    """One update: step out by ``width`` until the bracket holds the slice, then shrink.

    The number of steps is limited: if the density does not fall, say because of a number that is
    none, a kernel must come to an end all the same.
    """
    level = log_target(target, start) - rng.standard_exponential()
    low = start - width * rng.random()
    high = low + width
    below = int(MOST_STEPS * rng.random())
    above = MOST_STEPS - 1 - below
    while below > 0 and log_target(target, low) > level:
        low -= width
        below -= 1
    while above > 0 and log_target(target, high) > level:
        high += width
        above -= 1
    return shrink(rng, target, start, level, low, high, least)


@lean_kernel
def shrinking_update(rng, target, start, width, least):
    """One update without stepping out, where every evaluation walks over all clusters.

    That leaves the target unchanged as well; ``width`` should exceed the target's own.
    """
    level = log_target(target, start) - rng.standard_exponential()
    low = start - width * rng.random()
    return shrink(rng, target, start, level, low, low + width, least)
