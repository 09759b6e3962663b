"""The detection prior in plain loops, and exact draws of everything as states of the sampler."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice
from typing import NamedTuple

import numpy as np
from scipy import stats

from dfcrp.draws import Columns
from dfcrp.priors.base import Zones
from dfcrp.priors.detection.decided import REAL, UNREAL
from dfcrp.priors.detection.kernel import Detection, rebuild_tables
from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import LEARNED_SIZES, LEARNED_SPREAD, DetectionSettings
from dfcrp.sampling.problem import Problem
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.joint_draws import JointDraws, seat_partition_row
from studies.detection_story import Base, draw_parameters, level_of, readiness, tell_stories


def make_prior(
    families,
    persons,
    *,
    images=None,
    looks=None,
    said=None,
    scores=None,
    zones=None,
    sizes=(2.0, 4.0),
    sizes_drawn=True,
    looks_known=True,
    reality=None,
    decided=None,
    seed=None,
    **settings,
) -> Detection:
    """A prior for a few markings; with a seed its parameters are random.

    ``zones`` are the markings' zones, and of every zone its image, share and lists. Nothing is
    held unless the settings say so, and slopes are moderate.
    """
    families = np.asarray(families)
    learned = {"size_weight": LEARNED_SIZES, "false_shape_sd": LEARNED_SPREAD}
    chosen = DetectionSettings(**{"classes": 2, "size_slope_sd": 0.5, **learned, **settings})
    log_sizes = None if sizes is None else np.linspace(*sizes, len(families))
    images = None if images is None else np.asarray(images)
    looks = None if looks is None else np.asarray(looks)
    said = None if said is None else np.asarray(said)
    scores = None if scores is None else np.array(scores, float)
    about = (np.asarray(persons), images, looks, said, scores, zones and make_zones(*zones))
    how = {"sizes_drawn": sizes_drawn, "looks_known": looks_known}
    how |= {"reality": reality and np.array(reality, np.int8), "decided": decided}
    how["decided"] = None if decided is None else np.array(decided)
    prior = make_detection(chosen, log_sizes, families, *about, **how)
    if seed is not None:
        rng = np.random.default_rng([seed, 90])
        prior.own[:] = draw_parameters(rng, prior, 1)[0]
    rebuild_tables(prior)
    return prior


def make_zones(places, each) -> Zones:
    """Zones of which each is an image, a share and the lists that cover it."""
    pairs = [(z, f) for z, (_, _, lists) in enumerate(each) for f in lists]
    images, shares = ([one[at] for one in each] for at in (0, 1))
    return Zones(np.array(places), np.array(images), np.array(shares), np.array(pairs))


def with_prior(problem: Problem, prior: Detection) -> Problem:
    """The problem under this prior."""
    own = Columns.plain(shared=[f"own {at}" for at in range(len(prior.own))])
    columns = problem.columns.joined(own)
    return replace(problem, prior=prior, alpha_start=math.nan, columns=columns)


def covering(prior: Detection, zone: int) -> list[int]:
    """The lists that cover a zone; without footprints every image is one."""
    looks = prior.looks
    return [
        int(f)
        for look in range(looks.start[zone], looks.start[zone + 1])
        for f in looks.row_list[looks.row_viewer == looks.viewer[look]]
    ]


def history(prior: Detection, g: int, level: int, members, zone: int = 0, also=()) -> float:
    """P_gz(S): the probability that exactly the experts ``members`` list an object of a zone.

    Lists in ``also`` looked there too; silent looks notice nothing.
    """
    parameters, probability = prior.parameters, 1.0
    there = sorted({*covering(prior, zone), *also})
    if not set(members) <= set(there):
        return 0.0
    usual = float(np.mean(parameters.notice[g]))
    probability *= (1.0 / (1.0 + math.exp(usual))) ** prior.looks.silent[zone]
    for p in {int(prior.person[f]) for f in there}:
        logit = parameters.notice[g, p] + parameters.slope[p] * prior.away[level]
        s = 1.0 / (1.0 + math.exp(-logit))
        lists = [f for f in there if prior.person[f] == p]
        noticed = s
        for f in lists:
            r = parameters.listing[g, f] if np.sum(prior.person == p) > 1 else 1.0
            noticed *= r if f in members else 1.0 - r
        absent = 0.0 if any(f in members for f in lists) else 1.0 - s
        probability *= noticed + absent
    return probability


def cell(prior: Detection, size: float, image: int, items) -> tuple[int, int]:
    """The zone that most of a cluster's markings lie in, and the level of its size."""
    first = int(prior.looks.zones[image])
    if not len(items):
        return first, level_of(prior, size)
    counts = np.bincount(prior.looks.zone[list(items)])
    if not len(prior.sizes):
        return int(counts.argmax()), level_of(prior, size)
    mean = prior.low + prior.step * float(np.mean(prior.sizes[list(items)]))
    return int(counts.argmax()), level_of(prior, mean)


