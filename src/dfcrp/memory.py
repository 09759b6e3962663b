"""How much memory this process may use, and refusing what needs more before it is begun.

What counts is the least of what the machine has left, the limit of the container (control groups,
versions 1 and 2) and the limit of the process. Where none of it can be found out there is no limit.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from dfcrp.errors import InputError

#: Set this to a number of bytes to allow more or less than is found.
VARIABLE = "DFCRP_MEMORY"
_CGROUPS = Path("/sys/fs/cgroup")
_NO_LIMIT = 1 << 62


def memory_at_hand() -> int:
    """Bytes that this process may still use; a number beyond all bounds if that is not known."""
    said = os.environ.get(VARIABLE, "")
    if said.isdecimal():
        return int(said)
    return min([_NO_LIMIT, *_machine(), *_container(), *_process()])


def refuse_more_than_memory(needed: float, what: str, advice: str) -> None:
    """InputError if so many bytes are more than there are.

    ``what`` says for what they are needed, ``advice`` what can be done.
    """
    there = memory_at_hand()
    if needed > there:
        raise InputError(
            f"{what} takes about {in_words(needed)} of memory, and {in_words(there)} are "
            f"available; {advice}"
        )


def in_words(size: float) -> str:
    """Bytes in a unit in which they are easy to read."""
    for unit in ("bytes", "kB", "MB", "GB"):
        if size < 1000:
            return f"{size:.3g} {unit}" if unit != "bytes" else f"{size:.0f} {unit}"
        size /= 1000
    return f"{size:,.3g} TB" if size < 1e6 else "far more than any machine's worth"


def _machine() -> Iterator[int]:
    """What the system says is available without swapping."""
    try:
        for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
            if line.startswith("MemAvailable:"):
                yield int(line.split()[1]) * 1024
                return
    except (OSError, ValueError, IndexError):
        pass
    try:
        yield os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return


def _container() -> Iterator[int]:
    """What the control groups of this process leave; every group above it counts."""
    try:
        groups = Path("/proc/self/cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return
    for line in groups:
        _, controllers, path = line.split(":", 2)
        if controllers == "":
            root, names = _CGROUPS, ("memory.max", "memory.current")
        elif "memory" in controllers.split(","):
            root = _CGROUPS / "memory"
            names = ("memory.limit_in_bytes", "memory.usage_in_bytes")
        else:
            continue
        # Inside a container the path may be that outside of it; its root is ours then.
        place = root / path.lstrip("/")
        for folder in {root, *([place, *place.parents] if place.is_dir() else [])}:
            if folder == root or root in folder.parents:
                yield from _left(folder / names[0], folder / names[1])


def _left(limit: Path, used: Path) -> Iterator[int]:
    try:
        most = int(limit.read_text(encoding="ascii"))
        if most < _NO_LIMIT:
            yield max(0, most - int(used.read_text(encoding="ascii")))
    except (OSError, ValueError):  # "max", or no such file
        return


def _process() -> Iterator[int]:
    """What ``ulimit -v`` leaves."""
    try:
        import resource
    except ImportError:
        return
    most, _ = resource.getrlimit(resource.RLIMIT_AS)
    if most == resource.RLIM_INFINITY:
        return
    try:
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
        yield max(0, most - pages * resource.getpagesize())
    except (OSError, ValueError, IndexError):
        yield most
