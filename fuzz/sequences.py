"""Any sequence of fit, kill, Ctrl-C, resume, extend, report and loss leaves a run folder in order.

    ./run python -m fuzz.sequences --times 2000

A state machine of Hypothesis works on one run folder of six markings. A kill is at any operation on
the disk: from then on nothing changes there, as if the process were gone. After each step the
folder must hold the first draws of a run left alone, and every table must be of the draws that the
record says. Writers of earlier starts live on and try to write, as tasks on a cluster do.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

import dfcrp
from dfcrp.errors import DfcrpError
from dfcrp.files import Folder, write_text
from dfcrp.posterior import saving
from dfcrp.posterior.posterior import Posterior
from dfcrp.runs import blocks
from dfcrp.runs.folder import read_provenance
from dfcrp.runs.lock import LostClaimError, taken_over
from dfcrp.runs.parts import NothingDrawnError
from dfcrp.runs.store import DrawStore, anything_drawn

CHAINS, MOST_SCANS, SEED = 2, 60, 3
#: Operations on the disk at which a kill can come; most starts have fewer.
KILLS = st.one_of(st.none(), st.integers(0, 60), st.integers(0, 400))
#: Sequences between two lines about how far it is.
AT_A_TIME = 20
CHANGING = ("make", "writing", "move", "remove", "remove_empty", "sync", "open_shared")


class Killed(BaseException):
    """As if the process were gone."""


class Disk:
    """Counts operations on the disk; after a given number of them none has an effect any more."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._left: int | None = None

    @contextlib.contextmanager
    def killed_after(self, operations: int | None) -> Iterator[None]:
        """Let the process die, as far as the disk can tell; the block ends then."""
        self._left = operations
        try:
            with contextlib.suppress(Killed):
                yield
        finally:
            self._left = None

    def tick(self) -> None:
        """Before each operation."""
        with self._lock:
            if self._left is None:
                return
            if self._left <= 0:
                raise Killed
            self._left -= 1


DISK = Disk()


