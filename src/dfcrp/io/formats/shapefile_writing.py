"""Writes the shapefile pairs of CraterTools and OpenCraterTool."""

from __future__ import annotations

import io
import math
import warnings
from pathlib import Path
from typing import Any

import shapefile

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.circles import ring, ring_on_sphere
from dfcrp.io.tables import ReadTable
from dfcrp.io.writing import KILOMETRES, in_kilometres, only_circles, radius_of
from dfcrp.items.site import Ring

_WIDTH, _DECIMALS = 24, 12
_LONGEST_TEXT, _LONGEST_TITLE = 254, 10
_DEGREES = (
    'GEOGCS["Spherical_GCS_{0}", DATUM["Sphere_{0}", SPHEROID["Sphere_{0}", {0}, 0]], '
    'PRIMEM["Greenwich", 0], UNIT["Degree", 0.0174532925199433]]'
)
_PLANE = 'LOCAL_CS["Image plane", UNIT["kilometre", 1000]]'


def write_shapefile(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """Write NAME_CRATER.shp with its parts, and NAME_AREA.shp where the outline is known."""
    only_circles(table, path)
    stem = path.stem.removesuffix("_CRATER")
    crater, area = path.with_name(f"{stem}_CRATER.shp"), path.with_name(f"{stem}_AREA.shp")
    diameters = in_kilometres(table, path)
    degrees = table.site.units == "deg"
    radius = radius_of(table, path) if degrees else 0.0
    scale = 1.0 if degrees else KILOMETRES[table.site.units]
    x, y = ((table.columns[role] * scale).tolist() for role in ("x", "y"))
    columns = _Columns(path)
    for title, values in (("Diam_km", diameters), ("x_coord", x), ("y_coord", y)):
        columns.add(title, values)
    extra = table.typed_extra()
    columns.add("tag", extra.pop("tag", ["standard"] * len(table)))
    for role in ("expert", "person", "image", "id", "truth"):
        if role in table.about:
            columns.add(role, list(table.about[role]))
    for title, values in extra.items():
        columns.add(title, values)
    outlines = []
    for east, north, diameter in zip(x, y, diameters, strict=True):
        if degrees:
            around = ring_on_sphere(east, north, math.degrees(diameter / 2 / radius))
        else:
            around = ring(east, north, diameter / 2)
        outlines.append([around[::-1]])  # outlines go clockwise, holes the other way
    ground = _DEGREES.format(f"{radius * 1000:.0f}") if degrees else _PLANE
    files = _parts(crater, outlines, columns, ground)
    if table.site.boundary:
        files |= _area_files(area, table, ground)
    elif area.exists():
        raise InputError(
            f"{area}: the area of another count would belong to these craters; remove it, or "
            "choose another name"
        )
    return files


class _Columns:
    """The fields of a .dbf file, with titles of ten letters and numbers of limited width."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: list[tuple[str, str, int, int]] = []
        self.values: list[list[Any]] = []

    def add(self, title: str, values: list[Any]) -> None:
        """Take a column; its title is cut, and a number added where another has it already."""
        taken = {field[0].casefold() for field in self.fields}
        short = title.encode("ascii", "replace").decode().replace("?", "_")[:_LONGEST_TITLE] or "_"
        number = 1
        while short.casefold() in taken:
            number += 1
            short = f"{short[: _LONGEST_TITLE - len(str(number))]}{number}"
        there = [value for value in values if value is not None]
        if there and all(isinstance(value, (int, float)) for value in there):
            self._add_numbers(short, title, values)
        else:
            self._add_text(short, title, ["" if v is None else str(v) for v in values])

    def _add_numbers(self, short: str, title: str, values: list[Any]) -> None:
        if any(
            value is not None and abs(value) >= 10 ** (_WIDTH - _DECIMALS - 2) for value in values
        ):
            raise InputError(
                f"{self.path}: {title} has values too large for a shapefile; use a larger unit"
            )
        self.fields.append((short, "F", _WIDTH, _DECIMALS))
        self.values.append([None if v is None else float(v) for v in values])

    def _add_text(self, short: str, title: str, values: list[str]) -> None:
        cut = [_shortened(value) for value in values]
        changed = [row for row, (a, b) in enumerate(zip(values, cut, strict=True), 1) if a != b]
        if changed:
            warnings.warn(
                f"{self.path}: {len(changed)} values of {title} are cut to {_LONGEST_TEXT} bytes, "
                f"the most that a shapefile holds (first: record {changed[0]})",
                DfcrpWarning,
                stacklevel=2,
            )
        widest = max([len(value.encode()) for value in cut] + [1])
        self.fields.append((short, "C", widest, 0))
        self.values.append(cut)


def _shortened(text: str) -> str:
    return text.encode()[:_LONGEST_TEXT].decode(errors="ignore")


def _parts(path: Path, outlines: list[Any], columns: _Columns, ground: str) -> dict[Path, bytes]:
    shp, shx, dbf = io.BytesIO(), io.BytesIO(), io.BytesIO()
    writer = shapefile.Writer(shp=shp, shx=shx, dbf=dbf, shapeType=shapefile.POLYGON)
    for title, kind, width, decimals in columns.fields:
        writer.field(title, kind, width, decimals)
    for outline, cells in zip(outlines, zip(*columns.values, strict=True), strict=True):
        writer.poly(outline)
        writer.record(*cells)
    writer.close()
    return {
        path: shp.getvalue(),
        path.with_suffix(".shx"): shx.getvalue(),
        path.with_suffix(".dbf"): dbf.getvalue(),
        path.with_suffix(".prj"): ground.encode(),
        path.with_suffix(".cpg"): b"UTF-8",
    }


def _area_files(path: Path, table: ReadTable, ground: str) -> dict[Path, bytes]:
    """One shape per outline with the holes that follow it."""
    shapes: list[list[Ring]] = []
    for line in table.site.boundary:
        if line.hole and shapes:
            shapes[-1].append(line)
        else:
            shapes.append([line])
    columns = _Columns(path)
    # The size is known of the whole only.
    sizes = [table.site.area_km2 if len(shapes) == 1 else None] * len(shapes)
    columns.add("area", sizes)
    columns.add("area_name", [f"Area_{number}" for number in range(1, len(shapes) + 1)])
    outlines = [[list(line.points) for line in lines] for lines in shapes]
    return _parts(path, outlines, columns, ground)
