"""Compiled code on disk: which there is, what it was made from, and calls into it.

Code is compiled in *units*: the entries of a module, or the functions by which a class of frames
keeps a contract. A unit is one shared library with a description of its results beside it. A wheel
carries those of everything built in, in ``dfcrp/_kernels``; otherwise they are built when they are
first needed, into a cache, under a name that holds a hash of the code they were made from
(comments and docstrings left out), so that a change makes new only what it touches.
"""

from __future__ import annotations

import ast
import contextlib
import ctypes
import functools
import hashlib
import json
import os
import platform
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp import filelocks
from dfcrp.compiled import linking
from dfcrp.compiled.abi import (
    Description,
    Frame,
    Word,
    adder,
    class_named,
    description_of,
    is_frame,
    name_of,
    read,
    size_and_alignment,
    word_types,
)
from dfcrp.compiled.jit import CONTRACTS, Contract, Kernel
from dfcrp.errors import DfcrpWarning

#: Where a wheel has its compiled code.
PACKAGED = Path(__file__).parents[1] / "_kernels"
#: The list of its units.
UNITS = "units.json"
#: Counts up with every change to how code is compiled and called.
FORMAT = 2
#: What processor code is made for: any of the last fifteen years, as no fused operations are used
#: either way and results do not depend on it.
CPU = os.environ.get("DFCRP_CPU", "x86-64-v2" if platform.machine() in ("x86_64", "AMD64") else "")
#: Gives back the memory of an array.
RELEASE = "NRT_decref"
#: Modules that say how code is made. They are loaded only where it is.
MAKERS = ("backend", "numba_internals", "linking")


class KernelsMissing(RuntimeError):
    """There is no compiled code, and nothing here to make it with."""


def numba_missing(why: object) -> KernelsMissing:
    """There is no compiled code, and Numba cannot be loaded."""
    return KernelsMissing(
        f"there is no compiled code for this machine, and no Numba to make it with ({why}); "
        "pip install numba"
    )


class Compiling:
    """What has been compiled for this process so far; safe to ask from any thread."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._depth = 0
        self._began = 0.0
        self._seconds = 0.0
        #: Units that are compiled.
        self.parts = 0

    @property
    def busy(self) -> bool:
        """Whether a unit is being compiled now."""
        return self._depth > 0

    @property
    def seconds(self) -> float:
        """Time in which units were compiled."""
        with self._lock:
            now = time.monotonic() - self._began if self._depth else 0.0
            return self._seconds + now

    def begin(self) -> None:
        """Something is being compiled; one within another counts as one stretch of time."""
        with self._lock:
            if self._depth == 0:
                self._began = time.monotonic()
            self._depth += 1

    def end(self) -> None:
        """It is compiled."""
        with self._lock:
            self._depth -= 1
            if self._depth == 0:
                self._seconds += time.monotonic() - self._began


#: Of this process.
COMPILING = Compiling()


@dataclass(frozen=True)
class Export:
    """A function of a unit."""

    symbol: str
    kernel: Kernel
    parameters: tuple[Description, ...]
    #: What it must return, where callers rely on it.
    result: Description | None = None


@dataclass(frozen=True)
class Unit:
    """Functions that are compiled together."""

    name: str
    exports: tuple[Export, ...]
    #: Whether another process can make it, told its name.
    named: bool = True

    @functools.cached_property
    def digest(self) -> str:
        """Of all that the compiled code depends on."""
        found = hashlib.sha256(f"{FORMAT} {made_with()}".encode())
        modules = {export.kernel.__module__ for export in self.exports}
        if not self.named:
            modules.update(_brought_along(self.exports))
        for module, code in sorted(_sources_of(frozenset(modules)).items()):
            found.update(f"{module} {code}\n".encode())
        for export in self.exports:
            found.update(f"{export.symbol} {export.parameters}\n".encode())
        return found.hexdigest()[:20]

    @property
    def stem(self) -> str:
        """The name of its files."""
        return f"{self.name.replace(':', '-')}-{self.digest}"


def entries_of(module: str) -> Unit:
    """The unit of a module's entries."""
    import importlib

    found = [
        value
        for value in vars(importlib.import_module(module)).values()
        if isinstance(value, Kernel) and value.entry and value.__module__ == module
    ]
    return Unit(
        f"entries:{module}",
        tuple(Export(f"dfcrp_{entry.__name__}", entry, entry.parameters) for entry in found),
    )


