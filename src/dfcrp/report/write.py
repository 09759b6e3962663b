"""Writes the report: figures, then the page, from the sections listed here."""

from __future__ import annotations

from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from dfcrp import __version__
from dfcrp.files import write_text
from dfcrp.items.items import Items
from dfcrp.markup import Markup, bullets, join, tag
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.embed import SCRIPT_HASH, explorer, style
from dfcrp.report.pictures import make_pictures
from dfcrp.report.section import Section
from dfcrp.report.sections.detection import detection
from dfcrp.report.sections.experts import experts
from dfcrp.report.sections.items import (
    items_asked,
    items_counted,
    items_experts,
    items_learned,
    items_listed,
    items_sure,
)
from dfcrp.report.sections.objects import how_many, how_sure, where
from dfcrp.report.sections.run import headline, long_enough, provenance, what_was_asked
from dfcrp.report.sections.sizes import FILE as SIZES
from dfcrp.report.sections.sizes import size_table, sizes

PAGE = "report.html"
#: In the order in which they are read, those that there is nothing to say in left out; provenance
#: follows them.
SECTIONS = (what_was_asked, long_enough, detection, how_many, where, how_sure, experts, sizes)
#: The same for items that are no circles.
ITEM_SECTIONS = (
    items_asked,
    long_enough,
    items_counted,
    items_listed,
    items_learned,
    items_sure,
    items_experts,
)
TABLES = {
    "catalogue.csv": "the catalogue: one row for each object, with uncertainty",
    "members.csv": "where each marking went, and how sure that is",
    "experts.csv": "the table of experts",
    "images.csv": "one row for each image",
    SIZES: "the size-frequency distributions, with each expert's own",
    "summary.json": "the numbers of this page, for programs",
}


def write_report(
    posterior: Posterior,
    folder: str | Path,
    *,
    image: Any = None,
    dbscan: Any = None,
    title: str | None = None,
    up: str | None = None,
) -> Path:
    """Write ``figures/`` (PNG and SVG) and ``report.html`` into a folder; returns the page.

    ``image`` is a file or an array that is put beneath the maps, placed as in
    ``dfcrp.plots.underlay.read_underlay``; without it the settings' own, if they name one.
    ``dbscan`` holds labels of the markings as ``dfcrp.baselines.dbscan_r14`` gives them, for the
    usual number of experts, or for several as {min_experts: labels}. ``title`` is by
    default that of the files; ``up`` is the address of an overview that this is a part of.
    """
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    contents = Contents(posterior, image, dbscan)
    pictures = make_pictures(contents, directory)
    if contents.of_circles:
        write_text(directory / SIZES, size_table(contents))
    planned = SECTIONS if contents.of_circles else ITEM_SECTIONS
    made = [make(contents, pictures) for make in planned]
    sections = [explorer(contents)]
    sections += [section for section in made if section is not None]
    sections.append(provenance(contents, directory))
    page = directory / PAGE
    text = make_page(
        title or title_of(posterior.markings),
        headline(contents),
        sections,
        style=style(),
        script_hash=SCRIPT_HASH,
        files=list_files(directory),
        up=up,
    )
    write_text(page, text)
    return page


def title_of(markings: Items) -> str:
    """The title of a report: the files that the markings came from."""
    names = ", ".join(Path(source.file).name for source in markings.sources)
    return f"Report: {names}" if names else "Report"


def make_page(
    title: str,
    head: Markup,
    sections: Sequence[Section],
    *,
    style: str,
    script_hash: str,
    files: Markup | None = None,
    up: str | None = None,
) -> str:
    """A page of sections; ``head`` is what stands above them."""
    back = Markup("") if up is None else tag("p", tag("a", "← All images", href=up), class_="up")
    return Template(_resource("page.html")).substitute(
        title=join([title]),
        version=join([__version__]),
        style=_resource("page.css") + style,
        script_hash=script_hash,
        up=back,
        headline=head,
        contents=tag("nav", bullets(tag("a", s.title, href=f"#{s.id}") for s in sections)),
        files=files or Markup(""),
        sections=join(section.html() for section in sections),
    )


def list_files(folder: Path) -> Markup:
    """Links to what lies beside the page."""
    tables = [
        join([tag("a", name, href=name), f": {words}"])
        for name, words in TABLES.items()
        if (folder / name).exists()
    ]
    return bullets(tables) if tables else Markup("")


def _resource(name: str) -> str:
    return resources.files("dfcrp.report").joinpath(name).read_text(encoding="utf-8")
