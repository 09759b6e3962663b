"""Kill runs at random moments, resume them, and compare their draws with those of a run left alone.

    ./run python -m fuzz.kills --times 100 --out kills

The real command is started as a process of its own and killed by a signal that it cannot catch:
one time in ten at any moment, otherwise after it has begun to work on its folder. Checkpoints
follow one another closely, so that many kills hit the writing of one.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import RunFolderError
from dfcrp.files import write_text
from dfcrp.posterior.saving import load
from dfcrp.report.tables import prepare_out, provenance, write_json
from dfcrp.runs.folder import (
    PROVENANCE,
    read_provenance,
    write_markings,
)
from dfcrp.runs.lock import LOCK
from dfcrp.runs.store import DrawStore
from dfcrp.simulate import paper_design

SETTINGS = "[run]\nchains = {chains}\nscans = {scans}\nseed = 3\ncheckpoint_seconds = 0.05\n"
CHAINS = 3
#: Share of the kills that may also come while the program is being loaded.
AT_ANY_MOMENT = 0.1


@dataclass
class KillOutcome:
    """What the kills did."""

    kills: int = 0
    #: Runs that were brought to their end, each after one kill or several.
    finished: int = 0
    #: Of these, with every draw the same, bit for bit, as without a kill.
    identical: int = 0
    #: Kills after which the draws on disk could not be read, or were not the right ones.
    unreadable: int = 0
    #: Kills by what they hit.
    moments: Counter[str] = field(default_factory=Counter)
    #: What went wrong, in words.
    troubles: list[str] = field(default_factory=list)

    @property
    def good(self) -> bool:
        """Whether nothing was lost."""
        return self.identical == self.finished and not self.unreadable and not self.troubles


class Trial:
    """One data set, the draws of a run left alone, and runs that are killed."""

    def __init__(self, folder: Path, scans: int, seed: int) -> None:
        self.folder = prepare_out(folder)
        self.outcome = KillOutcome()
        self._rng = np.random.default_rng(seed)
        write_markings(folder / "markings.csv", paper_design(5, n_objects=8))
        write_text(folder, "settings.toml", SETTINGS.format(chains=CHAINS, scans=scans))
        self._until_done(self._fit("whole"))  # compiles
        self._seconds, self._seconds_working = self._timed(self._fit("timed"), folder / "timed")
        self._seconds_drawing = load(folder / "timed").record.seconds
        self._whole = _arrays(folder / "whole")

    def run(self, kills: int) -> KillOutcome:
        """Kill so many times, then bring the last run to its end."""
        number = 0
        while self.outcome.kills < kills and not self.outcome.troubles:
            name = f"run-{number}"
            command = self._fit(name)
            while self._killed(command, self.folder / name):
                drawing = self._note_kill(self.folder / name)
                command = self._resume(name)
                if not drawing or self.outcome.kills == kills:
                    self._until_done(command)
                    break
            if not self.outcome.troubles:
                self._compare(self.folder / name)
            number += 1
            print(f"{number} runs, {self.outcome.kills} of {kills} kills", file=sys.stderr)
        return self.outcome

    def _fit(self, name: str) -> list[str]:
        files = [str(self.folder / "markings.csv"), "--out", str(self.folder / name)]
        options = ["--config", str(self.folder / "settings.toml"), "--no-report", "--quiet"]
        return [*_DFCRP, "fit", *files, *options]

    def _resume(self, name: str) -> list[str]:
        """What a user would do: resume, or fit again if the run had not begun."""
        if not (self.folder / name / PROVENANCE).exists():
            return self._fit(name)
        return [*_DFCRP, "resume", str(self.folder / name), "--no-report", "--quiet"]

    def _killed(self, command: list[str], run: Path) -> bool:
        """Start a command and kill it after a while; False if it was done before."""
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            longest = self._seconds
            if self._rng.random() > AT_ANY_MOMENT:
                while process.poll() is None and not _works_on(run, process.pid):
                    time.sleep(0.002)
                longest = self._seconds_working
            try:
                _, said = process.communicate(timeout=self._rng.uniform(0.0, longest))
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
                return True
        self._check(command, process.returncode, said)
        return False

    def _timed(self, command: list[str], run: Path) -> tuple[float, float]:
        """Seconds that a command takes, and those from when it has got hold of the run folder."""
        begun = time.monotonic()
        with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
            while process.poll() is None and not _works_on(run, process.pid):
                time.sleep(0.002)
            held = time.monotonic()
            _, said = process.communicate()
        self._check(command, process.returncode, said)
        return time.monotonic() - begun, time.monotonic() - held

    def _until_done(self, command: list[str]) -> None:
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, check=False)
        self._check(command, done.returncode, done.stderr)

    def _check(self, command: list[str], code: int, said: str) -> None:
        if code:
            self.outcome.troubles.append(f"{' '.join(command[3:])}: exit code {code}: {said}")

    def _note_kill(self, run: Path) -> bool:
        """Look at what the kill has left; whether there was more to draw."""
        self.outcome.kills += 1
        if not (run / PROVENANCE).exists():
            self.outcome.moments["before the run began"] += 1
            return True
        try:
            if "run" in read_provenance(run):
                self.outcome.moments["while making tables"] += 1
                return False
            draws = _draws_of_each(run)
            self.outcome.moments["while drawing" if any(draws) else "before the first draw"] += 1
            if min(draws, default=0) > 0 and not _begins_like(run, self._whole):
                raise RunFolderError(f"{run}: the draws are not those of a run left alone")
        except RunFolderError as error:
            self.outcome.unreadable += 1
            self.outcome.troubles.append(str(error))
        return True

    def _compare(self, run: Path) -> None:
        self.outcome.finished += 1
        found = _arrays(run)
        same = all(np.array_equal(found[name], self._whole[name]) for name in self._whole)
        self.outcome.identical += same
        # How fast the machine is may change during the trial.
        self._seconds_drawing = load(run).record.seconds


_DFCRP = [sys.executable, "-m", "dfcrp.cli"]


def _arrays(run: Path) -> dict[str, NDArray[Any]]:
    """Every draw of a run, from the first scan on."""
    draws = DrawStore.open(run).draws()
    found: dict[str, NDArray[Any]] = {}
    for chain in range(draws.n_chains):
        found[f"labels of chain {chain}"] = draws.labels(chain, 0, draws.n_draws)
        found[f"alpha of chain {chain}"] = draws.alpha()[chain]
        for name, part in vars(draws.clusters(chain, 0, draws.n_draws)).items():
            found[f"clusters' {name} of chain {chain}"] = part
    return found


def _draws_of_each(run: Path) -> list[int]:
    """Committed draws of the chains that have begun."""
    return list(DrawStore.open(run).saved_draws().values())


def _begins_like(run: Path, whole: dict[str, NDArray[Any]]) -> bool:
    """Whether the committed draws are the first of the whole run's."""
    return all(
        np.array_equal(part, whole[name][: len(part)]) for name, part in _arrays(run).items()
    )


