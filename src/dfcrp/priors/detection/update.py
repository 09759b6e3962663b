"""Updates of the detection prior's parameters given the partition.

For a moment every cluster gets a class, or is called false if it is one marking. Given that, Λ and
its law see the numbers of seen objects only: K_v is Poisson(Λ_v E_v) with E_v the share of objects
that somebody sees, so that Λ_v | K_v is Gamma and p(K | law) a product of negative binomials.
The rates of false marks are in ``false_marks``: what a list does on one image is integrated out.
Then the objects that nobody marked are drawn, and each viewer who may have noticed an object
without listing it is asked whether they did. Given all that the other parameters part: π, ω and ψ
are Dirichlet, r Beta, and what persons notice is in ``noticing``; what belongs to
categories and scores is in the modules of their names. What was filled in is
then forgotten: the update leaves p(parameters | partition, sizes) unchanged.
"""

from __future__ import annotations

import math
from typing import NamedTuple

from dfcrp.compiled.jit import implements, inline_kernel, lean_kernel
from dfcrp.compiled.slice import log_target, slice_update
from dfcrp.compiled.state import NONE
from dfcrp.likelihoods import contract as likelihood
from dfcrp.priors import contract as partition_prior
from dfcrp.priors.detection.categories import (
    count_category,
    count_false_category,
    draw_dirichlet,
    forget_categories,
    has_categories,
    update_categories,
)
from dfcrp.priors.detection.false_marks import update_false_marks
from dfcrp.priors.detection.kernel import (
    CLASSES,
    LEAST,
    Detection,
    class_weights,
    is_again,
    level_share,
    log_absent,
    log_false,
    log_noticed,
    log_unlisted,
    rebuild_tables,
    usual_tilt,
)
from dfcrp.priors.detection.marks import log_marks_alone
from dfcrp.priors.detection.noticing import update_curves
from dfcrp.priors.detection.places import is_outside, level_with, zone_of
from dfcrp.priors.detection.scores import (
    count_score,
    count_scores,
    forget_scores,
    has_scores,
    update_scores,
)

#: What ``draw_class`` says of a false mark.
FALSE = CLASSES
#: Entries of ``objects_law``.
SHAPE, MEAN = 0, 1
#: Width of the first bracket of the slice updates.
WIDTH = 1.0
#: Updates of the parameters in a scan.
ROUNDS = 4
#: Nothing is listed with certainty by someone with several lists.
ALMOST_ONE = 1.0 - 1e-12
#: Nor left out with certainty.
TINY = 1e-12
#: No image has more objects that nobody marked: counting to an infinite mean would never end.
MOST_OBJECTS = 1e7


@lean_kernel
def draw_class(rng, prior, data, state, k, zone, level):
    """The class of cluster k given its members, or FALSE."""
    first, second, third, fourth = class_weights(prior, data, state, k, zone, level)
    largest = max(first, second, third, fourth)
    false = -math.inf
    if state.size[k] == 1:
        head = state.head[k]
        false = log_false(prior, data, head, level) - log_marks_alone(prior, data, head)
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
def draw_poisson(rng, expected):
    """A Poisson number, as arrivals within one unit of time, that ends at ``MOST_OBJECTS``."""
    count, spent = 0.0, rng.standard_exponential()
    while spent < expected and count < MOST_OBJECTS:
        count += 1.0
        spent += rng.standard_exponential()
    return count


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
    counts, looks = prior.counts, prior.looks
    counts.seen[:] = 0.0
    counts.on_image[:] = 0.0
    counts.total[:] = 0.0
    counts.noticed[:] = 0.0
    counts.listed[:] = 0.0
    counts.false[:] = 0.0
    counts.look_false[:] = 0.0
    counts.false_at[:] = 0.0
    if has_categories(prior):
        forget_categories(prior)
    if has_scores(prior):
        forget_scores(prior)
    for k in range(state.theta.shape[0]):
        if state.size[k] <= 0:
            continue
        zone = zone_of(prior, data, state, k, NONE)
        size = likelihood.size_of(hyper, state.theta, k)
        level = level_with(prior, data, state, k, NONE, size)
        g = draw_class(rng, prior, data, state, k, zone, level)
        j = state.head[k]
        if g == FALSE:
            counts.false[data.family[j]] += 1.0
            counts.look_false[looks.look[data.original[j]]] += 1.0
            counts.false_at[level] += 1.0
            if has_categories(prior):
                count_false_category(prior, data, j)
            if has_scores(prior):
                count_score(prior.scores.false, prior, data, j)
            continue
        if has_categories(prior):
            count_category(rng, prior, data, state, k)
        if has_scores(prior):
            count_scores(prior, data, state, k)
        counts.seen[zone, level, g] += 1.0
        counts.on_image[looks.image[data.original[j]]] += 1.0
        while j != NONE:
            counts.listed[g, data.family[j]] += 1.0
            if not is_again(prior, data, state, k, j, j):
                viewer = looks.row_viewer[looks.row[data.original[j]]]
                counts.noticed[viewer, level, g] += 1.0
                if is_outside(prior, data.original[j], zone):
                    counts.total[viewer, level, g] += 1.0
            j = state.after[j]


