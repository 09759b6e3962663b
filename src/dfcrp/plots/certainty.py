"""Figures of how sure the catalogue is: item by item, and pair by pair as a matrix."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import plural
from dfcrp.plots.style import (
    BLUE,
    INK,
    VERMILION,
    WIDE,
    given_axes,
    new_axes,
    plain,
    single_axes,
    styled,
)
from dfcrp.posterior.explain import find_item, nearest_first
from dfcrp.posterior.posterior import Posterior
from dfcrp.settings.consensus import in_short

BINS = 20


@dataclass(frozen=True)
class Certainty:
    """Histograms of probabilities over equal bins from 0 to 1."""

    edges: NDArray[np.float64]
    #: Items by their probability to belong where they are listed.
    members: NDArray[np.int64]
    #: Clusters by their probability to be shared by enough experts, or to be real if that is known.
    clusters: NDArray[np.int64]
    #: Which of the two, in words.
    of: str
    #: What items are called.
    nouns: str = "items"


def prepare_certainty(
    posterior: Posterior, *, catalogue: Any = None, bins: int = BINS
) -> Certainty:
    """``catalogue`` saves making it a second time."""
    table = posterior.catalogue() if catalogue is None else catalogue
    real = "p_real" in table
    agreed = f"p_consensus: clusters with {in_short(posterior.config.summary.min_experts)}"
    edges = np.linspace(0.0, 1.0, bins + 1)
    return Certainty(
        edges=edges,
        members=np.histogram(posterior.membership.p_member, edges)[0],
        clusters=np.histogram(table["p_real" if real else "p_consensus"], edges)[0],
        of="p_real: clusters that are real objects" if real else agreed,
        nouns=plural(posterior.likelihood.noun),
    )


def draw_certainty(table: Certainty, axes: Any = None) -> list[Any]:
    """Items on the left, clusters on the right; the numbers on a logarithmic scale."""
    with styled():
        panels = given_axes(new_axes(WIDE, 2.4, 1, 2) if axes is None else axes, 2)
        for ax, counts, title, what in (
            (panels[0], table.members, f"p_member: {table.nouns} in their cluster", table.nouns),
            (panels[1], table.clusters, table.of, "clusters"),
        ):
            ax.bar(
                table.edges[:-1],
                counts,
                width=np.diff(table.edges),
                align="edge",
                color=BLUE,
                edgecolor="white",
                linewidth=0.5,
            )
            # Nearly all are sure; on a linear scale the few that are not would vanish.
            ax.set_yscale("log")
            ax.set_ylim(0.7, 2.0 * max(counts.max(), 5))
            ax.set_xlim(0.0, 1.0)
            ax.set_title(title)
            ax.set_xlabel("posterior probability")
            ax.set_ylabel(f"number of {what}")
            _whole_numbers(ax)
    return panels[:2]


def _whole_numbers(ax: Any) -> None:
    from matplotlib.ticker import FuncFormatter, NullFormatter

    ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:,.0f}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def plot_certainty(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[Certainty, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_certainty(posterior, **options)
    return table, draw_certainty(table, axes)


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
