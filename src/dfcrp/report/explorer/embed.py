"""The explorer as a section of the report: its markup, its data and its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources

from dfcrp.markup import Markup
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.packing import script_json
from dfcrp.report.explorer.payload import make_payload
from dfcrp.markup import Section

#: In the order in which they build on each other; together they are one script.
SCRIPTS = (
    "words", "base64", "ground", "data", "grid", "colours", "state", "selection", "draws",
    "experts_in_draws", "view", "rings", "map", "overlay", "charts", "filters_panel",
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


def explorer(contents: Contents) -> Section:
    """The section with everything in it."""
    about, arrays = make_payload(contents)
    body = Markup(
        _resource("explorer.html")
        + f'<script type="application/json" id="explorer-about">{script_json(about)}</script>\n'
        + f'<script type="text/plain" id="explorer-arrays">{arrays}</script>\n'
        + f"<script>{SCRIPT}</script>\n"
    )
    return Section("explore", "Explore", body, wide=True)
