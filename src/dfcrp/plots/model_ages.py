"""Figure: the posterior of the model age above each expert's own."""

from __future__ import annotations

from typing import Any

import numpy as np

from dfcrp.plots.style import BLUE, INK, WIDE, plain, single_axes, styled
from dfcrp.posterior.ages import ModelAges

#: Rows of the figure that the histogram takes.
HISTOGRAM_ROWS = 4.0
BINS = 60


def draw_model_ages(table: ModelAges, ax: Any = None) -> Any:
    """Histograms of the draws' ages, without and with the counting error; experts as points."""
    n_experts = len(table.experts)
    total = table.with_counting_error()
    low = np.nanmin([*np.quantile(total, [0.001]), *table.by_expert.low])
    high = np.nanmax([*np.quantile(total, [0.999]), *table.by_expert.high])
    edges = np.linspace(max(low, 0.0), high, BINS + 1)
    with styled():
        ax = single_axes(WIDE, 1.6 + 0.2 * (n_experts + HISTOGRAM_ROWS)) if ax is None else ax
        for ages, alpha, name in (
            (total, 0.25, "posterior and counting error"),
            (table.draws.age, 1.0, "posterior"),
        ):
            counts, _ = np.histogram(ages[np.isfinite(ages)], edges)
            shown = (HISTOGRAM_ROWS - 0.4) * counts / max(counts.max(), 1)
            ax.stairs(
                shown + n_experts,
                edges,
                baseline=n_experts,
                fill=True,
                color=BLUE,
                alpha=alpha,
                label=name,
            )
        found = table.by_expert
        rows = np.arange(n_experts)
        ax.errorbar(
            found.age,
            rows,
            xerr=[found.age - found.low, found.high - found.age],
            fmt="o",
            color=INK,
            markersize=3.5,
            linewidth=0.8,
            label="an expert and one standard error of the count",
        )
        ax.axhline(n_experts - 0.5, color=INK, linewidth=0.5)
        ax.set_ylim(-0.7, n_experts + HISTOGRAM_ROWS)
        names = [plain(name) for name in table.experts]
        ax.set_yticks(
            [*rows, n_experts + 1.2], [*names, f"posterior, ≥ {table.min_experts} experts"]
        )
        ax.tick_params(axis="y", length=0)
        first, last = table.dating.fit_range
        ax.set_xlabel(
            f"model age, Ga ({plain(table.dating.chronology, 60)}; {first:g} to {last:g} km)"
        )
        ax.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)
    return ax
