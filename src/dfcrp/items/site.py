"""Where items come from and where they lie: files, units, the body, the ground searched."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dfcrp.errors import InputError


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
    def from_fields(cls, fields: Mapping[str, Any]) -> Site:
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
