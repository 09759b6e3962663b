"""All that is used of Numba beyond what it documents, so that a new version can break it here only.

``tests/unit/test_numba_internals.py`` has a test for each, which says what broke. The versions that
pass are between ``LEAST`` and ``BOUND``, which ``pyproject.toml`` repeats. These are used:

* the option ``_nrt``, without which every array that is passed on is counted;
* ``CPUCodeLibrary``: lowered code comes in by ``add_llvm_module``, code that is called by
  ``add_linking_library``;
* ``AOTCPUCodegen``, which asks ``create_library`` for one, and the target's ``codegen`` and
  ``get_executable``, which are replaced;
* functions are called with the addresses of a result and of an exception, and return a status.

How an array and its owner are laid out is in ``compiled.abi`` and in ``RUNTIME`` of
``compiled.backend``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib.metadata import version

import llvmlite.binding as llvm
from llvmlite import ir
from numba.core import cgutils, codegen
from numba.core import types as nb
from numba.core.base import BaseContext
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.typing import Signature

#: The oldest version of Numba that is tested, and the first that is not.
LEAST, BOUND = "0.62", "0.69"
#: Options of code without arrays of its own, which then counts no references.
LEAN = {"_nrt": False}


class Collected(codegen.CPUCodeLibrary):
    """A function's code as it was lowered, and what it calls; nothing is optimised or linked."""

    def __init__(self, codegen: codegen.CPUCodegen, name: str) -> None:
        super().__init__(codegen, name)
        self.modules: list[ir.Module] = []
        self.called: list[Collected] = []

    def add_llvm_module(self, ll_module: ir.Module) -> None:
        """Keep the code."""
        self.modules.append(ll_module)

    def add_linking_library(self, library: Collected) -> None:
        """Keep what is called."""
        self.called.append(library)

    def finalize(self) -> None:
        """Nothing: it is linked at the very end."""


class _Codegen(codegen.AOTCPUCodegen):
    def create_library(self, name: str, **_: object) -> Collected:
        """A place for the code of a function."""
        return Collected(self, name)

    def set_env(self, name: str, env: object) -> None:
        """Python's side of a function, which compiled code never asks for."""


def take_over() -> None:
    """Let Numba collect code in this process instead of running it."""
    context = cpu_target.target_context
    collecting = _Codegen("dfcrp")
    context.codegen = lambda: collecting
    # Numba keeps its functions by something that can be called, and wants a builtin for it.
    context.get_executable = lambda library, fndesc, env: [].append
    context.refresh()


def with_all_it_calls(first: Collected) -> list[Collected]:
    """A function's code and all that it is linked with."""
    found, open_ones = {id(first): first}, [first]
    while open_ones:
        for other in open_ones.pop().called:
            if id(other) not in found:
                found[id(other)] = other
                open_ones.append(other)
    return list(found.values())


def collected(overload: CompileResult) -> tuple[str, nb.Type, list[Collected]]:
    """Of a kernel compiled for some types: its symbol, the type of its result, and its code."""
    symbol: str = overload.fndesc.llvm_func_name
    return symbol, overload.signature.return_type, with_all_it_calls(overload.library)


def call_by_address(
    context: BaseContext,
    builder: ir.IRBuilder,
    signature: Signature,
    find: Callable[[ir.FunctionType], ir.Value],
    arguments: Sequence[ir.Value],
) -> ir.Value:
    """Call a function as Numba calls its own; ``find`` gives its address for its type.

    Kernels raise nothing, so the status says nothing.
    """
    convention = context.call_conv
    function_type = convention.get_function_type(signature.return_type, signature.args)
    result, trouble = (cgutils.alloca_once(builder, function_type.args[k].pointee) for k in (0, 1))
    packed = context.get_arg_packer(signature.args).as_arguments(builder, arguments)
    builder.call(find(function_type), [result, trouble, *packed])
    return context.get_returned_value(builder, signature.return_type, builder.load(result))


def untested(found: str) -> str | None:
    """What to say of a version of Numba that is not tested; None of one that is."""
    if _numbers(LEAST) <= _numbers(found) < _numbers(BOUND):
        return None
    return f"Numba {found} is not tested with dfcrp; pip install 'numba>={LEAST},<{BOUND}'"


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.split(".")[:2])


def note_version(error: BaseException) -> None:
    """Add to an error that the version of Numba may be why, where it is not a tested one."""
    words = untested(version("numba"))
    if words is not None:
        error.add_note(f"{words} (llvmlite {llvm.llvm_version_info})")
