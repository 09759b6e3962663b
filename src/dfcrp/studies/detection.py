"""What is real? All priors on the paper's simulation design and on harder ones, in one table.

Tolerances are learned, as they are by default. Under the detection prior objects are what it calls
real; the other priors have no word for that, so a cluster of two markings or more counts as an
object there, and a marking is called real with the probability that it is not alone.

Run it by ``python -m dfcrp.studies.detection --out DIR``; it can be stopped and goes on later.
"""

from __future__ import annotations

import argparse
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp import __version__
from dfcrp.config import Config, make_config
from dfcrp.markings import Markings
from dfcrp.posterior.consensus import SizeClasses
from dfcrp.posterior.detection import detection_summary
from dfcrp.posterior.intervals import summarise
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.draws import ClusterBlock, DrawBlock, MemoryDraws
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.setup import make_problem
from dfcrp.studies.detection_designs import DETECTION_DESIGNS, DetectionDesign
from dfcrp.studies.output import markdown_table, write_json
from dfcrp.studies.simulation import cores
from dfcrp.studies.store import ResultStore
from dfcrp.studies.tallies import Tally

#: Settings of each row of the table; persons are filled in where the design has any.
MODELS: dict[str, dict[str, Any]] = {
    "dfcrp": {"run": {"prior": "dfcrp"}},
    "constrained": {"run": {"prior": "constrained"}},
    "crp": {"run": {"prior": "crp"}},
    "detection, one class": {"run": {"prior": "detection"}, "detection": {"classes": 1}},
    "detection": {"run": {"prior": "detection"}},
    "detection, persons": {"run": {"prior": "detection"}},
}
#: Bins of the probability to be real.
EDGES = np.array([0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0])


@dataclass(frozen=True)
class Plan:
    """Which data sets, and how long each model runs on them."""

    design: str
    datasets: int = 200
    scans: int = 3000
    burn_in: int = 1000
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
        chosen = dict(MODELS)
        if not self.parameters.persons:
            del chosen["detection, persons"]
            return chosen
        persons = {"detection": {"persons": self.parameters.groups}}
        return {**chosen, "detection, persons": MODELS["detection, persons"] | persons}


def run_dataset(plan: Plan, index: int) -> dict[str, Any]:
    """All models on one data set."""
    design = plan.parameters
    markings = design.draw(np.random.default_rng([plan.seed, index]))
    assert markings.truth is not None
    real = markings.truth < design.base.n_objects
    seen = len(np.unique(markings.truth[real]))
    found = {}
    for number, (name, tables) in enumerate(plan.models().items()):
        seed = np.random.SeedSequence([plan.seed, index, number + 1])
        found[name] = run_model(plan, markings, make_config(tables), real, seed)
    return {"objects": design.base.n_objects, "seen": seen, "models": found}


def run_model(
    plan: Plan,
    markings: Markings,
    config: Config,
    real: NDArray[np.bool_],
    seed: np.random.SeedSequence,
) -> dict[str, Any]:
    """One chain of one model: its agreement with the truth, objects, and what it calls real."""
    problem = make_problem(markings.features, markings.families, config, experts=markings.experts)
    chain = Chain(problem, seed, "exact")
    chain.run(1, plan.burn_in)
    block = chain.run(plan.scans - plan.burn_in, 1)
    tally = Tally(markings)
    tally.add(block.labels, block.alpha)
    if config.run.prior == "detection":
        summary = detection_summary(
            _as_draws(problem, block), markings, config, block.labels[-1], SizeClasses.none()
        )
        objects, total = summary.seen[:, 0], (summary.seen + summary.missed)[:, 0]
        p_real = summary.p_real_marking
    else:
        size = np.array([np.bincount(row, minlength=len(row)) for row in block.labels])
        objects = total = (size > 1).sum(axis=1)
        p_real = (np.take_along_axis(size, block.labels, axis=1) > 1).mean(axis=0)
    place = np.clip(np.searchsorted(EDGES, p_real, side="right") - 1, 0, len(EDGES) - 2)
    bins = len(EDGES) - 1
    return {
        "ari": tally.result()["ari"],
        "objects": summarise(objects).as_dict(),
        "total": summarise(total).as_dict(),
        "brier": float(np.mean((p_real - real) ** 2)),
        "binned": np.bincount(place, minlength=bins).tolist(),
        "binned_p": np.bincount(place, p_real, minlength=bins).tolist(),
        "binned_real": np.bincount(place, real, minlength=bins).tolist(),
    }