@lean_kernel
def expose(prior):
    """E_v = Σ w_z π_vg ω_l (1 − P_gz(∅; l)): the share of an image's objects that somebody sees."""
    parameters, looks = prior.parameters, prior.looks
    for v in range(looks.zones.shape[0] - 1):
        share = 0.0
        for zone in range(looks.zones[v], looks.zones[v + 1]):
            for level in range(prior.away.shape[0]):
                for g in range(parameters.class_weight.shape[0]):
                    weight = prior.tables.share[v, g] * level_share(prior, g, level)
                    weight *= looks.share[zone]
                    share -= weight * math.expm1(prior.tables.missed[zone, level, g])
        prior.counts.exposure[v] = max(share, TINY)


class LawOfObjects(NamedTuple):
    """The logarithm of the shape or mean of Λ's law, given the numbers of seen objects."""

    prior: Detection
    which: int


@implements(log_target, LawOfObjects)
@lean_kernel
def log_law_of_objects(target, value):
    """Negative binomials, Λ integrated out, and the log-normal prior."""
    prior, beliefs = target.prior, target.prior.beliefs
    shape, mean = prior.parameters.objects_law[SHAPE], prior.parameters.objects_law[MEAN]
    if abs(value) > 50.0:
        return -math.inf
    if target.which == SHAPE:
        shape = math.exp(value)
        z = (value - math.log(beliefs.objects_shape)) / beliefs.objects_shape_sd
    else:
        mean = math.exp(value)
        z = (value - math.log(beliefs.objects_mean)) / beliefs.objects_mean_sd
    rate, total = shape / mean, -0.5 * z * z
    for v in range(prior.counts.on_image.shape[0]):
        seen = prior.counts.on_image[v]
        total -= shape * math.log1p(prior.counts.exposure[v] / rate)
        if seen > 0.0:
            total += math.lgamma(shape + seen) - math.lgamma(shape)
            total -= seen * math.log(rate + prior.counts.exposure[v])
    return total


@lean_kernel
def update_objects(rng, prior):
    """Λ and its law, given how many objects were seen on each image."""
    parameters, counts = prior.parameters, prior.counts
    expose(prior)
    for which in range(2):
        start = math.log(parameters.objects_law[which])
        drawn = slice_update(rng, LawOfObjects(prior, which), start, WIDTH, 1e-13)
        parameters.objects_law[which] = math.exp(drawn)
    shape = parameters.objects_law[SHAPE]
    rate = shape / parameters.objects_law[MEAN]
    for v in range(counts.on_image.shape[0]):
        drawn = rng.standard_gamma(shape + counts.on_image[v]) / (rate + counts.exposure[v])
        parameters.expected_objects[v] = max(drawn, LEAST)


@lean_kernel
def draw_cell(rng, prior, v):
    """The zone, level and class of an object on image v that nobody marked."""
    parameters, looks, missed = prior.parameters, prior.looks, prior.tables.missed
    classes, levels = parameters.class_weight.shape[0], prior.away.shape[0]
    left = rng.random() * (1.0 - prior.counts.exposure[v])
    chosen, largest = (looks.zones[v], 0, 0), 0.0
    for zone in range(looks.zones[v], looks.zones[v + 1]):
        for level in range(levels):
            for g in range(classes):
                weight = prior.tables.share[v, g] * level_share(prior, g, level)
                weight *= looks.share[zone] * math.exp(missed[zone, level, g])
                left -= weight
                if left < 0.0:
                    return zone, level, g
                if weight > largest:
                    chosen, largest = (zone, level, g), weight
    # Rounding has left a little over.
    return chosen


