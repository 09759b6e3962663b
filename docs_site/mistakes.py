"""The page of common mistakes: each is made with a handful of items, and what dfcrp says is shown.

    ./run python -m docs_site.mistakes      # writes docs/mistakes.md

A test makes all of them again and compares the page.
"""

from __future__ import annotations

import contextlib
import io
import os
import shlex
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "mistakes.md"
#: What the runs of the page have in common, which the page does not show.
SHORT = ("--chains", "2", "--scans", "20", "--no-report")
#: An image of so many pixels.
WIDTH, HEIGHT = 800.0, 480.0

Row = tuple[Any, ...]
Files = Mapping[str, str]


@dataclass(frozen=True)
class Mistake:
    """One mistake: what was done, and what to do instead."""

    title: str
    #: Why it happens, or what it looks like.
    story: str
    files: Callable[[], Files]
    #: After ``dfcrp``, as it is typed.
    command: str
    #: Lines of a file that are shown.
    shown: str = ""
    #: What dfcrp says of it comes in lines that begin so; the rest is not about the mistake.
    said: tuple[str, ...] = ("dfcrp: error:", "dfcrp: warning:", "Error:")
    #: What to do, if the message leaves that open.
    mend: str = ""
    #: Whether nothing is fitted.
    refused: bool = True


def markings(
    names: Iterable[str] = ("ann", "bob", "cleo"), images: int = 1, objects: int = 25
) -> list[Row]:
    """Rows (x, y, diameter, expert, image) of circles that most experts found."""
    rng = np.random.default_rng(4)
    rows: list[Row] = []
    for image in range(images):
        for _ in range(objects):
            x, y = rng.uniform(0.0, WIDTH), rng.uniform(0.0, HEIGHT)
            diameter = float(np.exp(rng.normal(3.2, 0.4)))
            for name in names:
                if rng.random() < 0.85:
                    near = rng.normal(0.0, 2.0, 2)
                    grown = diameter * np.exp(rng.normal(0.0, 0.05))
                    place = round(x + near[0], 1), round(y + near[1], 1)
                    rows.append((*place, round(grown, 1), name, f"im{image + 1}"))
    return rows


def table(rows: Iterable[Row], header: str = "x,y,diameter,expert", comma: str = ",") -> str:
    """A text table with as many columns as the header names."""
    width = len(header.split(","))
    lines = [header.replace(",", comma)]
    lines += [comma.join(str(cell) for cell in row[:width]) for row in rows]
    return "\n".join([*lines, ""])


def spoiled(
    change: Callable[[float, float, float], tuple[float, ...]],
    whose: str = "cleo",
    images: int = 1,
) -> list[Row]:
    """Markings of which those by one expert, or by all, are changed."""
    rows: list[Row] = []
    for x, y, diameter, name, image in markings(images=images):
        numbers: Row = (x, y, diameter)
        if name == whose or not whose:
            numbers = tuple(float(f"{v:.6g}") for v in change(float(x), float(y), float(diameter)))
        rows.append((*numbers, name, image))
    return rows


def one_file(rows: list[Row], header: str = "x,y,diameter,expert", comma: str = ",") -> Files:
    """All rows in markings.csv."""
    return {"markings.csv": table(rows, header, comma)}


def each_in_a_file(rows: list[Row]) -> Files:
    """A file for each expert, without a column for experts."""
    names = dict.fromkeys(str(row[3]) for row in rows)
    return {
        f"{name}.csv": table([row for row in rows if row[3] == name], "x,y,diameter")
        for name in names
    }


def _boxes() -> Files:
    rows = [
        (*(round(v, 1) for v in (x - d / 2, y - d / 2, x + d / 2, y + d / 2)), name)
        for x, y, d, name, _ in markings()
    ]
    return {"boxes.csv": table(rows, "x_min,y_min,x_max,y_max,expert")}


def _decimal_commas() -> Files:
    text = table(markings(), comma=";")
    return {"markings.csv": text.replace(".", ",")}


def _one_negative() -> Files:
    rows = markings()
    rows[6] = (*rows[6][:2], -abs(float(rows[6][2])), *rows[6][3:])
    return one_file(rows)


def _one_missing() -> Files:
    rows = markings()
    rows[4] = (rows[4][0], "NA", *rows[4][2:])
    return one_file(rows)


def _twice_under_two_names() -> Files:
    files = dict(each_in_a_file(markings()))
    return {**files, "dora.csv": files["ann.csv"]}


