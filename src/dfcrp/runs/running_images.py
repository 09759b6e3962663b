"""From many independent images to the end of a run: each of them a small run of its own.

Images are drawn side by side, one worker to an image; large ones before, one at a time, all
workers on its chains. On a Dask cluster every image is a task. What is drawn depends on none of it.
"""

from __future__ import annotations

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, NamedTuple

from dfcrp.draws import Draws, join_blocks
from dfcrp.items.items import Items
from dfcrp.posterior.findings import Findings, Series, Totals, find
from dfcrp.posterior.images import Found, ImagesPosterior
from dfcrp.posterior.pooling import Pool
from dfcrp.posterior.posterior import RunRecord
from dfcrp.runs.dask import Claim, StopSign, refuse_other_versions, slots
from dfcrp.runs.folder import read_beginning, versions
from dfcrp.runs.image_draws import ChainState, ImageDraws, no_draws
from dfcrp.runs.image_store import ImageStore
from dfcrp.runs.images_folder import StoredImages
from dfcrp.runs.packs import PackWriter
from dfcrp.runs.parts import ImageParts
from dfcrp.runs.running import (
    FolderStore,
    MemoryStore,
    NothingDrawnError,
    Sitting,
    Watch,
    deadline_of,
    stopped_by_interrupt,
)
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.runner import Progress, cores
from dfcrp.sampling.setup import problem_of
from dfcrp.settings.config import Config

#: Images with more markings are drawn one at a time, with a worker for each chain.
LARGE = 5_000
#: Images handed to each worker ahead of the one whose result is waited for.
AHEAD = 16


@dataclass(frozen=True)
class ImagesProgress:
    """What an observer is told after each image."""

    image: str
    done: int
    of: int
    #: Of this image, on average over the draws.
    clusters: float
    agreed: float
    ok: bool


@dataclass
class MemoryImages:
    """Draws of images in a run that leaves no files."""

    found: dict[int, Draws] = field(default_factory=dict)

    def draws(self, image: int, record: RunRecord) -> Draws:
        """One image's draws after burn-in."""
        return self.found[image]


class Drawn(NamedTuple):
    """What has become of one image."""

    found: Found
    #: What is to be packed; None if the image has files of its own, or nothing is new.
    new: ImageDraws | None
    #: All draws, if the run leaves no files.
    draws: Draws | None


class ImageDrawer:
    """Draws one image after the other; used from many threads."""

    def __init__(self, markings: Items, config: Config, folder: Path | None) -> None:
        self.parts = ImageParts(markings, config)
        self.totals = Totals.plan(config, len(markings.experts))
        self._store = None if folder is None else ImageStore(folder, config)

    def draw(
        self,
        image: int,
        stopped: Callable[[], bool],
        *,
        workers: int = 1,
        deadline: float | None = None,
    ) -> Drawn | None:
        """Draw an image as far as it is to go, or until ``stopped``; None if nothing is there."""
        if stopped() and not (self._store is not None and self._store.begun(image)):
            return None
        markings, config = self.parts.markings_of(image), self.parts.config_of(image)
        problem = problem_of(markings, config)
        drawing = _Drawing(self._store, image, problem, config.run.chains)

        def look(_: Progress | None = None) -> None:
            if stopped():
                sitting.runner.stop()

        sitting = Sitting(
            problem,
            drawing.store,
            markings,
            config,
            Watch(look),
            workers=workers,
            deadline=deadline,
        )
        drawing.restore(sitting)
        look()
        try:
            posterior = sitting.run()
        except NothingDrawnError:
            return None
        kept = posterior.draws if self._store is None else None
        return Drawn(find(posterior, self.totals), drawing.drawn(sitting), kept)


