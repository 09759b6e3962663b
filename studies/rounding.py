"""The same items before and after rounding: what a drawing tool's grid and smallest mark cost.

    ./run python -m studies.rounding --out rounding [--datasets 3] [--experts 3 --experts 6]

*integer boxes*: boxes with corners on whole pixels. *fives*: points, boxes and ellipses with
centres rounded to 5 px. *smallest*: ellipses of which the smallest quarter are 10 x 10 px with an
angle of 0, as a tool with a smallest mark leaves them. Sizes differ by a factor of 15; experts find
70 to 95 % of the objects. Each is fitted as it is and as it was, and compared with the truth
(adjusted Rand index).
"""

from __future__ import annotations

import argparse
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp.baselines.scores import adjusted_rand
from dfcrp.errors import DfcrpWarning
from dfcrp.items.items import Items
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_csv, write_json

Columns = dict[str, NDArray[np.float64]]
#: Side of the image, in pixels, and objects on it.
SIDE, OBJECTS = 1200.0, 80
#: Smallest mark of the tool.
SMALLEST = 10.0


def simulated(kind: str, experts: int, seed: int) -> tuple[Columns, NDArray[Any], NDArray[Any]]:
    """Columns, experts and truth: centres off by 6 % of the size, sizes by 8 %."""
    rng = np.random.default_rng([seed, experts, 7])
    centre, size = rng.uniform(0, SIDE, (OBJECTS, 2)), np.exp(rng.uniform(2.2, 4.9, OBJECTS))
    flat, angle = np.exp(rng.normal(0.0, 0.25, OBJECTS)), rng.uniform(0, 180, OBJECTS)
    found = [np.flatnonzero(rng.random(OBJECTS) < rng.uniform(0.7, 0.95)) for _ in range(experts)]
    truth, who = np.concatenate(found), np.repeat(np.arange(experts), [len(f) for f in found])
    n = len(truth)
    at = centre[truth] + (0.06 * size[truth])[:, None] * rng.standard_normal((n, 2))
    first, second = (
        size[truth] * flat[truth] ** power * np.exp(0.08 * rng.standard_normal(n))
        for power in (0.5, -0.5)
    )
    columns: Columns = {"x": at[:, 0], "y": at[:, 1]}
    if kind == "boxes":
        columns |= {"width": first, "height": second}
    if kind == "ellipses":
        turned = np.where(second > first, 90.0, 0.0) + angle[truth] + rng.normal(0.0, 5.0, n)
        columns |= {"major": np.maximum(first, second), "minor": np.minimum(first, second)}
        columns["angle"] = turned % 180.0
    return columns, who.astype(np.str_), truth


def to_fives(columns: Columns) -> Columns:
    """Centres on a grid of 5 px."""
    return {n: 5.0 * np.round(v / 5.0) if n in "xy" else v for n, v in columns.items()}


def to_pixels(columns: Columns) -> Columns:
    """Corners on whole pixels, at least one pixel apart."""
    found: Columns = {}
    for centre, side in (("x", "width"), ("y", "height")):
        low = np.round(columns[centre] - columns[side] / 2.0)
        high = np.maximum(np.round(columns[centre] + columns[side] / 2.0), low + 1.0)
        found |= {centre: (low + high) / 2.0, side: high - low}
    return {name: found[name] for name in columns}


def to_smallest(columns: Columns) -> Columns:
    """The smallest quarter as the smallest mark."""
    size = np.sqrt(columns["major"] * columns["minor"])
    least = size < np.quantile(size, 0.25)
    to = {"major": SMALLEST, "minor": SMALLEST, "angle": 0.0}
    return {n: np.where(least, to[n], v) if n in to else v for n, v in columns.items()}


CASES: dict[str, tuple[str, Callable[[Columns], Columns]]] = {
    "integer boxes": ("boxes", to_pixels),
    "points, fives": ("points", to_fives),
    "boxes, fives": ("boxes", to_fives),
    "ellipses, fives": ("ellipses", to_fives),
    "ellipses, smallest": ("ellipses", to_smallest),
}


def index_of(kind: str, columns: Columns, who: NDArray[Any], truth: NDArray[Any]) -> float:
    """Adjusted Rand index of a fit without settings but its length."""
    items = Items.from_columns(columns, who, kind=kind)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        found = dfcrp.fit(items, chains=2, scans=300, burn_in=100, max_scans=300, seed=1)
    return float(adjusted_rand(np.asarray(found.point_partition()), truth))


def compare(name: str, experts: int, datasets: int) -> dict[str, Any]:
    """Means before and after, and the largest loss."""
    kind, change = CASES[name]
    rows = []
    for seed in range(datasets):
        columns, who, truth = simulated(kind, experts, seed)
        both = [index_of(kind, given, who, truth) for given in (columns, change(columns))]
        rows.append(both)
    before, after = np.array(rows).T
    return {
        "data": name,
        "experts": experts,
        "before": before.mean(),
        "after": after.mean(),
        "largest loss": (before - after).max(),
    }


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--datasets", type=int, default=3)
    parser.add_argument("--experts", type=int, action="append")
    parser.add_argument("--only", action="append", choices=list(CASES))
    options = parser.parse_args(arguments)
    out = prepare_out(options.out)
    rows = []
    for name in options.only or list(CASES):
        for experts in options.experts or [3, 6]:
            rows.append(compare(name, experts, options.datasets))
            print(markdown_table(rows[-1:], digits=4), flush=True)
    write_csv(out / "rounding.csv", rows)
    write_json(out / "rounding.json", {**provenance(datasets=options.datasets), "rows": rows})
    return 0


if __name__ == "__main__":
    sys.exit(main())
