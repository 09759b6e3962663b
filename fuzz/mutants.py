"""Which small mistakes in the kernels do the tests notice?

    ./run python -m fuzz.mutants --out mutants                    # all of them: an hour or two
    ./run python -m fuzz.mutants --out mutants --only moves.pair --most 50

Kernels run as plain Python here. For each mistake (``fuzz.mutations``) a process is forked, the
mistake is made in it, and the tests that come by its line are run until one fails, those first
that promise most for their time (``fuzz.trials``). A mutant is *killed* if a test fails, *out of
time* if one takes five times as long as without the mistake, and *survives* if all pass. Survivors
are missing tests, or make no difference: ``fuzz/survivors.toml`` says why of those that were
looked at. Where the mistake could not be made a mutant is *not run*, which says nothing.

Mutants come in random order, so that the first so many are a fair sample. What is done is in
``mutants.jsonl`` of the folder, and is not done again by the next call unless the function has
changed; ``--again`` tries those survivors again that nobody explained. ``mutants.md`` sums up.
"""

from __future__ import annotations

import argparse
import ast
import hashlib
import importlib
import json
import math
import os
import pickle
import random
import sys
import tomllib
from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

from fuzz.mutations import Mutant, kernels_of, mutants_of
from fuzz.trials import KILLED, NOT_RUN, OUT_OF_TIME, SURVIVED, Floor, Test

ROOT = Path(__file__).resolve().parents[1]
#: The package that is imported, which need not lie beside this file.
SOURCE = Path(str(find_spec("dfcrp").origin)).parent  # type: ignore[union-attr]
#: Packages whose kernels are tried.
PACKAGES = ("compiled", "likelihoods", "moves", "priors")
#: Code that runs while kernels are compiled, which is not done here.
ASIDE = ("compiled.backend",)
#: Tests of kernels that are quick without a compiler.
TESTS = (
    "tests/interpreted",
    "tests/exact",
    "tests/unit/test_compiled.py",
    "tests/unit/test_record_fields.py",
)
#: Their work is done by processes of their own, where no mistake is made.
ELSEWHERE = (
    "tests/exact/test_interpreted.py",
    "tests/exact/test_kernels_in_parts.py",
    "tests/exact/test_likelihoods_enumerated.py",
)
SURVIVORS = Path(__file__).with_name("survivors.toml")
#: Set before anything is loaded: no compiler, and no threads, which a fork would lose.
ENVIRONMENT = {
    "NUMBA_DISABLE_JIT": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "OMP_NUM_THREADS": "1",
    "JE_ARROW_MALLOC_CONF": "background_thread:false",
    "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
    "PYTHONHASHSEED": "0",
}


def modules_with_kernels() -> list[str]:
    """Every module of these packages that has compiled code, without ``dfcrp.``"""
    found = []
    for package in PACKAGES:
        for path in sorted((SOURCE / package).rglob("*.py")):
            name = ".".join(path.relative_to(SOURCE).with_suffix("").parts)
            if name not in ASIDE and kernels_of(path.read_text(encoding="utf-8")):
                found.append(name)
    return found