def share_of(prior: Detection, g: int, level: int) -> float:
    """How likely what is of class g has this level of size; decoys have those of false marks."""
    parameters = prior.parameters
    law = parameters.size_share if g < prior.real else parameters.false_size
    return float(law[level])


def class_shares(prior: Detection, image: int) -> list[float]:
    """π_vg: how likely what is on an image is of each class; eases go in equal steps."""
    parameters, real = prior.parameters, prior.real
    middle = (real - 1) / 2.0
    away = [middle - g for g in range(real)]
    sd = math.sqrt(sum(d * d for d in away) / real) or 1.0
    more = [math.exp(parameters.image_ease[image] * d / sd) for d in away]
    usual = sum(more) / real
    shares = [
        float(weight) * (more[g] / usual if g < real else 1.0)
        for g, weight in enumerate(parameters.class_weight)
    ]
    return [share / sum(shares) for share in shares]


def beside(prior: Detection, items) -> list[int]:
    """All lists of the persons who have these markings that cover their image."""
    looks = prior.looks
    viewers = looks.row_viewer[looks.row[list(items)]]
    return [int(f) for f in looks.row_list[np.isin(looks.row_viewer, viewers)]]


def look_at(prior: Detection, f: int, image: int) -> int:
    """The look of list f with markings on an image."""
    looks = prior.looks
    lists = looks.row_list[looks.row]
    [found] = {int(k) for k in looks.look[(lists == f) & (looks.image == image)]}
    return found


def false_factor(prior: Detection, f: int, level: int, image: int) -> float:
    """The part of factor({f}) that is false."""
    rate = prior.parameters.false_marks_on[look_at(prior, f, image)]
    return rate * prior.parameters.false_size[level] / prior.usual[level]


def what_may_be(prior: Detection, items) -> tuple[list[int], bool]:
    """The classes that people's words on these markings leave, and whether they may be false."""
    classes, false = list(range(len(prior.parameters.class_weight))), True
    for i in items if len(prior.word) else ():
        if prior.word[i] == REAL:
            classes, false = [g for g in classes if g < prior.real], False
        elif prior.word[i] == UNREAL:
            classes = [g for g in classes if g >= prior.real]
    return classes, false


def real_words(prior: Detection, members, words, decided=()) -> float:
    """R(S): the probability of what these experts say of one object.

    ``decided`` are categories that it must be of.
    """
    parameters, total = prior.parameters, 0.0
    for c, share in enumerate(parameters.category_share):
        if any(other != c for other in decided):
            continue
        for f, word in zip(members, words, strict=True):
            if word >= 0:
                share *= parameters.confusion[c, word, prior.person[f]]
        total += share
    return total


def score_ratio(prior: Detection, f: int, item: int) -> float:
    """How much more often a real marking has such a score than a false one."""
    scores, b = prior.scores, prior.scores.level[item]
    if b < 0:
        return 1.0
    logits = prior.parameters.score_slope[f] * scores.rank[f] + prior.parameters.score_offset[f]
    likely = 1.0 / (1.0 + np.exp(-logits))
    real = scores.share[f] * likely / (scores.share[f] * likely).sum()
    false = scores.share[f] * (1.0 - likely) / (scores.share[f] * (1.0 - likely)).sum()
    return float(real[b] / false[b])


