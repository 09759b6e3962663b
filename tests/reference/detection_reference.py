"""The detection prior in plain loops, and exact draws of everything as states of the sampler."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import islice

import numpy as np

from dfcrp.draws import Columns
from dfcrp.priors.base import Zones
from dfcrp.priors.detection.kernel import Detection, rebuild_tables
from dfcrp.priors.detection.layout import make_detection
from dfcrp.priors.detection.settings import LEARNED_SIZES, LEARNED_SPREAD, DetectionSettings
from dfcrp.sampling.problem import Problem
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.joint_draws import JointDraws, seat_partition_row
from studies.detection_story import Base, draw_parameters, level_of, tell_stories


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
    prior = make_detection(chosen, log_sizes, families, *about, sizes_drawn=sizes_drawn)
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

    Lists in ``also`` looked there too.
    """
    parameters, probability = prior.parameters, 1.0
    there = sorted({*covering(prior, zone), *also})
    if not set(members) <= set(there):
        return 0.0
    for p in {int(prior.person[f]) for f in there}:
        logit = parameters.skill[g, p] + parameters.slope[p] * prior.away[level]
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


def beside(prior: Detection, items) -> list[int]:
    """All lists of the persons who have these markings that cover their image."""
    looks = prior.looks
    viewers = looks.row_viewer[looks.row[list(items)]]
    return [int(f) for f in looks.row_list[np.isin(looks.row_viewer, viewers)]]


def false_factor(prior: Detection, f: int, level: int) -> float:
    """The part of factor({f}) that is false."""
    return prior.parameters.false[f] * prior.parameters.false_size[level] / prior.usual[level]


def real_words(prior: Detection, members, words) -> float:
    """R(S): the probability of what these experts say of one object."""
    parameters, total = prior.parameters, 0.0
    for c, share in enumerate(parameters.category_share):
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
    for g, weight in enumerate(parameters.weight):
        share = weight * parameters.size_share[level] / prior.usual[level]
        listed = history(prior, g, level, members, zone, also)
        total += parameters.objects[image] * share * listed
    false = false_factor(prior, members[0], level) if len(members) == 1 else 0.0
    if len(prior.categories.said):
        words = [int(prior.categories.said[i]) for i in items]
        assert len(words) == len(members)
        total *= real_words(prior, members, words)
        if words[0] >= 0:
            false *= parameters.false_category[words[0]]
    if len(prior.scores.level):
        for f, item in zip(members, items, strict=True):
            total *= score_ratio(prior, f, item)
    return math.log(total + false)


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


def log_nothing_more(prior: Detection) -> float:
    """log of exp(−Λ_v Σ w_z π_g ω_l (1 − P_gz(∅; l)) − Σ w_z φ_f), over all images."""
    parameters, looks, total = prior.parameters, prior.looks, 0.0
    for image, objects in enumerate(parameters.objects):
        for zone in range(looks.zones[image], looks.zones[image + 1]):
            for g, weight in enumerate(parameters.weight):
                for level, share in enumerate(parameters.size_share):
                    seen = 1.0 - history(prior, g, level, (), zone)
                    total -= looks.share[zone] * objects * weight * share * seen
            false = sum(parameters.false[f] for f in covering(prior, zone))
            total -= looks.share[zone] * false
    return total


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
