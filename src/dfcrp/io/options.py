"""What a reader may be told about a file besides its columns."""

from __future__ import annotations

from dataclasses import dataclass

from dfcrp.errors import SettingsError


@dataclass(frozen=True)
class ReadOptions:
    """How to read what is no circle by itself."""

    boxes: bool = False
    """Read a box as the ellipse that fills it; otherwise boxes are left out, with a warning."""
    point_diameter: float | None = None
    """The diameter of points that have no size; otherwise they are left out, with a warning."""
    body_radius_km: float | None = None
    """The radius of the body, where circles in degrees are to be measured in km."""
    units: str | None = None
    """What coordinates are measured in, where the file does not tell or tells wrong."""

    def __post_init__(self) -> None:
        for name in ("point_diameter", "body_radius_km"):
            value = getattr(self, name)
            if value is not None and not 0 < value < float("inf"):
                raise SettingsError(f"{name} is {value!r}; it must be a positive number")