def log_factor(prior: Detection, members, size: float, image: int = 0, items=()) -> float:
    """log factor(S) for the experts in a cluster on an image; ``items`` are their markings."""
    parameters, (zone, level) = prior.parameters, cell(prior, size, image, items)
    also, total = beside(prior, items) if len(items) else (), 0.0
    classes, may_be_false = what_may_be(prior, items)
    for g, weight in enumerate(class_shares(prior, image)):
        if g not in classes:
            continue
        share = weight * share_of(prior, g, level) / prior.usual[level]
        listed = history(prior, g, level, members, zone, also)
        total += parameters.expected_objects[image] * share * listed
    alone = len(members) == 1 and may_be_false
    false = false_factor(prior, members[0], level, image) if alone else 0.0
    if len(prior.categories.said):
        words = [int(prior.categories.said[i]) for i in items]
        assert len(words) == len(members)
        decided = (
            [int(c) for c in prior.categories.decided[list(items)]]
            if len(prior.categories.decided)
            else []
        )
        total *= real_words(prior, members, words, [c for c in decided if c >= 0])
        if words[0] >= 0:
            false *= parameters.false_category[words[0]]
    if len(prior.scores.level):
        for f, item in zip(members, items, strict=True):
            total *= score_ratio(prior, f, item)
    return math.log(total + false)


def chance_of_object(prior: Detection, members, size: float, image: int = 0) -> float:
    """How likely a cluster is an object: neither a decoy nor, alone, a false mark."""
    parameters, (_, level) = prior.parameters, cell(prior, size, image, ())
    zone, weights = int(prior.looks.zones[image]), []
    for g, weight in enumerate(class_shares(prior, image)):
        share = weight * share_of(prior, g, level) / prior.usual[level]
        listed = history(prior, g, level, members, zone)
        weights.append(parameters.expected_objects[image] * share * listed)
    false = false_factor(prior, members[0], level, image) if len(members) == 1 else 0.0
    return sum(weights[: prior.real]) / (sum(weights) + false)


def log_partition(prior: Detection, labels, families, sizes=None) -> float:
    """log of the product over clusters; ``sizes`` by marking, of its cluster."""
    sizes = np.zeros(len(labels)) if sizes is None else sizes
    images = prior.looks.image
    return sum(
        log_factor(
            prior,
            [families[i] for i in members],
            sizes[members[0]],
            int(images[members[0]]),
            members,
        )
        for members in reference.clusters(labels)
    )


def shares_covered(prior: Detection) -> dict[tuple[int, int], float]:
    """By list and image the share of the image that the list covers."""
    looks, found = prior.looks, {}
    for image in range(len(looks.zones) - 1):
        for zone in range(looks.zones[image], looks.zones[image + 1]):
            for f in covering(prior, zone):
                found[f, image] = found.get((f, image), 0.0) + float(looks.share[zone])
    return found


def looks_with_markings(prior: Detection) -> dict[tuple[int, int], int]:
    """By list and image the number of the look, of those with markings."""
    looks = prior.looks
    lists = looks.row_list[looks.row]
    return {
        (int(f), int(v)): int(k) for f, v, k in zip(lists, looks.image, looks.look, strict=True)
    }


def log_nothing_more(prior: Detection) -> float:
    """log of exp(−Λ_v Σ w_z π_vg ω_l (1 − P_gz(∅; l)) − Σ φ_fv A_fv), over all images.

    Of looks without markings φ_fv is integrated out.
    """
    parameters, looks, total = prior.parameters, prior.looks, 0.0
    for image, objects in enumerate(parameters.expected_objects):
        for zone in range(looks.zones[image], looks.zones[image + 1]):
            for g, weight in enumerate(class_shares(prior, image)):
                for level in range(len(prior.away)):
                    seen = 1.0 - history(prior, g, level, (), zone)
                    seen *= share_of(prior, g, level)
                    total -= looks.share[zone] * objects * weight * seen
    made = looks_with_markings(prior)
    for at, share in shares_covered(prior).items():
        if at in made:
            total -= parameters.false_marks_on[made[at]] * share
        else:
            total += log_marks_of_look(0.0, share, parameters.false_marks[at[0]], prior)
    return total


def log_marks_of_look(false: float, share: float, rate: float, prior: Detection) -> float:
    """log of the probability of so many false marks of a look, its own rate integrated out."""
    shape, expected = float(prior.parameters.look_shape[0]), rate * share
    if math.isinf(shape):
        return float(stats.poisson.logpmf(false, expected))
    return float(stats.nbinom.logpmf(false, shape, shape / (shape + expected)))


