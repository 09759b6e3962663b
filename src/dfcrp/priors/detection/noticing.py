"""What persons notice: eases of classes, skills of persons, slopes, given who noticed what.

Given the class and level of every object, seen or missed, and who noticed it, (a_gp, b_p) have the
likelihood of a logistic regression on counts by level, and a_gp is normal about ease_g + skill_p
with a small spread. One a_gp at a time would hardly move the sum: so all a_gp of a person, or of a
class, are also moved together with the skill or the ease. Slopes are normal about a mean that is
integrated out.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE
from dfcrp.priors.detection.kernel import Detection, log_unseen, usual_notice

#: Width of the first bracket of the slice updates.
WIDTH = 1.0
#: ε: who makes hardly any false marks marks a decoy with these odds, relative to what is usual.
LEAST_READY = 0.1
#: Log odds whose exponentials are far from overflow; products of numbers below ``LARGE``, to the
#: power ``FEW``, are.
FAR_ODDS, LARGE, FEW = 300.0, 1e60, 3.0


@lean_kernel
def log_logistic(prior, g, p, notice, slope):
    """log likelihood of (a_gp, b_p) from the counts of class g.

    It is asked for very often: odds go up by the same factor from level to level, and logarithms
    are taken of products.
    """
    total, noticed, away = prior.counts.total, prior.counts.noticed, prior.away
    levels = away.shape[0]
    first, last = notice + slope * away[0], notice + slope * away[levels - 1]
    if max(abs(first), abs(last)) > FAR_ODDS:
        return log_logistic_far(prior, g, p, notice, slope)
    ratio = math.exp((last - first) / max(levels - 1, 1))
    value, product, lowest = 0.0, 1.0, math.exp(first)
    for viewer in range(prior.looks.person_viewer[p], prior.looks.person_viewer[p + 1]):
        odds, times, sizes = lowest, 0.0, 0.0
        for level in range(levels):
            count = total[viewer, level, g]
            if count > 0.0:
                times += noticed[viewer, level, g]
                sizes += noticed[viewer, level, g] * away[level]
                factor = 1.0 + odds
                if count > FEW or factor > LARGE:
                    value -= count * math.log(factor)
                else:
                    while count > 0.0:
                        product *= factor
                        count -= 1.0
                    if product > LARGE:
                        value -= math.log(product)
                        product = 1.0
            odds *= ratio
        value += times * notice + sizes * slope
    return value - math.log(product)


@lean_kernel
def log_logistic_far(prior, g, p, notice, slope):
    """The same where odds may overflow."""
    total, noticed, away = prior.counts.total, prior.counts.noticed, prior.away
    value = 0.0
    for viewer in range(prior.looks.person_viewer[p], prior.looks.person_viewer[p + 1]):
        for level in range(away.shape[0]):
            if total[viewer, level, g] > 0.0:
                logit = notice + slope * away[level]
                value += noticed[viewer, level, g] * logit
                softplus = max(logit, 0.0) + math.log1p(math.exp(-abs(logit)))
                value -= total[viewer, level, g] * softplus
    return value


@inline_kernel
def readiness_by(prior, false):
    """log (φ / φ_0 + ε) of a list that makes so many false marks."""
    return math.log(false / prior.beliefs.usual_false + LEAST_READY)


@inline_kernel
def readiness(prior, p):
    """z_p: the more, the more false marks a person makes."""
    total = 0.0
    for f in range(prior.person.shape[0]):
        if prior.person[f] == p:
            total += readiness_by(prior, prior.parameters.false_marks[f])
    return total / prior.lists[p]


@inline_kernel
def expected_notice(prior, g, p):
    """The mean of a_gp given the ease."""
    above = prior.parameters.skill[p] if g < prior.real else readiness(prior, p)
    return prior.parameters.ease[g] + above


@inline_kernel
def spread_of_notice(prior, g):
    """The standard deviation of a_gp given the ease."""
    return prior.beliefs.interaction_sd if g < prior.real else prior.beliefs.decoy_sd


@inline_kernel
def log_silent(prior, g, step):
    """log of the probability that silent looks notice nothing of class g, if ā_g moves so far."""
    if prior.counts.silent[g] == 0.0:
        return 0.0
    return prior.counts.silent[g] * log_unseen(prior.counts.usual[g] + step)


@inline_kernel
def likely(logit):
    """The probability of these log odds."""
    return math.exp(-max(-logit, 0.0)) / (1.0 + math.exp(-abs(logit)))


@inline_kernel
def readily_with(prior, p, notice):
    """Σ_p s_dp if a person's a_dp is ``notice``."""
    old = likely(prior.parameters.notice[prior.real, p])
    return prior.counts.readily[0] + likely(notice) - old


