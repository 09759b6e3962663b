"""Small multiples of many images, as a section of the overview."""

from __future__ import annotations

import base64
import hashlib
from importlib import resources
from typing import Any

import numpy as np

from dfcrp.markup import Markup, Section
from dfcrp.posterior.findings import Findings
from dfcrp.posterior.posterior import Posterior
from dfcrp.report.explorer.embed import script_of
from dfcrp.report.explorer.packing import Packer, script_json
from dfcrp.summaries.membership import UNDECIDED

#: Circles of one picture, and of all; the largest, those agreed on first.
MAX_CIRCLES = 400
MAX_ALL_CIRCLES = 1_000_000


def _resource(name: str) -> str:
    return resources.files("dfcrp.report.overview").joinpath("page", name).read_text("utf-8")


SCRIPT = script_of(("words", "base64"), _resource("overview.js"))
#: What the page's policy allows to run: this script and no other.
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode("ascii")


def style() -> str:
    """The overview's part of the page's style."""
    return _resource("overview.css")


def tiles(posterior: Posterior, pages: dict[int, str], how_to_make: str) -> Section:
    """The section; ``pages`` are the addresses of the images' pages that there are."""
    about, arrays = make_payload(posterior, pages)
    about["howToMake"] = how_to_make
    body = Markup(
        _resource("overview.html")
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
    _pack_circles(packer, findings)
    about = {
        "names": list(posterior.images),
        "pages": [pages.get(image) for image in posterior.image_set.done],
        "minExperts": posterior.config.summary.min_experts,
        "arrays": packer.table,
    }
    return about, packer.base64()


def _places(posterior: Posterior) -> list[int]:
    """Each image's place in the list of those whose run was too short, worst first."""
    bad = getattr(posterior.verdict, "not_good", ())
    place = {name: k for k, name in enumerate(bad)}
    return [place.get(name, len(bad)) for name in posterior.images]


def _pack_circles(packer: Packer, findings: tuple[Findings, ...]) -> None:
    """The catalogue's circles, each image's about its own middle."""
    most = max(min(MAX_CIRCLES, MAX_ALL_CIRCLES // len(findings)), 1)
    circles: list[np.ndarray] = []
    frames, start = [], [0]
    for found in findings:
        table = found.catalogue
        x, y, d = table["x"], table["y"], table["diameter"]
        middle = np.median(x), np.median(y)
        order = np.lexsort((-d, table["p_consensus"] < 0.5))[:most]
        shown = np.stack([x - middle[0], y - middle[1], d, table["p_consensus"]])[:, order]
        circles.append(shown)
        start.append(start[-1] + shown.shape[1])
        # Circles at the edge may reach over it by half.
        space = 0.25 * d.max()
        low, high = shown[:2].min(axis=1) - space, shown[:2].max(axis=1) + space
        frames.append([low[0], low[1], high[0], high[1]])
    packer.counts("circleStart", start)
    packer.floats("frames", frames)
    for name, values in zip("XYDP", np.concatenate(circles, axis=1), strict=True):
        packer.floats(f"circle{name}", values)
