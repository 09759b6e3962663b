"""Coverage-guided fuzzing of every reader, of candidate pairs and of the settings file.

``python -m fuzz.fuzz tests/corpus --inputs 1000000 --out findings`` changes the files of a
corpus at random and keeps the changes that reach new code (libFuzzer, through atheris). An input
must be read or refused with an InputError within a few seconds, and reading must write no file.
Whatever else happens is kept in the findings, one input for each place where it happens.

Each target runs in a process of its own, so that a hang or a crash ends that process alone.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import re
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from dfcrp.errors import DfcrpError
from fuzz.blind import mutated
from fuzz.targets import TARGETS

INSTRUMENTED = ["dfcrp.io", "dfcrp.settings", "dfcrp.items", "shapefile", "tomllib"]
#: Of processor time for one input: a busy machine is no hang. The clock on the wall only ends what
#: would never end by itself.
SECONDS, WALL_SECONDS = 5, 120
LONGEST, MEGABYTES = 8192, 2048
#: What opens a file for writing, makes, moves or removes one; see Python's table of audit events.
WRITING = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate")


class Judge:
    """Tries inputs on one target and keeps the ones that go wrong."""

    def __init__(self, target: str, folder: Path, findings: Path) -> None:
        self.folder = folder
        self.findings = findings / target
        self.target = TARGETS[target]
        self.seen: set[str] = set()
        self.written: list[str] = []
        self.watching = False
        sys.addaudithook(self._audit)

    def __call__(self, data: bytes) -> None:
        """Try one input."""
        path = self.target.write(self.folder, data)
        begun = time.process_time()
        try:
            with self._watched(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.target.check(path)
            if time.process_time() - begun > SECONDS:
                raise AssertionError(f"took more than {SECONDS} s")
        except Exception as error:
            self.keep(data, error)

    def keep(self, data: bytes, error: Exception) -> None:
        """Save an input and its traceback, unless the same place was found before."""
        last = traceback.extract_tb(error.__traceback__)[-1]
        place = f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
        if place in self.seen:
            return
        self.seen.add(place)
        self.findings.mkdir(parents=True, exist_ok=True)
        (self.findings / f"{place}.input").write_bytes(data)
        text = "".join(traceback.format_exception(error))
        (self.findings / f"{place}.txt").write_text(text, encoding="utf-8", errors="replace")

    @contextlib.contextmanager
    def _watched(self) -> Iterator[None]:
        self.written.clear()
        self.watching = not self.target.writes
        try:
            yield
        finally:
            self.watching = False
        if self.written:
            raise AssertionError(f"reading wrote: {', '.join(self.written)}")

    def _audit(self, event: str, arguments: tuple[Any, ...]) -> None:
        if not self.watching:
            return
        if event in WRITING:
            self.written.append(f"{event} {arguments[:2]}")
        elif event == "open" and set(str(arguments[1] or "r")) & set("wax+"):
            self.written.append(f"open {arguments[0]}")


def words(corpus: Path) -> list[bytes]:
    """Tokens of the corpus, to be put into inputs whole."""
    found: set[bytes] = set()
    for path in corpus.iterdir():
        found.update(re.findall(rb"[A-Za-z_]{3,30}|[-\d.eE+]{1,12}", path.read_bytes()))
    return sorted(found)[:400]


def fuzz_here(target: str, corpus: Path, findings: Path, inputs: int, seed: int) -> None:
    """Fuzz one target in this process, which ends with it."""
    import atheris

    # Only what is imported in here, and was not imported before, is instrumented.
    with atheris.instrument_imports(include=INSTRUMENTED):
        import dfcrp.io
        import dfcrp.settings.config  # noqa: F401
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        evolved = Path(folder) / "evolved"
        evolved.mkdir()
        dictionary = Path(folder) / "words"
        quoted = (f'"{word.decode()}"' for word in words(corpus / target))
        dictionary.write_text("\n".join(quoted) + "\n", encoding="utf-8")
        judge = Judge(target, Path(folder), findings)
        for path in corpus.glob("*/*"):
            judge(path.read_bytes())  # libraries are loaded before the clock runs
        options = [
            f"-runs={inputs}",
            f"-seed={seed}",
            f"-timeout={WALL_SECONDS}",
            f"-rss_limit_mb={MEGABYTES}",
            f"-max_len={LONGEST}",
            f"-dict={dictionary}",
            f"-artifact_prefix={findings}/{target}-",
            str(evolved),
            str(corpus / target),
        ]
        atheris.Setup([sys.argv[0], *options], judge)
        atheris.Fuzz()


def fuzz_blindly(target: str, corpus: Path, findings: Path, inputs: int, seed: int) -> int:
    """Try random changes of the corpus, without coverage: for machines without atheris."""
    rng = random.Random(seed)
    seeds = [path.read_bytes() for path in sorted((corpus / target).iterdir())]
    known = words(corpus / target)
    with tempfile.TemporaryDirectory(dir=_memory()) as folder:
        judge = Judge(target, Path(folder), findings)
        for data in seeds:
            judge(data)
        for _ in range(inputs):
            judge(mutated(rng, seeds, known))
    return len(judge.seen)


def _memory() -> str | None:
    """A folder that is not on a disk, where there is one."""
    return "/dev/shm" if Path("/dev/shm").is_dir() else None


def fuzz_all(
    corpus: Path, findings: Path, inputs: int, seed: int, say: Callable[[str], None]
) -> dict[str, Any]:
    """Fuzz every target in turn, each with its share of the inputs; the counts of each."""
    findings.mkdir(parents=True, exist_ok=True)
    share = -(-inputs // len(TARGETS))
    results: dict[str, Any] = {}
    for target in TARGETS:
        begun, done, deaths = time.monotonic(), 0, 0
        while done < share and deaths < 10:
            command = [sys.executable, "-m", "fuzz.fuzz", str(corpus), "--target", target]
            command += ["--inputs", str(share - done), "--out", str(findings)]
            command += ["--seed", str(seed + deaths)]
            ended = subprocess.run(
                command, capture_output=True, text=True, errors="replace", check=False
            )
            done += _count(ended.stderr)
            if ended.returncode == 0:
                break
            deaths += 1
            (findings / f"{target}-death-{deaths}.txt").write_text(ended.stderr[-20_000:])
        wrong = sorted(path.stem for path in (findings / target).glob("*.txt"))
        reached = _reached(ended.stderr)
        results[target] = {
            "inputs": done,
            "seconds": round(time.monotonic() - begun, 1),
            "reached": reached,
            "deaths": deaths,
            # Without coverage inputs change blindly, and finding nothing says nothing.
            "wrong": wrong if reached else [*wrong, "no code was instrumented"],
        }
        say(f"{target}: {results[target]}")
    return results


def _count(log: str) -> int:
    """Inputs tried, from libFuzzer's last line that counts them."""
    counts = re.findall(r"^#(\d+)\s|Done (\d+) runs", log, flags=re.MULTILINE)
    return max((int(a or b) for a, b in counts), default=0)


