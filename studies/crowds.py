"""Is it real, who is good, do we need more looks? The detection prior on made-up crowds.

Every data set is a crowd of known skills (``studies.made_up_crowds``). The study says how close the
estimated skills are, how often 95 % intervals of skills, of the objects on each image and of their
total hold the truth, whether spammers are found, and how well ``p_real`` tells real objects from
false marks, beside other ways to do so. These take the clusters of the DFCRP or their own, and the
threshold that the truth says is best.

Run it by ``./run reproduce crowds --out DIR``; it can be stopped, and the same command resumes it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp import __version__
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import mostly_false
from dfcrp.report.tables import markdown_table, write_json
from studies.made_up_crowds import Crowd, CrowdDesign, make_crowd
from studies.numbers import describe
from studies.store import ResultStore

Floats = NDArray[np.float64]
#: Bins of the probability to be real.
EDGES = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])
#: Distances, in standard deviations of the markings, that DBSCAN is tried with.
REACHES = (1.5, 3.0, 4.5)


@dataclass(frozen=True)
class CrowdPlan:
    """Which crowds, and how long a run on each is."""

    design: CrowdDesign = field(default_factory=CrowdDesign)
    datasets: int = 1
    scans: int = 1500
    burn_in: int = 500
    chains: int = 2
    seed: int = 1
    rivals: bool = True

    def identity(self) -> dict[str, Any]:
        """What a result depends on besides its number."""
        chosen = asdict(self)
        del chosen["datasets"]
        return {**chosen, "dfcrp": __version__}


#: One crowd as large as a small project's, and many small ones for the coverage of totals.
LARGE = CrowdPlan()
SMALL = CrowdPlan(
    design=CrowdDesign(images=60, volunteers=20, spammers=2), datasets=20, scans=900, burn_in=300
)


def run_crowd(plan: CrowdPlan, index: int) -> dict[str, Any]:
    """The detection prior and its rivals on one crowd."""
    crowd = make_crowd(plan.design, [plan.seed, index])
    start = time.process_time()
    posterior = _fit(plan, crowd, "detection", index)
    seconds = time.process_time() - start
    found = judge(crowd, posterior)
    found |= {"markings": len(crowd.items), "seconds": seconds}
    if plan.rivals:
        start = time.process_time()
        plain = _fit(plan, crowd, "dfcrp", index)
        found["seconds, dfcrp"] = time.process_time() - start
        found["methods"] |= judge_rivals(crowd, plain)
    return found


def _fit(plan: CrowdPlan, crowd: Crowd, prior: str, index: int) -> Posterior:
    return dfcrp.fit(
        crowd.items,
        prior=prior,
        images="shared",
        chains=plan.chains,
        scans=plan.scans,
        burn_in=plan.burn_in,
        seed=1000 * plan.seed + index,
        progress=False,
    )


def judge(crowd: Crowd, posterior: Posterior) -> dict[str, Any]:
    """What the detection prior says, beside the truth."""
    found = posterior.detection
    assert found is not None
    assert found.seen_on is not None
    assert found.missed_on is not None
    rows = {row["expert"]: row for row in posterior.summary()["experts"]}
    said = [rows[name] for name in crowd.experts]
    chains = posterior.draws.n_chains
    there = (found.seen_on + found.missed_on).reshape(chains, -1, len(found.image_names))
    counts = [
        describe(there[:, :, at], crowd.objects[name]) for at, name in enumerate(found.image_names)
    ]
    total = (found.seen + found.missed)[:, 0].reshape(chains, -1)
    named = set(mostly_false(posterior))
    spammers = {name for name, spam in zip(crowd.experts, crowd.spammer, strict=True) if spam}
    labels = posterior.point_partition().labels
    return {
        "skills": _intervals([row["sensitivity"] for row in said], crowd.skill),
        "false marks": _intervals([row["false_marks_per_image"] for row in said], crowd.false_rate),
        "images": {
            "held": [count["equal"]["covers"] for count in counts],
            "exact": [count["exact"] for count in counts],
            "error": [count["mean"] - count["truth"] for count in counts],
        },
        "total": describe(total, sum(crowd.objects.values())),
        "spammers": len(spammers),
        "spammers found": len(spammers & named),
        "honest named": len(named - spammers),
        "binned": _binned(found.p_real_marking, crowd.real),
        "methods": {"detection": _scores(crowd, labels, found.p_real_marking)},
    }


def _intervals(said: Sequence[dict[str, float]], truth: Floats) -> dict[str, Any]:
    mean, lo, hi = (np.array([one[name] for one in said]) for name in ("mean", "lo", "hi"))
    return {
        "truth": truth.tolist(),
        "mean": mean.tolist(),
        "held": ((lo <= truth) & (truth <= hi)).tolist(),
        "width": (hi - lo).tolist(),
    }


def _binned(p_real: Floats, real: NDArray[np.bool_]) -> dict[str, list[float]]:
    bins = len(EDGES) - 1
    place = np.clip(np.searchsorted(EDGES, p_real, side="right") - 1, 0, bins - 1)
    return {
        "count": np.bincount(place, minlength=bins).tolist(),
        "said": np.bincount(place, p_real, minlength=bins).tolist(),
        "real": np.bincount(place, real.astype(np.float64), minlength=bins).tolist(),
    }


def _scores(crowd: Crowd, labels: NDArray[Any], p: Floats) -> dict[str, float]:
    """Brier score of the markings, and F1 of the objects that are called real.

    A cluster is called real if its markings are with p above one half, on average. It is right if
    most of its markings are of one object, which counts once. Objects that nobody marked count as
    not found.
    """
    assert crowd.items.truth is not None
    truth, called, right = crowd.items.truth, 0, set()
    for k in np.unique(labels[labels >= 0]):
        members = np.flatnonzero(labels == k)
        if p[members].mean() <= 0.5:
            continue
        called += 1
        numbers, counts = np.unique(truth[members], return_counts=True)
        most = int(np.argmax(counts))
        if crowd.real[members][truth[members] == numbers[most]][0]:
            right.add(int(numbers[most]))
    objects = sum(crowd.objects.values())
    return {
        "brier": float(np.mean((p - crowd.real) ** 2)),
        "f1": 2.0 * len(right) / max(called + objects, 1),
    }


def judge_rivals(crowd: Crowd, plain: Posterior) -> dict[str, dict[str, float]]:
    """Other ways to tell what is real; those with a setting have the best by the truth."""
    labels = plain.point_partition().labels
    images = crowd.items.image
    assert images is not None
    assert crowd.items.looked is not None
    looks = dict(zip(*np.unique(crowd.items.looked[:, 0], return_counts=True), strict=True))
    viewers = np.array([looks[name] for name in images.tolist()])
    sizes = np.bincount(labels, minlength=len(labels))[labels]
    found = {
        "DFCRP, best threshold": _best(crowd, labels, _shares_at_least(plain)),
        "majority vote": _scores(crowd, labels, (sizes > 0.5 * viewers).astype(np.float64)),
    }
    if crowd.items.kind == "points" and find_spec("panoptes_aggregation"):
        found["panoptes_aggregation, best setting"] = _best_of(
            crowd, [(_panoptes, reach, least) for reach in REACHES for least in range(2, 5)]
        )
    if crowd.items.kind == "boxes" and find_spec("ensemble_boxes"):
        found["weighted boxes fusion, best setting"] = _best_of(
            crowd, [(_fused, overlap, least) for overlap in (0.4, 0.55) for least in range(2, 5)]
        )
    return found


def _shares_at_least(plain: Posterior) -> list[Floats]:
    """Probability of every marking to be in a cluster of at least 2, 3, ... markings."""
    draws, n = plain.draws, len(plain.items)
    most = int(np.bincount(plain.items.looks.pairs[:, 0]).max())
    held = np.zeros((most + 1, n))
    for chain in range(draws.n_chains):
        for labels in draws.labels(chain, 0, draws.n_draws):
            size = np.bincount(labels, minlength=n)[labels]
            for least in range(2, most + 1):
                held[least] += size >= least
    return list(held[2:] / (draws.n_chains * draws.n_draws))


def _best(crowd: Crowd, labels: NDArray[Any], candidates: Sequence[Floats]) -> dict[str, float]:
    """The best Brier score and the best F1, of one setting or of two."""
    every = [_scores(crowd, labels, p) for p in candidates]
    return {"brier": min(s["brier"] for s in every), "f1": max(s["f1"] for s in every)}


Clusterer = Callable[[Floats, NDArray[Any], float, int], NDArray[np.int64]]


def _best_of(crowd: Crowd, settings: Sequence[tuple[Clusterer, float, int]]) -> dict[str, float]:
    """The best of a method that clusters each image by itself."""
    scores = []
    for method, setting, least in settings:
        labels = np.full(len(crowd.items), -1)
        for rows in crowd.items.rows_by_image().values():
            own = method(crowd.items.values[rows], crowd.items.families[rows], setting, least)
            labels[rows] = np.where(own < 0, -1, own + labels.max() + 1)
        scores.append(_scores(crowd, labels, (labels >= 0).astype(np.float64)))
    return {"brier": min(s["brier"] for s in scores), "f1": max(s["f1"] for s in scores)}


def _panoptes(places: Floats, families: NDArray[Any], reach: float, least: int) -> NDArray[Any]:
    """The reducer that projects of Zooniverse use for points: DBSCAN."""
    from panoptes_aggregation.reducers.point_reducer_dbscan import point_reducer_dbscan

    marks = [
        {"frame0": {"T0_tool0_points_x": places[own, 0].tolist(),
                    "T0_tool0_points_y": places[own, 1].tolist()}}
        for own in (families == f for f in np.unique(families))
    ]  # fmt: skip
    order = np.concatenate([np.flatnonzero(families == f) for f in np.unique(families)])
    reduced = point_reducer_dbscan(marks, eps=reach * 4.0, min_samples=least)
    labels = np.full(len(places), -1)
    labels[order] = reduced["frame0"]["T0_tool0_cluster_labels"]
    return labels


def _fused(boxes: Floats, families: NDArray[Any], overlap: float, least: int) -> NDArray[Any]:
    """Weighted boxes fusion, every box with the score 1."""
    from studies.annotations import fused_boxes

    half, side = boxes[:, 2:] / 2.0, boxes[:, :2].max() + boxes[:, 2:].max()
    corners = np.clip(np.hstack([boxes[:, :2] - half, boxes[:, :2] + half]) / side, 0.0, 1.0)
    labels = fused_boxes(corners, families, overlap)
    held = np.bincount(labels[labels >= 0], minlength=len(boxes) + 1)
    return np.where((labels >= 0) & (held[labels] >= least), labels, -1)


def reproduce_crowds(
    out: Path, plans: dict[str, CrowdPlan], progress: Callable[[str], None] | None = None
) -> Path:
    """Run the plans, resume what is there, and write ``crowds.md`` and ``crowds.json``."""
    tables: dict[str, Any] = {}
    for name, plan in plans.items():
        store = ResultStore(out / name, plan.identity())
        results = []
        for index in range(plan.datasets):
            if progress:
                progress(f"crowds: {name}, {index + 1} of {plan.datasets}")
            if (found := store.load(index)) is None:
                store.save(index, run_crowd(plan, index))
                found = store.load(index)
            assert found is not None
            results.append(found)
        tables[name] = together(results)
    write_json(out / "crowds.json", tables)
    page = out / "crowds.md"
    page.write_text(_page(plans, tables), encoding="utf-8")
    return page


def together(results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The figures of all data sets of a plan."""

    def pooled(part: str, name: str) -> Floats:
        return np.concatenate([np.array(one[part][name], float) for one in results])

    skills = [np.corrcoef(r["skills"]["truth"], r["skills"]["mean"])[0, 1] for r in results]
    binned = {
        name: np.sum([one["binned"][name] for one in results], axis=0)
        for name in ("count", "said", "real")
    }
    many = np.maximum(binned["count"], 1)
    return {
        "data sets": len(results),
        "markings": float(np.mean([one["markings"] for one in results])),
        "correlation of skills": float(np.mean(skills)),
        "coverage, skills": float(pooled("skills", "held").mean()),
        "coverage, false marks": float(pooled("false marks", "held").mean()),
        "coverage, objects on an image": float(pooled("images", "held").mean()),
        "coverage, objects on an image, exact": float(pooled("images", "exact").mean()),
        "error of objects on an image": float(pooled("images", "error").mean()),
        "coverage, total": float(np.mean([one["total"]["equal"]["covers"] for one in results])),
        "coverage, total, exact": float(np.mean([one["total"]["exact"] for one in results])),
        "error of the total": float(
            np.mean([one["total"]["mean"] - one["total"]["truth"] for one in results])
        ),
        "spammers": int(np.sum([one["spammers"] for one in results])),
        "spammers found": int(np.sum([one["spammers found"] for one in results])),
        "honest named": int(np.sum([one["honest named"] for one in results])),
        "seconds": float(np.mean([one["seconds"] for one in results])),
        "p_real": [
            {"from": a, "to": b, "markings": int(n), "said": s / m, "real": r / m}
            for a, b, n, s, r, m in zip(
                EDGES[:-1], EDGES[1:], binned["count"], binned["said"], binned["real"], many,
                strict=True,
            )
        ],
        "methods": {
            name: {
                score: float(np.mean([one["methods"][name][score] for one in results]))
                for score in ("brier", "f1")
            }
            for name in results[0]["methods"]
        },
    }  # fmt: skip