def _submitted_twice() -> Files:
    rng = np.random.default_rng(9)
    rows = markings()
    again = [
        (*(round(float(v) + rng.normal(0.0, 2.0), 1) for v in row[:2]), *row[2:])
        for row in rows
        if row[3] == "bob"
    ]
    return one_file([*rows, *again])


def _two_names_of_images() -> Files:
    rows = markings(("ann", "bob"), images=2)
    paths = {"ann": "{}.jpg", "bob": "/home/bob/{}.JPG"}
    return one_file(
        [(*row[:4], paths[str(row[3])].format(row[4])) for row in rows],
        "x,y,diameter,expert,image",
    )


def _truth_in_words() -> Files:
    rows = [(*row[:4], f"crater {k}") for k, row in enumerate(markings())]
    return one_file(rows, "x,y,diameter,expert,truth")


FIT = "fit markings.csv --out run"
MISTAKES = (
    Mistake(
        "No column says who the expert is",
        "One file holds the lists of all, and no column has their names.",
        lambda: one_file(markings(), "x,y,diameter"),
        FIT,
    ),
    Mistake(
        "Only one expert",
        "A single list has nothing that it could be merged with.",
        lambda: one_file(markings(("ann",))),
        FIT,
        said=("- One expert",),
        mend="Give the lists of several experts, in one table or as several files.",
        refused=False,
    ),
    Mistake(
        "x and y exchanged",
        "One program writes row and column, another x and y.",
        lambda: one_file(spoiled(lambda x, y, d: (y, x, d))),
        FIT,
        refused=False,
    ),
    Mistake(
        "y runs the other way",
        "In images y points down, on maps it points up.",
        lambda: one_file(spoiled(lambda x, y, d: (x, HEIGHT - y, d))),
        FIT,
        refused=False,
    ),
    Mistake(
        "Another origin",
        "One expert worked on a part that was cut out of the image.",
        lambda: one_file(spoiled(lambda x, y, d: (x - 120.0, y - 80.0, d))),
        FIT,
        refused=False,
    ),
    Mistake(
        "Another unit in one list",
        "One expert saw the image at half its size.",
        lambda: one_file(spoiled(lambda x, y, d: (x / 2, y / 2, d / 2))),
        FIT,
        refused=False,
    ),
    Mistake(
        "Diameters in km, places in pixels",
        "The run would end without merging anything.",
        lambda: one_file(spoiled(lambda x, y, d: (x, y, 0.0005 * d), whose="")),
        FIT,
        refused=False,
    ),
    Mistake(
        "Longitude and latitude called x and y",
        "Places in degrees, diameters in pixels: every circle covers the whole map.",
        lambda: one_file(spoiled(lambda x, y, d: (x / 400.0, y / 400.0, d), whose="")),
        FIT,
        refused=False,
    ),
    Mistake(
        "Radii for diameters",
        "One expert's program writes radii.",
        lambda: one_file(spoiled(lambda x, y, d: (x, y, d / 2))),
        FIT,
        refused=False,
    ),
    Mistake(
        "Corners for centres",
        "One expert's program gives the upper left corner of a circle, the others its centre.",
        lambda: one_file(spoiled(lambda x, y, d: (x - d / 2, y - d / 2, d))),
        FIT,
        refused=False,
    ),
    Mistake(
        "A list given twice, under two names",
        "`dora.csv` is a copy of `ann.csv`.",
        _twice_under_two_names,
        "fit ann.csv bob.csv cleo.csv dora.csv --out run",
        refused=False,
    ),
    Mistake(
        "A list submitted twice, under one name",
        "bob marked the image on two days, and both are in the table.",
        _submitted_twice,
        FIT,
        refused=False,
    ),
    Mistake(
        "One image under two names",
        "ann's table says `im1.jpg`, bob's `/home/bob/im1.JPG`.",
        _two_names_of_images,
        FIT,
        refused=False,
    ),
    Mistake(
        "Nothing says who looked",
        "Several images, and the detection prior, which must know who could have found an object.",
        lambda: one_file(markings(images=3, objects=8), "x,y,diameter,expert,image"),
        "fit markings.csv --prior detection --out run",
        said=("Note:",),
        refused=False,
    ),
    Mistake(
        "The wrong kind of item",
        "A table of boxes, read as circles.",
        _boxes,
        "fit boxes.csv --out run",
        shown="boxes.csv",
    ),
    Mistake(
        "Decimal commas",
        "A spreadsheet wrote the table in another language.",
        _decimal_commas,
        FIT,
        shown="markings.csv",
        mend="Save the table with decimal points; semicolons between the columns may stay.",
    ),
    Mistake(
        "A separator that dfcrp does not know",
        "Commas, semicolons, tabs, bars and blanks are known.",
        lambda: one_file(markings(), comma="%"),
        FIT,
        shown="markings.csv",
        mend="Save the table with commas.",
    ),
    Mistake("A negative diameter", "A typo.", _one_negative, FIT),
    Mistake("A missing number", "`NA` where y should be.", _one_missing, FIT),
    Mistake(
        "True labels that are no numbers",
        "For simulated data a column `truth` says which object a marking is of.",
        _truth_in_words,
        FIT,
        shown="markings.csv",
    ),
    Mistake(
        "A filter that leaves nothing",
        "`--min-diameter` is in the unit of the file.",
        lambda: one_file(markings()),
        f"{FIT} --min-diameter 5000",
    ),
    Mistake(
        "More experts for a consensus than there are",
        "Five is usual, but here are three.",
        lambda: one_file(markings()),
        f"{FIT} --min-experts 5",
        said=("Note:",),
        refused=False,
    ),
    Mistake(
        "An unknown setting",
        "In a settings file.",
        lambda: {**one_file(markings()), "my.toml": "[run]\nchain = 2\n"},
        f"{FIT} --config my.toml",
        shown="my.toml",
    ),
    Mistake(
        "An unknown preset",
        "The paper's hyperparameters have the names of its data sets.",
        lambda: one_file(markings()),
        f"{FIT} --preset highland",
    ),
    Mistake(
        "The run folder exists",
        "Nothing is ever overwritten.",
        lambda: {**one_file(markings()), "run/notes.txt": "mine\n"},
        FIT,
        mend="`dfcrp resume run` continues a run that is in the folder.",
    ),
)

