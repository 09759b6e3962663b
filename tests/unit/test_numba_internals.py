"""What is used of Numba beyond what it documents, one test for each; see the module's text.

After an upgrade of Numba these say what broke. Run with versions that are not in the lock files by
``./run test --all``.
"""

from __future__ import annotations

import re
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
import pytest

from dfcrp.compiled.abi import F8, adder, frame
from dfcrp.compiled.jit import INTERPRETED

if INTERPRETED:
    pytest.skip("nothing is compiled", allow_module_level=True)
pytest.importorskip("numba", reason="Numba is not installed")

import llvmlite.binding as llvm
import numba
from numba.core import types as nb

from dfcrp.compiled import backend, library, numba_internals
from dfcrp.compiled.jit import kernel, lean_kernel

PROJECT = Path(__file__).resolve().parents[2] / "pyproject.toml"
FLOATS = nb.Array(nb.float64, 1, "C")


def inner(values):
    return values[0]


def outer(values):
    return called(values[1:]) + 1.0


called = numba.njit(inner, **numba_internals.LEAN)


def lowered(function, kinds, **options):
    """What was collected of a function for some types: symbol, result, and the text of its code."""
    made = numba.njit(function, no_cpython_wrapper=True, no_cfunc_wrapper=True, **options)
    made.compile(kinds)
    symbol, result, code = numba_internals.collected(made.overloads[kinds])
    modules = [module for one in code for module in one.modules]
    # Numba's counting is code, too, and comes with everything.
    return symbol, result, [m for m in map(str, modules) if "define void @NRT_incref" not in m]


def test_arrays_that_are_handed_on_are_not_counted():
    """The option ``_nrt``; a scan takes six times as long without it."""
    lean = "".join(lowered(outer, (FLOATS,), **numba_internals.LEAN)[2])
    usual = "".join(lowered(outer, (FLOATS,))[2])
    assert "call void @NRT_incref" in usual
    assert "call void @NRT_incref" not in lean


def test_code_is_collected_and_not_optimised():
    """``add_llvm_module``, ``codegen``, ``create_library``, ``finalize``."""
    symbol, result, code = lowered(inner, (FLOATS,), **numba_internals.LEAN)
    assert result == nb.float64
    assert len(code) == 1
    assert re.search(rf'define .*@"?{re.escape(symbol)}"?\(', code[0])
    assert "alloca" in code[0], "the code has been optimised before all of it was there"


def test_code_that_is_called_is_collected():
    """``add_linking_library``."""
    symbol, _, code = lowered(outer, (FLOATS,), **numba_internals.LEAN)
    assert symbol in code[0]
    assert any(re.search(r"define [^\n]*inner", one) for one in code[1:])
    assert not any(symbol in one for one in code[1:])


def test_nothing_is_run_in_this_process():
    """``get_executable``."""
    made = numba.njit(inner, no_cpython_wrapper=True, no_cfunc_wrapper=True)
    made.compile((FLOATS,))
    assert made.overloads[(FLOATS,)].entry_point.__name__ == "append"


def test_how_functions_are_called():
    """A status, from the addresses of a result and of an exception and the words of an array."""
    symbol, _, code = lowered(inner, (FLOATS,), **numba_internals.LEAN)
    function = llvm.parse_assembly(code[0]).get_function(symbol)
    kinds = [str(one.type) for one in function.arguments]
    assert re.search(rf'define i32 @"?{re.escape(symbol)}"?\(', code[0])
    assert kinds[:2] == ["ptr", "ptr"]
    # Owner, parent, number, bytes of each, data, shape, strides.
    assert kinds[2:] == ["ptr", "ptr", "i64", "i64", "ptr", "i64", "i64"]
    found = []
    adder(["array", "f8", 1], "values", tables=False)(np.zeros(3), found, [])
    assert len(found) == len(kinds) - 2
    assert (found[2], found[3], found[5], found[6]) == (3, 8, 3, 8)


@kernel
def growing(n):
    whole = np.zeros(n)
    for i in range(n):
        part = np.full(i + 1, float(i))
        whole[i] = part.sum()
    return whole


def test_the_run_time_has_all_that_code_with_arrays_asks_for():
    """Names ``NRT_*``; raising exceptions, which would need Python, is optimised away."""
    run_time = llvm.parse_assembly(backend.RUNTIME).functions
    there = {one.name for one in run_time if not one.is_declaration}
    code, _ = backend.compile_unit(library.door(growing, ("i8",)))
    asked = {name.decode() for name in re.findall(rb"\0((?:NRT|Py|numba)_\w+)", code)}
    assert "NRT_decref" in asked
    # Numba gives its counting as code.
    assert asked - {"NRT_incref", "NRT_decref"} <= there, sorted(asked - there)


def test_arrays_are_made_and_given_back():
    """Ten thousand calls with some 8 MB each would not fit if nothing was given back."""
    import resource

    growing(1000)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for _ in range(300):
        np.testing.assert_array_equal(growing(1000)[:3], [0.0, 2.0, 6.0])
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 200_000  # kB


@lean_kernel
def low_level(values):
    return values.shape[0]


@frame
class Two(NamedTuple):
    numbers: F8
    factor: float


@lean_kernel
def weighted(two):
    return two.numbers[1] * two.factor


def test_fields_of_frames_are_read_where_they_are():
    """The structure of an array, made from its words; ``tests/unit/test_compiled`` has more."""
    assert weighted(Two(np.array([1.0, 2.0]), 3.5)) == 7.0


def test_versions_between_the_bounds_are_the_tested_ones():
    project = tomllib.loads(PROJECT.read_text(encoding="utf-8"))
    bound = f"numba>={numba_internals.LEAST},<{numba_internals.BOUND}"
    assert bound in project["project"]["optional-dependencies"]["own"]
    assert bound in project["build-system"]["requires"]
    assert bound in project["dependency-groups"]["build"]


@pytest.mark.parametrize(
    ("number", "said"),
    [("0.61.2", True), ("0.62.0", False), ("0.68.1", False), ("0.69.0rc1", True)],
)
def test_other_versions_are_named_where_compiling_fails(monkeypatch, number, said):
    assert (numba_internals.untested(number) is not None) == said

    def broken(_):
        raise AttributeError("'CPUContext' object has no attribute 'codegen'")

    def told(name):
        return number if name == "numba" else version(name)

    monkeypatch.setattr(numba_internals, "version", told)
    monkeypatch.setattr(numba_internals, "collected", broken)
    with pytest.raises(AttributeError) as caught:
        backend.compile_unit(library.door(low_level, (["array", "f8", 1],)))
    notes = getattr(caught.value, "__notes__", [])
    assert any(f"Numba {number} is not tested with dfcrp" in one for one in notes) == said
