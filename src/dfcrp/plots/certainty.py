"""Figure: how sure the catalogue is, marking by marking and cluster by cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots.style import BLUE, WIDE, given_axes, new_axes, styled
from dfcrp.posterior.posterior import Posterior

BINS = 20


@dataclass(frozen=True)
class Certainty:
    """Histograms of probabilities over equal bins from 0 to 1."""

    edges: NDArray[np.float64]
    #: Markings by their probability to belong where they are listed.
    members: NDArray[np.int64]
    #: Clusters by their probability to be shared by enough experts.
    consensus: NDArray[np.int64]
    min_experts: int


def prepare_certainty(
    posterior: Posterior, *, p_consensus: NDArray[np.float64] | None = None, bins: int = BINS
) -> Certainty:
    """``p_consensus`` saves making the catalogue a second time."""
    if p_consensus is None:
        p_consensus = posterior.catalogue()["p_consensus"].to_numpy()
    edges = np.linspace(0.0, 1.0, bins + 1)
    return Certainty(
        edges=edges,
        members=np.histogram(posterior.membership.p_member, edges)[0],
        consensus=np.histogram(p_consensus, edges)[0],
        min_experts=posterior.config.summary.min_experts,
    )


def draw_certainty(table: Certainty, axes: Any = None) -> list[Any]:
    """Markings on the left, clusters on the right; the numbers on a logarithmic scale."""
    with styled():
        panels = given_axes(new_axes(WIDE, 2.4, 1, 2) if axes is None else axes, 2)
        for ax, counts, title, what in (
            (panels[0], table.members, "p_member: markings in their cluster", "markings"),
            (
                panels[1],
                table.consensus,
                f"p_consensus: clusters with ≥ {table.min_experts} experts",
                "clusters",
            ),
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
