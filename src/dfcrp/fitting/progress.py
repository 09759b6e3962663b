"""What a user sees while chains run: a bar on a terminal or in a notebook, else plain lines."""

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
from dfcrp.likelihoods.registry import likelihood_named
from dfcrp.markup import counted, escape, plural
from dfcrp.runs.parts import Listener, Watch, first_look_of, least_by_looked, next_look
from dfcrp.sampling.runner import TimeLimit, compiling
from dfcrp.settings.config import Config
from dfcrp.settings.consensus import Least, in_short
from dfcrp.summaries.convergence import Limits
from dfcrp.summaries.looked import Coverage, everyone

if TYPE_CHECKING:
    from dfcrp.fitting.run import ImageDone
    from dfcrp.posterior.posterior import Posterior
    from dfcrp.sampling.runner import Beginning, Progress

#: Plain lines come about this often.
SECONDS_PER_LINE = 10.0
#: Whether code is being compiled is looked at this often.
SECONDS_PER_TICK = 0.5
#: Compiling that takes no longer is not worth a word.
SECONDS_TO_COMPILE = 2.0
COMPILING = "compiling the sampler, once on this machine; --max-minutes does not count it"


@dataclass(frozen=True)
class Glimpse:
    """Where the run stands, averaged over the chains that have begun."""

    scans: float
    #: The look that the run is on its way to, and where it will probably end.
    target: int
    expected: int
    seconds_left: float | None
    clusters: float
    agreed: float
    alpha: float

    @property
    def share(self) -> float:
        """How much of the way to the expected end is done, from 0 to 1."""
        return min(self.scans / self.expected, 1.0)

    @property
    def arrived(self) -> bool:
        """Whether all scans until the next look are done."""
        return self.scans >= self.target

    def place(self) -> str:
        """How far, in words."""
        about = "" if self.expected == self.target else "about "
        return f"scan {self.scans:,.0f} of {about}{self.expected:,}"

    def counts(self, min_experts: Least) -> str:
        """The running counts in words."""
        counts = f"{self.clusters:,.0f} clusters, {self.agreed:,.0f} by {in_short(min_experts)}"
        # Not every prior has an α.
        return counts if math.isnan(self.alpha) else f"{counts}, α {self.alpha:.1f}"


