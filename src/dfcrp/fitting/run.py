"""A run from its first scan, or from where it stopped, to its posterior.

A run is a list of parts (``dfcrp.runs.parts``). One part has all workers on its chains. Of many,
small parts are drawn side by side, a worker to each; large ones before, one at a time, with all
workers on their chains. On a Dask cluster the chains of one part are tasks, and of many parts each
part is a task. What is drawn depends on none of it.
"""

from __future__ import annotations

import threading
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dfcrp.draws import Draws
from dfcrp.errors import DfcrpWarning
from dfcrp.items.items import Items
from dfcrp.posterior.findings import Findings, Series, Totals, find
from dfcrp.posterior.images import Pool
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs.blocks import MemoryBlock
from dfcrp.runs.dask import ClusterRunner, Errand, StopSign, refuse_other_versions, slots, submitted
from dfcrp.runs.folder import read_beginning, versions
from dfcrp.runs.lock import Claim, task_claim
from dfcrp.runs.parts import (
    AnyRunner,
    NothingDrawnError,
    PartRun,
    Parts,
    RunRecord,
    Watch,
    first_look_of,
    stopped_by_interrupt,
)
from dfcrp.runs.store import DrawStore, MemoryStore
from dfcrp.sampling.problem import Problem, problem_of
from dfcrp.sampling.runner import Beginning, Progress, TimeLimit, cores
from dfcrp.settings.config import Config

if TYPE_CHECKING:
    from distributed import Client

Store = DrawStore | MemoryStore
Found = tuple[Findings, Series]

#: Parts with more items are drawn one at a time, with a worker for each chain.
LARGE = 5_000
#: Parts handed to each worker ahead of the one whose result is waited for.
AHEAD = 16
#: Of a run with a limit: how often it comes back to the parts whose time was up, as far as others
#: have left some of theirs; and what a part takes besides its items, in items.
MOST_ROUNDS, USUAL_ITEMS = 3, 50


@dataclass(frozen=True)
class ImageDone:
    """What an observer is told after each image."""

    image: str
    done: int
    of: int
    #: Of this image, on average over the draws.
    clusters: float
    agreed: float
    ok: bool


class Unfinished:
    """What is found of a part whose time is up, and to which the run comes back."""


class Drawn(NamedTuple):
    """What has become of one part of many."""

    found: Found | Unfinished
    #: Blocks of draws that another process has to keep.
    blocks: list[MemoryBlock]


