"""Figure: one marking among its candidate clusters, to go with its explanation."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

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

#: Candidates that have a colour of their own; black is the marking itself.
MAX_CANDIDATES = len(COLOURS) - 1
#: ``candidate`` of a marking that belongs to none of them.
OTHER = -1


@dataclass(frozen=True)
class Neighbourhood:
    """The markings around one, and where they belong."""

    explanation: Explanation
    #: Positions of the markings that touch the region, the one in question left out.
    markings: NDArray[np.int64]
    x: NDArray[np.float64]
    y: NDArray[np.float64]
    diameter: NDArray[np.float64]
    #: x, y and diameter of the marking itself.
    own: NDArray[np.float64]
    #: Position in ``clusters``, or ``OTHER``.
    candidate: NDArray[np.int64]
    #: Whether the marking is by the same expert.
    relative: NDArray[np.bool_]
    #: Names and probabilities of the candidate clusters, most probable first.
    clusters: tuple[int, ...]
    probabilities: tuple[float, ...]
    p_alone: float
    region: maps.Region
    underlay: Underlay | None = None
    degrees: bool = False


def prepare_neighbourhood(
    posterior: Posterior,
    marking: int | str | Explanation,
    *,
    image: Any = None,
    extent: maps.Region | None = None,
) -> Neighbourhood:
    """Around a marking given by index, id or its explanation."""
    found = marking if isinstance(marking, Explanation) else explain(posterior, marking)
    markings, placed = posterior.markings, flat_map(posterior.markings)
    places = [c for c in found.candidates if c.cluster != ALONE][:MAX_CANDIDATES]
    inside = np.array([found.index, *(j for place in places for j in place.members)])
    region = _square(placed, inside)
    shown = maps.within(placed.x, placed.y, region, placed.diameter / 2.0)
    shown[found.index] = False
    candidate = np.full(len(markings), OTHER, np.int64)
    for k, place in enumerate(places):
        candidate[list(place.members)] = k
    return Neighbourhood(
        explanation=found,
        markings=np.flatnonzero(shown),
        x=placed.x[shown],
        y=placed.y[shown],
        diameter=placed.diameter[shown],
        own=np.array([v[found.index] for v in (placed.x, placed.y, placed.diameter)]),
        candidate=candidate[shown],
        relative=markings.families[shown] == markings.families[found.index],
        clusters=tuple(place.cluster for place in places),
        probabilities=tuple(place.probability for place in places),
        p_alone=sum(c.probability for c in found.candidates if c.cluster == ALONE),
        region=region,
        underlay=read_underlay(image, markings.y, extent),
        degrees=placed.degrees,
    )


def _square(placed: FlatMap, inside: NDArray[np.int64]) -> maps.Region:
    """The smallest square around these circles, and a little more."""
    x, y, r = placed.x[inside], placed.y[inside], placed.diameter[inside] / 2.0
    low, high = (y - r).min(), (y + r).max()
    wider = float(stretch((low + high) / 2.0, placed.degrees))
    left, right = (x - wider * r).min(), (x + wider * r).max()
    half = 0.56 * max((right - left) / wider, high - low)
    middle_x, middle_y = (left + right) / 2.0, (low + high) / 2.0
    return middle_x - half * wider, middle_x + half * wider, middle_y - half, middle_y + half


def draw_neighbourhood(table: Neighbourhood, ax: Any = None) -> Any:
    """A colour for each candidate; dashed circles are by the marking's own expert."""
    with styled():
        ax = single_axes(6.0, 3.9) if ax is None else ax
        maps.set_map(ax, table.region, table.underlay, degrees=table.degrees)
        for relative in (False, True):
            for k in range(OTHER, len(table.clusters)):
                chosen = (table.candidate == k) & (table.relative == relative)
                maps.add_circles(
                    ax,
                    table.x[chosen],
                    table.y[chosen],
                    table.diameter[chosen],
                    degrees=table.degrees,
                    edgecolors=PALE if k == OTHER else COLOURS[k],
                    linewidths=0.8 if k == OTHER else 1.1,
                    linestyles="--" if relative else "-",
                )
        own = table.own[:, np.newaxis]
        maps.add_circles(ax, *own, degrees=table.degrees, edgecolors=INK, linewidths=2.2, zorder=4)
        _draw_legend(ax, table)
    return ax


def _draw_legend(ax: Any, table: Neighbourhood) -> None:
    from matplotlib.lines import Line2D

    found = table.explanation

    def line(**look: Any) -> Any:
        return Line2D([], [], **look)

    handles = [line(color=INK, linewidth=2.2)]
    names = [f"marking {plain(found.id, 16)} ({plain(found.expert, 16)})"]
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
        names.append("other markings")
    if table.relative.any():
        handles.append(line(color=GREY, linewidth=1.2, linestyle="--"))
        names.append(f"dashed: by {plain(found.expert, 16)} too")
    legend_of(ax, handles, names, loc="upper left", bbox_to_anchor=(1.02, 1.0), borderaxespad=0.0)


def plot_neighbourhood(
    posterior: Posterior, marking: int | str | Explanation, ax: Any = None, **options: Any
) -> tuple[Neighbourhood, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_neighbourhood(posterior, marking, **options)
    return table, draw_neighbourhood(table, ax)
