"""Figure: the cumulative size-frequency distribution, posterior band beside each expert's own."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.kernels.summaries import count_experts
from dfcrp.plots.style import (
    BLUE,
    COLOURS,
    INK,
    WIDE,
    legend_of,
    line_styles,
    plain,
    single_axes,
    styled,
)
from dfcrp.posterior.consensus import family_arrays, parameter_columns
from dfcrp.posterior.intervals import summarise
from dfcrp.posterior.posterior import Posterior
from dfcrp.posterior.streaming import kept, label_blocks, stride_for

#: Evenly spaced draws that the band is made of.
MAX_DRAWS = 1_000
POINTS = 120
#: Experts that still get a name each.
MAX_NAMES = 24


@dataclass(frozen=True)
class SizeFrequency:
    """N(≥ D), the number of objects of at least diameter D."""

    #: Where the band is evaluated.
    diameter: NDArray[np.float64]
    mean: NDArray[np.float64]
    lo: NDArray[np.float64]
    hi: NDArray[np.float64]
    min_experts: int
    #: By number of markings, fewest first; the diameters of each, ascending.
    experts: tuple[str, ...]
    expert_diameters: tuple[NDArray[np.float64], ...]


def consensus_diameters(posterior: Posterior, min_experts: int) -> list[NDArray[np.float64]]:
    """Ascending diameters of the consensus clusters, for evenly spaced draws.

    A cluster's diameter is exp of its own log diameter or the mean of its members', as the
    settings say.
    """
    draws, markings = posterior.draws, posterior.markings
    from_members = posterior.config.summary.diameter == "members"
    column = 0 if from_members else int(parameter_columns(draws, ("log_diameter",))[0])
    step = stride_for(draws, MAX_DRAWS)
    codes, holder = family_arrays(markings.families, draws.n_markings)
    experts = np.empty(draws.n_markings, np.int64)
    out = []
    for chain, start, stop, labels in label_blocks(draws):
        chosen = np.arange(stop - start)[kept(start, step)]
        block = None if from_members else draws.clusters(chain, start, stop)
        for d in chosen:
            count_experts(labels[d], codes, holder, experts)
            names = np.flatnonzero(experts >= min_experts)
            if block is None:
                sizes = np.bincount(labels[d], minlength=len(experts))
                sums = np.bincount(labels[d], markings.diameter, minlength=len(experts))
                found = sums[names] / sizes[names]
            else:
                rows = slice(block.offsets[d], block.offsets[d + 1])
                at = np.searchsorted(block.labels[rows], names)
                found = np.exp(block.parameters[rows, column][at].astype(np.float64))
            out.append(np.sort(found))
    return out


def prepare_size_frequency(
    posterior: Posterior, *, min_experts: int | None = None, points: int = POINTS
) -> SizeFrequency:
    """Band over the draws' consensus clusters; each expert's own markings beside it."""
    wanted = posterior.config.summary.min_experts if min_experts is None else min_experts
    markings = posterior.markings
    samples = consensus_diameters(posterior, wanted)
    # Below the smallest marking nothing was looked for, and the curve would end in a plateau.
    smallest = float(markings.diameter.min())
    largest = max([markings.diameter.max(), *(s[-1] for s in samples if s.size)])
    grid = np.geomspace(smallest, max(largest, 1.01 * smallest), points)
    # at least D: those not below it
    counts = np.array([s.size - np.searchsorted(s, grid, side="left") for s in samples])
    band = summarise(counts)
    own = [np.sort(markings.diameter[markings.families == f]) for f in range(len(markings.experts))]
    order = np.argsort([len(values) for values in own], kind="stable")
    return SizeFrequency(
        diameter=grid,
        mean=band.mean,
        lo=band.lo,
        hi=band.hi,
        min_experts=wanted,
        experts=tuple(markings.experts[f] for f in order),
        expert_diameters=tuple(own[f] for f in order),
    )


def draw_size_frequency(table: SizeFrequency, ax: Any = None) -> Any:
    """Cumulative numbers on logarithmic scales."""
    with styled():
        ax = single_axes(WIDE, 4.2) if ax is None else ax
        handles, names = _draw_experts(ax, table)
        band = _draw_band(ax, table)
        ax.set_xscale("log")
        ax.set_yscale("log")
        ax.set_ylim(bottom=0.8)
        ax.set_xlabel("diameter D")
        ax.set_ylabel("number of objects of diameter ≥ D")
        _plain_ticks(ax)
        # most markings on top, as in the figure
        legend_of(
            ax,
            [band, *handles[::-1]],
            [f"posterior, ≥ {table.min_experts} experts", *names[::-1]],
            loc="upper left",
            bbox_to_anchor=(1.01, 1.0),
            borderaxespad=0.0,
        )
    return ax


def _draw_experts(ax: Any, table: SizeFrequency) -> tuple[list[Any], list[str]]:
    """A line for each expert; the lines and their names for the legend."""
    many = len(table.experts) > MAX_NAMES
    # Blue is the posterior's.
    styles = line_styles(len(table.experts), COLOURS[1:])
    handles = []
    for values, style in zip(table.expert_diameters, styles, strict=True):
        # every step of N(≥ D) lies at a diameter: N is n down to 1
        numbers = np.arange(len(values), 0, -1)
        look = {"color": INK, "alpha": 0.3} if many else style
        look = look | {"marker": "." if len(values) == 1 else None}
        handles += ax.plot(values, numbers, linewidth=0.8, drawstyle="steps-pre", **look)
    if many:
        return handles[:1], ["each expert"]
    return handles, [plain(name) for name in table.experts]


def _draw_band(ax: Any, table: SizeFrequency) -> tuple[Any, Any]:
    """The posterior's interval and mean."""
    shown = table.hi > 0
    band = ax.fill_between(
        table.diameter[shown],
        # zero has no place on a logarithmic scale
        np.maximum(table.lo[shown], 0.5),
        table.hi[shown],
        color=BLUE,
        alpha=0.3,
        linewidth=0.0,
    )
    positive = table.mean >= 0.5
    (middle,) = ax.plot(table.diameter[positive], table.mean[positive], color=BLUE, linewidth=1.8)
    return band, middle


def _plain_ticks(ax: Any) -> None:
    """20, 50, 100 rather than powers of ten."""
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
        axis.set_minor_formatter(NullFormatter())


def plot_size_frequency(
    posterior: Posterior, ax: Any = None, **options: Any
) -> tuple[SizeFrequency, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_size_frequency(posterior, **options)
    return table, draw_size_frequency(table, ax)
