"""Where items come from and where they lie: files, units, the body, the ground searched."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from dfcrp.errors import InputError, SettingsError, did_you_mean
from dfcrp.items.checks import quoted
from dfcrp.values import Json


@dataclass(frozen=True)
class Source:
    """A file that items came from."""

    file: str
    sha256: str
    rows: int
    """Data rows in the file."""
    kept: int
    """Rows left after the filters on reading."""
    left_out: int = 0
    """Entries of the file that are of another kind, of which a warning told."""
    columns: tuple[tuple[str, str], ...] = ()
    """What was read as what: a role, and the name of its column."""
    unused: tuple[str, ...] = ()
    """Columns that were left aside, the first ``MOST_UNUSED`` of them."""
    notes: tuple[str, ...] = ()
    """What was left out, joined, renamed or repaired, in words."""


#: What a note begins with of which the user was warned as well.
DOUBTFUL = "doubtful: "
#: A file may have any number of columns that are not used; so many are noted by name.
MOST_UNUSED = 100


def column_words(sources: Sequence[Source]) -> list[str]:
    """In words, for each way in which the columns of files were read, what was read as what."""
    ways: dict[tuple[tuple[tuple[str, str], ...], tuple[str, ...]], list[Source]] = {}
    for source in sources:
        if source.columns:
            ways.setdefault((source.columns, source.unused), []).append(source)
    words = []
    for (columns, unused), files in ways.items():
        of = f" of {files[0].file}" if len(ways) > 1 else ""
        more = f" and {len(files) - 1:,} more" if len(ways) > 1 and len(files) > 1 else ""
        read = ", ".join(
            role if role == name else f"{role} = {_legible(name)}" for role, name in columns
        )
        text = f"Columns{of}{more}: {read}"
        if unused:
            names = ", ".join(map(_legible, unused[:20])) + (", ..." if len(unused) > 20 else "")
            text += f"; not used: {names}"
        words.append(text + ".")
    return words[:5] + ([f"... and {len(words) - 5:,} other ways."] if len(words) > 5 else [])


def plain_notes(notes: Sequence[str]) -> list[str]:
    """What was joined, renamed or repaired, as sentences; not what the user was warned of."""
    return [f"Note: {note}." for note in notes if not note.startswith(DOUBTFUL)]


def _legible(name: str) -> str:
    """A column's name for a line of text: short, and without what a terminal would obey."""
    short = name if len(name) <= 60 else name[:57] + "..."
    return short if short.isprintable() else repr(short)


@dataclass(frozen=True)
class Ring:
    """A closed line around ground that was searched, or around a hole in it."""

    points: tuple[tuple[float, float], ...]
    hole: bool = False


UNITS = ("px", "m", "km", "deg")


@dataclass(frozen=True)
class Site:
    """Where items lie: what they are measured in, on which body, and the ground searched."""

    units: str = "px"
    """"px", "m" or "km" in a plane, for diameters too; also "px" where nothing is known. With
    "deg" x is the longitude, y the latitude, and diameters are in km."""
    body_radius_km: float | None = None
    area_km2: float | None = None
    boundary: tuple[Ring, ...] = ()
    metres_per_pixel: float | None = None
    """How much ground a pixel covers of the image that was marked."""
    crs: str | None = None
    """The coordinate reference system of x and y where it was told: a code or WKT, or "none"."""

    @property
    def on_sphere(self) -> bool:
        """Whether x and y are longitude and latitude."""
        return self.units == "deg"

    @property
    def sphere_radius_km(self) -> float:
        """The radius of the sphere that longitude and latitude are on."""
        if self.body_radius_km is None:
            raise InputError(
                "the coordinates are longitude and latitude; distances need the radius of the "
                "body: give it with --body, as in --body moon"
            )
        return self.body_radius_km

    @classmethod
    def from_fields(cls, fields: Json) -> Site:
        """What ``dataclasses.asdict`` made of a site, also after a journey through JSON."""
        rings = [
            Ring(tuple((x, y) for x, y in ring["points"]), ring["hole"])
            for ring in fields.get("boundary", ())
        ]
        return cls(**{**fields, "boundary": tuple(rings)})

    @property
    def km_per_diameter(self) -> float | None:
        """What one unit of diameter is in km, if that is known."""
        if self.units == "px":
            return None if self.metres_per_pixel is None else self.metres_per_pixel / 1000.0
        return 1e-3 if self.units == "m" else 1.0


BODIES = {
    "moon": 1737.4,
    "mars": 3396.19,
    "mercury": 2439.4,
    "ceres": 469.7,
    "earth": 6371.0088,
}
"""Radii in km."""


def body_radius(body: str) -> float:
    """Give the radius in km of a body, by its name or as a number."""
    if body.casefold() in BODIES:
        return BODIES[body.casefold()]
    try:
        radius = float(body)
    except ValueError:
        raise SettingsError(
            f"there is no body {quoted(body)}{did_you_mean(body, BODIES)}; "
            f"there are {', '.join(BODIES)}, or give a radius in km"
        ) from None
    if not 0 < radius < math.inf:
        raise SettingsError(f"the body's radius is {body}; it must be a positive number of km")
    return radius
