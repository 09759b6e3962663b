"""The paper's table of 21 partitions: each sampler, run on the prior alone, against enumeration.

Two experts with 2 and 4 items, α = 1. Partitions stand in the paper's order: by the partner of the
first item, then of the second, "alone" last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import stats

from dfcrp import prior
from dfcrp.likelihoods.circle.hyper import CircleSettings, circle_hyper
from dfcrp.likelihoods.circle.kernel import WIDTH
from dfcrp.likelihoods.circle.neighbours import find_neighbours
from dfcrp.likelihoods.circle.scatter import circle_columns
from dfcrp.priors.arrivals.kernel import Arrivals
from dfcrp.report.tables import (
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem, build_data
from dfcrp.summaries.convergence import diagnose
from dfcrp.summaries.streaming import canonical
from studies import paper_figures as paper

#: Families of the items: 0, 0, 1, 1, 1, 1.
FAMILIES = np.repeat(np.arange(len(paper.PRIOR_FAMILIES)), paper.PRIOR_FAMILIES)
#: Items of the first expert, by whose partners the partitions are listed.
FIRST_FAMILY = range(paper.PRIOR_FAMILIES[0])
SAMPLERS = ("exact", "paper", "unmodified")


@dataclass(frozen=True)
class SamplerResult:
    """One sampler's proportions, and the test against the enumerated prior."""

    sampler: str
    proportions: NDArray[np.float64]
    draws: int
    chi_square: float
    p_value: float
    #: Effective sample size of the number of clusters: the test takes draws for independent.
    ess: float

    @property
    def largest_difference(self) -> float:
        """From the theoretical proportions."""
        return float(np.abs(self.proportions - theoretical()).max())


def listed_partitions() -> list[tuple[int, ...]]:
    """All valid partitions in the paper's order, labels named after the smallest member."""
    n = len(FAMILIES)

    def partners(labels: tuple[int, ...]) -> tuple[int, ...]:
        others = range(len(FIRST_FAMILY), n)
        return tuple(next((j for j in others if labels[j] == labels[i]), n) for i in FIRST_FAMILY)

    found = canonical(np.array(list(prior.partitions(FAMILIES))))
    return sorted((tuple(row) for row in found.tolist()), key=partners)


def theoretical(alpha: float = 1.0) -> NDArray[np.float64]:
    """Prior probability of each listed partition, all orders averaged."""
    return np.exp([prior.log_prob(labels, FAMILIES, alpha) for labels in listed_partitions()])


def prior_problem(alpha: float = 1.0) -> Problem:
    """The prior alone: features are not weighed, α is fixed."""
    features = np.zeros((len(FAMILIES), 3))
    features[:, 2] = 3.0
    hyper = circle_hyper(CircleSettings(), features)
    neighbourhood = find_neighbours(features, FAMILIES, None, hyper)
    return Problem(
        data=build_data(features, FAMILIES, neighbourhood, weigh_features=False),
        hyper=hyper,
        prior=Arrivals(
            use_order=True, update_alpha=False, alpha_shape=1.0, alpha_rate=1.0, own=np.empty(0)
        ),
        alpha_start=alpha,
        row_width=WIDTH,
        columns=circle_columns(hyper),
    )


def run_sampler(sampler: str, scans: int, thin: int, seed: int) -> SamplerResult:
    """Draw every ``thin``-th of so many scans and test the proportions."""
    chain = Chain(prior_problem(), np.random.SeedSequence(seed), sampler)
    chain.run(1, 100)
    draws = scans // thin
    labels = chain.run(draws, thin).labels
    seen = Counter(map(tuple, labels.tolist()))
    counts = np.array([seen[partition] for partition in listed_partitions()])
    expected = theoretical()
    test = stats.chisquare(counts, draws * expected / expected.sum())
    clusters = (labels == np.arange(labels.shape[1])).sum(axis=1)
    return SamplerResult(
        sampler=sampler,
        proportions=counts / draws,
        draws=draws,
        chi_square=float(test.statistic),
        p_value=float(test.pvalue),
        ess=diagnose("number of clusters", clusters[np.newaxis]).ess_bulk,
    )


def table_rows(results: Sequence[SamplerResult]) -> list[dict[str, Any]]:
    """One row per partition: theory, each sampler, and the paper's two columns."""
    expected = theoretical()
    rows = []
    for number, labels in enumerate(listed_partitions()):
        row: dict[str, Any] = {
            "partition": number + 1,
            "clusters": _named(labels),
            "theoretical": float(expected[number]),
        }
        for result in results:
            row[result.sampler] = float(result.proportions[number])
        row["paper, theoretical"] = paper.PRIOR_THEORETICAL[number]
        row["paper, empirical"] = paper.PRIOR_EMPIRICAL[number]
        rows.append(row)
    return rows


def _named(labels: tuple[int, ...]) -> str:
    """Such as "a1b3 a2 b1 b2 b4"."""
    names = [
        f"{'ab'[family]}{member + 1}"
        for family, size in enumerate(paper.PRIOR_FAMILIES)
        for member in range(size)
    ]
    clusters = (
        "".join(names[i] for i, label in enumerate(labels) if label == k)
        for k in sorted(set(labels))
    )
    return " ".join(clusters)


def chi_square_rows(results: Sequence[SamplerResult]) -> list[dict[str, Any]]:
    """The χ² test of each sampler, with the paper's."""
    rows: list[dict[str, Any]] = [
        {
            "sampler": result.sampler,
            "draws": result.draws,
            "effective": round(result.ess),
            "χ² (20 degrees of freedom)": result.chi_square,
            "p": result.p_value,
            "largest difference": result.largest_difference,
            "verdict": "fits" if result.p_value > 0.001 else "does not fit",
        }
        for result in results
    ]
    rows.append({"sampler": "in the paper", "draws": 5000, "p": paper.PRIOR_P_VALUE})
    return rows


def reproduce_prior_table(
    out: Path,
    *,
    scans: int = paper.PRIOR_SCANS,
    thin: int = paper.PRIOR_THIN,
    seed: int = 1,
    samplers: Sequence[str] = SAMPLERS,
) -> list[SamplerResult]:
    """Write prior-table.md, .csv and .json."""
    prepare_out(out)
    results = [run_sampler(sampler, scans, thin, seed) for sampler in samplers]
    rows, tests = table_rows(results), chi_square_rows(results)
    agreed = np.abs(theoretical() - paper.PRIOR_THEORETICAL).max() <= 0.0005
    text = [
        f"Two experts with 2 (a) and 4 (b) items, α = 1; {scans:,} scans, every {thin}th kept, "
        f"seed {seed}.",
        "Our enumeration over all 720 orders "
        + ("agrees" if agreed else "does not agree")
        + " with the paper's theoretical column in every printed digit.",
        markdown_table(tests),
        markdown_table(rows, 4),
    ]
    write_page(out / "prior-table.md", "The prior of 21 partitions", text)
    write_csv(out / "prior-table.csv", rows)
    content = {"tests": tests, "partitions": rows}
    settings = provenance(scans=scans, thin=thin, seed=seed, samplers=list(samplers))
    write_json(out / "prior-table.json", {**content, "provenance": settings})
    return results
