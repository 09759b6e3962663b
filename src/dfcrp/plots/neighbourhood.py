"""Figures of neighbours: one among its candidate clusters, all pairs, and what a radius costs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.markup import plural
from dfcrp.plots import maps
from dfcrp.plots.figure import (
    COMPARED,
    ONE_IMAGE,
    PLACES,
    Columns,
    Figure,
    Options,
    Shared,
    matrix_columns,
    never,
)
from dfcrp.plots.flat import FlatMap, flat_map, stretch
from dfcrp.plots.style import (
    BLUE,
    COLOURS,
    GREY,
    INK,
    PALE,
    VERMILION,
    WIDE,
    given_axes,
    legend_of,
    new_axes,
    plain,
    single_axes,
    styled,
)
from dfcrp.plots.underlay import Beneath, Underlay, read_underlay
from dfcrp.posterior.explain import Explanation, explain, find_item, nearest_first, percent
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.membership import ALONE, ELSEWHERE
from dfcrp.summaries.point_partition import members_by_cluster
from dfcrp.summaries.streaming import kept, label_blocks, stride_for

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.lines import Line2D

    from dfcrp.plots.style import Panels

#: Candidates that have a colour of their own; black is the item itself.
MAX_CANDIDATES = len(COLOURS) - 1
#: What is shown on each side of candidates on a line, relative to what they cover.
BESIDE = 1.5
#: ``candidate`` of an item that belongs to none of them.
OTHER = -1


@dataclass(frozen=True)
class Surroundings:
    """The items around one, and where they belong."""

    explanation: Explanation
    #: What one item is called.
    noun: str
    #: Rows of the items that touch the region, the one in question left out.
    items: NDArray[np.int64]
    outlines: FlatMap
    #: The item itself.
    own: FlatMap
    #: Position in ``clusters``, or ``OTHER``.
    candidate: NDArray[np.int64]
    #: Whether the item is by the same expert.
    relative: NDArray[np.bool_]
    #: Names and probabilities of the candidate clusters, most probable first.
    clusters: tuple[int, ...]
    probabilities: tuple[float, ...]
    p_alone: float
    p_elsewhere: float
    region: maps.Region
    underlay: Underlay | None = None


def prepare_neighbourhood(
    posterior: Posterior,
    item: int | str | Explanation,
    *,
    image: Beneath = None,
    extent: maps.Region | None = None,
) -> Surroundings:
    """Around an item given by index, id or its explanation."""
    found = item if isinstance(item, Explanation) else explain(posterior, item)
    items, placed = posterior.items, flat_map(posterior.items)
    places = [c for c in found.candidates if c.members][:MAX_CANDIDATES]
    inside = np.array([found.index, *(j for place in places for j in place.members)])
    region = _square(placed, inside)
    shown = maps.touching(placed, region)
    shown[found.index] = False
    candidate = np.full(len(items), OTHER, np.int64)
    for k, place in enumerate(places):
        candidate[list(place.members)] = k
    return Surroundings(
        explanation=found,
        noun=posterior.likelihood.noun,
        items=np.flatnonzero(shown),
        outlines=placed.take(shown),
        own=placed.take([found.index]),
        candidate=candidate[shown],
        relative=items.families[shown] == items.families[found.index],
        clusters=tuple(place.cluster for place in places),
        probabilities=tuple(place.probability for place in places),
        p_alone=sum(c.probability for c in found.candidates if c.cluster == ALONE),
        p_elsewhere=sum(c.probability for c in found.candidates if c.cluster == ELSEWHERE),
        region=region,
        underlay=read_underlay(image, placed.y, extent),
    )


def _square(placed: FlatMap, inside: NDArray[np.int64]) -> maps.Region:
    """The smallest square around these outlines, and a little more."""
    own = placed.take(inside)
    across, up = own.half
    left, right = float((own.x - across).min()), float((own.x + across).max())
    low, high = float((own.y - up).min()), float((own.y + up).max())
    frame = maps.frame(placed)
    if placed.on_line:
        beside = BESIDE * (right - left)
        return left - beside, right + beside, frame[2], frame[3]
    if placed.equal:
        wider = float(stretch((low + high) / 2.0, placed.degrees))
    else:
        wider = (frame[1] - frame[0]) / (frame[3] - frame[2])
    half = 0.56 * max((right - left) / wider, high - low)
    # Points in one place are still seen among others.
    half = half or 0.1 * (frame[3] - frame[2])
    middle_x, middle_y = (left + right) / 2.0, (low + high) / 2.0
    return middle_x - half * wider, middle_x + half * wider, middle_y - half, middle_y + half


def draw_neighbourhood(table: Surroundings, ax: Axes | None = None) -> Axes:
    """A colour for each candidate; dashed outlines are by the item's own expert."""
    with styled():
        ax = single_axes(6.0, 3.9) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
        maps.add_scale_bar(ax, table.region, table.outlines)
        for relative in (False, True):
            for k in range(OTHER, len(table.clusters)):
                chosen = (table.candidate == k) & (table.relative == relative)
                maps.add_outlines(
                    ax,
                    table.outlines.take(chosen),
                    edgecolors=PALE if k == OTHER else COLOURS[k],
                    linewidths=0.8 if k == OTHER else 1.1,
                    linestyles="--" if relative else "-",
                )
        maps.add_outlines(ax, table.own, edgecolors=INK, linewidths=2.2, zorder=4)
        _draw_legend(ax, table)
    return ax


