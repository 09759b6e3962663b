"""Fuzzing of whole run folders: tampered records, indices, checkpoints, links and damaged files,
code that a file names, settings that were edited.

    ./run python -m fuzz.folders --inputs 100000 --out findings

A small run is made, and each input spoils a copy of it: the first byte says how, the rest with
what. Then the folder is read, its draws are, and its chains are brought to their checkpoints and
make a scan; of some inputs it is written to, as ``dfcrp resume`` does. Anything but a DfcrpError is
a finding, as is a file outside that is touched, or one inside that reading changes, code of the
folder's that is run, settings that are not those of the draws, 5 s of processor time, or 2 GB.
Kernels run interpreted, so that an index beyond an array is an error and
not a crash.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import random
import re
import resource
import shutil
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from fuzz.blind import mutated
from fuzz.zipped import change_index, members, put_together

SECONDS, MEGABYTES = 5, 2048
#: What lies outside, and modules that a run folder could be taken for.
DEAR = "dear to me"
CODE = ("evil", "spoiled")
FILES = (
    *("provenance.json", "config.toml", "markings.csv", "candidates.csv", "looked.csv"),
    *("run.lock", "draws.zarr/zarr.json", "footprints.json", "ages.json"),
    *("decisions.csv", "start.csv", "start.json", "source_tables.json"),
)
LINKED = (*FILES, "draws.zarr", "shard")
FIELDS = ("part", "chain", "turn", "first", "draws", "rows", "n", "saved", "scans", "about")
#: So that words of JSON are put into inputs as a whole.
WORDS = tuple(
    word.encode() for word in (*FIELDS, "run", "scans", "thin", "seconds", "site", "groups")
)


def make_run(folder: Path) -> None:
    """The run that is spoiled: one that was updated, with decisions and what files said."""
    import dfcrp
    from dfcrp.items.source_tables import CategoryEntry, ImageEntry, SourceFile, SourceTables

    x = np.array([0.0, 0.1, 5.0, 5.1, 9.0, 0.05])
    items = dfcrp.Items.circles(x, x[::-1], np.ones(6), list("ababbc"))
    entry = ImageEntry("", (0,), "a.png", "7", (40, 30))
    known = SourceTables(
        (SourceFile("a.json", "COCO"),), (entry,), (CategoryEntry("pit", (0,), {"id": 3}),)
    )
    items = replace(items, source_tables=known)
    first = dfcrp.fit(items, chains=2, scans=4, workers=1, progress=False)
    decided = [{"decision": "together", "items": "1 2", "by": "ann"}]
    first.update(decisions=decided, out=folder, scans=4, workers=1)


class Spoiler:
    """Spoils copies of a run."""

    def __init__(self, template: Path, work: Path) -> None:
        self._template = template
        self._run = work / CODE[1]
        self._outside = work / "outside"
        self._ways: list[Callable[[bytes], None]] = [
            *(self._replacing(name) for name in FILES),
            self._index,
            self._field,
            self._state,
            self._array,
            self._bytes,
            self._member,
            self._link,
            self._remove,
            self._hard_link,
            self._code,
            self._setting,
            self._columns,
        ]
        #: Whether the folder is written to after it was read.
        self.writes = False

    def seeds(self) -> list[bytes]:
        """An input for each way, which changes nothing or little."""
        contents = [
            (self._template / name).read_bytes() if (self._template / name).exists() else b"1,2\n"
            for name in FILES
        ]
        shard = next((self._template / "draws.zarr").glob("shard-*"))
        index = json.loads(members(shard)["zarr.json"])["attributes"]
        about = json.dumps(index["blocks"]["about"][0]).encode()
        contents += [json.dumps(index).encode(), b"\x04\x07", about, b"\3\1\2\3\4"]
        contents += [b"\1\0\4\xff", b"\7\0\0\1\xff", b"\0\1", b"\2\0", b"\0", b"spoiled.evil:X"]
        contents += [b"\0\x07\0\1", json.dumps(index["columns"]).encode()]
        return [bytes([way]) + content for way, content in enumerate(contents)]

    def spoil(self, data: bytes) -> Path:
        """A copy that is spoiled in one way."""
        for folder in (self._run, self._outside):
            shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(self._template, self._run)
        self._outside.mkdir()
        (self._outside / "dear").write_text(DEAR)
        (self._run / "evil.py").write_text(
            f"import pathlib\npathlib.Path({str(self._outside / 'was run')!r}).touch()\nX = 1\n"
        )
        for name in [name for name in sys.modules if name.partition(".")[0] in CODE]:
            del sys.modules[name]
        self.writes = False
        way = data[0] if data else 0
        self._ways[way % len(self._ways)](data[1:] + b"\0" * 16)
        return self._run

    def untouched(self) -> bool:
        """Whether what lies outside is as it was."""
        found = {path.name: path.read_text() for path in self._outside.iterdir()}
        return found == {"dear": DEAR}

    def _shard(self, number: int = 0) -> Path:
        shards = sorted((self._run / "draws.zarr").glob("shard-*.zip"))
        return shards[number % len(shards)]

    def _replacing(self, name: str) -> Callable[[bytes], None]:
        def replace(data: bytes) -> None:
            (self._run / name).write_bytes(data[:-16])

        return replace

    def _index(self, data: bytes) -> None:
        try:
            fields = json.loads(data[:-16])
        except (ValueError, RecursionError):
            content = members(self._shard())
            put_together(self._shard(), {**content, "zarr.json": data[:-16]})
            return
        change_index(self._shard(), lambda _: fields)

    def _field(self, data: bytes) -> None:
        value = int.from_bytes(data[1:9], "little", signed=True) >> (data[9] % 64)

        def change(index: dict[str, Any]) -> None:
            index["blocks"][FIELDS[data[0] % len(FIELDS)]][0] = value

        change_index(self._shard(), change)

    def _state(self, data: bytes) -> None:
        """Other words in a state, or an array of another form."""

        def change(index: dict[str, Any]) -> None:
            try:
                index["blocks"]["about"][0] = json.loads(data[:-16])
            except (ValueError, RecursionError):
                array = index["state"][list(index["state"])[data[0] % len(index["state"])]]
                long = int.from_bytes(data[1:5], "little") >> (data[5] % 32)
                kinds = ("<i4", "<f8", "|i1", "|O", "<c16", "U3", "x")
                ways = ({"row": [long]}, {"rows": [long]}, {"dtype": kinds[data[7] % len(kinds)]})
                array.update(ways[data[6] % 3])

        change_index(self._shard(), change)

    def _array(self, data: bytes) -> None:
        """Wild values in one array of a state that is otherwise in order."""
        from dfcrp.runs.blocks import MemoryBlock, draws_of
        from dfcrp.runs.lock import Claim
        from dfcrp.runs.shards import Unpacked, write_shard
        from dfcrp.runs.store import DrawStore

        block: Any = DrawStore.open(self._run).spans(0, 0)[-1].block
        arrays = {name: array.copy() for name, array in block.state().items()}
        name = list(arrays)[data[0] % len(arrays)]
        flat = arrays[name].reshape(-1)
        for at in range(0, len(data) - 16, 4):
            if flat.size:
                small = int.from_bytes(data[at + 2 : at + 4], "little", signed=True)
                wild = np.nan if flat.dtype.kind == "f" and small % 7 == 0 else small
                flat[data[at + 1] % flat.size] = np.array(wild).astype(flat.dtype)
        again = MemoryBlock(block.entry, draws_of(block), arrays)
        write_shard(self._run / "draws.zarr", 50, [[again]], Unpacked(1 << 20), Claim(self._run))
        block.shard.path.unlink()

    def _member(self, data: bytes) -> None:
        """Other content of one array, packed or its description, with a checksum that fits."""
        path = self._shard(data[0])
        content = members(path)
        name = list(content)[data[1] % len(content)]
        changed = bytearray(content[name])
        for at in range(2, len(data) - 16, 3):
            place = int.from_bytes(data[at : at + 2], "little") % max(1, len(changed))
            changed[place : place + 1] = bytes([changed[place] ^ data[at + 2]]) if changed else b""
        if data[1] % 16 == 15:
            del content[name]
        else:
            content[name] = bytes(changed)
        put_together(path, content)

    def _bytes(self, data: bytes) -> None:
        path = self._shard(data[0])
        content = bytearray(path.read_bytes())
        for at in range(2, len(data) - 16, 3):
            place = int.from_bytes(data[at : at + 2], "little") % max(1, len(content))
            content[place] ^= data[at + 2]
        path.write_bytes(content)

    def _named(self, name: str) -> Path:
        first, _, rest = name.partition("/")
        place = self._shard() if first == "shard" else self._run / first
        return place / rest if rest else place

    def _link(self, data: bytes) -> None:
        path = self._named(LINKED[data[0] % len(LINKED)])
        self._away(path)
        targets = (self._outside, self._outside / "dear", self._outside / "new", Path("/dev/zero"))
        path.symlink_to(targets[data[1] % len(targets)])

    def _hard_link(self, data: bytes) -> None:
        """A file that is there, or that will be made, is one outside too."""
        names = (
            *LINKED,
            "run.lock.part",
            "config.toml.part",
            "provenance.json.part",
            "report.html",
        )
        path = self._named(names[data[0] % len(names)])
        if path.is_dir():
            return
        path.parent.mkdir(exist_ok=True)
        self._away(path)
        path.hardlink_to(self._outside / "dear")
        self.writes = True

    def _code(self, data: bytes) -> None:
        """A likelihood that could be imported, or whatever the input names."""
        name = data[:-16].decode("utf-8", "replace")
        self._edit("likelihood", json.dumps(name, ensure_ascii=False))

    def _setting(self, data: bytes) -> None:
        """One setting of those that draws depend on, as a number, a text, or true."""
        from dfcrp.runs.folder import read_provenance

        names = sorted(read_provenance(self._run)["settings_of_draws"])
        value: Any = int.from_bytes(data[1:3], "little", signed=True) / (1 + data[3] % 8)
        value = [value, int(value), data[4:-16].decode("utf-8", "replace"), True][data[3] // 8 % 4]
        self._edit(names[data[0] % len(names)].partition(".")[2], json.dumps(value))

    def _edit(self, name: str, value: str) -> None:
        path = self._run / "config.toml"
        text = re.sub(rf"(?m)^{name} = .*$", lambda _: f"{name} = {value}", path.read_text())
        path.write_text(text)

    def _columns(self, data: bytes) -> None:
        """Other quantities in every draw, or many more of them."""

        def change(index: dict[str, Any]) -> None:
            try:
                index["columns"] = json.loads(data[:-16])
                return
            except (ValueError, RecursionError):
                columns = index["columns"]
            many = 1 << (data[0] % 18)
            if data[1] % 2:
                columns["parameters"] = [f"p{k}" for k in range(many)]
            else:
                columns["shared"] = [["x", ["a"] * (data[2] % 5)]]
                columns["coords"] = {"a": [str(k) for k in range(many)]}

        change_index(self._shard(), change)

    def _remove(self, data: bytes) -> None:
        self._away(self._named(LINKED[data[0] % len(LINKED)]))

    def _away(self, path: Path) -> None:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def use(run: Path) -> None:
    """Read all there is, and go on from the checkpoints; only a DfcrpError is a way to fail."""
    from dfcrp.errors import DfcrpError
    from dfcrp.fitting.api import find_run
    from dfcrp.io.converting import read_table
    from dfcrp.posterior.saving import load
    from dfcrp.report.sections.ages import read_ages
    from dfcrp.runs.folder import read_provenance
    from dfcrp.runs.parts import Parts
    from dfcrp.runs.store import DrawStore
    from dfcrp.sampling.chain import Chain
    from dfcrp.sampling.problem import problem_of
    from dfcrp.settings.config import settings_of_draws

    try:
        found = load(run)
        begun_with = read_provenance(run)["settings_of_draws"]
        now = json.loads(json.dumps(settings_of_draws(found.config)))
        if any(now[name] != begun_with[name] for name in {*now} & {*begun_with}):
            raise AssertionError("settings that are not those of the draws")
        read_ages(run, found)
        draws = found.draws
        for chain in range(draws.n_chains):
            labels = draws.labels(chain, 0, draws.n_draws)
            draws.clusters(chain, 0, draws.n_draws)
            if labels.shape != (draws.n_draws, len(found.items)):
                raise AssertionError("draws of another shape")
    except DfcrpError:
        pass
    with contextlib.suppress(DfcrpError):
        read_table(run)
    try:
        begun = find_run(run, scans=6)
        store = DrawStore.open(run, bounds=Parts.of_run(begun.items, begun.config).bounds())
        problem = problem_of(begun.items, begun.config)
        for number in range(2):
            seed = np.random.SeedSequence(1).spawn(number + 1)[number]
            chain_here = Chain(problem, seed, begun.config.run.sampler)
            store.writer(0, number, problem.n, problem.columns).restore(chain_here, 1)
            with contextlib.suppress(OverflowError):  # what is compiled goes on with infinity
                chain_here.run(1, 1)
    except DfcrpError:
        pass


def write(run: Path) -> None:
    """Write what a run writes."""
    from dfcrp.errors import DfcrpError
    from dfcrp.fitting.api import find_run
    from dfcrp.posterior.saving import finish, load
    from dfcrp.runs.folder import write_settings
    from dfcrp.runs.lock import locked, taken_over

    try:
        found = find_run(run)
        with locked(run), taken_over(run):
            write_settings(run, found.config)
            finish(load(run), run, tables=False)
    except DfcrpError:
        pass


def listing(run: Path) -> list[str]:
    """All names in a folder, without following links."""
    return sorted(
        os.path.join(place, name)
        for place, folders, files in os.walk(run)
        for name in (*folders, *files)
    )


def try_one(spoiler: Spoiler, data: bytes) -> None:
    """AssertionError, or whatever went wrong, if this input is a finding."""
    run = spoiler.spoil(data)
    before, begun = listing(run), time.process_time()
    use(run)
    if time.process_time() - begun > SECONDS:
        raise AssertionError(f"took more than {SECONDS} s")
    if listing(run) != before or not spoiler.untouched():
        raise AssertionError("reading changed files")
    if spoiler.writes:
        write(run)
        if not spoiler.untouched():
            raise AssertionError("writing changed files outside")
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss > MEGABYTES * 1024:
        raise AssertionError(f"took more than {MEGABYTES} MB")


def fuzz_folders(inputs: int, seed: int, findings: Path) -> tuple[int, list[str]]:
    """Try so many inputs; how many were tried, and the places where something went wrong."""
    rng, wrong = random.Random(seed), []
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as place, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        template = Path(place) / "template"
        make_run(template)
        spoiler = Spoiler(template, Path(place))
        # Where one may be, so that what lies in the folder could be imported.
        sys.path[:0] = [place, f"{place}/{CODE[1]}"]
        seeds = spoiler.seeds()
        for number in range(inputs):
            data = seeds[number] if number < len(seeds) else mutated(rng, seeds, WORDS)
            try:
                try_one(spoiler, data)
            except Exception as error:
                last = traceback.extract_tb(error.__traceback__)[-1]
                name = f"{type(error).__name__}-{Path(last.filename).stem}-{last.lineno}"
                if name not in wrong:
                    wrong.append(name)
                    findings.mkdir(parents=True, exist_ok=True)
                    (findings / f"{name}.input").write_bytes(data)
                    text = "".join(traceback.format_exception(error))
                    (findings / f"{name}.txt").write_text(text, errors="replace")
    return inputs, wrong


def main() -> int:
    """The command: 0 if nothing went wrong, 1 otherwise."""
    parser = argparse.ArgumentParser(prog="fuzz.folders", description=__doc__)
    parser.add_argument("--inputs", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--out", type=Path, default=Path("findings"), help="folder for what fails")
    asked = parser.parse_args()
    os.environ["NUMBA_DISABLE_JIT"] = "1"  # before Numba is imported
    tried, wrong = fuzz_folders(asked.inputs, asked.seed, asked.out)
    print(f"{tried:,} run folders, {len(wrong)} places where something went wrong")
    for name in wrong:
        print(name)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