class Integrated(NamedTuple):
    """What a density is without: rates of looks, and of lists as well."""

    looks: bool = False
    lists: bool = False


NOTHING = Integrated()


def log_joint(prior: Detection, without: Integrated = NOTHING) -> float:
    """log p(parameters, who noticed and listed what) for the completed counts, but for a constant.

    Given are, of every zone, level and class, how many objects there are; of every viewer how many
    of them they noticed; of every list how many it has; of every look how many false marks it has.
    Densities are those of 1 / σ², 1 / σ_θ², 1 / q, log κ, log c, and of all other parameters
    themselves. Categories and scores are left out.
    """
    return (
        _log_beliefs(prior, without) + _log_objects(prior) + _log_noticed(prior)
        + _log_false_marks(prior, without)
    )  # fmt: skip


def _log_beliefs(prior: Detection, without: Integrated) -> float:
    parameters, beliefs = prior.parameters, prior.beliefs
    n, real = len(prior.lists), prior.real
    total = _log_notice(prior)
    c = beliefs.skill_sd_shape
    total += stats.gamma.logpdf(
        parameters.skill_sd[0] ** -2, c, scale=1.0 / (c * beliefs.skill_sd**2)
    )
    total += stats.norm.logpdf(parameters.skill, 0.0, parameters.skill_sd[0]).sum()
    if (np.diff([*parameters.ease[:real], beliefs.ease_least]) > 0.0).any():
        return -math.inf
    total += _log_image_eases(prior) + _log_weights(prior)
    total += stats.norm.logpdf(parameters.ease[:real], beliefs.ease_mean, beliefs.ease_sd).sum()
    if len(prior.away) > 1:
        covariance = beliefs.slope_sd**2 * np.eye(n) + beliefs.size_slope_sd**2
        total += stats.multivariate_normal.logpdf(parameters.slope, np.zeros(n), covariance)
    total += stats.gamma.logpdf(
        1.0 / parameters.false_share[0], beliefs.share_shape, scale=1.0 / beliefs.share_rate
    )
    if not without.lists:
        expected = parameters.false_share[0] * beliefs.markings / prior.looks.covered
        shape = parameters.false_shape[0]
        total += stats.gamma.logpdf(parameters.false_marks, shape, scale=expected / shape).sum()
    for name in ("false_shape", "look_shape"):
        about, sd = getattr(beliefs, name), getattr(beliefs, f"{name}_sd")
        if sd > 0.0:
            value = math.log(getattr(parameters, name)[0])
            total += stats.norm.logpdf(value, math.log(about), sd)
    return float(total)


def _log_weights(prior: Detection) -> float:
    """log p(π), where all of it is above 0."""
    weight = prior.parameters.class_weight
    return float(((prior.beliefs.class_weight - 1.0) * np.log(weight)).sum())


def _log_image_eases(prior: Detection) -> float:
    """log p(θ, 1 / σ_θ²), where images differ."""
    parameters, beliefs = prior.parameters, prior.beliefs
    sd, c = parameters.image_ease_sd[0], beliefs.image_ease_sd_shape
    if beliefs.image_ease_sd == 0.0:
        assert sd == 0.0
        assert not parameters.image_ease.any()
        return 0.0
    law = stats.gamma.logpdf(sd**-2, c, scale=1.0 / (c * beliefs.image_ease_sd**2))
    return float(law + stats.norm.logpdf(parameters.image_ease, 0.0, sd).sum())


def _log_notice(prior: Detection) -> float:
    """log p(a | ease, skills, φ) and, of decoys, p(ease), where these are allowed."""
    parameters, beliefs, real = prior.parameters, prior.beliefs, prior.real
    total = 0.0
    for g, p in np.ndindex(real, len(prior.lists)):
        mean = parameters.ease[g] + parameters.skill[p]
        total += stats.norm.logpdf(parameters.notice[g, p], mean, beliefs.interaction_sd)
    if len(parameters.class_weight) == real:
        return float(total)
    ready = readiness(prior, parameters.false_marks[np.newaxis])[0]
    own = parameters.notice[real]
    total += stats.norm.logpdf(own, parameters.ease[real] + ready, beliefs.decoy_sd).sum()
    total += stats.norm.logpdf(parameters.ease[real], beliefs.decoy_ease, beliefs.decoy_ease_sd)
    share = float(np.mean(1.0 / (1.0 + np.exp(-own))))
    return float(total) if beliefs.decoy_least <= share <= beliefs.decoy_most else -math.inf


