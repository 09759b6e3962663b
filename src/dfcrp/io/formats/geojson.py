"""GeoJSON: points with a diameter, or circles drawn as polygons."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.columns import GEOGRAPHIC, SPELLINGS, plain, unit_of
from dfcrp.io.json_text import as_list, as_object, load_json
from dfcrp.io.marks import Marks, Origin, hints
from dfcrp.io.options import ReadOptions
from dfcrp.io.records import LeftOut, Records, describe_left_out
from dfcrp.io.shapes import Points, circle_of_polygon, ring
from dfcrp.io.sphere import circle_on_sphere, ring_on_sphere
from dfcrp.io.table import Table
from dfcrp.io.targets import radius_of
from dfcrp.items.site import UNITS, Ring, Site


def looks_like_geojson(path: Path, data: bytes) -> bool:
    """Whether the name or the type says so."""
    if path.suffix.lower() == ".geojson":
        return True
    return data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1] == b"{" and b'"FeatureCollection"' in data


def read_geojson(name: str, data: bytes, options: ReadOptions) -> Table:
    """Read features; a property with the name of a diameter or radius goes before the outline."""
    content = as_object(load_json(name, data), name)
    single = content.get("type") == "Feature"
    features = [content] if single else as_list(content.get("features"), f"{name}, features")
    marks = Marks(name, "feature", options)
    gathered: list[tuple[int, Points, bool, dict[str, Any]]] = []
    left_out: list[LeftOut] = []
    for number, raw in enumerate(features, 1):
        feature = as_object(raw, f"{name}, feature {number}")
        properties = as_object(feature.get("properties") or {}, f"{name}, feature {number}")
        shape = _outline(marks, number, feature.get("geometry"))
        if isinstance(shape, str):
            left_out.append(LeftOut(shape, number))
        else:
            gathered.append((number, shape, len(shape) > 1, properties))
    site = _site(name, content, [points for _, points, _, _ in gathered], options)
    return _table(name, gathered, left_out, site, options)


def _outline(marks: Marks, number: int, geometry: Any) -> Points | str:
    """The points of a geometry, a single one for a point; or what it is instead."""
    if not isinstance(geometry, dict):
        return "feature without geometry"
    kind, places = geometry.get("type"), geometry.get("coordinates")
    if kind in ("MultiPolygon", "MultiPoint") and isinstance(places, list) and len(places) == 1:
        kind, places = kind.removeprefix("Multi"), places[0]
    origin = Origin(number)
    if kind == "Point":
        return marks.pairs(origin, [places])
    if kind == "Polygon" and isinstance(places, list) and len(places) == 1:
        points = marks.pairs(origin, places[0])
        return points if len(points) > 1 else "polygon that is no circle"
    return "polygon that is no circle" if kind == "Polygon" else str(kind)[:40]


def _table(
    name: str,
    gathered: list[tuple[int, Points, bool, dict[str, Any]]],
    left_out: list[LeftOut],
    site: Site,
    options: ReadOptions,
) -> Table:
    # The geometry says where a feature is; properties that say it too would compete with it.
    places = SPELLINGS["x"] | SPELLINGS["y"] | GEOGRAPHIC["x"] | GEOGRAPHIC["y"]
    titles = {title: None for *_, properties in gathered for title in properties}
    titles = {title: None for title in titles if plain(title) not in places}
    sizes = [
        title
        for role in ("diameter", "radius")
        for title in titles
        if plain(title) in SPELLINGS[role]
    ]
    size = sizes[0] if sizes else "diameter"
    halved = 2 if plain(size) in SPELLINGS["diameter"] else 1
    degrees = site.units == "deg"
    # Beside degrees, a column in metres is turned into km when the table is checked.
    per_km = 1000 if degrees and unit_of(size) == "m" else 1
    header = ["x", "y", *dict.fromkeys([*titles, size])]
    rows: list[int] = []
    records: list[list[Any]] = []
    for number, points, drawn, properties in gathered:
        x, y, radius = points[0][0], points[0][1], None
        if drawn:
            fitted = circle_on_sphere(points) if degrees else circle_of_polygon(points)
            if fitted is None:
                left_out.append(LeftOut("polygon that is no circle", number))
                continue
            x, y, radius = fitted
        told = properties.get(size)
        if told is None and radius is None and options.point_diameter is not None:
            told = halved / 2 * options.point_diameter * per_km
        if told is None and radius is None:
            left_out.append(LeftOut("point without a size", number))
            continue
        if told is None and radius is not None:
            measured = _kilometres(name, number, radius, site) if degrees else radius
            told = halved * measured * per_km
        cells = {**properties, size: told}
        rows.append(number)
        records.append([x, y, *(_cell(cells.get(title)) for title in header[2:])])
    if not rows:
        found = describe_left_out(left_out, "feature") or "no feature"
        raise InputError(f"{name}: there is no circle in it, but {found}{hints(left_out)}")
    left_out.sort(key=lambda entry: entry.row)
    columns = [list(column) for column in zip(*records, strict=True)]
    return Table(name, header, columns, rows, "feature", site, left_out)


def _cell(value: Any) -> Any:
    """Lists and objects as text, so that every column is one of single values."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _kilometres(name: str, number: int, degrees: float, site: Site) -> float:
    if site.body_radius_km is None:
        raise InputError(
            f"{name}, feature {number}: a circle in degrees without a diameter; give the body it "
            "is on, as in `dfcrp convert --body moon`, so that it can be measured in km"
        )
    return math.radians(degrees) * site.body_radius_km


