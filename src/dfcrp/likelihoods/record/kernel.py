"""Records of several fields, each copied with faults from the true value of its object.

In a field with base distribution f a cluster has a true value v ~ f. Each member's value x is,
independently of the others given v,

    unrelated, x ~ f              with probability m (miss),
    altered,   x ~ f(x) S(x, v)   with probability c = (1 - m) t (a typo, a measurement),
    the same,  x = v              with probability e = (1 - m) (1 - t),

with m and t learned. What is computed is the ratio R of the probability of the members' values to
that of unrelated values, Π f(x_i). Summed over who is unrelated, altered or the same it is

    R = Σ_a f(a) [Π_i (N_i(a) + e_i 1{x_i = a} / f(a)) - Π_i N_i(a)]
        + Σ_B Π_(i not in B) m_i Π_(i in B) c_i J(B),        N_i(a) = m_i + c_i S(x_i, a),

where a runs over the values that members show, B over the sets of altered members while none is the
same, and J(B) = Σ_v f(v) Π_B S(x_i, v), which is 1 for up to one member. So R = 1 for a cluster of
one: a record alone says nothing of m and t. A missing value is left out.

Two different objects may be alike in several fields at once (``relations``). So log R of a cluster
of n is the sum over its fields less 2 / n times the sum over its pairs of D, a table as well: n - 1
times their mean. It does not depend on what is learned.

Text: S and J of two are tables over pairs of similar values, zero for all others. J of three is the
mean of the products of two of their J, as if each value of two were altered from the third; it
counts in clusters of up to four. More that are all altered from a value nobody shows say nothing
(J = 1). Measures (numbers, places):
S(x, v) = N(x; v, s²) / g(x) with g the density of f and a learned s, and J(B) in closed form, as g
varies little over s. A source (list) may have its own m, t and s.

A row holds the members themselves, as there is no smaller summary; a cluster has at most as many as
a row has room for. Room to add up the sets B follows them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I4, I8, F8x2, F8x3, I4x2, I8x2, I8x3, frame
from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import empty_row, integrate_out, log_marginal
from dfcrp.likelihoods.law import log_fit

#: Columns of a row: members, log R of them; the record weighed last, or NOBODY, and log R with it;
#: then the members themselves.
MEMBERS, LOG_MARGINAL, NOTED, NOTED_MARGINAL, FIRST = 0, 1, 2, 3, 4
NOBODY = -1.0
#: What is learned of a field.
MISS, ALTER, SCALE = 0, 1, 2
#: How values of a field are compared.
SAME_OR_NOT, SIMILAR, MEASURE = 0, 1, 2
#: Columns of what is known of two members' values: 1 / f if they are the same, S both ways, J - 1,
#: and the members' sources.
SAME, SEEN_OTHER, SEEN_ONE, BOTH, SOURCE, OTHER_SOURCE, FACTS = 0, 1, 2, 3, 4, 5, 6
#: Columns of one set B: weight, members, precision, mean (3), sum of log densities.
WEIGHT, COUNT, PRECISION, MEAN, DENSITY, SET_WIDTH = 0, 1, 2, 3, 6, 7
#: Sets that are kept; the least probable are given up, so up to four members are exact.
MOST_SETS = 16
#: Members of a cluster up to which three who are all altered count: of more, some are the same.
FEW_MEMBERS = 4
#: More members than this may make one product vanish or overflow by itself.
MANY_MEMBERS = 12
LEAST = 1e-300
#: One logarithm for many ratios of two members: their product is taken while it is within these
#: bounds, and a ratio counts as this at least.
SMALL, LARGE, LEAST_OF_TWO = 1e-100, 1e100, 1e-200


@integrate_out
@frame
class RecordHyper(NamedTuple):
    """Hyperparameters; a record's features are the codes of its values and its own number."""

    kind: I8  # (fields,) int64: SAME_OR_NOT, SIMILAR or MEASURE
    first: I8  # (fields + 1,) int64: where the values of a field begin
    share: F8  # (values,) float64: f
    similar_start: I8  # (values + 1,) int64 into the next three
    similar: I4  # (pairs,) int32: similar values of the same field, in increasing order
    altered: F8  # (pairs,) float64: S
    both_altered: F8  # (pairs,) float64: J of two
    place: F8x2  # (values, 3) float64: coordinates of a measure
    log_density: F8  # (values,) float64: log g of a measure
    dimensions: F8  # (fields,) float64: of a measure, 1 or 2
    rounding: F8  # (fields,) float64: variance that rounding adds to a measure
    alike_start: I8  # (n + 1,) int64 into the next two
    alike: I4  # (pairs,) int32: records that may be of a related object, in increasing order
    excess: F8  # (pairs,) float64: D
    values: I4x2  # (n, fields) int32: all records' codes, -1 where missing
    source: I4  # (n,) int32: who listed a record
    most: I8  # (1,) int64: members that a row has room for
    entry: I8x2  # (3, fields) int64: place of log odds and log scale in the law, or -1
    own: I8x3  # (3, fields, sources) int64: what a source adds to it, or -1
    about: I8  # (entries of the law,) int64: the field it is of
    law: F8  # (entries,) float64
    law_mean: F8  # (entries,) float64
    law_sd: F8  # (entries,) float64
    noted: F8x3  # (2, fields, sources): log odds of which ``rates`` has the rates
    rates: F8x3  # (2, fields, sources): m and t
    facts: F8x2  # (clusters of two or more, FACTS): room for ``record.rates``


