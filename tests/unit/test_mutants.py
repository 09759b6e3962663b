"""The mutation test's own work: which mistakes there are, and that they are made."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any
from unittest.mock import ANY

import pytest

from dfcrp.moves import assignment
from fuzz import mutants
from fuzz.mutations import Mutant, mutants_of, plant

SOURCE = '''
def lean_kernel(function):
    return function


@lean_kernel
def total(values, least):
    """Those of at least so much, twice."""
    found = 0.0
    for position in range(len(values)):
        if values[position] >= least and not values[position] == 7.0:
            found += 2.0 * values[position]
    return max(found, -1.0) + least


def aside(x):
    return x + 1
'''


@pytest.fixture
def module(tmp_path: Path) -> ModuleType:
    path = tmp_path / "small_kernels.py"
    path.write_text(SOURCE)
    spec = importlib.util.spec_from_file_location("small_kernels", path)
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    return made


CASES = [([1.0, 3.0, 7.0], 2.0), ([2.0, 5.0], 2.0), ([0.0], 1.0), ([], 0.5), ([-9.0], -9.0)]


def answers(module: ModuleType) -> list[object]:
    found: list[object] = []
    for case in CASES:
        try:
            found.append(module.total(*case))
        except Exception as error:
            found.append(type(error).__name__)
    return found


def test_every_mistake_is_made_and_noticed(module: ModuleType) -> None:
    right, code = answers(module), module.total.__code__
    found = mutants_of(module)
    assert len({one.name for one in found}) == len(found) > 15
    for mutant in found:
        assert mutant.function == "total"
        plant(module, mutant)
        assert answers(module) != right, mutant.name
        module.total.__code__ = code
    assert answers(module) == right


def test_kinds_of_mistakes(module: ModuleType) -> None:
    changes = {one.change for one in mutants_of(module)}
    assert changes >= {
        "range(len(values)) → range(len(values) - 1)",
        "values[position] >= least → values[position] > least",
        "not values[position] == 7.0 → values[position] == 7.0",
        "found += 2.0 * values[position] → pass",
        "2.0 * values[position] → 2.0 / values[position]",
        "max(found, -1.0) → min(found, -1.0)",
        "max(found, -1.0) + least → 0.5 * max(found, -1.0) + least",
    }


def test_a_bound_with_its_first_term_halved_is_one_of_them() -> None:
    changes = [one.change for one in mutants_of(assignment) if one.function == "order_bound"]
    assert any("→ 0.5 * state.tail.total[rank] + size" in change for change in changes)


def test_every_module_with_kernels_is_tried() -> None:
    names = mutants.modules_with_kernels()
    assert {"moves.pair", "priors.arrivals.kernel", "likelihoods.record.rates"} <= set(names)
    for package in ("likelihoods", "moves", "priors"):
        for path in (mutants.SOURCE / package).rglob("*.py"):
            name = ".".join(path.relative_to(mutants.SOURCE).with_suffix("").parts)
            compiled = re.search(r"^@(\w+_)?kernel(_with_arrays)?$", path.read_text(), re.MULTILINE)
            assert (compiled is not None) == (name in names), name


def test_tests_are_there() -> None:
    for path in mutants.TESTS:
        assert (mutants.ROOT / path).exists(), path


ROW = {"module": "moves.pair", "of": 9, "seconds": 1.0, "by": "", "function": "f", "line": 2}


def row(change: str, outcome: str) -> dict[str, Any]:
    name = f"dfcrp.moves.pair.f [1.0] {change}"
    return {"mutant": name, "change": change, "where": "x = c", "outcome": outcome, **ROW}


def test_survivors_are_tried_again_and_listed(tmp_path: Path) -> None:
    record = mutants.Record(tmp_path)
    for change, outcome in (("a → b", "killed"), ("c → d", "survived"), ("c → e", "not run")):
        record.add({**row(change, outcome), "code": "1"})
    again = mutants.Record(tmp_path)
    assert again.rows == record.rows
    known = [Mutant("dfcrp.moves.pair", "f", 2, "x = c", f"{c}", 1, 0, (2, 2)) for c in
             ("a → b", "c → d", "c → e", "c → g")]  # fmt: skip
    assert [again.wants(one, "1", again=False) for one in known] == [False, False, False, True]
    assert [again.wants(one, "1", again=True) for one in known] == [False, True, True, True]
    assert all(again.wants(one, "2", again=False) for one in known)
    text = mutants.summary(again.rows.values(), Path(os.devnull))
    assert "| `moves.pair` | 9 | 3 | 1 | 0 | 0 | 1 | 1 |" in text
    assert "* survived: 2 `dfcrp.moves.pair.f [1.0] c → d`" in text
    assert "* not run: 2 `dfcrp.moves.pair.f [1.0] c → e`" in text


def test_an_explanation_excuses_one_mutant(tmp_path: Path) -> None:
    path = tmp_path / "survivors.toml"
    path.write_text(
        '[[equivalent]]\nfunction = "moves.pair.f"\nwhy = "d is c"\nmutants = ["x = c | c → d"]\n',
        encoding="utf-8",
    )
    rows = [row("c → d", "survived"), {**row("c → d", "survived"), "mutant": "another"}]
    assert "| `moves.pair` | 9 | 1 | 0 | 0 | 1 | 0 | 0 |" in mutants.summary(rows[:1], path)
    assert "| `moves.pair` | 9 | 2 | 0 | 0 | 1 | 0 | 1 |" in mutants.summary(rows, path)
    assert mutants.stale(path) == ["moves.pair.f: x = c | c → d"]
    # Of two that read alike it is not known which one is excused: both are tried again.
    record, kinds = mutants.Record(tmp_path), ("c → d", "c → e")
    two = [Mutant("dfcrp.moves.pair", "f", 2, "x = c", "c → d", at, 0, (2, 2)) for at in (1, 2)]
    third = Mutant("dfcrp.moves.pair", "f", 2, "x = c", "c → e", 1, 0, (2, 2))
    record.add({**row(kinds[0], "survived"), "code": "1"})
    assert record.unexplained([*two, third], {"f": "1"}, path) == set()
    record.add({**row(kinds[1], "survived"), "code": "1"})
    assert record.unexplained([*two, third], {"f": "1"}, path) == {third.name}
    record.add({**row(kinds[0], "survived"), "mutant": two[1].name, "code": "1"})
    assert record.unexplained(two, {"f": "1"}, path) == {one.name for one in two}
    assert record.unexplained(two, {"f": "2"}, path) == set()
    record.add({**row(kinds[0], "not run"), "code": "1"})
    assert record.unexplained(two, {"f": "1"}, path) == {two[0].name}


def test_explanations_are_of_mutants_that_are_there() -> None:
    assert mutants.stale() == []
    for whys in mutants.explained().values():
        assert all(len(why) > 20 for why in whys)


def test_a_sample_has_an_interval() -> None:
    assert mutants.share(100, 100, 90, 5, 3, 0, 2) == (
        "95.0 % of 100 are killed; without equivalent ones 97.9 %."
    )
    assert "95.0 % of 100 are killed (88.8 to 97.8 % of 900);" in mutants.share(900, 100, 90, 5, 3)
    assert mutants.share(5, 0, 0, 0, 0) == "Nothing was tried."


KERNELS = """
def lean_kernel(function):
    return function


