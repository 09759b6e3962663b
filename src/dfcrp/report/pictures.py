"""The report's figures: made, saved as files, and packed for the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dfcrp import plots
from dfcrp.markup import Markup, tag
from dfcrp.report.contents import Contents

FOLDER = "figures"
#: SVG files up to this size are put into the page as they are: sharp at any zoom.
MAX_SVG_BYTES = 250_000
#: Colours of a PNG in the page; line drawings need few, and the page becomes half as large.
PNG_COLOURS = 96
JPEG_QUALITY = 88


@dataclass(frozen=True)
class Picture:
    """A figure as files and as a data URI."""

    name: str
    uri: str
    #: Width at which the figure is meant to be seen, in CSS pixels.
    width: int

    def html(self, alt: str, caption: object) -> Markup:
        """The figure with its caption, and links to its files."""
        links = tag(
            "span",
            tag("a", "PNG", href=f"{FOLDER}/{self.name}.png"),
            " · ",
            tag("a", "SVG", href=f"{FOLDER}/{self.name}.svg"),
            class_="files",
        )
        image = tag("img", src=self.uri, alt=alt, style=f"width:{self.width}px", loading="lazy")
        return tag(
            "figure",
            tag("div", image, class_="paper"),
            tag("figcaption", caption, " ", links),
        )


def make_pictures(contents: Contents, folder: Path) -> dict[str, Picture]:
    """Draw every figure that these data allow, and save it in ``folder/figures``."""
    planned = _plan(contents)
    return {name: _save(draw(), folder / FOLDER, name, photo) for name, photo, draw in planned}


#: Name, whether an image lies beneath, and how to draw it.
Plan = tuple[str, bool, Callable[[], Any]]


def _plan(contents: Contents) -> Iterator[Plan]:
    """Each figure that makes sense: of any items, of places, of likelihood and prior."""
    posterior = contents.posterior

    def plan(figure: str, /, beneath: bool = False, **options: Any) -> Plan:
        return figure, beneath, lambda: getattr(plots, f"plot_{figure}")(posterior, **options)[1]

    if contents.placed:
        yield from _plan_maps(contents, plan)
    yield plan("traces", counts=contents.counts)
    yield plan("counts_by_size", counts=contents.counts, dbscan=contents.dbscan)
    yield plan("certainty", catalogue=contents.catalogue)
    if contents.example is not None:
        yield plan("coclustering", item=contents.example.index)
    if len(posterior.items.experts) > 1:
        yield plan("jaccard")
    for figure in (*posterior.likelihood.figures, *posterior.prior.figures):
        if figure not in plots.NEED_SIZES or posterior.diameters is not None:
            beside = {"dbscan": contents.dbscan} if figure in plots.BESIDE_DBSCAN else {}
            yield plan(figure, **beside)


def _plan_maps(contents: Contents, plan: Callable[..., Plan]) -> Iterator[Plan]:
    """Maps, over the image if there is one."""
    image = contents.underlay
    photo = image is not None
    yield plan("items_map", photo, image=image)
    yield plan("expert_panels", photo, image=image)
    yield plan("catalogue_map", photo, catalogue=contents.catalogue, image=image)
    if contents.example is not None:
        yield plan("neighbourhood", photo, item=contents.example, image=image)
    if contents.n_singletons:
        yield plan("singletons", photo, image=image)


def _save(axes: Any, folder: Path, name: str, photo: bool) -> Picture:
    first = axes[0] if isinstance(axes, list) else axes
    figure = first.get_figure(root=True)
    png, svg = plots.save_figure(figure, folder, name)
    # 1 inch of paper is 96 CSS pixels; a little more reads better on a screen.
    width = int(np.ceil(115 * figure.get_figwidth()))
    return Picture(name, _data_uri(png, svg, photo), width)


def _data_uri(png: Path, svg: Path, photo: bool) -> str:
    """The smallest form that still looks good."""
    if not photo and svg.stat().st_size <= MAX_SVG_BYTES:
        return _uri("image/svg+xml", svg.read_bytes())
    from PIL import Image

    out = io.BytesIO()
    with Image.open(png) as image:
        plain = image.convert("RGB")
        if photo:
            plain.save(out, "JPEG", quality=JPEG_QUALITY, subsampling=0)
            return _uri("image/jpeg", out.getvalue())
        few = plain.quantize(PNG_COLOURS, dither=Image.Dither.NONE)
        few.save(out, "PNG", optimize=True)
    return _uri("image/png", out.getvalue())


def _uri(kind: str, content: bytes) -> str:
    return f"data:{kind};base64,{base64.b64encode(content).decode('ascii')}"
