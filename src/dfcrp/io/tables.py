"""Tables on their way in: as a format's reader hands them on, and checked for a kind of item."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.items.checks import Cells, Place, check_columns, shown, to_names, to_numbers
from dfcrp.items.columns import ColumnChoice, Roles, recognise, unit_of, units_by_name
from dfcrp.items.site import Site
from dfcrp.likelihoods.registry import likelihood_named

_NAMED_ROWS = 5


class NothingToReadError(InputError):
    """A file that is in order, but holds no item of the kind asked for."""


@dataclass(frozen=True)
class ReadOptions:
    """What a reader is told about a file besides its columns."""

    kind: str = "circles"
    """What is wanted of the file."""
    boxes: bool = False
    """Circles: read a box as the ellipse that fills it; otherwise boxes are left out."""
    point_diameter: float | None = None
    """Circles: the diameter of points that have no size; otherwise these are left out."""
    body_radius_km: float | None = None
    """The radius of the body, where circles in degrees are to be measured in km."""
    units: str | None = None
    """What coordinates are measured in, where the file does not tell or tells wrong."""

    def __post_init__(self) -> None:
        for name in ("point_diameter", "body_radius_km"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise SettingsError(f"{name} is {value!r}; it must be a positive number")


@dataclass(frozen=True)
class LeftOut:
    """An entry of a file that is of another kind than was asked for."""

    why: str
    """What it is, in the singular: "line", "polygon that is no circle"."""
    row: int


@dataclass(frozen=True)
class ReadTable:
    """Checked items with all that their files say of them, on their way to Items or to a file."""

    kind: str
    columns: Mapping[str, NDArray[Any]]
    """What describes an item."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Expert, image, id, person, truth, as far as they are known."""
    site: Site = field(default_factory=Site)
    extra: Mapping[str, Cells] = field(default_factory=dict)
    """The other columns, as they came."""
    left_out: Sequence[LeftOut] = ()

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def select(self, keep: NDArray[np.bool_]) -> ReadTable:
        """Keep the items where the mask is true."""
        at = np.flatnonzero(keep).tolist()

        def picked(given: Mapping[str, Any]) -> dict[str, Any]:
            return {
                name: values[keep] if isinstance(values, np.ndarray) else [values[k] for k in at]
                for name, values in given.items()
            }

        return replace(
            self,
            columns=picked(self.columns),
            about=picked(self.about),
            extra=picked(self.extra),
        )

    def typed_extra(self) -> dict[str, list[Any]]:
        """The other columns as whole numbers, numbers or text, with None for what is missing."""
        return {name: typed(values) for name, values in self.extra.items()}


@dataclass(frozen=True)
class RawTable:
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
    note: str = ""
    """What the user should know of the way the file was read."""

    def where(self, record: int) -> str:
        """The place of a record, for messages."""
        return f"{self.name}, {self.record} {self.rows[record]}"

    def checked(self, kind: str, choice: ColumnChoice, units: str | None = None) -> ReadTable:
        """Recognise the columns and check them; ``units`` wins over what the file says."""
        likelihood = likelihood_named(kind)
        roles = recognise(self.header, likelihood, choice, f"{self.name}, header")

        def place(role: str, record: int) -> str:
            at = roles.position(role)
            column = "" if at is None else f", column {shown(self.header[at])}"
            return self.where(record) + column

        cells = {role: self.columns[at] for role, at in {**roles.columns, **roles.about}.items()}
        found = check_columns(
            cells,
            place,
            positive=likelihood.positive,
            texts=tuple(roles.columns) if likelihood.text else (),
        )
        about = {role: found.pop(role) for role in roles.about}
        columns = likelihood.standard(found, place)
        site = self.site or Site(units_by_name(self.header, roles.columns))
        if units is not None:
            site = replace(site, units=units)
        if site.units == "deg" and "x" in columns:
            _refuse_beyond_degrees(columns, place)
            columns = self._in_km(roles, columns)
        extra = {
            title: self.columns[at]
            for at, title in enumerate(self.header)
            if at not in roles.used() and title
        }
        return ReadTable(
            kind,
            columns,
            about,
            site,
            extra if likelihood.columns is not None else {},
            self.left_out,
        )

    def _in_km(self, roles: Roles, columns: dict[str, Any]) -> dict[str, Any]:
        """Beside degrees diameters are in km, whatever the unit of their column."""
        at = next(
            (roles.columns[role] for role in ("diameter", "radius") if role in roles.columns), None
        )
        if at is None or unit_of(self.header[at]) != "m":
            return columns
        return {**columns, "diameter": columns["diameter"] / 1000}


def _refuse_beyond_degrees(columns: Mapping[str, Any], place: Place) -> None:
    for role, what, most in (("x", "longitude", 360), ("y", "latitude", 90)):
        beyond = np.flatnonzero(np.abs(columns[role]) > most)
        if beyond.size:
            more = f" (and {beyond.size - 1} more bad rows)" if beyond.size > 1 else ""
            raise InputError(
                f"{place(role, int(beyond[0]))}: {columns[role][beyond[0]]:g} is no {what}, which "
                f"goes up to {most}; correct it, or name other columns with --columns{more}"
            )


def typed(values: Cells) -> list[Any]:
    """Turn a column into numbers if all of it that is not missing are numbers, else into text."""
    names = to_names(values)
    there = [value for value, name in zip(values, names, strict=True) if name]
    # A nested list would become an array of more than one dimension.
    simple = not any(isinstance(value, (list, tuple, dict)) for value in there)
    numbers = to_numbers(there if simple else [None])
    if not len(numbers) or not np.isfinite(numbers).all():
        return [name or None for name in names]
    decimal = all(name.lstrip("+-").isdecimal() for name in names if name)
    whole = decimal and bool((np.abs(numbers) < 2**53).all())
    found = iter(numbers.tolist())
    return [(int(next(found)) if whole else next(found)) if name else None for name in names]


def describe_left_out(left_out: Sequence[LeftOut], record: str) -> str:
    """List what was left out, with counts and places: "2 lines (rows 4, 17), 1 box (row 9)"."""
    rows: dict[str, list[int]] = {}
    for entry in left_out:
        rows.setdefault(entry.why, []).append(entry.row)
    parts = []
    for why, at in sorted(rows.items()):
        named = ", ".join(str(row) for row in at[:_NAMED_ROWS])
        more = ", ..." if len(at) > _NAMED_ROWS else ""
        what = f"1 {why}" if len(at) == 1 else f"{len(at)} {plural(why)}"
        parts.append(f"{what} ({record}{'s' if len(at) > 1 else ''} {named}{more})")
    return "; ".join(parts)


def plural(why: str) -> str:
    """ "boxes" for "box", "polygons that are no circles" for "polygon that is no circle"."""
    noun, blank, rest = why.partition(" ")
    noun += "es" if noun.endswith("x") else "s"
    if rest.startswith("that is no "):
        return f"{noun} that are no {plural(rest.removeprefix('that is no '))}"
    return noun + blank + rest.replace("that is ", "that are ")
