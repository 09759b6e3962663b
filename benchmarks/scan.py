"""One scan: against the paper's way of weighing, and under each prior over partitions."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from functools import partial
from typing import Any

import numpy as np

from benchmarks.measuring import WARM_UP, problem_for, ratio_of, timed
from dfcrp.items.items import Items
from dfcrp.priors.exact.seating import empty_seats, log_prior_given_order
from dfcrp.priors.registry import HOMES as PRIORS
from dfcrp.sampling.chain import Chain

#: Scans and evaluations of the prior in a timed block; the order is rearranged every 4th scan.
SCANS_TIMED, PRIORS_TIMED = 8, 40


@dataclass(frozen=True)
class ScanTimes:
    """One exact scan against n full evaluations of the prior."""

    n: int
    scan_seconds: float
    prior_seconds: float
    ratio: float
    scan_spread: tuple[float, float]
    prior_spread: tuple[float, float]


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
