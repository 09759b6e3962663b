"""The formats that items are read from and written to, and which of them a file has."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dfcrp.errors import InputError
from dfcrp.io.drawings import DRAWN, refuse_unknown_json
from dfcrp.io.formats.coco import looks_like_coco, read_coco, write_coco
from dfcrp.io.formats.craterstats import (
    looks_like_craterstats,
    read_craterstats,
    write_diam,
    write_scc,
)
from dfcrp.io.formats.cvat import looks_like_cvat, read_cvat
from dfcrp.io.formats.delimited import read_delimited, write_delimited
from dfcrp.io.formats.geojson import looks_like_geojson, read_geojson, write_geojson
from dfcrp.io.formats.geopackage import write_geopackage
from dfcrp.io.formats.label_studio import looks_like_label_studio, read_label_studio
from dfcrp.io.formats.labelme import looks_like_labelme, read_labelme
from dfcrp.io.formats.parquet import looks_like_parquet, read_parquet, write_parquet
from dfcrp.io.formats.particles import looks_like_particles, read_particles
from dfcrp.io.formats.shapefiles import looks_like_shapefile, read_shapefile, write_shapefile
from dfcrp.io.formats.sliderunner import looks_like_sqlite, read_sliderunner
from dfcrp.io.formats.via import (
    looks_like_via,
    looks_like_via_json,
    read_via,
    read_via_json,
)
from dfcrp.io.formats.yolo import looks_like_yolo, read_yolo
from dfcrp.io.formats.zooniverse import looks_like_zooniverse, read_zooniverse
from dfcrp.io.tables import RawTable, ReadOptions, ReadTable

YOLO = "YOLO"
"""What a text file among others of YOLO is, whatever its rows are."""

Writer = Callable[[ReadTable, Path], dict[Path, bytes]]
"""Gives the contents of each file to be written, so that nothing is written by halves."""


@dataclass(frozen=True)
class Format:
    """A file format: how to recognise it, and how to read it into a table."""

    name: str
    recognises: Callable[[Path, bytes], bool]
    """Whether a file with this path and these contents has the format."""
    read: Callable[[str, Path, bytes, ReadOptions], RawTable]
    """Given the file's name for messages, its path (for side files) and its contents."""
    kinds: tuple[str, ...] | None = DRAWN
    """The kinds of items it can hold; None: all."""
    writers: tuple[tuple[str, Writer], ...] = ()
    """Endings of file names, and what writes such a file."""


FORMATS: tuple[Format, ...] = (
    # The first format that recognises a file reads it: those with a mark in their first bytes,
    # then those known by keys or a header. Delimited text has no mark of its own, so it takes
    # what no other format claims, says what is wrong with it, and stays last.
    Format(
        "Parquet",
        looks_like_parquet,
        lambda name, path, data, options: read_parquet(name, data),
        kinds=None,
        writers=((".parquet", write_parquet),),
    ),
    Format(
        "shapefile",
        looks_like_shapefile,
        read_shapefile,
        kinds=("circles", "points"),
        writers=((".shp", write_shapefile),),
    ),
    Format(
        "SlideRunner",
        lambda path, data: looks_like_sqlite(data),
        lambda name, path, data, options: read_sliderunner(name, data, options),
    ),
    Format(
        "CVAT XML",
        lambda path, data: looks_like_cvat(data),
        lambda name, path, data, options: read_cvat(name, data, options),
    ),
    Format(
        "Zooniverse",
        lambda path, data: looks_like_zooniverse(data),
        lambda name, path, data, options: read_zooniverse(name, data, options),
    ),
    Format(
        "VIA CSV",
        lambda path, data: looks_like_via(data),
        lambda name, path, data, options: read_via(name, data, options),
    ),
    Format(
        "VIA JSON",
        lambda path, data: looks_like_via_json(data),
        lambda name, path, data, options: read_via_json(name, data, options),
    ),
    Format(
        "GeoJSON",
        looks_like_geojson,
        lambda name, path, data, options: read_geojson(name, data, options),
        writers=((".geojson", write_geojson), (".json", write_geojson)),
    ),
    Format(
        "LabelMe",
        lambda path, data: looks_like_labelme(data),
        lambda name, path, data, options: read_labelme(name, data, options),
    ),
    Format(
        "Label Studio",
        lambda path, data: looks_like_label_studio(data),
        lambda name, path, data, options: read_label_studio(name, data, options),
    ),
    Format(
        "COCO",
        lambda path, data: looks_like_coco(data),
        lambda name, path, data, options: read_coco(name, data, options),
        writers=((".coco.json", write_coco),),
    ),
    Format(
        "other JSON",
        lambda path, data: path.suffix.lower() == ".json",
        lambda name, path, data, options: refuse_unknown_json(name, data),
        kinds=None,
    ),
    Format(YOLO, looks_like_yolo, read_yolo, kinds=("boxes", "points", "ellipses")),
    Format("particle boxes", looks_like_particles, read_particles, kinds=("boxes", "points")),
    Format(
        "CraterStats",
        looks_like_craterstats,
        lambda name, path, data, options: read_craterstats(name, data),
        kinds=("circles", "points"),
        writers=((".diam", write_diam), (".scc", write_scc)),
    ),
    Format(
        "delimited text",
        lambda path, data: True,
        lambda name, path, data, options: read_delimited(name, data),
        kinds=None,
        writers=((".csv", write_delimited), (".tsv", write_delimited), (".txt", write_delimited)),
    ),
)

WRITERS: dict[str, Writer] = {
    **{ending: writer for form in FORMATS for ending, writer in form.writers},
    ".gpkg": write_geopackage,
}

FOLDER_ENDINGS = (
    *(".json", ".geojson", ".xml", ".csv", ".parquet", ".diam", ".scc", ".shp"),
    *(".box", ".star", ".cbox"),
)
"""Files that are read where a folder is given; images and notes may lie beside them."""


def read_raw(name: str, path: Path, data: bytes, options: ReadOptions) -> RawTable:
    """Read a file's contents with the reader of its format."""
    form = next(
        form
        for form in FORMATS
        if (form.name == YOLO if options.yolo else form.recognises(path, data))
    )
    if form.kinds is not None and options.kind not in form.kinds:
        raise InputError(
            f"{name}: {form.name} files hold {', '.join(form.kinds)}, not {options.kind}; give a "
            "table, as CSV or Parquet, or say what is wanted with --likelihood"
        )
    return form.read(name, path, data, options)


def writer_for(path: Path) -> Writer:
    """Find what writes a file of this name; the longest ending counts."""
    name = path.name.lower()
    for ending in sorted(WRITERS, key=len, reverse=True):
        if name.endswith(ending):
            return WRITERS[ending]
    raise InputError(
        f"{path}: cannot tell the format from {path.suffix or 'a name without ending'!r}; "
        f"end the name in {', '.join(WRITERS)}"
    )
