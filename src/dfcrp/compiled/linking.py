"""From object code to a shared library, by whatever links on this system.

How is a row of a table; only Linux's has been tried. Where nothing links, or what was linked cannot
be loaded, object code is kept instead, which LLVM loads (``compiled.library``): all works, but
llvmlite must be there.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class System:
    """How a system makes shared libraries."""

    ending: str
    #: Compilers that know how to call the linker, the first that is there; CC goes before them.
    compilers: tuple[str, ...]
    flags: tuple[str, ...]
    libraries: tuple[str, ...] = ()


SYSTEMS = {
    "linux": System(".so", ("cc", "gcc", "clang"), ("-shared", "-Wl,--no-undefined"), ("-lm",)),
    # Apple's linker refuses undefined functions without being asked to.
    "darwin": System(".dylib", ("cc", "clang"), ("-dynamiclib",)),
    # Not MSVC's cl, which takes other options; clang finds its libraries.
    "win32": System(".dll", ("clang", "gcc"), ("-shared",)),
}
#: Other systems, as a rule some Unix.
OTHER = System(".so", ("cc", "gcc", "clang"), ("-shared",), ("-lm",))
#: The one that this is.
SYSTEM = SYSTEMS.get(sys.platform, OTHER)
#: Whether a library gives away only functions that say so.
EXPORTS_ARE_MARKED = sys.platform == "win32"
#: Of object code.
OBJECT = ".o"


class CannotLink(RuntimeError):
    """There is a linker, and it fails or makes what cannot be loaded."""


def compiler() -> list[str] | None:
    """The command that links, perhaps with options, as CC may have; None if there is none."""
    given = shlex.split(os.environ.get("CC", ""), posix=os.name != "nt")
    if given:
        return given if shutil.which(given[0]) else None
    return next(([name] for name in SYSTEM.compilers if shutil.which(name)), None)


def link(part: Path, shared: Path) -> bool:
    """Make a shared library of object code; False if nothing here can link, CannotLink if it fails.

    Nobody may look at ``shared`` meanwhile.
    """
    linker = compiler()
    if linker is None:
        return False
    command = [*linker, *SYSTEM.flags, "-o", str(shared), str(part), *SYSTEM.libraries]
    try:
        _run(command)
        _load(shared)
    except OSError as error:
        with contextlib.suppress(OSError):
            shared.unlink()
        raise CannotLink(f"{shlex.join(linker)} {error}") from None
    return True


def _run(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False, errors="replace")
    if done.returncode != 0:
        raise OSError(f"ended with {done.returncode} ({done.stderr.strip()[-300:]})")


def _load(shared: Path) -> None:
    try:
        ctypes.CDLL(str(shared))
    except OSError as error:
        # Its name holds that of the part that was linked.
        raise OSError(f"made what cannot be loaded ({str(error).rpartition(': ')[2]})") from None
