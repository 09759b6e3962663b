"""CraterStats, the program: crater counts in, model ages and isochrons out.

It is run as a command, many counts in one call, so that it may live in another Python than ours.
"""

from __future__ import annotations

import csv
import difflib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import DfcrpError, SettingsError
from dfcrp.values import Json

#: How an age is derived, by CraterStats' name, and in words.
METHODS = {"poisson": "Poisson estimate", "d-fit": "differential fit", "c-fit": "cumulative fit"}
#: CraterStats' names for how a fit bins the diameters; "poisson" does not.
BINNINGS = ("pseudo-log", "root-2", "10/decade", "20/decade")
MOON = "Moon, Neukum et al. (2001)"
#: Counts in one call of the command: its start takes as long as some fifty of them.
PER_CALL = 250


@dataclass(frozen=True)
class Dating:
    """How an age is derived from a count."""

    area_km2: float
    #: Diameters in km that are used: where the count is complete.
    fit_range: tuple[float, float]
    chronology: str = MOON
    method: str = "poisson"
    binning: str = "pseudo-log"

    def __post_init__(self) -> None:
        low, high = self.fit_range
        if not 0 < low < high < float("inf"):
            raise SettingsError(
                f"the fit range is {low:g} to {high:g}; it must be two diameters in km, "
                "the smaller one first"
            )
        for name, value, known in (
            ("method", self.method, tuple(METHODS)),
            ("binning", self.binning, BINNINGS),
        ):
            if value not in known:
                raise SettingsError(f"{name} is {value!r}; it must be one of {', '.join(known)}")


@dataclass(frozen=True)
class Ages:
    """Model ages in Ga of several counts; NaN where no crater lies in the fit range.

    CraterStats gives ages to three digits.
    """

    #: Craters in the fit range.
    craters: NDArray[np.int64]
    age: NDArray[np.float64]
    #: One standard error below and above, from the number of craters alone.
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    #: Craters of 1 km and more per km², by the fit.
    density: NDArray[np.float64]


def find_command(given: str | os.PathLike[str] | None = None) -> str:
    """The command ``craterstats``: as given, beside our own Python, or on the path."""
    if given is not None:
        found = shutil.which(given)
        if found is None:
            raise SettingsError(f"{os.fspath(given)}: there is no such program")
        return os.path.abspath(found)  # it is run in other folders
    beside = shutil.which("craterstats", path=os.path.dirname(sys.executable))
    found = beside or shutil.which("craterstats")
    if found is None:
        raise SettingsError(
            "ages need the program craterstats, which is not here: pip install 'dfcrp[age]' "
            "(Python 3.12 or newer), or say where it is with --craterstats"
        )
    return found


def chronologies(command: str) -> list[str]:
    """The chronology systems that the program knows."""
    lines = iter(_run([command, "-lcs"], None).splitlines())
    for line in lines:
        if line.strip().endswith("Chronology systems:"):
            break
    names = []
    for line in lines:
        if not line.strip():
            break
        names.append(line.strip())
    if not names:
        raise DfcrpError(f"{command}: its list of chronology systems cannot be read")
    return names


def check_chronology(command: str, name: str) -> str:
    """The name as the program writes it; it would take any letters of it for an abbreviation."""
    known = chronologies(command)
    for candidate in known:
        if candidate.casefold() == name.casefold():
            return candidate
    near = difflib.get_close_matches(name, known, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]!r}? " if near else ""
    raise SettingsError(f"there is no chronology {name!r}; {hint}There are: {'; '.join(known)}")


def model_ages(
    command: str, counts: Sequence[NDArray[np.float64]], dating: Dating, keep: Path | None = None
) -> Ages:
    """Ages of counts, each an array of diameters in km; ``keep`` is a folder for the files made."""
    low, high = dating.fit_range
    craters = np.array([np.count_nonzero((d >= low) & (d < high)) for d in counts], np.int64)
    values = np.full((4, len(counts)), np.nan)
    wanted = np.flatnonzero(craters)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) if keep is None else keep
        folder.mkdir(parents=True, exist_ok=True)
        for start in range(0, len(wanted), PER_CALL):
            part = wanted[start : start + PER_CALL]
            named = {f"count{k:05d}": counts[k] for k in part}
            rows = _date(command, named, dating, folder, f"ages{start // PER_CALL}")
            values[:, part] = np.array([rows[name] for name in named]).T
    return Ages(craters, *values)