def table_unit(contract: Contract, kind: type) -> Unit:
    """The unit of the functions by which a class keeps a contract."""
    exports = tuple(
        Export(
            f"dfcrp_{stub.__name__}",
            stub.of(kind),
            (["frame", name_of(kind)], *stub.parameters),
            stub.result,
        )
        for stub in contract.functions
        if kind in stub.implementations or stub.usual is not None
    )
    return Unit(f"table:{contract.name}:{name_of(kind)}", exports)


def unit_named(name: str) -> Unit:
    """The unit of this name."""
    kind, _, rest = name.partition(":")
    if kind == "entries":
        return _entries(rest)
    contract, _, cls = rest.partition(":")
    return table_unit(CONTRACTS[contract], class_named(cls))


_entries = functools.cache(entries_of)


# What a unit is made from.


def _parsed(path: str) -> tuple[str, tuple[str, ...]]:
    """A module's code without docstrings, hashed, and the modules that it imports."""
    return _parsed_as_of(path, os.stat(path).st_mtime_ns)


@functools.cache
def _parsed_as_of(path: str, _: int) -> tuple[str, tuple[str, ...]]:
    tree = ast.parse(Path(path).read_bytes())
    imported: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.FunctionDef | ast.ClassDef) and ast.get_docstring(
            node
        ):
            del node.body[0]
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
            imported.update(f"{node.module}.{alias.name}" for alias in node.names)
    return hashlib.sha256(ast.dump(tree).encode()).hexdigest(), tuple(sorted(imported))


def _sources_of(modules: frozenset[str]) -> dict[str, str]:
    """The kernels' modules and all that they import of modules with kernels: hashes of code."""
    found: dict[str, str] = {}
    open_ones = sorted(modules)
    while open_ones:
        name = open_ones.pop()
        module = sys.modules.get(name)
        path = getattr(module, "__file__", None)
        if name in found or path is None or not _has_kernels(name, module):
            continue
        found[name], imported = _parsed(path)
        open_ones += imported
    # How code is made counts as well.
    for name in MAKERS:
        found[name] = _parsed(str(Path(__file__).with_name(f"{name}.py")))[0]
    return found


@functools.cache
def made_with() -> str:
    """The machine, and the versions of what makes code for it."""
    from importlib import metadata

    found = [platform.machine(), sys.platform, CPU]
    for name in ("numba", "llvmlite"):
        try:
            found.append(f"{name} {metadata.version(name)}")
        except metadata.PackageNotFoundError:
            found.append(f"no {name}")
    return ", ".join(found)


def _brought_along(exports: Sequence[Export]) -> Iterator[str]:
    """Modules of the classes that are handed over, and of the functions they keep contracts by."""
    for export in exports:
        for kind in export.parameters:
            if kind[0] == "frame":
                cls = class_named(kind[1])
                yield cls.__module__
                for contract in CONTRACTS.values():
                    for stub in contract.functions:
                        if cls in stub.implementations:
                            yield stub.of(cls).__module__


def _has_kernels(name: str, module: ModuleType | None) -> bool:
    return name in ("dfcrp.compiled.abi", "dfcrp.compiled.random", "dfcrp.compiled.state") or any(
        isinstance(value, Kernel) for value in vars(module).values()
    )


@functools.cache
def sources_digest() -> str:
    """Of all kernels of this package: what the draws of a seed depend on besides the settings."""
    if _packaged():
        return _packaged()[""]
    found = hashlib.sha256()
    for path in sorted(Path(__file__).parents[1].rglob("*.py")):
        if b"from dfcrp.compiled.jit import" in path.read_bytes():
            found.update(f"{path.name} {_parsed(str(path))[0]}\n".encode())
    return found.hexdigest()[:20]


