"""How far a run over many images has come."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from dfcrp.settings.config import Config

if TYPE_CHECKING:
    from dfcrp.runs.running_images import ImagesProgress


@dataclass(frozen=True)
class ImagesGlimpse:
    """Where the run stands, over the images that are done."""

    done: int
    of: int
    seconds_left: float | None
    clusters: float
    agreed: float
    good: int

    @property
    def share(self) -> float:
        """How many of the images are done, from 0 to 1."""
        return self.done / self.of

    def place(self) -> str:
        """How far, in words."""
        return f"{self.done:,} of {self.of:,} images"

    def counts(self, min_experts: int) -> str:
        """The running counts in words."""
        return (
            f"{self.clusters:,.0f} clusters, {self.agreed:,.0f} by {min_experts}+ experts, "
            f"verdict good for {self.good:,}"
        )


class ImagesTracker:
    """Adds up what the images report; safe to call from many threads."""

    def __init__(self, config: Config) -> None:
        self.min_experts = config.summary.min_experts
        self._lock = threading.Lock()
        self._sums = [0.0, 0.0]
        self._good = 0
        self._done = 0
        self._first: tuple[float, int] | None = None

    def note(self, seen: ImagesProgress) -> ImagesGlimpse:
        """Take in one image's report and give the state of them all."""
        now = time.monotonic()
        with self._lock:
            self._sums[0] += seen.clusters
            self._sums[1] += seen.agreed
            self._good += seen.ok
            self._done += 1
            if self._first is None:
                self._first = (now, self._done)
            elapsed, advanced = now - self._first[0], self._done - self._first[1]
            left = elapsed * (seen.of - self._done) / advanced if elapsed > 1.0 else None
            clusters, agreed = self._sums
            return ImagesGlimpse(self._done, seen.of, left, clusters, agreed, self._good)
