"""Benchmarks: everything side by side in one run, reported as ratios.

Times are medians of single calls, after warming up, on one core.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import MemoryDraws
from dfcrp.items.items import Items
from dfcrp.moves.revisit import NOTE_UNTIL
from dfcrp.priors.arrivals.seating import empty_seats, log_prior_given_order
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.setup import make_problem
from dfcrp.settings.config import PRIORS, make_config
from dfcrp.summaries.coclustering import coclustering, pair_histories
from dfcrp.summaries.consensus import SizeClasses, consensus_counts
from dfcrp.summaries.convergence import diagnose

#: The paper's reduced data set.
REDUCED = {"x": (1700.0, 2400.0), "y": (-300.0, 0.0)}
#: Scans before the clock starts: the list of unsettled markings is made by then.
WARM_UP = NOTE_UNTIL + 50
#: Scans and evaluations of the prior in a timed block; the order is rearranged every 4th scan.
SCANS_TIMED, PRIORS_TIMED = 8, 40


Timing = tuple[float, tuple[float, float]]
"""Median seconds, and the middle half."""


@dataclass(frozen=True)
class ScanTimes:
    """One exact scan against n full evaluations of the prior."""

    n: int
    scan_seconds: float
    prior_seconds: float
    ratio: float
    scan_spread: tuple[float, float]
    prior_spread: tuple[float, float]


@dataclass(frozen=True)
class Mixing:
    """Effective samples per second of one sampler."""

    sampler: str
    scans: int
    seconds: float
    ess_count: float
    ess_slowest_pair: float

    @property
    def per_second(self) -> tuple[float, float]:
        """Of the count of clusters with five or more, and of the slowest pair."""
        return self.ess_count / self.seconds, self.ess_slowest_pair / self.seconds


def timed(calls: Sequence[Callable[[], Any]], repeats: int) -> list[Timing]:
    """Median seconds of each call, and the middle half.

    The calls take turns, so that a machine that slows down slows all of them.
    """
    seconds = np.empty((repeats, len(calls)))
    for repeat in range(repeats):
        for column, call in enumerate(calls):
            start = time.perf_counter()
            call()
            seconds[repeat, column] = time.perf_counter() - start
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75], axis=0)
    return [(float(m), (float(lo), float(hi))) for m, lo, hi in zip(middle, low, high, strict=True)]


def ratio_of(above: Timing, below: Timing, better: str) -> dict[str, Any]:
    """A ratio of two times; its spread is what their middle halves allow."""
    return {
        "value": above[0] / below[0],
        "spread": [above[1][0] / below[1][1], above[1][1] / below[1][0]],
        "better": better,
    }


def problem_for(markings: Items, **run: Any) -> Problem:
    """The problem a fit with these settings would sample."""
    return make_problem(markings.features, markings.families, make_config({"run": run}))


def bench_scan(
    markings: Items, *, preset: str | None = "highlands", radius: Any = 75.0, repeats: int = 40
) -> dict[str, Any]:
    """Time one exact scan and one compiled full-prior evaluation of the same partition."""
    problem = problem_for(markings, preset=preset, radius=radius)
    chain = Chain(problem, np.random.SeedSequence(1), "exact")
    labels = chain.run(WARM_UP, 1).labels[-1]
    codes = np.unique(labels, return_inverse=True)[1].astype(np.int64)
    order = problem.data.original[chain.state.order].astype(np.int64)
    seats = empty_seats(int(codes.max()) + 1, len(codes), len(markings.experts))
    alpha = float(chain.state.alpha[0])

    def evaluate_prior() -> None:
        for _ in range(PRIORS_TIMED):
            log_prior_given_order(codes, markings.families, order, alpha, seats)

    (block, block_spread), (priors, priors_spread) = timed(
        [lambda: chain.run(1, SCANS_TIMED), evaluate_prior], repeats
    )
    scan, prior = block / SCANS_TIMED, priors / PRIORS_TIMED
    scan_spread = (block_spread[0] / SCANS_TIMED, block_spread[1] / SCANS_TIMED)
    prior_spread = (priors_spread[0] / PRIORS_TIMED, priors_spread[1] / PRIORS_TIMED)
    n = len(markings)
    times = ScanTimes(n, scan, prior, n * prior / scan, scan_spread, prior_spread)
    priors_of_all = (n * prior, (n * prior_spread[0], n * prior_spread[1]))
    compared = ratio_of(priors_of_all, (scan, scan_spread), "higher")
    return {**asdict(times), "ratios": {"priors for all markings over a scan": compared}}


def bench_priors(
    markings: Items, *, preset: str | None = "highlands", radius: Any = 75.0, repeats: int = 40
) -> dict[str, Any]:
    """Time one exact scan under each prior over partitions, beside the DFCRP's."""
    chains = {}
    for prior in PRIORS:
        problem = problem_for(markings, preset=preset, radius=radius, prior=prior)
        chains[prior] = Chain(problem, np.random.SeedSequence(1), "exact")
        chains[prior].run(1, WARM_UP)
    blocks = [partial(chain.run, 1, SCANS_TIMED) for chain in chains.values()]
    times = dict(zip(chains, timed(blocks, repeats), strict=True))
    return {
        "n": len(markings),
        "scan_seconds": {name: middle / SCANS_TIMED for name, (middle, _) in times.items()},
        "ratios": {
            f"a scan under {name} over one under dfcrp": ratio_of(found, times["dfcrp"], "lower")
            for name, found in times.items()
            if name != "dfcrp"
        },
    }


