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
from dfcrp.markup import Markup, Section, SectionMaker, bullets, join, plural, tag
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.embed import SCRIPT_HASH, explorer, style
from dfcrp.report.pictures import make_pictures
from dfcrp.report.sections.ages import age_picture, how_old, read_ages
from dfcrp.report.sections.categories import categories
from dfcrp.report.sections.decisions import decisions
from dfcrp.report.sections.evaluation import how_right, read_evaluation
from dfcrp.report.sections.experts import experts
from dfcrp.report.sections.objects import FILE as SIZES
from dfcrp.report.sections.objects import how_many, how_sure, objects, size_table, sizes
from dfcrp.report.sections.run import asked, headline, long_enough, model_fit, provenance

PAGE = "report.html"
TABLES = {
    "catalogue.csv": "the catalogue: one row for each object, with uncertainty",
    "members.csv": "where each {noun} went, and how sure that is",
    "experts.csv": "the table of experts",
    "confusions.csv": "which categories each expert takes for which",
    "images.csv": "one row for each image",
    SIZES: "the size-frequency distributions, with each expert's own",
    "ages.csv": "the model age of each draw and of each expert",
    "evaluation.json": "the comparison with the truth",
    "summary.json": "the numbers of this page, for programs",
}


def sections_of(posterior: Posterior) -> tuple[SectionMaker, ...]:
    """The sections in the order in which they are read; provenance follows them.

    What only this prior can answer comes first: it was chosen for that.
    """
    return (
        *posterior.prior.sections(),
        asked,
        decisions,
        long_enough,
        model_fit,
        how_right,
        how_many,
        objects,
        how_sure,
        experts,
        categories,
        *posterior.likelihood.sections(),
        sizes,
        how_old,
    )


def made_of(contents: Contents, makers: Sequence[SectionMaker]) -> list[Section]:
    """The sections that have something to say."""
    return [section for make in makers if (section := make(contents)) is not None]


def prior_sections(contents: Contents) -> list[Section]:
    """What only this prior can answer."""
    return made_of(contents, contents.posterior.prior.sections())


def item_sections(contents: Contents) -> list[Section]:
    """What there is to say of categories and of this kind of item."""
    return made_of(contents, (categories, *contents.posterior.likelihood.sections()))


def write_report(
    posterior: Posterior,
    folder: str | Path,
    *,
    image: Any = None,
    dbscan: Any = None,
    title: str | None = None,
    up: str | None = None,
    figures: Sequence[str] = ("svg",),
    helpers: int | None = 0,
    place: str = "",
) -> Path:
    """Write ``figures/`` and ``report.html`` into a folder.

    Parameters
    ----------
    posterior : Posterior
        Of one image; `write_overview` is for many.
    folder : path
        Where to write; made if it is not there.
    image : path or array, optional
        Put beneath the maps, placed as in `dfcrp.plots.underlay.read_underlay`; without it the
        settings' own, if they name one.
    dbscan : labels, optional
        Of the items, as `dfcrp.baselines.dbscan_r14` gives them, for the usual number of experts,
        or for several as {min_experts: labels}.
    title : str, optional
        By default that of the files.
    up : str, optional
        The address of an overview that this page is a part of.
    figures : sequence of str
        The formats of the files in ``figures/``: "svg", "pdf", "png".
    helpers : int, optional
        Processes that draw figures beside this one; None is one less than there are cores.
    place : str, optional
        A folder inside the folder, for one page of many.

    Returns
    -------
    Path
        The page.

    Examples
    --------
    >>> from dfcrp.report import write_report  # doctest: +SKIP
    >>> write_report(posterior, "run", image="moon.png")  # doctest: +SKIP
    """
    root = Path(folder)
    root.mkdir(parents=True, exist_ok=True)
    directory, before = root / place, f"{place}/" if place else ""
    contents = Contents(posterior, image, dbscan, ages=read_ages(directory, posterior))
    contents.evaluation = read_evaluation(directory, posterior)
    contents.pictures = make_pictures(contents, root, figures, helpers, before)
    if contents.ages:
        contents.pictures = {**contents.pictures, **age_picture(directory)}
    if posterior.diameters is not None:
        write_text(root, before + SIZES, size_table(contents))
    sections = made_of(contents, (explorer, *sections_of(posterior)))
    sections.append(provenance(contents, directory))
    text = make_page(
        title or title_of(posterior.items),
        headline(contents),
        sections,
        style=style(),
        script_hash=SCRIPT_HASH,
        files=list_files(directory, contents.noun),
        up=up,
    )
    write_text(root, before + PAGE, text)
    return directory / PAGE


def title_of(items: Items) -> str:
    """The title of a report: the files that the items came from."""
    names = ", ".join(Path(source.file).name for source in items.sources)
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
    image_word: str = "image",
) -> str:
    """A page of sections; ``head`` is what stands above them, and ``up`` leads to all images."""
    link = tag("a", f"← All {plural(image_word)}", href=up)
    back = Markup("") if up is None else tag("p", link, class_="up")
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


def list_files(folder: Path, noun: str) -> Markup:
    """Links to what lies beside the page."""
    tables = [
        join([tag("a", name, href=name), f": {words.format(noun=noun)}"])
        for name, words in TABLES.items()
        if (folder / name).exists()
    ]
    return bullets(tables) if tables else Markup("")


def _resource(name: str) -> str:
    return resources.files("dfcrp.report").joinpath(name).read_text(encoding="utf-8")