def _works_on(run: Path, pid: int) -> bool:
    """Whether a process has got hold of a run folder."""
    try:
        return bool(json.loads((run / LOCK).read_text())["pid"] == pid)
    except (OSError, ValueError, KeyError, TypeError):
        return False


def main() -> int:
    """Parse the options, run, and write ``kills.json``."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--times", type=int, default=100, help="kills")
    parser.add_argument("--scans", type=int, default=4000, help="scans of each run")
    parser.add_argument("--seed", type=int, default=1, help="of the random moments")
    parser.add_argument("--out", type=Path, required=True, help="folder, new or empty")
    options = parser.parse_args()
    outcome = Trial(options.out, options.scans, options.seed).run(options.times)
    settings = {"times": options.times, "scans": options.scans, "seed": options.seed}
    write_json(options.out / "kills.json", {**provenance(**settings), **asdict(outcome)})
    print(
        f"{outcome.kills} kills ({', '.join(f'{n} {what}' for what, n in outcome.moments.items())})"
        f": {outcome.identical} of {outcome.finished} resumed runs have identical draws; "
        f"{outcome.unreadable} folders could not be read"
    )
    for trouble in outcome.troubles:
        print(trouble, file=sys.stderr)
    return 0 if outcome.good else 1


if __name__ == "__main__":
    sys.exit(main())
