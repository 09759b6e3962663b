"""Rates of false marks given how many there are, by list and image.

List f has m_fv false marks on image v, of which it covers the share A_fv: Poisson(φ_fv A_fv) with
φ_fv ~ Gamma(κ, κ / φ_f). With φ_fv integrated out m_fv is negative binomial,

    p(m) ∝ Γ(κ + m) / Γ(κ) (φ_f / κ)^m (1 + φ_f A / κ)^−(κ + m),

which is what κ and the φ_f are sliced by. Then φ_fv | m_fv ~ Gamma(κ + m, κ / φ_f + A). Only looks
with markings have a φ_fv: of the others it is known that m = 0. Where κ is ∞ all φ_fv are φ_f,
φ_f is Gamma, and the shape c of its law sees negative binomials.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.priors.detection.kernel import LEAST, Detection, has_decoys
from dfcrp.priors.detection.noticing import (
    is_decoy,
    log_logistic,
    log_silent,
    move_notice,
    readily_with,
    readiness_by,
)

#: Width of the first bracket of the slice updates.
WIDTH = 1.0
#: Beyond e^±FAR no rate is looked for, and beyond e^±LARGEST no shape: laws of such shapes cannot
#: be told apart, and sums of their logarithms would be made of rounding errors.
FAR, LARGEST = 50.0, 15.0


@inline_kernel
def expected_of(prior, f):
    """E(φ_f): a share of the markings of the list, by image."""
    return prior.parameters.false_share[0] * prior.beliefs.markings[f] / prior.looks.covered[f]


@lean_kernel
def log_counts(prior, f, shape, rate):
    """log p(m_fv | κ, φ_f) over the looks of list f, but for what depends on neither."""
    looks, counts, total = prior.looks, prior.counts, 0.0
    if shape == math.inf:
        return counts.false[f] * math.log(rate) - looks.covered[f] * rate
    blank, at_one = 0.0, math.log1p(rate / shape)
    for look in range(looks.list_look[f], looks.list_look[f + 1]):
        false, share = counts.look_false[look], looks.look_share[look]
        if false > 0.0:
            total += math.lgamma(shape + false) - math.lgamma(shape)
            total += false * (math.log(rate) - math.log(shape))
            total -= (shape + false) * math.log1p(rate * share / shape)
        elif share == 1.0:
            blank += 1.0
        else:
            total -= shape * math.log1p(rate * share / shape)
    for kind in range(looks.list_blank[f], looks.list_blank[f + 1]):
        if looks.blank_share[kind] == 1.0:
            blank += looks.blank_count[kind]
        else:
            total -= (
                looks.blank_count[kind] * shape * math.log1p(rate * looks.blank_share[kind] / shape)
            )
    return total - blank * shape * at_one


class RateOfList(NamedTuple):
    """log φ_f given the counts of the list's looks, what it did on each integrated out.

    With decoys the a_dp of its person moves along.
    """

    prior: Detection
    f: int


@inline_kernel
def decoys_noticed(prior, f, rate):
    """a_dp of list f's person if φ_f becomes ``rate`` and a_dp moves as z_p does, and p."""
    p = prior.person[f]
    step = readiness_by(prior, rate) - readiness_by(prior, prior.parameters.false_marks[f])
    return prior.parameters.notice[prior.real, p] + step / prior.lists[p], p


@implements(log_target, RateOfList)
@lean_kernel
def log_rate_of_list(target, value):
    """The Gamma law, what is known of false marks, and of decoys."""
    prior, f, parameters = target.prior, target.f, target.prior.parameters
    if abs(value) > FAR:
        return -math.inf
    shape, rate = parameters.false_shape[0], math.exp(value)
    total = shape * value - shape * rate / expected_of(prior, f)
    total += log_counts(prior, f, parameters.look_shape[0], rate)
    if has_decoys(prior):
        notice, p = decoys_noticed(prior, f, rate)
        if not is_decoy(prior, readily_with(prior, p, notice)):
            return -math.inf
        step = (notice - parameters.notice[prior.real, p]) / prior.lists.shape[0]
        total += log_silent(prior, prior.real, step)
        total += log_logistic(prior, prior.real, p, notice, parameters.slope[p])
    return total


class ShapeOfLooks(NamedTuple):
    """log κ given the numbers of false marks."""

    prior: Detection


