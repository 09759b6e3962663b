"""``./run``: what it installs for which command, and that it works from any folder."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
LOCKS = ("requirements.lock", "requirements-dev.lock")
#: Stands in for Python and every program in the environment, and writes down how it was called.
RECORDER = '#!/bin/sh\necho "$(basename "$0") $* [$PYTHONPATH]" >> "{log}"\n'

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="./run is a shell script")


class Copy:
    """A copy of the project whose environment only records what it is asked to do."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.log = folder, folder / "log"
        (folder / ".venv" / "bin").mkdir(parents=True)
        for name in ("run", "pyproject.toml", *LOCKS):
            shutil.copy(ROOT / name, folder / name)
        (folder / "javascript").mkdir()
        shutil.copy(ROOT / "javascript" / "package.json", folder / "javascript")
        for name in ("python", "dfcrp", "tool", "ruff", "mypy", "lint-imports", "pytest"):
            program = folder / ".venv" / "bin" / name
            program.write_text(RECORDER.format(log=self.log), encoding="utf-8")
            program.chmod(0o755)

    def run(self, *arguments: str, cwd: Path, path: str | None = None) -> list[str]:
        """The programs that a call has started, with their arguments and PYTHONPATH."""
        self.log.write_text("", encoding="utf-8")
        plain = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
        plain["PATH"] = path or plain["PATH"]
        command = [str(self.folder / "run"), *arguments]
        subprocess.run(command, cwd=cwd, env=plain, check=True, capture_output=True)
        return self.log.read_text(encoding="utf-8").splitlines()


@pytest.fixture
def copy(tmp_path: Path) -> Copy:
    return Copy(tmp_path / "a copy")


def installed(calls: list[str]) -> list[str]:
    return [name for call in calls for name in re.findall(r"requirements\S*\.lock", call)]


def test_the_demo_needs_the_runtime_alone(copy: Copy, tmp_path: Path) -> None:
    calls = copy.run("demo", "--out", "here", cwd=tmp_path)
    assert installed(calls) == ["requirements.lock"]
    assert calls[-1].startswith("dfcrp demo --out here")
    assert installed(copy.run("dfcrp", "fit", "x.csv", cwd=tmp_path)) == []


@pytest.mark.parametrize(
    ("arguments", "started"),
    [
        (["reproduce", "radius", "--out", "r"], "python -m studies.reproduce radius --out r"),
        (["bench", "scan", "--json", "f"], "python -m benchmarks.command scan --json f"),
        (["python", "-m", "fuzz.kills"], "python -m fuzz.kills"),
        (["tool", "--flag"], "tool --flag"),
    ],
)
def test_other_commands_find_everything(
    copy: Copy, tmp_path: Path, arguments: list[str], started: str
) -> None:
    calls = copy.run(*arguments, cwd=tmp_path)
    assert installed(calls) == list(LOCKS)
    assert calls[-1] == f"{started} [{copy.folder}]"
    assert len(copy.run(*arguments, cwd=tmp_path)) == 1  # the environment is made once


@pytest.fixture
def programs(tmp_path: Path) -> str:
    """A path with what tests would fetch; npm installs programs that write down their calls."""
    there = tmp_path / "programs"
    there.mkdir()
    log = tmp_path / "a copy" / "log"
    npm = (
        f'cat >"$0.made" <<"END"\n{RECORDER.format(log=log)}END\nmkdir -p node_modules/.bin\n'
        'for name in tsc biome; do cp "$0.made" "node_modules/.bin/$name"; '
        'chmod +x "node_modules/.bin/$name"; done\n'
    )
    for name, does in (("chromium", ""), ("craterstats", ""), ("npm", npm)):
        (there / name).write_text(f"#!/bin/sh\n{does}", encoding="utf-8")
        (there / name).chmod(0o755)
    return f"{there}:{os.environ['PATH']}"


