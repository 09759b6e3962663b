"""The decorators that compile kernels: all Numba flags and the cache's home are decided here.

Numba's file cache looks only at the file of the compiled function, so a changed callee in
another module would go unnoticed. The cache directory is therefore named after a hash of every
kernel source and of Numba's version: any edit starts a new one.
"""

from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path

import numba
from numba.core.options import DefaultOptions

#: Whether every kernel can be called from Python, as the tests of single kernels need.
_ALL_OPEN = os.environ.get("DFCRP_OPEN_KERNELS") == "1"


def _cache_directory() -> Path:
    digest = hashlib.sha256(f"{numba.__version__} {sys.version} {_ALL_OPEN}".encode())
    for source in sorted(Path(__file__).parent.glob("*.py")):
        digest.update(source.read_bytes())
    base = os.environ.get("DFCRP_CACHE_DIR")
    if base is None:
        home = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        base = str(Path(home) / "dfcrp")
    return Path(base) / f"kernels-{digest.hexdigest()[:16]}"


CACHE = str(_cache_directory())
#: Whether this Numba still knows the switch for its run time (an internal name).
_LEAN = {"_nrt": False} if hasattr(DefaultOptions, "_nrt") else {}


def _compile(function, **options):
    if _ALL_OPEN:
        options["no_cpython_wrapper"] = False
    before = numba.config.CACHE_DIR
    numba.config.CACHE_DIR = CACHE
    try:
        return numba.njit(
            cache=True, nogil=True, error_model="numpy", no_cfunc_wrapper=True, **options
        )(function)
    finally:
        numba.config.CACHE_DIR = before


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
    return _compile(function, no_cpython_wrapper=True, **_LEAN)


def inline_kernel(function):
    """Like ``lean_kernel``, always inlined into its caller.

    A call hands over every array of a state as seven words; for what is called once per marking
    or more often that would be most of the work.
    """
    return _compile(function, forceinline=True, no_cpython_wrapper=True, **_LEAN)


def compile_for(function, *args):
    """Compile a kernel for arguments like these without calling it."""
    function.compile(tuple(numba.typeof(arg) for arg in args))
