"""``evaluate``: any answer beside any truth of the same kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from dfcrp.evaluation.detected import Scene, evaluate_objects, listing, on_same_images
from dfcrp.evaluation.matching import Rule, checked_rule
from dfcrp.evaluation.objects import Objects, objects_of
from dfcrp.evaluation.of_run import learned_distance, objects_of_run, totals_of_run
from dfcrp.evaluation.result import Evaluation
from dfcrp.items.columns import ColumnChoice


def evaluate_run(
    posterior: Any,
    truth: Any,
    *,
    columns: ColumnChoice = None,
    **options: Any,
) -> Evaluation:
    """A run beside a truth; see `Posterior.evaluate`."""
    answer = objects_of_run(posterior)
    return _evaluate(
        answer,
        objects_of(truth, answer.kind, "the truth", columns, answer.site),
        learned=learned_distance(posterior),
        totals=totals_of_run(posterior),
        knows_images=True,
        **options,
    )


def evaluate(
    catalogue: Any,
    truth: Any,
    kind: str = "circles",
    *,
    columns: ColumnChoice = None,
    truth_columns: ColumnChoice = None,
    **options: Any,
) -> Evaluation:
    """A catalogue of any program beside a truth.

    Parameters
    ----------
    catalogue, truth : path, items, data frame or dict of columns
        Objects, with the columns of their kind and perhaps image, category, and p_real (a
        probability) or score (any number, higher is surer).
    kind : str
        What they are, as in ``read_items``.
    columns, truth_columns : dict or str, optional
        Which column plays which role in each, as in ``read_items``.
    iou, distance, same_category, p_real, min_experts, min_score, on
        As in `Posterior.evaluate`.

    Returns
    -------
    Evaluation

    Examples
    --------
    >>> found = dfcrp.evaluate("rival.csv", "truth.csv", "boxes")  # doctest: +SKIP
    """
    answer = objects_of(catalogue, kind, "the catalogue", columns)
    return _evaluate(answer, objects_of(truth, kind, "the truth", truth_columns), **options)


def _evaluate(
    answer: Objects,
    truth: Objects,
    *,
    iou: float | None = None,
    distance: float | Mapping[str, float] | None = None,
    same_category: bool = False,
    p_real: float | None = None,
    min_experts: int | None = None,
    min_score: float | None = None,
    on: str | Sequence[str] = "truth",
    learned: Any = None,
    totals: Any = None,
    knows_images: bool = False,
) -> Evaluation:
    rule = _rule(answer, iou, distance, same_category, learned)
    scene: Scene = on_same_images(answer, truth, on, knows_images=knows_images)
    scene = replace(scene, answer=scene.answer.in_order(), truth=scene.truth.in_order())
    chosen = listing(scene.answer, p_real=p_real, min_experts=min_experts, min_score=min_score)
    return evaluate_objects(scene, rule, chosen, totals)


def _rule(
    answer: Objects,
    iou: float | None,
    distance: float | Mapping[str, float] | None,
    same_category: bool,
    learned: Any,
) -> Rule:
    likelihood, columns = answer.likelihood, tuple(answer.columns)
    outlines = likelihood.outlines(answer.columns)
    placed = likelihood.columns is not None
    if isinstance(distance, (int, float)) and not placed:
        # Of any numbers, all count.
        distance = dict.fromkeys(columns, float(distance))
    return checked_rule(
        columns,
        has_area=placed and outlines is not None and outlines.shape != "point",
        iou=iou,
        distance=distance,
        same_category=same_category,
        learned=learned,
        noun=likelihood.noun,
    )