class Tracker:
    """Averages what the chains report; safe to call from their threads.

    ``begun`` are the scans that each chain has done before; ``coverage`` says who looked where, if
    not everybody did.
    """

    def __init__(
        self,
        families: NDArray[np.int64],
        config: Config,
        begun: Sequence[int] = (),
        coverage: Coverage | None = None,
    ) -> None:
        self.min_experts = config.summary.min_experts
        self._families = families
        self._n_families = int(families.max()) + 1
        self._coverage = everyone(families) if coverage is None else coverage
        self._least = least_by_looked(self.min_experts, self._coverage.n_experts)
        self._latest: dict[int, tuple[float, float, float]] = {}
        self._scans = list(begun) or [0] * config.run.chains
        self._first: tuple[float, int] | None = None
        self._limit = TimeLimit(config.run.max_minutes)
        self._expected = 0
        self._lock = threading.Lock()

    def expect(self, scans: int) -> None:
        """Count on so many scans in all."""
        self._expected = scans

    def note(self, seen: Progress) -> Glimpse:
        """Take in one chain's report and give the state of them all."""
        labels, alpha = seen.last.labels[-1], float(seen.last.alpha[-1])
        clusters, agreed = self._count(labels)
        with self._lock:
            self._latest[seen.chain] = (clusters, agreed, alpha)
            means = [float(mean) for mean in np.mean(list(self._latest.values()), axis=0)]
            self._scans[seen.chain] = seen.scans
            done, chains = sum(self._scans), len(self._scans)
            expected = max(self._expected, seen.target)
            left = self._seconds_left(done, chains * expected - done)
        return Glimpse(done / chains, seen.target, expected, left, *means)

    def _count(self, labels: NDArray[np.int32]) -> tuple[int, int]:
        """Clusters, and clusters with enough different experts."""
        held = np.unique(labels.astype(np.int64) * self._n_families + self._families)
        names, experts = np.unique(held // self._n_families, return_counts=True)
        looked = self._coverage.looked_at(labels, self._families)[names]
        return len(experts), int(np.count_nonzero(experts >= self._least[looked]))

    def _seconds_left(self, done: int, to_do: int) -> float | None:
        """From the pace since the first report, which came after compilation."""
        now = time.monotonic()
        if self._first is None:
            self._first = (now, done)
        elapsed, advanced = now - self._first[0], done - self._first[1]
        left = elapsed * to_do / advanced if advanced > 0 and elapsed > 1.0 else None
        until = self._limit.seconds_left()
        if until is None:
            return left
        return max(until if left is None else min(left, until), 0.0)


@dataclass(frozen=True)
class ImagesGlimpse:
    """Where the run stands, over the images that are done."""

    done: int
    of: int
    seconds_left: float | None
    clusters: float
    agreed: float
    good: int
    #: What an image is called.
    word: str = "image"

    @property
    def share(self) -> float:
        """How many of the images are done, from 0 to 1."""
        return self.done / self.of

    @property
    def arrived(self) -> bool:
        """Whether all images are done."""
        return self.done >= self.of

    def place(self) -> str:
        """How far, in words."""
        return f"{self.done:,} of {self.of:,} {plural(self.word)}"

    def counts(self, min_experts: Least) -> str:
        """The running counts in words."""
        return (
            f"{self.clusters:,.0f} clusters, {self.agreed:,.0f} by {in_short(min_experts)}, "
            f"verdict good for {self.good:,}"
        )


class ImagesTracker:
    """Adds up what the images report; safe to call from many threads."""

    def __init__(self, config: Config, word: str = "image") -> None:
        self.min_experts = config.summary.min_experts
        self._word = word
        self._lock = threading.Lock()
        self._sums = [0.0, 0.0]
        self._good = 0
        self._done = 0
        self._first: tuple[float, int] | None = None

    def expect(self, scans: int) -> None:
        """Images are counted, not scans."""

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
            return ImagesGlimpse(
                self._done, seen.of, left, clusters, agreed, self._good, self._word
            )


class AnyTracker(Protocol):
    """Takes what a run reports and says where it stands."""

    min_experts: Least

    def expect(self, scans: int) -> None:
        """Count on so many scans in all."""
        ...

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

    def advance(self, seen: Progress | ImageDone) -> None:
        """Show how far a chain has come, or that an image is done."""
        ...

    def begin(self, seen: Beginning) -> None:
        """Show how far a chain is with looking for where it begins."""
        ...

    def stage(self, words: str) -> None:
        """Show what is being done before or after the scans."""
        ...

    def expect(self, scans: int) -> None:
        """Count on so many scans in all."""
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

    def advance(self, seen: Progress | ImageDone) -> None:
        """Nothing to do."""

    def begin(self, seen: Beginning) -> None:
        """Nothing to do."""

    def stage(self, words: str) -> None:
        """Nothing to do."""

    def expect(self, scans: int) -> None:
        """Nothing to do."""

    def say(self, line: str) -> None:
        """Nothing to do."""


class _Ticker:
    """Looks from time to time whether code is being compiled, and tells how it goes."""

    def __init__(self, tell: Callable[[float, int], None]) -> None:
        """``tell`` gets the seconds since the start of the run, and the parts done."""
        self._tell = tell
        self._compiling = compiling()
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def start(self) -> None:
        """Begin to look."""
        self._before = self._compiling.seconds, self._compiling.parts
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._end.set()
        self._thread.join()

    def _run(self) -> None:
        seconds, parts = self._before
        while not self._end.wait(SECONDS_PER_TICK):
            spent = self._compiling.seconds - seconds
            if self._compiling.busy and spent > SECONDS_TO_COMPILE:
                self._tell(spent, self._compiling.parts - parts)


class Lines:
    """Plain lines on stderr, for log files and pipes."""

    def __init__(self, tracker: AnyTracker) -> None:
        self._tracker = tracker
        self._lock = threading.Lock()
        self._next = 0.0
        self._said_compiling = False
        self._ticker = _Ticker(self._tell_compiling)

    def __enter__(self) -> Lines:
        self._next = time.monotonic() + SECONDS_PER_LINE
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.stop()

    def advance(self, seen: Progress | ImageDone) -> None:
        """Print a line if the last one is long enough ago."""
        glimpse = self._tracker.note(seen)
        if self._is_time():
            click.echo(_line(glimpse, self._tracker.min_experts), err=True)

    def begin(self, seen: Beginning) -> None:
        """Print a line if the last one is long enough ago."""
        if self._is_time():
            self.say(_begun(seen))

    def stage(self, words: str) -> None:
        """Print a line."""
        self.say(f"{words} ...")

    def expect(self, scans: int) -> None:
        """Count on so many scans in all."""
        self._tracker.expect(scans)

    def say(self, line: str) -> None:
        """Print a line."""
        click.echo(line, err=True)

    def _is_time(self) -> bool:
        with self._lock:
            if time.monotonic() < self._next:
                return False
            self._next = time.monotonic() + SECONDS_PER_LINE
            return True

    def _tell_compiling(self, seconds: float, parts: int) -> None:
        if not self._said_compiling:
            self._said_compiling = True
            self.say(COMPILING)
        elif self._is_time():
            self.say(f"compiling: {counted(parts, 'part')} done, {duration(seconds)}")


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
        self._ticker = _Ticker(self._tell_compiling)

    def __enter__(self) -> Bar:
        self._bar.start()
        self._ticker.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ticker.stop()
        self._bar.stop()

    def advance(self, seen: Progress | ImageDone) -> None:
        """Move the bar to what the report says."""
        glimpse = self._tracker.note(seen)
        left = "" if glimpse.seconds_left is None else f"{_clock(glimpse.seconds_left)} left, "
        self._bar.update(
            self._task,
            description=glimpse.place(),
            completed=glimpse.share,
            counts="looking at the draws"
            if glimpse.arrived
            else left + glimpse.counts(self._tracker.min_experts),
        )

    def begin(self, seen: Beginning) -> None:
        """Say how far, in the place of the counts."""
        self._bar.update(self._task, description="starting", counts=_begun(seen))

    def stage(self, words: str) -> None:
        """Say it in the place of the counts."""
        self._bar.update(self._task, counts=words)

    def expect(self, scans: int) -> None:
        """Count on so many scans in all."""
        self._tracker.expect(scans)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        self._bar.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def _tell_compiling(self, seconds: float, parts: int) -> None:
        done = f"{counted(parts, 'part')} done, {_clock(seconds)}"
        self._bar.update(self._task, description=COMPILING, counts=done)


class NotebookBar:
    """A bar in the output of a notebook's cell, which is empty again at the end."""

    def __init__(self, tracker: AnyTracker) -> None:
        from IPython.display import HTML, display

        self._tracker = tracker
        self._as_html = HTML
        self._lock = threading.Lock()
        self._next = 0.0
        self._shown = display(HTML(""), display_id=True)

    def __enter__(self) -> NotebookBar:
        return self

    def __exit__(self, *_: object) -> None:
        self._show("")

    def advance(self, seen: Progress | ImageDone) -> None:
        """Move the bar, a few times in a second at most."""
        glimpse = self._tracker.note(seen)
        now = time.monotonic()
        with self._lock:
            if now < self._next:
                return
            self._next = now + SECONDS_PER_TICK
        words = escape(_line(glimpse, self._tracker.min_experts))
        bar = f'<progress max="1" value="{glimpse.share:.3f}"></progress>'
        self._show(f"<p>{bar} {words}</p>")

    def begin(self, seen: Beginning) -> None:
        """Say how far."""
        self.stage(_begun(seen))

    def stage(self, words: str) -> None:
        """Say it in the place of the bar."""
        self._show(f"<p>{escape(words)}</p>")

    def expect(self, scans: int) -> None:
        """Count on this many scans in all."""
        self._tracker.expect(scans)

    def say(self, line: str) -> None:
        """Print a line above the bar."""
        click.echo(line)

    def _show(self, html: str) -> None:
        if self._shown is not None:  # None where there is a kernel's module, but no notebook
            self._shown.update(self._as_html(html))


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
    progress: bool | Listener | None,
    on_look: Listener | None,
    on_stop: Callable[[], None] | None,
    items: Items,
    config: Config,
) -> Iterator[Watch]:
    """Whom to tell how a run goes: the caller's own, or a bar on a terminal or in a notebook.

    Where output goes to a file or a pipe plain lines come every ten seconds.
    """
    if callable(progress):
        yield Watch(progress, on_look, on_stop)
        return
    display: Display = Silent()
    if progress is None or progress:
        tracker = make_tracker(items, config)
        display = _bar(tracker) if _interactive() else Lines(tracker)

    def look(posterior: Posterior) -> None:
        display.expect(expected_scans(posterior))
        if on_look is not None:
            on_look(posterior)

    with display:
        if isinstance(display, Silent):
            yield Watch(None, on_look, on_stop)
        else:
            yield Watch(display.advance, look, on_stop, display.begin, display.stage)


