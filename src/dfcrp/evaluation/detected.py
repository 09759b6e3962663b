"""Objects of an answer beside those of a truth: all that is found, missed, wrong, and how sure."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpWarning, InputError, SettingsError, did_you_mean
from dfcrp.evaluation.matching import (
    PossiblePairs,
    Rule,
    best_assignment,
    possible_pairs,
    right_by_score,
)
from dfcrp.evaluation.objects import Objects
from dfcrp.evaluation.result import Evaluation
from dfcrp.evaluation.scores import (
    agreement,
    average_precision,
    calibration,
    curve_of,
    with_intervals,
)
from dfcrp.first_look.lists import bare_name
from dfcrp.markup import plural
from dfcrp.summaries.streaming import summarise
from dfcrp.values import Json, as_json

Floats = NDArray[np.float64]
Whole = NDArray[np.int64]
Flags = NDArray[np.bool_]
#: Classes of size, by terciles of the true sizes.
SIZE_CLASSES = ("small", "medium", "large")
#: What ``on`` may be besides names of images.
ON = ("truth", "answer", "all", "both")


@dataclass(frozen=True)
class Listing:
    """Which objects of the answer count as its list, in words, and what ranks all of them."""

    listed: Flags
    words: str
    #: A higher one comes first; None where nothing ranks them.
    score: Floats | None
    score_name: str | None
    #: Whether the score is a probability of being right.
    probability: bool


def listing(
    answer: Objects,
    *,
    p_real: float | None = None,
    min_experts: int | None = None,
    min_score: float | None = None,
) -> Listing:
    """What is listed: as asked, or what is more probably real than not, or all."""
    if sum(one is not None for one in (p_real, min_experts, min_score)) > 1:
        raise SettingsError("give one of p_real, min_experts and min_score")
    score, name = _ranking(answer)
    probable = name == "p_real" or (
        name == "score" and score is not None and bool(((score >= 0.0) & (score <= 1.0)).all())
    )
    made: Json = {"score": score, "score_name": name, "probability": probable}
    if min_experts is not None:
        experts = _needed(answer, "n_experts", "min_experts")
        return Listing(experts >= min_experts, f"found by at least {min_experts} experts", **made)
    if min_score is not None:
        if answer.score is None:
            raise InputError(f"{answer.name} has no column score; leave --min-score out, or name "
                             "it with --columns score=NAME")  # fmt: skip
        return Listing(answer.score >= min_score, f"score at least {min_score:g}", **made)
    if p_real is not None or "p_real" in answer.numbers:
        if p_real is not None and not 0.0 <= p_real < 1.0:
            raise SettingsError(f"p_real is {p_real:g}; it must be at least 0 and below 1")
        least = 0.5 if p_real is None else p_real
        return Listing(_needed(answer, "p_real", "p_real") > least, f"p_real > {least:g}", **made)
    if "p_consensus" in answer.numbers:
        likely = answer.numbers["p_consensus"] > 0.5
        return Listing(likely, "p_consensus > 0.5", **made)
    return Listing(np.ones(len(answer), np.bool_), "all", **made)


def _ranking(answer: Objects) -> tuple[Floats | None, str | None]:
    """What ranks the objects, and its name."""
    for name in ("p_real", "score", "p_consensus"):
        values = answer.score if name == "score" else answer.numbers.get(name)
        if values is None:
            continue
        missing = np.flatnonzero(~np.isfinite(values))
        if missing.size:
            raise InputError(
                f"{answer.where(int(missing[0]))}: no number in the column {name}; every object "
                "needs one, or leave the column out"
            )
        if name == "p_real" and ((values < 0.0) | (values > 1.0)).any():
            bad = int(np.flatnonzero((values < 0.0) | (values > 1.0))[0])
            raise InputError(
                f"{answer.where(bad)}: p_real is {values[bad]:g}; a probability is from 0 to 1 "
                "(call the column score if it is none)"
            )
        return values, name
    return None, None


def _needed(answer: Objects, column: str, option: str) -> Floats:
    if column not in answer.numbers:
        raise InputError(
            f"{answer.name} has no column {column}, which {option} is about; leave it out, or "
            + ("fit with --prior detection" if column == "p_real" else "give a catalogue of dfcrp")
        )
    return answer.numbers[column]


@dataclass(frozen=True)
class Scene:
    """An answer and a truth on the same images; without images, on one that has no name."""

    answer: Objects
    truth: Objects
    #: Names of the images, sorted; one empty name if none is named.
    images: tuple[str, ...]
    #: Images of the answer, and of the truth, that are left out.
    left_out: int
    left_out_of_truth: int
    on: str

    def counts(self, objects: Objects, chosen: Flags | None = None) -> Whole:
        """Objects on each image."""
        kept = np.ones(len(objects), np.bool_) if chosen is None else chosen
        if objects.image is None:
            return np.array([np.count_nonzero(kept)])
        codes = np.searchsorted(np.array(self.images), objects.image[kept])
        return np.bincount(codes, minlength=len(self.images))


def on_same_images(
    answer: Objects, truth: Objects, on: str | Sequence[str], *, knows_images: bool
) -> Scene:
    """Keep what is on the images to evaluate on.

    ``on`` is "truth": images that the truth names; "answer": those of the answer, without an object
    if the truth does not name them; "all": both of these; "both": those that both name; or names.
    ``knows_images`` says that the
    answer is of a run, so that an image it does not name was not looked at.
    """
    if isinstance(on, str) and on not in ON:
        raise SettingsError(f"on is {on!r}; it must be one of {', '.join(ON)}, or names of images")
    if not answer.images or not truth.images:
        return _on_one_image(answer, truth, on)
    ours, theirs = set(answer.images), set(truth.images)
    if not ours & theirs and on not in ("all", "answer"):
        raise InputError(
            f"{truth.name} and {answer.name} name no image in common: {truth.name} has "
            f"{truth.images[0]!r}{_and_so_on(truth.images)}, {answer.name} has "
            f"{answer.images[0]!r}{_and_so_on(answer.images)}; make the names of images the same"
        )
    _warn_of_near_names(answer, truth, ours, theirs)
    if isinstance(on, str):
        names = {"truth": theirs, "answer": ours, "all": ours | theirs, "both": ours & theirs}
        chosen = names[on]
        if knows_images and chosen - ours:
            _refuse_unknown_image(answer, truth, sorted(chosen - ours))
    else:
        chosen = set(on)
        for name in sorted(chosen - ours - theirs):
            raise InputError(
                f"on: neither {answer.name} nor {truth.name} has an image "
                f"{name!r}{did_you_mean(name, ours | theirs)}"
            )
        if knows_images and chosen - ours:
            _refuse_unknown_image(answer, truth, sorted(chosen - ours))
    parts = []
    for one in (answer, truth):
        there = np.zeros(0, np.bool_) if one.image is None else np.isin(one.image, sorted(chosen))
        parts.append(one.select(there))
    words = on if isinstance(on, str) else "named"
    return Scene(
        parts[0], parts[1], tuple(sorted(chosen)), len(ours - chosen), len(theirs - chosen), words
    )


def _warn_of_near_names(answer: Objects, truth: Objects, ours: set[str], theirs: set[str]) -> None:
    """Images that only one of them names, and that could be the same."""
    bare = {bare_name(name): name for name in sorted(ours - theirs)}
    pairs = [
        (name, bare[bare_name(name)]) for name in sorted(theirs - ours) if bare_name(name) in bare
    ]
    if not pairs:
        return
    said = " and ".join(f"{one!r} ({other!r} in {answer.name})" for one, other in pairs[:2])
    more = f" and {len(pairs) - 2:,} more" if len(pairs) > 2 else ""
    warnings.warn(
        f"{truth.name} names the image {said}{more}: names that differ are different images here; "
        "if they are the same, name an image in one way",
        DfcrpWarning,
        stacklevel=4,
    )


def _and_so_on(names: Sequence[str]) -> str:
    return "" if len(names) == 1 else " and others"


def _on_one_image(answer: Objects, truth: Objects, on: str | Sequence[str]) -> Scene:
    if not isinstance(on, str):
        raise InputError("on names images, but not both the truth and the answer have an image "
                         "column; leave it out")  # fmt: skip
    for one, other in ((answer, truth), (truth, answer)):
        if len(one.images) > 1:
            raise InputError(
                f"{one.name} has {len(one.images)} images, but {other.name} has no column for the "
                "image; add one, or name it with --columns image=NAME (of the truth with "
                "--truth-columns)"
            )
    bare = [replace(one, image=None, empty_images=()) for one in (answer, truth)]
    return Scene(bare[0], bare[1], ("",), 0, 0, on)


def _refuse_unknown_image(answer: Objects, truth: Objects, unknown: Sequence[str]) -> None:
    first = unknown[0]
    at = "" if truth.image is None else next(
        (f"{truth.where(row)}: " for row in np.flatnonzero(truth.image == first).tolist()), ""
    )  # fmt: skip
    more = f" (and {len(unknown) - 1} more such images)" if len(unknown) > 1 else ""
    raise InputError(
        f"{at}the image {first!r} is not in {answer.name}{did_you_mean(first, answer.images)}"
        f"{more}; correct the name, or leave such images out with --on both, or with --on "
        "answer if the truth is of all images (in Python on='both', on='answer')"
    )


def evaluate_objects(
    scene: Scene,
    rule: Rule,
    chosen: Listing,
    totals: Mapping[str, Whole] | None = None,
) -> Evaluation:
    """Everything about objects; ``totals`` are draws of how many there are on each image."""
    answer, truth, listed = scene.answer, scene.truth, chosen.listed
    pairs = possible_pairs(answer, truth, rule)
    match = best_assignment(pairs.select(listed[pairs.answer]), len(answer), len(truth))
    right, found = match >= 0, np.isin(np.arange(len(truth)), match[match >= 0])
    by_image = (scene.counts(answer, right), scene.counts(answer, listed), scene.counts(truth))
    noun = answer.likelihood.noun
    result: Json = {
        "kind": answer.kind,
        "answer": answer.name,
        "truth": truth.name,
        "rule": rule.as_dict(),
        "rule_words": f"{plural(noun)} match {rule.words()}",
        "listed": chosen.words,
        "on": scene.on,
        "n_images": len(scene.images) if scene.images != ("",) else 1,
        "n_images_left_out": scene.left_out,
        "n_images_left_out_of_truth": scene.left_out_of_truth,
        "n_true": len(truth),
        "n_listed": int(listed.sum()),
        "n_right": int(right.sum()),
        "n_entries": len(answer),
        **with_intervals(*(one.astype(np.float64) for one in by_image)),
        "bootstrap": "images" if len(scene.images) > 1 else "objects",
        **_ranked(pairs, chosen, len(truth)),
        "n_total": _total(scene, totals),
        "counts": _counts(by_image[1], by_image[2], scene, totals),
        "matched": _errors(answer, truth, pairs, match, rule),
        "by_size": _by_size(answer, truth, listed, right, found),
        "by_category": _by_category(answer, truth, listed, match),
        "by_image": _by_image(scene, by_image, totals),
    }
    return Evaluation(as_json(result))


def _ranked(pairs: PossiblePairs, chosen: Listing, n_true: int) -> Json:
    """What depends on how the answer ranks all of its entries, listed or not."""
    if chosen.score is None:
        nothing = calibration(np.zeros(0, np.bool_), np.zeros(0))
        return {"score": None, "average_precision": None, "curve": [], **nothing}
    right = right_by_score(pairs, np.argsort(-chosen.score, kind="stable"), n_true)
    sure = calibration(right, chosen.score) if chosen.probability else calibration(
        right[:0], chosen.score[:0]
    )  # fmt: skip
    return {
        "score": chosen.score_name,
        "average_precision": average_precision(right, chosen.score, n_true),
        "curve": curve_of(right, chosen.score, n_true),
        **sure,
    }


def _total(scene: Scene, totals: Mapping[str, Whole] | None) -> Json | None:
    """Objects in all that the run estimates on these images, and whether its interval holds."""
    if totals is None:
        return None
    draws = np.sum([totals[name] for name in scene.images], axis=0)
    return _held(draws, len(scene.truth))


def _held(draws: Whole, true: int) -> Json:
    found = summarise(draws)
    return {**found.as_dict(), "true": true, "covers": bool(found.lo <= true <= found.hi)}


def _counts(listed: Whole, true: Whole, scene: Scene, totals: Mapping[str, Whole] | None) -> Json:
    """How far the number listed on an image is from the true one, and the run's own number."""
    error = listed - true
    found: Json = {
        "mean_error": float(error.mean()),
        "mean_absolute_error": float(np.abs(error).mean()),
        "exact": float(np.mean(error == 0)),
    }
    if totals is not None:
        each = [_held(totals[n], int(m)) for n, m in zip(scene.images, true, strict=True)]
        away = np.array([one["mean"] - one["true"] for one in each])
        found["total"] = {
            "mean_error": float(away.mean()),
            "mean_absolute_error": float(np.abs(away).mean()),
            "coverage": float(np.mean([one["covers"] for one in each])),
        }
    return found