def _counted(method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def call(*given: Any, **named: Any) -> Any:
        DISK.tick()
        return method(*given, **named)

    return call


def light_results(posterior: Posterior, folder: Path) -> None:
    """Tables that take no time, under the names of the real ones."""
    scans = posterior.record.scans
    for name in ("catalogue.csv", "members.csv", "experts.csv"):
        write_text(folder, name, f"scans\n{scans}\n")
    write_text(folder, "summary.json", json.dumps({"scans": scans}))


@contextlib.contextmanager
def prepared() -> Iterator[None]:
    """The disk is watched, tables are light, blocks short, and Ctrl-C is as on a terminal."""
    before = {name: getattr(Folder, name) for name in CHANGING}
    kept = saving.write_results, blocks.MOST_DRAWS
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    for name, method in before.items():
        setattr(Folder, name, _counted(method))
    saving.write_results, blocks.MOST_DRAWS = light_results, 7
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        for name, method in before.items():
            setattr(Folder, name, method)
        saving.write_results, blocks.MOST_DRAWS = kept
        signal.signal(signal.SIGINT, handler)


@functools.cache
def items() -> dfcrp.Items:
    """The data of every run."""
    x = np.array([0.0, 0.1, 5.0, 5.1, 9.0, 0.05])
    return dfcrp.Items.circles(x, x[::-1], np.ones(6), list("ababbc"))


@functools.cache
def whole() -> tuple[Any, Any]:
    """Labels and α of a run left alone."""
    found = dfcrp.fit(
        items(), chains=CHAINS, scans=MOST_SCANS, burn_in=0, seed=SEED, workers=1, progress=False
    )
    return found.labels, found.alpha


class RunFolder(RuleBasedStateMachine):
    """One run folder, and everything that may happen to it."""

    @initialize()
    def begin(self) -> None:
        """An empty place."""
        # In memory where that can be had: a disk is waited for at every checkpoint.
        memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
        self._place = Path(tempfile.mkdtemp(prefix="sequences-", dir=memory))
        self._run = self._place / "run"
        self._scans = 0
        self._zombies: list[Any] = []
        self._stack = contextlib.ExitStack()
        self._stack.enter_context(prepared())

    def teardown(self) -> None:
        """Bring the run to its end, and compare all of it."""
        if not hasattr(self, "_run"):
            return
        try:
            if self._begun():
                dfcrp.resume(self._run, scans=MOST_SCANS, progress=False)
                self._check_all(MOST_SCANS)
            if (self._run / "writing").exists():
                assert not self._begun(), "a claim was left behind"
        finally:
            self._stack.close()
            shutil.rmtree(self._place, ignore_errors=True)

    def _begun(self) -> bool:
        return (self._run / "provenance.json").exists()

    def _all_have_drawn(self) -> bool:
        saved = DrawStore.open(self._run).saved_draws() if anything_drawn(self._run) else {}
        return len(saved) == CHAINS and min(saved.values()) > 0

    # What may happen

    @precondition(lambda self: not self._begun())
    @rule(kill=KILLS, scans=st.integers(2, 20))
    def fit(self, kill: int | None, scans: int) -> None:
        """Start, or start again what was killed before it began."""
        self._scans = scans
        with DISK.killed_after(kill):
            dfcrp.fit(
                items(),
                out=self._run,
                chains=CHAINS,
                scans=scans,
                burn_in=0,
                seed=SEED,
                workers=1,
                checkpoint_seconds=0.0,
                progress=False,
            )

    @precondition(lambda self: self._begun())
    @rule(kill=KILLS, more=st.integers(0, 15), stop=st.one_of(st.none(), st.integers(0, 6)))
    def resume(self, kill: int | None, more: int, stop: int | None) -> None:
        """Continue or extend, until it is done, killed or stopped by Ctrl-C."""
        seen = 0

        def ctrl_c(_: object) -> None:
            nonlocal seen
            if stop is not None and seen == stop:
                # To the process, as a terminal does: the main thread sleeps while chains run.
                os.kill(os.getpid(), signal.SIGINT)
            seen += 1

        wanted = min(MOST_SCANS, self._scans + more)
        # An interrupt after the chains were done is an ordinary one; before the first draw of each
        # there is nothing to keep.
        nothing = () if stop is None or self._all_have_drawn() else (NothingDrawnError,)
        with DISK.killed_after(kill), contextlib.suppress(KeyboardInterrupt, *nothing):
            dfcrp.resume(self._run, scans=wanted, progress=ctrl_c)
        # With the settings, which come first, the run is one of so many scans.
        text = (self._run / "config.toml").read_text()
        self._scans = wanted if f"\nscans = {wanted}\n" in text else self._scans

    @precondition(lambda self: self._begun())
    @rule(kill=KILLS)
    def report(self, kill: int | None) -> None:
        """Make the tables again."""
        with DISK.killed_after(kill), contextlib.suppress(DfcrpError):
            saving.write_results(saving.load(self._run), self._run)

    @precondition(lambda self: self._begun())
    @rule(which=st.integers(0, 50))
    def lose_a_shard(self, which: int) -> None:
        """Any shard may be deleted: what it held is drawn again."""
        shards = sorted((self._run / "draws.zarr").glob("shard-*.zip"))
        if shards:
            shards[which % len(shards)].unlink()
            dfcrp.resume(self._run, progress=False)

    @precondition(lambda self: self._begun())
    @rule()
    def resume_elsewhere(self) -> None:
        """A copy has the same draws."""
        copy = self._place / "copy"
        shutil.copytree(self._run, copy)
        dfcrp.resume(copy, progress=False)
        self._check_draws(copy)
        shutil.rmtree(copy)

    @precondition(lambda self: self._begun())
    @rule()
    def leave_a_task(self) -> None:
        """A writer of another start, as a task that outlives its command."""
        stack = contextlib.ExitStack()
        claim = stack.enter_context(taken_over(self._run))
        self._zombies.append((claim, stack))
        with taken_over(self._run):  # and another has taken over
            pass

    @precondition(lambda self: self._zombies)
    @rule()
    def a_task_tries_to_write(self) -> None:
        """It must not get anywhere."""
        claim, stack = self._zombies.pop()
        before = sorted(path.name for path in (self._run / "draws.zarr").iterdir())
        for shard in [name for name in before if name.startswith("shard-")][:1]:
            found = DrawStore.open(self._run)._shards[shard]
            try:
                found.remove(claim)
            except LostClaimError:
                pass
            else:
                raise AssertionError("a task that was overruled could remove draws")
        stack.close()
        assert sorted(path.name for path in (self._run / "draws.zarr").iterdir()) == before

    # What must hold

    @invariant()
    def in_order(self) -> None:
        """Draws are the first of a run left alone, and tables are of the recorded draws."""
        if not hasattr(self, "_run") or not self._begun():
            return
        self._check_draws(self._run)
        record = read_provenance(self._run).get("run")
        tables = {
            int(json.loads((self._run / "summary.json").read_text())["scans"])
            for _ in [0]
            if (self._run / "summary.json").exists()
        } | {
            int((self._run / name).read_text().split()[1])
            for name in ("catalogue.csv", "members.csv", "experts.csv")
            if (self._run / name).exists()
        }
        if record is None:
            assert not tables, "tables without a record"
        else:
            assert tables <= {record["scans"]}, f"tables of {tables}, recorded {record['scans']}"
            found = saving.load(self._run)
            labels, alpha = whole()
            assert np.array_equal(found.labels, labels[:, : record["scans"]])
            assert np.array_equal(found.alpha, alpha[:, : record["scans"]])

    def _check_draws(self, run: Path) -> None:
        if not anything_drawn(run):
            return
        store = DrawStore.open(run)
        labels, _ = whole()
        for chain, count in store.saved_draws().items():
            spans = store.spans(0, chain)
            read = np.concatenate([span.block.labels()[: span.stop - span.start] for span in spans])
            assert np.array_equal(read, labels[chain][:count]), "other draws"

    def _check_all(self, scans: int) -> None:
        found = saving.load(self._run)
        labels, alpha = whole()
        assert np.array_equal(found.labels, labels[:, :scans])
        assert np.array_equal(found.alpha, alpha[:, :scans])


def check(times: int, steps: int, *, derandomize: bool = True) -> None:
    """Try so many sequences of up to so many steps; the error shows the shortest wrong one."""
    run_state_machine_as_test(
        RunFolder,
        settings=settings(
            max_examples=times,
            stateful_step_count=steps,
            deadline=None,
            derandomize=derandomize,
            database=None,
            suppress_health_check=list(HealthCheck),
        ),
    )


def main() -> int:
    """The command: 0 if every sequence left the folder in order."""
    parser = argparse.ArgumentParser(prog="fuzz.sequences", description=__doc__)
    parser.add_argument("--times", type=int, default=2000, help="sequences")
    parser.add_argument("--steps", type=int, default=12, help="steps of each, at most")
    asked = parser.parse_args()
    for done in range(0, asked.times, AT_A_TIME):
        now = min(AT_A_TIME, asked.times - done)
        check(now, asked.steps, derandomize=False)
        print(f"{done + now:,} of {asked.times:,} sequences", file=sys.stderr, flush=True)
    print(f"{asked.times:,} sequences of up to {asked.steps} steps: nothing lost, no wrong table")
    return 0


if __name__ == "__main__":
    sys.exit(main())
