"""What a user sees while chains run: a bar on a terminal, else plain lines."""

from __future__ import annotations

import math
import sys
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import click
import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.markup import counted
from dfcrp.runs.part_run import Watch
from dfcrp.settings.config import Config

if TYPE_CHECKING:
    from dfcrp.fitting.run import ImageDone
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.sampling.runner import Progress

#: Plain lines come about this often.
SECONDS_PER_LINE = 10.0
#: After this much silence before the first draw the kernels are probably being compiled.
SECONDS_TO_COMPILE = 4.0
COMPILING = "starting; the first run on a machine compiles the sampler, a minute or two"


@dataclass(frozen=True)
class Glimpse:
    """Where the run stands, averaged over the chains that have begun."""

    scans: float
    target: int
    seconds_left: float | None
    clusters: float
    agreed: float
    alpha: float

    @property
    def share(self) -> float:
        """How much of the way to the target is done, from 0 to 1."""
        return self.scans / self.target

    def place(self) -> str:
        """How far, in words."""
        return f"scan {self.scans:,.0f} of {self.target:,}"

    def counts(self, min_experts: int) -> str:
        """The running counts in words."""
        counts = f"{self.clusters:,.0f} clusters, {self.agreed:,.0f} by {min_experts}+ experts"
        # Not every prior has an α.
        return counts if math.isnan(self.alpha) else f"{counts}, α {self.alpha:.1f}"