def _draw_legend(ax: Axes, table: Surroundings) -> None:
    from matplotlib.lines import Line2D

    found = table.explanation

    def line(**look: Any) -> Line2D:
        return Line2D([], [], **look)

    handles = [line(color=INK, linewidth=2.2)]
    names = [f"{table.noun} {plain(found.id, 16)} ({plain(found.expert, 16)})"]
    for k, (cluster, p) in enumerate(zip(table.clusters, table.probabilities, strict=True)):
        handles.append(line(color=COLOURS[k], linewidth=1.2))
        names.append(
            f"cluster {cluster}: {percent(p)} of draws" if p else f"cluster {cluster}: never"
        )
    if table.p_alone:
        handles.append(line(linestyle="none"))
        names.append(f"alone in {percent(table.p_alone)}")
    if table.p_elsewhere:
        handles.append(line(linestyle="none"))
        names.append(f"elsewhere in {percent(table.p_elsewhere)}")
    if (table.candidate == OTHER).any():
        handles.append(line(color=PALE, linewidth=1.0))
        names.append(f"other {plural(table.noun)}")
    if table.relative.any():
        handles.append(line(color=GREY, linewidth=1.2, linestyle="--"))
        how = "hollow" if table.own.shape == "point" else "dashed"
        names.append(f"{how}: by {plain(found.expert, 16)} too")
    legend_of(ax, handles, names, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)


#: Items that are shown, more if the last cluster is larger.
SHOWN = 24
#: Items up to which each has its name printed.
MAX_NAMED = 60


@dataclass(frozen=True)
class CoclusteringTable:
    """Probabilities of all pairs of a few items, cluster by cluster."""

    #: Positions of the items, their ids and experts.
    items: NDArray[np.int64]
    ids: tuple[str, ...]
    experts: tuple[str, ...]
    #: Cluster of the point partition.
    clusters: NDArray[np.int64]
    probability: NDArray[np.float64]
    #: Row of the item that the neighbourhood is of.
    centre: int


def neighbourhood_of(posterior: Posterior, i: int, size: int) -> NDArray[np.int64]:
    """Whole clusters of the point partition around an item, at least ``size`` items.

    First the item's own, then those it shared a cluster with most often, then the nearest.
    """
    items, point = posterior.items, posterior.point_partition().labels
    near, pairs = nearest_first(posterior, i), posterior.pairs
    touching = (pairs.first == i) | (pairs.second == i)
    shared = np.zeros(len(items))
    shared[(pairs.first + pairs.second - i)[touching]] = pairs.probability[touching]
    shared[i] = 2.0
    # The own cluster comes first even if its members were hardly ever together.
    shared += 2.0 * (point == point[i])
    chosen: list[int] = []
    taken: set[int] = set()
    for j in near[np.argsort(-shared[near], kind="stable")]:
        if int(point[j]) in taken:
            continue
        if len(chosen) >= size:
            break
        taken.add(int(point[j]))
        members = np.flatnonzero(point == point[j])
        chosen.extend(members[np.argsort(items.families[members], kind="stable")].tolist())
    return np.array(chosen, np.int64)


