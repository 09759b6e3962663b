"""What a user would pick instead, on the same markings: time to an answer, and how true it is.

Each method is given what its documentation advises for this kind of data, or the best of a few
values where it advises none, and is run on a few markings before the clock starts, so that nothing
is compiled while it runs. Noise counts as clusters of one.
"""

from __future__ import annotations

import importlib.util
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import ratio_of, timed
from dfcrp.baselines import dbscan_r14
from dfcrp.baselines.scores import adjusted_rand
from dfcrp.baselines.without_model import clusters_breaking_family_rule
from dfcrp.baselines.wrapping import noise_alone
from dfcrp.items.items import Items
from dfcrp.simulate import highlands_like

Labels = NDArray[np.int64]
#: Scans of a first answer, and those dropped from its front.
FIRST_SCANS, FIRST_BURN_IN = 60, 30
#: Standard deviations of position and log diameter by which features are scaled for methods that
#: know one distance only: position relative to the median diameter, as our own law begins.
SPREADS = (0.1, 0.14)
MIXTURE_ITERATIONS = 20
#: Items on which each method is tried first.
FEW = 600
#: A method that takes this long on the simulated markings is not timed again on others.
SLOW_SECONDS = 60.0


@dataclass(frozen=True)
class Rival:
    """A method, the package it comes from, and its answer to markings."""

    name: str
    package: str
    answer: Callable[[Items], Labels]


def scaled(markings: Items) -> NDArray[np.float64]:
    """Features of which one unit means about the same in position and in size."""
    unit = SPREADS[0] * float(np.median(markings.diameter))
    return np.column_stack(
        [markings.x / unit, markings.y / unit, np.log(markings.diameter) / SPREADS[1]]
    )


def _ours(markings: Items) -> Labels:
    from dfcrp.fitting import fit

    posterior = fit(markings, chains=2, scans=FIRST_SCANS, burn_in=FIRST_BURN_IN, seed=1)
    return posterior.point_partition().labels.astype(np.int64)


def _fast_hdbscan(markings: Items) -> Labels:
    from fast_hdbscan import fast_hdbscan

    found = fast_hdbscan(
        scaled(markings),
        min_samples=2,
        min_cluster_size=2,
        cluster_selection_method="leaf",
        algorithm="kruskal",
        cannot_link_groups=markings.families.astype(np.int32),
    )
    return np.asarray(found[0], dtype=np.int64)


def _hdbscan(markings: Items) -> Labels:
    from sklearn.cluster import HDBSCAN

    method = HDBSCAN(min_cluster_size=2, cluster_selection_method="leaf", copy=True)
    return np.asarray(method.fit_predict(scaled(markings)), dtype=np.int64)


def _mixture(markings: Items) -> Labels:
    from sklearn.mixture import BayesianGaussianMixture

    largest = int(np.bincount(markings.families).max())
    method = BayesianGaussianMixture(
        n_components=min(2 * largest, len(markings)),
        covariance_type="diag",
        weight_concentration_prior_type="dirichlet_process",
        # In the units of ``scaled`` clusters are about 1 wide; means may lie anywhere.
        covariance_prior=np.ones(3),
        mean_precision_prior=1e-6,
        init_params="k-means++",
        max_iter=MIXTURE_ITERATIONS,
        random_state=1,
    )
    return np.asarray(method.fit_predict(scaled(markings)), dtype=np.int64)


def _panoptes(markings: Items) -> Labels:
    from panoptes_aggregation.reducers.shape_reducer_dbscan import shape_reducer_dbscan

    order = np.argsort(markings.families, kind="stable")
    starts = np.flatnonzero(np.diff(markings.families[order])) + 1
    tool = "T0_toolIndex0"
    extracts = [
        {
            "frame0": {
                f"{tool}_x": markings.x[rows].tolist(),
                f"{tool}_y": markings.y[rows].tolist(),
                f"{tool}_r": (markings.diameter[rows] / 2.0).tolist(),
            }
        }
        for rows in np.split(order, starts)
    ]
    # Three spreads about the median object, in the reducer's one distance over x, y and radius.
    reach = 3.0 * SPREADS[0] * float(np.median(markings.diameter))
    found = shape_reducer_dbscan(
        extracts, user_id=list(range(len(extracts))), shape="circle", eps=reach, min_samples=2
    )
    labels = np.empty(len(markings), np.int64)
    labels[order] = found["frame0"][f"{tool}_cluster_labels"]
    return labels


def _r14(markings: Items) -> Labels:
    return dbscan_r14(markings, min_points=2)


RIVALS = (
    Rival("dfcrp, first answer", "dfcrp", _ours),
    Rival("fast_hdbscan, cannot-link groups", "fast_hdbscan", _fast_hdbscan),
    Rival("scikit-learn HDBSCAN", "sklearn", _hdbscan),
    Rival("scikit-learn BayesianGaussianMixture", "sklearn", _mixture),
    Rival("panoptes circle reducer", "panoptes_aggregation", _panoptes),
    Rival("R14's DBSCAN", "dfcrp", _r14),
)


def bench_rivals(
    markings: Items, *, repeats: int = 3, truth_seed: int = 2, rivals: tuple[Rival, ...] = RIVALS
) -> dict[str, Any]:
    """Seconds of each method on the markings, and its ARI on simulated ones like them.

    Ratios are each method's time over ours, so that above 1 we are the sooner. Of a slow method
    the time is that on the simulated markings, which are as many.
    """
    simulated = highlands_like(truth_seed)
    truth = np.asarray(simulated.truth)
    here = [rival for rival in rivals if importlib.util.find_spec(rival.package)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for rival in here:
            rival.answer(simulated.take(np.arange(FEW)))
        answers, trials = zip(*(_tried(rival, simulated) for rival in here), strict=True)
        quick = [number for number, trial in enumerate(trials) if trial < SLOW_SECONDS]
        calls = [lambda rival=here[number]: rival.answer(markings) for number in quick]
        again = dict(zip(quick, timed(calls, repeats), strict=True))
    times = [again.get(number, (trial, (trial, trial))) for number, trial in enumerate(trials)]
    return {
        "n": len(markings),
        "repeats": repeats,
        "missing": [rival.name for rival in rivals if rival not in here],
        "methods": [
            {
                "method": rival.name,
                "seconds": seconds[0],
                "spread": seconds[1],
                "timed_again": number in again,
                "ari": adjusted_rand(noise_alone(labels), truth),
                "clusters": len(np.unique(noise_alone(labels))),
                "breaking_the_rule": len(clusters_breaking_family_rule(labels, simulated.families)),
            }
            for number, (rival, labels, seconds) in enumerate(
                zip(here, answers, times, strict=True)
            )
        ],
        "ratios": {
            f"{rival.name} over ours, seconds": ratio_of(seconds, times[0], "higher")
            for rival, seconds in zip(here[1:], times[1:], strict=True)
        },
    }


def _tried(rival: Rival, markings: Items) -> tuple[Labels, float]:
    begun = time.perf_counter()
    labels = rival.answer(markings)
    return labels, time.perf_counter() - begun
