"""Figure: the catalogue as a map: which objects are agreed on, doubtful, or not agreed on.

Where the prior says what is real, that takes the place of agreement.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.plots import maps
from dfcrp.plots.flat import FlatMap, flat_catalogue, flat_map
from dfcrp.plots.style import BLUE, GREY, VERMILION, styled
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.posterior import Posterior

#: Probabilities between which an object is called doubtful.
DOUBTFUL = (0.05, 0.95)
NOT_AGREED, IN_DOUBT, AGREED = 0, 1, 2


@dataclass(frozen=True)
class CatalogueMap:
    """One outline for each cluster of the point partition."""

    outlines: FlatMap
    probability: NDArray[np.float64]
    #: ``AGREED``, ``IN_DOUBT`` or ``NOT_AGREED``.
    state: NDArray[np.int64]
    #: Of what the probability is.
    of: str
    region: maps.Region
    underlay: Underlay | None = None


def prepare_catalogue_map(
    posterior: Posterior,
    *,
    catalogue: Any = None,
    image: Any = None,
    extent: maps.Region | None = None,
) -> CatalogueMap:
    """``catalogue`` saves making it a second time."""
    table = posterior.catalogue() if catalogue is None else catalogue
    found = flat_map(posterior.items)
    underlay = read_underlay(image, found.y, extent)
    real = "p_real" in table
    p = table["p_real" if real else "p_consensus"].to_numpy()
    return CatalogueMap(
        outlines=flat_catalogue(posterior, table),
        probability=p,
        state=state_of(p),
        of="real" if real else f"≥ {posterior.config.summary.min_experts} experts",
        region=maps.frame(found, underlay),
        underlay=underlay,
    )


def state_of(p: NDArray[np.float64]) -> NDArray[np.int64]:
    """``AGREED``, ``IN_DOUBT`` or ``NOT_AGREED``."""
    low, high = DOUBTFUL
    return np.select([p >= high, p > low], [AGREED, IN_DOUBT], NOT_AGREED)


def looks(of: str, agreed: str, rest: str) -> tuple[tuple[int, str, float, str], ...]:
    """(state, colour, line width, words), in the order of drawing."""
    low, high = DOUBTFUL
    return (
        (NOT_AGREED, rest, 0.4, f"probability ≤ {low:g}"),
        (AGREED, agreed, 0.8, f"{of}: probability ≥ {high:g}"),
        (IN_DOUBT, VERMILION, 1.4, "in between"),
    )


def add_legend(ax: Any, entries: dict[int, tuple[Any, str]]) -> None:
    """What the colours mean, from agreed to not agreed."""
    handles, names = zip(*(entries[s] for s in (AGREED, IN_DOUBT, NOT_AGREED)), strict=True)
    maps.legend_above(ax, handles, names)


def draw_catalogue_map(table: CatalogueMap, ax: Any = None) -> Any:
    """Blue: real, or enough experts agree; vermilion: doubtful; grey: false, or too few experts."""
    from matplotlib.lines import Line2D

    agreed, rest = (BLUE, GREY) if table.underlay is None else ("#9fd3ff", "#c8c8c8")
    with styled():
        ax = maps.map_axes(table.region, table.outlines) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
        entries = {}
        for state, colour, width, name in looks(table.of, agreed, rest):
            own = table.state == state
            maps.add_outlines(
                ax,
                table.outlines.take(own),
                edgecolors=colour,
                linewidths=width,
                zorder=2 + width,
            )
            handle = Line2D([], [], color=colour, **maps.marker_of(table.outlines.shape, width))
            entries[state] = (handle, f"{name} ({int(own.sum()):,})")
        add_legend(ax, entries)
    return ax


def plot_catalogue_map(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[CatalogueMap, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_catalogue_map(posterior, **options)
    return table, draw_catalogue_map(table, ax)
