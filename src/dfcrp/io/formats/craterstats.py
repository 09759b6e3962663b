"""CraterStats' own text files: .diam (a list of craters) and .scc (with the area's outline)."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.tables import (
    RawTable,
    ReadOptions,
    ReadTable,
    area_of,
    in_degrees,
    in_kilometres,
    only_circles,
    only_one_list,
    radius_of,
)
from dfcrp.io.text import decode
from dfcrp.items.checks import quoted, to_numbers
from dfcrp.items.site import Ring, Site

_TABLE = re.compile(r"([A-Za-z_]\w*)\s*=\s*\{(.*)")
_VALUE = re.compile(r"([A-Za-z_][\w -]*?)\s*=\s*(.*)")
_STARTS = re.compile(rb"^\s*crater\s*=\s*\{", re.MULTILINE)


def looks_like_craterstats(file: GivenFile) -> bool:
    """Whether a file has the name or the crater table of CraterStats."""
    return file.path.suffix.lower() in (".diam", ".scc") or _STARTS.search(file.data) is not None


@dataclass
class _Part:
    """A table between braces: its fields, and the rows with their place in the file."""

    titles: list[str]
    rows: list[int] = field(default_factory=list)
    cells: list[list[str]] = field(default_factory=list)

    def column(self, title: str) -> list[str]:
        return [cells[self.titles.index(title)] for cells in self.cells]


def read_craterstats(file: GivenFile, _: ReadOptions) -> RawTable:
    """Read the crater table, and with it the area, its outline and the body's radius."""
    name = file.name
    values, parts = _parse(name, decode(name, file.data))
    if "crater" not in parts:
        raise InputError(f"{name}: there is no 'crater = {{' in it; export the file again")
    craters = parts["crater"]
    for title in ("lon", "lat"):
        if title not in craters.titles:
            raise InputError(
                f"{name}: the crater table has no {title}; markings are matched by their places, "
                "so write the file with lon and lat, or use an .scc file"
            )
    header = ["lon", "lat", "diameter_km"]
    size = next((title for title in ("diam", "diameter") if title in craters.titles), "diam")
    if size not in craters.titles:
        raise InputError(
            f"{name}: the crater table has no diameter; its fields are {craters.titles}"
        )
    columns: list[Sequence[object]] = [craters.column(title) for title in ("lon", "lat", size)]
    for title in craters.titles:
        if title not in ("lon", "lat", size):
            header.append(title)
            columns.append(craters.column(title))
    if not craters.rows:
        raise InputError(f"{name}: the crater table is empty; add the craters")
    site = Site(
        "deg",
        _number(name, values, "a_axis_radius"),
        _number(name, values, "Total_area") or _number(name, values, "area"),
        _rings(name, parts.get("unit_boundary")),
    )
    return RawTable(name, header, columns, craters.rows, site=site)


