"""What reviewers decided, kept the moment they do: rows are added and never changed.

Decisions lie in ``RUN/review/decisions.sqlite``. A row is on the disk before its author is told so;
whatever kills the process later, it is there. ``RUN/review/decisions.csv`` has the same rows, in
the same order, as a table that people and Git can read: a decision adds a line at its end.
"""

from __future__ import annotations

import sqlite3
import stat
import threading
from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path

from dfcrp.errors import RunFolderError
from dfcrp.files import opened
from dfcrp.items.decisions import COLUMNS, Decision, decision_in
from dfcrp.runs.folder import write_decisions

#: Everything of a review, below the run folder.
FOLDER = "review"
DATABASE, TABLE = "decisions.sqlite", "decisions.csv"

_SCHEMA = (
    "CREATE TABLE decisions (number INTEGER PRIMARY KEY, decision TEXT NOT NULL, "
    "items TEXT NOT NULL, by TEXT NOT NULL, at TEXT NOT NULL, note TEXT NOT NULL, "
    "value TEXT NOT NULL)",
    "CREATE TRIGGER unchanged BEFORE UPDATE ON decisions "
    "BEGIN SELECT RAISE(ABORT, 'decisions are withdrawn by others, never changed'); END",
    "CREATE TRIGGER kept BEFORE DELETE ON decisions "
    "BEGIN SELECT RAISE(ABORT, 'decisions are withdrawn by others, never deleted'); END",
)
_SHORTEST_STEP = timedelta(milliseconds=1)


class Store:
    """The decisions of one review; threads may share it."""

    def __init__(self, run: Path) -> None:
        self.folder = run / FOLDER
        self._lock = threading.Lock()
        self._path = self.folder / DATABASE
        with opened(run, FOLDER, make=True) as place:
            for name in (DATABASE, f"{DATABASE}-wal", f"{DATABASE}-shm"):
                found = place.status(name)
                if found is not None and not stat.S_ISREG(found.st_mode):
                    raise RunFolderError(f"{self.folder / name}: is not a file; remove it")
        try:
            self._open()
        except sqlite3.Error as error:
            raise RunFolderError(f"{self._path}: cannot be used: {error}") from None
        self._decisions = self._read()
        self.write_table()

    def _open(self) -> None:
        self._base = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        # Nothing that a stranger wrote into the file is run.
        self._base.execute("PRAGMA trusted_schema = OFF")
        self._base.execute("PRAGMA journal_mode = WAL")
        self._base.execute("PRAGMA synchronous = FULL")
        there = self._base.execute("SELECT sql FROM sqlite_master WHERE sql IS NOT NULL").fetchall()
        if not there:
            self._base.execute("BEGIN IMMEDIATE")
            for part in _SCHEMA:
                self._base.execute(part)
            self._base.execute("COMMIT")
        elif {sql for (sql,) in there} != set(_SCHEMA):
            raise RunFolderError(f"{self._path}: was not written by dfcrp; move it elsewhere")

    def _read(self) -> list[Decision]:
        rows = "SELECT number, decision, items, by, at, note, value FROM decisions ORDER BY number"
        return [
            decision_in(dict(zip(COLUMNS, map(str, cells), strict=True)), f"decision {number}")
            for number, *cells in self._base.execute(rows)
        ]

    @property
    def decisions(self) -> tuple[Decision, ...]:
        """All of them, in the order in which they were made."""
        return tuple(self._decisions)

    def add(self, row: dict[str, str]) -> Decision:
        """Keep a decision that has been checked; it is on the disk when this returns."""
        with self._lock:
            place = f"decision {len(self._decisions) + 1}"
            made = decision_in({**row, "when": self._now()}, place)
            marks = ", ".join("?" * len(COLUMNS))
            names = "decision, items, by, at, note, value"
            self._base.execute(f"INSERT INTO decisions ({names}) VALUES ({marks})", made.cells)
            self._decisions.append(made)
        return made

    def _now(self) -> str:
        """The time, later than that of any other decision, so that it gives their order."""
        now = datetime.now(UTC)
        if self._decisions:
            last = datetime.fromisoformat(self._decisions[-1].when)
            now = max(now, last + _SHORTEST_STEP)
        return now.isoformat(timespec="milliseconds")

    def write_table(self) -> None:
        """Bring decisions.csv up to date."""
        write_decisions(self.folder / TABLE, self.decisions)

    def close(self) -> None:
        """Write the table and close the file."""
        with self._lock, closing(self._base):
            self.write_table()
