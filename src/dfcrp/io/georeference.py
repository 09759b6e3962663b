"""Where coordinates lie on a body: reference systems, images with a place, uncertainties.

Only what is asked for is imported: a world file needs nothing, a GeoTIFF rasterio, and a change
between map coordinates and degrees pyproj (``pip install 'dfcrp[gis]'``).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, SettingsError
from dfcrp.io.tables import COLUMNS, LENGTHS, ReadTable
from dfcrp.items.checks import LARGEST, Cells, to_numbers
from dfcrp.items.site import Site

Floats = NDArray[np.float64]
#: From x and y to others; both ways are arrays.
Change = Callable[[Floats, Floats], tuple[Floats, Floats]]

NO_CRS = "none"
"""What ``--crs`` says where coordinates without a place on a body shall be written nevertheless."""
#: The system of GeoJSON that does not name one.
WGS_84 = "EPSG:4326"
#: Spheres with a code of the International Astronomical Union, or of EPSG, by radius in km.
CODES = {1737.4: "IAU_2015:30100", 3396.19: "IAU_2015:49900", 6371.0088: WGS_84}
WORLD_FILES = (".tfw", ".tifw", ".pgw", ".pngw", ".jgw", ".jpgw", ".wld")
#: Sides of a pixel that differ by a smaller share are equal.
SQUARE = 1e-3


def library(name: str, what: str) -> ModuleType:
    """An optional library, or a message that says how to get it."""
    from importlib import import_module

    try:
        return import_module(name)
    except ImportError:
        raise SettingsError(f"{what} needs {name}: pip install 'dfcrp[gis]'") from None


def crs_of(site: Site) -> str | None:
    """The coordinate reference system of these coordinates; None if it is not known."""
    if site.crs is not None:
        return site.crs
    if site.units != "deg" or site.body_radius_km is None:
        return None
    sphere = f"+proj=longlat +R={1000.0 * site.body_radius_km:.10g} +no_defs"
    return CODES.get(site.body_radius_km, sphere)


def written_crs(site: Site) -> str:
    """What a file says: a system, or that the coordinates are those of a plane of their own.

    Without a word a program would take any numbers for degrees.
    """
    known = crs_of(site)
    if known is not None and known != NO_CRS:
        return known
    unit, metres = {"m": ("metre", 1), "km": ("kilometre", 1000)}.get(site.units, ("pixel", 1))
    return f'LOCAL_CS["a plane without a place",UNIT["{unit}",{metres}]]'


def demand_crs(table: ReadTable, path: Path) -> None:
    """Refuse to write coordinates to a map whose place is not known, and say what is missing."""
    site = table.site
    if table.kind not in COLUMNS or crs_of(site) is not None:
        return
    if site.units == "deg":
        raise SettingsError(
            f"{path}: longitude and latitude of which body? Give --body, as in --body moon or "
            "--body earth"
        )
    unit = "pixels" if site.units == "px" else site.units
    scale = "--metres-per-pixel, " if site.units == "px" and site.metres_per_pixel is None else ""
    way = (
        "--georeference with the GeoTIFF or world file of the image; or "
        if unit == "pixels"
        else ""
    )
    raise SettingsError(
        f"{path}: the coordinates are in {unit}, and dfcrp does not know where on which body they "
        f"lie. Give {way}{scale}--body and --origin; or --crs, if they are coordinates of a map. "
        f"With --crs {NO_CRS} they are written as they are, without a reference system"
    )


@dataclass(frozen=True)
class Georeference:
    """Where the pixels of an image lie: x = a col + b row + c, y = d col + e row + f."""

    a: float
    b: float
    c: float
    d: float
    e: float
    f: float
    crs: str | None = None

    def at(self, column: Floats, row: Floats) -> tuple[Floats, Floats]:
        """Map coordinates; (0, 0) is the upper left corner of the upper left pixel."""
        return (
            self.a * column + self.b * row + self.c,
            self.d * column + self.e * row + self.f,
        )

    @property
    def side(self) -> float | None:
        """The side of a pixel; None if pixels are turned, or no squares."""
        across, down = abs(self.a), abs(self.e)
        turned = max(abs(self.b), abs(self.d)) > SQUARE * across
        return None if turned or abs(across - down) > SQUARE * across else across


def read_georeference(path: str | os.PathLike[str]) -> Georeference:
    """Of a GeoTIFF, or of a world file, which does not tell the system."""
    file = Path(path)
    if not file.is_file():
        raise InputError(f"{file}: there is no such file")
    if file.suffix.lower() in WORLD_FILES:
        return _read_world_file(file)
    rasterio = library("rasterio", "a georeferenced image")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an image without a place is refused below
        try:
            with rasterio.open(file) as image:
                found, crs = image.transform, image.crs
        except (rasterio.errors.RasterioError, ValueError) as error:
            raise InputError(f"{file}: cannot be read as a georeferenced image: {error}") from None
    if found.is_identity:
        raise InputError(
            f"{file}: the image does not say where it lies; give its world file (.tfw, .pgw, .wld) "
            "with --georeference, and its system with --crs"
        )
    a, b, c, d, e, f = tuple(found)[:6]
    return Georeference(a, b, c, d, e, f, None if crs is None else crs.to_wkt())


def _read_world_file(file: Path) -> Georeference:
    lines = [line.strip() for line in file.read_text("utf-8", "replace").splitlines()]
    try:
        a, d, b, e, x, y = map(float, filter(None, lines))
    except ValueError:
        raise InputError(f"{file}: a world file has six numbers, one to a line") from None
    if not np.isfinite([a, b, d, e, x, y]).all() or a * e == b * d:
        raise InputError(f"{file}: these six numbers give every pixel the same place")
    if max(map(abs, (a, b, d, e, x, y))) > LARGEST:
        raise InputError(f"{file}: a number of this world file is beyond {LARGEST:g}; check it")
    # A world file gives the middle of the first pixel.
    return Georeference(a, b, x - (a + b) / 2.0, d, e, y - (d + e) / 2.0)


def georeferenced(table: ReadTable, where: Georeference, crs: str | None) -> ReadTable:
    """Turn pixels into the coordinates of a map; y may run down from 0, or up to 0 as in R14."""
    if table.site.units != "px":
        raise SettingsError(
            f"--georeference is for data in pixels; these are in {table.site.units}"
        )
    system = crs or where.crs
    if system is None or system == NO_CRS:
        raise SettingsError("the georeference does not name its system; give it with --crs")
    known = checked_crs(system)
    down = -1.0 if float(np.median(table.columns["y"])) < 0.0 else 1.0

    def change(x: Floats, y: Floats) -> tuple[Floats, Floats]:
        return where.at(x, down * y)

    moved = moved_to(table, change)
    sized = [role for role in table.columns if role in LENGTHS - {"x", "y"}]
    if sized and where.side is None:
        raise SettingsError(
            f"the pixels of the georeference are turned or not square, so {', '.join(sized)} "
            "cannot be converted to the map; only points can"
        )
    radius = known.ellipsoid.semi_major_metre / 1000.0 if known.ellipsoid else None
    if known.is_geographic:
        # Diameters are in km, sides of boxes in degrees.
        km = np.radians(where.side or 0.0) * (radius or 0.0)
        factors = {role: km if role == "diameter" else where.side for role in sized}
        units = "deg"
    else:
        unit = float(known.axis_info[0].unit_conversion_factor) if known.axis_info else 1.0
        if abs(unit - 1.0) > 1e-9:
            raise SettingsError(f"{known.name}: its unit is not the metre, which dfcrp expects")
        factors = dict.fromkeys(sized, where.side)
        units = "m"
    columns = {
        role: values * factors.get(role, 1.0) if role in factors else values
        for role, values in moved.columns.items()
    }
    if "angle" in columns and down * where.e * where.a < 0:
        columns["angle"] = np.mod(-columns["angle"], 180.0)  # y points the other way on the map
    extra = _scaled_spreads(moved.extra, {role: float(f or 1.0) for role, f in factors.items()})
    site = Site(units, radius, table.site.area_km2, crs=_short(known))
    return replace(moved, columns=columns, extra=extra, site=site)


def checked_crs(text: str) -> Any:
    """A system by its code, as WKT, or from a .prj file."""
    pyproj = library("pyproj", "a coordinate reference system")
    file = Path(text)
    if file.suffix.lower() in (".prj", ".wkt") and file.is_file():
        text = file.read_text("utf-8", "replace")
    try:
        found = pyproj.CRS.from_user_input(text)
    except pyproj.exceptions.CRSError:
        raise SettingsError(
            f"--crs {text[:60]!r} is not a coordinate reference system that PROJ knows; give a "
            "code such as EPSG:32633 or IAU_2015:30100, WKT, or a .prj file"
        ) from None
    if not (found.is_geographic or found.is_projected):
        raise SettingsError(f"{found.name}: this system has no plane coordinates")
    return found


def _short(found: Any) -> str:
    """Authority and code where there are any, else WKT."""
    known = found.to_authority()
    return ":".join(known) if known else str(found.to_wkt())


def with_crs(table: ReadTable, crs: str) -> ReadTable:
    """Say what system the coordinates are of, which they are in already."""
    if crs == NO_CRS:
        return replace(table, site=replace(table.site, crs=NO_CRS))
    found = checked_crs(crs)
    if table.site.units == "px":
        raise SettingsError(
            "--crs is the system of map coordinates, and these are in pixels; give --georeference "
            "too, or say with --units m or --units deg that they are coordinates of a map"
        )
    if found.is_geographic != (table.site.units == "deg"):
        wanted = "degrees" if found.is_geographic else "metres"
        raise SettingsError(
            f"{found.name} is in {wanted}, and the coordinates are in {table.site.units}"
        )
    if table.site.units == "km":
        raise SettingsError(f"{found.name} is in metres, and the coordinates are in km")
    radius = found.ellipsoid.semi_major_metre / 1000.0 if found.ellipsoid else None
    known = table.site.body_radius_km or radius
    return replace(table, site=replace(table.site, crs=_short(found), body_radius_km=known))


def in_longitude_and_latitude(table: ReadTable) -> ReadTable:
    """Map coordinates as degrees on the same body, with diameters in km, as GeoJSON wants them."""
    site = table.site
    if site.units == "deg" or site.crs in (None, NO_CRS):
        return table
    if table.kind not in ("circles", "points"):
        raise SettingsError(
            f"GeoJSON in degrees is for circles and points; write {table.kind} to a "
            ".gpkg file, which keeps the coordinates of the map"
        )
    pyproj = library("pyproj", "longitude and latitude from map coordinates")
    system = pyproj.CRS.from_user_input(site.crs)
    geodetic = system.geodetic_crs
    change = pyproj.Transformer.from_crs(system, geodetic, always_xy=True).transform
    moved = moved_to(table, change)
    columns = dict(moved.columns)
    if "diameter" in columns:
        columns["diameter"] = columns["diameter"] / 1000.0
    extra = _scaled_spreads(moved.extra, {"diameter": 1e-3})
    return replace(
        moved, columns=columns, extra=extra, site=replace(site, units="deg", crs=_short(geodetic))
    )


def moved_to(table: ReadTable, change: Change) -> ReadTable:
    """The same items where ``change`` puts them, with the uncertainty of their places."""
    x, y = (np.asarray(table.columns[role], np.float64) for role in ("x", "y"))
    new_x, new_y = change(x, y)
    extra = _moved_spreads(table.extra, x, y, change)
    return replace(table, columns={**table.columns, "x": new_x, "y": new_y}, extra=extra)


def _moved_spreads(
    extra: Mapping[str, Cells], x: Floats, y: Floats, change: Change
) -> dict[str, Cells]:
    """Standard deviations and ends of intervals of x and y, to first order around each place.

    What x and y contribute to a new coordinate is added in squares: the catalogue does not hold
    their correlation. Where x stays along x and y along y this is exact.
    """
    found = dict(extra)
    given = {
        f"{role}_{end}": to_numbers(extra[f"{role}_{end}"])
        for role in ("x", "y")
        for end in ("sd", "lo", "hi")
        if f"{role}_{end}" in extra
    }
    if not given:
        return found
    slopes = _slopes(x, y, change)
    places = dict(zip("xy", change(x, y), strict=True))
    for k, role in enumerate("xy"):
        for end in ("sd", "lo", "hi"):
            if f"{role}_{end}" not in given:
                continue
            total = np.zeros(len(x))
            for j, (old, at) in enumerate((("x", x), ("y", y))):
                total += (slopes[k][j] * _reach(given, old, at, end, slopes[k][j])) ** 2
            width = np.sqrt(total)
            moved = {"sd": width, "lo": places[role] - width, "hi": places[role] + width}[end]
            found[f"{role}_{end}"] = moved
    return found


def _reach(given: Mapping[str, Floats], old: str, at: Floats, end: str, slope: Floats) -> Floats:
    """How far an old coordinate reaches towards this end of the new one, 0 if it is not known."""
    if end == "sd":
        return given.get(f"{old}_sd", np.zeros(len(at)))
    low = at - given.get(f"{old}_lo", at)
    high = given.get(f"{old}_hi", at) - at
    return np.where((slope < 0.0) == (end == "lo"), high, low)


def _slopes(x: Floats, y: Floats, change: Change) -> list[list[Floats]]:
    """How fast each new coordinate changes with each old one, by differences."""
    scale = max(float(np.ptp(x)), float(np.ptp(y)), 1.0)
    step = 1e-6 * scale
    across = [
        (b - a) / (2.0 * step)
        for a, b in zip(change(x - step, y), change(x + step, y), strict=True)
    ]
    up = [
        (b - a) / (2.0 * step)
        for a, b in zip(change(x, y - step), change(x, y + step), strict=True)
    ]
    return [[across[0], up[0]], [across[1], up[1]]]


def _scaled_spreads(extra: Mapping[str, Cells], factors: Mapping[str, float]) -> dict[str, Cells]:
    """The columns that say how uncertain a length is, in the unit that the length has now."""
    found = dict(extra)
    for role, factor in factors.items():
        for end in ("sd", "lo", "hi"):
            name = f"{role}_{end}"
            if name in found:
                found[name] = factor * to_numbers(found[name])
    return found


def scaled_spreads(table: ReadTable, factor: float) -> dict[str, Cells]:
    """All lengths are multiplied by a factor, and with them how uncertain they are."""
    return _scaled_spreads(table.extra, dict.fromkeys(set(table.columns) & LENGTHS, factor))