def reduced(markings: Items) -> Items:
    """The part of the highlands image that the paper calls the reduced data set."""
    inside = np.ones(len(markings), dtype=bool)
    for axis, (low, high) in REDUCED.items():
        values = getattr(markings, axis)
        inside &= (values >= low) & (values <= high)
    return markings.select(inside)


def bench_mixing(
    markings: Items, *, seconds: float = 60.0, radius: Any = 75.0
) -> dict[str, Any]:
    """Effective samples per second of ``exact`` and ``paper`` in the same time on one core.

    Pairs are judged that both samplers find uncertain (probability between 0.05 and 0.95).
    """
    problem = problem_for(markings, preset="reduced", radius=radius)
    runs = {name: _sample(problem, name, seconds) for name in ("exact", "paper")}
    pairs = _uncertain_in_all([draws for draws, _, _ in runs.values()])
    results = []
    for name, (draws, scans, spent) in runs.items():
        counts = consensus_counts(draws, (5,), SizeClasses.none()).counts[:, :, 0, 0]
        slowest = min(
            (diagnose("", h).ess_bulk for h in pair_histories(draws, pairs[:, 0], pairs[:, 1])),
            default=float("nan"),
        )
        ess = diagnose("", counts).ess_bulk
        results.append(Mixing(name, scans, spent, float(ess), float(slowest)))
    exact, paper = (result.per_second for result in results)
    return {
        "n": len(markings),
        "pairs": len(pairs),
        "samplers": [asdict(result) for result in results],
        "ratio_count": exact[0] / paper[0],
        "ratio_slowest_pair": exact[1] / paper[1],
    }


def _sample(problem: Problem, sampler: str, seconds: float) -> tuple[MemoryDraws, int, float]:
    """Run a chain for so long after its warm-up; returns its draws, scans and seconds."""
    chain = Chain(problem, np.random.SeedSequence(1), sampler)
    chain.run(1, WARM_UP)
    labels: list[NDArray[np.int32]] = []
    start = time.perf_counter()
    while time.perf_counter() - start < seconds:
        labels.append(chain.run(50, 1).labels)
    spent = time.perf_counter() - start
    joined = np.concatenate(labels)[np.newaxis]
    return MemoryDraws(joined, np.ones(joined.shape[:2])), joined.shape[1], spent


def _uncertain_in_all(runs: list[MemoryDraws]) -> NDArray[np.int64]:
    found: set[tuple[int, int]] | None = None
    for draws in runs:
        pairs = coclustering(draws)
        doubtful = (pairs.probability > 0.05) & (pairs.probability < 0.95)
        these = set(
            zip(pairs.first[doubtful].tolist(), pairs.second[doubtful].tolist(), strict=True)
        )
        found = these if found is None else found & these
    return np.array(sorted(found or ()), dtype=np.int64).reshape(-1, 2)