@lean_kernel
def fill_in_missed(rng, prior):
    """Add the objects nobody marked, and all objects to those who looked.

    An image has Poisson(Λ_v (1 − E_v)) of them, few as a rule; each has a zone, level and class.
    """
    counts, parameters, looks = prior.counts, prior.parameters, prior.looks
    classes, levels = parameters.class_weight.shape[0], prior.away.shape[0]
    counts.silent[:] = 0.0
    for zone in range(looks.share.shape[0]):
        for level in range(levels):
            for g in range(classes):
                counts.objects[zone, level, g] = counts.seen[zone, level, g]
    for v in range(looks.zones.shape[0] - 1):
        missed = draw_poisson(rng, parameters.expected_objects[v] * (1.0 - counts.exposure[v]))
        for _ in range(int(missed)):
            zone, level, g = draw_cell(rng, prior, v)
            counts.objects[zone, level, g] += 1.0
    for zone in range(looks.share.shape[0]):
        for level in range(levels):
            for g in range(classes):
                objects = counts.objects[zone, level, g]
                counts.silent[g] += objects * looks.silent[zone]
                if objects > 0.0:
                    for look in range(looks.start[zone], looks.start[zone + 1]):
                        counts.total[looks.viewer[look], level, g] += objects


@lean_kernel
def fill_in_unlisted(rng, prior):
    """Who noticed an object and did not list it; only persons with several lists do so."""
    counts, parameters, looks = prior.counts, prior.parameters, prior.looks
    for viewer in range(looks.viewer_person.shape[0]):
        p = looks.viewer_person[viewer]
        if prior.lists[p] == 1:
            continue
        for g in range(parameters.class_weight.shape[0]):
            unlisted = log_unlisted(prior, g, viewer)
            for level in range(prior.away.shape[0]):
                absent = counts.total[viewer, level, g] - counts.noticed[viewer, level, g]
                if absent > 0.0:
                    log_s, log_not = log_noticed(parameters, g, p, prior.away[level])
                    kept = math.exp(log_s + unlisted - log_absent(log_s, log_not, unlisted))
                    counts.noticed[viewer, level, g] += draw_binomial(rng, absent, kept)


@lean_kernel
def count_classes(prior):
    """How many objects of each class are on every image, seen and missed."""
    counts, looks = prior.counts, prior.looks
    counts.of_class[:] = 0.0
    for v in range(looks.zones.shape[0] - 1):
        for zone in range(looks.zones[v], looks.zones[v + 1]):
            for level in range(prior.away.shape[0]):
                for g in range(CLASSES):
                    counts.of_class[v, g] += counts.objects[zone, level, g]


@lean_kernel
def update_weights(rng, prior):
    """π given θ and the counts, by way of Gamma variables.

    π are weights w_g ~ Gamma(class_weight), divided by their sum. With u_v ~ Gamma(n_v) divided by
    Σ_g w_g e_vg, where e_vg is by how much an image has more of a class, w_g is Gamma, too.
    """
    parameters, beliefs, counts = prior.parameters, prior.beliefs, prior.counts
    classes, images = parameters.class_weight.shape[0], counts.on_image.shape[0]
    sum_of_weights = rng.standard_gamma(classes * beliefs.class_weight)
    shape, rate = counts.class_shape, counts.class_rate
    shape[:], rate[:] = beliefs.class_weight, 1.0
    for v in range(images):
        ease, total, number = parameters.image_ease[v], 0.0, 0.0
        usual = usual_tilt(prior, ease)
        for g in range(classes):
            weight = sum_of_weights * parameters.class_weight[g]
            total += weight * more_of(prior, ease, usual, g)
            number += counts.of_class[v, g]
            shape[g] += counts.of_class[v, g]
        if number > 0.0:
            u = rng.standard_gamma(number) / max(total, LEAST)
            for g in range(classes):
                rate[g] += u * more_of(prior, ease, usual, g)
    total = 0.0
    for g in range(classes):
        parameters.class_weight[g] = max(rng.standard_gamma(shape[g]) / rate[g], LEAST)
        total += parameters.class_weight[g]
    for g in range(classes):
        parameters.class_weight[g] /= total


@inline_kernel
def more_of(prior, ease, usual, g):
    """By how much an image with this θ has more objects of a class; of decoys it has as many."""
    return math.exp(ease * prior.node[g]) / usual if g < prior.real else 1.0


class EaseOfImage(NamedTuple):
    """θ of an image, given how many objects of each class it has."""

    prior: Detection
    v: int


@implements(log_target, EaseOfImage)
@lean_kernel
def log_ease_of_image(target, value):
    """Multinomial, and the normal prior."""
    prior, v, parameters = target.prior, target.v, target.prior.parameters
    z = value / parameters.image_ease_sd[0]
    usual, total, number, found = usual_tilt(prior, value), 0.0, 0.0, -0.5 * z * z
    for g in range(parameters.class_weight.shape[0]):
        more, count = more_of(prior, value, usual, g), prior.counts.of_class[v, g]
        total += parameters.class_weight[g] * more
        if count > 0.0:
            number += count
            found += count * math.log(max(more, LEAST))
    return found - number * math.log(max(total, LEAST))