def _reached(log: str) -> int:
    """Branches of the instrumented code that were reached."""
    return max((int(found) for found in re.findall(r"cov: (\d+)", log)), default=0)


def main() -> int:
    """The command: 0 if nothing went wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="fuzz.fuzz", description=__doc__)
    parser.add_argument("corpus", type=Path, help="folder with a folder of files for each target")
    parser.add_argument("--inputs", type=int, default=1_000_000, help="inputs in all")
    parser.add_argument("--out", type=Path, default=Path("findings"), help="folder for what fails")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--target", choices=TARGETS, help="this one alone, in this process")
    parser.add_argument("--blind", action="store_true", help="without coverage, and atheris")
    asked = parser.parse_args()
    if asked.blind:
        targets = [asked.target] if asked.target else list(TARGETS)
        share, wrong = -(-asked.inputs // len(targets)), 0
        for target in targets:
            found = fuzz_blindly(target, asked.corpus, asked.out, share, asked.seed)
            print(f"{target}: {share:,} inputs, {found} places where something went wrong")
            wrong += found
        return 1 if wrong else 0
    try:
        import atheris  # noqa: F401
    except ImportError:
        raise DfcrpError("fuzzing needs atheris: pip install 'dfcrp[fuzz]' (Linux)") from None
    if asked.target:
        fuzz_here(asked.target, asked.corpus, asked.out, asked.inputs, asked.seed)
        return 0
    results = fuzz_all(asked.corpus, asked.out, asked.inputs, asked.seed, print)
    (asked.out / "fuzz.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    total = sum(found["inputs"] for found in results.values())
    wrong = sum(len(found["wrong"]) + found["deaths"] for found in results.values())
    print(f"{total:,} inputs, {wrong} of them in {len(TARGETS)} targets went wrong")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