@lean_kernel
def least(a, b):
    if a < b:
        return a
    return b


@lean_kernel
def count(n):
    found = 0
    while n > 0:
        n -= 1
        found += 1
    return found


@lean_kernel
def never_called(a):
    return a + 1
"""
ITS_TESTS = """
import small_kernels


def test_least():
    assert small_kernels.least(1, 2) == 1
    assert small_kernels.least(2, 1) == 1


def test_count():
    assert small_kernels.count(3) == 3


def test_that_fails_anyway():
    assert small_kernels.count(3) == 4


def test_that_takes_too_long():
    while True:
        small_kernels.count(3)
"""
TRY_ALL = """
import json, sys
import pytest, small_kernels
from fuzz.mutations import mutants_of
from fuzz.trials import Floor

def act(floor):
    for name in floor.items:
        test = floor.look_at(name)
        if test is not None:
            floor.tests[name] = test
    found = {one.change: vars(floor.attempt(one, 9.0)) for one in mutants_of(small_kernels)}
    print(json.dumps([sorted(floor.tests), found]))

pytest.main(["-qs", "test_small.py", "-p", "no:cacheprovider"],
            plugins=[Floor(act, 0.5, {"small_kernels": small_kernels})])
"""


def test_trials(tmp_path: Path) -> None:
    """In a process of its own: this one has threads, and a fork of it may wait for ever for a
    lock that one of them holds."""
    for name, text in (("small_kernels", KERNELS), ("test_small", ITS_TESTS), ("all", TRY_ALL)):
        (tmp_path / f"{name}.py").write_text(text, encoding="utf-8")
    path = os.pathsep.join([str(tmp_path), str(mutants.ROOT), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "all.py"], capture_output=True, text=True, check=True, timeout=120,
        cwd=tmp_path, env={**os.environ, **mutants.ENVIRONMENT, "PYTHONPATH": path},
    )  # fmt: skip
    [line] = [line for line in done.stdout.splitlines() if line.startswith("[")]
    tests, found = json.loads(line)
    assert tests == ["test_small.py::test_count", "test_small.py::test_least"]
    assert found["if a < b: → if not a < b:"]["outcome"] == "killed"
    assert found["if a < b: → if not a < b:"]["by"] == "test_small.py::test_least"
    assert found["a < b → a <= b"] == {"outcome": "survived", "seconds": ANY, "by": ""}
    assert found["n -= 1 → pass"]["outcome"] == "out of time"
    assert found["found += 1 → found -= 1"]["outcome"] == "killed"
    assert found["a + 1 → a"] == {"outcome": "survived", "seconds": 0.0, "by": ""}
