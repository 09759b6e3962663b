"""Objects that experts find or miss, and false marks: a prior over partitions without an order.

Image v holds Poisson(Λ_v) objects, Λ_v ~ Gamma with a shape and mean learned from all images. An
object is of class g with probability π_vg and of size level l with probability ω_l, seen or not.
Classes go from easy to hard, and images differ in how many of them are easy:

    π_vg ∝ π_g e_vg,     e_vg = e^(θ_v q_g) R / Σ_h e^(θ_v q_h),     θ_v ~ N(0, σ_θ²),

with the R classes of objects at equally spaced q of mean 0 and variance 1; on one image θ = 0.
Person p, where they look, notices an object of class g and level l with probability

    logit s_gp(l) = a_gp + b_p x_l,     a_gp ~ N(ease_g + skill_p, interaction²),

and puts what they notice on their list f with probability r_gf; for a person with one list r = 1.
Skills are additive but for a small interaction: a class cannot consist of what one person sees.
Where there are *decoys*, the last class consists of what several persons may mark though it is
none of the objects: shadows, parts, groups. Who makes many false marks marks them more readily,

    a_dp ~ N(ease_d + z_p, decoy²),     z_p the mean of log (φ_f / φ_0 + ε) over the person's lists,

with φ_0 a usual rate of false marks. Decoys are counted with the objects by Λ and π with e = 1,
are of level l with the probability ψ_l of false marks in place of ω_l, and are not real.
Persons notice independently given class and level. List f has Poisson(φ_fv) false marks on an
image v that it covers, φ_fv ~ Gamma(κ, κ / φ_f), each alone, of level l with probability ψ_l: false
marks come in clumps, by list and image. With W_v the lists that cover image v, the probability of
its partition is a product over clusters S ⊆ W_v, at most one marking of an expert in each:

    exp(−Λ_v Σ_gl π_vg ω_l (1 − P_gv(∅; l)) − Σ_{f ∈ W_v} φ_fv) · Π_S factor(S)
    factor(S) = Λ_v Σ_g π_vg ω_l / m_l P_gv(S; l)              two markings or more
    factor({f}) = the same + φ_fv ψ_l / m_l                    real, or false

    P_gv(S; l) = Π_p [ s_gp Π_{f ∈ S of p} r_gf Π_{f ∉ S of p} (1 − r_gf)
                       + (1 − s_gp) 1(no f of p in S) ]        over persons and lists of W_v

m_l is the share of level l under the likelihood's base measure of sizes, taken to be that of the
markings. Objects that nobody marked are Poisson(Λ_v π_vg ω_l P_gv(∅; l)) in every class and level.

What markings say besides, by their categories and scores, multiplies the two parts of a factor
(``priors/detection/marks``).

Where nothing says who looked, an image has *silent* looks besides, so many that it comes to what is
usual: persons like those who are known, who notice an object of class g with the log odds
ā_g = Σ_p a_gp / P, and marked nothing. They multiply P_gv(∅).

Those lists of one person that cover the same images together are a *viewer*: P_gv(∅) is a product
over the viewers of an image. Sizes count in narrow levels, so that every weight is a sum of table
entries.

Where looks cover parts of an image only, it is cut into *zones*, in each of which all places have
the same viewers. Zone z holds the share w_z of the image's objects, W_v becomes W_z, and

    exp(−Λ_v Σ_z w_z Σ_gl π_vg ω_l (1 − P_gz(∅; l)) − Σ_f φ_fv Σ_{z of f} w_z)

takes the place of the first line. The factors are without w_z: a zone has the same share of the
objects and of the base measure. A cluster lies in the zone of most of its members, of several in
the first. A member whose list does not cover that zone counts as one who looked: P_gz(S) is the
product over the viewers of z and those in S. In the same way the level of a cluster is that of its
members' mean log size where the likelihood draws none. Both are functions of the members, so that
the prior is a product over clusters still.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.compiled.abi import F8, I1, I4, I8, F8x2, F8x3, frame
from dfcrp.compiled.jit import entry_kernel, implements, inline_kernel, lean_kernel
from dfcrp.compiled.state import NONE
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.detection.categories import (
    LEAST,
    CategoryTables,
    category_room,
    has_categories,
    rebuild_categories,
)
from dfcrp.priors.detection.decided import REAL, is_decided, within_word, word_of
from dfcrp.priors.detection.marks import (
    log_marks,
    log_marks_alone,
    log_marks_false,
    log_marks_gain,
    log_marks_most,
)
from dfcrp.priors.detection.parameters import LAW, TALLY, Parameters, parts, shapes_of
from dfcrp.priors.detection.places import (
    by_members,
    is_outside,
    level_alone,
    level_of,
    level_with,
    zone_of,
)
from dfcrp.priors.detection.scores import (
    ScoreTables,
    has_scores,
    rebuild_scores,
    score_room,
)

#: Most classes; tables have as many columns, those of classes not in use −∞.
CLASSES = 4


@frame
class Beliefs(NamedTuple):
    """Priors of the parameters.

    Λ_v ~ Gamma(shape, shape / mean), log shape ~ N(log objects_shape, objects_shape_sd²),
    log mean ~ N(log objects_mean, objects_mean_sd²), φ_f ~ Gamma(c, c looks_f / (q markings_f))
    with log c ~ N(log false_shape, false_shape_sd²), 1/q ~ Gamma(shape, rate),
    log κ ~ N(log look_shape, look_shape_sd²), π ~ Dirichlet(class_weight, ...),
    1/σ_θ² ~ Gamma(c, c image_ease_sd²) with c = ``image_ease_sd_shape``; 0 where it is held,
    ω and ψ ~ Dirichlet(size_weight m), r_gf ~ Beta(listing),
    a_gp ~ N(ease_g + skill_p, interaction_sd²), skill_p ~ N(0, σ²),
    a_dp ~ N(ease_d + z_p, decoy_sd²), ease_d ~ N(decoy_ease, decoy_ease_sd²), all given that
    the mean of s_dp over persons is between ``decoy_least`` and ``decoy_most``,
    1/σ² ~ Gamma(c, c skill_sd²) with c = ``skill_sd_shape``, ease_g ~ N(mean, sd²) in falling
    order, above ``ease_least``, b_p ~ N(β, slope_sd²), β ~ N(0, size_slope_sd²), integrated out.
    ρ and τ ~ Dirichlet(category_weight, ...), rows of M ~
    Dirichlet(accuracy_weight · (``accuracy`` on the diagonal, the rest in equal parts)),
    s ~ Gamma(confusion_shape) with the mean ``confusion_strength``.
    log γ_f ~ N(m, score_slope_sd²), m ~ N(log score_slope, usual_slope_sd²),
    a_f ~ N(score_offset, score_offset_sd²).

    ω and ψ are held at m if ``size_weight`` is ∞, c at ``false_shape`` if its spread is 0. κ is
    held at ``look_shape`` if its spread is 0; at ∞ false marks are Poisson(φ_f) on every image.
    What is found less often than ``ease_least`` says cannot be told from false marks, so that
    it is not called an object.
    """

    objects_shape: float
    objects_shape_sd: float
    objects_mean: float
    objects_mean_sd: float
    false_shape: float
    false_shape_sd: float
    look_shape: float
    look_shape_sd: float
    markings: F8  # (F,) float64: of each expert
    share_shape: float
    share_rate: float
    class_weight: float
    size_weight: float
    listing_a: float
    listing_b: float
    ease_mean: float
    ease_sd: float
    ease_least: float
    image_ease_sd: float
    image_ease_sd_shape: float
    skill_sd: float
    skill_sd_shape: float
    interaction_sd: float
    decoy_ease: float
    decoy_ease_sd: float
    decoy_least: float
    decoy_most: float
    decoy_sd: float
    usual_false: float  # φ_0
    slope_sd: float
    size_slope_sd: float
    category_weight: float
    accuracy: float
    accuracy_weight: float
    confusion_strength: float
    confusion_shape: float
    score_slope: float
    score_slope_sd: float
    usual_slope_sd: float
    score_offset: float
    score_offset_sd: float


@frame
class LookTables(NamedTuple):
    """Who looked at which image, or zone of one; without footprints each image is one zone.

    A viewer is a person with those of their lists that cover an image; a row is one list of a
    viewer. Rows of a viewer and viewers of a person are contiguous.
    """

    image: I4  # (n,) int32: by item in input order
    zone: I4  # (n,) int32: the same
    row: I4  # (n,) int32: the same
    row_list: I4  # (R,) int32
    row_viewer: I4  # (R,) int32
    viewer_row: I8  # (T + 1,) int64: where the rows of each viewer begin
    viewer_person: I4  # (T,) int32
    person_viewer: I8  # (P + 1,) int64: where the viewers of each person begin
    zones: I8  # (V + 1,) int64: where the zones of each image begin
    share: F8  # (Z,) float64: w, of each zone in its image
    start: I8  # (Z + 1,) int64: where the looks at each zone begin
    viewer: I4  # (looks,) int32: the viewers of the zones, ascending in each
    silent: F8  # (Z,) float64: assumed looks of persons who marked nothing on the image
    covered: F8  # (F,) float64: how many images a list covers
    look: I4  # (n,) int32: by item in input order the look that it was made in
    look_list: I4  # (K,) int32: the list of each look with markings, ascending
    look_share: F8  # (K,) float64: the share of its image that it covers
    list_look: I8  # (F + 1,) int64: where the looks of each list begin
    blank_share: F8  # (B,) float64: of looks without markings the share that they cover, ...
    blank_count: F8  # (B,) float64: ... and how many looks of the list cover as much
    list_blank: I8  # (F + 1,) int64: where those of each list begin


@frame
class DetectionTables(NamedTuple):
    """What follows from the parameters; float64. The last axis of three is the class."""

    absent: F8x3  # (T, L, CLASSES): log of the probability that no list of a viewer has it
    missed: F8x3  # (Z, L, CLASSES): log P_gz(∅)
    empty: F8x3  # (Z, L, CLASSES): log Λ_v π_vg ω_l / m_l P_gz(∅)
    share: F8x2  # (V, CLASSES): π_vg
    usual: F8x2  # (L, CLASSES): log ω_l / m_l
    found: F8x3  # (R, L, CLASSES): what log P_gv gains by the first list of a viewer
    gain: F8x3  # (R, L, CLASSES): the same, not its logarithm
    again: F8x2  # (F, CLASSES): what it gains by another list of that viewer
    most: F8x2  # (R, L): the largest of found and again
    false: F8  # (L,): log ψ_l / m_l
    look_false: F8  # (K,): log φ_fv


@frame
class Counts(NamedTuple):
    """What an update of the parameters adds up over objects; float64, scratch."""

    seen: F8x3  # (Z, L, CLASSES)
    objects: F8x3  # (Z, L, CLASSES): seen and missed
    on_image: F8  # (V,): seen
    of_class: F8x2  # (V, CLASSES): seen and missed
    class_shape: F8  # (CLASSES,): of the Gamma law of a class's weight
    class_rate: F8  # (CLASSES,)
    exposure: F8  # (V,): Σ w_z π_vg ω_l (1 − P_gz(∅; l))
    total: F8x3  # (T, L, CLASSES): objects where a viewer looked
    noticed: F8x3  # (T, L, CLASSES)
    listed: F8x2  # (CLASSES, F): real markings
    silent: F8  # (CLASSES,): silent looks at objects
    usual: F8  # (CLASSES,): ā_g
    readily: F8  # (1,): Σ_p s_dp, of the decoys at the middle size
    false: F8  # (F,): false markings
    look_false: F8  # (K,): the same by look
    false_at: F8  # (L,): the same by level


@frame
class Detection(NamedTuple):
    """Settings of the prior, its parameters, and tables of them."""

    low: float  # where the levels of log size begin
    step: float  # how wide they are
    away: F8  # (L,) float64: x_l, the level's log size less a typical one
    usual: F8  # (L,) float64: m, share of the levels among markings
    sizes: F8  # (n,) float64: log sizes of items, in levels; empty if clusters have their own
    person: I4  # (F,) int32
    lists: I4  # (P,) int32: how many lists a person has
    node: F8  # (R,) float64: q, from easy to hard, with mean 0 and variance 1
    real: int  # how many classes are of objects; one more are decoys
    word: I1  # (n,) int8: by item in input order what people decided (``decided``); or (0,)
    allowed: F8x2  # (3, CLASSES) float64: 0 for the classes that each word allows, else −∞
    looks: LookTables
    beliefs: Beliefs
    own: F8  # (...,) float64: all parameters in one
    parameters: Parameters
    tables: DetectionTables
    counts: Counts
    categories: CategoryTables
    scores: ScoreTables


def with_room(prior: Detection, classes: int) -> Detection:
    """The prior with parameters, tables and counts that belong to ``prior.own``."""
    categories = len(prior.categories.share)
    levels, lists, images = len(prior.away), len(prior.person), len(prior.looks.zones) - 1
    viewers, rows = len(prior.looks.viewer_person), len(prior.looks.row_list)
    zones, looks = len(prior.looks.share), len(prior.looks.look_list)
    return prior._replace(
        parameters=Parameters(**parts(prior.own, shapes(prior, classes))),
        tables=DetectionTables(
            absent=np.zeros((viewers, levels, CLASSES)),
            missed=np.zeros((zones, levels, CLASSES)),
            empty=np.zeros((zones, levels, CLASSES)),
            share=np.zeros((images, CLASSES)),
            usual=np.zeros((levels, CLASSES)),
            found=np.zeros((rows, levels, CLASSES)),
            gain=np.ones((rows, levels, CLASSES)),
            again=np.zeros((lists, CLASSES)),
            most=np.zeros((rows, levels)),
            false=np.zeros(levels),
            look_false=np.zeros(looks),
        ),
        counts=Counts(
            seen=np.zeros((zones, levels, CLASSES)),
            objects=np.zeros((zones, levels, CLASSES)),
            on_image=np.zeros(images),
            of_class=np.zeros((images, CLASSES)),
            class_shape=np.zeros(CLASSES),
            class_rate=np.zeros(CLASSES),
            exposure=np.zeros(images),
            total=np.zeros((viewers, levels, CLASSES)),
            noticed=np.zeros((viewers, levels, CLASSES)),
            listed=np.zeros((CLASSES, lists)),
            silent=np.zeros(CLASSES),
            usual=np.zeros(CLASSES),
            readily=np.zeros(1),
            false=np.zeros(lists),
            look_false=np.zeros(looks),
            false_at=np.zeros(levels),
        ),
        categories=category_room(
            prior.categories.said, categories, len(prior.lists), prior.categories.decided
        ),
        scores=score_room(prior.scores.level, prior.scores.rank, prior.scores.share),
    )


def sizes_of(prior: Detection, classes: int) -> dict[str, int]:
    """The sizes of the axes of parameters."""
    categories = len(prior.categories.share)
    return {
        "class": classes,
        "person": len(prior.lists),
        "expert": len(prior.person),
        "image_of_objects": len(prior.looks.zones) - 1,
        "look": len(prior.looks.look_list),
        "law_of_objects": len(LAW),
        "level": len(prior.away),
        "category": categories,
        "said": categories,
        "score": len(prior.scores.level),
        "tally": len(TALLY),
    }


def shapes(prior: Detection, classes: int) -> dict[str, tuple[int, ...]]:
    """The parameters in their order in ``own``, with their shapes."""
    return shapes_of(Parameters, sizes_of(prior, classes))


def with_own(prior: Detection, own: NDArray[np.float64]) -> Detection:
    """The prior with these parameters; its tables are not filled."""
    return with_room(prior._replace(own=own), len(prior.parameters.class_weight))


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
def log_sum(first, second, third, fourth):
    """log(e^first + ...)."""
    largest = max(first, second, third, fourth)
    if largest == -math.inf:
        return largest
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
def gains(prior, data, state, k, i, end, zone, level):
    """What log P_gz gains in each class by i, if the members of cluster k before ``end`` are there.

    One who does not cover the zone counts as one who looked, though P_gz(∅) is without them. What
    people decided about i leaves some classes out.
    """
    g1, g2, g3, g4 = free_gains(prior, data, state, k, i, end, zone, level)
    return within_word(prior, data.original[i], g1, g2, g3, g4)


@inline_kernel
def free_gains(prior, data, state, k, i, end, zone, level):
    """The same, if nothing was decided about i."""
    if is_again(prior, data, state, k, i, end):
        again = prior.tables.again[data.family[i]]
        return again[0], again[1], again[2], again[3]
    item = data.original[i]
    row = prior.looks.row[item]
    found = prior.tables.found[row, level]
    if is_outside(prior, item, zone):
        absent = prior.tables.absent[prior.looks.row_viewer[row], level]
        return (
            found[0] + absent[0],
            found[1] + absent[1],
            found[2] + absent[2],
            found[3] + absent[3],
        )
    return found[0], found[1], found[2], found[3]


@inline_kernel
def class_weights(prior, data, state, k, zone, level):
    """log of Λ_v π_vg ω_l / m_l P_gz(S) for the members S of cluster k, in each class."""
    empty = prior.tables.empty[zone, level]
    first, second, third, fourth = empty[0], empty[1], empty[2], empty[3]
    j = state.head[k]
    while j != NONE:
        g1, g2, g3, g4 = gains(prior, data, state, k, j, j, zone, level)
        first, second, third, fourth = first + g1, second + g2, third + g3, fourth + g4
        j = state.after[j]
    return first, second, third, fourth


@inline_kernel
def log_false(prior, data, i, level):
    """log of the part of factor({f}) of marking i that is false; −∞ if people said it is real."""
    if word_of(prior, data.original[i]) == REAL:
        return -math.inf
    rate = prior.tables.look_false[prior.looks.look[data.original[i]]]
    return rate + prior.tables.false[level] + log_marks_false(prior, data, i)


@lean_kernel
def log_alone(prior, data, i, level):
    """log factor({f}) of marking i."""
    item = data.original[i]
    empty = prior.tables.empty[prior.looks.zone[item], level]
    found = prior.tables.found[prior.looks.row[item], level]
    w1, w2, w3, w4 = within_word(
        prior,
        item,
        empty[0] + found[0],
        empty[1] + found[1],
        empty[2] + found[2],
        empty[3] + found[3],
    )
    real = log_sum(w1, w2, w3, w4)
    real += log_marks_alone(prior, data, i)
    false = log_false(prior, data, i, level)
    return max(real, false) + math.log1p(math.exp(-abs(real - false)))


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
    return log_alone(prior, data, i, level_alone(prior, data, i, size))


@lean_kernel
def log_join_by_members(prior, data, state, i, k, size):
    """log of factor(S + f) / factor(S) where the two may differ in zone and level."""
    zone = zone_of(prior, data, state, k, NONE)
    level = level_with(prior, data, state, k, NONE, size)
    first, second, third, fourth = class_weights(prior, data, state, k, zone, level)
    before = log_sum(first, second, third, fourth)
    if state.size[k] == 1:
        head = state.head[k]
        false = log_false(prior, data, head, level) - log_marks_alone(prior, data, head)
        before = max(before, false) + math.log1p(math.exp(-abs(before - false)))
    zone = zone_of(prior, data, state, k, i)
    level = level_with(prior, data, state, k, i, size)
    first, second, third, fourth = class_weights(prior, data, state, k, zone, level)
    g1, g2, g3, g4 = gains(prior, data, state, k, i, NONE, zone, level)
    after = log_sum(first + g1, second + g2, third + g3, fourth + g4)
    return after - before + log_marks_gain(prior, data, state, i, k)


@implements(partition_prior.log_join, Detection)
@inline_kernel
def log_join(prior, data, state, scratch, i, k, size):
    """log of factor(S + f) / factor(S)."""
    if by_members(prior) or is_decided(prior, data.original[i]):
        return log_join_by_members(prior, data, state, i, k, size)
    level, family = level_of(prior, size), data.family[i]
    zone = prior.looks.zone[data.original[i]]
    first, second, third, fourth = class_weights(prior, data, state, k, zone, level)
    largest = max(first, second, third, fourth)
    w1, w2 = math.exp(first - largest), math.exp(second - largest)
    w3, w4 = math.exp(third - largest), math.exp(fourth - largest)
    if is_again(prior, data, state, k, i, NONE):
        again = prior.tables.again[family]
        after = w1 * math.exp(again[0]) + w2 * math.exp(again[1])
        after += w3 * math.exp(again[2]) + w4 * math.exp(again[3])
    else:
        gain = prior.tables.gain[prior.looks.row[data.original[i]], level]
        after = w1 * gain[0] + w2 * gain[1] + w3 * gain[2] + w4 * gain[3]
    marks = log_marks_gain(prior, data, state, i, k)
    if state.size[k] > 1:
        return math.log(after / (w1 + w2 + w3 + w4)) + marks
    # Of the one member it is not known whether it is real.
    head = state.head[k]
    false = log_false(prior, data, head, level) - log_marks_alone(prior, data, head) - largest
    false = math.exp(min(false, 600.0))
    return math.log(after / (w1 + w2 + w3 + w4 + false)) + marks


@implements(partition_prior.log_join_bound, Detection)
@inline_kernel
def log_join_bound(prior, data, i, size):
    """The largest gain in any class: a mean of gains is no larger, and what is false gains none.

    Where joining may change the zone or level of a cluster, there is no cheap bound.
    """
    if by_members(prior):
        return math.inf
    most = prior.tables.most[prior.looks.row[data.original[i]], level_of(prior, size)]
    return most + log_marks_most(prior, data, i)


@implements(partition_prior.log_cluster, Detection)
@lean_kernel
def log_cluster(prior, data, state, k, size):
    """log factor(S)."""
    level = level_with(prior, data, state, k, NONE, size)
    if state.size[k] == 1:
        return log_alone(prior, data, state.head[k], level)
    zone = zone_of(prior, data, state, k, NONE)
    first, second, third, fourth = class_weights(prior, data, state, k, zone, level)
    return log_sum(first, second, third, fourth) + log_marks(prior, data, state, k)


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
def has_decoys(prior):
    """Whether the last class is none of objects."""
    return prior.parameters.class_weight.shape[0] > prior.real


@inline_kernel
def log_noticed(parameters, g, p, away):
    """log s and log(1 − s) of a person for a class at a level."""
    logit = parameters.notice[g, p] + parameters.slope[p] * away
    if logit > 0.0:
        log_s = -math.log1p(math.exp(-logit))
        return log_s, log_s - logit
    log_not = -math.log1p(math.exp(logit))
    return log_not + logit, log_not


@inline_kernel
def log_unseen(logit):
    """log of the probability not to notice an object with these log odds."""
    return -max(logit, 0.0) - math.log1p(math.exp(-abs(logit)))


@inline_kernel
def usual_notice(prior, g):
    """ā_g: the mean of a_gp over all persons."""
    total, persons = 0.0, prior.lists.shape[0]
    for p in range(persons):
        total += prior.parameters.notice[g, p]
    return total / persons


@lean_kernel
def log_unlisted(prior, g, viewer):
    """log of the probability that what a viewer notices of a class is on none of their lists."""
    looks = prior.looks
    if prior.lists[looks.viewer_person[viewer]] == 1:
        return -math.inf
    total = 0.0
    for row in range(looks.viewer_row[viewer], looks.viewer_row[viewer + 1]):
        total += math.log1p(-prior.parameters.listing[g, looks.row_list[row]])
    return total


@inline_kernel
def log_absent(log_s, log_not, unlisted):
    """log of the probability that none of a viewer's lists has the object: 1 − s + s Π (1 − r)."""
    if unlisted == -math.inf:
        return log_not
    return log_not + math.log1p(math.exp(log_s + unlisted - log_not))


