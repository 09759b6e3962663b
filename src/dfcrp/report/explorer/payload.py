"""What the explorer is given: markings, catalogue, draws, and the report's own numbers."""

from __future__ import annotations

import base64
import io
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.items.items import Items
from dfcrp.plots.flat import FlatMap, flat_map
from dfcrp.plots.underlay import Underlay, grey_levels
from dfcrp.report.contents import Contents
from dfcrp.report.explorer.groups import Groups, distinct_clusters
from dfcrp.report.explorer.packing import Packer
from dfcrp.summaries.catalogue import consensus_draws
from dfcrp.summaries.intervals import Interval, summarise
from dfcrp.summaries.membership import UNDECIDED

#: Draws that are shown as ghosts of an object.
MAX_GHOSTS = 40
#: Longest side in pixels, and quality, of the image in the page.
MAX_IMAGE_PIXELS = 2_400
IMAGE_QUALITY = 80


QUANTITIES = ("x", "y", "diameter")


def make_payload(contents: Contents) -> tuple[dict[str, Any], str]:
    """Everything that is read as text, and the arrays as base64."""
    posterior = contents.posterior
    markings, config = posterior.markings, posterior.config
    groups = distinct_clusters(posterior.draws)
    packer = Packer()
    placed = flat_map(markings)
    origin = [float(np.median(placed.x)), float(np.median(placed.y))]
    _pack_markings(packer, contents, placed, origin)
    _pack_catalogue(packer, contents, placed, origin)
    _pack_groups(packer, groups, placed, origin)
    thresholds = tuple(range(1, len(markings.experts) + 1))
    packer.counts(
        "clusterConsensus",
        consensus_draws(
            posterior.draws, posterior.point_partition().labels, markings.families, thresholds
        ),
    )
    counted_ids = [str(i + 1) for i in range(len(markings))]
    about = {
        "experts": list(markings.experts),
        "ids": None if markings.id.tolist() == counted_ids else markings.id.tolist(),
        "origin": origin,
        "units": markings.site.units,
        "sphere": _sphere(markings, placed),
        "draws": posterior.draws.n_chains * posterior.draws.n_draws,
        "drawsUsed": groups.n_draws,
        "minExperts": contents.min_experts,
        "classEdges": list(config.summary.class_edges),
        "classNames": list(config.summary.class_names),
        "diameterFrom": config.summary.diameter if config.summary.class_edges else "mu",
        "placeDigits": contents.place_digits,
        "sizeDigits": contents.size_digits,
        "undecidedBelow": UNDECIDED,
        "counts": _intervals(posterior.consensus_counts(thresholds).interval()),
        "objects": _objects(contents),
        "sideBySide": contents.by_threshold,
        "expertNumbers": _expert_numbers(contents),
        "image": _image(contents.underlay),
    }
    return about | {"arrays": packer.table}, packer.base64()


def _sphere(markings: Items, placed: FlatMap) -> dict[str, float] | None:
    """What the page must know of longitudes: where the map and where the data begin to count."""
    if not placed.degrees:
        return None
    counted_from = 0.0 if markings.x.min() >= 0.0 and markings.x.max() > 180.0 else -180.0
    return {
        "radius": markings.site.sphere_radius_km,
        "cut": placed.cut,
        "countedFrom": counted_from,
    }


def _pack_markings(
    packer: Packer, contents: Contents, placed: FlatMap, origin: list[float]
) -> None:
    """Positions are relative to the origin: single precision is then enough for any unit."""
    posterior = contents.posterior
    markings = posterior.markings
    packer.floats("markingX", placed.x - origin[0])
    packer.floats("markingY", placed.y - origin[1])
    packer.floats("markingDiameter", markings.diameter)
    packer.counts("markingExpert", markings.families)
    labels = posterior.point_partition().labels
    packer.counts("markingCluster", np.unique(labels, return_inverse=True)[1])
    packer.floats("markingProbability", posterior.membership.p_member)
    if posterior.detection is not None:
        packer.floats("markingReal", posterior.detection.p_real_marking)


def _pack_catalogue(
    packer: Packer, contents: Contents, placed: FlatMap, origin: list[float]
) -> None:
    table = contents.catalogue
    x = table["x"].to_numpy()
    # Means and ends of intervals move together to where the map has the object.
    starts = (origin[0] - (placed.across(x) - x), origin[1], 0.0)
    packer.counts("clusterName", table["cluster"].to_numpy())
    packer.floats("clusterStability", table["stability"].to_numpy())
    if contents.posterior.detection is not None:
        packer.floats("clusterReal", table["p_real"].to_numpy())
    for name, start in zip(QUANTITIES, starts, strict=True):
        short = f"cluster{name.capitalize()}"
        packer.floats(short, table[name].to_numpy() - start, "float64")
        packer.floats(f"{short}Sd", table[f"{name}_sd"].to_numpy())
        for end in ("lo", "hi"):
            column = table[f"{name}_{end}"].to_numpy() - start
            packer.floats(f"{short}{end.capitalize()}", column)


def _pack_groups(packer: Packer, groups: Groups, placed: FlatMap, origin: list[float]) -> None:
    packer.counts("groupOffsets", groups.offsets)
    packer.counts("groupMembers", groups.members)
    packer.counts("runOffsets", groups.run_offsets)
    packer.counts("runStart", groups.start)
    packer.counts("runStop", groups.stop)
    x, y, log_diameter = groups.values.T
    first = groups.members[groups.offsets[:-1]]
    x = placed.beside(x, placed.x[first[groups.value_group]])
    _pack_values(packer, "sampled", groups, groups.sampled, {"LogDiameter": log_diameter})
    ghosts = groups.sampled[:: -(-len(groups.sampled) // MAX_GHOSTS)]
    columns = {"X": x - origin[0], "Y": y - origin[1], "LogDiameter": log_diameter}
    _pack_values(packer, "ghost", groups, ghosts, columns)


def _pack_values(
    packer: Packer, prefix: str, groups: Groups, draws: NDArray[np.int64], columns: dict[str, Any]
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
        packer.floats(f"{prefix}{name}Low", low)
        packer.floats(f"{prefix}{name}High", high)
        packer.counts(f"{prefix}{name}", np.rint(255.0 * (column - low[owner]) / width[owner]))


def _intervals(found: Interval) -> dict[str, Any]:
    return {
        name: _finite(np.asarray(getattr(found, name)).round(6)) for name in ("mean", "lo", "hi")
    }


def _finite(values: NDArray[np.float64]) -> list[Any]:
    """Nested lists with null for what is undefined, as JSON has no NaN."""
    found = values.astype(object)
    found[~np.isfinite(values)] = None
    return found.tolist()


def _objects(contents: Contents) -> dict[str, Any] | None:
    """Real objects by size class, "all" first: those that somebody marked, and the missed."""
    found = contents.posterior.detection
    if found is None:
        return None
    return {
        "seen": _intervals(summarise(found.seen)),
        "missed": _intervals(summarise(found.missed)),
    }


def _expert_numbers(contents: Contents) -> dict[str, Any]:
    found = contents.posterior.expert_summary
    return {
        "jaccard": _intervals(found.jaccard),
        "compared": found.compared.tolist(),
        "matrix": _intervals(found.jaccard_matrix),
        "alone": _intervals(found.size_1),
        "missed": _intervals(found.all_but_one),
    }


def _image(underlay: Underlay | None) -> dict[str, Any] | None:
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