def _log_objects(prior: Detection) -> float:
    """Poisson numbers of objects by zone, level and class."""
    parameters, looks, total = prior.parameters, prior.looks, 0.0
    for image, objects in enumerate(parameters.expected_objects):
        total -= objects
        shares = class_shares(prior, image)
        for zone in range(looks.zones[image], looks.zones[image + 1]):
            for level, g in np.ndindex(len(prior.away), len(parameters.class_weight)):
                expected = objects * looks.share[zone] * shares[g]
                expected *= share_of(prior, g, level)
                total += prior.counts.objects[zone, level, g] * math.log(expected)
    return float(total)


def _log_noticed(prior: Detection) -> float:
    """Who noticed and listed what, and that silent looks noticed nothing."""
    parameters, looks, counts = prior.parameters, prior.looks, prior.counts
    total = 0.0
    for viewer, p in enumerate(looks.viewer_person):
        for level, away in enumerate(prior.away):
            for g in range(len(parameters.class_weight)):
                logit = parameters.notice[g, p] + parameters.slope[p] * away
                noticed = counts.noticed[viewer, level, g]
                missed = counts.total[viewer, level, g] - noticed
                total -= noticed * math.log1p(math.exp(-logit))
                total -= missed * math.log1p(math.exp(logit))
    for zone, silent in enumerate(looks.silent):
        for g in range(len(parameters.class_weight)):
            objects = counts.objects[zone, :, g].sum()
            total -= silent * objects * math.log1p(math.exp(np.mean(parameters.notice[g])))
    return float(total)


def _log_false_marks(prior: Detection, without: Integrated) -> float:
    """How many false marks there are on every image, and the rates that are not integrated out."""
    parameters, counts = prior.parameters, prior.counts
    shape, made, total = parameters.look_shape[0], looks_with_markings(prior), 0.0
    if without.lists:
        # One rate on all images.
        assert math.isinf(shape)
        c = parameters.false_shape[0]
        expected = parameters.false_share[0] * prior.beliefs.markings
        return float(stats.nbinom.logpmf(counts.false, c, c / (c + expected)).sum())
    for at, share in shares_covered(prior).items():
        usual = parameters.false_marks[at[0]]
        false = counts.look_false[made[at]] if at in made else 0.0
        if at not in made or without.looks or math.isinf(shape):
            total += log_marks_of_look(false, share, usual, prior)
        else:
            rate = parameters.false_marks_on[made[at]]
            total += stats.poisson.logpmf(false, rate * share)
            total += stats.gamma.logpdf(rate, shape, scale=usual / shape)
    return float(total)


def draw_joint(problem: Problem, families, draws: int, seed: int) -> JointDraws:
    """Exact draws of (parameters, c, θ, y) given how many markings each expert has."""
    rng, hyper = np.random.default_rng([seed, 91]), problem.hyper
    base = Base(hyper.mu0_l, math.sqrt(hyper.var0_l))
    told = tell_stories(rng, problem.prior, families, base)
    own, labels, sizes, said, scored = map(np.array, zip(*islice(told, draws), strict=True))
    found = _complete(problem, families, own, labels, sizes, rng)
    found = found if said[0] is None else replace(found, said=said)
    return found if scored[0] is None else replace(found, scored=scored)


def _complete(problem, families, own, labels, sizes, rng) -> JointDraws:
    """Add θ and y and the seating."""
    draws, n = sizes.shape
    seated = [seat_partition_row(row, problem) for row in labels]
    arrays = {name: np.array([row[name] for row in seated]) for name in seated[0]}
    arrays["own"] = own
    # A cluster lives in the slot of its first member, which has the cluster's size.
    rows = small.random_rows(rng, problem.hyper, (draws, n), log_size=sizes)
    arrays["theta"] = small.complete(rows)
    by_marking = np.take_along_axis(rows, arrays["label"][..., None].astype(int), axis=1)
    features = small.random_features(rng, by_marking)
    return JointDraws(problem, np.asarray(families), None, features, arrays)
