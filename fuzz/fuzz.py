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

from dfcrp.errors import DfcrpError, InputError
from fuzz.blind import mutated

#: File endings of the targets; the corpus has a folder for each.
TARGETS = {
    "delimited": ".csv",
    "zooniverse": ".csv",
    "via": ".csv",
    "coco": ".json",
    "labelme": ".json",
    "label-studio": ".json",
    "geojson": ".geojson",
    "cvat": ".xml",
    "scc": ".scc",
    "diam": ".diam",
    "parquet": ".parquet",
    "shapefile": ".shp",
    "settings": ".toml",
    "candidates": ".csv",
    "looked": ".csv",
}
#: The parts of a shapefile in one input, between marks.
PARTS, MARK = (".shp", ".dbf", ".prj"), b"\n--part--\n"
#: The ending of the file with pairs, or with who looked, beside one with items.
PAIRS = ".pairs"
INSTRUMENTED = ["dfcrp.io", "dfcrp.settings", "dfcrp.items", "shapefile", "tomllib"]
#: What an input is read as; its length says which of them.
KINDS = ("circles", "points", "boxes", "ellipses", "diagonal", "normal", "records")
#: Of processor time for one input: a busy machine is no hang. The clock on the wall only ends what
#: would never end by itself.
SECONDS, WALL_SECONDS = 5, 120
LONGEST, MEGABYTES = 4096, 2048
#: What opens a file for writing, makes, moves or removes one; see Python's table of audit events.
WRITING = ("os.mkdir", "os.rename", "os.remove", "os.link", "os.symlink", "os.truncate")


def read_or_refuse(path: Path) -> None:
    """Read a file as items of one kind, or as markings; only an InputError is a way to fail."""
    import numpy as np

    from dfcrp.io import read_markings, read_table
    from dfcrp.io.tables import ReadOptions
    from dfcrp.likelihoods.registry import likelihood_named

    generous = ReadOptions(boxes=True, point_diameter=1.0, body_radius_km=1737.4)
    way = path.stat().st_size % (1 + len(KINDS))
    kind = KINDS[way - 1] if way else "circles"
    try:
        columns = (
            read_table(path, kind, options=generous).columns if way else read_markings(path).columns
        )
    except InputError as error:
        if path.stem not in str(error):
            raise AssertionError(f"the message does not name the file: {error}") from error
        return
    if kind in ("records", "diagonal", "normal"):
        return
    likelihood = likelihood_named(kind)
    numbers = all(np.isfinite(values).all() for values in columns.values())
    sizes = all((columns[name] > 0).all() for name in likelihood.positive if name in columns)
    if not (numbers and sizes and tuple(columns) == likelihood.columns):
        raise AssertionError(f"what was read is not {kind}")


def pair_or_refuse(path: Path) -> None:
    """Read records with the pairs that may share a cluster, which lie in a file beside them."""
    from dfcrp.io import read_items

    pairs = path.with_suffix(PAIRS)
    try:
        items = read_items(path, "records", candidates=pairs)
    except InputError as error:
        if path.stem not in str(error):
            raise AssertionError(f"the message does not name the file: {error}") from error
        return
    found = items.candidates
    if found is None or (found.size and not 0 <= found.min() <= found.max() < len(items)):
        raise AssertionError("what was read is no pairs of items")


def look_or_refuse(path: Path) -> None:
    """Read circles with who looked at which image, which lies in a file beside them."""
    from dfcrp.io import read_items
    from dfcrp.items.checks import bad_names

    try:
        items = read_items(path, "circles", looked=path.with_suffix(PAIRS))
    except InputError as error:
        if path.stem not in str(error):
            raise AssertionError(f"the message does not name the file: {error}") from error
        return
    assert items.looked is not None
    images, experts = (items.looked[:, column].tolist() for column in (0, 1))
    if len(bad_names(experts)) or len(bad_names([name for name in images if name])):
        raise AssertionError("names came through that are refused elsewhere")
    places = [""] * len(items) if items.image is None else items.image.tolist()
    own = set(zip(places, items.expert.tolist(), strict=True))
    if not own <= set(zip(images, experts, strict=True)):
        raise AssertionError("an expert with an item did not look")


def resolve_or_refuse(path: Path) -> None:
    """Read a settings file; what is accepted must come back the same from our own TOML."""
    from dfcrp.settings.config import load_config, make_config, to_toml

    try:
        config = make_config(load_config(path))
    except InputError:
        return
    path.write_text(to_toml(config), encoding="utf-8")
    if make_config(load_config(path)) != config:
        raise AssertionError("the settings come back changed")


def write_parts(path: Path, data: bytes) -> None:
    """A file, or the parts of a shapefile."""
    if path.suffix != ".shp" and MARK not in data:
        path.write_bytes(data)
        path.with_suffix(PAIRS).write_bytes(b"first,second\n")
        return
    suffixes = PARTS if path.suffix == ".shp" else (path.suffix, PAIRS)
    for suffix, part in zip(suffixes, [*data.split(MARK), b"", b""], strict=False):
        path.with_suffix(suffix).write_bytes(part)


class Judge:
    """Tries inputs on one target and keeps the ones that go wrong."""

    def __init__(self, target: str, folder: Path, findings: Path) -> None:
        self.path = folder / f"input{TARGETS[target]}"
        self.findings = findings / target
        checks = {
            "settings": resolve_or_refuse,
            "candidates": pair_or_refuse,
            "looked": look_or_refuse,
        }
        self.check = checks.get(target, read_or_refuse)
        self.seen: set[str] = set()
        self.written: list[str] = []
        self.watching = False
        sys.addaudithook(self._audit)

    def __call__(self, data: bytes) -> None:
        """Try one input."""
        write_parts(self.path, data)
        begun = time.process_time()
        try:
            with self._watched(), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self.check(self.path)
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
        self.watching = self.check is not resolve_or_refuse
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
