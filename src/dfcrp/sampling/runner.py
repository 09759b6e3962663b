"""Many chains at once, in threads: the kernels run without Python's lock.

Each chain has its own generator, spawned from the run's seed, and its own writer. What a chain
draws depends on neither the number of workers nor the moments at which it is looked at. Workers
take turns with the chains, block by block, the chain that is furthest behind first: so a stop
finds them level, also when there are more chains than workers.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, Protocol, TypeVar

import numpy as np

from dfcrp.compiled.library import COMPILING, Compiling
from dfcrp.draws import DrawBlock
from dfcrp.sampling.chain import START_SCANS, Chain, have_compiled
from dfcrp.sampling.problem import Problem

#: Blocks are cut so that a chain answers to a stop and reports about this often.
SECONDS_PER_BLOCK = 0.5
#: Near the end of a limit blocks are shorter, but no shorter than this.
LEAST_SECONDS = 0.002
#: Saving writes the unfinished ends of every array and the whole state, so it is done more rarely.
SECONDS_PER_SAVE = 30.0
#: Of the time of a chain, the largest share that is spent on saving, however much there is to save.
MOST_SAVING = 0.05
#: A chain so many of its blocks ahead of the last one waits for it.
MOST_BLOCKS_AHEAD = 4


def compiling() -> Compiling:
    """How the compiling goes in this process."""
    return COMPILING


class TimeLimit:
    """So many minutes from now on, without the time in which kernels are compiled.

    With ``at_least_one`` every chain has its first draw nevertheless.
    """

    def __init__(self, minutes: float | None, *, at_least_one: bool = False) -> None:
        self._compiling = compiling()
        before = self._compiling.seconds
        self.minutes, self.at_least_one = minutes, at_least_one
        self._begun = time.monotonic() - before
        self._end = None if minutes is None else self._begun + 60.0 * minutes

    def seconds_left(self) -> float | None:
        """Until the limit, negative after it; None if there is no limit."""
        if self._end is None:
            return None
        return self._end + self._compiling.seconds - time.monotonic()

    def seconds_gone(self) -> float:
        """Since the beginning."""
        return time.monotonic() - self._begun - self._compiling.seconds

    @property
    def passed(self) -> bool:
        """Whether time is up."""
        left = self.seconds_left()
        return left is not None and left < 0.0


class Advancing(Protocol):
    """A chain, here or on another machine."""

    @property
    def scans(self) -> int:
        """Scans done since the start."""


OneChain = TypeVar("OneChain", bound=Advancing)


class Together(Generic[OneChain]):
    """What all runners share; ``advance`` and ``restore`` are theirs."""

    def __init__(self, chains: list[OneChain]) -> None:
        self.chains = chains
        #: Time spent in ``advance``, and before that if a run is resumed.
        self.seconds = 0.0
        self._stop = threading.Event()

    @property
    def scans(self) -> int:
        """Scans that every chain has done."""
        return min(chain.scans for chain in self.chains)

    @property
    def most_scans(self) -> int:
        """Scans of the chain that is furthest ahead."""
        return max(chain.scans for chain in self.chains)

    @property
    def stopped(self) -> bool:
        """Whether a stop was asked for."""
        return self._stop.is_set()

    def stop(self) -> None:
        """Let every chain finish its block and return."""
        self._stop.set()


class Writer(Protocol):
    """Takes one chain's draws; ``dfcrp.runs.chain_writer.ChainWriter`` is one."""

    def append(self, block: DrawBlock) -> None:
        """Add a block of draws."""
        ...

    def save(self, chain: Chain, seconds: float) -> None:
        """Make safe what was added, and how to continue from there."""
        ...

    def restore(self, chain: Chain, thin: int) -> float:
        """Bring the chain to where it was saved; the seconds that the run had taken by then."""
        ...


@dataclass(frozen=True)
class Progress:
    """What an observer is told after each block of a chain."""

    chain: int
    scans: int
    target: int
    last: DrawBlock


@dataclass(frozen=True)
class Beginning:
    """What an observer is told while a chain looks for where it begins."""

    chain: int
    scans: int
    of: int


