"""The report's figures: which there are, drawn and saved, and packed for the page."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp import plots
from dfcrp.files import remove_file
from dfcrp.markup import Markup, join, tag
from dfcrp.plots.drawing import FORMATS, DrawnFigure, Order, check_formats, draw_all
from dfcrp.plots.figure import Figure, Options
from dfcrp.plots.underlay import has_pixels
from dfcrp.report.contents import Contents

FOLDER = "figures"
#: A figure, and what to prepare it with.
Plan = tuple[Figure[Any, Any], Options]


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
    plans = _plan(contents, plots.FIGURES.values())
    return _drawn(contents, plans, folder, formats=formats, helpers=helpers, place=place)


def pictures_of_many(contents: Contents, folder: Path) -> dict[str, Picture]:
    """Draw the figures of the overview of many images."""
    of_many = [figure for figure in plots.FIGURES.values() if figure.of_many]
    return _drawn(contents, _plan(contents, of_many), folder)


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
        for figure, options in plans:
            table = figure.prepare(posterior, **options)
            photo = "image" in options and has_pixels(contents.underlay)
            yield Order(figure.name, table, folder, chosen, photo, below)

    drawn = draw_all(orders(), helpers)
    for name in plots.FIGURES:
        for kind in FORMATS:
            if name not in drawn or kind not in chosen:
                remove_file(folder, f"{below}{name}.{kind}")
    return {name: _packed(figure, chosen) for name, figure in drawn.items()}


def _plan(contents: Contents, figures: Iterable[Figure[Any, Any]]) -> Iterator[Plan]:
    """Those for which the data have what they need, and something to show."""
    for figure in figures:
        if not figure.lacking(contents.posterior):
            options = figure.in_report(contents)
            if options is not None:
                yield figure, options


def _packed(figure: DrawnFigure, formats: tuple[str, ...]) -> Picture:
    # 1 inch of paper is 96 CSS pixels; a little more reads better on a screen.
    width = int(np.ceil(115 * figure.inches))
    content = base64.b64encode(figure.content).decode("ascii")
    return Picture(figure.name, f"data:{figure.kind};base64,{content}", width, formats)
