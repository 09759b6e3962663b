"""Objects that experts find or miss, and false marks: a prior over partitions without an order.

Objects that somebody marked are Poisson(Λ); besides, expert f makes Poisson(φ_f) false marks, each
alone. A seen object is of class g with probability π_g, and of size level l. Person p notices an
object of class g and level l with probability

    logit s_gp(l) = a_gp + b_p x_l,

and puts what they notice on their list f with probability r_gf; for a person with one list r = 1.
Persons notice independently given class and level. Up to what does not depend on the partition its
probability is a product over clusters S, at most one marking of an expert in each:

    factor(S) = Λ Σ_g π_g P_g(S) / (1 − P_g(∅))            two markings or more
    factor({f}) = the same + φ_f                            real, or false

    P_g(S) = Π_p [ s_gp Π_{f ∈ S of p} r_gf Π_{f ∉ S of p} (1 − r_gf)
                   + (1 − s_gp) 1(no f of p in S) ]

The division by 1 − P_g(∅) says that the object was seen. As 1 / (1 − P) = Σ_m P^m it is also the
sum over the number m of missed objects that are like this one: geometric, and all that is ever
needed of what nobody marked. How frequent objects of a size are is for the seen ones to say.

Sizes count in narrow levels, so that every weight is a sum of table entries.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.jit import entry_kernel, implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.priors import contract as partition_prior

#: Most classes; tables have as many columns, those of classes not in use −∞.
CLASSES = 4


class Parameters(NamedTuple):
    """What is updated; every array is a part of ``Detection.own``."""

    weight: np.ndarray  # (G,): π
    ease: np.ndarray  # (G,): expected a_gp of a person, in falling order
    skill: np.ndarray  # (G, P): a
    slope: np.ndarray  # (P,): b
    listing: np.ndarray  # (G, F): r
    false: np.ndarray  # (F,): φ
    false_share: np.ndarray  # (1,): q, of an expert's markings typically false
    objects: np.ndarray  # (1,): Λ
    tally: np.ndarray  # (3,): objects seen and missed and false marks, as last filled in


class Beliefs(NamedTuple):
    """Priors of the parameters.

    Λ ~ Gamma(shape, rate), φ_f ~ Gamma(shape, shape / (q markings_f)), 1/q ~ Gamma(shape, rate),
    π ~ Dirichlet(class_weight, ...), r_gf ~ Beta(listing), a_gp ~ N(ease_g, skill_sd²),
    ease_g ~ N(mean, sd²) above ``ease_least``, b_p ~ N(0, slope_sd²).

    What is found less often than ``ease_least`` says cannot be told from false marks, so that
    it is not called an object.
    """

    objects_shape: float
    objects_rate: float
    false_shape: float
    markings: np.ndarray  # (F,): of each expert
    share_shape: float
    share_rate: float
    class_weight: float
    listing_a: float
    listing_b: float
    ease_mean: float
    ease_sd: float
    ease_least: float
    skill_sd: float
    slope_sd: float


class DetectionTables(NamedTuple):
    """Logarithms that follow from the parameters; the last axis of three is the class."""

    missed: np.ndarray  # (L, CLASSES): P_g(∅)
    empty: np.ndarray  # (L, CLASSES): Λ π_g P_g(∅) / (1 − P_g(∅))
    found: np.ndarray  # (L, F, CLASSES): what P_g gains by the first list of a person
    gain: np.ndarray  # (L, F, CLASSES): the same, not its logarithm
    again: np.ndarray  # (F, CLASSES): what it gains by another list of that person
    alone: np.ndarray  # (L, F): factor({f})
    most: np.ndarray  # (L, F): the largest of found and again


class Counts(NamedTuple):
    """What an update of the parameters adds up over objects; scratch."""

    seen: np.ndarray  # (L, CLASSES)
    total: np.ndarray  # (L, CLASSES): seen and missed
    noticed: np.ndarray  # (L, CLASSES, P)
    listed: np.ndarray  # (CLASSES, F): real markings
    false: np.ndarray  # (F,): false markings


class Detection(NamedTuple):
    """Settings of the prior, its parameters, and tables of them."""

    low: float  # where the levels of log size begin
    step: float  # how wide they are
    away: np.ndarray  # (L,): x_l, the level's log size less a typical one
    person: np.ndarray  # (F,) int32
    lists: np.ndarray  # (P,) int32: how many lists a person has
    first_list: np.ndarray  # (P,) int32: one of them
    beliefs: Beliefs
    own: np.ndarray  # all parameters in one
    parameters: Parameters
    tables: DetectionTables
    counts: Counts


def with_room(prior: Detection, classes: int) -> Detection:
    """The prior with parameters, tables and counts that belong to ``prior.own``."""
    levels, n_families, n_persons = len(prior.away), len(prior.person), len(prior.lists)
    return prior._replace(
        parameters=_parts(prior.own, classes, n_persons, n_families),
        tables=DetectionTables(
            missed=np.zeros((levels, CLASSES)),
            empty=np.zeros((levels, CLASSES)),
            found=np.zeros((levels, n_families, CLASSES)),
            gain=np.ones((levels, n_families, CLASSES)),
            again=np.zeros((n_families, CLASSES)),
            alone=np.zeros((levels, n_families)),
            most=np.zeros((levels, n_families)),
        ),
        counts=Counts(
            seen=np.zeros((levels, CLASSES)),
            total=np.zeros((levels, CLASSES)),
            noticed=np.zeros((levels, CLASSES, n_persons)),
            listed=np.zeros((CLASSES, n_families)),
            false=np.zeros(n_families),
        ),
    )


def _parts(own: NDArray[np.float64], classes: int, n_persons: int, n_families: int) -> Parameters:
    """The parameters as parts of one array."""
    by_person, by_list = (classes, n_persons), (classes, n_families)
    shapes = ((classes,), (classes,), by_person, (n_persons,), by_list, (n_families,), (1,), (1,))
    *parts, tally = np.split(own, np.cumsum([math.prod(shape) for shape in shapes]))
    shaped = [part.reshape(shape) for part, shape in zip(parts, shapes, strict=True)]
    return Parameters(*[*shaped, tally])


def with_own(prior: Detection, own: NDArray[np.float64]) -> Detection:
    """The prior with these parameters; its tables are not filled."""
    return with_room(prior._replace(own=own), len(prior.parameters.weight))


@partition_prior.of_chain.register
def of_chain(prior: Detection, own: NDArray[np.float64]) -> Detection:
    """The prior of one chain, with tables of its own."""
    mine = with_own(prior, own)
    rebuild_tables(mine)
    return mine


@partition_prior.refresh.register
def refresh(prior: Detection) -> None:
    """The tables."""
    rebuild_tables(prior)


@inline_kernel
def level_of(prior, size):
    """The level of a log size; beyond the ends of the levels it is the last."""
    level = int((size - prior.low) / prior.step)
    return min(max(level, 0), prior.away.shape[0] - 1)


@inline_kernel
def log_sum(first, second, third, fourth):
    """log(e^first + ...); not all are −∞."""
    largest = max(first, second, third, fourth)
    return largest + math.log(
        math.exp(first - largest)
        + math.exp(second - largest)
        + math.exp(third - largest)
        + math.exp(fourth - largest)
    )


@inline_kernel
def holds_person(prior, data, state, person, j, end):
    """Whether one of the members from j on, before ``end``, is of this person."""
    while j != end:
        if prior.person[data.family[j]] == person:
            return True
        j = state.after[j]
    return False


@inline_kernel
def is_again(prior, data, state, k, i, end):
    """Whether cluster k has a member of i's person before ``end``, which i adds to."""
    person = prior.person[data.family[i]]
    return prior.lists[person] > 1 and holds_person(prior, data, state, person, state.head[k], end)


