"""Who may write to a run folder: one process at a time, and who was overruled writes no more."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dfcrp.errors import DfcrpError, RunFolderError
from dfcrp.files import Folder, opened
from dfcrp.runs.lock import (
    LOCK,
    WRITING,
    Claim,
    LostClaimError,
    ask_to_stop,
    locked,
    taken_over,
    task_claim,
)

HOLD = (
    "import sys, time; from pathlib import Path; from dfcrp.runs.lock import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(600)"
)


def test_it_is_given_back(tmp_path: Path) -> None:
    for _ in range(2):
        with locked(tmp_path):
            assert json.loads((tmp_path / LOCK).read_text())["pid"] == os.getpid()
        assert not (tmp_path / LOCK).exists()


def test_it_is_given_back_after_an_error(tmp_path: Path) -> None:
    with pytest.raises(ZeroDivisionError), locked(tmp_path):
        raise ZeroDivisionError
    with locked(tmp_path):
        pass


def test_another_process_is_named_and_its_death_noticed(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        with (
            pytest.raises(RunFolderError, match=rf"process {holder.pid} on .* is working on this"),
            locked(tmp_path),
        ):
            pass
        holder.send_signal(signal.SIGKILL)
    assert (tmp_path / LOCK).exists()
    with locked(tmp_path):
        pass


def test_another_machine_is_not_overruled(tmp_path: Path) -> None:
    owner = {"pid": 7, "host": f"not-{socket.gethostname()}", "since": "2026-01-01T00:00:00Z"}
    (tmp_path / LOCK).write_text(json.dumps(owner))
    said = r"if it no longer runs, delete .*run\.lock"
    with pytest.raises(RunFolderError, match=said), locked(tmp_path):
        pass
    assert json.loads((tmp_path / LOCK).read_text()) == owner


@pytest.mark.parametrize("content", ["", "half of {", "[]", '{"pid": 1}'])
def test_a_lock_that_says_nothing_is_taken(tmp_path: Path, content: str) -> None:
    (tmp_path / LOCK).write_text(content)
    with locked(tmp_path):
        pass


def test_a_damaged_lock_file_is_nobody(tmp_path: Path) -> None:
    for content in (b"[" * 100_000, b"7", b"\xff", b"x" * 1_000_000):
        (tmp_path / LOCK).write_bytes(content)
        with locked(tmp_path):
            pass


def write_a_file(claim: Claim, name: str = "file") -> None:
    with claim.desk() as desk, desk.writing(name) as file:
        file.write(b"content")


def test_who_was_overruled_writes_no_more(tmp_path: Path) -> None:
    with taken_over(tmp_path) as old:
        write_a_file(old)
        with taken_over(tmp_path) as new:
            assert not old.held()
            with pytest.raises(LostClaimError, match="another process has taken over"):
                write_a_file(old)
            with pytest.raises(LostClaimError):
                old.check()
            write_a_file(new)
        assert not new.held()
    assert not (tmp_path / WRITING).exists()


def test_who_is_overruled_in_the_middle_publishes_nothing(tmp_path: Path) -> None:
    """The folder is held open when another takes over."""
    with taken_over(tmp_path) as old:
        write_a_file(old)
        with (
            opened(tmp_path) as run,
            pytest.raises(LostClaimError),
            old.desk() as desk,
            taken_over(tmp_path),
        ):
            desk.move("file", run, "published")
        with pytest.raises(LostClaimError), old.desk() as desk, taken_over(tmp_path):
            desk.make("folder")
    assert sorted(path.name for path in tmp_path.iterdir()) == []


class Meanwhile:
    """Lets another process come in after so many changes of folders, whatever they are."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, after: int, comes_in: Callable[[], None]):
        self.left, self.comes_in = after, comes_in
        for name in ("rename", "unlink", "rmdir"):
            monkeypatch.setattr(os, name, self.watched(getattr(os, name)))

    def watched(self, change: Callable[..., None]) -> Callable[..., None]:
        def changed(*given: Any, **named: Any) -> None:
            change(*given, **named)
            self.left -= 1
            if self.left == 0:
                self.comes_in()

        return changed


@pytest.mark.parametrize("after", range(1, 16))
def test_nothing_gets_out_of_a_claim_in_part(tmp_path: Path, after: int) -> None:
    """A task that was taken for dead moves what it made into the store at any moment."""
    store = tmp_path / "store"
    store.mkdir()
    with taken_over(tmp_path) as old, old.desk() as desk:
        desk.make("shard")
        with desk.below("shard") as shard:
            for name in "abc":
                shard.make(name)
                with shard.below(name) as inside, inside.writing("data"):
                    pass

        def publish() -> None:
            with contextlib.suppress(OSError), opened(tmp_path, "store") as place:
                desk.move("shard", place, "shard")

        with pytest.MonkeyPatch.context() as monkeypatch:
            Meanwhile(monkeypatch, after, publish)
            with taken_over(tmp_path):
                published = sorted(path.name for path in store.rglob("*"))
        assert published in ([], sorted([*"abc", "data", "data", "data", "shard"]))
        publish()
        assert sorted(path.name for path in store.rglob("*")) == published


def test_a_chain_has_one_task_at_a_time(tmp_path: Path) -> None:
    with (
        taken_over(tmp_path) as start,
        task_claim(tmp_path, start.start, "chain-0") as first,
        task_claim(tmp_path, start.start, "chain-1") as other,
        task_claim(tmp_path, start.start, "chain-0") as second,
    ):
        with pytest.raises(LostClaimError):
            write_a_file(first)
        with pytest.raises(LostClaimError):
            first.must_stop()
        for claim in (other, second):
            write_a_file(claim)
            assert not claim.must_stop()
        ask_to_stop(tmp_path, start.start)
        assert other.must_stop()
        assert second.must_stop()
    assert list(tmp_path.iterdir()) == []


def test_the_end_of_an_overruled_task_leaves_the_other_alone(tmp_path: Path) -> None:
    with taken_over(tmp_path) as start:
        first = task_claim(tmp_path, start.start, "chain-0")
        first.__enter__()
        with task_claim(tmp_path, start.start, "chain-0") as second:
            first.__exit__(None, None, None)
            write_a_file(second)


def test_tasks_of_an_earlier_start_cannot_begin(tmp_path: Path) -> None:
    """They may wait in the queue of a scheduler while the run is resumed."""
    with taken_over(tmp_path) as old:
        pass
    with taken_over(tmp_path) as new:
        with (
            pytest.raises(LostClaimError),
            task_claim(tmp_path, old.start, "chain-0"),
        ):
            pass
        with task_claim(tmp_path, new.start, "chain-0") as claim:
            write_a_file(claim)


def test_a_deleted_run_folder_is_said(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    with taken_over(run) as claim:
        (run / WRITING).rename(tmp_path / "away")
        run.rmdir()
        with pytest.raises(DfcrpError, match="deleted or moved while the run was at work"):
            write_a_file(claim)


def test_a_folder_that_another_removed_is_made_again(tmp_path: Path, monkeypatch) -> None:
    """Threads that share a store remove its empty folder, perhaps while another is to use it."""
    make, removed = Folder.make, []

    def late(self: Folder, name: str) -> None:
        if name.startswith("free-") and not removed:
            removed.append(name)
            (tmp_path / WRITING).rmdir()
        make(self, name)

    monkeypatch.setattr(Folder, "make", late)
    with Claim(tmp_path).desk() as desk:
        desk.make("something")
    assert removed