def _errors(
    answer: Objects, truth: Objects, pairs: PossiblePairs, match: Whole, rule: Rule
) -> Json:
    """How far matched objects are off, and how often their 95 % intervals hold the true value."""
    rows = np.flatnonzero(match >= 0)
    chosen = match[pairs.answer] == pairs.truth
    chosen &= match[pairs.answer] >= 0
    found: Json = {"n": len(rows)}
    if rule.iou is not None:
        quality = pairs.quality[chosen]
        found["mean_iou"] = float(quality.mean()) if len(quality) else None
    if rule.distance is None or not isinstance(rule.distance, Mapping):
        away = np.linalg.norm(answer.centres[rows] - truth.centres[match[rows]], axis=1)
        found["median_distance"] = float(np.median(away)) if len(rows) else None
    held = {}
    for name, values in truth.columns.items():
        lo, hi = answer.numbers.get(f"{name}_lo"), answer.numbers.get(f"{name}_hi")
        if lo is None or hi is None or not len(rows) or name == "angle" or answer.site.on_sphere:
            continue
        true = values[match[rows]]
        held[name] = float(np.mean((lo[rows] <= true) & (true <= hi[rows])))
    return {**found, "coverage": held}


def _by_size(
    answer: Objects, truth: Objects, listed: Flags, right: Flags, found: Flags
) -> list[Json]:
    """By class of size, with terciles of the true sizes for bounds; none without sizes."""
    theirs, ours = truth.sizes, answer.sizes
    if theirs is None or len(np.unique(theirs)) < len(SIZE_CLASSES):
        return []
    edges = np.quantile(theirs, [1 / 3, 2 / 3])
    bounds = [0.0, *edges.tolist(), np.inf]
    true_class = np.searchsorted(edges, theirs, side="right")
    own_class = np.searchsorted(edges, np.zeros(0) if ours is None else ours, side="right")
    rows = []
    for k, name in enumerate(SIZE_CLASSES):
        here, there = own_class == k, true_class == k
        rows.append({
            "size_class": name, "from": bounds[k], "to": bounds[k + 1],
            **_parts(listed & here, right & here, there, found & there),
        })  # fmt: skip
    return rows


