"""Does the model fit? All checks of a run, in the order in which they are read.

What any run can be asked is here: whether anything was merged, who agrees with whom, how items
scatter, categories. What only a prior or a kind of item predicts, they are asked for.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import shared_rows
from dfcrp.markup import counted, listed, number, plural
from dfcrp.persons import persons_of
from dfcrp.summaries.agreement import Beside, agreement, beside
from dfcrp.summaries.fit import (
    BEYOND_CHANCE,
    FIT_DRAWS,
    GOOD,
    SERIOUS,
    Check,
    ModelFit,
    fit_draws,
    labels_of,
    level_of,
    predicted_of,
)
from dfcrp.summaries.tails import FAR, VERY_FAR, DrawnItems, TailShares, tails

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Fewest items that might be merged from which it means anything that hardly any is.
LEAST_ITEMS = 20
#: Below this share of items with a partner in any draw nothing was merged.
HARDLY_ANY = 0.02
#: A partner in fewer draws is none.
SELDOM = 0.02
#: How much more two experts share than expected, as a share of the shorter list.
PAIRS_MINOR, PAIRS_SERIOUS = 0.12, 0.25
#: Pairs of experts that are named.
NAMED_PAIRS = 5
#: Items that seem to be cut off from an object, as a share of all objects.
BESIDE_MINOR, BESIDE_SERIOUS = 0.02, 0.05
#: Difference in the share of items beyond three times the usual scatter; beyond five times.
TAILS_MINOR, TAILS_SERIOUS, VERY_FAR_SERIOUS = 0.02, 0.04, 0.01
#: Fewest items with companions from which their scatter can be judged.
LEAST_MEMBERS = 30
#: Images, drawn each by itself, whose scatter is put together.
MAX_IMAGES = 60
#: Difference in the share of objects that are named alike by all.
CATEGORIES_MINOR, CATEGORIES_SERIOUS = 0.05, 0.1
#: Markings of an object that must be named, and fewest such objects.
NAMED_BY, LEAST_NAMED = 3, 40
_SEED = 7


def model_fit(posterior: Posterior) -> ModelFit:
    """All checks that these data allow."""
    if not posterior.mergeable:
        return ModelFit()
    checks = [
        *_merging(posterior),
        *posterior.prior.fit_checks(posterior),
        *_pairs_of_experts(posterior),
        *_scatter(posterior),
        *_categories(posterior),
        *posterior.likelihood.fit_checks(posterior),
    ]
    return ModelFit(tuple(checks))


def _merging(posterior: Posterior) -> Iterator[Check]:
    """Whether the answer means anything: some items are merged, and not all into one."""
    items, noun = posterior.items, posterior.likelihood.noun
    alone = posterior.expert_summary.alone
    alone = np.where(np.isnan(alone), 1.0, alone)
    coverage = items.coverage
    there = _experts_with_items(coverage.zone, items.families)
    possible = (there[coverage.zone] > 1) | (not posterior.prior.one_per_expert)
    possible &= ~np.isnan(posterior.expert_summary.alone)
    if np.count_nonzero(possible) < LEAST_ITEMS:
        return
    distrust: tuple[str, ...] = ()
    merged = float(np.mean(alone[possible] < 1.0 - SELDOM))
    largest = float(np.bincount(posterior.point_partition().labels).max() / len(items))
    if merged < HARDLY_ANY:
        places = "units, origins and axes, names of images"
        compared = "how values are written" if posterior.likelihood.text else places
        level, words, distrust = (
            SERIOUS,
            f"Hardly anything was merged: {100.0 * merged:.1f} % of the {plural(noun)} that could "
            "share an object with one of another expert ever did. If experts "
            f"{posterior.likelihood.verb} the same objects, their lists do not fit together: "
            f"compare {compared}, and the columns that are read. If they did not, there is nothing "
            "to merge.",
            ("this answer, in which hardly anything was merged",),
        )
    elif not posterior.prior.one_per_expert and largest > 0.95:
        level, words, distrust = (
            SERIOUS,
            f"Almost all {plural(noun)} are one object ({100.0 * largest:.0f} %): nothing was told "
            "apart. Compare the columns that are read, and their units.",
            ("this answer, in which almost everything is one object",),
        )
    else:
        level = GOOD
        words = f"{100.0 * merged:.0f} % of the {plural(noun)} share an object with another."
    nothing = np.nan
    yield Check("merging", merged, nothing, nothing, nothing, merged, level, words, distrust)


def _experts_with_items(zone: NDArray[np.int64], families: NDArray[np.int64]) -> NDArray[np.int64]:
    """How many experts have an item in each zone."""
    pairs = np.unique(np.column_stack([zone, families]), axis=0)
    return np.bincount(pairs[:, 0])


def _pairs_of_experts(posterior: Posterior) -> Iterator[Check]:
    """Who agrees with whom too often, given how many marked each object."""
    items = posterior.items
    found = agreement(
        posterior.point_partition().labels,
        items.families,
        items.coverage,
        posterior.likelihood.log_sizes(items),
    )
    if found is None:
        return
    person = persons_of(items.experts, posterior.config.run.persons).codes
    known = person[found.first] == person[found.second]
    size = np.where(found.surprising & ~known, found.excess, 0.0)
    worst = int(np.argmax(np.where(known, -np.inf, found.excess * found.surprising)))
    if known.all():
        return
    most = float(size.max(initial=0.0))
    level = level_of(most, PAIRS_MINOR, PAIRS_SERIOUS, surprising=most > 0.0)
    if level == GOOD:
        # The pair that shares most beyond what is expected stands for all.
        more = np.where(known, -np.inf, found.shared - found.expected)
        worst = int(np.argmax(more))
        most = float(found.excess[worst])
    expected, sd = float(found.expected[worst]), float(found.sd[worst])
    words = f"No two of {len(items.experts):,} experts agree too often."
    if level != GOOD:
        order = np.argsort(-size, kind="stable")
        order = order[size[order] >= PAIRS_MINOR]
        names = [
            f"{items.experts[found.first[k]]} and {items.experts[found.second[k]]} "
            f"({found.shared[k]:.0f} objects, {found.expected[k]:.0f} expected)"
            for k in order
        ]
        words = (
            f"Experts who agree too often: {listed(names, NAMED_PAIRS)}. Copied work, or one "
            "person under two names: what they alone marked counts as if two had found it. Do not "
            "trust objects that rest on them; say who is one person (--persons), or leave one of "
            "the lists out."
        )
    yield Check(
        "pairs of experts", float(found.shared[worst]), expected,
        max(expected - 1.96 * sd, 0.0), expected + 1.96 * sd, most, level, words,
        ("objects that rest on experts who agree too often",),
    )  # fmt: skip


def _parts(posterior: Posterior) -> list[Posterior]:
    """What was drawn together: all items, or some of the images."""
    if not posterior.independent:
        return [posterior]
    done = posterior.image_set.done
    return [posterior.image(number) for number in done[:: -(-len(done) // MAX_IMAGES)]]


def _scatter(posterior: Posterior) -> Iterator[Check]:
    """Tails of scatter, and what was cut off because of them."""
    parts = _parts(posterior)
    sets, single = [], []
    for part in parts:
        scatter_of = part.likelihood.scatter(part)
        if scatter_of is None:
            return
        chosen = fit_draws(part.draws)
        rows = shared_rows(part.draws, chosen)
        sets.append(DrawnItems(scatter_of, rows, labels_of(part.draws, chosen)))
        single.append(
            beside(
                part.point_partition().labels,
                part.items.families,
                part.items.coverage,
                scatter_of(rows[len(rows) // 2]),
                part.items.image_codes,
            )
        )
    found = tails(sets, np.random.default_rng(_SEED))
    if found and found[0].items >= LEAST_MEMBERS:
        yield _tails(found, posterior.likelihood.noun)
        objects = sum(len(np.unique(part.point_partition().labels)) for part in parts)
        yield _beside(single, objects, posterior.likelihood.noun)


def _tails(found: list[TailShares], noun: str) -> Check:
    """The part of a distance whose tails are furthest from what is expected."""
    worst = max(found, key=lambda one: float(one.far.mean() - one.new_far.mean()))
    own, very_far = float(worst.far.mean()), float(worst.very_far.mean())
    predicted, lo, hi, sd = predicted_of(worst.new_far)
    new_very_far = float(worst.new_very_far.mean())
    size = own - predicted
    # The worst of several parts; half a standard deviation more for that.
    surprising = size > (BEYOND_CHANCE + 0.5) * max(sd, 1.0 / worst.items)
    level = level_of(size, TAILS_MINOR, TAILS_SERIOUS, surprising=surprising)
    if level != GOOD and very_far - new_very_far >= VERY_FAR_SERIOUS:
        level = SERIOUS
    said = (
        f"{100.0 * own:.1f} % of the {plural(noun)} lie beyond {FAR:g} times the usual scatter in "
        f"{worst.part}, {100.0 * predicted:.1f} % predicted"
    )
    words = f"Tails of scatter are no heavier than predicted ({said})."
    if level != GOOD:
        words = (
            f"Some {plural(noun)} are careless: {said}; beyond {VERY_FAR:g} times "
            f"{100.0 * very_far:.1f} %, {100.0 * new_very_far:.1f} % predicted. Worse ones may "
            f"have been cut off from their objects. Do not trust single {plural(noun)}, nor "
            "intervals of places and sizes; allow careless items (tails = "
            '"learned" in [likelihood]), or let experts differ in scatter (--expert-bias both).'
        )
    return Check(
        "tails of scatter", own, predicted, lo, hi, size, level, words, (f"single {plural(noun)}",)
    )


def _beside(single: list[Beside], objects: int, noun: str) -> Check:
    """Single items next to objects that their experts lack."""
    near = sum(one.near for one in single)
    lacking, expected = sum(one.lacking for one in single), sum(one.expected for one in single)
    sd = float(np.sqrt(sum(one.sd**2 for one in single)))
    cut_off = sum(one.cut_off for one in single)
    size = cut_off / objects
    surprising = lacking - expected > BEYOND_CHANCE * max(sd, 1.0)
    level = level_of(size, BESIDE_MINOR, BESIDE_SERIOUS, surprising=surprising)
    said = (
        f"of {counted(near, f'single {noun}')} near an object {lacking:,} are by experts who lack "
        f"that object, {number(expected)} expected"
    )
    words = f"Single {plural(noun)} near objects are as many as expected ({said})."
    if level != GOOD:
        words = (
            f"Single {plural(noun)} lie beside objects that their experts seem to have missed: "
            f"{said}. About {number(cut_off)} of them may be careless ones of that object, parts "
            "of it, or groups that hold it, and count as objects or false marks of their own "
            f"({100.0 * size:.0f} % of all objects). Do not trust single {plural(noun)} near "
            "others, nor the number of objects."
        )
    return Check(
        f"single {plural(noun)} beside objects", float(lacking), float(expected),
        max(expected - 1.96 * sd, 0.0), expected + 1.96 * sd, size, level, words,
        (f"single {plural(noun)}", "the number of objects"),
    )  # fmt: skip


def _categories(posterior: Posterior) -> Iterator[Check]:
    """Of how many objects all markings name the same category."""
    found = None if posterior.independent else posterior.categories
    said = posterior.items.category_codes
    if found is None or said is None:
        return
    rows, cluster = _named(found.clusters, posterior.point_partition().labels, said)
    objects = len(np.unique(cluster))
    if objects < LEAST_NAMED:
        return
    rng, made = np.random.default_rng(_SEED), []
    families = posterior.items.families[rows]
    for confusion in found.confusion[:: max(len(found.confusion) // FIT_DRAWS, 1)]:
        true = _chosen(found.probability, rng)[cluster]
        again = _chosen(confusion[families, true], rng)
        made.append(_unanimous(again, cluster))
    own = _unanimous(said[rows], cluster)
    predicted, lo, hi, sd = predicted_of(np.array(made))
    size = own - predicted
    level = level_of(
        abs(size), CATEGORIES_MINOR, CATEGORIES_SERIOUS, surprising=abs(size) > BEYOND_CHANCE * sd
    )
    told = (
        f"of {counted(objects, 'object')} named by {NAMED_BY} experts or more {100.0 * own:.0f} % "
        f"have one name from all of them, {100.0 * predicted:.0f} % predicted"
    )
    words = f"Experts agree on categories as often as predicted ({told})."
    if level != GOOD:
        why = "Some objects are harder to name than others." if size > 0 else "Experts differ more."
        words = (
            f"Experts agree on categories {'more' if size > 0 else 'less'} often than predicted: "
            f"{told}. {why} Do not trust p_category, nor tables of who confuses what; join "
            "categories that are hard to tell apart."
        )
    yield Check("categories", own, predicted, lo, hi, size, level, words, ("p_category",))


def _named(
    clusters: NDArray[np.int64], labels: NDArray[np.int32], said: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Items that name a category, of objects with enough of them, and the row of each's object."""
    cluster = np.searchsorted(clusters, labels)
    known = said >= 0
    count = np.bincount(cluster[known], minlength=len(clusters))
    rows = np.flatnonzero(known & (count[cluster] >= NAMED_BY))
    return rows, cluster[rows]


def _chosen(weights: NDArray[np.float64], rng: np.random.Generator) -> NDArray[np.int64]:
    """One of each row's columns, by their weights."""
    total = np.cumsum(weights, axis=1)
    at = rng.random(len(weights)) * total[:, -1]
    return np.asarray((total < at[:, np.newaxis]).sum(axis=1))


def _unanimous(said: NDArray[np.int64], cluster: NDArray[np.int64]) -> float:
    """The share of objects of which all markings name one category."""
    names = np.unique(np.column_stack([cluster, said]), axis=0)[:, 0]
    return float(np.mean(np.bincount(names)[np.unique(cluster)] == 1))