@lean_kernel
def rebuild_viewers(prior):
    """What depends on skills and listing: the tables of viewers and of their rows."""
    parameters, tables, looks = prior.parameters, prior.tables, prior.looks
    tables.again[:] = 0.0
    tables.absent[:] = 0.0
    tables.found[:] = 0.0
    for viewer in range(looks.viewer_person.shape[0]):
        p = looks.viewer_person[viewer]
        several = prior.lists[p] > 1
        for g in range(parameters.class_weight.shape[0]):
            unlisted = log_unlisted(prior, g, viewer)
            for level in range(prior.away.shape[0]):
                log_s, log_not = log_noticed(parameters, g, p, prior.away[level])
                absent = log_absent(log_s, log_not, unlisted)
                tables.absent[viewer, level, g] = absent
                for row in range(looks.viewer_row[viewer], looks.viewer_row[viewer + 1]):
                    f, gain = looks.row_list[row], log_s - absent
                    if several:
                        r = parameters.listing[g, f]
                        tables.again[f, g] = math.log(r) - math.log1p(-r)
                        gain += unlisted + tables.again[f, g]
                    # Within what doubles hold; beyond it nothing is in doubt.
                    tables.found[row, level, g] = min(max(gain, -600.0), 600.0)


@lean_kernel
def rebuild_gains(prior):
    """What only joining a cluster asks for: the gains of rows, and the largest."""
    tables, looks = prior.tables, prior.looks
    tables.gain[:] = 1.0
    tables.most[:] = -math.inf
    for row in range(looks.row_list.shape[0]):
        again = tables.again[looks.row_list[row]]
        for level in range(prior.away.shape[0]):
            found, gain = tables.found[row, level], tables.gain[row, level]
            for g in range(prior.parameters.class_weight.shape[0]):
                gain[g] = math.exp(found[g])
                largest = max(found[g], again[g])
                tables.most[row, level] = max(tables.most[row, level], largest)


