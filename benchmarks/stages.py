"""What every stage of a large run costs: processor seconds and memory, stage by stage.

    ./run python -m benchmarks.large_crowd --marks 1000000 --out crowd
    ./run python -m benchmarks.stages crowd
    ./run python -m benchmarks.stages crowd --stage tables

Each of `read`, `sample`, `tables` and `page` is a process of its own, which takes up what the one
before has left in the folder. Memory is the most that the process had while a stage ran.
"""

from __future__ import annotations

import argparse
import json
import pickle
import resource
import subprocess
import sys
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.large_crowd import LOOKS, MARKINGS

#: What one process does, in this order.
STAGES = ("read", "sample", "tables", "page")
ITEMS, RUN, COSTS = "items.pickle", "run", "costs.json"
#: Scans of a run whose tables are measured, of two chains, a third of them burn-in; and of a trial.
SCANS, TIMED_SCANS = 75, 4


class Costs:
    """Processor seconds and peak memory by name, printed as they are found."""

    def __init__(self) -> None:
        self.found: dict[str, dict[str, float]] = {}

    @contextmanager
    def of(self, name: str, *, over: int = 1) -> Iterator[None]:
        """Measure what is done inside, ``over`` so many times."""
        forget_peak()
        begun = processor_seconds()
        yield
        one = {
            "seconds": round((processor_seconds() - begun) / over, 4),
            "peak_gb": round(peak_bytes() / 1e9, 3),
        }
        self.found[name] = one
        print(json.dumps({name: one}), flush=True)


def processor_seconds() -> float:
    """Of all threads of this process."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def forget_peak() -> None:
    """Let the peak begin at what is held now, where the system can do that."""
    try:
        Path("/proc/self/clear_refs").write_text("5", encoding="ascii")
    except OSError:
        return


def peak_bytes() -> int:
    """The most memory since the peak was forgotten."""
    try:
        lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
        return next(int(line.split()[1]) << 10 for line in lines if line.startswith("VmHWM"))
    except (OSError, StopIteration):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10


def read(folder: Path, costs: Costs, prior: str, scans: int) -> None:
    """Files to items."""
    from dfcrp.io import read_items
    from dfcrp.io.looks import read_looked

    with (folder / MARKINGS).open(encoding="utf-8") as stream:
        kind = "circles" if "diameter" in stream.readline() else "points"
    with costs.of("read markings"):
        read_items(folder / MARKINGS, kind)
    with costs.of("read looks"):
        read_looked(folder / LOOKS)
    with costs.of("read both"):
        items = read_items(folder / MARKINGS, kind, looked=folder / LOOKS)
    with costs.of("image names, experts, looks, zones"):
        _ = items.images, items.looks, items.coverage, items.rows_by_image()
    with (folder / ITEMS).open("wb") as stream:
        pickle.dump(items, stream)


def sample(folder: Path, costs: Costs, prior: str, scans: int) -> None:
    """Items to a run folder with draws and no tables."""
    import shutil

    from dfcrp.fitting.api import complete_config, resolve_for, tell_first_look
    from dfcrp.fitting.run import Run
    from dfcrp.items.items import Items
    from dfcrp.posterior.saving import finish
    from dfcrp.runs.folder import make_folder, prepare_folder
    from dfcrp.runs.lock import locked, taken_over
    from dfcrp.runs.parts import Watch
    from dfcrp.runs.store import DrawStore
    from dfcrp.sampling.chain import Chain, have_compiled
    from dfcrp.sampling.problem import problem_of
    from dfcrp.settings.config import read_settings

    items: Items = pickle.loads((folder / ITEMS).read_bytes())
    given = {"prior": prior, "images": "shared", "chains": 2, "scans": scans}
    given["burn_in"] = scans // 3
    asked = read_settings(None, {"likelihood": items.kind, **given})
    with costs.of("settings from items"):
        config = complete_config(items, resolve_for(items, asked))
    with costs.of("first look"):
        tell_first_look(items, config)
    with costs.of("problem"):
        problem = problem_of(items, config)
    have_compiled(problem, "exact")
    with costs.of("chain"):
        chain = Chain(problem, np.random.SeedSequence(1), "exact")
    with costs.of("first scan, with where the chain begins"):
        chain.run(1, 1)
    with costs.of("scan", over=TIMED_SCANS):
        block = chain.run(TIMED_SCANS, 1)
    run = folder / RUN
    shutil.rmtree(run, ignore_errors=True)
    make_folder(run)
    with locked(run), taken_over(run) as claim:
        store = DrawStore.create(run, claim=claim, chains=2)
        with costs.of("folder with items"):
            prepare_folder(run, items, config)
        with costs.of("save"):
            writer = store.writer(0, 0, problem.n, problem.columns)
            writer.append(block)
            writer.save(chain, 0.0)
    del chain, block, writer
    shutil.rmtree(run)
    make_folder(run)
    with locked(run), taken_over(run) as claim:
        store = DrawStore.create(run, claim=claim, chains=2)
        prepare_folder(run, items, config)
        with costs.of(f"two chains of {scans} scans"):
            posterior = Run(items, config, store, Watch(), problem=problem).run()
        finish(posterior, run, tables=False)


def tables(folder: Path, costs: Costs, prior: str, scans: int) -> None:
    """A run folder to its tables."""
    import dfcrp
    from dfcrp.posterior.saving import write_results

    with costs.of("load"):
        posterior = dfcrp.load(folder / RUN)
    for name in ("pairs", "table_counts", "convergence", "findings", "detection", "categories"):
        with costs.of(name):
            getattr(posterior, name)
    for name in ("image_table", "catalogue", "members", "experts", "suspected_doubles", "summary"):
        with costs.of(name):
            getattr(posterior, name)()
    with costs.of("write tables"):
        write_results(posterior, folder / RUN)


def page(folder: Path, costs: Costs, prior: str, scans: int) -> None:
    """A run folder with tables to its report."""
    import dfcrp
    from dfcrp.report.overview import write_overview

    posterior = dfcrp.load(folder / RUN)
    _ = posterior.findings, posterior.detection, posterior.summary()
    with costs.of("overview without pages of images"):
        write_overview(posterior, folder / RUN, pages=0)
    size = (folder / RUN / "report.html").stat().st_size
    costs.found["report.html"] = {"megabytes": size / 1e6}
    print(json.dumps({"report.html": costs.found["report.html"]}))


def measure(folder: Path, stage: str, prior: str, scans: int) -> dict[str, Any]:
    """One stage, in this process; its costs are added to those in the folder."""
    costs = Costs()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        {"read": read, "sample": sample, "tables": tables, "page": page}[stage](
            folder, costs, prior, scans
        )
    file = folder / COSTS
    known = json.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
    file.write_text(json.dumps(known | costs.found, indent=1) + "\n", encoding="utf-8")
    return costs.found


def main() -> int:
    """Measure one stage, or all of them."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--stage", choices=STAGES)
    parser.add_argument("--prior", default="detection")
    parser.add_argument("--scans", type=int, default=SCANS)
    options = parser.parse_args()
    if options.stage:
        measure(options.folder, options.stage, options.prior, options.scans)
        return 0
    for stage in STAGES:
        command = [sys.executable, "-m", "benchmarks.stages", str(options.folder)]
        given = ["--stage", stage, "--prior", options.prior, "--scans", str(options.scans)]
        subprocess.run([*command, *given], check=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
