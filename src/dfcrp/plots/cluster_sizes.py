"""Figure: how many experts share an object, in the data and in new data from the model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, VERMILION, WIDE, legend_of, single_axes, styled
from dfcrp.posterior.posterior import Posterior


@dataclass(frozen=True)
class ClusterSizes:
    """Numbers of clusters by size, observed (posterior mean) and predicted."""

    size: NDArray[np.int64]
    observed: NDArray[np.float64]
    predicted: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]

    @property
    def inside(self) -> NDArray[np.bool_]:
        """Where the observed number is within the predicted interval."""
        return (self.lo <= self.observed) & (self.observed <= self.hi)


def prepare_cluster_sizes(posterior: Posterior) -> ClusterSizes:
    """From the detection prior's summary."""
    if posterior.detection is None:
        raise InputError('cluster sizes are predicted under the prior "detection" only')
    rows = posterior.detection.fit_of_sizes()
    return ClusterSizes(
        size=np.array([row["size"] for row in rows]),
        observed=np.array([row["observed"] for row in rows]),
        predicted=np.array([row["predicted"]["mean"] for row in rows]),
        lo=np.array([row["predicted"]["lo"] for row in rows]),
        hi=np.array([row["predicted"]["hi"] for row in rows]),
    )


def draw_cluster_sizes(table: ClusterSizes, ax: Any = None) -> Any:
    """Predicted means with 95 % intervals; observed numbers as diamonds, red outside."""
    with styled():
        ax = single_axes(0.7 * WIDE, 2.8) if ax is None else ax
        predicted = ax.errorbar(
            table.size,
            table.predicted,
            # The mean of a number that is nearly always the same may lie outside of its interval.
            yerr=np.maximum([table.predicted - table.lo, table.hi - table.predicted], 0.0),
            fmt="none",
            ecolor=BLUE,
            elinewidth=5.0,
            alpha=0.4,
        )
        inside = table.inside
        (good,) = ax.plot(
            table.size[inside], table.observed[inside], "D", color=BLUE, markersize=4.0
        )
        handles, names = [predicted, good], ["predicted, 95 %", "observed"]
        if not inside.all():
            (bad,) = ax.plot(
                table.size[~inside], table.observed[~inside], "D", color=VERMILION, markersize=4.0
            )
            handles.append(bad)
            names.append("observed, outside")
        ax.set_ylim(bottom=0.0)
        ax.set_xlabel("experts who marked it")
        ax.set_ylabel("number of clusters")
        ax.xaxis.get_major_locator().set_params(integer=True)
        legend_of(ax, handles, names)
    return ax


def plot_cluster_sizes(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[ClusterSizes, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_cluster_sizes(posterior, **options)
    return table, draw_cluster_sizes(table, ax)
