"""Which small mistakes in the kernels do the exact tests notice?

    ./run python -m fuzz.mutants --out mutants                    # all of it: hours
    ./run python -m fuzz.mutants --out mutants --only moves.pair --most 50

Kernels run as plain Python here. For each mistake (``fuzz.mutations``) a process is forked, the
mistake is made in it, and the tests that are about the module are run until one fails. A mutant
is *killed* if a test fails, or takes ten times the processor time of the tests without it, and
*survives* if all pass. Survivors are missing tests, or make no difference: ``fuzz/survivors.toml``
says why of those that were looked at. Where the tests could not be run (pytest found an error
before the first, the mistake could not be made, memory ran out) a mutant is *not run*, which says
nothing about the tests.

Mutants come in random order, so that the first so many are a fair sample. What is done is in
``mutants.jsonl`` of the folder, and is not done again by the next call; ``mutants.md`` sums up.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib
import io
import json
import os
import random
import resource
import signal
import sys
import time
import tomllib
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from fuzz.mutations import Mutant, mutants_of, plant

EXACT = "tests/exact/"
_ONE = "test_transition_matrices.py::test_update_of_one_marking"
_TWO = "test_transition_matrices.py::test_update_of_two_relatives"
_MATCH = "test_kernels_match_reference.py::"
_FEATURES = "test_transitions_with_features.py"
_BOUNDS = "test_bounds.py"
_SWEEPS = "test_sweeps.py"
#: One of the layouts of the data; likelihoods know nothing of them.
_PLAIN = "[radius None, dense tail]"
#: Tests that are about a module, the quickest first.
TESTS = {
    "moves.assignment": (
        _SWEEPS,
        _ONE,
        _BOUNDS,
        _FEATURES + "::test_pairs_that_must_share_two_clusters",
        _MATCH + "test_weights_of_a_marking" + _PLAIN,
        "test_transition_matrices.py::test_updates_of_the_paper",
    ),
    "moves.pair": (_SWEEPS, _FEATURES + "::test_pairs_that_must_share_two_clusters", _TWO),
    "priors.arrivals.kernel": (_ONE, _TWO, "test_regroup.py"),
    "priors.arrivals.tail": (_BOUNDS, _MATCH + "test_tail_sums"),
    "priors.arrivals.order": (
        _MATCH + "test_companions",
        "test_transition_matrices.py::test_order_move",
        _MATCH + "test_order_move",
        _MATCH + "test_long_products_do_not_overflow",
        _MATCH + "test_products_of_tiny_factors_do_not_vanish",
    ),
    "priors.arrivals.concentration": (_MATCH + "test_alpha_target" + _PLAIN,),
    "priors.arrivals.exchange": (
        "test_transition_matrices.py::test_exchange_of_slots",
        _MATCH + "test_exchange_gain",
        _MATCH + "test_tables_stay_in_order_of_arrival",
    ),
    "likelihoods.circle.covariance": (_MATCH + "test_covariance_targets" + _PLAIN, "test_slice.py"),
    "likelihoods.circle.kernel": (
        _MATCH + "test_densities" + _PLAIN,
        _MATCH + "test_covariance_targets" + _PLAIN,
        _MATCH + "test_mean_ratio" + _PLAIN,
        "test_bias.py",
        "test_regroup.py",
    ),
    "likelihoods.circle.proposal": (
        "test_regroup.py",
        _MATCH + "test_opening_draws_follow_their_density",
    ),
    "compiled.slice": ("test_slice.py",),
    "moves.regroup": ("test_regroup.py",),
    "priors.attraction.kernel": ("test_attraction.py",),
    "likelihoods.normal.kernel": ("test_feature_likelihoods.py",),
    "likelihoods.normal.covariance": ("test_feature_likelihoods.py",),
    "likelihoods.record.kernel": ("test_records.py",),
    "likelihoods.circle.sphere": ("test_sphere.py",),
    "likelihoods.circle.sphere_proposal": ("test_sphere.py",),
    "likelihoods.circle.tolerance": ("test_bias.py",),
    "priors.detection.kernel": (_BOUNDS, "test_detection.py"),
    "priors.detection.places": (_BOUNDS, "test_detection.py"),
}
HEAVY = ("scipy.stats", "scipy.integrate", "pandas", "hypothesis", "dfcrp.sampling.chain")
SURVIVORS = Path(__file__).with_name("survivors.toml")
#: Of the processor time that the tests take without a mistake.
PATIENCE = 10.0
LEAST_SECONDS = 30
MEMORY = 4 << 30
SURVIVED, KILLED, OUT_OF_TIME, NOT_RUN = "survived", "killed", "out of time", "not run"
#: By what pytest returns, or the signal that ended it.
OUTCOMES = {0: SURVIVED, 1: KILLED, -signal.SIGXCPU: OUT_OF_TIME, -signal.SIGKILL: OUT_OF_TIME}


def tests_of(name: str) -> list[str]:
    """The tests of a module, as pytest takes them."""
    return [EXACT + one for one in TESTS[name]]


def outcome(
    tests: Iterable[str], mutant: Mutant | None, seconds: float | None
) -> tuple[str, float]:
    """Run the tests in a process of their own; what came of it, and its processor time."""
    child = os.fork()
    if child == 0:
        code = 70
        try:
            code = _in_child(list(tests), mutant, seconds)
        finally:
            os._exit(code)
    _, status, used = os.wait4(child, 0)
    spent = used.ru_utime + used.ru_stime
    code = os.waitstatus_to_exitcode(status)
    return OUTCOMES.get(code, NOT_RUN), spent


def _in_child(tests: list[str], mutant: Mutant | None, seconds: float | None) -> int:
    import pytest

    if seconds is not None:
        limit = int(max(PATIENCE * seconds, LEAST_SECONDS)) + 1
        resource.setrlimit(resource.RLIMIT_CPU, (limit, limit + 5))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    if mutant is not None:
        plant(importlib.import_module(mutant.module), mutant)
    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said):
        options = ["-x", "-q", "--no-header", "-p", "no:cacheprovider", "--tb=no"]
        code = int(pytest.main([*options, *tests]))
    if mutant is None and code:
        sys.stderr.write(said.getvalue())
    return code


class Record:
    """What is known of every mutant so far, in a file that grows by lines."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "mutants.jsonl"
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        self.rows: dict[str, dict[str, Any]] = {}
        for line in lines:
            row = json.loads(line)
            self.rows[row["mutant"]] = row

    def add(self, row: dict[str, Any]) -> None:
        """Keep one more."""
        self.rows[row["mutant"]] = row
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row, ensure_ascii=False) + "\n")

    def knows(self, name: str) -> bool:
        """Whether its end is known; a survivor is tried again, as there may be a test by now."""
        return name in self.rows and self.rows[name]["outcome"] in (KILLED, OUT_OF_TIME)


