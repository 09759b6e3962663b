"""Experts who differ: is it found where it is there, and what does asking cost where it is not?

    ./run python -m studies.expert_bias --out DIR

Data sets of the paper's simulation design, as they are ("alike") and with C drawing 5 % larger and
E erring twice as much ("unlike"), are fitted with experts taken to be alike and with offsets and
noise factors learned. Reported are how often the 95 % intervals hold the truth, and how well
partition, positions and diameters are found; errors of one data set are compared in pairs.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.baselines.scores import adjusted_rand_of_draws
from dfcrp.errors import DfcrpWarning
from dfcrp.fitting import fit
from dfcrp.items.items import Items
from dfcrp.likelihoods.circle.scatter import AXES
from dfcrp.likelihoods.differences import name_of_offset
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_json
from dfcrp.simulate import SimulationDesign

Floats = NDArray[np.float64]
DESIGN = SimulationDesign()
#: Factors of size and noise by expert, A to F.
UNLIKE = ((1.0, 1.0, 1.05, 1.0, 1.0, 1.0), (1.0, 1.0, 1.0, 1.0, 2.0, 1.0))
DESIGNS = {"alike": ((1.0,) * 6, (1.0,) * 6), "unlike": UNLIKE}
OPTIONS = ("none", "both")
OFFSETS = tuple(name_of_offset(axis) for axis in AXES)


def draw(design: str, seed: int) -> tuple[Items, Floats]:
    """Markings by such experts, and the objects (x, y, log diameter)."""
    size, noise = (np.array(factors) for factors in DESIGNS[design])
    markings = DESIGN.draw(seed)
    # The design draws its objects first.
    objects = DESIGN.places(DESIGN.n_objects, np.random.default_rng(seed))
    assert markings.truth is not None
    real = np.flatnonzero(markings.truth < DESIGN.n_objects)
    true, expert = objects[markings.truth[real]], markings.families[real]
    features = markings.features.copy()
    features[real] = true + noise[expert, np.newaxis] * (features[real] - true)
    features[real, 2] += np.log(size[expert])
    moved = replace(
        markings,
        columns={"x": features[:, 0], "y": features[:, 1], "diameter": np.exp(features[:, 2])},
    )
    return moved, objects


def truth_of(design: str, markings: Items) -> dict[str, Floats]:
    """What the table of experts should say: factors relative to the mean over the markings."""
    share = np.bincount(markings.families) / len(markings)
    size, noise = (np.log(factors) for factors in DESIGNS[design])
    still = np.zeros(len(share))
    return {
        "offset_x": still,
        "offset_y": still,
        "size_factor": np.exp(size - share @ size),
        "noise_factor": np.exp(noise - share @ noise),
    }


def errors(posterior: Posterior, objects: Floats) -> dict[str, float]:
    """Root mean square errors of what was found of the objects, clusters of two or more."""
    labels, truth = posterior.point_partition().labels, posterior.markings.truth
    assert truth is not None
    catalogue = posterior.catalogue()
    found = catalogue[catalogue["n_experts"] >= 2]
    named = found["cluster"].to_numpy()
    true = np.array([np.bincount(truth[labels == name]).argmax() for name in named])
    known = true < len(objects)
    apart = found[["x", "y"]].to_numpy()[known] - objects[true[known], :2]
    sizes = np.log(found["diameter"].to_numpy()[known]) - objects[true[known], 2]
    return {
        "position": float(np.sqrt((apart**2).sum(axis=1).mean() / 2.0)),
        "log diameter": float(np.sqrt((sizes**2).mean())),
        "ARI": float(adjusted_rand_of_draws(posterior.draws, truth).mean()),
        "clusters of two or more": float(len(found)),
    }


def run(design: str, seed: int, scans: int) -> dict[str, Any]:
    """One data set with both options."""
    markings, objects = draw(design, seed)
    truth, found = truth_of(design, markings), {}
    for option in OPTIONS:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DfcrpWarning)
            posterior = fit(
                markings, expert_bias=option, chains=2, scans=scans, seed=seed + 1, workers=1
            )
        found[option] = errors(posterior, objects)
    bias = posterior.expert_bias
    assert bias is not None
    held = {
        name: ((bias.found[name].lo <= truth[name]) & (truth[name] <= bias.found[name].hi)).tolist()
        for name in (*OFFSETS, "noise_factor")
    }
    means = {name: bias.found[name].mean.tolist() for name in (*OFFSETS, "noise_factor")}
    return {"errors": found, "held": held, "means": means}


def coverage_rows(outcome: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """How often intervals held the truth, and the mean estimates of C and E."""
    rows = []
    for design, runs in outcome.items():
        row: dict[str, Any] = {"experts": design}
        for name in (*OFFSETS, "noise_factor"):
            row[f"{name} held"] = float(np.mean([one["held"][name] for one in runs]))
        row["size of C"] = float(np.mean([one["means"]["size_factor"][2] for one in runs]))
        row["noise of E"] = float(np.mean([one["means"]["noise_factor"][4] for one in runs]))
        rows.append(row)
    return rows


def error_rows(outcome: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Errors of both options, and their difference with its standard error."""
    rows = []
    for design, runs in outcome.items():
        for name in runs[0]["errors"]["none"]:
            none, both = (np.array([one["errors"][o][name] for one in runs]) for o in OPTIONS)
            apart = both - none
            rows.append(
                {
                    "experts": design,
                    "quantity": name,
                    "taken to be alike": float(none.mean()),
                    "learned": float(both.mean()),
                    "difference": float(apart.mean()),
                    "± se": float(apart.std(ddof=1) / np.sqrt(len(apart))),
                }
            )
    return rows


def main(arguments: list[str] | None = None) -> None:
    """Run all data sets, print the tables and keep the numbers."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, required=True, help="folder for expert-bias.json")
    parser.add_argument("--datasets", type=int, default=100)
    parser.add_argument("--scans", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args(arguments)
    out = prepare_out(options.out)
    seeds = range(1000 * options.seed, 1000 * options.seed + options.datasets)
    outcome = {design: [run(design, seed, options.scans) for seed in seeds] for design in DESIGNS}
    tables = {"coverage": coverage_rows(outcome), "errors": error_rows(outcome)}
    length = {"datasets": options.datasets, "scans": options.scans, "seed": options.seed}
    write_json(out / "expert-bias.json", {**tables, "provenance": provenance(**length)})
    for rows in tables.values():
        print(markdown_table(rows), end="\n\n")


if __name__ == "__main__":
    main()
