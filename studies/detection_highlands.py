"""The highlands image under the detection prior: what is real, who finds what, does it fit?

Every list is first taken for a person's of their own, then Robbins's two and Antonenko's three for
one person's each, as they are. Run it by ``./run python -m studies.detection_highlands --data FILE
--out DIR``.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np

from dfcrp.fitting import fit
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import DetectionSummary
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_json, write_page
from dfcrp.summaries.convergence import diagnose
from dfcrp.summaries.streaming import summarise
from studies import paper_figures as paper
from studies.highlands import THRESHOLDS, run_dbscan
from studies.highlands_data import Highlands, load_highlands

#: Who made several lists.
PERSONS = (("Robbins1", "Robbins2"), ("Antonenko1", "Antonenko2", "Antonenko3"))
#: What is said of persons, by the title of the part of the page.
CASES: Mapping[str, tuple[tuple[str, ...], ...]] = MappingProxyType(
    {"Every list a person's own": (), "Lists of one person told": PERSONS}
)


@dataclass(frozen=True)
class DetectionLength:
    """How long the run is."""

    chains: int = 4
    scans: int = 2500
    burn_in: int = 500
    thin: int = 2
    seed: int = 1


def fit_detection(
    data: Highlands,
    length: DetectionLength,
    persons: tuple[tuple[str, ...], ...],
    workers: int | None,
) -> Posterior:
    """The detection prior with the paper's tolerances and radius."""
    known = [group for group in persons if all(name in data.markings.experts for name in group)]
    return fit(
        data.markings,
        config={"run": {"persons": known}},
        prior="detection",
        preset="highlands",
        radius=paper.HIGHLANDS_RADIUS_PX,
        workers=workers,
        **asdict(length),
    )


def number_rows(posterior: Posterior, found: DetectionSummary, data: Highlands) -> list[Any]:
    """Craters of at least 18 px: real ones, and by the rules that other studies use instead."""
    numbers = found.numbers()
    rows = [
        {"what": what, **numbers[name]}
        for what, name in (
            ("real, seen by somebody", "n_objects"),
            ("missed by everyone (estimate)", "n_missed"),
            ("real, in all", "n_total"),
            ("false marks", "n_false_marks"),
        )
    ]
    for row in posterior.consensus_counts(THRESHOLDS).rows():
        if row["size_class"] == "all":
            what = f"clusters of {row['min_experts']} experts or more"
            rows.append({"what": what, **{name: row[name] for name in ("mean", "lo", "hi")}})
    for points in THRESHOLDS:
        clusters = run_dbscan(data, points).after_cut
        rows.append({"what": f"DBSCAN, {points} points or more", "mean": float(clusters)})
    return rows


def expert_rows(posterior: Posterior, found: DetectionSummary) -> list[dict[str, Any]]:
    """Sensitivity and false marks of every expert, and what their person noticed once."""
    rows = []
    for f, (name, said) in enumerate(zip(posterior.markings.experts, found.experts(), strict=True)):
        row = {
            "expert": name,
            "markings": int(np.count_nonzero(posterior.markings.families == f)),
            "sensitivity": _with_interval(said["sensitivity"], 3),
            "false marks": _with_interval(said["false_marks"], 1),
        }
        for part in said["by_size"]:
            row[f"sensitivity, {part['size_class']}"] = _with_interval(part["sensitivity"], 2)
        if "shared_noticing" in said:
            row["shared noticing"] = _with_interval(said["shared_noticing"], 3)
        rows.append(row)
    return rows


def _with_interval(found: dict[str, Any], digits: int) -> str:
    mean, lo, hi = (f"{found[name]:.{digits}f}" for name in ("mean", "lo", "hi"))
    return f"{mean} ({lo} to {hi})"


def convergence_of(posterior: Posterior, found: DetectionSummary) -> dict[str, dict[str, float]]:
    """R-hat and effective draws of the numbers that this prior is asked for."""
    shape = posterior.draws.n_chains, posterior.draws.n_draws
    numbers = {
        "n_objects": found.seen[:, 0],
        "n_missed": found.missed[:, 0],
        "n_false_marks": found.false[:, 0].sum(axis=1),
    }
    judged = [diagnose(name, values.reshape(shape)) for name, values in numbers.items()]
    return {row.name: {"rhat": row.rhat, "ess": row.ess} for row in judged}


def write_case(
    title: str, posterior: Posterior, data: Highlands
) -> tuple[list[str], dict[str, Any]]:
    """One part of the page, and the same for programs."""
    found = posterior.detection
    assert found is not None
    numbers = number_rows(posterior, found, data)
    experts, sizes = expert_rows(posterior, found), found.fit_of_sizes()
    convergence = convergence_of(posterior, found)
    inside = sum(row["inside"] for row in sizes)
    rhats = ", ".join(
        f"{name} {row['rhat']:.3f} ({row['ess']:.0f})" for name, row in convergence.items()
    )
    text = [
        f"## {title}",
        f"{posterior.record.seconds:.0f} s; R-hat (effective draws): {rhats}. "
        f"Classes in use: {summarise(found.classes).mean:.2f}.",
        markdown_table(numbers, 1),
        markdown_table(experts),
        f"Clusters by number of markings, and in new data from the model: {inside} of {len(sizes)} "
        "lie within the predicted 95 % interval.",
        markdown_table(
            [
                {
                    "markings": row["size"],
                    "observed": row["observed"],
                    "predicted": row["predicted"]["mean"],
                    "lo": row["predicted"]["lo"],
                    "hi": row["predicted"]["hi"],
                    "inside": row["inside"],
                }
                for row in sizes
            ],
            1,
        ),
    ]
    content = {
        "numbers": numbers,
        "experts": experts,
        "cluster_sizes": sizes,
        "rhat": convergence,
        "convergence": posterior.convergence.as_dict(),
        "seconds": posterior.record.seconds,
    }
    return text, content


def study(out: Path, data: Highlands, length: DetectionLength, workers: int | None = None) -> None:
    """Fit each case, and write detection.md and detection.json."""
    prepare_out(out)
    text, content = [data.note], {}
    for title, persons in CASES.items():
        posterior = fit_detection(data, length, persons, workers)
        part, content[title] = write_case(title, posterior, data)
        text += part
    write_page(out / "detection.md", "The lunar highlands image: what is real?", text)
    write_json(out / "detection.json", {**content, "provenance": provenance(**asdict(length))})


def main(arguments: list[str] | None = None) -> None:
    """Run the study and print where it is."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--data", type=Path, default=None, help="the file of markings")
    parser.add_argument("--chains", type=int, default=DetectionLength.chains)
    parser.add_argument("--scans", type=int, default=DetectionLength.scans)
    parser.add_argument("--burn-in", type=int, default=DetectionLength.burn_in)
    parser.add_argument("--seed", type=int, default=DetectionLength.seed)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    length = DetectionLength(options.chains, options.scans, options.burn_in, seed=options.seed)
    study(options.out, load_highlands(options.data), length, options.workers)
    print((options.out / "detection.md").read_text(encoding="utf-8"))


if __name__ == "__main__":
    main()
