"""One run of ``./run bench answers``, by whatever version of dfcrp is on the path.

A run ends by itself when the first part of its verdict is good, the one on the answers; it is then
made longer, a half more at a time, until the second part is good as well, the one on the
parameters behind them. Only what a user can call is called, and nothing else of this repository is
imported, so that a version of any age can be measured in a process of its own:

    PYTHONPATH=OTHER/src python benchmarks/one_run.py FOLDER SEED MAX_SCANS MAX_SECONDS

with a folder that ``Job.write`` has filled. It prints what was found as JSON.
"""

from __future__ import annotations

import json
import math
import os
import pickle
import sys
import tempfile
import threading
import time
import warnings
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import dfcrp
from dfcrp.baselines.scores import adjusted_rand

#: A run is made longer by this factor.
LONGER = 1.5
#: Scans of a first run, which has everything compiled; where the truth is known its partition is
#: compared with it.
EARLY_SCANS = 100
#: A limit of processor seconds is looked at this often.
SECONDS_PER_LOOK = 0.2
#: Where a folder has a job, and markings if it is on markings.
JOB, MARKINGS = "job.pickle", "markings.csv"


@dataclass(frozen=True)
class Job:
    """What is fitted, and how."""

    items: Any
    settings: dict[str, Any] = field(default_factory=dict)
    #: Which object each item is of, where that is known.
    truth: NDArray[np.int64] | None = None

    def write(self, folder: Path) -> None:
        """As any version can read it: markings as a table, all else as plain arrays and frames."""
        items = self.items
        if hasattr(items, "diameter"):
            rows = zip(items.x, items.y, items.diameter, items.families, strict=True)
            lines = [f"{x!r},{y!r},{d!r},{items.experts[who]}" for x, y, d, who in _plain(rows)]
            text = "\n".join(["x,y,diameter,expert", *lines, ""])
            (folder / MARKINGS).write_text(text, encoding="utf-8")
            items = None
        (folder / JOB).write_bytes(pickle.dumps((items, self.settings, self.truth)))

    @classmethod
    def read(cls, folder: Path) -> Job:
        """What ``write`` has written, by the version on the path."""
        items, settings, truth = pickle.loads((folder / JOB).read_bytes())
        if items is None:
            items = dfcrp.read_markings(folder / MARKINGS)
        return cls(items, settings, truth)


def _plain(rows: Any) -> Any:
    """Numbers of Python's own, whose text is all their digits."""
    return ([value.item() for value in row] for row in rows)


def measure(
    job: Job, seed: int, most_scans: int, most_seconds: float | None = None
) -> dict[str, Any]:
    """One run, until both parts of the verdict are good or it is too long."""
    found: dict[str, Any] = {"seed": seed}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        given = {"seed": seed, "workers": 1, **job.settings}
        short = dfcrp.fit(job.items, scans=EARLY_SCANS, **given)
        if job.truth is not None:
            found["ari_early"] = adjusted_rand(short.point_partition().labels, job.truth)
        out, start = Path(folder) / "run", time.process_time()
        found |= {"answers_seconds": None, "both_seconds": None}
        if most_seconds is not None:
            end_after(most_seconds, found)
        posterior = dfcrp.fit(job.items, out=out, max_scans=most_scans, **given)
        while True:
            verdict = posterior.convergence
            spent = time.process_time() - start
            found |= _of_run(posterior, spent)
            if verdict.ok and found["answers_seconds"] is None:
                found["answers_seconds"] = spent
            if verdict.ok and both_good(verdict):
                found["both_seconds"] = spent
                break
            scans = min(most_scans, math.ceil(LONGER * posterior.record.scans))
            if scans <= posterior.record.scans:
                break
            posterior = dfcrp.resume(out, scans=scans, workers=1)
    if job.truth is not None:
        found["ari"] = adjusted_rand(posterior.point_partition().labels, job.truth)
    return found


def _of_run(posterior: Any, spent: float) -> dict[str, Any]:
    """How a run stands at a look."""
    verdict = posterior.convergence
    return {
        "scans": posterior.record.scans,
        "processor_seconds": spent,
        "max_rhat": max(d.rhat for d in judged(verdict)),
        "answers_per_second": min(d.ess for d in verdict.diagnostics) / spent,
        "both_per_second": min(d.ess for d in judged(verdict)) / spent,
        "slowest": min(judged(verdict), key=lambda d: d.ess).name,
    }


def end_after(seconds: float, found: dict[str, Any]) -> None:
    """End the process after so many more processor seconds, with what was found until then.

    A thread looks at the clock: a signal would wait for the compiled code to return.
    """
    last = time.process_time() + seconds

    def watch() -> None:
        while time.process_time() < last:
            time.sleep(SECONDS_PER_LOOK)
        json.dump({**found, "stopped_after": seconds}, sys.stdout)
        sys.stdout.flush()
        os._exit(0)

    threading.Thread(target=watch, daemon=True).start()


def judged(verdict: Any) -> list[Any]:
    """The diagnostics of both parts; one version had one part only."""
    return [*verdict.diagnostics, *getattr(verdict, "parameters", ())]


def both_good(verdict: Any) -> bool:
    """Whether the second part is good, where there is one."""
    return bool(getattr(verdict, "parameters_ok", True))


if __name__ == "__main__":
    given = sys.argv[1:]
    print(
        json.dumps(measure(Job.read(Path(given[0])), int(given[1]), int(given[2]), float(given[3])))
    )
