"""Which answers hold where the model is wrong: crowds that are not of our making.

    ./run python -m studies.wrong_models --out wrong-models [--only NAME] [--quick]

Each crowd of ``studies.wrong_worlds`` is fitted by default (prior detection) and compared with its
truth by ``Posterior.evaluate``: F1 of what is called real, Brier score, the share that is right of
what is called real with 0.9 or more, objects in all with an interval, the verdict, and which checks
of the model's fit fired. Points match within four standard errors of a mark, boxes by IoU. The
study can be stopped; the same command does what is missing.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp
from dfcrp import __version__
from dfcrp.errors import InputError, did_you_mean
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_json, write_page
from studies.store import ResultStore
from studies.wrong_worlds import KINDS, WORLDS, Design, World, design_of, make_world

#: What a run may say of itself that is not on the list of checks.
LEVELS = ("serious", "minor")


@dataclass(frozen=True)
class Plan:
    """How large the crowds are, how many of each there are, and how long a run is."""

    design: Design = field(default_factory=Design)
    datasets: int = 1
    chains: int = 2
    scans: int = 1500
    burn_in: int = 500
    seed: int = 1

    def identity(self, name: str) -> dict[str, Any]:
        """What a result depends on besides its number."""
        chosen = asdict(replace(self, design=design_of(name, self.design)))
        del chosen["datasets"]
        return {**chosen, "dfcrp": __version__}


QUICK = Plan(
    design=Design(images=16, workers=10, looks=5), datasets=1, scans=60, burn_in=20, chains=2
)


def run_world(plan: Plan, name: str, index: int) -> dict[str, Any]:
    """Fit one crowd and compare."""
    design = design_of(name, plan.design)
    # The same objects, workers and looks for every world, as far as they can be.
    world = make_world(design, [plan.seed, index])
    start = time.process_time()
    posterior = dfcrp.fit(
        world.items,
        prior="detection",
        chains=plan.chains,
        scans=plan.scans,
        burn_in=plan.burn_in,
        seed=1000 * plan.seed + index,
        progress=False,
    )
    seconds = time.process_time() - start
    return {**judge(design, world, posterior), "seconds": seconds}


def judge(design: Design, world: World, posterior: Posterior) -> dict[str, Any]:
    """The answers beside the truth."""
    rule: dict[str, Any] = {} if design.kind == "boxes" else {"distance": reach(design)}
    # Without looks, images on which nobody marked anything are not in the run.
    on = "answer"
    found = posterior.evaluate(world.truth, on=on, **rule)
    of_two = posterior.evaluate(world.truth, on=on, min_experts=2, **rule)
    total, sure = found["n_total"], found["sure"]
    return {
        "marks": len(world.items),
        "f1": found["f1"],
        "f1_of_two": of_two["f1"],
        "precision": found["precision"],
        "recall": found["recall"],
        "brier": found["brier"],
        "sure": sure["right"] if sure else None,
        "single": _of_singles(posterior),
        "true": found["n_true"],
        "total": total,
        "ok": bool(posterior.verdict.ok),
        "checks": fired(posterior.summary()),
    }


def reach(design: Design) -> float:
    """Of points: four standard errors of a mark on an object of the usual size."""
    return float(4.0 * design.error * np.exp(design.log_size))


def _of_singles(posterior: Posterior) -> int:
    """Marks that nobody shares and that are called real."""
    table = posterior.catalogue()
    return int(((table["n_experts"] == 1) & (table["p_real"] > 0.5)).sum())


def fired(summary: dict[str, Any]) -> dict[str, list[str]] | None:
    """The checks of the model's fit that found a difference, by level; None without checks."""
    found = summary.get("model_fit")
    if found is None:
        return None
    checks = found.get("checks", ())
    return {level: [c["check"] for c in checks if c.get("level") == level] for level in LEVELS}


