"""Figure: how likely each expert is to find an object, by its diameter."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dfcrp.errors import InputError
from dfcrp.plots.style import BLUE, GREY, WIDE, given_axes, new_axes, plain, styled
from dfcrp.posterior.posterior import Posterior
from dfcrp.priors.detection.curves import sensitivity_curves
from dfcrp.summaries.intervals import Interval

#: Panels in a row, and experts that still get one each: those with most markings.
COLUMNS = 4
MAX_EXPERTS = 24


@dataclass(frozen=True)
class SensitivityTable:
    """Curves of the experts, most markings first: (experts, diameters)."""

    experts: tuple[str, ...]
    diameter: NDArray[np.float64]
    sensitivity: Interval


def prepare_sensitivity(posterior: Posterior) -> SensitivityTable:
    """The curves of the experts with most markings."""
    if posterior.config.run.prior != "detection":
        raise InputError('sensitivities are known under the prior "detection" only')
    markings = posterior.markings
    found = sensitivity_curves(posterior)
    count = np.bincount(markings.families)
    order = np.argsort(-count, kind="stable")[:MAX_EXPERTS]
    names = tuple(markings.experts[f] for f in order)
    return SensitivityTable(names, found.diameter, found.sensitivity[order])


def draw_sensitivity(table: SensitivityTable, axes: Any = None) -> list[Any]:
    """A panel for each expert: the curve with its 95 % band, the others' pale behind it."""
    count = len(table.experts)
    columns = min(COLUMNS, count)
    rows = -(-count // columns)
    with styled():
        if axes is None:
            axes = new_axes(WIDE, 1.5 * rows + 0.4, rows, columns, sharex=True, sharey=True)
        panels = given_axes(axes, count)
        for k, name in enumerate(table.experts):
            _draw_panel(panels[k], table, k)
            panels[k].set_title(plain(name))
        for ax in panels[count:]:
            ax.set_axis_off()
        panels[0].get_figure().supxlabel("diameter of the object", fontsize=8)
        panels[0].get_figure().supylabel("probability to be marked", fontsize=8)
    return panels[:count]


def _draw_panel(ax: Any, table: SensitivityTable, k: int) -> None:
    from matplotlib.ticker import FuncFormatter, LogLocator, NullFormatter

    found, x = table.sensitivity, table.diameter
    if len(x) == 1:  # the same for all sizes
        found = Interval(*(np.repeat(v, 2, axis=1) for v in (found.mean, found.lo, found.hi)))
        x = np.array([x[0] / 2.0, x[0] * 2.0])
    ax.plot(x, found.mean.T, color=GREY, linewidth=0.4, alpha=0.5)
    ax.fill_between(x, found.lo[k], found.hi[k], color=BLUE, alpha=0.25, linewidth=0.0)
    ax.plot(x, found.mean[k], color=BLUE, linewidth=1.5)
    ax.set_xscale("log")
    ax.set_ylim(0.0, 1.0)
    ax.xaxis.set_major_locator(LogLocator(subs=(1.0, 2.0, 5.0)))
    ax.xaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.xaxis.set_minor_formatter(NullFormatter())


def plot_sensitivity(
    posterior: Posterior, axes: Any = None, **options: Any
) -> tuple[SensitivityTable, list[Any]]:
    """Prepare with ``options`` and draw."""
    table = prepare_sensitivity(posterior, **options)
    return table, draw_sensitivity(table, axes)
