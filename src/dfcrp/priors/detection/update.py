"""Updates of the detection prior's parameters given the partition.

For a moment every cluster gets a class, or is called false if it is one marking; every seen object
gets its number of missed ones, and each person who may have noticed an object without listing it is
asked whether they did. Given all that the parameters part: Λ, φ and 1/q are Gamma, π Dirichlet,
r Beta, the eases normal (above their bound), and (a_gp, b_p) have the likelihood of a logistic
regression on counts by level. What was filled in is then forgotten: the update leaves
p(parameters | partition, sizes) unchanged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.detection.kernel import (
    CLASSES,
    Detection,
    class_weights,
    is_again,
    level_of,
    log_absent,
    log_noticed,
    log_unlisted,
    rebuild_tables,
)

#: What ``draw_class`` says of a marking that is no object's.
FALSE = CLASSES
#: Width of the first bracket of the slice updates.
WIDTH = 1.0
#: Updates of the parameters in a scan.
ROUNDS = 3
#: Nothing is listed with certainty by someone with several lists.
ALMOST_ONE = 1.0 - 1e-12
#: Nor left out with certainty.
TINY = 1e-12


@lean_kernel
def draw_class(rng, prior, data, state, k, level):
    """The class of cluster k given its members, or FALSE."""
    first, second, third, fourth = class_weights(prior, data, state, k, level)
    largest = max(first, second, third, fourth)
    false = -math.inf
    if state.size[k] == 1:
        phi = prior.parameters.false[data.family[state.head[k]]]
        false = math.log(max(phi, 1e-300))
        largest = max(largest, false)
    w1, w2 = math.exp(first - largest), math.exp(second - largest)
    w3, w4 = math.exp(third - largest), math.exp(fourth - largest)
    threshold = rng.random() * (w1 + w2 + w3 + w4 + math.exp(false - largest))
    if threshold < w1:
        return 0
    if threshold < w1 + w2:
        return 1
    if threshold < w1 + w2 + w3:
        return 2
    if threshold < w1 + w2 + w3 + w4:
        return 3
    return FALSE if false > -math.inf else 0


@inline_kernel
def draw_missed(rng, seen, log_missed):
    """How many missed objects go with so many seen ones: a sum of geometric numbers."""
    missed = 0.0
    for _ in range(int(seen)):
        missed += math.floor(rng.standard_exponential() / max(-log_missed, 1e-12))
    return missed


@inline_kernel
def draw_binomial(rng, tries, probability):
    """Successes in so many tries."""
    successes = 0.0
    for _ in range(int(tries)):
        successes += rng.random() < probability
    return successes


@lean_kernel
def count_clusters_by_class(rng, hyper, prior, data, state):
    """Draw every cluster's class, and add up who found what."""
    counts = prior.counts
    counts.seen[:] = 0.0
    counts.noticed[:] = 0.0
    counts.listed[:] = 0.0
    counts.false[:] = 0.0
    for k in range(state.theta.shape[0]):
        if state.size[k] <= 0:
            continue
        level = level_of(prior, likelihood.size_of(hyper, state.theta, k))
        g = draw_class(rng, prior, data, state, k, level)
        if g == FALSE:
            counts.false[data.family[state.head[k]]] += 1.0
            continue
        counts.seen[level, g] += 1.0
        j = state.head[k]
        while j != NONE:
            family = data.family[j]
            counts.listed[g, family] += 1.0
            if not is_again(prior, data, state, k, j, j):
                counts.noticed[level, g, prior.person[family]] += 1.0
            j = state.after[j]


