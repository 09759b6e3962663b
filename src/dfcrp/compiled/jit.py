"""The decorators of compiled code, and how it is called; nothing here loads Numba.

A *kernel* is a function that Numba compiles. Kernels call each other freely; Python calls

* an ``entry_kernel``, whose parameters have declared types (``compiled.abi``) and which is compiled
  ahead of use, with all that it calls, into the library of its module;
* any other kernel for the types it is given: tests do that (``compiled.library.door``).

``by_type`` makes a function whose code depends on the type of its first argument. Where that is
known as a kernel is compiled, the choice costs nothing. A *contract* is a set of such functions
that are also called by address: a class of frames that implements it has a table of them, and a
kernel that is given "any likelihood" looks them up there. So moves are compiled once, whatever
the likelihood and the prior.

With NUMBA_DISABLE_JIT=1 every kernel is its own source: slow, but at once, on small data.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args, get_origin

from dfcrp.compiled.abi import Description, Frame, described

#: Whether kernels run as plain Python.
INTERPRETED = os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")

AnyLikelihood = Annotated[Any, ("any", "likelihood")]
AnyPrior = Annotated[Any, ("any", "prior")]

K = TypeVar("K", bound="Kernel")

#: Every function that ``by_type`` or a contract has made, for the compiler.
STUBS: list[Stub] = []
CONTRACTS: dict[str, Contract] = {}


class Kernel:
    """A function to be compiled, and called like the function itself."""

    __name__: str
    __qualname__: str

    def __init__(
        self, function: Callable[..., Any], *, entry: bool, inline: bool, arrays: bool
    ) -> None:
        functools.update_wrapper(self, function)
        self.py_func = function
        self.entry = entry
        #: Whether it becomes part of every caller.
        self.inline = inline
        #: Whether it creates arrays.
        self.arrays = arrays

    @functools.cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the parameters."""
        return tuple(inspect.signature(self.py_func).parameters)

    @functools.cached_property
    def parameters(self) -> tuple[Description, ...]:
        """The declared types of an entry's parameters."""
        hints = inspect.get_annotations(self.py_func, eval_str=True)
        lacking = [name for name in self.names if name not in hints]
        if lacking:
            raise TypeError(f"{self.__module__}.{self.__qualname__}: types of {lacking}?")
        return tuple(described(hints[name]) for name in self.names)

    def __call__(self, *args: object) -> Any:
        from dfcrp.compiled import library

        return library.call(self, args)


def _decorator(
    *, entry: bool = False, inline: bool = False, arrays: bool = False
) -> Callable[[Callable[..., Any]], Kernel]:
    def decorate(function: Any) -> Kernel:
        if INTERPRETED:
            # Not wrapped, which would slow it down; it has what a kernel is asked for.
            function.py_func = function
            plain: Kernel = function
            return plain
        return Kernel(function, entry=entry, inline=inline, arrays=arrays)

    return decorate


#: Called from Python, with declared types; creates no arrays. Without reference counts, which are
#: atomic operations, a scan is six times faster.
entry_kernel = _decorator(entry=True)
#: The same for code that creates arrays.
entry_kernel_with_arrays = _decorator(entry=True, arrays=True)
#: Called by other kernels; creates no arrays.
lean_kernel = _decorator()
#: The same, always made a part of its callers.
inline_kernel = _decorator(inline=True)
#: Called by other kernels; may create arrays.
kernel = _decorator(arrays=True)


def framed(value: Any) -> Any:
    """A named tuple as kernels take it fastest, for who calls them again and again."""
    return value if INTERPRETED else Frame(value)


class Stub:
    """A function whose code depends on the type of its first argument."""

    __name__: str

    def __init__(self, source: Callable[..., Any], contract: Contract | None = None) -> None:
        functools.update_wrapper(self, source)
        self.source = source
        self.contract = contract
        self.implementations: dict[type, Kernel] = {}
        #: The code for types that have none of their own.
        self.usual: Kernel | None = None
        STUBS.append(self)

    def of(self, kind: type) -> Kernel:
        """The code for one type."""
        found = self.implementations.get(kind, self.usual)
        if found is None:
            raise NotImplementedError(f"{kind.__name__} has no {self.__module__}.{self.__name__}")
        return found

    def __call__(self, first: object, *rest: object) -> Any:
        value = first.value if isinstance(first, Frame) else first
        return self.of(type(value))(first, *rest)

    @functools.cached_property
    def parameters(self) -> tuple[Description, ...]:
        """Of a function of a contract: the declared types of all parameters but the first."""
        hints = inspect.get_annotations(self.source, eval_str=True)
        names = list(inspect.signature(self.source).parameters)[1:]
        return tuple(_described(hints[name]) for name in names)

    @functools.cached_property
    def result(self) -> Description:
        """The declared type of the result."""
        return described(inspect.get_annotations(self.source, eval_str=True)["return"])


def _described(annotation: object) -> Description:
    if get_origin(annotation) is Annotated and get_args(annotation)[1][0] == "any":
        return list(get_args(annotation)[1])
    return described(annotation)


def by_type(source: Callable[..., Any]) -> Stub:
    """Make ``source``, which has no body, a function that ``implements`` gives code by type."""
    return Stub(source)


class Contract:
    """Functions of a kind of model part that are also called by address."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.functions: list[Stub] = []
        CONTRACTS[name] = self

    def function(self, source: Callable[..., Any]) -> Stub:
        """Add a function; all its parameters but the first, and its result, have types."""
        stub = Stub(source, self)
        self.functions.append(stub)
        return stub


#: For the code of types that have none of their own.
ANYTHING = object()


def implements(stub: Stub, kind: Any) -> Callable[[K], K]:
    """Let the decorated kernel do the work of ``stub`` when its first argument is a ``kind``."""

    def note(function: K) -> K:
        if kind is ANYTHING:
            stub.usual = function
            return function
        stub.implementations[kind] = function
        if stub.contract is not None and not INTERPRETED:
            kind.function_table = functools.partial(_table, stub.contract, kind)
        return function

    return note


def _table(contract: Contract, kind: type) -> int:
    from dfcrp.compiled import library

    return library.function_table(contract, kind)
