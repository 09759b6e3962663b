"""The detection prior laid out for the kernels, and the names of its parameters."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Columns
from dfcrp.errors import InputError
from dfcrp.priors.base import Facts, Zones
from dfcrp.priors.detection.categories import category_room, category_start
from dfcrp.priors.detection.decided import allowed_classes, words_of
from dfcrp.priors.detection.kernel import (
    CLASSES,
    Beliefs,
    Counts,
    Detection,
    DetectionTables,
    LookTables,
    shapes,
    sizes_of,
    with_room,
)
from dfcrp.priors.detection.parameters import (
    LAW,
    Parameters,
    joined,
    of_image,
    shapes_of,
    variables,
)
from dfcrp.priors.detection.scores import no_scores, score_levels, score_start
from dfcrp.priors.detection.settings import (
    LEARNED_CLUMPS,
    LEARNED_IMAGES,
    LEARNED_SIZES,
    LEARNED_SPREAD,
    DetectionSettings,
)

#: Levels into which the range of log sizes is cut.
LEVELS = 32
#: Standard deviation, in levels, by which the markings' sizes are smoothed.
SMOOTHING = 1.5
#: If nothing says who looked, images are taken to have had as many looks as this share of them has
#: persons with markings, at most.
BUSY = 0.9

#: Decoys are told from objects that are hard to find by who marks them: unless the settings say
#: otherwise, there are none with fewer persons in all, or on the image that most looked at.
MANY_PERSONS, MANY_VIEWERS = 10, 5

#: The share of false marks that chains start from. A chain that starts from few takes single marks
#: for objects that are hard to find, and may stay there.
MANY_FALSE = 0.3

#: Categories, and numbers in the confusion matrices of all persons, at most: every draw has them.
MOST_CATEGORIES = 100
MOST_CONFUSIONS = 500_000

Codes = NDArray[np.int64]


def number_of_classes(settings: DetectionSettings, n_persons: int) -> int:
    """Classes of objects at most; those that are not needed stay empty.

    ``n_persons`` is how many looked at one image, at most. Two persons cannot tell a mixture from
    one class, three can tell two, five three and seven four: the numbers of finders have as many
    moments as there are persons, and each class but the first takes two of them.
    """
    if settings.classes == "auto":
        return int(min(CLASSES, (n_persons + 1) // 2))
    return int(settings.classes)


def nodes(classes: int) -> NDArray[np.float64]:
    """From easy to hard in equal steps, with mean 0 and variance 1; of one class 0."""
    steps = np.linspace(1.0, -1.0, classes) if classes > 1 else np.zeros(1)
    return np.asarray(steps / max(np.sqrt(np.mean(steps**2)), 1e-300))


def make_detection(
    settings: DetectionSettings,
    log_sizes: NDArray[np.float64] | None,
    families: Codes,
    persons: Codes,
    images: Codes | None = None,
    looks: Codes | None = None,
    said: Codes | None = None,
    scores: NDArray[np.float64] | None = None,
    zones: Zones | None = None,
    *,
    reality: NDArray[np.int8] | None = None,
    decided: Codes | None = None,
    sizes_drawn: bool = True,
    looks_known: bool = True,
) -> Detection:
    """The prior for these markings.

    ``persons`` says whose list each family is, ``log_sizes`` are the markings', or None if objects
    have no size. ``images`` are the markings' images as numbers, ``looks`` (m, 2) pairs of an image
    and a list that covers it; without them there is one image, and whoever has a marking on an
    image looked at it. On one image without ``looks`` every list counts. ``said`` are the markings'
    categories, from 0, −1 where there is none; None without categories. ``scores`` are NaN where
    there is none. ``zones`` are those of the images where looks cover parts only. Unless
    ``sizes_drawn``, the log size of a cluster is the mean of its members'. Unless ``looks_known``,
    ``looks`` are those with markings only. People decided that markings are real (1) or not (−1),
    by ``reality``, and that they are of these categories, by ``decided``, −1 where they did not.
    """
    where = np.zeros(len(families), np.int64) if images is None else images
    if looks is None and images is None:
        looks = np.column_stack([np.zeros(len(persons), np.int64), np.arange(len(persons))])
    view = make_looks(where, families, persons, looks, zones)
    if not looks_known:
        view = view._replace(silent=silent_looks(settings, view))
    most = int(np.diff(view.start).max())
    decoys = settings.decoys
    if isinstance(decoys, str):
        several = len(view.zones) > 2 and len(np.unique(persons)) >= MANY_PERSONS
        decoys = several and most >= MANY_VIEWERS
    real = min(number_of_classes(settings, most), CLASSES - decoys)
    low, step, away, usual = _levels(log_sizes if settings.by_size else None)
    sizes = np.empty(0)
    if not sizes_drawn and log_sizes is not None and len(away) > 1:
        sizes = _in_levels(log_sizes, low, step)
    per_family = np.maximum(np.bincount(families, minlength=len(persons)), 1)
    beliefs = _beliefs(settings, per_family.astype(np.float64), view, real)
    nothing = np.empty(0)
    words = np.zeros(0, np.int32) if said is None else said.astype(np.int32)
    categories = 0 if said is None else int(said.max()) + 1
    bare = Detection(
        low=low,
        step=step,
        away=away,
        usual=usual,
        sizes=sizes,
        person=persons.astype(np.int32),
        lists=np.bincount(persons).astype(np.int32),
        node=nodes(real),
        real=real,
        looks=view,
        beliefs=beliefs,
        own=nothing,
        parameters=Parameters(*[nothing] * len(Parameters._fields)),
        tables=DetectionTables(*[nothing] * len(DetectionTables._fields)),
        counts=Counts(*[nothing] * len(Counts._fields)),
        word=words_of(reality),
        allowed=allowed_classes(real, real + decoys, CLASSES),
        categories=category_room(words, categories, int(persons.max()) + 1, decided),
        scores=no_scores(len(persons))
        if scores is None
        else score_levels(scores, families, len(persons)),
    )
    classes = real + decoys
    return with_room(bare._replace(own=_start(bare, classes)), classes)


def detection_of(facts: Facts, settings: DetectionSettings) -> Detection:
    """The prior for items of which these are the facts."""
    said = None
    if facts.categories is not None and len(facts.category_names) > 1:
        check_categories(len(facts.category_names), len(facts.persons.names))
        said = facts.categories
    return make_detection(
        settings,
        facts.log_sizes,
        facts.codes,
        facts.persons.codes,
        facts.images,
        facts.looks,
        said,
        facts.scores,
        facts.zones,
        reality=None if facts.decided is None else facts.decided.reality,
        decided=None if said is None else _decided_categories(facts),
        sizes_drawn=facts.sizes_drawn,
        looks_known=facts.looks_known,
    )


def _decided_categories(facts: Facts) -> Codes | None:
    """The category that people gave to each item, −1 where they gave none."""
    if facts.decided is None or not (facts.decided.category != "").any():
        return None
    code = {"": -1, **{name: at for at, name in enumerate(facts.category_names)}}
    return np.array([code[name] for name in facts.decided.category.tolist()], np.int64)


def too_many(categories: int, persons: int) -> bool:
    """Whether so many can neither be learned nor stored."""
    return categories > MOST_CATEGORIES or persons * categories**2 > MOST_CONFUSIONS


def check_categories(categories: int, persons: int) -> None:
    """Refuse too many."""
    if too_many(categories, persons):
        raise InputError(
            f"there are {categories:,} categories and {persons:,} persons, each with a matrix of "
            f"{categories**2:,} numbers for their confusions; at most {MOST_CATEGORIES:,} "
            f"categories and {MOST_CONFUSIONS:,} numbers in all are allowed. Join rare "
            "categories, or ignore them with --columns category= (in Python "
            "{'category': ''})"
        )


class OneImage(NamedTuple):
    """A prior for one image of many, and where its parameters are among those of all."""

    prior: Detection
    columns: Codes


def image_of(prior: Detection, image: int, items: Codes, lists: Codes) -> OneImage:
    """The prior for one image.

    ``items`` are the rows of its items, ``lists`` the codes of all lists that cover it, ascending.
    Given the parameters, images are independent.
    """
    here = slice(prior.looks.zones[image], prior.looks.zones[image + 1])
    silent = prior.looks.silent[here].copy()
    # What silent persons notice is the mean over everybody, who looked here or not.
    persons = np.arange(len(prior.lists)) if silent.any() else np.unique(prior.person[lists])
    person_here = np.searchsorted(persons, prior.person[lists])
    list_of = prior.looks.row_list[prior.looks.row[items]]
    looks = make_looks(
        np.zeros(len(items), np.int64),
        np.searchsorted(lists, list_of),
        person_here.astype(np.int64),
        np.column_stack([np.zeros(len(lists), np.int64), np.arange(len(lists))]),
        _zones_of(prior.looks, image, items, lists),
    )
    looks = looks._replace(silent=silent)
    classes = len(prior.parameters.class_weight)
    chosen: dict[str, Codes] = {
        "person": persons.astype(np.int64),
        "expert": lists,
        "look": looks_of_image(prior.looks, items),
        "image_of_objects": np.array([image]),
    }
    where = of_image(shapes(prior, classes), chosen)
    bare = prior._replace(
        person=person_here.astype(np.int32),
        lists=prior.lists[persons],
        looks=looks,
        sizes=_of_items(prior.sizes, items),
        word=_of_items(prior.word, items),
        own=prior.own[where].copy(),
        categories=prior.categories._replace(
            said=_of_items(prior.categories.said, items),
            decided=_of_items(prior.categories.decided, items),
        ),
        scores=prior.scores._replace(
            level=_of_items(prior.scores.level, items),
            rank=prior.scores.rank[lists],
            share=prior.scores.share[lists],
        ),
    )
    return OneImage(with_room(bare, classes), where)


def silent_looks(settings: DetectionSettings, looks: LookTables) -> NDArray[np.float64]:
    """By zone how many looked and marked nothing, if nobody says who looked.

    One image has none: whoever looked at it has a marking, or is unknown.
    """
    viewers = np.diff(looks.start).astype(np.float64)
    if len(looks.zones) <= 2 or settings.assumed_looks == 0:
        return np.zeros(len(viewers))
    usual = settings.assumed_looks
    if isinstance(usual, str):
        usual = float(np.quantile(viewers, BUSY, method="higher"))
    return np.maximum(usual - viewers, 0.0)


def looks_of_image(looks: LookTables, items: Codes) -> Codes:
    """The looks with markings of an image, by list, of which these are the items."""
    return np.unique(looks.look[items]).astype(np.int64)


def _of_items(said: NDArray[Any], items: Codes) -> NDArray[Any]:
    """What some items say; nothing if none says anything."""
    return said[items] if len(said) else said


def _zones_of(looks: LookTables, image: int, items: Codes, lists: Codes) -> Zones:
    """The zones of one image; ``lists`` are the codes of all lists that cover it, ascending."""
    first, last = looks.zones[image], looks.zones[image + 1]
    seen = [
        (zone - first, int(at))
        for zone in range(first, last)
        for viewer in looks.viewer[looks.start[zone] : looks.start[zone + 1]]
        for at in np.searchsorted(
            lists, looks.row_list[looks.viewer_row[viewer] : looks.viewer_row[viewer + 1]]
        )
    ]
    return Zones(
        zone=looks.zone[items] - first,
        image=np.zeros(last - first, np.int64),
        share=looks.share[first:last],
        pairs=np.array(seen, np.int64).reshape(-1, 2),
    )


def what_is_held(settings: DetectionSettings, looks: LookTables, real: int) -> Held:
    """What the settings say as numbers: ∞ and 0 for fixed parameters.

    Where every list covers one image, false marks on its image are all there is to learn of its
    rate: κ is held at ∞.
    """

    def number(value: float | str, held: float, learned: float) -> float:
        if isinstance(value, str):
            return held if value == "held" else learned
        return value

    clumps = number(settings.look_shape_sd, 0.0, LEARNED_CLUMPS)
    shape = settings.look_shape
    if most_looks(looks) <= 1 and settings.look_shape_sd == "auto":
        clumps, shape = 0.0, math.inf
    if shape == math.inf:
        clumps = 0.0
    image_ease_sd = number(settings.image_ease_sd, 0.0, LEARNED_IMAGES)
    if len(looks.zones) <= 2 or real == 1:
        image_ease_sd = 0.0
    return Held(
        number(settings.size_weight, math.inf, LEARNED_SIZES),
        number(settings.false_shape_sd, 0.0, LEARNED_SPREAD),
        shape,
        clumps,
        image_ease_sd,
    )


class Held(NamedTuple):
    """Of the beliefs those that may be about something that is held."""

    size_weight: float
    false_shape_sd: float
    look_shape: float
    look_shape_sd: float
    image_ease_sd: float


def most_looks(looks: LookTables) -> int:
    """How many images the list that covers most of them covers."""
    lists = len(looks.covered)
    marked = np.bincount(looks.look_list, minlength=lists)
    blank = [looks.blank_count[a:b].sum() for a, b in pairwise(looks.list_blank)]
    return int((marked + blank).max())


def _beliefs(
    settings: DetectionSettings, markings: NDArray[np.float64], looks: LookTables, real: int
) -> Beliefs:
    images = len(looks.zones) - 1
    held = what_is_held(settings, looks, real)
    return Beliefs(
        objects_shape=settings.objects_shape,
        objects_shape_sd=settings.objects_shape_sd,
        objects_mean=float(markings.sum()) / images,
        objects_mean_sd=settings.objects_mean_sd,
        false_shape=settings.false_shape,
        false_shape_sd=held.false_shape_sd,
        look_shape=held.look_shape,
        look_shape_sd=held.look_shape_sd,
        markings=markings,
        share_shape=settings.share_shape,
        share_rate=settings.share_shape * settings.false_share,
        class_weight=settings.class_weight,
        size_weight=held.size_weight,
        listing_a=settings.listing_a,
        listing_b=settings.listing_b,
        ease_mean=settings.ease_mean,
        ease_sd=settings.ease_sd,
        image_ease_sd=held.image_ease_sd,
        image_ease_sd_shape=settings.image_ease_sd_shape,
        ease_least=settings.ease_least,
        skill_sd=settings.skill_sd,
        skill_sd_shape=settings.skill_sd_shape,
        interaction_sd=settings.interaction_sd,
        decoy_ease=settings.decoy_ease,
        decoy_ease_sd=settings.decoy_ease_sd,
        decoy_least=settings.decoy_least,
        decoy_most=settings.decoy_most,
        decoy_sd=settings.decoy_sd,
        usual_false=settings.false_share * float((markings / looks.covered).mean()),
        slope_sd=settings.slope_sd,
        size_slope_sd=settings.size_slope_sd,
        category_weight=settings.category_weight,
        accuracy=settings.accuracy,
        accuracy_weight=settings.accuracy_weight,
        confusion_strength=settings.confusion_strength,
        confusion_shape=settings.confusion_shape,
        score_slope=settings.score_slope,
        score_slope_sd=settings.score_slope_sd,
        usual_slope_sd=settings.usual_slope_sd,
        score_offset=settings.score_offset,
        score_offset_sd=settings.score_offset_sd,
    )


def make_looks(
    images: Codes,
    families: Codes,
    persons: Codes,
    looks: Codes | None,
    zones: Zones | None = None,
) -> LookTables:
    """Lay out who looked where; whoever has a marking on an image looked at it in any case.

    Lists of one person cover the same zones of an image: all that one of them covers.
    """
    lists = len(persons)
    own = images * lists + families
    told = own if looks is None else np.concatenate([own, looks[:, 0] * lists + looks[:, 1]])
    pairs = np.unique(told)
    n_images = int(pairs[-1]) // lists + 1
    if zones is None:
        both = np.column_stack(np.divmod(pairs, lists))
        zones = Zones(images, np.arange(n_images), np.ones(n_images), both)
    seen = _viewers(pairs, persons)
    at_zone = _looks_at_zones(seen, persons, zones)
    share = zones.share[np.repeat(at_zone.zone, at_zone.held)].astype(np.float64)
    return LookTables(
        image=images.astype(np.int32),
        zone=zones.zone.astype(np.int32),
        row=seen.row[np.searchsorted(pairs, own)].astype(np.int32),
        row_list=seen.row_list.astype(np.int32),
        row_viewer=np.repeat(np.arange(len(seen.person)), np.diff(seen.first_row)).astype(np.int32),
        viewer_row=seen.first_row,
        viewer_person=seen.person.astype(np.int32),
        person_viewer=np.searchsorted(seen.person, np.arange(int(persons.max()) + 2)),
        zones=np.searchsorted(zones.image, np.arange(n_images + 1)),
        share=np.ascontiguousarray(zones.share, np.float64),
        start=np.searchsorted(at_zone.zone, np.arange(len(zones.share) + 1)),
        viewer=at_zone.viewer.astype(np.int32),
        silent=np.zeros(len(zones.share)),
        covered=np.bincount(at_zone.lists, share, lists).astype(np.float64),
        **_looks_by_list(
            families * n_images + images,
            at_zone.lists * n_images + np.repeat(zones.image[at_zone.zone], at_zone.held),
            share,
            (lists, n_images),
        ),
    )


class _Viewers(NamedTuple):
    """Persons with those of their lists that cover an image together, and their rows."""

    person: Codes  # (T,)
    first_row: Codes  # (T + 1,)
    row_list: Codes  # (R,)
    #: Of every pair of an image and a list the row.
    row: Codes
    #: Of every pair of an image and a person, as one ascending number, the viewer.
    pair: Codes
    viewer: Codes


def _viewers(pairs: Codes, persons: Codes) -> _Viewers:
    """The viewers; ``pairs`` are those of an image and a list, each one number, ascending."""
    lists = len(persons)
    image, who = np.divmod(pairs, lists)
    person = persons[who].astype(np.int64)
    order = np.lexsort((who, person, image))
    image, who, person = image[order], who[order], person[order]
    pair, first, held = np.unique(
        image * (int(persons.max()) + 1) + person, return_index=True, return_counts=True
    )
    # Viewers come by person and then by their lists; of lists that begin alike the shorter first.
    viewer = person[first]
    for at in range(int(held.max())):
        following = np.where(held > at, who[np.minimum(first + at, len(who) - 1)] + 1, 0)
        viewer = np.unique(viewer * (lists + 1) + following, return_inverse=True)[1]
    chosen = np.unique(viewer, return_index=True)[1]
    first_row = np.concatenate([[0], np.cumsum(held[chosen])]).astype(np.int64)
    row = np.empty(len(pairs), np.int64)
    row[order] = np.repeat(first_row[viewer] - first, held) + np.arange(len(pairs))
    return _Viewers(
        person[first[chosen]],
        first_row,
        who[_ranges(first[chosen], held[chosen])],
        row,
        pair,
        viewer,
    )


def _ranges(first: Codes, count: Codes) -> Codes:
    """So many whole numbers from each first one on, all in one."""
    begin = np.cumsum(count) - count
    return np.asarray(np.repeat(first - begin, count) + np.arange(int(count.sum())))


class _AtZones(NamedTuple):
    """Who looked at each zone, ascending, and their lists one after the other."""

    zone: Codes
    viewer: Codes
    held: Codes
    lists: Codes


def _looks_at_zones(seen: _Viewers, persons: Codes, zones: Zones) -> _AtZones:
    count = int(persons.max()) + 1
    there = np.unique(zones.pairs[:, 0] * count + persons[zones.pairs[:, 1]])
    zone, person = np.divmod(there, count)
    viewer = seen.viewer[np.searchsorted(seen.pair, zones.image[zone] * count + person)]
    held = np.diff(seen.first_row)[viewer]
    return _AtZones(zone, viewer, held, seen.row_list[_ranges(seen.first_row[viewer], held)])


def _looks_by_list(
    own: Codes, there: Codes, share: NDArray[np.float64], sizes: tuple[int, int]
) -> dict[str, NDArray[Any]]:
    """Looks with markings one by one, those without by how much they cover; both by list.

    ``own`` are a list and an image for each item, as one number, ``there`` the same for each zone
    that a list covers, with its share of the image. ``sizes``: how many lists, how many images.
    """
    lists, images = sizes
    made, look = np.unique(own, return_inverse=True)
    covering, of = np.unique(there, return_inverse=True)
    covers = np.bincount(of, share, len(covering))
    marked = np.searchsorted(covering, made)
    blank = np.delete(np.arange(len(covering)), marked)
    kinds, count = np.unique(
        np.column_stack([covering[blank] // images, covers[blank]]), axis=0, return_counts=True
    )
    ends = np.arange(lists + 1)
    return {
        "look": look.astype(np.int32),
        "look_list": (made // images).astype(np.int32),
        "look_share": covers[marked],
        "list_look": np.searchsorted(made // images, ends),
        "blank_share": kinds[:, 1].copy(),
        "blank_count": count.astype(np.float64),
        "list_blank": np.searchsorted(kinds[:, 0], ends),
    }


def parameter_columns(
    prior: Detection,
    experts: Sequence[str],
    persons: Sequence[str],
    images: Sequence[str] = ("",),
    categories: Sequence[str] = (),
) -> Columns:
    """The prior's own parameters, in order."""
    sizes = sizes_of(prior, len(prior.parameters.class_weight))
    names = {
        "person": tuple(persons),
        "expert": tuple(experts),
        "image_of_objects": tuple(images),
        "law_of_objects": LAW,
        "category": tuple(categories),
        "said": tuple(categories),
    }
    for axis in ("class", "look", "level"):
        names[axis] = tuple(str(at + 1) for at in range(sizes[axis]))
    shown = variables(shapes_of(Parameters, sizes))
    used = {axis for variable in shown for axis in variable.dims}
    return Columns(shared=shown, coords={axis: names[axis] for axis in names if axis in used})


