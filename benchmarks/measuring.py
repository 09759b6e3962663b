"""What every benchmark measures with: times in turns, their ratios, memory, chains to be timed.

Times are medians of single calls, after warming up; memory is what the process has resident.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.items.items import Items
from dfcrp.moves.revisit import NOTE_UNTIL
from dfcrp.sampling.problem import Problem
from dfcrp.settings.config import make_config
from studies.problems import make_problem

#: Scans before the clock starts: the list of markings to be revisited is made by then.
WARM_UP = NOTE_UNTIL + 50

Timing = tuple[float, tuple[float, float]]
"""Median seconds, and the middle half."""


def timed(calls: Sequence[Callable[[], Any]], repeats: int) -> list[Timing]:
    """Median seconds of each call, and the middle half.

    The calls take turns, so that a machine that slows down slows all of them.
    """
    seconds = np.empty((repeats, len(calls)))
    for repeat in range(repeats):
        for column, call in enumerate(calls):
            start = time.perf_counter()
            call()
            seconds[repeat, column] = time.perf_counter() - start
    low, middle, high = np.quantile(seconds, [0.25, 0.5, 0.75], axis=0)
    return [(float(m), (float(lo), float(hi))) for m, lo, hi in zip(middle, low, high, strict=True)]


def ratio_of(above: Timing, below: Timing, better: str) -> dict[str, Any]:
    """A ratio of two times; its spread is what their middle halves allow."""
    return {
        "value": above[0] / below[0],
        "spread": [above[1][0] / below[1][1], above[1][1] / below[1][0]],
        "better": better,
    }


def problem_for(markings: Items, **run: Any) -> Problem:
    """The problem a fit with these settings would sample."""
    return make_problem(markings.features, markings.families, make_config({"run": run}))


def resident_bytes() -> int | None:
    """Memory of this process; None where the system does not tell."""
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    except (OSError, ValueError):
        return None
    import resource

    return pages * resource.getpagesize()


def peak_bytes() -> int | None:
    """The most memory that this process ever had."""
    if sys.platform == "win32":
        return None
    import resource

    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(peak) * (1 if sys.platform == "darwin" else 1024)
