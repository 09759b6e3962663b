"""GeoPackage, written through GDAL (the extra ``gis``), and a style for QGIS beside it."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from xml.sax.saxutils import quoteattr

import numpy as np

from dfcrp.errors import InputError
from dfcrp.io.formats.geojson import property_columns, rings_of
from dfcrp.io.georeference import demand_crs, library, written_crs
from dfcrp.io.tables import COLUMNS, ReadTable
from dfcrp.values import Array

LAYER = "objects"
#: Kinds that have an outline on a map in degrees, and in a plane.
OUTLINED = {True: ("circles", "boxes"), False: ("circles", "boxes", "ellipses")}


def write_geopackage(table: ReadTable, path: Path) -> dict[Path, bytes]:
    """One layer of outlines, or of points where a kind has none, and beside it ``.qml``."""
    if table.kind not in COLUMNS:
        raise InputError(
            f"{path}: a GeoPackage holds {', '.join(COLUMNS)}, and these are {table.kind}; "
            "end the name in .csv, .tsv or .parquet"
        )
    demand_crs(table, path)
    pyogrio, shapely = (library(name, "a GeoPackage") for name in ("pyogrio", "shapely"))
    outlined = table.kind in OUTLINED[table.site.units == "deg"]
    if outlined:
        shapes = shapely.polygons([shapely.linearrings(ring) for ring in rings_of(table, path)])
    else:
        shapes = shapely.points(np.column_stack([table.columns["x"], table.columns["y"]]))
    columns = property_columns(table)
    out = io.BytesIO()
    pyogrio.raw.write(
        out,
        shapely.to_wkb(shapes),
        [_typed(values) for values in columns.values()],
        list(columns),
        layer=LAYER,
        driver="GPKG",
        geometry_type="Polygon" if outlined else "Point",
        crs=written_crs(table.site),
        dataset_options={"VERSION": OLDEST},
    )
    return {path: out.getvalue(), **style_beside(path, columns, outlined=outlined)}


def _typed(values: Sequence[object]) -> Array:
    """Numbers as numbers, with NaN for what is missing; everything else as text."""
    present = [value for value in values if value is not None]
    whole = all(type(v) is int and abs(v) < 2**63 for v in values)
    if values and whole:
        return np.array(values, np.int64)
    if present and all(isinstance(v, (int, float)) for v in present):
        return np.array([np.nan if v is None else v for v in values], np.float64)
    return np.array([None if v is None else str(v) for v in values], object)


#: A version of the format that programs of the last years read without a warning.
OLDEST = "1.2"
#: What objects are coloured by, the first that there is, and what it is called.
PROBABILITIES = {"p_real": "probability of being real", "p_consensus": "probability of a consensus"}
#: Upper ends and colours, from unlikely to likely: all kinds of colour vision tell them apart.
CLASSES = (
    (0.05, "138,138,138"),
    (0.5, "213,94,0"),
    (0.95, "230,159,0"),
    (1.0, "0,114,178"),
)


def style_beside(
    path: Path, columns: Mapping[str, Sequence[object]], *, outlined: bool
) -> dict[Path, bytes]:
    """A QGIS style with the name of the file, which QGIS takes by itself; {} without a probability.

    Objects are drawn as outlines, or as dots, coloured by how probable they are.
    """
    name = next((name for name in PROBABILITIES if name in columns), None)
    if name is None:
        return {}
    ranges, symbols, low = [], [], 0.0
    for k, (high, colour) in enumerate(CLASSES):
        label = f"{PROBABILITIES[name]}: {low:g} to {high:g}"
        ranges.append(
            f'<range symbol="{k}" lower="{low:g}" upper="{high:g}" label={quoteattr(label)} '
            'render="true"/>'
        )
        symbols.append(_symbol(k, colour, outlined=outlined))
        low = high
    text = (
        "<!DOCTYPE qgis PUBLIC 'http://mrcc.com/qgis.dtd' 'SYSTEM'>\n"
        '<qgis version="3.22" styleCategories="Symbology">\n'
        f'<renderer-v2 type="graduatedSymbol" attr={quoteattr(name)} '
        'graduatedMethod="GraduatedColor" symbollevels="0" enableorderby="0" forceraster="0">\n'
        f"<ranges>\n{chr(10).join(ranges)}\n</ranges>\n"
        f"<symbols>\n{chr(10).join(symbols)}\n</symbols>\n"
        "</renderer-v2>\n</qgis>\n"
    )
    return {path.with_suffix(".qml"): text.encode("utf-8")}


def _symbol(k: int, colour: str, *, outlined: bool) -> str:
    if outlined:
        kind, layer = "fill", "SimpleLine"
        options = {"line_color": f"{colour},255", "line_width": "0.4", "line_width_unit": "MM"}
    else:
        kind, layer = "marker", "SimpleMarker"
        options = {
            "name": "circle",
            "color": f"{colour},255",
            "outline_style": "no",
            "size": "2",
            "size_unit": "MM",
        }
    told = "".join(
        f'<Option type="QString" name="{name}" value="{value}"/>' for name, value in options.items()
    )
    return (
        f'<symbol type="{kind}" name="{k}" alpha="1" clip_to_extent="1" force_rhr="0">'
        f'<layer class="{layer}" enabled="1" locked="0" pass="0">'
        f'<Option type="Map">{told}</Option></layer></symbol>'
    )


WRITERS = ((".gpkg", write_geopackage),)
"""Endings of file names, and what writes such a file; GeoPackages are not read."""
