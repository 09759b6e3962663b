"""One image at which all looked: what follows from what is assumed of sizes.

Under the detection prior the sizes of all objects and those of false marks each have a law. They
are learned from the markings, or held at the law of the markings' sizes (``size_weight``), as is
how much experts differ in their false marks (``false_shape_sd``). Every
data set has 150 objects with a power law of diameters and eight experts, who find large objects
more easily. The designs differ in the sizes of false marks, in how hard small objects are, and in
whether objects of one size are equally easy.

Run it by ``./run python -m studies.detection_sizes --out DIR``; it can be stopped, and the same
command resumes it.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, logit

from dfcrp import __version__
from dfcrp.items.items import Items
from dfcrp.priors.detection.settings import LEARNED_SIZES, LEARNED_SPREAD
from dfcrp.report.tables import markdown_table, write_json
from dfcrp.settings.config import make_config
from dfcrp.simulate import expert_names
from studies.detection import DetectionPlan, run_model
from studies.numbers import averages_of, describe
from studies.store import ResultStore


@dataclass(frozen=True)
class SizeDesign:
    """One image with objects of many sizes.

    Log diameters are ``smallest`` plus exponential with the mean ``spread``, those of false marks
    with ``false_spread``. An expert finds an object of the smallest diameter with their
    probability in ``skills``; the log odds rise by ``by_size`` times the log diameter beyond it.
    """

    n_objects: int = 150
    side: float = 1400.0
    smallest: float = 3.0
    spread: float = 0.5
    false_spread: float = 0.5
    skills: tuple[float, ...] = (0.7, 0.65, 0.6, 0.55, 0.5, 0.45, 0.4, 0.35)
    by_size: float = 1.0
    #: By how much the log odds of objects of one size differ: standard deviation.
    ease_sd: float = 0.0
    false_marks: tuple[float, ...] = (25, 5, 10, 15, 5, 10, 20, 5)
    error: float = 2.2
    size_error: float = 0.1

    def draw(self, rng: np.random.Generator) -> Items:
        """One data set; an object's number is below ``n_objects``, a false mark's is not."""
        places = self._places(rng, self.n_objects, self.spread)
        chance = logit(np.array(self.skills))[:, np.newaxis]
        ease = self.by_size * (places[:, 2] - self.smallest)
        ease += rng.normal(0.0, self.ease_sd, self.n_objects)
        found = rng.random((len(self.skills), self.n_objects)) < expit(chance + ease)
        spread = [self.error, self.error, self.size_error]
        rows, truth, expert, number = [], [], [], self.n_objects
        for f, name in enumerate(expert_names(len(self.skills))):
            at = np.flatnonzero(found[f])
            n_false = int(rng.poisson(self.false_marks[f]))
            rows += [
                rng.normal(places[at], spread),
                self._places(rng, n_false, self.false_spread),
            ]
            truth += [at, number + np.arange(n_false)]
            expert += [name] * (len(at) + n_false)
            number += n_false
        table = np.concatenate(rows)
        return Items.circles(
            table[:, 0], table[:, 1], np.exp(table[:, 2]), expert, truth=np.concatenate(truth)
        )

    def _places(self, rng: np.random.Generator, count: int, spread: float) -> NDArray[np.float64]:
        x, y = rng.uniform(0.0, self.side, (2, count))
        return np.column_stack([x, y, self.smallest + rng.exponential(spread, count)])


_POOR = (0.5, 0.45, 0.4, 0.35, 0.3, 0.25, 0.2, 0.15)
_VERY_POOR = (0.3, 0.25, 0.2, 0.2, 0.15, 0.1, 0.1, 0.05)
#: False marks of the objects' law; much smaller ones; and small objects that are hard to find. Then
#: the same where objects of one size differ in how easy they are.
DESIGNS: Mapping[str, SizeDesign] = MappingProxyType(
    {
        "false marks like objects": SizeDesign(skills=_POOR),
        "small false marks": SizeDesign(skills=_POOR, false_spread=0.12),
        "small objects hard": SizeDesign(skills=_VERY_POOR, by_size=3.0),
        "false marks like objects, eases differ": SizeDesign(ease_sd=1.5),
        "small false marks, eases differ": SizeDesign(ease_sd=1.5, false_spread=0.12),
        "small objects hard, eases differ": SizeDesign(skills=_POOR, by_size=3.0, ease_sd=1.5),
    }
)
#: What is assumed: nothing is held, as by default; all is; sizes are learned, but slowly.
MODELS: Mapping[str, dict[str, Any]] = MappingProxyType(
    {
        "learned": {"size_weight": LEARNED_SIZES, "false_shape_sd": LEARNED_SPREAD},
        "held": {"size_weight": "held", "false_shape_sd": "held"},
        "in between": {"size_weight": 300.0, "false_shape_sd": "held"},
    }
)


def run_dataset(
    plan: DetectionPlan, design: SizeDesign, index: int, models: Mapping[str, dict[str, Any]]
) -> dict[str, Any]:
    """All models on one data set."""
    markings = design.draw(np.random.default_rng([plan.seed, index]))
    assert markings.truth is not None
    real = markings.truth < design.n_objects
    seen = len(np.unique(markings.truth[real]))
    found = {}
    for number, (name, assumed) in enumerate(models.items()):
        config = make_config({"run": {"prior": "detection"}, "prior": assumed})
        run = run_model(plan, markings, config, np.random.SeedSequence([plan.seed, index, number]))
        found[name] = {
            "objects": describe(run.objects, seen),
            "total": describe(run.total, design.n_objects),
            "brier": float(np.mean((run.p_real - real) ** 2)),
        }
    return {"models": found}


def table_of(results: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """A row for each model: objects that somebody marked, all objects, and what is real."""
    rows = []
    for name in results[0]["models"]:
        own = [result["models"][name] for result in results]
        row: dict[str, Any] = {"sizes": name}
        for what in ("objects", "total"):
            every = averages_of([one[what] for one in own])
            row |= {
                f"{what}, true": every["true"],
                "bias" if what == "objects" else "bias of total": every["bias"],
                "rmse" if what == "objects" else "rmse of total": every["rmse"],
                f"coverage of {what}, %": every["exactly 95 %: coverage, %"],
            }
        rows.append(row | {"Brier": float(np.mean([one["brier"] for one in own]))})
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run all designs and print their tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="a folder for the results")
    parser.add_argument("--datasets", type=int, default=20)
    parser.add_argument("--scans", type=int, default=1000)
    parser.add_argument("--burn-in", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    plan = DetectionPlan("sizes", options.datasets, options.scans, options.burn_in, 2, options.seed)
    tables = {}
    for name, design in DESIGNS.items():
        told = asdict(plan) | {"parameters": asdict(design), "models": dict(MODELS)}
        del told["datasets"]
        store = ResultStore(options.out / name.replace(" ", "-"), told | {"dfcrp": __version__})
        results = []
        for index in range(plan.datasets):
            if store.load(index) is None:
                store.save(index, run_dataset(plan, design, index, MODELS))
            results.append(store.load(index))
        tables[name] = table_of([result for result in results if result is not None])
        print(f"## {name}: {plan.datasets} data sets\n\n{markdown_table(tables[name], 4)}\n")
    write_json(options.out / "sizes.json", {"plan": asdict(plan), **tables})


if __name__ == "__main__":
    main()