def _parts(listed: Flags, right: Flags, true: Flags, found: Flags) -> Json:
    """Precision of some of the list, and recall of some of the truth, not only of its matches."""
    n_listed, n_true = int(listed.sum()), int(true.sum())
    precision = float(right.sum()) / n_listed if n_listed else None
    recall = float(found.sum()) / n_true if n_true else None
    return {"n_true": n_true, "n_listed": n_listed, "precision": precision, "recall": recall}


def _by_category(answer: Objects, truth: Objects, listed: Flags, match: Whole) -> Json | None:
    """By category: what is right has the right category too, where the answer names any."""
    if truth.category is None:
        return None
    matched = match >= 0
    own = answer.category
    same = matched.copy()
    if own is not None:
        same[matched] = own[matched] == truth.category[match[matched]]
    found = np.isin(np.arange(len(truth)), match[same])
    names = sorted(
        {*truth.category.tolist(), *([] if own is None else own[listed].tolist())} - {""}
    )
    rows = []
    for name in names:
        there = truth.category == name
        here = np.zeros(len(answer), np.bool_) if own is None else own == name
        row = _parts(listed & here, same & here, there, found & there)
        if own is None:
            row |= {"n_listed": None}
        rows.append({"category": name, **row})
    share = float(same[matched].mean()) if own is not None and matched.any() else None
    return {"right_category": share, "categories": rows}


def _by_image(
    scene: Scene, counts: tuple[Whole, Whole, Whole], totals: Mapping[str, Whole] | None
) -> list[Json]:
    """A row for each image."""
    if scene.images == ("",):
        return []
    found = agreement(*counts)
    rows = []
    for k, name in enumerate(scene.images):
        right, listed, true = (int(one[k]) for one in counts)
        row: Json = {
            "image": name, "n_true": true, "n_listed": listed, "n_right": right,
            **{key: float(values[k]) for key, values in found.items()},
        }  # fmt: skip
        if totals is not None:
            row["n_total"] = _held(totals[name], true)
        rows.append(row)
    return rows
