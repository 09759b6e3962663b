"""Records of several fields, each a value from a list, copied with distortions from a true value.

A cluster's true value of a field is v with its frequency f(v). A member's value is, independently,

    x ~ f             with probability m (miss),
    x ~ T(· | v)      with probability (1 - m) t (typo: a typing error, a neighbouring number),
    x = v             otherwise (hit),

with m and t learned for each field. T(x | v) is known for the listed pairs of similar values and
zero for all others. A missing value says nothing. The true value is summed over those of the
members and one that none of them shows:

    p(x_1, ..., x_n) = Σ_v f(v) Π_i p(x_i | v)  +  (1 - Σ_v f(v)) Π_i m f(x_i),

the typos of the last term being left out. A row holds the members themselves, as there is no
smaller summary; a cluster has at most as many as a row has room for.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.likelihoods import contract as likelihood
from dfcrp.likelihoods.integrated import empty_row, integrate_out, log_marginal
from dfcrp.likelihoods.law import learn_law, log_fit

#: Columns of a row: members, log p(members); the record weighed last, or NOBODY, and log p with it;
#: then the members themselves.
MEMBERS, LOG_MARGINAL, NOTED, NOTED_MARGINAL, FIRST = 0, 1, 2, 3, 4
NOBODY = -1.0
#: A product this small is turned into a logarithm before another factor makes it vanish.
SMALL_PRODUCT = 1e-150


@learn_law
@integrate_out
class RecordHyper(NamedTuple):
    """Hyperparameters; a record's features are the codes of its values, -1 where missing."""

    first: np.ndarray  # (fields + 1,) int64: where the values of a field begin
    frequency: np.ndarray  # (values,): f
    similar_start: np.ndarray  # (values + 1,) int64 into the next two
    similar: np.ndarray  # int32: similar values of the same field, in increasing order
    typo: np.ndarray  # T(similar | value)
    values: np.ndarray  # (n, fields) float64: all records' codes, to look members up by
    law: np.ndarray  # (2 fields,): log odds of a miss, then of a typo, by field
    law_mean: np.ndarray
    law_sd: np.ndarray


@inline_kernel
def chance_of_typo(hyper, field, true, seen):
    """T(seen | true), by bisection among the values similar to ``true``."""
    at = hyper.first[field] + true
    low, high = hyper.similar_start[at], hyper.similar_start[at + 1]
    while low < high:
        middle = (low + high) // 2
        if hyper.similar[middle] < seen:
            low = middle + 1
        else:
            high = middle
    if low < hyper.similar_start[at + 1] and hyper.similar[low] == seen:
        return hyper.typo[low]
    return 0.0


@inline_kernel
def chance_of_value(hyper, field, true, seen, miss, typo):
    """p(seen | true)."""
    chance = miss * hyper.frequency[hyper.first[field] + seen]
    if seen == true:
        return chance + (1.0 - miss) * (1.0 - typo)
    return chance + (1.0 - miss) * typo * chance_of_typo(hyper, field, true, seen)


@inline_kernel
def logistic(x):
    """1 / (1 + e^-x)."""
    return 1.0 / (1.0 + math.exp(-x))


@lean_kernel
def chance_of_field(hyper, theta, k, members, field):
    """p(values of one field of the row's first members)."""
    fields = hyper.first.shape[0] - 1
    miss, typo = logistic(hyper.law[field]), logistic(hyper.law[fields + field])
    total, unseen, nothing = 0.0, 1.0, 1.0
    for a in range(members):
        true = int(hyper.values[int(theta[k, FIRST + a]), field])
        if true < 0:
            continue
        chance, repeated = 1.0, False
        for b in range(members):
            seen = int(hyper.values[int(theta[k, FIRST + b]), field])
            if seen < 0:
                continue
            repeated = repeated or (b < a and seen == true)
            chance *= chance_of_value(hyper, field, true, seen, miss, typo)
        nothing *= miss * hyper.frequency[hyper.first[field] + true]
        if not repeated:
            share = hyper.frequency[hyper.first[field] + true]
            total += share * chance
            unseen -= share
    if nothing == 1.0:
        return 1.0
    return total + max(unseen, 0.0) * nothing


@lean_kernel
def log_members(hyper, theta, k, members):
    """log p(the row's first members)."""
    total, product = 0.0, 1.0
    for field in range(hyper.first.shape[0] - 1):
        product *= chance_of_field(hyper, theta, k, members, field)
        if product < SMALL_PRODUCT:
            total += math.log(product)
            product = 1.0
    return total + math.log(product)


@implements(empty_row, RecordHyper)
@inline_kernel
def start_row(hyper, theta, k):
    """No member."""
    theta[k, MEMBERS], theta[k, LOG_MARGINAL], theta[k, NOTED] = 0.0, 0.0, NOBODY


@implements(likelihood.log_density, RecordHyper)
@inline_kernel
def log_density(hyper, theta, k, y, i):
    """log p(y_i | members of k); a full row takes no more."""
    members = int(theta[k, MEMBERS])
    if FIRST + members >= theta.shape[1]:
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
    if FIRST + members >= theta.shape[1]:
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
    """log p(members)."""
    return theta[k, LOG_MARGINAL]


@implements(likelihood.update_cluster, RecordHyper)
@inline_kernel
def update_cluster(hyper, rng, prior, data, state, k, proposal):
    """Nothing: a row holds no sums in which rounding errors could gather."""
    return True


@implements(log_fit, RecordHyper)
@lean_kernel
def log_fit_of_field(hyper, data, state, which):
    """log p(the field that entry ``which`` of the law is about)."""
    field = which % (hyper.first.shape[0] - 1)
    total, product = 0.0, 1.0
    for k in range(state.theta.shape[0]):
        if state.size[k] > 0:
            members = int(state.theta[k, MEMBERS])
            product *= chance_of_field(hyper, state.theta, k, members, field)
            if product < SMALL_PRODUCT:
                total += math.log(product)
                product = 1.0
    return total + math.log(product)


@implements(likelihood.record_row, RecordHyper)
@inline_kernel
def record_row(hyper, theta, k, out, row):
    """The number of members: the rest is in the labels."""
    out[row, 0] = theta[k, MEMBERS]
