"""Precision and recall, average precision, calibration and Brier score, from who is right.

With t right objects among n listed ones and m true ones,

    precision = t / n,   recall = t / m,   F1 = 2 t / (n + m).

Average precision is the area under precision over recall as objects are added from the highest
score to the lowest, equal scores at once, where the precision at a recall is the highest at that
recall or any beyond. The Brier score is the mean of (p - right)², the expected calibration error
the mean over objects of |mean p - share right| of their bin.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.summaries.streaming import LEVEL
from dfcrp.values import Json

Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
#: Bins of the calibration curve.
EDGES = np.linspace(0.0, 1.0, 11)
#: Objects at least as probable as this are called sure; and other probabilities of interest.
SURE, LEAST = 0.9, (0.5, 0.9, 0.95, 0.99)
#: Of the precision-recall curve, so many points are kept.
CURVE_POINTS = 200
#: Bootstrap samples behind the intervals, and their seed: the same data give the same intervals.
SAMPLES, SEED = 2_000, 7


def ratio(part: object, whole: object) -> Any:
    """Part of the whole; NaN where there is no whole."""
    part, whole = np.asarray(part, np.float64), np.asarray(whole, np.float64)
    return np.divide(part, whole, out=np.full(np.broadcast(part, whole).shape, np.nan),
                     where=whole > 0)[()]  # fmt: skip


def agreement(right: object, listed: object, true: object) -> Json:
    """Precision, recall and F1 from counts, or from arrays of counts."""
    return {
        "precision": ratio(right, listed),
        "recall": ratio(right, true),
        "f1": ratio(2.0 * np.asarray(right), np.asarray(listed) + np.asarray(true)),
    }


def with_intervals(right: Floats, listed: Floats, true: Floats) -> Json:
    """The same of all images together, with intervals from drawing images with replacement.

    The arguments are counts by image. Of one image, the units that are drawn are the objects:
    pairs, what is wrong in the answer, and what it missed.
    """
    rows = np.column_stack([right, listed, true]).astype(np.float64)
    total = rows.sum(axis=0)
    if len(rows) == 1:
        t, n, m = (int(count) for count in total)
        rows = np.repeat(np.array([[1.0, 1, 1], [0, 1, 0], [0, 0, 1]]), [t, n - t, m - t], axis=0)
    each = agreement(*resampled(rows).T)
    return {**agreement(*total), "intervals": {name: interval(each[name]) for name in each}}


def resampled(rows: Floats) -> Floats:
    """Sums over as many rows as there are, drawn with replacement; (SAMPLES, columns).

    Equal rows are drawn together.
    """
    kinds, counts = np.unique(rows, axis=0, return_counts=True)
    if not len(rows):
        return np.zeros((SAMPLES, rows.shape[1]))
    drawn = np.random.default_rng(SEED).multinomial(len(rows), counts / len(rows), SAMPLES)
    return np.asarray(drawn @ kinds)


def interval(values: Floats) -> dict[str, float] | None:
    """The equal-tailed interval of samples; None where none of them exists."""
    values = values[np.isfinite(values)]
    if not values.size:
        return None
    tails = [(1.0 - LEVEL) / 2.0, (1.0 + LEVEL) / 2.0]
    lo, hi = np.quantile(values, tails)
    return {"lo": float(lo), "hi": float(hi)}


def precision_recall(right: Flags, score: Floats, n_true: int) -> tuple[Floats, Floats, Floats]:
    """At every distinct score, from the highest: the score, precision, and recall."""
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)
    hits = np.cumsum(right[order])[last]
    return score[order][last], hits / (last + 1.0), hits / n_true


def curve_of(right: Flags, score: Floats, n_true: int) -> list[dict[str, float]]:
    """The curve for JSON, thinned evenly where it has very many points."""
    if not n_true or not len(right):
        return []
    each = np.column_stack(precision_recall(right, score, n_true))
    kept = np.linspace(0, len(each) - 1, min(len(each), CURVE_POINTS)).round().astype(int)
    names = ("score", "precision", "recall")
    return [dict(zip(names, row, strict=True)) for row in each[np.unique(kept)].tolist()]


def average_precision(right: Flags, score: Floats, n_true: int) -> float | None:
    """Area under the curve; None without a true object."""
    if not n_true:
        return None
    if not len(right):
        return 0.0
    _, precision, recall = precision_recall(right, score, n_true)
    best = np.maximum.accumulate(precision[::-1])[::-1]
    return float(np.sum(np.diff(recall, prepend=0.0) * best))


def calibration(right: Flags, p: Floats) -> Json:
    """Brier score, curve, expected calibration error, and how many of the sure ones are right."""
    if not len(p):
        nothing: Json = {"brier": None, "calibration": [], "calibration_error": None}
        return {**nothing, "sure": None, "at_least": []}
    bins = np.clip(np.searchsorted(EDGES, p, side="right") - 1, 0, len(EDGES) - 2)
    rows, error = [], 0.0
    for b in np.unique(bins):
        mine = bins == b
        mean_p, share = float(p[mine].mean()), float(right[mine].mean())
        error += float(mine.mean()) * abs(mean_p - share)
        rows.append({
            "lo": float(EDGES[b]), "hi": float(EDGES[b + 1]), "n": int(mine.sum()),
            "mean_p": mean_p, "right": share,
        })  # fmt: skip
    return {
        "brier": float(np.mean((p - right) ** 2)),
        "calibration": rows,
        "calibration_error": error,
        "sure": _at_least(SURE, right, p),
        "at_least": [_at_least(least, right, p) for least in LEAST],
    }


def _at_least(least: float, right: Flags, p: Floats) -> Json:
    chosen = p >= least
    share = float(right[chosen].mean()) if chosen.any() else None
    return {"least": least, "n": int(chosen.sum()), "right": share}
