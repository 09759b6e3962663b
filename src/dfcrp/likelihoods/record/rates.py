"""Updates of the law of records: rates of faults, what sources add to them, scales.

Rates m and t of a field are updated in every scan where clusters have two members.

With m, c, e of one record and n, d, g of the other, R of two values x and y is

    (m + c)(n + d) + e n + g m + e g 1{x = y} / f(x) + e d S(y, x) + g c S(x, y) + c d (J - 1).

1 / f, S and J do not hang on the rates. They are looked up once for each field, and after that an
evaluation of all clusters of two is a walk over a table. Clusters in which three or more values are
known are weighed as ever; the larger these are, the less often rates are updated, above all those
of measures, which take long to weigh.

What sources add to the law is updated along directions in which one entry alone hardly moves.

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
from dfcrp.likelihoods.law import (
    FARTHEST,
    MOST_AT_ONCE,
    PERIOD,
    law_is_due,
    log_fit,
    slice_law,
    slice_width,
)
from dfcrp.likelihoods.record.kernel import (
    ALTER,
    BOTH,
    FIRST,
    LARGE,
    LEAST_OF_TWO,
    LOG_MARGINAL,
    MEASURE,
    MEMBERS,
    MISS,
    NOBODY,
    NOTED,
    OTHER_SOURCE,
    SAME,
    SCALE,
    SEEN_ONE,
    SEEN_OTHER,
    SMALL,
    SOURCE,
    RecordHyper,
    altered_two,
    log_members,
    log_ratio_of_field,
    logistic,
)

#: How many times less often rates are updated for each member of the usual cluster of more than
#: two, where values are the same or not, or similar; and where they are measures.
LESS_OFTEN, LESS_OFTEN_MEASURES = 0.5, 8.0
#: First width of a slice in z.
WIDTH = 1.0


@lean_kernel
def rates_are_due(state, less_often):
    """Whether this scan updates rates of some fields.

    That depends on the partition, which the update leaves as it is.
    """
    work, n = 0, state.label.shape[0]
    for k in range(n):
        if state.size[k] > 2:
            work += state.size[k] * state.size[k]
    return law_is_due(state) or state.scans[0] % min(1 + int(less_often * work / n), PERIOD) == 0


@lean_kernel
def note_rates(hyper, field):
    """m and t of a field by source, at the law as it is."""
    for what in range(SCALE):
        shared = hyper.entry[what, field]
        for source in range(hyper.noted.shape[2]):
            if shared >= 0:
                odds, own = hyper.law[shared], hyper.own[what, field, source]
                if own >= 0:
                    odds += hyper.law[own]
                hyper.noted[what, field, source] = odds
                hyper.rates[what, field, source] = logistic(odds)


@lean_kernel
def note_two(hyper, field, one, other, row):
    """What is known of two records' values of a field, into a row of ``hyper.facts``."""
    x, y = hyper.values[one, field], hyper.values[other, field]
    seen_other, seen_one, both = 0.0, 0.0, 0.0
    if hyper.entry[ALTER, field] >= 0:
        seen_other, seen_one, both = altered_two(hyper, field, one, other, x, y)
    hyper.facts[row, SAME] = 1.0 / hyper.share[hyper.first[field] + x] if x == y else 0.0
    hyper.facts[row, SEEN_OTHER], hyper.facts[row, SEEN_ONE] = seen_other, seen_one
    hyper.facts[row, BOTH] = both - 1.0
    hyper.facts[row, SOURCE] = hyper.source[one]
    hyper.facts[row, OTHER_SOURCE] = hyper.source[other]


@lean_kernel
def gather_facts(hyper, state, field):
    """Facts of all clusters with two known values, and at the end of the table the larger ones.

    Returns how many there are of either.
    """
    pairs, larger = 0, 0
    for k in range(state.theta.shape[0]):
        if state.size[k] < 2:
            continue
        known, one, other = 0, -1, -1
        for a in range(int(state.theta[k, MEMBERS])):
            record = int(state.theta[k, FIRST + a])
            if hyper.values[record, field] >= 0:
                known += 1
                one, other = other, record
        if known == 2:
            note_two(hyper, field, one, other, pairs)
            pairs += 1
        elif known > 2:
            larger += 1
            hyper.facts[hyper.facts.shape[0] - larger, SAME] = k
    return pairs, larger