@inline_kernel
def expected_on(prior, v, g):
    """The expected number of things of a class on an image: Λ_v π_vg."""
    return prior.parameters.expected_objects[v] * prior.tables.share[v, g]


@inline_kernel
def usual_tilt(prior, ease):
    """The mean of e^(θ q_g) over the classes of objects."""
    total = 0.0
    for g in range(prior.real):
        total += math.exp(ease * prior.node[g])
    return total / prior.real


@inline_kernel
def level_share(prior, g, level):
    """The probability of a level of size for what is of class g: ω, of decoys ψ."""
    if g < prior.real:
        return prior.parameters.size_share[level]
    return prior.parameters.false_size[level]


@lean_kernel
def rebuild_usual(prior):
    """What is the same on every image."""
    parameters, usual = prior.parameters, prior.tables.usual
    for level in range(prior.away.shape[0]):
        for g in range(parameters.class_weight.shape[0]):
            share = max(level_share(prior, g, level), LEAST) / prior.usual[level]
            usual[level, g] = math.log(share)


@lean_kernel
def rebuild_shares(prior):
    """π_v of every image."""
    parameters, share = prior.parameters, prior.tables.share
    for v in range(share.shape[0]):
        usual = usual_tilt(prior, parameters.image_ease[v])
        total = 0.0
        for g in range(parameters.class_weight.shape[0]):
            share[v, g] = parameters.class_weight[g]
            if g < prior.real:
                share[v, g] *= math.exp(parameters.image_ease[v] * prior.node[g]) / usual
            total += share[v, g]
        for g in range(parameters.class_weight.shape[0]):
            share[v, g] /= total