class ImagesSitting:
    """What is drawn of many images between one start of the program and its end."""

    def __init__(
        self,
        markings: Items,
        config: Config,
        watch: Watch,
        folder: Path | None = None,
        client: Any = None,
    ) -> None:
        """With a client of a Dask cluster the images are drawn there; it must see the folder."""
        self._packs = None if folder is None else PackWriter(folder, config.run.checkpoint_seconds)
        self._drawer = ImageDrawer(markings, config, folder)
        self._config = config
        self._watch = watch
        self._memory = MemoryImages()
        self._folder = folder
        self._client = client
        self._stop = threading.Event()
        self._done = 0
        #: Time spent in earlier sittings.
        self.seconds_before = 0.0

    def stop(self) -> None:
        """Let every chain finish its block, and begin no other image."""
        self._stop.set()

    def run(self) -> ImagesPosterior:
        """Draw all images, as far as time allows, and summarise them."""
        begun = time.monotonic()
        parts = self._drawer.parts
        pool, findings = Pool(len(parts.markings.experts), self._drawer.totals), _InOrder()
        with stopped_by_interrupt(self, self._watch.on_stop):
            for image, drawn in self._draw_all():
                if drawn is not None:
                    self._keep(image, drawn)
                    self._tell(image, drawn.found[0])
                findings.add(image, None if drawn is None else drawn.found)
                for number, series in findings.ready():
                    pool.add(series, parts.expert_codes[number])
        if self._packs is not None:
            self._packs.flush()
        if not findings.found:
            raise NothingDrawnError("stopped before the first image was drawn: nothing to keep")
        return self._posterior(findings.found, pool, time.monotonic() - begun)

    def _draw_all(self) -> Iterator[tuple[int, Drawn | None]]:
        """Every image; None for those that the run did not come to."""
        workers = self._config.run.workers or cores()
        deadline = deadline_of(self._config)
        images = range(len(self._drawer.parts.names))
        if self._client is not None:
            yield from self._draw_there(list(images), deadline)
            return
        small = []
        for image in images:
            if len(self._drawer.parts.rows[image]) <= LARGE:
                small.append(image)
            else:
                yield image, self._draw_here(image, deadline, workers)
        with ThreadPoolExecutor(workers) as pool:
            tasks = _Tasks(pool.submit, AHEAD * workers)
            try:
                yield from tasks.run(self._draw_here, small, deadline)
            except BaseException:
                self.stop()  # or leaving the pool would wait for every image
                raise

    def _draw_here(self, image: int, deadline: float | None, workers: int = 1) -> Drawn | None:
        if deadline is not None and time.monotonic() > deadline:
            self.stop()
        return self._drawer.draw(image, self._stop.is_set, workers=workers, deadline=deadline)

    def _draw_there(
        self, images: list[int], deadline: float | None
    ) -> Iterator[tuple[int, Drawn | None]]:
        assert self._folder is not None
        place = str(self._folder.resolve())
        ticket = uuid.uuid4().hex
        with StopSign(Path(place), self._stop, deadline) as sign:
            submit = partial(self._client.submit, pure=False)
            tasks = _Tasks(submit, AHEAD * slots(self._client), sign.wait)
            yield from tasks.run(draw_elsewhere, images, place, ticket, versions())

    def _keep(self, image: int, drawn: Drawn) -> None:
        if drawn.draws is not None:
            self._memory.found[image] = drawn.draws
        if self._packs is not None and drawn.new is not None:
            self._packs.add(drawn.new)

    def _tell(self, image: int, found: Findings) -> None:
        self._done += 1
        if self._watch.progress is not None:
            self._watch.progress(
                ImagesProgress(
                    image=self._drawer.parts.names[image],
                    done=self._done,
                    of=len(self._drawer.parts.names),
                    clusters=float(found.n_clusters.mean),
                    agreed=float(found.consensus.mean),
                    ok=found.verdict.ok,
                )
            )

    def _posterior(self, found: dict[int, Findings], pool: Pool, seconds: float) -> ImagesPosterior:
        parts = self._drawer.parts
        records = [
            found[image].record if image in found else None for image in range(len(parts.names))
        ]
        drawn = [one for one in records if one is not None]
        longest = max(drawn, key=lambda one: one.scans)
        record = RunRecord(
            scans=longest.scans,
            burn_in=longest.burn_in,
            thin=longest.thin,
            seconds=seconds + self.seconds_before,
            stopped_early=len(drawn) < len(records) or any(one.stopped_early for one in drawn),
        )
        source = self._memory if self._folder is None else StoredImages(self._folder, self._config)
        ordered = tuple(found[image] for image in sorted(found))
        return ImagesPosterior(parts, records, source, record=record, summaries=(ordered, pool))