class Record:
    """What is known of every mutant so far, in a file that grows by lines."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "mutants.jsonl"
        self.rows: dict[str, dict[str, Any]] = {}
        self.read()

    def read(self) -> None:
        """What is in the file now."""
        lines = self.path.read_text(encoding="utf-8").splitlines() if self.path.exists() else []
        for line in lines:
            row = json.loads(line)
            self.rows[row["mutant"]] = row

    def add(self, row: dict[str, Any]) -> None:
        """Keep one more; several processes may do so at the same time."""
        self.rows[row["mutant"]] = row
        with self.path.open("ab", buffering=0) as file:
            file.write((json.dumps(row, ensure_ascii=False) + "\n").encode())

    def wants(self, mutant: Mutant, code: str, *, again: bool) -> bool:
        """Whether to try it: not if its end is known; a survivor if asked for."""
        row = self.rows.get(mutant.name)
        if row is None or row["code"] != code:
            return True
        return again and row["outcome"] not in (KILLED, OUT_OF_TIME)

    def unexplained(
        self, mutants: Iterable[Mutant], codes: dict[str, str], path: Path = SURVIVORS
    ) -> set[str]:
        """Names of those whose end is open; of survivors that read alike all or none, as it is not
        known which of them the explanations are of."""
        known, found = explained(path), set()
        alike: dict[tuple[str, str, str], set[str]] = {}
        for one in mutants:
            row = self.rows.get(one.name)
            if row is None or row["code"] != codes[one.function]:
                continue
            if row["outcome"] == SURVIVED:
                key = (f"{row['module']}.{one.function}", one.where, one.change)
                alike.setdefault(key, set()).add(one.name)
            elif row["outcome"] == NOT_RUN:
                found.add(one.name)
        for key, names in alike.items():
            if len(names) > len(known.get(key, ())):
                found |= names
        return found


# Tests and mutants --------------------------------------------------------------------------------


def look_at_tests(floor: Floor, folder: Path) -> None:
    """Which lines every test runs, as far as it is not known from an earlier call.

    What is known holds until the test, what it shares with others, or a module whose kernels it
    runs is changed.
    """
    path, shared = folder / "tests.pickle", _digest(_shared_by_tests())
    codes = {name: _digest([Path(str(one.__file__))]) for name, one in floor.modules.items()}
    known: dict[str, tuple[str, dict[str, str], Test | None]] = {}
    if path.exists():
        known = pickle.loads(path.read_bytes())
    digests: dict[Path, str] = {}
    for name, item in floor.items.items():
        digest = shared + digests.setdefault(item.path, _digest([item.path]))
        if name not in known or known[name][0] != digest or known[name][1].items() - codes.items():
            found = floor.look_at(name)
            known[name] = digest, {one: codes[one] for one in found.lines} if found else {}, found
            path.write_bytes(pickle.dumps(known))
        found = known[name][2]
        if found is not None and found.lines:
            floor.tests[name] = found
    unfit = [name for name in floor.items if known[name][2] is None]
    print(f"{len(floor.tests)} tests of kernels; {len(unfit)} fail so or take too long", flush=True)
    (folder / "unfit.txt").write_text("\n".join(unfit) + "\n", encoding="utf-8")


def _shared_by_tests() -> list[Path]:
    tests = ROOT / "tests"
    return [tests / "conftest.py", *(tests / "reference").glob("*.py")]


def _digest(paths: Iterable[Path]) -> str:
    whole = hashlib.sha256()
    for path in sorted(paths):
        whole.update(path.read_bytes())
    return whole.hexdigest()


def try_module(floor: Floor, name: str, record: Record, asked: argparse.Namespace) -> None:
    """Try the mutants of one module, as many as wanted, in so many processes."""
    module = floor.modules[name]
    mutants, codes = mutants_of(module), codes_of(module)
    of, unexplained = len(mutants), record.unexplained(mutants, codes)
    random.Random(asked.seed).shuffle(mutants)
    wanted = []
    for one in mutants[: asked.most]:
        again = asked.again and one.name in unexplained
        if record.wants(one, codes[one.function], again=again):
            wanted.append(one)
    if wanted:
        print(f"{name}: {len(wanted)} of {of} mutants", flush=True)
    lanes = []
    for lane in range(asked.workers if wanted else 0):
        child = os.fork()
        if child == 0:
            status = 70
            try:
                for mutant in wanted[lane :: asked.workers]:
                    found = floor.attempt(mutant, asked.budget)
                    row = {"module": name, "of": of, "code": codes[mutant.function]}
                    record.add({**_row(mutant), **row, **vars(found)})
                    if found.outcome in (SURVIVED, NOT_RUN):
                        print(f"{found.outcome}: {mutant.line} {mutant.name}", flush=True)
                status = 0
            finally:
                os._exit(status)
        lanes.append(child)
    if any(os.waitpid(child, 0)[1] for child in lanes):
        raise SystemExit(f"{name}: a process ended early")
    record.read()


def _row(mutant: Mutant) -> dict[str, Any]:
    kept = {name: getattr(mutant, name) for name in ("function", "line", "where", "change")}
    return {"mutant": mutant.name, **kept}


def codes_of(module: ModuleType) -> dict[str, str]:
    """By function, what changes as soon as its code does."""
    source = Path(str(module.__file__)).read_text(encoding="utf-8")
    return {
        one.name: hashlib.sha256(ast.unparse(one).encode()).hexdigest()[:12]
        for one in kernels_of(source)
    }


# What came of it ----------------------------------------------------------------------------------


def explained(path: Path = SURVIVORS) -> dict[tuple[str, str, str], list[str]]:
    """By function, line and change: reasons, one for each mutant that is said to be equivalent."""
    found: dict[tuple[str, str, str], list[str]] = {}
    for entry in tomllib.loads(path.read_text(encoding="utf-8")).get("equivalent", []):
        for mutant in entry["mutants"]:
            where, _, change = mutant.rpartition(" | ")
            found.setdefault((entry["function"], where, change), []).append(entry["why"])
    return found


def stale(path: Path = SURVIVORS) -> list[str]:
    """Explanations of mutants that are not there (any more)."""
    there: Counter[tuple[str, str, str]] = Counter()
    functions = {key[0] for key in explained(path)}
    for name in modules_with_kernels():
        if any(function.startswith(f"{name}.") for function in functions):
            for one in mutants_of(importlib.import_module(f"dfcrp.{name}")):
                there[f"{name}.{one.function}", one.where, one.change] += 1
    return [
        f"{function}: {where} | {change}"
        for (function, where, change), whys in explained(path).items()
        if len(whys) > there[function, where, change]
    ]


COLUMNS = (
    "module",
    "mutants",
    "tried",
    "killed",
    "out of time",
    "equivalent",
    "not run",
    "survived",
)


def summary(rows: Iterable[dict[str, Any]], path: Path = SURVIVORS) -> str:
    """Counts by module, and every mutant whose end is open, as Markdown."""
    rows, known = list(rows), explained(path)
    lines = [f"| {' | '.join(COLUMNS)} |", "|---|" + "---:|" * (len(COLUMNS) - 1)]
    left, excused = [], Counter[tuple[str, str, str]]()
    total = [0] * (len(COLUMNS) - 1)
    for name in sorted({row["module"] for row in rows}):
        here = [row for row in rows if row["module"] == name]
        count = Counter(row["outcome"] for row in here)
        equivalent = 0
        for row in here:
            key = (f"{name}.{row['function']}", row["where"], row["change"])
            if row["outcome"] == SURVIVED and excused[key] < len(known.get(key, ())):
                excused[key] += 1
                equivalent += 1
            elif row["outcome"] in (SURVIVED, NOT_RUN):
                left.append(f"* {row['outcome']}: {row['line']} `{row['mutant']}`")
        numbers = [here[0]["of"], len(here), count[KILLED], count[OUT_OF_TIME], equivalent]
        numbers += [count[NOT_RUN], count[SURVIVED] - equivalent]
        total = [one + more for one, more in zip(total, numbers, strict=True)]
        lines.append(f"| `{name}` | " + " | ".join(f"{one:,}" for one in numbers) + " |")
    lines.append("| all | " + " | ".join(f"{one:,}" for one in total) + " |")
    lines += ["", share(*total), "", *left]
    return "\n".join(lines) + "\n"


def share(of: int, tried: int, killed: int, late: int, equivalent: int, *_: int) -> str:
    """How many are killed, in words; of a sample, with an interval (Wilson, 95 %)."""
    noticed = killed + late
    if not tried:
        return "Nothing was tried."
    part, z = noticed / tried, 1.96
    text = f"{100 * part:.1f} % of {tried:,} are killed"
    if tried < of:
        middle = (part + z * z / (2 * tried)) / (1 + z * z / tried)
        width = math.sqrt(part * (1 - part) / tried + (z / tried) ** 2 / 4)
        width *= z / (1 + z * z / tried)
        text += f" ({100 * (middle - width):.1f} to {100 * (middle + width):.1f} % of {of:,})"
    rest = max(tried - equivalent, 1)
    return f"{text}; without equivalent ones {100 * noticed / rest:.1f} %."


# The command --------------------------------------------------------------------------------------


def parse() -> argparse.Namespace:
    """What was asked for."""
    known = modules_with_kernels()
    parser = argparse.ArgumentParser(prog="fuzz.mutants", description=__doc__)
    parser.add_argument("--out", type=Path, required=True, help="folder, new or of an earlier call")
    parser.add_argument("--only", nargs="+", choices=known, default=known, help="modules")
    parser.add_argument("--most", type=int, default=10**9, help="mutants of each module")
    parser.add_argument("--seed", type=int, default=1, help="of their order")
    parser.add_argument("--again", action="store_true", help="try survivors without a reason again")
    parser.add_argument("--workers", type=int, default=1, help="mutants at the same time")
    parser.add_argument("--longest", type=float, default=4.0, help="seconds of a test to be used")
    parser.add_argument("--budget", type=float, default=6.0, help="seconds of tests of a mutant")
    return parser.parse_args()


def main() -> int:
    """The command: 0 if every mutant that was tried is killed or explained."""
    asked = parse()
    if any(os.environ.get(name) != value for name, value in ENVIRONMENT.items()):
        os.environ.update(ENVIRONMENT)
        os.execv(sys.executable, [sys.executable, "-m", "fuzz.mutants", *sys.argv[1:]])
    folder = asked.out.resolve()
    record = Record(folder)
    os.chdir(ROOT)
    import pytest

    def act(floor: Floor) -> None:
        look_at_tests(floor, folder)
        for name in asked.only:
            try_module(floor, name, record, asked)

    modules = {name: importlib.import_module(f"dfcrp.{name}") for name in modules_with_kernels()}
    options = ["-q", "-s", "--no-header", "--assert=plain", "-p", "no:cacheprovider"]
    options += ["-o", "faulthandler_timeout=0", *(f"--ignore={path}" for path in ELSEWHERE)]
    status = pytest.main([*options, *TESTS], plugins=[Floor(act, asked.longest, modules)])
    if status not in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
        raise SystemExit(f"the tests could not be run: {status!r}")
    text = summary(_valid(record, modules))
    text += "".join(f"* explained, but not there: `{one}`\n" for one in stale())
    (folder / "mutants.md").write_text(text, encoding="utf-8")
    print(text)
    return int(any(line.startswith("*") for line in text.splitlines()))


def _valid(record: Record, modules: dict[str, ModuleType]) -> list[dict[str, Any]]:
    """What is known of the code as it is now."""
    found = []
    for module in modules.values():
        codes, mutants = codes_of(module), mutants_of(module)
        for one in mutants:
            row = record.rows.get(one.name)
            if row is not None and row["code"] == codes[one.function]:
                found.append({**row, "of": len(mutants), "where": one.where, "line": one.line})
    return found


if __name__ == "__main__":
    sys.exit(main())
