"""Figure: what a radius would cost: the share of violating clusters, and time, against it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.spatial.distance import pdist

from dfcrp.errors import InputError
from dfcrp.items.items import Items
from dfcrp.plots.style import BLUE, GREY, INK, WIDE, legend_of, single_axes, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.losses import members_by_cluster
from dfcrp.summaries.streaming import kept, label_blocks, stride_for

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


def draw_radius(table: RadiusTable, ax: Any = None) -> Any:
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


def plot_radius(posterior: Posterior, ax: Any = None, **options: Any) -> tuple[RadiusTable, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_radius(posterior, **options)
    return table, draw_radius(table, ax)
