"""Boxes by six detectors and points by forty annotators, with known truth, beside other methods.

    ./run python -m studies.annotations --out annotations

Every method gets the same simulated items. dfcrp has its defaults; the others have the best of a
few settings, chosen for each data set by the truth, which no user could do. Each method is
run once before the clock starts, so that nothing is compiled while it runs; of several settings
the time is that of one. Noise counts as clusters of one. Needs the extra "compare".
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.baselines.scores import adjusted_rand
from dfcrp.baselines.without_model import clusters_breaking_family_rule
from dfcrp.baselines.wrapping import noise_alone
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_csv, write_json

Floats = NDArray[np.float64]
Labels = NDArray[np.int64]
#: Width and height of the image.
IMAGE = (1600.0, 1200.0)


@dataclass(frozen=True)
class SimulatedItems:
    """What all experts listed, and which object each item is of."""

    likelihood: str
    values: Floats
    families: Labels
    truth: Labels


def simulated_boxes(seed: int, n_objects: int = 150, n_experts: int = 6) -> SimulatedItems:
    """Boxes that overlap here and there; errors go with their size.

    Detectors find 70 to 95 % of the objects, and one box in ten is of nothing.
    """
    rng = np.random.default_rng([seed, 41])
    objects = _random_boxes(rng, n_objects)

    def seen(box: Floats) -> Floats:
        centre = box[:, :2] + 0.08 * box[:, 2:] * rng.standard_normal((len(box), 2))
        return np.hstack([centre, box[:, 2:] * np.exp(0.1 * rng.standard_normal((len(box), 2)))])

    def anything(count: int) -> Floats:
        return _random_boxes(rng, count)

    found = np.linspace(0.7, 0.95, n_experts)
    return _listed(rng, objects, found, seen=seen, anything=anything, likelihood="boxes")


def simulated_points(seed: int, n_objects: int = 60, n_experts: int = 40) -> SimulatedItems:
    """Points, some of them closer than the annotators are precise (6 pixels)."""
    rng = np.random.default_rng([seed, 42])

    def anywhere(count: int) -> Floats:
        return rng.uniform(0.0, 0.3, (count, 2)) * IMAGE

    def seen(place: Floats) -> Floats:
        return place + 6.0 * rng.standard_normal(place.shape)

    found = np.linspace(0.5, 0.95, n_experts)
    objects = anywhere(n_objects)
    return _listed(rng, objects, found, seen=seen, anything=anywhere, likelihood="points")


def _random_boxes(rng: np.random.Generator, count: int) -> Floats:
    sides = np.exp(np.log(90.0) + 0.4 * rng.standard_normal((count, 2)))
    return np.hstack([rng.uniform(0.1, 0.9, (count, 2)) * IMAGE, sides])


def _listed(
    rng: np.random.Generator,
    objects: Floats,
    found: Floats,
    *,
    seen: Callable[[Floats], Floats],
    anything: Callable[[int], Floats],
    likelihood: str,
) -> SimulatedItems:
    """Every expert's list: the objects it found, as it saw them, and a tenth of false ones."""
    values, families, truth, next_false = [], [], [], len(objects)
    for expert, chance in enumerate(found):
        own = np.flatnonzero(rng.random(len(objects)) < chance)
        false = anything(int(rng.binomial(len(own), 0.1)))
        values += [seen(objects[own]), false]
        truth += [own, next_false + np.arange(len(false))]
        families.append(np.full(len(own) + len(false), expert))
        next_false += len(false)
    return SimulatedItems(
        likelihood, np.vstack(values), np.concatenate(families), np.concatenate(truth)
    )


@dataclass(frozen=True)
class AnnotationMethod:
    """A method, the package it comes from, what it is for, and one setting after the other."""

    name: str
    package: str
    likelihoods: tuple[str, ...]
    settings: tuple[Any, ...]
    answer: Callable[[SimulatedItems, Any], Labels]


def _ours(items: SimulatedItems, _: Any) -> Labels:
    from dfcrp.fitting import fit

    posterior = fit(
        items.values,
        families=items.families,
        likelihood=items.likelihood,
        chains=2,
        scans=400,
        burn_in=150,
        workers=1,
    )
    return posterior.point_partition().labels.astype(np.int64)


def _scaled(items: SimulatedItems) -> Floats:
    """Features in which one unit means about the same, for methods that know one distance."""
    if items.likelihood == "points":
        return items.values
    sides = np.log(items.values[:, 2:])
    return np.hstack([items.values[:, :2] / (0.08 * np.exp(np.median(sides))), sides / 0.1])


def _hdbscan(items: SimulatedItems, smallest: int) -> Labels:
    from sklearn.cluster import HDBSCAN

    method = HDBSCAN(min_cluster_size=smallest, cluster_selection_method="leaf", copy=True)
    return np.asarray(method.fit_predict(_scaled(items)), dtype=np.int64)


def _fast_hdbscan(items: SimulatedItems, smallest: int) -> Labels:
    from fast_hdbscan import fast_hdbscan

    found = fast_hdbscan(
        _scaled(items),
        min_samples=smallest,
        min_cluster_size=smallest,
        cluster_selection_method="leaf",
        algorithm="kruskal",
        cannot_link_groups=items.families.astype(np.int32),
    )
    return np.asarray(found[0], dtype=np.int64)