@pytest.mark.parametrize("asked", [[], ["--all"], ["tests/unit", "-x"]])
def test_tests_come_after_linters_and_kernels(
    copy: Copy, tmp_path: Path, programs: str, asked: list[str]
) -> None:
    calls = copy.run("test", *asked, cwd=tmp_path, path=programs)
    assert installed(calls) == list(LOCKS)
    given = " ".join(one for one in asked if one != "--all")
    # These run beside the tests.
    beside = {"mypy", "lint-imports", "tsc", "biome"}
    started = [call.partition(" [")[0].strip() for call in calls]
    assert beside <= {call.split()[0] for call in started}
    [*before, last] = [call for call in started if call.split()[0] not in beside]
    if "--all" in asked:
        # Other versions come at the very end.
        assert last == "python -m tests.versions"
        assert "uv" in before.pop()
        last = before.pop()
    assert last == f"pytest -n 2 --dist worksteal {given}".rstrip()
    for step in ("python -m dfcrp.compiled.build", "ruff check .", "ruff format --check ."):
        assert before.count(step) == 1
    assert any("nbclient" in call for call in before) == ("--all" in asked)


@pytest.mark.parametrize("name", ["ruff", "mypy", "lint-imports", "pytest", "tsc", "biome"])
def test_whatever_fails_is_told(copy: Copy, tmp_path: Path, programs: str, name: str) -> None:
    copy.run("test", cwd=tmp_path, path=programs)
    places = [copy.folder / ".venv" / folder for folder in ("bin", "javascript/node_modules/.bin")]
    [program] = [place / name for place in places if (place / name).exists()]
    program.write_text("#!/bin/sh\necho it is wrong\nexit 3\n", encoding="utf-8")
    done = subprocess.run(
        [copy.folder / "run", "test"],
        cwd=tmp_path,
        env={**os.environ, "PATH": programs},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0
    assert "it is wrong" in done.stdout


@pytest.mark.parametrize("asked", ["1", ""])
def test_what_cannot_be_fetched_is_told(copy: Copy, tmp_path: Path, asked: str) -> None:
    """Nothing is installed that was not asked for, and no check is left out in silence."""
    there = tmp_path / "programs"
    there.mkdir()
    # apt-get and npm fail; DFCRP_NO_FETCH does not even call them.
    for name in ("apt-get", "npm", "python3.12", "python3.13"):
        (there / name).write_text(f'#!/bin/sh\necho {name} "$@" >>"{copy.log}"; exit 1\n')
        (there / name).chmod(0o755)
    for name in ("sh", "sed", "id", "dirname", "basename", "cat", "touch", "mkdir", "cp", "rm"):
        (there / name).symlink_to(shutil.which(name) or name)
    done = subprocess.run(
        [copy.folder / "run", "test"],
        cwd=tmp_path,
        env={"PATH": str(there), "HOME": str(tmp_path), "DFCRP_NO_FETCH": asked},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Types and import directions are in order." in done.stdout
    assert "tests in a browser will be skipped" in done.stderr
    assert "the JavaScript of the report will not be checked" in done.stderr
    assert "its tests will be skipped" in done.stderr
    called = copy.log.read_text(encoding="utf-8")
    assert ("npm install" in called) == (not asked)
    assert ("apt-get" in called) == (not asked and os.getuid() == 0)


def test_a_new_lock_file_is_installed(copy: Copy, tmp_path: Path) -> None:
    copy.run("tool", cwd=tmp_path)
    later = (copy.folder / ".venv" / ".requirements-dev.lock").stat().st_mtime + 5
    os.utime(copy.folder / "requirements-dev.lock", (later, later))
    assert installed(copy.run("demo", cwd=tmp_path)) == []
    assert installed(copy.run("tool", cwd=tmp_path)) == ["requirements-dev.lock"]


def test_without_a_command_it_says_what_there_is(copy: Copy, tmp_path: Path) -> None:
    found = subprocess.run(
        [copy.folder / "run"], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert found.returncode == 2
    for name in ("demo", "test", "reproduce", "bench"):
        assert f"./run {name}" in found.stdout
    assert not copy.log.exists()


def test_lock_files_pin_every_package_once() -> None:
    pins = [line for name in LOCKS for line in (ROOT / name).read_text().splitlines()]
    pins.remove("-r requirements.lock")
    for pin in pins:
        assert re.fullmatch(r"[a-z0-9-]+==[0-9a-z.]+( ; .+)?", pin), pin
    assert len(set(pins)) == len(pins)