# Where it is.


def cache_directory() -> Path:
    """Where compiled code is kept that did not come with the package."""
    base = os.environ.get("DFCRP_CACHE_DIR")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "dfcrp")
    return Path(base) / "kernels"


@functools.cache
def _packaged() -> dict[str, str]:
    """The units that came with the package, and the stems of their files; "" is their source."""
    listing = PACKAGED / UNITS
    found: dict[str, str] = json.loads(listing.read_text()) if listing.is_file() else {}
    return found


def _home_of(unit: Unit) -> Path:
    """The stem of the unit's files, whether they exist or not."""
    if unit.name in _packaged():
        return PACKAGED / _packaged()[unit.name]
    return cache_directory() / unit.stem


def beside(home: Path, ending: str) -> Path:
    """One of a unit's files."""
    return home.parent / f"{home.name}{ending}"


def is_built(unit: Unit) -> bool:
    """Whether the unit's code is there."""
    return beside(_home_of(unit), ".json").is_file()


def require(units: Sequence[Unit], *, jobs: int | None = None) -> None:
    """Have these units built; what is lacking is compiled now, side by side.

    Where that cannot be, this process goes on in plain Python.
    """
    lacking = [] if _PLAIN else [unit for unit in units if not is_built(unit)]
    if lacking:
        try:
            _build(lacking, jobs)
        except KernelsMissing as reason:
            go_on_in_python(reason)


def _build(units: Sequence[Unit], jobs: int | None = None) -> None:
    from dfcrp.compiled import build

    COMPILING.begin()
    try:
        for _, trouble in build.build([unit.name for unit in units], cache_directory(), jobs=jobs):
            COMPILING.parts += 1
            if trouble is not None:
                say_once(not_linked(trouble))
    finally:
        COMPILING.end()


# What is said, and plain Python in the place of compiled code.

_SAID: set[str] = set()
#: Why kernels run as plain Python from now on; empty while they do not.
_PLAIN: list[str] = []


def say_once(words: str) -> None:
    """Warn, of each thing once."""
    with _LOADING:
        new = words not in _SAID
        _SAID.add(words)
    if new:
        warnings.warn(words, DfcrpWarning, stacklevel=2)


def not_linked(trouble: str) -> str:
    """What to say where the linker failed."""
    return (
        f"compiled code could not be linked, which llvmlite makes up for: {trouble}. The variable "
        "CC names another compiler"
    )


def go_on_in_python(reason: KernelsMissing) -> None:
    """Let this process run its kernels as plain Python, and say why."""
    _PLAIN.append(str(reason))
    say_once(f"{reason}. Going on in plain Python, which takes some hundred times as long")


def _in_python(kernel: Kernel, args: Sequence[object]) -> Any:
    return kernel.py_func(*[arg.value if isinstance(arg, Frame) else arg for arg in args])


# Calls into it.


@dataclass
class Loaded:
    """A unit's code in this process."""

    handle: ctypes.CDLL | ObjectCode
    results: dict[str, Description]
    functions: dict[str, Callable[..., int]] = field(default_factory=dict)

    def address(self, symbol: str) -> int:
        """Where a function is."""
        return ctypes.cast(getattr(self.handle, symbol), ctypes.c_void_p).value or 0

    def function(self, symbol: str, types: Sequence[Word]) -> Callable[..., int]:
        """A function that Python can call, which leaves other threads running."""
        if symbol not in self.functions:
            kind = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p, ctypes.c_void_p, *types)
            self.functions[symbol] = kind(self.address(symbol))
        return self.functions[symbol]