def _corners(boxes: Floats) -> Floats:
    """Left, top, right and bottom in shares of the image, inside of it."""
    half = boxes[:, 2:] / 2.0
    corners = np.hstack([boxes[:, :2] - half, boxes[:, :2] + half]) / (IMAGE * 2)
    return np.clip(corners, 0.0, 1.0)


def _fused(items: SimulatedItems, overlap: float) -> Labels:
    """Weighted boxes fusion."""
    return fused_boxes(_corners(items.values), items.families, overlap)[0]


def fused_boxes(
    corners: Floats,
    families: Labels,
    overlap: float,
    scores: Floats | None = None,
    viewers: int = 0,
) -> tuple[Labels, Floats]:
    """Weighted boxes fusion: which fused box each belongs to, and the scores of these.

    Corners are in shares of the image. A box belongs to the fused one that it overlaps most.
    ``viewers`` is how many looked; those who drew nothing lower the scores.
    """
    from ensemble_boxes import weighted_boxes_fusion

    sure = np.ones(len(corners)) if scores is None else scores
    own = [families == expert for expert in np.unique(families)]
    silent: list[list[float]] = [[] for _ in range(viewers - len(own))]
    fused, found, _ = weighted_boxes_fusion(
        [corners[rows].tolist() for rows in own] + silent,
        [sure[rows].tolist() for rows in own] + silent,
        [np.zeros(int(rows.sum())).tolist() for rows in own] + silent,
        iou_thr=overlap,
    )
    shared = _overlaps(corners, np.asarray(fused))
    belongs = np.where(shared.max(axis=1) >= overlap, shared.argmax(axis=1), -1)
    return belongs, np.asarray(found, np.float64)


def _overlaps(boxes: Floats, others: Floats) -> Floats:
    """Intersection over union of every two."""
    low = np.maximum(boxes[:, np.newaxis, :2], others[:, :2])
    high = np.minimum(boxes[:, np.newaxis, 2:], others[:, 2:])
    common = np.clip(high - low, 0.0, None).prod(axis=2)
    area = [(b[:, 2:] - b[:, :2]).prod(axis=1) for b in (boxes, others)]
    return common / (area[0][:, np.newaxis] + area[1] - common)


METHODS = (
    AnnotationMethod("dfcrp", "dfcrp", ("boxes", "points"), (None,), _ours),
    AnnotationMethod(
        "weighted boxes fusion", "ensemble_boxes", ("boxes",), (0.4, 0.5, 0.6, 0.7), _fused
    ),
    AnnotationMethod("HDBSCAN", "sklearn", ("boxes", "points"), (2, 3, 5, 8), _hdbscan),
    AnnotationMethod(
        "fast_hdbscan, cannot-link groups",
        "fast_hdbscan",
        ("boxes", "points"),
        (2, 3, 5, 8),
        _fast_hdbscan,
    ),
)


def _judge(method: AnnotationMethod, items: SimulatedItems) -> dict[str, Any]:
    """The best of the method's settings, and the median time of one."""
    seconds, best = [], (-2.0, np.zeros(0, np.int64))
    for setting in method.settings:
        start = time.perf_counter()
        labels = method.answer(items, setting)
        seconds.append(time.perf_counter() - start)
        best = max(best, (adjusted_rand(noise_alone(labels), items.truth), labels), key=_first)
    return {
        "ARI": best[0],
        "breaking": len(clusters_breaking_family_rule(best[1], items.families)),
        "seconds": float(np.median(seconds)),
    }


def _first(pair: tuple[float, Labels]) -> float:
    return pair[0]


def compare(
    make: Callable[[int], SimulatedItems],
    datasets: int,
    methods: Iterable[AnnotationMethod] = METHODS,
) -> list[dict[str, Any]]:
    """A row for each method: means over data sets; those that are not installed are left out."""
    sets = [make(seed) for seed in range(datasets)]
    rows = []
    for method in methods:
        if sets[0].likelihood not in method.likelihoods:
            continue
        if not importlib.util.find_spec(method.package):
            continue
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            method.answer(sets[0], method.settings[0])
            found = [_judge(method, items) for items in sets]
        aris = np.array([row["ARI"] for row in found])
        rows.append(
            {
                "method": method.name,
                "ARI": float(aris.mean()),
                "lowest ARI": float(aris.min()),
                "clusters breaking the rule": float(np.mean([row["breaking"] for row in found])),
                "seconds": float(np.mean([row["seconds"] for row in found])),
            }
        )
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--datasets", type=int, default=10)
    options = parser.parse_args(arguments)
    out = prepare_out(options.out)
    found = {}
    for name, make in (("boxes", simulated_boxes), ("points", simulated_points)):
        found[name] = compare(make, options.datasets)
        write_csv(out / f"{name}.csv", found[name])
        print(f"{name}: {len(make(0).truth):,} items in the first data set")
        print(markdown_table(found[name], digits=3), flush=True)
    write_json(out / "annotations.json", {**provenance(datasets=options.datasets), **found})
    return 0


if __name__ == "__main__":
    sys.exit(main())