@inline_kernel
def class_weights(prior, data, state, k, level):
    """log of Λ π_g P_g(S) / (1 − P_g(∅)) for the members S of cluster k, in each class."""
    empty, found, again = prior.tables.empty, prior.tables.found, prior.tables.again
    first, second = empty[level, 0], empty[level, 1]
    third, fourth = empty[level, 2], empty[level, 3]
    j = state.head[k]
    while j != NONE:
        family = data.family[j]
        if is_again(prior, data, state, k, j, j):
            first += again[family, 0]
            second += again[family, 1]
            third += again[family, 2]
            fourth += again[family, 3]
        else:
            first += found[level, family, 0]
            second += found[level, family, 1]
            third += found[level, family, 2]
            fourth += found[level, family, 3]
        j = state.after[j]
    return first, second, third, fourth


@implements(partition_prior.uses_order, Detection)
@inline_kernel
def uses_order(prior):
    """Nobody arrives before anybody."""
    return False


@implements(partition_prior.log_open_all, Detection)
@inline_kernel
def log_open_all(prior, state):
    """Nothing: every expert has weights of their own."""
    return 0.0


@implements(partition_prior.log_open, Detection)
@inline_kernel
def log_open(prior, common, data, state, i, size):
    """log factor({f})."""
    return prior.tables.alone[level_of(prior, size), data.family[i]]


@implements(partition_prior.log_join, Detection)
@inline_kernel
def log_join(prior, data, state, scratch, i, k, size):
    """log of factor(S + f) / factor(S)."""
    level, family = level_of(prior, size), data.family[i]
    first, second, third, fourth = class_weights(prior, data, state, k, level)
    largest = max(first, second, third, fourth)
    w1, w2 = math.exp(first - largest), math.exp(second - largest)
    w3, w4 = math.exp(third - largest), math.exp(fourth - largest)
    gain, again = prior.tables.gain[level, family], prior.tables.again[family]
    if is_again(prior, data, state, k, i, NONE):
        after = w1 * math.exp(again[0]) + w2 * math.exp(again[1])
        after += w3 * math.exp(again[2]) + w4 * math.exp(again[3])
    else:
        after = w1 * gain[0] + w2 * gain[1] + w3 * gain[2] + w4 * gain[3]
    if state.size[k] > 1:
        return math.log(after / (w1 + w2 + w3 + w4))
    return largest + math.log(after) - prior.tables.alone[level, data.family[state.head[k]]]


