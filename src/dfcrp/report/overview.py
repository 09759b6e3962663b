"""The report on many images: small multiples that lead to a page for each image."""

from __future__ import annotations

import base64
import hashlib
import shlex
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from dfcrp.files import remove_file, write_text
from dfcrp.markup import (
    Column,
    Markup,
    Section,
    bullets,
    counted,
    details,
    escape,
    join,
    number,
    one,
    paragraph,
    plural,
    table,
    tag,
)
from dfcrp.plots.flat import FlatMap, Region, flat_map_or_none, quantities_of, stretch
from dfcrp.plots.maps import DOUBTFUL
from dfcrp.plots.underlay import Framed, frame_of, thumbnail
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.contents import Contents
from dfcrp.report.explorer import embed
from dfcrp.report.explorer.data import Packer, script_json
from dfcrp.report.explorer.embed import explorer, script_of
from dfcrp.report.pictures import pictures_of_many
from dfcrp.report.sections.decisions import decisions
from dfcrp.report.sections.evaluation import how_right, read_evaluation
from dfcrp.report.sections.experts import expert_tables
from dfcrp.report.sections.objects import count_table
from dfcrp.report.sections.run import (
    data_words,
    diagnostic_table,
    first_look_words,
    headline,
    model_fit,
    model_words,
    parameter_table,
    provenance,
    verdict_words,
)
from dfcrp.report.write import (
    PAGE,
    item_sections,
    list_files,
    made_of,
    make_page,
    prior_sections,
    title_of,
    write_report,
)
from dfcrp.settings.consensus import in_short
from dfcrp.summaries.convergence import Limits
from dfcrp.summaries.membership import UNDECIDED
from dfcrp.values import Array, Json

#: Outlines of one picture, and of all; the largest, those agreed on first.
MAX_OUTLINES = 400
MAX_ALL_OUTLINES = 600_000
#: A page of more has numbers without digits that nobody sees: 100,000 images take less than 10 MB.
#: Places are kept to this share of the usual picture, other numbers to so many bits.
ROUGH_OUTLINES = 100_000
PLACE_STEP, ROUGH_BITS, P_STEP = 1.0 / 1600.0, 8, 1.0 / 128.0
#: Bars of one picture, where objects have no place.
MAX_BARS = 12
#: Frames below this share of the usual one have room added.
SMALL_FRAME = 0.25
#: Width over height of a picture.
TILE_SHAPE = 4.0 / 3.0
#: Pixels of the longer side of a photograph behind a picture, its quality as a JPEG, and bytes of
#: all together: of more images the later ones have none.
PHOTOGRAPH_PIXELS, PHOTOGRAPH_QUALITY = 320, 60
MAX_PHOTOGRAPH_BYTES = 16_000_000


def _resource(name: str) -> str:
    return resources.files("dfcrp.report").joinpath(name).read_text("utf-8")


SCRIPT = script_of(("words", "base64", "outlines"), _resource("overview.js"))
#: What the page's policy allows to run: this script and no other.
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode("ascii")


def style() -> str:
    """The overview's part of the page's style."""
    return _resource("overview.css")


def tiles(posterior: Posterior, pages: dict[int, str], how_to_make: str) -> Section:
    """The section; ``pages`` are the addresses of the images' pages that there are."""
    about, arrays = make_payload(posterior, pages)
    about["howToMake"] = how_to_make
    nouns = plural(posterior.likelihood.noun)
    images = plural(posterior.likelihood.image_word(posterior.items))
    body = Markup(
        Template(_resource("overview.html")).substitute(nouns=escape(nouns))
        + f'<script type="application/json" id="explorer-about">{script_json(about)}</script>\n'
        + f'<script type="text/plain" id="explorer-arrays">{arrays}</script>\n'
        + f"<script>{SCRIPT}</script>\n"
    )
    return Section("images", f"The {images}", body, wide=True)


