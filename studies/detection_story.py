"""Exact draws of everything under the detection prior, made by the story that the model tells.

Objects and false marks come about, experts find or miss, and whatever does not come to the
asked-for numbers of markings is thrown away; so are stories in which a silent look notices an
object. Where looks cover parts of images, all markings of an object lie in its zone.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, ndtr, ndtri

from dfcrp.priors.detection.kernel import Detection, has_decoys
from dfcrp.priors.detection.noticing import LEAST_READY

Floats = NDArray[np.float64]
#: Parameters drawn at a time.
BATCH = 20_000
#: More false marks than this are not counted: they are thrown away in any case.
TOO_MANY = 1e6
#: Images with more objects than this are thrown away: their lists would be longer than asked for,
#: but for a probability that is negligible where experts find what they look for.
MOST_OBJECTS = 200


class Story(NamedTuple):
    """One draw: parameters, labels, and the log size of each marking's object."""

    own: Floats
    labels: NDArray[np.int64]
    sizes: Floats
    #: What each marking says, −1 where the prior's has no category; None without categories.
    said: NDArray[np.int64] | None = None
    #: The level of each marking's score, in the same way.
    scored: NDArray[np.int64] | None = None


def parts(prior: Detection) -> dict[str, slice]:
    """Where the parameters are in ``own``."""
    ends = np.cumsum([0, *(np.size(part) for part in prior.parameters)])
    return {
        name: slice(a, b)
        for name, (a, b) in zip(prior.parameters._fields, pairwise(ends), strict=True)
    }


def draw_parameters(rng: np.random.Generator, prior: Detection, count: int) -> Floats:
    """Draws of ``own`` from the beliefs, (count, parameters); the easiest class first.

    Decoys are as common as the beliefs say: other draws are thrown away.
    """
    kept: list[Floats] = []
    while sum(map(len, kept)) < count:
        kept.append(_draw_parameters(rng, prior, count))
        if has_decoys(prior):
            drawn = kept[-1][:, parts(prior)["notice"]].reshape(count, -1, len(prior.lists))
            share = expit(drawn[:, prior.real]).mean(axis=1)
            allowed = (share >= prior.beliefs.decoy_least) & (share <= prior.beliefs.decoy_most)
            kept[-1] = kept[-1][allowed]
    return np.concatenate(kept)[:count]


def _draw_parameters(rng: np.random.Generator, prior: Detection, count: int) -> Floats:
    beliefs, classes = prior.beliefs, len(prior.parameters.class_weight)
    images = len(prior.parameters.expected_objects)
    false_marks = _draw_false_marks(rng, prior, count)
    shape = beliefs.objects_shape * np.exp(beliefs.objects_shape_sd * rng.normal(size=(count, 1)))
    mean = beliefs.objects_mean * np.exp(beliefs.objects_mean_sd * rng.normal(size=(count, 1)))
    objects = np.maximum(rng.standard_gamma(shape, (count, images)) * mean / shape, 1e-300)
    weight = rng.dirichlet([beliefs.class_weight] * classes, count)
    image_eases = _draw_image_eases(rng, prior, count)
    sizes = [np.tile(prior.usual, (count, 1))] * 2
    if math.isfinite(beliefs.size_weight):
        sizes = [rng.dirichlet(beliefs.size_weight * prior.usual, count) for _ in range(2)]
    words = draw_categories(rng, prior, count) if len(prior.categories.said) else []
    words += draw_scores(rng, prior, count) if len(prior.scores.level) else []
    noticing = _draw_noticing(rng, prior, false_marks[0])
    return np.concatenate(
        [
            weight,
            *image_eases,
            *noticing,
            *false_marks,
            *(objects, shape, mean, *sizes, *words),
            np.zeros((count, len(prior.parameters.tally))),
        ],
        axis=1,
    )


def _draw_image_eases(rng: np.random.Generator, prior: Detection, count: int) -> list[Floats]:
    """Draws of θ and σ_θ."""
    sd, c = prior.beliefs.image_ease_sd, prior.beliefs.image_ease_sd_shape
    spread = sd * np.sqrt(c / rng.standard_gamma(c, (count, 1)))
    return [spread * rng.standard_normal((count, len(prior.parameters.expected_objects))), spread]


