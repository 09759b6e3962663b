"""The mutation test's own work: which mistakes there are, and that they are made."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest

from dfcrp.moves import assignment
from fuzz import mutants
from fuzz.mutations import mutants_of, plant

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


def test_every_module_has_tests_that_are_there() -> None:
    root = Path(__file__).parents[2]
    for name in mutants.TESTS:
        for node in mutants.tests_of(name):
            path, _, test = node.partition("::")
            assert f"def {test.partition('[')[0]}" in (root / path).read_text(), node


def test_survivors_are_tried_again_and_listed(tmp_path: Path) -> None:
    record = mutants.Record(tmp_path)
    shared = {"module": "moves.pair", "of": 9, "seconds": 1.0}
    record.add({"mutant": "dfcrp.moves.pair.f:1 [0.0] a → b", "outcome": "killed", **shared})
    record.add({"mutant": "dfcrp.moves.pair.f:2 [1.0] c → d", "outcome": "survived", **shared})
    again = mutants.Record(tmp_path)
    assert again.rows == record.rows
    assert [again.knows(name) for name in record.rows] == [True, False]
    text = mutants.summary(again.rows.values())
    assert "| `moves.pair` | 9 | 2 | 1 | 0 | 0 | 1 |" in text
    assert "* `dfcrp.moves.pair.f:2 [1.0] c → d` survived" in text


def outcome(test: str) -> str:
    """What came of a test, asked of a process of its own: this one has threads, and a fork of it
    may wait for ever for a lock that one of them holds."""
    asked = (
        "import sys; from fuzz import mutants; print(mutants.outcome([sys.argv[1]], None, None)[0])"
    )
    done = subprocess.run(
        [sys.executable, "-c", asked, test], capture_output=True, text=True, check=True, timeout=120
    )
    return done.stdout.strip()


def test_tests_that_cannot_be_run_kill_nothing(tmp_path: Path) -> None:
    broken = tmp_path / "test_broken.py"
    broken.write_text("import a_module_that_is_not_there\n", encoding="utf-8")
    assert outcome(str(broken)) == mutants.NOT_RUN
    assert outcome(f"{broken}::test_gone") == mutants.NOT_RUN
    record = mutants.Record(tmp_path)
    name = "dfcrp.moves.pair.f:1 [0.0] a → b"
    shared = {"module": "moves.pair", "of": 9, "seconds": 1.0}
    record.add({"mutant": name, "outcome": mutants.NOT_RUN, **shared})
    assert not record.knows(name)
    text = mutants.summary(record.rows.values())
    assert "| `moves.pair` | 9 | 1 | 0 | 0 | 1 | 0 |" in text
    assert f"* `{name}` not run" in text


@pytest.mark.parametrize(
    ("line", "found"), [("assert False", "killed"), ("assert True", "survived")]
)
def test_outcomes_of_tests_that_run(tmp_path: Path, line: str, found: str) -> None:
    path = tmp_path / "test_small.py"
    path.write_text(f"def test_it():\n    {line}\n", encoding="utf-8")
    assert outcome(str(path)) == found


def test_an_explanation_does_not_depend_on_lines() -> None:
    assert mutants._key("dfcrp.moves.pair.f:2 [1.0] c → d") == "moves.pair.f c → d"
    for key, why in mutants.explanations().items():
        assert "→" in key
        assert len(why) > 20
