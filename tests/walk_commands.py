"""Walk the table of combinations as users do: a file, the command with its defaults, the report."""

from __future__ import annotations

import contextlib
import io
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import dfcrp
from combinations import KINDS
from dfcrp.cli import main as command
from walk_combinations import OTHER_PRIORS, Walk

LIKELIHOODS = {kind.name: kind.likelihood for kind in KINDS}
PRIORS = ("dfcrp", *OTHER_PRIORS)
#: Images: one without a name, or two that share what is learned, or not.
IMAGES = ("one", "shared", "independent")
#: Short, as the test of all combinations has a minute; all else is as it is by default.
SHORT = ("--chains", "2", "--scans", "12", "--seed", "1", "--workers", "1")
#: As long as it is by default, but for an end.
USUAL = ("--max-scans", "500")
#: Files that every run has.
FILES = ("report.html", "catalogue.csv", "members.csv", "experts.csv", "summary.json")


class Cell(NamedTuple):
    """One way to run the command."""

    prior: str
    images: str
    options: tuple[str, ...] = ()
    #: Of these experts only.
    experts: tuple[str, ...] = ("A", "B", "C")

    @property
    def name(self) -> str:
        """For messages, and for a folder."""
        words = [self.prior, self.images, *map(str, self.options), *self.experts]
        return "-".join(Path(word).name.lstrip("-") for word in words)


class Said(NamedTuple):
    """What a command did."""

    code: int
    text: str

    @property
    def last(self) -> str:
        """The error, or the last of what was said."""
        lines = self.text.strip().splitlines()
        return next((line for line in lines if "error:" in line), lines[-1])


def run(*words: str) -> Said:
    """``dfcrp WORDS`` in this process, and all that it prints."""
    heard = io.StringIO()
    with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
        code = command.main(words)
    return Said(code, heard.getvalue())


def write_table(items: dfcrp.Items, path: Path, *, sphere: bool) -> None:
    """The items as a table that people have, with persons and images where these are known."""
    names = {"x": "lon", "y": "lat", "diameter": "diameter_km"} if sphere else {}
    about = {"id": items.id, "expert": items.expert, "image": items.image, "person": items.person}
    columns = {name: values for name, values in about.items() if values is not None}
    header = [*columns, *(names.get(name, name) for name in items.columns)]
    rows = zip(*columns.values(), *items.cells.values(), strict=True)
    lines = [",".join(map(str, row)) for row in (header, *rows)]
    path.write_text("\n".join([*lines, ""]), encoding="utf-8")


class CommandWalk:
    """One kind of item through the command."""

    def __init__(self, kind: str, folder: Path) -> None:
        self.kind = kind
        self.folder = folder
        self.walk = Walk(kind, folder)

    def table(self, cell: Cell) -> Path:
        """The file that a cell is about."""
        items = self.walk.one if cell.images == "one" else self.walk.two
        chosen = [name in cell.experts for name in items.expert.tolist()]
        path = self.folder / f"{cell.images}-{'-'.join(cell.experts)}.csv"
        if not path.exists():
            write_table(items.select(chosen), path, sphere=self.kind == "sphere")
        return path

    def words(self, cell: Cell) -> list[str]:
        """What a user types after ``dfcrp``, but for the output and how long to run."""
        words = ["fit", str(self.table(cell)), "--prior", cell.prior, *cell.options]
        if self.kind != "circles":
            words += ["--likelihood", LIKELIHOODS[self.kind]]
        if self.kind == "sphere":
            words += ["--body", "moon"]
        if cell.images != "one":
            words += ["--images", cell.images]
        return words

    @property
    def named(self) -> tuple[str, ...]:
        """What a command on a run must be told of a likelihood of one's own."""
        return ("--likelihood", "counts:COUNTS") if self.kind == "own" else ()

    def fit(self, cell: Cell, length: tuple[str, ...] = SHORT) -> str:
        """Fit and report; what is wrong with it, if anything."""
        out = self.folder / cell.name
        said = run(*self.words(cell), *length, "--out", str(out))
        if said.code:
            return said.last
        missing = [name for name in FILES if not (out / name).exists()]
        if missing:
            return f"no {', '.join(missing)}"
        if "Verdict" not in said.text:
            return "says no verdict"
        if cell.images == "one":
            return ""
        page = run("report", str(out), "--image", "j", *self.named)
        return page.last if page.code else ""

    def features(self) -> dict[str, Callable[[], str]]:
        """What else the command can be asked for, by the features' names in the table."""
        pairs = self.folder / "pairs.csv"
        pairs.write_text("first,second\n1,2\n", encoding="utf-8")

        pixel = ("--metres-per-pixel", "60") if self.kind == "sphere" else ()

        def with_options(*options: str) -> Callable[[], str]:
            return lambda: self.fit(Cell("dfcrp", "one", options))

        def after(*words: str) -> Callable[[], str]:
            def ask() -> str:
                plain = Cell("dfcrp", "one")
                out = self.folder / plain.name
                wrong = "" if out.exists() else self.fit(plain)
                said = run(words[0], str(out), *words[1:], *self.named)
                return wrong or (said.last if said.code else "")

            return ask

        return {
            "paper": with_options("--sampler", "paper"),
            "unmodified": with_options("--sampler", "unmodified"),
            "expert_bias": with_options("--expert-bias", "both"),
            "radius": with_options("--radius", "50"),
            "nearest": with_options("--nearest", "4"),
            "candidates": with_options("--candidates", str(pairs)),
            # The paper's law is in pixels.
            "preset": with_options("--preset", "simulation", *pixel),
            "explain": after("explain", "1"),
            "report": after("report", "--side-by-side"),
            "resume": after("resume", "--scans", "16"),
        }