@implements(partition_prior.log_join_bound, Detection)
@inline_kernel
def log_join_bound(prior, data, i, size):
    """The largest gain in any class: a mean of gains is no larger, and what is false gains none."""
    return prior.tables.most[level_of(prior, size), data.family[i]]


@implements(partition_prior.log_cluster, Detection)
@lean_kernel
def log_cluster(prior, data, state, k, size):
    """log factor(S)."""
    level = level_of(prior, size)
    if state.size[k] == 1:
        return prior.tables.alone[level, data.family[state.head[k]]]
    first, second, third, fourth = class_weights(prior, data, state, k, level)
    return log_sum(first, second, third, fourth)


@implements(partition_prior.log_tilt, Detection)
@inline_kernel
def log_tilt(prior, data, state, k, size):
    """log factor(S), all of which depends on the size."""
    return log_cluster(prior, data, state, k, size)


@implements(partition_prior.update_block, Detection)
@inline_kernel
def update_block(prior, rng, data, state, scratch, block):
    """Nothing belongs to a block of the data alone."""


@inline_kernel
def log_noticed(parameters, g, p, away):
    """log s and log(1 − s) of a person for a class at a level."""
    logit = parameters.skill[g, p] + parameters.slope[p] * away
    if logit > 0.0:
        log_s = -math.log1p(math.exp(-logit))
        return log_s, log_s - logit
    log_not = -math.log1p(math.exp(logit))
    return log_not + logit, log_not


@lean_kernel
def log_unlisted(prior, g, p):
    """log of the probability that what a person notices of a class is on none of their lists."""
    if prior.lists[p] == 1:
        return -math.inf
    total = 0.0
    for f in range(prior.person.shape[0]):
        if prior.person[f] == p:
            total += math.log1p(-prior.parameters.listing[g, f])
    return total


@inline_kernel
def log_absent(log_s, log_not, unlisted):
    """log of the probability that none of a person's lists has the object: 1 − s + s Π (1 − r)."""
    return log_not + math.log1p(math.exp(log_s + unlisted - log_not))


@entry_kernel
def rebuild_tables(prior):
    """Bring the tables up to date with the parameters."""
    parameters, tables = prior.parameters, prior.tables
    classes, families = parameters.weight.shape[0], prior.person.shape[0]
    tables.again[:] = 0.0
    tables.missed[:] = 0.0
    tables.empty[:] = -math.inf
    tables.found[:] = 0.0
    tables.gain[:] = 1.0
    for f in range(families):
        p = prior.person[f]
        for g in range(classes):
            unlisted = log_unlisted(prior, g, p)
            if prior.lists[p] > 1:
                r = parameters.listing[g, f]
                tables.again[f, g] = math.log(r) - math.log1p(-r)
            for level in range(prior.away.shape[0]):
                log_s, log_not = log_noticed(parameters, g, p, prior.away[level])
                absent = log_absent(log_s, log_not, unlisted)
                if prior.first_list[p] == f:
                    tables.missed[level, g] += absent
                gain = log_s - absent + tables.again[f, g]
                if prior.lists[p] > 1:
                    gain += unlisted
                # Within what doubles hold; beyond it nothing is in doubt.
                gain = min(max(gain, -600.0), 600.0)
                tables.found[level, f, g] = gain
                tables.gain[level, f, g] = math.exp(gain)
    for level in range(prior.away.shape[0]):
        for g in range(classes):
            missed = tables.missed[level, g]
            # A weight may underflow, and a class may be one that is hardly ever seen.
            seen = max(-math.expm1(missed), 1e-12)
            weight = max(parameters.weight[g], 1e-300)
            tables.empty[level, g] = (
                math.log(parameters.objects[0]) + math.log(weight) + missed - math.log(seen)
            )
        for f in range(families):
            tables.alone[level, f] = log_alone(prior, level, f)
            tables.most[level, f] = -math.inf
            for g in range(classes):
                largest = max(tables.found[level, f, g], tables.again[f, g])
                tables.most[level, f] = max(tables.most[level, f], largest)


@inline_kernel
def log_alone(prior, level, f):
    """log factor({f}) from the other tables."""
    empty, found = prior.tables.empty, prior.tables.found
    real = log_sum(
        empty[level, 0] + found[level, f, 0],
        empty[level, 1] + found[level, f, 1],
        empty[level, 2] + found[level, f, 2],
        empty[level, 3] + found[level, f, 3],
    )
    false = math.log(max(prior.parameters.false[f], 1e-300))
    return max(real, false) + math.log1p(math.exp(-abs(real - false)))
