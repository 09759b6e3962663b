"""What the reader of any format hands on: named columns, and where each record is in the file."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from dfcrp.io.checks import Cells, check_columns, shown
from dfcrp.io.columns import ColumnChoice, recognise


@dataclass(frozen=True)
class Table:
    """The records of one file, not yet checked."""

    name: str
    """The file, as messages call it."""
    header: Sequence[str]
    columns: Sequence[Cells]
    rows: Sequence[int]
    """Where each record is: its row in the file, counted from 1 as in an editor."""

    def checked(self, choice: ColumnChoice) -> dict[str, Any]:
        """Recognise the columns and check them; the result is keyed by role."""
        positions = recognise(self.header, choice, f"{self.name}, header")

        def place(role: str, record: int) -> str:
            column = shown(self.header[positions[role]])
            return f"{self.name}, row {self.rows[record]}, column {column}"

        cells = {role: self.columns[position] for role, position in positions.items()}
        return check_columns(cells, place)
