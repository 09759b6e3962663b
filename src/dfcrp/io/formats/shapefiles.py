"""Shapefile pairs of CraterTools and OpenCraterTool: NAME_CRATER.shp and NAME_AREA.shp."""

from __future__ import annotations

import io
import itertools
import math
import re
import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import shapefile

from dfcrp.errors import DfcrpWarning, InputError
from dfcrp.io.drawings import NO_CIRCLE
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.shapes import Points, circle_of_polygon, circle_on_sphere, ring, ring_on_sphere
from dfcrp.io.tables import (
    KILOMETRES,
    LeftOut,
    RawTable,
    ReadOptions,
    ReadTable,
    describe_left_out,
    in_kilometres,
    only_circles,
    radius_of,
)
from dfcrp.items.columns import GEOGRAPHIC, SAID, SPELLINGS, plain
from dfcrp.items.site import Ring, Site
from dfcrp.items.source_tables import LONGEST, FileTables

#: What the text of the .prj file is kept as.
PRJ = "prj"
_MAGIC = b"\x00\x00\x27\x0a"
_SPHEROID = re.compile(r'(?:SPHEROID|ELLIPSOID)\s*\[\s*"[^"]*"\s*,\s*([\d.eE+-]+)', re.IGNORECASE)
_LAST_UNIT = re.compile(r'UNIT\s*\[\s*"[^"]*"\s*,\s*([\d.eE+-]+)', re.IGNORECASE)


def looks_like_shapefile(file: GivenFile) -> bool:
    """Whether the file has a shapefile's first bytes, or the name of one of its parts."""
    return file.data[:4] == _MAGIC or file.path.suffix.lower() in (".shp", ".dbf", ".shx", ".prj")


@dataclass(frozen=True)
class _Ground:
    """What the .prj file says of the coordinates."""

    plane: bool
    local: bool
    km_per_unit: float
    body_radius_km: float | None
    text: str = ""


