"""What a machine may lack: a compiler, a linker that works, Numba, llvmlite, ``fcntl``.

A module that is not there is one whose place in ``sys.modules`` is taken by None. Other systems are
played by what they have: Windows' locks by a module of its name.
"""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from dfcrp.compiled import library, linking
from dfcrp.compiled.abi import description_of
from dfcrp.compiled.jit import INTERPRETED, kernel
from dfcrp.errors import DfcrpWarning, RunFolderError
from dfcrp.runs.lock import locked

compiled_only = pytest.mark.skipif(INTERPRETED, reason="nothing is compiled")
#: The unit that compiles in the least time.
SMALL = "entries:dfcrp.priors.tail"


@kernel
def halves(values):
    made = np.zeros(values.shape[0])
    for i in range(values.shape[0]):
        made[i] = 0.5 * values[i]
    return made


def script(folder: Path, name: str, text: str) -> str:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{text}\n", encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def python(program: str, *, lacking: Sequence[str] = (), **environment: str) -> tuple[str, str]:
    """What a new process prints, without some modules."""
    start = f"import sys; sys.modules.update(dict.fromkeys({list(lacking)!r}))\n"
    done = subprocess.run(
        [sys.executable, "-c", start + program],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip(), done.stderr


# Linking.


def called_anew(monkeypatch: pytest.MonkeyPatch, folder: Path, compiler: str) -> str:
    """Compile a kernel that makes arrays with this compiler, call it, and give what was warned."""
    monkeypatch.setenv("CC", compiler)
    monkeypatch.setenv("DFCRP_CACHE_DIR", str(folder / "cache"))
    monkeypatch.setattr(library, "_LOADED", {})
    monkeypatch.setattr(library, "_BOUND", {})
    monkeypatch.setattr(library, "_SAID", set())
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for _ in range(2):
            np.testing.assert_array_equal(halves(np.array([3.0, 4.0])), [1.5, 2.0])
        # Of another unit nothing more is said.
        library.load(library.door(halves, (description_of(np.zeros(2, np.float32)),)))
    assert all(issubclass(one.category, DfcrpWarning) for one in told)
    return "\n".join(str(one.message) for one in told)


def made(folder: Path) -> set[str]:
    """The endings of the files of compiled code."""
    return {path.suffix for path in (folder / "cache").rglob("*")} & {
        linking.OBJECT,
        linking.SYSTEM.ending,
    }


@compiled_only
@pytest.mark.parametrize("compiler", ["", "cc -O1", "no-such-compiler"])
def test_with_and_without_a_compiler(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, compiler: str
) -> None:
    """Without one LLVM loads the code; nothing is lost, so nothing is said."""
    assert called_anew(monkeypatch, tmp_path, compiler) == ""
    there = linking.compiler() is not None
    assert made(tmp_path) == {linking.SYSTEM.ending if there else linking.OBJECT}


@compiled_only
def test_no_compiler_of_a_usual_name(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert called_anew(monkeypatch, tmp_path, "") == ""
    assert made(tmp_path) == {linking.OBJECT}


@compiled_only
def test_a_linker_that_fails_is_told_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As Apple's does of an option that it does not know."""
    bad = script(tmp_path, "bad-cc", 'echo "unknown options: --no-undefined" >&2; exit 3')
    told = called_anew(monkeypatch, tmp_path, bad)
    assert told.count("compiled code could not be linked") == 1
    assert "ended with 3 (unknown options: --no-undefined)" in told
    assert "CC names another compiler" in told
    assert made(tmp_path) == {linking.OBJECT}


@compiled_only
def test_a_library_that_cannot_be_loaded_is_not_kept(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As of a compiler for another machine."""
    other = script(
        tmp_path, "other-cc", 'while [ "$1" != -o ]; do shift; done; echo no library > "$2"'
    )
    told = called_anew(monkeypatch, tmp_path, other)
    assert told.count("made what cannot be loaded") == 1
    assert made(tmp_path) == {linking.OBJECT}


@compiled_only
def test_units_that_other_processes_compile_say_it_too(tmp_path: Path) -> None:
    """... and a run with them has the draws of any other."""
    bad = script(tmp_path, "bad-cc", "exit 3")
    program = (
        "from dfcrp.compiled import library\n"
        f"library.require([library.unit_named({SMALL!r})])\n"
        f"print(library.load(library.unit_named({SMALL!r})).handle)"
    )
    out, err = python(program, CC=bad, DFCRP_CACHE_DIR=str(tmp_path / "cache"))
    assert "ObjectCode" in out
    assert err.count("compiled code could not be linked") == 1
    assert made(tmp_path) == {linking.OBJECT}


def test_every_system_has_its_flags() -> None:
    """Not tried here, but said: Apple's linker knows no --no-undefined, Windows no -fPIC."""
    assert {system.ending for system in linking.SYSTEMS.values()} == {".so", ".dylib", ".dll"}
    for name in ("darwin", "win32"):
        assert not any("no-undefined" in flag for flag in linking.SYSTEMS[name].flags)
    assert linking.SYSTEM is linking.SYSTEMS.get(sys.platform, linking.OTHER)


# What the names of compiled code say.


def test_the_name_of_code_holds_what_made_it(monkeypatch: pytest.MonkeyPatch) -> None:
    """An upgrade compiles anew."""
    from importlib import metadata

    def digest() -> str:
        library.made_with.cache_clear()
        return library.Unit("entries:x", ()).digest

    before = digest()
    assert digest() == before
    number = metadata.version
    for name in ("numba", "llvmlite"):
        with monkeypatch.context() as patch:
            patch.setattr(metadata, "version", lambda of, n=name: "9.9" if of == n else number(of))
            assert digest() != before
    with monkeypatch.context() as patch:
        patch.setattr(library, "CPU", "x86-64-v9")
        assert digest() != before
    parsed = library._parsed
    assert {"backend", "numba_internals", "linking"} == set(library.MAKERS)
    for name in library.MAKERS:

        def other(path: str, end: str = f"/{name}.py") -> tuple[str, tuple[str, ...]]:
            code, imported = parsed(path)
            return ("another" if path.endswith(end) else code), imported

        with monkeypatch.context() as patch:
            patch.setattr(library, "_parsed", other)
            assert digest() != before, name
    assert digest() == before


# Without Numba, llvmlite, or fcntl.

#: Fits a handful of circles and says how much it found, and what was loaded.
RUN = """
import dfcrp, numpy as np
items = dfcrp.Items.from_columns(
    {"x": [1.0, 1.1, 9.0, 9.1, 5.0], "y": [1.0, 1.2, 3.0, 3.1, 7.0], "diameter": [2.0] * 5},
    kind="circles", expert=list("abaab"),
)
run = dfcrp.fit(items, chains=1, scans=SCANS, workers=1, seed=1, progress=False, out=OUT)
again = dfcrp.load(OUT)
print(again.draws.labels(0, 0, again.draws.n_draws).sum(), sorted({"numba", "fcntl"} & {
    name for name, module in sys.modules.items() if module is not None}))
"""
NONE_OF_IT = ("numba", "llvmlite", "fcntl", "resource", "pwd", "grp", "termios")


def run_of(folder: Path, name: str, scans: int = 3) -> str:
    return RUN.replace("SCANS", str(scans)).replace("OUT", repr(str(folder / name)))


def test_an_interpreted_run_always_works(tmp_path: Path) -> None:
    """Without Numba, llvmlite, a compiler, ``fcntl``, and anything compiled."""
    out, err = python(
        run_of(tmp_path, "run"),
        lacking=NONE_OF_IT,
        NUMBA_DISABLE_JIT="1",
        CC="no-such-compiler",
        DFCRP_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert out.endswith("[]")
    assert not (tmp_path / "cache").exists()
    assert err.count("DfcrpWarning: this system has no file locks") == 1


def test_compiled_code_works_without_fcntl(tmp_path: Path) -> None:
    usual, _ = python(run_of(tmp_path, "usual"))
    without, _ = python(run_of(tmp_path, "without"), lacking=["fcntl"])
    assert without == usual.replace("'fcntl'", "").replace("['numba', ]", "['numba']")


@compiled_only
def test_without_numba_and_code_a_run_goes_on_in_python(tmp_path: Path) -> None:
    """With the draws that it has in compiled code."""
    usual, _ = python(run_of(tmp_path, "usual"))
    out, err = python(
        run_of(tmp_path, "run"), lacking=["numba"], DFCRP_CACHE_DIR=str(tmp_path / "cache")
    )
    assert out.split()[0] == usual.split()[0]
    assert err.count(": DfcrpWarning: there is no compiled code for this machine") == 1


@compiled_only
def test_a_numba_that_cannot_be_loaded_is_none(tmp_path: Path) -> None:
    """Its processes say so, and the run goes on."""
    broken = tmp_path / "modules"
    (broken / "numba").mkdir(parents=True)
    (broken / "numba" / "__init__.py").write_text("raise ImportError('needs NumPy 1.0 or less')")
    _, err = python(
        f"sys.path.insert(0, {str(broken)!r})\n" + run_of(tmp_path, "run"),
        DFCRP_CACHE_DIR=str(tmp_path / "cache"),
    )
    assert "needs NumPy 1.0 or less" in err
    assert err.count(": DfcrpWarning: there is no compiled code for this machine") == 1


@compiled_only
def test_object_code_without_llvmlite_is_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    monkeypatch.setenv("DFCRP_CACHE_DIR", str(tmp_path))
    unit = library.door(halves, (description_of(np.zeros(2)),))
    from dfcrp.compiled import backend

    backend.write_unit(unit, library.cache_directory())
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "llvmlite.binding", None)
        patch.setattr(library, "_LOADED", {})
        with pytest.raises(library.KernelsMissing, match="pip install llvmlite"):
            library.load(unit)


@compiled_only
def test_a_kernel_without_code_runs_in_python(monkeypatch: pytest.MonkeyPatch) -> None:
    """Called by itself, with nothing compiled before; it is said once, and asked no more."""
    asked = []

    def missing(*_: object) -> None:
        asked.append(1)
        raise library.numba_missing("it is not installed")

    monkeypatch.setattr(library, "_call_compiled", missing)
    monkeypatch.setattr(library, "_PLAIN", [])
    monkeypatch.setattr(library, "_SAID", set())
    with pytest.warns(DfcrpWarning, match="Going on in plain Python"):
        np.testing.assert_array_equal(halves(np.array([3.0])), [1.5])
    # A second warning would be an error.
    np.testing.assert_array_equal(halves(np.array([5.0])), [2.5])
    assert len(asked) == 1


# Locks.

#: Locks bytes as Windows does, with what POSIX has.
WINDOWS = """
import errno, os, types
import struct
import fcntl as posix
sys.modules["fcntl"] = None
msvcrt = types.ModuleType("msvcrt")
msvcrt.LK_NBLCK = 2
def locking(descriptor, mode, number):
    assert (mode, number) == (2, 1)
    try:
        at = os.lseek(descriptor, 0, os.SEEK_CUR)
        # Of the open file, not of the process.
        lock = struct.pack("hh4xqqi4x", posix.F_WRLCK, os.SEEK_SET, at, number, 0)
        posix.fcntl(descriptor, posix.F_OFD_SETLK, lock)
    except OSError:
        raise PermissionError(errno.EACCES, "Permission denied") from None
msvcrt.locking = locking
sys.modules["msvcrt"] = msvcrt
import time
from pathlib import Path
from dfcrp.errors import RunFolderError
from dfcrp.runs.lock import locked
"""
HOLD = "with locked(Path(FOLDER)): print('held', flush=True); time.sleep(600)"
ASK = """
try:
    with locked(Path(FOLDER)): print("mine")
except RunFolderError as error:
    print(str(error).partition(": ")[2])
"""


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such locks to play with")
def test_windows_locks_keep_others_out(tmp_path: Path) -> None:
    place = repr(str(tmp_path))
    start = "import sys\n" + WINDOWS
    with subprocess.Popen(
        [sys.executable, "-c", start + HOLD.replace("FOLDER", place)],
        stdout=subprocess.PIPE,
        text=True,
    ) as holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == "held\n"
        told, _ = python(WINDOWS + ASK.replace("FOLDER", place))
        holder.kill()
    assert told.startswith(f"process {holder.pid} on")
    assert python(WINDOWS + ASK.replace("FOLDER", place))[0] == "mine"


def test_a_disk_without_locks_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """As some network file systems are: nobody else has the run."""
    import errno

    from dfcrp import filelocks

    def none(descriptor: int) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(filelocks, "_system", lambda: none)
    said = r"run\.lock: cannot be locked: No locks available"
    with pytest.raises(RunFolderError, match=said), locked(tmp_path):
        pass
    # Compiled code is made without them, perhaps twice.
    with library.building(tmp_path / "unit"):
        pass