def _page(plans: dict[str, CrowdPlan], tables: dict[str, Any]) -> str:
    parts = ["# Made-up crowds\n"]
    for name, plan in plans.items():
        found, design = tables[name], plan.design
        parts.append(
            f"## {name}: {design.images} images, {design.volunteers} volunteers of whom "
            f"{design.spammers} are spammers, {design.looks} looks each, {design.kind}\n\n"
            f"{found['data sets']} data sets of about {found['markings']:.0f} markings; "
            f"{plan.chains} chains of {plan.scans} scans.\n"
        )
        rows = [
            {"what": what, "value": value if isinstance(value, int) else f"{value:.3f}"}
            for what, value in found.items()
            if isinstance(value, int | float)
        ]
        parts.append(markdown_table(rows))
        parts.append(
            markdown_table(
                [
                    {"method": method, "Brier": f"{s['brier']:.4f}", "F1": f"{s['f1']:.3f}"}
                    for method, s in found["methods"].items()
                ]
            )
        )
        parts.append(
            markdown_table(
                [
                    {
                        "p_real": f"{row['from']:g} to {row['to']:g}",
                        "markings": row["markings"],
                        "said": f"{row['said']:.3f}",
                        "real": f"{row['real']:.3f}",
                    }
                    for row in found["p_real"]
                ]
            )
        )
    return "\n".join(parts)


def plans_for(quick: bool, kind: str, seed: int) -> dict[str, CrowdPlan]:
    """The plans of the study, or short ones."""
    plans = {"small": SMALL} if quick else {"small": SMALL, "large": LARGE}
    if quick:
        plans = {"small": replace(SMALL, datasets=2, scans=450, burn_in=150)}
    return {
        name: replace(plan, seed=seed, design=replace(plan.design, kind=kind))
        for name, plan in plans.items()
    }
