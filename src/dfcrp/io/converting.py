"""From one format to another: reading, what may be changed on the way, and writing."""

from __future__ import annotations

import json
import math
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp.errors import DfcrpWarning, InputError, SettingsError
from dfcrp.io.columns import ColumnChoice, did_you_mean, listed
from dfcrp.io.formats.geojson import write_geojson
from dfcrp.io.options import ReadOptions
from dfcrp.io.parts import RUN_FILES, PathLike, join, read_parts
from dfcrp.io.records import Records
from dfcrp.io.registry import writer_for
from dfcrp.io.sphere import offsets
from dfcrp.items.checks import Cells, shown, to_names, to_numbers
from dfcrp.items.site import UNITS, Site

CATALOGUE = "catalogue.csv"
_SPREADS = tuple(f"{role}_{end}" for role in ("x", "y", "diameter") for end in ("sd", "lo", "hi"))


def read_records(
    paths: PathLike | Sequence[PathLike],
    *,
    columns: ColumnChoice = None,
    options: ReadOptions | None = None,
) -> Records:
    """Read circles from files of any format, or the catalogue of a run folder.

    Unlike ``read_markings`` this needs no expert, and keeps columns that it does not know.
    """
    options = options or ReadOptions()
    if options.units is not None and options.units not in UNITS:
        raise SettingsError(f"units is {options.units!r}; it must be one of {', '.join(UNITS)}")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    parts = read_parts([_or_catalogue(Path(path)) for path in given], columns, options)
    records = _with_site_of_run(join(parts, nameless=True), given)
    if options.body_radius_km is not None:
        site = replace(records.site, body_radius_km=options.body_radius_km)
        records = replace(records, site=site)
    return records


def write_records(
    records: Records, path: PathLike, *, outlines: bool = False, overwrite: bool = False
) -> list[Path]:
    """Write circles in the format that the name's ending tells; give the files written.

    With ``outlines`` GeoJSON has polygons instead of points.
    """
    target = Path(path)
    writer = writer_for(target)
    if outlines:
        if writer is not write_geojson:
            raise SettingsError("--outlines is for GeoJSON; leave it out")
        files = write_geojson(records, target, outlines=True)
    else:
        files = writer(records, target)
    for file in files:
        if file.exists() and not overwrite:
            raise InputError(f"{file}: already exists; choose another name, or give --overwrite")
    for file, content in files.items():
        _replace_file(file, content)
    return list(files)


def only(records: Records, title: str, names: Sequence[str]) -> Records:
    """Keep the circles of these experts, images or labels; ``title`` says which of these."""
    if not names:
        return records
    values = records.columns.get(title, records.extra.get(title))
    if values is None:
        raise InputError(f"there is no column {title} to choose by; name it with --columns")
    found = to_names(values)
    known = sorted(set(found) - {""})
    for name in names:
        if name not in known:
            raise InputError(
                f"no {title} is called {shown(name)}{did_you_mean(name, known)}; "
                f"there are {listed(known)}"
            )
    return records.select(np.isin(np.array(found), list(names)))


def agreed(records: Records, least: float) -> Records:
    """Keep the objects of our catalogue with at least this probability of a consensus."""
    if not 0 <= least <= 1:
        raise SettingsError(f"--p-consensus is {least:g}; it must be from 0 to 1")
    if "p_consensus" not in records.extra:
        raise InputError("--p-consensus is for catalogues of dfcrp: there is no column p_consensus")
    chosen = records.select(to_numbers(records.extra["p_consensus"]) >= least)
    if not len(chosen):
        raise InputError(f"no object has a p_consensus of {least:g} or more; lower --p-consensus")
    return chosen


def scaled(records: Records, metres_per_pixel: float) -> Records:
    """Turn pixels into km."""
    if not 0 < metres_per_pixel < math.inf:
        raise SettingsError(f"metres_per_pixel is {metres_per_pixel!r}; it must be positive")
    if records.site.units != "px":
        raise SettingsError(
            f"--metres-per-pixel is for data in pixels; these are in {records.site.units}"
        )
    factor = metres_per_pixel / 1000
    columns = dict(records.columns)
    for role in ("x", "y", "diameter"):
        columns[role] = columns[role] * factor
    site = replace(records.site, units="km", metres_per_pixel=None)
    return replace(records, columns=columns, extra=_without_spreads(records), site=site)