HEAD = """\
# Common mistakes

What dfcrp says when something is wrong with the data or the command. An *error* means that nothing
was fitted. A *warning* comes before the run, from a [first look](input.md#a-first-look) at the
data; the run continues, and the warning stands beside its verdict, in the report and in
`summary.json`. Each of these mistakes is made by a test, and the messages are what the command
prints.
"""


@contextlib.contextmanager
def in_folder() -> Iterator[Path]:
    """An empty folder to work in."""
    before = Path.cwd()
    with tempfile.TemporaryDirectory() as name:
        os.chdir(name)
        try:
            yield Path(name)
        finally:
            os.chdir(before)


def make(mistake: Mistake) -> tuple[int, str]:
    """Make a mistake; the exit code, and what dfcrp says of it."""
    from dfcrp.cli.main import main

    words = shlex.split(mistake.command)
    if not mistake.refused:
        words += SHORT
    heard = io.StringIO()
    with in_folder() as folder:
        for name, text in mistake.files().items():
            (folder / name).parent.mkdir(exist_ok=True)
            (folder / name).write_text(text, encoding="utf-8")
        with contextlib.redirect_stdout(heard), contextlib.redirect_stderr(heard):
            code = main(words)
    return code, "\n".join(_about_it(heard.getvalue(), mistake.said))


def _about_it(text: str, said: tuple[str, ...]) -> Iterator[str]:
    """The lines about the mistake, with those that belong to them."""
    within = False
    for line in text.splitlines():
        within = line.startswith(said) or (within and line.startswith("  "))
        if within:
            yield line


def section(mistake: Mistake, said: str) -> str:
    """A mistake on the page."""
    import textwrap

    lines = [f"## {mistake.title}", "", mistake.story, ""]
    if mistake.shown:
        first = mistake.files()[mistake.shown].splitlines()[:3]
        lines += ["```", *first, "```", ""]
    lines += ["```", f"$ dfcrp {mistake.command}"]
    for line in said.splitlines():
        lines += textwrap.wrap(line, 110, break_long_words=False, break_on_hyphens=False)
    lines += ["```", ""]
    if mistake.mend:
        lines += [mistake.mend, ""]
    return "\n".join(lines)


def render(said: Mapping[str, str]) -> str:
    """The whole page, from what was said of each mistake."""
    return "\n".join([HEAD, *(section(mistake, said[mistake.title]) for mistake in MISTAKES)])


def main() -> int:
    """Make every mistake and write the page."""
    PAGE.write_text(render({one.title: make(one)[1] for one in MISTAKES}), encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
