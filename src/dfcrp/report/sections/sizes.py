"""Section on the sizes of the objects, and the table behind its figures."""

from __future__ import annotations

import csv
import io

from dfcrp.markup import Section, counted, join, paragraph, significant, tag
from dfcrp.plots.sizes import prepare_sizes
from dfcrp.posterior.size_bins import BINNINGS
from dfcrp.posterior.size_frequency import KINDS, UNBINNED
from dfcrp.report.contents import Contents

FILE = "size_frequency.csv"


def sizes(contents: Contents) -> Section | None:
    """The three customary size-frequency distributions, of objects with enough experts."""
    if "size_frequency" not in contents.pictures or not contents.by_threshold:
        return None
    who = f"objects with at least {counted(contents.min_experts, 'expert')}"
    beside = f"thin lines: each expert's own {contents.nouns}"
    if contents.dbscan is not None:
        beside += "; dotted: DBSCAN's clusters"
    bins = "in bins a factor of √2 wide"
    whiskers = "vertical lines add √n, the error of a count, which the band does not hold"
    figures = [
        contents.figure(
            "size_frequency",
            "Cumulative size-frequency distribution",
            f"Cumulative. Blue: posterior mean and 95 % band of {who}; {beside}.",
        ),
        contents.figure(
            "size_differential",
            "Differential size-frequency distribution",
            f"Differential, {bins}. Blue: posterior mean and 95 % band of {who}; {whiskers}; "
            f"{beside}.",
        ),
        contents.figure(
            "size_relative",
            "R-plot of the size-frequency distribution",
            f"R-plot, {bins}: what is flat here falls off with the cube of the diameter. Blue: "
            f"posterior mean and 95 % band of {who}; {whiskers}; {beside}.",
        ),
    ]
    words = paragraph(
        "In every draw the objects are counted again, each with its diameter in that draw: the "
        "bands hold both which objects there are and how large they are. ",
        _units(contents),
        " The numbers, in other bins too, are in ",
        tag("code", FILE),
        ".",
    )
    return Section("sizes", "How large are they?", join([words, *figures]))


def _units(contents: Contents) -> str:
    site = contents.posterior.items.site
    scale = {
        "px": "Diameters are in pixels, or in the unit of the data, of which nothing is known.",
        "m": "Diameters are turned from m into km.",
        "km": "Diameters are in km.",
        "deg": "Diameters are in km.",
    }[site.units]
    if site.units == "px" and site.metres_per_pixel is not None:
        scale = f"Diameters are turned into km at {site.metres_per_pixel:g} m per pixel."
    if site.area_km2 is None:
        return f"{scale} The area is not known, so these are numbers, not densities."
    return f"{scale} Densities refer to an area of {significant(site.area_km2)} km²."


def size_table(contents: Contents) -> str:
    """Every kind of distribution in every binning as CSV."""
    out = io.StringIO()
    writer: csv.DictWriter[str] | None = None
    for kind in KINDS:
        for binning in (UNBINNED, *BINNINGS) if kind == "cumulative" else BINNINGS:
            table = prepare_sizes(contents.posterior, kind, binning=binning, dbscan=contents.dbscan)
            for row in table.rows():
                if writer is None:
                    writer = csv.DictWriter(out, list(row), lineterminator="\n")
                    writer.writeheader()
                writer.writerow(
                    {k: f"{v:.6g}" if isinstance(v, float) else v for k, v in row.items()}
                )
    return out.getvalue()