def placed(records: Records, longitude: float, latitude: float, *, y_down: bool) -> Records:
    """Put a plane in km or m onto the body, its origin at a longitude and latitude.

    Distances and directions from the origin are kept (azimuthal equidistant); x is eastward.
    """
    if records.site.units == "px" and records.site.metres_per_pixel is not None:
        records = scaled(records, records.site.metres_per_pixel)
    site = records.site
    if site.units not in ("km", "m"):
        raise SettingsError(
            f"--origin is for data in a plane with a known scale; these are in {site.units}"
            + ("; give --metres-per-pixel too" if site.units == "px" else "")
        )
    if site.body_radius_km is None:
        raise SettingsError("--origin needs the body too, as in --body moon")
    if not (abs(longitude) <= 360 and abs(latitude) <= 90):
        raise SettingsError(f"--origin {longitude:g},{latitude:g} is no longitude and latitude")
    km = 1.0 if site.units == "km" else 1e-3
    x, y = records.columns["x"] * km, records.columns["y"] * (-km if y_down else km)
    distance = np.hypot(x, y) / site.body_radius_km
    if distance.max() > math.pi:
        raise InputError("the data reach beyond the far side of the body; check the scale")
    places = np.array(offsets(longitude, latitude, np.arctan2(y, x), distance))
    columns = {**records.columns, "x": places[:, 0], "y": places[:, 1]}
    columns["diameter"] = records.columns["diameter"] * km
    site = replace(site, units="deg")
    return replace(records, columns=columns, extra=_without_spreads(records), site=site)


def _without_spreads(records: Records) -> dict[str, Cells]:
    """The other columns but those of our catalogue that are in the units of the coordinates."""
    dropped = [title for title in records.extra if title in _SPREADS]
    if dropped:
        warnings.warn(
            f"the columns {', '.join(dropped)} are in the old units and are left out",
            DfcrpWarning,
            stacklevel=4,
        )
    return {title: cells for title, cells in records.extra.items() if title not in dropped}


def with_area(records: Records, area_km2: float) -> Records:
    """Say how large the ground is that was searched."""
    if not 0 < area_km2 < math.inf:
        raise SettingsError(f"area_km2 is {area_km2!r}; it must be positive")
    return replace(records, site=replace(records.site, area_km2=area_km2))


def _with_site_of_run(records: Records, paths: Sequence[PathLike]) -> Records:
    """A catalogue is measured in what its run was: units, scale, area and body are kept."""
    if len(paths) != 1 or not _is_run(Path(paths[0])) or records.site.units != "px":
        return records
    return replace(records, site=_site_of_run(Path(paths[0])))


def _site_of_run(folder: Path) -> Site:
    record = folder / "provenance.json"
    try:
        site = json.loads(record.read_text(encoding="utf-8")).get("site", {})
        return Site.from_fields(site)
    except FileNotFoundError:
        return Site()
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise InputError(f"{record}: damaged, so the units are not known: {error}") from None


def _or_catalogue(path: Path) -> Path:
    """The catalogue of a run folder, or the path itself."""
    if not _is_run(path):
        return path
    if not (path / CATALOGUE).is_file():
        raise InputError(f"{path}: the run has no {CATALOGUE}; make it with `dfcrp report {path}`")
    return path / CATALOGUE


def _is_run(path: Path) -> bool:
    return all((path / file).is_file() for file in RUN_FILES)


def _replace_file(path: Path, content: bytes) -> None:
    part = path.with_name(path.name + ".part")
    try:
        if path.exists() and not path.is_file():  # a device such as /dev/stdout
            path.write_bytes(content)
            return
        part.write_bytes(content)
        os.replace(part, path)
    except OSError as error:
        part.unlink(missing_ok=True)
        raise InputError(f"{path}: cannot be written: {error.strerror}") from None


def notes(records: Records, path: Path) -> list[str]:
    """What the target cannot hold, for the user to know."""
    said: list[str] = []
    if path.suffix.lower() in (".diam", ".scc"):
        dropped: list[Any] = [
            title
            for title in ("person", "image", "id", "truth", *records.extra)
            if title in records.columns or title in records.extra
        ]
        dropped = [title for title in dropped if title not in ("fraction", "topo_scale_factor")]
        if dropped:
            said.append(f"{path.suffix} has no place for {', '.join(dropped)}")
        if path.suffix.lower() == ".diam" and records.site.units != "deg":
            said.append("the places are not written, since .diam has them in degrees only")
    elif records.site.area_km2 is not None and path.suffix.lower() in (".csv", ".tsv", ".parquet"):
        said.append(f"{path.suffix} has no place for the area")
    return said
