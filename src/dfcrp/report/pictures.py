"""The report's figures: which there are, drawn and saved, and packed for the page."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from dfcrp import plots
from dfcrp.files import remove_file
from dfcrp.markup import Markup, join, tag
from dfcrp.plots.drawing import FORMATS, DrawnFigure, Order, check_formats, draw_all
from dfcrp.report.contents import Contents
from dfcrp.values import Json

FOLDER = "figures"
#: Name, whether an image lies beneath, and what to prepare it with.
Plan = tuple[str, bool, Json]


@dataclass(frozen=True)
class Picture:
    """A figure as files and as a data URI."""

    name: str
    uri: str
    #: Width at which the figure is meant to be seen, in CSS pixels.
    width: int
    #: Formats of its files.
    formats: tuple[str, ...] = ()

    def html(self, alt: str, caption: object) -> Markup:
        """The figure with its caption, and links to its files."""
        links = [
            tag("a", kind.upper(), href=f"{FOLDER}/{self.name}.{kind}") for kind in self.formats
        ]
        parted = [part for link in links for part in (" · ", link)][1:]
        image = tag("img", src=self.uri, alt=alt, style=f"width:{self.width}px", loading="lazy")
        return tag(
            "figure",
            tag("div", image, class_="paper"),
            tag("figcaption", caption, " ", tag("span", join(parted), class_="files")),
        )


def make_pictures(
    contents: Contents,
    folder: Path,
    formats: Sequence[str] = ("svg",),
    helpers: int | None = 0,
    place: str = "",
) -> dict[str, Picture]:
    """Draw every figure that these data allow, and save it in ``folder/figures``.

    Figures that are there from before and are not drawn now are removed. ``place`` is what comes
    between the two, with a slash at its end.
    """
    return _drawn(contents, _plan(contents), folder, formats=formats, helpers=helpers, place=place)


def pictures_of_many(contents: Contents, folder: Path) -> dict[str, Picture]:
    """Draw the figures of the overview of many images."""
    posterior = contents.posterior
    names: list[str] = [
        name
        for name in posterior.prior.figures_of_many
        if name not in plots.NEED_SCORES
        or (posterior.items.score is not None and not posterior.independent)
    ]
    plans: list[Plan] = [(name, False, {}) for name in names]
    if contents.evaluation is not None:
        plans.append(("evaluation", False, {"found": contents.evaluation}))
    return _drawn(contents, plans, folder)


def _drawn(
    contents: Contents,
    plans: Iterable[Plan],
    folder: Path,
    *,
    formats: Sequence[str] = ("svg",),
    helpers: int | None = 0,
    place: str = "",
) -> dict[str, Picture]:
    chosen, below = check_formats(formats), f"{place}{FOLDER}/"
    posterior = contents.posterior

    def orders() -> Iterator[Order]:
        for figure, beneath, options in plans:
            table = getattr(plots, f"prepare_{figure}")(posterior, **options)
            yield Order(figure, table, folder, chosen, beneath, below)

    drawn = draw_all(orders(), helpers)
    for name in plots.FIGURES:
        for kind in FORMATS:
            if name not in drawn or kind not in chosen:
                remove_file(folder, f"{below}{name}.{kind}")
    return {name: _packed(figure, chosen) for name, figure in drawn.items()}


def _plan(contents: Contents) -> Iterator[Plan]:
    """Each figure that makes sense: of any items, of places, of likelihood and prior.

    Those that take longest come first.
    """
    posterior = contents.posterior

    def plan(figure: str, /, beneath: bool = False, **options: object) -> Plan:
        return figure, beneath, options

    yield plan("traces", counts=contents.counts, failed=True)
    if contents.placed:
        yield from _plan_maps(contents, plan)
    yield plan("counts_by_size", counts=contents.counts, dbscan=contents.dbscan)
    yield plan("certainty", catalogue=contents.catalogue)
    if contents.example is not None:
        yield plan("coclustering", item=contents.example.index)
    if len(posterior.items.experts) > 1:
        yield plan("jaccard")
    if contents.evaluation is not None:
        yield plan("evaluation", found=contents.evaluation)
    for figure in (*posterior.likelihood.figures, *posterior.prior.figures):
        lacking = (
            (figure in plots.NEED_SCORES and posterior.items.score is None)
            or (figure in plots.NEED_DIAMETERS and posterior.diameters is None)
            or (figure in plots.NEED_SIZES and not posterior.has_sizes)
        )
        if not lacking:
            beside: Json = {}
            if figure in plots.BESIDE_DBSCAN:
                beside["dbscan"] = contents.dbscan
            if figure in plots.WITH_ISOCHRONS:
                beside["isochrons"] = contents.isochrons
            yield plan(figure, **beside)


def _plan_maps(contents: Contents, plan: Callable[..., Plan]) -> Iterator[Plan]:
    """Maps, over the image if there is one."""
    image = contents.underlay
    photo = image is not None
    yield plan("items_map", photo, image=image)
    yield plan("catalogue_map", photo, catalogue=contents.catalogue, image=image)
    yield plan("expert_panels", photo, image=image)
    if contents.example is not None:
        yield plan("neighbourhood", photo, item=contents.example, image=image)
    if contents.n_singletons:
        yield plan("singletons", photo, image=image)


def _packed(figure: DrawnFigure, formats: tuple[str, ...]) -> Picture:
    # 1 inch of paper is 96 CSS pixels; a little more reads better on a screen.
    width = int(np.ceil(115 * figure.inches))
    content = base64.b64encode(figure.content).decode("ascii")
    return Picture(figure.name, f"data:{figure.kind};base64,{content}", width, formats)
