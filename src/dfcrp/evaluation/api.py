"""``evaluate``: any answer beside any truth of the same kind, a run among them.

A run answers with its catalogue, with how many objects it estimates, and how far items scatter.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from dfcrp.errors import InputError, SettingsError
from dfcrp.evaluation.detected import evaluate_objects, listing, on_same_images
from dfcrp.evaluation.identities import Records, has_entities, in_numbers, read_identities
from dfcrp.evaluation.linked import LinkAnswer, answer_of_table, evaluate_links, pairs_within
from dfcrp.evaluation.matching import Learned, Rule, checked_rule
from dfcrp.evaluation.objects import NUMBERS, Objects, in_one_unit, objects_of
from dfcrp.evaluation.result import Evaluation
from dfcrp.items.columns import ColumnChoice
from dfcrp.items.site import body_radius
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.summaries.streaming import label_blocks

if TYPE_CHECKING:
    from dfcrp.posterior.posterior import Posterior

#: Share of the items of an object that lie within the usual distance of it, if they are normal.
WITHIN = 0.997


@dataclass(frozen=True)
class Asked:
    """What an evaluation is asked to do; as in `evaluate`."""

    iou: float | None = None
    distance: float | Mapping[str, float] | None = None
    same_category: bool = False
    p_real: float | None = None
    min_experts: int | None = None
    min_score: float | None = None
    on: str | Sequence[str] = "truth"
    body: str | float | None = None

    def of_links(self) -> float | None:
        """The least probability of a link; what is about objects is refused."""
        for one in fields(self):
            if one.name != "p_real" and getattr(self, one.name) != one.default:
                raise SettingsError(
                    f"{one.name} is about objects with a place, and the truth is of records or "
                    "entities; leave it out"
                )
        if self.p_real is not None and not 0.0 <= self.p_real < 1.0:
            raise SettingsError(f"p_real is {self.p_real:g}; it must be at least 0 and below 1")
        return self.p_real


def evaluate_run(
    posterior: Posterior, truth: object, asked: Asked | None = None, *, columns: ColumnChoice = None
) -> Evaluation:
    """A run beside a truth; see `Posterior.evaluate`."""
    asked, kind = asked or Asked(), posterior.items.kind
    if posterior.likelihood.text or has_entities(truth, columns):
        least = asked.of_links()
        records = Records(posterior.items)
        table = read_identities(truth, "the truth", columns)
        named = in_numbers(table, records)
        return evaluate_links(links_of_run(posterior, least), named, table.name, len(records), kind)
    answer = objects_of_run(posterior)
    return _evaluate(
        answer,
        _truth_of(truth, answer.kind, columns),
        asked,
        learned=learned_distance(posterior),
        totals=totals_of_run(posterior),
        knows_images=True,
    )


def evaluate(
    catalogue: object,
    truth: object,
    kind: str = "circles",
    *,
    columns: ColumnChoice = None,
    truth_columns: ColumnChoice = None,
    iou: float | None = None,
    distance: float | Mapping[str, float] | None = None,
    same_category: bool = False,
    p_real: float | None = None,
    min_experts: int | None = None,
    min_score: float | None = None,
    on: str | Sequence[str] = "truth",
    body: str | float | None = None,
    two_lists: bool = False,
) -> Evaluation:
    """Compare a catalogue of any program with the truth.

    Parameters
    ----------
    catalogue, truth : path, items, data frame or dict of columns
        Objects, with the columns of their kind and perhaps image, category, and p_real (a
        probability) or score (any number, higher is surer). Of records tables of entities, or
        pairs of ids.
    kind : str
        What they are, as in ``read_items``.
    columns, truth_columns : dict or str, optional
        Which column plays which role in each, as in ``read_items``.
    iou, distance, same_category, p_real, min_experts, on
        As in ``Posterior.evaluate``.
    min_score : float, optional
        List what has at least this score; otherwise all, if there is no p_real.
    body : str or number, optional
        Of longitudes and latitudes: moon, mars, mercury, ceres, earth, or a radius in km.
    two_lists : bool
        Of pairs of records: the left ids are of one list and the right ones of another, so that an
        id on the left and the same one on the right are two records.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> import dfcrp
    >>> truth = {"x": [0.0, 50.0], "y": [0.0, 0.0], "diameter": [10.0, 8.0]}
    >>> found = dfcrp.evaluate({"x": [0.5], "y": [0.0], "diameter": [10.0]}, truth)
    >>> found["precision"], found["recall"]
    (1.0, 0.5)
    """
    asked = Asked(iou, distance, same_category, p_real, min_experts, min_score, on, body)
    text = likelihood_named(kind).text
    if text or (has_entities(truth, truth_columns) and has_entities(catalogue)):
        least = asked.of_links()
        ours = read_identities(catalogue, "the catalogue", columns)
        theirs = read_identities(truth, "the truth", truth_columns)
        records = Records()
        named = in_numbers(ours, records, two_lists=two_lists)
        true = in_numbers(theirs, records, two_lists=two_lists)
        found = answer_of_table(ours.name, named, len(records), least)
        return evaluate_links(found, true, theirs.name, len(records), kind)
    if two_lists:
        raise SettingsError(f"two_lists is for pairs of records, and these are {kind}")
    answer = objects_of(catalogue, kind, "the catalogue", columns)
    return _evaluate(answer, _truth_of(truth, kind, truth_columns), asked)


def _truth_of(truth: object, kind: str, columns: ColumnChoice) -> Objects:
    """The true objects; messages name the option that is about their columns."""
    try:
        return objects_of(truth, kind, "the truth", columns)
    except InputError as error:
        raise type(error)(str(error).replace("--columns ", "--truth-columns ")) from None


def _evaluate(
    answer: Objects,
    truth: Objects,
    asked: Asked,
    *,
    learned: Learned | None = None,
    totals: Mapping[str, NDArray[np.int64]] | None = None,
    knows_images: bool = False,
) -> Evaluation:
    radius = None if asked.body is None else body_radius(str(asked.body))
    answer, truth = in_one_unit(answer, truth, radius)
    rule = _rule(answer, asked, learned)
    scene = on_same_images(answer, truth, asked.on, knows_images=knows_images)
    scene = replace(scene, answer=scene.answer.in_order(), truth=scene.truth.in_order())
    chosen = listing(
        scene.answer,
        p_real=asked.p_real,
        min_experts=asked.min_experts,
        min_score=asked.min_score,
    )
    return evaluate_objects(scene, rule, chosen, totals)


def _rule(answer: Objects, asked: Asked, learned: Learned | None) -> Rule:
    likelihood, columns = answer.likelihood, tuple(answer.columns)
    outlines = likelihood.outlines(answer.columns)
    placed, distance = likelihood.columns is not None, asked.distance
    if distance is not None and not placed and not isinstance(distance, Mapping):
        # Of any numbers, all count.
        distance = dict.fromkeys(columns, float(distance))
    return checked_rule(
        columns,
        has_area=placed and outlines is not None and outlines.shape != "point",
        iou=asked.iou,
        distance=distance,
        same_category=asked.same_category,
        learned=learned,
        noun=likelihood.noun,
    )


def objects_of_run(posterior: Posterior) -> Objects:
    """The catalogue."""
    table, items = posterior.catalogue(), posterior.items
    names = [name for name in items.columns if name in table]
    if len(names) < len(items.columns):
        raise InputError(
            f"the catalogue of {items.kind} does not describe objects by the columns of items; "
            "compare the clusters, with a truth that has the columns id and entity"
        )
    titles = [str(name) for name in table]
    numbers = [name for name in titles if name in NUMBERS or name.endswith(("_lo", "_hi"))]
    image = None
    if "image" in table:
        image = table["image"].to_numpy(dtype=np.str_)
    elif items.images:
        image = np.full(len(table), items.images[0], dtype=f"<U{max(len(items.images[0]), 1)}")
    category = table["category"].to_numpy(dtype=np.str_) if "category" in table else None
    return Objects(
        "the run",
        items.kind,
        {name: table[name].to_numpy(np.float64) for name in names},
        image,
        category,
        numbers={name: table[name].to_numpy(np.float64) for name in numbers},
        site=items.site,
        empty_images=_images(posterior),
    )


def _images(posterior: Posterior) -> tuple[str, ...]:
    """Images that the run has an answer for."""
    items, found = posterior.items, posterior.detection
    if found is not None and found.seen_on is not None:
        return tuple(found.image_names)
    images = items.images if posterior.many is None else posterior.images
    # Where somebody looked and nobody marked anything.
    looked = set() if items.looked is None else set(items.looked[:, 0].tolist())
    return tuple(sorted({*images, *(looked - set(items.images))}))


def totals_of_run(posterior: Posterior) -> dict[str, NDArray[np.int64]] | None:
    """Draws of the number of objects, seen or missed, on each image; None without such a model."""
    found = posterior.detection
    if found is None:
        return None
    if found.seen_on is None or found.missed_on is None:
        draws = (found.seen + found.missed)[:, 0]
        return {"": draws, **dict.fromkeys(posterior.items.images, draws)}
    both = found.seen_on + found.missed_on
    return dict(zip(found.image_names, both.T, strict=True))


def learned_distance(posterior: Posterior) -> Learned | None:
    """How far an item may be from its object, by the scatter that was learned.

    One distance where all columns share their scatter, or one for each column.
    """
    found, columns = posterior.tolerances, tuple(posterior.items.columns)
    if not found:
        return None
    reach = float(np.sqrt(chi2.ppf(WITHIN, len(columns))))
    words = f"{reach:.2f} times the scatter that the run learned"
    shared = found.get("_".join(columns))
    if len(columns) > 1 and isinstance(shared, dict):
        return reach * shared["mean"], words
    if all(isinstance(found.get(name), dict) for name in columns):
        return {name: reach * found[name]["mean"] for name in columns}, words
    return None


def links_of_run(posterior: Posterior, least: float | None) -> LinkAnswer:
    """The clusters of the catalogue, and the probability of every pair to be one entity.

    Pairs are listed if they share a cluster, or with ``least``, if they are more probable.
    """
    labels = np.asarray(posterior.point_partition().labels, np.int64)
    found = posterior.pairs
    pairs, p = np.column_stack([found.first, found.second]), found.probability
    within, n = pairs_within(labels), len(labels)
    # A cluster of the point partition may hold a pair that no draw has.
    keys = within[:, 0] * n + within[:, 1]
    extra = within[~np.isin(keys, pairs[:, 0] * n + pairs[:, 1])]
    pairs, p = np.vstack([pairs, extra]), np.append(p, np.zeros(len(extra)))
    if least is None:
        listed, words = labels[pairs[:, 0]] == labels[pairs[:, 1]], "all in one cluster"
    else:
        listed, words = p > least, f"pairs with p > {least:g}"
    return LinkAnswer("the run", labels, pairs, p, listed, words, _numbers_of(posterior))


def _numbers_of(posterior: Posterior) -> Any:
    def numbers(known: NDArray[np.int64]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Entities and links among these records, in every draw."""
        entities, links = [], []
        for _, _, _, block in label_blocks(posterior.draws):
            for labels in block[:, known]:
                sizes = np.bincount(labels)
                entities.append(np.count_nonzero(sizes))
                links.append(int((sizes * (sizes - 1) // 2).sum()))
        return np.array(entities, np.int64), np.array(links, np.int64)

    return numbers
