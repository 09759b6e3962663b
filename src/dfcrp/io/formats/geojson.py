"""GeoJSON: points with sizes as properties, or shapes drawn as polygons; QuPath's in pixels."""

from __future__ import annotations

import json
import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dfcrp.errors import InputError
from dfcrp.io.drawings import (
    BOXES_AROUND,
    MOMENTS,
    NO_CIRCLE,
    Drawings,
    Origin,
    centres_note,
    hints,
)
from dfcrp.io.format import Format, GivenFile
from dfcrp.io.georeference import WGS_84, written_crs
from dfcrp.io.shapes import (
    Points,
    box_around,
    centre_of_polygon,
    centroid,
    circle_of_polygon,
    circle_on_sphere,
    distinct,
    ellipse_or_circle,
    ring,
    ring_on_sphere,
)
from dfcrp.io.tables import (
    COLUMNS,
    LeftOut,
    NothingToReadError,
    RawTable,
    ReadOptions,
    ReadTable,
    describe_left_out,
    radius_of,
)
from dfcrp.io.text import as_list, as_object, load_json
from dfcrp.items.columns import GEOGRAPHIC, SAID, SPELLINGS, plain, unit_of
from dfcrp.items.site import UNITS, Ring, Site
from dfcrp.values import Json

#: A property of every object that QuPath writes; its coordinates are pixels.
QUPATH = "objectType"


def looks_like_geojson(file: GivenFile) -> bool:
    """Whether the name or the type says so."""
    if file.path.suffix.lower() == ".geojson":
        return True
    first = file.data.lstrip(b"\xef\xbb\xbf \t\r\n")[:1]
    features = b'"Feature"' in file.data and b'"geometry"' in file.data
    return (first == b"{" and b'"FeatureCollection"' in file.data) or (first == b"[" and features)


@dataclass(frozen=True)
class _Feature:
    """A point or an outline with its properties."""

    number: int
    points: Points
    """One for a point."""
    properties: Json

    @property
    def drawn(self) -> bool:
        return len(self.points) > 1


def read_geojson(file: GivenFile, options: ReadOptions) -> RawTable:
    """Read features; a property with the name of a size goes before the outline."""
    name = file.name
    loaded = load_json(name, file.data)
    # QuPath also writes the list of features alone.
    content = {"features": loaded} if isinstance(loaded, list) else as_object(loaded, name)
    single = content.get("type") == "Feature"
    features = [content] if single else as_list(content.get("features"), f"{name}, features")
    marks = Drawings(name, "feature", options)
    gathered: list[_Feature] = []
    left_out: list[LeftOut] = []
    for number, raw in enumerate(features, 1):
        feature = as_object(raw, f"{name}, feature {number}")
        properties = as_object(feature.get("properties") or {}, f"{name}, feature {number}")
        shape = _outline(marks, number, feature.get("geometry"))
        if isinstance(shape, str):
            left_out.append(LeftOut(shape, number))
        else:
            gathered.append(_Feature(number, shape, _as_qupath(properties)))
    if any(QUPATH in feature.properties for feature in gathered):
        content = {"units": "px", **content}
    site = _site(name, content, [feature.points for feature in gathered], options)
    if options.kind == "circles":
        return _circles(name, gathered, left_out, site, options)
    return _others(name, gathered, left_out, site, options.kind)


def _as_qupath(properties: Json) -> Json:
    """Of QuPath's objects the name of the class, which it has with its colour, is the category."""
    told = properties.get("classification")
    if QUPATH not in properties or not isinstance(told, dict):
        return properties
    others = {title: value for title, value in properties.items() if title != "classification"}
    return {**others, "category": told.get("name") or " ".join(map(str, told.get("names", [])))}


def _outline(marks: Drawings, number: int, geometry: object) -> Points | str:
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
        return points if len(points) > 1 else NO_CIRCLE
    return NO_CIRCLE if kind == "Polygon" else str(kind)[:40]