def _levels(
    log_sizes: NDArray[np.float64] | None,
) -> tuple[float, float, NDArray[np.float64], NDArray[np.float64]]:
    """Where the levels begin, how wide they are, each one's middle less the median size, and m."""
    if log_sizes is None or np.ptp(log_sizes) == 0.0:
        return 0.0, 1.0, np.zeros(1), np.ones(1)
    low, high = float(log_sizes.min()), float(log_sizes.max())
    step = (high - low) / LEVELS
    middle = low + step * (np.arange(LEVELS) + 0.5)
    place = np.clip(((log_sizes - low) / step).astype(np.int64), 0, LEVELS - 1)
    between = np.arange(LEVELS)[:, np.newaxis] - np.arange(LEVELS)
    kernel = np.exp(-0.5 * (between / SMOOTHING) ** 2)
    smooth = kernel / kernel.sum(axis=0) @ np.bincount(place, minlength=LEVELS)
    usual = (smooth + 1.0) / (smooth + 1.0).sum()
    return low, step, np.asarray(middle - np.median(log_sizes), np.float64), usual


def _in_levels(log_sizes: NDArray[np.float64], low: float, step: float) -> NDArray[np.float64]:
    """Log sizes counted in levels, as multiples of 2^-20: sums of them have no rounding errors."""
    fine = 2.0**20
    return np.asarray(np.floor(np.clip((log_sizes - low) / step, 0.0, LEVELS) * fine) / fine)