@inline_kernel
def is_decoy(prior, readily):
    """Whether what is marked by as many is a decoy: no rare false mark, and no object."""
    share = readily / prior.lists.shape[0]
    return prior.beliefs.decoy_least <= share <= prior.beliefs.decoy_most


@inline_kernel
def log_notice(prior, g, p, notice):
    """log p(a_gp | the rest) up to a constant."""
    if g >= prior.real and not is_decoy(prior, readily_with(prior, p, notice)):
        return -math.inf
    z = (notice - expected_notice(prior, g, p)) / spread_of_notice(prior, g)
    step = (notice - prior.parameters.notice[g, p]) / prior.lists.shape[0]
    return (
        log_silent(prior, g, step)
        - 0.5 * z * z
        + log_logistic(prior, g, p, notice, prior.parameters.slope[p])
    )


@lean_kernel
def log_slope(prior, p, slope, mean, sd):
    """log p(b_p | the rest) up to a constant; given the others' slopes it has this mean and sd."""
    z = (slope - mean) / sd
    value = -0.5 * z * z
    for g in range(prior.parameters.class_weight.shape[0]):
        value += log_logistic(prior, g, p, prior.parameters.notice[g, p], slope)
    return value


class Curve(NamedTuple):
    """A skill a_gp, or the slope b_p if the class is NONE, given the rest.

    A slope has the mean and standard deviation that follow from those of the others.
    """

    prior: Detection
    g: int
    p: int
    mean: float = 0.0
    sd: float = 1.0


@implements(log_target, Curve)
@inline_kernel
def log_curve(target, value):
    """Its conditional."""
    prior, g, p = target.prior, target.g, target.p
    if g == NONE:
        return log_slope(prior, p, value, target.mean, target.sd)
    return log_notice(prior, g, p, value)


@inline_kernel
def slice_curve(rng, curve, start):
    """One slice update of a skill or slope."""
    return slice_update(rng, curve, start, WIDTH, 1e-13 * (1.0 + abs(start)))


@inline_kernel
def slope_given_others(beliefs, total, others):
    """Mean and standard deviation of a slope, if so many others sum to ``total``.

    b_p ~ N(β, slope_sd²) with β integrated out: given the others it is normal with their mean,
    shrunk.
    """
    each = beliefs.slope_sd**2
    precision = 1.0 / beliefs.size_slope_sd**2 + others / each
    return total / each / precision, math.sqrt(each + 1.0 / precision)


class NormalBetween(NamedTuple):
    """A normal number between two bounds."""

    mean: float
    sd: float
    low: float
    high: float


@implements(log_target, NormalBetween)
@inline_kernel
def log_normal_between(target, value):
    """Its density up to a constant."""
    if not target.low <= value <= target.high:
        return -math.inf
    z = (value - target.mean) / target.sd
    return -0.5 * z * z


@inline_kernel
def normal_between(rng, mean, sd, low, high, start):
    """One slice update of a normal number between two bounds."""
    return slice_update(rng, NormalBetween(mean, sd, low, high), start, sd, 1e-13)


class ShiftOfPerson(NamedTuple):
    """By how much a person's skill changes, in all classes of objects alike."""

    prior: Detection
    p: int


@implements(log_target, ShiftOfPerson)
@inline_kernel
def log_shift_of_person(target, shift):
    """log p(skill_p, a_1p, a_2p, ... | the rest), all moved by ``shift``."""
    prior, p, parameters = target.prior, target.p, target.prior.parameters
    z = (parameters.skill[p] + shift) / parameters.skill_sd[0]
    value = -0.5 * z * z
    for g in range(prior.real):
        value += log_silent(prior, g, shift / prior.lists.shape[0])
        value += log_logistic(prior, g, p, parameters.notice[g, p] + shift, parameters.slope[p])
    return value


@inline_kernel
def lowest_ease(prior, g):
    """The ease of the next harder class of objects, if there is one."""
    return prior.parameters.ease[g + 1] if g + 1 < prior.real else prior.beliefs.ease_least


@inline_kernel
def highest_ease(prior, g):
    """The ease of the next easier class of objects, if there is one."""
    return prior.parameters.ease[g - 1] if g > 0 else math.inf


@inline_kernel
def log_ease(prior, g, ease):
    """log p(ease_g)."""
    beliefs = prior.beliefs
    if g >= prior.real:
        z = (ease - beliefs.decoy_ease) / beliefs.decoy_ease_sd
    elif not lowest_ease(prior, g) <= ease <= highest_ease(prior, g):
        return -math.inf
    else:
        z = (ease - beliefs.ease_mean) / beliefs.ease_sd
    return -0.5 * z * z


@inline_kernel
def readily(prior, shift):
    """Σ_p s_dp if all a_dp move by ``shift``."""
    total = 0.0
    for p in range(prior.lists.shape[0]):
        total += likely(prior.parameters.notice[prior.real, p] + shift)
    return total


