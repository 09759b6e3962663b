"""A limit of time against which compiling does not count."""

from __future__ import annotations

import time

from dfcrp.compiled.library import COMPILING, Compiling


def compiling() -> Compiling:
    """How the compiling goes in this process."""
    return COMPILING


class TimeLimit:
    """So many minutes from now on, without the time in which kernels are compiled."""

    def __init__(self, minutes: float | None) -> None:
        self._compiling = compiling()
        before = self._compiling.seconds
        self._end = None if minutes is None else time.monotonic() + 60.0 * minutes - before

    def seconds_left(self) -> float | None:
        """Until the limit, negative after it; None if there is no limit."""
        if self._end is None:
            return None
        return self._end + self._compiling.seconds - time.monotonic()

    @property
    def passed(self) -> bool:
        """Whether time is up."""
        left = self.seconds_left()
        return left is not None and left < 0.0
