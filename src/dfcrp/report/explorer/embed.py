"""The explorer as a section of the report: its markup, its script, and what both are given."""

from __future__ import annotations

import base64
import hashlib
import io
import re
from collections.abc import Sequence
from importlib import resources
from string import Template

import numpy as np
from numpy.typing import NDArray

from dfcrp.likelihoods.base import Likelihood
from dfcrp.markup import Markup, Section, escape
from dfcrp.plots.flat import FlatMap, Underlay, grey_levels
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.data import (
    MANY,
    SIZE_BITS,
    Described,
    Groups,
    Packer,
    distinct_clusters,
    find_places,
    script_json,
    unseen,
)
from dfcrp.summaries.catalogue import Centre, consensus_draws
from dfcrp.summaries.membership import ALONE, ELSEWHERE, UNDECIDED
from dfcrp.summaries.streaming import Interval, summarise
from dfcrp.values import Array, Json

Floats = NDArray[np.float64]

#: Draws that are shown as ghosts of an object.
MAX_GHOSTS = 40
#: Outlines that they may be together; where that makes fewer draws than this, none are shown.
MAX_GHOST_VALUES = 1_000_000
FEWEST_GHOSTS = 8
#: Longest side in pixels, and quality, of the image in the page.
MAX_IMAGE_PIXELS = 2_400
IMAGE_QUALITY = 80
#: An outline turned by so many degrees is the same.
_HALF_TURN = 180.0


def make_payload(contents: Contents) -> tuple[Json, str]:
    """Everything that is read as text, and the arrays as base64."""
    return _Payload(contents).make()