#: CraterStats' names of the three presentations.
PRESENTATIONS = {"cumulative": "cumulative", "differential": "differential", "relative": "R-plot"}
#: Isochrons that are drawn where they cross the figure, in Ga.
USUAL_AGES = (0.001, 0.01, 0.1, 0.5, 1.0, 2.0, 3.0, 3.5, 3.8, 4.0)
LUNAR_EQUILIBRIUM = "Lunar equilibrium (Trask, 1966)"
#: Runs in CraterStats' own Python, beside the command; its answer is one line of JSON.
_CURVES = """
import json, os, sys
import craterstats
wanted = json.loads(sys.argv[1])
source = os.path.join(os.path.dirname(craterstats.__file__), "config", "functions.txt")
source = craterstats.gm.read_textstructure(
    craterstats.gm.read_textfile(source, as_string=True, ignore_hash=True), from_string=True)
system = next(s for s in source["chronology_system"] if s["name"] == wanted["chronology"])
chronology = craterstats.Chronologyfn(source, system["cf"])
production = craterstats.Productionfn(source, system["pf"])
level = None
if wanted["equilibrium"]:
    level = craterstats.Productionfn(source, wanted["equilibrium"], equilibrium=True)
def series(found):
    return [[float(v) for v in found[name][::2]] for name in "dy"]
answer = {}
for kind, name in wanted["presentations"].items():
    lines = [[age, *series(production.getisochron(name, chronology.a0(age), None))]
             for age in wanted["ages"]]
    line = None if level is None else series(level.getplotdata(name))
    answer[kind] = {"isochrons": lines, "equilibrium": line}
print(json.dumps(answer))
"""

Series = tuple[NDArray[np.float64], NDArray[np.float64]]


@dataclass(frozen=True)
class Isochrons:
    """What a surface of an age has, by CraterStats' functions: (diameters in km, values)."""

    chronology: str
    equilibrium: str | None
    #: The model age of the surface, whose isochron stands out; None if there is none.
    age: float | None
    #: By kind of distribution: (age in Ga, curve), and the curve of equilibrium.
    isochrons: Mapping[str, Sequence[tuple[float, Series]]]
    levels: Mapping[str, Series | None]

    def to_json(self) -> Json:
        """For a file."""
        return {
            "chronology": self.chronology,
            "equilibrium": self.equilibrium,
            "age": self.age,
            "curves": {
                kind: {
                    "isochrons": [[age, *_lists(curve)] for age, curve in lines],
                    "equilibrium": None if (level := self.levels[kind]) is None else _lists(level),
                }
                for kind, lines in self.isochrons.items()
            },
        }

    @classmethod
    def from_json(cls, content: Json) -> Isochrons:
        """As ``to_json`` made it; ValueError, TypeError or KeyError if it is something else."""
        curves, level = content["curves"], content["equilibrium"]
        return cls(
            str(content["chronology"]),
            None if level is None else str(level),
            None if content["age"] is None else float(content["age"]),
            {
                kind: [(float(age), _curve(d, y)) for age, d, y in curves[kind]["isochrons"]]
                for kind in PRESENTATIONS
            },
            {
                kind: None if (known := curves[kind]["equilibrium"]) is None else _curve(*known)
                for kind in PRESENTATIONS
            },
        )


def _curve(diameters: Sequence[float], values: Sequence[float]) -> Series:
    found = np.array(diameters, float), np.array(values, float)
    if found[0].ndim != 1 or found[0].shape != found[1].shape:
        raise ValueError("a curve has as many values as diameters")
    return found


def _lists(curve: Series) -> list[list[float]]:
    """Six digits are more than a figure shows."""
    return [[float(f"{v:.6g}") for v in values] for values in curve]