def prepare_coclustering(
    posterior: Posterior, item: int | str | Explanation | None = None, *, size: int = SHOWN
) -> CoclusteringTable:
    """Around an item (index or id); without one, around the least certain one."""
    if item is None:
        item = int(np.argmin(posterior.membership.p_member))
    i = item.index if isinstance(item, Explanation) else find_item(posterior.items, item)
    chosen = neighbourhood_of(posterior, i, size)
    found = posterior.items
    matrix = posterior.coclustering()[chosen][:, chosen].toarray()
    return CoclusteringTable(
        items=chosen,
        ids=tuple(str(found.id[j]) for j in chosen),
        experts=tuple(str(found.expert[j]) for j in chosen),
        clusters=posterior.point_partition().labels[chosen].astype(np.int64),
        probability=matrix,
        centre=int(np.flatnonzero(chosen == i)[0]),
    )


def draw_coclustering(table: CoclusteringTable, ax: Axes | None = None) -> Axes:
    """Lines part the clusters of the point partition; the item in question stands out."""
    count = len(table.items)
    with styled():
        if ax is None:
            size = float(np.clip(1.8 + 0.16 * count, 2.6, 0.85 * WIDE))
            ax = single_axes(size + 0.6, size)
        image = ax.imshow(table.probability, cmap="Blues", vmin=0.0, vmax=1.0)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="probability of sharing a cluster")
        for edge in np.flatnonzero(np.diff(table.clusters)) + 0.5:
            ax.axhline(edge, color=INK, linewidth=0.6)
            ax.axvline(edge, color=INK, linewidth=0.6)
        ax.set_xticks([])
        ax.set_yticks([])
        if count <= MAX_NAMED:
            names = [
                f"{plain(expert, 16)} {plain(name, 12)}"
                for expert, name in zip(table.experts, table.ids, strict=True)
            ]
            ax.set_yticks(range(count), names, fontsize=6.0)
            ax.set_xticks(range(count), names, fontsize=6.0, rotation=90)
            for label in (ax.get_yticklabels()[table.centre], ax.get_xticklabels()[table.centre]):
                label.set(color=VERMILION, fontweight="bold")
        ax.tick_params(length=0)
        for side in ("top", "right"):
            ax.spines[side].set_visible(True)
    return ax


#: Candidates that are weighed beside each other.
MAX_WEIGHED = 3


@dataclass(frozen=True)
class MatchWeights:
    """What each field says on whether a record is of one object with the members of clusters.

    A weight is the base-2 logarithm of a Bayes factor: 1 doubles the odds of one object.
    """

    #: The record, in words.
    name: str
    #: A cluster and its probability, field by field.
    clusters: tuple[int, ...]
    probability: tuple[float, ...]
    fields: tuple[str, ...]
    own: tuple[str, ...]
    theirs: tuple[str, ...]
    weight: NDArray[np.float64]


def prepare_match_weights(
    posterior: Posterior, item: int | str | Explanation | None = None
) -> MatchWeights:
    """Of a record (index, id or explanation) and its most probable clusters; by default of the
    least certain record.
    """
    if item is None:
        item = int(np.argmin(posterior.membership.p_member))
    found = item if isinstance(item, Explanation) else explain(posterior, item)
    rows = [
        (candidate.cluster, candidate.probability, said)
        for candidate in [c for c in found.candidates if c.evidence and c.members][:MAX_WEIGHED]
        for said in sorted(candidate.evidence, key=lambda said: -abs(said.log_odds))
    ]
    return MatchWeights(
        name=f"{found.id} ({found.expert})",
        clusters=tuple(cluster for cluster, *_ in rows),
        probability=tuple(p for _, p, _ in rows),
        fields=tuple(said.name for *_, said in rows),
        own=tuple(said.own for *_, said in rows),
        theirs=tuple(said.theirs for *_, said in rows),
        weight=np.array([said.log_odds for *_, said in rows]) / np.log(2.0),
    )