def _titles(gathered: list[_Feature], *roles: str) -> dict[str, None]:
    """The properties, but those that play these roles.

    The geometry says where a feature is; properties that say it too would compete with it.
    """
    places = GEOGRAPHIC["x"] | GEOGRAPHIC["y"]
    places = places.union(*(SPELLINGS[role] for role in ("x", "y", *roles)))
    titles = {title: None for feature in gathered for title in feature.properties}
    return {title: None for title in titles if plain(title) not in places}


def _circles(
    name: str,
    gathered: list[_Feature],
    left_out: list[LeftOut],
    site: Site,
    options: ReadOptions,
) -> RawTable:
    titles = _titles(gathered)
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
    records: list[list[object]] = []
    for feature in gathered:
        x, y, radius = feature.points[0][0], feature.points[0][1], None
        if feature.drawn:
            fitted = _circle(feature, site)
            if fitted is None:
                left_out.append(LeftOut(NO_CIRCLE, feature.number))
                continue
            x, y, radius = fitted
        told = feature.properties.get(size)
        if told is None and radius is None and options.point_diameter is not None:
            told = halved / 2 * options.point_diameter * per_km
        if told is None and radius is None:
            left_out.append(LeftOut("point without a size", feature.number))
            continue
        if told is None and radius is not None:
            told = halved * _length(name, feature.number, radius, site) * per_km
        cells = {**feature.properties, size: told}
        rows.append(feature.number)
        records.append([x, y, *(_cell(cells.get(title)) for title in header[2:])])
    if not rows:
        found = describe_left_out(left_out, "feature") or "no feature"
        hint = hints(left_out, "circles")
        raise NothingToReadError(f"{name}: there is no circle in it, but {found}{hint}")
    left_out.sort(key=lambda entry: entry.row)
    return RawTable(name, header, _turned(records), rows, "feature", site, left_out)


def _others(
    name: str, gathered: list[_Feature], left_out: list[LeftOut], site: Site, kind: str
) -> RawTable:
    """Points, boxes or ellipses, whose sizes are properties or are measured from the outline."""
    wanted = COLUMNS[kind]
    sizes = () if kind == "points" else (*wanted, "diameter", "radius")
    titles = _titles(gathered, *sizes)
    header = [*wanted, *titles]
    rows: list[int] = []
    records: list[list[object]] = []
    note = ""
    if kind != "points" and _polygons_only(gathered, site, kind):
        note = BOXES_AROUND if kind == "boxes" else MOMENTS
    for feature in gathered:
        found: tuple[object, ...] | str
        if kind == "points":
            found = _point(feature, site)
        elif note:
            measure = box_around if kind == "boxes" else ellipse_or_circle
            found = measure(feature.points) or "polygon without an area"
        elif kind == "boxes":
            found = _box(feature)
        else:
            found = _ellipse(name, feature, site)
        if isinstance(found, str):
            left_out.append(LeftOut(found, feature.number))
            continue
        rows.append(feature.number)
        records.append([*found, *(_cell(feature.properties.get(title)) for title in titles)])
    if not rows:
        said = describe_left_out(left_out, "feature") or "no feature"
        raise NothingToReadError(f"{name}: there are no {kind} in it, but {said}")
    if kind == "points":
        count = Counter(feature.drawn for feature in gathered)
        note = centres_note(count[False], {"polygon": count[True]})
    left_out.sort(key=lambda entry: entry.row)
    return RawTable(name, header, _turned(records), rows, "feature", site, left_out, note)


def _polygons_only(gathered: list[_Feature], site: Site, kind: str) -> bool:
    """Whether nothing is a box or has a size as a property, in a plane.

    Polygons may stand for boxes and ellipses then.
    """
    sizes = ("width", "height", "major", "minor", "diameter", "radius")

    def plain_polygon(feature: _Feature) -> bool:
        if not feature.drawn or any(_property(feature, role) is not None for role in sizes):
            return False
        return kind != "boxes" or _rectangle(feature) is None

    return bool(gathered) and site.units != "deg" and all(map(plain_polygon, gathered))


