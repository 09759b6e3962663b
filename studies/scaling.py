"""Does the unit of length matter? The highlands image in pixels, metres and thousandths of pixels.

    ./run python -m studies.scaling --data FILE --out DIR

With learned tolerances the counts of consensus objects must agree within their Monte Carlo errors,
whatever the unit, with experts taken to be alike and with what they differ in learned. The paper's
preset, which is in pixels, is run beside them. Every run has a seed of its own: runs of one seed
would differ by rounding only, and agree for a while for that reason alone.
"""

from __future__ import annotations

import argparse
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.errors import DfcrpWarning
from dfcrp.fitting import fit
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_json
from dfcrp.summaries.convergence import diagnose
from studies import paper_figures as paper
from studies.highlands_data import load_highlands

#: The unit's name and how many of it make a pixel.
UNITS = {"pixels": 1.0, "metres": 0.63, "pixels / 1000": 1000.0}
THRESHOLDS = (4, 5, 6)


def in_unit(markings: Items, factor: float) -> Items:
    """The same markings in another unit of length."""
    columns = {name: factor * values for name, values in markings.columns.items()}
    return replace(markings, columns=columns)


def counts_of(posterior: Posterior, factor: float) -> dict[str, float]:
    """Consensus counts with their Monte Carlo errors, and the tolerance in pixels."""
    found: dict[str, float] = {}
    counts = posterior.consensus_counts(THRESHOLDS).counts[:, :, :, 0]
    for m, threshold in enumerate(THRESHOLDS):
        series = counts[:, :, m].astype(np.float64)
        found[f"≥ {threshold}"] = float(series.mean())
        error = series.std() / np.sqrt(diagnose("", series).ess_bulk)
        found[f"± {threshold}"] = float(error)
    if posterior.tolerances is not None:
        found["position, px"] = posterior.tolerances["position"]["mean"] / factor
    return found


def compare(rows: list[dict[str, Any]]) -> None:
    """Add to each row how many standard errors it is from the first, at worst."""
    first = rows[0]
    for row in rows:
        row["largest z"] = max(
            abs(row[f"≥ {m}"] - first[f"≥ {m}"])
            / max(np.hypot(row[f"± {m}"], first[f"± {m}"]), 1e-12)
            for m in THRESHOLDS
        )


def published() -> dict[str, Any]:
    """The paper's counts: the sums of its size classes."""
    sums = {
        f"≥ {m}": sum(row.mean for row in paper.CONSENSUS if row.min_experts == m)
        for m in THRESHOLDS
    }
    return {"run": "the paper", **sums}


def run_all(markings: Items, seed: int, **length: Any) -> list[dict[str, Any]]:
    """Every unit, with and without differing experts; then the preset, and the paper."""
    table: list[dict[str, Any]] = []
    for option, name in (("none", "learned"), ("both", "learned, experts differ")):
        rows: list[dict[str, Any]] = []
        for unit, factor in UNITS.items():
            seed += 1
            posterior = fit(in_unit(markings, factor), expert_bias=option, seed=seed, **length)
            rows.append({"run": f"{name}: {unit}", **counts_of(posterior, factor)})
            print(rows[-1], flush=True)
        compare(rows)
        table += rows
    posterior = fit(
        markings, preset="highlands", radius=paper.HIGHLANDS_RADIUS_PX, seed=seed + 1, **length
    )
    ours, theirs = counts_of(posterior, 1.0), published()
    apart = max(abs(ours[f"≥ {m}"] / theirs[f"≥ {m}"] - 1.0) for m in THRESHOLDS)
    return [
        *table,
        {"run": "preset, in pixels", **ours, "off the paper's by at most, %": 100.0 * apart},
        theirs,
    ]


def main(arguments: list[str] | None = None) -> None:
    """Run everything, print the table and keep it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--data", type=Path, help="the R14 file; without it, a stand-in")
    parser.add_argument("--out", type=Path, required=True, help="folder for scaling.json")
    parser.add_argument("--chains", type=int, default=4)
    parser.add_argument("--scans", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--workers", type=int, help="threads; one per core if left out")
    parser.add_argument("--size", type=float, default=1.0, help="of the stand-in")
    options = parser.parse_args(arguments)
    out = prepare_out(options.out)
    data = load_highlands(options.data, scale=options.size)
    print(data.note)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DfcrpWarning)
        length = {"chains": options.chains, "scans": options.scans, "workers": options.workers}
        table = run_all(data.markings, options.seed, **length)
    settings = provenance(**length, seed=options.seed)
    content = {"data": data.note, "table": table, "provenance": settings}
    write_json(out / "scaling.json", content)
    print(markdown_table(table, 2))


if __name__ == "__main__":
    main()
