"""The chains of one part of a run, from wherever they stand to its end."""

from __future__ import annotations

import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from types import FrameType
from typing import Any, Generic, Protocol, TypeVar

from dfcrp.draws import Draws
from dfcrp.errors import DfcrpError
from dfcrp.runs.record import RunRecord
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.runner import Progress, Runner, Writer
from dfcrp.settings.config import Config
from dfcrp.summaries.convergence import Verdict, choose_burn_in, scalar_series

#: Without a number of scans the run is looked at after so many, then after each doubling.
FIRST_LOOK = 500


@dataclass(frozen=True)
class Watch:
    """Whom to tell how a run goes.

    ``progress`` is called from the chains' threads with a ``dfcrp.sampling.runner.Progress``, or,
    for many images, with a ``dfcrp.fitting.run.ImageDone`` after each; ``on_look`` with the
    posterior as it stands before it is decided whether to continue; ``on_stop`` at Ctrl-C.
    """

    progress: Callable[[Any], None] | None = None
    on_look: Callable[[Any], None] | None = None
    on_stop: Callable[[], None] | None = None


class NothingDrawnError(DfcrpError):
    """The run was stopped, or its time was over, before every chain had its first draw."""


class Judged(Protocol):
    """What is made of the draws at a look."""

    @property
    def verdict(self) -> Verdict:
        """Whether there are enough."""


Found = TypeVar("Found", bound=Judged)


class DrawSource(Protocol):
    """Where the draws of the parts are."""

    def draws(self, part: int = 0, burn_in: int = 0, stop: int | None = None) -> Draws:
        """Draws ``burn_in:stop`` of every chain of a part."""


class PartRun(Generic[Found]):
    """The chains of one part; ``judge`` makes of draws and record what the caller wants."""

    def __init__(
        self,
        config: Config,
        store: DrawSource,
        part: int,
        judge: Callable[[Draws, RunRecord], Found],
        *,
        watch: Watch,
        deadline: float | None,
    ) -> None:
        self._config = config
        self._store = store
        self._part = part
        self._judge = judge
        self._watch = watch
        #: In time.monotonic() seconds.
        self._deadline = deadline
        self._goal = 0

    def start(self, problem: Problem, writers: list[Writer], workers: int | None) -> Runner:
        """The chains in this process, at the place to which their writers bring them."""
        run = self._config.run
        runner = Runner(
            problem,
            writers,
            seed=run.seed,
            sampler=run.sampler,
            thin=run.thin,
            workers=workers,
            seconds_per_save=run.checkpoint_seconds,
            observer=self._observe,
        )
        runner.restore()
        return runner

    def advance(self, runner: Any) -> Found:
        """Draw to the asked-for scans, or in doubling spans until the verdict is good."""
        run = self._config.run
        self._goal = run.scans or next_look(run.thin, run.max_scans, runner.most_scans)
        while True:
            runner.advance(self._goal, self._deadline)
            found = self._look(runner)
            if self._watch.on_look is not None:
                self._watch.on_look(found)
            if run.scans is not None or self._goal >= run.max_scans or found.verdict.ok:
                return found
            if runner.stopped:
                # The stop may have come after the record was made.
                return self._look(runner)
            self._goal = min(2 * self._goal, run.max_scans)

    def _observe(self, seen: Progress) -> None:
        if self._watch.progress is not None:
            self._watch.progress(replace(seen, target=self._goal))

    def _look(self, runner: Any) -> Found:
        """What is made of the draws as they stand."""
        run = self._config.run
        scans = runner.scans
        if scans < run.thin:
            raise NothingDrawnError("stopped before the first draw: there is nothing to keep")
        draws = scans // run.thin
        if run.burn_in is not None:
            burn_in = min(run.burn_in, scans - run.thin)
        elif run.scans is not None:
            burn_in = scans // 4
        else:
            series = scalar_series(self._store.draws(self._part, 0, draws))
            burn_in = choose_burn_in(series) * run.thin
        record = RunRecord(
            scans=scans,
            burn_in=burn_in,
            thin=run.thin,
            seconds=runner.seconds,
            stopped_early=runner.stopped,
            tallies=[chain.tally for chain in runner.chains],
        )
        return self._judge(self._store.draws(self._part, burn_in // run.thin, draws), record)


def next_look(thin: int, max_scans: int, scans: int) -> int:
    """The look that an open-ended run is on its way to, or at, after so many scans.

    A resumed run thus keeps to the looks of one that was never stopped.
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
