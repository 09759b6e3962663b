"""Effective samples per second, of the exact sampler and of the paper's."""

from __future__ import annotations

import time
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.measuring import WARM_UP, problem_for
from dfcrp.draws import MemoryDraws
from dfcrp.items.items import Items
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from dfcrp.summaries.coclustering import coclustering, pair_histories
from dfcrp.summaries.consensus import SizeClasses, consensus_counts
from dfcrp.summaries.convergence import diagnose


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


def bench_mixing(markings: Items, *, seconds: float = 60.0, radius: Any = 75.0) -> dict[str, Any]:
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
