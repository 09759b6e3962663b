"""Tables between files and items: what a format's reader returns, and what its writer takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.files import replace_file, why
from dfcrp.items.checks import (
    Cells,
    Place,
    check_columns,
    checked_words,
    quoted,
    to_names,
    to_numbers,
)
from dfcrp.items.columns import (
    SAID,
    ColumnChoice,
    Roles,
    recognise,
    suspects,
    unit_of,
    units_by_name,
)
from dfcrp.items.image_names import Mention, in_one_spelling
from dfcrp.items.site import MOST_UNUSED, Site
from dfcrp.items.source_tables import FileTables, SourceTables
from dfcrp.likelihoods.registry import likelihood_named

_NAMED_ROWS = 5
#: An image and who looked at it; None where the format does not name the expert.
FileLook = tuple[str, str | None]


class NothingToReadError(InputError):
    """A file that is in order, but holds no item of the kind asked for."""

    def __init__(
        self,
        message: str,
        looked: Sequence[FileLook] = (),
        pictures: Mapping[str, Mention] | None = None,
        left_out: Sequence[LeftOut] = (),
    ) -> None:
        super().__init__(message)
        #: Who looked at which image nevertheless, and what the file says of images.
        self.looked, self.pictures = looked, pictures or {}
        self.left_out = left_out


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
    image_names: str = "auto"
    """What makes images of several names the same; see `dfcrp.items.image_names`."""
    below: str | None = None
    """The path of the file within the folder that was given; None if the file itself was."""
    yolo: bool = False
    """Whether a text file lies among those of YOLO, and is one of them whatever its rows are."""

    def __post_init__(self) -> None:
        for name in ("point_diameter", "body_radius_km"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise SettingsError(f"{name} is {value!r}; it must be a positive number")


@dataclass(frozen=True)
class LeftOut:
    """An entry of a file that is of another kind than was asked for."""

    why: str
    """What it is, in the singular: "line", "polygon that is not a circle"."""
    row: int


@dataclass(frozen=True)
class ReadTable:
    """Checked items with all that their files say of them, on their way to Items or to a file."""

    kind: str
    columns: Mapping[str, NDArray[Any]]
    """What describes an item."""
    about: Mapping[str, Any] = field(default_factory=dict)
    """Expert, image, id, person, truth, category, score, as far as they are known."""
    site: Site = field(default_factory=Site)
    extra: Mapping[str, Cells] = field(default_factory=dict)
    """The other columns, as they came."""
    left_out: Sequence[LeftOut] = ()
    read_as: tuple[tuple[str, str], ...] = ()
    """Roles, and the names of their columns."""
    unused: tuple[str, ...] = ()
    suspects: Sequence[tuple[str, str]] = ()
    """Columns that are not used and look like a role, with that role."""
    looked: Sequence[FileLook] = ()
    """Who looked at which image, if the file says so; None stands for the file's one expert."""
    pictures: Mapping[str, Mention] = field(default_factory=dict)
    """What the file says of images, by the names they have here; of others there is the name."""
    notes: Sequence[str] = ()
    """What was joined, renamed or repaired in reading, in words."""
    shares: bool = False
    """Whether lengths are shares of the sides of the image."""
    aliases: frozenset[tuple[str, str]] = frozenset()
    """Names of images in the file, each with the one it has here."""
    name: str = ""
    """The file or folder, as messages and ids call it; nothing where several are joined."""
    stem: str = ""
    """Its name without the ending, which is the expert's where no column names one."""
    sha256: str = ""
    told: tuple[str, ...] = ()
    """What the user was told of it."""
    tables: FileTables = field(default_factory=FileTables)
    """What the file says besides items and images."""
    named: tuple[tuple[str, Mention], ...] = ()
    """Images by the names that all lists know them by, once these are found."""
    sources: SourceTables = field(default_factory=SourceTables)
    """What all files say of images and categories, once they are joined."""
    scores: bool = True
    """Whether scores are written where a format has them."""

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
    looked: Sequence[FileLook] = ()
    """Who looked at which image, if the format says so."""
    pictures: Mapping[str, Mention] = field(default_factory=dict)
    """What the file says of images, by the names in the column; of others there is the name."""
    shares: bool = False
    """Whether lengths are shares of the sides of the image."""
    tables: FileTables = field(default_factory=FileTables)
    """What the file says besides items and images."""

    def where(self, record: int) -> str:
        """The place of a record, for messages."""
        return f"{self.name}, {self.record} {self.rows[record]}"

    def checked(self, kind: str, choice: ColumnChoice, units: str | None = None) -> ReadTable:
        """Recognise the columns and check them; ``units`` wins over what the file says."""
        likelihood = likelihood_named(kind)
        roles = recognise(self.header, likelihood, choice, f"{self.name}, header", self.columns)

        def place(role: str, record: int) -> str:
            at = roles.position(role)
            column = "" if at is None else f", column {quoted(self.header[at])}"
            return self.where(record) + column

        cell_at = {**roles.columns, **roles.about}
        cells = {role: self.columns[at] for role, at in cell_at.items()}
        said = {role: cells.pop(role) for role in SAID if role in roles.about}
        found = check_columns(
            cells,
            place,
            positive=likelihood.positive,
            texts=tuple(roles.columns) if likelihood.text else (),
        )
        about = {role: found.pop(role) for role in roles.about if role not in SAID}
        about |= {
            role: values.tolist()
            for role, values in checked_words(said, len(self.rows), place).items()
            if values is not None
        }
        about, notes = in_one_spelling(about)
        columns = likelihood.standard(found, place)
        site = self.site or Site(units_by_name(self.header, roles.columns))
        if units is not None:
            site = replace(site, units=units)
        if site.units == "deg" and "x" in columns:
            _refuse_beyond_degrees(columns, place)
            columns = self._in_km(roles, columns)
        used = roles.used()
        extra = {
            title: self.columns[at]
            for at, title in enumerate(self.header)
            if at not in used and title
        }
        return ReadTable(
            kind,
            columns,
            about,
            site,
            extra if likelihood.columns is not None else {},
            self.left_out,
            tuple((role, self.header[at]) for role, at in cell_at.items()),
            tuple(list(extra)[:MOST_UNUSED]),
            suspects(self.header, self.columns, roles) if likelihood.columns is not None else (),
            self.looked,
            self.pictures,
            notes,
            self.shares,
            name=self.name,
            tables=self.tables,
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
                f"{place(role, int(beyond[0]))}: {columns[role][beyond[0]]:g} is not a {what}, "
                f"which goes up to {most}; correct it, or name other columns with --columns{more}"
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
    for reason, at in sorted(rows.items()):
        what = f"1 {reason}" if len(at) == 1 else f"{len(at)} {in_plural(reason)}"
        parts.append(f"{what} ({some_rows(record, at)})")
    return "; ".join(parts)


def some_rows(record: str, at: Sequence[int]) -> str:
    """ "row 4", "rows 4, 17, ..."."""
    named = ", ".join(str(row) for row in at[:_NAMED_ROWS])
    more = ", ..." if len(at) > _NAMED_ROWS else ""
    return f"{record}{'s' if len(at) > 1 else ''} {named}{more}"


def in_plural(why: str) -> str:
    """ "boxes" for "box", "polygons that are not circles" for "polygon that is not a circle"."""
    noun, blank, rest = why.partition(" ")
    noun += "es" if noun.endswith("x") else "s"
    if rest.startswith("that is not a "):
        return f"{noun} that are not {in_plural(rest.removeprefix('that is not a '))}"
    return noun + blank + rest.replace("that is ", "that are ")


#: The columns of each kind that shapes can be read as.
COLUMNS = {
    "circles": ("x", "y", "diameter"),
    "points": ("x", "y"),
    "boxes": ("x", "y", "width", "height"),
    "ellipses": ("x", "y", "major", "minor", "angle"),
}
DRAWN = tuple(COLUMNS)
KILOMETRES = {"km": 1.0, "m": 1e-3, "deg": 1.0}
"""Of one unit of diameter; pixels have no size of their own."""
LENGTHS = frozenset({"x", "y", "diameter", "width", "height", "major", "minor"})
"""Columns that are measured in the units of the site."""
_IN_DEGREES = {"x": "lon", "y": "lat", "diameter": "diameter_km"}


def titles(table: ReadTable) -> dict[str, str]:
    """The titles under which columns are written, which tell the units when they are read again."""
    if table.site.units == "deg":
        return {role: _IN_DEGREES.get(role, role) for role in table.columns}
    unit = "" if table.site.units == "px" else f"_{table.site.units}"
    return {role: role + unit if role in LENGTHS else role for role in table.columns}


def titled_columns(table: ReadTable) -> dict[str, list[Any]]:
    """All columns of a table to be written: names first, then the item, then the rest."""
    about = table.about
    columns: dict[str, list[Any]] = {
        role: list(about[role]) for role in ("id", "expert", "person") if role in about
    }
    for role, title in titles(table).items():
        columns[title] = table.columns[role].tolist()
    if "image" in about:
        columns["image"] = list(about["image"])
    if "truth" in about:
        columns["truth"] = [int(value) for value in about["truth"]]
    columns |= {role: list(about[role]) for role in SAID if role in about}
    for title, values in table.typed_extra().items():
        columns.setdefault(title, values)
    return columns


def only_circles(table: ReadTable, path: Path) -> None:
    """Refuse what a format of crater counts cannot hold."""
    if table.kind != "circles":
        raise InputError(
            f"{path}: {path.suffix} holds circles, and these are {table.kind}; "
            "end the name in .csv, .tsv or .parquet"
        )


def only_one_list(table: ReadTable, path: Path) -> None:
    """Refuse to melt several experts' lists into one where the format cannot tell them apart."""
    experts = sorted(set(table.about.get("expert", ())))
    if len(experts) > 1:
        raise InputError(
            f"{path}: {path.suffix} holds one list, but there are {len(experts)} experts; "
            f"choose one with --expert, as in --expert '{experts[0]}'"
        )


def area_of(table: ReadTable, path: Path) -> float:
    """The area, or a request for it."""
    if table.site.area_km2 is None:
        raise InputError(
            f"{path}: {path.suffix} needs the area that was searched; give it with --area-km2"
        )
    return table.site.area_km2


def radius_of(table: ReadTable, path: Path) -> float:
    """The radius of the body, or a request for it."""
    if table.site.body_radius_km is None:
        raise InputError(
            f"{path}: this needs the radius of the body; give it with --body, as in --body moon"
        )
    return table.site.body_radius_km


def in_degrees(table: ReadTable, path: Path) -> None:
    """Insist on longitude and latitude."""
    if table.site.units != "deg":
        raise InputError(
            f"{path}: {path.suffix} needs longitude and latitude, the data are in "
            f"{table.site.units}; place them with --origin LON,LAT and --body, or, if they are "
            "degrees, say so with --units deg"
        )


def in_kilometres(table: ReadTable, path: Path) -> list[float]:
    """The diameters in km."""
    factor = KILOMETRES.get(table.site.units)
    if factor is None:
        raise InputError(
            f"{path}: {path.suffix} has diameters in km, the data are in pixels; "
            "give their size with --metres-per-pixel"
        )
    kilometres: list[float] = (table.columns["diameter"] * factor).tolist()
    return kilometres


def write_files(files: Mapping[Path, bytes], *, overwrite: bool) -> list[Path]:
    """Write all files, each whole or not at all; none if one of them is there already."""
    for path in files:
        if path.exists() and not overwrite:
            raise InputError(f"{path}: already exists; choose another name, or give --overwrite")
    for path, content in files.items():
        _write_file(path, content)
    return list(files)


def _write_file(path: Path, content: bytes) -> None:
    try:
        if path.exists() and not path.is_file():  # a device such as /dev/stdout
            path.write_bytes(content)
        else:
            replace_file(path, content)
    except OSError as error:
        raise InputError(f"{path}: cannot be written: {why(error)}") from None


def what_is_lost(table: ReadTable, path: Path) -> list[str]:
    """What the target cannot hold, for the user to know."""
    said: list[str] = []
    if path.suffix.lower() in (".diam", ".scc"):
        dropped = [
            role for role in ("person", "image", "id", "truth", *SAID) if role in table.about
        ]
        dropped += [
            title for title in table.extra if title not in ("fraction", "topo_scale_factor")
        ]
        if dropped:
            said.append(f"{path.suffix} has no place for {', '.join(dropped)}")
        if path.suffix.lower() == ".diam" and table.site.units != "deg":
            said.append("the places are not written, since .diam has them in degrees only")
    elif table.site.area_km2 is not None and path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        said.append(f"{path.suffix} has no place for the area")
    return said
