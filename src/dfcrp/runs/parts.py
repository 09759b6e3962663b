"""A run as a list of parts, and the chains of one part from wherever they stand to its end.

A part is what is drawn by itself: all items, or one image."""

from __future__ import annotations

import hashlib
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import FrameType
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from dfcrp.draws import Draws
from dfcrp.errors import DfcrpError
from dfcrp.items.items import Items
from dfcrp.runs.blocks import MOST_DRAWS, BlockBounds
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.runner import Beginning, Progress, Runner, TimeLimit, Writer
from dfcrp.settings.config import Config, with_run
from dfcrp.settings.consensus import Least, needed
from dfcrp.summaries.convergence import Verdict, answer_series, choose_burn_in

if TYPE_CHECKING:
    from dfcrp.runs.dask import ClusterRunner


@dataclass(frozen=True)
class RunRecord:
    """How long the chains ran, and what of it counts."""

    scans: int
    burn_in: int
    thin: int
    seconds: float
    stopped_early: bool = False
    #: Proposals and acceptances of each chain, by kind of move.
    tallies: list[dict[str, int]] = field(default_factory=list)


def image_seed(seed: int, name: str) -> int:
    """The seed of one image: it depends on its name and the run's seed, not on other images."""
    return int.from_bytes(hashlib.sha256(f"{seed} {name}".encode()).digest()[:6], "big")


class Parts:
    """Items and settings, part by part.

    Attributes
    ----------
    names : tuple of str
        The image of each part; one empty name if the run has one part.
    rows : tuple of arrays
        The rows of each part among all items.
    """

    def __init__(self, items: Items, config: Config, rows: dict[str, NDArray[np.int64]]) -> None:
        self.items = items
        self.config = config
        self.names = tuple(rows)
        self.rows = tuple(rows.values())

    @classmethod
    def of_run(cls, items: Items, config: Config) -> Parts:
        """What is drawn by itself: every image, unless they share their hyperparameters."""
        if len(items.images) > 1 and config.run.images == "independent":
            return cls(items, config, items.rows_by_image())
        return cls(items, config, {"": np.arange(len(items))})

    @classmethod
    def of_images(cls, items: Items, config: Config) -> Parts:
        """Every image, however it was drawn."""
        return cls(items, config, items.rows_by_image())

    def __len__(self) -> int:
        return len(self.names)

    def items_of(self, part: int) -> Items:
        """The items of one part; its experts are those who looked at it."""
        if len(self) == 1:
            return self.items
        return self.items.of_image(self.names[part], self.rows[part])

    def config_of(self, part: int) -> Config:
        """The settings with which a run of this part alone would have the same draws."""
        if len(self) == 1 or self.config.run.images == "shared":
            return self.config
        return with_run(self.config, seed=image_seed(self.config.run.seed, self.names[part]))

    def bounds(self) -> BlockBounds:
        """What the stored blocks of this run can be."""
        run = self.config.run
        scans = max(run.scans or 0, run.max_scans)
        # Chains that were stopped were not all at the same scan.
        draws = scans // run.thin + MOST_DRAWS
        # More than any kind and prior has: of a cluster a mean, its error and a variance of each
        # number; of a draw what is known of each expert, by category and the category said, of each
        # image, of each look with items, and of each pair of columns.
        columns, categories = len(self.items.columns), len(self.items.categories)
        shared = 64 * len(self.items.experts) * (1 + categories) ** 2 + 64 * len(self.items.images)
        return BlockBounds(
            items=tuple(len(rows) for rows in self.rows),
            chains=run.chains,
            draws=draws,
            parameters=16 + 4 * columns,
            shared=1024 + 4 * columns**2 + shared + len(self.items),
        )

    @cached_property
    def expert_codes(self) -> tuple[NDArray[np.int64], ...]:
        """The codes that the experts of each part have in the whole."""
        if len(self) == 1:
            return (np.arange(len(self.items.experts)),)
        looks = self.items.looks
        number = {name: at for at, name in enumerate(looks.images)}
        return tuple(looks.experts_of(number[name]) for name in self.names)


def experts_by_place(items: Items) -> list[int]:
    """How many experts looked at each image, or at each zone of it where looks are at parts.

    All of them if no images are named.
    """
    found: list[int] = items.coverage.counts.tolist()
    return found


def least_by_looked(least: Least, n_experts: int) -> NDArray[np.int64]:
    """The experts that make a consensus, by the number who looked: from none to all."""
    each = [max(needed(least, looked), 1) for looked in range(n_experts + 1)]
    return np.array(each, np.int64)


def least_by_cluster(items: Items, labels: NDArray[np.int32], least: Least) -> NDArray[np.int64]:
    """The experts that make a consensus on a cluster, where the item is that names it."""
    looked = items.coverage.looked_at(labels, items.families)
    return least_by_looked(least, len(items.experts))[looked]


#: Without a number of scans the run is looked at after so many; then after one and a half times
#: as many, at each doubling, and half-way to the next.
FIRST_LOOK = 500
#: After so many if the chains begin where those of an earlier run ended, with what it had learned.
FIRST_LOOK_OF_UPDATE = 125


#: Called with what a run reports; what that is depends on the run.
Listener: TypeAlias = Callable[[Any], None]

#: Draws chains, on this machine or on a cluster.
AnyRunner: TypeAlias = "Runner | ClusterRunner"
#: With more items every stage of a run may take longer than one waits without a word.
MANY_ITEMS = 50_000


