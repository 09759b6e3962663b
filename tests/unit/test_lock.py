"""The lock of a run folder: one process at a time, and a dead one is no obstacle."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from dfcrp.errors import RunFolderError
from dfcrp.runs.lock import LOCK, locked

HOLD = (
    "import sys, time; from pathlib import Path; from dfcrp.runs.lock import locked\n"
    "with locked(Path(sys.argv[1])): print('held', flush=True); time.sleep(60)"
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
