"""Build compiled code ahead of use: ``python -m dfcrp.compiled.build [--into FOLDER] [UNIT ...]``.

Without units: those of everything built in. Units are compiled side by side, each by a process of
its own, as many as there are cores: what Numba is told there does not reach a user's process.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import json
import os
import queue
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from dfcrp.processes import python

#: What a worker says when it is done with a unit, when there is no compiling at all, and when the
#: linker failed.
DONE, MISSING, NOT_LINKED = "built ", "no compiler: ", "not linked: "
#: Modules with entries of their own.
ENTRIES = (
    "dfcrp.moves.scan",
    "dfcrp.priors.tail",
    "dfcrp.summaries.kernels.partitions",
    "dfcrp.summaries.kernels.tables",
    "dfcrp.summaries.kernels.point_search",
    "dfcrp.summaries.kernels.division",
    "dfcrp.moves.paper",
    "dfcrp.priors.exact.seating",
    "dfcrp.priors.detection.kernel",
    "dfcrp.priors.detection.summaries",
    "dfcrp.priors.opinions",
    "dfcrp.likelihoods.integrated",
    "dfcrp.likelihoods.record.levels",
    "dfcrp.baselines.collapsed",
)
#: Likelihoods and priors, the most used first.
TABLES = (
    "likelihood:dfcrp.likelihoods.circle.plane:CircleHyper",
    "prior:dfcrp.priors.arrivals.kernel:Arrivals",
    "prior:dfcrp.priors.detection.kernel:Detection",
    "prior:dfcrp.priors.attraction.kernel:Attraction",
    "likelihood:dfcrp.likelihoods.normal.kernel:NormalHyper",
    "likelihood:dfcrp.likelihoods.normal.covariance:CovarianceHyper",
    "likelihood:dfcrp.likelihoods.circle.sphere:SphereHyper",
    "likelihood:dfcrp.likelihoods.record.kernel:RecordHyper",
)
#: What circles under the DFCRP need, from a file to the report.
USUAL = (
    "entries:dfcrp.moves.scan",
    "table:likelihood:dfcrp.likelihoods.circle.plane:CircleHyper",
    "entries:dfcrp.summaries.kernels.point_search",
    "table:prior:dfcrp.priors.arrivals.kernel:Arrivals",
    "entries:dfcrp.summaries.kernels.partitions",
    "entries:dfcrp.summaries.kernels.tables",
    "entries:dfcrp.summaries.kernels.division",
    "entries:dfcrp.priors.tail",
)


def everything() -> list[str]:
    """The names of all units that are built in."""
    return [
        *USUAL,
        *(name for name in (f"table:{name}" for name in TABLES) if name not in USUAL),
        *(name for name in (f"entries:{name}" for name in ENTRIES) if name not in USUAL),
    ]


#: A unit that is built, and why it is not linked although there is a linker.
Built = tuple[str, str | None]


def build(names: Sequence[str], into: Path, *, jobs: int | None = None) -> Iterator[Built]:
    """Build units by processes of their own; gives the name of each as it is done."""
    from dfcrp.compiled.library import numba_missing

    if importlib.util.find_spec("numba") is None:
        raise numba_missing("it is not installed")
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    waiting: queue.SimpleQueue[str] = queue.SimpleQueue()
    done: queue.SimpleQueue[Built | BaseException] = queue.SimpleQueue()
    for name in names:
        waiting.put(name)
    for _ in range(min(jobs or cores or 1, len(names))):
        threading.Thread(target=_work, args=(waiting, done, into), daemon=True).start()
    for _ in names:
        found = done.get()
        if isinstance(found, BaseException):
            raise found
        yield found


def _work(
    waiting: queue.SimpleQueue[str], done: queue.SimpleQueue[Built | BaseException], into: Path
) -> None:
    """Have units compiled by one process until none is left; it is told their names one by one."""
    command, environment = python("-m", "dfcrp.compiled.build", "--worker", "--into", str(into))
    process = subprocess.Popen(
        command,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        env=environment,
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process:
        while not waiting.empty():
            try:
                name = waiting.get_nowait()
            except queue.Empty:
                break
            process.stdin.write(f"{name}\n")
            process.stdin.flush()
            found = _result_of(name, process.stdout)
            done.put(found)
            if isinstance(found, BaseException):
                return
        process.stdin.close()


def _result_of(name: str, lines: Iterable[str]) -> Built | BaseException:
    """What a worker says of a unit."""
    from dfcrp.compiled.library import KernelsMissing

    said, trouble = [], None
    for line in lines:
        if line == f"{DONE}{name}\n":
            return name, trouble
        if line.startswith(NOT_LINKED):
            trouble = json.loads(line.removeprefix(NOT_LINKED))
        elif line.startswith(MISSING):
            return KernelsMissing(json.loads(line.removeprefix(MISSING)))
        else:
            said.append(line)
    return RuntimeError(f"{name} could not be compiled:\n{''.join(said)}")


def _work_here(into: Path) -> None:
    """Compile the units whose names come in, one after the other."""
    # All contracts must be known before Numba is told.
    for module in ("dfcrp.likelihoods.contract", "dfcrp.priors.contract"):
        importlib.import_module(module)
    from dfcrp.compiled import library

    try:
        from dfcrp.compiled import backend
    except ImportError as error:
        print(f"{MISSING}{json.dumps(str(library.numba_missing(error)))}", flush=True)
        return
    for line in sys.stdin:
        trouble = backend.write_unit(library.unit_named(line.strip()), into)
        if trouble is not None:
            print(f"{NOT_LINKED}{json.dumps(trouble)}", flush=True)
        print(f"{DONE}{line.strip()}", flush=True)


def _list_package(folder: Path) -> None:
    """Say which units there are, and what they were made from, as ``compiled.library`` reads it."""
    from dfcrp.compiled.library import UNITS, sources_digest, unit_named

    for lock in folder.glob("*.lock"):
        lock.unlink()
    listing = {"": sources_digest(), **{name: unit_named(name).stem for name in everything()}}
    (folder / UNITS).write_text(json.dumps(listing, indent=1))


def main(arguments: Sequence[str] | None = None) -> None:
    """Build what is asked for."""
    from dfcrp.compiled.library import cache_directory, is_built, not_linked, unit_named

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("units", nargs="*", help="names of units; without: all")
    parser.add_argument("--into", type=Path, default=None, help="folder; without: the cache")
    parser.add_argument("--usual", action="store_true", help="what circles under the DFCRP need")
    parser.add_argument("--package", type=Path, help="all, as a wheel carries them, into a folder")
    parser.add_argument("--worker", action="store_true", help="take names from standard input")
    given = parser.parse_args(arguments)
    into = given.package or given.into or cache_directory()
    if given.worker:
        _work_here(into)
        return
    names = given.units or (USUAL if given.usual else everything())
    if given.into is None and given.package is None:
        names = [name for name in names if not is_built(unit_named(name))]
    begun = time.monotonic()
    told = set()
    for done, (_, trouble) in enumerate(build(names, into), 1):
        if trouble is not None and (words := not_linked(trouble)) not in told:
            told.add(words)
            print(f"  {words}", file=sys.stderr, flush=True)
        seconds = time.monotonic() - begun
        print(f"  compiled {done} of {len(names)}, {seconds:.0f} s", file=sys.stderr, flush=True)
    if given.package is not None:
        _list_package(into)


if __name__ == "__main__":
    main()
