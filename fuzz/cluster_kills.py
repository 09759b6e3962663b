"""Kill clients, workers and schedulers of runs on Dask, resume at once, and compare the draws.

    ./run python -m fuzz.cluster_kills --times 100 --out kills

A run is started on a cluster of two workers on this machine. After a random time the client, a
worker or the scheduler is killed by a signal that it cannot catch. Tasks of the dead client may
still be at work, with a worker that knows nothing of it, when the run is resumed a moment later: on
this machine or on the cluster, at random. The draws must be those of a run left alone.
"""

from __future__ import annotations

import argparse
import signal
import subprocess
import sys
import time
from dataclasses import asdict
from pathlib import Path

from dfcrp.report.tables import provenance, write_json
from fuzz.kills import KillOutcome, Trial

WORKERS = 2
#: After the death of a worker or the scheduler a client is done within this, on a busy machine too.
SECONDS = 1800
VICTIMS = ("client", "worker", "scheduler")


class Cluster:
    """A scheduler and its workers, each a process of its own."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._scheduler: subprocess.Popen[bytes] | None = None
        self._workers: list[subprocess.Popen[bytes]] = []
        self._starts = 0

    @property
    def file(self) -> Path:
        """Names the scheduler to clients and workers."""
        return self._folder / f"scheduler-{self._starts}.json"

    def ensure(self) -> None:
        """Start what does not run; the workers of a scheduler that was killed stay as they are."""
        if self._scheduler is None or self._scheduler.poll() is not None:
            self._starts += 1
            self._workers = []
            address = ["--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
            self._scheduler = self._start("scheduler", *address)
            while not self.file.exists():
                time.sleep(0.05)
        self._workers = [worker for worker in self._workers if worker.poll() is None]
        while len(self._workers) < WORKERS:
            options = ["--nthreads", "1", "--no-nanny", "--no-dashboard"]
            self._workers.append(self._start("worker", *options))

    def _start(self, what: str, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dask", what, "--scheduler-file", str(self.file)]
        with (self._folder / f"{what}.log").open("ab") as log:
            return subprocess.Popen(
                [*command, *options],
                stdout=log,
                stderr=log,
                cwd=self._folder,
            )

    def kill(self, what: str, number: int) -> None:
        """Kill the scheduler, or one of the workers."""
        assert self._scheduler is not None
        victim = self._scheduler if what == "scheduler" else self._workers[number % WORKERS]
        victim.send_signal(signal.SIGKILL)
        victim.wait()

    def stop(self) -> None:
        """End everything; workers of a scheduler that is gone end by themselves."""
        for process in (self._scheduler, *self._workers):
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


class ClusterTrial(Trial):
    """Runs on a cluster that are killed, and resumed while their tasks may still be at work."""

    def __init__(self, folder: Path, scans: int, seed: int) -> None:
        super().__init__(folder, scans, seed)
        self._cluster = Cluster(folder)

    def run(self, kills: int) -> KillOutcome:
        """Kill so many times; every run is brought to its end after one kill."""
        try:
            for number in range(kills):
                self._one(number)
                said = f"{self.outcome.kills} kills, {self.outcome.identical} runs identical"
                print(said, file=sys.stderr, flush=True)
                if self.outcome.troubles:
                    break
        finally:
            self._cluster.stop()
        return self.outcome

    def _one(self, number: int) -> None:
        name, victim = f"run-{number}", VICTIMS[int(self._rng.integers(3))]
        self._cluster.ensure()
        run = self.folder / name
        client = self._begin([*self._fit(name), *self._on_cluster()])
        while client.poll() is None and not self._has_draws(run):
            time.sleep(0.01)
        # Early, so that tasks are still at work when the run is resumed.
        time.sleep(self._rng.uniform(0.0, min(2.0, 0.3 * self._seconds_drawing)))
        if client.poll() is None:
            if victim == "client":
                client.kill()
            else:
                self._cluster.kill(victim, int(self._rng.integers(WORKERS)))
            self.outcome.kills += 1
            self.outcome.moments[victim] += 1
        self._after(victim, client, name)
        if not self.outcome.troubles:
            self._compare(run)

    def _after(self, victim: str, client: subprocess.Popen[str], name: str) -> None:
        """Resume at once; after the death of a worker, and a while, the client is done itself."""
        if victim == "client":
            client.communicate()
        else:
            _, said = client.communicate(timeout=SECONDS)
            wrong = "unexpected error" in said
            if wrong or (victim == "worker" and client.returncode):
                self.outcome.troubles.append(f"{name}, a dead {victim}: {said}")
            if client.returncode == 0:
                return
        command = self._resume(name)
        if self._rng.random() < 0.5:
            if victim == "scheduler":
                self._cluster.ensure()
            command += self._on_cluster()
        self._until_done(command)

    def _on_cluster(self) -> list[str]:
        return ["--dask", str(self._cluster.file)]

    def _begin(self, command: list[str]) -> subprocess.Popen[str]:
        return subprocess.Popen(command, stderr=subprocess.PIPE, text=True)

    def _has_draws(self, run: Path) -> bool:
        return any((run / "draws.zarr").glob("shard-*"))


def main() -> int:
    """Parse the options, run, and write ``cluster_kills.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=100, help="kills")
    parser.add_argument("--scans", type=int, default=20_000, help="scans of each run")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--out", type=Path, required=True, help="folder, new or empty")
    options = parser.parse_args()
    outcome = ClusterTrial(options.out, options.scans, options.seed).run(options.times)
    settings = {"times": options.times, "scans": options.scans, "seed": options.seed}
    write_json(options.out / "cluster_kills.json", {**provenance(**settings), **asdict(outcome)})
    moments = ", ".join(f"{count} of a {what}" for what, count in outcome.moments.items())
    print(
        f"{outcome.kills} kills ({moments}): {outcome.identical} of {outcome.finished} runs "
        "have identical draws"
    )
    for trouble in outcome.troubles:
        print(trouble, file=sys.stderr)
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