class _Payload:
    """Packs one page's data."""

    def __init__(self, contents: Contents) -> None:
        self.contents, self.posterior = contents, contents.posterior
        self.items = self.posterior.items
        self.likelihood: Likelihood = self.posterior.likelihood
        self.places = find_places(self.posterior, contents.catalogue)
        self.described = Described(contents, self.places)
        placed = self.places.items
        self.origin = float(np.median(placed.x)), float(np.median(placed.y))
        self.packer = Packer(rough=len(self.items) > MANY)

    def make(self) -> tuple[Json, str]:
        """Everything that is read as text, and the arrays as base64."""
        posterior, contents, items = self.posterior, self.contents, self.items
        groups = distinct_clusters(posterior.draws, self._centre())
        self._pack_items()
        self._pack_catalogue()
        self.described.pack(self.packer)
        self._pack_groups(groups)
        thresholds = tuple(range(1, len(items.experts) + 1))
        labels = posterior.point_partition().labels
        agreed = consensus_draws(posterior.draws, labels, items.families, thresholds)
        self.packer.counts("clusterConsensus", agreed)
        counted_ids = [str(i + 1) for i in range(len(items))]
        classes = posterior.size_classes
        about = {
            "noun": contents.noun,
            "nouns": contents.nouns,
            "verb": contents.verb,
            **self._map(),
            **self.described.about(),
            "experts": list(items.experts),
            "ids": None if items.id.tolist() == counted_ids else items.id.tolist(),
            "draws": posterior.draws.n_chains * posterior.draws.n_draws,
            "drawsUsed": groups.n_draws,
            "minExperts": contents.min_experts,
            "classEdges": list(classes.edges),
            "classNames": list(classes.names),
            "sizeFrom": posterior.config.summary.diameter if classes.edges else "mu",
            "undecidedBelow": UNDECIDED,
            "counts": _intervals(posterior.consensus_counts(thresholds).interval()),
            "realObjects": _objects(contents),
            "sideBySide": contents.by_threshold,
            "expertNumbers": _expert_numbers(contents),
            "image": _image(contents.underlay) if self.places.real else None,
        }
        packed = {"arrays": self.packer.table, "compressed": self.packer.compressed}
        return about | packed, self.packer.base64()

    def _map(self) -> Json:
        """What the page must know of the map."""
        placed = self.places.items
        return {
            "origin": self.origin,
            "itemShape": placed.shape,
            "objectShape": self.places.objects.shape,
            "hasPlaces": self.places.real,
            "equalScales": placed.equal or not self.places.real,
            "round": placed.round,
            "axes": placed.axes,
            "placeDigits": placed.digits,
            "units": self.items.site.units,
            "sphere": self._sphere(),
        }

    def _sphere(self) -> dict[str, float] | None:
        """Where, on a sphere, the map and the data begin to count longitudes."""
        placed = self.places.items
        if not placed.degrees:
            return None
        x = self.items.columns[placed.axes[0]]
        counted_from = 0.0 if x.min() >= 0.0 and x.max() > 180.0 else -180.0
        radius = self.items.site.sphere_radius_km
        return {"radius": radius, "cut": placed.cut, "countedFrom": counted_from}

    def _pack_items(self) -> None:
        posterior, packer = self.posterior, self.packer
        self._pack_outlines("item", self.places.items)
        packer.counts("itemExpert", self.items.families)
        labels = posterior.point_partition().labels
        packer.counts("itemCluster", np.unique(labels, return_inverse=True)[1])
        packer.floats("itemProbability", posterior.membership.p_member)
        self._pack_seats()
        if posterior.detection is not None:
            packer.floats("itemReal", posterior.detection.p_real_marking)

    def _pack_seats(self) -> None:
        """Where items sat other than where they are listed: 0 elsewhere, 1 alone, 2 + cluster."""
        found, labels = self.posterior.membership, self.posterior.point_partition().labels
        places = found.places
        assert places is not None
        names, code, size = np.unique(labels, return_inverse=True, return_counts=True)
        home = np.where(size[code] == 1, ALONE, labels)
        other = places.place != home[places.item]
        item, place = places.item[other], places.place[other]
        seat = np.where(place == ALONE, 1, 2 + np.searchsorted(names, place))
        self.packer.counts("seatOffsets", np.searchsorted(item, np.arange(len(labels) + 1)))
        self.packer.counts("seatPlace", np.where(place == ELSEWHERE, 0, seat))
        self.packer.counts("seatDraws", places.counts[:, other].sum(axis=0))

    def _pack_catalogue(self) -> None:
        table, packer = self.contents.catalogue, self.packer
        packer.counts("clusterName", table["cluster"].to_numpy())
        packer.floats("clusterStability", table["stability"].to_numpy())
        if self.posterior.detection is not None:
            packer.floats("clusterReal", table["p_real"].to_numpy())
        self._pack_outlines("cluster", self.places.objects)
        for end, sides in (("Lo", self.places.least), ("Hi", self.places.most)):
            if sides is not None:
                self._pack_sides("cluster", end, *sides)

    def _pack_outlines(self, name: str, placed: FlatMap) -> None:
        """Positions relative to the origin: single precision is then enough for any unit."""
        whole = self.places.items
        step = unseen(whole.digits) if whole.equal and self.places.real else None
        self.packer.floats(f"{name}X", placed.x - self.origin[0], step=step)
        self.packer.floats(f"{name}Y", placed.y - self.origin[1], step=step)
        if placed.shape != "point":
            self._pack_sides(name, "", placed.width, placed.height)
        if placed.angle.any():
            self.packer.floats(f"{name}Angle", placed.angle)

    def _pack_sides(self, name: str, end: str, width: Floats, height: Floats) -> None:
        """Lengths on the ground, also where the map is one of degrees."""
        scale = self.places.items.scale
        self.packer.floats(f"{name}Width{end}", width / scale, bits=SIZE_BITS)
        self.packer.floats(f"{name}Height{end}", height / scale, bits=SIZE_BITS)

    def _centre(self) -> Centre | None:
        """How clusters are described, where the page has a use for it."""
        wanted = self.places.real or self.described.size
        return self.likelihood.centre(self.items) if wanted else None

    def _pack_groups(self, groups: Groups) -> None:
        packer, size = self.packer, self.described.size
        packer.counts("groupOffsets", groups.offsets)
        packer.counts("groupMembers", groups.members)
        packer.counts("runOffsets", groups.run_offsets)
        packer.counts("runStart", groups.start)
        packer.counts("runStop", groups.stop)
        if size in groups.values:
            logs = {"LogSize": np.log(groups.values[size])}
            _pack_values(packer, "sampled", groups, groups.sampled, logs)
        clusters = max(int(np.count_nonzero(groups.value_draw == 0)), 1)
        most = min(MAX_GHOSTS, MAX_GHOST_VALUES // clusters)
        if groups.values and self.places.real and most >= FEWEST_GHOSTS:
            ghosts = groups.sampled[:: -(-len(groups.sampled) // most)]
            _pack_values(packer, "ghost", groups, ghosts, self._ghosts(groups))

    def _ghosts(self, groups: Groups) -> dict[str, Floats]:
        """The outlines of clusters as they were drawn."""
        outlines, placed = self.likelihood.outlines(groups.values), self.places.items
        assert outlines is not None
        first = groups.members[groups.offsets[:-1]][groups.value_group]
        x = placed.beside(outlines.x, placed.x[first])
        found = {"X": x - self.origin[0], "Y": outlines.y - self.origin[1]}
        if outlines.shape != "point":
            found["Width"] = outlines.width
            if not np.array_equal(outlines.width, outlines.height):
                found["Height"] = outlines.height
        if outlines.angle.any():
            near = placed.angle[first]
            away = (outlines.angle - near + _HALF_TURN / 2.0) % _HALF_TURN - _HALF_TURN / 2.0
            found["Angle"] = near + away
        return found


def _pack_values(
    packer: Packer, prefix: str, groups: Groups, draws: NDArray[np.int64], columns: dict[str, Array]
) -> None:
    """Values of some draws: one byte each, between the least and the greatest of its group.

    The step is a 255th of the range, so that the error is a hundredth of a standard deviation.
    """
    n_groups = len(groups.offsets) - 1
    shown = np.isin(groups.value_draw, draws)
    owner = groups.value_group[shown]
    packer.counts(f"{prefix}Draws", draws)
    packer.counts(f"{prefix}Offsets", np.searchsorted(owner, np.arange(n_groups + 1)))
    for name, values in columns.items():
        column = values[shown]
        low = np.full(n_groups, np.inf)
        high = np.full(n_groups, -np.inf)
        np.minimum.at(low, owner, column)
        np.maximum.at(high, owner, column)
        absent = low > high
        low[absent] = high[absent] = 0.0
        width = np.where(high > low, high - low, 1.0)
        typical = float(np.median(width[~absent])) if not absent.all() else 1.0
        packer.floats(f"{prefix}{name}Low", low, step=typical / 256.0)
        packer.floats(f"{prefix}{name}High", high, step=typical / 256.0)
        packer.counts(f"{prefix}{name}", np.rint(255.0 * (column - low[owner]) / width[owner]))


def _intervals(found: Interval) -> Json:
    return {
        name: _finite(np.asarray(getattr(found, name)).round(6)) for name in ("mean", "lo", "hi")
    }


def _finite(values: NDArray[np.float64]) -> list[float | None]:
    """Nested lists with null for what is undefined, as JSON has no NaN."""
    found = values.astype(object)
    found[~np.isfinite(values)] = None
    return found.tolist()


def _objects(contents: Contents) -> Json | None:
    """Real objects by size class, "all" first: those that somebody marked, and the missed."""
    found = contents.posterior.detection
    if found is None:
        return None
    return {
        "seen": _intervals(summarise(found.seen)),
        "missed": _intervals(summarise(found.missed)),
    }


def _expert_numbers(contents: Contents) -> Json:
    found = contents.posterior.expert_summary
    return {
        "jaccard": _intervals(found.jaccard),
        "compared": found.compared.tolist(),
        "matrix": _intervals(found.jaccard_matrix),
        "alone": _intervals(found.size_1),
        "missed": _intervals(found.all_but_one),
    }


def _image(underlay: Underlay | None) -> Json | None:
    """The image as a data URI, and where its edges lie."""
    if underlay is None:
        return None
    from PIL import Image

    levels = grey_levels(underlay.pixels)
    if levels.dtype != np.uint8:
        levels = np.rint(255.0 * levels).astype(np.uint8)
    image = Image.fromarray(levels).convert("L" if levels.ndim == 2 else "RGB")
    image.thumbnail((MAX_IMAGE_PIXELS, MAX_IMAGE_PIXELS))
    out = io.BytesIO()
    image.save(out, "JPEG", quality=IMAGE_QUALITY)
    encoded = base64.b64encode(out.getvalue()).decode("ascii")
    return {"uri": f"data:image/jpeg;base64,{encoded}", "extent": list(underlay.extent)}


#: In the order in which they build on each other; together they are one script.
SCRIPTS = (
    "words", "base64", "ground", "outlines", "data", "grid", "colours", "state", "selection",
    "draws", "experts_in_draws", "view", "stamps", "map", "overlay", "charts", "filters_panel",
    "counts_panel", "object_panel", "experts_panel", "table_panel", "search", "exports",
    "gestures", "fragment", "main",
)  # fmt: skip


#: A line that says which types a function takes.
_TYPES = re.compile(r"^ */\*\* @.*\*/\n", re.MULTILINE)


def _resource(name: str) -> str:
    return resources.files("dfcrp.report.explorer").joinpath("page", name).read_text("utf-8")


def script_of(names: Sequence[str], last: str = "") -> str:
    """Files, and what comes after them, as one script in a scope of its own.

    Without the comments that name types, which are for the checker alone.
    """
    parts = [*(_resource(f"{name}.js") for name in names), last]
    parts = [_TYPES.sub("", part) for part in parts]
    return '(() => {\n"use strict";\n' + "\n".join(parts) + "})();\n"


SCRIPT = script_of(SCRIPTS)
#: What the page's policy allows to run: this script and no other.
SCRIPT_HASH = base64.b64encode(hashlib.sha256(SCRIPT.encode("utf-8")).digest()).decode("ascii")


def style() -> str:
    """The explorer's part of the page's style."""
    return _resource("explorer.css")


def _words(about: Json) -> dict[str, Markup]:
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
        "item": noun,
        "nouns": about["nouns"],
        "find": ways["words" if about["texts"] else "place"],
        "find_short": f"{', '.join(what[:-1])} or {what[-1]}",
        "size": (about["size"] or {"name": "size"})["name"].capitalize() + _unit(about),
        "note": _note(about),
    }
    return {name: escape(words) for name, words in found.items()}


def _unit(about: Json) -> str:
    """The unit of sizes, where a file names one."""
    if about["sphere"] is not None:
        return ", km"
    return "" if about["units"] == "px" else f", {about['units']}"


def _note(about: Json) -> str:
    """What a reader must know of the positions, where they are not simply places."""
    if not about["hasPlaces"]:
        nouns = about["nouns"]
        return f"One cell for each object, those with most {nouns} first; the layout is arbitrary"
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
