"""The posterior given what was decided so far, in a process of its own.

    python -m dfcrp.review.update RUN NUMBER [IMAGES]

conditions RUN on the decisions in RUN/review/NUMBER.csv and leaves in RUN/review/NUMBER a run
folder, with the cases that follow from it. The run itself stays as it is.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

from dfcrp.errors import DfcrpError
from dfcrp.files import opened, remove_file, write_text
from dfcrp.io.decisions import read_decisions
from dfcrp.items.decisions import Decision
from dfcrp.processes import python
from dfcrp.review.cases import Cases
from dfcrp.review.job import Job
from dfcrp.review.store import FOLDER
from dfcrp.runs.folder import write_decisions

CASES_FILE = "cases.json"
_MOST_BYTES = 64 << 20


class Updater:
    """One process at a time, that conditions the run on decisions."""

    def __init__(self, job: Job) -> None:
        self._job, self._number = job, 0
        self._process: subprocess.Popen[bytes] | None = None
        self._folder = job.run / FOLDER
        # What a killed server left, perhaps with a process that still works on it.
        with opened(self._folder) as place:
            for name in place.names():
                if name.removesuffix(".csv").isdecimal():
                    place.remove(name)

    @property
    def busy(self) -> bool:
        """Whether it is at work."""
        return self._process is not None

    def start(self, decisions: Sequence[Decision]) -> None:
        """Begin with these decisions."""
        self._number += 1
        self._remove(self._number)
        write_decisions(self._folder / f"{self._number}.csv", decisions)
        arguments = [str(self._job.run.resolve()), str(self._number)]
        for given in (self._job.images and self._job.images.resolve(), self._job.likelihood):
            arguments.append("" if given is None else str(given))
        command, environment = python("-m", "dfcrp.review.update", *arguments)
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    def finished(self) -> Cases | str | None:
        """New cases once there are any; in words why there are none; None while it is at work."""
        if self._process is None or self._process.poll() is None:
            return None
        _, error = self._process.communicate()
        code, self._process = self._process.returncode, None
        if code != 0:
            lines = error.decode("utf-8", "replace").strip().splitlines()
            self._remove(self._number)
            return lines[-1][:500] if lines else f"the update stopped with exit code {code}"
        with opened(self._folder, str(self._number)) as place:
            found = json.loads(place.read(CASES_FILE, _MOST_BYTES))
        self._remove(self._number - 1)
        pieces = found["pieces"].items()
        return Cases(found["about"], {name: (tuple(p), tuple(v)) for name, (p, v) in pieces})

    def _remove(self, number: int) -> None:
        for name in (str(number), f"{number}.csv"):
            remove_file(self._folder, name)

    def stop(self) -> None:
        """End what is at work."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


def condition(job: Job, number: int) -> None:
    """The work of the process."""
    folder, posterior = job.run / FOLDER, job.posterior()
    decisions = read_decisions(folder / f"{number}.csv")
    updated = posterior.update(decisions=decisions, out=folder / str(number))
    found = job.cases(updated)
    content = {"about": found.about, "pieces": found.pieces}
    write_text(folder / str(number), CASES_FILE, json.dumps(content))


def main(arguments: Sequence[str]) -> int:
    """Exit code 0 when done; the reason on stderr if not."""
    run, number, images, likelihood = arguments
    job = Job(Path(run), Path(images) if images else None, likelihood or None)
    with contextlib.suppress(OSError, AttributeError):
        os.nice(10)  # the page comes first
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            condition(job, int(number))
    except DfcrpError as error:
        print(error, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