class ShiftOfClass(NamedTuple):
    """By how much the ease of a class changes, for all persons alike."""

    prior: Detection
    g: int


@implements(log_target, ShiftOfClass)
@inline_kernel
def log_shift_of_class(target, shift):
    """log p(ease_g, a_g1, a_g2, ... | the rest), all moved by ``shift``."""
    prior, g, parameters = target.prior, target.g, target.prior.parameters
    value = log_ease(prior, g, parameters.ease[g] + shift) + log_silent(prior, g, shift)
    if g >= prior.real and not is_decoy(prior, readily(prior, shift)):
        return -math.inf
    for p in range(prior.lists.shape[0]):
        value += log_logistic(prior, g, p, parameters.notice[g, p] + shift, parameters.slope[p])
    return value


@inline_kernel
def slice_shift(rng, target):
    """One slice update of a shift, which is 0 now."""
    return slice_update(rng, target, 0.0, WIDTH, 1e-13)


@inline_kernel
def move_notice(prior, g, p, step):
    """Move a_gp, and with it ā_g and of decoys Σ_p s_dp."""
    if g >= prior.real:
        prior.counts.readily[0] = readily_with(prior, p, prior.parameters.notice[g, p] + step)
    prior.parameters.notice[g, p] += step
    prior.counts.usual[g] += step / prior.lists.shape[0]


@lean_kernel
def update_persons(rng, prior):
    """Skills: all of a person's a_gp moved together, then the skill given these; then their σ."""
    parameters, beliefs = prior.parameters, prior.beliefs
    persons, classes = prior.lists.shape[0], prior.real
    spread = 0.0
    for p in range(persons):
        shift, above = slice_shift(rng, ShiftOfPerson(prior, p)), 0.0
        for g in range(classes):
            move_notice(prior, g, p, shift)
            above += parameters.notice[g, p] - parameters.ease[g]
        own, each = 1.0 / parameters.skill_sd[0] ** 2, 1.0 / beliefs.interaction_sd**2
        precision = own + classes * each
        skill = each * above / precision + rng.standard_normal() / math.sqrt(precision)
        parameters.skill[p] = skill
        spread += skill * skill
    shape = beliefs.skill_sd_shape + 0.5 * persons
    rate = beliefs.skill_sd_shape * beliefs.skill_sd**2 + 0.5 * spread
    parameters.skill_sd[0] = math.sqrt(rate / rng.standard_gamma(shape))


@lean_kernel
def update_class(rng, prior, g):
    """Every a_gp; the ease moved with all of them, then given them: normal, above its bound."""
    parameters, beliefs, persons = prior.parameters, prior.beliefs, prior.lists.shape[0]
    for p in range(persons):
        start = parameters.notice[g, p]
        drawn = slice_curve(rng, Curve(prior, g, p, 0.0, 1.0), start)
        move_notice(prior, g, p, drawn - start)
    shift, above = slice_shift(rng, ShiftOfClass(prior, g)), 0.0
    parameters.ease[g] += shift
    for p in range(persons):
        move_notice(prior, g, p, shift)
        above += parameters.notice[g, p] - expected_notice(prior, g, p) + parameters.ease[g]
    about, sd = beliefs.ease_mean, beliefs.ease_sd
    if g >= prior.real:
        about, sd = beliefs.decoy_ease, beliefs.decoy_ease_sd
    own, each = 1.0 / sd**2, 1.0 / spread_of_notice(prior, g) ** 2
    precision = own + persons * each
    mean, sd = (own * about + each * above) / precision, 1.0 / math.sqrt(precision)
    if g >= prior.real:
        parameters.ease[g] = mean + sd * rng.standard_normal()
    else:
        low, high = lowest_ease(prior, g), highest_ease(prior, g)
        parameters.ease[g] = normal_between(rng, mean, sd, low, high, parameters.ease[g])


@lean_kernel
def update_curves(rng, prior):
    """What persons notice given the counts: by class, by person, by size."""
    for g in range(prior.parameters.class_weight.shape[0]):
        prior.counts.usual[g] = usual_notice(prior, g)
        if g >= prior.real:
            prior.counts.readily[0] = readily(prior, 0.0)
        update_class(rng, prior, g)
    update_persons(rng, prior)
    if prior.away.shape[0] > 1:
        update_slopes(rng, prior)


@lean_kernel
def update_slopes(rng, prior):
    """Slopes one by one, each given the others."""
    parameters, persons, total = prior.parameters, prior.lists.shape[0], 0.0
    for p in range(persons):
        total += parameters.slope[p]
    for p in range(persons):
        old = parameters.slope[p]
        mean, sd = slope_given_others(prior.beliefs, total - old, persons - 1.0)
        parameters.slope[p] = slice_curve(rng, Curve(prior, NONE, p, mean, sd), old)
        total += parameters.slope[p] - old