def together(name: str, results: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """A row of the table: means over the data sets of one world."""

    def mean(key: str) -> float | None:
        values = [one[key] for one in results if one[key] is not None]
        return float(np.mean(values)) if values else None

    totals = [one["total"] for one in results]
    held = sum(one["covers"] for one in totals)
    single = totals[0]
    sure = mean("sure")
    return {
        "crowd": name,
        "marks": round(mean("marks") or 0),
        "F1": mean("f1"),
        "F1 of two or more": mean("f1_of_two"),
        "Brier": mean("brier"),
        "right of those sure, %": None if sure is None else 100.0 * sure,
        "single marks called real": round(mean("single") or 0),
        "true": round(float(np.mean([one["true"] for one in totals]))),
        "objects in all": f"{single['mean']:,.0f} ({single['lo']:,.0f} to {single['hi']:,.0f})"
        if len(results) == 1
        else f"{np.mean([one['mean'] for one in totals]):,.0f}",
        "holds the truth": f"{held} of {len(results)}",
        "verdict": f"{sum(one['ok'] for one in results)} good of {len(results)}",
        "checks": _checks(results),
        "seconds": mean("seconds"),
    }


def _checks(results: Sequence[dict[str, Any]]) -> str:
    """Checks that fired, with how often if there are several data sets; minor ones in brackets."""
    known = [one["checks"] for one in results if one["checks"] is not None]
    if not known:
        return ""
    parts = []
    for level in LEVELS:
        names = [name for one in known for name in one[level]]
        for name in dict.fromkeys(names):
            often = f" ({names.count(name)} of {len(known)})" if len(known) > 1 else ""
            parts.append(f"{name}{often}" if level == "serious" else f"[{name}{often}]")
    return ", ".join(parts) or "none"


def study(out: Path, plan: Plan, names: Sequence[str], say: Any = None) -> list[dict[str, Any]]:
    """Run what is missing, and write ``wrong_models.md`` and ``wrong_models.json``."""
    rows, all_results = [], {}
    for name in names:
        store = ResultStore(out / name.replace(" ", "_"), plan.identity(name))
        results = []
        for index in range(plan.datasets):
            if (found := store.load(index)) is None:
                if say is not None:
                    say(f"wrong models: {name}, {index + 1} of {plan.datasets}")
                store.save(index, run_world(plan, name, index))
                found = store.load(index)
            assert found is not None
            results.append(found)
        rows.append(together(name, results))
        all_results[name] = results
    write_json(
        out / "wrong_models.json",
        {**provenance(**asdict(plan)), "rows": rows, "results": all_results},
    )
    legend = [f"*{name}*: {WORLDS[name][1]}." for name in names]
    how = (
        f"{plan.design.images} images, {plan.design.workers} workers, {plan.design.looks} looks an "
        f"image, {plan.design.kind}; {plan.datasets} crowds of each kind; {plan.chains} chains of "
        f"{plan.scans} scans. Brackets: a small difference."
    )
    write_page(
        out / "wrong_models.md",
        "Where the model is wrong",
        [how, markdown_table(rows), *legend],
    )
    return rows


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--only", action="append", metavar="NAME", help="only this crowd")
    parser.add_argument("--quick", action="store_true", help="tiny crowds and short runs")
    parser.add_argument("--kind", choices=KINDS, default="boxes")
    parser.add_argument("--datasets", type=int, default=1)
    parser.add_argument("--scans", type=int)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    names = options.only or list(WORLDS)
    for name in names:
        if name not in WORLDS:
            raise InputError(
                f"--only {name!r}{did_you_mean(name, WORLDS)}; there are {', '.join(WORLDS)}"
            )
    plan = QUICK if options.quick else Plan()
    plan = replace(
        plan,
        design=replace(plan.design, kind=options.kind),
        datasets=options.datasets,
        seed=options.seed,
    )
    if options.scans is not None:
        plan = replace(plan, scans=options.scans, burn_in=options.scans // 3)
    out = prepare_out(options.out)
    rows = study(out, plan, names, say=lambda text: print(text, file=sys.stderr, flush=True))
    print(markdown_table(rows))
    return 0


if __name__ == "__main__":
    sys.exit(main())