class Runner(Together[Chain]):
    """Chains of one problem that advance together and stop together."""

    def __init__(
        self,
        problem: Problem,
        writers: list[Writer],
        *,
        seed: int,
        chain: int | None = None,
        sampler: str = "exact",
        thin: int = 1,
        workers: int | None = None,
        seconds_per_save: float = SECONDS_PER_SAVE,
        observer: Callable[[Progress], None] | None = None,
        on_begin: Callable[[Beginning], None] | None = None,
    ) -> None:
        """``chain`` is the number of the only chain that is run here, of a run with more."""
        numbers = range(len(writers)) if chain is None else [chain]
        seeds = [np.random.SeedSequence(seed).spawn(number + 1)[number] for number in numbers]
        have_compiled(problem, sampler)
        # Cores that are left over by the chains work inside them.
        threads = max(1, (workers or cores()) // len(writers))
        super().__init__([Chain(problem, child, sampler, threads) for child in seeds])
        self._writers = writers
        self._thin = thin
        self._workers = workers
        self._observer = observer
        self._on_begin = on_begin
        self._seconds_per_save = seconds_per_save
        self._seconds_per_draw = [0.0] * len(writers)
        self._block_seconds, self._side_by_side = SECONDS_PER_BLOCK, 1
        self._saved = [-np.inf] * len(writers)
        self._seconds_of_save = [0.0] * len(writers)
        #: Guards ``_busy``; told whenever a worker is done with a block.
        self._turns = threading.Condition()
        self._busy: set[int] = set()

    def restore(self) -> None:
        """Bring every chain to where its writer has saved it."""
        pairs = zip(self._writers, self.chains, strict=True)
        self.seconds = max(writer.restore(chain, self._thin) for writer, chain in pairs)

    def advance(self, scans: int, limit: TimeLimit | None = None) -> None:
        """Bring every chain to so many scans since its start.

        Ctrl-C or a passed limit ends it early with everything drawn so far saved; ``stopped``
        tells.
        """
        start = time.monotonic()
        workers = self._side_by_side = min(self._workers or cores(), len(self.chains))
        self._block_seconds = SECONDS_PER_BLOCK
        with ThreadPoolExecutor(workers) as pool:
            jobs = [pool.submit(self._take_turns, scans, start, limit) for _ in range(workers)]
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
        for index in range(len(self.chains)):
            self._save(index, self.seconds)

    def _take_turns(self, scans: int, start: float, limit: TimeLimit | None) -> None:
        """One worker: a block of this chain, a block of that, until none has any left to do."""
        while (index := self._next_chain(scans)) is not None:
            try:
                if limit is not None and limit.passed and self._may_end(limit):
                    self._stop.set()
                    return
                if self.chains[index].to_begin:
                    self._begin(index)
                    continue
                self._run_block(index, scans, limit)
                if time.monotonic() - self._saved[index] > self._seconds_to_save(index):
                    self._save(index, self.seconds + time.monotonic() - start)
            except BaseException:
                # Before the chain is given back, or another worker would take it up.
                self._stop.set()
                raise
            finally:
                with self._turns:
                    self._busy.remove(index)
                    self._turns.notify_all()

    def _may_end(self, limit: TimeLimit) -> bool:
        return self.scans >= self._thin or not limit.at_least_one

    def _next_chain(self, scans: int) -> int | None:
        """Take the free chain that is furthest behind; None if there is nothing to do."""
        with self._turns:
            while not self._stop.is_set():
                free = [
                    index
                    for index, chain in enumerate(self.chains)
                    if index not in self._busy and chain.scans + self._thin <= scans
                ]
                if not free:
                    return None
                index = min(free, key=lambda i: self.chains[i].scans)
                ahead = self.chains[index].scans - self.scans
                if ahead <= MOST_BLOCKS_AHEAD * self._block_length(index) * self._thin:
                    self._busy.add(index)
                    return index
                self._turns.wait()
        return None

    def _begin(self, index: int) -> None:
        """Some scans of the run that gives a chain its first partition."""
        chain, pace = self.chains[index], self._seconds_per_draw[index]
        begun = time.monotonic()
        scans = min(chain.to_begin, max(int(SECONDS_PER_BLOCK / pace), 1) if pace > 0 else 1)
        chain.begin(scans)
        # A draw under the prior itself takes another time.
        self._seconds_per_draw[index] = (time.monotonic() - begun) / scans * bool(chain.to_begin)
        if self._on_begin is not None:
            self._on_begin(Beginning(index, START_SCANS - chain.to_begin, START_SCANS))

    def _run_block(self, index: int, scans: int, limit: TimeLimit | None) -> None:
        left = None if limit is None else limit.seconds_left()
        if left is not None:
            # A few turns for each chain, or the limit would find some far behind others.
            turns = MOST_BLOCKS_AHEAD * len(self.chains) / self._side_by_side
            self._block_seconds = min(SECONDS_PER_BLOCK, max(left / turns, LEAST_SECONDS))
        chain = self.chains[index]
        left = (scans - chain.scans) // self._thin
        begun = time.monotonic()
        block = chain.run(min(left, self._block_length(index)), self._thin)
        self._seconds_per_draw[index] = (time.monotonic() - begun) / len(block.alpha)
        self._writers[index].append(block)
        if self._observer is not None:
            self._observer(Progress(index, chain.scans, scans, block))

    def _save(self, index: int, seconds: float) -> None:
        begun = time.monotonic()
        self._writers[index].save(self.chains[index], seconds)
        self._saved[index] = time.monotonic()
        self._seconds_of_save[index] = self._saved[index] - begun

    def _seconds_to_save(self, index: int) -> float:
        """How long after a save the next one is due: saving takes MOST_SAVING of the time.

        Whoever asks for saves after every block, with 0 seconds, gets them.
        """
        wanted = self._seconds_per_save
        return max(wanted, self._seconds_of_save[index] / MOST_SAVING) if wanted > 0 else wanted

    def _block_length(self, index: int) -> int:
        pace = self._seconds_per_draw[index]
        wanted = int(self._block_seconds / pace) if pace > 0 else 1
        return max(1, min(wanted, self.chains[index].largest_block()))


def cores() -> int:
    """Cores that this process may use."""
    import os

    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
