"""From one format to another: reading, what may be changed on the way, and writing."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from dfcrp.errors import InputError, SettingsError
from dfcrp.files import opened, why
from dfcrp.io.georeference import moved_to, scaled_spreads
from dfcrp.io.reading import RUN_FILES, join, known_names, read_paths
from dfcrp.io.registry import PathLike, writer_for
from dfcrp.io.shapes import offsets
from dfcrp.io.tables import COLUMNS, LENGTHS, ReadOptions, ReadTable, write_files
from dfcrp.items.checks import Cells, to_names, to_numbers
from dfcrp.items.columns import ColumnChoice
from dfcrp.items.site import UNITS, Site
from dfcrp.items.source_tables import LARGEST_TABLES, SOURCE_TABLES, SourceTables
from dfcrp.likelihoods.registry import is_own
from dfcrp.settings.config import LARGEST_CONFIG, parse_config
from dfcrp.values import Array

CATALOGUE = "catalogue.csv"
#: What is in doubt of an object, the first that there is; and between which probabilities it is.
DOUBTED = ("p_real", "p_consensus")
UNLIKELY, LIKELY = 0.05, 0.95
#: Bytes that are read of a run's record.
_LARGEST_RECORD = 256 << 20


def read_table(
    paths: PathLike | Sequence[PathLike],
    kind: str | None = None,
    *,
    columns: ColumnChoice = None,
    options: ReadOptions | None = None,
) -> ReadTable:
    """Read items from files of any format, or the catalogue of a run folder.

    Unlike ``read_items`` this needs no expert, and keeps columns that it does not know.

    Parameters
    ----------
    paths : path or sequence of paths
        Files, folders of files, or a run folder.
    kind : str, optional
        What is wanted; left out, what the run folder's catalogue is of, else circles.
    columns : dict or str, optional
        As in ``read_items``.
    options : ReadOptions, optional
        How to read what is no circle, units and body.

    Returns
    -------
    ReadTable
    """
    options = options or ReadOptions()
    if options.units is not None and options.units not in UNITS:
        raise SettingsError(f"units is {options.units!r}; it must be one of {', '.join(UNITS)}")
    given = [paths] if isinstance(paths, (str, os.PathLike)) else list(paths)
    options = replace(options, kind=kind or _kind_of_runs(given))
    parts = read_paths([_or_catalogue(Path(path)) for path in given], columns, options)
    joined = join(parts, nameless=True, image_names=options.image_names)
    table = _with_site_of_run(joined, given)
    if options.body_radius_km is not None:
        site = replace(table.site, body_radius_km=options.body_radius_km)
        table = replace(table, site=site)
    return table


def write_table(
    table: ReadTable,
    path: PathLike,
    *,
    to: str | None = None,
    outlines: bool = False,
    overwrite: bool = False,
) -> list[Path]:
    """Write items in the format that the name's ending tells.

    Parameters
    ----------
    table : ReadTable
        What ``read_table`` gave.
    path : path
        Where to; see ``docs/formats.md`` for the endings.
    to : str, optional
        The format, where the ending does not tell it: "coco", "yolo", "cvat", "label-studio",
        "labelme", "via", "via-csv" or "zooniverse". What came in one of these goes out in it if
        the ending fits.
    outlines : bool
        GeoJSON: polygons instead of points; a GeoPackage has them in any case.
    overwrite : bool
        Whether a file of that name may be replaced.

    Returns
    -------
    list of Path
        The files written.
    """
    from dfcrp.io.formats.geojson import write_geojson
    from dfcrp.io.formats.geopackage import write_geopackage

    target = Path(path)
    writer = writer_for(target, to, table.sources.format)
    # A GeoPackage has them in any case.
    if outlines and writer is not write_geopackage:
        if writer is not write_geojson:
            raise SettingsError("--outlines is for GeoJSON and GeoPackages; leave it out")
        return write_files(write_geojson(table, target, outlines=True), overwrite=overwrite)
    files = writer(table, target)
    _make_folders(target, list(files), overwrite=overwrite)
    return write_files(files, overwrite=overwrite)


def _make_folders(target: Path, files: Sequence[Path], *, overwrite: bool) -> None:
    """Where a format is a folder of files: the folder, new or empty unless it may be replaced."""
    folders = sorted({file.parent for file in files if target in file.parents})
    try:
        if folders and not overwrite and target.exists() and any(target.iterdir()):
            raise InputError(
                f"{target}: already exists and is not empty; choose another name, or give "
                "--overwrite, which leaves other files there"
            )
        for folder in folders:
            folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{target}: cannot be written: {why(error)}") from None


def only(table: ReadTable, title: str, names: Sequence[str]) -> ReadTable:
    """Keep the items of these experts, images or labels; ``title`` says which of these.

    What drawing tools call labels are categories.
    """
    if not names:
        return table
    values = _column(table, title)
    if values is None and title == "label":
        values = _column(table, "category")
    if values is None:
        raise InputError(f"there is no column {title} to choose by; name it with --columns")
    found = to_names(values)
    known_names(title, names, sorted(set(found) - {""}))
    return table.select(np.isin(np.array(found), list(names)))


def agreed(table: ReadTable, least: float) -> ReadTable:
    """Keep the objects of our catalogue with at least this probability of a consensus."""
    return _at_least(table, "p_consensus", "--p-consensus", least)


def chosen(
    table: ReadTable,
    *,
    p_real: float | None = None,
    min_experts: int | None = None,
    disagreements: bool = False,
) -> ReadTable:
    """Keep objects of our catalogue: by what is said of them, or what experts disagree on."""
    if p_real is not None:
        table = _at_least(table, "p_real", "--p-real", p_real)
    if min_experts is not None:
        if min_experts < 1:
            raise SettingsError(f"--min-experts is {min_experts}; it must be 1 or more")
        table = _at_least(table, "n_experts", "--min-experts", float(min_experts))
    return _doubtful(table) if disagreements else table


def _at_least(table: ReadTable, title: str, option: str, least: float) -> ReadTable:
    if title != "n_experts" and not 0 <= least <= 1:
        raise SettingsError(f"{option} is {least:g}; it must be from 0 to 1")
    values = _column(table, title)
    if values is None:
        also = "; only the detection prior gives it" if title == "p_real" else ""
        raise InputError(f"{option} is for catalogues of dfcrp: there is no column {title}{also}")
    found = table.select(to_numbers(values) >= least)
    if not len(found):
        raise InputError(f"no object has {title} of {least:g} or more; lower {option}")
    return found


def _doubtful(table: ReadTable) -> ReadTable:
    """Objects that may be real or not, or of another category."""
    doubtful = np.zeros(len(table), bool)
    known = [title for title in DOUBTED if _column(table, title) is not None]
    # Under a prior without false marks, a consensus is what experts disagree on.
    asked = known[:1] + [title for title in ("p_category",) if _column(table, title) is not None]
    if not known:
        raise InputError("--disagreements is for catalogues of dfcrp: there is no p_consensus")
    for title in asked:
        values = to_numbers(_column(table, title) or [])
        low = UNLIKELY if title in DOUBTED else 0.0
        doubtful |= (values > low) & (values < LIKELY)
    if not doubtful.any():
        raise InputError(
            f"no object is in doubt: {' and '.join(asked)} of each are certain to {LIKELY:.0%}"
        )
    return table.select(doubtful)


def from_run_or_files(
    table: ReadTable, ids_from: str | None, size: tuple[int, int] | None
) -> ReadTable:
    """With ids of one of the files, and a size for images of which no file says it."""
    sources = table.sources
    if ids_from is not None:
        sources = sources.of_file(ids_from)
    if size is not None:
        sources = sources.with_size(size, dict.fromkeys(to_names(table.about.get("image", ()))))
    return replace(table, sources=sources)


def said_of_ids(table: ReadTable) -> list[str]:
    """What to say where the files of a run give one image or category different ids."""
    return table.sources.disagreements("id")


def _column(table: ReadTable, title: str) -> Cells | None:
    """A column by its title, whichever part it is in; of records every column is a field."""
    for part in (table.about, table.extra, table.columns):
        if title in part:
            return part[title]
    return None


def scaled(table: ReadTable, metres_per_pixel: float) -> ReadTable:
    """Turn pixels into km."""
    if not 0 < metres_per_pixel < math.inf:
        raise SettingsError(f"metres_per_pixel is {metres_per_pixel!r}; it must be positive")
    _refuse_placeless(table, "--metres-per-pixel")
    if table.site.units != "px":
        raise SettingsError(
            f"--metres-per-pixel is for data in pixels; these are in {table.site.units}"
        )
    factor = metres_per_pixel / 1000
    columns = {
        role: values * factor if role in LENGTHS else values
        for role, values in table.columns.items()
    }
    site = replace(table.site, units="km", metres_per_pixel=None)
    return replace(table, columns=columns, extra=scaled_spreads(table, factor), site=site)


def placed(table: ReadTable, longitude: float, latitude: float, *, y_down: bool) -> ReadTable:
    """Put a plane in km or m onto the body, its origin at a longitude and latitude.

    Distances and directions from the origin are kept (azimuthal equidistant); x is eastward.
    """
    _refuse_placeless(table, "--origin")
    if table.kind not in ("circles", "points"):
        raise SettingsError(f"--origin is for circles and points; these are {table.kind}")
    if table.site.units == "px" and table.site.metres_per_pixel is not None:
        table = scaled(table, table.site.metres_per_pixel)
    site = table.site
    if site.units not in ("km", "m"):
        raise SettingsError(
            f"--origin is for data in a plane with a known scale; these are in {site.units}"
            + ("; give --metres-per-pixel too" if site.units == "px" else "")
        )
    if site.body_radius_km is None:
        raise SettingsError("--origin needs the body too, as in --body moon")
    if not (abs(longitude) <= 360 and abs(latitude) <= 90):
        raise SettingsError(
            f"--origin {longitude:g},{latitude:g} is not a longitude and a latitude"
        )
    km = 1.0 if site.units == "km" else 1e-3
    table = replace(
        table,
        columns={
            role: values * km if role in LENGTHS else values
            for role, values in table.columns.items()
        },
        extra=scaled_spreads(table, km),
    )
    up, radius = -1.0 if y_down else 1.0, site.body_radius_km

    def change(x: Array, y: Array) -> tuple[Array, Array]:
        distance = np.hypot(x, y) / radius
        places = np.array(offsets(longitude, latitude, np.arctan2(up * y, x), distance))
        return places[:, 0], places[:, 1]

    if np.hypot(table.columns["x"], table.columns["y"]).max() / radius > math.pi:
        raise InputError("the data reach beyond the far side of the body; check the scale")
    return replace(moved_to(table, change), site=replace(site, units="deg"))


def _refuse_placeless(table: ReadTable, option: str) -> None:
    if table.kind not in COLUMNS:
        raise SettingsError(f"{option} is for items with a place; {table.kind} have none")


def with_area(table: ReadTable, area_km2: float) -> ReadTable:
    """Say how large the ground is that was searched."""
    if not 0 < area_km2 < math.inf:
        raise SettingsError(f"area_km2 is {area_km2!r}; it must be positive")
    return replace(table, site=replace(table.site, area_km2=area_km2))


def _kind_of_runs(paths: Sequence[PathLike]) -> str:
    """What the first run folder among the paths is of; circles where there is none."""
    runs = [Path(path) for path in paths if is_run(Path(path))]
    if not runs:
        return "circles"
    name = "config.toml"
    settings = runs[0] / name
    found = parse_config(_read(runs[0], name, LARGEST_CONFIG), str(settings)).get("run", {})
    if not isinstance(found, dict):
        raise InputError(f"{settings}: damaged, so its kind is not known; give it (--likelihood)")
    kind = str(found.get("likelihood", "circles"))
    if is_own(kind):
        raise InputError(
            f"{settings}: the run is of {kind[:200]}, which is code, and dfcrp runs no code "
            "because a file names it; say what its catalogue is to be read as, as in --likelihood "
            "diagonal"
        )
    return kind


def _with_site_of_run(table: ReadTable, paths: Sequence[PathLike]) -> ReadTable:
    """A catalogue is measured in what its run was: units, scale, area and body are kept.

    So are ids, names and sizes that the run's files have of images and categories.
    """
    if len(paths) != 1 or not is_run(Path(paths[0])):
        return table
    sources = _sources_of_run(Path(paths[0]))
    table = replace(table, sources=sources, shares=sources.shares)
    return table if table.site.units != "px" else replace(table, site=_site_of_run(Path(paths[0])))


def _sources_of_run(folder: Path) -> SourceTables:
    if not (folder / SOURCE_TABLES).exists():
        return SourceTables()
    try:
        return SourceTables.read(_read(folder, SOURCE_TABLES, LARGEST_TABLES))
    except ValueError as error:
        raise InputError(
            f"{folder / SOURCE_TABLES}: damaged, so ids of images are not known: {error}; remove "
            "it to write new ones"
        ) from None


def _site_of_run(folder: Path) -> Site:
    record = folder / "provenance.json"
    try:
        if not record.exists():
            return Site()
        site = json.loads(_read(folder, record.name, _LARGEST_RECORD)).get("site", {})
        return Site.from_fields(site)
    except RecursionError:
        reason = "brackets are nested too deeply"
    except (ValueError, TypeError, KeyError, AttributeError) as error:
        reason = str(error)
    raise InputError(f"{record}: damaged, so the units are not known: {reason}")


def _read(folder: Path, name: str, most: int) -> bytes:
    """A file of a run folder, which may be somebody else's: no link, no pipe, not too large."""
    try:
        with opened(folder) as place:
            return place.read(name, most)
    except OSError as error:
        raise InputError(f"{folder / name}: cannot be read: {why(error)}") from None


def _or_catalogue(path: Path) -> Path:
    """The catalogue of a run folder, or the path itself."""
    if not is_run(path):
        return path
    if not (path / CATALOGUE).is_file():
        raise InputError(f"{path}: the run has no {CATALOGUE}; make it with `dfcrp report {path}`")
    return path / CATALOGUE


def is_run(path: Path) -> bool:
    """Whether it is a run folder."""
    return all((path / file).is_file() for file in RUN_FILES)