def write_diam(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write diameters in km, and longitude and latitude where the data have them."""
    only_circles(table, path)
    only_one_list(table, path)
    area = area_of(table, path)
    diameters, fractions = in_kilometres(table, path), _told(table, "fraction")
    lines = [f"# {len(table)} craters, written by dfcrp", "# area, km^2"]
    lines.append(f"area = {_plain(area)}")
    if table.site.units == "deg":
        lines.append("crater = {diameter, fraction, lon, lat")
        x, y = table.columns["x"].tolist(), table.columns["y"].tolist()
        cells = zip(diameters, fractions, x, y, strict=True)
        lines += [f"{d!r}\t{share}\t{lon!r}\t{lat!r}" for d, share, lon, lat in cells]
    else:
        lines.append("crater = {diameter, fraction")
        lines += [f"{d!r}\t{share}" for d, share in zip(diameters, fractions, strict=True)]
    return {path: ("\n".join([*lines, "}"]) + "\n").encode()}


def write_scc(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write a spatial count: craters in degrees, the area, and its outline where known."""
    only_circles(table, path)
    only_one_list(table, path)
    in_degrees(table, path)
    radius = radius_of(table, path)
    lines = ["# Spatial crater count, written by dfcrp"]
    lines += [f"{axis}_axis_radius = {_plain(radius)} <km>" for axis in "abc"]
    lines.append("coordinate_system_name = unknown")
    if table.site.boundary:
        lines.append("unit_boundary = {vertex, sub_area, tag, lon, lat")
        vertex = 0
        for number, ring in enumerate(table.site.boundary, 1):
            for lon, lat in ring.points:
                vertex += 1
                tag = "int" if ring.hole else "ext"
                lines.append(f"{vertex}\t{number}\t{tag}\t{lon!r}\t{lat!r}")
        lines.append("}")
    lines.append(f"Total_area = {_plain(area_of(table, path))} <km^2>")
    lines.append("crater = {diam, fraction, lon, lat, topo_scale_factor")
    diameters, x, y = (table.columns[role].tolist() for role in ("diameter", "x", "y"))
    shares, factors = _told(table, "fraction"), _told(table, "topo_scale_factor")
    cells = zip(diameters, shares, x, y, factors, strict=True)
    lines += [f"{d!r}\t{share}\t{lon!r}\t{lat!r}\t{topo}" for d, share, lon, lat, topo in cells]
    return {path: ("\n".join([*lines, "}"]) + "\n").encode()}


def _told(table: ReadTable, title: str) -> list[float]:
    """A column that came from such a file, or else 1 for each crater."""
    told = table.typed_extra().get(title, [1] * len(table))
    numbers = [value if isinstance(value, (int, float)) else 1 for value in told]
    return [int(value) if value == int(value) else value for value in numbers]


def _plain(value: float) -> str:
    """A number without an exponent: CraterStats reads an area up to the first other character."""
    text = repr(float(value))
    return text if "e" not in text else f"{value:.15f}" if value < 1 else f"{value:.1f}"


def _parse(name: str, text: str) -> tuple[dict[str, str], dict[str, _Part]]:
    """Split the file into single values and tables."""
    values: dict[str, str] = {}
    parts: dict[str, _Part] = {}
    current: _Part | None = None
    for row, raw in enumerate(text.splitlines(), 1):
        line = raw.partition("#")[0].split(";")[0].strip()
        if not line:
            continue
        if current is not None:
            current = _table_row(name, row, line, current)
        elif match := _TABLE.fullmatch(line):
            titles = [title for title in re.split(r"[,\s]+", match[2].casefold()) if title]
            if len(set(titles)) < len(titles):
                raise InputError(f"{name}, row {row}: a field is there twice; rename it")
            current = parts[match[1]] = _Part(titles)
        elif match := _VALUE.fullmatch(line):
            # OpenCraterTool writes "a-axis radius".
            values[re.sub(r"[ -]", "_", match[1])] = match[2]
        else:
            raise InputError(
                f"{name}, row {row}: {quoted(line)} is neither 'name = value' nor inside a table; "
                "correct or remove it"
            )
    if current is not None:
        raise InputError(f"{name}: a table is not closed; end it with a line of '}}'")
    return values, parts


def _table_row(name: str, row: int, line: str, part: _Part) -> _Part | None:
    if line == "}":
        return None
    cells = re.split(r"[,\s]+", line.removesuffix("}").strip(" ,"))
    if len(cells) != len(part.titles):
        raise InputError(
            f"{name}, row {row}: {len(cells)} fields, the table has {len(part.titles)} "
            f"({', '.join(part.titles)}); correct the row"
        )
    part.rows.append(row)
    part.cells.append(cells)
    return None if line.endswith("}") else part


def _number(name: str, values: dict[str, str], key: str) -> float | None:
    if key not in values:
        return None
    number = re.match(r"[+-]?[\d.]+(?:[eE][+-]?\d+)?", values[key])
    value = float(to_numbers([number[0] if number else ""])[0])
    if not 0 < value < 1e18:
        raise InputError(f"{name}: {key} is {quoted(values[key])}; it must be a positive number")
    return value


def _rings(name: str, part: _Part | None) -> tuple[Ring, ...]:
    if part is None:
        return ()
    missing = {"sub_area", "tag", "lon", "lat"} - set(part.titles)
    if missing:
        raise InputError(f"{name}: unit_boundary has no {sorted(missing)[0]}; export it again")
    corners: dict[str, list[tuple[float, float]]] = {}
    holes: dict[str, bool] = {}
    lon, lat = to_numbers(part.column("lon")), to_numbers(part.column("lat"))
    cells = zip(part.rows, part.column("sub_area"), part.column("tag"), lon, lat, strict=True)
    for row, area, tag, x, y in cells:
        if not (abs(x) <= 360 and abs(y) <= 90):
            raise InputError(f"{name}, row {row}: not a longitude and latitude; correct the row")
        corners.setdefault(area, []).append((float(x), float(y)))
        holes[area] = tag == "int"
    return tuple(Ring(tuple(points), holes[area]) for area, points in corners.items())


FORMAT = Format(
    "CraterStats",
    looks_like_craterstats,
    read_craterstats,
    kinds=("circles", "points"),
    writers=((".diam", write_diam), (".scc", write_scc)),
)
