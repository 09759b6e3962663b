"""The decorators that compile kernels: all Numba flags and the cache's home are decided here.

Numba's file cache looks only at the file of the compiled function, so a changed callee in
another module would go unnoticed. The cache directory is therefore named after a hash of every
kernel source and of Numba's version: any edit of code starts a new one. Within it files are found
by the name of their module, so that copies of the package with the same kernels share it.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import inspect
import os
import sys
from pathlib import Path

import numba
from numba.core.caching import CompileResultCacheImpl, FunctionCache, _CacheLocator
from numba.core.options import DefaultOptions
from numba.core.registry import CPUDispatcher
from numba.extending import overload

#: What a module with kernels imports.
_MARK = "from dfcrp.compiled.jit import"


def kernel_sources() -> list[Path]:
    """The files of this package that hold compiled code."""
    package = Path(__file__).parents[1]
    home = Path(__file__).parent
    return sorted(
        source
        for source in package.rglob("*.py")
        if source.parent == home or _MARK in source.read_text(encoding="utf-8")
    )


def _code_of(source: Path) -> str:
    """What of a source is compiled: everything but comments and docstrings."""
    tree = ast.parse(source.read_bytes())
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
    return ast.dump(tree)


def _cache_directory() -> Path:
    digest = hashlib.sha256(f"{numba.__version__} {sys.version}".encode())
    for source in kernel_sources():
        digest.update(f"{source.name} {_code_of(source)}".encode())
    base = os.environ.get("DFCRP_CACHE_DIR")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "dfcrp")
    return Path(base) / f"kernels-{digest.hexdigest()[:16]}"


CACHE = str(_cache_directory())
#: Whether kernels run as plain Python (NUMBA_DISABLE_JIT=1): slow, but at once, on small data.
INTERPRETED = bool(numba.config.DISABLE_JIT)
#: Whether this Numba still knows the switch for its run time (an internal name).
_LEAN = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


#: What holds for every compiled function.
_COMMON = {"nogil": True, "error_model": "numpy", "no_cfunc_wrapper": True}


class _Inner(CPUDispatcher):
    """A kernel that only other kernels call; called from Python, it gets a door of its own.

    Tests do that. The door, a function that does nothing but call the kernel, is compiled at that
    moment: only what is tested alone pays for the code that unpacks a state.
    """

    def __call__(self, *args):
        if not hasattr(self, "door"):
            self.door = numba.njit(**_COMMON, **_LEAN)(_call_of(self))
        return self.door(*args)


class _Locator(_CacheLocator):
    """Where a kernel's compiled code lies: by its module, wherever the source file is."""

    def __init__(self, function):
        self._path = os.path.join(CACHE, function.__module__)

    def get_cache_path(self):
        return self._path

    def get_source_stamp(self):
        return "as the directory says"

    def get_disambiguator(self):
        return None

    @classmethod
    def from_function(cls, function, source):
        return cls(function)


class _Files(CompileResultCacheImpl):
    _locator_classes = (_Locator,)


class _KernelCache(FunctionCache):
    _impl_class = _Files


def _compile(function, **options):
    compiled = numba.njit(**_COMMON, **options)(function)
    if isinstance(compiled, CPUDispatcher):
        compiled._cache = _KernelCache(compiled.py_func)
    else:  # compiling is switched off (NUMBA_DISABLE_JIT): a kernel is its own source
        compiled.py_func = function
    return compiled


def kernel(function):
    """Compile in nopython mode, without the GIL, cached on disk.

    ``error_model="numpy"`` lets a division by zero give inf, as the weights expect;
    ``fastmath`` stays off: inf and NaN must keep their meaning.
    """
    return _compile(function)


def entry_kernel(function):
    """Like ``kernel``, for code that creates no arrays.

    Without Numba's run time the arrays of a state are passed around without reference counts.
    These are atomic operations, some fifty per call of a small function that takes a state;
    leaving them out makes a scan six times faster.
    """
    return _compile(function, **_LEAN)


def lean_kernel(function):
    """Like ``entry_kernel``, for functions that only other kernels call.

    The code that unpacks a whole state from Python objects costs more time to compile than
    most updates themselves; it is left out here.
    """
    return _inner(function)


def inline_kernel(function):
    """Like ``lean_kernel``, always inlined into its caller.

    A call hands over every array of a state as seven words; for what is called once per marking
    or more often that would be most of the work.
    """
    return _inner(function, forceinline=True)


def _inner(function, **options):
    compiled = _compile(function, no_cpython_wrapper=True, **options, **_LEAN)
    if isinstance(compiled, CPUDispatcher):  # not so where compiling is switched off
        compiled.__class__ = _Inner
    return compiled


def compile_for(function, *args):
    """Compile a kernel for arguments like these without calling it, unless that is switched off."""
    if isinstance(function, CPUDispatcher):
        function.compile(tuple(numba.typeof(arg) for arg in args))


def by_type(stub):
    """Make ``stub`` a function whose code depends on the type of its first argument.

    ``implements`` adds the code for one type, a class of named tuples. A kernel that calls the
    stub is compiled for the type at hand and with that code inside: a choice costs nothing.
    """
    implementations = {}

    def of_kind(kind):
        if kind not in implementations:
            raise NotImplementedError(f"{kind.__name__} has no {stub.__module__}.{stub.__name__}")
        return implementations[kind]

    @functools.wraps(stub)
    def call(first, *rest):
        return of_kind(type(first))(first, *rest)

    def choose(first, *rest):
        return _call_of(of_kind(first.instance_class))

    options = {**_COMMON, **_LEAN, "no_cpython_wrapper": True, "forceinline": True}
    overload(call, jit_options=options, strict=False)(choose)
    call.implementations = implementations
    return call


def _call_of(kernel):
    """A plain function that does nothing but call the kernel, which is compiled by its own rules.

    Numba wants functions with named arguments here, so it has to be written out.
    """
    names = ", ".join(inspect.signature(kernel.py_func).parameters)
    scope = {"kernel": kernel}
    exec(f"def call({names}):\n    return kernel({names})", scope)
    return scope["call"]


def implements(stub, kind):
    """Let the decorated kernel do the work of ``stub`` when its first argument is a ``kind``."""

    def note(function):
        stub.implementations[kind] = function
        return function

    return note
