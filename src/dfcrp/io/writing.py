"""What is written: titles that tell the units, what a target needs of the data, the files."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.files import replace_file, why
from dfcrp.io.tables import ReadTable

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


def notes(table: ReadTable, path: Path) -> list[str]:
    """What the target cannot hold, for the user to know."""
    said: list[str] = []
    if path.suffix.lower() in (".diam", ".scc"):
        dropped = [role for role in ("person", "image", "id", "truth") if role in table.about]
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
