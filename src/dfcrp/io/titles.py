"""The titles under which tables are written, which tell the units when read again."""

from __future__ import annotations

from typing import Any

from dfcrp.io.records import Records

TITLES = {
    "px": ("x", "y", "diameter"),
    "m": ("x_m", "y_m", "diameter_m"),
    "km": ("x_km", "y_km", "diameter_km"),
    "deg": ("lon", "lat", "diameter_km"),
}


def titled_columns(records: Records) -> dict[str, list[Any]]:
    """All columns of a table to be written: names first, then the circle, then the rest."""
    given = records.columns
    columns: dict[str, list[Any]] = {
        role: list(given[role]) for role in ("id", "expert", "person") if role in given
    }
    for role, title in zip(("x", "y", "diameter"), TITLES[records.site.units], strict=True):
        columns[title] = given[role].tolist()
    if "image" in given:
        columns["image"] = list(given["image"])
    if "truth" in given:
        columns["truth"] = [int(value) for value in given["truth"]]
    for title, values in records.typed_extra().items():
        columns.setdefault(title, values)
    return columns
