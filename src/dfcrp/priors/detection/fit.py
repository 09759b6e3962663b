"""Does the detection prior fit? Numbers of finders, and marks over images and looks.

These are compared with new data, drawn by the parameters of a few dozen draws; in arrays, as no
kernel is needed for so few.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import number, plural
from dfcrp.priors.detection.calibration import source_scores
from dfcrp.priors.detection.kernel import Detection, LookTables
from dfcrp.priors.detection.skills import (
    log_odds_of_noticing,
    parameters_by_name,
    shares_on_images,
)
from dfcrp.summaries.fit import (
    BEYOND_CHANCE,
    FIT_DRAWS,
    GOOD,
    Check,
    fit_draws,
    labels_of,
    level_of,
    predicted_of,
)

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

Floats = NDArray[np.float64]
Counts = NDArray[np.int64]

#: What the first check is called.
FINDERS = "number of finders"
#: Share of all clusters whose number of finders is not as predicted.
SIZES_MINOR, SIZES_SERIOUS = 0.02, 0.05
#: How much more single marks vary from look to look than predicted, as a ratio of variances.
CLUMPS_MINOR, CLUMPS_SERIOUS = 1.25, 1.6
#: The ratio is to no smaller prediction: where no false marks are expected, none vary.
LEAST_PREDICTED = 0.01
#: Difference in the share of looks without a mark.
EMPTY_MINOR, EMPTY_SERIOUS = 0.05, 0.1
#: How far p_real lies from what the score alone says, on average over a source's markings.
SCORES_MINOR, SCORES_SERIOUS = 0.05, 0.12
#: Fewest scored markings of a source.
LEAST_SCORED = 50
#: Fewest looks that say anything of how marks vary between them, for each expert on average.
LOOKS_PER_EXPERT = 2.0
_SEED = 11


def detection_checks(posterior: Posterior) -> list[Check]:
    """Of one image or many."""
    checks = [numbers_of_finders(posterior)]
    looks = posterior.items.looks
    several = len(looks.pairs) >= LOOKS_PER_EXPERT * len(posterior.items.experts)
    if several and len(looks.images) > 1 and not posterior.independent:
        checks += over_looks(posterior)
    return [*checks, *scores_of_sources(posterior)]


def numbers_of_finders(posterior: Posterior) -> Check:
    """Clusters by number of experts, as in the data and in new data."""
    found, noun = posterior.detection, posterior.likelihood.noun
    assert found is not None  # as under this prior
    observed, new = found.sizes[:, 1:].mean(axis=0), found.new_sizes[:, 1:]
    spread = np.maximum(new.std(axis=0), 1.0)
    off = observed - new.mean(axis=0)
    size = float(np.abs(off).sum() / 2.0 / observed.sum())
    worst = int(np.argmax(np.abs(off)))
    predicted, lo, hi, _ = predicted_of(new[:, worst])
    surprising = bool((np.abs(off) > BEYOND_CHANCE * spread).any())
    level = level_of(size, SIZES_MINOR, SIZES_SERIOUS, surprising=surprising)
    seen = f"{number(observed[worst])} clusters of {worst + 1}, {number(predicted)} predicted"
    words = f"Numbers of finders are as predicted (largest difference: {seen})."
    if level != GOOD:
        words = (
            f"Of all clusters {100.0 * size:.0f} % have another number of finders than predicted: "
            f"{seen} ({number(lo)} to {number(hi)}). Do not trust p_real of single "
            f"{plural(noun)}, nor the numbers of missed objects and false marks. Objects may "
            "differ in ways that the model does not cover, false marks may come in clumps, or "
            "careless marks may be cut off from their objects: compare with what two experts or "
            "more share."
        )
    return Check(
        FINDERS, float(observed[worst]), predicted, lo, hi, size, level, words,
        (f"single {plural(noun)}", "the number of objects"),
    )  # fmt: skip


def over_looks(posterior: Posterior) -> list[Check]:
    """How single marks vary from look to look, and how many looks have none."""
    items, laid_out = posterior.items, posterior.prior_laid_out
    replicator = Replicator(laid_out.prior, items.looks.pairs)
    chosen, rng = fit_draws(posterior.draws), np.random.default_rng(_SEED)
    new = [replicator.draw(row, rng) for row in laid_out.rows(chosen)]
    lists = len(items.experts)
    looked = items.looks.pairs[:, 0] * lists + items.looks.pairs[:, 1]
    look = np.searchsorted(looked, items.looks.image * lists + items.families)
    alone = [
        np.bincount(look[np.bincount(row, minlength=len(row))[row] == 1], minlength=len(looked))
        for row in labels_of(posterior.draws, chosen)
    ]
    nouns, image = plural(posterior.likelihood.noun), items.looks.pairs[:, 0]
    marks = np.bincount(look, minlength=len(looked))
    made = np.array([_share_empty(one.marks, image) for one in new])
    checks = [
        _clumps(np.array(alone), np.array([one.alone for one in new]), nouns),
        _empty(_share_empty(marks, image), made, nouns),
    ]
    return checks


def _clumps(alone: Counts, new: Counts, nouns: str) -> Check:
    """Pearson's statistic of single marks by look, (draws, looks), about what is expected."""
    expected = new.mean(axis=0)
    looks = alone.shape[1]
    own = ((alone - expected) ** 2 / (expected + 0.5)).sum(axis=1) / looks
    made = ((new - expected) ** 2 / (expected + 0.5)).sum(axis=1) / looks
    predicted, lo, hi, sd = predicted_of(made)
    size = float(own.mean()) / max(predicted, LEAST_PREDICTED)
    surprising = float(own.mean()) - predicted > BEYOND_CHANCE * sd
    level = level_of(size, CLUMPS_MINOR, CLUMPS_SERIOUS, surprising=surprising)
    words = (
        f"Single {nouns} vary from look to look as predicted ({size:.2f} times the predicted "
        "variance)."
    )
    if level != GOOD:
        words = (
            f"Single {nouns} come in clumps: from look to look their number varies {size:.1f} "
            "times as much as predicted. An expert who is careful on one image may have been "
            f"careless on another. Do not trust p_real of single {nouns} on images where one "
            "expert has many of them, nor the number of objects there; leave such looks out and "
            "fit again."
        )
    return Check(
        f"single {nouns} by look", float(own.mean()), predicted, lo, hi, size, level, words,
        (f"single {nouns}",),
    )  # fmt: skip


