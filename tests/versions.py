"""Some of the tests with other versions than the pinned ones: the end of ``./run test --all``.

    ./run python -m tests.versions [newest] [lowest]

``newest``: the newest versions of everything, Numba's bound set aside, with the newest Python that
is supported. ``lowest``: the lowest versions of direct dependencies that ``pyproject.toml`` allows,
with the Python of the environment. Each has an environment of its own in ``.venv/versions``, made
by uv anew each time, and kernels compiled by it.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
PLACE = ROOT / ".venv" / "versions"
NEWEST_PYTHON = "3.13"
#: Compiled code and Numba; files in and out; data frames, figures and the store; whole commands.
TESTS = (
    "tests/unit/test_numba_internals.py",
    "tests/unit/test_platforms.py",
    "tests/unit/test_compiled.py",
    "tests/unit/test_io_formats.py",
    "tests/unit/test_io_convert.py",
    "tests/unit/test_underlay.py",
    "tests/unit/test_estimator.py",
    "tests/unit/test_plots.py",
    "tests/unit/test_report.py",
    "tests/unit/test_fit.py",
    "tests/unit/test_store.py",
    "tests/unit/test_resuming.py",
    "tests/end_to_end/test_frozen_runs.py",
    "tests/end_to_end/test_cli.py",
)
EXTRAS = ("sklearn", "parquet", "dask", "gis")


def main(asked: Sequence[str]) -> int:
    """Run what is asked for, everything without a word; how many failed."""
    runs = {"newest": newest, "lowest": lowest}
    unknown = set(asked) - set(runs)
    if unknown:
        raise SystemExit(f"{', '.join(sorted(unknown))}? There are: {', '.join(runs)}")
    return sum(not runs[name]() for name in asked or runs)


def newest() -> bool:
    """The newest versions of everything; True as well where there is no such Python."""
    python = next(found_pythons(NEWEST_PYTHON), None)
    if python is None:
        say(f"There is no Python {NEWEST_PYTHON}: the newest versions are NOT TESTED.")
        return True
    # Numba without its bound: what breaks is to be known before the bound moves.
    return tested("newest", python, [*requirements(EXTRAS), "--upgrade", "numba"])


def lowest() -> bool:
    """The lowest versions of direct dependencies."""
    given = requirements((*EXTRAS, "own"))
    wanted = [*given, "--resolution", "lowest-direct"]
    # An old version of one library uses what a new one of another deprecates.
    return tested("lowest", sys.executable, wanted, "-W", "ignore::DeprecationWarning")


def requirements(extras: Sequence[str]) -> list[str]:
    """What dfcrp needs, as uv is told."""
    wanted = ["--requirements", str(ROOT / "pyproject.toml")]
    for extra in extras:
        wanted += ["--extra", extra]
    return wanted


def found_pythons(number: str) -> Iterator[str]:
    """Interpreters of this version that run."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    there = [shutil.which(f"python{number}"), *sorted(pyenv.glob(f"versions/{number}*/bin/python"))]
    ask = f"import sys; sys.exit('%d.%d' % sys.version_info[:2] != '{number}')"
    for path in filter(None, there):
        if subprocess.run([path, "-c", ask], capture_output=True, check=False).returncode == 0:
            yield str(path)


def tested(name: str, base: str, wanted: Sequence[str], *options: str) -> bool:
    """Whether the tests pass, with these options, in a new environment."""
    place = PLACE / name
    python = place / "bin" / "python"
    uv = [sys.executable, "-m", "uv"]
    pip = [*uv, "pip", "install", "--quiet", "--python", str(python)]
    say(f"Tests with the {name} versions, in {place} ...")
    steps = [
        [*uv, "venv", "--quiet", "--clear", "--python", base, str(place)],
        # Tools of the tests themselves are the newest.
        [*pip, "--group", f"{ROOT / 'pyproject.toml'}:versions"],
        [*pip, *wanted],
        [str(python), "-m", "dfcrp.compiled.build"],
        [str(python), "-m", "pytest", "-n", "2", "--dist", "worksteal", "-p", "no:cacheprovider"],
    ]
    steps[-1] += [*options, *TESTS]
    search = os.pathsep.join([str(ROOT / "src"), str(ROOT)])
    environment = {**os.environ, "PYTHONPATH": search}
    environment.pop("DFCRP_ALL_TESTS", None)
    for step in steps:
        if subprocess.run(step, cwd=ROOT, env=environment, check=False).returncode != 0:
            say(f"With the {name} versions this failed: {' '.join(step)}")
            return False
    return True


def say(words: str) -> None:
    """Tell, at once."""
    print(words, file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