def make_payload(posterior: Posterior, pages: dict[int, str]) -> tuple[Json, str]:
    """Everything that is read as text, and the arrays as base64.

    Images that were looked at without a marking come after the others.
    """
    findings, empty = posterior.findings, empty_images(posterior)
    names, nothing = [*posterior.images, *empty], [0] * len(empty)
    packer = Packer(rough=_most_outlines(posterior) * len(findings) > ROUGH_OUTLINES)
    packer.floats("objects", _objects(posterior, empty), "float64", bits=ROUGH_BITS)
    agreed = [*(found.consensus.mean for found in findings), *nothing]
    packer.floats("agreed", agreed, "float64", bits=ROUGH_BITS)
    packer.counts("good", [*(found.verdict.ok for found in findings), *[True] * len(empty)])
    undecided = (np.count_nonzero(f.membership.p_member < UNDECIDED) for f in findings)
    packer.counts("undecided", [*undecided, *nothing])
    packer.counts("inDoubt", [*(_in_doubt(f.catalogue) for f in findings), *nothing])
    packer.counts("place", _places(posterior, names))
    packer.counts("byName", np.argsort(np.argsort(names, kind="stable"), kind="stable"))
    by_need = _pack_need(packer, posterior, names)
    settings, items = posterior.config.image, posterior.items
    extents = [frame_of(settings, items, name) for name in names]
    shape = _pack_outlines(packer, posterior, extents)
    bars = 0 if shape is not None else _pack_bars(packer, posterior, len(empty))
    about = {
        "noun": posterior.likelihood.noun,
        "nouns": plural(posterior.likelihood.noun),
        "names": names,
        "empty": len(empty),
        "pages": [*(pages.get(image) for image in posterior.image_set.done), *[None] * len(empty)],
        "image": posterior.likelihood.image_word(posterior.items),
        "agreedBy": in_short(posterior.config.summary.min_experts),
        "byNeed": by_need,
        "shape": shape,
        "barsOfImage": bars,
        "legend": _legend(posterior),
        "photographs": _photographs(extents) if shape is not None else [],
        "arrays": packer.table,
        "compressed": packer.compressed,
    }
    return about, packer.base64()


def empty_images(posterior: Posterior) -> list[str]:
    """Images that somebody looked at and nobody marked anything on, if the run covers them."""
    items, found = posterior.items, posterior.detection
    names = items.looks.images if found is None else found.image_names
    return sorted(set(names) - set(items.images))


def _objects(posterior: Posterior, empty: list[str]) -> list[float]:
    """Objects of each image: real ones, seen and missed, if the prior knows of that."""
    found = posterior.detection
    if found is None:
        return [*(one.n_clusters.mean for one in posterior.findings), *[0.0] * len(empty)]
    assert found.seen_on is not None
    assert found.missed_on is not None
    every = (found.seen_on.mean(axis=0) + found.missed_on.mean(axis=0)).tolist()
    objects = dict(zip(found.image_names, every, strict=True))
    return [objects[name] for name in (*posterior.images, *empty)]


def _pack_need(packer: Packer, posterior: Posterior, names: list[str]) -> bool:
    """How much each image needs one more look, and whether it needs none, if the prior says it."""
    found = posterior.detection
    if found is None:
        return False
    number = {name: at for at, name in enumerate(found.image_names)}
    rows = np.array([number[name] for name in names])
    packer.floats("lookValue", found.look_value[rows], "float64", bits=ROUGH_BITS)
    packer.counts("retired", found.retired(posterior.config.summary)[rows])
    return True


def _places(posterior: Posterior, names: list[str]) -> list[int]:
    """Each image's place in the list of those whose run was too short, worst first."""
    bad = getattr(posterior.verdict, "not_good", ())
    place = {name: k for k, name in enumerate(bad)}
    return [place.get(name, len(bad)) for name in names]