@lean_kernel
def update_image_eases(rng, prior):
    """θ of one image after the other, then how much they differ."""
    parameters, beliefs, spread = prior.parameters, prior.beliefs, 0.0
    images = parameters.image_ease.shape[0]
    for v in range(images):
        start = parameters.image_ease[v]
        drawn = slice_update(rng, EaseOfImage(prior, v), start, WIDTH, 1e-13)
        parameters.image_ease[v] = drawn
        spread += drawn * drawn
    shape = beliefs.image_ease_sd_shape + 0.5 * images
    rate = beliefs.image_ease_sd_shape * beliefs.image_ease_sd**2 + 0.5 * spread
    parameters.image_ease_sd[0] = math.sqrt(rate / rng.standard_gamma(shape))


@lean_kernel
def update_shares(rng, prior):
    """π and θ, and ω and ψ unless they are held, given the counts."""
    parameters, beliefs = prior.parameters, prior.beliefs
    count_classes(prior)
    if parameters.image_ease_sd[0] > 0.0:
        update_weights(rng, prior)
        update_image_eases(rng, prior)
    else:
        for g in range(parameters.class_weight.shape[0]):
            parameters.class_weight[g] = beliefs.class_weight
            for v in range(prior.counts.of_class.shape[0]):
                parameters.class_weight[g] += prior.counts.of_class[v, g]
        draw_dirichlet(rng, parameters.class_weight)
    if beliefs.size_weight < math.inf:
        update_sizes(rng, prior)


@lean_kernel
def update_sizes(rng, prior):
    """ω and ψ given the counts."""
    parameters, counts = prior.parameters, prior.counts
    for level in range(prior.away.shape[0]):
        expected = prior.beliefs.size_weight * prior.usual[level]
        parameters.size_share[level] = expected
        parameters.false_size[level] = expected + counts.false_at[level]
        for zone in range(counts.objects.shape[0]):
            for g in range(prior.real):
                parameters.size_share[level] += counts.objects[zone, level, g]
            for g in range(prior.real, parameters.class_weight.shape[0]):
                parameters.false_size[level] += counts.objects[zone, level, g]
    draw_dirichlet(rng, parameters.size_share)
    draw_dirichlet(rng, parameters.false_size)


@lean_kernel
def update_rates(rng, prior):
    """The rates of false marks and r given the counts; and the tally."""
    parameters, counts = prior.parameters, prior.counts
    seen, total = 0.0, 0.0
    for zone in range(counts.objects.shape[0]):
        for level in range(prior.away.shape[0]):
            for g in range(prior.real):
                seen += counts.seen[zone, level, g]
                total += counts.objects[zone, level, g]
    parameters.tally[0], parameters.tally[1], parameters.tally[2] = seen, total - seen, 0.0
    for f in range(prior.person.shape[0]):
        parameters.tally[2] += counts.false[f]
        for g in range(prior.real, parameters.class_weight.shape[0]):
            parameters.tally[2] += counts.listed[g, f]
        if prior.lists[prior.person[f]] > 1:
            update_listing(rng, prior, f)
    update_false_marks(rng, prior)


@lean_kernel
def update_listing(rng, prior, f):
    """r of list f in every class: Beta, as a viewer who noticed an object lists it or not."""
    parameters, beliefs, looks = prior.parameters, prior.beliefs, prior.looks
    for g in range(parameters.class_weight.shape[0]):
        noticed, listed = 0.0, prior.counts.listed[g, f]
        for row in range(looks.row_list.shape[0]):
            if looks.row_list[row] == f:
                for level in range(prior.away.shape[0]):
                    noticed += prior.counts.noticed[looks.row_viewer[row], level, g]
        r = rng.beta(beliefs.listing_a + listed, beliefs.listing_b + noticed - listed)
        parameters.listing[g, f] = min(max(r, TINY), ALMOST_ONE)


@implements(partition_prior.update_prior, Detection)
@lean_kernel
def update_detection(prior, rng, data, hyper, state, scratch):
    """All parameters given the partition and the clusters' sizes.

    Several times over: which class an object is of and what the classes are like hold each other
    fast, and a scan's sweeps cost far more.
    """
    for _ in range(ROUNDS):
        count_clusters_by_class(rng, hyper, prior, data, state)
        update_objects(rng, prior)
        fill_in_missed(rng, prior)
        fill_in_unlisted(rng, prior)
        update_curves(rng, prior)
        update_shares(rng, prior)
        update_rates(rng, prior)
        if has_categories(prior):
            update_categories(rng, prior)
        if has_scores(prior):
            update_scores(rng, prior)
        rebuild_tables(prior)
