"""Figure: the size-frequency distribution of real objects, seen and corrected for missed ones."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.size_curves import plain_ticks
from dfcrp.plots.style import BLUE, VERMILION, WIDE, legend_of, single_axes, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.summaries.intervals import Interval, summarise


@dataclass(frozen=True)
class CorrectedSizes:
    """N(≥ D) of the objects that somebody marked, and of all."""

    diameter: NDArray[np.float64]
    seen: Interval
    total: Interval


def prepare_corrected_sizes(posterior: Posterior) -> CorrectedSizes:
    """At the lower edge of each level of size."""
    found = posterior.detection
    if found is None:
        raise InputError('missed objects are known under the prior "detection" only')

    def at_least(counts: NDArray[Any]) -> Interval:
        return summarise(counts[:, ::-1].cumsum(axis=1)[:, ::-1])

    return CorrectedSizes(
        found.level_edges[:-1], at_least(found.seen_at), at_least(found.seen_at + found.missed_at)
    )


def draw_corrected_sizes(table: CorrectedSizes, ax: Any = None) -> Any:
    """Two bands on logarithmic scales."""
    with styled():
        ax = single_axes(0.7 * WIDE, 3.2) if ax is None else ax
        handles = []
        for band, colour in ((table.total, VERMILION), (table.seen, BLUE)):
            low, high = np.maximum(band.lo, 0.5), np.maximum(band.hi, 0.5)
            ax.fill_between(table.diameter, low, high, color=colour, alpha=0.25, linewidth=0.0)
            middle = np.where(band.mean >= 0.5, band.mean, np.nan)
            handles += ax.plot(table.diameter, middle, color=colour, linewidth=1.3)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.8)
        ax.set_xlabel("diameter D")
        ax.set_ylabel("number of objects of diameter ≥ D")
        for axis in (ax.xaxis, ax.yaxis):
            plain_ticks(axis)
        legend_of(ax, handles, ["seen and missed", "seen"])
    return ax


def plot_corrected_sizes(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[CorrectedSizes, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_corrected_sizes(posterior, **options)
    return table, draw_corrected_sizes(table, ax)
