"""How fast the samplers mix: time to a given effective sample size, of the order and of ours.

The paper's measure is the mean index of the markings in the first half of the order. It says how
the order moves; what a user waits for are the counts and the pairs, so these are measured too.
Every chain runs for the same time on one core; the time to an ESS follows from ESS per second.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import MemoryDraws
from dfcrp.items.items import Items
from dfcrp.report.tables import (
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from dfcrp.settings.config import make_config
from dfcrp.summaries.coclustering import coclustering, pair_histories
from dfcrp.summaries.convergence import MIN_DRAWS, diagnose
from studies import paper_figures as paper
from studies.highlands_data import Highlands, reduced
from studies.problems import make_problem

Floats = NDArray[np.float64]
SAMPLERS = ("exact", "paper", "unmodified")
#: What a user needs for a 95 % interval, beside the paper's 5.
USEFUL_ESS = 400.0
#: Pairs between these probabilities in every sampler's draws are judged, at most so many.
DOUBTFUL = (0.05, 0.95)
MOST_PAIRS = 200


@dataclass(frozen=True)
class MixingLength:
    """Chains of each sampler, the time of each after its warm-up, and how long that is."""

    chains: int = 3
    seconds: float = 60.0
    warm_up_seconds: float = 10.0
    #: Each in a table of its own; the paper's own comparison is likely to have had none.
    radii: tuple[float | None, ...] = (paper.RADIUS_ADOPTED_PX, None)
    seed: int = 1


@dataclass(frozen=True)
class ChainRecord:
    """One chain: a row of numbers and the partition after every scan."""

    sampler: str
    seconds: float
    order: Floats
    alpha: Floats
    labels: NDArray[np.int32]

    @property
    def scans(self) -> int:
        """Scans after the warm-up."""
        return len(self.order)


def mixing_problem(markings: Items, radius: float | None) -> Problem:
    """The reduced data set under its preset."""
    run = {"preset": "reduced", "radius": "none" if radius is None else radius}
    return make_problem(markings.features, markings.families, make_config({"run": run}))


def record_chain(
    problem: Problem, sampler: str, seed: np.random.SeedSequence, length: MixingLength
) -> ChainRecord:
    """Run a sampler for so many seconds, looking at the order after every scan."""
    chain = Chain(problem, seed, sampler)
    chain.run(1, 1)  # compiled, or loaded, before the clock starts
    half = problem.n // 2
    _run_for(length.warm_up_seconds, lambda: chain.run(1, 1))
    order: list[float] = []
    alpha: list[float] = []
    labels: list[NDArray[np.int32]] = []

    def scan() -> None:
        block = chain.run(1, 1)
        order.append(float(problem.data.original[chain.state.order[:half]].mean()))
        alpha.append(float(block.alpha[0]))
        labels.append(block.labels[0])

    seconds = _run_for(length.seconds, scan)
    return ChainRecord(sampler, seconds, np.array(order), np.array(alpha), np.stack(labels))


def _run_for(seconds: float, step: Callable[[], Any]) -> float:
    """Repeat a step for at least so long, and often enough to be judged; returns the time.

    Time on the core, so that whoever else is at work does not count.
    """
    begun = time.thread_time()
    steps = 0
    while time.thread_time() - begun < seconds or steps < 2 * MIN_DRAWS:
        step()
        steps += 1
    return time.thread_time() - begun


def doubtful_pairs(records: Sequence[ChainRecord]) -> NDArray[np.int64]:
    """Pairs that every sampler finds neither sure nor impossible, evenly chosen."""
    found: set[tuple[int, int]] | None = None
    for sampler in dict.fromkeys(record.sampler for record in records):
        joined = np.concatenate([r.labels for r in records if r.sampler == sampler])[np.newaxis]
        pairs = coclustering(MemoryDraws(joined, np.ones(joined.shape[:2])))
        doubt = (pairs.probability > DOUBTFUL[0]) & (pairs.probability < DOUBTFUL[1])
        these = set(zip(pairs.first[doubt].tolist(), pairs.second[doubt].tolist(), strict=True))
        found = these if found is None else found & these
    listed = np.array(sorted(found or ()), np.int64).reshape(-1, 2)
    return listed[:: -(-len(listed) // MOST_PAIRS) or 1]


def measures(record: ChainRecord, pairs: NDArray[np.int64]) -> dict[str, float]:
    """Effective sample sizes of one chain."""
    labels = record.labels
    sizes = np.stack([np.bincount(row, minlength=labels.shape[1]) for row in labels])
    draws = MemoryDraws(labels[np.newaxis], record.alpha[np.newaxis])
    histories = pair_histories(draws, pairs[:, 0], pairs[:, 1])
    of_pairs = np.array([_ess(history) for history in histories])
    return {
        "order": _ess(record.order[np.newaxis]),
        "number of clusters": _ess((sizes > 0).sum(axis=1)[np.newaxis]),
        "clusters of size ≥ 5": _ess((sizes >= 5).sum(axis=1)[np.newaxis]),
        "α": _ess(record.alpha[np.newaxis]),
        "pairs, median": float(np.median(of_pairs)) if of_pairs.size else np.nan,
        "pairs, slowest": float(of_pairs.min()) if of_pairs.size else np.nan,
    }


def _ess(series: NDArray[Any]) -> float:
    """Bulk ESS; a chain that never moved has seen one state."""
    if (series == series[:, :1]).all():
        return 1.0
    return diagnose("", series).ess_bulk


def summary_rows(records: Sequence[ChainRecord]) -> list[dict[str, Any]]:
    """For each sampler and measure: ESS per second and the time to the paper's and a useful ESS."""
    pairs = doubtful_pairs(records)
    rows: list[dict[str, Any]] = []
    for sampler in dict.fromkeys(record.sampler for record in records):
        chains = [record for record in records if record.sampler == sampler]
        found = [measures(record, pairs) for record in chains]
        for name in found[0]:
            ess = np.array([chain[name] for chain in found])
            per_second = ess / [record.seconds for record in chains]
            rows.append(
                {
                    "sampler": sampler,
                    "measure": name,
                    "scans": int(np.mean([record.scans for record in chains])),
                    "seconds": float(np.mean([record.seconds for record in chains])),
                    "ESS": float(ess.mean()),
                    "ESS per second": float(per_second.mean()),
                    f"seconds to {paper.MIXING_ESS:g}": float(
                        (paper.MIXING_ESS / per_second).mean()
                    ),
                    f"seconds to {USEFUL_ESS:g}": float((USEFUL_ESS / per_second).mean()),
                }
            )
    return rows