def shares_of_classes(prior: Detection, weight: Floats, ease: Floats) -> Floats:
    """π_v in every row of class weights and of an image's θ, (rows, classes)."""
    place = np.linspace(-1.0, 1.0, prior.real)
    # From easy to hard, with mean 0 and variance 1.
    place = -place / np.std(place) if prior.real > 1 else np.zeros(1)
    more = np.exp(np.multiply.outer(ease, place))
    share = weight.copy()
    share[:, : prior.real] *= more / more.mean(axis=1, keepdims=True)
    return np.asarray(share / share.sum(axis=1, keepdims=True))


def _draw_false_marks(rng: np.random.Generator, prior: Detection, count: int) -> list[Floats]:
    """Draws of φ_f, φ_fv, κ, q and c."""
    beliefs, families = prior.beliefs, len(prior.person)
    share = beliefs.share_rate / rng.standard_gamma(beliefs.share_shape, (count, 1))
    alike = beliefs.false_shape * np.exp(beliefs.false_shape_sd * rng.normal(size=(count, 1)))
    false = np.maximum(rng.standard_gamma(alike, (count, families)) / alike, 1e-300)
    false *= share * beliefs.markings / prior.looks.covered
    clumps = beliefs.look_shape * np.exp(beliefs.look_shape_sd * rng.normal(size=(count, 1)))
    on_looks = rates_of_looks(rng, false[:, prior.looks.look_list], clumps)
    return [false, on_looks, clumps, share, alike]


def rates_of_looks(rng: np.random.Generator, usual: Floats, clumps: Floats) -> Floats:
    """φ_fv about the lists' usual rates, given κ in every row."""
    if not np.isfinite(clumps).all():
        return usual.copy()
    spread = rng.standard_gamma(np.broadcast_to(clumps, usual.shape)) / clumps
    return np.asarray(np.maximum(spread, 1e-300) * usual)


def _draw_noticing(rng: np.random.Generator, prior: Detection, false: Floats) -> list[Floats]:
    """Draws of eases, a_gp, skills and their spread, slopes and r, given the φ_f."""
    beliefs, count = prior.beliefs, len(false)
    (classes, persons), families = prior.parameters.notice.shape, len(prior.person)
    ease = rng.normal(beliefs.ease_mean, beliefs.ease_sd, (count, prior.real))
    while (low := ease < beliefs.ease_least).any():
        ease[low] = rng.normal(beliefs.ease_mean, beliefs.ease_sd, low.sum())
    ease = -np.sort(-ease, axis=1)
    c = beliefs.skill_sd_shape
    spread = beliefs.skill_sd * np.sqrt(c / rng.standard_gamma(c, (count, 1)))
    skill = spread * rng.standard_normal((count, persons))
    notice = ease[:, :, np.newaxis] + skill[:, np.newaxis]
    notice += beliefs.interaction_sd * rng.standard_normal(notice.shape)
    if has_decoys(prior):
        of_decoys = rng.normal(beliefs.decoy_ease, beliefs.decoy_ease_sd, (count, 1))
        own = of_decoys + readiness(prior, false)
        own += beliefs.decoy_sd * rng.standard_normal(own.shape)
        ease = np.column_stack([ease, of_decoys])
        notice = np.concatenate([notice, own[:, np.newaxis]], axis=1)
    slope = beliefs.slope_sd * rng.standard_normal((count, persons))
    slope = slope + beliefs.size_slope_sd * rng.standard_normal((count, 1))
    slope = slope if len(prior.away) > 1 else 0.0 * slope
    listing = rng.beta(beliefs.listing_a, beliefs.listing_b, (count, classes, families))
    alone = prior.lists[prior.person] == 1
    listing[:, :, alone] = prior.parameters.listing[:, alone]
    return [
        *(ease, notice.reshape(count, -1), skill, spread),
        *(slope, listing.reshape(count, -1)),
    ]


def readiness(prior: Detection, false: Floats) -> Floats:
    """z_p of every person in each row of φ_f: how much more readily than usual they mark decoys."""
    each = np.log(false / prior.beliefs.usual_false + LEAST_READY)
    return np.column_stack(
        [each[:, prior.person == p].mean(axis=1) for p in range(len(prior.lists))]
    )


