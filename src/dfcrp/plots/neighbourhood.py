"""Figure: one item among its candidate clusters, to go with its explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import plural
from dfcrp.plots import maps
from dfcrp.plots.flat import FlatMap, flat_map, stretch
from dfcrp.plots.style import (
    COLOURS,
    GREY,
    INK,
    PALE,
    legend_of,
    plain,
    single_axes,
    styled,
)
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.explain import Explanation, explain
from dfcrp.posterior.explain_text import percent
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.membership import ALONE

#: Candidates that have a colour of their own; black is the item itself.
MAX_CANDIDATES = len(COLOURS) - 1
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
    region: maps.Region
    underlay: Underlay | None = None


def prepare_neighbourhood(
    posterior: Posterior,
    item: int | str | Explanation,
    *,
    image: Any = None,
    extent: maps.Region | None = None,
) -> Surroundings:
    """Around an item given by index, id or its explanation."""
    found = item if isinstance(item, Explanation) else explain(posterior, item)
    items, placed = posterior.items, flat_map(posterior.items)
    places = [c for c in found.candidates if c.cluster != ALONE][:MAX_CANDIDATES]
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
    if placed.equal:
        wider = float(stretch((low + high) / 2.0, placed.degrees))
    else:
        wider = (frame[1] - frame[0]) / (frame[3] - frame[2])
    half = 0.56 * max((right - left) / wider, high - low)
    # Points in one place are still seen among others.
    half = half or 0.1 * (frame[3] - frame[2])
    middle_x, middle_y = (left + right) / 2.0, (low + high) / 2.0
    return middle_x - half * wider, middle_x + half * wider, middle_y - half, middle_y + half


def draw_neighbourhood(table: Surroundings, ax: Any = None) -> Any:
    """A colour for each candidate; dashed outlines are by the item's own expert."""
    with styled():
        ax = single_axes(6.0, 3.9) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
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


def _draw_legend(ax: Any, table: Surroundings) -> None:
    from matplotlib.lines import Line2D

    found = table.explanation

    def line(**look: Any) -> Any:
        return Line2D([], [], **look)

    handles = [line(color=INK, linewidth=2.2)]
    names = [f"{table.noun} {plain(found.id, 16)} ({plain(found.expert, 16)})"]
    for k, (cluster, p) in enumerate(zip(table.clusters, table.probabilities, strict=True)):
        handles.append(line(color=COLOURS[k], linewidth=1.2))
        names.append(
            f"cluster {cluster}: sat there in {percent(p)}" if p else f"cluster {cluster}: never"
        )
    if table.p_alone:
        handles.append(line(linestyle="none"))
        names.append(f"alone in {percent(table.p_alone)}")
    if (table.candidate == OTHER).any():
        handles.append(line(color=PALE, linewidth=1.0))
        names.append(f"other {plural(table.noun)}")
    if table.relative.any():
        handles.append(line(color=GREY, linewidth=1.2, linestyle="--"))
        how = "hollow" if table.own.shape == "point" else "dashed"
        names.append(f"{how}: by {plain(found.expert, 16)} too")
    legend_of(ax, handles, names, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)


def plot_neighbourhood(
    posterior: Posterior, item: int | str | Explanation, ax: Any = None, **options: Any
) -> tuple[Surroundings, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_neighbourhood(posterior, item, **options)
    return table, draw_neighbourhood(table, ax)
