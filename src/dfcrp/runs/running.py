"""From chains, wherever they stand, to the end of a run: looks, stops, and the record."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any, Protocol

from dfcrp.draws import Columns, Draws
from dfcrp.errors import DfcrpError
from dfcrp.items.items import Items
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.runs.checkpoints import ChainFolder
from dfcrp.runs.dask import ClusterRunner
from dfcrp.runs.storage import StoredDraws
from dfcrp.sampling.chain import Chain
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.runner import MemoryWriter, Progress, Runner, Writer, memory_draws
from dfcrp.settings.config import Config
from dfcrp.summaries.convergence import choose_burn_in, scalar_series

#: Without a number of scans the run is looked at after so many, then after each doubling.
FIRST_LOOK = 500


@dataclass(frozen=True)
class Watch:
    """Whom to tell how a run goes.

    ``progress`` is called from the chains' threads with a ``dfcrp.sampling.runner.Progress``, or,
    for many images, with a ``dfcrp.runs.running_images.ImagesProgress`` after each; ``on_look``
    with the posterior as it stands before it is decided whether to go on; ``on_stop`` at Ctrl-C.
    """

    progress: Callable[[Any], None] | None = None
    on_look: Callable[[Posterior], None] | None = None
    on_stop: Callable[[], None] | None = None


class NothingDrawnError(DfcrpError):
    """The run was stopped, or its time was over, before every chain had its first draw."""


class MemoryStore:
    """Draws of a run that leaves no files."""

    def __init__(self, chains: int, columns: Columns) -> None:
        self._columns = columns
        self.memory = [MemoryWriter() for _ in range(chains)]
        self.writers: list[Writer] = list(self.memory)

    def draws(self, burn_in: int, stop: int) -> Draws:
        """The draws so far; every chain has at least ``stop``."""
        return memory_draws(self.memory, burn_in, self._columns, stop)


class FolderStore:
    """Draws and checkpoints in a run folder."""

    def __init__(self, folder: Path, chains: list[ChainFolder]) -> None:
        self._folder = folder
        self.writers: list[Writer] = list(chains)

    def draws(self, burn_in: int, stop: int) -> Draws:
        """The draws so far; every chain has at least ``stop``."""
        return StoredDraws(self._folder, burn_in=burn_in, stop=stop)


class Sitting:
    """What is drawn between one start of the program and its end."""

    def __init__(
        self,
        problem: Problem,
        store: MemoryStore | FolderStore,
        markings: Items,
        config: Config,
        watch: Watch,
        *,
        workers: int | None = None,
        deadline: float | None = None,
        elsewhere: ClusterRunner | None = None,
    ) -> None:
        """With ``elsewhere`` the chains run there; the store must then be the same run folder."""
        run = config.run
        self.runner = elsewhere or Runner(
            problem,
            store.writers,
            seed=run.seed,
            sampler=run.sampler,
            thin=run.thin,
            workers=workers or run.workers,
            seconds_per_save=run.checkpoint_seconds,
            observer=self._observe,
        )
        self._store = store
        self._markings = markings
        self._config = config
        self._watch = watch
        #: In time.monotonic() seconds; without it the settings say how long to go on from now.
        self._deadline = deadline
        self._goal = 0

    @property
    def chains(self) -> list[Chain]:
        """The chains, where they run in this process."""
        assert isinstance(self.runner, Runner)
        return self.runner.chains

    def run(self) -> Posterior:
        """Go on to the asked-for scans, or in doubling spans until the verdict is good."""
        with stopped_by_interrupt(self.runner, self._watch.on_stop):
            return self._run()

    def _run(self) -> Posterior:
        run, runner = self._config.run, self.runner
        deadline = self._deadline or deadline_of(self._config)
        self._goal = run.scans or next_look(run.thin, run.max_scans, runner.most_scans)
        while True:
            runner.advance(self._goal, deadline)
            posterior = self._look()
            if self._watch.on_look is not None:
                self._watch.on_look(posterior)
            if run.scans is not None or self._goal >= run.max_scans or posterior.verdict.ok:
                return posterior
            if runner.stopped:
                # The stop may have come after the record was made.
                return self._look()
            self._goal = min(2 * self._goal, run.max_scans)

    def _observe(self, seen: Progress) -> None:
        if self._watch.progress is not None:
            self._watch.progress(replace(seen, target=self._goal))

    def _look(self) -> Posterior:
        """The posterior as it stands."""
        run, runner = self._config.run, self.runner
        scans = runner.scans
        if scans < run.thin:
            raise NothingDrawnError("stopped before the first draw: there is nothing to keep")
        draws = scans // run.thin
        if run.burn_in is not None:
            burn_in = min(run.burn_in, scans - run.thin)
        elif run.scans is not None:
            burn_in = scans // 4
        else:
            burn_in = choose_burn_in(scalar_series(self._store.draws(0, draws))) * run.thin
        record = RunRecord(
            scans=scans,
            burn_in=burn_in,
            thin=run.thin,
            seconds=runner.seconds,
            stopped_early=runner.stopped,
            tallies=[chain.tally for chain in runner.chains],
        )
        stored = self._store.draws(burn_in // run.thin, draws)
        return Posterior(stored, self._markings, self._config, record)


def next_look(thin: int, max_scans: int, scans: int) -> int:
    """The look that an open-ended run is on its way to, or at, after so many scans.

    A run that is gone on with thus keeps to the looks of one that was never stopped.
    """
    look = FIRST_LOOK * thin
    while look < scans:
        look *= 2
    return min(look, max_scans)


def deadline_of(config: Config) -> float | None:
    """When a run that begins now has to stop, in time.monotonic() seconds."""
    minutes = config.run.max_minutes
    return None if minutes is None else time.monotonic() + 60.0 * minutes


class Stoppable(Protocol):
    """What Ctrl-C stops."""

    def stop(self) -> None:
        """Come to an end soon, and leave everything in order."""
        ...


@contextmanager
def stopped_by_interrupt(runner: Stoppable, on_stop: Callable[[], None] | None) -> Iterator[None]:
    """Let Ctrl-C ask the chains to stop instead of raising wherever it happens to hit.

    Only the main thread may change what a signal does, and a handler of someone else is kept.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runner.stop()
        if on_stop is not None:
            on_stop()

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