class Tracker:
    """Averages what the chains report; safe to call from their threads.

    ``begun`` are the scans that each chain has done before.
    """

    def __init__(
        self, families: NDArray[np.int64], config: Config, begun: Sequence[int] = ()
    ) -> None:
        self.min_experts = config.summary.min_experts
        self._families = families
        self._n_families = int(families.max()) + 1
        self._latest: dict[int, tuple[float, float, float]] = {}
        self._scans = list(begun) or [0] * config.run.chains
        self._first: tuple[float, int] | None = None
        minutes = config.run.max_minutes
        self._deadline = None if minutes is None else time.monotonic() + 60.0 * minutes
        self._lock = threading.Lock()

    def note(self, seen: Progress) -> Glimpse:
        """Take in one chain's report and give the state of them all."""
        labels, alpha = seen.last.labels[-1], float(seen.last.alpha[-1])
        clusters, agreed = self._count(labels)
        with self._lock:
            self._latest[seen.chain] = (clusters, agreed, alpha)
            means = [float(mean) for mean in np.mean(list(self._latest.values()), axis=0)]
            self._scans[seen.chain] = seen.scans
            done, chains = sum(self._scans), len(self._scans)
            left = self._seconds_left(done, chains * seen.target - done)
        return Glimpse(done / chains, seen.target, left, *means)

    def _count(self, labels: NDArray[np.int32]) -> tuple[int, int]:
        """Clusters, and clusters with enough different experts."""
        held = np.unique(labels.astype(np.int64) * self._n_families + self._families)
        _, experts = np.unique(held // self._n_families, return_counts=True)
        return len(experts), int(np.count_nonzero(experts >= self.min_experts))

    def _seconds_left(self, done: int, to_do: int) -> float | None:
        """From the pace since the first report, which came after compilation."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        elapsed, advanced = now - self._first[0], done - self._first[1]
        left = elapsed * to_do / advanced if advanced > 0 and elapsed > 1.0 else None
        if self._deadline is None:
            return left
        until = max(self._deadline - now, 0.0)
        return until if left is None else min(left, until)


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

    def note(self, seen: ImageDone) -> ImagesGlimpse:
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


class AnyTracker(Protocol):
    """Takes what a run reports and says where it stands."""

    min_experts: int

    def note(self, seen: Any) -> Glimpse | ImagesGlimpse:
        """Take in a report."""
        ...


class Display(Protocol):
    """Shows a run as it goes; used as a context."""

    def __enter__(self) -> Display:
        """Begin to show."""
        ...

    def __exit__(self, *_: object) -> None:
        """Leave the screen tidy."""
        ...

    def advance(self, seen: Any) -> None:
        """Show how far a chain has come, or that an image is done."""
        ...

    def say(self, line: str) -> None:
        """Print a line that stays."""
        ...


class Silent:
    """Shows nothing."""

    def __enter__(self) -> Silent:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def advance(self, seen: Any) -> None:
        """Nothing to do."""

    def say(self, line: str) -> None:
        """Nothing to do."""


class Lines:
    """Plain lines on stderr, for log files and pipes."""

    def __init__(self, tracker: AnyTracker) -> None:
        self._tracker = tracker
        self._lock = threading.Lock()
        self._next = 0.0
        self._timer = threading.Timer(SECONDS_TO_COMPILE, self.say, [COMPILING])
        self._timer.daemon = True

    def __enter__(self) -> Lines:
        self._next = time.monotonic() + SECONDS_PER_LINE
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()

    def advance(self, seen: Any) -> None:
        """Print a line if the last one is long enough ago."""
        self._timer.cancel()
        glimpse = self._tracker.note(seen)
        with self._lock:
            if time.monotonic() < self._next:
                return
            self._next = time.monotonic() + SECONDS_PER_LINE
            click.echo(_line(glimpse, self._tracker.min_experts), err=True)

    def say(self, line: str) -> None:
        """Print a line."""
        click.echo(line, err=True)


class Bar:
    """A progress bar with time left and running counts, on a terminal."""

    def __init__(self, tracker: AnyTracker, console: Any) -> None:
        from rich.progress import BarColumn, Progress, TextColumn

        self._tracker = tracker
        self._bar = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            TextColumn("{task.fields[counts]}"),
            console=console,
            transient=True,
        )
        self._task = self._bar.add_task("starting", total=1.0, counts="")
        self._timer = threading.Timer(SECONDS_TO_COMPILE, self._say_compiling)
        self._timer.daemon = True

    def __enter__(self) -> Bar:
        self._bar.start()
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._bar.stop()

    def advance(self, seen: Any) -> None:
        """Move the bar."""
        self._timer.cancel()
        glimpse = self._tracker.note(seen)
        arrived = glimpse.share >= 1.0
        left = "" if glimpse.seconds_left is None else f"{_clock(glimpse.seconds_left)} left, "
        self._bar.update(
            self._task,
            description=glimpse.place(),
            completed=glimpse.share,
            counts="looking at the draws"
            if arrived
            else left + glimpse.counts(self._tracker.min_experts),
        )

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _say_compiling(self) -> None:
        self._bar.update(self._task, description=COMPILING)


def make_display(tracker: AnyTracker, *, quiet: bool) -> Display:
    """The display that suits where stderr goes."""
    if quiet:
        return Silent()
    from rich.console import Console

    console = Console(stderr=True)
    if console.is_terminal and not console.is_dumb_terminal:
        return Bar(tracker, console)
    return Lines(tracker)


@contextmanager
def watched(
    progress: bool | Callable[[Any], None] | None,
    on_look: Callable[[Any], None] | None,
    on_stop: Callable[[], None] | None,
    items: Items,
    config: Config,
) -> Iterator[Watch]:
    """Whom to tell how a run goes: the caller's own, or a bar on a terminal or in a notebook."""
    if callable(progress):
        yield Watch(progress, on_look, on_stop)
        return
    display: Display = Silent()
    if progress or (progress is None and _interactive()):
        from rich.console import Console

        display = Bar(make_tracker(items, config), Console(stderr=True))
    with display:
        silent = isinstance(display, Silent)
        yield Watch(None if silent else display.advance, on_look, on_stop)


def _interactive() -> bool:
    """Whether somebody sees a bar: on a terminal, in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def make_tracker(items: Items, config: Config, begun: Sequence[int] = ()) -> AnyTracker:
    """What adds up the progress; ``begun`` are the scans that each chain has behind it already."""
    if len(items.images) > 1 and config.run.images == "independent":
        return ImagesTracker(config)
    return Tracker(items.families, config, begun)


def describe_look(posterior: Posterior) -> str:
    """One line on how a look at an open-ended run came out."""
    verdict, record, run = posterior.verdict, posterior.record, posterior.config.run
    rhat = "infinite" if np.isinf(verdict.max_rhat) else f"{verdict.max_rhat:.3f}"
    figures = f"R-hat {rhat}, ESS {verdict.min_ess:.0f}"
    if verdict.pairs_disagreeing:
        figures += f", chains disagree on {counted(verdict.pairs_disagreeing, 'pair')}"
    if verdict.ok:
        outcome = "good, done"
    elif record.stopped_early:
        outcome = "stopped"
    elif record.scans + run.thin > run.max_scans:
        outcome = "not good yet, but the largest number of scans is reached"
    else:
        outcome = "continuing"
    return f"after {record.scans:,} scans: {figures}: {outcome}"


def duration(seconds: float) -> str:
    """A length of time in words: 40 s, 3 min 20 s, 2 h 5 min."""
    whole = round(seconds)
    minutes, rest = divmod(whole, 60)
    hours, minutes_left = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes_left} min"
    return f"{minutes} min {rest} s" if minutes else f"{rest} s"


def _clock(seconds: float) -> str:
    """A length of time as on a clock, which is short: 0:40, 3:20, 2:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes_left = divmod(minutes, 60)
    return f"{hours}:{minutes_left:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _line(glimpse: Glimpse | ImagesGlimpse, min_experts: int) -> str:
    left = "" if glimpse.seconds_left is None else f", {duration(glimpse.seconds_left)} left"
    return f"{glimpse.place()} ({glimpse.share:.0%}{left}): {glimpse.counts(min_experts)}"
