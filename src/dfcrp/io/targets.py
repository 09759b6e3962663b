"""What a target format needs of the data, and how to ask for what is missing."""

from __future__ import annotations

from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.records import Records

KILOMETRES = {"km": 1.0, "m": 1e-3, "deg": 1.0}
"""Of one unit of diameter; pixels have no size of their own."""


def only_one_list(records: Records, path: Path) -> None:
    """Refuse to melt several experts' lists into one where the format cannot tell them apart."""
    experts = sorted(set(records.columns.get("expert", ())))
    if len(experts) > 1:
        raise InputError(
            f"{path}: {path.suffix} holds one list, but there are {len(experts)} experts; "
            f"choose one with --expert, as in --expert '{experts[0]}'"
        )


def area_of(records: Records, path: Path) -> float:
    """The area, or a request for it."""
    if records.site.area_km2 is None:
        raise InputError(
            f"{path}: {path.suffix} needs the area that was searched; give it with --area-km2"
        )
    return records.site.area_km2


def radius_of(records: Records, path: Path) -> float:
    """The radius of the body, or a request for it."""
    if records.site.body_radius_km is None:
        raise InputError(
            f"{path}: this needs the radius of the body; give it with --body, as in --body moon"
        )
    return records.site.body_radius_km


def in_degrees(records: Records, path: Path) -> None:
    """Insist on longitude and latitude."""
    if records.site.units != "deg":
        raise InputError(
            f"{path}: {path.suffix} needs longitude and latitude, the data are in "
            f"{records.site.units}; place them with --origin LON,LAT and --body, or, if they are "
            "degrees, say so with --units deg"
        )


def in_kilometres(records: Records, path: Path) -> list[float]:
    """The diameters in km."""
    factor = KILOMETRES.get(records.site.units)
    if factor is None:
        raise InputError(
            f"{path}: {path.suffix} has diameters in km, the data are in pixels; "
            "give their size with --metres-per-pixel"
        )
    return (records.columns["diameter"] * factor).tolist()
