"""One process at a time may add to a run folder.

The operating system holds the lock and drops it with the process, however that ends; the file
only says who has it. So what a killed process leaves is no obstacle, and no process number that
was given away again can be mistaken for the old owner.
"""

from __future__ import annotations

import contextlib
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dfcrp.errors import RunFolderError

LOCK = "run.lock"
#: Windows keeps others from reading a locked byte, so one is locked that nobody reads.
_FAR_BYTE = 1 << 30


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Hold the folder's lock; RunFolderError names the process that has it already."""
    path = folder / LOCK
    descriptor = _acquire(path)
    try:
        _refuse_other_machine(path)
        owner = {"pid": os.getpid(), "host": socket.gethostname(), "since": _now()}
        os.ftruncate(descriptor, 0)
        os.lseek(descriptor, 0, os.SEEK_SET)
        os.write(descriptor, json.dumps(owner).encode())
        try:
            yield
        finally:
            # While it is still locked, so that it is ours.
            with contextlib.suppress(OSError):
                path.unlink()
    finally:
        os.close(descriptor)


def _acquire(path: Path) -> int:
    while True:
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
        except OSError as error:
            raise RunFolderError(f"{path}: cannot be written: {error.strerror}") from None
        if not _try_lock(descriptor):
            owner = _owner(path)
            os.close(descriptor)
            who = f"process {owner['pid']} on {owner['host']}" if owner else "another process"
            raise RunFolderError(
                f"{path.parent}: {who} is working on this run; wait until it is done, or stop it"
            )
        # Its last owner may have removed the file between opening and locking.
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        if os.name == "nt":
            import msvcrt

            os.lseek(descriptor, _FAR_BYTE, os.SEEK_SET)
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
        else:
            import fcntl

            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    return True


def _refuse_other_machine(path: Path) -> None:
    """Not every network file system shows one machine what another has locked."""
    owner = _owner(path)
    if owner and owner["host"] != socket.gethostname():
        raise RunFolderError(
            f"{path.parent}: process {owner['pid']} on {owner['host']} has been working on this "
            f"run since {owner['since']} or was killed there; if it no longer runs, delete {path}"
        )


def _owner(path: Path) -> dict[str, Any] | None:
    """Who wrote the lock file; None if that cannot be read."""
    try:
        owner = json.loads(path.read_bytes())
        return owner if {"pid", "host", "since"} <= set(owner) else None
    except (OSError, ValueError, TypeError):
        return None


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
