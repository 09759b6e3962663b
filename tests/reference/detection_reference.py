"""The detection prior in plain loops, and exact draws of everything under it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np

from dfcrp.detection_settings import DetectionSettings
from dfcrp.kernels.detection import Detection, rebuild_tables
from dfcrp.sampling.detection import for_chain, make_detection
from dfcrp.sampling.problem import Problem
from reference import kernel_reference as reference
from reference import small_problems as small
from reference.joint_draws import JointDraws, seat_partition_row


def make_prior(families, persons, *, sizes=(2.0, 4.0), seed=None, **settings) -> Detection:
    """A prior for a few markings; with a seed its parameters are random."""
    families = np.asarray(families)
    chosen = DetectionSettings(**{"classes": 2, **settings})
    log_sizes = None if sizes is None else np.linspace(*sizes, len(families))
    prior = make_detection(chosen, log_sizes, families, np.asarray(persons))
    if seed is not None:
        rng = np.random.default_rng([seed, 90])
        prior.own[:] = draw_parameters(rng, prior, 1)[0]
    rebuild_tables(prior)
    return prior


def with_prior(problem: Problem, prior: Detection) -> Problem:
    """The problem under this prior."""
    names = tuple(map(str, range(len(prior.own))))
    return replace(problem, prior=prior, alpha_start=math.nan, prior_names=names)


def level_of(prior: Detection, size: float) -> int:
    """The level whose bounds hold the size, or the nearest."""
    if size < prior.low:
        return 0
    for level in range(len(prior.away)):
        if prior.low + level * prior.step <= size < prior.low + (level + 1) * prior.step:
            return level
    return len(prior.away) - 1


def history(prior: Detection, g: int, level: int, members) -> float:
    """P_g(S): the probability that exactly the experts ``members`` list an object."""
    parameters, probability = prior.parameters, 1.0
    for p in range(len(prior.lists)):
        logit = parameters.skill[g, p] + parameters.slope[p] * prior.away[level]
        s = 1.0 / (1.0 + math.exp(-logit))
        lists = [f for f in range(len(prior.person)) if prior.person[f] == p]
        noticed = s
        for f in lists:
            r = parameters.listing[f] if len(lists) > 1 else 1.0
            noticed *= r if f in members else 1.0 - r
        absent = 0.0 if any(f in members for f in lists) else 1.0 - s
        probability *= noticed + absent
    return probability


def log_factor(prior: Detection, members, size: float) -> float:
    """log factor(S) for the experts in a cluster."""
    parameters, level = prior.parameters, level_of(prior, size)
    total = 0.0
    for g, weight in enumerate(parameters.weight):
        seen = 1.0 - history(prior, g, level, ())
        total += parameters.objects[0] * weight * history(prior, g, level, members) / seen
    if len(members) == 1:
        total += parameters.false[members[0]]
    return math.log(total)


def log_partition(prior: Detection, labels, families, sizes=None) -> float:
    """log of the product over clusters; ``sizes`` by marking, of its cluster."""
    sizes = np.zeros(len(labels)) if sizes is None else sizes
    return sum(
        log_factor(prior, [families[i] for i in members], sizes[members[0]])
        for members in reference.clusters(labels)
    )


def draw_parameters(rng, prior: Detection, count: int) -> np.ndarray:
    """Draws of ``own`` from the beliefs, (count, parameters); the easiest class first."""
    beliefs, (classes, persons) = prior.beliefs, prior.parameters.skill.shape
    families = len(prior.person)
    ease = rng.normal(beliefs.ease_mean, beliefs.ease_sd, (count, classes))
    ease = -np.sort(-ease, axis=1)
    skill = ease[:, :, None] + beliefs.skill_sd * rng.standard_normal((count, classes, persons))
    slope = beliefs.slope_sd * rng.standard_normal((count, persons))
    listing = rng.beta(beliefs.listing_a, beliefs.listing_b, (count, families))
    alone = prior.lists[prior.person] == 1
    listing[:, alone] = prior.parameters.listing[alone]
    false = rng.standard_gamma(beliefs.false_shape, (count, families)) / beliefs.false_rate
    objects = rng.standard_gamma(beliefs.objects_shape, (count, 1)) / beliefs.objects_rate
    weight = rng.dirichlet([beliefs.class_weight] * classes, count)
    return np.concatenate(
        [weight, ease, skill.reshape(count, -1), slope if len(prior.away) > 1 else 0 * slope,
         listing, false, objects, np.zeros((count, 3))], axis=1
    )  # fmt: skip


def find_objects(rng, prior: Detection, sizes) -> list[list[int]]:
    """Who lists each object of these sizes, drawn until somebody does."""
    parameters, found = prior.parameters, []
    for size in sizes:
        g = rng.choice(len(parameters.weight), p=parameters.weight)
        level, members = level_of(prior, size), []
        while not members:
            for p in range(len(prior.lists)):
                logit = parameters.skill[g, p] + parameters.slope[p] * prior.away[level]
                if rng.random() * (1.0 + math.exp(-logit)) < 1.0:
                    lists = [f for f in range(len(prior.person)) if prior.person[f] == p]
                    members += [
                        f for f in lists if len(lists) == 1 or rng.random() < parameters.listing[f]
                    ]
        found.append(members)
    return found


def draw_joint(problem: Problem, families, draws: int, seed: int) -> JointDraws:
    """Exact draws of (parameters, c, θ, y) given how many markings each expert has.

    Objects and false marks are made by the story the model tells; whatever does not come to the
    asked-for numbers of markings is thrown away.
    """
    rng = np.random.default_rng([seed, 91])
    template = problem.prior
    prior = for_chain(template, template.own.copy())
    wanted, hyper = np.bincount(families), problem.hyper
    own, labels, sizes = [], [], []
    while len(own) < draws:
        batch = draw_parameters(rng, template, 4000)
        first = len(template.own) - 4 - len(wanted)
        n_false = rng.poisson(batch[:, first : first + len(wanted)])
        n_objects = rng.poisson(batch[:, first + len(wanted)])
        # Fewer objects than an expert still needs markings, or too many false ones, cannot do.
        lacking = wanted - n_false
        hopeful = (lacking >= 0).all(axis=1) & (n_objects >= lacking.max(axis=1))
        for row in np.flatnonzero(hopeful & (n_objects <= lacking.sum(axis=1))):
            prior.own[:] = batch[row]
            log_size = rng.normal(hyper.mu0_l, math.sqrt(hyper.var0_l), n_objects[row])
            clusters = find_objects(rng, prior, log_size)
            got = np.bincount([f for members in clusters for f in members], minlength=len(wanted))
            if (got != lacking[row]).any():
                continue
            clusters += [[f] for f, count in enumerate(n_false[row]) for _ in range(count)]
            extra = rng.normal(hyper.mu0_l, math.sqrt(hyper.var0_l), n_false[row].sum())
            label, size = _hand_out(rng, families, clusters, np.concatenate([log_size, extra]))
            own.append(batch[row])
            labels.append(label)
            sizes.append(size)
    return _complete(problem, families, np.array(own), labels, np.array(sizes), rng)


def _hand_out(rng, families, clusters, log_size):
    """Say which of an expert's markings is in which cluster: any, equally likely."""
    families = np.asarray(families)
    label, size = np.zeros(len(families), int), np.zeros(len(families))
    left = {f: rng.permutation(np.flatnonzero(families == f)).tolist() for f in set(families)}
    for k, members in enumerate(clusters):
        for f in members:
            i = left[f].pop()
            label[i], size[i] = k, log_size[k]
    return label, size


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


def parts(prior: Detection) -> dict[str, slice]:
    """Where the parameters are in ``own``."""
    ends = np.cumsum([0, *(np.size(part) for part in prior.parameters)])
    return {
        name: slice(a, b)
        for name, (a, b) in zip(prior.parameters._fields, pairwise(ends), strict=True)
    }
