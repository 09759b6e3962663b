"""Figure: where the items lie that no other expert shares, for chosen experts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError, did_you_mean
from dfcrp.markup import counted
from dfcrp.plots import maps
from dfcrp.plots.flat import FlatMap, flat_map
from dfcrp.plots.style import COLOURS, PALE, plain, styled
from dfcrp.plots.underlay import Underlay, read_underlay
from dfcrp.posterior.posterior import Posterior


@dataclass(frozen=True)
class SingletonMap:
    """Items that are alone with at least the threshold's probability."""

    experts: tuple[str, ...]
    #: Posterior mean share of the size-1 clusters, in percent.
    shares: tuple[float, ...]
    #: What one item is called.
    noun: str
    outlines: FlatMap
    #: Position in ``experts``.
    expert: NDArray[np.int64]
    p_alone: NDArray[np.float64]
    threshold: float
    region: maps.Region
    underlay: Underlay | None = None


def loneliest_experts(posterior: Posterior, count: int = 2) -> tuple[str, ...]:
    """The experts with the largest shares of the size-1 clusters, largest first."""
    share = np.nan_to_num(np.asarray(posterior.expert_summary.size_1.mean), nan=-1.0)
    order = np.argsort(-share, kind="stable")[:count]
    return tuple(posterior.items.experts[f] for f in order)


def prepare_singletons(
    posterior: Posterior,
    *,
    experts: Sequence[str] | None = None,
    threshold: float = 0.5,
    image: Any = None,
    extent: maps.Region | None = None,
) -> SingletonMap:
    """Without ``experts`` the two with the largest shares of the size-1 clusters."""
    found = posterior.items
    names = loneliest_experts(posterior) if experts is None else tuple(experts)
    for name in names:
        if name not in found.experts:
            raise InputError(f"there is no expert {name!r}{did_you_mean(name, found.experts, 0.0)}")
    codes = np.array([found.experts.index(name) for name in names])
    alone = posterior.expert_summary.alone
    position = np.full(len(found.experts), -1, np.int64)
    position[codes] = np.arange(len(codes))
    shown = (position[found.families] >= 0) & (alone >= threshold)
    placed = flat_map(found)
    underlay = read_underlay(image, placed.y, extent)
    share = np.asarray(posterior.expert_summary.size_1.mean)
    return SingletonMap(
        experts=names,
        shares=tuple(float(share[f]) for f in codes),
        noun=posterior.likelihood.noun,
        outlines=placed.take(shown),
        expert=position[found.families[shown]],
        p_alone=alone[shown],
        threshold=threshold,
        region=maps.frame(placed, underlay),
        underlay=underlay,
    )


def draw_singletons(table: SingletonMap, ax: Any = None) -> Any:
    """One colour for each expert, the first one beneath the others."""
    from matplotlib.lines import Line2D

    colours = (PALE, "#E69F00") if table.underlay is not None else COLOURS
    with styled():
        ax = maps.map_axes(table.region, table.outlines) if ax is None else ax
        maps.set_map(ax, table.region, table.outlines, table.underlay)
        handles, names = [], []
        for k, name in enumerate(table.experts):
            own = table.expert == k
            colour = colours[k % len(colours)]
            maps.add_outlines(ax, table.outlines.take(own), edgecolors=colour, linewidths=0.9)
            handles.append(Line2D([], [], color=colour, **maps.marker_of(table.outlines.shape)))
            count = int(own.sum())
            names.append(f"{plain(name)}: {counted(count, table.noun)}")
        maps.legend_above(ax, handles, names)
    return ax


def plot_singletons(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SingletonMap, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_singletons(posterior, **options)
    return table, draw_singletons(table, ax)