def with_room(hyper: RecordHyper) -> RecordHyper:
    """The same with room of its own to work in, where no rate is noted."""
    fields, sources = hyper.own.shape[1:]
    return hyper._replace(
        noted=np.full((2, fields, sources), np.nan),
        rates=np.zeros((2, fields, sources)),
        facts=np.zeros((len(hyper.values) // 2 + 1, FACTS)),
    )


@likelihood.of_chain.register(RecordHyper)
def of_chain(hyper: RecordHyper, law: NDArray[np.float64]) -> RecordHyper:
    """The hyperparameters as one chain uses them."""
    return with_room(hyper._replace(law=law))


def sets_of(members: int) -> int:
    """Sets of altered members that are kept for clusters of up to so many."""
    return int(min(2.0 ** min(members, 10), MOST_SETS))


def row_width(members: int, measures: bool) -> int:
    """Numbers that a cluster's row takes."""
    return FIRST + members + (SET_WIDTH * sets_of(members) if measures else 0)


@inline_kernel
def learned(hyper, what, field, record):
    """Log odds or log scale of a field, of the record's source."""
    found = hyper.law[hyper.entry[what, field]]
    own = hyper.own[what, field, hyper.source[record]]
    if own >= 0:
        found += hyper.law[own]
    return found


@inline_kernel
def logistic(x):
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + math.exp(-x))


@inline_kernel
def rate(hyper, what, field, record):
    """m or t; exponentials would be a third of the time, so those of the law are noted.

    They are noted between the sweeps, as several threads may ask for them within.
    """
    odds = learned(hyper, what, field, record)
    source = hyper.source[record]
    if source < hyper.noted.shape[2] and hyper.noted[what, field, source] == odds:
        return hyper.rates[what, field, source]
    return logistic(odds)


@inline_kernel
def miss_rate(hyper, field, record):
    """m."""
    return rate(hyper, MISS, field, record)


@inline_kernel
def alter_rate(hyper, field, record):
    """t; none for values that are the same or not."""
    if hyper.entry[ALTER, field] < 0:
        return 0.0
    return rate(hyper, ALTER, field, record)


@inline_kernel
def precision(hyper, field, record):
    """1 / s² with the rounding in it."""
    scale = math.exp(learned(hyper, SCALE, field, record))
    return 1.0 / (scale * scale + hyper.rounding[field])


@inline_kernel
def listed_at(hyper, field, one, other):
    """Where the pair of values is listed, or -1; by bisection."""
    at = hyper.first[field] + one
    low, high = hyper.similar_start[at], hyper.similar_start[at + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if hyper.similar[middle] < other:
            low = middle + 1
        else:
            high = middle
    if low < end and hyper.similar[low] == other:
        return low
    return -1


@inline_kernel
def squared_distance(hyper, one, other):
    """Between two values of a measure, by their places among all values."""
    total = 0.0
    for axis in range(3):
        apart = hyper.place[one, axis] - hyper.place[other, axis]
        total += apart * apart
    return total


@inline_kernel
def peak(hyper, field, record, value):
    """S of a measure at no distance."""
    d = hyper.dimensions[field]
    at = hyper.first[field] + value
    return math.exp(
        0.5 * d * math.log(precision(hyper, field, record) / (2.0 * math.pi))
        - hyper.log_density[at]
    )


@inline_kernel
def ratio_if_altered(hyper, field, record, seen, true):
    """S(seen, true)."""
    if hyper.kind[field] == MEASURE:
        first = hyper.first[field]
        apart = squared_distance(hyper, first + seen, first + true)
        return peak(hyper, field, record, seen) * math.exp(
            -0.5 * precision(hyper, field, record) * apart
        )
    at = listed_at(hyper, field, true, seen)
    return hyper.altered[at] if at >= 0 else 0.0


@inline_kernel
def unit(hyper, field, record, value, many):
    """What a member's factors are divided by, so that products of many stay finite."""
    if not many:
        return 1.0
    largest = 1.0 + 1.0 / hyper.share[hyper.first[field] + value]
    if hyper.kind[field] == MEASURE:
        largest += peak(hyper, field, record, value)
    return largest


@lean_kernel
def ratio_given(hyper, theta, k, members, field, true, many):
    """f(a) [Π_i (N_i(a) + e_i 1{x_i = a} / f(a)) - Π_i N_i(a)] for a = ``true``."""
    share = hyper.share[hyper.first[field] + true]
    together, without = 1.0, 1.0
    for b in range(members):
        record = int(theta[k, FIRST + b])
        seen = hyper.values[record, field]
        if seen < 0:
            continue
        miss, alter = miss_rate(hyper, field, record), alter_rate(hyper, field, record)
        size = unit(hyper, field, record, seen, many)
        other = miss
        if alter > 0.0 and (seen != true or hyper.kind[field] == MEASURE):
            other += (1.0 - miss) * alter * ratio_if_altered(hyper, field, record, seen, true)
        without *= other / size
        if seen == true:
            other += (1.0 - miss) * (1.0 - alter) / share
        together *= other / size
    return share * (together - without)


@lean_kernel
def nobody_same_of_text(hyper, theta, k, members, field, many):
    """Σ_B ... of a field with tables."""
    all_misses, product, known = 1.0, 1.0, 0
    for a in range(members):
        record = int(theta[k, FIRST + a])
        seen = hyper.values[record, field]
        if seen >= 0:
            miss, alter = miss_rate(hyper, field, record), alter_rate(hyper, field, record)
            size = unit(hyper, field, record, seen, many)
            all_misses *= miss / size
            product *= (miss + (1.0 - miss) * alter) / size
            known += 1
    if hyper.kind[field] == SAME_OR_NOT:
        return product
    for a in range(members):
        one = int(theta[k, FIRST + a])
        if hyper.values[one, field] < 0:
            continue
        for b in range(a):
            other = int(theta[k, FIRST + b])
            if hyper.values[other, field] >= 0:
                both = ratio_of_altered(hyper, field, one, other)
                odds = altered_odds(hyper, field, one) * altered_odds(hyper, field, other)
                excess = both - 1.0
                if known <= FEW_MEMBERS:
                    excess += excess_of_three(hyper, theta, k, b, field, one, other, both)
                product += all_misses * odds * excess
    return product


@inline_kernel
def ratio_of_altered(hyper, field, one, other):
    """J of two records' values of text."""
    x, y = hyper.values[one, field], hyper.values[other, field]
    at = listed_at(hyper, field, x, y) if x != y else -1
    return hyper.both_altered[at] if at >= 0 else 0.0


@lean_kernel
def excess_of_three(hyper, theta, k, before, field, one, other, both):
    """Σ (J - 1) c / m over the third of three, one of the row's first members ``before``."""
    total = 0.0
    for a in range(before):
        third = int(theta[k, FIRST + a])
        if hyper.values[third, field] >= 0:
            with_one = ratio_of_altered(hyper, field, one, third)
            with_other = ratio_of_altered(hyper, field, other, third)
            three = (both * (with_one + with_other) + with_one * with_other) / 3.0
            total += altered_odds(hyper, field, third) * (three - 1.0)
    return total


@inline_kernel
def altered_odds(hyper, field, record):
    """c / m."""
    miss = miss_rate(hyper, field, record)
    return (1.0 - miss) * alter_rate(hyper, field, record) / miss


@inline_kernel
def next_member(theta, k, members, last):
    """The member with the smallest number above ``last``: the order in which sets are added up."""
    found = -1
    for a in range(members):
        record = int(theta[k, FIRST + a])
        if record > last and (found < 0 or record < found):
            found = record
    return found


@lean_kernel
def nobody_same_of_measure(hyper, theta, k, members, field, many):
    """Σ_B ... of a measure: sets are built member by member, the least probable given up."""
    start = FIRST + hyper.most[0]
    most = (theta.shape[1] - start) // SET_WIDTH
    sets, record = 1, -1
    theta[k, start + WEIGHT], theta[k, start + COUNT] = 1.0, 0.0
    for _ in range(members):
        record = next_member(theta, k, members, record)
        seen = hyper.values[record, field]
        if seen < 0:
            continue
        size = unit(hyper, field, record, seen, many)
        miss = miss_rate(hyper, field, record)
        alter = (1.0 - miss) * alter_rate(hyper, field, record)
        had = sets
        for which in range(had):
            at = start + SET_WIDTH * which
            weight = theta[k, at + WEIGHT] * alter / size
            weight *= ratio_of_joining(hyper, theta, k, at, field, record, seen)
            theta[k, at + WEIGHT] *= miss / size
            if sets < most:
                place = sets
                sets += 1
            else:
                place = least_set(theta, k, start, which, had, sets)
                if theta[k, start + SET_WIDTH * place + WEIGHT] >= weight:
                    continue
            put_set(hyper, theta, k, at, start + SET_WIDTH * place, field, record, seen, weight)
    total = 0.0
    for which in range(sets):
        total += theta[k, start + SET_WIDTH * which + WEIGHT]
    return total


@inline_kernel
def least_set(theta, k, start, last, had, sets):
    """The set of the smallest weight, of those that know of the record: up to ``last``, or new."""
    found = 0
    for which in range(1, sets):
        known = which <= last or which >= had
        if known and theta[k, start + SET_WIDTH * which] < theta[k, start + SET_WIDTH * found]:
            found = which
    return found


@inline_kernel
def ratio_of_joining(hyper, theta, k, at, field, record, seen):
    """J(B and the record) / J(B)."""
    count = theta[k, at + COUNT]
    if count == 0.0:
        return 1.0
    value = hyper.first[field] + seen
    own, others = precision(hyper, field, record), theta[k, at + PRECISION]
    apart = 0.0
    for axis in range(3):
        step = hyper.place[value, axis] - theta[k, at + MEAN + axis]
        apart += step * step
    both = own * others / (own + others)
    density = theta[k, at + DENSITY]
    # The density where the true value is: the geometric mean of those at the members.
    change = (density + hyper.log_density[value]) / (count + 1.0) - density / count
    return math.exp(
        0.5 * hyper.dimensions[field] * math.log(both / (2.0 * math.pi))
        - 0.5 * both * apart
        + change
        - hyper.log_density[value]
    )


@inline_kernel
def put_set(hyper, theta, k, at, to, field, record, seen, weight):
    """The set at ``at`` with the record as one more, written to ``to``."""
    value = hyper.first[field] + seen
    count, own = theta[k, at + COUNT], precision(hyper, field, record)
    others = theta[k, at + PRECISION] if count > 0.0 else 0.0
    density = theta[k, at + DENSITY] if count > 0.0 else 0.0
    for axis in range(3):
        mean = theta[k, at + MEAN + axis] if count > 0.0 else 0.0
        theta[k, to + MEAN + axis] = (others * mean + own * hyper.place[value, axis]) / (
            others + own
        )
    theta[k, to + WEIGHT], theta[k, to + COUNT] = weight, count + 1.0
    theta[k, to + PRECISION] = others + own
    theta[k, to + DENSITY] = density + hyper.log_density[value]


@inline_kernel
def altered_two(hyper, field, one, other, x, y):
    """S(y, x), S(x, y) and J of two members with the values x and y; tables are symmetric."""
    if hyper.kind[field] == MEASURE:
        first = hyper.first[field]
        apart = squared_distance(hyper, first + x, first + y)
        p, q = precision(hyper, field, one), precision(hyper, field, other)
        both, d = p * q / (p + q), hyper.dimensions[field]
        middle = 0.5 * (hyper.log_density[first + x] + hyper.log_density[first + y])
        return (
            peak(hyper, field, other, y) * math.exp(-0.5 * q * apart),
            peak(hyper, field, one, x) * math.exp(-0.5 * p * apart),
            math.exp(0.5 * d * math.log(both / (2.0 * math.pi)) - 0.5 * both * apart - middle),
        )
    at = -1 if x == y else listed_at(hyper, field, x, y)
    if at < 0:
        return 0.0, 0.0, 0.0
    return hyper.altered[at], hyper.altered[at], hyper.both_altered[at]


@lean_kernel
def ratio_of_two(hyper, field, one, other):
    """R of one field of two records; most clusters have no more.

    Who is the same, altered or unrelated, written out: with x = y both may be the same.
    """
    x, y = hyper.values[one, field], hyper.values[other, field]
    if x < 0 or y < 0:
        return 1.0
    m, t = miss_rate(hyper, field, one), alter_rate(hyper, field, one)
    n, u = m, t
    if hyper.source[one] != hyper.source[other]:
        n, u = miss_rate(hyper, field, other), alter_rate(hyper, field, other)
    c, e = (1.0 - m) * t, (1.0 - m) * (1.0 - t)
    d, g = (1.0 - n) * u, (1.0 - n) * (1.0 - u)
    total = (m + c) * (n + d) + e * n + g * m
    if x == y:
        total += e * g / hyper.share[hyper.first[field] + x]
    if c * d > 0.0:
        seen_y, seen_x, both = altered_two(hyper, field, one, other, x, y)
        total += e * d * seen_y + g * c * seen_x + c * d * (both - 1.0)
    return max(total, LEAST_OF_TWO)


@lean_kernel
def log_ratio_of_field(hyper, theta, k, members, field):
    """log R of one field of the row's first members."""
    known, one, other = 0, -1, -1
    for a in range(members):
        record = int(theta[k, FIRST + a])
        if hyper.values[record, field] >= 0:
            known += 1
            one, other = other, record
    if known <= 1:
        return 0.0
    if known == 2:
        return math.log(ratio_of_two(hyper, field, one, other))
    many = known > MANY_MEMBERS
    units = 0.0
    if hyper.kind[field] == MEASURE:
        total = nobody_same_of_measure(hyper, theta, k, members, field, many)
    else:
        total = nobody_same_of_text(hyper, theta, k, members, field, many)
    for a in range(members):
        record = int(theta[k, FIRST + a])
        true = hyper.values[record, field]
        if true < 0:
            continue
        if many:
            units += math.log(unit(hyper, field, record, true, many))
        repeated = False
        for b in range(a):
            repeated = repeated or hyper.values[int(theta[k, FIRST + b]), field] == true
        if not repeated:
            total += ratio_given(hyper, theta, k, members, field, true, many)
    return math.log(max(total, LEAST)) + units


@inline_kernel
def excess_of(hyper, one, other):
    """D of two records; by bisection."""
    low, high = hyper.alike_start[one], hyper.alike_start[one + 1]
    end = high
    while low < high:
        middle = (low + high) // 2
        if hyper.alike[middle] < other:
            low = middle + 1
        else:
            high = middle
    if low < end and hyper.alike[low] == other:
        return hyper.excess[low]
    return 0.0


@lean_kernel
def excess_of_members(hyper, theta, k, members):
    """(2 / n) Σ D of the row's first n members."""
    total = 0.0
    for a in range(members):
        for b in range(a):
            total += excess_of(hyper, int(theta[k, FIRST + a]), int(theta[k, FIRST + b]))
    return 2.0 * total / members


@lean_kernel
def log_members(hyper, theta, k, members):
    """log R of the row's first members."""
    total = 0.0
    if members == 2:
        product = 1.0
        one, other = int(theta[k, FIRST]), int(theta[k, FIRST + 1])
        total = -excess_of(hyper, one, other)
        for field in range(hyper.kind.shape[0]):
            product *= ratio_of_two(hyper, field, one, other)
            if not SMALL < product < LARGE:
                total += math.log(product)
                product = 1.0
        return total + math.log(product)
    if members > 2:
        total = -excess_of_members(hyper, theta, k, members)
        for field in range(hyper.kind.shape[0]):
            total += log_ratio_of_field(hyper, theta, k, members, field)
    return total


@implements(empty_row, RecordHyper)
@inline_kernel
def start_row(hyper, theta, k):
    """No member."""
    theta[k, MEMBERS], theta[k, LOG_MARGINAL], theta[k, NOTED] = 0.0, 0.0, NOBODY


@implements(likelihood.log_density, RecordHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log R with record i less that without; a full row takes no more."""
    members = int(theta[k, MEMBERS])
    if members >= hyper.most[0]:
        return -math.inf
    theta[k, FIRST + members] = theta[k, NOTED] = y[i, y.shape[1] - 1]
    theta[k, NOTED_MARGINAL] = log_members(hyper, theta, k, members + 1)
    return theta[k, NOTED_MARGINAL] - theta[k, LOG_MARGINAL]


@implements(likelihood.add_member, RecordHyper)
@inline_kernel
def add_member(hyper, theta, k, y, i):
    """Record i joins; a row that is full becomes impossible, which only a proposal can be."""
    members = int(theta[k, MEMBERS])
    theta[k, MEMBERS] += 1.0
    if members >= hyper.most[0]:
        theta[k, LOG_MARGINAL] = -math.inf
        return
    record = y[i, y.shape[1] - 1]
    theta[k, FIRST + members] = record
    if theta[k, NOTED] == record:  # weighed just before, as it nearly always is
        theta[k, LOG_MARGINAL] = theta[k, NOTED_MARGINAL]
    else:
        theta[k, LOG_MARGINAL] = log_members(hyper, theta, k, members + 1)
    theta[k, NOTED] = NOBODY


@implements(likelihood.remove_member, RecordHyper)
@inline_kernel
def remove_member(hyper, theta, k, y, i):
    """Record i leaves; the last takes its place."""
    members = int(theta[k, MEMBERS])
    for a in range(members):
        if theta[k, FIRST + a] == y[i, y.shape[1] - 1]:
            theta[k, FIRST + a] = theta[k, FIRST + members - 1]
            break
    theta[k, MEMBERS] -= 1.0
    theta[k, LOG_MARGINAL] = log_members(hyper, theta, k, members - 1)
    theta[k, NOTED] = NOBODY


@implements(log_marginal, RecordHyper)
@inline_kernel
def row_marginal(hyper, theta, k):
    """log R of the members."""
    return theta[k, LOG_MARGINAL]


@implements(likelihood.update_cluster, RecordHyper)
@inline_kernel
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Nothing: a row holds no sums in which rounding errors could gather."""
    return True


@implements(log_fit, RecordHyper)
@lean_kernel
def log_fit_of_field(hyper, data, state, which):
    """log R of the field that entry ``which`` of the law is about; R is 1 for clusters of one."""
    field = hyper.about[which]
    total, product = 0.0, 1.0
    for k in range(state.theta.shape[0]):
        if state.size[k] == 2:
            one, other = int(state.theta[k, FIRST]), int(state.theta[k, FIRST + 1])
            product *= ratio_of_two(hyper, field, one, other)
            if not SMALL < product < LARGE:
                total += math.log(product)
                product = 1.0
        elif state.size[k] > 2:
            members = int(state.theta[k, MEMBERS])
            total += log_ratio_of_field(hyper, state.theta, k, members, field)
    return total + math.log(product)


@implements(likelihood.record_row, RecordHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """The number of members: the rest is in the labels."""
    out[row, 0] = theta[k, MEMBERS]
