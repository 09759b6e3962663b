"""Writes the overview of many images, and pages of single ones."""

from __future__ import annotations

import shlex
import shutil
from pathlib import Path
from typing import Any

from dfcrp.files import write_text
from dfcrp.markup import (
    Column,
    Markup,
    Section,
    bullets,
    counted,
    details,
    join,
    number,
    paragraph,
    table,
    tag,
)
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.explorer import embed
from dfcrp.report.explorer.embed import explorer
from dfcrp.report.overview import tiles
from dfcrp.report.sections.experts import expert_tables
from dfcrp.report.sections.objects import count_table
from dfcrp.report.sections.run import (
    data_words,
    diagnostic_table,
    headline,
    model_words,
    provenance,
    verdict_words,
)
from dfcrp.report.write import (
    PAGE,
    list_files,
    make_page,
    own_sections,
    title_of,
    write_report,
)
from dfcrp.summaries.convergence import Limits

FOLDER = "pages"
#: Pages that are made without being asked for.
USUAL_PAGES = 100
#: Rows of a list in the page; images.csv holds them all.
MAX_ROWS = 50
#: From an image's page to the overview.
UP = f"../../{PAGE}"


def write_overview(posterior: Posterior, folder: str | Path, *, pages: int | None = None) -> Path:
    """Write ``report.html``, an overview of all images, and pages with a map for some of them.

    Pages are made for ``pages`` images, those with the most doubtful items first; by default
    for up to USUAL_PAGES. Those of earlier draws are removed.
    """
    directory = Path(folder)
    shutil.rmtree(directory / FOLDER, ignore_errors=True)
    findings = dict(zip(posterior.image_set.done, posterior.findings, strict=True))
    by_doubt = sorted(findings, key=lambda image: findings[image].membership.p_member.min())
    for image in by_doubt[: USUAL_PAGES if pages is None else pages]:
        _write_page(posterior, directory, image)
    return _write_index(posterior, directory)


def write_image(posterior: Posterior, folder: str | Path, name: str, **options: Any) -> Path:
    """Write the whole report of one image, figures included, and the overview again.

    ``options`` are those of ``write_report``.
    """
    directory = Path(folder)
    place = directory / page_folder(posterior.image_set.number_of(name))
    page = write_report(posterior[name], place, title=name, up=UP, **options)
    _write_index(posterior, directory)
    return page


def page_folder(image: int) -> str:
    """Where an image's page is: by its number, as names may be anything."""
    return f"{FOLDER}/{image:06d}"


def _write_page(posterior: Posterior, folder: Path, image: int) -> None:
    """A page with the headline and the map, which takes a fraction of a second."""
    name, contents = posterior.image_set.parts.names[image], Contents(posterior.image(image))
    directory = folder / page_folder(image)
    directory.mkdir(parents=True, exist_ok=True)
    command = f"dfcrp report RUN --image {shlex.quote(name)}"
    more = paragraph("Figures and tables of this image are put here by")
    text = make_page(
        name,
        headline(contents, link=None),
        [explorer(contents), Section("more", "More", join([more, tag("pre", command)]))],
        style=embed.style(),
        script_hash=embed.SCRIPT_HASH,
        up=UP,
    )
    write_text(directory / PAGE, text)


def _write_index(posterior: Posterior, folder: Path) -> Path:
    contents = Contents(posterior)
    pages = {
        image: f"{page_folder(image)}/{PAGE}"
        for image in posterior.image_set.done
        if (folder / page_folder(image) / PAGE).exists()
    }
    how = "dfcrp report RUN --image NAME makes the page of an image"
    sections = [
        tiles.tiles(posterior, pages, how),
        _long_enough(contents),
        Section("how-many", "How many objects?", count_table(contents)),
        Section("experts", "How do the experts compare?", _experts(contents)),
        *own_sections(contents),
        Section("asked", "What was asked", bullets(_words(contents))),
        provenance(contents, folder),
    ]
    text = make_page(
        title_of(posterior.items),
        headline(contents),
        sections,
        style=tiles.style(),
        script_hash=tiles.SCRIPT_HASH,
        files=list_files(folder, contents.noun),
    )
    write_text(folder / PAGE, text)
    return folder / PAGE


def _long_enough(contents: Contents) -> Section:
    """The verdict, the worst images, and the totals."""
    posterior = contents.posterior
    kind, sentence = verdict_words(posterior.verdict)
    parts = [
        paragraph(tag("strong", sentence), class_=f"verdict {kind}"),
        bullets(posterior.verdict.advice),
        _worst(posterior),
        diagnostic_table(posterior.verdict, Limits()),
    ]
    return Section("long-enough", "Was the run long enough?", join(parts))


def _worst(posterior: Posterior) -> Markup:
    bad = getattr(posterior.verdict, "not_good", ())[:MAX_ROWS]
    if not bad:
        return Markup("")
    found = dict(zip(posterior.images, posterior.findings, strict=True))
    rows = [
        [
            name,
            number(found[name].record.scans),
            number(found[name].verdict.max_rhat, 3),
            number(found[name].verdict.min_ess),
            number(found[name].verdict.pairs_disagreeing),
        ]
        for name in bad
    ]
    columns = [
        Column("image", number=False),
        Column("scans"),
        Column("R-hat"),
        Column("ESS"),
        Column("pairs the chains disagree on"),
    ]
    return details(f"The worst {counted(len(rows), 'image')}", table(columns, rows))


def _experts(contents: Contents) -> Markup:
    note = paragraph(
        "Over all images. Two experts are compared on the images that both have "
        f"{contents.nouns} on; “all but one” refers to the experts of each image."
    )
    return join([note, expert_tables(contents)])


def _words(contents: Contents) -> list[str]:
    posterior, record = contents.posterior, contents.posterior.record
    run = posterior.config.run
    how = {
        "independent": "Each image was fitted by itself, with a concentration and tolerances of "
        "its own; those given here are averages over the images.",
        "shared": "All images were fitted together, with one concentration and one law of "
        "tolerances.",
    }
    most = "up to " if run.scans is None else ""
    drawn = f"{counted(run.chains, 'chain')} of {most}{counted(record.scans, 'scan')}."
    return [*data_words(contents), how[run.images], *model_words(contents), drawn]
