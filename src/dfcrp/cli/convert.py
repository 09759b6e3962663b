"""``dfcrp convert``: items from one file format to another."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click


class Place(click.ParamType):
    """A longitude and a latitude with a comma between them."""

    name = "LON,LAT"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[float, float]:
        """The range is checked where the place is used."""
        if isinstance(value, tuple):
            return value
        try:
            longitude, latitude = (float(part) for part in value.split(","))
        except ValueError:
            self.fail(f"{value!r} is not LON,LAT in degrees", param, ctx)
        return longitude, latitude


@click.command(
    name="convert",
    options_metavar="[OPTIONS]",
    short_help="Turn lists or a catalogue into another file format.",
)
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="IN..."
)
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "--likelihood",
    "kind",
    metavar="KIND",
    help="What to read from IN: circles, points, boxes, ellipses, diagonal, normal or records.  "
    "[default: the kind of the run, else circles]",
)
@click.option(
    "--columns",
    metavar="ROLE=NAME,...",
    help="Which column has which role, if the names do not say it.",
)
@click.option(
    "--expert", "experts", multiple=True, metavar="NAME", help="Only this expert; repeatable."
)
@click.option(
    "--image", "images", multiple=True, metavar="NAME", help="Only this image; repeatable."
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="Only marks with this label (of the drawing tool or category); repeatable.",
)
@click.option(
    "--p-consensus",
    type=float,
    metavar="P",
    help="Only objects of a catalogue with at least this probability of a consensus.",
)
@click.option("--boxes", is_flag=True, help="Circles: read boxes as the ellipses inside them.")
@click.option(
    "--point-diameter", type=float, metavar="D", help="Read points as circles of this diameter."
)
@click.option(
    "--units",
    type=click.Choice(["px", "m", "km", "deg"]),
    help="The unit of the input's coordinates, if the file does not say it.",
)
@click.option("--metres-per-pixel", type=float, metavar="M", help="Turn pixels into km.")
@click.option(
    "--body", metavar="NAME|KM", help="moon, mars, mercury, ceres, earth, or a body's radius in km."
)
@click.option(
    "--origin",
    type=Place(),
    metavar="LON,LAT",
    help="Turn a plane into longitude and latitude: where its origin is on the body.",
)
@click.option("--y-down", is_flag=True, help="With --origin: y points down, as in images.")
@click.option(
    "--georeference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Turn pixels into map coordinates: the image as GeoTIFF, or its world file (.tfw, .pgw, "
    ".wld) with --crs.",
)
@click.option(
    "--crs",
    metavar="CODE|WKT|FILE.prj|none",
    help="The coordinate reference system; none writes a map without a place.",
)
@click.option("--area-km2", type=float, metavar="A", help="The area that was searched.")
@click.option("--outlines", is_flag=True, help="GeoJSON: polygons, not points.")
@click.option("--overwrite", is_flag=True, help="Replace OUT if it exists.")
def command(
    sources: tuple[Path, ...],
    out: Path,
    kind: str | None,
    columns: str | None,
    experts: tuple[str, ...],
    images: tuple[str, ...],
    labels: tuple[str, ...],
    **options: Any,
) -> None:
    """Write the items in IN... to OUT, in the format that OUT's name ends in.

    IN is a file or folder of any format that dfcrp reads, or a run folder, of which the catalogue
    is taken. OUT ends in .csv, .tsv or .parquet; of items with a place also in .gpkg or .geojson,
    of circles in .diam, .scc or .shp, and of boxes in .coco.json. Beside .gpkg a style for QGIS is
    written.
    """
    from dfcrp.io import converting, georeference
    from dfcrp.io.drawings import body_radius
    from dfcrp.io.formats.geojson import write_geojson
    from dfcrp.io.registry import writer_for
    from dfcrp.io.tables import ReadOptions, notes

    writer_for(out)  # before any work
    reading = ReadOptions(
        boxes=options["boxes"],
        point_diameter=options["point_diameter"],
        body_radius_km=None if options["body"] is None else body_radius(options["body"]),
        units=options["units"],
    )
    table = converting.read_table(sources, kind, columns=columns, options=reading)
    for title, names in (("expert", experts), ("image", images), ("label", labels)):
        table = converting.only(table, title, names)
    if options["p_consensus"] is not None:
        table = converting.agreed(table, options["p_consensus"])
    scale = options["metres_per_pixel"]
    if scale is None and out.suffix.lower() in (".diam", ".scc", ".shp"):
        scale = table.site.metres_per_pixel  # known from the run
    if scale is not None:
        table = converting.scaled(table, scale)
    if options["origin"] is not None:
        table = converting.placed(table, *options["origin"], y_down=options["y_down"])
    table = _on_the_map(table, options["georeference"], options["crs"])
    if writer_for(out) is write_geojson:
        georeference.demand_crs(table, out)
        table = georeference.in_longitude_and_latitude(table)
    if options["area_km2"] is not None:
        table = converting.with_area(table, options["area_km2"])
    files = converting.write_table(
        table, out, outlines=options["outlines"], overwrite=options["overwrite"]
    )
    for note in notes(table, out):
        click.echo(f"dfcrp: note: {note}", err=True)
    click.echo(f"{len(table):,} {table.kind}: {', '.join(str(file) for file in files)}")


def _on_the_map(table: Any, where: Path | None, crs: str | None) -> Any:
    """The items in the coordinates of a map, as far as that is asked for."""
    from dfcrp.io import georeference

    if where is not None:
        return georeference.georeferenced(table, georeference.read_georeference(where), crs)
    return table if crs is None else georeference.with_crs(table, crs)