def scores_of_sources(posterior: Posterior) -> list[Check]:
    """The source whose scores mean something else than the curve of the model says."""
    sources = None if posterior.independent else source_scores(posterior)
    rng, found = np.random.default_rng(_SEED), []
    for one in sources or []:
        total = int(one.count.sum())
        if total < LEAST_SCORED:
            continue
        middle = one.drawn.mean(axis=0)
        rows = one.drawn[:: max(len(one.drawn) // FIT_DRAWS, 1)]
        new = rng.binomial(one.count, np.clip(rows, 0.0, 1.0)) / one.count
        made = (np.abs(new - middle) * one.count).sum(axis=1) / total
        own = float((np.abs(one.p_real - middle) * one.count).sum()) / total
        found.append((own - float(made.mean()), own, made, one.source))
    if not found:
        return []
    size, own, made, source = max(found, key=lambda row: row[0])
    predicted, lo, hi, sd = predicted_of(made)
    level = level_of(size, SCORES_MINOR, SCORES_SERIOUS, surprising=size > BEYOND_CHANCE * sd)
    words = f"Scores mean what the model takes them to mean (largest difference: {source})."
    if level != GOOD:
        words = (
            f"Scores of {source} mean something else than the model takes them to mean: p_real "
            f"differs from what the score alone says by {own:.2f} on average, {predicted:.2f} "
            "predicted. A higher score may not be a better one everywhere. Do not trust p_real of "
            f"what {source} alone marked; look at the figure of scores, transform them, or leave "
            "them out (--columns score=)."
        )
    single = f"single {plural(posterior.likelihood.noun)} with a score"
    return [Check("scores", own, predicted, lo, hi, size, level, words, (single,))]


def _share_empty(marks: Counts, image: Counts) -> float:
    """Of the looks at images with any mark, the share without one."""
    counted = np.bincount(image, weights=marks)[image] > 0
    return float(np.mean(marks[counted] == 0)) if counted.any() else 0.0


def _empty(own: float, made: Floats, nouns: str) -> Check:
    predicted, lo, hi, sd = predicted_of(made)
    size = own - predicted
    surprising = abs(size) > BEYOND_CHANCE * max(sd, 1e-3)
    level = level_of(abs(size), EMPTY_MINOR, EMPTY_SERIOUS, surprising=surprising)
    said = f"{100.0 * own:.0f} % of the looks have none, {100.0 * predicted:.0f} % predicted"
    words = f"Looks without {nouns} are as many as predicted ({said})."
    if level != GOOD:
        why = (
            "Some may be no looks at all: an image that was skipped, or did not load. They count "
            "as evidence that objects were missed. Leave looks that did not happen out of looked."
            if size > 0
            else "Looks at which nothing was marked may be missing from the data: give all of them "
            "with looked."
        )
        words = (
            f"Looks without {nouns}: {said}. {why} Do not trust sensitivities, nor the number of "
            "missed objects."
        )
    return Check(
        f"looks without {nouns}", own, predicted, lo, hi, size, level, words, ("sensitivities",)
    )


class NewLists(NamedTuple):
    """How long the new lists are, look by look."""

    #: (looks,): markings, and those that nobody else has.
    marks: Counts
    alone: Counts


class Replicator:
    """Draws new lists for looks, given as pairs of an image and a list, (looks, 2)."""

    def __init__(self, prior: Detection, looked: Counts) -> None:
        self.prior, looks = prior, prior.looks
        self.lists = len(prior.person)
        #: The image of every zone, and how many viewers looked at it.
        self.image = np.repeat(np.arange(len(looks.zones) - 1), np.diff(looks.zones))
        self.viewers = np.diff(looks.start)
        #: Number, list and covered share of the image of every look.
        self.looked = looked[:, 0] * self.lists + looked[:, 1]
        self.list = looked[:, 1]
        self.covered = _covered(looks, self.image, self.lists, self.looked)

    def draw(self, own: Floats, rng: np.random.Generator) -> NewLists:
        """New lists by one row of parameters."""
        by_name = parameters_by_name(self.prior, own[np.newaxis])
        found = {name: values[0] for name, values in by_name.items()}
        item, look = self._marked(found, rng)
        others = np.bincount(item)[item] if item.size else item
        false = rng.poisson(false_rates(found, self.list, rng) * self.covered)
        return NewLists(self._by_look(look) + false, self._by_look(look[others == 1]) + false)

    def _by_look(self, look: Counts) -> Counts:
        """How many there are of each look."""
        order = np.sort(look)
        ends = np.searchsorted(order, self.looked, side="right")
        return np.asarray(ends - np.searchsorted(order, self.looked))

    def _marked(
        self, found: Mapping[str, Floats], rng: np.random.Generator
    ) -> tuple[Counts, Counts]:
        """An object and a look for every marking of a new object."""
        prior, looks = self.prior, self.prior.looks
        share = shares_on_images(prior, found["class_weight"], found["image_ease"])
        expected = (found["expected_objects"][:, np.newaxis] * share)[self.image]
        number = rng.poisson(expected * looks.share[:, np.newaxis])
        zone, g = (np.repeat(at, number.ravel()) for at in np.indices(number.shape).reshape(2, -1))
        level = np.where(
            g < prior.real,
            _choose(found["size_share"], len(zone), rng),
            _choose(found["false_size"], len(zone), rng),
        )
        unseen = -np.logaddexp(0.0, found["notice"].mean(axis=1))
        kept = rng.random(len(zone)) < np.exp(looks.silent[zone] * unseen[g])
        zone, g, level = zone[kept], g[kept], level[kept]
        item, at = _each(self.viewers[zone])
        viewer = looks.viewer[looks.start[zone[item]] + at]
        p = looks.viewer_person[viewer]
        logit = log_odds_of_noticing(found, g[item], p, prior.away[level[item]])
        noticed = np.flatnonzero(rng.random(len(item)) < 1.0 / (1.0 + np.exp(-logit)))
        item, viewer, p = item[noticed], viewer[noticed], p[noticed]
        which, at = _each(looks.viewer_row[viewer + 1] - looks.viewer_row[viewer])
        f = looks.row_list[looks.viewer_row[viewer[which]] + at]
        item, p = item[which], p[which]
        listing = np.where(prior.lists[p] > 1, found["listing"][g[item], f], 1.0)
        listed = np.flatnonzero(rng.random(len(item)) < listing)
        item, f = item[listed], f[listed].astype(np.int64)
        return item, self.image[zone[item]] * self.lists + f


def false_rates(found: Mapping[str, Floats], lists: Counts, rng: np.random.Generator) -> Floats:
    """Expected false marks of new looks by these lists, if all of an image is covered."""
    shape = float(found["look_shape"][0])
    usual = np.asarray(found["false_marks"][lists])
    return usual if np.isinf(shape) else usual * rng.gamma(shape, size=len(lists)) / shape


def _covered(looks: LookTables, image: Counts, lists: int, looked: Counts) -> Floats:
    """The share of its image that each look covers; looks are numbered image · lists + list."""
    zone, at = _each(np.diff(looks.start))
    viewer = looks.viewer[looks.start[zone] + at]
    which, at = _each(looks.viewer_row[viewer + 1] - looks.viewer_row[viewer])
    f = looks.row_list[looks.viewer_row[viewer[which]] + at]
    keys, where = np.unique(image[zone[which]] * lists + f, return_inverse=True)
    share = np.bincount(where, weights=looks.share[zone[which]])
    at = np.minimum(np.searchsorted(keys, looked), len(keys) - 1)
    return np.where(keys[at] == looked, share[at], 0.0)


def _each(counts: NDArray[np.integer]) -> tuple[Counts, Counts]:
    """For so many of each: which it is, and its number among them."""
    which = np.repeat(np.arange(len(counts)), counts)
    first = np.cumsum(counts) - counts
    return which, np.arange(len(which)) - first[which]


def _choose(weights: Floats, count: int, rng: np.random.Generator) -> Counts:
    return rng.choice(len(weights), size=count, p=weights / weights.sum()).astype(np.int64)