def _turned(records: list[list[object]]) -> list[list[object]]:
    """Rows as columns."""
    return [list(column) for column in zip(*records, strict=True)]


def _circle(feature: _Feature, site: Site) -> tuple[float, float, float] | None:
    """Centre and radius of an outline; on a sphere the radius is an angle in degrees."""
    fit = circle_on_sphere if site.units == "deg" else circle_of_polygon
    return fit(feature.points)


def _rectangle(feature: _Feature) -> tuple[float, float, float, float] | None:
    """Centre and sides of an outline of four corners with sides along x and y."""
    corners = distinct(feature.points)
    across, down = (sorted({point[axis] for point in corners}) for axis in (0, 1))
    if len(corners) != 4 or len(set(corners)) != 4 or len(across) != 2 or len(down) != 2:
        return None
    middle = (across[0] + across[1]) / 2, (down[0] + down[1]) / 2
    return *middle, across[1] - across[0], down[1] - down[0]


def _point(feature: _Feature, site: Site) -> tuple[float, float] | str:
    if not feature.drawn:
        return feature.points[0]
    if site.units == "deg":
        fitted = _rectangle(feature) or _circle(feature, site)
        return "polygon" if fitted is None else fitted[:2]
    return centre_of_polygon(feature.points) or "polygon without an area"


def _box(feature: _Feature) -> tuple[object, ...] | str:
    told = [_property(feature, role) for role in ("width", "height")]
    sides = None if None in told else told
    if not feature.drawn:
        return "point without width and height" if sides is None else (*feature.points[0], *sides)
    found = _rectangle(feature)
    if found is None:
        return "polygon that is not a box"
    return *found[:2], *(found[2:] if sides is None else sides)


def _ellipse(name: str, feature: _Feature, site: Site) -> tuple[object, ...] | str:
    told = [_property(feature, role) for role in ("major", "minor", "angle")]
    place = centroid(feature.points)
    if None not in told:
        return *place, *told
    size, half = _property(feature, "diameter"), _property(feature, "radius")
    if size is None and isinstance(half, (int, float)):
        size = 2 * half
    if feature.drawn:
        fitted = _circle(feature, site)
        if fitted is None:
            return NO_CIRCLE
        place = fitted[:2]
        size = size if size is not None else 2 * _length(name, feature.number, fitted[2], site)
    return "point without a size" if size is None else (*place, size, size, 0.0)


def _property(feature: _Feature, role: str) -> object:
    """The property that plays a role, if it is there."""
    values = feature.properties.items()
    return next((value for title, value in values if plain(title) in SPELLINGS[role]), None)


def _cell(value: object) -> object:
    """Lists and objects as text, so that every column is one of single values."""
    return json.dumps(value) if isinstance(value, (list, dict)) else value


def _length(name: str, number: int, radius: float, site: Site) -> float:
    """A radius in the unit of diameters: an angle in degrees becomes km."""
    if site.units != "deg":
        return radius
    if site.body_radius_km is None:
        raise InputError(
            f"{name}, feature {number}: a circle in degrees without a diameter; give the body it "
            "is on, as in `dfcrp convert --body moon`, so that it can be measured in km"
        )
    return math.radians(radius) * site.body_radius_km


def _site(name: str, content: Json, outlines: list[Points], options: ReadOptions) -> Site:
    """What the collection says of itself; GeoJSON is in degrees unless it cannot be."""
    units = options.units or content.get("units")
    if units is None:
        degrees = all(abs(x) <= 360 and abs(y) <= 90 for points in outlines for x, y in points)
        units = "deg" if degrees else "px"
    if units not in UNITS:
        raise InputError(
            f"{name}: units is {str(units)[:40]!r}; it must be one of {', '.join(UNITS)}"
        )
    marks = Drawings(name, "member", options)
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