class _Tasks:
    """Calls for one image after the other, a limited number of them ahead of the results."""

    def __init__(
        self,
        submit: Callable[..., Any],
        ahead: int,
        wait: Callable[[Any], None] | None = None,
    ) -> None:
        self._submit = submit
        self._ahead = ahead
        self._wait = wait

    def run(
        self, call: Callable[..., Drawn | None], images: list[int], *arguments: Any
    ) -> Iterator[tuple[int, Drawn | None]]:
        """The results, in the order of the images."""
        begun: deque[tuple[int, Any]] = deque()
        for image in images:
            if len(begun) >= self._ahead:
                yield self._first(begun)
            begun.append((image, self._submit(call, image, *arguments)))
        while begun:
            yield self._first(begun)

    def _first(self, begun: deque[tuple[int, Any]]) -> tuple[int, Drawn | None]:
        image, task = begun.popleft()
        if self._wait is not None:
            self._wait(task)
        return image, task.result()


def draw_elsewhere(image: int, folder: str, ticket: str, expected: dict[str, str]) -> Drawn | None:
    """The task of a cluster's worker: one image of the run in a folder."""
    refuse_other_versions(expected)
    with Claim(Path(folder), f"image-{image}") as claim:
        return _drawer_at(folder, ticket).draw(image, claim.must_stop)


@lru_cache(maxsize=1)
def _drawer_at(folder: str, ticket: str) -> ImageDrawer:
    """Read once for all images of a sitting that come to this worker; ``ticket`` tells sittings."""
    markings, config = read_beginning(Path(folder))
    return ImageDrawer(markings, config, Path(folder))


class _InOrder:
    """Takes images as they are done and gives out their numbers in order, so that sums agree."""

    def __init__(self) -> None:
        self.found: dict[int, Findings] = {}
        self._waiting: dict[int, Series | None] = {}
        self._next = 0

    def add(self, image: int, found: Found | None) -> None:
        """Take an image."""
        self._waiting[image] = None
        if found is not None:
            self.found[image], self._waiting[image] = found

    def ready(self) -> Iterator[tuple[int, Series]]:
        """The images whose turn it is."""
        while self._next in self._waiting:
            series = self._waiting.pop(self._next)
            if series is not None:
                yield self._next, series
            self._next += 1


class _Drawing:
    """The chains of one image, where they are kept, and where they come from."""

    def __init__(
        self, images: ImageStore | None, image: int, problem: Problem, chains: int
    ) -> None:
        self._image = image
        self._problem = problem
        self._before: ImageDraws | None = None
        self.store: MemoryStore | FolderStore = MemoryStore(chains, problem.columns)
        if images is None:
            return
        if images.is_apart(image, problem.n):
            folders = images.chains(image, problem.n, problem.columns)
            self.store = FolderStore(images.folder(image), folders)
        elif image in images.packs:
            self._before = images.packs.read(image)
            for writer, block in zip(self.store.memory, self._before.chains, strict=True):
                writer.append(block)

    def restore(self, sitting: Sitting) -> None:
        """Bring the chains to where they were left."""
        runner = sitting.runner
        if isinstance(self.store, FolderStore):
            runner.restore()
        elif self._before is not None:
            runner.seconds = self._before.seconds
            for state, chain in zip(self._before.states, sitting.chains, strict=True):
                state.restore(chain)

    def drawn(self, sitting: Sitting) -> ImageDraws | None:
        """What is new and has to be packed; None if there is nothing."""
        if isinstance(self.store, FolderStore):
            return None
        before = [0] * len(self.store.memory)
        new = [writer.blocks for writer in self.store.memory]
        if self._before is not None:
            before = [len(chain.alpha) for chain in self._before.chains]
            new = [blocks[1:] for blocks in new]
        if not any(new):
            return None
        n, columns = self._problem.n, self._problem.columns
        return ImageDraws(
            self._image,
            columns,
            # A chain that was ahead of the others may have stood still.
            [join_blocks(blocks) if blocks else no_draws(n, columns) for blocks in new],
            [ChainState.of(chain) for chain in sitting.chains],
            sitting.runner.seconds,
            before,
        )