def _start(bare: Detection, classes: int) -> NDArray[np.float64]:
    """Where chains begin: classes of equal weight from easy to hard, few false marks."""
    beliefs, looks = bare.beliefs, bare.looks
    spread = np.linspace(1.0, -1.0, bare.real) if bare.real > 1 else np.zeros(1)
    ease = np.maximum(beliefs.ease_mean + beliefs.ease_sd * spread, beliefs.ease_least)
    likely = 0.5 * (beliefs.decoy_least + beliefs.decoy_most)
    decoys = math.log(likely / (1.0 - likely))
    ease = np.append(ease, [decoys] * (classes - bare.real))
    share = MANY_FALSE
    false = share * beliefs.markings / looks.covered
    images = len(looks.zones) - 1
    most = np.zeros(images)
    np.maximum.at(
        most, looks.image, _per_look(looks.image, looks.row_list[looks.row]).astype(np.float64)
    )
    start: dict[str, Any] = {
        "class_weight": 1.0 / classes,
        "image_ease": 0.0,
        "image_ease_sd": beliefs.image_ease_sd,
        "ease": ease,
        "notice": ease[:, np.newaxis],
        "skill": 0.0,
        "skill_sd": beliefs.skill_sd,
        "slope": 0.0,
        "listing": 0.5,
        "false_marks": false,
        "false_marks_on": false[looks.look_list],
        "look_shape": beliefs.look_shape,
        "false_share": share,
        "false_shape": beliefs.false_shape,
        "expected_objects": np.maximum(most, 0.5),
        "objects_law": [beliefs.objects_shape, max(float(most.mean()), 0.5)],
        "size_share": bare.usual,
        "false_size": bare.usual,
        "tally": 0.0,
    }
    start |= category_start(bare.categories.said, len(bare.categories.share), beliefs)
    start |= score_start(beliefs)
    return joined(shapes(bare, classes), start)


def _per_look(images: NDArray[np.int32], lists: NDArray[np.int32]) -> Codes:
    """How many markings the list of each item has on its image."""
    pairs = np.column_stack([images, lists])
    _, inverse, counts = np.unique(pairs, axis=0, return_inverse=True, return_counts=True)
    return np.asarray(counts[inverse.ravel()])
