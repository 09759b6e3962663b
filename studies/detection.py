"""What is real? All priors on the paper's simulation design and on harder ones, in one table.

Tolerances are learned, as they are by default. Under the detection prior objects are what it calls
real; the other priors have no word for that, so a cluster of two markings or more counts as an
object there, and a marking is called real with the probability that it is not alone.

Numbers of objects are whole, and often nearly certain: an interval with 95 % of the probability
mostly holds more than that. So its coverage stands beside the probability that it holds, and beside
the coverage of the interval that ends at a share of the outermost numbers and holds 95 % exactly.

Run it by ``./run python -m studies.detection --out DIR``; it can be stopped, and the same
command resumes it.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dfcrp import __version__
from dfcrp.draws import ClusterBlock, DrawBlock, MemoryDraws
from dfcrp.items.items import Items
from dfcrp.plots.detection import Reality, draw_reality
from dfcrp.plots.style import save_figure
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.answers import detection_summary
from dfcrp.report.tables import markdown_table, write_json
from dfcrp.runs.parts import RunRecord
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from dfcrp.settings.config import Config, make_config
from studies.detection_designs import DETECTION_DESIGNS, DetectionDesign
from studies.numbers import averages_of, describe
from studies.problems import make_problem
from studies.simulation import cores
from studies.store import ResultStore
from studies.tallies import Tally

#: Settings of each row of the table; persons are filled in where the design has any.
MODELS: dict[str, dict[str, Any]] = {
    "dfcrp": {"run": {"prior": "dfcrp"}},
    "constrained": {"run": {"prior": "constrained"}},
    "crp": {"run": {"prior": "crp"}},
    "detection, one class": {"run": {"prior": "detection"}, "prior": {"classes": 1}},
    "detection": {"run": {"prior": "detection"}},
    "detection, persons": {"run": {"prior": "detection"}},
    "dfcrp, attraction": {"run": {"prior": "attraction"}},
}
#: Those of them that need to be told of persons.
OF_PERSONS = ("detection, persons", "dfcrp, attraction")
#: Bins of the probability of being real.
EDGES = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])


@dataclass(frozen=True)
class DetectionPlan:
    """Which data sets, and how long each model runs on them."""

    design: str
    datasets: int = 200
    scans: int = 1500
    burn_in: int = 500
    chains: int = 2
    seed: int = 1

    @property
    def parameters(self) -> DetectionDesign:
        """The design behind the name."""
        return DETECTION_DESIGNS[self.design]

    def identity(self) -> dict[str, Any]:
        """What a result depends on besides its number."""
        chosen = asdict(self)
        del chosen["datasets"]
        return {**chosen, "parameters": asdict(self.parameters), "dfcrp": __version__}

    def models(self) -> dict[str, dict[str, Any]]:
        """The rows of the table for this design."""
        told = {"persons": self.parameters.groups}
        chosen = {}
        for name, tables in MODELS.items():
            if name not in OF_PERSONS:
                chosen[name] = tables
            elif self.parameters.persons:
                chosen[name] = {**tables, "run": {**tables["run"], **told}}
        return chosen


def run_dataset(plan: DetectionPlan, index: int) -> dict[str, Any]:
    """All models on one data set."""
    design = plan.parameters
    markings = design.draw(np.random.default_rng([plan.seed, index]))
    assert markings.truth is not None
    real = markings.truth < design.base.n_objects
    seen = len(np.unique(markings.truth[real]))
    found = {}
    for number, (name, tables) in enumerate(plan.models().items()):
        seed = np.random.SeedSequence([plan.seed, index, number + 1])
        run = run_model(plan, markings, make_config(tables), seed)
        place = np.clip(np.searchsorted(EDGES, run.p_real, side="right") - 1, 0, len(EDGES) - 2)
        bins = len(EDGES) - 1
        found[name] = {
            "ari": run.ari,
            "objects": describe(run.objects, seen),
            "total": describe(run.total, design.base.n_objects),
            "brier": float(np.mean((run.p_real - real) ** 2)),
            "binned": np.bincount(place, minlength=bins).tolist(),
            "binned_p": np.bincount(place, run.p_real, minlength=bins).tolist(),
            "binned_real": np.bincount(place, real, minlength=bins).tolist(),
        }
    return {"objects": design.base.n_objects, "seen": seen, "models": found}


class ModelRun(NamedTuple):
    """What one model says of one data set; numbers of objects by chain and draw."""

    ari: float
    objects: NDArray[np.int64]
    total: NDArray[np.int64]
    p_real: NDArray[np.float64]


def run_model(
    plan: DetectionPlan, markings: Items, config: Config, seed: np.random.SeedSequence
) -> ModelRun:
    """A few chains of one model: its agreement with the truth, objects, and what it calls real."""
    problem = make_problem(markings.features, markings.families, config, experts=markings.experts)
    runs = [_run_chain(plan, markings, config, problem, child) for child in seed.spawn(plan.chains)]
    ari, objects, total, p_real = zip(*runs, strict=True)
    return ModelRun(
        float(np.mean(ari)), np.array(objects), np.array(total), np.mean(p_real, axis=0)
    )


def _run_chain(
    plan: DetectionPlan,
    markings: Items,
    config: Config,
    problem: Problem,
    seed: np.random.SeedSequence,
) -> ModelRun:
    chain = Chain(problem, seed, "exact")
    chain.run(1, plan.burn_in)
    block = chain.run(plan.scans - plan.burn_in, 1)
    tally = Tally(markings)
    tally.add(block.labels, block.alpha)
    ari = float(tally.result()["ari"])
    if config.run.prior == "detection":
        summary = replace(config.summary, class_edges=(), class_names=())
        found = detection_summary(
            Posterior(
                _as_draws(problem, block),
                markings,
                replace(config, summary=summary),
                RunRecord(plan.scans, plan.burn_in, 1, 0.0),
            )
        )
        seen, missed = found.seen[:, 0], found.missed[:, 0]
        return ModelRun(ari, seen, seen + missed, found.p_real_marking)
    size = np.array([np.bincount(row, minlength=len(row)) for row in block.labels])
    objects = (size > 1).sum(axis=1)
    p_real = (np.take_along_axis(size, block.labels, axis=1) > 1).mean(axis=0)
    return ModelRun(ari, objects, objects, p_real)


def _as_draws(problem: Problem, block: DrawBlock) -> MemoryDraws:
    clusters = ClusterBlock(block.offsets, block.cluster_labels, block.parameters)
    return MemoryDraws(
        block.labels[np.newaxis], block.alpha, [clusters], problem.columns, block.shared
    )


def run_study(
    plan: DetectionPlan, folder: Path, workers: int | None = None
) -> list[dict[str, Any]]:
    """Results of all data sets; those that the folder holds are not done again."""
    store = ResultStore(folder, plan.identity())

    def work(index: int) -> None:
        if store.load(index) is None:
            store.save(index, run_dataset(plan, index))

    with ThreadPoolExecutor(workers or cores()) as pool:
        list(pool.map(work, range(plan.datasets)))
    found = [store.load(index) for index in range(plan.datasets)]
    return [result for result in found if result is not None]


def table_of(results: list[dict[str, Any]], what: str) -> list[dict[str, Any]]:
    """A row for each model about one number: "objects" that somebody marked, or the "total"."""
    rows = []
    for name in results[0]["models"]:
        own = [result["models"][name] for result in results]
        rows.append(
            {
                "prior": name,
                "ARI": float(np.mean([m["ari"] for m in own])),
                "Brier": float(np.mean([m["brier"] for m in own])),
                **averages_of([m[what] for m in own]),
            }
        )
    return rows


def calibration_of(results: list[dict[str, Any]], model: str) -> Reality:
    """Of the markings that are called real with about p, the share that is."""
    own = [result["models"][model] for result in results]
    count, p, real = (
        np.sum([m[name] for m in own], axis=0) for name in ("binned", "binned_p", "binned_real")
    )
    many = np.maximum(count, 1)
    mean_p, share = np.where(count, p / many, np.nan), np.where(count, real / many, np.nan)
    error = 2.0 * np.sqrt(mean_p * (1.0 - mean_p) / many)
    return Reality(EDGES, count, mean_p, share, error)


def bins_of(found: Reality) -> list[dict[str, Any]]:
    """The same as rows of a table."""
    assert found.share is not None
    columns = found.count.tolist(), found.mean_p.tolist(), found.share.tolist()
    return [
        {
            "p_real": f"{EDGES[k]:g} to {EDGES[k + 1]:g}",
            "markings": count,
            "mean p_real": p if count else None,
            "share real": share if count else None,
        }
        for k, (count, p, share) in enumerate(zip(*columns, strict=True))
    ]


def report(plan: DetectionPlan, results: list[dict[str, Any]], folder: Path) -> str:
    """Write the tables and a figure of the calibration, and return the tables as Markdown."""
    rows = {what: table_of(results, what) for what in ("objects", "total")}
    found = {name: calibration_of(results, name) for name in results[0]["models"]}
    bins = {name: bins_of(of_model) for name, of_model in found.items()}
    save_figure(draw_reality(found["detection"]).figure, folder, "calibration")
    write_json(folder / "table.json", {"plan": asdict(plan), **rows, "calibration": bins})
    parts = [
        f"## {plan.design}: {len(results)} data sets of {results[0]['objects']} objects",
        "Objects that somebody marked:",
        markdown_table(rows["objects"]),
        "All objects:",
        markdown_table(rows["total"]),
    ]
    for name, binned in bins.items():
        parts += [f"Markings by their probability of being real, {name}:", markdown_table(binned)]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    return text


def main(arguments: list[str] | None = None) -> None:
    """Run the designs that are asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--design", action="append", choices=[*DETECTION_DESIGNS], default=None)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--scans", type=int, default=1500)
    parser.add_argument("--burn-in", type=int, default=500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    for design in options.design or DETECTION_DESIGNS:
        length = options.scans, options.burn_in
        plan = DetectionPlan(design, options.datasets, *length, seed=options.seed)
        folder = options.out / design
        print(report(plan, run_study(plan, folder, options.workers), folder))


if __name__ == "__main__":
    main()
