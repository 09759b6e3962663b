"""The tests with other versions: which they are, and that what fails or is left out is told."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import versions

Commands = list[list[str]]


@pytest.fixture
def commands(monkeypatch: pytest.MonkeyPatch) -> Commands:
    """What would be run; a command with a word of ``fails`` fails."""
    started: Commands = []

    def run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        started.append(list(command))
        return subprocess.CompletedProcess(command, int("FAIL" in command))

    monkeypatch.setattr(versions.subprocess, "run", run)
    return started


def test_the_tests_are_there() -> None:
    for path in versions.TESTS:
        assert (versions.ROOT / path).is_file(), path


def test_unknown_versions_are_refused(commands: Commands) -> None:
    with pytest.raises(SystemExit, match=r"newer\? There are: newest, lowest"):
        versions.main(["newer"])
    assert commands == []


def test_both_are_run(commands: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(versions, "found_pythons", lambda _: iter([sys.executable]))
    assert versions.main([]) == 0
    tested = [command for command in commands if "pytest" in command]
    assert [Path(command[0]).parts[-3] for command in tested] == ["newest", "lowest"]
    # Numba without its bound in one, the lowest that is allowed in the other.
    [newest] = [command for command in commands if command[-1] == "numba"]
    assert "own" not in newest
    [lowest] = [command for command in commands if "lowest-direct" in command]
    assert "own" in lowest


def test_a_failure_ends_it_and_is_told(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "TESTS", ("FAIL",))
    assert versions.main(["lowest"]) == 1
    assert "With the lowest versions this failed" in capsys.readouterr().err


def test_a_missing_python_is_told(
    commands: Commands, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(versions, "found_pythons", lambda _: iter(()))
    assert versions.main(["newest"]) == 0
    assert "NOT TESTED" in capsys.readouterr().err
    assert commands == []


def test_a_python_is_taken_only_if_it_runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A shim of pyenv may be there and lead nowhere."""
    broken = tmp_path / "python3.13"
    broken.write_text("#!/bin/sh\nexit 127\n", encoding="utf-8")
    broken.chmod(0o755)
    number = ".".join(map(str, sys.version_info[:2]))
    good = tmp_path / "versions" / f"{number}.9" / "bin" / "python"
    good.parent.mkdir(parents=True)
    good.symlink_to(sys.executable)
    monkeypatch.setenv("PYENV_ROOT", str(tmp_path))
    monkeypatch.setattr(versions.shutil, "which", lambda _: str(broken))
    assert list(versions.found_pythons(number)) == [str(good)]