@lean_kernel
def fill_in_missed(rng, prior):
    """Add the objects nobody marked, and who noticed an object without listing it."""
    counts, parameters = prior.counts, prior.parameters
    for level in range(prior.away.shape[0]):
        for g in range(parameters.weight.shape[0]):
            seen = counts.seen[level, g]
            counts.total[level, g] = seen
            if seen > 0.0:
                counts.total[level, g] += draw_missed(rng, seen, prior.tables.missed[level, g])
    for p in range(prior.lists.shape[0]):
        if prior.lists[p] == 1:
            continue
        for g in range(parameters.weight.shape[0]):
            unlisted = log_unlisted(prior, g, p)
            for level in range(prior.away.shape[0]):
                absent = counts.total[level, g] - counts.noticed[level, g, p]
                if absent > 0.0:
                    log_s, log_not = log_noticed(parameters, g, p, prior.away[level])
                    kept = math.exp(log_s + unlisted - log_absent(log_s, log_not, unlisted))
                    counts.noticed[level, g, p] += draw_binomial(rng, absent, kept)


@lean_kernel
def log_logistic(prior, g, p, skill, slope):
    """log likelihood of (a_gp, b_p) from the counts of class g."""
    total, noticed, away = prior.counts.total, prior.counts.noticed, prior.away
    value = 0.0
    for level in range(away.shape[0]):
        if total[level, g] > 0.0:
            logit = skill + slope * away[level]
            value += noticed[level, g, p] * logit
            value -= total[level, g] * (max(logit, 0.0) + math.log1p(math.exp(-abs(logit))))
    return value


@inline_kernel
def log_skill(prior, g, p, skill):
    """log p(a_gp | the rest) up to a constant."""
    z = (skill - prior.parameters.ease[g]) / prior.beliefs.skill_sd
    return -0.5 * z * z + log_logistic(prior, g, p, skill, prior.parameters.slope[p])


@lean_kernel
def log_slope(prior, p, slope):
    """log p(b_p | the rest) up to a constant."""
    z = slope / prior.beliefs.slope_sd
    value = -0.5 * z * z
    for g in range(prior.parameters.weight.shape[0]):
        value += log_logistic(prior, g, p, prior.parameters.skill[g, p], slope)
    return value


class Curve(NamedTuple):
    """A skill a_gp, or the slope b_p if the class is NONE, given the rest."""

    prior: Detection
    g: int
    p: int


@implements(log_target, Curve)
@inline_kernel
def log_curve(target, value):
    """Its conditional."""
    prior, g, p = target.prior, target.g, target.p
    return log_slope(prior, p, value) if g == NONE else log_skill(prior, g, p, value)


@inline_kernel
def slice_curve(rng, prior, g, p, start):
    """One slice update of a skill or slope."""
    return slice_update(rng, Curve(prior, g, p), start, WIDTH, 1e-13 * (1.0 + abs(start)))


@inline_kernel
def normal_above(rng, mean, sd, least):
    """A normal number, given that it is not below ``least``."""
    bound = (least - mean) / sd
    if bound < 0.5:
        z = rng.standard_normal()
        while z < bound:
            z = rng.standard_normal()
        return mean + sd * z
    # Far out the normal falls like an exponential of this rate, which bounds it from above.
    rate = 0.5 * (bound + math.sqrt(bound * bound + 4.0))
    while True:
        z = bound + rng.standard_exponential() / rate
        if rng.standard_exponential() > 0.5 * (z - rate) ** 2:
            return mean + sd * z


@lean_kernel
def update_curves(rng, prior):
    """Skills, eases and slopes given the counts."""
    parameters, beliefs = prior.parameters, prior.beliefs
    persons = prior.lists.shape[0]
    for g in range(parameters.weight.shape[0]):
        for p in range(persons):
            parameters.skill[g, p] = slice_curve(rng, prior, g, p, parameters.skill[g, p])
        skills = 0.0
        for p in range(persons):
            skills += parameters.skill[g, p]
        own, each = 1.0 / beliefs.ease_sd**2, 1.0 / beliefs.skill_sd**2
        precision = own + persons * each
        mean = (own * beliefs.ease_mean + each * skills) / precision
        parameters.ease[g] = normal_above(rng, mean, 1.0 / math.sqrt(precision), beliefs.ease_least)
    if prior.away.shape[0] > 1:
        for p in range(persons):
            parameters.slope[p] = slice_curve(rng, prior, NONE, p, parameters.slope[p])