def draw_match_weights(table: MatchWeights, axes: Panels | None = None) -> list[Axes]:
    """A panel for each cluster: each field moves the total to the right (one object) or left."""
    names = list(dict.fromkeys(table.clusters))
    count = max(len(names), 1)
    with styled():
        if axes is None:
            rows = max([table.clusters.count(name) for name in names] + [2])
            axes = new_axes(WIDE, count * (0.22 * rows + 0.7), count, 1, sharex=True)
        panels = given_axes(axes, count)[:count]
        for ax, name in zip(panels, names, strict=False):
            _draw_weights(ax, table, name)
        panels[-1].set_xlabel("match weight: log₂ of the odds of one object against two")
        if not names:
            panels[0].set_title(f"{plain(table.name)}: no other record is near")
    return panels


def _draw_weights(ax: Axes, table: MatchWeights, cluster: int) -> None:
    own = [k for k, name in enumerate(table.clusters) if name == cluster]
    weights = table.weight[own]
    ends = np.cumsum(weights)
    places = np.arange(len(own))
    ax.axvline(0.0, color=GREY, linewidth=0.8)
    ax.barh(places, weights, left=ends - weights, color=np.where(weights >= 0, BLUE, VERMILION))
    ax.barh([len(own)], [ends[-1]], color=INK)
    for at, end in zip((*places, len(own)), (*ends, ends[-1]), strict=True):
        said = weights[at] if at < len(own) else end
        shift = 3 if said >= 0 else -3
        ax.annotate(
            f"{said:+.1f}",
            (end, at),
            (shift, 0),
            textcoords="offset points",
            ha="left" if said >= 0 else "right",
            va="center",
            fontsize=6,
        )
    words = [_field_words(table, k) for k in own]
    ax.set_yticks([*places, len(own)], [*words, "all fields"], fontsize=6.5)
    ax.set_ylim(len(own) + 0.6, -0.6)
    ax.margins(x=0.12)
    p = table.probability[own[0]]
    ax.set_title(f"{plain(table.name, 40)} and cluster {cluster}: {percent(p)} of draws")


def _field_words(table: MatchWeights, k: int) -> str:
    """A field with the two values, or the one that they share."""
    own, theirs = plain(table.own[k] or "–", 18), plain(table.theirs[k] or "–", 18)
    return f"{plain(table.fields[k])}: {own}" + ("" if own == theirs else f" / {theirs}")


#: Evenly spaced draws that are looked at.
MAX_DRAWS = 500
POINTS = 200


@dataclass(frozen=True)
class RadiusTable:
    """Shares of clusters that a radius would forbid, and how long a run takes with it."""

    radius: NDArray[np.float64]
    #: Mean over draws of the share of clusters with two members further apart than the radius.
    violating: NDArray[np.float64]
    #: Largest distance between two members of a cluster in any draw.
    widest: float
    #: Timed runs, if given.
    timed_radius: NDArray[np.float64]
    seconds: NDArray[np.float64]
    chosen: float | None = None


def cluster_widths(
    labels: NDArray[np.int32], items: Items, known: dict[bytes, float]
) -> NDArray[np.float64]:
    """Largest distance between two members, for each cluster of one draw.

    ``known`` carries the answers from draw to draw, since most clusters come again.
    """
    _, order, offsets = members_by_cluster(labels)
    order = order.astype(np.int32)
    widths, places = np.zeros(len(offsets) - 1), items.places
    for k in np.flatnonzero(np.diff(offsets) > 1):
        members = order[offsets[k] : offsets[k + 1]]
        key = members.tobytes()
        if key not in known:
            known[key] = float(pdist(places[members]).max())
        widths[k] = known[key]
    return widths


