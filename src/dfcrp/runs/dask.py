"""Chains and images on the workers of a Dask cluster that share the run folder.

Each chain is a task, and of many images each image. A chain's task opens its files in the run
folder, continues from its checkpoint and saves there, as a chain on this machine does; only numbers
travel. If a worker dies, Dask gives its task to another, which continues from the last checkpoint.
The draws are those of one machine: a chain's depend on the problem and its seed alone.
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from dfcrp.errors import DfcrpError, SettingsError
from dfcrp.runs.folder import read_beginning, versions
from dfcrp.runs.store import DrawStore
from dfcrp.sampling.runner import Progress, Runner
from dfcrp.sampling.setup import problem_of
from dfcrp.sampling.together import Together
from dfcrp.settings.config import Config

#: How long to wait for a scheduler that does not answer, in seconds.
PATIENCE = 30
#: How often this process looks whether a stop was asked for, in seconds.
PULSE = 0.2
#: Folder of the run, while tasks run: a file that asks them to stop; one that says which task has
#: a chain or a part.
TASKS, STOP, OWNER = "tasks", "stop", "{}.owner"


@dataclass
class RemoteChain:
    """What this process knows of a chain: where it stood when its task ended."""

    scans: int = 0
    seconds: float = 0.0
    tally: dict[str, int] = field(default_factory=dict)
    #: Scans at the checkpoint from which the task went on that brought it here.
    begun: int = 0


class ClusterRunner(Together[RemoteChain]):
    """The chains of a run folder, advanced by a cluster; behaves as ``Runner`` does."""

    def __init__(self, client: Any, store: DrawStore, config: Config) -> None:
        super().__init__([RemoteChain(scans) for scans in store.scans(0, config.run.chains)])
        self._client = client
        self._folder = store.folder.resolve()

    def advance(self, scans: int, deadline: float | None = None) -> None:
        """Bring every chain to so many scans since its start, or to where it is at a stop.

        ``deadline`` is in time.monotonic() seconds; what is drawn until then is saved.
        """
        start = time.monotonic()
        with StopSign(self._folder, self._stop, deadline) as sign:
            tasks = [
                self._client.submit(
                    advance_chain, str(self._folder), number, scans, versions(), pure=False
                )
                for number in range(len(self.chains))
            ]
            for task in tasks:
                sign.wait(task)
            self.chains = [task.result() for task in tasks]
        self.seconds = max(self.seconds + time.monotonic() - start, *self._own_seconds())

    def _own_seconds(self) -> list[float]:
        return [0.0, *(chain.seconds for chain in self.chains)]


class StopSign:
    """A file in the run folder that asks the tasks to stop; set here on Ctrl-C or when time is up.

    ``deadline`` is in time.monotonic() seconds.
    """

    def __init__(self, folder: Path, stop: threading.Event, deadline: float | None) -> None:
        self._path = folder / TASKS / STOP
        self._stop = stop
        self._deadline = deadline

    def __enter__(self) -> StopSign:
        self._path.parent.mkdir(exist_ok=True)
        self._path.unlink(missing_ok=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):  # a task may still have its chain
            self._path.parent.rmdir()

    def wait(self, task: Any) -> None:
        """Until a task is done, see to it that a stop reaches all of them."""
        while not task.done():
            if self._deadline is not None and time.monotonic() > self._deadline:
                self._stop.set()
            if self._stop.is_set() and not self._path.exists():
                self._path.touch()
            time.sleep(PULSE)


class Claim:
    """A task's claim on a chain or an image.

    A worker that was taken for dead may still live: its task ends when it finds that another
    has what it works on, so that two never write to the same files for long.
    """

    def __init__(self, folder: Path, name: str) -> None:
        self._path = folder / TASKS / OWNER.format(name)
        self._sign = folder / TASKS / STOP
        self._token = uuid.uuid4().hex

    def __enter__(self) -> Claim:
        self._path.write_text(self._token, encoding="utf-8")
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            if self._is_ours():
                self._path.unlink()

    def _is_ours(self) -> bool:
        return self._path.read_text(encoding="utf-8") == self._token

    def must_stop(self) -> bool:
        """After each block: whether a stop is asked for; fails if another has taken over."""
        if not self._is_ours():
            raise DfcrpError(f"{self._path}: another worker has taken this over")
        return self._sign.exists()


def advance_chain(folder: str, number: int, scans: int, expected: dict[str, str]) -> RemoteChain:
    """The task: bring one chain of a run folder to so many scans, on whatever worker this is."""
    place = Path(folder)
    refuse_other_versions(expected)
    markings, config = read_beginning(place)
    run = config.run
    problem = problem_of(markings, config)
    writer = DrawStore.open(place).writer(0, number, problem.n, problem.columns)

    def look(_: Progress) -> None:
        if claim.must_stop():
            runner.stop()

    with Claim(place, f"chain-{number}") as claim:
        runner = Runner(
            problem,
            [writer],
            seed=run.seed,
            chain=number,
            sampler=run.sampler,
            thin=run.thin,
            workers=1,
            seconds_per_save=run.checkpoint_seconds,
            observer=look,
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
        for name in ("dfcrp", "kernels", "numpy", "numba")
        if found[name] != expected[name]
    ]
    if differing:
        raise DfcrpError(
            f"a worker has {', '.join(differing)}; install the same versions on all machines, or "
            "its draws may differ"
        )


def slots(client: Any) -> int:
    """Tasks that a cluster works on at a time; at least one, as workers may still be coming."""
    return max(1, sum(client.nthreads().values()))


@contextmanager
def connected(address: str | os.PathLike[str] | None) -> Iterator[Any]:
    """A client of a cluster, as long as it is needed; None without an address."""
    if address is None:
        yield None
        return
    with _client(address) as client:
        yield client


def _client(address: str | os.PathLike[str]) -> Any:
    """A client of the scheduler at tcp://HOST:PORT, or of the one that wrote a scheduler file."""
    try:
        import distributed
    except ImportError:
        raise SettingsError("running on Dask needs: pip install 'dfcrp[dask]'") from None
    text = os.fspath(address)
    try:
        if "://" in text:
            return distributed.Client(text, timeout=PATIENCE, set_as_default=False)
        if not Path(text).is_file():
            raise SettingsError(
                f"{text}: there is no such scheduler file; give one, or an address as in "
                "tcp://HOST:8786"
            )
        return distributed.Client(scheduler_file=text, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        raise SettingsError(f"{text}: no Dask scheduler answers there ({error})") from None