class ObjectCode:
    """Object code that nothing has linked, loaded by LLVM: functions as those of ``ctypes.CDLL``.

    This needs llvmlite, but not Numba.
    """

    def __init__(self, path: Path) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        target = llvm.Target.from_triple(llvm.get_process_triple())
        machine = target.create_target_machine(reloc="pic", codemodel="default")
        # The engine keeps the code in memory.
        self._engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
        self._engine.add_object_file(llvm.ObjectFileRef.from_data(path.read_bytes()))
        self._engine.finalize_object()

    def __getattr__(self, symbol: str) -> ctypes._CFunctionType:
        address = self._engine.get_function_address(symbol)
        if not address:
            raise AttributeError(f"there is no {symbol} in this code")
        return ctypes.CFUNCTYPE(None, ctypes.c_void_p)(address)


_LOADED: dict[str, Loaded] = {}
#: Guards what is loaded and the tables: an address that was given out must stay good.
_LOADING = threading.RLock()


def load(unit: Unit) -> Loaded:
    """The unit's code, built first if need be."""
    with _LOADING:
        return _load(unit)


def _load(unit: Unit) -> Loaded:
    if unit.name not in _LOADED:
        if not is_built(unit):
            if unit.named:
                _build([unit])
            else:
                _build_here(unit)
        home = _home_of(unit)
        results = json.loads(beside(home, ".json").read_text())
        _LOADED[unit.name] = Loaded(_open(home), results)
    return _LOADED[unit.name]


def _build_here(unit: Unit) -> None:
    """Compile a unit that another process cannot make."""
    try:
        from dfcrp.compiled import backend
    except ImportError as error:
        raise numba_missing(error) from error
    trouble = backend.write_unit(unit, cache_directory())
    if trouble is not None:
        say_once(not_linked(trouble))


def _open(home: Path) -> ctypes.CDLL | ObjectCode:
    shared = beside(home, linking.SYSTEM.ending)
    if shared.is_file():
        return ctypes.CDLL(str(shared))
    try:
        return ObjectCode(beside(home, linking.OBJECT))
    except (ImportError, OSError) as error:
        raise KernelsMissing(
            "compiled code that nothing has linked needs llvmlite, which cannot be loaded "
            f"({error}); pip install llvmlite"
        ) from error


class _Bound:
    """A kernel for arguments of certain types, ready to be called."""

    def __init__(self, kernel: Kernel, kinds: tuple[Description, ...], unit: Unit, symbol: str):
        self.kernel = kernel
        loaded = load(unit)
        self.adders = [
            adder(kind, f"{kernel.__name__}, {name}", tables=kernel.entry)
            for name, kind in zip(kernel.names, kinds, strict=True)
        ]
        types = [found for kind in kinds for found in word_types(kind)]
        self.function = loaded.function(symbol, types)
        self.result = loaded.results[symbol]
        self.release = getattr(loaded.handle, RELEASE)
        self.room = ctypes.c_char * max(size_and_alignment(self.result)[0], 8)

    def __call__(self, args: Sequence[object]) -> Any:
        words: list[float] = []
        kept: list[object] = []
        for add, arg in zip(self.adders, args, strict=True):
            add(arg, words, kept)
        room, trouble = self.room(), ctypes.c_void_p()
        status = self.function(ctypes.addressof(room), ctypes.addressof(trouble), *words)
        if status not in (0, -2):
            raise MemoryError(f"{self.kernel.__name__} failed (status {status})")
        if self.result == "none":
            return None
        owners: list[int] = []
        result = read(self.result, room, 0, owners)
        for owner in owners:
            self.release(ctypes.c_void_p(owner))
        return result


_BOUND: dict[object, _Bound] = {}


def call(kernel: Kernel, args: tuple[object, ...]) -> Any:
    """Call a kernel from Python."""
    if _PLAIN:
        return _in_python(kernel, args)
    try:
        return _call_compiled(kernel, args)
    except KernelsMissing as reason:
        go_on_in_python(reason)
        return _in_python(kernel, args)


