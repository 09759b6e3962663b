"""Locks on files, which the operating system holds and drops with the process that has them.

POSIX has ``flock``, Windows locks a range of bytes. Nothing is imported from either before a lock
is asked for, so that everything else works where there are none (``there_are`` tells).
"""

from __future__ import annotations

import errno
import functools
import os
import time
from collections.abc import Callable

#: Windows keeps others from reading a locked byte, so one is locked that nobody reads.
FAR_BYTE = 1 << 30
#: How the systems say that another process has the lock.
_TAKEN = {errno.EAGAIN, errno.EACCES, errno.EDEADLK, getattr(errno, "EDEADLOCK", errno.EDEADLK)}
#: Seconds between two tries, where a system cannot wait for as long as it takes.
_PAUSE = 0.05


def there_are() -> bool:
    """Whether this system has locks."""
    return _system() is not None


def try_lock(descriptor: int) -> bool:
    """Lock an open file for this process; False if another has it.

    Without locks on this system the answer is True. OSError where the file's disk has none.
    """
    lock = _system()
    try:
        if lock is not None:
            lock(descriptor)
    except OSError as error:
        if error.errno in _TAKEN:
            return False
        raise
    return True


def wait_for_lock(descriptor: int) -> None:
    """Lock an open file for this process, as soon as no other has it."""
    while not try_lock(descriptor):
        time.sleep(_PAUSE)


@functools.cache
def _system() -> Callable[[int], None] | None:
    """Takes a lock, or fails at once; None where there are no locks."""
    try:
        import fcntl
    except ImportError:
        pass
    else:
        return lambda descriptor: fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    try:
        import msvcrt
    except ImportError:
        return None

    def lock_byte(descriptor: int) -> None:
        os.lseek(descriptor, FAR_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]

    return lock_byte