def try_module(name: str, record: Record, most: int, seed: int, *, again: bool) -> None:
    """Try the mutants of one module, as many as wanted."""
    module, tests = importlib.import_module(f"dfcrp.{name}"), tests_of(name)
    mutants = mutants_of(module)
    random.Random(seed).shuffle(mutants)
    wanted = [
        one
        for one in mutants[:most]
        if one.name not in record.rows or (again and not record.knows(one.name))
    ]
    if not wanted:
        return
    found, seconds = outcome(tests, None, None)
    if found != SURVIVED:
        raise SystemExit(f"the tests of {name} do not pass without any mistake: {tests}")
    print(f"{name}: {len(wanted)} of {len(mutants)} mutants, {seconds:.1f} s each", flush=True)
    for mutant in wanted:
        found, spent = outcome(tests, mutant, seconds)
        record.add(
            {
                "mutant": mutant.name,
                "module": name,
                "of": len(mutants),
                "outcome": found,
                "seconds": round(spent, 1),
            }
        )
        if found in (SURVIVED, NOT_RUN):
            print(f"{found}: {mutant.name}", flush=True)


def explanations() -> dict[str, str]:
    """Why survivors make no difference, by the function and the change."""
    entries = tomllib.loads(SURVIVORS.read_text(encoding="utf-8")).get("survivor", [])
    return {f"{entry['function']} {entry['change']}": entry["why"] for entry in entries}


def summary(rows: Iterable[dict[str, Any]]) -> str:
    """Counts by module, and every mutant whose end is open, as Markdown."""
    known, rows = explanations(), list(rows)
    columns = ("module", "mutants", "tried", "killed", "equivalent", "not run", "survived")
    lines = [f"| {' | '.join(columns)} |", "|---|" + "---:|" * (len(columns) - 1)]
    left = []
    for name in sorted({row["module"] for row in rows}):
        here = [row for row in rows if row["module"] == name]
        alive = [row["mutant"] for row in here if row["outcome"] == SURVIVED]
        open_ = [one for one in alive if _key(one) not in known]
        killed = sum(row["outcome"] in (KILLED, OUT_OF_TIME) for row in here)
        unknown = [row["mutant"] for row in here if row["outcome"] == NOT_RUN]
        left += [*(f"{one}` survived" for one in open_), *(f"{one}` not run" for one in unknown)]
        excused = len(alive) - len(open_)
        numbers = (here[0]["of"], len(here), killed, excused, len(unknown), len(open_))
        lines.append(f"| `{name}` | " + " | ".join(map(str, numbers)) + " |")
    lines += ["", *(f"* `{one}" for one in left)]
    return "\n".join(lines) + "\n"


def _key(name: str) -> str:
    """Without lines and numbers, which change with the code around."""
    place, _, change = name.partition("] ")
    return f"{place.partition(':')[0].removeprefix('dfcrp.')} {change}"


def main() -> int:
    """The command: 0 if every mutant that was tried is killed or explained."""
    parser = argparse.ArgumentParser(prog="fuzz.mutants", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder, new or of an earlier call")
    parser.add_argument("--only", nargs="+", choices=TESTS, default=list(TESTS), help="modules")
    parser.add_argument("--most", type=int, default=10**9, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="of their order")
    parser.add_argument("--again", action="store_true", help="try survivors again")
    asked = parser.parse_args()
    if os.environ.get("NUMBA_DISABLE_JIT", "0") in ("", "0"):
        os.environ["NUMBA_DISABLE_JIT"] = "1"
        os.execv(sys.executable, [sys.executable, "-m", "fuzz.mutants", *sys.argv[1:]])
    os.chdir(Path(__file__).resolve().parents[1])
    os.environ["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    # What takes time is loaded once, not in every child; tests are not, as they copy code.
    for heavy in (*HEAVY, *(f"dfcrp.{name}" for name in TESTS)):
        importlib.import_module(heavy)
    record, begun = Record(asked.out.resolve()), time.monotonic()
    for name in asked.only:
        try_module(name, record, asked.most, asked.seed, again=asked.again)
    text = summary(record.rows.values())
    (record.path.parent / "mutants.md").write_text(text, encoding="utf-8")
    print(f"{text}\n{time.monotonic() - begun:.0f} s")
    return int(any(line.startswith("*") for line in text.splitlines()))


if __name__ == "__main__":
    sys.exit(main())
