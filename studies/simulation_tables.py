"""Tables of the simulation study, beside the paper's figures, with standard errors and verdicts."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.report.tables import markdown_table, write_csv, write_json, write_page
from studies import paper_figures as paper
from studies.simulation import MODELS, Plan
from studies.verdicts import STANDARD_ERRORS, JudgedFigure

Floats = NDArray[np.float64]
TITLES = {
    "dfcrp": "DFCRP",
    "dfcrp_radius": "DFCRP w/Radius",
    "crp": "CRP",
    "difference": "Difference",
}
#: Fewer data sets than this are not judged: their spread is not known well enough.
FEWEST_JUDGED = 20
#: Resamples of the data sets for the standard errors of quartiles.
RESAMPLES = 1000
_STATISTICS: dict[str, Callable[[Floats], float]] = {
    "min": lambda values: float(values.min()),
    "q25": lambda values: float(np.quantile(values, 0.25)),
    "mean": lambda values: float(values.mean()),
    "q75": lambda values: float(np.quantile(values, 0.75)),
    "max": lambda values: float(values.max()),
}


def column(results: Sequence[dict[str, Any]], model: str, name: str) -> Floats:
    """One number (or list) of a model over all data sets."""
    return np.array([result["models"][model][name] for result in results], dtype=np.float64)


def ari_columns(results: Sequence[dict[str, Any]]) -> dict[str, Floats]:
    """Posterior mean ARI of each model, and DFCRP minus CRP, by data set."""
    found = {model: column(results, model, "ari") for model in MODELS}
    return {**found, "difference": found["dfcrp"] - found["crp"]}


def ari_rows(results: Sequence[dict[str, Any]], with_paper: bool) -> list[dict[str, Any]]:
    """The paper's ARI table; each of its rows above ours if there is a paper's row."""
    rows: list[dict[str, Any]] = []
    for name, values in ari_columns(results).items():
        ours = {key: statistic(values) for key, statistic in _STATISTICS.items()}
        error = standard_error(values)
        rows.append({"model": TITLES[name], "source": "ours", **ours, "s.e. of mean": error})
        if with_paper:
            theirs = dict(zip(paper.ARI_COLUMNS, paper.ARI[name], strict=True))
            rows.append({"model": TITLES[name], "source": "paper", **theirs})
    return rows


def count_rows(results: Sequence[dict[str, Any]], with_paper: bool) -> list[dict[str, Any]]:
    """Mean numbers of clusters by minimum size, with standard errors."""
    rows: list[dict[str, Any]] = []
    for model in MODELS:
        counts = column(results, model, "counts")
        lines = {"ours": counts.mean(axis=0), "s.e.": [standard_error(c) for c in counts.T]}
        if with_paper:
            lines["paper"] = np.array(paper.CLUSTER_COUNTS[model])
        for source, values in lines.items():
            sizes = {f"size {m}": float(value) for m, value in enumerate(values, 1)}
            rows.append({"model": TITLES[model], "source": source, **sizes})
    return rows


def standard_error(values: Floats) -> float:
    """Of the mean over data sets."""
    return float(values.std(ddof=1) / math.sqrt(len(values)))


def wins(results: Sequence[dict[str, Any]]) -> int:
    """Data sets in which the DFCRP's posterior mean ARI exceeds the CRP's."""
    return int((ari_columns(results)["difference"] > 0).sum())


def judged_figures(results: Sequence[dict[str, Any]]) -> list[JudgedFigure]:
    """Every figure of the paper's section 7 beside ours."""
    found = [
        _judge_ari(name, key, values, published)
        for name, values in ari_columns(results).items()
        for key, published in zip(paper.ARI_COLUMNS, paper.ARI[name], strict=True)
    ]
    found.append(_judge_wins(wins(results), len(results)))
    for model in MODELS:
        counts = column(results, model, "counts")
        for size, published in enumerate(paper.CLUSTER_COUNTS[model], 1):
            name = f"{TITLES[model]}, clusters of size ≥ {size}"
            found.append(_judge_mean(name, counts[:, size - 1], published, 0.0005))
    share = 100.0 * column(results, "crp", "breaking_share")
    published = 100.0 * paper.CRP_BREAKING_SHARE
    found.append(_judge_mean("CRP, clusters breaking the rule (%)", share, published, 0.05))
    return found


def _judge_mean(name: str, values: Floats, published: float, rounding: float) -> JudgedFigure:
    """A mean over data sets; the paper's own error follows from our spread and its 500 sets."""
    paper_se = float(values.std(ddof=1)) / math.sqrt(paper.SIMULATION_DATASETS)
    return JudgedFigure(
        name, float(values.mean()), standard_error(values), published, paper_se, rounding
    )


def _judge_ari(name: str, key: str, values: Floats, published: float) -> JudgedFigure:
    title = f"{TITLES[name]}, ARI {key}"
    if key == "mean":
        return _judge_mean(title, values, published, 0.0005)
    ours = _STATISTICS[key](values)
    if key in ("min", "max"):
        beyond = int((values < published).sum() if key == "min" else (values > published).sum())
        remark = (
            f"one data set decides it: {beyond} of ours {'below' if key == 'min' else 'above'} "
            "the paper's"
        )
        return JudgedFigure(title, ours, math.nan, published, math.nan, 0.0005, remark)
    rng = np.random.default_rng(0)
    again = rng.choice(values, (RESAMPLES, len(values)))
    spread = float(np.quantile(again, 0.25 if key == "q25" else 0.75, axis=1).std(ddof=1))
    paper_se = spread * math.sqrt(len(values) / paper.SIMULATION_DATASETS)
    return JudgedFigure(title, ours, spread, published, paper_se, 0.0005)


