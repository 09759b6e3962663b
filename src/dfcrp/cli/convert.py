"""``dfcrp convert``: items from one file format to another."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from dfcrp.cli.fit import image_names_option, join_categories_option
from dfcrp.cli.ground import Numbers

if TYPE_CHECKING:
    from dfcrp.io.tables import ReadTable

#: Files that are named when they are written.
MOST_LISTED = 6


class ImageSize(click.ParamType):
    """A width and a height with an x between them."""

    name = "WxH"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[int, int]:
        """Whole numbers above zero."""
        if isinstance(value, tuple):
            return value
        sides = value.lower().split("x")
        if len(sides) != 2 or not all(one.isascii() and one.isdigit() for one in sides):
            self.fail(f"{value!r} is not WIDTHxHEIGHT in pixels, as in 1024x768", param, ctx)
        width, height = (int(one[:9]) for one in sides)
        if not (width and height):
            self.fail(f"{value!r}: the width and the height of an image are above 0", param, ctx)
        return width, height


@click.command(
    name="convert",
    options_metavar="[OPTIONS]",
    short_help="Convert lists or a catalogue to another file format.",
)
@click.argument(
    "sources", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="IN..."
)
@click.argument("out", type=click.Path(path_type=Path), metavar="OUT")
@click.option(
    "--likelihood",
    "kind",
    metavar="KIND",
    help="The kind of items in IN: circles, points, boxes, ellipses, diagonal, normal or records.  "
    "[default: that of the run, or circles]",
)
@click.option(
    "--columns",
    metavar="ROLE=NAME,...",
    help="Names of your columns, if dfcrp does not recognise them.",
)
@click.option(
    "--expert",
    "experts",
    multiple=True,
    metavar="NAME",
    help="Only items of this expert; may be repeated.",
)
@click.option(
    "--image",
    "images",
    multiple=True,
    metavar="NAME",
    help="Only items on this image; may be repeated.",
)
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="NAME",
    help="Only items with this label (drawing tool or category); may be repeated.",
)
@image_names_option
@join_categories_option
@click.option(
    "--p-consensus",
    type=float,
    metavar="P",
    help="Only objects of the catalogue with at least this p_consensus.",
)
@click.option(
    "--p-real",
    type=float,
    metavar="P",
    help="Only objects of the catalogue with at least this p_real (prior detection).",
)
@click.option(
    "--min-experts",
    type=int,
    metavar="K",
    help="Only objects of the catalogue that at least this many experts marked.",
)
@click.option(
    "--disagreements",
    is_flag=True,
    help="Only objects in doubt: p_real (or p_consensus) from 0.05 to 0.95, or an unsure category.",
)
@click.option(
    "--to",
    metavar="FORMAT",
    help="The tool that OUT is for: coco, yolo, cvat, label-studio, labelme, via, via-csv or "
    "zooniverse.  [default: by the ending of OUT, and the format that the items came in]",
)
@click.option(
    "--ids-from",
    metavar="FILE",
    help="Whose ids of images and categories are written, where the files of a run differ.",
)
@click.option(
    "--image-size",
    type=ImageSize(),
    metavar="WxH",
    help="Width and height in pixels of images of which no file says them.",
)
@click.option("--no-scores", is_flag=True, help="Write no probability as the score of an object.")
@click.option(
    "--boxes", is_flag=True, help="Circles: read boxes as the ellipses inscribed in them."
)
@click.option(
    "--point-diameter", type=float, metavar="D", help="Read points as circles of this diameter."
)
@click.option(
    "--units",
    type=click.Choice(["px", "m", "km", "deg"]),
    help="Unit of the coordinates in IN, if the file does not say it.",
)
@click.option("--metres-per-pixel", type=float, metavar="M", help="Convert pixels to km.")
@click.option(
    "--body",
    metavar="NAME|KM",
    help="The body: moon, mars, mercury, ceres, earth, or its radius in km.",
)
@click.option(
    "--origin",
    type=Numbers("LON,LAT", "LON,LAT in degrees", 2),
    metavar="LON,LAT",
    help="Convert a plane to longitude and latitude; its origin lies here.",
)
@click.option("--y-down", is_flag=True, help="With --origin: y points down, as in images.")
@click.option(
    "--georeference",
    type=click.Path(path_type=Path),
    metavar="FILE",
    help="Convert pixels to map coordinates with the image as GeoTIFF, or its world file (.tfw, "
    ".pgw, .wld) and --crs.",
)
@click.option(
    "--crs",
    metavar="CODE|WKT|FILE.prj|none",
    help="Coordinate reference system; none writes coordinates without one.",
)
@click.option("--area-km2", type=float, metavar="A", help="Area that was searched, in km².")
@click.option(
    "--outlines",
    is_flag=True,
    help="GeoJSON: write polygons instead of points (GeoPackages have them).",
)
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
    """Write the items in IN... to OUT; the ending of OUT chooses the format.

    IN is a file or folder that dfcrp can read, or a run folder, whose catalogue is written. OUT
    ends in .csv, .tsv or .parquet. Items with a position can also become .gpkg (with a style for
    QGIS) or .geojson, circles .diam, .scc or .shp. What came from an annotation tool goes back to
    it with the tool's own ids, names and sizes of images; --to chooses another tool.
    """
    from dfcrp.io import converting, georeference
    from dfcrp.io.formats.geojson import write_geojson
    from dfcrp.io.images import known_as
    from dfcrp.io.reading import with_joined_categories
    from dfcrp.io.registry import writer_for
    from dfcrp.io.tables import ReadOptions, what_is_lost
    from dfcrp.items.site import body_radius, plain_notes

    if options["to"] is not None or out.suffix not in ("", ".json", ".xml"):
        writer_for(out, options["to"])  # before any work
    reading = ReadOptions(
        boxes=options["boxes"],
        point_diameter=options["point_diameter"],
        body_radius_km=None if options["body"] is None else body_radius(options["body"]),
        units=options["units"],
        image_names=options["image_names"],
    )
    table = converting.read_table(sources, kind, columns=columns, options=reading)
    table = with_joined_categories(table, options["join_categories"])
    images = tuple(known_as(table, images))
    for note in plain_notes(table.notes):
        click.echo(f"dfcrp: {note}", err=True)
    for title, names in (("expert", experts), ("image", images), ("label", labels)):
        table = converting.only(table, title, names)
    if images:
        table = replace(table, sources=table.sources.on(images))
    if options["p_consensus"] is not None:
        table = converting.agreed(table, options["p_consensus"])
    wanted = {key: options[key] for key in ("p_real", "min_experts", "disagreements")}
    table = replace(converting.chosen(table, **wanted), scores=not options["no_scores"])
    table = converting.from_run_or_files(table, options["ids_from"], options["image_size"])
    scale = options["metres_per_pixel"]
    if scale is None and out.suffix.lower() in (".diam", ".scc", ".shp"):
        scale = table.site.metres_per_pixel  # known from the run
    if scale is not None:
        table = converting.scaled(table, scale)
    if options["origin"] is not None:
        table = converting.placed(table, *options["origin"], y_down=options["y_down"])
    table = _on_the_map(table, options["georeference"], options["crs"])
    if writer_for(out, options["to"], table.sources.format) is write_geojson:
        georeference.demand_crs(table, out)
        table = georeference.in_longitude_and_latitude(table)
    if options["area_km2"] is not None:
        table = converting.with_area(table, options["area_km2"])
    files = converting.write_table(
        table,
        out,
        to=options["to"],
        outlines=options["outlines"],
        overwrite=options["overwrite"],
    )
    for note in (*what_is_lost(table, out), *converting.said_of_ids(table)):
        click.echo(f"dfcrp: note: {note}", err=True)
    click.echo(f"{len(table):,} {table.kind}: {_listed(files)}")


def _listed(files: list[Path]) -> str:
    """The names of files; of many the first, and how many there are."""
    named = ", ".join(str(file) for file in files[:MOST_LISTED])
    more = len(files) - MOST_LISTED
    return f"{named} and {more:,} more" if more > 0 else named


def _on_the_map(table: ReadTable, where: Path | None, crs: str | None) -> ReadTable:
    """The items in the coordinates of a map, as far as that is asked for."""
    from dfcrp.io import georeference

    if where is not None:
        return georeference.georeferenced(table, georeference.read_georeference(where), crs)
    return table if crs is None else georeference.with_crs(table, crs)
