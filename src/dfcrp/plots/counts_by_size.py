"""Figure: how many objects, by size class: each expert, DBSCAN, and the posterior's histogram."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dfcrp.markup import plural
from dfcrp.plots.style import BLUE, GREY, INK, WIDE, given_axes, new_axes, plain, styled
from dfcrp.posterior.diameters import mean_diameters
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.consensus import ConsensusCounts

#: Rows of the figure that the histogram takes.
HISTOGRAM_ROWS = 3.0
#: Experts that still get a name each.
MAX_NAMES = 40


@dataclass(frozen=True)
class CountsBySize:
    """Counts in every size class; the first class is "all" if there are no classes."""

    size_classes: tuple[str, ...]
    #: What a class means, such as "below 50"; "" where there is nothing to say.
    bounds: tuple[str, ...]
    #: By number of items, fewest first.
    experts: tuple[str, ...]
    #: (classes, experts)
    by_expert: NDArray[np.int64]
    #: Consensus clusters in every draw, (classes, draws).
    posterior: NDArray[np.int64]
    min_experts: int
    #: Clusters of DBSCAN in each class, if given.
    dbscan: NDArray[np.int64] | None = None
    #: What items are called.
    nouns: str = "items"


def size_class_of(diameter: ArrayLike, edges: tuple[float, ...]) -> NDArray[np.int64]:
    """Position of the class of each diameter; an edge belongs to the class above it."""
    return np.searchsorted(np.asarray(edges), np.asarray(diameter), side="right")


def dbscan_counts(posterior: Posterior, labels: ArrayLike) -> NDArray[np.int64]:
    """Clusters in each size class by their members' mean diameter; label -1 is noise."""
    edges, sizes = posterior.size_classes.edges, posterior.diameters
    # Without sizes there are no classes, and any numbers will do.
    means = mean_diameters(labels, np.ones(len(posterior.items)) if sizes is None else sizes)
    return np.bincount(size_class_of(means, edges), minlength=len(edges) + 1)


def dbscan_labels(dbscan: Any, min_experts: int, usual: int) -> Any:
    """The labels for a threshold, of {threshold: labels} or of one array for the usual one."""
    if isinstance(dbscan, Mapping):
        return dbscan.get(min_experts)
    return dbscan if min_experts == usual else None


def prepare_counts_by_size(
    posterior: Posterior,
    *,
    min_experts: int | None = None,
    dbscan: Any = None,
    counts: ConsensusCounts | None = None,
) -> CountsBySize:
    """Count the items of each expert and the clusters of each draw; items without sizes as one.

    ``dbscan`` holds DBSCAN's labels of the items, or labels for several thresholds as
    {min_experts: labels}. ``counts`` saves counting the clusters a second time.
    """
    usual = posterior.config.summary.min_experts
    wanted = usual if min_experts is None else min_experts
    items, classes, sizes = posterior.items, posterior.size_classes, posterior.diameters
    of_item = np.zeros(len(items), np.int64)
    if sizes is not None:
        of_item = size_class_of(sizes, classes.edges)
    n_classes, n_experts = len(classes.edges) + 1, len(items.experts)
    each = np.zeros((n_classes, n_experts), np.int64)
    np.add.at(each, (of_item, items.families), 1)
    order = np.argsort(each.sum(axis=0), kind="stable")
    counts = posterior.consensus_counts((wanted,)) if counts is None else counts
    of_draws = counts.counts[:, :, counts.min_experts.index(wanted)]
    # Column 0 is the total; without classes it is all there is.
    of_draws = of_draws[..., 1:] if classes.edges else of_draws[..., :1]
    labels = dbscan_labels(dbscan, wanted, usual)
    return CountsBySize(
        size_classes=classes.names if classes.edges else ("all",),
        bounds=classes.bounds or ("" if sizes is None else "any diameter",),
        experts=tuple(items.experts[f] for f in order),
        by_expert=each[:, order],
        posterior=of_draws.reshape(-1, n_classes).T,
        min_experts=wanted,
        dbscan=None if labels is None else dbscan_counts(posterior, labels),
        nouns=plural(posterior.likelihood.noun),
    )


def draw_counts_by_size(table: CountsBySize, axes: Any = None) -> list[Any]:
    """One panel for each class: experts as points, DBSCAN as a diamond, draws as a histogram."""
    count = len(table.size_classes)
    rows = len(table.experts) + HISTOGRAM_ROWS + (table.dbscan is not None)
    with styled():
        if axes is None:
            height = float(np.clip(0.7 + 0.17 * rows, 2.2, 8.0))
            width = WIDE if count > 1 else 0.6 * WIDE
            axes = new_axes(width, height, 1, count, sharey=True)
        panels = given_axes(axes, count)
        for k, ax in enumerate(panels[:count]):
            _draw_class(ax, table, k)
            ax.tick_params(axis="y", length=0)
        _name_rows(panels[0], table)
    return panels[:count]


def _draw_class(ax: Any, table: CountsBySize, k: int) -> None:
    n_experts = len(table.experts)
    draws = table.posterior[k]
    low, high = np.quantile(draws, [0.025, 0.975])
    base = n_experts + (table.dbscan is not None)
    ax.axvspan(low, high, color=BLUE, alpha=0.15, linewidth=0.0)
    ax.plot(table.by_expert[k], np.arange(n_experts), "o", color=INK, markersize=3.5)
    if table.dbscan is not None:
        ax.plot(table.dbscan[k], n_experts, "D", color=GREY, markersize=5.0)
    values, times = np.unique(draws, return_counts=True)
    ax.bar(
        values,
        (HISTOGRAM_ROWS - 0.4) * times / times.max(),
        width=1.0,
        bottom=base - 0.3,
        color=BLUE,
        edgecolor=BLUE,
        # A bar one object wide may be thinner than a pixel.
        linewidth=0.8,
    )
    ax.axhline(base - 0.5, color=GREY, linewidth=0.5)
    ax.set_ylim(-0.7, base + HISTOGRAM_ROWS - 0.4)
    reached = np.concatenate((table.by_expert[k], draws))
    space = max(0.06 * (reached.max() - reached.min()), 1.5)
    left, right = reached.min() - space, reached.max() + space
    if table.dbscan is not None:
        left, right = min(left, table.dbscan[k] - space), max(right, table.dbscan[k] + space)
    ax.set_xlim(max(left, -1.0), right)
    ax.xaxis.get_major_locator().set_params(integer=True, nbins=5)
    bounds = f" ({table.bounds[k]})" if table.bounds[k] else ""
    ax.set_title(plain(table.size_classes[k]) + bounds)
    ax.set_xlabel("number of objects")


def _name_rows(ax: Any, table: CountsBySize) -> None:
    n_experts = len(table.experts)
    places: list[float] = list(range(n_experts)) if n_experts <= MAX_NAMES else []
    names = [plain(name) for name in table.experts] if n_experts <= MAX_NAMES else []
    if not names:
        ax.set_ylabel(f"{n_experts} experts, by number of {table.nouns}")
    if table.dbscan is not None:
        places.append(n_experts)
        names.append("DBSCAN")
    base = n_experts + (table.dbscan is not None)
    places.append(base + 0.8)
    names.append(f"posterior, ≥ {table.min_experts} experts")
    ax.set_yticks(places, names)


def plot_counts_by_size(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[CountsBySize, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_counts_by_size(posterior, **options)
    return table, draw_counts_by_size(table, axes)
