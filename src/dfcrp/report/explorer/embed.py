"""The explorer as a section of the report: its markup, its data and its script."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Sequence
from importlib import resources
from string import Template
from typing import Any

from dfcrp.markup import Markup, Section, escape
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.packing import script_json
from dfcrp.report.explorer.payload import make_payload

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
    noun, (across, up) = about["noun"], about["axes"]
    what = ["id", "c12"]
    if across and up:
        what.append(f"{across}, {up}" if about["equalScales"] else "place")
    elif about["texts"]:
        what.append("words")
    ways = {"place": f"a place ({across}, {up})", "words": "what a field says"}
    found = {
        "noun": f"{'an' if noun[0] in 'aeiou' else 'a'} {noun}",
        "nouns": about["nouns"],
        "find": ways["words" if about["texts"] else "place"],
        "find_short": f"{', '.join(what[:-1])} or {what[-1]}",
        "size": (about["size"] or {"name": "size"})["name"].capitalize(),
        "note": _note(about),
    }
    return {name: escape(words) for name, words in found.items()}


def _note(about: dict[str, Any]) -> str:
    """What a reader must know of the positions, where they are not simply places."""
    if not about["hasPlaces"]:
        nouns = about["nouns"]
        return f"One cell for each object, those with most {nouns} first; positions mean nothing"
    names = zip(("across", "up"), about["axes"], strict=True)
    return ", ".join(f"{way}: {name}" for way, name in names if name)


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