def _as_draws(problem: Problem, block: DrawBlock) -> MemoryDraws:
    clusters = ClusterBlock(block.offsets, block.cluster_labels, block.parameters)
    return MemoryDraws(
        block.labels[np.newaxis], block.alpha, [clusters], problem.columns, block.shared
    )


def run_study(plan: Plan, folder: Path, workers: int | None = None) -> list[dict[str, Any]]:
    """Results of all data sets; those that the folder holds are not done again."""
    store = ResultStore(folder, plan.identity())

    def work(index: int) -> None:
        if store.load(index) is None:
            store.save(index, run_dataset(plan, index))

    with ThreadPoolExecutor(workers or cores()) as pool:
        list(pool.map(work, range(plan.datasets)))
    found = [store.load(index) for index in range(plan.datasets)]
    return [result for result in found if result is not None]


def table_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each model; errors are against the number of objects that somebody marked."""
    rows = []
    for name in results[0]["models"]:
        own = [result["models"][name] for result in results]
        error = [m["objects"]["mean"] - r["seen"] for m, r in zip(own, results, strict=True)]
        covered = [_inside(m["objects"], r["seen"]) for m, r in zip(own, results, strict=True)]
        whole = [_inside(m["total"], r["objects"]) for m, r in zip(own, results, strict=True)]
        rows.append(
            {
                "prior": name,
                "ARI": float(np.mean([m["ari"] for m in own])),
                "objects seen": float(np.mean([m["objects"]["mean"] for m in own])),
                "bias": float(np.mean(error)),
                "rmse": float(np.sqrt(np.mean(np.square(error)))),
                "coverage, %": 100.0 * float(np.mean(covered)),
                "objects in all": float(np.mean([m["total"]["mean"] for m in own])),
                "coverage of all, %": 100.0 * float(np.mean(whole)),
                "Brier": float(np.mean([m["brier"] for m in own])),
            }
        )
    return rows


def _inside(interval: dict[str, float], value: float) -> bool:
    return interval["lo"] <= value <= interval["hi"]


def calibration_of(results: list[dict[str, Any]], model: str) -> list[dict[str, Any]]:
    """Of the markings that are called real with about p, the share that is."""
    own = [result["models"][model] for result in results]
    count, p, real = (
        np.sum([m[name] for m in own], axis=0) for name in ("binned", "binned_p", "binned_real")
    )
    return [
        {
            "p_real": f"{EDGES[k]:g} to {EDGES[k + 1]:g}",
            "markings": int(count[k]),
            "mean p_real": float(p[k] / max(count[k], 1)),
            "share real": float(real[k] / max(count[k], 1)),
        }
        for k in range(len(count))
    ]


def report(plan: Plan, results: list[dict[str, Any]], folder: Path) -> str:
    """Write the tables, and return them as Markdown."""
    rows = table_of(results)
    bins = {name: calibration_of(results, name) for name in results[0]["models"]}
    write_json(folder / "table.json", {"plan": asdict(plan), "rows": rows, "calibration": bins})
    seen = np.mean([result["seen"] for result in results])
    parts = [
        f"## {plan.design}: {len(results)} data sets of {results[0]['objects']} objects, "
        f"of which {seen:.2f} are marked by somebody",
        markdown_table(rows),
        "Markings by their probability to be real, detection prior:",
        markdown_table(bins["detection"]),
    ]
    text = "\n\n".join(parts) + "\n"
    (folder / "table.md").write_text(text, encoding="utf-8")
    return text


def main(arguments: list[str] | None = None) -> None:
    """Run the designs that are asked for and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--design", action="append", choices=[*DETECTION_DESIGNS], default=None)
    parser.add_argument("--datasets", type=int, default=200)
    parser.add_argument("--scans", type=int, default=3000)
    parser.add_argument("--burn-in", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, default=None)
    options = parser.parse_args(arguments)
    for design in options.design or DETECTION_DESIGNS:
        plan = Plan(design, options.datasets, options.scans, options.burn_in, options.seed)
        folder = options.out / design
        print(report(plan, run_study(plan, folder, options.workers), folder))


if __name__ == "__main__":
    main()