def _photographs(extents: list[Framed | None]) -> list[str | None]:
    """Small versions of the photographs as data URIs, until they are too many."""
    found: list[str | None] = []
    left = MAX_PHOTOGRAPH_BYTES
    for framed in extents:
        small = None
        path = None if framed is None else framed[0]
        if path is not None and left > 0:
            jpeg = thumbnail(path, PHOTOGRAPH_PIXELS, PHOTOGRAPH_QUALITY)
            small = f"data:image/jpeg;base64,{base64.b64encode(jpeg).decode()}"
            left -= len(small)
        found.append(small)
    return found


def _pack_outlines(
    packer: Packer, posterior: Posterior, extents: list[Framed | None]
) -> str | None:
    """The catalogue's outlines, each image's about its own middle; gives their shape.

    None, and nothing packed, if objects have no place. Images without objects come last.
    """
    findings, ground = posterior.findings, flat_map_or_none(posterior.items)
    most = _most_outlines(posterior)
    shown, frames, start = [], [], [0]
    tops = [framed[1][3] < framed[1][2] for framed in extents if framed is not None]
    downwards = sum(tops) > len(tops) / 2
    for catalogue, framed in zip((found.catalogue for found in findings), extents, strict=False):
        columns = {name: np.asarray(catalogue[name]) for name in quantities_of(catalogue)}
        outlines = posterior.likelihood.outlines(columns) if ground and columns else None
        if ground is None or outlines is None:
            return None
        placed = ground.place(outlines)
        if framed is not None:
            placed = _in_frame(placed, framed[1])
        else:
            # As on the photographs of the others.
            placed = _centred(_upside_down(placed) if downwards else placed)
        p = certainty(catalogue)
        order = np.lexsort((-placed.size, p < 0.5))[:most]
        own = placed.take(order)
        shown.append(np.stack([own.x, own.y, own.width, own.height, own.angle, p[order]]))
        frames.append(_frame(placed))
        start.append(start[-1] + len(order))
    empty = len(extents) - len(findings)
    packer.counts("outlineStart", [*start, *start[-1:] * empty])
    usual = [*_roomy(frames), *[(-1.0, 1.0, -1.0, 1.0)] * empty]
    pairs = zip(usual, extents, strict=True)
    shown_frames = [own if one is None else _edges(one[1]) for own, one in pairs]
    step = PLACE_STEP * _usual_size(shown_frames)
    packer.floats("frames", shown_frames, step=step)
    packer.counts("framed", [one is not None for one in extents])
    for name, values in zip("XYWHAP", np.concatenate(shown, axis=1), strict=True):
        kept: dict[str, Any] = {"step": step} if name in "XY" else {"bits": ROUGH_BITS}
        packer.floats(f"outline{name}", values, **({"step": P_STEP} if name == "P" else kept))
    return placed.shape


def _edges(extent: Region) -> Region:
    """Left, right, low and high of an image about its middle."""
    across, up = abs(extent[1] - extent[0]) / 2.0, abs(extent[3] - extent[2]) / 2.0
    return -across, across, -up, up


def _in_frame(placed: FlatMap, extent: Region) -> FlatMap:
    """About the middle of the image, with y upwards, as it is on the page."""
    left, right, bottom, top = extent
    own = replace(placed, x=placed.x - (left + right) / 2.0, y=placed.y - (bottom + top) / 2.0)
    return own if top > bottom else _upside_down(own)


def _upside_down(placed: FlatMap) -> FlatMap:
    """With y that ran downwards upwards."""
    return replace(placed, y=-placed.y, angle=-placed.angle)