def _bar(tracker: AnyTracker) -> Display:
    """The bar that suits where it is seen."""
    if "ipykernel" in sys.modules:
        return NotebookBar(tracker)
    from rich.console import Console

    return Bar(tracker, Console(stderr=True))


def _interactive() -> bool:
    """Whether somebody sees a bar: on a terminal, in a notebook."""
    return sys.stderr.isatty() or "ipykernel" in sys.modules


def make_tracker(items: Items, config: Config, begun: Sequence[int] = ()) -> AnyTracker:
    """What adds up the progress; ``begun`` are the scans that each chain has behind it already."""
    if len(items.images) > 1 and config.run.images == "independent":
        return ImagesTracker(config, likelihood_named(config.run.likelihood).image_word(items))
    return Tracker(items.families, config, begun, items.coverage)


def expected_scans(posterior: Posterior) -> int:
    """Scans at the look at which the verdict will probably be good, judged by those so far.

    The effective sample size grows with the number of scans, and R-hat - 1 falls with it. Chains
    that disagree on a pair need at least one look more.
    """
    verdict, run, scans = posterior.convergence, posterior.config.run, posterior.record.scans
    if run.scans is not None or verdict.ok:
        return scans if run.scans is None else run.scans
    limits = Limits()
    needed = [1.0]
    if verdict.min_ess > 0.0:
        needed.append(limits.ess / verdict.min_ess)
    if np.isfinite(verdict.max_rhat):
        needed.append((verdict.max_rhat - 1.0) / (limits.rhat - 1.0))
    enough = math.ceil(scans * max(needed) - 1e-6)
    first = first_look_of(posterior.items)
    return next_look(run.thin, run.max_scans, max(enough, scans + 1), first)


def describe_look(posterior: Posterior) -> str:
    """One line on how a look at an open-ended run came out."""
    verdict, record, run = posterior.convergence, posterior.record, posterior.config.run
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


def _begun(seen: Beginning) -> str:
    return f"chain {seen.chain + 1}: a first partition, scan {seen.scans} of {seen.of}"


def _line(glimpse: Glimpse | ImagesGlimpse, min_experts: Least) -> str:
    left = "" if glimpse.seconds_left is None else f", {duration(glimpse.seconds_left)} left"
    return f"{glimpse.place()} ({glimpse.share:.0%}{left}): {glimpse.counts(min_experts)}"
