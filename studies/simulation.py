"""The simulation study: many data sets, three models, stoppable and resumable.

Every data set and every chain has a seed of its own, made of the study's seed and its number, so
a result depends neither on the workers nor on what was done before.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from dataclasses import asdict, dataclass, field
from difflib import get_close_matches
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp import __version__
from dfcrp.errors import SettingsError
from dfcrp.items.items import Items
from dfcrp.runs.dask import connected
from dfcrp.sampling.chain import Chain
from dfcrp.settings.config import make_config
from dfcrp.simulate import DESIGNS, SimulationDesign
from studies import paper_figures
from studies.problems import make_problem
from studies.store import ResultStore
from studies.tallies import Tally

#: The paper does not say which radius its "DFCRP w/Radius" has; this is that of its other studies.
RADIUS_PX = paper_figures.RADIUS_ADOPTED_PX
#: The models of the study, as settings of a run.
MODELS: dict[str, dict[str, Any]] = {
    "dfcrp": {"prior": "dfcrp", "radius": "none"},
    "dfcrp_radius": {"prior": "dfcrp", "radius": RADIUS_PX},
    "crp": {"prior": "crp", "radius": "none"},
}
#: Scans between two looks at whether the study is to stop.
BLOCK = 250


@dataclass(frozen=True)
class Plan:
    """One design, and how long each model runs on each of its data sets."""

    design: str = "paper"
    datasets: int = paper_figures.SIMULATION_DATASETS
    scans: int = paper_figures.SIMULATION_SCANS
    burn_in: int = paper_figures.SIMULATION_BURN_IN
    seed: int = 1
    preset: str = "simulation"

    def __post_init__(self) -> None:
        if self.design not in DESIGNS:
            near = get_close_matches(self.design, DESIGNS, n=1, cutoff=0.0)[0]
            raise SettingsError(
                f"there is no design {self.design!r}; did you mean {near!r}? "
                f"Known: {', '.join(DESIGNS)}."
            )
        if self.datasets < 2:
            raise SettingsError(f"datasets is {self.datasets}; a spread needs at least 2")
        if not 0 <= self.burn_in < self.scans:
            raise SettingsError(
                f"burn_in is {self.burn_in}, which leaves nothing of {self.scans} scans"
            )

    @property
    def parameters(self) -> SimulationDesign:
        """The design's parameters."""
        return DESIGNS[self.design]

    def identity(self) -> dict[str, Any]:
        """What a result depends on besides its number: all but how many data sets there are."""
        chosen = asdict(self)
        del chosen["datasets"]
        return {**chosen, "design": asdict(self.parameters), "models": MODELS, "dfcrp": __version__}

    def data(self, index: int) -> Items:
        """Data set number ``index``."""
        return self.parameters.draw(np.random.default_rng([self.seed, index]))


@dataclass(frozen=True)
class Step:
    """What an observer is told when a data set is done."""

    done: int
    total: int
    #: Since this call began, and data sets done in it.
    seconds: float
    new: int

    @property
    def seconds_left(self) -> float:
        """At the pace so far."""
        return (self.total - self.done) * self.seconds / max(self.new, 1)


class Interrupted(Exception):
    """A worker was asked to stop; its data set will be done again."""


@dataclass
class _Run:
    """One call of ``run_study``."""

    plan: Plan
    store: ResultStore
    observer: Callable[[Step], None] | None
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    begun: float = field(default_factory=time.monotonic)
    done: int = 0
    new: int = 0

    def work(self, index: int) -> None:
        """Do one data set and keep its result."""
        if self.stop.is_set():
            return
        try:
            result = run_dataset(self.plan, index, self.stop)
        except Interrupted:
            return
        with self.lock:
            self.keep(index, result)

    def keep(self, index: int, result: dict[str, Any]) -> None:
        """Save a data set's result, and tell of it."""
        self.store.save(index, result)
        self.done += 1
        self.new += 1
        if self.observer is not None:
            spent = time.monotonic() - self.begun
            self.observer(Step(self.done, self.plan.datasets, spent, self.new))


def run_study(
    plan: Plan,
    folder: Path,
    *,
    workers: int | None = None,
    dask: str | None = None,
    observer: Callable[[Step], None] | None = None,
) -> list[dict[str, Any]]:
    """Results of all data sets, in order; those that the folder holds are not done again.

    They are done by threads, or by the Dask cluster at an address or of a scheduler file, where
    each data set is a task.

    Ctrl-C ends it within a moment and loses the data sets in hand, nothing else; the same call
    resumes there and comes to the same results.
    """
    store = ResultStore(folder, plan.identity())
    missing = [index for index in range(plan.datasets) if store.load(index) is None]
    run = _Run(plan, store, observer, done=plan.datasets - len(missing))
    if missing and dask is not None:
        _on_cluster(run, missing, dask)
    elif missing:
        _in_threads(run, missing, workers or cores())
    found = [store.load(index) for index in range(plan.datasets)]
    return [result for result in found if result is not None]


def _in_threads(run: _Run, missing: list[int], workers: int) -> None:
    with ThreadPoolExecutor(min(workers, len(missing))) as pool:
        jobs = [pool.submit(run.work, index) for index in missing]
        try:
            wait(jobs, return_when=FIRST_EXCEPTION)
        finally:
            # Reached by Ctrl-C, too; when all is done, there is nobody left to stop.
            run.stop.set()
    for job in jobs:
        job.result()


def _on_cluster(run: _Run, missing: list[int], address: str) -> None:
    with connected(address) as client:
        from distributed import as_completed

        assert client is not None
        jobs = {client.submit(run_dataset, run.plan, index, pure=False): index for index in missing}
        for job in as_completed(list(jobs), loop=client.loop):
            run.keep(jobs[job], job.result())
            # What is kept need not stay in the cluster's memory.
            job.release()


def run_dataset(plan: Plan, index: int, stop: threading.Event | None = None) -> dict[str, Any]:
    """All models on one data set."""
    markings = plan.data(index)
    models = {}
    for number, name in enumerate(MODELS):
        # Time on a core: that of the wall depends on who else is at work.
        begun = time.thread_time()
        seed = np.random.SeedSequence([plan.seed, index, number + 1])
        tally = run_model(plan, markings, name, seed, stop or threading.Event())
        models[name] = {**tally.result(), "core_seconds": time.thread_time() - begun}
    return {"n": len(markings), "models": models}


def run_model(
    plan: Plan,
    markings: Items,
    model: str,
    seed: np.random.SeedSequence,
    stop: threading.Event,
) -> Tally:
    """One model on one data set; the draws are tallied as they come, and dropped."""
    config = make_config({"run": {"preset": plan.preset, **MODELS[model]}})
    problem = make_problem(markings.features, markings.families, config)
    chain = Chain(problem, seed, "exact")
    tally = Tally(markings)
    while chain.scans < plan.scans:
        if stop.is_set():
            raise Interrupted
        if chain.scans < plan.burn_in:
            chain.run(1, min(BLOCK, plan.burn_in - chain.scans))
        else:
            block = chain.run(min(BLOCK, plan.scans - chain.scans), 1)
            tally.add(block.labels, block.alpha)
    return tally


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