class Turn:
    """One round over the parts of a run with a limit: how long each may take.

    Each that begins has a share of the time that is left, by its size among those not yet done. So
    what one takes beyond its share, as setting it up takes long, is missing for all that follow.
    """

    def __init__(self, limit: TimeLimit, sizes: dict[int, int], slots: int, *, last: bool) -> None:
        self.parts = list(sizes)
        #: Whether this is the end of every part.
        self.last = last
        self._limit = limit
        self._slots = slots
        self._lock = threading.Lock()
        #: Of those not yet done.
        self._size = {part: size + USUAL_ITEMS for part, size in sizes.items()}

    def done(self, part: int) -> None:
        """Note that a part has had its time."""
        with self._lock:
            del self._size[part]

    def seconds(self, part: int, *, alone: bool) -> float | None:
        """The share of a part, which has all workers if it is drawn alone; None without a limit."""
        left = self._limit.seconds_left()
        if left is None:
            return None
        with self._lock:
            share = left * self._size[part] / sum(self._size.values())
            count = len(self._size)
        # Of five parts in two places one place has three.
        side_by_side = 1.0 if alone else count / -(-count // self._slots)
        return max(min(share * side_by_side, left), 0.0)

    def limit(self, part: int, *, alone: bool) -> TimeLimit | None:
        """The limit of a part that begins now; there is a draw of every chain in any case."""
        return limit_of(self.seconds(part, alone=alone))


def limit_of(seconds: float | None) -> TimeLimit | None:
    """The limit of a part, from now on."""
    return None if seconds is None else TimeLimit(seconds / 60.0, at_least_one=True)


class PartDrawer:
    """Draws one part after the other; used from many threads."""

    def __init__(self, items: Items, config: Config, store: Store) -> None:
        self.parts = Parts.of_run(items, config)
        self.totals = Totals.plan(config, len(items.experts))
        self.store = store

    def draw(
        self,
        part: int,
        stopped: Callable[[], bool],
        *,
        workers: int = 1,
        limit: TimeLimit | None = None,
        last: bool = True,
        claim: Claim | None = None,
    ) -> Found | Unfinished | None:
        """Draw a part as far as it is to go, or until ``stopped``; None if nothing is there.

        At the limit it is left as it is unless this is its ``last`` round. ``claim`` is that of a
        task which has this part alone.
        """
        if stopped() and not self.store.begun(part):
            return None
        items, config = self.parts.items_of(part), self.parts.config_of(part)
        problem = problem_of(items, config)

        def look(_: Progress | Beginning | None = None) -> None:
            if stopped():
                runner.stop()

        def judge(draws: Draws, record: RunRecord) -> Posterior:
            return Posterior(draws, items, config, record)

        one = PartRun(
            config,
            self.store,
            part,
            judge,
            watch=Watch(look, on_begin=look),
            limit=limit,
            first_look=first_look_of(items),
        )
        writers = [
            self.store.writer(
                part, chain, problem.n, problem.columns, share=problem.n <= LARGE, claim=claim
            )
            for chain in range(config.run.chains)
        ]
        runner = one.start(problem, list(writers), workers)
        look()
        try:
            posterior = one.advance(runner)
            if runner.stopped and not last and not stopped():
                return Unfinished()
            return find(posterior, self.totals)
        except NothingDrawnError:
            return None


class Run:
    """What is drawn between one start of the program and its end."""

    def __init__(
        self,
        items: Items,
        config: Config,
        store: Store,
        watch: Watch,
        client: Client | None = None,
        *,
        limit: TimeLimit | None = None,
        problem: Problem | None = None,
    ) -> None:
        """With a client of a Dask cluster the work is done there; it must see the folder.

        ``limit`` is that of the settings if it began before, and ``problem`` what the items and
        settings make, if that is known already.
        """
        self._config = config
        self._limit = limit or TimeLimit(config.run.max_minutes)
        self._problem = problem
        self._watch = watch
        self._client = client
        self._drawer = PartDrawer(items, config, store)
        self._store = store
        self._stop = threading.Event()
        self._done = 0
        #: Whether Ctrl-C ended it.
        self.interrupted = False
        #: Time spent before this start.
        self.seconds_before = 0.0

    def stop(self) -> None:
        """Let every chain finish its block, and begin no other part."""
        self._stop.set()

    def _on_interrupt(self) -> None:
        self.interrupted = True
        if self._watch.on_stop is not None:
            self._watch.on_stop()

    def run(self) -> Posterior:
        """Draw everything, as far as time allows, and give the posterior."""
        if len(self._drawer.parts) == 1:
            return self._run_one()
        return self._run_many()

    # One part

    def _run_one(self) -> Posterior:
        parts, config = self._drawer.parts, self._config

        def judge(draws: Draws, record: RunRecord) -> Posterior:
            return Posterior(draws, parts.items, config, record)

        one = PartRun(
            config,
            self._store,
            0,
            judge,
            watch=self._watch,
            limit=self._limit,
            first_look=first_look_of(parts.items),
        )
        runner: AnyRunner
        if self._client is None:
            problem = self._problem or problem_of(parts.items, config)
            writers = [
                self._store.writer(0, chain, problem.n, problem.columns)
                for chain in range(config.run.chains)
            ]
            runner = one.start(problem, list(writers), config.run.workers)
        else:
            assert isinstance(self._store, DrawStore)
            runner = ClusterRunner(self._client, self._store, config)
        with stopped_by_interrupt(runner, self._on_interrupt, lambda: one.looking):
            return one.advance(runner)

    # Many parts

    def _run_many(self) -> Posterior:
        begun = time.monotonic()
        parts = self._drawer.parts
        pool, findings = Pool(parts, self._drawer.totals), _InOrder()
        with stopped_by_interrupt(self, self._on_interrupt):
            for part, found in self._draw_all():
                if found is not None:
                    self._tell(part, found[0])
                findings.add(part, found)
                for number, series in findings.ready():
                    pool.add(series, parts.expert_codes[number])
        self._store.flush()
        if not findings.found:
            raise NothingDrawnError("stopped before the first image was drawn: nothing to keep")
        return self._posterior(findings.found, pool, time.monotonic() - begun)

    def _draw_all(self) -> Iterator[tuple[int, Found | None]]:
        """Every part; None for those that the run did not come to.

        With a limit each part has its share of the time. What some have left over goes to those
        that did not come to their end, in further rounds.
        """
        sizes, limit = [len(rows) for rows in self._drawer.parts.rows], self._limit
        if isinstance(self._store, MemoryStore):
            self._store.keep_states = limit.minutes is not None
        parts = list(range(len(sizes)))
        for number in range(1, MOST_ROUNDS + 1):
            last = limit.minutes is None or limit.passed or number == MOST_ROUNDS
            turn = Turn(limit, {part: sizes[part] for part in parts}, self._slots(), last=last)
            parts = []
            for part, found in self._draw_round(turn):
                if isinstance(found, Unfinished):
                    parts.append(part)
                else:
                    yield part, found
            if not parts:
                break
            self._store.flush()
        if isinstance(self._store, MemoryStore):
            self._store.let_go()

    def _slots(self) -> int:
        """Parts that are drawn side by side."""
        if self._client is not None:
            return slots(self._client)
        return self._config.run.workers or cores()

    def _draw_round(self, turn: Turn) -> Iterator[tuple[int, Found | Unfinished | None]]:
        if self._client is not None:
            yield from self._draw_on_cluster(turn)
            return
        workers, small = self._slots(), []
        for part in turn.parts:
            if len(self._drawer.parts.rows[part]) <= LARGE:
                small.append(part)
            else:
                yield part, self._draw_here(part, turn, alone=True)
        with ThreadPoolExecutor(workers) as pool:
            tasks = _Tasks(pool.submit, AHEAD * workers)
            try:
                yield from tasks.run(self._draw_here, small, turn)
            except BaseException:
                self.stop()  # or leaving the pool would wait for every part
                raise

    def _draw_here(
        self, part: int, turn: Turn, *, alone: bool = False
    ) -> Found | Unfinished | None:
        found = self._drawer.draw(
            part,
            self._stop.is_set,
            workers=self._slots() if alone else 1,
            limit=turn.limit(part, alone=alone),
            last=turn.last,
        )
        turn.done(part)
        return found

    def _draw_on_cluster(self, turn: Turn) -> Iterator[tuple[int, Found | Unfinished | None]]:
        assert isinstance(self._store, DrawStore)
        place = str(self._store.folder.resolve())
        claim = self._store.claim
        sign = StopSign(claim, self._stop, None)
        submit = partial(self._submit, turn)
        tasks = _Tasks(submit, AHEAD * slots(self._client), sign.result)
        errand = Errand(place, claim.start, versions(), self._config.run.likelihood)
        for part, drawn in tasks.run(draw_on_worker, turn.parts, errand):
            turn.done(part)
            if drawn is not None:
                self._store.add(drawn.blocks)
            yield part, None if drawn is None else drawn.found

    def _submit(self, turn: Turn, call: Callable[..., object], part: int, errand: Errand) -> Any:
        seconds = turn.seconds(part, alone=False)
        return submitted(self._client, call, part, errand, seconds, turn.last)

    def _tell(self, part: int, found: Findings) -> None:
        self._done += 1
        if self._watch.progress is not None:
            self._watch.progress(
                ImageDone(
                    image=self._drawer.parts.names[part],
                    done=self._done,
                    of=len(self._drawer.parts),
                    clusters=float(found.n_clusters.mean),
                    agreed=float(found.consensus.mean),
                    ok=found.verdict.ok,
                )
            )

    def _posterior(self, found: dict[int, Findings], pool: Pool, seconds: float) -> Posterior:
        parts = self._drawer.parts
        records = [found[part].record if part in found else None for part in range(len(parts))]
        drawn = [one for one in records if one is not None]
        longest = max(drawn, key=lambda one: one.scans)
        self._warn_of_single_draws(drawn)
        record = RunRecord(
            scans=longest.scans,
            burn_in=longest.burn_in,
            thin=longest.thin,
            seconds=seconds + self.seconds_before,
            stopped_early=len(drawn) < len(records) or any(one.stopped_early for one in drawn),
        )
        ordered = tuple(found[part] for part in sorted(found))
        return Posterior.of_images(parts, records, self._store, record, (ordered, pool))

    def _warn_of_single_draws(self, drawn: list[RunRecord]) -> None:
        """A limit so short that images have no more than they must have."""
        few = sum(one.stopped_early and one.scans == one.thin for one in drawn)
        if few and self._limit.minutes is not None and not self.interrupted:
            warnings.warn(
                f"--max-minutes {self._limit.minutes:g} were over after "
                f"{self._limit.seconds_gone() / 60.0:,.1f} minutes with a single draw of each "
                f"chain for {few:,} of {len(self._drawer.parts):,} images, from which little "
                "follows; give more minutes, or go on with `dfcrp resume`",
                DfcrpWarning,
                stacklevel=4,
            )


class _Tasks:
    """Calls for one part after the other, a limited number of them ahead of the results."""

    def __init__(
        self,
        submit: Callable[..., Any],
        ahead: int,
        result: Callable[[Any], Any] = lambda task: task.result(),
    ) -> None:
        self._submit = submit
        self._ahead = ahead
        self._result = result

    def run(
        self, call: Callable[..., object], parts: list[int], *arguments: object
    ) -> Iterator[tuple[int, Any]]:
        """The results, in the order of the parts."""
        begun: deque[tuple[int, Any]] = deque()
        for part in parts:
            if len(begun) >= self._ahead:
                yield self._first(begun)
            begun.append((part, self._submit(call, part, *arguments)))
        while begun:
            yield self._first(begun)

    def _first(self, begun: deque[tuple[int, object]]) -> tuple[int, Any]:
        part, task = begun.popleft()
        return part, self._result(task)


def draw_on_worker(
    part: int, errand: Errand, seconds: float | None = None, last: bool = True
) -> Drawn | None:
    """The task of a cluster's worker: one part of the run in a folder."""
    refuse_other_versions(errand.versions)
    drawer = _drawer_at(errand.folder, errand.start, errand.likelihood)
    assert isinstance(drawer.store, DrawStore)
    blocks: list[MemoryBlock] = []
    try:
        with task_claim(Path(errand.folder), errand.start, f"part-{part}") as claim:
            found = drawer.draw(
                part, claim.must_stop, limit=limit_of(seconds), last=last, claim=claim
            )
    finally:
        # Also after an error: they would wait for ever.
        blocks = drawer.store.take(part)
    return None if found is None else Drawn(found, blocks)


@lru_cache(maxsize=1)
def _drawer_at(folder: str, start: str, likelihood: str) -> PartDrawer:
    """Read once for all parts of a run that come to this worker; ``start`` tells starts apart."""
    items, config = read_beginning(Path(folder), likelihood)
    bounds = Parts.of_run(items, config).bounds()
    return PartDrawer(items, config, DrawStore.open(folder, hold=True, bounds=bounds))


class _InOrder:
    """Takes parts as they are done and gives out their numbers in order, so that sums agree."""

    def __init__(self) -> None:
        self.found: dict[int, Findings] = {}
        self._waiting: dict[int, Series | None] = {}
        self._next = 0

    def add(self, part: int, found: Found | None) -> None:
        """Take a part's findings, in whatever order parts are done."""
        self._waiting[part] = None
        if found is not None:
            self.found[part], self._waiting[part] = found

    def ready(self) -> Iterator[tuple[int, Series]]:
        """The parts whose turn it is."""
        while self._next in self._waiting:
            series = self._waiting.pop(self._next)
            if series is not None:
                yield self._next, series
            self._next += 1