def _site(name: str, content: dict[str, Any], outlines: list[Points], options: ReadOptions) -> Site:
    """What the collection says of itself; GeoJSON is in degrees unless it cannot be."""
    units = options.units or content.get("units")
    if units is None:
        degrees = all(abs(x) <= 360 and abs(y) <= 90 for points in outlines for x, y in points)
        units = "deg" if degrees else "px"
    if units not in UNITS:
        raise InputError(
            f"{name}: units is {str(units)[:40]!r}; it must be one of {', '.join(UNITS)}"
        )
    marks = Marks(name, "member", options)
    numbers: dict[str, float | None] = {}
    for key in ("body_radius_km", "area_km2"):
        value = content.get(key)
        numbers[key] = None if value is None else marks.number(Origin(0), value, key)
        if value is not None and not 0 < (numbers[key] or 0) < 1e18:
            raise InputError(f"{name}: {key} is {value}; it must be a positive number")
    rings = []
    for entry in as_list(content.get("boundary") or [], f"{name}, boundary"):
        described = as_object(entry, f"{name}, boundary")
        points = marks.pairs(Origin(0), described.get("points"))
        rings.append(Ring(tuple(points), described.get("hole") is True))
    radius = options.body_radius_km or numbers["body_radius_km"]
    return Site(units, radius, numbers["area_km2"], tuple(rings))


def write_geojson(records: Records, path: Path, *, outlines: bool = False) -> dict[Path, bytes]:
    """Write points with a diameter, or with ``outlines`` circles as polygons that have it too.

    Units, area and boundary are members of the collection.
    """
    site = records.site
    size = "diameter_km" if site.units in ("deg", "km") else "diameter"
    columns: dict[str, Any] = {size: records.columns["diameter"].tolist()}
    for role in ("expert", "person", "image", "id", "truth"):
        if role in records.columns:
            columns[role] = list(records.columns[role])
    for title, values in records.typed_extra().items():
        columns.setdefault(title, values)
    if "truth" in columns:
        columns["truth"] = [int(value) for value in columns["truth"]]
    per_degree = math.radians(radius_of(records, path)) if outlines and site.units == "deg" else 1.0
    features = []
    places = zip(records.columns["x"].tolist(), records.columns["y"].tolist(), strict=True)
    for at, (x, y) in enumerate(places):
        geometry: dict[str, Any] = {"type": "Point", "coordinates": [x, y]}
        if outlines:
            radius = columns[size][at] / 2 / per_degree
            around = ring_on_sphere(x, y, radius) if site.units == "deg" else ring(x, y, radius)
            geometry = {"type": "Polygon", "coordinates": [around]}
        properties = {title: values[at] for title, values in columns.items()}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    content: dict[str, Any] = {"type": "FeatureCollection", "units": site.units}
    for key in ("body_radius_km", "area_km2"):
        if (value := getattr(site, key)) is not None:
            content[key] = value
    if site.boundary:
        content["boundary"] = [{"hole": r.hole, "points": r.points} for r in site.boundary]
    content["features"] = features
    return {path: (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()}