def isochron_curves(
    command: str,
    chronology: str,
    age: float | None,
    equilibrium: str | None = None,
    ages: Sequence[float] = USUAL_AGES,
) -> Isochrons:
    """Isochrons and the line of equilibrium, computed by CraterStats' functions in its Python."""
    python = shutil.which("python", path=os.path.dirname(command))
    if python is None:
        raise DfcrpError(f"{command}: there is no Python beside it, which isochrons need")
    wanted = sorted({*ages, *([] if age is None else [age])})
    asked = {
        "chronology": chronology,
        "equilibrium": equilibrium,
        "ages": wanted,
        "presentations": PRESENTATIONS,
    }
    said = _run([python, "-c", _CURVES, json.dumps(asked)], None)
    try:
        curves = json.loads(said.strip().splitlines()[-1])
        return Isochrons.from_json(
            {
                "chronology": chronology,
                "equilibrium": equilibrium,
                "age": age,
                "curves": curves,
            }
        )
    except (ValueError, IndexError, KeyError, TypeError) as error:
        raise DfcrpError(f"the isochrons of craterstats cannot be read: {error!r}") from None


def _date(
    command: str,
    counts: Mapping[str, NDArray[np.float64]],
    dating: Dating,
    folder: Path,
    stem: str,
) -> dict[str, tuple[float, ...]]:
    """One call: writes the counts and a command file, runs it, and reads the table it makes."""
    low, high = dating.fit_range
    lines = ["-cs " + shlex.quote(dating.chronology), "-f csv", "-pr cumulative"]
    for name, diameters in counts.items():
        (folder / f"{name}.diam").write_text(_diam(diameters, dating.area_km2), encoding="utf-8")
        lines.append(
            f"-p source={name}.diam,name={name},type={dating.method},range=[{low!r},{high!r}],"
            f"binning={dating.binning},snap=0"
        )
    instructions, table = folder / f"{stem}.cs", folder / f"{stem}.csv"
    instructions.write_text("\n".join(lines) + "\n", encoding="utf-8")
    table.unlink(missing_ok=True)
    said = _run([command, "-i", instructions.name], folder)
    if not table.exists():
        raise DfcrpError(f"craterstats gave no ages: {said.strip() or 'it says nothing'}")
    return _read_table(table, list(counts))


def _diam(diameters: NDArray[np.float64], area_km2: float) -> str:
    # Without an exponent, which CraterStats would not read in an area.
    lines = [f"area = {area_km2:.15f}", "crater = {diameter"]
    return "\n".join([*lines, *(f"{d:.9g}" for d in diameters.tolist()), "}"]) + "\n"


def _run(arguments: list[str], folder: Path | None) -> str:
    """What the program says; an error of ours if it fails.

    Without a folder it runs in an empty one: ``python -c`` would run modules that lie in the
    current folder, which may be a run of somebody else's.
    """
    if folder is None:
        with tempfile.TemporaryDirectory() as empty:
            return _run(arguments, Path(empty))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONIOENCODING": "utf-8"}
    # Its Python may be another one than ours, which must not find our modules.
    environment.pop("PYTHONPATH", None)
    try:
        done = subprocess.run(
            arguments,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            errors="replace",
            check=False,
        )
    except OSError as error:
        raise DfcrpError(f"{arguments[0]}: cannot be run: {error.strerror}") from None
    said = (done.stderr.strip() or done.stdout.strip()).splitlines()
    if done.returncode != 0:
        reason = said[-1] if said else f"exit code {done.returncode}"
        raise DfcrpError(f"craterstats failed: {reason}")
    return done.stdout


def _read_table(path: Path, names: list[str]) -> dict[str, tuple[float, ...]]:
    """Age, lower, upper and N(1) of each count, from the summary that CraterStats writes."""
    with open(path, encoding="utf-8-sig", newline="") as stream:
        rows = list(csv.reader(stream))
    found: dict[str, tuple[float, ...]] = {}
    try:
        start = next(k for k, row in enumerate(rows) if row and row[0] == "Name")
        at = [rows[start].index(title) for title in ("Age", "Age-", "Age+", "N(1)")]
        for row in rows[start + 1 :]:
            found[row[0]] = tuple(float(row[k]) for k in at)
        return {name: found[name] for name in names}
    except (StopIteration, ValueError, IndexError, KeyError) as error:
        raise DfcrpError(
            f"the table of ages that craterstats wrote cannot be read: {error!r}; dfcrp is "
            "tested with craterstats 3.6"
        ) from None