def _call_compiled(kernel: Kernel, args: tuple[object, ...]) -> Any:
    # A generator of NumPy's serves too: it gives a stream for this call.
    given = [_stream_of(arg) if isinstance(arg, np.random.Generator) else arg for arg in args]
    if len(given) != len(kernel.names):
        raise TypeError(f"{kernel.__name__} takes {len(kernel.names)} arguments, not {len(given)}")
    key = kernel if kernel.entry else (kernel, *[_type_key(arg) for arg in given])
    bound = _BOUND.get(key)
    if bound is None:
        bound = _BOUND[key] = _bind(kernel, given)
    return bound(given)


def _bind(kernel: Kernel, args: Sequence[object]) -> _Bound:
    if kernel.entry:
        unit, symbol = _entries(kernel.__module__), f"dfcrp_{kernel.__name__}"
        return _Bound(kernel, kernel.parameters, unit, symbol)
    kinds = tuple(description_of(arg) for arg in args)
    unit, export = _compiled_already(kernel, kinds) or _door_and_export(kernel, kinds)
    return _Bound(kernel, export.parameters, unit, export.symbol)


def _door_and_export(kernel: Kernel, kinds: tuple[Description, ...]) -> tuple[Unit, Export]:
    unit = door(kernel, kinds)
    return unit, unit.exports[0]


def _compiled_already(kernel: Kernel, kinds: tuple[Description, ...]) -> tuple[Unit, Export] | None:
    """The kernel in the table of its class, where it keeps a contract and the types are those."""
    if not kinds or kinds[0][0] != "frame":
        return None
    cls = class_named(kinds[0][1])
    for contract in CONTRACTS.values():
        if any(stub.implementations.get(cls) is kernel for stub in contract.functions):
            unit = table_unit(contract, cls)
            for export in unit.exports:
                if export.kernel is kernel and all(map(_serves, export.parameters, kinds)):
                    return unit, export
    return None


def _serves(declared: Description, given: Description) -> bool:
    """Whether a value of a given type can be handed over as one of a declared type."""
    if declared[0] == "any" and given[0] == "frame":
        return hasattr(class_named(given[1]), "function_table")
    return list(declared) == list(given)


def _stream_of(rng: np.random.Generator) -> Frame:
    from dfcrp.compiled.random import stream

    return Frame(stream(rng))


def _type_key(value: Any) -> object:
    """What the description of a value follows from, found in less time."""
    kind = type(value)
    if kind is np.ndarray:
        return value.dtype.num, value.ndim, value.flags.c_contiguous
    if kind is Frame:
        return type(value.value)
    if isinstance(value, tuple) and not is_frame(kind):
        return kind, *map(_type_key, value)
    return kind


def door(kernel: Kernel, kinds: tuple[Description, ...]) -> Unit:
    """The unit of one kernel for arguments of these types."""
    told = hashlib.sha256(repr(kinds).encode()).hexdigest()[:12]
    name = f"door:{kernel.__module__}.{kernel.__qualname__}:{told}"
    return Unit(name, (Export("dfcrp_door", kernel, kinds),), named=False)


_TABLES: dict[type, NDArray[np.int64]] = {}


def function_table(contract: Contract, kind: type) -> int:
    """The address of the functions by which a class keeps a contract, built first if need be."""
    with _LOADING:
        if kind not in _TABLES:
            unit = table_unit(contract, kind)
            loaded = load(unit)
            there = {export.symbol for export in unit.exports}
            symbols = [f"dfcrp_{stub.__name__}" for stub in contract.functions]
            _TABLES[kind] = np.array(
                [loaded.address(symbol) if symbol in there else 0 for symbol in symbols], np.int64
            )
        return int(_TABLES[kind].__array_interface__["data"][0])


@contextlib.contextmanager
def building(home: Path) -> Iterator[None]:
    """Hold off other processes that would build the same; where there are no locks, both do."""
    home.parent.mkdir(parents=True, exist_ok=True)
    with open(beside(home, ".lock"), "w") as lock:
        with contextlib.suppress(OSError):
            filelocks.wait_for_lock(lock.fileno())
        yield
