"""Figure: how sure the catalogue is, item by item and cluster by cluster."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.markup import plural
from dfcrp.plots.style import BLUE, WIDE, given_axes, new_axes, styled
from dfcrp.posterior.posterior import Posterior

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
    agreed = f"p_consensus: clusters with ≥ {posterior.config.summary.min_experts} experts"
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
