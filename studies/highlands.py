"""The paper's analysis of the highlands image: two tables and three figures beside the paper's."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp import plots
from dfcrp.baselines.without_model import clusters_breaking_family_rule, dbscan_r14
from dfcrp.fitting import fit
from dfcrp.plots.sizes import draw_counts_by_size, prepare_counts_by_size, size_class_of
from dfcrp.plots.style import save_figure
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.tables import (
    markdown_table,
    prepare_out,
    provenance,
    write_csv,
    write_json,
    write_page,
)
from dfcrp.sampling.runner import Progress
from dfcrp.summaries.consensus import consensus_counts
from studies import paper_figures as paper
from studies.highlands_data import Highlands
from studies.verdicts import inside

THRESHOLDS = (4, 5, 6)
CLASSES = ("small", "medium", "large")
EDGES = (50.0, 100.0)
#: The paper prints Jaccard coefficients with two digits, which may be cut or rounded.
JACCARD_ROUNDING = 0.01
#: Half a unit of the last digit of the paper's percentages.
PERCENT_ROUNDING = 0.0005


@dataclass(frozen=True)
class HighlandsLength:
    """How long the run is; the paper's was 200 chains of 10,000 scans."""

    chains: int = 4
    scans: int = 3000
    burn_in: int = 1000
    thin: int = 2
    seed: int = 1


@dataclass(frozen=True)
class DbscanResult:
    """R14's method at one threshold: clusters by size class after the cut."""

    min_points: int
    before_cut: int
    by_class: tuple[int, ...]
    breaking_rule: int

    @property
    def after_cut(self) -> int:
        """Clusters of at least 18 px."""
        return sum(self.by_class)


def run_dbscan(data: Highlands, min_points: int) -> DbscanResult:
    """DBSCAN over all markings, clusters of a mean below 18 px dropped afterwards."""
    markings = data.everything
    labels = dbscan_r14(markings, min_points=min_points)
    kept = labels >= 0
    mean = np.bincount(labels[kept], markings.diameter[kept]) / np.bincount(labels[kept])
    large = mean >= paper.HIGHLANDS_MIN_DIAMETER_PX
    by_class = np.bincount(size_class_of(mean[large], EDGES), minlength=len(CLASSES))
    breaking = clusters_breaking_family_rule(labels, markings.families)
    return DbscanResult(min_points, len(mean), tuple(by_class.tolist()), int(large[breaking].sum()))


def fit_highlands(
    data: Highlands,
    length: HighlandsLength,
    progress: Callable[[Progress], None] | None = None,
) -> Posterior:
    """The paper's model with the paper's hyperparameters and radius."""
    return fit(
        data.markings,
        preset="highlands",
        radius=paper.HIGHLANDS_RADIUS_PX,
        chains=length.chains,
        scans=length.scans,
        burn_in=length.burn_in,
        thin=length.thin,
        seed=length.seed,
        progress=progress,
    )


def consensus_rows(
    posterior: Posterior, dbscan: dict[int, DbscanResult], real: bool
) -> list[dict[str, Any]]:
    """The paper's table of consensus clusters, beside ours."""
    by_members = consensus_counts(
        posterior.draws,
        THRESHOLDS,
        posterior.size_classes,
        "members",
        families=posterior.markings.families,
        diameters=posterior.markings.diameter,
    )
    found, second = (
        {(row["size_class"], row["min_experts"]): row for row in counts.rows()}
        for counts in (posterior.consensus_counts(THRESHOLDS), by_members)
    )
    rows = []
    for published in paper.CONSENSUS:
        ours = found[published.size_class, published.min_experts]
        by_class = dbscan[published.min_experts].by_class
        row: dict[str, Any] = {
            "class": published.size_class,
            "experts ≥": published.min_experts,
            "DBSCAN": by_class[CLASSES.index(published.size_class)],
            "DFCRP mean": ours["mean"],
            "lo": ours["lo"],
            "hi": ours["hi"],
            "mean, by members": second[published.size_class, published.min_experts]["mean"],
        }
        if real:
            row |= {
                "DBSCAN, paper": published.dbscan,
                "mean, paper": published.mean,
                "lo, paper": published.lo,
                "hi, paper": published.hi,
                "our mean is": inside(ours["mean"], published.lo, published.hi),
            }
        rows.append(row)
    return rows


def expert_rows(posterior: Posterior, data: Highlands) -> list[dict[str, Any]]:
    """The paper's table of experts, beside ours."""
    published = {row.letter: row for row in paper.EXPERTS}
    rows = []
    for ours in posterior.summary()["experts"]:
        letter = data.letter(ours["expert"])
        row: dict[str, Any] = {
            "expert": ours["expert"],
            "letter": letter,
            "count": ours["count"],
            "Jaccard": ours["jaccard"],
            "size 1 (%)": ours["size_1"]["mean"],
            "size 1 interval": _interval(ours["size_1"]["lo"], ours["size_1"]["hi"]),
            "size 10 (%)": ours["all_but_one"]["mean"],
            "size 10 interval": _interval(ours["all_but_one"]["lo"], ours["all_but_one"]["hi"]),
        }
        if data.real and letter in published:
            row |= _beside(row, published[letter])
        rows.append(row)
    return rows