def write_geojson(table: ReadTable, path: Path, *, outlines: bool = False) -> dict[Path, bytes]:
    """Write points with sizes as properties, or with ``outlines`` polygons that have these too.

    Units, area and boundary are members of the collection, and ``crs``, which GDAL and QGIS read:
    they would take coordinates without it for degrees on the Earth.
    """
    if table.kind not in COLUMNS:
        raise InputError(
            f"{path}: GeoJSON holds {', '.join(COLUMNS)}, and these are {table.kind}; "
            "end the name in .csv, .tsv or .parquet"
        )
    site = table.site
    columns = property_columns(table)
    rings = rings_of(table, path) if outlines else None
    features = []
    places = zip(table.columns["x"].tolist(), table.columns["y"].tolist(), strict=True)
    for at, (x, y) in enumerate(places):
        geometry: Json = {"type": "Point", "coordinates": [x, y]}
        if rings is not None:
            geometry = {"type": "Polygon", "coordinates": [rings[at]]}
        properties = {title: values[at] for title, values in columns.items()}
        features.append({"type": "Feature", "geometry": geometry, "properties": properties})
    content: Json = {"type": "FeatureCollection", "units": site.units}
    if (system := written_crs(site)) != WGS_84:
        content["crs"] = {"type": "name", "properties": {"name": system}}
    for key in ("body_radius_km", "area_km2"):
        if (value := getattr(site, key)) is not None:
            content[key] = value
    if site.boundary:
        content["boundary"] = [{"hole": r.hole, "points": r.points} for r in site.boundary]
    content["features"] = features
    return {path: (json.dumps(content, ensure_ascii=False, indent=1) + "\n").encode()}


def property_columns(table: ReadTable) -> dict[str, list[Any]]:
    """What a feature says beside its place, by name; None is what is missing."""
    kilometres = table.site.units in ("deg", "km")
    columns: Json = {
        f"{role}_km" if kilometres and role == "diameter" else role: values.tolist()
        for role, values in table.columns.items()
        if role not in ("x", "y")
    }
    for role in ("expert", "person", "image", "id", "truth", *SAID):
        if role in table.about:
            columns[role] = list(table.about[role])
    for title, values in table.typed_extra().items():
        columns.setdefault(title, values)
    if "truth" in columns:
        columns["truth"] = [int(value) for value in columns["truth"]]
    return columns


def rings_of(table: ReadTable, path: Path) -> list[list[tuple[float, float]]]:
    """The outline of each item, closed."""
    degrees = table.site.units == "deg"
    rows = zip(*(values.tolist() for values in table.columns.values()), strict=True)
    if table.kind == "circles":
        per_degree = math.radians(radius_of(table, path)) if degrees else 1.0
        around = ring_on_sphere if degrees else ring
        return [around(x, y, diameter / 2 / per_degree) for x, y, diameter in rows]
    if table.kind == "boxes":
        return [_corners(*row) for row in rows]
    if table.kind == "ellipses" and not degrees:
        return [_oval(*row) for row in rows]
    raise InputError(
        f"{path}: {table.kind}{' in degrees' if degrees else ''} have no outline; leave out "
        "--outlines"
    )


def _corners(x: float, y: float, width: float, height: float) -> list[tuple[float, float]]:
    left, right, low, high = x - width / 2, x + width / 2, y - height / 2, y + height / 2
    return [(left, low), (right, low), (right, high), (left, high), (left, low)]


def _oval(
    x: float, y: float, major: float, minor: float, angle: float
) -> list[tuple[float, float]]:
    cos, sin = math.cos(math.radians(angle)), math.sin(math.radians(angle))
    return [
        (
            x + major / 2 * u * cos - minor / 2 * v * sin,
            y + major / 2 * u * sin + minor / 2 * v * cos,
        )
        for u, v in ring(0.0, 0.0, 1.0)
    ]


FORMAT = Format(
    "GeoJSON",
    looks_like_geojson,
    read_geojson,
    writers=((".geojson", write_geojson), (".json", write_geojson)),
)
