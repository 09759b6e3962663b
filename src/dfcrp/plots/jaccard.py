"""Figure: how much each pair of experts agrees, as a heatmap of Jaccard coefficients."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import plural
from dfcrp.plots.style import INK, WIDE, plain, single_axes, styled
from dfcrp.posterior.posterior import Posterior

#: Experts up to which every cell has its number printed.
MAX_PRINTED = 20
#: Experts up to which every row has its name; of more, those with most items are shown.
MAX_SHOWN = 60


@dataclass(frozen=True)
class JaccardTable:
    """Posterior mean and 95 % interval for each pair; experts by number of items."""

    #: Of very many only those with most items.
    experts: tuple[str, ...]
    count: NDArray[np.int64]
    #: (experts, experts), ones on the diagonal.
    mean: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    #: Experts in all, shown or not.
    n_experts: int
    #: What items are called.
    nouns: str = "items"

    def extreme_pairs(self) -> tuple[tuple[str, str], tuple[str, str]] | None:
        """The most and the least similar pair; None if there is no pair."""
        first, second = np.triu_indices(len(self.experts), 1)
        values = self.mean[first, second]
        if not np.isfinite(values).any():
            return None
        most, least = int(np.nanargmax(values)), int(np.nanargmin(values))
        return (
            (self.experts[first[most]], self.experts[second[most]]),
            (self.experts[first[least]], self.experts[second[least]]),
        )


def prepare_jaccard(posterior: Posterior) -> JaccardTable:
    """Pairwise coefficients, ordered from the fewest items to the most."""
    found = posterior.expert_summary
    count = found.count[found.compared]
    order = np.argsort(count, kind="stable")[-MAX_SHOWN:]
    pairs = np.ix_(order, order)
    return JaccardTable(
        experts=tuple(posterior.items.experts[f] for f in found.compared[order]),
        count=count[order],
        mean=np.asarray(found.jaccard_matrix.mean)[pairs],
        lo=np.asarray(found.jaccard_matrix.lo)[pairs],
        hi=np.asarray(found.jaccard_matrix.hi)[pairs],
        n_experts=len(found.count),
        nouns=plural(posterior.likelihood.noun),
    )


def draw_jaccard(table: JaccardTable, ax: Any = None) -> Any:
    """Darker is more similar; by number of items from left to right and bottom to top."""
    count = len(table.experts)
    values = np.where(np.eye(count, dtype=bool), np.nan, table.mean)
    with styled():
        if ax is None:
            size = float(np.clip(1.4 + 0.38 * count, 2.4, 0.8 * WIDE))
            ax = single_axes(size + 0.7, size)
        finite = values[np.isfinite(values)]
        low, high = (finite.min(), finite.max()) if finite.size else (0.0, 1.0)
        if high - low < 0.01:
            low, high = low - 0.01, high + 0.01
        image = ax.imshow(values, origin="lower", cmap="Blues", vmin=low, vmax=high)
        ax.figure.colorbar(image, ax=ax, shrink=0.8, label="Jaccard coefficient")
        _name_experts(ax, table)
        ax.spines[:].set_visible(False)
        if count <= MAX_PRINTED:
            _print_values(ax, values, (low + high) / 2.0)
    return ax


def _name_experts(ax: Any, table: JaccardTable) -> None:
    count = len(table.experts)
    if count < table.n_experts:
        ax.set_xlabel(f"the {count} experts with most {table.nouns}, of {table.n_experts:,}")
    names = [plain(name) for name in table.experts]
    rows = [f"{name} ({n})" for name, n in zip(names, table.count, strict=True)]
    size = {"fontsize": 7.0 if count <= MAX_PRINTED else 5.0}
    ax.set_xticks(range(count), names, rotation=90, **size)
    ax.set_yticks(range(count), rows, **size)
    ax.tick_params(length=0)


def _print_values(ax: Any, values: NDArray[np.float64], middle: float) -> None:
    for row, column in zip(*np.nonzero(np.isfinite(values)), strict=True):
        value = values[row, column]
        ax.text(
            column,
            row,
            f"{value:.2f}".removeprefix("0"),
            ha="center",
            va="center",
            fontsize=6.5,
            color="white" if value > middle else INK,
        )


def plot_jaccard(posterior: Posterior, ax: Any = None) -> tuple[JaccardTable, Any]:
    """Prepare and draw."""
    table = prepare_jaccard(posterior)
    return table, draw_jaccard(table, ax)