@lean_kernel
def update_rates(rng, prior):
    """Λ, φ and q, π and r given the counts: all conjugate."""
    parameters, beliefs, counts = prior.parameters, prior.beliefs, prior.counts
    classes, levels = parameters.weight.shape[0], prior.away.shape[0]
    objects, total, weights = 0.0, 0.0, 0.0
    for g in range(classes):
        members = 0.0
        for level in range(levels):
            members += counts.seen[level, g]
            total += counts.total[level, g]
        objects += members
        parameters.weight[g] = max(rng.standard_gamma(beliefs.class_weight + members), 1e-300)
        weights += parameters.weight[g]
    for g in range(classes):
        parameters.weight[g] /= weights
    shape = beliefs.objects_shape + objects
    parameters.objects[0] = rng.standard_gamma(shape) / (beliefs.objects_rate + 1.0)
    parameters.tally[0], parameters.tally[1], parameters.tally[2] = objects, total - objects, 0.0
    for f in range(prior.person.shape[0]):
        parameters.tally[2] += counts.false[f]
        shape = beliefs.false_shape + counts.false[f]
        rate = beliefs.false_shape / (parameters.false_share[0] * beliefs.markings[f])
        parameters.false[f] = rng.standard_gamma(shape) / (rate + 1.0)
        if prior.lists[prior.person[f]] > 1:
            update_listing(rng, prior, f)
    update_false_share(rng, prior)


@lean_kernel
def update_listing(rng, prior, f):
    """r of list f in every class: Beta, as a person who noticed an object lists it or not."""
    parameters, beliefs, p = prior.parameters, prior.beliefs, prior.person[f]
    for g in range(parameters.weight.shape[0]):
        noticed, listed = 0.0, prior.counts.listed[g, f]
        for level in range(prior.away.shape[0]):
            noticed += prior.counts.noticed[level, g, p]
        r = rng.beta(beliefs.listing_a + listed, beliefs.listing_b + noticed - listed)
        parameters.listing[g, f] = min(max(r, TINY), ALMOST_ONE)


@inline_kernel
def update_false_share(rng, prior):
    """q given φ: 1/q is Gamma."""
    parameters, beliefs = prior.parameters, prior.beliefs
    experts = prior.person.shape[0]
    rate = beliefs.share_rate
    for f in range(experts):
        rate += beliefs.false_shape * parameters.false[f] / beliefs.markings[f]
    shape = beliefs.share_shape + experts * beliefs.false_shape
    parameters.false_share[0] = rate / rng.standard_gamma(shape)


@lean_kernel
def sort_classes(prior):
    """The easiest class first: the model does not care which is called which, a reader does."""
    parameters = prior.parameters
    for _ in range(CLASSES):
        for g in range(parameters.weight.shape[0] - 1):
            if parameters.ease[g] < parameters.ease[g + 1]:
                for values in (parameters.ease, parameters.weight):
                    values[g], values[g + 1] = values[g + 1], values[g]
                for table in (parameters.skill, parameters.listing):
                    for column in range(table.shape[1]):
                        first, second = table[g, column], table[g + 1, column]
                        table[g, column], table[g + 1, column] = second, first


@implements(partition_prior.update_prior, Detection)
@lean_kernel
def update_detection(prior, rng, data, hyper, state, scratch):
    """All parameters given the partition and the clusters' sizes.

    Several times over: which class an object is of and what the classes are like hold each other
    fast, and a scan's sweeps cost far more.
    """
    for _ in range(ROUNDS):
        count_clusters_by_class(rng, hyper, prior, data, state)
        fill_in_missed(rng, prior)
        update_curves(rng, prior)
        update_rates(rng, prior)
        sort_classes(prior)
        rebuild_tables(prior)
