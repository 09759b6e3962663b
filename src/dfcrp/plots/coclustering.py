"""Figure: how often the items of a neighbourhood share a cluster, as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.style import INK, VERMILION, WIDE, plain, single_axes, styled
from dfcrp.posterior.explain import find_item, nearest_first
from dfcrp.posterior.posterior import Posterior

#: Items that are shown, more if the last cluster is larger.
SHOWN = 24
#: Items up to which each has its name printed.
MAX_NAMES = 60


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
    posterior: Posterior, item: int | str | None = None, *, size: int = SHOWN
) -> CoclusteringTable:
    """Around an item (index or id); without one, around the least certain one."""
    if item is None:
        item = int(np.argmin(posterior.membership.p_member))
    i = find_item(posterior.items, item)
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


def draw_coclustering(table: CoclusteringTable, ax: Any = None) -> Any:
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
        if count <= MAX_NAMES:
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


def plot_coclustering(
    posterior: Posterior, item: int | str | None = None, ax: Any = None, **options: Any
) -> tuple[CoclusteringTable, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_coclustering(posterior, item, **options)
    return table, draw_coclustering(table, ax)
