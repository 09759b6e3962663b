"""The explorer as a section of the report: its markup, its data and its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

from dfcrp.markup import Markup, escape
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.packing import script_json
from dfcrp.report.explorer.payload import make_payload
from dfcrp.report.section import Section

#: In the order in which they build on each other; together they are one script.
SCRIPTS = (
    "words", "base64", "ground", "outlines", "data", "grid", "colours", "state", "selection",
    "draws", "experts_in_draws", "view", "stamps", "map", "overlay", "charts", "filters_panel",
    "counts_panel", "object_panel", "experts_panel", "search", "exports", "gestures", "fragment",
    "main",
)  # fmt: skip


def _resource(name: str) -> str:
    return resources.files("dfcrp.report.explorer").joinpath("page", name).read_text("utf-8")


def script_of(names: Sequence[str], last: str = "") -> str:
    """Files, and what comes after them, as one script in a scope of its own."""
    parts = [*(_resource(f"{name}.js") for name in names), last]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


SCRIPT = script_of(SCRIPTS)
#: What the page's policy allows to run: this script and no other.
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode("ascii")


def style() -> str:
    """The explorer's part of the page's style."""
    return _resource("explorer.css")


def _words(about: dict[str, Any]) -> dict[str, Markup]:
    """What the page's markup says of the kind of item."""
    noun, axes = about["noun"], about["axes"]
    place = "{}, {}".format(*axes) if all(axes) else axes[0]
    found = {
        "noun": f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}",
        "nouns": about["nouns"],
        "find": f"a place ({place})" if about["hasPlaces"] else "what a field says",
        "find_short": place if about["hasPlaces"] else "words",
        "size": (about["size"] or {"name": "size"})["name"].capitalize(),
    }
    return {name: escape(words) for name, words in found.items()}


def explorer(contents: Contents) -> Section:
    """The section with everything in it."""
    about, arrays = make_payload(contents)
    body = Markup(
        Template(_resource("explorer.html")).substitute(_words(about))
        + f'<script type="application/json" id="explorer-about">{script_json(about)}</script>\n'
        + f'<script type="text/plain" id="explorer-arrays">{arrays}</script>\n'
        + f"<script>{SCRIPT}</script>\n"
    )
    return Section("explore", "Explore", body, wide=True)