def draw_categories(rng: np.random.Generator, prior: Detection, count: int) -> list[Floats]:
    """Draws of ρ, τ, θ, M and s."""
    beliefs, (_, n, persons) = prior.beliefs, prior.parameters.confusion.shape
    shares = [rng.dirichlet([beliefs.category_weight] * n, count) for _ in range(2)]
    expected = np.full((n, n), (1.0 - beliefs.accuracy) / (n - 1))
    np.fill_diagonal(expected, beliefs.accuracy)
    usual = dirichlet(rng, np.broadcast_to(beliefs.accuracy_weight * expected, (count, n, n)))
    shape = beliefs.confusion_shape
    strength = rng.standard_gamma(shape, (count, 1)) * beliefs.confusion_strength / shape
    about = (strength[:, :, np.newaxis] * usual)[:, np.newaxis]
    theta = dirichlet(rng, np.broadcast_to(about, (count, persons, n, n)))
    by_person = np.moveaxis(theta, 1, -1).reshape(count, -1)
    return [*shares, by_person, usual.reshape(count, -1), strength]


def draw_scores(rng: np.random.Generator, prior: Detection, count: int) -> list[Floats]:
    """Draws of γ, a and m."""
    beliefs, shape = prior.beliefs, (count, len(prior.person))
    usual = math.log(beliefs.score_slope) + beliefs.usual_slope_sd * rng.normal(size=(count, 1))
    slope = np.exp(usual + beliefs.score_slope_sd * rng.normal(size=shape))
    offset = beliefs.score_offset + beliefs.score_offset_sd * rng.normal(size=shape)
    return [slope, offset, usual]