def prepare_radius(
    posterior: Posterior,
    *,
    radii: ArrayLike | None = None,
    timed: ArrayLike | None = None,
    seconds: ArrayLike | None = None,
    chosen: float | None = None,
) -> RadiusTable:
    """From draws made without a radius: which share of clusters each radius would forbid.

    ``timed`` and ``seconds`` are radii and the times of runs with them, measured before;
    ``chosen`` is the radius to mark.
    """
    times = np.asarray([] if seconds is None else seconds, np.float64)
    timed_radius = np.asarray([] if timed is None else timed, np.float64)
    if times.shape != timed_radius.shape:
        raise InputError(f"{timed_radius.size} timed radii, but {times.size} times")
    if not {"x", "y"} <= set(posterior.items.columns):
        raise InputError(f"a radius is of items with a place; {posterior.items.kind} have none")
    known: dict[bytes, float] = {}
    widths = []
    step = stride_for(posterior.draws, MAX_DRAWS)
    for _, start, _, labels in label_blocks(posterior.draws):
        for row in labels[kept(start, step)]:
            widths.append(np.sort(cluster_widths(row, posterior.items, known)))
    widest = max(float(w[-1]) for w in widths)
    if radii is None:
        end = max(1.1 * widest, chosen or 0.0, float(timed_radius.max(initial=0.0)), 1e-9)
        radii = np.linspace(0.0, end, POINTS)
    at = np.asarray(radii, np.float64)
    shares = [(w.size - np.searchsorted(w, at, side="right")) / w.size for w in widths]
    return RadiusTable(at, np.mean(shares, axis=0), widest, timed_radius, times, chosen)


def draw_radius(table: RadiusTable, ax: Axes | None = None) -> Axes:
    """Shares on the left axis (dashed), minutes on the right (solid), the choice dotted."""
    with styled():
        ax = single_axes(0.75 * WIDE, 3.0) if ax is None else ax
        handles = ax.plot(table.radius, 100.0 * table.violating, "--", color=BLUE)
        names = ["violating clusters"]
        ax.set_xlabel("radius ρ")
        ax.set_ylabel("violating clusters (%)")
        ax.set_ylim(bottom=0.0)
        ax.set_xlim(float(table.radius.min()), float(table.radius.max()))
        if table.seconds.size:
            right = ax.twinx()
            right.spines["right"].set_visible(True)
            order = np.argsort(table.timed_radius)
            handles += right.plot(
                table.timed_radius[order], table.seconds[order], "-o", color=INK, markersize=3.0
            )
            names.append("time")
            right.set_ylabel("time (s)")
            right.set_ylim(bottom=0.0)
        if table.chosen is not None:
            handles.append(ax.axvline(table.chosen, linestyle=":", color=GREY))
            names.append(f"chosen: {table.chosen:g}")
        legend_of(ax, handles, names, loc="upper center", bbox_to_anchor=(0.5, 1.14), ncols=3)
    return ax


def list_coclustering(table: CoclusteringTable) -> Columns:
    """A row for each pair of items."""
    return matrix_columns({"item": table.ids, "other": table.ids}, probability=table.probability)


def _around_example(shared: Shared, **options: object) -> Options | None:
    found = shared.example
    return None if found is None else {"item": found, **options}


FIGURES = (
    Figure(
        "coclustering",
        "how often the items of a neighbourhood share a cluster; by default that of the least "
        "certain item",
        prepare_coclustering,
        draw_coclustering,
        in_report=_around_example,
        listing=list_coclustering,
    ),
    Figure(
        "neighbourhood",
        "one item among its candidate clusters; goes with `posterior.explain`",
        prepare_neighbourhood,
        draw_neighbourhood,
        needs=(PLACES,),
        in_report=lambda shared: _around_example(shared, image=shared.underlay),
    ),
    Figure(
        "match_weights",
        "what each field of a record says for or against its being of one object with the members "
        "of its most probable clusters, as a waterfall; by default of the least certain record",
        prepare_match_weights,
        draw_match_weights,
        needs=(COMPARED, ONE_IMAGE),
        in_report=_around_example,
    ),
    Figure(
        "radius",
        "share of clusters that a radius would forbid, and time, against the radius",
        prepare_radius,
        draw_radius,
        in_report=never,
    ),
)