def read_shapefile(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read a crater shapefile, and the area's if it lies beside it.

    x_coord, y_coord and Diam_km go before the outline; without them the outline is measured.
    Of points only the place is read.
    """
    name = file.name
    if file.path.suffix.lower() != ".shp":
        raise InputError(f"{name}: this is a part of a shapefile; give the .shp file beside it")
    shapes, titles, cells = _contents(name, file.path, file.data)
    if not shapes:
        raise InputError(f"{name}: there is no shape in it; give a file with craters")
    ground = _ground(file.path)
    radius = options.body_radius_km or ground.body_radius_km
    measured = _Measured(titles, ground, radius, options)
    for number, (shape, record) in enumerate(zip(shapes, cells, strict=True), 1):
        measured.take(number, shape, record)
    area, boundary = _area(file.path)
    table = measured.table(name, Site(measured.units, radius, area, boundary))
    if not ground.text or len(ground.text) > LONGEST:
        return table
    # In its own coordinates it can be written again; of those in km these are so many units.
    return replace(table, tables=FileTables(fields={PRJ: ground.text}))


class _Measured:
    """Gathers circles or points, each from its attributes or else from its outline."""

    def __init__(
        self,
        titles: list[str],
        ground: _Ground,
        radius: float | None,
        options: ReadOptions,
    ) -> None:
        self.titles = titles
        self.ground = ground
        self.radius = radius
        self.options = options
        self.has_place = all(
            any(plain(title) in SPELLINGS[role] | GEOGRAPHIC[role] for title in titles)
            for role in ("x", "y")
        )
        self.has_size = options.kind == "points" or any(
            plain(title) in SPELLINGS["diameter"] | SPELLINGS["radius"] for title in titles
        )
        # The tools write degrees into x_coord and y_coord, whatever the projection of the outline.
        self.units = "km" if ground.plane and (ground.local or not self.has_place) else "deg"
        self.rows: list[int] = []
        self.records: list[list[object]] = []
        self.left_out: list[LeftOut] = []

    def take(self, number: int, shape: object, record: Sequence[object]) -> None:
        """One crater."""
        added: list[object] = []
        if not (self.has_place and self.has_size):
            circle = self._circle(shape)
            if isinstance(circle, str):
                self.left_out.append(LeftOut(circle, number))
                return
            x, y, diameter = circle
            added += [] if self.has_place else [x, y]
            if not self.has_size:
                if diameter is None:
                    self.left_out.append(LeftOut("point without a size", number))
                    return
                added.append(diameter)
        self.rows.append(number)
        self.records.append([*record, *added])

    def _circle(self, shape: Any) -> tuple[float, float, float | None] | str:
        points: Points = [(float(p[0]), float(p[1])) for p in shape.points]
        if len(points) == 1:
            x, y = (value * self._scale for value in points[0])
            return x, y, self.options.point_diameter
        if len(getattr(shape, "parts", ())) > 1:
            return "shape of several parts"
        if self.ground.plane:
            found = circle_of_polygon(points)
            if found is None:
                return NO_CIRCLE
            x, y, r = (value * self._scale for value in found)
            return x, y, 2 * r
        found = circle_on_sphere(points)
        if found is None:
            return NO_CIRCLE
        size = None if self.radius is None else 2 * self.radius * math.radians(found[2])
        return found[0], found[1], size

    @property
    def _scale(self) -> float:
        return self.ground.km_per_unit if self.ground.plane else 1.0

    def table(self, name: str, site: Site) -> RawTable:
        """All that were taken."""
        if not self.rows:
            listed = describe_left_out(self.left_out, "shape")
            if self.options.kind == "points":
                raise InputError(f"{name}: there is no point in it, but {listed}")
            raise InputError(
                f"{name}: there is no circle in it, but {listed}; it needs the field Diam_km, or "
                "outlines and a .prj file with the radius of the body; its places can be read as "
                "points (--likelihood)"
            )
        places = [] if self.has_place else ["lon", "lat"] if self.units == "deg" else ["x", "y"]
        header = [*self.titles, *places, *([] if self.has_size else ["diameter_km"])]
        columns = [list(column) for column in zip(*self.records, strict=True)]
        return RawTable(name, header, columns, self.rows, "shape", site, self.left_out)


def _contents(name: str, path: Path, data: bytes) -> tuple[list[Any], list[str], list[list[Any]]]:
    """Shapes, and the attributes of each."""
    table = _beside(path, ".dbf")
    if table is None:
        raise InputError(f"{name}: there is no {path.stem}.dbf beside it; put it there")
    try:
        with shapefile.Reader(shp=io.BytesIO(data), dbf=io.BytesIO(table)) as reader:
            shapes = list(reader.iterShapes())
            titles = [entry[0] for entry in reader.fields if entry[0] != "DeletionFlag"]
            cells = [list(record) for record in reader.iterRecords()]
    except InputError:
        raise
    except Exception as error:  # pyshp stumbles over damage in as many ways as there are
        raise InputError(
            f"{name}: the shapefile is damaged ({type(error).__name__}: {str(error)[:100]}); "
            "export it again"
        ) from None
    if len(shapes) != len(cells):
        raise InputError(
            f"{name}: {len(shapes)} shapes but {len(cells)} records in {path.stem}.dbf; "
            "they do not belong together"
        )
    return shapes, titles, cells


def _beside(path: Path, suffix: str) -> bytes | None:
    """The contents of another part of the shapefile, in small or capital letters."""
    for spelling in (suffix, suffix.upper()):
        part = path.with_suffix(spelling)
        try:
            return part.read_bytes()
        except OSError:
            continue
    return None


def _ground(path: Path) -> _Ground:
    return _ground_of((_beside(path, ".prj") or b"").decode("utf-8", "replace"))


def _ground_of(text: str) -> _Ground:
    """What the text of a .prj file says."""
    plane = text.lstrip().upper().startswith(("PROJ", "LOCAL_CS", "ENGCRS"))
    spheroid, units = _SPHEROID.search(text), _LAST_UNIT.findall(text)
    try:
        radius = float(spheroid[1]) / 1000 if spheroid else None
        metres = float(units[-1]) if units and plane else 1.0
    except ValueError:
        radius, metres = None, 1.0
    if radius is not None and not 0 < radius < math.inf:
        radius = None
    local = plane and not text.lstrip().upper().startswith("PROJ")
    return _Ground(plane, local, metres / 1000, radius, text)


def _area(path: Path) -> tuple[float | None, tuple[Ring, ...]]:
    """The size and outline of the area, from the other shapefile of the pair."""
    other = re.sub("CRATER", "AREA", path.stem, flags=re.IGNORECASE)
    where = path.with_name(other + path.suffix)
    if other == path.stem or not where.is_file():
        return None, ()
    shapes, titles, cells = _contents(where.name, where, where.read_bytes())
    rings = []
    for shape in shapes:
        starts = [*getattr(shape, "parts", ()), len(shape.points)]
        for number, (start, stop) in enumerate(itertools.pairwise(starts)):
            points = tuple((float(p[0]), float(p[1])) for p in shape.points[start:stop])
            if points and all(map(math.isfinite, sum(points, ()))):
                rings.append(Ring(points, hole=number > 0))
    sizes = [row[titles.index("area")] for row in cells] if "area" in titles else []
    known = [s for s in sizes if isinstance(s, (int, float)) and 0 < s < 1e18]
    return (sum(known) if sizes and len(known) == len(sizes) else None), tuple(rings)


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
    ground, per_km = _ground_to_write(table, radius)
    columns = _Columns(path)
    columns.add("Diam_km", diameters)
    if degrees or ground == _PLANE:
        # Under a projection x_coord and y_coord are degrees, and the outline says where it is.
        columns.add("x_coord", x)
        columns.add("y_coord", y)
    extra = table.typed_extra()
    columns.add("tag", extra.pop("tag", ["standard"] * len(table)))
    for role in ("expert", "person", "image", "id", "truth", *SAID):
        if role in table.about:
            columns.add(role, list(table.about[role]))
    for title, values in extra.items():
        columns.add(title, values)
    outlines = []
    for east, north, diameter in zip(x, y, diameters, strict=True):
        if degrees:
            around = ring_on_sphere(east, north, math.degrees(diameter / 2 / radius))
        else:
            around = ring(east * per_km, north * per_km, diameter / 2 * per_km)
        outlines.append([around[::-1]])  # outlines go clockwise, holes the other way
    files = _parts(crater, outlines, columns, ground)
    if table.site.boundary:
        files |= _area_files(area, table, ground)
    elif area.exists():
        raise InputError(
            f"{area}: this file has the area of another count, and GIS programs would take it for "
            "that of these craters; remove it, or choose another name"
        )
    return files


def _ground_to_write(table: ReadTable, radius: float) -> tuple[str, float]:
    """The text of the .prj file, and how many of its units a km of the data is.

    It is that of the shapefile that the data came from, where they are still in its coordinates.
    """
    degrees = table.site.units == "deg"
    given = [one.fields.get(PRJ) for one in table.sources.files]
    text = given[0] if given and all(one == given[0] for one in given) else None
    if isinstance(text, str) and table.site.crs is None:
        ground = _ground_of(text)
        same = not degrees or ground.body_radius_km is None or ground.body_radius_km == radius
        if ground.plane != degrees and same and not ground.local:
            return text, 1.0 if degrees else 1.0 / ground.km_per_unit
    return (_DEGREES.format(f"{radius * 1000:.0f}") if degrees else _PLANE), 1.0


class _Columns:
    """The fields of a .dbf file, with titles of ten letters and numbers of limited width."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.fields: list[tuple[str, str, int, int]] = []
        self.values: list[Sequence[object]] = []

    def add(self, title: str, values: Sequence[object]) -> None:
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

    def _add_numbers(self, short: str, title: str, values: Sequence[Any]) -> None:
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


def _parts(
    path: Path, outlines: Sequence[object], columns: _Columns, ground: str
) -> dict[Path, bytes]:
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


FORMAT = Format(
    "shapefile",
    looks_like_shapefile,
    read_shapefile,
    kinds=("circles", "points"),
    writers=((".shp", write_shapefile),),
)
