"""Writes the report: figures, then the page, from the sections listed here."""

from __future__ import annotations

from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

from dfcrp import __version__
from dfcrp.posterior.folder import write_text
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.about_experts import experts
from dfcrp.report.about_objects import how_many, how_sure, sizes, where
from dfcrp.report.about_run import headline, long_enough, provenance, what_was_asked
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.embed import SCRIPT_HASH, explorer, style
from dfcrp.report.markup import Markup, bullets, join, tag
from dfcrp.report.pictures import make_pictures
from dfcrp.report.section import Section

PAGE = "report.html"
#: In the order in which they are read; provenance follows them.
SECTIONS = (what_was_asked, long_enough, how_many, where, how_sure, experts, sizes)
TABLES = {
    "catalogue.csv": "the catalogue: one row for each object, with uncertainty",
    "members.csv": "where each marking went, and how sure that is",
    "experts.csv": "the table of experts",
    "summary.json": "the numbers of this page, for programs",
}


def write_report(
    posterior: Posterior, folder: str | Path, *, image: Any = None, dbscan: Any = None
) -> Path:
    """Write ``figures/`` (PNG and SVG) and ``report.html`` into a folder; returns the page.

    ``image`` is a file or an array that is put beneath the maps, placed as in
    ``dfcrp.plots.maps.read_underlay``. ``dbscan`` holds labels of the markings as
    ``dfcrp.baselines.dbscan_r14`` gives them, for the usual number of experts, or for several as
    {min_experts: labels}.
    """
    directory = Path(folder)
    directory.mkdir(parents=True, exist_ok=True)
    contents = Contents(posterior, image, dbscan)
    pictures = make_pictures(contents, directory)
    sections = [explorer(contents), *(make(contents, pictures) for make in SECTIONS)]
    sections.append(provenance(contents, directory))
    page = directory / PAGE
    write_text(page, _page(contents, sections, directory))
    return page


def _page(contents: Contents, sections: list[Section], folder: Path) -> str:
    markings = contents.posterior.markings
    names = ", ".join(Path(source.file).name for source in markings.sources)
    title = f"Report: {names}" if names else "Report"
    return Template(_resource("page.html")).substitute(
        title=join([title]),
        version=join([__version__]),
        style=_resource("page.css") + style(),
        script_hash=SCRIPT_HASH,
        headline=headline(contents),
        contents=tag("nav", bullets(tag("a", s.title, href=f"#{s.id}") for s in sections)),
        files=_files(folder),
        sections=join(section.html() for section in sections),
    )


def _files(folder: Path) -> Markup:
    """Links to what lies beside the page."""
    tables = [
        join([tag("a", name, href=name), f": {words}"])
        for name, words in TABLES.items()
        if (folder / name).exists()
    ]
    return bullets(tables) if tables else Markup("")


def _resource(name: str) -> str:
    return resources.files("dfcrp.report").joinpath(name).read_text(encoding="utf-8")
