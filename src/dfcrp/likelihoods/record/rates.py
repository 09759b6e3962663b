"""Updates of the rates m and t of a field, in every scan where clusters have two members.

With m, c, e of one record and n, d, g of the other, R of two values x and y is

    (m + c)(n + d) + e n + g m + e g 1{x = y} / f(x) + e d S(y, x) + g c S(x, y) + c d (J - 1).

1 / f, S and J do not hang on the rates. They are looked up once for each field, and after that an
evaluation of all clusters of two is a walk over a table. Clusters in which three or more values are
known are weighed as ever; the larger these are, the less often rates are updated, above all those
of measures, which take long to weigh.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import State
from dfcrp.likelihoods.law import (
    FARTHEST,
    MOST_AT_ONCE,
    PERIOD,
    law_is_due,
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
    altered_two,
    log_members,
    log_ratio_of_field,
    logistic,
)

#: How many times less often rates are updated for each member of the usual cluster of more than
#: two, where values are the same or not, or similar; and where they are measures.
LESS_OFTEN, LESS_OFTEN_MEASURES = 0.5, 8.0


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