def _most_outlines(posterior: Posterior) -> int:
    """Outlines of one picture."""
    findings = posterior.findings
    most = max(len(found.catalogue["cluster"]) for found in findings)
    return max(min(most, MAX_OUTLINES, MAX_ALL_OUTLINES // len(findings)), 1)


def _centred(placed: FlatMap) -> FlatMap:
    """About the middle, and with equal scales: of degrees those on the ground, there."""
    x, y = placed.beside(placed.x, placed.x[0]), placed.y
    across, up = np.median(x), np.median(y)
    wide, tall = 1.0 / float(stretch(up, placed.degrees)), 1.0
    if not placed.equal:
        wide, tall = TILE_SHAPE / (float(np.ptp(x)) or 1.0), 1.0 / (float(np.ptp(y)) or 1.0)
    width, height = wide * placed.width, tall * placed.height
    if placed.equal:
        width, height = placed.width, placed.height
    return replace(
        placed, x=wide * (x - across), y=tall * (y - up), width=width, height=height, degrees=False
    )


def _frame(placed: FlatMap) -> tuple[float, float, float, float]:
    """Left, right, low, high, with the whole of every outline, also of a single one."""
    half: tuple[Array, Array] = placed.half
    ends = []
    for values, reach in zip((placed.x, placed.y), half, strict=True):
        low, high = float((values - reach).min()), float((values + reach).max())
        space = 0.05 * (high - low) if placed.shape == "point" else 0.0
        ends.append((low - space, high + space))
    # A single point, or several on a line, have some room around them.
    room = 0.1 * max(high - low for low, high in ends) or 1.0
    (left, right), (low, high) = ((a, b) if b > a else (a - room, b + room) for a, b in ends)
    return left, right, low, high


def _roomy(frames: list[tuple[float, float, float, float]]) -> Any:
    """Frames far smaller than most, as of a single outline, are made as large as those."""
    left, right, low, high = np.array(frames).T
    size, usual = np.maximum(right - left, high - low), _usual_size(frames)
    more = np.where(size < SMALL_FRAME * usual, 0.5 * (usual - size), 0.0)
    return np.stack([left - more, right + more, low - more, high + more], axis=1)


def _usual_size(frames: list[tuple[float, float, float, float]]) -> float:
    """The larger side of the usual frame."""
    left, right, low, high = np.array(frames).T
    return float(np.median(np.maximum(right - left, high - low)))


def _in_doubt(catalogue: Mapping[str, object]) -> int:
    """Objects of which it is not clear whether they are real, or agreed on."""
    p, (low, high) = certainty(catalogue), DOUBTFUL
    return int(np.count_nonzero((p > low) & (p < high)))


def certainty(table: Mapping[str, object]) -> Any:
    """How probable it is that an object is real or, if the prior does not say, agreed on."""
    return np.asarray(table["p_real"] if "p_real" in table else table["p_consensus"])


def _pack_bars(packer: Packer, posterior: Posterior, empty: int) -> int:
    """Objects by number of experts and by certainty, for each image; gives the number of bars.

    (images, experts, 3): agreed on, in doubt, and not. More experts than bars share the last. So
    many images more have none.
    """
    low, high = DOUBTFUL
    largest = max(int(np.max(found.catalogue["n_experts"])) for found in posterior.findings)
    bars = min(largest, MAX_BARS)
    counts = np.zeros((len(posterior.findings) + empty, bars, 3), np.int64)
    for own, found in zip(counts, posterior.findings, strict=False):
        p, n = certainty(found.catalogue), np.asarray(found.catalogue["n_experts"])
        shade = np.select([p >= high, p > low], [0, 1], 2)
        np.add.at(own, (np.minimum(n, bars) - 1, shade), 1)
    packer.counts("bars", counts)
    return bars


def _legend(posterior: Posterior) -> list[str]:
    """What the colours mean."""
    if posterior.detection is not None:
        return ["real", "in doubt", "not real"]
    return [posterior.consensus_words, "in doubt", "fewer"]


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
    directory.mkdir(parents=True, exist_ok=True)
    remove_file(directory, FOLDER)
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
    place = page_folder(posterior.image_set.number_of(name))
    page = write_report(posterior[name], directory, place=place, title=name, up=UP, **options)
    _write_index(posterior, directory)
    return page


def page_folder(image: int) -> str:
    """Where an image's page is: by its number, as names may be anything."""
    return f"{FOLDER}/{image:06d}"


def _write_page(posterior: Posterior, folder: Path, image: int) -> None:
    """A page with the headline and the map, which takes a fraction of a second."""
    name, contents = posterior.image_set.parts.names[image], Contents(posterior.image(image))
    command = f"dfcrp report RUN --image {shlex.quote(name)}"
    more = paragraph(f"Figures and tables of this {contents.image_word} are put here by")
    text = make_page(
        name,
        headline(contents, link=None),
        [explorer(contents), Section("more", "More", join([more, tag("pre", command)]))],
        style=embed.style(),
        script_hash=embed.SCRIPT_HASH,
        up=UP,
        image_word=contents.image_word,
    )
    write_text(folder, f"{page_folder(image)}/{PAGE}", text)


def _write_index(posterior: Posterior, folder: Path) -> Path:
    contents = Contents(posterior, evaluation=read_evaluation(folder, posterior))
    contents.pictures = pictures_of_many(contents, folder)
    pages = {
        image: f"{page_folder(image)}/{PAGE}"
        for image in posterior.image_set.done
        if (folder / page_folder(image) / PAGE).exists()
    }
    how = f"dfcrp report RUN --image NAME makes the page of {one(contents.image_word)}"
    compared = Section("experts", "How do the experts compare?", _experts(contents))
    counts = Section("how-many", "How many objects?", count_table(contents))
    sections = [
        tiles(posterior, pages, how),
        *prior_sections(contents),
        _long_enough(contents),
        *made_of(contents, (model_fit, how_right)),
        *[counts] * contents.by_threshold,
        compared,
        *item_sections(contents),
        Section("asked", "Data and settings", bullets(_words(contents))),
        *made_of(contents, (decisions,)),
        provenance(contents, folder),
    ]
    text = make_page(
        title_of(posterior.items),
        headline(contents),
        sections,
        style=style(),
        script_hash=SCRIPT_HASH,
        files=list_files(folder, contents.noun),
    )
    write_text(folder, PAGE, text)
    return folder / PAGE


def _long_enough(contents: Contents) -> Section:
    """The verdict, the worst images, and the totals."""
    posterior, images = contents.posterior, plural(contents.image_word)
    kind, sentence = verdict_words(posterior.verdict)
    parts = [
        paragraph(tag("strong", sentence), class_=f"verdict {kind}"),
        bullets(posterior.verdict.advice),
        first_look_words(posterior),
        _worst(posterior),
        diagnostic_table(posterior.verdict.diagnostics, Limits(), f"Totals over all {images}"),
        parameter_table(posterior.verdict, Limits(), "The model parameters, where worst"),
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
    word = posterior.likelihood.image_word(posterior.items)
    columns = [
        Column(word, number=False),
        Column("scans"),
        Column("R-hat"),
        Column("ESS"),
        Column("pairs the chains disagree on"),
    ]
    return details(f"The worst {counted(len(rows), word)}", table(columns, rows))


def _experts(contents: Contents) -> Markup:
    word = contents.image_word
    images = plural(word)
    note = paragraph(
        f"Over all {images}. Two experts are compared on the {images} at which both looked."
        + " The data do not say who looked, so everyone with "
        f"{contents.nouns} on {one(word)} is assumed to have looked at it, and nobody else."
        * (contents.posterior.items.looked is None)
    )
    return join([note, expert_tables(contents)])


def _words(contents: Contents) -> list[str]:
    posterior, record = contents.posterior, contents.posterior.record
    run = posterior.config.run
    images = plural(contents.image_word)
    how = {
        "independent": f"Each {contents.image_word} was fitted by itself, with a concentration "
        f"and tolerances of its own; those given here are averages over the {images}.",
        "shared": f"All {images} were fitted together, with one concentration and one law of "
        "tolerances.",
    }
    most = "up to " if run.scans is None else ""
    drawn = f"{counted(run.chains, 'chain')} of {most}{counted(record.scans, 'scan')}."
    return [*data_words(contents), how[run.images], *model_words(contents), drawn]
