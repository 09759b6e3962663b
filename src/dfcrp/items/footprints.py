"""Looks at a part of an image: footprints, and the zones that they cut images into.

A footprint is one polygon or several, as in GeoJSON: each is an outer ring and rings around holes,
in the coordinates of the items. All places of a *zone* were seen by the same experts.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.items.checks import quoted
from dfcrp.priors.base import Zones
from dfcrp.values import Json

if TYPE_CHECKING:
    from dfcrp.items.items import Items

Corners = tuple[tuple[float, float], ...]
Footprint = tuple[tuple[Corners, ...], ...]
Look = tuple[str, str]
Floats = NDArray[np.float64]

#: Columns of a table that say which part was seen, without case and underscores: the sides of a
#: rectangle, or a shape in one cell.
SIDES = ("xmin", "ymin", "xmax", "ymax")
SHAPES = ("footprint", "geometry", "polygon", "wkt")
#: Those that would say it in a way that is not read.
UNCLEAR = ("bbox", "width", "height")
#: Places by which the areas of zones are measured, on every image.
PLACES = 4096
#: The smallest solution of 1 / x³ + 1 / x² = 1: multiples of its powers fill a square evenly.
_PLASTIC = 1.32471795724474602596

_WKT = re.compile(r"\s*(MULTI)?POLYGON\s*\(", re.IGNORECASE)
_NUMBER = r"[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_POINT = re.compile(rf"({_NUMBER})\s+({_NUMBER})(?:\s+{_NUMBER})*")


def footprint_columns(names: Iterable[Any], where: str) -> Json:
    """Which columns of a table of looks say what was seen; none if it was all of the image."""
    plain = {str(name).lower().replace("_", ""): name for name in names}
    sides = {side: plain[side] for side in SIDES if side in plain}
    shapes = [plain[name] for name in SHAPES if name in plain]
    lacking = [f"{side[0]}_{side[1:]}" for side in SIDES if side not in sides]
    unclear = [plain[name] for name in UNCLEAR if name in plain]
    if sides and lacking:
        raise InputError(
            f"{where}: a footprint needs the columns x_min, y_min, x_max and y_max; "
            f"{', '.join(lacking)} is not there"
        )
    if len(shapes) + bool(sides) > 1:
        given = [*shapes, *sides.values()]
        raise InputError(f"{where}: several columns for the footprint ({', '.join(given)})")
    if unclear and not sides and not shapes:
        raise InputError(
            f"{where}: the column {unclear[0]} seems to say at which part of an image someone "
            "looked; give the part in the columns x_min, y_min, x_max and y_max, or in a column "
            "footprint as a polygon (WKT or GeoJSON). Leave the column out if they saw all of it"
        )
    return {"footprint": shapes[0]} if shapes else sides


def footprints_in(
    table: Mapping[str, Sequence[object]], where: Callable[[int, str], str]
) -> list[Footprint | None]:
    """The footprint of each row of the columns that ``footprint_columns`` found; None: all."""
    if "footprint" in table:
        return [
            read_footprint(value, where(row, "footprint"))
            for row, value in enumerate(table["footprint"])
        ]
    found: list[Footprint | None] = []
    for row, values in enumerate(zip(*(table[side] for side in SIDES), strict=True)):
        if all(_is_nothing(value) for value in values):
            found.append(None)
            continue
        numbers = [
            _number(value, where(row, f"{side[0]}_{side[1:]}"))
            for side, value in zip(SIDES, values, strict=True)
        ]
        found.append(_rectangle(numbers, where(row, "x_min")))
    return found


def read_footprint(value: Any, where: str) -> Footprint | None:
    """A footprint as WKT, GeoJSON (text or a dict), four sides, or a shape of shapely."""
    if _is_nothing(value):
        return None
    value = getattr(value, "__geo_interface__", value)
    if isinstance(value, str):
        if _WKT.match(value):
            return _checked(_from_wkt(value, where), where)
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            raise InputError(
                f"{where}: {quoted(value)} is not a polygon; write it as WKT, "
                "POLYGON ((0 0, 100 0, 100 50, 0 50, 0 0)), or as GeoJSON"
            ) from None
    if isinstance(value, Mapping):
        return _checked(_from_geojson(value, where), where)
    if isinstance(value, (Sequence, np.ndarray)) and len(value) == 4 and np.ndim(value) == 1:
        return _rectangle([_number(side, where) for side in value], where)
    raise InputError(
        f"{where}: {quoted(str(value))} is not a footprint; give a polygon as WKT or GeoJSON, or "
        "the four numbers x_min, y_min, x_max, y_max"
    )


def _is_nothing(value: object) -> bool:
    if isinstance(value, str):
        return not value.strip()
    return value is None or (isinstance(value, (float, np.floating)) and math.isnan(value))


def _number(value: Any, where: str) -> float:
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.nan
    if not math.isfinite(number):
        raise InputError(f"{where}: {quoted(str(value))} is not a number")
    return number


def _rectangle(sides: Sequence[float], where: str) -> Footprint:
    x0, y0, x1, y1 = sides
    if x0 >= x1 or y0 >= y1:
        raise InputError(
            f"{where}: the footprint from ({x0:g}, {y0:g}) to ({x1:g}, {y1:g}) is empty; x_min and "
            "y_min must be below x_max and y_max"
        )
    return ((((x0, y0), (x1, y0), (x1, y1), (x0, y1)),),)


def _from_wkt(text: str, where: str) -> list[Any]:
    """Coordinates of a (multi)polygon in well-known text, nested as in GeoJSON."""
    body = _POINT.sub(
        lambda point: f"[{float(point[1])!r},{float(point[2])!r}]", text[text.index("(") :]
    )
    try:
        found: list[object] = json.loads(body.replace("(", "[").replace(")", "]"))
    except (ValueError, RecursionError):
        raise InputError(f"{where}: {quoted(text)} is not well-formed WKT") from None
    return found if text.lstrip()[:5].upper() == "MULTI" else [found]


def _from_geojson(shape: Mapping[str, object], where: str) -> list[Any]:
    """Coordinates of a (multi)polygon, or of the geometry of a feature."""
    inner = shape.get("geometry") if shape.get("type") == "Feature" else shape
    kind = inner.get("type") if isinstance(inner, Mapping) else None
    if kind not in ("Polygon", "MultiPolygon"):
        raise InputError(f"{where}: a footprint is a Polygon or MultiPolygon, not {kind}")
    assert isinstance(inner, Mapping)
    found: object = inner.get("coordinates")
    if kind == "Polygon":
        return [found]
    return list(found) if isinstance(found, Sequence) else []


def _checked(polygons: list[object], where: str) -> Footprint:
    """Rings of numbers that have an area."""
    found = []
    for polygon in polygons:
        rings = []
        for ring in polygon if isinstance(polygon, Sequence) else [()]:
            try:
                points = np.array([point[:2] for point in ring], np.float64).reshape(-1, 2)
            except (TypeError, ValueError, LookupError, OverflowError):
                points = np.zeros((0, 2))
            closed = len(points) > 1 and bool((points[0] == points[-1]).all())
            points = points[:-1] if closed else points
            if len(points) < 3 or not np.isfinite(points).all():
                raise InputError(
                    f"{where}: a ring of the polygon needs three points or more, each x and y"
                )
            rings.append(tuple((float(x), float(y)) for x, y in points))
        if not rings or _area(rings[0]) == 0.0:
            raise InputError(f"{where}: the polygon is empty: it has no area")
        found.append(tuple(rings))
    if not found:
        raise InputError(f"{where}: the polygon is empty")
    return tuple(found)


def _area(ring: Corners) -> float:
    x, y = np.array(ring).T
    return 0.5 * abs(float(x @ np.roll(y, 1) - y @ np.roll(x, 1)))


def both(one: Footprint | None, other: Footprint | None) -> Footprint | None:
    """Both together; None is all of the image."""
    return None if one is None or other is None else (*one, *other)


def as_text(footprint: Footprint) -> str:
    """As GeoJSON, in full precision."""
    return json.dumps({"type": "MultiPolygon", "coordinates": footprint}, separators=(",", ":"))


def contains(footprint: Footprint, x: Floats, y: Floats) -> NDArray[np.bool_]:
    """Whether places lie inside: within an odd number of rings of one of the polygons."""
    inside = np.zeros(len(x), bool)
    for polygon in footprint:
        odd = np.zeros(len(x), bool)
        for ring in polygon:
            for (x0, y0), (x1, y1) in zip(ring, (*ring[1:], ring[0]), strict=True):
                if y0 != y1:
                    crosses = (y < y0) != (y < y1)
                    odd ^= crosses & (x < x0 + (y - y0) * ((x1 - x0) / (y1 - y0)))
        inside |= odd
    return inside


class _SeenImage:
    """One image: the distinct footprints on it, and who has which."""

    def __init__(self, looks: Mapping[int, Footprint | None], *, on_sphere: bool) -> None:
        self.on_sphere = on_sphere
        #: All that are no whole looks, each once, and their rings' extent.
        self.parts = list(dict.fromkeys(part for part in looks.values() if part is not None))
        self.of_expert = {f: None if part is None else self.parts.index(part)
                        for f, part in looks.items()}  # fmt: skip
        rings = [ring for part in self.parts for polygon in part for ring in polygon]
        self.corners = np.concatenate([np.array(ring) for ring in rings])
        self.middle = float(self.corners[:, 0].min() + self.corners[:, 0].max()) / 2.0

    @property
    def has_whole_looks(self) -> bool:
        return None in self.of_expert.values()

    def turned(self, x: Floats) -> Floats:
        """Longitudes counted so that they lie within 180° of the footprints' middle."""
        if not self.on_sphere:
            return x
        return (x - self.middle + 180.0) % 360.0 - 180.0 + self.middle

    def seen(self, x: Floats, y: Floats) -> NDArray[np.bool_]:
        """(places, footprints): which of them hold a place."""
        return np.column_stack([contains(part, self.turned(x), y) for part in self.parts])

    def experts_at(self, seen: NDArray[np.bool_]) -> tuple[int, ...]:
        """The experts whose looks cover a place in these footprints."""
        return tuple(f for f, at in sorted(self.of_expert.items()) if at is None or bool(seen[at]))

    def measure(self, x: Floats, y: Floats) -> dict[tuple[int, ...], float]:
        """By sets of experts how many of the evenly spread places only they cover.

        The ground is what footprints cover; with looks at the whole image it is the smallest
        rectangle around them and the items (``x``, ``y``).
        """
        corners = self.corners
        if self.has_whole_looks and len(x):
            corners = np.concatenate([corners, np.column_stack([self.turned(x), y])])
        low, high = corners.min(axis=0), corners.max(axis=0)
        steps = np.arange(1, PLACES + 1)[:, np.newaxis] / _PLASTIC ** np.array([1.0, 2.0])
        at = (0.5 + steps) % 1.0
        east = low[0] + at[:, 0] * (high[0] - low[0])
        if self.on_sphere:
            # Equal areas, not equal degrees.
            ends = np.sin(np.radians([low[1], high[1]]))
            north = np.degrees(np.arcsin(ends[0] + at[:, 1] * (ends[1] - ends[0])))
        else:
            north = low[1] + at[:, 1] * (high[1] - low[1])
        rows, counts = np.unique(self.seen(east, north), axis=0, return_counts=True)
        found: dict[tuple[int, ...], float] = {}
        for row, count in zip(rows, counts, strict=True):
            experts = self.experts_at(row)
            if experts:
                found[experts] = found.get(experts, 0.0) + float(count)
        return found


