"""What the reader of any format hands on: named columns, and where each record is in the file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dfcrp.errors import InputError
from dfcrp.io.columns import ColumnChoice, recognise, unit_of, units_by_name
from dfcrp.io.records import LeftOut, Records
from dfcrp.items.checks import Cells, Place, check_columns, shown
from dfcrp.items.site import Site
from dfcrp.likelihoods.circle.likelihood import CIRCLES


@dataclass(frozen=True)
class Table:
    """The records of one file, not yet checked."""

    name: str
    """The file, as messages call it."""
    header: Sequence[str]
    columns: Sequence[Cells]
    rows: Sequence[int]
    """Where each record is: its row in the file, counted from 1 as in an editor."""
    record: str = "row"
    """What a message calls a record, in files that have no rows."""
    site: Site | None = None
    """None where the format does not tell, so that only the names of columns can."""
    left_out: Sequence[LeftOut] = ()

    def records(self, choice: ColumnChoice, units: str | None = None) -> Records:
        """Recognise the columns and check them; ``units`` wins over what the file says."""
        positions = recognise(self.header, choice, f"{self.name}, header")

        def place(role: str, record: int) -> str:
            role = "radius" if role not in positions else role
            column = shown(self.header[positions[role]])
            return f"{self.name}, {self.record} {self.rows[record]}, column {column}"

        cells = {role: self.columns[position] for role, position in positions.items()}
        columns = CIRCLES.standard(check_columns(cells, place, positive=CIRCLES.positive), place)
        site = self.site or Site(units_by_name(self.header, positions))
        if units is not None:
            site = replace(site, units=units)
        if site.units == "deg":
            _refuse_beyond_degrees(columns, place)
            size = self.header[positions["diameter" if "diameter" in positions else "radius"]]
            if unit_of(size) == "m":
                columns["diameter"] = columns["diameter"] / 1000
        used = set(positions.values())
        extra = {
            title: self.columns[at]
            for at, title in enumerate(self.header)
            if at not in used and title
        }
        return Records(columns, site, extra, self.left_out)


def _refuse_beyond_degrees(columns: Mapping[str, Any], place: Place) -> None:
    for role, what, most in (("x", "longitude", 360), ("y", "latitude", 90)):
        beyond = np.flatnonzero(np.abs(columns[role]) > most)
        if beyond.size:
            more = f" (and {beyond.size - 1} more bad rows)" if beyond.size > 1 else ""
            raise InputError(
                f"{place(role, int(beyond[0]))}: {columns[role][beyond[0]]:g} is no {what}, which "
                f"goes up to {most}; correct it, or name other columns with --columns{more}"
            )