def _judge_wins(won: int, total: int) -> JudgedFigure:
    """Scaled to the paper's 500; the error is binomial at the paper's share."""
    share = paper.DFCRP_WINS / paper.SIMULATION_DATASETS
    scale = float(paper.SIMULATION_DATASETS)
    deviation = math.sqrt(share * (1 - share))
    return JudgedFigure(
        f"DFCRP ahead of CRP, of {paper.SIMULATION_DATASETS} (scaled)",
        scale * won / total,
        scale * deviation / math.sqrt(total),
        float(paper.DFCRP_WINS),
        scale * deviation / math.sqrt(scale),
        0.5,
    )


def overview_row(plan: Plan, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """One design in one line."""
    ari = ari_columns(results)
    row: dict[str, Any] = {"design": plan.design, "data sets": len(results)}
    for name in MODELS:
        row[f"ARI {TITLES[name]}"] = float(ari[name].mean())
    row["difference"] = float(ari["difference"].mean())
    row["s.e."] = standard_error(ari["difference"])
    row["DFCRP ahead (%)"] = 100.0 * wins(results) / len(results)
    row["CRP breaking rule (%)"] = 100.0 * float(column(results, "crp", "breaking_share").mean())
    row["objects"] = plan.parameters.n_objects
    row["DFCRP, size ≥ 3"] = float(column(results, "dfcrp", "counts")[:, 2].mean())
    row["CRP, size ≥ 3"] = float(column(results, "crp", "counts")[:, 2].mean())
    return row


def write_tables(plan: Plan, results: Sequence[dict[str, Any]], folder: Path) -> list[JudgedFigure]:
    """Write tables.md, ari.csv, counts.csv, datasets.csv and results.json; returns the verdicts.

    They depend on the results alone, not on when or in how many goes these were computed.
    """
    with_paper = plan.design == "paper"
    ari, counts = ari_rows(results, with_paper), count_rows(results, with_paper)
    judged = judged_figures(results) if with_paper and len(results) >= FEWEST_JUDGED else []
    share = column(results, "crp", "breaking_share")
    lines = [
        f"Design `{plan.design}`: {len(results)} data sets, {plan.scans:,} scans of which "
        f"{plan.burn_in:,} burn-in, seed {plan.seed}.",
        "## Posterior mean adjusted Rand index to the truth, over data sets",
        markdown_table(ari),
        f"DFCRP ahead of CRP in {wins(results)} of {len(results)} data sets"
        + (f" (paper: {paper.DFCRP_WINS} of {paper.SIMULATION_DATASETS})." if with_paper else "."),
        f"## Mean number of clusters by minimum size (truth: {plan.parameters.n_objects} objects)",
        markdown_table(counts),
        f"Clusters of the CRP that hold an expert twice: {100 * share.mean():.2f} % "
        f"(s.e. {100 * standard_error(share):.2f})"
        + (f"; paper: {100 * paper.CRP_BREAKING_SHARE:.1f} %." if with_paper else "."),
    ]
    if judged:
        lines += ["## Figure by figure", verdict_sentence(judged)]
        lines.append(markdown_table([figure.row() for figure in judged]))
    write_page(folder / "tables.md", f"Simulation study, design {plan.design}", lines)
    write_csv(folder / "ari.csv", ari)
    write_csv(folder / "counts.csv", counts)
    write_csv(folder / "datasets.csv", _dataset_rows(results))
    content = {
        "settings": plan.identity(),
        "datasets": len(results),
        "ari": ari,
        "counts": counts,
        "wins": wins(results),
        "breaking_share": {"mean": float(share.mean()), "se": standard_error(share)},
        "figures": [figure.row() for figure in judged],
    }
    write_json(folder / "results.json", content)
    return judged


def verdict_sentence(judged: Sequence[JudgedFigure]) -> str:
    """How many figures agree, and by which measure."""
    yes = sum(figure.agrees is True for figure in judged)
    no = sum(figure.agrees is False for figure in judged)
    return (
        f"{yes} figures agree with the paper's and {no} differ; "
        f"{len(judged) - yes - no} are not judged. A figure agrees if it lies within "
        f"{STANDARD_ERRORS:g} standard errors of the difference (the paper's own error, over its "
        "500 data sets, included) plus half a unit of the last printed digit."
    )


def _dataset_rows(results: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    rows = []
    for result in results:
        row: dict[str, Any] = {"dataset": result["index"], "n": result["n"]}
        for model, found in result["models"].items():
            row[f"ari_{model}"] = found["ari"]
            row[f"breaking_{model}"] = found["breaking_share"]
            row |= {f"size_{m}_{model}": count for m, count in enumerate(found["counts"], 1)}
        rows.append(row)
    return rows