def score(
    rng: np.random.Generator,
    prior: Detection,
    own: Floats,
    families: NDArray[np.int64],
    real: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """Levels of the markings' scores; none where the prior's markings have none."""
    where, scores = parts(prior), prior.scores
    slope, offset = own[where["score_slope"]], own[where["score_offset"]]
    levels = []
    for f, there in zip(families, real, strict=True):
        likely = expit(slope[f] * scores.rank[f] + offset[f])
        weight = scores.share[f] * (likely if there else 1.0 - likely)
        levels.append(rng.choice(len(weight), p=weight / weight.sum()) if weight.any() else -1)
    return np.where(scores.level == -1, -1, levels)


def dirichlet(rng: np.random.Generator, weights: Floats) -> Floats:
    """A draw for every row of weights along the last axis."""
    drawn = np.maximum(rng.standard_gamma(weights), 1e-300)
    return np.asarray(drawn / drawn.sum(axis=-1, keepdims=True))


def say(
    rng: np.random.Generator,
    prior: Detection,
    own: Floats,
    families: NDArray[np.int64],
    labels: NDArray[np.int64],
    real: NDArray[np.bool_],
) -> NDArray[np.int64]:
    """What markings say of their objects, or of nothing; silent where the prior's markings are."""
    where, n = parts(prior), len(prior.parameters.category_share)
    theta = own[where["confusion"]].reshape(n, n, -1)
    true = rng.choice(n, int(labels.max()) + 1, p=own[where["category_share"]])
    said = [
        rng.choice(
            n, p=theta[true[k], :, prior.person[f]] if there else own[where["false_category"]]
        )
        for k, f, there in zip(labels, families, real, strict=True)
    ]
    return np.where(prior.categories.said == -1, -1, said)


def level_of(prior: Detection, size: float) -> int:
    """The level whose bounds hold the size, or the nearest."""
    if size < prior.low:
        return 0
    for level in range(len(prior.away)):
        if prior.low + level * prior.step <= size < prior.low + (level + 1) * prior.step:
            return level
    return len(prior.away) - 1


def level_edges(prior: Detection, mean: float, sd: float) -> Floats:
    """Where the levels end, as shares of a normal base measure: 0, ..., 1."""
    inner = prior.low + prior.step * np.arange(1, len(prior.away))
    return np.concatenate([[0.0], ndtr((inner - mean) / sd), [1.0]])


def with_base(prior: Detection, mean: float, sd: float) -> Detection:
    """The prior whose m is the share of the levels under a normal base measure of log sizes."""
    usual = np.diff(level_edges(prior, mean, sd))
    # Where the laws of sizes are held, they are held there.
    prior.parameters.size_share[:] = usual
    prior.parameters.false_size[:] = usual
    return prior._replace(usual=usual)


class Base(NamedTuple):
    """The base measure of log sizes, normal."""

    mean: float
    sd: float

    def draw(
        self, rng: np.random.Generator, prior: Detection, shares: Floats
    ) -> tuple[NDArray[np.int64], Floats]:
        """Levels with these shares, one for each row of them, and sizes within.

        Inside a level sizes follow the base measure.
        """
        edges = level_edges(prior, self.mean, self.sd)
        level = pick(rng, shares)
        inside = edges[level] + rng.random(len(level)) * (edges[level + 1] - edges[level])
        return level, np.asarray(self.mean + self.sd * ndtri(inside))


def pick(rng: np.random.Generator, shares: Floats) -> NDArray[np.int64]:
    """A column of each row, with these probabilities."""
    ends = np.cumsum(shares, axis=1)
    return (rng.random(len(ends))[:, np.newaxis] * ends[:, -1:] > ends).sum(axis=1)


class _Seen(NamedTuple):
    """Objects of many stories: which story's, in which zone, of which size, on which lists."""

    row: NDArray[np.int64]
    zone: NDArray[np.int64]
    size: Floats
    listed: NDArray[np.bool_]  # (objects, lists)
    decoy: NDArray[np.bool_]  # (objects,): whether it is none of the objects
    betrayed: NDArray[np.bool_]  # (objects,): whether one who marked nothing noticed it


def find_objects(
    rng: np.random.Generator, prior: Detection, batch: Floats, counts: NDArray[np.int64], base: Base
) -> _Seen:
    """All objects of a batch of stories, ``counts`` in each zone, and who lists them."""
    where, looks = parts(prior), prior.looks
    row, zone = np.nonzero(counts)
    row, zone = (np.repeat(at, counts[row, zone]) for at in (row, zone))
    own = {name: batch[:, place][row] for name, place in where.items()}
    image = images_of_zones(prior)[zone]
    theta = own["image_ease"][np.arange(len(row)), image]
    g = pick(rng, shares_of_classes(prior, own["class_weight"], theta))
    decoy = (g >= prior.real)[:, np.newaxis]
    level, size = base.draw(rng, prior, np.where(decoy, own["false_size"], own["size_share"]))
    every = np.arange(len(row))
    notice = own["notice"].reshape(len(row), *prior.parameters.notice.shape)
    listing = own["listing"].reshape(len(row), *prior.parameters.listing.shape)
    listed = np.zeros((len(row), len(prior.person)), bool)
    for z, (first, last) in enumerate(pairwise(looks.start)):
        for viewer in looks.viewer[first:last]:
            p = looks.viewer_person[viewer]
            logit = notice[every, g, p] + own["slope"][:, p] * prior.away[level]
            notices = (rng.random(len(row)) < expit(logit)) & (zone == z)
            for f in looks.row_list[looks.row_viewer == viewer]:
                puts = (rng.random(len(row)) < listing[every, g, f]) | (prior.lists[p] == 1)
                listed[:, f] = np.where(zone == z, notices & puts, listed[:, f])
    unseen = (1.0 - expit(notice[every, g].mean(axis=1))) ** looks.silent[zone]
    betrayed = rng.random(len(row)) >= unseen
    return _Seen(row, zone, size, listed, g >= prior.real, betrayed)


def tell_stories(
    rng: np.random.Generator, prior: Detection, families: Sequence[int], base: Base
) -> Iterator[Story]:
    """Exact draws, one after the other, given how many markings each expert has in each zone."""
    where, looks = parts(prior), prior.looks
    share, image_of = looks.share, images_of_zones(prior)
    wanted = np.zeros((len(share), len(prior.person)), np.int64)
    np.add.at(wanted, (looks.zone, np.asarray(families)), 1)
    covers = _covers(prior) * share[:, np.newaxis]
    while True:
        batch = draw_parameters(rng, prior, BATCH)
        rate = np.minimum(_rates_on_images(rng, prior, batch), TOO_MANY)
        n_false = rng.poisson(rate[:, image_of] * covers)
        n_objects = rng.poisson(
            np.minimum(batch[:, where["expected_objects"]], TOO_MANY)[:, image_of] * share
        )
        # Fewer objects than an expert still needs markings, or too many false ones, cannot do.
        lacking = wanted - n_false
        hopeful = (lacking >= 0).all(axis=(1, 2)) & (n_objects >= lacking.max(axis=2)).all(axis=1)
        hopeful &= (n_objects < MOST_OBJECTS).all(axis=1)
        batch, n_false, lacking = batch[hopeful], n_false[hopeful], lacking[hopeful]
        seen = find_objects(rng, prior, batch, n_objects[hopeful], base)
        got = np.zeros_like(lacking)
        np.add.at(got, (seen.row, seen.zone), seen.listed)
        told = (got == lacking).all(axis=(1, 2))
        told[seen.row[seen.betrayed]] = False
        for at in np.flatnonzero(told):
            drawn = [
                _Cluster(
                    int(seen.zone[k]),
                    np.flatnonzero(seen.listed[k]).tolist(),
                    float(seen.size[k]),
                    real=True,
                )
                for k in np.flatnonzero((seen.row == at) & seen.listed.any(axis=1))
            ]
            shares = batch[at, where["false_size"]][np.newaxis]
            for z, f in zip(*np.nonzero(n_false[at]), strict=True):
                for _ in range(n_false[at][z, f]):
                    size = float(base.draw(rng, prior, shares)[1][0])
                    drawn.append(_Cluster(int(z), [int(f)], size, real=False))
            accepted = _accepted(share, looks.zone, [cluster.zone for cluster in drawn])
            if accepted < 1.0 and rng.random() > accepted:
                continue
            lists = np.asarray(families)
            labels, sizes, real = _hand_out(rng, looks.zone, lists, drawn)
            said = None
            if len(prior.categories.said):
                said = say(rng, prior, batch[at], lists, labels, real)
            scored = None
            if len(prior.scores.level):
                scored = score(rng, prior, batch[at], lists, real)
            yield Story(batch[at], labels, sizes, said, scored)


def _rates_on_images(rng: np.random.Generator, prior: Detection, batch: Floats) -> Floats:
    """φ_fv of every list and image, (stories, images, lists).

    Only looks with markings have a parameter; the others' are drawn.
    """
    where, looks = parts(prior), prior.looks
    usual = np.repeat(batch[:, np.newaxis, where["false_marks"]], len(looks.zones) - 1, axis=1)
    rates = rates_of_looks(rng, usual, batch[:, np.newaxis, where["look_shape"]])
    item = np.unique(looks.look, return_index=True)[1]
    rates[:, looks.image[item], looks.look_list] = batch[:, where["false_marks_on"]]
    return rates


def _accepted(share: Floats, zone: NDArray[np.int32], of_clusters: list[int]) -> float:
    """With which probability a story counts: ∝ Π 1 / w_z over its clusters.

    Objects of a zone lie in it, 1 / w_z times as densely as in the whole image, while markings are
    given places without regard to zones.
    """
    return float(np.prod(share[zone]) / np.prod(share[of_clusters]))


class _Cluster(NamedTuple):
    """An object or a false mark: in which zone, on whose lists, of which log size."""

    zone: int
    held: list[int]
    size: float
    real: bool


def images_of_zones(prior: Detection) -> NDArray[np.int64]:
    """The image of every zone."""
    zones = prior.looks.zones
    return np.repeat(np.arange(len(zones) - 1), np.diff(zones))


def _covers(prior: Detection) -> NDArray[np.int64]:
    """Which lists cover which zone, (zones, lists)."""
    looks = prior.looks
    found = np.zeros((len(looks.start) - 1, len(prior.person)), np.int64)
    for z, (a, b) in enumerate(pairwise(looks.start)):
        for viewer in looks.viewer[a:b]:
            found[z, looks.row_list[looks.row_viewer == viewer]] = 1
    return found


def _hand_out(
    rng: np.random.Generator,
    zones: NDArray[np.int32],
    families: NDArray[np.int64],
    clusters: list[_Cluster],
) -> tuple[NDArray[np.int64], Floats, NDArray[np.bool_]]:
    """Say which of an expert's markings is in which cluster: any, equally likely."""
    label, size = np.zeros(len(families), np.int64), np.zeros(len(families))
    real = np.zeros(len(families), np.bool_)
    left = {
        (z, f): rng.permutation(np.flatnonzero((families == f) & (zones == z))).tolist()
        for z, f in {*zip(zones.tolist(), families.tolist(), strict=True)}
    }
    for k, cluster in enumerate(clusters):
        for f in cluster.held:
            i = left[cluster.zone, f].pop()
            label[i], size[i], real[i] = k, cluster.size, cluster.real
    return label, size, real