@dataclass(frozen=True)
class Watch:
    """Whom to tell how a run goes.

    ``progress`` is called from the chains' threads with a ``dfcrp.sampling.runner.Progress``, or,
    for many images, with a ``dfcrp.fitting.run.ImageDone`` after each; ``on_look`` with the
    posterior as it stands before it is decided whether to continue; ``on_stop`` at Ctrl-C;
    ``on_begin`` with a ``dfcrp.sampling.runner.Beginning`` while a chain looks for where it begins,
    and ``on_stage`` with words, when what may take long is begun.
    """

    progress: Listener | None = None
    on_look: Listener | None = None
    on_stop: Callable[[], None] | None = None
    on_begin: Callable[[Beginning], None] | None = None
    on_stage: Callable[[str], None] | None = None

    def stage(self, words: str, n_items: int) -> None:
        """Tell that a stage has begun, of so many items that it may take long."""
        if self.on_stage is not None and n_items >= MANY_ITEMS:
            self.on_stage(words)


class NothingDrawnError(DfcrpError):
    """The run was stopped, or its time was over, before every chain had its first draw."""


class StoppedAtALook(Exception):
    """Ctrl-C while the draws were being judged, which are all saved then."""


class Judged(Protocol):
    """What is made of the draws at a look."""

    @property
    def convergence(self) -> Verdict:
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
        limit: TimeLimit | None,
        first_look: int = FIRST_LOOK,
    ) -> None:
        self._config = config
        self._store = store
        self._part = part
        self._judge = judge
        self._watch = watch
        self._limit = limit
        self._first_look = first_look
        self._goal = 0
        #: While nothing is drawn, but the draws are judged.
        self.looking = False

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
            on_begin=self._watch.on_begin,
        )
        runner.restore()
        return runner

    def advance(self, runner: AnyRunner) -> Found:
        """Draw to the asked-for scans, or from look to look until the verdict is good."""
        run = self._config.run
        self._goal = run.scans or self._next_look(runner.most_scans)
        while True:
            runner.advance(self._goal, self._limit)
            found = self._look(runner)
            if runner.stopped:
                # Whoever stops it wants it to end: a verdict may take a minute.
                return found
            enough = self._is_enough(found)
            if runner.stopped:
                # The stop came after the record was made.
                return self._look(runner)
            if enough:
                return found
            self._goal = self._next_look(self._goal + 1)

    def _next_look(self, scans: int) -> int:
        run = self._config.run
        return next_look(run.thin, run.max_scans, scans, self._first_look)

    def _is_enough(self, found: Found) -> bool:
        """Tell how it stands, and whether to end here."""
        run = self._config.run
        try:
            self.looking = True
            if self._watch.on_look is not None:
                self._watch.on_look(found)
            return run.scans is not None or self._goal >= run.max_scans or found.convergence.ok
        except StoppedAtALook:
            return True
        finally:
            self.looking = False

    def _observe(self, seen: Progress) -> None:
        if self._watch.progress is not None:
            self._watch.progress(replace(seen, target=self._goal))

    def _nothing(self) -> str:
        """Why there is no draw of every chain."""
        limit = self._limit
        if limit is None or not limit.passed:
            return "stopped before the first draw: there is nothing to keep"
        return (
            f"--max-minutes {limit.minutes:g} were over before every chain had its first draw: "
            f"setting up and beginning took {limit.seconds_gone():,.0f} s. There is nothing to "
            "keep; give more minutes"
        )

    def _look(self, runner: AnyRunner) -> Found:
        """What is made of the draws as they stand."""
        run = self._config.run
        scans = runner.scans
        if scans < run.thin:
            raise NothingDrawnError(self._nothing())
        draws = scans // run.thin
        if run.burn_in is not None:
            burn_in = min(run.burn_in, scans - run.thin)
        elif run.scans is not None:
            burn_in = scans // 4
        else:
            series = answer_series(self._store.draws(self._part, 0, draws))
            burn_in = min(choose_burn_in(series), draws - 1) * run.thin
        record = RunRecord(
            scans=scans,
            burn_in=burn_in,
            thin=run.thin,
            seconds=runner.seconds,
            stopped_early=runner.stopped,
            tallies=[chain.tally for chain in runner.chains],
        )
        return self._judge(self._store.draws(self._part, burn_in // run.thin, draws), record)


def first_look_of(items: Items) -> int:
    """Scans, of a thinning of 1, before a run of these items is first looked at."""
    return FIRST_LOOK_OF_UPDATE if items.learned else FIRST_LOOK


def next_look(thin: int, max_scans: int, scans: int, first: int = FIRST_LOOK) -> int:
    """The look that an open-ended run is on its way to, or at, after so many scans.

    A resumed run thus keeps to the looks of one that was never stopped.
    """
    look = first * thin
    while 3 * look // 2 < scans:
        look *= 2
    return min(look if look >= scans else 3 * look // 2, max_scans)


class Stoppable(Protocol):
    """What Ctrl-C stops."""

    def stop(self) -> None:
        """Come to an end soon, and leave everything in order."""
        ...


@contextmanager
def stopped_by_interrupt(
    runner: Stoppable,
    on_stop: Callable[[], None] | None,
    looking: Callable[[], bool] = lambda: False,
) -> Iterator[None]:
    """Let Ctrl-C ask the chains to stop instead of raising wherever it happens to hit.

    While the draws are judged, which ``looking`` tells, it raises StoppedAtALook. Only the main
    thread may change what a signal does, and a handler of someone else is kept.
    """

    def stop(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        runner.stop()
        if on_stop is not None:
            on_stop()
        if looking():
            raise StoppedAtALook

    usual = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if not usual or threading.current_thread() is not threading.main_thread():
        yield
        return
    signal.signal(signal.SIGINT, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, signal.default_int_handler)
