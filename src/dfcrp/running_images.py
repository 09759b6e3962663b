"""From many independent images to the end of a run: each of them a small run of its own.

Images are drawn side by side, one worker to an image; large ones before, one at a time, all
workers on its chains. What is drawn depends on neither.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from dfcrp.config import Config
from dfcrp.markings import Markings
from dfcrp.posterior.findings import Findings, Series, Totals, find
from dfcrp.posterior.image_parts import ImageParts
from dfcrp.posterior.images import Found, ImagesPosterior
from dfcrp.posterior.images_folder import StoredImages
from dfcrp.posterior.pooling import Pool
from dfcrp.posterior.posterior import Posterior, RunRecord
from dfcrp.running import (
    FolderStore,
    MemoryStore,
    NothingDrawnError,
    Sitting,
    Watch,
    deadline_of,
    stopped_by_interrupt,
)
from dfcrp.sampling.draws import Draws, join_blocks
from dfcrp.sampling.image_draws import ChainState, ImageDraws, no_draws
from dfcrp.sampling.image_store import ImageStore
from dfcrp.sampling.packs import PackWriter
from dfcrp.sampling.problem import Problem
from dfcrp.sampling.runner import cores
from dfcrp.sampling.setup import make_problem

#: Images with more markings are drawn one at a time, with a worker for each chain.
LARGE = 5_000


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


class ImagesSitting:
    """What is drawn of many images between one start of the program and its end."""

    def __init__(
        self, markings: Markings, config: Config, watch: Watch, folder: Path | None = None
    ) -> None:
        self.parts = ImageParts(markings, config)
        self._config = config
        self._watch = watch
        self._totals = Totals.plan(config, len(markings.experts))
        self._memory = MemoryImages()
        self._folder = folder
        self._store: ImageStore | None = None
        self._packs: PackWriter | None = None
        if folder is not None:
            self._packs = PackWriter(folder, config.run.checkpoint_seconds)
            self._store = ImageStore(folder, config)
        # Ctrl-C may ask for a stop while this very thread holds it.
        self._lock = threading.RLock()
        self._stop = threading.Event()
        self._active: set[Sitting] = set()
        self._done = 0
        #: Time spent in earlier sittings.
        self.seconds_before = 0.0

    def stop(self) -> None:
        """Let every chain finish its block, and begin no other image."""
        self._stop.set()
        with self._lock:
            for sitting in self._active:
                sitting.runner.stop()

    def run(self) -> ImagesPosterior:
        """Draw all images, as far as time allows, and summarise them."""
        begun = time.monotonic()
        pool, findings = Pool(len(self.parts.markings.experts), self._totals), _InOrder()
        with stopped_by_interrupt(self, self._watch.on_stop):
            for image, found in self._draw_all():
                findings.add(image, found)
                for number, series in findings.ready():
                    pool.add(series, self.parts.expert_codes[number])
        if self._packs is not None:
            self._packs.flush()
        if not findings.found:
            raise NothingDrawnError("stopped before the first image was drawn: nothing to keep")
        return self._posterior(findings.found, pool, time.monotonic() - begun)

    def _draw_all(self) -> Iterator[tuple[int, Found | None]]:
        """Every image's summary; None for those that the run did not come to."""
        workers = self._config.run.workers or cores()
        deadline = deadline_of(self._config)
        large = [i for i, rows in enumerate(self.parts.rows) if len(rows) > LARGE]
        small = [i for i, rows in enumerate(self.parts.rows) if len(rows) <= LARGE]
        for image in large:
            yield image, self._draw(image, workers, deadline)
        with ThreadPoolExecutor(workers) as threads:
            try:
                drawn = threads.map(lambda image: self._draw(image, 1, deadline), small)
                yield from zip(small, drawn, strict=True)
            except BaseException:
                self.stop()  # or leaving the pool would wait for every image
                raise

    def _draw(self, image: int, workers: int, deadline: float | None) -> Found | None:
        if deadline is not None and time.monotonic() > deadline:
            self._stop.set()
        if self._stop.is_set() and not self._is_there(image):
            return None
        markings, config = self.parts.markings_of(image), self.parts.config_of(image)
        problem = make_problem(markings.features, markings.families, config)
        drawing = _Drawing(self._store, image, problem, config.run.chains)
        sitting = Sitting(
            problem, drawing.store, markings, config, Watch(), workers=workers, deadline=deadline
        )
        drawing.restore(sitting)
        try:
            with self._watched(sitting):
                posterior = sitting.run()
        except NothingDrawnError:
            return None
        self._keep(image, posterior, drawing, sitting)
        found = find(posterior, self._totals)
        self._tell(image, found[0])
        return found

    def _is_there(self, image: int) -> bool:
        return self._store is not None and self._store.begun(image)

    @contextmanager
    def _watched(self, sitting: Sitting) -> Iterator[None]:
        """Let a stop reach an image while it is drawn."""
        with self._lock:
            self._active.add(sitting)
            if self._stop.is_set():
                sitting.runner.stop()
        try:
            yield
        finally:
            with self._lock:
                self._active.remove(sitting)

    def _keep(self, image: int, posterior: Posterior, drawing: _Drawing, sitting: Sitting) -> None:
        if self._packs is None:
            self._memory.found[image] = posterior.draws
        elif (drawn := drawing.drawn(sitting)) is not None:
            self._packs.add(drawn)

    def _tell(self, image: int, found: Findings) -> None:
        with self._lock:
            self._done += 1
            done = self._done
        if self._watch.progress is not None:
            self._watch.progress(
                ImagesProgress(
                    image=self.parts.names[image],
                    done=done,
                    of=len(self.parts.names),
                    clusters=float(found.n_clusters.mean),
                    agreed=float(found.consensus.mean),
                    ok=found.verdict.ok,
                )
            )

    def _posterior(self, found: dict[int, Findings], pool: Pool, seconds: float) -> ImagesPosterior:
        records = [
            found[image].record if image in found else None
            for image in range(len(self.parts.names))
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
        return ImagesPosterior(
            self.parts, records, source, record=record, summaries=(ordered, pool)
        )


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
