"""Shapefile pairs of CraterTools and OpenCraterTool: NAME_CRATER.shp and NAME_AREA.shp."""

from __future__ import annotations

import io
import itertools
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import shapefile

from dfcrp.errors import InputError
from dfcrp.io.circles import Points, circle_of_polygon, circle_on_sphere
from dfcrp.io.drawings import NO_CIRCLE
from dfcrp.io.tables import LeftOut, RawTable, ReadOptions, describe_left_out
from dfcrp.items.columns import GEOGRAPHIC, SPELLINGS, plain
from dfcrp.items.site import Ring, Site

_MAGIC = b"\x00\x00\x27\x0a"
_SPHEROID = re.compile(r'(?:SPHEROID|ELLIPSOID)\s*\[\s*"[^"]*"\s*,\s*([\d.eE+-]+)', re.IGNORECASE)
_LAST_UNIT = re.compile(r'UNIT\s*\[\s*"[^"]*"\s*,\s*([\d.eE+-]+)', re.IGNORECASE)


def looks_like_shapefile(path: Path, data: bytes) -> bool:
    """Whether the file has a shapefile's first bytes, or the name of one of its parts."""
    return data[:4] == _MAGIC or path.suffix.lower() in (".shp", ".dbf", ".shx", ".prj")


@dataclass(frozen=True)
class _Ground:
    """What the .prj file says of the coordinates."""

    plane: bool
    local: bool
    km_per_unit: float
    body_radius_km: float | None


def read_shapefile(name: str, path: Path, data: bytes, options: ReadOptions) -> RawTable:
    """Read a crater shapefile, and the area's if it lies beside it.

    x_coord, y_coord and Diam_km go before the outline; without them the outline is measured.
    Of points only the place is read.
    """
    if path.suffix.lower() != ".shp":
        raise InputError(f"{name}: this is a part of a shapefile; give the .shp file beside it")
    shapes, titles, cells = _contents(name, path, data)
    if not shapes:
        raise InputError(f"{name}: there is no shape in it; give a file with craters")
    ground = _ground(path)
    radius = options.body_radius_km or ground.body_radius_km
    measured = _Measured(titles, ground, radius, options)
    for number, (shape, record) in enumerate(zip(shapes, cells, strict=True), 1):
        measured.take(number, shape, record)
    area, boundary = _area(path)
    return measured.table(name, Site(measured.units, radius, area, boundary))


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
        self.records: list[list[Any]] = []
        self.left_out: list[LeftOut] = []

    def take(self, number: int, shape: Any, record: Sequence[Any]) -> None:
        """One crater."""
        added: list[Any] = []
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
    text = (_beside(path, ".prj") or b"").decode("utf-8", "replace")
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
    return _Ground(plane, local, metres / 1000, radius)


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