@lean_kernel
def rebuild_zone(prior, v, zone):
    """What nobody finds in a zone of an image."""
    tables, looks = prior.tables, prior.looks
    if looks.silent[zone] > 0.0:
        for g in range(prior.parameters.class_weight.shape[0]):
            unseen = looks.silent[zone] * log_unseen(usual_notice(prior, g))
            for level in range(prior.away.shape[0]):
                tables.missed[zone, level, g] += unseen
    for look in range(looks.start[zone], looks.start[zone + 1]):
        absent = tables.absent[looks.viewer[look]]
        for level in range(prior.away.shape[0]):
            for g in range(CLASSES):
                tables.missed[zone, level, g] += absent[level, g]
    for g in range(prior.parameters.class_weight.shape[0]):
        # A share may underflow.
        objects = math.log(max(expected_on(prior, v, g), LEAST))
        for level in range(prior.away.shape[0]):
            missed = tables.missed[zone, level, g]
            tables.empty[zone, level, g] = objects + tables.usual[level, g] + missed


@entry_kernel
def rebuild_tables(prior: Detection):
    """Bring the tables up to date with the parameters."""
    rebuild_weights(prior)
    rebuild_gains(prior)


@lean_kernel
def rebuild_weights(prior):
    """The same for who joins no cluster: all but the gains."""
    parameters, tables, looks = prior.parameters, prior.tables, prior.looks
    rebuild_viewers(prior)
    rebuild_usual(prior)
    rebuild_shares(prior)
    tables.missed[:] = 0.0
    tables.empty[:] = -math.inf
    for v in range(looks.zones.shape[0] - 1):
        for zone in range(looks.zones[v], looks.zones[v + 1]):
            rebuild_zone(prior, v, zone)
    for look in range(looks.look_list.shape[0]):
        tables.look_false[look] = math.log(max(parameters.false_marks_on[look], LEAST))
    for level in range(prior.away.shape[0]):
        share = max(parameters.false_size[level], LEAST) / prior.usual[level]
        tables.false[level] = math.log(share)
    if has_categories(prior):
        rebuild_categories(prior)
    if has_scores(prior):
        rebuild_scores(prior)