def _interval(low: float, high: float) -> str:
    return f"{low:.2f} to {high:.2f}"


def _beside(row: dict[str, Any], theirs: paper.ExpertRow) -> dict[str, Any]:
    near = abs(row["Jaccard"] - theirs.jaccard) <= JACCARD_ROUNDING
    return {
        "Jaccard, paper": theirs.jaccard,
        "Jaccard": row["Jaccard"],
        "Jaccard is": "equal" if near else "different",
        "size 1, paper": theirs.size_1[0],
        "size 1 is": inside(row["size 1 (%)"], *theirs.size_1[1:], PERCENT_ROUNDING),
        "size 10, paper": theirs.size_10[0],
        "size 10 is": inside(row["size 10 (%)"], *theirs.size_10[1:], PERCENT_ROUNDING),
        "count agrees": row["count"] == theirs.count,
    }


def dbscan_rows(results: dict[int, DbscanResult]) -> list[dict[str, Any]]:
    """R14's method by threshold."""
    return [
        {
            "points ≥": found.min_points,
            "clusters": found.before_cut,
            "of 18 px and more": found.after_cut,
            **dict(zip(CLASSES, found.by_class, strict=True)),
            "holding an expert twice": found.breaking_rule,
        }
        for found in results.values()
    ]


def draw_figures(
    posterior: Posterior, data: Highlands, dbscan: dict[int, DbscanResult], out: Path
) -> None:
    """Histograms with experts and DBSCAN, Jaccard heatmap, singletons of the paper's D and B."""
    counts = prepare_counts_by_size(posterior, min_experts=5)
    counts = dataclasses.replace(counts, dbscan=np.array(dbscan[5].by_class))
    save_figure(draw_counts_by_size(counts)[0].figure, out, "counts-by-size")
    save_figure(plots.FIGURES["jaccard"].plot(posterior)[1].figure, out, "jaccard")
    wanted = [paper.EXPERT_NAMES[letter] for letter in "DB"] if data.real else ["D", "B"]
    present = all(name in data.markings.experts for name in wanted)
    _, axes = plots.FIGURES["singletons"].plot(posterior, experts=wanted if present else None)
    save_figure(axes.figure, out, "singletons")


def write_highlands(out: Path, posterior: Posterior, data: Highlands) -> dict[str, Any]:
    """Write highlands.md, consensus.csv, experts.csv, highlands.json and the figures."""
    prepare_out(out)
    dbscan = {points: run_dbscan(data, points) for points in THRESHOLDS}
    consensus = consensus_rows(posterior, dbscan, data.real)
    experts = expert_rows(posterior, data)
    draw_figures(posterior, data, dbscan, out)
    verdict, record = posterior.convergence, posterior.record
    text = [
        data.note,
        f"{posterior.draws.n_chains} chains of {record.scans:,} scans, burn-in {record.burn_in:,}, "
        f"thinning {record.thin}; seed {posterior.config.run.seed}, radius "
        f"{posterior.config.run.radius}, preset {posterior.config.run.preset}; "
        f"{record.seconds:.0f} s. {' '.join(verdict.advice)}",
        "## Consensus clusters by size",
        _count_verdicts(consensus, "our mean is"),
        markdown_table(consensus, 2),
        "A cluster's class is that of its own mean, exp(μ), in every draw; *by members*: of the "
        "mean diameter of its members, as R14 had it.",
        "## DBSCAN as in R14",
        markdown_table(dbscan_rows(dbscan)),
        "## Experts",
        _count_verdicts(experts, "size 1 is", "size 10 is"),
        markdown_table(experts, 2),
        "## Figures",
        "![consensus clusters, experts and DBSCAN](counts-by-size.png)",
        "![Jaccard coefficients](jaccard.png)",
        "![markings that nobody shares](singletons.png)",
    ]
    write_page(out / "highlands.md", "The lunar highlands image", [part for part in text if part])
    write_csv(out / "consensus.csv", consensus)
    write_csv(out / "experts.csv", experts)
    content = {
        "real_data": data.real,
        "markings_sha256": data.markings.digest,
        "consensus": consensus,
        "dbscan": dbscan_rows(dbscan),
        "experts": experts,
        "convergence": verdict.as_dict(),
        "seconds": record.seconds,
        "provenance": provenance(**dataclasses.asdict(posterior.config.run)),
    }
    write_json(out / "highlands.json", content)
    return content


def _count_verdicts(rows: list[dict[str, Any]], *columns: str) -> str:
    """How many of our means lie in the paper's 95 % intervals; nothing for a stand-in."""
    given = [row[column] for row in rows for column in columns if column in row]
    if not given:
        return ""
    return f"{given.count('inside')} of {len(given)} means lie inside the paper's 95 % intervals."


def reproduce_highlands(
    out: Path, data: Highlands, length: HighlandsLength | None = None
) -> dict[str, Any]:
    """Fit and write everything."""
    return write_highlands(out, fit_highlands(data, length or HighlandsLength()), data)