@implements(log_target, ShapeOfLooks)
@lean_kernel
def log_shape_of_looks(target, value):
    """Negative binomials, and the log-normal prior."""
    prior, beliefs = target.prior, target.prior.beliefs
    if abs(value) > LARGEST:
        return -math.inf
    z = (value - math.log(beliefs.look_shape)) / beliefs.look_shape_sd
    total, shape = -0.5 * z * z, math.exp(value)
    for f in range(prior.person.shape[0]):
        total += log_counts(prior, f, shape, prior.parameters.false_marks[f])
    return total


class ShapeOfLists(NamedTuple):
    """log c, the shape of the law of the φ_f."""

    prior: Detection


@implements(log_target, ShapeOfLists)
@lean_kernel
def log_shape_of_lists(target, value):
    """The log-normal prior, and Gamma laws; where κ is ∞ negative binomials, φ integrated out."""
    prior, beliefs, parameters = target.prior, target.prior.beliefs, target.prior.parameters
    if abs(value) > LARGEST:
        return -math.inf
    shape = math.exp(value)
    z = (value - math.log(beliefs.false_shape)) / beliefs.false_shape_sd
    total, alike = -0.5 * z * z, are_known(prior)
    for f in range(prior.person.shape[0]):
        rate = shape / expected_of(prior, f)
        if alike:
            covered, false = prior.looks.covered[f], prior.counts.false[f]
            total -= shape * math.log1p(covered / rate)
            if false > 0.0:
                total += math.lgamma(shape + false) - math.lgamma(shape)
                total -= false * math.log(rate + covered)
        else:
            found = max(parameters.false_marks[f], LEAST)
            total += shape * (math.log(rate) + math.log(found)) - math.lgamma(shape) - rate * found
    return total


@inline_kernel
def slice_log(rng, target, start):
    """One slice update of the logarithm of a positive number."""
    return math.exp(slice_update(rng, target, math.log(start), WIDTH, 1e-13))


@inline_kernel
def are_known(prior):
    """Whether φ is Gamma given the counts: one rate for all images, and no decoys."""
    return prior.parameters.look_shape[0] == math.inf and not has_decoys(prior)


@lean_kernel
def update_list(rng, prior, f):
    """φ of a list, and with decoys how readily its person marks these."""
    parameters = prior.parameters
    if are_known(prior):
        shape = parameters.false_shape[0] + prior.counts.false[f]
        rate = parameters.false_shape[0] / expected_of(prior, f) + prior.looks.covered[f]
        parameters.false_marks[f] = rng.standard_gamma(shape) / rate
        return
    start = math.log(min(max(parameters.false_marks[f], math.exp(-FAR)), math.exp(FAR)))
    rate = math.exp(slice_update(rng, RateOfList(prior, f), start, WIDTH, 1e-13))
    if has_decoys(prior):
        notice, p = decoys_noticed(prior, f, rate)
        move_notice(prior, prior.real, p, notice - parameters.notice[prior.real, p])
    parameters.false_marks[f] = rate


@lean_kernel
def update_looks(rng, prior, f):
    """φ of a list on the images that it has markings on."""
    parameters, looks = prior.parameters, prior.looks
    shape, rate = parameters.look_shape[0], parameters.false_marks[f]
    for look in range(looks.list_look[f], looks.list_look[f + 1]):
        if shape == math.inf:
            parameters.false_marks_on[look] = rate
        else:
            drawn = rng.standard_gamma(shape + prior.counts.look_false[look])
            parameters.false_marks_on[look] = drawn / (shape / rate + looks.look_share[look])


@inline_kernel
def update_false_share(rng, prior):
    """q given φ: 1/q is Gamma."""
    parameters, beliefs = prior.parameters, prior.beliefs
    experts = prior.person.shape[0]
    rate = beliefs.share_rate
    for f in range(experts):
        expected = beliefs.markings[f] / prior.looks.covered[f]
        rate += parameters.false_shape[0] * parameters.false_marks[f] / expected
    shape = beliefs.share_shape + experts * parameters.false_shape[0]
    parameters.false_share[0] = rate / rng.standard_gamma(shape)


@lean_kernel
def update_false_marks(rng, prior):
    """All rates given the counts.

    The shape of the lists' law stays as it is if it is known.
    """
    parameters, beliefs = prior.parameters, prior.beliefs
    if beliefs.false_shape_sd > 0.0:
        parameters.false_shape[0] = slice_log(rng, ShapeOfLists(prior), parameters.false_shape[0])
    if beliefs.look_shape_sd > 0.0:
        parameters.look_shape[0] = slice_log(rng, ShapeOfLooks(prior), parameters.look_shape[0])
    for f in range(prior.person.shape[0]):
        update_list(rng, prior, f)
        update_looks(rng, prior, f)
    update_false_share(rng, prior)
