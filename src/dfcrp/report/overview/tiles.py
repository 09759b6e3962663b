"""Small multiples of many images, as a section of the overview."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from string import Template
from typing import Any

import numpy as np

from dfcrp.markup import Markup, Section, counted, escape, plural
from dfcrp.plots.catalogue_map import DOUBTFUL
from dfcrp.plots.flat import FlatMap, flat_map_or_none, quantities_of, stretch
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.explorer.embed import script_of
from dfcrp.report.explorer.packing import Packer, script_json
from dfcrp.summaries.membership import UNDECIDED

#: Outlines of one picture, and of all; the largest, those agreed on first.
MAX_OUTLINES = 400
MAX_ALL_OUTLINES = 1_000_000
#: Bars of one picture, where objects have no place.
MAX_BARS = 12
#: Width over height of a picture.
TILE_SHAPE = 4.0 / 3.0


def _resource(name: str) -> str:
    return resources.files("dfcrp.report.overview").joinpath("page", name).read_text("utf-8")


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
    body = Markup(
        Template(_resource("overview.html")).substitute(nouns=escape(nouns))
        + f'<script type="application/json" id="explorer-about">{script_json(about)}</script>\n'
        + f'<script type="text/plain" id="explorer-arrays">{arrays}</script>\n'
        + f"<script>{SCRIPT}</script>\n"
    )
    return Section("images", "The images", body, wide=True)


def make_payload(posterior: Posterior, pages: dict[int, str]) -> tuple[dict[str, Any], str]:
    """Everything that is read as text, and the arrays as base64."""
    findings = posterior.findings
    packer = Packer()
    packer.floats("objects", [found.n_clusters.mean for found in findings], "float64")
    packer.floats("agreed", [found.consensus.mean for found in findings], "float64")
    packer.counts("good", [found.verdict.ok for found in findings])
    packer.counts(
        "undecided", [np.count_nonzero(f.membership.p_member < UNDECIDED) for f in findings]
    )
    packer.counts("place", _places(posterior))
    shape = _pack_outlines(packer, posterior)
    bars = 0 if shape is not None else _pack_bars(packer, posterior)
    about = {
        "names": list(posterior.images),
        "pages": [pages.get(image) for image in posterior.image_set.done],
        "minExperts": posterior.config.summary.min_experts,
        "shape": shape,
        "barsOfImage": bars,
        "legend": _legend(posterior),
        "arrays": packer.table,
    }
    return about, packer.base64()


def _places(posterior: Posterior) -> list[int]:
    """Each image's place in the list of those whose run was too short, worst first."""
    bad = getattr(posterior.verdict, "not_good", ())
    place = {name: k for k, name in enumerate(bad)}
    return [place.get(name, len(bad)) for name in posterior.images]


def _pack_outlines(packer: Packer, posterior: Posterior) -> str | None:
    """The catalogue's outlines, each image's about its own middle; gives their shape.

    None, and nothing packed, if objects have no place.
    """
    findings, ground = posterior.findings, flat_map_or_none(posterior.items)
    most = max(min(MAX_OUTLINES, MAX_ALL_OUTLINES // len(findings)), 1)
    shown, frames, start = [], [], [0]
    for table in (found.catalogue for found in findings):
        columns = {name: np.asarray(table[name]) for name in quantities_of(table)}
        outlines = posterior.likelihood.outlines(columns) if ground and columns else None
        if ground is None or outlines is None:
            return None
        placed = _centred(ground.place(outlines))
        p = certainty(table)
        order = np.lexsort((-placed.size, p < 0.5))[:most]
        own = placed.take(order)
        shown.append(np.stack([own.x, own.y, own.width, own.height, own.angle, p[order]]))
        frames.append(_frame(placed))
        start.append(start[-1] + len(order))
    packer.counts("outlineStart", start)
    packer.floats("frames", frames)
    for name, values in zip("XYWHAP", np.concatenate(shown, axis=1), strict=True):
        packer.floats(f"outline{name}", values)
    return placed.shape


def _centred(placed: FlatMap) -> FlatMap:
    """About the middle, and with equal scales: of degrees those on the ground, there."""
    x, y = placed.beside(placed.x, placed.x[0]), placed.y
    across, up = np.median(x), np.median(y)
    wide, tall = 1.0 / float(stretch(up, placed.degrees)), 1.0
    if not placed.equal:
        wide, tall = TILE_SHAPE / (float(np.ptp(x)) or 1.0), 1.0 / (float(np.ptp(y)) or 1.0)
    return replace(placed, x=wide * (x - across), y=tall * (y - up), degrees=False)


def _frame(placed: FlatMap) -> tuple[float, float, float, float]:
    """Left, right, low, high; circles at the edge may reach over it by half."""
    half: tuple[Any, Any] = placed.half
    if placed.round:
        half = (0.25 * placed.size.max(),) * 2
    ends = []
    for values, reach in zip((placed.x, placed.y), half, strict=True):
        low, high = float((values - reach).min()), float((values + reach).max())
        space = 0.05 * (high - low) if placed.shape == "point" else 0.0
        ends.append((low - space, high + space))
    # A single point, or several on a line, have some room around them.
    room = 0.1 * max(high - low for low, high in ends) or 1.0
    (left, right), (low, high) = ((a, b) if b > a else (a - room, b + room) for a, b in ends)
    return left, right, low, high


def certainty(table: Mapping[str, Any]) -> Any:
    """How probable it is that an object is real or, if the prior does not say, agreed on."""
    return np.asarray(table["p_real"] if "p_real" in table else table["p_consensus"])


def _pack_bars(packer: Packer, posterior: Posterior) -> int:
    """Objects by number of experts and by certainty, for each image; gives the number of bars.

    (images, experts, 3): agreed on, in doubt, and not. More experts than bars share the last.
    """
    low, high = DOUBTFUL
    largest = max(int(np.max(found.catalogue["n_experts"])) for found in posterior.findings)
    bars = min(largest, MAX_BARS)
    counts = np.zeros((len(posterior.findings), bars, 3), np.int64)
    for own, found in zip(counts, posterior.findings, strict=True):
        p, n = certainty(found.catalogue), np.asarray(found.catalogue["n_experts"])
        shade = np.select([p >= high, p > low], [0, 1], 2)
        np.add.at(own, (np.minimum(n, bars) - 1, shade), 1)
    packer.counts("bars", counts)
    return bars


def _legend(posterior: Posterior) -> list[str]:
    """What the colours mean."""
    if posterior.detection is not None:
        return ["real", "in doubt", "not real"]
    least = counted(posterior.config.summary.min_experts, "expert")
    return [f"at least {least}", "in doubt", "fewer"]
