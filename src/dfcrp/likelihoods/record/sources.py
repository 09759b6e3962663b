"""Updates of what sources add to the law, along directions in which one entry alone hardly moves.

*Shared and own.* Values follow T_g = b + o_g of source g alone, with b what sources share and o_g
what g adds. Given all T_g, with priors b ~ N(μ, σ²) and o_g ~ N(0, τ²), b is normal with

    precision 1 / σ² + Σ_g 1 / τ²,   mean (μ / σ² + Σ_g T_g / τ²) / precision,

so it is drawn at once, and nothing need be weighed.

*Scales of two sources.* How far values of two sources lie apart tells s_a² + s_b² well and s_a²
poorly. In V = s_a² + s_b² and z = log(s_a² / s_b²) the slice update of z leaves V as it is. Since
2 log s_a = log V - log(1 + e^-z) and 2 log s_b = log V - log(1 + e^z), the determinant of the
change is constant, and the target is that of the two entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import Data, State
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.law import FARTHEST, law_is_due, log_fit, slice_law
from dfcrp.likelihoods.record.kernel import SCALE, RecordHyper
from dfcrp.likelihoods.record.rates import (
    LESS_OFTEN,
    is_chosen,
    note_rates,
    rates_are_due,
    update_rates,
    weigh_rows,
)

#: First width of a slice in z.
WIDTH = 1.0


@lean_kernel
def draw_shared(hyper, rng, what, field):
    """b of a field, given what every source has in all; beyond the prior's end it stays."""
    shared, sources = hyper.entry[what, field], hyper.own.shape[2]
    precision = 1.0 / hyper.law_sd[shared] ** 2
    total = hyper.law_mean[shared] * precision
    for g in range(sources):
        own = hyper.own[what, field, g]
        weight = 1.0 / hyper.law_sd[own] ** 2
        precision += weight
        total += weight * (hyper.law[shared] + hyper.law[own] - hyper.law_mean[own])
    step = total / precision + rng.standard_normal() / math.sqrt(precision) - hyper.law[shared]
    within = beyond(hyper, shared, step) <= FARTHEST
    for g in range(sources):
        within = within and beyond(hyper, hyper.own[what, field, g], -step) <= FARTHEST
    if within:
        hyper.law[shared] += step
        for g in range(sources):
            hyper.law[hyper.own[what, field, g]] -= step


@inline_kernel
def beyond(hyper, which, step):
    """Prior standard deviations from the mean to an entry moved by ``step``."""
    return abs(hyper.law[which] + step - hyper.law_mean[which]) / hyper.law_sd[which]


class TwoScales(NamedTuple):
    """The scales of two sources: their entries, what is added to both, and log V."""

    hyper: NamedTuple
    data: Data
    state: State
    one: int
    other: int
    shared: float
    log_both: float


@implements(log_target, TwoScales)
@lean_kernel
def log_split(target, z):
    """Log posterior of both entries at z; leaves them there."""
    hyper = target.hyper
    high = target.log_both - math.log1p(math.exp(-abs(z)))
    low = high - abs(z)
    hyper.law[target.one] = 0.5 * (high if z > 0.0 else low) - target.shared
    hyper.law[target.other] = 0.5 * (low if z > 0.0 else high) - target.shared
    one, other = beyond(hyper, target.one, 0.0), beyond(hyper, target.other, 0.0)
    if max(one, other) > FARTHEST:
        return -math.inf
    fit = log_fit(hyper, target.data, target.state, target.one)
    return fit - 0.5 * (one * one + other * other)


@lean_kernel
def split_scales(hyper, rng, data, state, field, one, other):
    """One slice update of z of two sources."""
    shared = hyper.law[hyper.entry[SCALE, field]]
    a, b = hyper.own[SCALE, field, one], hyper.own[SCALE, field, other]
    z = 2.0 * (hyper.law[a] - hyper.law[b])
    larger = 2.0 * (shared + max(hyper.law[a], hyper.law[b]))
    log_both = larger + math.log1p(math.exp(-abs(z)))
    target = TwoScales(hyper, data, state, a, b, shared, log_both)
    log_split(target, slice_update(rng, target, z, WIDTH, 1e-9))


@lean_kernel
def update_scales(hyper, rng, data, state):
    """The scales of all measures; of sources' own, as many pairs of these as there are sources."""
    sources = hyper.own.shape[2]
    for field in range(hyper.kind.shape[0]):
        shared = hyper.entry[SCALE, field]
        if shared < 0:
            continue
        if is_chosen(hyper, rng):
            slice_law(hyper, rng, data, state, shared)
        if hyper.own[SCALE, field, 0] < 0:
            continue
        for source in range(sources):
            if is_chosen(hyper, rng):
                slice_law(hyper, rng, data, state, hyper.own[SCALE, field, source])
        for one in range(sources):
            step = 1 + int(rng.random() * (sources - 1))
            split_scales(hyper, rng, data, state, field, one, (one + step) % sources)


@lean_kernel
def update_shared_parts(hyper, rng):
    """What sources share of every entry, given what each has in all; rates are noted again."""
    for field in range(hyper.kind.shape[0]):
        for what in range(hyper.entry.shape[0]):
            if hyper.entry[what, field] >= 0 and hyper.own[what, field, 0] >= 0:
                draw_shared(hyper, rng, what, field)
        note_rates(hyper, field)


@implements(likelihood.update_shared, RecordHyper)
@lean_kernel
def update_shared(hyper, rng, data, state):
    """Update what is due of the law.

    Spares stay as they are: a record alone says nothing of the law, nor the law of it.
    """
    if rates_are_due(state, LESS_OFTEN):
        update_rates(hyper, rng, state)
        if law_is_due(state):
            update_scales(hyper, rng, data, state)
        update_shared_parts(hyper, rng)
        weigh_rows(hyper, state)
    return False
