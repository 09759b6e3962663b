"""What a type checker sees of dfcrp, as a user's script gets it and as our own code keeps it."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import dfcrp

ROOT = Path(__file__).resolve().parents[2]
PACKAGE = ROOT / "src" / "dfcrp"
#: Decorators of functions whose types Numba infers.
COMPILED = {
    *("kernel", "entry_kernel", "entry_kernel_with_arrays", "inline_kernel", "lean_kernel"),
    *("by_type", "implements", "LIKELIHOOD", "PRIOR"),
}
SETTINGS = "[mypy]\nstrict = true\ndisallow_any_expr = true\nfollow_imports = silent\n"
#: Names that are there, one that is not, arguments of the wrong type, a setting that is unknown.
WRONG = """
import dfcrp

def look(posterior: dfcrp.Posterior) -> int:
    return len(posterior.catalogue())

dfcrp.fitt
items = dfcrp.read_markings("markings.csv", min_diameter="18 px")
dfcrp.fit(items, chains="four")
dfcrp.fit(items, chians=4)
"""


def errors_of(script: Path, folder: Path) -> list[str]:
    """What ``mypy --strict`` says of a script, expressions of type Any forbidden as well."""
    (folder / "mypy.ini").write_text(f"{SETTINGS}mypy_path = {PACKAGE.parent}\n", encoding="utf-8")
    options = ["--config-file", str(folder / "mypy.ini"), "--no-error-summary"]
    options += ["--cache-dir", str(ROOT / ".mypy_cache" / "user")]
    found = subprocess.run(
        [sys.executable, "-m", "mypy", *options, str(script)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode in (0, 1), found.stderr
    return [line.split(": error: ")[1] for line in found.stdout.splitlines() if ": error: " in line]


def test_a_user_s_script_has_types(tmp_path: Path) -> None:
    assert errors_of(ROOT / "tests" / "typing" / "user_script.py", tmp_path) == []


def test_a_type_checker_finds_what_is_wrong(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(WRONG, encoding="utf-8")
    expected = [
        'Module has no attribute "fitt"',
        '"min_diameter" to "read_markings" has incompatible type "str"',
        '"chains" to "fit" has incompatible type "str"',
        'Unexpected keyword argument "chians" for "fit"',
    ]
    found = errors_of(script, tmp_path)
    assert len(found) == len(expected), found
    for error, part in zip(found, expected, strict=True):
        assert part in error


def imports_for_type_checkers() -> dict[str, str]:
    """The names under ``if TYPE_CHECKING`` in the package, and the modules they come from."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    [block] = [node for node in tree.body if isinstance(node, ast.If)]
    assert ast.unparse(block.test) == "TYPE_CHECKING"
    return {
        alias.asname or alias.name: f"{node.module}.{alias.name}"
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }


def test_public_names_are_the_same_for_python_and_for_type_checkers() -> None:
    seen = imports_for_type_checkers()
    assert sorted(dfcrp.__all__) == sorted([*seen, "__version__"]) == dir(dfcrp)
    homes = {name: f"{home}.{name}" for name, home in dfcrp._HOMES.items()}
    assert seen == {**homes, **dfcrp._MODULES}
    for name in dfcrp.__all__:
        assert getattr(dfcrp, name) is not None


def test_the_package_says_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").exists()


def is_typed(function: ast.FunctionDef) -> bool:
    given = function.args
    arguments = [*given.posonlyargs, *given.args, *given.kwonlyargs]
    free = [a for a in arguments if a.annotation is None and a.arg not in ("self", "cls")]
    return function.returns is not None and not free


def is_compiled(function: ast.FunctionDef) -> bool:
    """Whether it is a kernel, or a function of a contract, whose first parameter may vary."""
    calls = (d.func if isinstance(d, ast.Call) else d for d in function.decorator_list)
    names = (call.value if isinstance(call, ast.Attribute) else call for call in calls)
    return any(isinstance(name, ast.Name) and name.id in COMPILED for name in names)


@pytest.mark.parametrize("folder", ["likelihoods", "moves", "posterior", "priors"])
def test_only_compiled_functions_lack_types(folder: str) -> None:
    free = [
        f"{path.relative_to(ROOT)}:{node.lineno} {node.name}"
        for path in sorted((PACKAGE / folder).rglob("*.py"))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and not is_typed(node) and not is_compiled(node)
    ]
    assert free == []