def cut_into_zones(items: Items) -> Zones:
    """The zones of all images; one that was seen as a whole is a single zone.

    Whoever marked something at a place saw it. Zones that more experts saw come first.
    """
    looks, footprints = items.looks, items.footprints or {}
    zone_of = np.zeros(len(items), np.int64)
    images, shares, pairs, count = [], [], [], 0
    order = np.argsort(looks.image, kind="stable")
    ends = np.searchsorted(looks.image[order], np.arange(len(looks.images) + 1))
    for v, name in enumerate(looks.images):
        rows = order[ends[v] : ends[v + 1]]
        experts = looks.experts_of(v).tolist()
        looked = {f: footprints.get((name, items.experts[f])) for f in experts}
        if any(part is not None for part in looked.values()):
            areas, held = _zones_on(items, rows, _SeenImage(looked, on_sphere=items.site.on_sphere))
        else:
            areas, held = {tuple(experts): 1.0}, [tuple(experts)] * len(rows)
        zones = sorted(areas, key=lambda who: (-len(who), who))
        number = {who: count + at for at, who in enumerate(zones)}
        zone_of[rows] = [number[who] for who in held]
        images += [v] * len(zones)
        shares += [areas[who] / sum(areas.values()) for who in zones]
        pairs += [(number[who], f) for who in zones for f in who]
        count += len(zones)
    return Zones(zone_of, np.array(images), np.array(shares), np.array(pairs).reshape(-1, 2))


def _zones_on(
    items: Items, rows: NDArray[np.int64], ground: _SeenImage
) -> tuple[dict[tuple[int, ...], float], list[tuple[int, ...]]]:
    """The zones of one image by the experts who saw them, with areas; and those of its items."""
    x, y = items.x[rows], items.y[rows]
    areas, held = ground.measure(x, y), []
    for seen, f in zip(ground.seen(x, y), items.families[rows].tolist(), strict=True):
        experts = tuple(sorted({*ground.experts_at(seen), f}))
        # Too small for the places by which areas are measured, or outside of the own footprint.
        areas.setdefault(experts, 0.5)
        held.append(experts)
    return areas, held
