"""Other ways to say what is real and what it is called, on the made-up crowds.

Those with a setting have the one that the truth says is best, for each score by itself. Programs
that are not installed are skipped, and ``skipped`` says so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cache
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.posterior.posterior import Posterior
from studies.made_up_crowds import Crowd

Floats = NDArray[np.float64]
Labels = NDArray[Any]
#: Distances, in standard errors of the markings, within which DBSCAN finds neighbours.
REACHES = (1.5, 3.0, 4.5)
#: Standard error of the markings' places.
ERROR = 4.0
#: Overlaps from which boxes are fused, and scores from which a fused box is kept; 0: the score
#: itself is the probability.
OVERLAPS = (0.1, 0.25, 0.4, 0.55)
LEAST_SCORES = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5)

#: What each program is needed for.
PROGRAMS = {
    "panoptes_aggregation": "the reducers of Zooniverse",
    "ensemble_boxes": "weighted boxes fusion",
    "crowdkit.aggregation": "Dawid-Skene by crowd-kit",
}


@cache
def why_not(program: str) -> str:
    """Why a program cannot be used; empty if it can."""
    try:
        import_module(program)
    except ImportError as error:
        return f"{program} is not installed as a whole ({error})"
    return ""


def skipped() -> list[str]:
    """What is left out, and why."""
    each = {what: why_not(program) for program, what in PROGRAMS.items()}
    return [f"{what}: {reason}" for what, reason in each.items() if reason]


def scores(crowd: Crowd, labels: Labels, p: Floats) -> dict[str, float]:
    """Brier score of the markings, and F1 of the objects that are called real.

    A cluster is called real if its markings are with p above one half, on average. It is right if
    most of its markings are of one object, which counts once. Objects that nobody marked count as
    not found.
    """
    called = [rows for rows in clusters(labels) if p[rows].mean() > 0.5]
    right = {mostly(crowd, rows) for rows in called} - {-1}
    objects = sum(crowd.objects.values())
    return {
        "brier": float(np.mean((p - crowd.real) ** 2)),
        "f1": 2.0 * len(right) / max(len(called) + objects, 1),
    }


def clusters(labels: Labels) -> list[NDArray[np.int64]]:
    """The rows of every cluster; labels below 0 are of none."""
    order = np.argsort(labels, kind="stable")
    order = order[labels[order] >= 0]
    return np.split(order, np.flatnonzero(np.diff(labels[order])) + 1) if order.size else []


def mostly(crowd: Crowd, rows: NDArray[np.int64]) -> int:
    """The object that most of these markings are of; −1 if it is none."""
    assert crowd.items.truth is not None
    numbers, counts = np.unique(crowd.items.truth[rows], return_counts=True)
    most = int(numbers[np.argmax(counts)])
    return most if most < len(crowd.category) else -1


def judge_rivals(crowd: Crowd, plain: Posterior) -> dict[str, dict[str, float]]:
    """Other ways to tell what is real."""
    labels = plain.point_partition().labels
    images = crowd.items.image
    assert images is not None
    assert crowd.items.looked is not None
    looks = dict(zip(*np.unique(crowd.items.looked[:, 0], return_counts=True), strict=True))
    viewers = np.array([looks[name] for name in images.tolist()])
    sizes = np.bincount(labels, minlength=len(labels))[labels]
    found = {
        "DFCRP, best threshold": _best([scores(crowd, labels, p) for p in _shares_at_least(plain)]),
        "majority vote": scores(crowd, labels, (sizes > 0.5 * viewers).astype(np.float64)),
    }
    if not why_not("panoptes_aggregation"):
        found["panoptes_aggregation, best setting"] = _best_of(
            crowd, [(_reduced, reach, least) for reach in REACHES for least in range(2, 5)]
        )
    if crowd.items.kind == "boxes" and not why_not("ensemble_boxes"):
        least = LEAST_SCORES if crowd.items.score is not None else range(2, 5)
        found["weighted boxes fusion, best setting"] = _best_of(
            crowd, [(_fused, overlap, one) for overlap in OVERLAPS for one in least]
        )
    return found


def _shares_at_least(plain: Posterior) -> list[Floats]:
    """Probability of every marking to be in a cluster of at least 2, 3, ... markings."""
    images = plain.items.rows_by_image()
    most = int(np.bincount(plain.items.looks.pairs[:, 0]).max())
    held = np.zeros((most + 1, len(plain.items)))
    for name, rows in images.items():
        draws, n = plain[name].draws, len(rows)
        for chain in range(draws.n_chains):
            for labels in draws.labels(chain, 0, draws.n_draws):
                size = np.bincount(labels, minlength=n)[labels]
                for least in range(2, most + 1):
                    held[least, rows] += size >= least
        held[:, rows] /= draws.n_chains * draws.n_draws
    return list(held[2:])


def _best(every: Sequence[dict[str, float]]) -> dict[str, float]:
    """The best Brier score and the best F1, of one setting or of two."""
    return {"brier": min(s["brier"] for s in every), "f1": max(s["f1"] for s in every)}


#: Clusters the markings of one image: (crowd, rows, setting, least) to labels and probabilities.
Clusterer = Callable[[Crowd, NDArray[np.int64], float, float], tuple[Labels, Floats]]


def _best_of(crowd: Crowd, settings: Sequence[tuple[Clusterer, float, float]]) -> dict[str, float]:
    """The best of a method that clusters each image by itself."""
    every = []
    for method, setting, least in settings:
        labels, p = np.full(len(crowd.items), -1), np.zeros(len(crowd.items))
        for rows in crowd.items.rows_by_image().values():
            own, p[rows] = method(crowd, rows, setting, least)
            labels[rows] = np.where(own < 0, -1, own + labels.max() + 1)
        every.append(scores(crowd, labels, p))
    return _best(every)


def _reduced(
    crowd: Crowd, rows: NDArray[np.int64], reach: float, least: float
) -> tuple[Labels, Floats]:
    """The reducers that projects of Zooniverse use: DBSCAN of points, circles or rectangles."""
    from panoptes_aggregation.reducers.point_reducer_dbscan import point_reducer_dbscan
    from panoptes_aggregation.reducers.shape_reducer_dbscan import shape_reducer_dbscan

    kind, columns = crowd.items.kind, {n: v[rows] for n, v in crowd.items.columns.items()}
    families = crowd.items.families[rows]
    shape, drawn = {
        "points": lambda: ("points", columns),
        "circles": lambda: ("circle", columns | {"r": columns["diameter"] / 2.0}),
        "boxes": lambda: (
            "rectangle",
            columns
            | {
                "x": columns["x"] - columns["width"] / 2.0,
                "y": columns["y"] - columns["height"] / 2.0,
            },
        ),
    }[kind]()
    names = {"points": "xy", "circle": "xyr", "rectangle": ("x", "y", "width", "height")}[shape]
    tool = "T0_tool0_" if shape == "points" else "T0_toolIndex0_"
    own = [np.flatnonzero(families == f) for f in np.unique(families)]
    marks = [
        {"frame0": {tool + name: drawn[name][mine].tolist() for name in names}} for mine in own
    ]
    asked = {
        "eps": reach * ERROR,
        "min_samples": int(least),
        "user_id": list(range(len(marks))),
    }
    if shape == "points":
        reduced = point_reducer_dbscan(marks, **asked)["frame0"]["T0_tool0_cluster_labels"]
    else:
        done = shape_reducer_dbscan(marks, shape=shape, **asked)
        reduced = done["frame0"]["T0_toolIndex0_cluster_labels"]
    labels = np.full(len(rows), -1)
    labels[np.concatenate(own)] = reduced
    return labels, (labels >= 0).astype(np.float64)


def _fused(
    crowd: Crowd, rows: NDArray[np.int64], overlap: float, least: float
) -> tuple[Labels, Floats]:
    """Weighted boxes fusion: what is kept has a score, or without scores so many boxes, at least.

    Every volunteer who looked counts as one model.
    """
    from studies.annotations import fused_boxes

    values, families = crowd.items.values[rows], crowd.items.families[rows]
    half, side = values[:, 2:] / 2.0, values[:, :2].max() + values[:, 2:].max()
    corners = np.clip(np.hstack([values[:, :2] - half, values[:, :2] + half]) / side, 0.0, 1.0)
    score = crowd.items.score
    if score is None:
        labels, _ = fused_boxes(corners, families, overlap)
        held = np.bincount(labels[labels >= 0], minlength=len(rows) + 1)
        kept = (labels >= 0) & (held[labels] >= least)
        return np.where(kept, labels, -1), kept.astype(np.float64)
    assert crowd.items.image is not None
    assert crowd.items.looked is not None
    viewers = int(np.count_nonzero(crowd.items.looked[:, 0] == crowd.items.image[rows[0]]))
    labels, sure = fused_boxes(corners, families, overlap, score[rows], viewers)
    p = np.where(labels >= 0, sure[labels], 0.0)
    if least == 0.0:
        return labels, p
    return np.where(p >= least, labels, -1), (p >= least).astype(np.float64)


def judge_categories(crowd: Crowd, posterior: Posterior) -> dict[str, dict[str, float]]:
    """How often objects get their right category: ours, votes and Dawid-Skene on our clusters.

    Only clusters that are an object's count, and only what volunteers who looked said of them.
    """
    found = posterior.categories
    if found is None:
        return {}
    each = clusters(posterior.point_partition().labels)
    objects = np.array([mostly(crowd, rows) for rows in each])
    kept = np.flatnonzero(objects >= 0)
    truth = crowd.category[objects[kept]]
    order = {int(row): at for at, row in enumerate(found.clusters)}
    ours = np.array([found.probability[order[int(each[k].min())]] for k in kept])
    said = crowd.items.category_codes
    assert said is not None
    votes = np.array([np.bincount(said[each[k]], minlength=len(found.names)) for k in kept], float)
    methods = {
        "detection": _right(ours, truth),
        "most votes": _right(votes / votes.sum(axis=1, keepdims=True), truth),
    }
    if not why_not("crowdkit.aggregation"):
        methods["Dawid-Skene, crowd-kit"] = _right(_dawid_skene(crowd, each, kept), truth)
    return methods


def _right(probability: Floats, truth: NDArray[np.int64]) -> dict[str, float]:
    """The share of objects whose most probable category is right, and the Brier score."""
    exact = np.eye(probability.shape[1])[truth]
    return {
        "right": float(np.mean(probability.argmax(axis=1) == truth)),
        "brier": float(np.mean(np.sum((probability - exact) ** 2, axis=1))),
    }


def _dawid_skene(
    crowd: Crowd, each: Sequence[NDArray[np.int64]], kept: NDArray[np.int64]
) -> Floats:
    """Crowd-kit's probabilities for the kept clusters; it learns from the same ones."""
    import pandas
    from crowdkit.aggregation import DawidSkene

    said = crowd.items.category_codes
    assert said is not None
    rows = np.concatenate([each[k] for k in kept])
    table = pandas.DataFrame({
        "task": np.repeat(np.arange(len(kept)), [len(each[k]) for k in kept]),
        "worker": crowd.items.families[rows],
        "label": said[rows],
    })  # fmt: skip
    found = DawidSkene(n_iter=200).fit_predict_proba(table)
    names = range(len(crowd.items.categories))
    return np.asarray(found.reindex(index=range(len(kept)), columns=names).fillna(0.0), np.float64)
