"""Figure: is what is called real with probability p real in a share p of the cases?"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, GREY, NARROW, single_axes, styled
from dfcrp.posterior.posterior import Posterior

BINS = 10


@dataclass(frozen=True)
class Reality:
    """Markings by their probability to be real; the truth may be known."""

    edges: NDArray[np.float64]
    count: NDArray[np.int64]
    mean_p: NDArray[np.float64]
    #: Share of real ones in each bin, and two standard errors; None if the truth is not known.
    share: NDArray[np.float64] | None
    error: NDArray[np.float64] | None


def bin_reality(
    p_real: NDArray[np.float64], real: NDArray[np.bool_] | None, bins: int = BINS
) -> Reality:
    """Put markings into bins of equal width."""
    edges = np.linspace(0.0, 1.0, bins + 1)
    place = np.clip(np.searchsorted(edges, p_real, side="right") - 1, 0, bins - 1)
    count = np.bincount(place, minlength=bins)
    many = np.maximum(count, 1)
    mean_p = np.where(count, np.bincount(place, p_real, minlength=bins) / many, np.nan)
    if real is None:
        return Reality(edges, count, mean_p, None, None)
    share = np.where(count, np.bincount(place, real, minlength=bins) / many, np.nan)
    error = 2.0 * np.sqrt(mean_p * (1.0 - mean_p) / many)
    return Reality(edges, count, mean_p, share, error)


def prepare_reality(posterior: Posterior, *, real: NDArray[np.bool_] | None = None) -> Reality:
    """``real`` says of each marking whether it is one of an object, if that is known."""
    if posterior.detection is None:
        raise InputError('what is real is known under the prior "detection" only')
    return bin_reality(posterior.detection.p_real_marking, real)


def draw_reality(table: Reality, ax: Any = None) -> Any:
    """Shares with what chance allows around them; numbers of markings if there is no truth."""
    with styled():
        ax = single_axes(NARROW, 2.8) if ax is None else ax
        ax.set_xlabel("probability to be real")
        ax.set_xlim(0.0, 1.0)
        if table.share is None or table.error is None:
            ax.stairs(table.count, table.edges, color=BLUE, fill=True, alpha=0.5)
            ax.set_yscale("symlog", linthresh=1.0)
            ax.set_ylabel("markings")
            return ax
        ax.plot([0.0, 1.0], [0.0, 1.0], color=GREY, linewidth=0.8)
        ax.errorbar(
            table.mean_p, table.share, yerr=table.error, fmt="o", color=BLUE, markersize=3.5
        )
        for x, y, count in zip(table.mean_p, table.share, table.count, strict=True):
            if count:
                ax.annotate(str(count), (x, y), (4, -8), textcoords="offset points", fontsize=6)
        ax.set_ylim(-0.03, 1.03)
        ax.set_ylabel("share that is real")
    return ax


def plot_reality(posterior: Posterior, ax: Any = None, **options: Any) -> tuple[Reality, Any]:
    """Prepare with ``options`` and draw."""
    table = prepare_reality(posterior, **options)
    return table, draw_reality(table, ax)