@lean_kernel
def log_pairs_alike(hyper, field, pairs):
    """Σ log R of clusters of two where all sources have the same rates."""
    m, t = hyper.rates[MISS, field, 0], hyper.rates[ALTER, field, 0]
    c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
    usual = (m + c) * (m + c) + 2.0 * e * m
    total, product = 0.0, 1.0
    for row in range(pairs):
        seen = hyper.facts[row, SEEN_OTHER] + hyper.facts[row, SEEN_ONE]
        found = usual + e * e * hyper.facts[row, SAME]
        found += e * c * seen + c * c * hyper.facts[row, BOTH]
        product *= max(found, LEAST_OF_TWO)
        if not SMALL < product < LARGE:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@lean_kernel
def log_pairs_apart(hyper, field, pairs):
    """The same where each source has its own."""
    rates = hyper.rates
    total, product = 0.0, 1.0
    for row in range(pairs):
        one, other = int(hyper.facts[row, SOURCE]), int(hyper.facts[row, OTHER_SOURCE])
        m, t = rates[MISS, field, one], rates[ALTER, field, one]
        n, u = rates[MISS, field, other], rates[ALTER, field, other]
        c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
        d, g = (1.0 - n) * u, (1.0 - n) * (1.0 - u)
        found = (m + c) * (n + d) + e * n + g * m + e * g * hyper.facts[row, SAME]
        found += e * d * hyper.facts[row, SEEN_OTHER] + g * c * hyper.facts[row, SEEN_ONE]
        found += c * d * hyper.facts[row, BOTH]
        product *= max(found, LEAST_OF_TWO)
        if not SMALL < product < LARGE:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


class Rate(NamedTuple):
    """One entry of the law, the field whose rates depend on it, and how many facts there are."""

    hyper: NamedTuple
    state: State
    field: int
    which: int
    pairs: int
    larger: int


@implements(log_target, Rate)
@lean_kernel
def log_rate(target, value):
    """Log posterior of the entry; leaves ``value`` in the law, and its rates noted."""
    hyper, state, field, which = target.hyper, target.state, target.field, target.which
    hyper.law[which] = value
    z = (value - hyper.law_mean[which]) / hyper.law_sd[which]
    if abs(z) > FARTHEST:
        return -math.inf
    note_rates(hyper, field)
    if hyper.own.shape[2] == 1:
        total = log_pairs_alike(hyper, field, target.pairs)
    else:
        total = log_pairs_apart(hyper, field, target.pairs)
    for row in range(hyper.facts.shape[0] - target.larger, hyper.facts.shape[0]):
        k = int(hyper.facts[row, SAME])
        members = int(state.theta[k, MEMBERS])
        total += log_ratio_of_field(hyper, state.theta, k, members, field)
    return total - 0.5 * z * z


@lean_kernel
def slice_rate(hyper, rng, state, field, which, pairs, larger):
    """One slice update of an entry."""
    start = hyper.law[which]
    target = Rate(hyper, state, field, which, pairs, larger)
    width = slice_width(hyper, state, which)
    hyper.law[which] = slice_update(rng, target, start, width, 1e-12 * (1.0 + abs(start)))
    note_rates(hyper, field)


@inline_kernel
def is_chosen(hyper, rng):
    """Whether an entry is updated this time: all of a short law are."""
    share = MOST_AT_ONCE / hyper.law_mean.shape[0]
    return share >= 1.0 or rng.random() < share


@lean_kernel
def update_rates(hyper, rng, state):
    """The entries of all rates that are due, what sources add included, one after the other."""
    measures = rates_are_due(state, LESS_OFTEN_MEASURES)
    for field in range(hyper.kind.shape[0]):
        if hyper.kind[field] == MEASURE and not measures:
            continue
        pairs, larger = gather_facts(hyper, state, field)
        for what in range(SCALE):
            shared = hyper.entry[what, field]
            if shared < 0:
                continue
            if is_chosen(hyper, rng):
                slice_rate(hyper, rng, state, field, shared, pairs, larger)
            for source in range(hyper.own.shape[2]):
                own = hyper.own[what, field, source]
                if own >= 0 and is_chosen(hyper, rng):
                    slice_rate(hyper, rng, state, field, own, pairs, larger)


@lean_kernel
def weigh_rows(hyper, state):
    """log R of all clusters at the law as it is; what was weighed before counts no more."""
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            state.theta[k, NOTED] = NOBODY
            members = int(state.theta[k, MEMBERS])
            state.theta[k, LOG_MARGINAL] = log_members(hyper, state.theta, k, members)
    for i in range(state.spare.shape[0]):
        state.spare[i, NOTED] = NOBODY


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
