"""Chains and images on the workers of a Dask cluster that share the run folder.

Each chain is a task, and of many images each image. A chain's task opens its files in the run
folder, continues from its checkpoint and saves there, as a chain on this machine does; only numbers
travel. If a worker dies, Dask gives its task to another, which continues from the last checkpoint.
The draws are those of one machine: a chain's depend on the problem and its seed alone.

A task writes with a claim of its own (``dfcrp.runs.lock``). So a worker that was taken for dead, or
a task whose command was killed, cannot write once another has taken over.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import CancelledError
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from dfcrp.errors import DfcrpError, SettingsError
from dfcrp.runs.folder import read_beginning, versions
from dfcrp.runs.lock import Claim, ask_to_stop, task_claim
from dfcrp.runs.parts import Parts
from dfcrp.runs.store import DrawStore
from dfcrp.sampling.problem import problem_of
from dfcrp.sampling.runner import Beginning, Progress, Runner, TimeLimit, Together
from dfcrp.settings.config import Config

if TYPE_CHECKING:
    from distributed import Client, Future

#: How long to wait for a scheduler that does not answer, in seconds.
PATIENCE = 30
#: Bytes of a scheduler file.
_LARGEST_SCHEDULER_FILE = 1 << 20
#: How often this process looks whether a stop was asked for, in seconds.
PULSE = 0.2


@dataclass
class RemoteChain:
    """What this process knows of a chain: where it stood when its task ended."""

    scans: int = 0
    seconds: float = 0.0
    tally: dict[str, int] = field(default_factory=dict)
    #: Scans at the checkpoint from which the task went on that brought it here.
    begun: int = 0


class Errand(NamedTuple):
    """What a task is told: which run, by whom it was started, and what its worker must have."""

    folder: str
    start: str
    versions: dict[str, str]
    #: The run's, by the word of who started it: of a file's word no code is run.
    likelihood: str


class ClusterRunner(Together[RemoteChain]):
    """The chains of a run folder, advanced by a cluster; behaves as ``Runner`` does."""

    def __init__(self, client: Client, store: DrawStore, config: Config) -> None:
        super().__init__([RemoteChain(scans) for scans in store.scans(0, config.run.chains)])
        self._client = client
        self._folder = store.folder.resolve()
        self._claim = store.claim
        self._likelihood = config.run.likelihood

    def advance(self, scans: int, limit: TimeLimit | None = None) -> None:
        """Bring every chain to so many scans since its start, or to where it is at a stop.

        What is drawn until the limit is saved.
        """
        start = time.monotonic()
        sign = StopSign(self._claim, self._stop, limit)
        errand = Errand(str(self._folder), self._claim.start, versions(), self._likelihood)
        tasks = [
            submitted(self._client, advance_chain, number, scans, errand)
            for number in range(len(self.chains))
        ]
        self.chains = [sign.result(task) for task in tasks]
        self.seconds = max(self.seconds + time.monotonic() - start, *self._own_seconds())

    def _own_seconds(self) -> list[float]:
        return [0.0, *(chain.seconds for chain in self.chains)]


class StopSign:
    """A file in the run folder that asks the tasks to stop: after Ctrl-C, or when time is up."""

    def __init__(self, claim: Claim, stop: threading.Event, limit: TimeLimit | None) -> None:
        self._claim = claim
        self._stop = stop
        self._limit = limit
        self._asked = False

    def result(self, task: Future) -> Any:
        """What a task gives; until it is done, see to it that a stop reaches all of them."""
        while not task.done():
            if self._limit is not None and self._limit.passed:
                self._stop.set()
            if self._stop.is_set() and not self._asked:
                ask_to_stop(self._claim.folder, self._claim.start)
                self._asked = True
            time.sleep(PULSE)
        with _lost_clusters(self._claim.folder):
            return task.result()


def submitted(client: Client, call: Callable[..., object], *arguments: object) -> Future:
    """A task that a cluster works on."""
    with _lost_clusters(None):
        return client.submit(call, *arguments, pure=False)


@contextmanager
def _lost_clusters(folder: Path | None) -> Iterator[None]:
    """Say in words that scheduler or workers are no longer there."""
    try:
        yield
    except (DfcrpError, KeyboardInterrupt):
        raise
    except Exception as error:
        kind = type(error).__name__
        if not isinstance(error, CancelledError | OSError | TimeoutError) and kind not in (
            "KilledWorker",
            "FutureCancelledError",
            "CommClosedError",
        ):
            raise
        where = "RUN" if folder is None else folder
        raise DfcrpError(
            f"the Dask cluster lost a task ({kind}): its scheduler was stopped, or its workers "
            f"died again and again. What was saved is safe; `dfcrp resume {where}` continues from "
            "the last checkpoint, with --dask or without"
        ) from error


def advance_chain(number: int, scans: int, errand: Errand) -> RemoteChain:
    """The task: bring one chain of a run folder to so many scans, on whatever worker this is."""
    place = Path(errand.folder)
    refuse_other_versions(errand.versions)
    items, config = read_beginning(place, errand.likelihood)
    run = config.run
    problem = problem_of(items, config)

    def look(_: Progress | Beginning) -> None:
        if claim.must_stop():
            runner.stop()

    with task_claim(place, errand.start, f"chain-{number}") as claim:
        store = DrawStore.open(place, claim=claim, bounds=Parts.of_run(items, config).bounds())
        runner = Runner(
            problem,
            [store.writer(0, number, problem.n, problem.columns)],
            seed=run.seed,
            chain=number,
            sampler=run.sampler,
            thin=run.thin,
            workers=1,
            seconds_per_save=run.checkpoint_seconds,
            observer=look,
            on_begin=look,
        )
        runner.restore()
        begun = runner.scans
        runner.advance(scans)
    [chain] = runner.chains
    return RemoteChain(chain.scans, runner.seconds, chain.tally, begun)


def refuse_other_versions(expected: dict[str, str]) -> None:
    """Fail on a worker whose draws may differ from those of the machine that asks for them."""
    found = versions()
    differing = [
        f"{name} {found[name]} where this run has {expected[name]}"
        for name in ("dfcrp", "kernels", "numpy")
        if found[name] != expected[name]
    ]
    if differing:
        raise DfcrpError(
            f"a worker has {', '.join(differing)}; install the same versions on all machines, or "
            "its draws may differ"
        )


def slots(client: Client) -> int:
    """Tasks that a cluster works on at a time; at least one, as workers may still be coming."""
    return max(1, sum(client.nthreads().values()))


@contextmanager
def connected(address: str | os.PathLike[str] | None) -> Iterator[Client | None]:
    """A client of a cluster, as long as it is needed; None without an address."""
    if address is None:
        yield None
        return
    with _client(address) as client:
        # What becomes of the cluster is said by us; Dask's own words are tracebacks.
        for name in [*logging.root.manager.loggerDict, "tornado.application", "asyncio"]:
            if name.partition(".")[0] in ("distributed", "tornado", "asyncio"):
                logging.getLogger(name).setLevel(logging.CRITICAL)
        yield client


def _client(address: str | os.PathLike[str]) -> Client:
    """A client of the scheduler at tcp://HOST:PORT, or of the one that wrote a scheduler file."""
    try:
        import distributed
    except ImportError:
        raise SettingsError("running on Dask needs: pip install 'dfcrp[dask]'") from None
    text = os.fspath(address)
    try:
        if "://" in text:
            return distributed.Client(text, timeout=PATIENCE, set_as_default=False)
        _check_scheduler_file(text)
        return distributed.Client(scheduler_file=text, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SettingsError(f"{text}: no Dask scheduler answers there ({error})") from None


def _check_scheduler_file(path: str) -> None:
    """Refuse what no scheduler has written: Dask would wait for its address, or fail oddly."""
    try:
        if not Path(path).is_file():
            raise SettingsError(
                f"{path}: there is no such scheduler file; give one, or an address as in "
                "tcp://HOST:8786"
            )
        with open(path, "rb") as file:
            said = json.loads(file.read(_LARGEST_SCHEDULER_FILE))
        if not isinstance(said["address"], str) or "://" not in said["address"]:
            raise ValueError("no address")
    except SettingsError:
        raise
    except (OSError, ValueError, LookupError, TypeError, RecursionError):
        raise SettingsError(
            f"{path}: is not a file that a Dask scheduler wrote (--scheduler-file); give one, or "
            "an address as in tcp://HOST:8786"
        ) from None