def speedups(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """How many times faster, measure by measure, by time to the paper's ESS."""
    key = f"seconds to {paper.MIXING_ESS:g}"
    seconds = {(row["sampler"], row["measure"]): row[key] for row in rows}
    samplers = {sampler for sampler, _ in seconds}
    # The time of a scan is a measure, too: it is what the paper's modification saves.
    for line in rows:
        seconds[line["sampler"], "time of a scan"] = line["seconds"] / line["scans"]
    found = []
    for measure in dict.fromkeys(measure for _, measure in seconds):
        row: dict[str, Any] = {"measure": measure}
        for fast, slow in (("paper", "unmodified"), ("exact", "paper"), ("exact", "unmodified")):
            if {fast, slow} <= samplers:
                row[f"{fast} over {slow}"] = seconds[slow, measure] / seconds[fast, measure]
        if measure == "order":
            row["paper over unmodified, in the paper"] = paper.MIXING_SPEEDUP
        found.append(row)
    return found


def run_samplers(
    problem: Problem,
    length: MixingLength,
    samplers: Sequence[str],
    progress: Callable[[str], None] | None,
) -> list[dict[str, Any]]:
    """All chains of all samplers, one after the other on one core."""
    records = []
    for sampler in samplers:
        for chain, seed in enumerate(np.random.SeedSequence(length.seed).spawn(length.chains), 1):
            if progress is not None:
                progress(f"{sampler}, chain {chain} of {length.chains}")
            records.append(record_chain(problem, sampler, seed, length))
    return summary_rows(records)


def reproduce_mixing(
    out: Path,
    data: Highlands,
    length: MixingLength | None = None,
    samplers: Sequence[str] = SAMPLERS,
    progress: Callable[[str], None] | None = None,
) -> list[dict[str, Any]]:
    """Write mixing.md, .csv and .json."""
    prepare_out(out)
    length = length or MixingLength()
    markings = reduced(data.markings)
    minutes = paper.MIXING_MINUTES
    text = [
        data.note,
        f"Reduced data set, {len(markings)} markings; {length.chains} chains of "
        f"{length.seconds:g} s for each sampler, after {length.warm_up_seconds:.1f} s; seed "
        f"{length.seed}. Times are means over chains. An ESS below about 10 is a rough guess, as "
        "is all that follows from it.",
        f"The paper needed {minutes['unmodified']} minutes without and {minutes['paper']} minutes "
        f"with its modification for an ESS of {paper.MIXING_ESS:g} of the order, over "
        f"{paper.MIXING_CHAINS} chains; it says neither on which data nor with which radius.",
    ]
    rows, faster = [], []
    for radius in length.radii:
        name = "none" if radius is None else f"{radius:g} px"
        problem = mixing_problem(markings, radius)
        found = run_samplers(problem, length, samplers, progress)
        ratios = speedups(found)
        text += [f"## Radius: {name}", markdown_table(found, 2)]
        text += ["How many times faster:", markdown_table(ratios, 1)]
        rows += [{"radius": name, **row} for row in found]
        faster += [{"radius": name, **row} for row in ratios]
    write_page(out / "mixing.md", "How fast the samplers mix", text)
    write_csv(out / "mixing.csv", rows)
    content = {"n": len(markings), "real_data": data.real, "measures": rows, "speedups": faster}
    settings = provenance(**length.__dict__, samplers=list(samplers))
    write_json(out / "mixing.json", {**content, "provenance": settings})
    return rows
