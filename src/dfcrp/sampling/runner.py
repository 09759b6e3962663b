"""Many chains at once, in threads: the kernels run without Python's lock.

Each chain has its own generator, spawned from the run's seed, and its own writer. What a chain
draws depends on neither the number of workers nor the moments at which it is looked at.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from dfcrp.sampling.chain import Chain, DrawBlock
from dfcrp.sampling.draws import ClusterBlock, MemoryDraws
from dfcrp.sampling.problem import PARAMETER_NAMES, Problem

#: Blocks are cut so that a chain answers to a stop and reports about this often.
SECONDS_PER_BLOCK = 0.5
#: Flushing writes the unfinished ends of every array, so it is done more rarely.
SECONDS_PER_FLUSH = 10.0


class Writer(Protocol):
    """Takes one chain's draws; ``dfcrp.sampling.storage.DrawWriter`` is one."""

    def append(
        self,
        labels: NDArray[np.int32],
        alpha: NDArray[np.float64],
        offsets: NDArray[np.int64],
        cluster_labels: NDArray[np.int32],
        parameters: NDArray[np.float32],
    ) -> None:
        """Add a block of draws."""
        ...

    def flush(self) -> None:
        """Make what was added safe."""
        ...


class MemoryWriter:
    """Keeps one chain's draws in memory."""

    def __init__(self) -> None:
        self.blocks: list[DrawBlock] = []

    def append(
        self,
        labels: NDArray[np.int32],
        alpha: NDArray[np.float64],
        offsets: NDArray[np.int64],
        cluster_labels: NDArray[np.int32],
        parameters: NDArray[np.float32],
    ) -> None:
        """Add a block of draws."""
        self.blocks.append(DrawBlock(labels, alpha, offsets, cluster_labels, parameters))

    def flush(self) -> None:
        """Nothing to do in memory."""


@dataclass(frozen=True)
class Progress:
    """What an observer is told after each block of a chain."""

    chain: int
    scans: int
    target: int
    last: DrawBlock


class Runner:
    """Chains of one problem that advance together and stop together."""

    def __init__(
        self,
        problem: Problem,
        writers: list[Writer],
        *,
        seed: int,
        sampler: str = "exact",
        thin: int = 1,
        workers: int | None = None,
        observer: Callable[[Progress], None] | None = None,
    ) -> None:
        seeds = np.random.SeedSequence(seed).spawn(len(writers))
        self.chains = [Chain(problem, child, sampler) for child in seeds]
        self.seconds = 0.0
        self._writers = writers
        self._thin = thin
        self._workers = workers
        self._observer = observer
        self._stop = threading.Event()
        self._seconds_per_draw = [0.0] * len(writers)

    @property
    def scans(self) -> int:
        """Scans that every chain has done."""
        return min(chain.scans for chain in self.chains)

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let every chain finish its block and return."""
        self._stop.set()

    def advance(self, scans: int, deadline: float | None = None) -> None:
        """Bring every chain to so many scans since its start.

        Ctrl-C or a passed ``deadline`` (in time.monotonic() seconds) ends it early with
        everything drawn so far flushed; ``stopped`` tells.
        """
        start = time.monotonic()
        workers = min(self._workers or cores(), len(self.chains))
        with ThreadPoolExecutor(workers) as pool:
            jobs = [
                pool.submit(self._advance_chain, index, scans, deadline)
                for index in range(len(self.chains))
            ]
            try:
                for job in jobs:
                    job.result()
            except KeyboardInterrupt:
                self.stop()
            except BaseException:
                self.stop()
                raise
        for job in jobs:
            job.result()
        self.seconds += time.monotonic() - start

    def _advance_chain(self, index: int, scans: int, deadline: float | None) -> None:
        chain, writer = self.chains[index], self._writers[index]
        flushed = time.monotonic()
        while chain.scans + self._thin <= scans and not self._stop.is_set():
            left = (scans - chain.scans) // self._thin
            begun = time.monotonic()
            if deadline is not None and begun > deadline:
                self._stop.set()
                break
            block = chain.run(min(left, self._block_length(index)), self._thin)
            now = time.monotonic()
            self._seconds_per_draw[index] = (now - begun) / len(block.alpha)
            writer.append(*block)
            if now - flushed > SECONDS_PER_FLUSH:
                writer.flush()
                flushed = now
            if self._observer is not None:
                self._observer(Progress(index, chain.scans, scans, block))
        writer.flush()

    def _block_length(self, index: int) -> int:
        pace = self._seconds_per_draw[index]
        wanted = int(SECONDS_PER_BLOCK / pace) if pace > 0 else 1
        return max(1, min(wanted, self.chains[index].largest_block()))


def memory_draws(writers: list[MemoryWriter], burn_in: int) -> MemoryDraws:
    """The draws that memory writers hold, without the first ``burn_in`` of each chain."""
    length = min(sum(len(block.alpha) for block in writer.blocks) for writer in writers)
    labels, alpha, clusters = [], [], []
    for writer in writers:
        joined = [np.concatenate(parts) for parts in _columns(writer.blocks)]
        counts = np.concatenate([np.diff(block.offsets) for block in writer.blocks])
        offsets = np.concatenate([[0], np.cumsum(counts)])
        first, last = offsets[burn_in], offsets[length]
        labels.append(joined[0][burn_in:length])
        alpha.append(joined[1][burn_in:length])
        clusters.append(
            ClusterBlock(
                offsets[burn_in : length + 1] - first, joined[2][first:last], joined[3][first:last]
            )
        )
    return MemoryDraws(np.stack(labels), np.stack(alpha), clusters, PARAMETER_NAMES)


def _columns(blocks: list[DrawBlock]) -> list[list[np.ndarray]]:
    return [
        [getattr(block, name) for block in blocks]
        for name in ("labels", "alpha", "cluster_labels", "parameters")
    ]


def cores() -> int:
    """Cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
